//! Broadcasts and reductions among all cores, compared with the forms that they replaced and with measurements; and
//! requested broadcasts with other lengths and trees.
//!
//! Requested broadcasts become rows without a published figure.

use super::access::STANDARD;
use super::bare::{bare, pattern, run};
use super::collective_scaling;
use super::quantity::{Quantity, Title};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, RowSource};
use clap::Args;
use isles_app::Failure;
use isles_app::runs::{numbers, refusal};
use isles_chip::Chip;
use isles_chip::bare::broadcast::{Algorithm, Broadcaster};
use isles_chip::bare::rcce::{LibraryCosts, Participant};
use isles_chip::bare::reduce::Reducer;
use isles_chip::bare::relay::{Plan, Relay};
use isles_chip::bare::{BareChip, LINE_BYTES};
use isles_chip::topology::CoreId;

/// Number of all cores.
pub const CORES: u32 = 48;

/// First line of memory where a reduction stores received data.
const SCRATCH: u64 = 1 << 10;

/// V5 of the validation deck.
pub(crate) const GAINS: Experiment = Experiment {
    name: "collectives",
    about: "broadcast and reduction among 48 cores against serial forms, and by number of cores, at 533/800/800",
    source: "SCC interconnect evaluation (2011); for which length, and with what copy, is not said (002:45-46, 171-175)",
    instructions: "RCCE's for the serial forms, iRCCE's for the new ones, chosen with the factors in\n\
                   view; where a row says so, the bare copy, which the message of the same source (V3) needs",
    rows: RowSource::Model(gains),
};

/// V9 of the validation deck.
pub const BROADCAST: Experiment = Experiment {
    name: "broadcast",
    about: "one broadcast among 48 cores until all have it in memory, k = 47, at 533/800/800",
    source: "Asynchronous broadcast on the SCC, MARC 2012, paper 5",
    instructions: "the copy of iRCCE, as the source says, and the calls of RCCE, chosen with the first\n\
                   row of each form in view; where a row says so, the calls of iRCCE",
    rows: RowSource::Model(broadcast),
};

/// V10 of the validation deck: the throughput.
pub(crate) const THROUGHPUT: Experiment = Experiment {
    name: "throughput",
    about: "bytes broadcast a second, messages of 4 KiB again and again, asynchronous, by children and sources",
    source: "Asynchronous broadcast on the SCC, MARC 2012, paper 5, figure 3",
    instructions: "the copy of iRCCE and the calls of RCCE, as for `broadcast`; behind an interrupt a switch of\n\
                   6,400 cycles (004:2347), but where a row says so",
    rows: RowSource::Model(throughput),
};

/// Returns the microseconds of one broadcast of `lines` lines that no cache holds.
fn once(chip: &Chip, algorithm: Algorithm, library: LibraryCosts, lines: u32) -> f64 {
    let bare = bare(chip, STANDARD);
    broadcast_on(&bare, algorithm, library, lines)
}

/// Returns the microseconds of one broadcast of `lines` lines that each core has read before.
fn cached(chip: &Chip, algorithm: Algorithm, library: LibraryCosts, lines: u32) -> f64 {
    let bare = bare(chip, STANDARD);
    read_all(&bare, &[0], lines);
    broadcast_on(&bare, algorithm, library, lines)
}

/// Reads, on each core, `lines` lines of its memory from each of `places` on.
fn read_all(bare: &BareChip, places: &'static [u64], lines: u32) {
    run(bare, 0..CORES, |core| async move {
        for place in places {
            for line in 0..u64::from(lines) {
                core.load(place + line).await;
            }
        }
    });
}

fn broadcast_on(bare: &BareChip, algorithm: Algorithm, library: LibraryCosts, lines: u32) -> f64 {
    let (bytes, message) = (lines as usize * LINE_BYTES, pattern(lines as usize * LINE_BYTES));
    bare.core(CoreId(0)).set_memory(0, &message);
    let took = run(bare, 0..CORES, |core| async move {
        let here = Participant { core, participants: CORES, library };
        Broadcaster::new(here, algorithm, 0).broadcast(0, bytes).await;
    });
    assert!((0..CORES).all(|core| bare.core(CoreId(core)).memory(0, bytes) == message));
    took.nanoseconds() / 1e3
}

/// Returns the microseconds of one asynchronous broadcast of each source.
fn relayed(chip: &Chip, library: LibraryCosts, plan: Plan) -> f64 {
    let bare = bare(chip, STANDARD);
    for source in 0..plan.sources {
        let message = pattern(plan.lines as usize * LINE_BYTES);
        bare.core(CoreId(source)).set_memory(u64::from(source * plan.lines), &message);
    }
    let took = run(&bare, 0..CORES, |core| async move {
        let here = Participant { core, participants: CORES, library };
        Relay::new(here, plan).run().await;
    });
    took.nanoseconds() / 1e3
}

fn broadcast(chip: &Chip) -> Vec<Row> {
    let mut rows = measured(chip, "V9", "", LibraryCosts::MIXED);
    rows.extend(latency_remarks(&rows));
    rows.extend(measured(chip, "", "iRCCE's calls", LibraryCosts::IRCCE));
    rows.extend(with_a_switch(chip));
    for (name, algorithm) in OTHERS {
        rows.extend([1, 128].map(|lines| alone(chip, name, algorithm, lines)));
    }
    rows.extend([1, 128].map(|lines| tree(chip, 7, lines)));
    rows
}

/// Minimum number of cycles of a context switch on the Linux of this chip (004:2347). An interrupt reaches a program
/// after such a switch, as a signal (004:1135).
const SWITCH: u64 = 6_400;

/// One message from one source to all cores.
const ONCE: Plan = Plan { sources: 1, lines: 1, times: 1, fanout: CORES - 1, signal: 0 };

/// Lengths in lines, and the measured microseconds of the asynchronous form.
const ASYNCHRONOUS: [(u32, f64); 4] = [(1, 40.2), (32, 75.5), (64, 118.0), (128, 196.7)];

/// Returns the rows of the asynchronous form with the cost of a context switch that was measured elsewhere.
fn with_a_switch(chip: &Chip) -> Vec<Row> {
    let (band, basis) = (Band::Within(15.0), Basis::Predicted);
    let family = Family { deck: "", unit: "µs", band, basis, source: "004:1229", reading: "" };
    let row = |(lines, published)| {
        let ours = relayed(chip, LibraryCosts::MIXED, Plan { lines, signal: SWITCH, ..ONCE });
        let title = Title::from("asynchronous").over(Quantity::lines(lines));
        family.row(title.and("a switch behind the interrupt"), published, ours)
    };
    ASYNCHRONOUS.into_iter().map(row).collect()
}

/// Returns the rows on the paper's remarks about its table; `rows` are those of the synchronous form, then those of the
/// asynchronous one.
fn latency_remarks(rows: &[Row]) -> Vec<Row> {
    let (one, other) = rows.split_at(rows.len() / 2);
    let (band, basis) = (Band::Within(15.0), Basis::Predicted);
    let comparable = Family { deck: "", unit: "", band, basis, source: "004:1241", reading: "" };
    let comparable = comparable.reading("1: “very similar latencies”");
    let ratio = |(one, other): (&Row, &Row)| {
        let title = one.figure.replace("OC-Bcast", "asynchronous / OC-Bcast");
        comparable.row(title, 1.0, other.ours / one.ours)
    };
    let mut remarks: Vec<Row> = one.iter().zip(other).map(ratio).collect();
    let growth = |rows: &[Row]| rows[rows.len() - 1].ours - rows[0].ours;
    let faster = Family { band: Band::AtMost, ..comparable.at("004:1243") };
    let faster =
        faster.reading("≤ 1: the asynchronous one “increases faster as a function of the message size”");
    let title = "growth from 1 to 128 lines, OC-Bcast / asynchronous";
    remarks.push(faster.row(title, 1.0, growth(one) / growth(other)));
    remarks
}

/// The forms without a number of children, and their names.
const OTHERS: [(&str, Algorithm); 5] = [
    ("serial sends", Algorithm::SerialSend),
    ("naive put", Algorithm::NaivePut),
    ("parallel get", Algorithm::ParallelGet),
    ("binomial", Algorithm::Binomial),
    ("scatter-allgather", Algorithm::ScatterAllGather),
];

/// Family of the figures that are not published.
const ALONE: Family = Family {
    deck: "",
    unit: "µs",
    band: Band::Unpublished,
    basis: Basis::Predicted,
    source: "",
    reading: "",
};

fn alone(chip: &Chip, name: impl Into<Title>, algorithm: Algorithm, lines: u32) -> Row {
    let ours = once(chip, algorithm, LibraryCosts::MIXED, lines);
    ALONE.row(name.into().over(Quantity::lines(lines)), f64::NAN, ours)
}

fn tree(chip: &Chip, fanout: u32, lines: u32) -> Row {
    let title = Title::from("OC-Bcast").over(Quantity::children(fanout));
    alone(chip, title, Algorithm::Tree { fanout }, lines)
}

/// Returns the rows of a broadcast of `lines` lines in every form, with these numbers of children if it has one.
pub fn asked(chip: &Chip, lines: u32, children: &[u32]) -> Vec<Row> {
    let mut rows: Vec<Row> =
        OTHERS.into_iter().map(|(name, algorithm)| alone(chip, name, algorithm, lines)).collect();
    rows.extend(children.iter().map(|fanout| tree(chip, *fanout, lines)));
    rows.extend(children.iter().map(|&fanout| {
        let ours =
            relayed(chip, LibraryCosts::MIXED, Plan { sources: 1, lines, times: 1, fanout, signal: 0 });
        let title = Title::from("asynchronous").over(Quantity::children(fanout));
        ALONE.row(title.over(Quantity::lines(lines)), f64::NAN, ours)
    }));
    rows
}

/// Returns the rows of the paper's measurements, with the instructions of a library.
fn measured(chip: &Chip, deck: &'static str, with: &str, library: LibraryCosts) -> Vec<Row> {
    let (band, source) = (Band::Within(15.0), "004:1228");
    let predicted = Family { deck, unit: "µs", band, basis: Basis::Predicted, source, reading: "" };
    // Chosen with the first five in view. The first of each form decided that flags are cleared, and with which
    // library's instructions; the others decided that a core without children fetches straight into memory.
    let chosen = Family { basis: Basis::Calibrated, ..predicted };
    let tree = Algorithm::Tree { fanout: CORES - 1 };
    let mut rows = Vec::new();
    for (lines, published) in [(1, 44.0), (32, 76.1), (64, 112.6), (128, 189.8)] {
        let ours = once(chip, tree, library, lines);
        let title = Title::from("OC-Bcast").over(Quantity::lines(lines)).and(with);
        rows.push(chosen.row(title, published, ours));
    }
    for (lines, published) in ASYNCHRONOUS {
        let ours = relayed(chip, library, Plan { lines, ..ONCE });
        let family = if lines == 1 { chosen } else { predicted };
        let title = Title::from("asynchronous").over(Quantity::lines(lines)).and(with);
        rows.push(family.at("004:1229").row(title, published, ours));
    }
    rows
}

fn gains(chip: &Chip) -> Vec<Row> {
    let mut rows = gained(chip, "V5", "", LibraryCosts::IRCCE, Basis::Calibrated);
    rows.extend(gained(chip, "", "bare copy", LibraryCosts::BARE, Basis::Predicted));
    rows.extend(collective_scaling::rows(chip));
    rows
}

/// Returns the factors for all lengths, because the source does not say which one it measured; `library` is that of the
/// new forms.
fn gained(chip: &Chip, deck: &'static str, with: &str, library: LibraryCosts, basis: Basis) -> Vec<Row> {
    let family = Family { deck, unit: "", band: Band::Within(25.0), basis, source: "002:45", reading: "" };
    let mut rows = Vec::new();
    let lengths = [1, 8, 64, 256];
    for lines in lengths {
        let old = cached(chip, Algorithm::SerialSend, LibraryCosts::RCCE, lines);
        let new = cached(chip, Algorithm::ParallelGet, library, lines);
        let title = Title::from("broadcast").over(Quantity::lines(lines)).and(with);
        rows.push(family.row(title, 22.0, old / new));
    }
    for lines in lengths {
        let old = reduction(chip, true, LibraryCosts::RCCE, lines);
        let new = reduction(chip, false, library, lines);
        let title = Title::from("reduction").over(Quantity::lines(lines)).and(with);
        rows.push(family.at("002:46").row(title, 6.4, old / new));
    }
    rows
}

/// Returns the microseconds of a sum of `lines` lines of words that each core has read before.
fn reduction(chip: &Chip, is_serial: bool, library: LibraryCosts, lines: u32) -> f64 {
    let bare = bare(chip, STANDARD);
    let bytes = lines as usize * LINE_BYTES;
    read_all(&bare, &[0, SCRATCH], lines);
    let took = run(&bare, 0..CORES, |core| async move {
        let here = Participant { core, participants: CORES, library };
        let reducer = Reducer::new(here);
        match is_serial {
            true => reducer.serial(0, 0, SCRATCH, bytes).await,
            false => reducer.logarithmic(0, 0, SCRATCH, bytes).await,
        }
    });
    took.nanoseconds() / 1e3
}

/// Lines of a message of figure 3, which each source broadcasts repeatedly.
const MESSAGE_LINES: u32 = 128;

/// Numbers of sources, and the number of broadcasts of each, enough for the start and the end to have little weight.
const SOURCES: [(u32, u32); 3] = [(1, 8), (5, 3), (CORES, 1)];

/// Children of a node of the tree.
const FANOUTS: [u32; 6] = [2, 3, 5, 7, 16, CORES - 1];

fn throughput(chip: &Chip) -> Vec<Row> {
    let (band, source) = (Band::Unpublished, "");
    let family = Family { deck: "", unit: "MB/s", band, basis: Basis::Predicted, source, reading: "" };
    let mut rows = Vec::new();
    for (name, signal) in [("no switch", 0), ("", SWITCH)] {
        let mut rates = Vec::new();
        for (sources, times) in SOURCES {
            let mut by_fanout = Vec::new();
            for fanout in FANOUTS {
                let plan = Plan { sources, lines: MESSAGE_LINES, times, fanout, signal };
                let took = relayed(chip, LibraryCosts::MIXED, plan);
                let bytes = f64::from(sources * times * MESSAGE_LINES) * LINE_BYTES as f64;
                let title = Title::from(Quantity::sources(sources)).over(Quantity::children(fanout));
                by_fanout.push(bytes / took);
                rows.push(family.row(title.and(name), f64::NAN, bytes / took));
            }
            rates.push(by_fanout);
        }
        if signal > 0 {
            rows.extend(throughput_remarks(&rates));
        }
    }
    rows
}

/// Returns the rows on the paper's remarks about figure 3, as ratios; `rates` are by source and children.
fn throughput_remarks(rates: &[Vec<f64>]) -> Vec<Row> {
    let [one, five, all] = rates else { unreachable!("there are three numbers of sources") };
    let (band, basis) = (Band::AtMost, Basis::Predicted);
    let shape = Family { deck: "", unit: "", band, basis, source: "004:1247", reading: "" };
    let falls = shape.reading("≤ 1: “the throughput decreases as k increases”");
    let more = shape.at("004:1256").reading("≤ 1: “With more than one source, the throughput increases”");
    let rises = shape.at("004:1260").reading("≤ 1: “the trend is opposite to the single-source case”");
    let each = shape.at("004:1260").reading("≤ 1: “each increase by 1 evidently increases the throughput”");
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let (last, seven) = (FANOUTS.len() - 1, 3);
    let largest = |ratios: &mut dyn Iterator<Item = f64>| ratios.fold(0.0, f64::max);
    let growth = largest(&mut one.windows(2).map(|pair| pair[1] / pair[0]));
    let mut rows = vec![
        falls.row("1 source, k = 47 / k = 2", 1.0, one[last] / one[0]),
        falls.row("1 source, largest growth from one k to the next", 1.0, growth),
    ];
    for (name, rates) in [("5 sources", five), ("48 sources", all)] {
        rows.push(more.row(format!("1 source / {name}, mean"), 1.0, mean(one) / mean(rates)));
        rows.push(rises.row(format!("{name}, k = 2 / k = 7"), 1.0, rates[0] / rates[seven]));
        rows.push(each.row(
            format!("{name}, largest fall from one k to the next, up to 7"),
            1.0,
            largest(&mut rates[..=seven].windows(2).map(|pair| pair[0] / pair[1])),
        ));
    }
    let comparable = Family { band: Band::Within(15.0), ..shape }.at("004:1258");
    let comparable = comparable.reading("1: “from 5 and 48 sources is not significant”");
    rows.push(comparable.row("48 sources / 5, mean", 1.0, mean(all) / mean(five)));
    let share = Family { unit: "%", band: Band::Within(15.0), ..shape }.at("004:1258");
    for (name, rates) in [("5 sources", five), ("48 sources", all)] {
        let most = largest(&mut rates.iter().copied());
        rows.push(share.row(format!("{name}, most of the 55 MB/s of a copy"), 68.0, most / 55.0 * 100.0));
    }
    rows
}

/// Maximum number of lines of a message: half of a second-level cache.
const LINES_MAX: u32 = 4096;

/// The arguments of `isles repro` that request more broadcasts.
#[derive(Args)]
pub struct RequestArguments {
    /// For `broadcast`: more lengths in lines of 32 bytes, separated by commas, such as 4,16; for every form
    #[arg(long, value_name = "N,N", allow_hyphen_values = true)]
    lines: Option<String>,
    /// For --lines: numbers of children of a place in the tree, separated by commas, such as 2,7 [default: 47]
    #[arg(long, value_name = "K,K", allow_hyphen_values = true)]
    children: Option<String>,
}

/// Requested lengths and numbers of children, at least one of each.
pub struct Request {
    lines: Vec<u32>,
    children: Vec<u32>,
}

impl RequestArguments {
    /// Returns the broadcasts requested for the experiments `names`, or `None` if no option requests any.
    ///
    /// # Errors
    /// A number is not allowed, or an option has no meaning without another one or without the experiment.
    pub fn read(&self, names: &[String]) -> Result<Option<Request>, Failure> {
        let most = CORES - 1;
        let children = self.children.as_deref();
        let Some(lines) = self.lines.as_deref() else {
            let alone = |children| refusal("--children", children, "nothing without --lines");
            return children.map_or(Ok(None), |children| Err(alone(children)));
        };
        if !names.iter().any(|name| name == BROADCAST.name) {
            let allowed = format!("nothing without the experiment {}", BROADCAST.name);
            return Err(refusal("--lines", lines, &allowed));
        }
        let list = |flag, list, most| {
            let allowed = format!("whole numbers from 1 to {most}, separated by commas");
            numbers(flag, list, &allowed, |number| (1..=most).contains(number))
        };
        let lines = list("--lines", lines, LINES_MAX)?;
        let children = children.map(|children| list("--children", children, most)).transpose()?;
        Ok(Some(Request { lines, children: children.unwrap_or_else(|| vec![most]) }))
    }
}

impl Request {
    /// Returns the rows, length by length.
    pub fn rows(&self, chip: &Chip) -> Vec<Row> {
        self.lines.iter().flat_map(|lines| asked(chip, *lines, &self.children)).collect()
    }
}
