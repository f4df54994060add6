//! The way back into its place for a woken task.
//!
//! On the place's own thread, while the place is entered, a woken task goes straight into the ready queue; from any
//! other thread it goes into a locked list, and the place's wait ends.
//!
//! Wakers may outlive their place, so an injector is never freed; but once its place has ended and none of that place's
//! tasks has memory any more, it serves the next place of the process. The unparker is dropped when the place ends.

use super::cell::{Priority, TaskRef};
use super::pool::{self, Pool};
use super::sync::{AtomicBool, Mutex, Ordering, dealloc};
use crate::local::Local;
use isles_transport::Unpark;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// The way back into its place for a woken task.
pub(crate) struct Injector {
    /// The list of woken tasks, and the unparker; `None` once the place has ended.
    inbox: Mutex<Option<Inbox>>,
    /// True if there may be something to take: lets the owner check without the lock.
    filled: AtomicBool,
    /// Memory of tasks whose last waker another thread dropped; for the pool of the place.
    returned: Mutex<Returned>,
}

/// State that other threads need to bring a task back.
struct Inbox {
    /// The tasks that they have woken.
    tasks: Vec<TaskRef>,
    unpark: Arc<dyn Unpark>,
}

/// Cells that other threads have returned.
#[derive(Default)]
struct Returned {
    cells: Vec<ReturnedCell>,
    /// Number of cells that were too large for the pool, and are freed.
    large: usize,
}

/// A cell on its way back to its pool.
struct ReturnedCell(NonNull<u8>);

// NEED: the address goes to the thread of the pool.
// SOUND: nothing uses the cell any more.
unsafe impl Send for ReturnedCell {}

/// Injectors whose places have ended, and that nothing refers to.
static IDLE: std::sync::Mutex<Vec<&'static Injector>> = std::sync::Mutex::new(Vec::new());

/// The memory of a place's tasks, and their injector; made and dropped on the place's thread.
pub(crate) struct TaskMemory {
    pub(crate) injector: &'static Injector,
    pub(crate) pool: Pool,
}

impl TaskMemory {
    /// Makes the memory for the place that `unpark` wakes, with an injector whose place has ended, or a new one.
    pub(crate) fn new(unpark: Arc<dyn Unpark>) -> TaskMemory {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let injector = match idle {
            Some(injector) => {
                injector.open(unpark);
                injector
            }
            None => Injector::leak(unpark),
        };
        TaskMemory { injector, pool: Pool::default() }
    }
}

impl Drop for TaskMemory {
    fn drop(&mut self) {
        // NEED: other threads leave memory for the pool.
        // SOUND: the pool is the injector's, and this is its thread.
        unsafe { self.injector.take_back(&self.pool) };
        // A place that did not close has tasks, and an injector that still accepts some.
        if self.injector.is_closed() && self.pool.live() == 0 {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.injector);
        }
    }
}

impl Injector {
    /// Makes a new injector for the place that `unpark` wakes.
    pub(super) fn leak(unpark: Arc<dyn Unpark>) -> &'static Injector {
        let injector =
            Injector { inbox: Mutex::new(None), filled: AtomicBool::new(false), returned: Mutex::default() };
        let injector = Box::leak(Box::new(injector));
        injector.open(unpark);
        injector
    }

    fn open(&self, unpark: Arc<dyn Unpark>) {
        let inbox = Inbox { tasks: Vec::new(), unpark };
        *self.inbox.lock().unwrap_or_else(PoisonError::into_inner) = Some(inbox);
    }

    fn is_closed(&self) -> bool {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Queues a task that was just woken.
    pub(super) fn schedule(&'static self, task: TaskRef, priority: Priority) {
        let queued = Local::try_with(|local| {
            let ours = std::ptr::eq(local.injector(), self);
            if ours {
                local.ready(task, priority);
            }
            ours
        });
        if queued != Some(true) {
            self.inject(task);
        }
    }

    fn inject(&self, task: TaskRef) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = inbox.as_mut() else {
            // The place has ended, and the task with it. The task was marked as woken before, so its place has left the
            // reference to the queue.
            drop(inbox);
            return task.drop_reference();
        };
        open.tasks.push(task);
        let unpark = Arc::clone(&open.unpark);
        // PAIR injector.filled: publish
        self.filled.store(true, Ordering::Release);
        drop(inbox);
        unpark.unpark();
    }

    /// Returns the memory of a task.
    ///
    /// # Safety
    /// The memory is that of a task of this injector's place, of this layout, and nothing uses it any more.
    pub(super) unsafe fn free(&'static self, cell: NonNull<u8>, layout: Layout) {
        let freed = Local::try_with(|local| {
            let ours = std::ptr::eq(local.injector(), self);
            if ours {
                // NEED: the pool takes raw memory.
                // SOUND: by the contract; the place is entered on its own thread.
                unsafe { local.pool().free(cell, layout) };
            }
            ours
        });
        if freed == Some(true) {
            return;
        }
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        if pool::fits(layout) {
            returned.cells.push(ReturnedCell(cell));
        } else {
            // NEED: memory that was allocated by hand.
            // SOUND: by the contract; large cells come from the general allocator.
            unsafe { dealloc(cell.as_ptr(), layout) };
            returned.large += 1;
        }
        drop(returned);
        // It may come after the end of the place; the next place then finds that there may be something.
        // PAIR injector.filled: publish
        self.filled.store(true, Ordering::Release);
    }

    /// Takes the tasks that other threads have woken, and the memory that they returned.
    ///
    /// # Safety
    /// `pool` is that of the injector's place, whose thread calls.
    pub(crate) unsafe fn take(&self, pool: &Pool) -> Vec<TaskRef> {
        // PAIR injector.filled: observe
        if !self.filled.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        self.filled.store(false, Ordering::Relaxed); // Relaxed is enough: the lock orders it.
        // NEED: the pool takes raw memory.
        // SOUND: by the contract.
        unsafe { self.take_back(pool) };
        inbox.as_mut().map(|inbox| std::mem::take(&mut inbox.tasks)).unwrap_or_default()
    }

    /// Closes the list at the end of the place: releases the tasks in it, those that come later, and the unparker.
    ///
    /// # Safety
    /// As for `take`; and every task of the place is over.
    pub(crate) unsafe fn close(&self, pool: &Pool) {
        let left = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        left.into_iter().flat_map(|inbox| inbox.tasks).for_each(TaskRef::drop_reference);
        // NEED: the pool takes raw memory.
        // SOUND: by the contract.
        unsafe { self.take_back(pool) };
    }

    /// Gives the pool the memory that other threads returned.
    ///
    /// # Safety
    /// As for `take`.
    unsafe fn take_back(&self, pool: &Pool) {
        let returned = std::mem::take(&mut *self.returned.lock().unwrap_or_else(PoisonError::into_inner));
        pool.note_freed(returned.large);
        for ReturnedCell(cell) in returned.cells {
            // NEED: the pool takes raw memory.
            // SOUND: `free` put it here, and the rest is by the contract.
            unsafe { pool.give_back(cell) };
        }
    }
}
