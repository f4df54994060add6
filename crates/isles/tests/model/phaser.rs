//! Phasers on all machines: lock step of phases, joining and leaving, misuse, loss of places.
//!
//! One counter shows the lock step: each task adds one in every phase before ending it. After a phase, the sum contains
//! all additions of the completed phases, and at most those that the others can have made in the next one.

use isles::prelude::*;
use isles::{Error, ErrorKind, Plan, PlannedDeath, Result};
use isles_transport::PlaceId;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

/// Polls once. Returns the output if it is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Goes through `phases` phases as one of `tasks` tasks, and checks that all are in step.
async fn march(phaser: Phaser, sum: Counter, phases: u64, tasks: u64) -> Result<()> {
    for phase in 0..phases {
        assert_eq!(phaser.phase()?, phase);
        sum.add(1).await?;
        assert_eq!(phaser.advance().await?, phase + 1);
        let seen = sum.get().await?;
        let least = tasks * (phase + 1);
        assert!((least..least + tasks).contains(&seen), "{seen} after phase {phase} of {tasks} tasks");
    }
    Ok(())
}

#[isles::test(places = 8)]
async fn no_task_is_in_a_phase_before_all_have_ended_the_one_before() -> Result<()> {
    let (phaser, sum) = (Phaser::new(), Counter::new());
    let tasks = 2 * places().len() as u64;
    finish(async {
        for place in places().chain(places()) {
            spawn_at!(place, march(phaser, sum, 12, tasks).await?);
        }
        drop(phaser);
    })
    .await?;
    assert_eq!(sum.get().await?, tasks * 12);
    Ok(())
}

#[isles::test(places = 3)]
async fn a_phaser_made_elsewhere_keeps_its_tasks_in_step() -> Result<()> {
    let sum = Counter::new();
    finish(async {
        for home in places() {
            spawn_at!(home, {
                let phaser = Phaser::new();
                let (sum, tasks) = (Counter::new(), places().len() as u64 + 1);
                for place in places() {
                    spawn_at!(place, march(phaser, sum, 5, tasks).await?);
                }
                march(phaser, sum, 5, tasks).await?;
            });
        }
    })
    .await?;
    sum.get().await.map(drop)
}

/// Phases that a task of the chain takes part in.
const STAY: u64 = 3;

/// Tasks of the chain.
const CHAIN: u64 = 20;

/// Returns the sum that the tasks of the chain have added by the end of `phase`: task `number` takes part in phases
/// `number` to `number + STAY - 1`.
fn added(phase: u64) -> u64 {
    (0..CHAIN).map(|number| (phase + 1).saturating_sub(number).min(STAY)).sum()
}

/// Runs a task of the chain: starts the next one in its second phase, and leaves after `STAY` phases.
fn link(phaser: Phaser, sum: Counter, number: u64) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        for phase in number..number + STAY {
            assert_eq!(phaser.phase()?, phase);
            if phase == number + 1 && phase < CHAIN {
                let place = Place::new((phase * 5) as usize % places().len()).unwrap();
                spawn_at!(place, link(phaser, sum, phase).await?);
            }
            sum.add(1).await?;
            if phase == number + STAY - 1 {
                return Ok(());
            }
            phaser.advance().await?;
            let seen = sum.get().await?;
            assert!((added(phase)..added(phase + 1)).contains(&seen), "{seen} after phase {phase}");
        }
        Ok::<_, Error>(())
    })
}

#[isles::test]
async fn tasks_join_and_leave_in_any_phase() -> Result<()> {
    let (phaser, sum) = (Phaser::new(), Counter::new());
    finish(link(phaser, sum.clone(), 0)).await?;
    assert_eq!(sum.get().await?, CHAIN * STAY);
    Ok(())
}

#[isles::test]
async fn a_task_that_ends_without_advancing_releases_the_others() -> Result<()> {
    let phaser = Phaser::new();
    let ended = finish(async {
        for place in places() {
            spawn_at!(place, {
                let _phaser = phaser;
                if here().index().is_multiple_of(2) {
                    panic!("on purpose");
                }
                Err(Error::message("on purpose"))?;
            });
            spawn_at!(place, drop(phaser));
            spawn_at!(
                place,
                for _ in 0..3 {
                    phaser.advance().await?;
                }
            );
        }
        for phase in 1..=5 {
            assert_eq!(phaser.advance().await?, phase);
        }
        drop(phaser);
        Ok::<_, Error>(())
    });
    let error = ended.await.unwrap_err();
    assert_eq!(error.causes().len(), places().len(), "{error}");
    assert!(error.causes().iter().all(|cause| cause.to_string().contains("on purpose")), "{error}");
    Ok(())
}

#[isles::test]
async fn tasks_that_are_cancelled_while_they_wait_release_the_others() -> Result<()> {
    let phaser = Phaser::new();
    let other = phaser.register()?;
    let tasks = finish(async move {
        for place in places() {
            spawn_at!(
                place,
                loop {
                    phaser.advance().await?;
                }
            );
        }
    });
    let canceller = tasks.canceller();
    spawn(async move {
        for _ in 0..10 {
            other.advance().await?;
        }
        canceller.cancel("no longer needed");
        for phase in 11..20 {
            assert_eq!(other.advance().await?, phase);
        }
        Ok::<_, Error>(())
    });
    assert_eq!(tasks.await.unwrap_err().kind(), &ErrorKind::Cancelled);
    Ok(())
}

#[isles::test(places = 2)]
async fn resuming_lets_the_others_go_on_by_one_phase() -> Result<()> {
    let (phaser, reported) = (Phaser::new(), Counter::new());
    let last = Place::new(places().len() - 1).unwrap();
    finish(async {
        spawn_at!(last, {
            for phase in 1..=3 {
                assert_eq!(phaser.advance().await?, phase);
                reported.add(1).await?;
            }
        });
        for phase in 0..3 {
            phaser.resume()?;
            phaser.resume()?;
            // The other task continues without this one's advance, but not beyond the next phase.
            while reported.get().await? <= phase {
                isles::yield_now().await;
            }
            assert_eq!(phaser.phase()?, phase);
            assert_eq!(reported.get().await?, phase + 1);
            assert_eq!(phaser.advance().await?, phase + 1);
        }
        drop(phaser);
        Ok::<_, Error>(())
    })
    .await
}

#[isles::test(places = 2)]
async fn misuse_is_an_error_and_changes_nothing() -> Result<()> {
    let phaser = Phaser::new();
    let misused = |result: Result<()>, text: &str| {
        let error = result.expect_err(text);
        assert_eq!(error.kind(), &ErrorKind::Misused, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    for place in places() {
        // The caller has ended its phase, so it may not register others.
        phaser.resume()?;
        misused(phaser.register().map(drop), "must advance first");
        let spawned = finish(async { spawn_at!(place, drop(phaser)) });
        misused(spawned.await, "must advance first");
        phaser.advance().await?;
        // One wait at a time.
        let other = phaser.register()?;
        {
            let mut waits = pin!(phaser.advance());
            // In its first poll it may yield before it begins.
            assert!(poll_once(waits.as_mut()).await.is_none());
            assert!(poll_once(waits.as_mut()).await.is_none());
            misused(phaser.advance().await.map(drop), "waits for the phaser");
            misused(phaser.register().map(drop), "waits for the phaser");
        }
        misused(phaser.resume(), "waits for the phaser");
        other.resume()?;
        phaser.advance().await?;
        other.advance().await?;
    }
    let last = Place::new(places().len() - 1).unwrap();
    misused(at!(last, phaser.phase()?).await.map(drop), "only with a task");
    // In `at!` to here it is the same registration.
    assert_eq!(at!(here(), phaser.advance().await?).await?, 5);
    // None of the above is still registered.
    assert_eq!(phaser.advance().await?, 6);
    Ok(())
}

#[isles::test(places = 2)]
async fn a_wait_that_was_dropped_is_taken_up() -> Result<()> {
    let phaser = Phaser::new();
    let last = Place::new(places().len() - 1).unwrap();
    finish(async {
        spawn_at!(
            last,
            for phase in 1..=4 {
                assert_eq!(phaser.advance().await?, phase)
            }
        );
        for phase in [1, 3] {
            // Polled during the phase, or after it.
            assert!(poll_once(pin!(phaser.advance())).await.is_none_or(|begun| begun.unwrap() == phase));
            if phaser.phase()? < phase {
                assert_eq!(phaser.advance().await?, phase);
            }
            assert_eq!(phaser.advance().await?, phase + 1);
        }
        drop(phaser);
        Ok::<_, Error>(())
    })
    .await
}

#[isles::test]
async fn several_phasers_advance_as_one_step() -> Result<()> {
    let (one, two) = (Phaser::new(), Phaser::new());
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for _ in 0..5 {
                    let (first, second) =
                        if here().index().is_multiple_of(2) { (&one, &two) } else { (&two, &one) };
                    Phaser::advance_all([first, second]).await?;
                }
                assert_eq!((one.phase()?, two.phase()?), (5, 5));
            });
        }
        drop((one, two));
    })
    .await
}

/// A phaser between values, some of which cannot be written or read.
#[derive(Serialize, Deserialize)]
struct Luggage {
    before: Vec<String>,
    phaser: Phaser,
    after: Obstinate,
}

/// Cannot be written, or cannot be read, depending on the variant.
#[derive(Clone, Copy, PartialEq)]
enum Obstinate {
    Willing,
    Unwritable,
    Unreadable,
}

impl Serialize for Obstinate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Obstinate::Unwritable => Err(serde::ser::Error::custom("unwritable")),
            other => (*other == Obstinate::Unreadable).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Obstinate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            true => Err(serde::de::Error::custom("unreadable")),
            false => Ok(Obstinate::Willing),
        }
    }
}

#[isles::test(places = 2)]
async fn a_task_that_never_started_does_not_hold_the_others_up() -> Result<()> {
    use Obstinate::*;
    let (phaser, number) = (Phaser::new(), Global::new(7));
    let mut phase = 0;
    for place in places() {
        for (first, after) in
            [(Willing, Willing), (Willing, Unwritable), (Willing, Unreadable), (Unreadable, Willing)]
        {
            let luggage = Luggage { before: vec!["text".into(); 200], phaser: phaser.register()?, after };
            let home = finish(async {
                spawn_at!(place, {
                    assert!(
                        (first == Willing, luggage.after == Willing, luggage.before.len())
                            == (true, true, 200)
                    );
                    let _number = number;
                    luggage.phaser.advance().await?;
                });
                phase += 1;
                drop(luggage.phaser);
                assert_eq!(phaser.advance().await?, phase, "at {place}");
                Ok::<_, Error>(())
            });
            let expected =
                (first == Willing && after == Willing).then_some(&()).ok_or(&ErrorKind::Undecodable);
            assert_eq!(home.await.as_ref().map_err(Error::kind), expected, "at {place}");
        }
    }
    assert_eq!(*number.open()?, 7);
    Ok(())
}

#[test]
fn a_message_that_is_too_long_registers_nobody() {
    let mut plan = Plan::adversarial(3);
    plan.limits.block_bytes_max = 8_192;
    let program = || async {
        let (phaser, long, last) = (Phaser::new(), vec![1_u64; 4_000], Place::new(1).unwrap());
        let sent = finish(async { spawn_at!(last, drop((phaser, long))) }).await;
        assert!(matches!(sent.unwrap_err().kind(), ErrorKind::TooLong { .. }));
        assert_eq!(phaser.advance().await?, 1);
        Ok::<_, Error>(())
    };
    isles::simulate(2, plan, program).0.unwrap();
}

#[test]
fn a_run_that_stands_still_names_the_places_that_hold_a_phase_up() {
    let program = || async {
        let phaser = Phaser::new();
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    phaser.advance().await?;
                });
            }
        })
        .await
    };
    let error = isles::simulate(3, Plan::calm(1), program).0.unwrap_err().to_string();
    assert!(
        error.contains("place 0: the end of phase 0 of a phaser, for 1 tasks; it waits for place 0"),
        "{error}"
    );
}

#[test]
fn handles_that_go_with_a_phaser_are_freed() {
    for seed in 0..20 {
        let program = || async {
            let (phaser, number) = (Phaser::new(), Global::new(Rc::new(1)));
            finish(async {
                for place in places().chain(places()) {
                    spawn_at!(place, {
                        let _number = number;
                        phaser.advance().await?;
                    });
                }
                drop(phaser);
            })
            .await
        };
        let (result, report, _) = isles::simulate(4, Plan::adversarial(seed), program);
        result.unwrap();
        let parts: u64 = report.places.iter().flatten().map(|place| place.parts).sum();
        assert_eq!(parts, 0, "ISLES_SEED={seed}");
    }
}

/// Returns the number of control messages of a run in which `tasks` tasks at each of four places go through `phases`
/// phases.
fn control_messages(tasks: usize, phases: u64) -> u64 {
    let program = move || async move {
        let phaser = Phaser::new();
        finish(async {
            for place in (0..tasks).flat_map(|_| places()) {
                spawn_at!(place, {
                    for _ in 0..phases {
                        phaser.advance().await?;
                    }
                });
            }
            drop(phaser);
        })
        .await
    };
    let (result, report, _) = isles::simulate(4, Plan::calm(1), program);
    result.unwrap();
    report.count(isles::counters::CounterId::ControlMessages)
}

#[test]
fn a_phase_costs_two_messages_for_each_other_place() {
    for tasks in [1, 5] {
        assert_eq!(
            control_messages(tasks, 30) - control_messages(tasks, 10),
            20 * 2 * 3,
            "{tasks} tasks a place"
        );
    }
}

/// Number of phases of the programs that lose a place.
const PHASES: u64 = 25;

/// Goes through all phases, whichever place dies; fails if the phaser's home `home` is lost.
async fn survive(phaser: Phaser, lost: u32, home: u32) -> Result<()> {
    let mut reported = 0;
    for phase in 1..=PHASES {
        match phaser.advance().await {
            Ok(begun) => assert_eq!(begun, phase),
            Err(error) => {
                assert_eq!(error.kind(), &ErrorKind::DeadPlace(PlaceId(lost)), "{error}");
                if lost == home {
                    assert_eq!(phaser.advance().await.unwrap_err().kind(), error.kind());
                    assert_eq!(phaser.register().map(drop).unwrap_err().kind(), error.kind());
                    assert_eq!(phaser.resume().unwrap_err().kind(), error.kind());
                    return Err(error);
                }
                // The phase has ended all the same.
                assert_eq!(phaser.phase()?, phase);
                reported += 1;
                assert_eq!(reported, 1, "one death was told twice");
            }
        }
        if phase % 5 == 0 {
            // Registers and drops the registration.
            let next = Place::new((here().index() + 1) % isles::place_count()).unwrap();
            spawn_at!(next, drop(phaser));
        }
    }
    Ok(())
}

async fn lose(lost: u32, home: u32) -> Result<()> {
    let home_place = Place::new(home as usize).unwrap();
    let (ended, sum) = (Counter::new(), isles::place_count() as u64);
    let result = finish(async {
        spawn_at!(home_place, {
            let phaser = Phaser::new();
            for place in places() {
                spawn_at!(place, {
                    survive(phaser, lost, home).await?;
                    ended.add(1).await?;
                });
            }
        });
    })
    .await;
    let ended = ended.get().await?;
    assert!(ended + 1 >= sum || (lost == home && result.is_err()), "only {ended} tasks came to their end");
    result
}

/// Returns `true` if each error that a finish collected is the death of `lost`.
fn is_death_of(error: &Error, lost: u32) -> bool {
    match error.kind() {
        ErrorKind::Several => error.causes().iter().all(|cause| is_death_of(cause, lost)),
        kind => *kind == ErrorKind::DeadPlace(PlaceId(lost)),
    }
}

#[test]
fn the_loss_of_a_place_ends_its_registrations_and_never_hangs() {
    let seeds = std::env::var("ISLES_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(150);
    let mut noticed = 0;
    for seed in 0..seeds {
        let (lost, home) = (1 + seed as u32 % 4, (seed / 4) as u32 % 5);
        let losses = vec![PlannedDeath { place: PlaceId(lost), step: 10 + seed * 97 % 3_000 }];
        let plan = Plan { losses, ..Plan::adversarial(seed) };
        let (result, _, digest) = isles::simulate(5, plan.clone(), || lose(lost, home));
        if let Err(error) = result {
            assert!(is_death_of(&error, lost), "ISLES_SEED={seed}, place {lost} of home {home}: {error}");
            noticed += 1;
        }
        assert_eq!(
            digest,
            isles::simulate(5, plan, || lose(lost, home)).2,
            "ISLES_SEED={seed} gave two runs"
        );
    }
    assert!(noticed * 4 > seeds, "only {noticed} of {seeds} losses came when they mattered");
}

/// A value that cannot be sent.
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it stays at home"))
    }
}

impl<'de> Deserialize<'de> for Stubborn {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
        Err(serde::de::Error::custom("it has not come"))
    }
}

#[isles::test(places = 2)]
async fn a_phaser_in_an_answer_is_not_blamed_for_what_is_sent_later() -> Result<()> {
    let there = here().next();
    at!(there, {
        let home = here().next();
        let refused = at!(home, Phaser::new()).await.map(|_| ()).expect_err("a phaser stays with its task");
        assert!(refused.to_string().contains("a phaser goes to another place only"), "{refused}");
    })
    .await?;
    // The result is encoded here. The first values sent from a call site are encoded for a trial as well.
    for _ in 0..20 {
        let value = Stubborn;
        let error = at!(there, {
            let _ = value;
        })
        .await
        .expect_err("a value that refuses to be written");
        assert!(error.to_string().contains("it stays at home"), "{error}");
    }
    Ok(())
}
