//! Static programs: a fixed list of steps for each participant.
//!
//! The steps do not depend on data, so the worst case can be computed from them ([`bound`](crate::bound)). The barrier
//! is RCCE's: the root polls a flag of each participant, round after round, until all are set, and then writes a flag
//! to each.

use super::rcce::{Participant, flag_value};
use super::reduce::add_lines;
use crate::topology::CoreId;

/// A step of a participant. Lines are those of its private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramStep {
    /// Computes for `cycles` cycles of the core's clock.
    Work {
        /// Number of cycles.
        cycles: u64,
    },
    /// Sends bytes to a participant; ends when they have been received.
    Send {
        /// Receiver.
        to: u32,
        /// Number of bytes.
        bytes: usize,
        /// First line of the bytes.
        line: u64,
    },
    /// Receives bytes from a participant.
    Receive {
        /// Sender.
        from: u32,
        /// Number of bytes.
        bytes: usize,
        /// First line of the received bytes.
        line: u64,
    },
    /// Adds a list of words to another one.
    Add {
        /// Bytes of each list.
        bytes: usize,
        /// First line of one list, which receives the sums.
        line: u64,
        /// First line of the other list.
        other: u64,
    },
    /// Waits until all participants have reached their next barrier.
    Barrier,
}

/// The steps of all participants, which are the cores from 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticProgram {
    /// Steps of each participant.
    pub steps: Vec<Vec<ProgramStep>>,
}

impl StaticProgram {
    /// Returns a program of `participants` participants without steps.
    pub fn new(participants: u32) -> StaticProgram {
        StaticProgram { steps: vec![Vec::new(); participants as usize] }
    }

    /// Returns the number of participants.
    pub fn participants(&self) -> u32 {
        self.steps.len() as u32
    }

    /// Adds a step to a participant.
    pub fn push(&mut self, participant: u32, step: ProgramStep) {
        self.steps[participant as usize].push(step);
    }

    /// Adds a message: a step of the sender, whose data begin at `line`, and one of the receiver, which stores them at
    /// `received`.
    pub fn push_message(&mut self, from: u32, to: u32, bytes: usize, line: u64, received: u64) {
        self.push(from, ProgramStep::Send { to, bytes, line });
        self.push(to, ProgramStep::Receive { from, bytes, line: received });
    }
}

impl Participant {
    /// Executes this participant's steps of a program.
    pub async fn run(&self, program: &StaticProgram) {
        let mut barriers = 0;
        for step in &program.steps[self.rank() as usize] {
            self.take(*step, &mut barriers).await;
        }
    }

    /// Executes one step; `barriers` counts the passed barriers.
    pub async fn take(&self, step: ProgramStep, barriers: &mut u32) {
        match step {
            ProgramStep::Work { cycles } => self.core.compute(cycles).await,
            ProgramStep::Send { to, bytes, line } => self.send(to, line, bytes).await,
            ProgramStep::Receive { from, bytes, line } => self.receive(from, line, bytes).await,
            ProgramStep::Add { bytes, line, other } => add_lines(&self.core, line, other, bytes).await,
            ProgramStep::Barrier => {
                *barriers += 1;
                self.barrier(*barriers).await;
            }
        }
    }

    /// Waits for all others; `number` counts barriers from 1 on.
    ///
    /// It uses the two flags of a participant for messages to itself, which do not exist.
    pub async fn barrier(&self, number: u32) {
        let me = self.core.id();
        let (arrived, released) = (|core: CoreId| core.0, |core: CoreId| self.participants + core.0);
        if me.0 != 0 {
            self.set_flag(me, arrived(me), number).await;
            return self.wait_flag(released(me), number).await;
        }
        self.core.compute(self.library.call).await;
        let mut missing: Vec<CoreId> = (1..self.participants).map(CoreId).collect();
        while !missing.is_empty() {
            let mut still = Vec::new();
            for core in missing {
                let line = self.core.read_line(core, arrived(core)).await;
                self.core.compute(self.library.look).await;
                if flag_value(&line) < number {
                    still.push(core);
                }
            }
            missing = still;
        }
        for core in (1..self.participants).map(CoreId) {
            self.set_flag(core, released(core), number).await;
        }
    }
}
