//! The protocols of places: half a ping-pong of each, beside the published figures of its original; and the same
//! through the whole runtime.
//!
//! Without a runtime, long messages are in private memory as in the experiment `ping-pong`, which runs the library on
//! bare cores. With it, [`ECHO`] is the time that a program of Isles sees between the cores of a tile: half of a call
//! that takes bytes there and back. The runtime's own instructions and its effect on the caches are not charged;
//! messages themselves pay for their lines of private memory.

use super::ping_pong::RCCE;
use crate::repro::access::{STANDARD, nanoseconds, preset};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles::{Launch, ModelledChip, Protocol, at, now, places};
use isles_app::Failure;
use isles_chip::Chip;
use std::cell::RefCell;
use std::rc::Rc;

/// V11 of the validation deck, and the curves of the other protocols.
pub const PROTOCOLS: Experiment = Experiment {
    name: "protocols",
    about: "half a ping-pong of the protocols of places, two of them on the chip, at 533/800/800",
    source: "rcce: iRCCE's measurement with RCCE 1.0.13 in LPD-EPFL/tm2c-threads; ring: OpenComRTOS, MARC 2012, paper 10",
    instructions: "RCCE's for `rcce`; of the others `doorbell`, `rcce-x10` and `sections` copy as iRCCE,\n\
                   and what they spend on a call is estimated",
    rows: RowSource::Model(protocols),
};

/// Bytes whose figures were in view when the library's instructions and stores were fitted.
const FITTED: [usize; 4] = [4, 32, 2 << 10, 64 << 10];

/// Bytes of the published rate of the ring.
const PACKET: usize = 4_096;

/// The core that is farthest from the first.
const FARTHEST: u32 = 47;

fn protocols(chip: &Chip) -> Vec<Row> {
    let mut rows = library();
    rows.extend(ring(chip));
    rows.extend(channels());
    let alone = Family {
        deck: "",
        unit: "µs",
        band: Band::Unpublished,
        basis: Basis::Predicted,
        source: "",
        reading: "",
    };
    let others = Protocol::OF_BUFFERS.into_iter().filter(|protocol| *protocol != Protocol::Rcce);
    for protocol in others {
        for bytes in [32, 1 << 10, 8 << 10, 64 << 10, 256 << 10] {
            let ours = half(protocol, 1, bytes);
            rows.push(alone.row(Title::from(protocol.name()).over(Quantity::length(bytes)), f64::NAN, ours));
        }
        for bytes in [32, 1 << 10, 8 << 10] {
            let ours = half(protocol, FARTHEST, bytes);
            let title = Title::from(protocol.name()).over(Quantity::length(bytes));
            rows.push(alone.row(title.over(Quantity::places(48)).over(Quantity::hops(8)), f64::NAN, ours));
        }
    }
    rows
}

/// Returns the rows of the blocking protocol, compared with the library.
fn library() -> Vec<Row> {
    let (band, source) = (Band::Within(15.0), super::ping_pong::MEASUREMENT);
    let family = Family { deck: "", unit: "µs", band, basis: Basis::Predicted, source, reading: "" };
    let row = |(bytes, published): &(usize, f64)| {
        let basis = if FITTED.contains(bytes) { Basis::Calibrated } else { Basis::Predicted };
        let ours = half(Protocol::Rcce, 1, *bytes);
        Family { basis, ..family }.row(Title::from("rcce").over(Quantity::length(*bytes)), *published, ours)
    };
    RCCE.iter().map(row).collect()
}

/// Returns the rows of the ring, compared with the port of the real-time system: its rate between near cores was
/// published, that between far cores is about half of it.
fn ring(chip: &Chip) -> Vec<Row> {
    // The decision that words are written one by one was made with both rates in view.
    let (band, source) = (Band::Within(20.0), "004:2173");
    let family = Family { deck: "V11", unit: "MB/s", band, basis: Basis::Calibrated, source, reading: "" };
    // The source says this in words only: "nearly halves the throughput".
    let derived = Family { basis: Basis::Derived, ..family.at("004:2151, 2173") };
    let derived = derived.reading("“33.57” / 2: “nearly halves the throughput”");
    let rate = |other| PACKET as f64 / half(Protocol::Ring, other, PACKET);
    let times = preset(chip, STANDARD).times();
    let wake = nanoseconds(times.task_wake.map(|wake| wake.over(0))) / 1e3;
    let title = Title::from("ring").over(Quantity::length(PACKET));
    vec![
        family.row(title.clone().and("same tile"), 33.57, rate(1)),
        derived.row(title.over(Quantity::hops(8)), 33.57 / 2.0, rate(FARTHEST)),
        Family { unit: "µs", source: "004:2087", ..family }.row("from an interrupt to its task", 10.32, wake),
    ]
}

/// Returns the rows of the channels of SCC-MPI: the one over message buffers has the best bandwidth.
fn channels() -> Vec<Row> {
    const LONG: usize = 256 << 10;
    let best = Family {
        deck: "",
        unit: "",
        band: Band::AtMost,
        basis: Basis::Predicted,
        source: "004:932",
        reading: "≤ 1: “the channel that uses the MPB delivers best performance”",
    };
    let row = |protocol: Protocol, other: &str, of: Protocol| {
        let title = Title::from(format!("{}, rate / {other}", protocol.name()));
        best.row(title.over(Quantity::length(LONG)), 1.0, half(of, 1, LONG) / half(protocol, 1, LONG))
    };
    [Protocol::Sections, Protocol::SectionsByPlaces]
        .into_iter()
        .flat_map(|of| {
            [Protocol::SectionsMemory, Protocol::SectionsMixed].map(|channel| row(channel, of.name(), of))
        })
        .collect()
}

/// Returns the microseconds of half a ping-pong between the first core and `other`; no other core participates.
fn half(protocol: Protocol, other: u32, bytes: usize) -> f64 {
    let time = ModelledChip::new("scc").and_then(|chip| chip.half_ping_pong(protocol, other, bytes));
    time.unwrap_or_else(|error| panic!("the chip file of the SCC has all that it needs: {error}"))
        .as_secs_f64()
        * 1e6
}

/// Half of a call through the runtime.
pub const ECHO: Experiment = Experiment {
    name: "echo",
    about: "half of `at!` with bytes there and back between the cores of a tile, by protocol of Isles, at 533/800/800",
    source: "ours alone; compare with ping-pong",
    instructions: "",
    rows: RowSource::Runs(echo),
};

/// Bytes of a message.
const LENGTHS: [usize; 9] = [1, 32, 256, 1 << 10, 2 << 10, 8 << 10, 16 << 10, 256 << 10, 1 << 20];

/// Calls of each length.
const CALLS: u32 = 4;

fn echo() -> Result<Vec<Row>, Failure> {
    let family = Family {
        deck: "",
        unit: "µs",
        band: Band::Unpublished,
        basis: Basis::Predicted,
        source: "",
        reading: "",
    };
    let mut rows = Vec::new();
    for protocol in Protocol::OF_BUFFERS {
        for (bytes, half) in LENGTHS.into_iter().zip(halves(protocol)?) {
            rows.push(family.row(Title::from(protocol.name()).over(Quantity::length(bytes)), f64::NAN, half));
        }
    }
    Ok(rows)
}

/// Returns the microseconds of half a call of each length.
fn halves(protocol: Protocol) -> Result<Vec<f64>, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?;
    let chip = ModelledChip::new("scc").map_err(|error| usage(&error))?;
    let found = Rc::new(RefCell::new(Vec::new()));
    let place = Rc::clone(&found);
    let main = move || async move {
        *place.borrow_mut() = calls().await?;
        Ok::<_, isles::Error>(())
    };
    let (result, ..) =
        launch.places(2).protocol(protocol).run_on_chip(chip, main).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    Ok(found.take())
}

async fn calls() -> isles::Result<Vec<f64>> {
    let other = places().last().expect("there are two");
    let mut halves = Vec::new();
    for bytes in LENGTHS {
        let ball = vec![7_u8; bytes];
        let start = now();
        for _ in 0..CALLS {
            let back: Vec<u8> = at!(other, ball.clone()).await?;
            assert_eq!(back, ball, "the ball is the same");
        }
        halves.push((now() - start).as_secs_f64() * 1e6 / f64::from(2 * CALLS));
    }
    Ok(halves)
}
