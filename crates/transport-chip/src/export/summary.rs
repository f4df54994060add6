//! The summary of a run: one JSON object for scripts.
//!
//! `docs/chip/report.md` describes the fields. [`Json`] is a streaming writer of objects and lists. Invariants: a field
//! keeps its name and meaning within one version of `schema`; fields may be added; output with matching begins and ends
//! is well formed.

use crate::bands::{Bands, PAGE};
use crate::energy::{Energy, ModelEnergy};
use crate::report::{FileTraffic, Ledger, Report, TIME_CATEGORIES};
use isles_chip::Chip;
use isles_chip::quantity::{Attojoules, Picoseconds, Rate};
use std::fmt::{Display, Write};
use std::time::Duration;

/// Name and version of the schema.
const SCHEMA: &str = "isles.chip-summary.1";

/// Facts of a run that its report does not contain.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    /// Chip of the run.
    pub chip: &'a Chip,
    /// Seed of the order of simultaneous events.
    pub seed: u64,
    /// Other settings of the run, by name; each is a field of the summary.
    pub settings: &'a [(&'static str, String)],
    /// Time this host took for the run.
    pub host: Duration,
    /// Part of `host` spent in the code of places.
    pub host_code: Duration,
    /// Part of `host_code` spent in code that was not charged.
    pub host_uncharged: Duration,
    /// Regions that the program has marked, in the order of their first entries.
    pub regions: &'a [RegionFacts],
}

/// A region that a program has marked, with time and energy of the run while a place was in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionFacts {
    /// Name of the region.
    pub name: String,
    /// Number of times a task has entered the region.
    pub entries: u64,
    /// Number of places that have entered it.
    pub places: u32,
    /// Time during which at least one place was in it.
    pub time: Picoseconds,
    /// Energy of the chip in that time, by the first power model; `None` if the chip has no model.
    pub energy: Option<Attojoules>,
}

/// Returns the summary of a run as JSON.
pub fn summary(facts: &RunFacts<'_>, report: &Report) -> String {
    let mut json = Json::default();
    json.begin("", '{');
    json.string("schema", SCHEMA);
    json.string("version", env!("CARGO_PKG_VERSION"));
    chip(&mut json, facts.chip);
    json.number("places", report.ledgers.len());
    json.number("seed", facts.seed);
    facts.settings.iter().for_each(|(name, value)| json.string(name, value));
    json.number("rate_changes", report.shifts.rates);
    json.number("voltage_changes", report.shifts.voltages);
    json.number("predicted_ps", report.time.0);
    regions(&mut json, facts.regions);
    stale(&mut json, report);
    json.number("messages", report.messages);
    json.number("bytes", report.bytes);
    json.number("lines_written", report.lines.written);
    json.number("lines_read", report.lines.read);
    json.number("lines_fetched", report.fetched);
    json.number("flit_hops", report.flit_hops);
    json.begin("controllers_busy_ps", '[');
    report.controllers.iter().for_each(|busy| json.number("", busy.0));
    json.end(']');
    files(&mut json, &report.files);
    json.number("events", report.digest.events());
    json.string("digest", &report.digest.to_string());
    ledgers(&mut json, facts.chip, report);
    energy(&mut json, report.energy.as_ref());
    bands(&mut json, &Bands::of(facts.chip, report));
    let seconds = facts.host.as_secs_f64();
    json.begin("host", '{');
    json.number("seconds", seconds);
    json.number("code_seconds", facts.host_code.as_secs_f64());
    json.number("uncharged_seconds", facts.host_uncharged.as_secs_f64());
    json.number("events_per_second", (report.digest.events() as f64 / seconds.max(1e-9)).round());
    json.end('}');
    json.end('}');
    json.finish()
}

/// Writes the regions that the program has marked; energies are null if the chip has no power model.
fn regions(json: &mut Json, regions: &[RegionFacts]) {
    json.begin("regions", '[');
    for RegionFacts { name, entries, places, time, energy } in regions {
        json.begin("", '{');
        json.string("name", name);
        json.number("entries", entries);
        json.number("places", places);
        json.number("time_ps", time.0);
        match energy {
            Some(energy) => json.number("energy_j", energy.joules()),
            None => json.number("energy_j", "null"),
        }
        json.end('}');
    }
    json.end(']');
}

/// Writes the reads that missed a write; null if there is no shared memory.
fn stale(json: &mut Json, report: &Report) {
    let Some(stale) = &report.stale else { return json.number("stale_reads", "null") };
    json.begin("stale_reads", '{');
    json.number("number", stale.number);
    json.begin("first", '[');
    for read in &stale.first {
        json.begin("", '{');
        json.number("place", read.core);
        json.number("at_ps", read.at.0);
        json.number("address", read.address);
        json.number("found", read.found);
        json.number("newest", read.newest);
        json.number("missed_place", read.missed.core);
        json.number("missed_at_ps", read.missed.at.0);
        json.string("cause", read.cause.name());
        json.end('}');
    }
    json.end(']');
    json.end('}');
}

/// Writes the totals of file accesses.
fn files(json: &mut Json, files: &FileTraffic) {
    json.begin("files", '{');
    json.number("reads", files.reads);
    json.number("cold", files.cold);
    json.number("writes", files.writes);
    json.number("bytes", files.bytes);
    json.number("waited_ps", files.waited.0);
    match files.rate() {
        Some(rate) => json.number("bytes_per_second", rate),
        None => json.number("bytes_per_second", "null"),
    }
    json.end('}');
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
    if let Some(model) = chip.power_models().first() {
        json.string("voltages", model.voltages());
    }
}

/// Writes the ledger of all places together, then of each.
fn ledgers(json: &mut Json, chip: &Chip, report: &Report) {
    let sum = |index: usize| -> u128 {
        report.ledgers.iter().map(|ledger| u128::from(ledger.time(TIME_CATEGORIES[index].0).0)).sum()
    };
    json.begin("ledger_ps", '{');
    for (index, (_, name)) in TIME_CATEGORIES.iter().enumerate() {
        json.number(name, sum(index));
    }
    json.end('}');
    json.begin("by_place", '[');
    let own = report.energy.as_ref().and_then(|energy| energy.models.first());
    for (place, (core, ledger)) in report.cores.iter().zip(&report.ledgers).enumerate() {
        json.begin("", '{');
        json.number("place", place);
        json.number("core", core);
        json.number("tile", chip.topology().tile_of(*core));
        of_place(json, ledger);
        if let Some(own) = own {
            json.number("energy_j", own.core(core.0 as usize).joules());
        }
        json.end('}');
    }
    json.end(']');
}

fn of_place(json: &mut Json, ledger: &Ledger) {
    json.begin("ledger_ps", '{');
    for (category, name) in TIME_CATEGORIES {
        json.number(name, ledger.time(category).0);
    }
    json.end('}');
}

/// Writes the energy; null if there is no power model.
fn energy(json: &mut Json, energy: Option<&Energy>) {
    let Some(energy) = energy else { return json.number("energy", "null") };
    json.begin("energy", '{');
    json.number("span_ps", energy.span.0);
    json.begin("models", '[');
    energy.models.iter().for_each(|model| of_model(json, energy, model));
    json.end(']');
    match energy.disagreement() {
        Some(share) => json.number("disagreement", share),
        None => json.number("disagreement", "null"),
    }
    let peak = energy.profile.peak();
    json.number("peak_w", peak.power.watts());
    json.number("peak_start_ps", peak.start.0);
    json.number("peak_window_ps", energy.profile.window.0);
    if let Some(own) = energy.models.first() {
        json.begin("by_spending_j", '{');
        for (number, (_, name)) in TIME_CATEGORIES.iter().enumerate() {
            json.number(name, own.category(&energy.places, number).joules());
        }
        json.end('}');
        json.begin("by_domain_j", '[');
        energy.by_domain(own).iter().for_each(|drawn| json.number("", drawn.joules()));
        json.end(']');
    }
    json.begin("assumed", '[');
    energy.assumed.iter().for_each(|what| json.string("", what));
    json.end(']');
    json.end('}');
}

/// Writes the error bands of time and energy.
fn bands(json: &mut Json, bands: &Bands) {
    json.begin("bands", '{');
    let [least, most] = bands.time;
    json.number("time_least_ps", least.0);
    json.number("time_most_ps", most.0);
    let energy = bands.energy.map(|energy| [energy.joules, energy.watts]);
    let names = [["energy_least_j", "energy_most_j"], ["mean_least_w", "mean_most_w"]];
    for (row, names) in names.into_iter().enumerate() {
        for (column, name) in names.into_iter().enumerate() {
            match energy {
                Some(energy) => json.number(name, energy[row][column]),
                None => json.number(name, "null"),
            }
        }
    }
    json.begin("unknown", '[');
    bands.unknown.iter().for_each(|what| json.string("", what));
    json.end(']');
    json.begin("besides", '[');
    bands.besides.iter().for_each(|what| json.string("", what));
    json.end(']');
    json.string("page", PAGE);
    json.end('}');
}

fn of_model(json: &mut Json, energy: &Energy, model: &ModelEnergy) {
    let places = model.these_cores(&energy.places);
    json.begin("", '{');
    json.string("name", &model.name);
    json.number("total_j", model.total().joules());
    json.number("places_j", places.joules());
    json.number("cores_without_place_j", Attojoules(model.all_cores().0 - places.0).joules());
    json.number("uncore_j", model.uncore().joules());
    match model.mesh() {
        Some(mesh) => json.number("mesh_j", mesh.joules()),
        None => json.number("mesh_j", "null"),
    }
    json.number("flits_j", model.flits.joules());
    json.number("mean_w", energy.mean(model).watts());
    json.number("energy_delay_js", energy.energy_delay(model));
    json.number("energy_delay_delay_js2", energy.energy_delay_delay(model));
    json.end('}');
}

/// Writes one JSON document, with a line for each member.
#[derive(Default)]
pub(super) struct Json {
    text: String,
    depth: usize,
    /// `true` if the next member needs a comma before it.
    follows: bool,
}

impl Json {
    /// Starts an object or a list; `key` is empty in a list and at the top.
    pub(super) fn begin(&mut self, key: &str, bracket: char) {
        self.key(key);
        self.text.push(bracket);
        self.depth += 1;
        self.follows = false;
    }

    /// Ends the innermost list or object.
    pub(super) fn end(&mut self, bracket: char) {
        self.depth -= 1;
        self.line();
        self.text.push(bracket);
        self.follows = true;
    }

    /// Writes a number, or any other value that is valid JSON as it is.
    pub(super) fn number(&mut self, key: &str, value: impl Display) {
        self.key(key);
        let _ = write!(self.text, "{value}"); // a string takes everything
        self.follows = true;
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quote(value);
        self.follows = true;
    }

    /// Returns the document, with a final newline.
    pub(super) fn finish(mut self) -> String {
        self.text.push('\n');
        self.text
    }

    fn key(&mut self, key: &str) {
        if self.follows {
            self.text.push(',');
        }
        if self.depth > 0 {
            self.line();
        }
        if !key.is_empty() {
            self.quote(key);
            self.text.push_str(": ");
        }
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn quote(&mut self, value: &str) {
        self.text.push('"');
        for queued in value.chars() {
            match queued {
                '"' | '\\' => self.text.extend(['\\', queued]),
                queued if u32::from(queued) < 0x20 => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(queued)); // as above
                }
                queued => self.text.push(queued),
            }
        }
        self.text.push('"');
    }
}
