//! A group of words under a sequence number, read as of one moment (a seqlock).
//!
//! The first word is the sequence number, which is odd during a write. The writer never waits; a reader that finds the
//! number odd or changed has read a mixture and tries again. Boehm, *Can seqlocks get along with programming language
//! memory models?* (MSPC 2012), figure 4 (writer) and section 4 (reader with fences). Invariant: each group has one
//! writer. A reader of the product has no mapping and orders its reads by system calls; [`read`] is for owned memory.

use crate::page::sync::{AtomicU64, Ordering, fence};

/// Stores `values` behind the sequence number `group[0]`. The group is one word longer than `values`.
///
/// # Panics
/// If the group has another length.
pub(crate) fn write(group: &[AtomicU64], values: &[u64]) {
    assert_eq!(group.len(), values.len() + 1, "a group of another length");
    let (sequence, words) = (&group[0], &group[1..]);
    // Relaxed: this is the only writer. An odd number left by a dead writer is skipped.
    let odd = sequence.load(Ordering::Relaxed) | 1;
    sequence.store(odd, Ordering::Relaxed);
    // PAIR group.begin: publish
    fence(Ordering::Release);
    for (word, value) in words.iter().zip(values) {
        // Relaxed: ordered by the fence before and the store after.
        word.store(*value, Ordering::Relaxed);
    }
    // PAIR group.end: publish
    sequence.store(odd.wrapping_add(1), Ordering::Release);
}

/// Reads the group into `values`. Returns `false` if a write was in progress; `values` is then a mixture.
#[cfg(any(test, loom))]
pub(crate) fn read(group: &[AtomicU64], values: &mut [u64]) -> bool {
    // PAIR group.end: observe
    let before = group[0].load(Ordering::Acquire);
    for (word, value) in group[1..].iter().zip(values) {
        // Relaxed: ordered by the load before and the fence after.
        *value = word.load(Ordering::Relaxed);
    }
    // PAIR group.begin: observe
    fence(Ordering::Acquire);
    // Relaxed: ordered by the fence.
    before.is_multiple_of(2) && group[0].load(Ordering::Relaxed) == before
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_as_it_was_written_and_not_while_it_is_written() {
        let group: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        write(&group, &[1, 2, 3]);
        let mut values = [0; 3];
        assert!(read(&group, &mut values));
        assert_eq!(values, [1, 2, 3]);
        group[0].store(3, Ordering::Relaxed);
        assert!(!read(&group, &mut values), "its writer died in the middle");
        write(&group, &[4, 5, 6]);
        assert!(read(&group, &mut values));
        assert_eq!((values, group[0].load(Ordering::Relaxed)), ([4, 5, 6], 4));
    }
}
