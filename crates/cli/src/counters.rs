//! `isles counters`: the table of counters of places.
//!
//! It prints the table from which pages, logs and metrics take their names, and holds nothing of its own.

use isles_app::Failure;
use isles_app::console;
use isles_telemetry::COUNTERS;

/// Prints a line for each counter: name, unit, whether it grows or is a level, and its meaning.
pub fn print() -> Result<(), Failure> {
    let width = |of: fn(&isles_telemetry::CounterInfo) -> &str| {
        COUNTERS.iter().map(|counter| of(counter).len()).max()
    };
    let names = width(|counter| counter.name).unwrap_or(0);
    let units = width(|counter| counter.unit).unwrap_or(0);
    let row = |counter: &isles_telemetry::CounterInfo| {
        let (name, unit, kind) = (counter.name, counter.unit, counter.kind.name());
        format!("{name:<names$}  {unit:<units$}  {kind:<5}  {}\n", counter.description)
    };
    console::print(COUNTERS.iter().map(row).collect::<String>()).map_err(Failure::stdout)
}
