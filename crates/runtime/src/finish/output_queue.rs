//! Outputs of a protocol machine, carried out in order.
//!
//! A send may wait for room, and waiting delivers messages, which feed the machine again. Its new outputs must follow
//! those it made before: the machines of finishes and of phasers rely on the order of their messages. So outputs go
//! through one queue, and the caller that added the first carries all of them out. It knows nothing about the machines.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The outputs of one machine that are not carried out yet.
pub struct OutputQueue<O> {
    waiting: RefCell<VecDeque<O>>,
    /// True while the outputs are being carried out.
    is_processing: Cell<bool>,
}

impl<O> Default for OutputQueue<O> {
    fn default() -> Self {
        OutputQueue { waiting: RefCell::default(), is_processing: Cell::new(false) }
    }
}

/// Marks that a caller carries outputs out; ends even if that unwinds.
struct ProcessingGuard<'a>(&'a Cell<bool>);

impl Drop for ProcessingGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<O> OutputQueue<O> {
    /// Carries out `outputs` with `execute`, after those that wait, or leaves them to a caller that does so already.
    /// Empties `outputs`.
    pub fn process(&self, outputs: &mut Vec<O>, mut execute: impl FnMut(O)) {
        if outputs.is_empty() {
            return;
        }
        if self.is_processing.replace(true) {
            return self.waiting.borrow_mut().extend(outputs.drain(..));
        }
        let _guard = ProcessingGuard(&self.is_processing);
        // A single output, the usual case, need not go through an empty queue.
        let is_single = outputs.len() == 1 && self.waiting.borrow().is_empty();
        match outputs.pop_if(|_| is_single) {
            Some(output) => execute(output),
            None => self.waiting.borrow_mut().extend(outputs.drain(..)),
        }
        while let Some(output) = self.next() {
            execute(output);
        }
    }

    fn next(&self) -> Option<O> {
        self.waiting.borrow_mut().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_outputs_are_carried_out_comes_after_them() {
        let (outputs, done) = (OutputQueue::default(), RefCell::new(Vec::new()));
        let execute = |number| {
            if number == 1 {
                outputs.process(&mut vec![3, 4], |_| unreachable!("the outer caller carries out"));
            }
            done.borrow_mut().push(number);
        };
        outputs.process(&mut vec![1, 2], execute);
        outputs.process(&mut vec![5], execute);
        assert_eq!(done.take(), [1, 2, 3, 4, 5]);
    }
}
