//! The way back into a place for a task that is woken.
//!
//! On the place's own thread, while the place is entered, a woken task goes straight into the ready queue; from any
//! other thread it goes into a locked list, and the place's wait is ended.
//!
//! Wakers may outlive their place, so an injector is never freed; but once its place has ended and none of that place's
//! tasks has memory any more, it serves the next place of the process. What wakes the place goes when the place ends.

use super::cell::{Priority, TaskRef};
use super::pool::{self, Pool};
use super::sync::{AtomicBool, Mutex, Ordering, dealloc};
use crate::local::Local;
use isles_transport::Unpark;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// Way back into a place for a task that is woken.
pub(crate) struct Injector {
    /// The way to the place; `None` once it has ended.
    inbox: Mutex<Option<Inbox>>,
    /// True if there may be something to take: lets the owner look without the lock.
    filled: AtomicBool,
    /// Memory of tasks whose last waker was dropped by another thread; left to the pool of the place.
    returned: Mutex<Returned>,
}

/// State other threads need to bring a task back.
struct Inbox {
    /// Tasks that they have woken.
    tasks: Vec<TaskRef>,
    unpark: Arc<dyn Unpark>,
}

/// Cells other threads have given back.
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

/// The memory of a place's tasks, and their way back; made and dropped on the place's thread.
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
        // A place that did not close has tasks, and an injector that lets more in.
        if self.injector.is_closed() && self.pool.live() == 0 {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.injector);
        }
    }
}

impl Injector {
    /// A new injector for the place that `unpark` wakes.
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
            // The place has ended, and with it the task; as it was marked before that, its place has left the
            // reference to the queue that it was to come to.
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

    /// Gives the memory of a task back.
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
        // It may come after the end of the place, and then says to the next one that there might be something.
        // PAIR injector.filled: publish
        self.filled.store(true, Ordering::Release);
    }

    /// Takes what other threads have woken, and the memory that they gave back.
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

    /// Ends the list, for the end of the place: lets the tasks in it go, those that come too late, and what wakes the
    /// place.
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

    /// Gives to the pool what other threads have left for it.
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
