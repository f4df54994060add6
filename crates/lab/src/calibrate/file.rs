//! The chip file of a calibrated machine: hosts connected by a switch, and the costs of messages between them.
//!
//! It only writes; `isles-chip` reads the file like any other. Invariant: the head of the file has the measured figures
//! beside those of the chip, row by row, and the constants state the median of those errors.

use super::fit::{self, Constants, Level};
use super::measure::{Figures, FiguresByDistance, Rounds};
use std::fmt::Write;

/// Hosts that a chip is like, and their places.
#[derive(Clone, Copy, Debug)]
pub struct ClusterShape {
    /// Number of hosts.
    pub hosts: u32,
    /// Places of each.
    pub per_host: u32,
}

/// Source of the figures.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The machine, its places and processors, for the file's list of sources.
    pub measured: String,
    /// The processor by name.
    pub processor: String,
    /// Its clock in MHz.
    pub megahertz: u32,
    /// Shape of the chip.
    pub shape: ClusterShape,
}

/// Returns the text of a chip file, with the measured figures and those of the chip if `known` has them.
pub fn text(origin: &Origin, constants: &Constants, known: Option<(&Rounds, &FiguresByDistance)>) -> String {
    let mut text = String::new();
    if let Some((rounds, shown)) = known {
        text +=
            "# Messages between places, as measured and as on this chip. Written by `isles calibrate`.\n#\n";
        for line in table(rounds, shown).lines() {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(
            text,
            "#\n# The rounds of measuring differ by up to a factor of {:.1}.\n",
            rounds.spread()
        );
    }
    // The constants of both distances share one error, that of the less certain one: the larger of the chip's error
    // against the medians and the rounds' error against them.
    let error = known.and_then(|(rounds, shown)| {
        let Rounds { median, least, most } = rounds;
        let off = |other: &FiguresByDistance| [(median.near, other.near), (median.far, other.far)];
        let pairs = [shown, least, most].into_iter().flat_map(off);
        let middles = pairs.filter_map(|(median, other)| Some(fit::errors(&median?, &other?).0));
        middles.max_by(f64::total_cmp)
    });
    let error = error.map_or("unknown".to_owned(), |part| format!("{:.0} %", (part * 100.0).max(1.0)));
    write_constants(&mut text, origin, constants, &error);
    text
}

/// Writes the sections of the file; `error` is that of the measured figures.
fn write_constants(text: &mut String, origin: &Origin, constants: &Constants, error: &str) {
    let Origin { measured: source, processor, megahertz, shape } = origin;
    let ClusterShape { hosts, per_host: places } = shape;
    let (source, processor) = (source.escape_default(), processor.escape_default());
    let Constants { packet, near, far, flit } = constants;
    let cost = |of: fn(&Level) -> f64| {
        let (near, far) = (of(near), of(far));
        // A path through the switch has two links, and a cost cannot decrease with the number of links.
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

/// One figure in nanoseconds: the median, minimum and maximum of the rounds, and the chip's figure.
#[derive(Clone, Debug)]
pub struct TableRow {
    /// `true` if both places are on one host.
    pub is_near: bool,
    pub figure: String,
    pub measured: f64,
    pub least: f64,
    pub most: f64,
    pub shown: f64,
}

/// Returns all figures at the distances that were measured and that the chip has.
pub fn rows(rounds: &Rounds, shown: &FiguresByDistance) -> Vec<TableRow> {
    let Rounds { median, least, most } = rounds;
    let near = [median.near, least.near, most.near, shown.near];
    let far = [median.far, least.far, most.far, shown.far];
    let mut rows = Vec::new();
    for (is_near, [median, least, most, shown]) in [(true, near), (false, far)] {
        let (Some(median), Some(least), Some(most), Some(shown)) = (median, least, most, shown) else {
            continue;
        };
        let values = |figures: &Figures| figures.rows().map(|(_, value)| value).collect::<Vec<_>>();
        let (least, most, shown) = (values(&least), values(&most), values(&shown));
        rows.extend(median.rows().enumerate().map(|(row, (figure, measured))| TableRow {
            is_near,
            figure,
            measured,
            least: least[row],
            most: most[row],
            shown: shown[row],
        }));
    }
    rows
}

/// Returns the table of the measured figures, in microseconds, beside those of the chip.
pub fn table(rounds: &Rounds, shown: &FiguresByDistance) -> String {
    let mut text = format!(
        "{:<10}  {:<20} {:>12} {:>10} {:>10} {:>12} {:>8}\n",
        "way", "half a round trip", "measured us", "least", "most", "chip us", "error"
    );
    for row in rows(rounds, shown) {
        let way = if row.is_near { "in a host" } else { "hosts" };
        let error = (row.shown / row.measured - 1.0) * 100.0;
        let [measured, least, most, shown] =
            [row.measured, row.least, row.most, row.shown].map(|time| time / 1e3);
        let _ = writeln!(
            text,
            "{way:<10}  {:<20} {measured:>12.3} {least:>10.3} {most:>10.3} {shown:>12.3} {error:>+7.0}%",
            row.figure
        );
    }
    text
}
