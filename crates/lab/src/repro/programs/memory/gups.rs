//! RandomAccess on Blue Gene/P: how many updates a nanosecond, aggregated, routed along the torus, by roles of cores.
//!
//! Two kinds of rows. Those of *formulas* compute what the paper prints from what it says (sizes of buckets,
//! bottlenecks, crossovers), and need no model. The others are runs of `isles run gups` on `chip:bluegene-p`, one
//! virtual node a node of the chip, in the shape of the partition. A row is the rate in the middle of a run, from three
//! to seven tenths of its updates by the clocks of the cores that apply them, because the paper's runs are so long that
//! their beginning and end do not count.
//! The messages cost what the chip file says, an update what the paper says (90 cycles), and handing on one nothing but
//! its messages, but in rows that are called calibrated and those that follow from them. Buckets on their way are not
//! counted, as in the paper: a place may have 32 of each lane.

use super::gups_table;
use crate::repro::programs::document;
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::{Failure, runs};

/// Tables 3 and 4 of the paper, and what it says beside them.
pub const RANDOM_ACCESS: Experiment = Experiment {
    name: "gups",
    about: "RandomAccess on Blue Gene/P: updates a nanosecond on 64 to 2,048 nodes, by one core and by roles of four",
    source: "Aggarwal, Sabharwal, Garg, Heidelberger, HPCC RandomAccess for Next Generation Supercomputers (2009)",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// A line of table 4: extents, updates of a bucket, bottleneck and result by roles, the same of one core, its line.
type Line = ([u32; 3], f64, [f64; 2], Option<[f64; 2]>, &'static str);

/// Table 4 of the paper. It does not say the shapes; these are those of its nodes whose extents differ least.
const TABLE_4: [Line; 10] = [
    ([4, 4, 4], 29.0, [0.38, 0.38], Some([0.12, 0.11]), "003:291"),
    ([8, 4, 4], 27.0, [0.75, 0.77], Some([0.23, 0.22]), "003:292"),
    ([8, 8, 4], 25.0, [1.49, 1.48], Some([0.44, 0.44]), "003:293"),
    ([8, 8, 8], 23.0, [2.94, 2.91], Some([0.83, 0.85]), "003:294"),
    ([16, 8, 8], 19.0, [5.68, 5.53], Some([1.60, 1.67]), "003:295"),
    ([16, 16, 8], 17.0, [10.91, 10.51], Some([3.47, 3.21]), "003:296"),
    ([16, 16, 16], 15.0, [20.39, 17.02], Some([6.70, 5.60]), "003:297"),
    ([32, 16, 16], 12.0, [43.8, 36.89], None, "003:298"),
    ([32, 32, 16], 10.0, [84.6, 64.99], None, "003:299"),
    ([32, 32, 32], 9.0, [164.6, 103.0], None, "003:300"),
];

/// Table 3: extents, with a division and without, its line.
const TABLE_3: [([u32; 3], [f64; 2], &str); 4] = [
    ([6, 4, 4], [0.34, 0.57], "003:275"),
    ([8, 6, 4], [0.66, 1.11], "003:276"),
    ([8, 8, 6], [1.32, 2.05], "003:277"),
    ([12, 8, 8], [2.48, 4.11], "003:278"),
];

/// The clock, in cycles a nanosecond.
const CLOCK: f64 = 0.85;

/// Cycles of a receive of a packet among four, of an update, and of core 3 beside (003:272-282).
const RECEIVE: f64 = 330.0;
const UPDATE: f64 = 90.0;
const BESIDE: f64 = 41.5;

/// Cycles of an update without a message, and of a hop of one, on one core (003:284).
const ALONE: f64 = 92.0;
const HOP: f64 = 162.0;

/// Cycles of one core to hand on an update, beside its messages: with them a run on 64 nodes takes the paper's 457.
const ROUTE_CYCLES: u32 = 86;

/// Cycles that a division takes on each core: with them a run of 96 nodes has the paper's 0.34.
const DIVISION_CYCLES: u32 = 106;

/// Nodes up to which each row is run.
const NODES_MAX: u32 = 2048;
const ROLES_NODES_MAX: u32 = 512;

/// Updates of a node.
const UPDATES: u32 = 6144;

const FORMULA: Family =
    Family { deck: "", unit: "", band: Band::Within(1.0), basis: Basis::Derived, source: "003:240" };
const RUN: Family = Family {
    unit: "GUPS",
    band: Band::Within(20.0),
    basis: Basis::Predicted,
    source: "003:291-300",
    ..FORMULA
};

fn nodes(shape: [u32; 3]) -> u32 {
    shape.iter().product()
}

fn title(what: &str, shape: [u32; 3]) -> Title {
    Title::from(what).over(Quantity::nodes(nodes(shape)))
}

/// Updates of a bucket, by the paper's formula.
fn bucket(shape: [u32; 3]) -> f64 {
    1024.0 / f64::from(shape.iter().sum::<u32>() + 21)
}

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = formulas();
    rows.extend(crossovers());
    rows.extend(gups_table::rows()?);
    rows.extend(tables()?);
    Ok(rows)
}

/// What table 4 prints of formulas.
fn formulas() -> Vec<Row> {
    let mut rows = Vec::new();
    for (shape, printed, [bottleneck, _], single, source) in TABLE_4 {
        let (family, gups) = (FORMULA.at(source), Family { unit: "GUPS", ..FORMULA }.at(source));
        rows.push(family.row(title("updates of a bucket by formula", shape), printed, bucket(shape).round()));
        let n = f64::from(nodes(shape));
        let by_roles = n * CLOCK / (UPDATE + RECEIVE / bucket(shape) + BESIDE);
        rows.push(gups.row(title("bottleneck of roles by formula", shape), bottleneck, by_roles));
        if let Some([printed, _]) = single {
            let hops: f64 = shape.iter().map(|extent| 1.0 - 1.0 / f64::from(*extent)).sum();
            let by_one = n * CLOCK / (ALONE + HOP * hops);
            let gups = Family { band: Band::Within(5.0), ..gups };
            rows.push(gups.row(title("bottleneck of one core by formula", shape), printed, by_one));
        }
    }
    rows
}

/// Bytes a nanosecond of a link each way, of a packet's acknowledgement, and of what packets are multiples of.
const LINK: f64 = 0.425;
const ACKNOWLEDGEMENT: f64 = 14.0;
const FLIT: f64 = 32.0;

/// The smallest machine of 2^k nodes whose bisection, not its cores, bounds the updates: formula (1), 4 B / b.
fn crossover(cycles: impl Fn(f64) -> f64, bytes: impl Fn(f64) -> f64) -> f64 {
    let bound_by_network = |exponent: &u32| {
        let n = f64::from(*exponent).exp2();
        // The longest extent, and so the narrowest cut; a torus has two links across it.
        let longest = f64::from(exponent.div_ceil(3)).exp2();
        let bisection = 2.0 * n / longest * LINK;
        4.0 * bisection / bytes(longest) < n * CLOCK / cycles(longest)
    };
    (6..40).find(bound_by_network).map_or(f64::INFINITY, |exponent: u32| f64::from(exponent).exp2())
}

/// Where the network becomes the bottleneck.
fn crossovers() -> Vec<Row> {
    // An update alone in a packet: 8 bytes and a header of 16 in 32, and what acknowledges it.
    let alone = |_| FLIT + ACKNOWLEDGEMENT;
    let one_core = |_| ALONE + 150.0 + 600.0;
    let of_bucket = |longest: f64| 1024.0 / (3.0 * longest + 21.0);
    let packed = |longest: f64| {
        let packet = ((8.0 * of_bucket(longest) + 16.0) / FLIT).ceil() * FLIT;
        (packet + ACKNOWLEDGEMENT) / of_bucket(longest)
    };
    let by_roles = |longest: f64| UPDATE + RECEIVE / of_bucket(longest) + BESIDE;
    let family = Family { unit: "nodes", band: Band::Within(50.0), ..FORMULA };
    let beyond = Family { unit: "", band: Band::AtMost, ..family };
    vec![
        beyond.at("003:132").row(
            "256 Ki nodes against the crossover of one process a node, by formula (1)",
            1.0,
            262_144.0 / crossover(one_core, alone),
        ),
        family.at("003:132").row(
            "crossover of a process a core, by formula (1)",
            8192.0,
            crossover(|longest| one_core(longest) / 4.0, alone),
        ),
        family.at("003:286").row("crossover of roles, by formula (1)", 65_536.0, crossover(by_roles, packed)),
    ]
}

/// A run of a row: its mode, the shape, and more words.
type Wanted = (&'static str, [u32; 3], String);

/// What tables 3 and 4 measured.
fn tables() -> Result<Vec<Row>, Failure> {
    let roles = TABLE_4.into_iter().filter(|(shape, ..)| nodes(*shape) <= ROLES_NODES_MAX);
    let single = TABLE_4.into_iter().filter(|(shape, ..)| nodes(*shape) <= NODES_MAX);
    let mut wanted: Vec<Wanted> = Vec::new();
    wanted.extend(roles.clone().map(|(shape, ..)| ("roles", shape, String::new())));
    let route = format!(" --route-cycles {ROUTE_CYCLES}");
    wanted.extend(single.clone().map(|(shape, ..)| ("routed", shape, route.clone())));
    wanted.push(("routed", TABLE_4[0].0, String::new()));
    let division =
        format!(" --division --route-cycles {DIVISION_CYCLES} --make-cycles {}", DIVISION_CYCLES + 2);
    wanted.extend(TABLE_3.map(|(shape, ..)| ("roles", shape, String::new())));
    wanted.extend(TABLE_3.map(|(shape, ..)| ("roles", shape, division.clone())));
    let gups = runs::all(wanted.len(), "runs", |number| rate(&wanted[number]))?;
    let of = |mode: &str, shape: [u32; 3], words: &str| {
        let found = wanted.iter().position(|(of, its, told)| *of == mode && *its == shape && told == words);
        gups[found.expect("it was run")]
    };
    let mut rows = Vec::new();
    for (shape, _, [_, measured], _, source) in roles {
        rows.push(RUN.at(source).row(title("roles of four cores", shape), measured, of("roles", shape, "")));
    }
    let n = nodes(TABLE_4[0].0);
    let cycles = |gups: f64| f64::from(n) * CLOCK / gups;
    let one = Family { unit: "cycles", ..RUN }.at("003:284");
    rows.push(one.row(
        title("one core, an update, nothing but messages and memory", TABLE_4[0].0),
        457.0,
        cycles(of("routed", TABLE_4[0].0, "")),
    ));
    for (shape, _, _, measured, source) in single {
        let basis = if nodes(shape) == n { Basis::Calibrated } else { Basis::Predicted };
        let family = Family { basis, ..RUN }.at(source);
        if let Some([_, measured]) = measured {
            rows.push(family.row(title("one core, routed", shape), measured, of("routed", shape, &route)));
        }
    }
    for (shape, ..) in TABLE_4.into_iter().filter(|(shape, ..)| nodes(*shape) <= ROLES_NODES_MAX) {
        let ratio = of("roles", shape, "") / of("routed", shape, &route);
        let family = Family { unit: "", ..RUN }.at("003:309");
        rows.push(family.row(title("roles against one core", shape), 3.0, ratio));
    }
    for (shape, [divided, predicted], source) in TABLE_3 {
        let basis = if nodes(shape) == nodes(TABLE_3[0].0) { Basis::Calibrated } else { Basis::Predicted };
        let with = of("roles", shape, &division);
        rows.push(RUN.at(source).row(
            title("roles, owners without a division", shape),
            predicted,
            of("roles", shape, ""),
        ));
        rows.push(Family { basis, ..RUN }.at(source).row(
            title("roles, owners by a division", shape),
            divided,
            with,
        ));
    }
    Ok(rows)
}

/// The updates a nanosecond in the middle of a run.
fn rate((mode, shape, words): &Wanted) -> Result<f64, Failure> {
    let [x, y, z] = *shape;
    let cores = if *mode == "roles" { 4 } else { 1 };
    let places = nodes(*shape) * cores;
    let all = u64::from(UPDATES) * u64::from(nodes(*shape));
    let words = format!(
        "--machine chip:bluegene-p --places {places} --placement {} --mode {mode} --shape {x}x{y}x{z} --bits 20 \
         --updates {all} --bucket {:.0} --in-flight 32{words}",
        placement(*shape, cores),
        bucket(*shape),
    );
    let rate = document("gups", &words)?["steady_gups"].as_f64().filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| Failure::Ended("a run of gups has no middle".to_owned()))
}

/// The cores of the chip, of 32 × 32 × 32 nodes of four, that are such a part of it: the first `cores` of each node.
fn placement([x, y, z]: [u32; 3], cores: u32) -> String {
    let rows = (0..z).flat_map(|z| (0..y).map(move |y| 32 * (y + 32 * z)));
    let ranges = rows.flat_map(|row| {
        if cores == 4 {
            vec![format!("{}-{}", 4 * row, 4 * (row + x) - 1)]
        } else {
            (0..x).map(|x| (4 * (row + x)).to_string()).collect()
        }
    });
    ranges.collect::<Vec<_>>().join(",")
}
