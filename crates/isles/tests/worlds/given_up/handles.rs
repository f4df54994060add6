//! Cancelled operations of calls, finishes, counters and values of places.

use super::fragile::Fragile;
use super::{attempt, explained, interrupt, run_worlds};
use isles::glb::{self, Bag, Parameters};
use isles::prelude::*;
use isles::{Random, Result, timeout};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

thread_local! {
    /// Bounds of the sum added to the counter.
    static ADDED: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
    /// Numbers that tasks took.
    static TAKEN: RefCell<BTreeSet<u64>> = RefCell::default();
}

/// A bag of numbers to count down.
#[derive(Clone, Serialize, Deserialize)]
struct Countdown {
    open: Vec<u32>,
    done: u64,
}

impl Bag for Countdown {
    type Result = u64;

    fn process(&mut self, count: usize) -> usize {
        for processed in 0..count {
            let Some(next) = self.open.pop() else { return processed };
            self.open.extend(std::iter::repeat_n(next.saturating_sub(1), if next > 0 { 2 } else { 0 }));
            self.done += 1;
        }
        count
    }

    fn split(&mut self) -> Option<Countdown> {
        let given = self.open.len() / 2;
        (given > 0).then(|| Countdown { open: self.open.drain(..given).collect(), done: 0 })
    }

    fn merge(&mut self, other: Countdown) {
        self.open.extend(other.open);
        self.done += other.done;
    }

    fn result(self) -> u64 {
        self.done
    }
}

async fn linger() {
    for _ in 0..5 {
        yield_now().await;
    }
}

/// Records an `add` that succeeded, or may have.
fn note_added(is_sure: bool) {
    let [least, most] = ADDED.get();
    ADDED.set([least + u64::from(is_sure), most + 1]);
}

/// Records taken numbers; checks that no other task has taken them.
fn note_taken(numbers: impl IntoIterator<Item = u64>) {
    let is_new = |number| TAKEN.with_borrow_mut(|taken| taken.insert(number));
    assert!(numbers.into_iter().all(is_new), "a number was taken twice");
}

/// Random operations of one task on counters of another place.
async fn counters(seed: u64, added: &Counter, taken: &Counter, set: &Counter) -> Result<()> {
    let mut random = Random::stream(seed, 10 + here().index() as u64);
    for _ in 0..4 {
        match random.below(5) {
            0 => {
                let done = interrupt("runtime/handle/counter add", &mut random, added.add(1)).await;
                note_added(done.transpose()?.is_some());
            }
            1 => {
                let number = taken.take_below(1_000_u64);
                let number = interrupt("runtime/handle/counter take_below", &mut random, number).await;
                note_taken(number.transpose()?.flatten());
            }
            2 => {
                let numbers = taken.ask_below(1_000_u64, 3);
                let numbers = interrupt("runtime/handle/counter ask_below", &mut random, numbers).await;
                note_taken(numbers.transpose()?.into_iter().flatten());
            }
            3 => {
                attempt("runtime/handle/counter set", &mut random, set.set(7)).await?;
            }
            _ => {
                let got =
                    interrupt("runtime/handle/counter get", &mut random, set.get()).await.transpose()?;
                assert!(got.is_none_or(|count| [0, 7].contains(&count)));
            }
        }
    }
    Ok(())
}

/// Random calls and waits of one task.
async fn calls(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 30 + here().index() as u64);
    let monitor = Monitor::new(0_u64);
    for _ in 0..6 {
        let place = Place::new(random.below(place_count() as u64) as usize).expect("it is there");
        match random.below(6) {
            0 => {
                let called = async {
                    at!(place, {
                        linger().await;
                        here()
                    })
                    .await
                };
                let called = interrupt("runtime/call/mod at_there", &mut random, called).await.transpose()?;
                assert!(called.is_none_or(|there| there == place));
            }
            1 => {
                let waited = finish(async {
                    spawn(linger());
                    spawn_at!(place, linger().await);
                    spawn_anywhere!(linger().await);
                });
                let waited = interrupt("runtime/finish/future finish", &mut random, waited).await;
                waited.map(explained).transpose()?;
            }
            2 => {
                let all = everywhere!(here().index());
                if let Some(all) = interrupt("runtime/join everywhere", &mut random, all).await {
                    assert!(all?.into_iter().eq(0..place_count()));
                }
            }
            3 => {
                let limit = Duration::from_micros(random.below(60));
                let changed = monitor.when(|state| *state > 0, |state| *state -= 1);
                let taken = interrupt("runtime/monitor when", &mut random, timeout(limit, changed)).await;
                assert!(taken.is_none_or(|taken| taken.is_err()), "the condition never holds");
            }
            4 => {
                interrupt("runtime/task/coop yield_now", &mut random, yield_now()).await;
                let region = isles::measured("region", linger());
                interrupt("runtime/run/region measured", &mut random, region).await;
            }
            _ => {
                let limit = Duration::from_micros(random.below(60));
                let waited = timeout(limit, std::future::pending::<()>());
                let passed = interrupt("runtime/time timeout", &mut random, waited).await;
                assert!(passed.is_none_or(|passed| passed.is_err()));
                interrupt("runtime/time sleep", &mut random, isles::sleep(limit)).await;
            }
        }
    }
    Ok(())
}

/// Values of all places that are made, or folded, by one of them.
async fn values(seed: u64, values: &PlaceLocal<u64>) -> Result<()> {
    let mut random = Random::stream(seed, 50 + here().index() as u64);
    let team = Team::world();
    for _ in 0..3 {
        match random.below(5) {
            0 => {
                let made = PlaceLocal::new(|| Fragile(9));
                attempt("runtime/handle/place_local new", &mut random, made).await?;
            }
            1 => {
                let made = PlaceLocal::new_on(&team, || 5_u64);
                attempt("runtime/handle/place_local new_on", &mut random, made).await?;
                let made = Replicated::new(Fragile(9));
                attempt("runtime/handle/place_local new", &mut random, made).await?;
                let made = Replicated::new_on(&team, 5_u64);
                attempt("runtime/handle/place_local new_on", &mut random, made).await?;
            }
            2 => {
                let made = PlaceLocal::with(9_u64, Fragile);
                attempt("runtime/handle/place_local with", &mut random, made).await?;
            }
            3 => {
                let made = PlaceLocal::with_on(&team, 6_u64, |seed| seed);
                attempt("runtime/handle/place_local with_on", &mut random, made).await?;
            }
            _ => {
                let reduced = values.reduce(|one, other| one + other);
                let sum = interrupt("runtime/handle/place_local reduce", &mut random, reduced).await;
                assert!(sum.transpose()?.is_none_or(|sum| sum == 5 * place_count() as u64));
            }
        }
    }
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    ADDED.set([0; 2]);
    TAKEN.take();
    let mut random = Random::stream(seed, 0);
    let (added, taken, set) = (Counter::new(), Counter::new(), Counter::new());
    everywhere!(counters(seed, &added, &taken, &set).await?).await?;
    everywhere!(calls(seed).await?).await?;
    let fives = PlaceLocal::new(|| 5_u64).await?;
    everywhere!(values(seed, &fives).await?).await?;
    let (sum, [least, most]) = (added.get().await?, ADDED.get());
    assert!((least..=most).contains(&sum), "{sum} of {least} to {most}");
    let bag = Countdown { open: vec![5], done: 0 };
    let done = interrupt("isles/glb/mod run", &mut random, glb::run(bag.clone())).await;
    let more = glb::run_with(Parameters { batch: Some(4), ..Parameters::default() }, bag);
    let more = interrupt("isles/glb/mod run_with", &mut random, more).await;
    for balanced in [done, more].into_iter().flatten() {
        assert_eq!(balanced?.result, (1 << 6) - 1);
    }
    Ok(())
}

#[test]
fn what_is_given_up_is_done_once_or_not() {
    run_worlds("handles", program);
}
