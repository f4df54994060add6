//! The run queue of a place: 256 lists, and a bitmap of those that are not empty.

use super::message::TaskId;
use std::collections::VecDeque;

/// Ready tasks, the most urgent first, in order of arrival within one priority; each at most once.
///
/// Finding the next one reads at most four words of the bitmap, however many tasks there are.
#[derive(Debug)]
pub struct RunQueue {
    bitmap: [u64; 4],
    lists: Vec<VecDeque<TaskId>>,
    /// The priority of each task that is in a list.
    queued: Vec<Option<u8>>,
}

impl RunQueue {
    /// Makes a queue of tasks with numbers below `tasks`.
    pub fn new(tasks: usize) -> RunQueue {
        RunQueue { bitmap: [0; 4], lists: vec![VecDeque::new(); 256], queued: vec![None; tasks] }
    }

    /// Adds a task behind those of its priority, unless it is present.
    #[inline]
    pub fn push(&mut self, task: TaskId, priority: u8) {
        if let Some(queued @ None) = self.queued.get_mut(task.0 as usize) {
            *queued = Some(priority);
            self.lists[usize::from(priority)].push_back(task);
            self.bitmap[usize::from(priority >> 6)] |= 1 << (priority & 63);
        }
    }

    /// Adds a task before those of its priority, unless it is present: one that yields to a more urgent one.
    pub fn push_front(&mut self, task: TaskId, priority: u8) {
        if let Some(queued @ None) = self.queued.get_mut(task.0 as usize) {
            *queued = Some(priority);
            self.lists[usize::from(priority)].push_front(task);
            self.bitmap[usize::from(priority >> 6)] |= 1 << (priority & 63);
        }
    }

    /// Returns the priority of the next task.
    #[inline]
    pub fn first(&self) -> Option<u8> {
        let word = self.bitmap.iter().position(|word| *word != 0)?;
        Some((word as u8) << 6 | self.bitmap[word].trailing_zeros() as u8)
    }

    /// Takes the next task.
    #[inline]
    pub fn pop(&mut self) -> Option<TaskId> {
        let priority = self.first()?;
        let list = &mut self.lists[usize::from(priority)];
        let task = list.pop_front()?;
        if list.is_empty() {
            self.bitmap[usize::from(priority >> 6)] &= !(1 << (priority & 63));
        }
        self.queued[task.0 as usize] = None;
        Some(task)
    }

    /// Moves a present task to another priority, behind those that have it.
    pub fn change_priority(&mut self, task: TaskId, priority: u8) {
        let Some(before) = self.queued.get(task.0 as usize).copied().flatten() else { return };
        let list = &mut self.lists[usize::from(before)];
        list.retain(|other| *other != task);
        if list.is_empty() {
            self.bitmap[usize::from(before >> 6)] &= !(1 << (before & 63));
        }
        self.queued[task.0 as usize] = None;
        self.push(task, priority);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_list_sorted_by_priority_and_arrival(
            steps in proptest::collection::vec((0..8_u32, any::<u8>(), 0..4_u8), 0..200)
        ) {
            let mut queue = RunQueue::new(8);
            // In the order of removal.
            let mut model: Vec<(u8, TaskId)> = Vec::new();
            for (task, priority, step) in steps {
                let task = TaskId(task);
                let at = model.iter().position(|(_, other)| *other == task);
                match (step, at) {
                    (0, None) => {
                        queue.push(task, priority);
                        let behind = model.partition_point(|(other, _)| *other <= priority);
                        model.insert(behind, (priority, task));
                    }
                    (1, None) => {
                        queue.push_front(task, priority);
                        let before = model.partition_point(|(other, _)| *other < priority);
                        model.insert(before, (priority, task));
                    }
                    (0 | 1, Some(_)) => queue.push(task, priority),
                    (2, at) => {
                        queue.change_priority(task, priority);
                        if let Some(at) = at {
                            model.remove(at);
                            let behind = model.partition_point(|(other, _)| *other <= priority);
                            model.insert(behind, (priority, task));
                        }
                    }
                    _ => {
                        prop_assert_eq!(queue.first(), model.first().map(|(priority, _)| *priority));
                        let expected = (!model.is_empty()).then(|| model.remove(0).1);
                        prop_assert_eq!(queue.pop(), expected);
                    }
                }
            }
        }
    }
}
