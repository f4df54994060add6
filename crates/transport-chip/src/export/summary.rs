//! The summary of a run: one JSON object for scripts.
//!
//! The fields are described in `docs/twin.md`. Invariant: a field keeps its name and its meaning as long as `schema`
//! says the same; fields may be added.

use super::json::Json;
use crate::report::{Ledger, Report, SPENDINGS};
use isles_chip::Chip;
use isles_chip::quantity::Rate;
use isles_chip::topology::CoreId;
use std::time::Duration;

/// The meaning of the fields.
const SCHEMA: &str = "isles.chip-summary.1";

/// What a report does not say of its run.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    /// On which chip it was.
    pub chip: &'a Chip,
    /// The order of what happened at one time.
    pub seed: u64,
    /// How messages crossed the chip.
    pub protocol: &'a str,
    /// How long this host took for it.
    pub host: Duration,
}

/// The summary of a run.
pub fn summary(facts: &RunFacts<'_>, report: &Report) -> String {
    let mut json = Json::default();
    json.begin("", '{');
    json.string("schema", SCHEMA);
    json.string("version", env!("CARGO_PKG_VERSION"));
    chip(&mut json, facts.chip);
    json.number("places", report.ledgers.len());
    json.number("seed", facts.seed);
    json.string("protocol", facts.protocol);
    json.number("predicted_ps", report.time.0);
    json.number("messages", report.messages);
    json.number("bytes", report.bytes);
    json.number("lines_written", report.lines.written);
    json.number("lines_read", report.lines.read);
    json.number("flit_hops", report.flit_hops);
    json.number("events", report.digest.events());
    json.string("digest", &report.digest.to_string());
    ledgers(&mut json, facts.chip, report);
    let seconds = facts.host.as_secs_f64();
    json.begin("host", '{');
    json.number("seconds", seconds);
    json.number("events_per_second", (report.digest.events() as f64 / seconds.max(1e-9)).round());
    json.end('}');
    json.end('}');
    json.finish()
}

fn chip(json: &mut Json, chip: &Chip) {
    json.begin("chip", '{');
    json.string("name", chip.name());
    json.string("title", chip.title());
    json.number("cores", chip.topology().cores());
    json.number("tiles", chip.topology().tiles());
    json.end('}');
    let preset = chip.default_preset();
    let clocks = preset.clocks();
    json.begin("clocks", '{');
    json.string("preset", preset.name());
    for (key, rate) in [("core", clocks.core), ("mesh", clocks.mesh), ("memory", clocks.memory)] {
        json.number(&format!("{key}_mhz"), Rate::megahertz(rate));
    }
    json.end('}');
}

/// Of all places together, then of each.
fn ledgers(json: &mut Json, chip: &Chip, report: &Report) {
    let sum = |index: usize| -> u128 {
        report.ledgers.iter().map(|ledger| u128::from(ledger.time(SPENDINGS[index].0).0)).sum()
    };
    json.begin("ledger_ps", '{');
    for (index, (_, name)) in SPENDINGS.iter().enumerate() {
        json.number(name, sum(index));
    }
    json.end('}');
    json.begin("by_place", '[');
    for (core, ledger) in (0..).map(CoreId).zip(&report.ledgers) {
        json.begin("", '{');
        json.number("place", core);
        json.number("core", core);
        json.number("tile", chip.topology().tile_of(core));
        of_place(json, ledger);
        json.end('}');
    }
    json.end(']');
}

fn of_place(json: &mut Json, ledger: &Ledger) {
    json.begin("ledger_ps", '{');
    for (spending, name) in SPENDINGS {
        json.number(name, ledger.time(spending).0);
    }
    json.end('}');
}
