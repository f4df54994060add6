//! One instance at each place: shared and exclusive use, and the result of a reduction of numbers.

use isles::prelude::*;
use isles::{ErrorKind, Plan, Result};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[isles::test(places = 3)]
async fn tasks_wait_on_the_monitors_of_a_place_local() -> Result<()> {
    let boxes = PlaceLocal::new(Monitor::<Vec<usize>>::default).await?;
    let sum = PlaceLocal::new(|| Cell::new(0)).await?;
    finish(async {
        for place in places() {
            // Two readers at a time, each across an `await`.
            for _ in 0..2 {
                spawn_at!(place, {
                    let item: usize =
                        boxes.read().when(|items| !items.is_empty(), |items| items.remove(0)).await;
                    sum.read().set(sum.read().get() + item);
                });
            }
            for item in [1, 2] {
                spawn_at!(place.next(), [boxes, item] boxes.read().atomic(|items| items.push(item)));
            }
        }
    })
    .await?;
    assert_eq!(sum.read().get(), 3);
    Ok(())
}

/// Returns the text of the panic of `f`.
fn panic_text(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    payload
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or(payload.downcast_ref::<String>().cloned())
        .unwrap()
}

#[isles::test(places = 2)]
async fn an_instance_that_is_in_use_says_how() -> Result<()> {
    let number = PlaceLocal::new(|| 1.0).await?;
    let shared = (number.read(), number.read());
    let text = panic_text(|| drop(number.lock()));
    let line = format!("the instance is being read since {}:{}:", file!(), line!() - 2);
    assert!(text.starts_with(&line), "{text}");
    assert_eq!(number.reduce(|a, b| a + b).await?, 2.0);
    drop(shared);
    let _guard = number.lock();
    let line = format!("the instance is locked since {}:{}:", file!(), line!() - 1);
    assert!(panic_text(|| drop(number.read())).starts_with(&line));
    let text = panic_text(|| drop(number.lock()));
    assert!(text.starts_with(&line) && text.contains("`read()`"), "{text}");
    assert_eq!(number.reduce(|a, b| a + b).await.unwrap_err().kind(), &ErrorKind::Misused);
    Ok(())
}

/// Numbers whose sum depends on the order: large ones that cancel each other, and small ones.
fn number(place: usize) -> f64 {
    (1.0 + place as f64 / 3.0) * 10_f64.powi([16, -3, 16, 0, 7][place % 5]) * [1.0, 1.0, -1.0][place % 3]
}

/// Computes the tree of `PlaceLocal::reduce`: the first number, then each half of the rest.
fn tree_sum(numbers: &[f64]) -> f64 {
    let (first, rest) = numbers.split_first().expect("there is one");
    let (low, high) = rest.split_at(rest.len() / 2);
    [low, high].into_iter().filter(|half| !half.is_empty()).fold(*first, |sum, half| sum + tree_sum(half))
}

async fn sums() -> Result<()> {
    let numbers = PlaceLocal::new(|| number(here().index())).await?;
    let all: Vec<f64> = (0..places().len()).map(number).collect();
    for asker in places() {
        let sum = at!(asker, numbers.reduce(|a, b| a + b).await?).await?;
        assert_eq!(sum.to_bits(), tree_sum(&all).to_bits(), "asked at {asker}");
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn a_sum_of_floats_has_the_bits_of_one_tree_of_3_places() -> Result<()> {
    sums().await
}

#[isles::test(places = 7)]
async fn a_sum_of_floats_has_the_bits_of_one_tree_of_7_places() -> Result<()> {
    sums().await
}

/// Panics at the place with the number `culprit`.
fn fail_at(culprit: usize) -> u8 {
    assert!(here().index() != culprit, "no flour at {culprit}");
    1
}

/// Checks that the error is the panic at the place `culprit`, with the line of the caller in this file.
fn assert_panic<T>(result: Result<T>, culprit: usize, line: u32) {
    let error = result.err().expect("a panic is an error");
    assert_eq!((error.kind(), error.place().map(|at| at.0 as usize)), (&ErrorKind::Panicked, Some(culprit)));
    assert!(error.to_string().contains(&format!("no flour at {culprit}")), "{error}");
    assert_eq!(error.site().map(without_column), Some(format!("{}:{line}", file!())), "{error}");
}

/// Returns the `file:line` of `file:line:column`.
fn without_column(site: &str) -> String {
    site.rsplit_once(':').expect("it has a column").0.to_owned()
}

#[isles::test(places = 4)]
async fn a_panic_of_what_the_program_hands_over_is_an_error_at_the_own_place_too() -> Result<()> {
    assert_panic(PlaceLocal::new(|| fail_at(0)).await, 0, line!());
    assert_panic(PlaceLocal::new(|| fail_at(3)).await, 3, line!());
    let bowls = PlaceLocal::new(|| 0_usize).await?;
    for culprit in [0, 1, 2, 3] {
        assert_panic(PlaceLocal::with(culprit, fail_at).await, culprit, line!());
    }
    // Of 4 places the first and the third merge.
    for culprit in [0, 2] {
        for place in places() {
            at!(place, *bowls.lock() = culprit).await?;
        }
        let merge = |culprit, _| {
            fail_at(culprit);
            culprit
        };
        assert_panic(bowls.reduce(merge).await, culprit, line!());
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn a_reduction_over_a_locked_instance_names_its_place_and_the_line_of_the_reduction() -> Result<()> {
    let number = PlaceLocal::new(|| 1).await?;
    for locker in places() {
        let lock = async {
            let _guard = number.lock();
            let error = number.reduce(|a, b| a + b).await.unwrap_err();
            Ok::<_, isles::Error>((line!() - 1, error))
        };
        // If `locker` is this place, the caller itself holds the guard; otherwise a task does.
        let (line, error) = if locker == here() {
            lock.await?
        } else {
            let (locked, release) = (Counter::new(), Counter::new());
            let asked = finish(async {
                spawn_at!(locker, {
                    let _guard = number.lock();
                    locked.add(1).await?;
                    while release.get().await? == 0 {
                        yield_now().await;
                    }
                });
                while locked.get().await? == 0 {
                    yield_now().await;
                }
                let error = number.reduce(|a, b| a + b).await.unwrap_err();
                release.add(1).await?;
                Ok::<_, isles::Error>((line!() - 2, error))
            });
            asked.await?
        };
        assert_eq!((error.kind(), error.place()), (&ErrorKind::Misused, Some(locker.id())), "{error}");
        assert!(error.to_string().contains("the instance is locked"), "{error}");
        assert_eq!(error.site().map(without_column), Some(format!("{}:{line}", file!())), "{error}");
    }
    Ok(())
}

/// Ends the process of its place when it arrives there.
#[derive(Default, serde::Serialize)]
struct Poison(u8);

impl<'de> serde::Deserialize<'de> for Poison {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if here().index() == 1 {
            std::process::abort();
        }
        u8::deserialize(deserializer).map(Poison)
    }
}

/// Checks that the death of the place is reported with a line of this file, not of the runtime.
fn assert_death_names(result: Result<()>, line: u32) {
    let error = result.expect_err("a place has died");
    let text = error.to_string();
    assert!(matches!(error.kind(), ErrorKind::DeadPlace(place) if place.0 == 1), "{error}");
    assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
    assert_eq!(text.matches(".rs:").count(), 1, "{text}");
}

#[isles::test(places = 3, machines = [processes])]
async fn the_death_of_a_place_in_an_operation_names_the_line_of_the_program() -> Result<()> {
    let number = PlaceLocal::new(|| 1).await?;
    let counter = at!(here().next(), Counter::new()).await?;
    assert_death_names(Replicated::new(Poison::default()).await.map(drop), line!());
    assert_death_names(Replicated::new(1).await.map(drop), line!());
    assert_death_names(PlaceLocal::new(|| 1).await.map(drop), line!());
    assert_death_names(PlaceLocal::with(1, |seed| seed).await.map(drop), line!());
    assert_death_names(number.reduce(|a, b| a + b).await.map(drop), line!());
    assert_death_names(counter.add(1).await.map(drop), line!());
    assert_death_names(counter.get().await.map(drop), line!());
    assert_death_names(counter.set(1).await.map(drop), line!());
    assert_death_names(counter.take_below(1_u8).await.map(drop), line!());
    Ok(())
}
/// Returns the number of control messages of `CALLS` successive calls, in a simulated world.
fn control_messages(takes_a_handle: bool) -> u64 {
    let program = move || async move {
        let sum = PlaceLocal::new(|| 0_u64).await?;
        let (place, number) = (here().next(), 1);
        for _ in 0..CALLS {
            if takes_a_handle {
                at!(place, *sum.lock() += 1).await?;
            } else {
                at!(place, assert_eq!(number, 1)).await?;
            }
        }
        Ok::<_, isles::Error>(())
    };
    let (result, report, _) = isles::simulate(2, Plan::calm(1), program);
    result.unwrap();
    report.count(isles::counters::CounterId::ControlMessages)
}

const CALLS: u64 = 1000;

#[test]
fn calls_one_after_the_other_that_take_a_handle_along_cost_few_messages_more() {
    let (number, handle) = (control_messages(false), control_messages(true));
    assert!(handle - number < CALLS / 10, "{CALLS} calls: {number} control messages, with a handle {handle}");
}

#[test]
fn a_handle_that_other_places_than_its_home_have_sent_often_is_freed_too() {
    for seed in 0..5 {
        let program = || async {
            let value = Global::new(1);
            let next = here().next();
            at!(next, {
                let next = here().next();
                finish(async { (0..100).for_each(|_| spawn_at!(next, drop(value.clone()))) }).await?;
            })
            .await?;
            drop(value);
            // In simulated time: pending messages are delivered.
            isles::sleep(Duration::from_millis(10)).await;
            Ok::<_, isles::Error>(())
        };
        let (result, report, _) = isles::simulate(3, Plan::adversarial(seed), program);
        result.unwrap();
        let parts: u64 = report.places.iter().flatten().map(|place| place.parts).sum();
        assert_eq!(parts, 0, "ISLES_SEED={seed}");
    }
}

#[isles::test(places = 5)]
async fn a_part_of_a_team_is_at_its_members_only() -> Result<()> {
    let places: Vec<Place> = places().collect();
    let team = Team::from_places(&[places[3], places[0], places[4]])?;
    let names = PlaceLocal::with_on(&team, 10, |seed| vec![seed + here().index()]).await?;
    let copies = Replicated::new_on(&team, 7).await?;
    for place in team.places() {
        let there = at!(place, (names.lock()[0], *copies)).await?;
        assert_eq!(there, (10 + place.index(), 7));
    }
    // In the order of the ranks, at any member.
    let joined = |names: PlaceLocal<Vec<usize>>| async move {
        names.reduce(|left, right| [left, right].concat()).await
    };
    assert_eq!(joined(names.clone()).await?, [13, 10, 14]);
    assert_eq!(
        at!(places[4], names.reduce(|left, right| [left, right].concat()).await?).await?,
        [13, 10, 14]
    );
    let error = at!(places[1], names.lock().len()).await.unwrap_err();
    assert!(error.to_string().contains("the handle's part is not at this place"), "{error}");
    Ok(())
}

#[isles::test(places = 3)]
async fn a_part_of_a_team_is_made_by_a_member_and_freed_at_each() -> Result<()> {
    let places: Vec<Place> = places().collect();
    let team = Team::from_places(&[places[2], places[0]])?;
    let text = at!(places[1], PlaceLocal::new_on(&team, || 0).await.err().unwrap().to_string()).await?;
    assert!(text.contains("place 1 cannot make a part of a team of which it is not a member"), "{text}");
    let alive = PlaceLocal::new(|| Monitor::new(0_usize)).await?;
    let part = PlaceLocal::with_on(&team, alive.clone(), Tracked::new).await?;
    for place in isles::places() {
        assert_eq!(
            at!(place, alive.read().atomic(|count| *count)).await?,
            team.rank_of(place).iter().count()
        );
    }
    drop(part);
    for place in team.places() {
        at!(place, alive.read().when(|count| *count == 0, |_| ()).await).await?;
    }
    Ok(())
}

/// Counts the instances of a place.
struct Tracked(PlaceLocal<Monitor<usize>>);

impl Tracked {
    fn new(alive: PlaceLocal<Monitor<usize>>) -> Tracked {
        alive.read().atomic(|count| *count += 1);
        Tracked(alive)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.read().atomic(|count| *count -= 1);
    }
}
