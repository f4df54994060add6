//! The table of a sweep, for people and as CSV.

use super::choice::{Choice, Limits, is_efficient};
use super::constants;
use super::jump::jumps;
use super::point::Point;
use isles_chip::quantity::scaled;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Returns the settings that no other beats (or all), shortest first, with the choice and its reason.
pub fn text(limits: &Limits, points: &[Point], choice: &Choice, all: bool) -> String {
    let mut rows: Vec<usize> = (0..points.len()).collect();
    rows.retain(|number| all || choice.number == *number || is_efficient(&points[*number], points));
    rows.sort_by(|one, other| points[*one].seconds.total_cmp(&points[*other].seconds));
    let jumps = jumps(points);
    let mut text = String::from(
        "places  clock                 time      energy        mean        peak  energy x time\n",
    );
    for number in &rows {
        let point = &points[*number];
        let clock = clock(point);
        let Point { seconds, joules, mean_watts, peak_watts, .. } = point;
        let [time, energy] = [scaled(*seconds, "s"), scaled(*joules, "J")];
        let [mean, peak] = [mean_watts, peak_watts].map(|watts| scaled(*watts, "W"));
        let (places, product) = (point.setting.places, scaled(point.energy_delay(), "J s"));
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{places:>6}  {clock:<16}  {time:>8}  {energy:>10}  {mean:>10}  {peak:>10}  {product:>13}"
        );
        let constants = constants::to_argument(&point.setting.constants);
        let remarks = [constants, remarks(limits, &jumps, points, *number, choice)];
        let remarks: Vec<String> = remarks.into_iter().filter(|remark| !remark.is_empty()).collect();
        let remarks = remarks.join(", ");
        let _ = writeln!(text, "{}{remarks}", if remarks.is_empty() { "" } else { "  " });
    }
    let (shown, tried) = (rows.len(), points.len());
    if !all {
        let _ = writeln!(
            text,
            "{shown} of {tried} settings: those that no other beats in both time and energy, and the \
             choice"
        );
    }
    let chosen = &points[choice.number];
    text + &note_of_jumps(&jumps)
        + &note_of_region(points)
        + &conclusion(chosen, choice)
        + &note_of_battery(limits, chosen)
}

/// Returns the meaning of the mark at some settings; empty if none has it.
fn note_of_jumps(jumps: &[bool]) -> String {
    let (number, tried) = (jumps.iter().filter(|jumps| **jumps).count(), jumps.len());
    if number == 0 {
        return String::new();
    }
    format!(
        "jump: {number} of {tried} settings: faster than at a faster clock, or more than a tenth slower \
         than time x clock allows; places wait for each other in a different order there, so the \
         prediction says little about the clocks between\n"
    )
}

/// Returns the number of runs of the choice that a battery has the energy for; empty without a battery.
fn note_of_battery(limits: &Limits, chosen: &Point) -> String {
    let (Some(battery), Some(said)) = (limits.battery, &limits.battery_text) else { return String::new() };
    let runs = (battery.joules() / chosen.joules).floor();
    format!("battery: {said} is enough for {runs:.0} such runs\n")
}

/// Returns the note on the region of time and energy; empty for the whole run.
fn note_of_region(points: &[Point]) -> String {
    let region = points.iter().find_map(|point| Some((point.region.as_deref()?, point.times)));
    let note = |(region, times)| {
        let what = match times {
            1 => "time, energy and mean are those".to_owned(),
            _ => format!("time and energy are {times} times those, and mean is that,"),
        };
        format!("{what} of the region {region}, peaks those of the whole run\n")
    };
    region.map_or(String::new(), note)
}

/// Returns the choice with the flags that repeat it, the reason, and the model of the figures.
fn conclusion(point: &Point, choice: &Choice) -> String {
    let (setting, places) = (&point.setting, point.setting.places);
    let several = if places == 1 { "place" } else { "places" };
    let (clock, reason) = (clock(point), &choice.reason);
    let caveat = match point.models.as_slice() {
        [(only, _)] => format!("all figures are from {only}, the only power model of the chip"),
        models => {
            let own = models.first().map_or("", |(name, _)| name);
            let by = models.iter().map(|(name, watts)| format!("{} by {name}", scaled(*watts, "W")));
            let by: Vec<String> = by.collect();
            format!("all figures are from {own}; the mean of the choice is {}", by.join(", "))
        }
    };
    // Not the clock alone: without a governor the cores without a place have it, too.
    format!("choice: {places} {several}, {clock} ({setting})\nreason: {reason}\ncaveat: {caveat}\n")
}

fn clock(point: &Point) -> String {
    match point.clock {
        Some((megahertz, volts)) => format!("{megahertz:.0} MHz {volts:.3} V"),
        None => point.setting.policy.to_string(),
    }
}

fn remarks(limits: &Limits, jumps: &[bool], points: &[Point], number: usize, choice: &Choice) -> String {
    let point = &points[number];
    let known = [
        (choice.number == number, "chosen"),
        (!limits.is_under_cap(point), "above the cap"),
        (!limits.is_in_time(point), "late"),
        (!limits.is_in_battery(point), "beyond the battery"),
        (jumps[number], "jump"),
    ];
    let said: Vec<&str> = known.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what).collect();
    said.join(", ")
}

/// Columns with the same value in all rows of a CSV: the program with its arguments, the machine, and the flags of all
/// runs.
pub type Origin = [(&'static str, String); 3];

/// Writes all settings, in the order in which they were tried.
pub fn write_csv(out: &mut dyn Write, origin: &Origin, limits: &Limits, points: &[Point]) -> io::Result<()> {
    let names: String = origin.iter().map(|(name, _)| format!("{name},")).collect();
    let origin: String = origin.iter().map(|(_, value)| format!("{},", cell(value))).collect();
    let keys = points.first().into_iter().flat_map(|point| &point.setting.constants);
    let keys: String = keys.map(|constant| format!(",{}", cell(&constant.key))).collect();
    writeln!(
        out,
        "{names}places,governor,clock_mhz,voltage_v,time_s,energy_j,mean_w,peak_w,energy_delay_js,jump,region,times,efficient,under_cap,in_time{keys}"
    )?;
    for (point, jumps) in points.iter().zip(jumps(points)) {
        let governor = point.setting.policy;
        let values = point.setting.constants.iter().map(|constant| format!(",{}", cell(&constant.value)));
        let values: String = values.collect();
        let clock =
            point.clock.map_or(",".to_owned(), |(megahertz, volts)| format!("{megahertz:.3},{volts}"));
        let Point { seconds, joules, mean_watts, peak_watts, .. } = point;
        writeln!(
            out,
            "{origin}{},{governor},{clock},{seconds},{joules},{mean_watts},{peak_watts},{},{jumps},{},{},{},{},{}{values}",
            point.setting.places,
            point.energy_delay(),
            cell(point.region.as_deref().unwrap_or_default()),
            point.times,
            is_efficient(point, points),
            limits.is_under_cap(point),
            limits.is_in_time(point)
        )?;
    }
    Ok(())
}

/// Returns a text as a cell of CSV.
fn cell(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
