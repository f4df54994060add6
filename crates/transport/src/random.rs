//! A small seeded generator of random numbers, for programs too.
//!
//! Programs, tests and simulated worlds need the same numbers on every machine and with every version of every library,
//! so the generator is here and has no dependencies. It is not cryptographically secure. Invariant: the sequence of a
//! seed or a stream never changes, because recorded failures and published results are repeated by their seeds.

use std::ops::RangeInclusive;

/// A generator of random numbers: xoshiro256**, seeded by SplitMix64.
///
/// The generator is by D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021),
/// the seeding by G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators", OOPSLA (2014), both
/// after the public-domain reference code at <https://prng.di.unimi.it/>. The numbers depend on the seed and the stream
/// only. They are not cryptographically secure.
///
/// A generator cannot be sent to another place, because both copies would return the same numbers. Create one where it
/// is needed, by [`Random::stream`].
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Creates the generator of `seed`; every seed is good, including 0.
    pub fn new(seed: u64) -> Random {
        let mut counter = seed;
        Random { state: std::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// Creates the generator of one of the 2⁶⁴ streams of `seed`, for example one for each item of work.
    ///
    /// The seed of the stream is the output function of SplitMix64, applied to the sum of the first SplitMix64 output
    /// of `seed` and `stream`. That function is one-to-one, so no two streams of a seed begin alike. The chance that
    /// any two of n streams overlap within L numbers each is about n² L / 2²⁵⁶.
    pub fn stream(seed: u64, stream: u64) -> Random {
        let mut counter = seed;
        Random::new(scramble(split_mix(&mut counter).wrapping_add(stream)))
    }

    /// Returns the next 64 random bits.
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

    /// Returns a number from 0 to below 1: one of the 2⁵³ multiples of 2⁻⁵³, each equally likely.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number of `0 .. bound`, each equally likely; `bound` must not be 0.
    ///
    /// After D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            // Most low halves are above the bound and therefore fair without a division.
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a number of `range`, both ends included; the range must not be empty.
    pub fn within(&mut self, range: &RangeInclusive<u64>) -> u64 {
        assert!(!range.is_empty(), "the range {range:?} is empty");
        match (range.end() - range.start()).checked_add(1) {
            Some(width) => range.start() + self.below(width),
            None => self.bits(),
        }
    }

    /// Returns `true` in `percent` of 100 draws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns an index into a sequence of `len` entries; `len` must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Overwrites `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
    }
}

/// Advances the SplitMix64 `counter` and returns its next output.
fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    scramble(*counter)
}

/// Applies the output function of SplitMix64: a one-to-one mix of 64 bits in which each input bit affects all output
/// bits.
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

    /// The figures are from an independent Python program after the same reference code.
    #[test]
    fn a_stream_has_the_numbers_that_its_definition_gives() {
        for (seed, stream, expected) in [
            (0, 0, [3_511_563_966_469_552_396, 1_630_724_456_284_939_571, 16_421_453_466_650_696_744]),
            (0, 1, [12_808_541_522_913_893_084, 70_563_601_368_932_264, 17_183_687_349_849_785_022]),
            (42, 7, [17_854_260_268_781_168_342, 13_802_981_482_967_654_971, 14_240_964_081_725_561_958]),
            (
                u64::MAX,
                u64::MAX,
                [4_307_259_719_911_048_251, 16_892_809_208_441_706_825, 15_687_288_783_682_397_546],
            ),
        ] {
            let mut random = Random::stream(seed, stream);
            assert_eq!([(); 3].map(|()| random.bits()), expected, "seed {seed}, stream {stream}");
        }
        let mut random = Random::stream(42, 7);
        assert_eq!([random.unit(), random.unit()], [0.967_881_388_576_708_4, 0.748_261_125_530_536]);
    }

    #[test]
    fn neighbouring_streams_have_nothing_in_common() {
        const STREAMS: u64 = 10_000;
        // A fair sequence of this number of bits is at most five standard deviations from half.
        let is_fair =
            |ones: u64, bits: u64| (ones as f64 - bits as f64 / 2.0).abs() < 2.5 * (bits as f64).sqrt();
        for seed in [0, 1, u64::MAX] {
            let firsts: Vec<u64> = (0..STREAMS).map(|stream| Random::stream(seed, stream).bits()).collect();
            for bit in 0..64 {
                let ones = firsts.iter().filter(|first| *first >> bit & 1 == 1).count() as u64;
                assert!(is_fair(ones, STREAMS), "seed {seed}, bit {bit}: {ones}");
            }
            let differences = firsts.windows(2).map(|pair| u64::from((pair[0] ^ pair[1]).count_ones()));
            assert!(is_fair(differences.sum(), 64 * (STREAMS - 1)), "seed {seed}");
        }
    }

    #[test]
    fn a_unit_is_below_1_and_fair() {
        let mut random = Random::new(3);
        let units: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 5.0 * (1.0_f64 / 12.0 / 10_000.0).sqrt(), "{mean}");
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
