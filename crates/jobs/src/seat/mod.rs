//! What a place does with jobs: it runs those that were sent to it, a step each in turn, and tells the job server of
//! them.
//!
//! Invariant: of each job that was sent here the job server hears one end, unless the place dies; what is heard names
//! the start that it belongs to, so a late report of an earlier one is known as such.

pub(crate) mod clocks;
pub(crate) mod command;

use crate::job::{self, AnyJob, JobOutput, JobProgress};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

/// Lines that a job keeps before they are sent.
const LINES: usize = 64;

/// Time after which they are sent, be they few.
const LINES_FOR: Duration = Duration::from_millis(100);

/// Whether places are cores of a modelled chip: the same at all places, as the kinds of jobs are.
static MODELLED: OnceLock<bool> = OnceLock::new();

/// Says once whether places are cores of a modelled chip.
pub(crate) fn say_whether_modelled(is_modelled: bool) {
    MODELLED.get_or_init(|| is_modelled);
}

/// How long a job does steps before its place looks at anything else.
const TURN: Duration = Duration::from_millis(2);

/// What a job shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Control {
    Run,
    Pause,
    /// Write the state, and be gone.
    Save,
    Kill,
}

/// A start of a job: the first, or one after it was written or stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct StartId {
    pub(crate) job: u64,
    pub(crate) start: u64,
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Runnable {
    /// A job of the program, by the name of its kind.
    Task(String, Vec<String>),
    /// A command of the system and its arguments; no shell reads them.
    Command(Vec<String>),
}

/// What is sent to the place of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) id: StartId,
    pub(crate) what: Runnable,
    /// The state to go on from.
    pub(crate) state: Option<Vec<u8>>,
    /// Where the output of a command goes.
    pub(crate) output: PathBuf,
}

/// What the place of a job tells the job server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    /// It runs; a command as the process of that number, which began at that time of the system.
    Started(Option<(u32, u64)>),
    Output(Vec<String>),
    Saved(Vec<u8>),
    Killed,
    Ended(String),
    Faulted(String),
}

/// A report, of which start, and how long that has computed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobEvent {
    pub(crate) start: StartId,
    pub(crate) busy: Duration,
    pub(crate) told: Told,
}

/// The jobs of a place.
#[derive(Default)]
pub(crate) struct Seat {
    seated: BTreeMap<StartId, Seated>,
    /// The last start of each job that was here, and what later ones shall do that are not here yet.
    seen: BTreeMap<u64, u64>,
    early: BTreeMap<StartId, Control>,
    /// What the processor had done when it was last looked at.
    before: Option<(Duration, Duration)>,
}

/// A job as others at its place see it.
pub(crate) struct Seated {
    pub(crate) control: Rc<Monitor<Control>>,
    /// How long it has computed, and how many bytes it holds.
    pub(crate) busy: Duration,
    pub(crate) memory: u64,
}

/// What a place and its jobs do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SeatSample {
    /// Since when, and how long the processor was busy then, with jobs or anything else.
    pub(crate) passed: Duration,
    pub(crate) busy: Duration,
    /// Of each job, how long it has computed so far, and its memory.
    pub(crate) jobs: Vec<(StartId, Duration, u64)>,
    /// By what the clock of the core is divided, on a chip.
    pub(crate) divider: Option<u32>,
    /// The number of the supply of the core, its rate in hertz and its voltage, on a chip.
    pub(crate) supply: Option<(u32, u64, Option<f64>)>,
    /// What chooses the clocks of that supply.
    pub(crate) governor: Option<String>,
}

impl Seat {
    /// Says what a job shall do; one that was here has ended, and has said so.
    pub(crate) fn control(&mut self, id: StartId, control: Control) {
        if let Some(seated) = self.seated.get(&id) {
            seated.control.atomic(|now| *now = control);
        } else if self.seen.get(&id.job).is_none_or(|seen| *seen < id.start) {
            self.early.insert(id, control);
        }
    }

    /// A job is here.
    fn seat(&mut self, id: StartId) -> Rc<Monitor<Control>> {
        self.seen.insert(id.job, id.start);
        let control = Rc::new(Monitor::new(self.early.remove(&id).unwrap_or(Control::Run)));
        self.early.retain(|other, _| other.job != id.job || other.start > id.start);
        let seated = Seated { control: Rc::clone(&control), busy: Duration::ZERO, memory: 0 };
        self.seated.insert(id, seated);
        control
    }

    /// Notes what a command has used so far.
    pub(crate) fn note(&mut self, id: StartId, busy: Duration, memory: u64) {
        if let Some(seated) = self.seated.get_mut(&id) {
            seated.busy = busy;
            seated.memory = memory;
        }
    }

    /// What the place has done since the last time.
    pub(crate) fn sample(&mut self) -> SeatSample {
        let jobs: Vec<_> = self.seated.iter().map(|(id, job)| (*id, job.busy, job.memory)).collect();
        let of_jobs = jobs.iter().map(|(_, busy, _)| *busy).sum();
        let is_modelled = MODELLED.get() == Some(&true);
        let of_host = if is_modelled { None } else { command::thread_time() };
        let (time, busy) = (now(), of_host.unwrap_or(of_jobs));
        let (time_before, busy_before) = self.before.replace((time, busy)).unwrap_or((time, busy));
        SeatSample {
            passed: time.saturating_sub(time_before),
            busy: busy.saturating_sub(busy_before),
            jobs,
            divider: isles::clocks::divider(),
            supply: isles::clocks::supply().map(|supply| (supply.number, supply.hertz, supply.volts)),
            governor: isles::clocks::supply_governor().map(|policy| policy.to_string()),
        }
    }
}

/// Runs a job at the place of the calling task, to one of its ends.
///
/// # Errors
/// The job server is dead.
pub(crate) async fn run(
    seats: PlaceLocal<Seat>,
    order: StartOrder,
    events: Sender<JobEvent>,
) -> isles::Result<()> {
    let id = order.id;
    let control = seats.lock().seat(id);
    let told = match &order.what {
        Runnable::Command(words) => command::run(&seats, &order, words, &control, &events).await?,
        Runnable::Task(name, words) => {
            match job::kind(name).and_then(|kind| (kind.open)(words, order.state.as_deref())) {
                Ok(job) => steps(&seats, id, job, &control, &events).await?,
                Err(fault) => Told::Faulted(fault),
            }
        }
    };
    let seated = seats.lock().seated.remove(&id);
    let busy = seated.map_or(Duration::ZERO, |seated| seated.busy);
    events.send(JobEvent { start: id, busy, told }).await?;
    Ok(())
}

/// Tells the job server what is no end of a job.
pub(crate) async fn tell(events: &Sender<JobEvent>, start: StartId, told: Told) -> isles::Result<()> {
    events.send(JobEvent { start, busy: Duration::ZERO, told }).await?;
    Ok(())
}

/// Does the steps of a job until it has ended or shall do something else.
async fn steps(
    seats: &PlaceLocal<Seat>,
    id: StartId,
    mut job: Box<dyn AnyJob>,
    control: &Monitor<Control>,
    events: &Sender<JobEvent>,
) -> isles::Result<Told> {
    tell(events, id, Told::Started(None)).await?;
    let mut output = JobOutput::default();
    let mut sent = now();
    loop {
        let (told, is_over) =
            match control.when(|control| *control != Control::Pause, |control| *control).await {
                Control::Save => (Some(Told::Saved(job.save())), true),
                Control::Kill => (Some(Told::Killed), true),
                Control::Run | Control::Pause => match step(seats, id, &mut *job, &mut output) {
                    Ok(JobProgress::More) => (None, false),
                    Ok(JobProgress::Done(result)) => (Some(Told::Ended(result)), true),
                    Err(fault) => (Some(Told::Faulted(fault)), true),
                },
            };
        let is_late = now().saturating_sub(sent) >= LINES_FOR;
        if output.len() > 0 && (is_over || is_late || output.len() >= LINES) {
            tell(events, id, Told::Output(output.take())).await?;
            sent = now();
        }
        if let Some(told) = told {
            return Ok(told);
        }
        yield_now().await;
    }
}

/// Does steps for a turn, and notes what they took. A panic in one is a fault of the job.
fn step(
    seats: &PlaceLocal<Seat>,
    id: StartId,
    job: &mut dyn AnyJob,
    output: &mut JobOutput,
) -> Result<JobProgress, String> {
    let begun = now();
    let turn = || {
        loop {
            let done = job.step(output);
            let is_over = now().saturating_sub(begun) >= TURN || output.len() >= LINES;
            if is_over || done != Ok(JobProgress::More) {
                return done;
            }
        }
    };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(turn));
    let took = now().saturating_sub(begun);
    if let Some(seated) = seats.lock().seated.get_mut(&id) {
        seated.busy += took;
        seated.memory = job.memory();
    }
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        Err(format!("panicked: {}", text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_default()))
    })
}
