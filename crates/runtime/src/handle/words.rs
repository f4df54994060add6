//! The shared words of a place, which counters use.

/// Table of the shared words of this place that are in use.
#[derive(Default)]
pub(crate) struct WordTable {
    next: u32,
    free: Vec<u32>,
}

impl WordTable {
    /// Takes a free word of `words`; `None` if all are in use.
    pub(super) fn take(&mut self, words: u32) -> Option<u32> {
        if let Some(word) = self.free.pop() {
            return Some(word);
        }
        let word = self.next;
        (word < words).then(|| self.next += 1).map(|()| word)
    }

    /// Frees a word.
    pub(super) fn give_back(&mut self, word: u32) {
        self.free.push(word);
    }
}
