//! Parallel patterns as static programs.
//!
//! The keynote asks for worst cases of "communication and synchronization patterns" and of "parallel design patterns"
//! without naming any (004:129); these are from its projects' reports and from message passing.

use super::{ProgramStep, StaticProgram};

/// Number of participants in a control loop.
pub const CONTROL_LOOP: u32 = 4;

/// Cycles of the hub kernel for a request or a reply: a packet, 261, and a context switch, 131.
///
/// The costs of OpenComRTOS on the SCC as calibrated in `docs/hubs.md`.
const HUB_PACKET_CYCLES: u64 = 261 + 131;

/// First line of the data.
const DATA: u64 = 0;

/// A pattern among participants 0 to `participants - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParallelPattern {
    /// The first sends to the last.
    Message,
    /// All wait for each other, as RCCE's barrier does.
    Barrier,
    /// The first sends to all others, one after the other.
    BroadcastSerial,
    /// Participants with the message forward it, so that their number doubles in each step.
    BroadcastBinomial,
    /// The first receives from all others one after the other, and adds.
    Reduce,
    /// The first distributes work in fixed shares, does its own share, and collects the results in order.
    Farm,
    /// Each item passes all participants, each of which works on it.
    Pipeline,
    /// Steps of a sensor, a controller, an actuator and a logger, with the requests and replies of the hubs of the
    /// application `control-loop`, in its order.
    ControlLoop,
    /// Rounds of work, an exchange of borders with neighbours, and a barrier.
    Stencil,
}

/// The size of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternSize {
    /// Number of participants.
    pub participants: u32,
    /// Bytes of each message; in a farm, of a share and of its result.
    pub bytes: usize,
    /// Total cycles of work: of a farm, of a round of a stencil, or of an item of a pipeline.
    pub work: u64,
    /// Number of items of a pipeline, or of rounds of a stencil.
    pub items: u32,
}

impl ParallelPattern {
    /// All patterns.
    pub const ALL: [ParallelPattern; 9] = [
        ParallelPattern::Message,
        ParallelPattern::Barrier,
        ParallelPattern::BroadcastSerial,
        ParallelPattern::BroadcastBinomial,
        ParallelPattern::Reduce,
        ParallelPattern::Farm,
        ParallelPattern::Pipeline,
        ParallelPattern::ControlLoop,
        ParallelPattern::Stencil,
    ];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            ParallelPattern::Message => "message",
            ParallelPattern::Barrier => "barrier",
            ParallelPattern::BroadcastSerial => "broadcast-serial",
            ParallelPattern::BroadcastBinomial => "broadcast",
            ParallelPattern::Reduce => "reduce",
            ParallelPattern::Farm => "farm",
            ParallelPattern::Pipeline => "pipeline",
            ParallelPattern::ControlLoop => "control-loop",
            ParallelPattern::Stencil => "stencil",
        }
    }

    /// Returns `true` if the pattern has work, so that it can be compared with one core that does all of it.
    pub const fn works(self) -> bool {
        matches!(
            self,
            ParallelPattern::Farm
                | ParallelPattern::Pipeline
                | ParallelPattern::ControlLoop
                | ParallelPattern::Stencil
        )
    }

    /// Returns the total cycles of work.
    pub fn all_work(self, size: PatternSize) -> u64 {
        match self {
            ParallelPattern::Farm => size.work,
            ParallelPattern::Pipeline | ParallelPattern::ControlLoop | ParallelPattern::Stencil => {
                size.work.saturating_mul(u64::from(size.items))
            }
            _ => 0,
        }
    }

    /// Returns the maximum number of bytes of private memory that a participant uses.
    pub fn data_bytes(self, size: PatternSize) -> usize {
        match self {
            ParallelPattern::Barrier => 0,
            ParallelPattern::Reduce => 2 * size.bytes,
            ParallelPattern::Stencil => 4 * size.bytes,
            _ => size.bytes,
        }
    }

    /// Returns the steps for lines of `line_bytes` bytes.
    pub fn program(self, size: PatternSize, line_bytes: usize) -> StaticProgram {
        let PatternSize { participants, bytes, work, items } = size;
        let mut program = StaticProgram::new(participants);
        let last = participants - 1;
        match self {
            ParallelPattern::Message if last > 0 => program.push_message(0, last, bytes, DATA, DATA),
            ParallelPattern::Message => {}
            ParallelPattern::Barrier => {
                (0..participants).for_each(|at| program.push(at, ProgramStep::Barrier))
            }
            ParallelPattern::BroadcastSerial => {
                (1..participants).for_each(|to| program.push_message(0, to, bytes, DATA, DATA));
            }
            ParallelPattern::BroadcastBinomial => binomial(&mut program, bytes),
            ParallelPattern::Reduce => reduce(&mut program, bytes, bytes.div_ceil(line_bytes) as u64),
            ParallelPattern::Farm => farm(&mut program, bytes, work),
            ParallelPattern::Pipeline => (0..items).for_each(|_| pipeline_item(&mut program, bytes, work)),
            ParallelPattern::ControlLoop => (0..items).for_each(|_| control_step(&mut program, bytes, work)),
            ParallelPattern::Stencil => {
                let lines = bytes.div_ceil(line_bytes) as u64;
                (0..items).for_each(|_| stencil_round(&mut program, bytes, lines, work));
            }
        }
        program
    }
}

/// Returns the share of participant `at` of the work, in whole cycles as even as possible.
fn share(work: u64, participants: u32, at: u32) -> u64 {
    let (count, at) = (u64::from(participants), u64::from(at));
    work / count + u64::from(at < work % count)
}

/// Adds a binomial broadcast: in step `k`, participant `p < 2^k` sends to `p + 2^k`.
fn binomial(program: &mut StaticProgram, bytes: usize) {
    let mut have = 1;
    while have < program.participants() {
        for from in 0..have.min(program.participants() - have) {
            program.push_message(from, from + have, bytes, DATA, DATA);
        }
        have *= 2;
    }
}

fn reduce(program: &mut StaticProgram, bytes: usize, lines: u64) {
    for from in 1..program.participants() {
        program.push_message(from, 0, bytes, DATA, DATA + lines);
        program.push(0, ProgramStep::Add { bytes, line: DATA, other: DATA + lines });
    }
}

fn farm(program: &mut StaticProgram, bytes: usize, work: u64) {
    let participants = program.participants();
    for worker in 1..participants {
        program.push_message(0, worker, bytes, DATA, DATA);
    }
    for at in 0..participants {
        program.push(at, ProgramStep::Work { cycles: share(work, participants, at) });
    }
    for worker in 1..participants {
        program.push_message(worker, 0, bytes, DATA, DATA);
    }
}

fn pipeline_item(program: &mut StaticProgram, bytes: usize, work: u64) {
    let participants = program.participants();
    for at in 0..participants {
        program.push(at, ProgramStep::Work { cycles: share(work, participants, at) });
        if at + 1 < participants {
            program.push_message(at, at + 1, bytes, DATA, DATA);
        }
    }
}

/// Adds one step of the application `control-loop` (`apps/rtos`) under its default map: four tasks, shared by fewer
/// participants if necessary, and a request for each use of a hub.
fn control_step(program: &mut StaticProgram, bytes: usize, work: u64) {
    let count = program.participants().min(CONTROL_LOOP);
    let [sensor, controller, actuator, logger] = [0, 1, 2, 3].map(|task| task % count);
    let run = |program: &mut StaticProgram, task: u32| {
        program.push(task % count, ProgramStep::Work { cycles: share(work, CONTROL_LOOP, task) });
    };
    run(program, 0);
    hub_request(program, sensor, controller, bytes); // put the reading
    hub_request(program, controller, controller, bytes); // get it
    // Lock the log, unlock it, put the level.
    (0..3).for_each(|_| hub_request(program, sensor, logger, bytes));
    run(program, 1);
    hub_request(program, controller, actuator, bytes); // put the command
    hub_request(program, actuator, actuator, bytes); // get it
    run(program, 2);
    hub_request(program, actuator, sensor, bytes); // put the applied value
    hub_request(program, sensor, sensor, bytes); // get it
    hub_request(program, actuator, logger, bytes); // put the drive
    // Get the level and the drive, lock the log.
    (0..3).for_each(|_| hub_request(program, logger, logger, bytes));
    run(program, 3);
    hub_request(program, logger, logger, bytes); // unlock the log
}

/// Adds a request of the task at `from` to a hub at `to`, and the reply.
fn hub_request(program: &mut StaticProgram, from: u32, to: u32, bytes: usize) {
    let kernel = || ProgramStep::Work { cycles: HUB_PACKET_CYCLES };
    if from != to {
        program.push_message(from, to, bytes, DATA, DATA);
        program.push(to, kernel());
        program.push_message(to, from, bytes, DATA, DATA);
    }
    program.push(from, kernel());
}

/// Adds one round of a stencil; even participants send first, to avoid a cycle of senders.
fn stencil_round(program: &mut StaticProgram, bytes: usize, lines: u64, work: u64) {
    let participants = program.participants();
    for at in 0..participants {
        program.push(at, ProgramStep::Work { cycles: share(work, participants, at) });
    }
    for first in [0, 1] {
        for low in (first..participants.saturating_sub(1)).step_by(2) {
            program.push_message(low, low + 1, bytes, DATA + lines, DATA + 2 * lines);
            program.push_message(low + 1, low, bytes, DATA, DATA + 3 * lines);
        }
    }
    (0..participants).for_each(|at| program.push(at, ProgramStep::Barrier));
}
