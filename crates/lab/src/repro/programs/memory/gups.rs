//! RandomAccess on Blue Gene/P: updates per nanosecond, aggregated, routed along the torus, by roles of cores.
//!
//! This file has the paper's table 4 and the results that follow from its formulas without a model: bucket sizes,
//! bottlenecks, crossovers. `gups_table` has table 2, which runs on the host, and `gups_runs` the runs of the chip.

use super::{gups_runs, gups_table};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::Failure;

/// Tables 3 and 4 of the paper, and its remarks beside them.
pub const RANDOM_ACCESS: Experiment = Experiment {
    name: "gups",
    about: "RandomAccess on Blue Gene/P: updates a nanosecond on 64 to 2,048 nodes, by one core and by roles of four",
    source: "Aggarwal, Sabharwal, Garg, Heidelberger, HPCC RandomAccess for Next Generation Supercomputers (2009)",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// A line of table 4: extents, updates of a bucket and cycles to receive one, bottleneck and result by roles, the same
/// with one core, and its sources.
type Line = ([u32; 3], [f64; 2], [f64; 2], Option<[f64; 2]>, TableSources);

/// Source lines of a line of table 4: alone, and beside the formulas of its buckets, of its bottlenecks, and of one
/// core's bottlenecks.
pub(super) struct TableSources {
    pub(super) line: &'static str,
    bucket: &'static str,
    roles: &'static str,
    one_core: &'static str,
    receive: &'static str,
}

macro_rules! cited {
    ($line:literal) => {
        TableSources {
            line: concat!("003:", $line),
            bucket: concat!("003:187-192, ", $line),
            roles: concat!("003:266-282, ", $line),
            one_core: concat!("003:284, ", $line),
            receive: concat!("003:282, ", $line),
        }
    };
}

/// Table 4 of the paper. It does not give the shapes; these are the ones whose extents differ least for its numbers of
/// nodes.
pub(super) const TABLE_4: [Line; 10] = [
    ([4, 4, 4], [29.0, 11.3], [0.38, 0.38], Some([0.12, 0.11]), cited!("291")),
    ([8, 4, 4], [27.0, 12.2], [0.75, 0.77], Some([0.23, 0.22]), cited!("292")),
    ([8, 8, 4], [25.0, 13.2], [1.49, 1.48], Some([0.44, 0.44]), cited!("293")),
    ([8, 8, 8], [23.0, 14.3], [2.94, 2.91], Some([0.83, 0.85]), cited!("294")),
    ([16, 8, 8], [19.0, 17.3], [5.68, 5.53], Some([1.60, 1.67]), cited!("295")),
    ([16, 16, 8], [17.0, 19.4], [10.91, 10.51], Some([3.47, 3.21]), cited!("296")),
    ([16, 16, 16], [15.0, 22.0], [20.39, 17.02], Some([6.70, 5.60]), cited!("297")),
    ([32, 16, 16], [12.0, 27.5], [43.8, 36.89], None, cited!("298")),
    ([32, 32, 16], [10.0, 33.0], [84.6, 64.99], None, cited!("299")),
    ([32, 32, 32], [9.0, 36.7], [164.6, 103.0], None, cited!("300")),
];

/// The clock, in cycles per nanosecond.
pub(super) const CLOCK: f64 = 0.85;

/// Cycles to receive a packet in a group of four, of an update, and of core 3 for other work (003:272-282).
const RECEIVE: f64 = 330.0;
const UPDATE: f64 = 90.0;
const BESIDE: f64 = 41.5;

/// Cycles of an update without a message, and of a hop of an update, on one core (003:284).
const ALONE: f64 = 92.0;
const HOP: f64 = 162.0;

pub(super) const FORMULA: Family = Family {
    deck: "",
    unit: "",
    band: Band::Within(1.0),
    basis: Basis::Derived,
    source: "003:240",
    reading: "",
};

pub(super) fn nodes(shape: [u32; 3]) -> u32 {
    shape.iter().product()
}

pub(super) fn title(what: &str, shape: [u32; 3]) -> Title {
    Title::from(what).over(Quantity::nodes(nodes(shape)))
}

/// Returns the updates of a bucket, by the paper's formula.
pub(super) fn bucket(shape: [u32; 3]) -> f64 {
    1024.0 / f64::from(shape.iter().sum::<u32>() + 21)
}

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = formulas();
    rows.extend(crossovers());
    rows.extend(gups_table::rows()?);
    rows.extend(gups_runs::rows()?);
    Ok(rows)
}

/// Returns the rows on the results of formulas in table 4.
fn formulas() -> Vec<Row> {
    let mut rows = Vec::new();
    for (shape, [printed, receive], [bottleneck, _], single, cited) in &TABLE_4 {
        let family = |source, reading, unit| Family { unit, ..FORMULA.at(source) }.reading(reading);
        let of_bucket = family(cited.bucket, "1024 / “X_max + Y_max + Z_max + 21”", "");
        let title = |what| title(what, *shape);
        rows.push(of_bucket.row(title("updates/bucket by formula"), *printed, bucket(*shape).round()));
        let of_receive = family(cited.receive, "330 / BktSize: “t_pkt_rcv/BktSize”", "cycles");
        let receive_title = title("receive by formula, printed bucket");
        rows.push(of_receive.row(receive_title, *receive, RECEIVE / printed));
        let n = f64::from(nodes(*shape));
        let by_roles = n * CLOCK / (UPDATE + RECEIVE / bucket(*shape) + BESIDE);
        let of_roles = family(
            cited.roles,
            "N x 0.85 / (90 + 330 / BktSize + 41.5): “1/max(T_0, T_1, T_2, T_3)”",
            "GUPS",
        );
        rows.push(of_roles.row(title("bottleneck of roles by formula"), *bottleneck, by_roles));
        if let Some([printed, _]) = single {
            let hops: f64 = shape.iter().map(|extent| 1.0 - 1.0 / f64::from(*extent)).sum();
            let by_one = n * CLOCK / (ALONE + HOP * hops);
            let of_one =
                family(cited.one_core, "N x 0.85 / (92 + 162 x hops): “per-hop routing overhead”", "GUPS");
            let of_one = Family { band: Band::Within(5.0), ..of_one };
            rows.push(of_one.row(title("bottleneck of one core by formula"), *printed, by_one));
        }
    }
    rows
}

/// Bytes per nanosecond of a link in each direction; bytes of a packet's acknowledgement; the unit of packet sizes.
const LINK: f64 = 0.425;
const ACKNOWLEDGEMENT: f64 = 14.0;
const FLIT: f64 = 32.0;

/// Returns the number of nodes of the smallest machine, with 2^k nodes, whose updates are bounded by its bisection
/// instead of its cores: formula (1), 4 B / b.
fn crossover(cycles: impl Fn(f64) -> f64, bytes: impl Fn(f64) -> f64) -> f64 {
    let bound_by_network = |exponent: &u32| {
        let n = f64::from(*exponent).exp2();
        // The longest extent, hence the narrowest cut; a torus has two links across it.
        let longest = f64::from(exponent.div_ceil(3)).exp2();
        let bisection = 2.0 * n / longest * LINK;
        4.0 * bisection / bytes(longest) < n * CLOCK / cycles(longest)
    };
    (6..40).find(bound_by_network).map_or(f64::INFINITY, |exponent: u32| f64::from(exponent).exp2())
}

/// Returns the rows on the number of nodes at which the network becomes the bottleneck.
fn crossovers() -> Vec<Row> {
    // An update alone in a packet: 8 bytes and a header of 16 in 32, and the acknowledgement.
    let alone = |_| FLIT + ACKNOWLEDGEMENT;
    let alone_on_core = |_| ALONE + 150.0 + 600.0;
    let of_bucket = |longest: f64| 1024.0 / (3.0 * longest + 21.0);
    let packed = |longest: f64| {
        let packet = ((8.0 * of_bucket(longest) + 16.0) / FLIT).ceil() * FLIT;
        (packet + ACKNOWLEDGEMENT) / of_bucket(longest)
    };
    let by_roles = |longest: f64| UPDATE + RECEIVE / of_bucket(longest) + BESIDE;
    // One core that routes: the bottleneck of table 4, over the hops of a machine with equal extents.
    let routed = |longest: f64| ALONE + HOP * 3.0 * (1.0 - 1.0 / longest);
    let family = Family { unit: "nodes", band: Band::Within(50.0), ..FORMULA };
    let beyond = Family { unit: "", band: Band::AtMost, ..family };
    let cores = family.at("003:132").reading("8 x 1,024: “the crossover happens at 8K nodes”");
    let roles =
        family.at("003:286").reading("64 x 1,024: “a system of size 64K for the multi-core algorithm”");
    let coprocessor = beyond.at("003:132").reading("≤ 1: “the crossover happens beyond 256K nodes”");
    let one_core = beyond.at("003:286").reading("≤ 1: “and beyond that for the single-core algorithm”");
    vec![
        coprocessor.row(
            "256 Ki nodes / crossover of one process a node by formula (1)",
            1.0,
            262_144.0 / crossover(alone_on_core, alone),
        ),
        cores.row(
            "crossover of a process a core by formula (1)",
            8192.0,
            crossover(|longest| alone_on_core(longest) / 4.0, alone),
        ),
        roles.row("crossover of roles by formula (1)", 65_536.0, crossover(by_roles, packed)),
        one_core.row(
            "64 Ki nodes / crossover of one core that routes by formula (1)",
            1.0,
            65_536.0 / crossover(routed, packed),
        ),
    ]
}
