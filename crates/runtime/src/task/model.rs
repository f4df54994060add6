//! Tasks under loom: a place and the threads that wake its tasks, in every interleaving within the bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p isles-runtime --lib model` runs these and nothing else. All of this
//! folder is real: the word, the cell, the waker, the injector, the pool. The place is a stand-in: a loop that runs
//! woken tasks and sleeps otherwise. Loom reports a lost wake (all threads sleep), memory that is leaked or freed
//! twice, and accesses that nothing orders.

use super::cell::{PollOutcome, Priority, TaskRef};
use super::injector::Injector;
use super::pool::Pool;
use super::state::{AfterPoll, TaskState};
use super::sync::{AtomicUsize, Ordering};
use crate::Error;
use crate::call::site::INTERNAL;
use crate::finish::Scope;
use isles_transport::Unpark;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex, Notify};
use loom::thread;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The word of a task that another thread also holds, and what it guards.
struct Guarded {
    state: TaskState,
    /// The future and the memory: read by every holder of a reference, written by the one that drops the last.
    memory: UnsafeCell<()>,
    /// Counter that the task waits for.
    done: AtomicUsize,
    /// In place of the injector: number of times the task was queued, and the sleep of the place.
    queued: AtomicUsize,
    sleep: Notify,
}

impl Guarded {
    /// A running task that has given away one waker.
    fn running() -> Arc<Guarded> {
        let state = TaskState::scheduled();
        assert!(state.start());
        state.retain();
        let (done, queued) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Guarded { state, memory: UnsafeCell::new(()), done, queued, sleep: Notify::new() })
    }

    fn wake(&self) {
        self.memory.with(|_| ());
        if self.state.wake() {
            self.memory.with(|_| ());
            // PAIR model.queued: publish
            self.queued.fetch_add(1, Ordering::Release);
            self.sleep.notify();
        }
    }

    /// Waits until the task is queued, and takes it.
    fn dequeue(&self) {
        // PAIR model.queued: observe
        while self.queued.load(Ordering::Acquire) == 0 {
            self.sleep.wait();
        }
        self.queued.fetch_sub(1, Ordering::Relaxed); // Relaxed is enough: only this thread takes away.
    }

    fn release(&self) {
        self.memory.with(|_| ());
        if self.state.release() {
            self.memory.with_mut(|_| ());
        }
    }
}

#[test]
fn a_wake_is_never_lost_and_the_last_reference_is_alone() {
    check(|| {
        let task = Guarded::running();
        let theirs = task.clone();
        let waker = thread::spawn(move || {
            // Relaxed is enough: the test checks that the wake publishes it.
            theirs.done.store(1, Ordering::Relaxed);
            theirs.wake();
            theirs.release();
        });
        while task.done.load(Ordering::Relaxed) == 0 {
            if task.state.suspend() == AfterPoll::Suspended {
                task.dequeue();
            }
            assert!(task.state.start());
        }
        if task.state.conclude_last() {
            task.memory.with_mut(|_| ());
        }
        waker.join().unwrap();
    });
}

#[test]
fn a_task_that_is_woken_while_it_is_dropped_is_queued_by_one() {
    check(|| {
        let task = Guarded::running();
        assert_eq!(task.state.suspend(), AfterPoll::Suspended);
        let theirs = task.clone();
        let waker = thread::spawn(move || {
            theirs.wake();
            theirs.release();
        });
        // A task that learns that it is in a queue waits for it there.
        if task.state.conclude() {
            task.dequeue();
            assert!(!task.state.start());
        }
        task.release();
        waker.join().unwrap();
    });
}

/// The sleep of a place.
struct Sleep(Notify);

impl Unpark for Sleep {
    fn unpark(&self) {
        self.0.notify();
    }
}

/// A place with tasks and nothing else.
struct Bare {
    sleep: std::sync::Arc<Sleep>,
    injector: &'static Injector,
    pool: Pool,
}

impl Bare {
    fn new() -> Bare {
        let sleep = std::sync::Arc::new(Sleep(Notify::new()));
        Bare { injector: Injector::leak(sleep.clone()), sleep, pool: Pool::default() }
    }

    fn task<F: Future<Output = Result<(), Error>>>(&self, future: F) -> TaskRef {
        // NEED: tasks are made of any lifetime.
        // SOUND: the futures of these models own all they have.
        unsafe {
            TaskRef::new(future, Scope::DETACHED, &INTERNAL, Priority::Normal, self.injector, &self.pool)
        }
    }

    /// Runs tasks until all have ended, and sleeps while none is woken.
    fn complete<const N: usize>(&self, tasks: [TaskRef; N]) {
        let (mut ready, mut over) = (VecDeque::from(tasks), 0);
        while over < N {
            let Some(task) = ready.pop_front() else {
                // NEED: other threads leave memory for the pool.
                // SOUND: pool and injector are of this thread.
                ready.extend(unsafe { self.injector.take(&self.pool) });
                if ready.is_empty() {
                    self.sleep.0.wait();
                }
                continue;
            };
            // NEED: a task gives its memory back to its pool.
            // SOUND: task and pool are of this thread.
            match unsafe { task.run(&self.pool) }.expect("a task is queued once") {
                PollOutcome::Over(result) => {
                    result.unwrap();
                    over += 1;
                }
                PollOutcome::Again => ready.push_back(task),
                PollOutcome::Suspended => {}
            }
        }
    }

    /// Accepts no more tasks, and takes memory back.
    fn close(&self) {
        // NEED: the pool of the place takes the memory.
        // SOUND: as in `complete`; each model has ended its task.
        unsafe { self.injector.close(&self.pool) };
    }
}

/// Signal that a task waits for, and the waker that it leaves there.
#[derive(Default)]
struct Signal(Mutex<(bool, Option<Waker>)>);

impl Signal {
    /// Waits for `event`, with `ballast` to make the task larger.
    fn wait<const N: usize>(event: Arc<Signal>) -> impl Future<Output = Result<(), Error>> {
        let ballast = [0_u8; N];
        poll_fn(move |context| {
            let _ = &ballast;
            let mut now = event.0.lock().unwrap();
            if now.0 {
                return Poll::Ready(Ok(()));
            }
            now.1 = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Raises the signal; returns the waker of the waiting task.
    fn happen(&self) -> Option<Waker> {
        let mut now = self.0.lock().unwrap();
        now.0 = true;
        now.1.take()
    }
}

/// One task that another thread wakes; with memory of the pool, or of the general allocator.
fn wake_one<const BALLAST: usize>(with: impl Fn(Waker) + Copy + Send + Sync + 'static) {
    check(move || {
        let (bare, event) = (Bare::new(), Arc::<Signal>::default());
        let task = bare.task(Signal::wait::<BALLAST>(event.clone()));
        let waking = thread::spawn(move || event.happen().into_iter().for_each(with));
        bare.complete([task]);
        waking.join().unwrap();
        bare.close();
        assert_eq!(bare.pool.live(), 0);
    });
}

/// Larger than any cell of a pool.
const LARGE: usize = 1_000;

#[test]
fn a_sleeping_place_learns_of_a_wake_and_has_its_memory_back() {
    wake_one::<0>(Waker::wake);
    wake_one::<LARGE>(Waker::wake);
}

#[test]
fn wakers_that_are_cloned_and_used_twice_wake_once_more_at_most() {
    wake_one::<0>(|waker| {
        let clone = waker.clone();
        waker.wake();
        clone.wake();
    });
}

#[test]
fn two_threads_may_wake_two_tasks() {
    check(|| {
        let (bare, events) = (Bare::new(), [Arc::<Signal>::default(), Arc::default()]);
        let tasks = events.clone().map(|event| bare.task(Signal::wait::<0>(event)));
        let threads =
            events.map(|event| thread::spawn(move || event.happen().into_iter().for_each(Waker::wake)));
        bare.complete(tasks);
        threads.into_iter().for_each(|waking| waking.join().unwrap());
        bare.close();
        assert_eq!(bare.pool.live(), 0);
    });
}

/// A place that ends while another thread wakes its task, and drops its waker.
fn end_while_waking<const BALLAST: usize>() {
    check(|| {
        let (bare, event) = (Bare::new(), Arc::<Signal>::default());
        let task = bare.task(Signal::wait::<BALLAST>(event.clone()));
        // NEED: as in `complete`.
        // SOUND: as there.
        assert!(matches!(unsafe { task.run(&bare.pool) }, Some(PollOutcome::Suspended)));
        let waking = thread::spawn(move || event.happen().into_iter().for_each(Waker::wake));
        task.conclude();
        bare.close();
        waking.join().unwrap();
        // A cell that came back later is in the list, which nothing but this test looks at any more.
        bare.close();
        assert_eq!(bare.pool.live(), 0);
    });
}

#[test]
fn a_place_that_ends_while_its_task_is_woken_leaves_no_memory() {
    end_while_waking::<0>();
    end_while_waking::<LARGE>();
}
