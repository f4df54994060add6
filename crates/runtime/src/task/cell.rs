//! The memory of one task: a header that every task has, and the future behind it.
//!
//! A task belongs to the place that made it: only that place's thread polls or drops the future. Wakers may live on any
//! thread; they hold the memory, never the future. `worker` decides when the task runs; the caller that gets the
//! [`PollOutcome`] reports its end to a finish.

use super::injector::Injector;
use super::pool::Pool;
use super::state::{AfterPoll, TaskState};
use crate::call::site::{SiteCell, SiteNumber};
use crate::error::{Error, panic};
use crate::finish::Scope;
use std::alloc::Layout;
use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// Priority of a task; within a place the most urgent ready task runs first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// After everything else.
    Low,
    /// The priority of tasks that choose none.
    #[default]
    Normal,
    /// Before everything else.
    High,
}

/// No entry in the table of suspended tasks.
const UNLISTED: u32 = u32::MAX;

/// Fields of any task that the worker needs.
pub(crate) struct TaskHeader {
    pub(super) state: TaskState,
    kind: &'static TaskVtable,
    injector: &'static Injector,
    /// The finish that counts the task; constant.
    pub(crate) scope: Scope,
    /// Location at which the program started the task; constant.
    pub(crate) site: SiteNumber,
    /// Its entry in the place's table of suspended tasks; only the owner reads and writes it.
    listed: Cell<u32>,
}

/// Polls the future of a cell; see `poll_future`.
type PollFn = unsafe fn(NonNull<TaskHeader>, &mut Context<'_>) -> Poll<Result<(), Error>>;

// A header and a future of three words fill one cache line, as a task does that only counts: a million waiting tasks
// take half the memory and half the time of two lines each.
#[cfg(not(loom))]
const _: () = assert!(size_of::<TaskHeader>() == 40);

/// Properties that depend on the type of the future, and on the priority.
struct TaskVtable {
    poll: PollFn,
    drop_future: unsafe fn(NonNull<TaskHeader>),
    /// Layout of the whole cell.
    layout: Layout,
    priority: Priority,
}

impl TaskVtable {
    const fn of<F: Future<Output = Result<(), Error>>>(priority: Priority) -> TaskVtable {
        TaskVtable {
            poll: poll_future::<F>,
            drop_future: drop_future::<F>,
            layout: Layout::new::<TaskCell<F>>(),
            priority,
        }
    }
}

impl TaskHeader {
    /// Returns the priority of the task; constant.
    #[inline]
    pub(crate) fn priority(&self) -> Priority {
        self.kind.priority
    }
}

#[repr(C)]
struct TaskCell<F> {
    header: TaskHeader,
    future: ManuallyDrop<F>,
}

/// The place's own reference to a task that has not ended, or is in a queue.
///
/// A value proves that the memory is alive. Dropping it frees nothing: [`TaskRef::conclude`], or the task's queue,
/// releases a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskRef(NonNull<TaskHeader>);

// NEED: a foreign thread's waker hands the task to the injector of its place.
// SOUND: other threads touch only `state`, `injector` and `free`, never the future or the cells.
unsafe impl Send for TaskRef {}

/// Outcome of a poll.
pub(crate) enum PollOutcome {
    /// The task waits to be woken.
    Suspended,
    /// The task was woken meanwhile: queue it again.
    Again,
    /// The task has ended with this result; the reference is gone.
    Over(Result<(), Error>),
}

impl TaskRef {
    /// Makes a task of `future` for the calling thread's place, in the state "queued": the caller queues it.
    ///
    /// # Safety
    /// The future must stay valid until it is dropped, which happens at the latest when its place ends: what
    /// it borrows must outlive that (`'static`, or captures that own everything).
    pub(crate) unsafe fn new<F: Future<Output = Result<(), Error>>>(
        future: F,
        scope: Scope,
        site: &'static SiteCell,
        priority: Priority,
        injector: &'static Injector,
        pool: &Pool,
    ) -> TaskRef {
        let kind = match priority {
            Priority::Normal => const { &TaskVtable::of::<F>(Priority::Normal) },
            Priority::High => const { &TaskVtable::of::<F>(Priority::High) },
            Priority::Low => const { &TaskVtable::of::<F>(Priority::Low) },
        };
        let (state, listed) = (TaskState::scheduled(), Cell::new(UNLISTED));
        let header = TaskHeader { state, kind, injector, scope, site: site.number(), listed };
        let cell = pool.take(const { Layout::new::<TaskCell<F>>() }).cast::<TaskCell<F>>();
        // NEED: the memory of a cell is uninitialised.
        // SOUND: it has the layout of the cell, and is ours.
        unsafe { cell.write(TaskCell { header, future: ManuallyDrop::new(future) }) };
        TaskRef(cell.cast())
    }

    /// Returns the header of the task, which the worker needs.
    pub(crate) fn header(&self) -> &TaskHeader {
        // NEED: the header stands behind an erased pointer.
        // SOUND: the place's reference keeps the memory alive.
        unsafe { self.0.as_ref() }
    }

    /// Polls a task taken from a queue; `None` if it had ended already and is now released.
    ///
    /// # Safety
    /// `pool` is that of the task's place, whose thread calls.
    #[inline]
    pub(crate) unsafe fn run(self, pool: &Pool) -> Option<PollOutcome> {
        if !self.header().state.start() {
            self.release();
            return None;
        }
        // NEED: a waker over our own reference count.
        // SOUND: the reference of the place outlives the poll, and the waker is not dropped.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(self.0)) });
        let mut context = Context::from_waker(&waker);
        // NEED: the type of the future is erased.
        // SOUND: `poll` is the function for this cell's type; the state is RUNNING, so the future is alive and
        // nobody else touches it.
        match unsafe { (self.header().kind.poll)(self.0, &mut context) } {
            Poll::Ready(result) => {
                if self.header().state.conclude_last() {
                    // NEED: the memory goes back by hand.
                    // SOUND: the future is dropped and the reference is the last; the rest by the contract.
                    unsafe { self.free_to(pool) };
                }
                Some(PollOutcome::Over(result))
            }
            Poll::Pending => Some(match self.header().state.suspend() {
                AfterPoll::Again => PollOutcome::Again,
                AfterPoll::Suspended => PollOutcome::Suspended,
            }),
        }
    }

    /// Drops the future of a task that is not running.
    pub(crate) fn conclude(self) {
        // NEED: the type of the future is erased.
        // SOUND: the task is not over (it is listed or queued) and does not run; this is its owner.
        unsafe { (self.header().kind.drop_future)(self.0) };
        if !self.header().state.conclude() {
            self.release();
        }
    }

    /// Queues the task, unless it is queued already; a running task is queued after its poll.
    pub(crate) fn wake(self) {
        wake(self.0);
    }

    /// Returns `true` if the future is dropped.
    pub(crate) fn is_over(self) -> bool {
        self.header().state.is_over()
    }

    /// Returns its entry in the table of suspended tasks.
    pub(crate) fn listed(&self) -> Option<usize> {
        let listed = self.header().listed.get();
        (listed != UNLISTED).then_some(listed as usize)
    }

    /// Sets its entry in the table of suspended tasks.
    pub(crate) fn list(&self, entry: Option<usize>) {
        self.header().listed.set(entry.map_or(UNLISTED, |entry| entry as u32));
    }

    /// Returns the memory to the pool of the task's place.
    ///
    /// # Safety
    /// As for `run`, the future is dropped, and there is no reference any more.
    #[inline]
    unsafe fn free_to(self, pool: &Pool) {
        let layout = self.header().kind.layout;
        // NEED: the memory goes back by hand.
        // SOUND: by the contract.
        unsafe { pool.free(self.0.cast(), layout) };
    }

    /// Drops the place's reference to a task that has ended and was to be queued.
    pub(super) fn drop_reference(self) {
        debug_assert!(self.is_over());
        self.release();
    }

    fn release(self) {
        if self.header().state.release() {
            // NEED: the memory goes back by hand.
            // SOUND: this was the last reference, and the future is dropped (the place's reference goes only then).
            unsafe { self.free() };
        }
    }

    /// Returns the memory, on any thread.
    ///
    /// # Safety
    /// The future is dropped, and there is no reference any more.
    unsafe fn free(self) {
        let (injector, layout) = (self.header().injector, self.header().kind.layout);
        // NEED: the memory goes back by hand.
        // SOUND: by the contract.
        unsafe { injector.free(self.0.cast(), layout) };
    }
}

/// The part of a waker that needs the injector of the task's place.
fn wake(task: NonNull<TaskHeader>) {
    // NEED: wakers hold erased pointers.
    // SOUND: the waker that calls holds a reference, or the place does.
    let header = unsafe { task.as_ref() };
    if header.state.wake() {
        header.injector.schedule(TaskRef(task), header.priority());
    }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| {
        let task = header_of(data);
        // NEED: as in `wake`.
        // SOUND: as in `wake`.
        unsafe { task.as_ref() }.state.retain();
        raw_waker(task)
    },
    |data| {
        wake(header_of(data));
        TaskRef(header_of(data)).release();
    },
    |data| wake(header_of(data)),
    |data| TaskRef(header_of(data)).release(),
);

fn raw_waker(task: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

fn header_of(data: *const ()) -> NonNull<TaskHeader> {
    // NEED: `RawWaker` takes a plain pointer.
    // SOUND: it was made from a `NonNull` by `raw_waker`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// # Safety
/// `task` is a cell of `F` whose future is alive, and the caller is its owner in the state RUNNING.
unsafe fn poll_future<F: Future<Output = Result<(), Error>>>(
    task: NonNull<TaskHeader>,
    context: &mut Context<'_>,
) -> Poll<Result<(), Error>> {
    // NEED: back from the erased pointer to the cell.
    // SOUND: by the contract; the future is pinned because a cell never moves.
    let future = unsafe { &mut (*task.as_ptr().cast::<TaskCell<F>>()).future };
    let pinned = unsafe { Pin::new_unchecked(&mut **future) };
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pinned.poll(context)));
    let result = match polled {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(result)) => result,
        Err(payload) => Err(Error::panicked(payload)),
    };
    // NEED: the future is dropped by hand, before its memory goes.
    // SOUND: the future has returned or panicked; it is dropped here once and never polled again.
    let dropped =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unsafe { ManuallyDrop::drop(future) }));
    Poll::Ready(result.and(dropped.map_err(Error::panicked)))
}

/// # Safety
/// `task` is a cell of `F` whose future is alive and not being polled, and the caller is its owner.
unsafe fn drop_future<F>(task: NonNull<TaskHeader>) {
    // NEED: back from the erased pointer to the cell.
    // SOUND: by the contract.
    let future = unsafe { &mut (*task.as_ptr().cast::<TaskCell<F>>()).future };
    // NEED: the future is dropped by hand, before its memory goes.
    // SOUND: by the contract; it is dropped here once and never polled again.
    let drop_it = || unsafe { ManuallyDrop::drop(future) };
    // Nothing waits for the destructor of a cancelled task, so its panic has no receiver.
    if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(drop_it)) {
        panic::discard(payload);
    }
}
