//! `/metrics`: the counters of all places as OpenMetrics text, for those who have a Prometheus.
//!
//! Names are like those of the counters, in base units and with `isles_` before them. They stand in a table of their
//! own. The only label that varies is the place. Source: OpenMetrics 1.0, sections on the text format and on units.
//! Invariant: the text ends with `# EOF`.

use crate::answer::{Answer, text};
use crate::routes::Asked;
use crate::server::Shared;
use isles_view::{PlaceColumns, PlaceCondition, RunState, RunView, Snapshot};
use std::fmt::Write as _;

/// The media type of OpenMetrics.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Column = fn(&PlaceColumns) -> Option<Vec<f64>>;

/// A family of metrics: name, unit, type, help, and the value of each place.
struct Family(&'static str, &'static str, &'static str, &'static str, Column);

fn counts(column: &[u64]) -> Option<Vec<f64>> {
    Some(column.iter().map(|value| *value as f64).collect())
}

const FAMILIES: [Family; 15] = [
    Family("isles_tasks", "", "counter", "Tasks that have ended at the place.", |c| counts(&c.tasks)),
    Family("isles_queue_tasks", "tasks", "gauge", "Tasks that are ready to run.", |c| counts(&c.queue)),
    Family("isles_blocked_tasks", "tasks", "gauge", "Tasks that have begun and wait.", |c| {
        counts(&c.blocked)
    }),
    Family("isles_messages_sent", "", "counter", "Messages sent.", |c| counts(&c.messages_sent)),
    Family("isles_messages_received", "", "counter", "Messages received.", |c| counts(&c.messages_received)),
    Family("isles_sent_bytes", "bytes", "counter", "Bytes of messages sent.", |c| counts(&c.bytes_sent)),
    Family("isles_received_bytes", "bytes", "counter", "Bytes of messages received.", |c| {
        counts(&c.bytes_received)
    }),
    Family("isles_open_finishes", "finishes", "gauge", "Finishes that are open.", |c| {
        counts(&c.finishes_open)
    }),
    Family("isles_memory_bytes", "bytes", "gauge", "Resident memory of the process.", |c| {
        counts(&c.memory_bytes)
    }),
    Family("isles_busy_ratio", "ratio", "gauge", "Share of time in which the place did not wait.", |c| {
        Some(c.busy.clone())
    }),
    Family("isles_place_up", "", "gauge", "1 while the place is known to be alive.", |c| {
        let is_up = |state: &PlaceCondition| !matches!(state, PlaceCondition::Dead | PlaceCondition::Silent);
        Some(c.state.iter().map(|state| f64::from(is_up(state))).collect())
    }),
    Family("isles_clock_hertz", "hertz", "gauge", "Clock of the core, on a modelled chip.", |c| {
        c.clock_mhz.as_ref().map(|column| column.iter().map(|value| value * 1e6).collect())
    }),
    Family("isles_supply_volts", "volts", "gauge", "Supply of the core, modelled.", |c| c.volt.clone()),
    Family("isles_power_watts", "watts", "gauge", "Power of the core, modelled.", |c| c.watt.clone()),
    Family("isles_energy_joules", "joules", "counter", "Energy of the core, modelled.", |c| c.joule.clone()),
];

/// Answers with the metrics of now.
pub(crate) fn answer(shared: &Shared, _: &Asked<'_>) -> Answer {
    text(KIND, shared.with_view(|view| metrics(view)))
}

/// The text of the metrics.
fn metrics(view: &dyn RunView) -> String {
    let (run, snapshot) = (view.description(), view.latest());
    let mut out = String::new();
    for Family(name, unit, kind, help, column) in FAMILIES {
        let Some(values) = column(&snapshot.places) else { continue };
        describe(&mut out, (name, unit, kind, help));
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (place, value) in values.iter().enumerate() {
            let _ = writeln!(out, "{name}{suffix}{{place=\"{place}\"}} {value}"); // as in `describe`
        }
    }
    describe(&mut out, ("isles_build", "", "info", "The version of Isles, and the machine of the run."));
    let (version, machine) = (escaped(&run.version), escaped(&run.machine));
    let _ = writeln!(out, "isles_build_info{{version=\"{version}\",machine=\"{machine}\"}} 1");
    describe(&mut out, ("isles_run_running", "", "gauge", "1 while the run is known to run."));
    let _ = writeln!(out, "isles_run_running {}", u8::from(snapshot.state == RunState::Running));
    for (name, unit, kind, help, value) in chip(snapshot) {
        describe(&mut out, (name, unit, kind, help));
        let suffix = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(out, "{name}{suffix} {value}"); // as in `describe`
    }
    describe(&mut out, ("isles_samples_missed", "", "counter", "Pages that could not be read at once."));
    let _ = writeln!(out, "isles_samples_missed_total {}", snapshot.dropped.samples);
    out + "# EOF\n"
}

/// What is told of a whole modelled chip: name, unit, type, help and value.
fn chip(snapshot: &Snapshot) -> Vec<(&'static str, &'static str, &'static str, &'static str, f64)> {
    let Some(power) = snapshot.power else { return Vec::new() };
    let seconds = power.until_ms / 1e3;
    vec![
        ("isles_chip_power_watts", "watts", "gauge", "Power of the whole chip, modelled.", power.watt),
        ("isles_chip_energy_joules", "joules", "counter", "Energy of the whole chip, modelled.", power.joule),
        ("isles_chip_energy_seconds", "seconds", "counter", "Modelled time of that energy.", seconds),
    ]
}

fn describe(out: &mut String, (name, unit, kind, help): (&str, &str, &str, &str)) {
    // A text takes whatever is written.
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

/// The value of a label: backslash, quotation mark and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
