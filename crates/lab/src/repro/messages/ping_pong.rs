//! Half a ping-pong between the two cores of a tile, by length: RCCE and iRCCE compared with measurements.
//!
//! Both directions use one buffer, as in the benchmark of iRCCE: up to 8 KiB a message is one chunk, up to 16 KiB the
//! buffer stays in the first-level cache, up to 256 KiB in the second. A time is the mean of a few rounds after one
//! that warms the caches.

use crate::repro::access::STANDARD;
use crate::repro::bare::{bare, pattern, run};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_chip::Chip;
use isles_chip::bare::rcce::{LibraryCosts, Participant};
use isles_chip::topology::CoreId;

/// The ping-pong, and the knees of its curves.
pub const PING_PONG: Experiment = Experiment {
    name: "ping-pong",
    about: "half a ping-pong of RCCE and iRCCE between the cores of a tile, at 533/800/800",
    source: "iRCCE's measurement with RCCE 1.0.13 in LPD-EPFL/tm2c-threads",
    instructions: "each library's, fitted to its rows that are calibrated",
    rows: RowSource::Model(ping_pong),
};

/// Source of the times of both libraries, as rows cite it.
pub(crate) const MEASUREMENT: &str = "tm2c-threads";

#[allow(clippy::approx_constant)] // a time that happens to be near pi
/// Measured microseconds of RCCE, by bytes.
pub const RCCE: [(usize, f64); 14] = [
    (1, 2.86),
    (4, 3.04),
    (8, 3.14),
    (32, 2.70),
    (128, 4.14),
    (256, 6.42),
    (1 << 10, 18.31),
    (2 << 10, 34.31),
    (8 << 10, 167.02),
    (16 << 10, 684.8),
    (64 << 10, 3_136.7),
    (128 << 10, 6_338.7),
    (256 << 10, 18_914.0),
    (1 << 20, 184_164.0),
];

/// Measured microseconds of iRCCE, by bytes.
pub const IRCCE: [(usize, f64); 12] = [
    (1, 2.16),
    (32, 2.06),
    (128, 2.90),
    (256, 4.08),
    (1 << 10, 10.77),
    (2 << 10, 19.80),
    (8 << 10, 79.25),
    (16 << 10, 194.07),
    (64 << 10, 774.0),
    (128 << 10, 1_544.9),
    (256 << 10, 4_942.0),
    (1 << 20, 29_258.0),
];

fn ping_pong(chip: &Chip) -> Vec<Row> {
    let mut rows = curve(chip, "RCCE", LibraryCosts::RCCE, &RCCE, &[4, 32, 2 << 10, 64 << 10]);
    rows.extend(curve(chip, "iRCCE", LibraryCosts::IRCCE, &IRCCE, &[32, 2 << 10]));
    rows
}

fn curve(
    chip: &Chip,
    name: &str,
    library: LibraryCosts,
    published: &[(usize, f64)],
    calibrated: &[usize],
) -> Vec<Row> {
    let row = |&(bytes, published): &(usize, f64)| {
        let is_calibrated = calibrated.contains(&bytes);
        let basis = if is_calibrated { Basis::Calibrated } else { Basis::Predicted };
        let family = Family {
            deck: "",
            unit: "µs",
            band: Band::Within(15.0),
            basis,
            source: MEASUREMENT,
            reading: "",
        };
        let title = Title::from(name).over(Quantity::length(bytes));
        family.row(title, published, half(chip, library, bytes))
    };
    published.iter().map(row).collect()
}

/// Returns the microseconds of half a round.
fn half(chip: &Chip, library: LibraryCosts, bytes: usize) -> f64 {
    let bare = bare(chip, STANDARD);
    let sent = pattern(bytes);
    bare.core(CoreId(0)).set_memory(0, &sent);
    let rounds = |count: u32| {
        let took = run(&bare, 0..2, |core| async move {
            let here = Participant { core, participants: 2, library };
            for _ in 0..count {
                if here.rank() == 0 {
                    here.send(1, 0, bytes).await;
                    here.receive(1, 0, bytes).await;
                } else {
                    here.receive(0, 0, bytes).await;
                    here.send(0, 0, bytes).await;
                }
            }
        });
        took.nanoseconds() / 1e3 / f64::from(2 * count)
    };
    rounds(1);
    let half = rounds(if bytes > 64 << 10 { 1 } else { 4 });
    assert_eq!(bare.core(CoreId(1)).memory(0, bytes), sent, "the ball is the same");
    half
}
