//! Tasks from one place to another start in the order of their sending.
//!
//! The critical case is a send that waits for room: a message received meanwhile may send to the same place. Here a
//! value does so during its decoding. The other machines run the same program with full queues.

use isles::prelude::*;
use isles::{Plan, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::{Cell, RefCell};

/// Number of seeds of simulated worlds.
const SEEDS: u64 = 300;

thread_local! {
    /// Number of tasks that the first place has sent.
    static GIVEN: Cell<u64> = const { Cell::new(0) };
    /// The numbers of the tasks that have begun at the second place.
    static BEGUN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn place(index: usize) -> Place {
    Place::new(index).expect("three places")
}

/// Sends the second place a task with the next number; every seventh is too long for most queues.
fn send_next() {
    let number = GIVEN.get();
    GIVEN.set(number + 1);
    let load = vec![0_u8; if number % 7 == 3 { 3000 } else { 1 }];
    spawn_at!(place(1), {
        drop(load);
        BEGUN.with_borrow_mut(|begun| begun.push(number));
    });
}

/// A value that sends a task when it arrives at the first place.
struct Trigger;

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        <()>::deserialize(deserializer)?;
        if here() == place(0) {
            send_next();
        }
        Ok(Trigger)
    }
}

/// Sends `count` tasks from the first place to the second; values from the third make it send more.
async fn mix(count: u64) -> Result<()> {
    GIVEN.set(0);
    at!(place(1), BEGUN.take()).await?;
    finish(async move {
        spawn_at!(place(2), {
            for _ in 0..count {
                let trigger = Trigger;
                spawn_at!(place(0), {
                    let _ = trigger;
                });
            }
        });
        for _ in 0..count {
            send_next();
        }
    })
    .await?;
    let begun = at!(place(1), BEGUN.take()).await?;
    assert_eq!((GIVEN.get(), begun.len() as u64), (2 * count, 2 * count), "a task is lost");
    let overtaken = begun.windows(2).find(|pair| pair[0] > pair[1]);
    assert_eq!(overtaken, None, "the first of these tasks has overtaken the second");
    Ok(())
}

#[test]
fn tasks_start_in_the_order_sent_in_worlds_where_sends_wait() {
    for seed in 0..SEEDS {
        let (result, ..) = isles::simulate(3, Plan::adversarial(seed), || mix(60));
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[isles::test(places = 3, machines = [threads, processes])]
async fn tasks_start_in_the_order_sent_where_queues_fill() -> Result<()> {
    mix(20_000).await
}
