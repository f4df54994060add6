//! `isles trace`: the trace of a run as tables.
//!
//! Reads a file written by `--trace`, of the host or of a modelled chip, and prints the result of `isles_trace::stats`.
//! Invariant: a file that is not a trace, or is cut off, is refused in one line, with nothing printed.

use clap::Subcommand;
use clap::builder::RangedU64ValueParser;
use isles_app::Failure;
use isles_app::console;
use isles_app::input::{self, ReadFault};
use isles_app::runs::refusal;
use isles_trace::stats::{FinishSpan, PairTraffic, Stats, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;

/// Largest number of finishes that can be listed.
const FINISHES_MAX: u64 = 10_000;

/// Largest trace: a place of the host records at most 29 MB, a modelled chip 50 MB per second of the host.
const BYTES_MAX: u64 = 2 << 30;

/// First byte of a trace: the tag of a packet.
const PACKET: [u8; 1] = [0x0a];

/// Commands for traces.
#[derive(Subcommand)]
pub enum Verb {
    /// Prints time by place and activity, messages by pair of places, calls, and the longest finishes
    Stats {
        /// File written by --trace
        #[arg(value_name = "FILE")]
        file: String,
        /// Number of longest finishes to list
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = finishes())]
        finishes: u64,
        /// Print all figures as JSON instead, in seconds
        #[arg(long)]
        json: bool,
    },
}

/// Returns the parser of the number of finishes.
fn finishes() -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(0..=FINISHES_MAX)
}

/// Executes the command.
pub fn execute(verb: &Verb) -> Result<(), Failure> {
    let Verb::Stats { file, finishes, json } = verb;
    let refused = |cause: &dyn std::fmt::Display| {
        refusal("FILE", file, &format!("a complete file written by --trace ({cause})"))
    };
    let bytes = contents(file).map_err(|cause| refused(&cause))?;
    let stats = read(&bytes, *finishes as usize).map_err(|cause| refused(&cause))?;
    let printed = match json {
        true => console::print(format_args!("{:#}\n", as_json(&stats))),
        false => console::print_report(true, &as_text(&stats)),
    };
    printed.map_err(Failure::stdout)
}

/// Returns the contents of a file, at most [`BYTES_MAX`]; only the first byte of a file that does not begin as a trace
/// does.
fn contents(file: &str) -> Result<Vec<u8>, ReadFault> {
    let mut opened = File::open(file).map_err(ReadFault::Unreadable)?;
    let first = input::bytes_of(opened.by_ref().take(1), 1)?;
    if first != PACKET {
        return Ok(first);
    }
    input::bytes_of(first.as_slice().chain(opened), BYTES_MAX)
}

/// Returns a time in milliseconds.
fn milliseconds(stats: &Stats, time: u64) -> f64 {
    stats.unit.seconds(time) * 1e3
}

/// Returns the shortest and the mean time of the messages of a pair, from the start of sending to the start of
/// handling, in seconds; `None` if the trace has no message with both ends.
fn transit_times(stats: &Stats, pair: &PairTraffic) -> Option<[f64; 2]> {
    let seconds = |time: i64| stats.unit.seconds(time.unsigned_abs()) * if time < 0 { -1.0 } else { 1.0 };
    (pair.matched > 0).then(|| [seconds(pair.shortest), seconds(pair.time) / pair.matched as f64])
}

fn as_text(stats: &Stats) -> String {
    let mut text = format!("{}\n\nTime by place, ms\n", stats.run);
    let activities = stats.activities();
    let mut rows =
        vec![["place", "all"].into_iter().chain(activities.iter().copied()).map(str::to_owned).collect()];
    for (place, times) in &stats.places {
        if stats.missing.contains(place) {
            continue;
        }
        let shown = |time| format!("{:.3}", milliseconds(stats, time));
        let each = activities.iter().map(|name| shown(times.get(*name).copied().unwrap_or_default()));
        rows.push([place.to_string(), shown(times.values().sum())].into_iter().chain(each).collect());
    }
    table(&mut text, &rows);
    for place in &stats.missing {
        _ = writeln!(text, "place {place} is missing: it did not reach the end of the run");
    }
    for (place, dropped) in &stats.dropped {
        _ = writeln!(text, "place {place} dropped {dropped} events; no table includes them");
    }
    text.push_str("\nMessages by pair of places\n");
    let mut rows = vec![strings(["from", "to", "messages", "bytes", "shortest way, us", "mean way, us"])];
    rows.extend(stats.pairs.iter().map(|((from, to), pair)| {
        let [shortest, mean] = transit_times(stats, pair)
            .map_or([const { String::new() }; 2], |ways| ways.map(|seconds| format!("{:.3}", seconds * 1e6)));
        let [messages, bytes] = [pair.messages, pair.bytes].map(|count| count.to_string());
        strings([from.to_string(), to.to_string(), messages, bytes, shortest, mean])
    }));
    table(&mut text, &rows);
    text.push_str("\nCalls, ms\n");
    let mut rows = vec![strings(["all", "longest", "number", "name"])];
    rows.extend(stats.calls.iter().map(|(name, sum)| {
        let [all, longest] = [sum.time, sum.longest].map(|time| format!("{:.3}", milliseconds(stats, time)));
        strings([all, longest, sum.count.to_string(), name.clone()])
    }));
    table(&mut text, &rows);
    text.push_str("\nLongest finishes, ms\n");
    let mut rows = vec![strings(["time", "from", "place", "line"])];
    rows.extend(stats.finishes.iter().map(|finish| {
        let [time, start] =
            [finish.time, finish.start].map(|time| format!("{:.3}", milliseconds(stats, time)));
        strings([time, start, finish.place.to_string(), line_of(finish)])
    }));
    table(&mut text, &rows);
    text
}

fn strings<const N: usize>(cells: [impl Into<String>; N]) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

/// Returns the line of the program with the finish.
fn line_of(finish: &FinishSpan) -> String {
    finish.source.as_ref().map_or("unknown".to_owned(), |(file, line)| format!("{file}:{line}"))
}

/// Adds a table: columns are as wide as needed, with numbers to the right; the last one is open to the right.
fn table(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let is_words =
                column + 1 == row.len() && rows.iter().skip(1).any(|row| row[column].parse::<f64>().is_err());
            _ = if is_words { write!(text, "  {cell}") } else { write!(text, "  {cell:>0$}", width(column)) };
        }
        text.push('\n');
    }
}

fn as_json(stats: &Stats) -> Value {
    let seconds = |time: u64| stats.unit.seconds(time);
    let places: Vec<Value> = stats
        .places
        .iter()
        .filter(|(place, _)| !stats.missing.contains(place))
        .map(|(place, times)| {
            let times: BTreeMap<&str, f64> =
                times.iter().map(|(name, time)| (name.as_str(), seconds(*time))).collect();
            let dropped = stats.dropped.get(place).copied().unwrap_or_default();
            json!({ "place": place, "seconds": times, "dropped": dropped })
        })
        .collect();
    let pairs = stats.pairs.iter().map(|((source, target), pair)| {
        let [shortest, mean] = transit_times(stats, pair).map_or([None; 2], |ways| ways.map(Some));
        json!({
            "source": source,
            "target": target,
            "messages": pair.messages,
            "bytes": pair.bytes,
            "shortest": shortest,
            "mean": mean,
        })
    });
    let calls = stats.calls.iter().map(|(name, sum)| {
        json!({ "name": name, "count": sum.count, "seconds": seconds(sum.time), "longest": seconds(sum.longest) })
    });
    let finishes = stats.finishes.iter().map(|finish| {
        json!({
            "seconds": seconds(finish.time),
            "start": seconds(finish.start),
            "place": finish.place,
            "line": finish.source.as_ref().map(|_| line_of(finish)),
        })
    });
    json!({
        "run": stats.run,
        "places": places,
        "missing": stats.missing,
        "messages": pairs.collect::<Vec<_>>(),
        "calls": calls.collect::<Vec<_>>(),
        "finishes": finishes.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut text = String::new();
        table(&mut text, &[strings(["a", "name"]), strings(["100", "at"]), strings(["7", "finish"])]);
        assert_eq!(text, "    a  name\n  100  at\n    7  finish\n");
        text.clear();
        table(&mut text, &[strings(["a", "b"]), strings(["1", "20"])]);
        assert_eq!(text, "  a   b\n  1  20\n");
    }
}
