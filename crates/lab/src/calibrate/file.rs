//! The chip file of a calibrated machine: hosts round a switch, and what messages take on them.
//!
//! It only writes; the crate `isles-chip` reads it as any other. Invariant: what was measured stands beside what the
//! chip shows, row by row, at the head of the file, and the constants state the middle of those errors.

use super::fit::{self, Constants, Level};
use super::measure::Ways;
use std::fmt::Write;

/// Where the figures come from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The machine, its places and processors, for the file's list of sources.
    pub measured: String,
    /// The processor by name.
    pub processor: String,
    /// Its clock in MHz.
    pub megahertz: u32,
    /// Hosts of the chip, and places of each.
    pub shape: (u32, u32),
}

/// The text of a chip file; with what the chip shows, if that is known.
pub fn text(origin: &Origin, constants: &Constants, measured: &Ways, shown: Option<&Ways>) -> String {
    let mut text = String::new();
    if let Some(shown) = shown {
        text +=
            "# Messages between places, as measured and as on this chip. Written by `isles calibrate`.\n#\n";
        for line in table(measured, shown).lines() {
            let _ = writeln!(text, "# {line}");
        }
        text.push('\n');
    }
    // The constants of both ways stand together, so they are as sure as the less sure one.
    let pairs = |shown: &Ways| [(measured.near, shown.near), (measured.far, shown.far)];
    let middles = shown.into_iter().flat_map(pairs).filter_map(|(measured, shown)| {
        let (middle, _) = fit::errors(&measured?, &shown?);
        Some(middle)
    });
    let error = middles.max_by(f64::total_cmp);
    let error = error.map_or("unknown".to_owned(), |part| format!("{:.0} %", (part * 100.0).max(1.0)));
    write_constants(&mut text, origin, constants, &error);
    text
}

/// The sections of the file; `error` is that of what was measured.
fn write_constants(text: &mut String, origin: &Origin, constants: &Constants, error: &str) {
    let Origin { measured: source, processor, megahertz, shape: (hosts, places) } = origin;
    let (source, processor) = (source.escape_default(), processor.escape_default());
    let Constants { packet, near, far, flit } = constants;
    let cost = |of: fn(&Level) -> f64| {
        let (near, far) = (of(near), of(far));
        // A switch is two links away, and a cost only grows with them.
        format!("{} ps + {} ps/hop", picoseconds(near), picoseconds((far - near).max(0.0) / 2.0))
    };
    let (busy, transit) = (cost(|level| level.busy), cost(|level| level.transit));
    let bytes = Constants::FLIT;
    let _ = write!(
        text,
        "title = \"{hosts} hosts of {places} places, calibrated\"

[sources]
measured = \"isles calibrate: {source}\"
counted = \"what the system says of the host\"
assumed = \"Not measured: see the note\"

[topology]
source = \"counted\"
shape = \"crossbar\"                  # a tile is a host
tiles = [{hosts}, 1]
cores_per_tile = {places}

[core]
kind = \"{processor}\"
source = \"counted\"
line = \"64 B\"

[memory]
each_tile = {{ value = true, source = \"counted\" }}
readers_free = {{ value = {places}, error = \"unknown\", source = \"assumed\", note = \"contention was not measured\" }}

[links]
source = \"measured\"
error = \"{error}\"
flit = \"{bytes} B\"
flit_time = \"{} ps\"
head = {{ value = \"0 ns\", error = \"unknown\", source = \"assumed\", note = \"it is in transit\" }}
payload_max = \"{packet} B\"
overhead = {{ value = \"0 B\", source = \"assumed\", note = \"it is in flit_time\" }}

[clocks]
default = \"host\"

[preset.host]
source = \"measured\"
error = \"{error}\"
core = {{ value = \"{megahertz} MHz\", source = \"counted\" }}
mesh = {{ value = \"1000 MHz\", source = \"assumed\", note = \"no cost depends on it\" }}
memory = {{ value = \"1000 MHz\", source = \"assumed\", note = \"no cost depends on it\" }}
send = \"{busy}\"
receive = \"{busy}\"
transit = \"{transit}\"
",
        picoseconds(*flit),
    );
}

fn picoseconds(nanoseconds: f64) -> u64 {
    (nanoseconds * 1e3).round() as u64
}

/// What was measured beside what the chip shows.
pub fn table(measured: &Ways, shown: &Ways) -> String {
    let mut text = format!(
        "{:<10}  {:<20} {:>12} {:>12} {:>8}\n",
        "way", "half a round trip", "measured us", "chip us", "error"
    );
    for (way, measured, shown) in
        [("in a host", measured.near, shown.near), ("hosts", measured.far, shown.far)]
    {
        let (Some(measured), Some(shown)) = (measured, shown) else { continue };
        for ((name, wanted), (_, got)) in measured.rows().zip(shown.rows()) {
            let error = (got / wanted - 1.0) * 100.0;
            let _ = writeln!(
                text,
                "{way:<10}  {name:<20} {:>12.3} {:>12.3} {error:>+7.0}%",
                wanted / 1e3,
                got / 1e3
            );
        }
    }
    text
}
