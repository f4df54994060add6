//! The hasher of the tables that are on the way of each message.
//!
//! Their keys are numbers that places and parts get in turn: no adversary chooses them, so the cost of the standard
//! hasher, which is made against one, buys nothing.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds the hasher of a table whose keys are a few numbers.
pub(crate) type NumberHasherBuilder = BuildHasherDefault<NumberHasher>;

/// Hashes numbers of 32 and 64 bits.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    /// Multiplies by 2^64 over the golden ratio, whose high bits come to where the table looks (Knuth, volume 3, 6.4).
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
