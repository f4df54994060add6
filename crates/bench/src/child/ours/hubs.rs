//! A semaphore loop over hubs, and its components: switches of a local task, or messages between two places.
//!
//! Batches of both are run in turn, so that a change of the host's speed affects both. Invariant: each loop is two
//! signals and two tests.

use super::{run, seconds_of_both};
use crate::child::timing::{Effort, print_figure};
use isles::hub::{HubDescription, HubKind, HubMap, HubSystem, HubTask, KernelCosts, Wait};
use isles::prelude::*;

fn describe((): ()) -> HubDescription {
    HubDescription::new()
        .task("left", 20)
        .task("right", 10)
        .hub("ping", HubKind::Semaphore { count: 0 })
        .hub("pong", HubKind::Semaphore { count: 0 })
}

async fn body(task: HubTask, loops: u64) -> isles::Result<()> {
    let (ping, pong) = (task.semaphore("ping")?, task.semaphore("pong")?);
    for _ in 0..loops {
        if task.name() == "left" {
            task.signal(ping, Wait::Forever).await?;
            task.test(pong, Wait::Forever).await?;
        } else {
            task.test(ping, Wait::Forever).await?;
            task.signal(pong, Wait::Forever).await?;
        }
    }
    Ok(())
}

/// Runs `count` loops, including the creation of their tasks and hubs.
async fn loops(count: u64) -> isles::Result<()> {
    let other = u32::from(place_count() > 1);
    let map = HubMap::of([("left", 0), ("pong", 0), ("right", other), ("ping", other)]);
    let system = HubSystem::open((), describe, map, KernelCosts::default()).await?;
    system.run(count, body).await.map(drop)
}

/// Runs `count` turns of two tasks: each is a switch away and a switch back.
async fn switches(count: u64) -> isles::Result<()> {
    finish(async {
        for _ in 0..2 {
            spawn(async move {
                for _ in 0..count.div_ceil(2) {
                    yield_now().await;
                }
                Ok::<(), isles::Error>(())
            });
        }
    })
    .await
}

/// Runs half round trips of an empty `at!`.
async fn messages(count: u64) -> isles::Result<()> {
    let other = here().next();
    for _ in 0..count.div_ceil(2) {
        at!(other, ()).await?;
    }
    Ok(())
}

/// Prints `loop_us`, `part_us` of a switch or a message, and `loop_parts`, their number in a loop.
pub fn semaphore_loop(effort: Effort) {
    run(move || async move {
        let (of_loop, of_part) = match place_count() {
            1 => seconds_of_both(effort, loops, switches).await?,
            _ => seconds_of_both(effort, loops, messages).await?,
        };
        print_figure("loop_us", of_loop * 1e6);
        print_figure("part_us", of_part * 1e6);
        print_figure("loop_parts", of_loop / of_part);
        Ok(())
    });
}
