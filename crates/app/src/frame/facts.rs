//! Facts about every run, and the text of figures.
//!
//! Knows no application. Invariant: printed and written figures are the same.

use isles::{Launch, Machine, RunReport};
use serde::Serialize;

/// Facts about every run; the beginning of the head of its JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct RunFacts {
    version: &'static str,
    machine: &'static str,
    /// Number of places.
    pub places: u32,
    /// Processors that this process may use; 0 if unknown.
    processors: usize,
    /// Seconds that the computation took: of this host, or on a modelled chip of the chip.
    pub seconds: f64,
    messages: u64,
    bytes_moved: u64,
    /// Peak resident memory of the process of the first place, in bytes; with the machine threads that of all places.
    /// `None` on deterministic machines.
    memory_peak: Option<u64>,
    /// The most memory that a place has reported, in bytes; `None` if none did.
    memory_held: Option<u64>,
    #[serde(skip)]
    is_repeatable: bool,
}

impl RunFacts {
    /// Returns the facts known before the run.
    pub fn of(launch: &Launch) -> RunFacts {
        RunFacts {
            version: env!("CARGO_PKG_VERSION"),
            machine: launch.chosen_machine().name(),
            places: launch.chosen_places(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            seconds: 0.0,
            messages: 0,
            bytes_moved: 0,
            memory_peak: None,
            memory_held: None,
            is_repeatable: matches!(launch.chosen_machine(), Machine::Chip(_) | Machine::Loopback),
        }
    }

    /// The places and the machine, for a heading: `4 places (processes)`.
    pub fn machine_text(&self) -> String {
        format!("{} ({})", count(u64::from(self.places), "place", "places"), self.machine)
    }

    /// Adds the seconds, the traffic and the memory of the run.
    pub fn complete(&mut self, seconds: f64, report: &RunReport) {
        (self.seconds, self.messages, self.bytes_moved) = (seconds, report.messages(), report.bytes());
        self.memory_peak = memory_peak().filter(|_| !self.is_repeatable);
        let held = report.places.iter().flatten().map(|place| place.memory_held).max();
        self.memory_held = held.filter(|held| *held > 0);
    }

    /// Returns the bytes and messages moved between places, for people.
    pub fn moved(&self) -> String {
        format!("{} bytes in {} messages", self.bytes_moved, self.messages)
    }
}

/// The most bytes that this process has had resident, if the system says so.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Check of a result: the reference it was checked against, and whether it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// `true` if the result is confirmed.
    pub holds: bool,
    /// Reference it was checked against, and the outcome, in one line.
    pub text: String,
}

impl Verification {
    /// Returns the verification of a result that cannot be checked.
    pub(super) fn impossible() -> Verification {
        Verification { holds: false, text: "there is nothing to check it against".to_owned() }
    }
}

/// Seconds in a unit that shows at least three digits.
pub fn duration(seconds: f64) -> String {
    match seconds {
        1.0.. => format!("{seconds:.3} s"),
        1e-3.. => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{:.3} µs", seconds * 1e6),
    }
}

/// A number with its noun.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Cells of the longest bar.
const CELLS: usize = 20;

/// Returns a bar for `value`, relative to the greatest value `most`, without trailing blanks.
pub fn bar(value: f64, most: f64) -> String {
    let cells = if most > 0.0 { (value / most * CELLS as f64).round() as usize } else { 0 };
    "█".repeat(cells.min(CELLS))
}
