//! The groups of a pipeline as tasks: started by one task that waits for them all.
//!
//! They are tasks of a finish of their own, whatever finish the program resizes in. Invariant: after `Stop` no group is
//! started, and the outcome is there once all have ended.

use super::Pipeline;
use super::kit::Kit;
use super::worker::{GroupTask, work};
use crate::Result;
use crate::prelude::*;
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
pub(super) struct Crew {
    commands: VecDeque<Command>,
    outcome: Option<Result<()>>,
}

/// Tells the task that starts groups what to do.
pub(super) fn command(crew: &Monitor<Crew>, command: Command) {
    crew.atomic(|crew| crew.commands.push_back(command));
}

/// Waits until all groups have ended; returns their outcome.
pub(super) async fn outcome(crew: &Monitor<Crew>) -> Result<()> {
    let is_there = |crew: &Crew| crew.outcome.is_some();
    crew.when(is_there, |crew| crew.outcome.take()).await.expect("it is there")
}

/// Starts groups until told to stop; the outcome of them all is then there.
pub(super) async fn supervise<P: Pipeline>(kit: PlaceLocal<Kit<P>>, crew: Rc<Monitor<Crew>>) {
    let ended = finish(async {
        loop {
            let next = |crew: &mut Crew| crew.commands.pop_front();
            let command = crew.when(|crew| !crew.commands.is_empty(), next).await.expect("there is one");
            let Command::Start(groups) = command else { return };
            for (place, task) in groups {
                spawn_at!(place, work(kit, task).await?);
            }
        }
    })
    .await;
    crew.atomic(|crew| crew.outcome = Some(ended));
}
