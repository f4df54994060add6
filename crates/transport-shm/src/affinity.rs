//! Which processors there are, and moving a thread to one.
//!
//! A thread is moved and left free to go elsewhere: what it starts inherits the processors that the program was
//! given. The set is taken when the segment is created. It decides no policy ([`crate::pinning`] does).

use crate::layout::PROCESSORS_MAX;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may use, in order; never empty.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    let limit = PROCESSORS_MAX.min(CpuSet::MAX_CPU);
    (0..limit).filter(|processor| set.is_set(*processor)).collect()
}

/// Binds the calling thread to one processor; `false` if the system refused.
fn bind(processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).is_ok()
}

/// Moves the calling thread to one processor and leaves it free to go elsewhere.
pub(crate) fn start_on(processor: usize) {
    // Refused, or bound and never freed: it runs in either case.
    if let Ok(free) = sched_getaffinity(None)
        && bind(processor)
    {
        let _ = sched_setaffinity(None, &free);
    }
}

/// The set as bits, for the header of a segment.
pub(crate) fn encode(processors: &[usize]) -> [u8; PROCESSORS_MAX / 8] {
    let mut bits = [0; PROCESSORS_MAX / 8];
    for processor in processors {
        bits[processor / 8] |= 1 << (processor % 8);
    }
    bits
}

/// The processors behind the bits.
pub(crate) fn decode(bits: &[u8; PROCESSORS_MAX / 8]) -> Vec<usize> {
    (0..PROCESSORS_MAX).filter(|processor| bits[processor / 8] >> (processor % 8) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_somewhere_may_leave_it() {
        let before = allowed();
        start_on(*before.last().unwrap());
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_set_of_processors_comes_back_from_its_bits() {
        let set = vec![0, 1, 7, 8, 63, 64, 1023];
        assert_eq!(decode(&encode(&set)), set);
    }
}
