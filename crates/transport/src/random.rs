//! A small seeded generator of random numbers.
//!
//! Tests and simulated worlds need numbers that are the same on every machine and with every version of
//! every library; so the generator lives here and depends on nothing. It is not for secrets.
//! Invariant: the sequence of a seed never changes, because kept failures are replayed by their seed.

use std::ops::RangeInclusive;

/// xoshiro256**, seeded by SplitMix64.
///
/// Both after D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47
/// (2021), and their public-domain reference code at <https://prng.di.unimi.it/>.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of `seed`; every seed is good, 0 too.
    pub fn new(seed: u64) -> Random {
        let mut counter = seed;
        Random { state: std::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let bits = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        bits
    }

    /// A number of `0 .. bound`, each equally likely; `bound` must not be 0.
    ///
    /// After D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            // Most are above the bound, and then it needs no division to see that they are fair.
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number of `range`, both ends included; the range must not be empty.
    pub fn within(&mut self, range: &RangeInclusive<u64>) -> u64 {
        assert!(!range.is_empty(), "the range {range:?} is empty");
        match (range.end() - range.start()).checked_add(1) {
            Some(width) => range.start() + self.below(width),
            None => self.bits(),
        }
    }

    /// True in `percent` of 100 draws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// An index into something of `len` entries; `len` must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Overwrites `bytes` with random ones.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
    }
}

/// Moves the SplitMix64 `counter` on and returns its next output.
fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    scramble(*counter)
}

/// The output function of SplitMix64: a one-to-one mix of 64 bits in which each input bit reaches all others.
pub fn scramble(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_sequence() {
        let mut counter = 1_234_567;
        let outputs: Vec<u64> = (0..3).map(|_| split_mix(&mut counter)).collect();
        assert_eq!(
            outputs,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn xoshiro_gives_the_sequence_of_the_reference_code() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let outputs: Vec<u64> = (0..5).map(|_| random.bits()).collect();
        assert_eq!(outputs, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240, 1_216_172_134_540_287_360]);
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.within(&(3..=9))).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&9));
        assert_eq!(random.within(&(5..=5)), 5);
        random.within(&(0..=u64::MAX));
    }

    #[test]
    fn every_byte_of_an_odd_length_is_filled() {
        let mut random = Random::new(1);
        let mut seen = [0_u8; 13];
        for _ in 0..64 {
            let mut bytes = [0_u8; 13];
            random.fill(&mut bytes);
            seen.iter_mut().zip(bytes).for_each(|(all, byte)| *all |= byte);
        }
        assert_eq!(seen, [255; 13]);
    }
}
