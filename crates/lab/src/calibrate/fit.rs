//! Constants of a chip that reproduce the measured message times.
//!
//! The form is that of LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995): a sender and a receiver are busy
//! with each packet, which is in transit for a latency; a link is busy with each byte. The first guess is computed from
//! the figures. It is then corrected by the chip's own figures; the model is exact, so a few rounds are enough.
//! Invariant: all constants are finite and not negative.

use super::measure::{Figures, FiguresByDistance, SIZES};

/// Granularity of packets, in bytes, and the longest one.
const FLIT: f64 = 64.0;
const PACKET_MAX: f64 = 4096.0;

/// Minimum time of a core for a packet, in nanoseconds; a chip with free messages would be useless.
const BUSY_MIN: f64 = 1.0;

/// Message costs of a chip file; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Bytes that a packet carries.
    pub packet: f64,
    pub near: Level,
    pub far: Level,
    /// Time that a link between hosts is busy with [`Constants::FLIT`] bytes.
    pub flit: f64,
}

/// Message costs at one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Time that each of the two cores is busy with a packet.
    pub busy: f64,
    /// Time that a packet is in transit.
    pub transit: f64,
}

impl Constants {
    /// Bytes of a flit.
    pub(crate) const FLIT: u32 = FLIT as u32;

    /// Returns the first guess. A distance that was not measured gets the constants of the other one.
    ///
    /// Within a host, a core copies the data that it sends. The packet is the amount that it copies in the time of a
    /// tiny message, so that one constant fits short and long messages.
    pub fn guess(ways: &FiguresByDistance) -> Option<Constants> {
        let near = ways.near.or(ways.far)?;
        let far = ways.far.or(ways.near)?;
        let flits = (busy(&near) / per_byte(&near) / FLIT).round().clamp(1.0, PACKET_MAX / FLIT);
        let packet = flits * FLIT;
        let level = |figures: &Figures, busy: f64| {
            let busy = busy.max(BUSY_MIN);
            Level { busy, transit: (figures.latency - 2.0 * busy).max(0.0) }
        };
        Some(Constants {
            packet,
            near: level(&near, packet * per_byte(&near)),
            far: level(&far, busy(&far).min(packet * per_byte(&far))),
            flit: FLIT * per_byte(&far),
        })
    }

    /// Returns the constants corrected by `shown`, the figures of a chip with these constants, towards `measured`.
    ///
    /// The correction matches the latency of a single message and the time of each byte of the longest one.
    pub fn corrected(&self, measured: &FiguresByDistance, shown: &FiguresByDistance) -> Constants {
        let mut next = *self;
        if let (Some(measured), Some(shown)) = (&measured.near, &shown.near) {
            next.near.busy = (self.near.busy * per_byte(measured) / per_byte(shown)).max(BUSY_MIN);
            next.near.transit = transit(&self.near, measured, shown);
        }
        if let (Some(measured), Some(shown)) = (&measured.far, &shown.far) {
            let ratio = per_byte(measured) / per_byte(shown);
            next.flit = self.flit * ratio;
            next.far.busy =
                (self.far.busy * measured.gap / shown.gap).clamp(BUSY_MIN, next.flit * self.packet / FLIT);
            next.far.transit = transit(&self.far, measured, shown);
        }
        next
    }
}

/// Returns the time that a core is busy with a tiny message: the gap of a stream of them, but less than half the
/// latency of a single message.
fn busy(figures: &Figures) -> f64 {
    figures.gap.min(figures.latency / 2.5)
}

fn transit(level: &Level, measured: &Figures, shown: &Figures) -> f64 {
    (level.transit + measured.latency - shown.latency).max(0.0)
}

/// Returns the nanoseconds for each byte of the longest slice.
fn per_byte(figures: &Figures) -> f64 {
    let last = SIZES.len() - 1;
    (figures.sizes[last] - figures.latency).max(1.0) / SIZES[last] as f64
}

/// Returns the relative errors of `shown` against `measured`: the median of all figures, and the largest.
pub fn errors(measured: &Figures, shown: &Figures) -> (f64, f64) {
    let mut errors: Vec<f64> =
        measured.rows().zip(shown.rows()).map(|((_, wanted), (_, got))| (got / wanted - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    (errors[errors.len() / 2], errors[errors.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the figures of the form itself, without a chip: packets follow each other at the rate of the slower of
    /// core and link.
    fn form(level: &Level, packet: f64, flit: f64) -> Figures {
        let time = |bytes: usize| {
            let packets = (bytes as f64 / packet).ceil().max(1.0);
            let slowest = level.busy.max(flit * (packet / FLIT));
            2.0 * level.busy + level.transit + slowest * (packets - 1.0)
        };
        Figures { latency: time(0), gap: level.busy, sizes: SIZES.map(time) }
    }

    fn shown(constants: &Constants) -> FiguresByDistance {
        FiguresByDistance {
            near: Some(form(&constants.near, constants.packet, 0.0)),
            far: Some(form(&constants.far, constants.packet, constants.flit)),
        }
    }

    #[test]
    fn constants_come_back_from_what_they_show() {
        let truth = Constants {
            packet: 320.0,
            near: Level { busy: 60.0, transit: 55.0 },
            far: Level { busy: 200.0, transit: 9_000.0 },
            flit: 80.0,
        };
        let measured = shown(&truth);
        let mut found = Constants::guess(&measured).unwrap();
        for _ in 0..4 {
            found = found.corrected(&measured, &shown(&found));
        }
        assert_eq!(found.packet, truth.packet);
        for (found, truth) in [(found.near, truth.near), (found.far, truth.far)] {
            assert!((found.busy / truth.busy - 1.0).abs() < 0.02, "{found:?}");
            assert!((found.transit / truth.transit - 1.0).abs() < 0.02, "{found:?}");
        }
        assert!((found.flit / truth.flit - 1.0).abs() < 0.02, "{found:?}");
        let (middle, worst) = errors(&measured.far.unwrap(), &shown(&found).far.unwrap());
        assert!(middle <= worst && worst < 0.02, "{middle} {worst}");
    }

    #[test]
    fn figures_that_contradict_each_other_give_constants_all_the_same() {
        // A latency below that of its own tasks, and a longest slice faster than a short one.
        let odd = Figures { latency: 10.0, gap: 500.0, sizes: [10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0] };
        let ways = FiguresByDistance { near: Some(odd), far: None };
        let guess = Constants::guess(&ways).unwrap();
        let next = guess.corrected(&ways, &shown(&guess));
        for constants in [guess, next] {
            for level in [constants.near, constants.far] {
                assert!(
                    level.busy >= BUSY_MIN && level.transit >= 0.0 && level.busy.is_finite(),
                    "{level:?}"
                );
            }
            assert!((FLIT..=PACKET_MAX).contains(&constants.packet) && constants.flit > 0.0, "{constants:?}");
        }
        assert_eq!(Constants::guess(&FiguresByDistance::default()), None);
    }
}
