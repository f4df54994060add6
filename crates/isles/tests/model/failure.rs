//! Faults and their effects: errors, panics, deadlines, cancellation, lost places, full queues.
//!
//! Each test runs on threads, processes and the seeded loopback, unless its attribute names the machines. Live values
//! are counted per thread, which is per place (on the loopback, for all places).

use isles::prelude::*;
use isles::{Error, ErrorKind, Priority, Result};
use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

thread_local! {
    /// Values of [`Alive`] at the places of this thread.
    static ALIVE: Cell<i64> = const { Cell::new(0) };
}

/// A value that is counted while it lives.
#[derive(Debug)]
struct Alive;

impl Alive {
    fn new() -> Alive {
        ALIVE.set(ALIVE.get() + 1);
        Alive
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

fn alive() -> i64 {
    ALIVE.get()
}

/// Waits until no counted value lives at any place; messages may still end some.
async fn until_nothing_lives() -> Result<()> {
    const ROUNDS_MAX: usize = 10_000;
    for _ in 0..ROUNDS_MAX {
        let mut living = 0;
        for place in places() {
            living += at!(place, alive()).await?;
        }
        if living == 0 {
            return Ok(());
        }
    }
    Err(Error::message(format!("after {ROUNDS_MAX} rounds of messages there is still something at a place")))
}

/// Waits for ever, holding a counted value.
async fn wait_holding() {
    let _alive = Alive::new();
    pending::<()>().await
}

/// Waits until a task of `wait_holding` runs at `place`.
async fn until_it_holds(place: Place) -> Result<()> {
    while at!(place, alive()).await? == 0 {
        isles::yield_now().await;
    }
    Ok(())
}

/// Waits until a task of `wait_holding` runs at every place.
async fn until_all_hold() -> Result<()> {
    for place in places() {
        until_it_holds(place).await?;
    }
    Ok(())
}

fn second() -> Place {
    here().next()
}

/// Spawns itself at the next place with `left - 1`; ends if `left` is 0.
fn hop(left: u32) {
    if left > 0 {
        spawn_at!(here().next(), hop(left - 1));
    }
}

/// Far more hops than requests that are sent at once: the rest are sent when the home is idle, or busy for long.
#[isles::test(places = 3)]
async fn a_finish_over_a_task_that_hops_on_for_long_ends() -> Result<()> {
    finish(async {
        spawn_at!(here().next(), hop(60));
    })
    .await?;
    let over = Rc::new(Cell::new(false));
    let seen = Rc::clone(&over);
    spawn_detached(async move {
        while !seen.get() {
            isles::yield_now().await;
        }
    });
    let ended = finish(async {
        spawn_at!(here().next(), hop(60));
    })
    .await;
    over.set(true);
    ended
}

#[isles::test]
async fn the_error_of_one_task_comes_out_of_the_finish_as_itself() -> Result<()> {
    for place in places() {
        let error = finish(async {
            spawn_at!(place, Err::<(), _>(Error::message("no bread")));
            spawn(async {});
        })
        .await
        .unwrap_err();
        assert_eq!((error.kind(), error.place()), (&ErrorKind::Failed, Some(place.id())));
        assert!(error.site().is_some_and(|site| site.contains("failure.rs:")), "{error}");
        assert!(error.to_string().starts_with(&format!("at {place}: no bread (started at ")), "{error}");
        assert!(error.causes().is_empty());
    }
    Ok(())
}

#[isles::test]
async fn the_errors_of_several_tasks_come_out_as_a_list_with_the_place_of_each() -> Result<()> {
    let error = finish(async {
        for place in places() {
            spawn_at!(place, Err::<(), _>(Error::message(format!("no bread at {}", here().index()))));
        }
    })
    .await
    .unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Several);
    // In the order of the places, not of arrival.
    let causes = error.causes();
    assert_eq!(causes.len(), isles::place_count());
    for (place, cause) in places().zip(&causes) {
        assert_eq!((cause.kind(), cause.place()), (&ErrorKind::Failed, Some(place.id())));
        assert!(cause.to_string().contains(&format!("no bread at {}", place.index())), "{cause}");
        assert!(error.to_string().contains(&cause.to_string()), "{error}");
    }
    Ok(())
}

#[isles::test]
async fn a_long_error_in_any_script_comes_out_of_a_finish_with_its_place_and_site() -> Result<()> {
    for place in places() {
        let error = finish(async {
            spawn_at!(place, Err::<(), _>(Error::message("żółw ".repeat(100))));
        })
        .await
        .unwrap_err();
        assert_eq!((error.kind(), error.place()), (&ErrorKind::Failed, Some(place.id())));
        assert!(error.site().is_some_and(|site| site.contains("failure.rs:")), "{error}");
        assert!(error.to_string().contains(&"żółw ".repeat(100)), "{error}");
    }
    Ok(())
}

#[isles::test]
async fn a_finish_of_hundreds_of_errors_names_some_and_counts_all() -> Result<()> {
    let error = finish(async {
        for place in places() {
            for number in 0..60 {
                spawn_at!(place, Err::<(), _>(Error::message(format!("failure {number}"))));
            }
        }
    })
    .await
    .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("{} errors\n", 60 * isles::place_count())), "{text}");
    assert!((2..=240).contains(&error.causes().len()), "{text}");
    Ok(())
}

#[isles::test]
async fn the_other_tasks_of_a_finish_run_to_their_ends() -> Result<()> {
    let ended = Counter::new();
    let result = finish(async {
        for place in places() {
            spawn_at!(place, Err::<(), _>(Error::message("early")));
            spawn_at!(place, {
                isles::yield_now().await;
                ended.add(1).await?;
            });
        }
    })
    .await;
    assert!(result.is_err());
    assert_eq!(ended.get().await?, isles::place_count() as u64);
    Ok(())
}

#[isles::test]
async fn a_panic_is_an_error_wherever_it_happens() -> Result<()> {
    let panicked = |error: Error, place: Place| {
        assert_eq!((error.kind(), error.place()), (&ErrorKind::Panicked, Some(place.id())), "{error}");
        let text = error.to_string();
        let line = text.split_once("panicked at ").and_then(|(_, rest)| rest.split_once(": the roof is off"));
        assert!(line.is_some_and(|(line, _)| line.contains("failure.rs:")), "the line of the panic: {text}");
    };
    for place in places() {
        let called = at!(place, panic!("the roof is off {}", here())).await.unwrap_err();
        let spawned = finish(async { spawn_at!(place, panic!("the roof is off")) }).await.unwrap_err();
        for error in [called, spawned] {
            assert!(error.site().is_some_and(|site| site.contains("failure.rs:")), "{error}");
            panicked(error, place);
        }
    }
    let spawned = finish(async { spawn(async { panic!("the roof is off") }) }).await.unwrap_err();
    assert_eq!(spawned.site(), None, "{spawned}");
    panicked(spawned, here());
    let body = finish(async { assert!(places().len() == 0, "the roof is off") }).await;
    panicked(body.unwrap_err(), here());
    Ok(())
}

#[isles::test]
async fn a_question_mark_in_a_body_is_the_error_of_the_task() -> Result<()> {
    for place in places() {
        let word = "twelve".to_owned();
        let error = at!(place, word.parse::<u32>()? + 1).await.unwrap_err();
        assert_eq!((error.kind(), error.place()), (&ErrorKind::Failed, Some(place.id())));
        assert!(error.to_string().contains("invalid digit"), "{error}");
        let error = finish(async { spawn_at!(place, assert!(word.parse::<u32>()? > 0)) }).await.unwrap_err();
        assert!(error.to_string().contains("invalid digit"), "{error}");
        let number = "12".to_owned();
        assert_eq!(at!(place, number.parse::<u32>()? + 1).await?, 13);
    }
    Ok(())
}

#[isles::test]
async fn an_error_of_at_names_the_place_where_it_happened() -> Result<()> {
    for place in places() {
        let last = places().next_back().unwrap();
        let error = at!(place, at!(last, Err::<(), _>(Error::message("too far"))?).await?).await.unwrap_err();
        assert_eq!(error.place(), Some(last.id()), "{error}");
        assert!(error.to_string().contains("too far"), "{error}");
    }
    Ok(())
}

#[isles::test]
async fn an_inner_finish_keeps_its_errors_unless_they_are_passed_on() -> Result<()> {
    let there = second();
    let kept = finish(async {
        let inner = finish(async { spawn_at!(there, Err::<(), _>(Error::message("inner"))) }).await;
        assert!(inner.unwrap_err().to_string().contains("inner"));
        Ok::<_, Error>(7)
    });
    assert_eq!(kept.await?, 7);
    let passed = finish(async {
        spawn_at!(there, {
            finish(async { spawn_at!(here().prev(), Err::<(), _>(Error::message("inner"))) }).await?;
        });
    });
    let error = passed.await.unwrap_err();
    assert!(error.to_string().contains("inner"), "{error}");
    let beside = finish(async {
        spawn_at!(there, Err::<(), _>(Error::message("of a task")));
        Err::<(), _>(Error::message("of the body"))
    });
    let causes = beside.await.unwrap_err().causes();
    let texts: Vec<String> = causes.iter().map(Error::to_string).collect();
    assert!(
        texts.len() == 2 && texts[0].contains("of the body") && texts[1].contains("of a task"),
        "{texts:?}"
    );
    Ok(())
}

#[isles::test]
async fn a_finish_nests_a_hundred_deep_over_places() -> Result<()> {
    async fn descend(depth: u32, leaves: Counter) -> Result<()> {
        if depth == 0 {
            leaves.add(1).await?;
            return Ok(());
        }
        finish(async {
            spawn_at!(here().next(), Box::pin(descend(depth - 1, leaves.clone())).await?);
        })
        .await
    }
    let leaves = Counter::new();
    descend(100, leaves.clone()).await?;
    assert_eq!(leaves.get().await?, 1);
    Ok(())
}

#[isles::test]
async fn errors_of_detached_tasks_end_nothing_but_themselves() -> Result<()> {
    let started = Counter::new();
    let result = finish(async {
        for place in places() {
            let started = started.clone();
            spawn_at!(place, {
                let panics = started.clone();
                spawn_detached(async move {
                    panics.add(1).await?;
                    panic!("on purpose, by a detached task");
                    #[allow(unreachable_code)]
                    Ok::<_, Error>(())
                });
                let fails = started.clone();
                spawn_detached(async move {
                    fails.add(1).await?;
                    Err::<(), _>(Error::message("on purpose, by a detached task"))
                });
            });
        }
    });
    result.await?;
    while started.get().await? < 2 * isles::place_count() as u64 {
        isles::yield_now().await;
    }
    for place in places() {
        assert_eq!(at!(place, here().index()).await?, place.index());
    }
    Ok(())
}

#[isles::test]
async fn a_deadline_drops_the_tasks_that_wait_for_ever_at_all_places() -> Result<()> {
    let body_ended = Cell::new(false);
    let late = finish(async {
        for place in places() {
            spawn_at!(place, wait_holding().await);
        }
        body_ended.set(true);
    })
    .deadline(Duration::from_millis(20));
    let error = late.await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DeadlinePassed, "{error}");
    assert!(body_ended.get());
    until_nothing_lives().await
}

#[isles::test]
async fn a_deadline_that_is_kept_changes_nothing() -> Result<()> {
    let there = second();
    let kept = finish(async {
        spawn_at!(there, ());
        Ok::<_, Error>(7)
    });
    assert_eq!(kept.deadline(Duration::from_secs(3600)).await?, 7);
    Ok(())
}

#[isles::test]
async fn the_deadline_of_an_inner_finish_leaves_the_outer_one_alone() -> Result<()> {
    let there = second();
    let counted = Counter::new();
    finish(async {
        let inner =
            finish(async { spawn_at!(there, pending::<()>().await) }).deadline(Duration::from_millis(5));
        assert_eq!(inner.await.unwrap_err().kind(), &ErrorKind::DeadlinePassed);
        spawn_at!(there, assert_eq!(counted.add(1).await?, 0));
        Ok::<_, Error>(())
    })
    .await?;
    assert_eq!(counted.get().await?, 1);
    Ok(())
}

#[isles::test]
async fn the_deadline_of_an_outer_finish_ends_the_inner_ones_too() -> Result<()> {
    let outer = finish(async {
        for place in places() {
            spawn_at!(place, {
                finish(async {
                    for other in places() {
                        spawn_at!(other, wait_holding().await);
                    }
                })
                .await?;
            });
        }
    })
    .deadline(Duration::from_millis(50));
    let error = outer.await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DeadlinePassed, "{error}");
    until_nothing_lives().await
}

#[isles::test]
async fn a_deadline_ends_calls_that_are_never_answered_with_their_bodies() -> Result<()> {
    let (there, beyond) = (second(), second().next());
    let direct = finish(async { at!(there, wait_holding().await).await }).deadline(Duration::from_millis(20));
    assert_eq!(direct.await.unwrap_err().kind(), &ErrorKind::DeadlinePassed);
    let nested = finish(async {
        spawn_at!(there, at!(beyond, at!(here().next(), wait_holding().await).await?).await?);
    });
    let error = nested.deadline(Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DeadlinePassed, "{error}");
    until_nothing_lives().await
}

/// Runs `other` while `wait` waits; `wait` may have yielded at its first poll, before it began.
async fn while_waiting<T>(mut wait: Pin<&mut impl Future>, other: impl Future<Output = T>) -> T {
    let mut other = pin!(other);
    poll_fn(|context| {
        assert!(wait.as_mut().poll(context).is_pending(), "what waits for ever has ended");
        other.as_mut().poll(context)
    })
    .await
}

#[isles::test]
async fn the_body_of_a_call_that_nobody_waits_for_any_more_is_dropped() -> Result<()> {
    let there = second();
    finish(async {
        for _ in 0..10 {
            let mut call = Box::pin(at!(there, wait_holding().await));
            while_waiting(call.as_mut(), until_it_holds(there)).await?;
            drop(call);
            until_nothing_lives().await?;
            // The call may also be dropped before its body has begun.
            let mut call = Box::pin(at!(there, wait_holding().await));
            while_waiting(call.as_mut(), isles::yield_now()).await;
        }
        Ok::<_, Error>(())
    })
    .await?;
    until_nothing_lives().await
}

#[isles::test]
async fn a_task_anywhere_may_cancel_its_finish_at_all_places() -> Result<()> {
    for place in places() {
        let race = finish(async {
            for other in places() {
                spawn_at!(other, wait_holding().await);
            }
            until_all_hold().await?;
            spawn_at!(place, isles::cancel("the answer is known"));
            Ok::<_, Error>(())
        });
        let error = race.await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Cancelled, "{error}");
        assert!(error.to_string().contains("the answer is known"), "{error}");
        until_nothing_lives().await?;
    }
    Ok(())
}

#[isles::test]
async fn a_canceller_works_from_outside_and_only_while_the_finish_is_under_way() -> Result<()> {
    let waiting = finish(async {
        for place in places() {
            spawn_at!(place, wait_holding().await);
        }
        pending::<()>().await
    });
    let canceller = waiting.canceller();
    canceller.cancel("too early, nothing is under way");
    finish(async {
        let late = canceller.clone();
        spawn(async move {
            until_all_hold().await?;
            late.cancel("enough");
            Ok::<_, Error>(())
        });
        let error = waiting.await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Cancelled, "{error}");
        Ok::<_, Error>(())
    })
    .await?;
    canceller.cancel("too late");
    until_nothing_lives().await
}

#[isles::test]
async fn a_finish_that_nobody_waits_for_any_more_drops_its_tasks() -> Result<()> {
    finish(async {
        let mut dropped = Box::pin(finish(async {
            for place in places() {
                spawn_at!(place, wait_holding().await);
            }
        }));
        while_waiting(dropped.as_mut(), until_all_hold()).await?;
        drop(dropped);
        Ok::<_, Error>(())
    })
    .await?;
    until_nothing_lives().await
}

#[isles::test]
async fn a_handle_frees_its_parts_when_the_last_is_gone_wherever_that_is() -> Result<()> {
    for last in places() {
        let local = PlaceLocal::new(Alive::new).await?;
        for place in places() {
            assert!(at!(place, alive()).await? >= 1, "there is no part at {place}");
            at!(place, drop(local.clone())).await?;
        }
        let still = finish(async {
            spawn_at!(last, {
                for _ in 0..10 {
                    isles::yield_now().await;
                }
                assert!(alive() >= 1, "the part went before its last handle");
                drop(local.lock());
            });
            drop(local);
        });
        still.await?;
        until_nothing_lives().await?;
    }
    Ok(())
}

#[isles::test]
async fn a_global_value_lives_until_its_last_reference_anywhere_is_gone() -> Result<()> {
    let value = Global::new(Alive::new());
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let next = here().next();
                spawn_at!(next, {
                    at!(value.home(), assert_eq!(format!("{:?}", *value.open()?), "Alive")).await?;
                });
            });
        }
        drop(value);
    })
    .await?;
    until_nothing_lives().await
}

#[isles::test]
async fn handles_of_a_cancelled_finish_are_freed_too() -> Result<()> {
    let error = finish(async {
        let local = PlaceLocal::new(Alive::new).await?;
        let value = Global::new(Alive::new());
        for place in places() {
            spawn_at!(place, {
                let _held = (local.clone(), value.clone());
                pending::<()>().await
            });
        }
        isles::cancel("on purpose");
        Ok::<_, Error>(())
    });
    assert_eq!(error.await.unwrap_err().kind(), &ErrorKind::Cancelled);
    until_nothing_lives().await
}

#[isles::test]
async fn a_global_value_is_opened_at_home_only() -> Result<()> {
    let home = here();
    let value = Global::new(RefCell::new(vec![1]));
    for place in places().filter(|place| *place != home) {
        let error = at!(place, drop(value.open()?)).await.unwrap_err();
        let text = format!("a reference to a value of {home} was opened at {place}");
        assert!(error.to_string().contains(&text), "{error}");
        at!(place, at!(value.home(), value.open()?.borrow_mut().push(2)).await?).await?;
    }
    assert_eq!(value.open()?.borrow().len(), isles::place_count());
    Ok(())
}

#[isles::test]
async fn a_monitor_wakes_who_waits_for_a_condition() -> Result<()> {
    const ITEMS: u64 = 100;
    for place in places() {
        at!(place, {
            let shelf = Rc::new(Monitor::new(Vec::new()));
            let taken = Rc::new(Cell::new(0));
            finish(async {
                for _ in 0..3 {
                    let (shelf, taken) = (Rc::clone(&shelf), Rc::clone(&taken));
                    spawn(async move {
                        for _ in 0..ITEMS {
                            let item = shelf
                                .when(|items: &Vec<u64>| !items.is_empty(), |items| items.remove(0))
                                .await;
                            taken.set(taken.get() + item);
                        }
                    });
                }
                for item in 0..3 * ITEMS {
                    shelf.when(|items| items.len() < 2, |items| items.push(item)).await;
                }
            })
            .await?;
            assert_eq!(taken.get(), (0..3 * ITEMS).sum::<u64>());
            assert!(shelf.atomic(|items| items.is_empty()));
        })
        .await?;
    }
    Ok(())
}

#[isles::test]
async fn a_monitor_forgets_who_was_cancelled_while_waiting() -> Result<()> {
    let door = Rc::new(Monitor::new(false));
    let waiting = finish(async {
        for _ in 0..3 {
            let door = Rc::clone(&door);
            spawn(async move { door.when(|open| *open, |_| unreachable!("it was cancelled")).await });
        }
        isles::yield_now().await;
    });
    let error = waiting.deadline(Duration::from_millis(5)).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::DeadlinePassed);
    door.atomic(|open| *open = true);
    door.when(|open| *open, |_| ()).await;
    assert_eq!(Rc::strong_count(&door), 1);
    Ok(())
}

#[isles::test]
async fn a_counter_gives_each_number_once_over_all_places() -> Result<()> {
    const NUMBERS: u64 = 2000;
    let home = second();
    let next = at!(home, Counter::new()).await?;
    assert_eq!(next.home(), home);
    let taken = PlaceLocal::new(Vec::<u64>::new).await?;
    finish(async {
        for place in places() {
            for _ in 0..3 {
                spawn_at!(place, {
                    while let Some(number) = next.take_below(NUMBERS).await? {
                        taken.lock().push(number);
                        isles::yield_now().await;
                    }
                });
            }
        }
    })
    .await?;
    let mut all = taken
        .reduce(|mut first, mut other| {
            first.append(&mut other);
            first
        })
        .await?;
    all.sort_unstable();
    assert_eq!(all, (0..NUMBERS).collect::<Vec<_>>());
    assert_eq!((next.set(5).await?, next.add(2).await?, next.get().await?), (NUMBERS, 5, 7));
    Ok(())
}

/// Every place sends `messages` tasks to every other at the same time; the queues hold a fraction of that.
async fn flood(messages: u64) -> Result<()> {
    let received = PlaceLocal::new(|| 0u64).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for other in places().filter(|other| *other != here()) {
                    for number in 0..messages {
                        spawn_at!(other, *received.lock() += number);
                    }
                }
            });
        }
    })
    .await?;
    let others = isles::place_count() as u64 - 1;
    for place in places() {
        assert_eq!(at!(place, *received.lock()).await?, others * messages * (messages - 1) / 2, "at {place}");
    }
    Ok(())
}

#[isles::test(places = 2, machines = [threads, processes])]
async fn two_places_that_flood_each_other_with_200000_tasks_go_on() -> Result<()> {
    flood(200_000).await
}

#[isles::test(places = 2, machines = [loopback])]
async fn two_places_that_flood_each_other_go_on_in_any_order() -> Result<()> {
    flood(5_000).await
}

#[isles::test(places = 5)]
async fn five_places_that_flood_each_other_go_on() -> Result<()> {
    flood(1_000).await
}

/// A call during a flood in both directions is answered.
#[isles::test(places = 2, machines = [threads, processes])]
async fn calls_are_answered_while_the_queues_are_full() -> Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let other = here().next();
                for round in 0..20u64 {
                    for _ in 0..2_000 {
                        spawn_at!(other, std::hint::black_box(()));
                    }
                    assert_eq!(at!(other, round + 1).await?, round + 1);
                }
            });
        }
    })
    .await
}

/// Carries a row of `numbers` numbers to the next place and back.
async fn carry(numbers: u64) -> Result<()> {
    let (row, there) = ((0..numbers).collect::<Vec<u64>>(), second());
    let slice = &row[..];
    let (sum, length) = at!(there, (slice.iter().sum::<u64>(), slice.len() as u64)).await?;
    assert_eq!((sum, length), (numbers * (numbers - 1) / 2, numbers));
    let back = at!(there, (0..numbers).rev().collect::<Vec<u64>>()).await?;
    assert!(back.iter().rev().eq(&row));
    Ok(())
}

#[isles::test(places = 2, machines = [threads, processes])]
async fn a_row_of_64_megabytes_arrives_whole_and_comes_back() -> Result<()> {
    for _ in 0..3 {
        carry((64 << 20) / size_of::<u64>() as u64).await?;
    }
    Ok(())
}

#[isles::test]
async fn rows_of_all_lengths_arrive_whole() -> Result<()> {
    for bits in 1..17 {
        carry((1 << bits) - 1).await?;
        carry(1 << bits).await?;
    }
    Ok(())
}

/// Calls the next place, from there the next, and so on; the results return the same way.
async fn bounce(depth: u64) -> Result<u64> {
    if depth == 0 {
        return Ok(0);
    }
    at!(here().next(), Box::pin(bounce(depth - 1)).await? + 1).await
}

#[isles::test(places = 2)]
async fn a_thousand_calls_may_be_nested_between_two_places() -> Result<()> {
    assert_eq!(bounce(1000).await?, 1000);
    Ok(())
}

#[isles::test]
async fn a_thousand_calls_may_be_nested_round_all_places() -> Result<()> {
    assert_eq!(bounce(1000).await?, 1000);
    Ok(())
}

/// Not on the loopback, where a message may take as many turns as a million calls.
#[isles::test(machines = [threads, processes])]
async fn a_loop_of_calls_to_the_own_place_lets_its_tasks_and_messages_have_their_turn() -> Result<()> {
    const CALLS_MAX: usize = 1_000_000_000;
    for place in places() {
        let printed = Global::new(Cell::new(false));
        finish(async {
            spawn_at!(place, at!(printed.home(), printed.open()?.set(true)).await?);
            for _ in 0..CALLS_MAX {
                if at!(here(), printed.open()?.get()).await? {
                    return Ok(());
                }
            }
            Err(Error::message(format!("no task had its turn in {CALLS_MAX} calls")))
        })
        .await?;
    }
    Ok(())
}

#[isles::test]
async fn urgent_tasks_of_a_place_run_before_the_others() -> Result<()> {
    for place in places() {
        at!(place, {
            let order = Rc::new(RefCell::new(Vec::new()));
            finish(async {
                for priority in
                    [Priority::Low, Priority::Normal, Priority::High, Priority::Normal, Priority::Low]
                {
                    let order = Rc::clone(&order);
                    isles::spawn_with(priority, async move { order.borrow_mut().push(priority) });
                }
            })
            .await?;
            let expected = [Priority::High, Priority::Normal, Priority::Normal, Priority::Low, Priority::Low];
            assert_eq!(*order.borrow(), expected);
        })
        .await?;
    }
    Ok(())
}

/// Kills the process of the calling place as a fault would.
fn die() {
    std::process::exit(9);
}

fn is_death_of(error: &Error, place: Place) -> bool {
    let printed = |error: &Error| *error.kind() == ErrorKind::DeadPlace(place.id());
    printed(error) || error.causes().iter().any(printed)
}

#[isles::test(machines = [processes])]
async fn every_wait_on_a_dead_place_is_answered_with_its_name() -> Result<()> {
    let (victim, survivor) = (second(), second().next());
    let victims_counter = at!(victim, Counter::new()).await?;
    let local = PlaceLocal::new(|| 1u64).await?;
    let waiting = finish(async {
        spawn_at!(victim, pending::<()>().await);
        spawn_at!(survivor, at!(victim, pending::<()>().await).await?);
        spawn_at!(survivor, finish(async { spawn_at!(victim, pending::<()>().await) }).await?);
        let call = at!(victim, die()).await.unwrap_err();
        assert!(is_death_of(&call, victim), "{call}");
        assert!(call.to_string().contains("its process ended with code 9"), "{call}");
        Ok::<_, Error>(())
    });
    let error = waiting.await.unwrap_err();
    assert!(is_death_of(&error, victim), "{error}");
    assert_eq!(error.causes().len(), 3, "{error}");
    let said = format!("DeadPlace: {victim} is dead; its process ended with code 9; the finish at ");
    assert!(error.to_string().contains(&said), "{error}");
    assert!(error.to_string().contains("failure.rs:"), "{error}");

    assert!(victim.is_dead());
    assert!(is_death_of(&at!(victim, ()).await.unwrap_err(), victim));
    assert!(is_death_of(&finish(async { spawn_at!(victim, ()) }).await.unwrap_err(), victim));
    assert!(is_death_of(&victims_counter.add(1).await.unwrap_err(), victim));
    assert!(is_death_of(&local.reduce(|a, b| a + b).await.unwrap_err(), victim));
    assert!(is_death_of(&PlaceLocal::new(|| 0u64).await.err().unwrap(), victim));
    assert!(is_death_of(&Replicated::new(5u64).await.err().unwrap(), victim));

    for place in places().filter(|place| *place != victim) {
        assert_eq!(at!(place, *local.lock()).await?, 1, "the others work on");
    }
    Ok(())
}

/// Returns the result of a finish whose task at `caller` handles the error of an `at!` at `victim`, which dies.
async fn handle_a_death(caller: Place, victim: Place) -> Result<()> {
    finish(async {
        spawn_at!(caller, {
            let call = at!(victim, die()).await.unwrap_err();
            assert!(is_death_of(&call, victim), "{call}");
        });
    })
    .await
}

#[isles::test(machines = [processes])]
async fn a_call_whose_target_dies_is_an_error_of_its_finish_even_if_the_caller_took_it() -> Result<()> {
    let (first, other) = (second(), second().next());
    for (caller, victim) in [(here(), first), (here().prev(), other)] {
        let error = handle_a_death(caller, victim).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::DeadPlace(victim.id()), "{error}");
        // Nothing is sent to a place that is known to be dead, so no finish loses a task there.
        finish(async { assert!(at!(victim, ()).await.is_err()) }).await?;
    }
    Ok(())
}

#[isles::test(machines = [processes])]
async fn a_call_in_a_finish_of_its_own_keeps_the_death_of_its_target_to_itself() -> Result<()> {
    let victim = second();
    finish(async {
        at!(victim, ()).await?;
        let error = finish(async { at!(victim, die()).await }).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::DeadPlace(victim.id()), "{error}");
        assert!(error.site().is_some_and(|site| site.contains("failure.rs:")), "{error}");
        Ok::<_, Error>(())
    })
    .await
}

#[isles::test(machines = [processes])]
async fn a_finish_with_a_dead_place_waits_for_the_tasks_of_the_others() -> Result<()> {
    let (victim, survivor) = (second(), second().next());
    let ended = Counter::new();
    let error = finish(async {
        spawn_at!(victim, die());
        spawn_at!(survivor, {
            while !victim.is_dead() {
                isles::yield_now().await;
            }
            for _ in 0..1_000 {
                isles::yield_now().await;
            }
            ended.add(1).await?;
        });
    });
    assert_eq!(error.await.unwrap_err().kind(), &ErrorKind::DeadPlace(victim.id()));
    assert_eq!(ended.get().await?, 1);
    Ok(())
}

#[isles::test(places = 2, machines = [processes])]
async fn a_flood_towards_a_place_that_dies_ends() -> Result<()> {
    let victim = second();
    let error = finish(async {
        for number in 0..100_000u64 {
            spawn_at!(victim, {
                if number == 50_000 {
                    die();
                }
            });
        }
    })
    .await
    .unwrap_err();
    let of_victim = |error: &Error| is_death_of(error, victim);
    assert!(of_victim(&error), "{error}");
    Ok(())
}
