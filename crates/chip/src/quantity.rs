//! Quantities with their units: times, clock rates, sizes, voltages, powers.
//!
//! A number without its unit is the oldest fault of a machine model, so each quantity here is a type of its own
//! and can be mixed up with no other. All are integers: the clock of a modelled chip must not drift. A clock rate
//! is a fraction (`1600 MHz / 3`), because 533 MHz is not what the hardware runs at.
//!
//! It does not read the units of chip files (`file::unit`) and does not know what the quantities are for. Invariant: a
//! quantity is in one unit wherever it goes; text has others.

mod power;
mod rate;
mod size;
mod text;
mod time;

pub use power::{Attojoules, Microvolts, Microwatts};
pub use rate::Rate;
pub use size::{Bytes, BytesPerSecond};
pub use text::scaled;
pub use time::{Cycles, PICOSECONDS_PER_SECOND, Picoseconds};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_times_that_somebody_asks_for_have_units() {
        assert_eq!("60W".parse(), Ok(Microwatts(60_000_000)));
        assert_eq!(("0.5 kW".parse(), "1uW".parse()), (Ok(Microwatts(500_000_000)), Ok(Microwatts(1))));
        assert_eq!("90s".parse(), Ok(Picoseconds(90_000_000_000_000)));
        assert_eq!(
            ("1.5 ms".parse(), "2min".parse()),
            (Ok(Picoseconds(1_500_000_000)), Ok(Picoseconds(120_000_000_000_000)))
        );
        for bad in
            ["", "60", "W", "0W", "-1W", "1e3W", "60w", "60 V", "NaNW", "infW", "60W x", "1e30kW", "0.1uW"]
        {
            assert!(bad.parse::<Microwatts>().is_err(), "{bad}");
        }
        for bad in ["", "90", "s", "0s", "-1s", "90 sec", "90S", "99999999999999min", "1h"] {
            assert!(bad.parse::<Picoseconds>().is_err(), "{bad}");
        }
    }

    #[test]
    fn quantities_are_written_in_the_unit_that_fits() {
        assert_eq!(Picoseconds(105_000).to_string(), "105 ns");
        assert_eq!(Picoseconds(16_500_000_000).to_string(), "16.5 ms");
        assert_eq!(Picoseconds(625).to_string(), "625 ps");
        assert_eq!(Picoseconds(256_000_000).to_string(), "256 µs", "as of joules, whose prefix is µ");
        assert_eq!(Bytes(8192).to_string(), "8 KiB");
        assert_eq!(BytesPerSecond(425_000_000).to_string(), "425 MB/s");
        assert_eq!(Microvolts(856_250).to_string(), "0.85625 V");
        assert_eq!(Rate::new(1_600_000_000, 3).unwrap().to_string(), "533.33 MHz");
    }
}
