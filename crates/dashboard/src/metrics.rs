//! `/metrics`: the counters of all places as OpenMetrics text, for Prometheus.
//!
//! Names, units and texts are those of the table of counters, with `isles_` before the names; metrics computed from
//! counters, and those of the whole run, are defined here. The only label that varies is the place. Source: OpenMetrics
//! 1.0, sections on the text format and on units. Invariant: the text ends with `# EOF`.

use crate::answer::{Answer, text};
use crate::routes::RequestContext;
use crate::server::Shared;
use isles_telemetry::{CounterInfo, CounterKind};
use isles_view::{PlaceColumns, PlaceCondition, RunState, RunView, Snapshot};
use std::fmt::Write as _;

/// The media type of OpenMetrics.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The base unit of each unit of a counter, and the factor from the unit to it.
const BASE_UNITS: [(&str, &str, f64); 7] = [
    ("MHz", "hertz", 1e6),
    ("V", "volts", 1.0),
    ("J", "joules", 1.0),
    ("ns", "seconds", 1e-9),
    ("bytes", "bytes", 1.0),
    ("tasks", "tasks", 1.0),
    ("finishes", "finishes", 1.0),
];

/// Description of a metric.
struct Metric<'a> {
    name: &'a str,
    unit: &'a str,
    kind: &'a str,
    help: &'a str,
}

/// Level that is computed from the columns: name, unit and help.
type Level = (&'static str, &'static str, &'static str);

/// Returns the levels of places that are no counters, with their values.
fn levels(columns: &PlaceColumns) -> Vec<(Level, Vec<f64>)> {
    let is_up = |state: &PlaceCondition| !matches!(state, PlaceCondition::Dead | PlaceCondition::Silent);
    let up = columns.state.iter().map(|state| f64::from(is_up(state))).collect();
    let busy = ("isles_busy_ratio", "ratio", "Share of time in which the place did not wait.");
    let mut levels = vec![
        (busy, columns.busy.clone()),
        (("isles_place_up", "", "1 while the place is known to be alive."), up),
    ];
    if let Some(watt) = &columns.watt {
        levels.push((("isles_power_watts", "watts", "Power of the core, modelled."), watt.clone()));
    }
    levels
}

/// Writes the family of a counter, with a line for each place.
fn write_counter(out: &mut String, counter: &CounterInfo, words: &[u64]) {
    let base = BASE_UNITS.iter().find(|(unit, base, _)| {
        *unit == counter.unit && counter.metric.strip_suffix(base).is_some_and(|rest| rest.ends_with('_'))
    });
    let (unit, scale) = base.map_or(("", 1.0), |(_, base, scale)| (*base, *scale));
    let (kind, suffix) = match counter.kind {
        CounterKind::Count => ("counter", "_total"),
        CounterKind::Gauge => ("gauge", ""),
    };
    let name = format!("isles_{}", counter.metric);
    describe(out, &Metric { name: &name, unit, kind, help: counter.description });
    for (place, word) in words.iter().enumerate() {
        let value = counter.shown(*word) * scale;
        let _ = writeln!(out, "{name}{suffix}{{place=\"{place}\"}} {value}"); // as in `describe`
    }
}

/// Answers with the current metrics.
pub(crate) fn answer(shared: &Shared, _: &RequestContext<'_>) -> Answer {
    text(KIND, shared.with_view(|view| metrics(view)))
}

/// Returns the metrics as text.
fn metrics(view: &dyn RunView) -> String {
    let (run, snapshot) = (view.description(), view.latest());
    let mut out = String::new();
    for (counter, words) in snapshot.places.counters.iter() {
        write_counter(&mut out, counter, words);
    }
    for ((name, unit, help), values) in levels(&snapshot.places) {
        describe(&mut out, &Metric { name, unit, kind: "gauge", help });
        for (place, value) in values.iter().enumerate() {
            let _ = writeln!(out, "{name}{{place=\"{place}\"}} {value}"); // as in `describe`
        }
    }
    let help = "The version of Isles, and the machine of the run.";
    describe(&mut out, &Metric { name: "isles_build", unit: "", kind: "info", help });
    let (version, machine) = (escaped(&run.version), escaped(&run.machine));
    let _ = writeln!(out, "isles_build_info{{version=\"{version}\",machine=\"{machine}\"}} 1");
    let help = "1 while the run is known to run.";
    describe(&mut out, &Metric { name: "isles_run_running", unit: "", kind: "gauge", help });
    let _ = writeln!(out, "isles_run_running {}", u8::from(snapshot.state == RunState::Running));
    for (metric, value) in chip(snapshot) {
        describe(&mut out, &metric);
        let suffix = if metric.kind == "counter" { "_total" } else { "" };
        let _ = writeln!(out, "{}{suffix} {value}", metric.name); // as in `describe`
    }
    let help = "Pages that could not be read at once.";
    describe(&mut out, &Metric { name: "isles_samples_missed", unit: "", kind: "counter", help });
    let _ = writeln!(out, "isles_samples_missed_total {}", snapshot.dropped.samples);
    out + "# EOF\n"
}

/// Returns the metrics of a whole modelled chip, with their values.
fn chip(snapshot: &Snapshot) -> Vec<(Metric<'static>, f64)> {
    let Some(power) = snapshot.power else { return Vec::new() };
    let seconds = power.until_ms / 1e3;
    let metric = |name, unit, kind, help| Metric { name, unit, kind, help };
    vec![
        (
            metric("isles_chip_power_watts", "watts", "gauge", "Power of the whole chip, modelled."),
            power.watt,
        ),
        (
            metric("isles_chip_energy_joules", "joules", "counter", "Energy of the whole chip, modelled."),
            power.joule,
        ),
        (metric("isles_chip_energy_seconds", "seconds", "counter", "Modelled time of that energy."), seconds),
    ]
}

fn describe(out: &mut String, metric: &Metric<'_>) {
    let Metric { name, unit, kind, help } = metric;
    // Writing to a string does not fail.
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

/// Escapes the value of a label: backslash, quotation mark and line feed.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
