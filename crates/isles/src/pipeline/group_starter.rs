//! The groups of a pipeline as tasks: started by one task that waits for them all.
//!
//! They are tasks of a finish of their own, whatever finish the program resizes in. Invariant: no group
//! starts after `Stop`. The outcome stays from the end of all groups until others start, so a caller may stop waiting
//! for it and ask again.

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
    /// Start none any more, and wait for all.
    Stop,
}

/// State shared by the flow and the task that starts groups.
#[derive(Default)]
pub(super) struct GroupStarter {
    commands: VecDeque<Command>,
    /// Cancels the groups that have started.
    groups: Option<Canceller>,
    outcome: Option<Result<()>>,
}

/// Ends all groups, and starts none any more.
pub(super) fn cancel_groups(starter: &Monitor<GroupStarter>) {
    let groups = starter.atomic(|starter| {
        starter.commands.clear();
        starter.commands.push_back(Command::Stop);
        starter.groups.take()
    });
    groups.into_iter().for_each(|groups| groups.cancel("the pipeline is over"));
}

/// Tells the task that starts groups what to do.
pub(super) fn command(starter: &Monitor<GroupStarter>, command: Command) {
    starter.atomic(|starter| starter.commands.push_back(command));
}

/// Waits until all groups have ended; returns their outcome, which stays until others are started.
pub(super) async fn outcome(starter: &Monitor<GroupStarter>) -> Result<()> {
    let is_there = |starter: &GroupStarter| starter.outcome.is_some();
    starter.when(is_there, |starter| starter.outcome.clone()).await.expect("it is there")
}

/// Starts groups until told to stop; the outcome of them all is then there.
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
