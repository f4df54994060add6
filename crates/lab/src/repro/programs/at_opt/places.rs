//! The single-node evaluation of AT-Opt: its twelve kernels on 2 to 16 places, base and optimised.
//!
//! The paper's configurations have enough threads in each place to fill the host; a place of Isles is one thread, so
//! only the number of places changes here. Each kernel has one network, as in the paper, but smaller, so that runs end
//! within a minute. On processes, the fastest of a few runs counts. Invariant: a printed mean is beside the mean of the
//! same kernels over the same numbers of places.

use super::super::super::quantity::{Quantity, Title};
use super::super::super::row::{Band, Basis, Family, Row};
use super::{AtOptRun, KERNELS, MINIMAL, Measured, REACHABLE};
use isles_app::Failure;
use isles_app::console;

/// Numbers of places, and nodes of a network.
const PLACES: [u32; 4] = [2, 4, 8, 16];
const NODES: usize = 64;

/// Number of runs of each configuration.
const REPEATS: usize = 3;

/// Nodes of a network of the same order as the paper's, for the optimised form alone, and the kernels that are run on
/// it: those that send few messages per node.
const NODES_OF_MANY: usize = 2_048;
const KERNELS_OF_MANY: [&str; 4] = ["BF", "DST", "MIS", "VC"];

/// Kernels whose base ran out of memory on 16 places in the paper (001:27).
const OUT_OF_MEMORY: [&str; 3] = ["DR", "DS", "MST"];

/// Kernels whose gain with x10c++ on Intel does not rise with the number of places (001:63).
const FLAT: [&str; 2] = ["MIS", "MST"];

/// Kernels whose gain "is not substantial", and the largest gain that is read as such.
const SMALL_GAINS: [&str; 3] = ["KC", "HS", "LCR"];
const SMALL_GAIN: f64 = 1.5;

const MEASURED: Family =
    Family { deck: "", unit: "", band: Band::Unpublished, basis: Basis::Measured, source: "", reading: "" };

/// Base and optimised runs of a kernel.
type Compared = [Measured; 2];

fn gain([minimal, reachable]: &Compared) -> f64 {
    reachable.seconds / minimal.seconds
}

fn geometric_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let number = values.len() as f64;
    (values.map(f64::ln).sum::<f64>() / number).exp()
}

/// Returns the rows.
pub fn rows() -> Result<Vec<Row>, Failure> {
    let mut by_places = Vec::new();
    for places in PLACES {
        console::notice(format_args!("12 kernels on {places} processes"));
        let compared = |kernel: &&str| compared(kernel, places);
        by_places.push(KERNELS.iter().map(compared).collect::<Result<Vec<Compared>, Failure>>()?);
    }
    let mut rows = means(&by_places);
    rows.extend(trends(&by_places));
    rows.push(in_line_with_bytes(&by_places));
    rows.extend(small_gains(&by_places));
    rows.push(call_cost(&by_places));
    rows.extend(memory()?);
    rows.extend(many_nodes()?);
    Ok(rows)
}

/// Returns a network that the suite has for the kernel.
fn network(kernel: &str) -> &'static str {
    match kernel {
        "HS" | "LCR" => "ring",
        "VC" => "star",
        _ => "sparse-max",
    }
}

fn compared(kernel: &str, places: u32) -> Result<Compared, Failure> {
    let run = |ship| {
        let run =
            AtOptRun { machine: "processes", kernel, family: network(kernel), nodes: NODES, places, ship };
        let runs = (0..REPEATS).map(|_| run.measure()).collect::<Result<Vec<_>, Failure>>()?;
        let fastest = runs.into_iter().min_by(|one, other| one.seconds.total_cmp(&other.seconds));
        Ok::<_, Failure>(fastest.expect("it was run"))
    };
    Ok([run(MINIMAL)?, run(REACHABLE)?])
}

/// Returns the geometric means by number of places, and the mean over all beside the paper's four.
fn means(by_places: &[Vec<Compared>]) -> Vec<Row> {
    let mean_of = |compared: &Vec<Compared>| geometric_mean(compared.iter().map(gain));
    let mut rows = Vec::new();
    for (places, compared) in PLACES.into_iter().zip(by_places) {
        let title = Title::from("processes, geometric mean of 12 kernels").over(Quantity::places(places));
        rows.push(MEASURED.row(title, f64::NAN, mean_of(compared)));
    }
    let all: Vec<f64> = by_places.iter().flatten().map(gain).collect();
    let mean = geometric_mean(all.into_iter());
    let printed = Family { band: Band::Within(25.0), ..MEASURED };
    for (host, published, source) in [
        ("x10c, Intel", 2.88, "001:27"),
        ("x10c, AMD", 3.61, "001:33"),
        ("x10c++, Intel", 3.25, "001:61"),
        ("x10c++, AMD", 3.28, "001:67"),
    ] {
        let title = format!("processes, geometric mean over 2 to 16 places, beside {host}");
        rows.push(printed.at(source).row(title, published, mean));
    }
    rows
}

/// Returns the rows on the gains by number of places; the paper's two back ends contradict each other.
fn trends(by_places: &[Vec<Compared>]) -> Vec<Row> {
    let [two, four, eight, sixteen] = by_places else { unreachable!("there are four") };
    let mean_of = |compared: &[Compared]| geometric_mean(compared.iter().map(gain));
    let shape = Family { band: Band::AtMost, ..MEASURED };
    let is_flat = |number: usize| FLAT.contains(&KERNELS[number]);
    let pairs = || two.iter().zip(sixteen).map(|(few, many)| gain(many) > gain(few)).enumerate();
    let rising_but_flat = pairs().filter(|(number, rises)| *rises && !is_flat(*number)).count() as f64;
    let rising = two.iter().zip(sixteen).filter(|(few, many)| gain(many) > gain(few)).count() as f64;
    let mut rows = vec![
        // "Reduce slightly" is read as within a quarter.
        Family { band: Band::Within(25.0), ..shape }
            .at("001:27")
            .reading("1: “the speedups reduce slightly”")
            .row("x10c: mean gain on 16 places / 2", 1.0, mean_of(sixteen) / mean_of(two)),
        Family { band: Band::Within(0.0), ..shape }
            .at("001:67")
            .reading("all: “for all kernels, as the number of places increases”")
            .row("x10c++, AMD: kernels that gain more on 16 places than on 2", KERNELS.len() as f64, rising),
        Family { band: Band::Within(0.0), ..shape }
            .at("001:61-63")
            .reading("all but two: “kernels other than MIS and MST, as the number of places increases”")
            .row(
                "x10c++, Intel: kernels but MIS and MST that gain more on 16 places than on 2",
                (KERNELS.len() - FLAT.len()) as f64,
                rising_but_flat,
            ),
    ];
    let better = shape.at("001:29").reading("≤ 1: “are significantly better than C_2”");
    for kernel in ["DR", "DS", "BY"] {
        let at = KERNELS.iter().position(|other| *other == kernel).expect("it is one of the suite");
        let ratio = gain(&two[at]) / gain(&four[at]).min(gain(&eight[at]));
        let title = format!("x10c: {kernel}, gain on 2 places / 4 and 8");
        rows.push(better.row(title, 1.0, ratio));
    }
    rows
}

fn small_gains(by_places: &[Vec<Compared>]) -> Vec<Row> {
    // The paper gives no digits for a gain that is not substantial.
    let shape = Family { band: Band::AtMost, basis: Basis::Derived, ..MEASURED }.at("001:31, 65");
    let shape = shape.reading("≤ 1.5: “the speedups are not substantial”");
    let of_kernel = |kernel: &str| {
        let at = KERNELS.iter().position(|other| *other == kernel).expect("it is one of the suite");
        geometric_mean(by_places.iter().map(|compared| gain(&compared[at])))
    };
    SMALL_GAINS
        .iter()
        .map(|kernel| shape.row(format!("{kernel}, gain is not substantial"), SMALL_GAIN, of_kernel(kernel)))
        .collect()
}

/// Returns the row on "in line with the reduction in the communicated data": the rank correlation of saved bytes and
/// gain over kernels and numbers of places. A half or more is read as in line.
fn in_line_with_bytes(by_places: &[Vec<Compared>]) -> Row {
    let all = || by_places.iter().flatten();
    let saved = |[minimal, reachable]: &Compared| reachable.bytes as f64 - minimal.bytes as f64;
    let (gains, saved) =
        (ranks(&all().map(gain).collect::<Vec<_>>()), ranks(&all().map(saved).collect::<Vec<_>>()));
    let differences: f64 = gains.iter().zip(&saved).map(|(one, other)| (one - other).powi(2)).sum();
    let number = gains.len() as f64;
    let correlation = 1.0 - 6.0 * differences / (number * (number * number - 1.0));
    let shape = Family { band: Band::AtMost, basis: Basis::Derived, ..MEASURED }.at("001:31, 65");
    let shape = shape.reading("≤ 1: “in line with the reduction in the communicated data”, 1 / 2 or more");
    shape.row("half / rank correlation of gains and bytes saved", 1.0, 0.5 / correlation.max(0.01))
}

/// Returns the rank of each value, in ascending order.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| values.iter().filter(|other| *other < value).count() as f64;
    values.iter().map(rank).collect()
}

/// Returns the row of the cost of a call beside its bytes, in both forms, that would yield the paper's mean gain.
fn call_cost(by_places: &[Vec<Compared>]) -> Row {
    const MEAN: f64 = 3.25;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let with = |cost: f64| {
        let of = |[minimal, reachable]: &Compared| {
            // The number of places that call at the same time is that of the host's processors.
            let calls = minimal.calls as f64 / processors * cost;
            (reachable.seconds + calls) / (minimal.seconds + calls)
        };
        geometric_mean(by_places.iter().flatten().map(of).collect::<Vec<_>>().into_iter())
    };
    let (mut least, mut most) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (least + most) / 2.0;
        if with(middle) > MEAN { least = middle } else { most = middle }
    }
    let title = "what a call would take beside its bytes, if the mean gain were 3.25";
    Family { unit: "µs", ..MEASURED }.row(title, f64::NAN, least * 1e6)
}

/// Returns the rows on the maximum resident memory of all places, for the kernels whose base ran out of memory in the
/// paper.
fn memory() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let shape = Family { band: Band::AtMost, ..MEASURED }.at("001:27");
    let few = shape.reading("≤ 1: “DR, DS and MST ran out of memory with 16 and 32 places”");
    let many = shape.reading("≤ 1: “DP ran out of memory with 32 places”");
    let of_few = OUT_OF_MEMORY.map(|kernel| (kernel, 16, few));
    for (kernel, places, shape) in of_few.into_iter().chain([("DP", 32, many)]) {
        let run = |ship| {
            let family = network(kernel);
            AtOptRun { machine: "threads", kernel, family, nodes: NODES, places, ship }.measure()
        };
        let [minimal, reachable] = [run(MINIMAL)?, run(REACHABLE)?].map(|run| run.memory_peak / 1e6);
        for (name, peak) in [("minimal", minimal), ("reachable", reachable)] {
            let title = format!("{kernel}, {places} threads, peak of memory, {name}");
            rows.push(Family { unit: "MB", ..MEASURED }.row(title, f64::NAN, peak));
        }
        let title = format!("{kernel}, {places} threads, peak of memory, minimal / reachable");
        rows.push(shape.row(title, 1.0, minimal / reachable));
    }
    Ok(rows)
}

/// Returns the rows on runs of the optimised form on networks of thousands of nodes (001:57).
fn many_nodes() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for kernel in KERNELS_OF_MANY {
        let run = AtOptRun {
            machine: "processes",
            kernel,
            family: network(kernel),
            nodes: NODES_OF_MANY,
            places: 8,
            ship: MINIMAL,
        };
        let seconds = run.measure()?.seconds;
        let title = format!("{kernel}, {NODES_OF_MANY} nodes on 8 processes, minimal");
        rows.push(Family { unit: "s", ..MEASURED }.row(title, f64::NAN, seconds));
    }
    Ok(rows)
}
