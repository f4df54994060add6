//! A chip without an operating system or a runtime: cores that run programs of single accesses.
//!
//! A program is a future that gets its [`BareCore`]. Each operation of the core (a line of a message buffer, a line of
//! private memory, a wait for a flag, an interrupt) takes the time of the chip file plus contention at links, buffer
//! ports, memory controllers and the interrupt port. Bytes are really moved, so a program that waits for the wrong flag
//! ends with wrong bytes. It serves to reproduce measurements from the literature with such programs; places, tasks and
//! messages are elsewhere.
//!
//! All cores run in one thread, and every operation is an event: no core runs ahead, so requests are in the order of
//! time. Invariant: an event resumes only its own core, at the time of the event.
//!
//! Read `operation` (the operations of a program), `ahead` (the same with fewer events) and `state` (the shared state);
//! then `rcce`, `broadcast`, `relay` and `reduce` (published algorithms), and `program` (lists of steps) and
//! `ticket_lock` (mutual exclusion), which have bounds.

mod ahead;
pub mod broadcast;
mod interrupts;
mod operation;
pub mod program;
pub mod rcce;
pub mod reduce;
pub mod relay;
mod state;
#[cfg(test)]
mod tests;
pub mod ticket_lock;

pub use operation::BareCore;

use crate::quantity::Picoseconds;
use crate::topology::CoreId;
use crate::{Chip, Preset};
use state::{BareState, CoreEvent};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Bytes of a line; bare cores need a chip with this size.
pub const LINE_BYTES: usize = 32;

/// A line of a memory.
pub type Line = [u8; LINE_BYTES];

/// A deadlock of programs: all running cores wait for events that never come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Waiting cores, each with the line of its own buffer that it waits for; `None` if it waits for an interrupt.
    pub waiting: Vec<(CoreId, Option<u32>)>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("these cores wait forever:")?;
        for (core, line) in &self.waiting {
            match line {
                Some(line) => write!(out, " {core} (line {line} of its buffer)")?,
                None => write!(out, " {core} (an interrupt)")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Deadlock {}

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// Cores of a chip, and their shared state.
pub struct BareChip {
    state: Rc<RefCell<BareState>>,
}

impl BareChip {
    /// Returns the chip at a preset, with zeroed memories and empty caches; `None` if the chip has no message buffers
    /// with lines of 32 bytes, or if the costs of lines, memory or controllers are unknown.
    pub fn new(chip: &Chip, preset: &Preset) -> Option<BareChip> {
        BareState::new(chip, preset).map(|state| BareChip { state: Rc::new(RefCell::new(state)) })
    }

    /// Returns the core `id`, to access its memories outside of a run.
    pub fn core(&self, id: CoreId) -> BareCore {
        assert!(id.0 < self.state.borrow().cores(), "core {id} is not on the chip");
        BareCore::new(id, Rc::clone(&self.state))
    }

    /// Returns the present time.
    pub fn now(&self) -> Picoseconds {
        self.state.borrow().now
    }

    /// Runs a program on each of these cores until all have ended; returns the elapsed time.
    ///
    /// # Errors
    /// [`Deadlock`]: some programs wait forever.
    pub fn run<F: Future<Output = ()> + 'static>(
        &self,
        cores: impl IntoIterator<Item = CoreId>,
        program: impl Fn(BareCore) -> F,
    ) -> Result<Picoseconds, Deadlock> {
        let start = self.now();
        let mut programs: Vec<Option<Program>> = Vec::new();
        programs.resize_with(self.state.borrow().cores() as usize, || None);
        for id in cores {
            programs[id.0 as usize] = Some(Box::pin(program(self.core(id))));
            self.state.borrow_mut().resume_at(id, start);
        }
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let Some(happening) = self.state.borrow_mut().next() else { break };
            let id = match happening {
                CoreEvent::Resume(id) => id,
                CoreEvent::Served(controller) => self.state.borrow_mut().served(controller),
            };
            let slot = &mut programs[id.0 as usize];
            let program = slot.as_mut().expect("only a core that runs is resumed");
            if program.as_mut().poll(&mut context).is_ready() {
                *slot = None;
            }
        }
        let left = (0..programs.len()).filter(|&core| programs[core].is_some());
        let waiting: Vec<_> = left.map(|core| self.state.borrow().waits_for(CoreId(core as u32))).collect();
        if waiting.is_empty() { Ok(self.now() - start) } else { Err(Deadlock { waiting }) }
    }
}
