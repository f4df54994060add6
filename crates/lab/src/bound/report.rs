//! A bound as text, as JSON, and as a table for figures.

use super::case::{Bound, BoundCase};
use isles_chip::bound::{Constants, DataIn, NoBound, Others, Term};
use isles_chip::quantity::Picoseconds;
use serde::Serialize;

/// The report of one case.
#[derive(Serialize)]
pub struct BoundReport {
    pattern: &'static str,
    chip: String,
    preset: String,
    participants: u32,
    bytes: usize,
    work_cycles: u64,
    items: u32,
    /// The bound and its parts, in nanoseconds.
    bound_ns: f64,
    terms_ns: Vec<(&'static str, f64)>,
    /// The longest run of the model.
    seen_ns: Option<f64>,
    deadline_ns: Option<f64>,
    slack_ns: Option<f64>,
    speed_ups: Vec<SpeedUp>,
    /// `true` if the cells of an automaton equal those of a run without cores.
    has_right_cells: Option<bool>,
    assumptions: Vec<String>,
}

/// Worst-case speed-up of `participants` cores over one core.
#[derive(Serialize)]
pub struct SpeedUp {
    pub participants: u32,
    pub bound_ns: f64,
    pub speed_up: f64,
}

impl BoundReport {
    pub fn new(
        case: &BoundCase<'_>,
        bound: &Bound,
        seen: Option<Picoseconds>,
        deadline: Option<Picoseconds>,
        speed_ups: Vec<SpeedUp>,
    ) -> BoundReport {
        let total = bound.terms.total().nanoseconds();
        let parts = Term::ALL.into_iter().filter(|term| bound.terms.part(*term) > Picoseconds::ZERO);
        BoundReport {
            pattern: case.target.name(),
            chip: case.chip.name().to_owned(),
            preset: case.preset.name().to_owned(),
            participants: case.size.participants,
            bytes: case.size.bytes,
            work_cycles: case.size.work,
            items: case.size.items,
            bound_ns: total,
            terms_ns: parts.map(|term| (term.name(), bound.terms.part(term).nanoseconds())).collect(),
            seen_ns: seen.map(Picoseconds::nanoseconds),
            deadline_ns: deadline.map(Picoseconds::nanoseconds),
            slack_ns: deadline.map(|deadline| deadline.nanoseconds() - total),
            speed_ups,
            has_right_cells: seen.and_then(|_| case.has_right_cells()),
            assumptions: assumptions(case, bound),
        }
    }

    /// Returns `true` if the deadline is met in the worst case, or if there is no deadline.
    pub(crate) fn meets_deadline(&self) -> bool {
        self.slack_ns.is_none_or(|slack| slack >= 0.0)
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        let cores = if self.participants == 1 { "core" } else { "cores" };
        let mut text = format!(
            "{} of {} {cores} on {} at {}\n",
            self.pattern, self.participants, self.chip, self.preset
        );
        let mut lines: Vec<(&str, String)> =
            self.terms_ns.iter().map(|(name, nanoseconds)| (*name, time(*nanoseconds))).collect();
        lines.push(("bound", time(self.bound_ns)));
        if let Some(seen) = self.seen_ns {
            let share = 100.0 * seen / self.bound_ns;
            lines.push(("longest run seen", format!("{}   {share:.0} % of the bound", time(seen))));
        }
        if let Some(is_right) = self.has_right_cells {
            lines.push(("cells", format!("{:>14}", if is_right { "right" } else { "WRONG" })));
        }
        if let (Some(deadline), Some(slack)) = (self.deadline_ns, self.slack_ns) {
            lines.push(("deadline", time(deadline)));
            lines.push((if slack < 0.0 { "too late by" } else { "slack" }, time(slack.abs())));
        }
        lines.iter().for_each(|(name, value)| text += &format!("  {name:<24} {value}\n"));
        if !self.speed_ups.is_empty() {
            text += "worst-case speed-up over one core\n";
        }
        for SpeedUp { participants, bound_ns, speed_up } in &self.speed_ups {
            text += &format!("  {participants:>4} {} {speed_up:>8.2}\n", time(*bound_ns));
        }
        text += "assumes\n";
        self.assumptions.iter().for_each(|assumption| text += &format!("  {assumption}\n"));
        text
    }
}

/// Formats a time with three decimals in a suitable unit, padded to the width of a column.
fn time(nanoseconds: f64) -> String {
    let text = match nanoseconds {
        0.0..1e3 => format!("{nanoseconds:.3} ns"),
        1e3..1e6 => format!("{:.3} us", nanoseconds / 1e3),
        _ => format!("{:.3} ms", nanoseconds / 1e6),
    };
    format!("{text:>14}")
}

fn assumptions(case: &BoundCase<'_>, bound: &Bound) -> Vec<String> {
    let others = match case.others {
        Others::Idle => "the other cores access nothing outside their caches",
        Others::Anything => "each other core has one access under way at most, to any buffer or memory",
    };
    let data = match bound.data {
        DataIn::FirstCache => "data are in the first cache of their core",
        DataIn::SecondCache => "data are in the second cache of their core",
        DataIn::Memory => "data come from memory, and what they displace goes back",
    };
    let constants = match case.constants {
        Constants::AsWritten => "the constants of the chip file are exact",
        Constants::WorstCase => "the constants of the chip file are at the bad ends of their errors",
    };
    let mut all = vec![others.to_owned()];
    if case.program().is_some() {
        all.push("all begin at one time".to_owned());
        all.push(data.to_owned());
    }
    all.push(format!("{constants}; the model is right about the chip (docs/chip/bounds.md)"));
    all
}

/// Returns the bound and the longest run over the message length, as CSV.
///
/// # Errors
/// One of the sizes has no bound.
pub fn by_size(case: &BoundCase<'_>, runs: u32) -> Result<String, NoBound> {
    let mut text = String::from("size (B),bound (us),longest run seen (us)\n");
    let largest = case.size.bytes.max(1);
    let mut bytes = largest.div_ceil(1 << 8).next_power_of_two();
    loop {
        let case = case.of_bytes(bytes.min(largest));
        let seen = case.seen(runs).map_or(String::new(), |seen| (seen.nanoseconds() / 1e3).to_string());
        let bound = case.bound()?.terms.total().nanoseconds() / 1e3;
        text += &format!("{},{bound},{seen}\n", case.size.bytes);
        if bytes >= largest {
            return Ok(text);
        }
        bytes *= 2;
    }
}
