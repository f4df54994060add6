//! A network-centric real-time kernel on the SCC: a semaphore loop, and a port by length and distance.
//!
//! Each run is one of `isles run semaphore-loop` or `isles run port-throughput`, at 533/800/800; between cores it uses
//! the protocol `ring`, which is the link driver of the paper. The costs of the kernel are calibrated: a switch and a
//! packet on the loop, a copy on the port of one core. For two cores, the costs of words and of waking a task are in
//! the chip file; that of words was chosen with the figures near and far in view. The paper's tables of other
//! processors are not modelled. Invariant: every row could come out on the wrong side, except those of interrupts,
//! which are inputs.

mod code_size;

use super::super::access::STANDARD;
use super::super::bare::{bare, pattern, run};
use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::document;
use isles_app::{Failure, runs};
use isles_chip::bare::LINE_BYTES;
use isles_chip::cost::{HopCost, TimingTable};
use isles_chip::quantity::Picoseconds;
use isles_chip::{Chip, ControllerId};

/// The evaluation of the paper.
pub(crate) const RTOS: Experiment = Experiment {
    name: "rtos",
    about: "the hubs of OpenComRTOS: a semaphore loop and a port, on the SCC at 533/800/800 and on the C6678",
    source: "Sputh, Lukin and Verhulst, OpenComRTOS on the SCC, MARC 2012, paper 10",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Lengths of packets.
const LENGTHS: [u32; 8] = [32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Cores of sender and receiver, and the paper's name for their distance.
const PAIRS: [(&str, &str); 3] = [("10,11", "0 hops"), ("10,8", "1 hop"), ("10,36", "8 hops")];

const NEAR: Family = Family {
    deck: "",
    unit: "MB/s",
    band: Band::Within(20.0),
    basis: Basis::Calibrated,
    source: "004:2171",
    reading: "",
};
const SHAPE: Family = Family { unit: "", band: Band::AtMost, basis: Basis::Predicted, ..NEAR };

/// Rates by length, for one core or a pair.
type Rates = Vec<f64>;

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = semaphore_loop()?;
    rows.extend(interrupts());
    rows.extend(copies());
    rows.extend(texas()?);
    let one = "--places 1".to_owned();
    let pairs = PAIRS.map(|(placement, _)| format!("--places 2 --protocol ring --placement {placement}"));
    let forms: Vec<String> = [one].into_iter().chain(pairs).collect();
    let rates = runs::all(forms.len() * LENGTHS.len(), "lengths", |number| {
        rate(&forms[number / LENGTHS.len()], LENGTHS[number % LENGTHS.len()])
    })?;
    let rates: Vec<Rates> = rates.chunks(LENGTHS.len()).map(<[f64]>::to_vec).collect();
    rows.extend(figures(&rates));
    rows.extend(shapes(&rates));
    rows.push(handed_over(last(&rates[0]))?);
    rows.extend(code_sizes()?);
    rows.extend(alone(&rates));
    Ok(rows)
}

/// Returns the rows on the time of a loop and its parts.
fn semaphore_loop() -> Result<Vec<Row>, Failure> {
    let found = document("semaphore-loop", "--machine chip:scc --places 1 --loops 1000")?;
    let between = document("semaphore-loop", "--machine chip:scc --places 2 --protocol ring --loops 200")?;
    let figure = |document: &serde_json::Value, name: &str| document[name].as_f64().unwrap_or(f64::NAN);
    let loops = Family { unit: "us", source: "004:2117", ..NEAR };
    // Counts of events in the program of the loop.
    let exact =
        Family { unit: "", band: Band::Within(1.0), basis: Basis::Predicted, source: "004:2073", ..NEAR };
    let unpublished = Family { unit: "us", band: Band::Unpublished, basis: Basis::Predicted, ..NEAR };
    Ok(vec![
        loops.row("semaphore loop, one core", 4.9, figure(&found, "loop_us")),
        exact.row("semaphore loop, one core, context switches", 4.0, figure(&found, "switches")),
        exact.row("semaphore loop, one core, service requests", 4.0, figure(&found, "requests")),
        exact.row("semaphore loop, one core, packets", 8.0, figure(&found, "packets")),
        unpublished.row("semaphore loop, two cores, 0 hops", f64::NAN, figure(&between, "loop_us")),
    ])
}

/// Returns the rows on the time from an interrupt to the first instruction of its handler and of a task, without load;
/// the chip files have these times.
fn interrupts() -> Vec<Row> {
    let family = Family { unit: "us", source: "004:2087", ..NEAR };
    let scc = find("scc");
    let counter = Picoseconds(1_000_000);
    let handler = run(&bare(&scc, STANDARD), [10], |core| async move { core.wait_counter(counter).await });
    let wake = |name: &str, time: fn(TimingTable<HopCost>) -> Option<HopCost>| {
        time(find(name).default_preset().times()).map_or(f64::NAN, |cost| cost.over(0).nanoseconds() / 1e3)
    };
    vec![
        family.row(
            "SCC, from the interrupt of a core's own counter to its handler",
            0.65678,
            (handler - counter).nanoseconds() / 1e3,
        ),
        family.row("SCC, from an interrupt to a task", 10.32, wake("scc", |times| times.task_wake)),
        family.at("004:2089").row(
            "C6678, from an interrupt to a task",
            1.367,
            wake("c6678", |times| times.receive),
        ),
    ]
}

fn find(name: &str) -> Chip {
    Chip::find(name).unwrap_or_else(|error| panic!("the chip comes with Isles: {error}"))
}

/// Returns the rows on copies by a bare core, without kernel and tasks, into its private memory.
fn copies() -> Vec<Row> {
    let family = Family { basis: Basis::Predicted, source: "004:2156", ..NEAR };
    let scc = find("scc");
    let rate = |is_shared| {
        let took = run(&bare(&scc, STANDARD), [11], move |core| async move {
            core.set_memory(0, &pattern(4096));
            for line in 0..COPIED_LINES {
                let content = match is_shared {
                    true => core.read_shared(ControllerId(0), line).await,
                    false => core.load(line).await,
                };
                core.store(COPIED_LINES + line, content).await;
            }
        });
        (COPIED_LINES * LINE_BYTES as u64) as f64 / took.nanoseconds() * 1e3
    };
    vec![
        family.row("bare core, copy from private to private memory", 17.4, rate(false)),
        family.row("bare core, copy from shared to private memory", 10.3, rate(true)),
    ]
}

/// Number of lines in 4,096 B.
const COPIED_LINES: u64 = 4096 / LINE_BYTES as u64;

/// Returns the row on a buffer in shared memory that core 10 passes to core 11, compared with packets of one core.
fn handed_over(one_core: f64) -> Result<Row, Failure> {
    let half = Family { unit: "", basis: Basis::Derived, ..NEAR }
        .at("004:2156")
        .reading("1 / 2: “about half of what we achieved in the single core version”");
    let form = "--places 2 --protocol ring --placement 10,11 --hand-over uncached";
    let rate = rate(form, 4096)?;
    Ok(half.row("port, a shared buffer of 4,096 B handed over, / one core", 0.5, rate / one_core))
}

/// Returns the rows on the code size, beside that of the SCC's kernel: of hubs of all kinds together, and the addition
/// of each kind.
fn code_sizes() -> Result<Vec<Row>, Failure> {
    const SHARED: [&str; 5] = ["Hub", "HubNode", "PacketQueue", "WaitingList", "RunQueue"];
    let family = Family { unit: "B", band: Band::AtMost, basis: Basis::Measured, ..NEAR };
    let kinds: [(&str, &[&str], &str, f64); 7] = [
        ("all hubs", &SHARED, "004:2098", 4321.0),
        ("a port", &["PortRule"], "004:2099", 7.0),
        ("an event", &["EventRule"], "004:2100", 55.0),
        ("a semaphore", &["SemaphoreRule"], "004:2101", 64.0),
        ("a resource", &["ResourceRule"], "004:2102", 121.0),
        ("a FIFO", &["FifoRule"], "004:2103", 191.0),
        ("a packet pool", &["PoolRule"], "004:2104", 194.0),
    ];
    let code = code_size::symbols("semaphore-loop")?;
    let row = |(name, types, source, published): (&str, &[&str], &'static str, f64)| {
        let bytes = code_size::of(&code, types)? as f64;
        Ok(family.at(source).row(format!("code of {name}"), published, bytes))
    };
    kinds.into_iter().map(row).collect()
}

/// Returns the rows of the same programs on the C6678 at 1 GHz, whose messages are descriptors of queues.
fn texas() -> Result<Vec<Row>, Failure> {
    const CHIP: &str = "--machine chip:c6678 --kernel c6678";
    let found = document("semaphore-loop", &format!("{CHIP} --places 1 --loops 1000"))?;
    let rate =
        |places: u32, bytes: u32| rate_of(&format!("{CHIP} --places {places} --bytes {bytes} --packets 200"));
    let loops = Family { unit: "us", source: "004:2116", ..NEAR };
    let predicted = Family { basis: Basis::Predicted, ..NEAR };
    let not_modelled =
        predicted.reading("the model has neither copies between L2 memories nor a copy engine");
    Ok(vec![
        loops.row("C6678, semaphore loop, one core", 4.5, found["loop_us"].as_f64().unwrap_or(f64::NAN)),
        NEAR.row("C6678, port, one core, 4,096 B", 1148.52, rate(1, 4096)?),
        NEAR.at("004:2165").row("C6678, port, one core, 32 KB", 2695.0, rate(1, 32 << 10)?),
        NEAR.at("004:2173").row("C6678, port, two cores, 4,096 B", 512.0, rate(2, 4096)?),
        NEAR.at("004:2165").row("C6678, port, two cores, 32 KB", 1752.0, rate(2, 32 << 10)?),
        predicted.at("004:2167").row(
            "C6678, a shared buffer of 32 KB handed over, locked and copied",
            772.0,
            rate_of(&format!("{CHIP} --places 2 --hand-over uncached --bytes {} --packets 200", 32 << 10))?,
        ),
        not_modelled.at("004:2167").row("C6678, the same out of the L2 of the other core", 45.0, f64::NAN),
        not_modelled.at("004:2169").row("C6678, copy engine within one L2, 128 KB", 4041.0, f64::NAN),
    ])
}

/// Returns the rate at which the receiver gets data, in MB/s.
fn rate(form: &str, bytes: u32) -> Result<f64, Failure> {
    rate_of(&format!("--machine chip:scc {form} --bytes {bytes} --packets 200"))
}

fn rate_of(words: &str) -> Result<f64, Failure> {
    let found = document("port-throughput", words)?;
    let rate = found["mb_per_s"].as_f64();
    rate.ok_or_else(|| Failure::Ended("a run of port-throughput has no rate".to_owned()))
}

fn last(rates: &Rates) -> f64 {
    rates[LENGTHS.len() - 1]
}

fn at(rates: &Rates, bytes: u32) -> f64 {
    rates[LENGTHS.iter().position(|length| *length == bytes).expect("it was run")]
}

fn figures(rates: &[Rates]) -> Vec<Row> {
    let derived = Family { unit: "", basis: Basis::Derived, ..NEAR }.at("004:2151");
    let half =
        derived.reading("1 / 2: “nearly halves the throughput between the No-Hop and the 8-Hop versions”");
    let of_published = derived.at("004:2151, 2173").reading("“33.57” / 2: “nearly halves the throughput”");
    let saturated = derived.reading("1: “goes into saturation at around 20 MB/s”");
    vec![
        NEAR.row("port, one core, 4,096 B", 19.80, last(&rates[0])),
        NEAR.at("004:2173").row("port, cores 10 and 11 (0 hops), 4,096 B", 33.57, last(&rates[1])),
        half.row("port, 4,096 B, rate at 8 hops / 0 (nearly half)", 0.5, last(&rates[3]) / last(&rates[1])),
        of_published.row(
            "port, 4,096 B, rate at 8 hops / half of 33.57 MB/s",
            1.0,
            last(&rates[3]) / (33.57 / 2.0),
        ),
        saturated.row("port, 4,096 B, rate of one core / 20 MB/s", 1.0, last(&rates[0]) / 20.0),
    ]
}

/// Returns the rows on the paper's remarks about its figure 4.
fn shapes(rates: &[Rates]) -> Vec<Row> {
    let shape = SHAPE.at("004:2151");
    let saturated = shape.reading("≤ 5 % more: “the single core example goes into saturation”");
    let higher = shape.reading("≤ 1: “the distributed versions achieve a higher throughput”");
    let far = shape.reading("≤ 1: “strong influence of the routing network”");
    let jump = shape.reading("≤ 1: “strange jump in throughput from payload sizes 128 B to 256 B”");
    let none = shape.reading("≤ 1: “which we do not observe in the single core version”");
    // Growth of the rate when the length doubles.
    let growth = |rates: &Rates, bytes: u32| at(rates, bytes) / at(rates, bytes / 2);
    let mut rows = vec![
        saturated.row("port, one core, growth 2,048 to 4,096 B (levels off)", 1.05, growth(&rates[0], 4096)),
        higher.row("port, 4,096 B, one core / 0 hops", 1.0, last(&rates[0]) / last(&rates[1])),
        far.row("port, 4,096 B, 8 hops / 1", 1.0, last(&rates[3]) / last(&rates[2])),
    ];
    // A jump means that the rate grows more from 128 to 256 B than from 64 to 128.
    for (rates, name) in [(&rates[1], "0 hops"), (&rates[3], "8 hops")] {
        let title = format!("port, {name}, growth 64 to 128 B / 128 to 256 B (a jump)");
        rows.push(jump.row(title, 1.0, growth(rates, 128) / growth(rates, 256)));
    }
    let title = "port, one core, growth 128 to 256 B / 64 to 128 B (no jump)";
    rows.push(none.row(title, 1.0, growth(&rates[0], 256) / growth(&rates[0], 128)));
    rows
}

/// Returns the curves of figure 4, whose digits are not printed.
fn alone(rates: &[Rates]) -> Vec<Row> {
    let alone = Family { band: Band::Unpublished, basis: Basis::Predicted, source: "", ..NEAR };
    let names = ["one core", PAIRS[0].1, PAIRS[1].1, PAIRS[2].1];
    let mut rows = Vec::new();
    for (rates, name) in rates.iter().zip(names) {
        for (bytes, rate) in LENGTHS.iter().zip(rates) {
            let title = Title::from(format!("port, {name}")).over(Quantity::length(*bytes as usize));
            rows.push(alone.row(title, f64::NAN, *rate));
        }
    }
    rows
}
