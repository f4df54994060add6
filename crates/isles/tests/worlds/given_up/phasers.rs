//! Phasers with cancelled waits: the phase stays ended for the task, which waits again later or leaves.

use super::{interrupt, run_worlds};
use isles::prelude::*;
use isles::{Random, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// By phaser, the current phase of each task that has not left.
    static PHASES: RefCell<BTreeMap<u64, BTreeMap<u64, u64>>> = RefCell::default();
}

fn enter(phaser: u64, task: u64, phase: u64) {
    PHASES.with_borrow_mut(|phases| {
        let tasks = phases.entry(phaser).or_default();
        tasks.insert(task, phase);
        let behind = tasks.values().filter(|other| **other + 1 < phase).count();
        assert_eq!(behind, 0, "a task of phaser {phaser} is in phase {phase} before others: {tasks:?}");
    });
}

fn leave(phaser: u64, task: u64) {
    PHASES.with_borrow_mut(|phases| phases.entry(phaser).or_default().remove(&task));
}

/// Some phases of a task; each wait may be cancelled and resumed.
async fn phases(seed: u64, task: u64, one: &Phaser, other: &Phaser) -> Result<()> {
    let mut random = Random::stream(seed, 10 + task);
    for (name, phaser) in [one, other].into_iter().enumerate() {
        enter(name as u64, task, phaser.phase()?);
    }
    for step in 1..2 + random.below(4) {
        let mut waits = 0;
        if task.is_multiple_of(2) {
            loop {
                let advanced = interrupt("services/phaser/mod advance", &mut random, one.advance()).await;
                if let Some(phase) = advanced {
                    assert_eq!(phase?, step);
                    break;
                }
                waits += 1;
                // A task leaves after many cancelled waits.
                if waits > 20 {
                    leave(0, task);
                    leave(1, task);
                    return Ok(());
                }
            }
            enter(0, task, step);
            assert_eq!(other.advance().await?, step);
        } else {
            loop {
                let both = Phaser::advance_all([one, other]);
                if let Some(advanced) = interrupt("services/phaser/mod advance_all", &mut random, both).await
                {
                    break advanced?;
                }
                if random.below(4) == 0 {
                    // Each is waited for by itself.
                    for phaser in [one, other] {
                        assert_eq!(phaser.phase()?, step - 1);
                        assert_eq!(phaser.advance().await?, step);
                    }
                    break;
                }
            }
            enter(0, task, step);
        }
        enter(1, task, step);
    }
    leave(0, task);
    leave(1, task);
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    PHASES.take();
    let mut random = Random::stream(seed, 0);
    let tasks = 2 + random.below(6);
    finish(async {
        let (one, other) = (Phaser::new(), Phaser::new());
        for task in 0..tasks {
            let place = Place::new(random.below(place_count() as u64) as usize).expect("it is there");
            spawn_at!(place, [seed, task, one, other] phases(seed, task, &one, &other).await?);
        }
    })
    .await
}

#[test]
fn nobody_is_in_a_phase_before_all_have_ended_the_one_before() {
    run_worlds("phasers", program);
}
