//! A network-centric real-time kernel on the SCC: a semaphore loop, and a port by length and distance.
//!
//! Each run is one of `isles run semaphore-loop` or `isles run port-throughput`, at 533/800/800; between cores by
//! protocol `ring`, which is the link driver of the paper. What the kernel costs is calibrated: a switch and a packet
//! on the loop, a copy on the port of one core. Of two cores, the cost of words and of the wake of a task are in the
//! chip file, the words chosen with the figures near and far in view. Its tables of other processors are not modelled.
//! Invariant: every row could come out on the wrong side.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::document;
use isles_app::{Failure, runs};

/// The evaluation of the paper.
pub const RTOS: Experiment = Experiment {
    name: "rtos",
    about: "the hubs of OpenComRTOS: a semaphore loop, and a port on one core and between two, at 533/800/800",
    source: "Sputh, Lukin and Verhulst, OpenComRTOS on the SCC, 6th MARC symposium (2012), paper 10",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Lengths of packets.
const LENGTHS: [u32; 8] = [32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Where sender and receiver are, and what the paper calls that.
const PAIRS: [(&str, &str); 3] = [("10,11", "0 hops"), ("10,8", "1 hop"), ("10,36", "8 hops")];

const NEAR: Family =
    Family { deck: "", unit: "MB/s", band: Band::Within(20.0), basis: Basis::Calibrated, source: "004:2171" };
const SHAPE: Family = Family { unit: "", band: Band::AtMost, basis: Basis::Predicted, ..NEAR };

/// Rates by length, of one core or of a pair.
type Rates = Vec<f64>;

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = semaphore_loop()?;
    let one = "--places 1".to_owned();
    let pairs = PAIRS.map(|(placement, _)| format!("--places 2 --protocol ring --placement {placement}"));
    let forms: Vec<String> = [one].into_iter().chain(pairs).collect();
    let rates = runs::all(forms.len() * LENGTHS.len(), "lengths", |number| {
        rate(&forms[number / LENGTHS.len()], LENGTHS[number % LENGTHS.len()])
    })?;
    let rates: Vec<Rates> = rates.chunks(LENGTHS.len()).map(<[f64]>::to_vec).collect();
    rows.extend(figures(&rates));
    rows.extend(shapes(&rates));
    rows.extend(alone(&rates));
    Ok(rows)
}

/// The time of a loop and what it consists of.
fn semaphore_loop() -> Result<Vec<Row>, Failure> {
    let found = document("semaphore-loop", "--machine chip:scc --places 1 --loops 1000")?;
    let between = document("semaphore-loop", "--machine chip:scc --places 2 --protocol ring --loops 200")?;
    let figure = |document: &serde_json::Value, name: &str| document[name].as_f64().unwrap_or(f64::NAN);
    let loops = Family { unit: "us", source: "004:2117", ..NEAR };
    // Of the loop, these are the counts of its program.
    let exact =
        Family { unit: "", band: Band::Within(1.0), basis: Basis::Predicted, source: "004:2073", ..NEAR };
    let unpublished = Family { unit: "us", band: Band::Unpublished, basis: Basis::Predicted, ..NEAR };
    Ok(vec![
        loops.row("semaphore loop, one core", 4.9, figure(&found, "loop_us")),
        exact.row("semaphore loop, one core, context switches", 4.0, figure(&found, "switches")),
        exact.row("semaphore loop, one core, service requests", 4.0, figure(&found, "requests")),
        exact.row("semaphore loop, one core, packets", 8.0, figure(&found, "packets")),
        unpublished.row("semaphore loop, two cores, 0 hops", f64::NAN, figure(&between, "loop_us")),
    ])
}

/// Data that the receiver gets, in MB/s.
fn rate(form: &str, bytes: u32) -> Result<f64, Failure> {
    let words = format!("--machine chip:scc {form} --bytes {bytes} --packets 200");
    let found = document("port-throughput", &words)?;
    let rate = found["mb_per_s"].as_f64();
    rate.ok_or_else(|| Failure::Ended("a run of port-throughput has no rate".to_owned()))
}

fn last(rates: &Rates) -> f64 {
    rates[LENGTHS.len() - 1]
}

fn at(rates: &Rates, bytes: u32) -> f64 {
    rates[LENGTHS.iter().position(|length| *length == bytes).expect("it was run")]
}

fn figures(rates: &[Rates]) -> Vec<Row> {
    let derived = Family { unit: "", basis: Basis::Derived, source: "004:2151", ..NEAR };
    vec![
        NEAR.row("port, one core, 4,096 B", 19.80, last(&rates[0])),
        NEAR.at("004:2173").row("port, cores 10 and 11 (0 hops), 4,096 B", 33.57, last(&rates[1])),
        derived.row(
            "port, 4,096 B, rate at 8 hops against 0 (nearly half)",
            0.5,
            last(&rates[3]) / last(&rates[1]),
        ),
        derived.row(
            "port, 4,096 B, rate at 8 hops against half of 33.57 MB/s",
            1.0,
            last(&rates[3]) / (33.57 / 2.0),
        ),
        derived.row("port, 4,096 B, rate of one core against 20 MB/s", 1.0, last(&rates[0]) / 20.0),
    ]
}

/// What the paper says of its figure 4.
fn shapes(rates: &[Rates]) -> Vec<Row> {
    let shape = SHAPE.at("004:2151");
    // How many times the rate grows when the length doubles.
    let growth = |rates: &Rates, bytes: u32| at(rates, bytes) / at(rates, bytes / 2);
    let mut rows = vec![
        shape.row(
            "port, one core, growth of the rate from 2,048 to 4,096 B (levels off)",
            1.05,
            growth(&rates[0], 4096),
        ),
        shape.row("port, 4,096 B, one core against 0 hops", 1.0, last(&rates[0]) / last(&rates[1])),
        shape.row("port, 4,096 B, 8 hops against 1", 1.0, last(&rates[3]) / last(&rates[2])),
    ];
    // A jump: from 128 to 256 B the rate grows more than from 64 to 128.
    for (rates, name) in [(&rates[1], "0 hops"), (&rates[3], "8 hops")] {
        let title = format!(
            "port, {name}, growth of the rate from 64 to 128 B against that from 128 to 256 (a jump)"
        );
        rows.push(shape.row(title, 1.0, growth(rates, 128) / growth(rates, 256)));
    }
    let title = "port, one core, growth of the rate from 128 to 256 B against that from 64 to 128 (no jump)";
    rows.push(shape.row(title, 1.0, growth(&rates[0], 256) / growth(&rates[0], 128)));
    rows
}

/// The curves of figure 4, of which nobody printed the digits.
fn alone(rates: &[Rates]) -> Vec<Row> {
    let alone = Family { band: Band::Unpublished, basis: Basis::Predicted, source: "", ..NEAR };
    let names = ["one core", PAIRS[0].1, PAIRS[1].1, PAIRS[2].1];
    let mut rows = Vec::new();
    for (rates, name) in rates.iter().zip(names) {
        for (bytes, rate) in LENGTHS.iter().zip(rates) {
            let title = Title::from(format!("port, {name}")).over(Quantity::length(*bytes as usize));
            rows.push(alone.row(title, f64::NAN, *rate));
        }
    }
    rows
}
