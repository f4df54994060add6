//! Queues of commands from the job server to jobs at places; the newest command of a job counts.
//!
//! Pure: no message is sent here. The job server has a [`CommandQueue`] for each place, and a place has one
//! [`CommandInbox`]. Invariant: of two commands for one start of a job, the one with the greater number counts, in any
//! order of arrival; so a job finally obeys the last command.

use crate::runner::{Control, StartId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A command for a job; a greater number overrides a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NumberedCommand {
    pub(crate) number: u64,
    pub(crate) control: Control,
}

impl NumberedCommand {
    /// The default command of a job.
    pub(crate) const FIRST: NumberedCommand = NumberedCommand { number: 0, control: Control::Run };
}

/// The unsent commands for the jobs of one place, at most one for each start: a newer one replaces it.
///
/// At most one batch is in flight, so an unresponsive place costs no memory for any number of commands.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    last_number: u64,
    waiting: BTreeMap<StartId, NumberedCommand>,
    is_sending: bool,
}

impl CommandQueue {
    /// Adds a command.
    pub(crate) fn push(&mut self, start: StartId, control: Control) {
        self.last_number += 1;
        self.waiting.insert(start, NumberedCommand { number: self.last_number, control });
    }

    /// Returns `true` if commands wait and no task sends them; then the caller must send until [`next_batch`] is
    /// `None`.
    ///
    /// [`next_batch`]: CommandQueue::next_batch
    pub(crate) fn begin_sending(&mut self) -> bool {
        let begins = !self.is_sending && !self.waiting.is_empty();
        self.is_sending |= begins;
        begins
    }

    /// Returns the next batch, or `None` if there is none. The previous one must have arrived, or its place be dead.
    pub(crate) fn next_batch(&mut self) -> Option<Vec<(StartId, NumberedCommand)>> {
        let batch: Vec<_> = std::mem::take(&mut self.waiting).into_iter().collect();
        self.is_sending = !batch.is_empty();
        self.is_sending.then_some(batch)
    }
}

/// The newest command for each start of a job at a place, also for starts that have not arrived.
#[derive(Debug, Default)]
pub(crate) struct CommandInbox {
    /// The last start of each job that has arrived.
    arrived: BTreeMap<u64, u64>,
    newest: BTreeMap<StartId, NumberedCommand>,
}

impl CommandInbox {
    /// Accepts a command; drops it if it is outdated or for an ended start.
    pub(crate) fn receive(&mut self, start: StartId, command: NumberedCommand) {
        let is_early = self.arrived.get(&start.job).is_none_or(|arrived| *arrived < start.start);
        let newest = self.newest.get(&start);
        if newest.map_or(is_early, |newest| newest.number < command.number) {
            self.newest.insert(start, command);
        }
    }

    /// Records the arrival of a start. Returns its first command. An earlier start of the job may still be here,
    /// waiting for the command to leave.
    pub(crate) fn begin(&mut self, start: StartId) -> NumberedCommand {
        self.arrived.insert(start.job, start.start);
        *self.newest.entry(start).or_insert(NumberedCommand::FIRST)
    }

    /// Returns the newest command for a present start.
    pub(crate) fn newest(&self, start: StartId) -> Option<NumberedCommand> {
        self.newest.get(&start).copied()
    }

    /// Records the end of a start.
    pub(crate) fn end(&mut self, start: StartId) {
        self.newest.remove(&start);
    }
}
