//! Sleeps, time-outs and deadlines, on idle and on busy places.
//!
//! On the host's clock, tests only check that a sleep is not too short. On the loopback, simulated time is exact.

use isles::prelude::*;
use isles::{ErrorKind, Plan, Result, simulate, timeout};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(20);

/// On the loopback each turn of a busy place takes a microsecond.
const BUSY_SHORT: Duration = Duration::from_micros(40);

#[isles::test]
async fn a_sleep_is_as_long_as_it_says_or_longer_at_every_place() -> Result<()> {
    for place in places() {
        at!(place, {
            let before = isles::now();
            isles::sleep(SHORT).await;
            assert!(isles::now() >= before + SHORT);
            isles::sleep(Duration::ZERO).await;
        })
        .await?;
    }
    Ok(())
}

#[isles::test]
async fn what_is_over_in_time_is_not_touched_by_a_time_out() -> Result<()> {
    assert_eq!(timeout(Duration::MAX, async { 7 }).await?, 7);
    let slept = timeout(Duration::MAX, async {
        isles::sleep(SHORT).await;
        8
    });
    assert_eq!(slept.await?, 8);
    Ok(())
}

#[isles::test]
async fn what_waits_for_ever_ends_by_its_time_out_and_is_dropped() -> Result<()> {
    for place in places() {
        let held = Rc::new(());
        let other = Rc::clone(&held);
        let waits = async move {
            let _held = other;
            at!(place, pending::<()>().await).await
        };
        let error = timeout(SHORT, waits).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::DeadlinePassed);
        assert_eq!(Rc::strong_count(&held), 1);
    }
    Ok(())
}

#[isles::test]
async fn a_deadline_passes_at_a_place_that_is_always_busy() -> Result<()> {
    let over = Rc::new(Cell::new(false));
    let seen = Rc::clone(&over);
    spawn_detached(async move {
        while !seen.get() {
            isles::yield_now().await;
        }
    });
    let result = finish(async {
        for place in places() {
            spawn_at!(place, pending::<()>().await);
        }
    });
    let error = result.deadline(BUSY_SHORT).await.unwrap_err();
    over.set(true);
    assert_eq!(error.kind(), &ErrorKind::DeadlinePassed);
    Ok(())
}

#[isles::test]
async fn a_sleep_ends_at_a_place_that_is_always_busy() -> Result<()> {
    let over = Rc::new(Cell::new(false));
    let seen = Rc::clone(&over);
    spawn_detached(async move {
        while !seen.get() {
            at!(here(), {}).await.unwrap();
        }
    });
    isles::sleep(BUSY_SHORT).await;
    over.set(true);
    Ok(())
}

/// Runs `main` on three simulated places in a calm world.
fn invented<F: Future<Output = Result<()>> + 'static>(main: F) {
    simulate(3, Plan::calm(3), move || main).0.unwrap();
}

#[test]
fn invented_time_passes_to_the_next_timer_and_no_further() {
    invented(async {
        let began = isles::now();
        isles::sleep(Duration::from_secs(3600)).await;
        let slept = isles::now() - began;
        assert!(slept >= Duration::from_secs(3600) && slept < Duration::from_secs(3601), "{slept:?}");
        Ok(())
    });
}

#[test]
fn tasks_wake_in_the_order_of_their_times_at_whatever_place_they_sleep() {
    invented(async {
        thread_local!(static WOKEN: RefCell<Vec<u64>> = RefCell::default());
        finish(async {
            for (index, seconds) in [5, 1, 4, 2, 3].into_iter().enumerate() {
                let place = Place::new(index % 3).unwrap();
                spawn_at!(place, {
                    isles::sleep(Duration::from_secs(seconds)).await;
                    WOKEN.with_borrow_mut(|woken| woken.push(seconds));
                });
            }
        })
        .await?;
        assert_eq!(WOKEN.take(), [1, 2, 3, 4, 5]);
        Ok(())
    });
}

#[test]
fn sleeps_that_are_dropped_and_deadlines_that_are_kept_leave_no_timer() {
    invented(async {
        for _ in 0..1_000 {
            timeout(Duration::from_secs(1), async {}).await?;
            timeout(Duration::from_secs(1), isles::yield_now()).await?;
            finish(async { spawn(isles::yield_now()) }).deadline(Duration::from_secs(1)).await?;
        }
        // Nothing is pending that would come before this.
        let began = isles::now();
        isles::sleep(Duration::from_secs(2)).await;
        assert!(isles::now() - began < Duration::from_millis(2_001));
        Ok(())
    });
}

#[test]
fn a_waker_may_drop_a_sleep_when_it_is_dropped_or_cloned() {
    thread_local!(static HELD: RefCell<Option<Pin<Box<isles::Sleep>>>> = const { RefCell::new(None) });
    struct Dropping;
    impl Wake for Dropping {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Dropping {
        fn drop(&mut self) {
            HELD.take();
        }
    }
    invented(async {
        let mut noop = Context::from_waker(Waker::noop());
        let mut held = Box::pin(isles::sleep(SHORT));
        assert!(held.as_mut().poll(&mut noop).is_pending());
        HELD.set(Some(held));
        let mut sleep = pin!(isles::sleep(SHORT));
        let dropping = Waker::from(Arc::new(Dropping));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&dropping)).is_pending());
        drop(dropping);
        assert!(sleep.as_mut().poll(&mut noop).is_pending());
        assert!(HELD.take().is_none());
        sleep.await;
        Ok(())
    });
}

#[test]
fn a_sleep_belongs_to_the_place_and_the_run_where_it_was_made() {
    thread_local!(static MOVED: RefCell<Option<Pin<Box<isles::Sleep>>>> = const { RefCell::new(None) });
    async fn wait() {
        MOVED.take().unwrap().await;
    }
    let make = || {
        let mut sleep = Box::pin(isles::sleep(SHORT));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        MOVED.set(Some(sleep));
    };
    invented(async move {
        make();
        let error = at!(Place::new(1).unwrap(), wait().await).await.unwrap_err();
        let said = "a `Sleep` that was made at place 0 was polled at place 1; await it at its own place";
        assert!(error.to_string().contains(said), "{error}");
        make();
        at!(Place::new(1).unwrap(), drop(MOVED.take())).await?;
        make();
        Ok(())
    });
    invented(async {
        let error = at!(here(), wait().await).await.unwrap_err();
        assert!(error.to_string().contains("was made in another run"), "{error}");
        Ok(())
    });
}

#[test]
fn a_hundred_thousand_tasks_sleep_at_once() {
    invented(async {
        let woken = Rc::new(Cell::new(0));
        let counter = Rc::clone(&woken);
        finish(async move {
            for number in 0..100_000_u64 {
                let woken = Rc::clone(&counter);
                spawn(async move {
                    isles::sleep(Duration::from_millis(number % 977)).await;
                    woken.set(woken.get() + 1);
                });
            }
        })
        .await?;
        assert_eq!(woken.get(), 100_000);
        Ok(())
    });
}

/// Runs `main` on two cores of the SCC; returns its result.
fn on_chip<F: Future<Output = Result<()>> + 'static>(main: impl FnOnce() -> F + 'static) -> Result<()> {
    let chip = isles::ModelledChip::new("scc").unwrap();
    isles::Launch::from_environment().unwrap().places(2).run_on_chip(chip, main).unwrap().0
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[test]
fn times_beyond_the_clock_of_a_chip_are_never_and_others_pass() {
    let far = || async {
        for never in [Duration::MAX, 214 * DAY, 10_000 * DAY] {
            let there = here().next();
            let waits = timeout(Duration::from_millis(50), at!(there, [never] isles::sleep(never).await));
            assert_eq!(*waits.await.map(drop).unwrap_err().kind(), ErrorKind::DeadlinePassed);
            let short = finish(async {
                for place in places() {
                    spawn_at!(place, isles::sleep(Duration::from_millis(5)).await);
                }
            });
            short.deadline(never).await?;
        }
        let before = isles::now();
        isles::sleep(213 * DAY).await;
        assert!(isles::now() - before >= 213 * DAY);
        Ok(())
    };
    on_chip(far).unwrap();
}

#[test]
fn a_sleep_beyond_the_clock_of_a_chip_stands_still_and_says_so() {
    let error = on_chip(|| async {
        isles::sleep(214 * DAY).await;
        Ok(())
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains("the run is stalled"), "{error}");
}

#[test]
fn a_deadline_passes_beside_a_loop_of_free_operations_on_a_chip() {
    let deadline = Duration::from_millis(2);
    on_chip(move || async move {
        let monitor = Rc::new(Monitor::new(0_u64));
        for free in 0..3 {
            let monitor = Rc::clone(&monitor);
            let before = isles::now();
            let busy = finish(async move {
                spawn(async move {
                    loop {
                        match free {
                            0 => drop(at!(here(), {}).await),
                            1 => monitor.when(|_| true, |count| *count += 1).await,
                            _ => drop(finish(async {}).await),
                        }
                    }
                });
            });
            let error = busy.deadline(deadline).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::DeadlinePassed);
            let took = isles::now() - before;
            assert!(took < deadline * 2, "{free}: {took:?}");
        }
        Ok(())
    })
    .unwrap();
}
