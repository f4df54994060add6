//! Tasks woken by threads of the program: no wake is lost while a place works, sleeps or ends.
//!
//! A stress test of a property that `isles-runtime` checks in a model of a few steps. A task passes its waker to one of
//! a few threads, and returns only when that thread is about to wake it, so that the wake races with the end of the
//! poll. A lost wake stalls the run, which the stall limit of a test ends.

use isles::prelude::*;
use isles::{Launch, Machine, Result, spawn_detached, yield_now};
use std::cell::Cell;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

/// Number of threads that wake tasks.
const THREADS: u64 = 3;

/// Order for a waking thread.
enum Order {
    Wake(Arc<Handed>, Waker, u64),
    /// To say that all before is done.
    Answer(Sender<()>),
}

/// State that a future and a waking thread share.
#[derive(Default)]
struct Handed {
    /// The thread is about to wake.
    near: AtomicBool,
    /// The future may end.
    done: AtomicBool,
}

/// Does what `order` says, in one of the ways in which a waker can be used up.
fn obey(order: Order) {
    let (handed, waker, how) = match order {
        Order::Wake(handed, waker, how) => (handed, waker, how),
        Order::Answer(to) => return to.send(()).unwrap(),
    };
    let spurious = how & 8 != 0;
    // PAIR wakers.done: publish
    handed.done.store(!spurious, Ordering::Release);
    handed.near.store(true, Ordering::Relaxed); // Relaxed is enough: it only brings the two close together.
    match how % 4 {
        0 => waker.wake(),
        1 => waker.wake_by_ref(),
        2 => [waker.clone(), waker].into_iter().for_each(Waker::wake),
        _ => (0..2).for_each(|_| waker.wake_by_ref()),
    }
}

fn threads() -> &'static [Sender<Order>] {
    static LINES: OnceLock<Vec<Sender<Order>>> = OnceLock::new();
    LINES.get_or_init(|| {
        let start = |_| {
            let (line, orders) = channel();
            std::thread::spawn(move || orders.into_iter().for_each(obey));
            line
        };
        (0..THREADS).map(start).collect()
    })
}

/// Returns when all wakes that were asked for have been done.
fn settle() {
    for line in threads() {
        let (to, answer) = channel();
        line.send(Order::Answer(to)).unwrap();
        answer.recv().unwrap();
    }
}

/// Numbers in an order that `seed` fixes.
fn scramble(seed: u64) -> u64 {
    let word = (seed ^ seed >> 30).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ word >> 31
}

/// Ends when a thread has woken it in earnest; until then each poll hands out a waker.
struct Awaken {
    handed: Arc<Handed>,
    seed: u64,
}

impl Future for Awaken {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // PAIR wakers.done: observe
        if self.handed.done.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        self.seed = scramble(self.seed);
        self.handed.near.store(false, Ordering::Relaxed); // Relaxed is enough, as above.
        let order = Order::Wake(self.handed.clone(), context.waker().clone(), self.seed >> 8);
        threads()[(self.seed % THREADS) as usize].send(order).unwrap();
        // Every other poll meets its wake; the others let the place go to sleep first.
        for _ in 0..if self.seed & 1 << 20 == 0 { 2_000 } else { 0 } {
            if self.handed.near.load(Ordering::Relaxed) {
                break;
            }
            std::thread::yield_now();
        }
        Poll::Pending
    }
}

async fn awaken(seed: u64) {
    Awaken { handed: Arc::default(), seed }.await;
}

#[isles::test(places = 3, machines = [threads])]
async fn no_wake_of_another_thread_is_lost() -> Result<()> {
    static ENDED: AtomicU64 = AtomicU64::new(0);
    const TASKS: u64 = 2_000;
    finish(async {
        for place in places() {
            let first = place.index() as u64 * TASKS;
            spawn_at!(place, {
                // Few at a time: then the place often has nothing else to do.
                for batch in 0..TASKS / 4 {
                    finish(async move {
                        for task in 0..4 {
                            spawn(async move {
                                awaken(scramble(first + batch * 4 + task)).await;
                                ENDED.fetch_add(1, Ordering::Relaxed); // Relaxed is enough: the finish orders it.
                            });
                        }
                    })
                    .await?;
                }
            });
        }
    })
    .await?;
    assert_eq!(ENDED.load(Ordering::Relaxed), 3 * TASKS);
    Ok(())
}

/// Values of [`Alive`], at all places.
static ALIVE: AtomicI64 = AtomicI64::new(0);

struct Alive;

impl Alive {
    fn new() -> Alive {
        ALIVE.fetch_add(1, Ordering::Relaxed); // Relaxed is enough: the ends of threads order it.
        Alive
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed); // Relaxed is enough, as above.
    }
}

/// A future that is woken again and again as long as it is polled, and holds a counted value.
async fn never_ends(seed: u64) {
    let _alive = Alive::new();
    for round in 0.. {
        awaken(scramble(seed + round)).await;
    }
}

#[test]
fn places_may_end_while_other_threads_wake_their_tasks() {
    const RUNS: u64 = 100;
    for run in 0..RUNS {
        let launch = Launch::from_environment().unwrap().machine(Machine::Threads).places(3);
        let main = move || async move {
            finish(async {
                for place in places() {
                    spawn_at!(place, {
                        for task in 0..20 {
                            spawn_detached(never_ends(run << 32 | task << 16));
                        }
                        // So that they have begun.
                        yield_now().await;
                    });
                }
            })
            .await
        };
        launch.run(main).unwrap().0.unwrap();
        settle();
        assert_eq!(ALIVE.load(Ordering::Relaxed), 0, "in run {run}");
    }
}

thread_local! {
    /// Values of [`Starts`] that were dropped at the places of this thread.
    static DROPPED: Cell<u32> = const { Cell::new(0) };
}

/// A value whose destructor starts a task that holds another, so often.
struct Starts(u32);

impl Drop for Starts {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
        if let Some(more) = self.0.checked_sub(1) {
            spawn_detached(hold(Starts(more)));
        }
    }
}

async fn hold(value: Starts) {
    let _value = value;
    pending::<()>().await
}

#[test]
fn tasks_that_destructors_start_at_the_end_of_a_place_are_dropped_with_it() {
    let (result, ..) = isles::simulate(2, isles::Plan::calm(0), || async {
        spawn_detached(hold(Starts(3)));
        yield_now().await;
        // A value that a place keeps outlives its tasks.
        let kept = PlaceLocal::new(|| Starts(0)).await?;
        at!(here(), *kept.lock() = Starts(2)).await?;
        spawn_detached(async move {
            let _kept = kept;
            pending::<()>().await
        });
        Ok::<_, isles::Error>(())
    });
    result.unwrap();
    // The four of the task; those that the first values of the two places and what replaced one of them make.
    assert_eq!(DROPPED.get(), 4 + 2 + 3);
}
