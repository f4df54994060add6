//! The tasks of a place that are ready to run, and those that wait.

use crate::task::{Priority, TaskRef};
use slab::Slab;
use std::collections::VecDeque;

/// Ready tasks, most urgent first, in order of arrival within one priority.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    high: VecDeque<TaskRef>,
    normal: VecDeque<TaskRef>,
    low: VecDeque<TaskRef>,
    /// Number of normal-priority tasks taken out so far.
    begun: u64,
}

impl ReadyQueue {
    #[inline]
    pub(crate) fn push(&mut self, task: TaskRef, priority: Priority) {
        match priority {
            Priority::Normal => self.normal.push_back(task),
            Priority::High => self.high.push_back(task),
            Priority::Low => self.low.push_back(task),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<TaskRef> {
        if !self.high.is_empty() {
            return self.high.pop_front();
        }
        let task = self.normal.pop_front();
        if task.is_none() {
            return self.low.pop_front();
        }
        self.begun += 1;
        task
    }

    /// Returns the number of normal-priority tasks queued so far, and of those that have begun.
    #[inline]
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.begun + self.normal.len() as u64, self.begun)
    }

    pub(crate) fn len(&self) -> usize {
        self.high.len() + self.normal.len() + self.low.len()
    }
}

/// Every task that has returned `Pending` at least once and has not ended.
///
/// A task that ends at its first poll is never added.
#[derive(Default)]
pub(crate) struct SuspendedTasks(Slab<TaskRef>);

impl SuspendedTasks {
    /// Adds a suspended task.
    pub(crate) fn insert(&mut self, task: TaskRef) {
        if task.listed().is_none() {
            task.list(Some(self.0.insert(task)));
        }
    }

    /// Removes the task with entry `listed`, which has ended.
    pub(crate) fn remove(&mut self, listed: usize) {
        self.0.remove(listed);
    }

    /// Returns the number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all of them, in no order.
    pub(crate) fn list(&self) -> Vec<TaskRef> {
        self.0.iter().map(|(_, task)| *task).collect()
    }
}
