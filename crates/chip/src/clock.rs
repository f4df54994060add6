//! Clocks: cycles to picoseconds without drift.
//!
//! The cycle of some clocks is not a whole number of picoseconds (850 MHz: 1176.47). A [`Clock`] therefore carries the
//! remainder of each conversion over to the next, so that the total error of any number of conversions is below one
//! picosecond. It converts lengths and does not know the time.

use crate::quantity::{Cycles, PICOSECONDS_PER_SECOND, Picoseconds, Rate};

/// A clock of a chip, with the remaining fraction of a picosecond of its last conversion.
///
/// Two clocks of the same rate may differ in that fraction: keep one clock for each sum of lengths.
#[derive(Clone, Debug)]
pub struct Clock {
    rate: Rate,
    /// Remaining fraction, in picoseconds divided by the rate's hertz; always below the hertz.
    left: u64,
    /// Length of a cycle in picoseconds if that is a whole number, otherwise 0.
    period: u64,
}

impl Clock {
    /// Makes a clock without a remainder.
    pub const fn new(rate: Rate) -> Self {
        let period = match rate.period() {
            Some(period) => period.0,
            None => 0,
        };
        Self { rate, left: 0, period }
    }

    /// Returns the present rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Changes the rate from now on. Call [`Clock::advance`] for the time until then first; its remainder, less than a
    /// picosecond, is dropped.
    pub const fn set_rate(&mut self, rate: Rate) {
        *self = Self::new(rate);
    }

    /// Returns the length of the next `cycles` cycles; saturates.
    #[inline]
    pub fn advance(&mut self, cycles: Cycles) -> Picoseconds {
        if self.period != 0 {
            return Picoseconds(cycles.0.saturating_mul(self.period));
        }
        self.advance_uneven(cycles)
    }

    /// Returns the length of `cycles` cycles without a remainder from before; the new remainder is dropped.
    pub fn length(&self, cycles: Cycles) -> Picoseconds {
        Self { left: 0, ..*self }.advance(cycles)
    }

    /// Returns the number of cycles that start within the next `length`: the first at once, the last before its end.
    pub fn begun_within(&self, length: Picoseconds) -> Cycles {
        let (scale, hertz) = (u128::from(self.scale()), u128::from(self.rate.hertz()));
        // The first cycle n with n * scale + left >= length * hertz starts at or after the end of `length`.
        let needed = (u128::from(length.0) * hertz).saturating_sub(u128::from(self.left));
        Cycles(u64::try_from(needed.div_ceil(scale)).unwrap_or(u64::MAX))
    }

    /// Returns the length of a cycle, in picoseconds divided by the rate's hertz; below 2^56.
    fn scale(&self) -> u64 {
        PICOSECONDS_PER_SECOND * u64::from(self.rate.divider())
    }

    fn advance_uneven(&mut self, cycles: Cycles) -> Picoseconds {
        let (hertz, scale) = (self.rate.hertz(), self.scale());
        let length = cycles.0.checked_mul(scale).and_then(|length| length.checked_add(self.left));
        if let Some(length) = length {
            self.left = length % hertz;
            return Picoseconds(length / hertz);
        }
        let (length, hertz) =
            (u128::from(cycles.0) * u128::from(scale) + u128::from(self.left), u128::from(hertz));
        self.left = u64::try_from(length % hertz).unwrap_or_default(); // hertz fit into 64 bits, so this does
        Picoseconds(u64::try_from(length / hertz).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blue_gene() -> Rate {
        Rate::new(850_000_000, 1).unwrap()
    }

    #[test]
    fn a_second_of_single_cycles_is_a_second() {
        let rate = Rate::new(850_000, 1).unwrap();
        let mut clock = Clock::new(rate);
        let total: Picoseconds = (0..850_000).map(|_| clock.advance(Cycles(1))).sum();
        assert_eq!(total, Picoseconds(PICOSECONDS_PER_SECOND));
    }

    #[test]
    fn a_change_of_rate_drops_what_was_left_over() {
        let mut clock = Clock::new(blue_gene());
        assert_eq!(clock.advance(Cycles(1)), Picoseconds(1176));
        clock.set_rate(blue_gene());
        assert_eq!(clock.advance(Cycles(2)), Picoseconds(2352));
    }

    #[test]
    fn a_length_begins_at_the_edge_of_a_picosecond_and_leaves_the_clock_as_it_was() {
        let mut clock = Clock::new(blue_gene());
        clock.advance(Cycles(1));
        assert_eq!([1, 2, 17].map(|cycles| clock.length(Cycles(cycles)).0), [1_176, 2_352, 20_000]);
        assert_eq!(clock.advance(Cycles(2)), Picoseconds(2_353), "of three cycles 1,176 are past");
    }

    #[test]
    fn a_divided_clock_is_so_many_times_slower_where_its_cycle_is_no_whole_number_of_picoseconds() {
        let mut clock = Clock::new(Rate::new(850_000_000, 3).unwrap());
        assert_eq!(clock.advance(Cycles(17)), Picoseconds(60_000));
    }

    #[test]
    fn a_length_beyond_all_time_is_the_longest_and_no_accident() {
        let mut clock = Clock::new(Rate::new(1, Rate::DIVIDER_MAX).unwrap());
        assert_eq!(clock.advance(Cycles(u64::MAX)), Picoseconds(u64::MAX));
    }

    #[test]
    fn a_rate_of_whole_periods_counts_the_cycles_that_begin() {
        let clock = Clock::new(Rate::new(1_600_000_000, 2).unwrap());
        let begun = |length| clock.begun_within(Picoseconds(length)).0;
        assert_eq!([0, 1, 1_249, 1_250, 1_251].map(begun), [0, 1, 1, 1, 2]);
    }

    proptest! {
        #[test]
        fn the_cycles_that_begin_within_a_length_cover_it_and_one_less_does_not(
            hertz in 1_000..Rate::HERTZ_MAX, before in 0..1000u64, length in 0..1_000_000_000u64
        ) {
            let mut clock = Clock::new(Rate::new(hertz, 1).unwrap());
            clock.advance(Cycles(before));
            let begun = clock.begun_within(Picoseconds(length));
            prop_assert!(clock.clone().advance(begun).0 >= length);
            if begun.0 > 0 {
                prop_assert!(clock.advance(Cycles(begun.0 - 1)).0 < length);
            }
        }

        #[test]
        fn conversions_in_pieces_add_up_to_the_conversion_of_the_whole(
            hertz in 1..Rate::HERTZ_MAX,
            divider in 1..1000u32,
            // The product of the larger ones with the picoseconds of a second has more than 64 bits.
            pieces in prop::collection::vec(prop_oneof![0..1000u64, 0..1u64 << 36], 0..50),
        ) {
            let rate = Rate::new(hertz, divider).unwrap();
            let (mut in_pieces, mut at_once) = (Clock::new(rate), Clock::new(rate));
            let sum: u64 = pieces.iter().sum();
            let whole = at_once.advance(Cycles(sum));
            let parts: u128 = pieces.into_iter().map(|piece| u128::from(in_pieces.advance(Cycles(piece)).0)).sum();
            prop_assume!(whole.0 < u64::MAX);
            prop_assert_eq!(parts, u128::from(whole.0));
        }
    }
}
