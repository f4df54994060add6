//! The way back into a place for a task that is woken.
//!
//! On the place's own thread, while the place is entered, a woken task goes straight into the ready queue; from any
//! other thread it goes into a locked list, and the place's wait is ended. An injector is never freed: wakers may
//! outlive their place. It is small, and there is one for each place that ever was in the process.

use super::cell::{Priority, TaskRef};
use super::pool::{self, Pool};
use super::sync::{AtomicBool, Mutex, Ordering, dealloc};
use crate::local::Local;
use isles_transport::Unpark;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// See the file header.
pub(crate) struct Injector {
    /// Tasks woken by other threads; `None` once the place has ended.
    tasks: Mutex<Option<Vec<TaskRef>>>,
    /// Whether `tasks` may hold something: lets the owner look without the lock.
    filled: AtomicBool,
    /// Memory of tasks whose last waker was dropped by another thread; left to the pool of the place.
    returned: Mutex<Vec<Returned>>,
    unpark: Arc<dyn Unpark>,
}

/// A cell on its way back to its pool.
struct Returned(NonNull<u8>);

// NEED: the address goes to the thread of the pool.
// SOUND: nothing uses the cell any more.
unsafe impl Send for Returned {}

impl Injector {
    /// An injector for the place that `unpark` wakes.
    pub(crate) fn leak(unpark: Arc<dyn Unpark>) -> &'static Injector {
        Box::leak(Box::new(Injector {
            tasks: Mutex::new(Some(Vec::new())),
            filled: AtomicBool::new(false),
            returned: Mutex::default(),
            unpark,
        }))
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
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(list) = tasks.as_mut() else {
            // The place has ended, and with it the task; as it was marked before that, its place has left the
            // reference to the queue that it was to come to.
            drop(tasks);
            return task.let_go();
        };
        list.push(task);
        // PAIR injector.filled: publish
        self.filled.store(true, Ordering::Release);
        drop(tasks);
        self.unpark.unpark();
    }

    /// Gives the memory of a task back.
    ///
    /// # Safety
    /// The memory is that of a task of this injector's place, of this layout, and nothing uses it any more.
    pub(super) unsafe fn free(&'static self, cell: NonNull<u8>, layout: Layout) {
        if !pool::fits(layout) {
            // NEED: memory that was allocated by hand.
            // SOUND: by the contract; large cells come from the general allocator.
            return unsafe { dealloc(cell.as_ptr(), layout) };
        }
        let freed = Local::try_with(|local| {
            let ours = std::ptr::eq(local.injector(), self);
            if ours {
                // NEED: the pool takes raw memory.
                // SOUND: by the contract; the place is entered on its own thread.
                unsafe { local.pool().give_back(cell) };
            }
            ours
        });
        if freed != Some(true) {
            self.returned.lock().unwrap_or_else(PoisonError::into_inner).push(Returned(cell));
            // PAIR injector.filled: publish
            self.filled.store(true, Ordering::Release);
        }
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
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        self.filled.store(false, Ordering::Relaxed); // Relaxed is enough: the lock orders it.
        // NEED: the pool takes raw memory.
        // SOUND: by the contract.
        unsafe { self.take_back(pool) };
        tasks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the list, for the end of the place: lets the tasks in it go, and those that come too late.
    ///
    /// # Safety
    /// As for `take`; and every task of the place is over.
    pub(crate) unsafe fn close(&self, pool: &Pool) {
        let left = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        left.into_iter().flatten().for_each(TaskRef::let_go);
        // NEED: the pool takes raw memory.
        // SOUND: by the contract.
        unsafe { self.take_back(pool) };
    }

    /// Gives to the pool what other threads have left for it.
    ///
    /// # Safety
    /// As for `take`.
    unsafe fn take_back(&self, pool: &Pool) {
        for Returned(cell) in self.returned.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // NEED: the pool takes raw memory.
            // SOUND: `free` put it here, and the rest is by the contract.
            unsafe { pool.give_back(cell) };
        }
    }
}
