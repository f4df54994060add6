//! Tasks without a place: effects of other threads on them, and what is left when their place ends.

use super::cell::{PollOutcome, Priority, TaskRef};
use super::injector::Injector;
use super::pool::Pool;
use crate::call::site::INTERNAL;
use crate::finish::Scope;
use isles_transport::Unpark;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// Counts the waits that were ended.
#[derive(Default)]
struct Waits(AtomicU32);

impl Unpark for Waits {
    fn unpark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Minimal environment of a place for its tasks.
struct Bare {
    waits: Arc<Waits>,
    injector: &'static Injector,
    pool: Pool,
}

impl Bare {
    fn new() -> Self {
        let waits = Arc::<Waits>::default();
        Bare { injector: Injector::leak(waits.clone()), waits, pool: Pool::default() }
    }

    /// Returns a task that waits until its second poll, with its waker.
    fn waiting(&self) -> (TaskRef, Waker) {
        let left = Arc::new(Mutex::new(None::<Waker>));
        let leaves = left.clone();
        let future = poll_fn(move |context| {
            let before = leaves.lock().unwrap().replace(context.waker().clone());
            if before.is_some() { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        // NEED: tasks are made of any lifetime.
        // SOUND: the future owns all it has.
        let task = unsafe {
            TaskRef::new(future, Scope::DETACHED, &INTERNAL, Priority::Normal, self.injector, &self.pool)
        };
        assert!(matches!(self.run(task), Some(PollOutcome::Suspended)));
        let waker = left.lock().unwrap().clone().unwrap();
        (task, waker)
    }

    fn run(&self, task: TaskRef) -> Option<PollOutcome> {
        // NEED: a task gives its memory back to its pool.
        // SOUND: the tasks are of this pool and of this thread.
        unsafe { task.run(&self.pool) }
    }

    fn take(&self) -> Vec<TaskRef> {
        // NEED: as above.
        // SOUND: as above.
        unsafe { self.injector.take(&self.pool) }
    }

    fn close(&self) {
        // NEED: as above.
        // SOUND: as above; each test has ended its tasks.
        unsafe { self.injector.close(&self.pool) };
    }
}

#[test]
fn a_task_woken_by_another_thread_comes_back_once_and_ends_the_wait() {
    let bare = Bare::new();
    let (task, waker) = bare.waiting();
    std::thread::spawn(move || {
        waker.wake_by_ref();
        waker.wake();
    })
    .join()
    .unwrap();
    assert_eq!(bare.waits.0.load(Ordering::Relaxed), 1);
    assert!(bare.take() == [task]);
    assert!(matches!(bare.run(task), Some(PollOutcome::Over(Ok(())))));
    assert!(bare.take().is_empty() && bare.pool.live() == 0);
}

#[test]
fn memory_that_another_thread_gave_back_is_used_again() {
    let bare = Bare::new();
    let (task, waker) = bare.waiting();
    task.conclude();
    std::thread::spawn(move || drop(waker)).join().unwrap();
    assert_eq!(bare.pool.live(), 1);
    assert!(bare.take().is_empty());
    assert_eq!(bare.pool.live(), 0);
}

#[test]
fn a_place_that_ends_takes_the_memory_back_that_other_threads_have_left() {
    let bare = Bare::new();
    let (task, waker) = bare.waiting();
    let (second, woken) = bare.waiting();
    std::thread::spawn(move || woken.wake()).join().unwrap();
    task.conclude();
    second.conclude();
    std::thread::spawn(move || drop(waker)).join().unwrap();
    bare.close();
    assert_eq!(bare.pool.live(), 0);
}

#[test]
fn a_wake_under_way_at_the_end_of_the_place_leaks_no_memory() {
    let bare = Bare::new();
    let (task, waker) = bare.waiting();
    // The first half of a wake by another thread: it has marked the task, and will now hand it over.
    assert!(task.header().state.wake());
    task.conclude();
    bare.close();
    bare.injector.schedule(task, Priority::Normal);
    drop(waker);
    // Tasks that came after the end are in the list, which nothing but this test looks at any more.
    bare.close();
    assert_eq!(bare.pool.live(), 0);
}
