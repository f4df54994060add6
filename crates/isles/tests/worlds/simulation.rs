//! Whole-system simulation: random trees of tasks over simulated places, in seeded orders, with loss of places.
//!
//! Each seed determines a program, a world and its order, and runs twice with the same digest. `ISLES_TEST_SEEDS` sets
//! the number of seeds; `ISLES_SEED` selects one.

use crate::seeds::seeds;
use isles::prelude::*;
use isles::{ErrorKind, Plan, PlannedDeath, Result};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::Pin;

/// Seeds in the ordinary tests.
const SEEDS: u64 = 200;

thread_local! {
    /// Completed nodes by the finish that counts them. All simulated places share this thread.
    static ENDED: RefCell<HashMap<u64, u64>> = RefCell::default();
    /// Live tasks by finish and place.
    static TASKS: RefCell<HashMap<(u64, usize), i64>> = RefCell::default();
    /// Completed finishes, and those of them with a task that still lived, or arrived later, at a live place.
    static CONCLUDED: RefCell<HashSet<u64>> = RefCell::default();
    static OUTLIVED: RefCell<BTreeSet<u64>> = RefCell::default();
    /// The place that the world kills, if any.
    static LOST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Counts a task of a finish until it is dropped.
struct Living(u64, usize);

impl Living {
    fn new(finish: u64) -> Living {
        let place = here().index();
        TASKS.with_borrow_mut(|living| *living.entry((finish, place)).or_default() += 1);
        if CONCLUDED.with_borrow(|over| over.contains(&finish)) && LOST.get() != Some(place) {
            OUTLIVED.with_borrow_mut(|outlived| outlived.insert(finish));
        }
        Living(finish, place)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        TASKS.with_borrow_mut(|living| *living.entry((self.0, self.1)).or_default() -= 1);
    }
}

/// Records that `finish` is complete.
fn conclude(finish: u64) {
    CONCLUDED.with_borrow_mut(|over| over.insert(finish));
    let lives = |((of, place), count): (&(u64, usize), &i64)| {
        *of == finish && LOST.get() != Some(*place) && *count > 0
    };
    if TASKS.with_borrow(|living| living.iter().any(lives)) {
        OUTLIVED.with_borrow_mut(|outlived| outlived.insert(finish));
    }
}

fn scramble(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// One node of a tree of tasks; everything below it follows from its seed.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Node {
    seed: u64,
    depth: u32,
    /// The finish that counts the node.
    finish: u64,
    /// `true` below the body of a call from the killed place: after the caller's death, no finish waits for tasks that
    /// the body has not yet started.
    orphan: bool,
}

#[derive(Clone, Copy)]
enum Way {
    Here,
    There,
    AwaitedThere,
    Nested,
}

impl Node {
    fn children(self) -> impl Iterator<Item = (Way, u64, Node)> {
        let count = if self.depth == 0 { 0 } else { scramble(self.seed) % 4 };
        (0..count).map(move |index| {
            let seed = scramble(self.seed ^ (index + 1) << 32);
            let way =
                [Way::Here, Way::There, Way::There, Way::AwaitedThere, Way::Nested][(seed % 5) as usize];
            let (finish, orphan) = match way {
                Way::Nested => (seed, false),
                _ => (self.finish, self.orphan),
            };
            (way, scramble(seed), Node { seed, depth: self.depth - 1, finish, orphan })
        })
    }

    /// Returns the number of nodes of this tree that the finish of its root counts.
    fn counted(self) -> u64 {
        1 + self
            .children()
            .filter(|(way, ..)| !matches!(way, Way::Nested))
            .map(|(_, _, node)| node.counted())
            .sum::<u64>()
    }
}

/// Runs the tree below `node` as a task that its finish counts.
async fn grow_counted(node: Node) -> Result<()> {
    let _living = (!node.orphan).then(|| Living::new(node.finish));
    grow(node).await
}

/// Runs the tree below `node`.
fn grow(node: Node) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        for (way, draw, child) in node.children() {
            let place = Place::new(draw as usize % isles::place_count()).unwrap();
            match way {
                Way::Here => spawn(grow_counted(child)),
                Way::There => spawn_at!(place, grow_counted(child).await),
                Way::AwaitedThere => {
                    let orphan = child.orphan || LOST.get() == Some(here().index());
                    let child = Node { orphan, ..child };
                    at!(place, grow(child).await?).await?
                }
                Way::Nested => {
                    let result = finish(grow_counted(child)).await;
                    conclude(child.finish);
                    result?;
                    assert_eq!(ended(child.finish), child.counted(), "a finish ended before its tasks");
                }
            }
        }
        ENDED.with_borrow_mut(|ended| *ended.entry(node.finish).or_default() += 1);
        Ok(())
    })
}

fn ended(finish: u64) -> u64 {
    ENDED.with_borrow(|ended| ended.get(&finish).copied().unwrap_or_default())
}

/// Turns of the first place in which all messages in flight arrive.
const ARRIVAL_TURNS: u32 = 100;

fn run(seed: u64, plan: Plan) -> (Result<()>, u64, u64) {
    ENDED.with_borrow_mut(HashMap::clear);
    TASKS.with_borrow_mut(HashMap::clear);
    CONCLUDED.with_borrow_mut(HashSet::clear);
    OUTLIVED.with_borrow_mut(BTreeSet::clear);
    LOST.set(plan.losses.first().map(|loss| loss.place.index()));
    let root = Node { seed: scramble(seed), depth: 5, finish: 0, orphan: false };
    let places = 2 + (seed % 5) as u32;
    let main = async move {
        let result = finish(grow_counted(root)).await;
        conclude(root.finish);
        for _ in 0..ARRIVAL_TURNS {
            isles::yield_now().await;
        }
        result
    };
    let (result, _, digest) = isles::simulate(places, plan, move || main);
    let outlived = OUTLIVED.with_borrow(Clone::clone);
    assert!(outlived.is_empty(), "ISLES_SEED={seed}: tasks outlived the finishes {outlived:?}");
    (result, ended(0), digest)
}

#[test]
fn every_task_of_a_random_program_ends_before_its_finish() {
    for seed in seeds(SEEDS) {
        let root = Node { seed: scramble(seed), depth: 5, finish: 0, orphan: false };
        for plan in [Plan::calm, Plan::adversarial] {
            let (result, ended, digest) = run(seed, plan(seed));
            result.unwrap_or_else(|error| panic!("ISLES_SEED={seed}: {error}"));
            assert_eq!(ended, root.counted(), "ISLES_SEED={seed}");
            assert_eq!(digest, run(seed, plan(seed)).2, "ISLES_SEED={seed} gave two different runs");
        }
    }
}

#[test]
fn a_place_that_dies_is_an_error_or_goes_unnoticed_but_never_a_hang() {
    let (mut noticed, mut total) = (0, 0);
    for seed in seeds(SEEDS) {
        let lost = 1 + (scramble(seed) % (1 + seed % 5)) as u32;
        let step = scramble(seed ^ 7) % 400;
        let plan = || {
            let mut plan = Plan::adversarial(seed);
            plan.losses = vec![PlannedDeath { place: isles_transport::PlaceId(lost), step }];
            plan
        };
        let (result, _, digest) = run(seed, plan());
        total += 1;
        if let Err(error) = result {
            let stalled = *error.kind() == ErrorKind::Misused;
            assert!(!stalled, "ISLES_SEED={seed}: {error}");
            assert!(error.to_string().contains(&format!("place {lost}")), "ISLES_SEED={seed}: {error}");
            noticed += 1;
        }
        assert_eq!(digest, run(seed, plan()).2, "ISLES_SEED={seed} gave two different runs");
    }
    assert!(
        noticed * 10 >= total || total < 20,
        "only {noticed} of {total} losses came at a time when they mattered"
    );
}

thread_local! {
    /// Tasks of [`escape`] that live at the surviving place, and whether its finish is over.
    static LIVING: Cell<i64> = const { Cell::new(0) };
    static OVER: Cell<bool> = const { Cell::new(false) };
    /// `true` if such a task lived when the finish was over.
    static ESCAPED: Cell<bool> = const { Cell::new(false) };
}

/// Works for some turns, and records whether it outlives its finish.
async fn linger() {
    LIVING.set(LIVING.get() + 1);
    for _ in 0..40 {
        ESCAPED.set(ESCAPED.get() || OVER.get());
        isles::yield_now().await;
    }
    LIVING.set(LIVING.get() - 1);
}

/// A task calls the body of an `at!` that starts a task at a third place, and handles the error of that call.
async fn escape() -> Result<()> {
    let [caller, target, third] = [1, 2, 3].map(|place| Place::new(place).unwrap());
    let result = finish(async {
        spawn_at!(caller, {
            let call = at!(target, {
                spawn_at!(third, linger().await);
                for _ in 0..10 {
                    isles::yield_now().await;
                }
            });
            drop(call.await);
        });
    });
    let result = result.await;
    ESCAPED.set(ESCAPED.get() || LIVING.get() > 0);
    OVER.set(true);
    // All messages in flight arrive meanwhile.
    finish(async { spawn_at!(third, linger_on().await) }).await?;
    result
}

async fn linger_on() {
    for _ in 0..100 {
        isles::yield_now().await;
    }
}

#[test]
fn a_call_whose_target_dies_does_not_let_its_finish_end_before_what_its_body_started() {
    let mut blamed = 0;
    for seed in seeds(SEEDS) {
        for step in (0..60).step_by(3) {
            LIVING.set(0);
            OVER.set(false);
            ESCAPED.set(false);
            let mut plan = Plan::adversarial(seed);
            plan.losses = vec![PlannedDeath { place: isles_transport::PlaceId(2), step: step + seed % 3 }];
            let (result, _, _) = isles::simulate(4, plan, escape);
            assert!(!ESCAPED.get(), "ISLES_SEED={seed}, loss at step {step}: a task outlived its finish");
            if let Err(error) = result {
                assert_eq!(*error.kind(), ErrorKind::DeadPlace(isles_transport::PlaceId(2)), "{error}");
                blamed += 1;
            }
        }
    }
    assert!(blamed > 0, "no loss came while the call was under way");
}
