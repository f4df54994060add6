//! Runs the groups of a pipeline as tasks, started by one task that waits for them all.
//!
//! They belong to a finish of their own, independent of the finish in which the program resizes. Invariants: no group
//! starts after `Stop`; the outcome is kept from the end of all groups until others start, so a caller may cancel a
//! wait for it and wait again.

use super::Pipeline;
use super::local::LocalPipeline;
use super::worker::{GroupTask, work};
use crate::prelude::*;
use crate::{Canceller, Result};
use std::collections::VecDeque;
use std::rc::Rc;

/// A message to the task that starts groups.
pub(super) enum Command {
    /// Start these groups at their places.
    Start(Vec<(Place, GroupTask)>),
    /// Start no more groups, and wait for all.
    Stop,
}

/// State shared by the flow and the task that starts groups.
#[derive(Default)]
pub(super) struct GroupStarter {
    commands: VecDeque<Command>,
    /// Cancels the running groups.
    groups: Option<Canceller>,
    outcome: Option<Result<()>>,
}

/// Cancels all groups; no more will start.
pub(super) fn cancel_groups(starter: &Monitor<GroupStarter>) {
    let groups = starter.atomic(|starter| {
        starter.commands.clear();
        starter.commands.push_back(Command::Stop);
        starter.groups.take()
    });
    groups.into_iter().for_each(|groups| groups.cancel("the pipeline is over"));
}

/// Sends a command to the task that starts groups.
pub(super) fn command(starter: &Monitor<GroupStarter>, command: Command) {
    starter.atomic(|starter| starter.commands.push_back(command));
}

/// Waits until all groups have ended and returns their outcome, which is kept until others are started.
pub(super) async fn outcome(starter: &Monitor<GroupStarter>) -> Result<()> {
    let is_there = |starter: &GroupStarter| starter.outcome.is_some();
    starter.when(is_there, |starter| starter.outcome.clone()).await.expect("it is there")
}

/// Starts groups until a `Stop`, then stores the outcome of all.
pub(super) async fn start_groups<P: Pipeline>(
    local: PlaceLocal<LocalPipeline<P>>,
    starter: Rc<Monitor<GroupStarter>>,
) {
    let groups = finish(async {
        loop {
            let next = |starter: &mut GroupStarter| starter.commands.pop_front();
            let command =
                starter.when(|starter| !starter.commands.is_empty(), next).await.expect("there is one");
            let Command::Start(groups) = command else { return };
            for (place, task) in groups {
                spawn_at!(place, work(local, task).await?);
            }
        }
    });
    starter.atomic(|starter| starter.groups = Some(groups.canceller()));
    let ended = groups.await;
    starter.atomic(|starter| (starter.groups, starter.outcome) = (None, Some(ended)));
}
