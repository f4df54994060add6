//! What a run writes down of itself: who sends to whom, what each link carries, the trace.
//!
//! Nothing of it is on unless it is asked for, apart from the links. Invariant: a run that is recorded is the same run.

use super::ChipWorld;
use crate::record::{Trace, TraceWriter};
use crate::traffic::{Flow, LinkLoad, Traffic};
use std::io::{self, Write};

impl ChipWorld {
    /// Records from now on who sends how much to whom. The run stays what it was, and takes longer on the host.
    pub fn record(&self) {
        let state = &mut self.shared.state.borrow_mut();
        let recorder = state.cores.recorder.get_or_insert_default();
        recorder.traffic.get_or_insert_with(|| Traffic::new(self.shared.places as usize));
    }

    /// Records from now on what each core does when, as a Perfetto trace for `sink`, which a thread of its own writes
    /// beside the run; `run` says in words of which run.
    ///
    /// What the sink refuses is told by [`ChipWorld::end_trace`].
    ///
    /// # Errors
    /// A thread cannot be had; then nothing has changed.
    ///
    /// # Panics
    /// If there are more than 65,536 places; and what the sink panics with is raised here again, in the run or at its
    /// end.
    pub fn trace(&self, run: &str, sink: Box<dyn Write + Send>) -> io::Result<()> {
        let cores = &mut self.shared.state.borrow_mut().cores;
        let (initial_state, gears) = cores.initial_state();
        let trace_writer =
            TraceWriter::new(Trace::new(cores.topology(), (&initial_state, gears), run, sink))?;
        cores.recorder.get_or_insert_default().trace_writer = Some(trace_writer);
        Ok(())
    }

    /// Ends the trace, if there is one, and writes what is left of it.
    ///
    /// # Errors
    /// The first error of its sink; what came after that is lost.
    pub fn end_trace(&self) -> io::Result<()> {
        let mut state = self.shared.state.borrow_mut();
        let trace_writer = state.cores.recorder.as_mut().and_then(|all| all.trace_writer.take());
        trace_writer.map_or(Ok(()), |trace_writer| trace_writer.finish(state.cores.energy()))
    }

    /// What was sent between places since [`ChipWorld::record`]; nothing without that.
    pub fn flows(&self) -> Vec<Flow> {
        let state = self.shared.state.borrow();
        let recorder = state.cores.recorder.as_ref();
        recorder.and_then(|recorder| recorder.traffic.as_ref()).map(Traffic::flows).unwrap_or_default()
    }

    /// What each directed link has carried, in the order of the links' numbers.
    pub fn link_loads(&self) -> Vec<LinkLoad> {
        self.shared.state.borrow().cores.link_loads()
    }
}
