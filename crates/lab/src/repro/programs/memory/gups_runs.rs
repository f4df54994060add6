//! The runs of tables 3 and 4 of the paper on RandomAccess: `isles run gups` on `chip:bluegene-p`, with one virtual
//! node for each node of the chip, in the shape of the partition.
//!
//! A row is the rate in the middle of a run, from three to seven tenths of its updates by the clocks of the cores that
//! apply them, because the paper's runs are so long that their beginning and end do not matter. Messages have the costs
//! of the chip file, and an update has the paper's (90 cycles). Forwarding an update costs [`ROUTE_CYCLES`], by roles
//! as well as by one core: at its origin and at every hop, but not where it is applied, because "core 3 .. doesn't
//! incur any routing overheads" (003:264). Buckets in transit are practically unlimited, as in the paper: a place may
//! have 32 for each lane.

use super::gups::{CLOCK, FORMULA, TABLE_4, bucket, nodes, title};
use crate::repro::programs::document;
use crate::repro::row::{Band, Basis, Family, Row};
use isles_app::frame::NO_FILES;
use isles_app::{Failure, runs};
use isles_chip::Chip;
use isles_chip::cost::{HopCost, TimingTable};

/// Table 3: extents, rates with a division and without, and the source line.
const TABLE_3: [([u32; 3], [f64; 2], &str); 4] = [
    ([6, 4, 4], [0.34, 0.57], "003:275"),
    ([8, 6, 4], [0.66, 1.11], "003:276"),
    ([8, 8, 6], [1.32, 2.05], "003:277"),
    ([12, 8, 8], [2.48, 4.11], "003:278"),
];

/// Cycles to forward an update, besides its messages; with this value one core of 64 nodes takes the paper's 457
/// cycles.
const ROUTE_CYCLES: u32 = 82;

/// Cycles of a division on each core that forwards; with this value a run of 96 nodes has the paper's 0.34.
const DIVISION_CYCLES: u32 = 70;

/// Largest number of nodes of a run; a larger row has no figure of ours and counts as out of its band.
const NODES_MAX: u32 = 2048;

/// Numbers of nodes whose rows give the gain if forwarding were free.
const FREE: [u32; 2] = [64, 512];

/// Other divisions of a node's four cores: the numbers of cores that route and that apply (section 6 of the paper).
const DIVISIONS: [(u32, u32); 2] = [(2, 2), (1, 3)];

/// Numbers of nodes whose rows have other divisions.
const DIVIDED: [u32; 2] = [64, 512];

/// Number of updates of a node.
const UPDATES: u32 = 6144;

/// Number of cores of a node.
const ROLES: u32 = 4;

const RUN: Family = Family { unit: "GUPS", band: Band::Within(20.0), basis: Basis::Predicted, ..FORMULA };
const RATIO: Family = Family { unit: "", ..RUN };

/// A run: its mode, the shape, cycles to forward, and further arguments.
#[derive(Clone, Debug, PartialEq)]
struct GupsRun {
    mode: &'static str,
    shape: [u32; 3],
    route: u32,
    more: String,
}

impl GupsRun {
    fn roles(shape: [u32; 3]) -> GupsRun {
        GupsRun { mode: "roles", shape, route: ROUTE_CYCLES, more: String::new() }
    }

    fn one_core(shape: [u32; 3]) -> GupsRun {
        GupsRun { mode: "routed", ..GupsRun::roles(shape) }
    }

    fn free(self) -> GupsRun {
        GupsRun { route: 0, ..self }
    }

    /// Returns the run with `routers` cores of a node that route and `appliers` cores that apply.
    fn divided(self, routers: u32, appliers: u32) -> GupsRun {
        GupsRun { more: format!(" --routers {routers} --appliers {appliers}"), ..self }
    }

    /// Returns the run in which each core that forwards finds owners by a division.
    fn by_division(self) -> GupsRun {
        GupsRun { route: self.route + DIVISION_CYCLES, more: " --division".to_owned(), ..self }
    }

    /// Returns the arguments of the command.
    fn words(&self) -> String {
        let GupsRun { mode, shape, route, more } = self;
        let [x, y, z] = *shape;
        // The paper introduces the roles together with the reception of four packets by one call (section 4.3.1).
        let (cores, preset) = if *mode == "roles" { (ROLES, "850") } else { (1, "850-one") };
        let places = nodes(*shape) * cores;
        let all = u64::from(UPDATES) * u64::from(nodes(*shape));
        format!(
            "--machine chip:bluegene-p --preset {preset} --places {places} --placement {} --mode {mode} --shape {x}x{y}x{z} --bits 20 \
             --updates {all} --bucket {} --in-flight 32 --no-check --route-cycles {route}{more}",
            placement(*shape, cores),
            bucket_of(*shape),
        )
    }

    /// Returns the updates per nanosecond in the middle of the run.
    fn rate(&self) -> Result<f64, Failure> {
        let rate = document("gups", &self.words())?["steady_gups"].as_f64().filter(|rate| *rate > 0.0);
        rate.ok_or_else(|| Failure::Ended("a run of gups has no middle".to_owned()))
    }
}

/// Returns the updates of a bucket, as table 4 prints them or by its formula.
fn bucket_of(shape: [u32; 3]) -> u32 {
    let line = TABLE_4.iter().find(|(known, ..)| *known == shape);
    line.map_or(bucket(shape), |(_, [printed, _], ..)| *printed).round() as u32
}

/// The rates of all runs.
struct Rates {
    wanted: Vec<GupsRun>,
    gups: Vec<f64>,
}

impl Rates {
    fn measure() -> Result<Rates, Failure> {
        let shapes = || TABLE_4.iter().map(|(shape, ..)| *shape).filter(|shape| nodes(*shape) <= NODES_MAX);
        // The largest runs come first, so that all processors end at about the same time.
        let mut wanted: Vec<GupsRun> = shapes().map(GupsRun::roles).collect();
        wanted.extend(shapes().map(GupsRun::one_core));
        wanted.push(GupsRun::one_core(TABLE_4[0].0).free());
        wanted.extend(
            shapes().filter(|shape| FREE.contains(&nodes(*shape))).map(|shape| GupsRun::roles(shape).free()),
        );
        let divided = shapes().filter(|shape| DIVIDED.contains(&nodes(*shape)));
        wanted.extend(divided.flat_map(|shape| {
            DIVISIONS.map(|(routers, appliers)| GupsRun::roles(shape).divided(routers, appliers))
        }));
        wanted.extend(TABLE_3.map(|(shape, ..)| GupsRun::roles(shape)));
        wanted.extend(TABLE_3.map(|(shape, ..)| GupsRun::roles(shape).by_division()));
        wanted.sort_by_key(|run| std::cmp::Reverse(run.words().len()));
        let gups = runs::all(wanted.len(), "runs", |number| wanted[number].rate())?;
        Ok(Rates { wanted, gups })
    }

    /// Returns the rate of a run; NaN if it was not run.
    fn of(&self, wanted: &GupsRun) -> f64 {
        let found = self.wanted.iter().position(|run| run == wanted);
        found.map_or(f64::NAN, |found| self.gups[found])
    }

    /// Returns the rate by roles of `number` nodes.
    fn of_nodes(&self, number: u32) -> f64 {
        let line = TABLE_4.iter().find(|(shape, ..)| nodes(*shape) == number);
        line.map_or(f64::NAN, |(shape, ..)| self.of(&GupsRun::roles(*shape)))
    }
}

/// Returns the rows.
///
/// # Errors
/// A run failed.
pub(super) fn rows() -> Result<Vec<Row>, Failure> {
    let rates = Rates::measure()?;
    let mut rows = by_nodes(&rates);
    rows.extend(one_against_roles(&rates));
    rows.extend(with_a_division(&rates));
    rows.extend(loads()?);
    rows.extend(receives());
    Ok(rows)
}

/// Returns the rows of table 4.
fn by_nodes(rates: &Rates) -> Vec<Row> {
    let mut rows = Vec::new();
    for (shape, _, [_, measured], _, cited) in &TABLE_4 {
        let ours = rates.of(&GupsRun::roles(*shape));
        rows.push(RUN.at(cited.line).row(title("roles", *shape), *measured, ours));
    }
    for (shape, ..) in TABLE_4.iter().filter(|(shape, ..)| FREE.contains(&nodes(*shape))) {
        let free = Family { band: Band::Unpublished, ..RUN };
        let ours = rates.of(&GupsRun::roles(*shape).free());
        rows.push(free.row(title("roles, handing on free", *shape), f64::NAN, ours));
    }
    for (routers, appliers) in DIVISIONS {
        for (shape, ..) in TABLE_4.iter().filter(|(shape, ..)| DIVIDED.contains(&nodes(*shape))) {
            let family = Family { band: Band::Unpublished, ..RUN };
            let ours = rates.of(&GupsRun::roles(*shape).divided(routers, appliers));
            let verb = if routers == 1 { "routes" } else { "route" };
            let text = format!("roles, {routers} that {verb} and {appliers} that apply");
            rows.push(family.row(title(&text, *shape), f64::NAN, ours));
        }
    }
    let smallest = TABLE_4[0].0;
    let free = f64::from(nodes(smallest)) * CLOCK / rates.of(&GupsRun::one_core(smallest).free());
    let one = Family { unit: "cycles", ..RUN }.at("003:284");
    rows.push(one.row(title("one core, an update, only messages and memory", smallest), 457.0, free));
    for (shape, _, _, measured, cited) in &TABLE_4 {
        let basis = if *shape == smallest { Basis::Calibrated } else { Basis::Predicted };
        let family = Family { basis, ..RUN }.at(cited.line);
        if let Some([_, measured]) = measured {
            let ours = rates.of(&GupsRun::one_core(*shape));
            rows.push(family.row(title("one core, routed", *shape), *measured, ours));
        }
    }
    rows
}

/// Returns the rows on the paper's remarks about table 4.
fn one_against_roles(rates: &Rates) -> Vec<Row> {
    let factor = RATIO.at("003:309").reading("3: “approximately a factor of 3 boost in performance”");
    let (shape, ..) = &TABLE_4[TABLE_4.len() - 1];
    let record = RATIO.at("003:309").reading("“103” / “35.5”: “almost a factor of 3”");
    let mut rows = Vec::new();
    let run = || TABLE_4.iter().filter(|(shape, ..)| nodes(*shape) <= NODES_MAX);
    for (shape, ..) in run() {
        let ratio = rates.of(&GupsRun::roles(*shape)) / rates.of(&GupsRun::one_core(*shape));
        rows.push(factor.row(title("roles / one core", *shape), 3.0, ratio));
    }
    rows.extend(run().map(|(shape, _, [bottleneck, _], ..)| of_prediction(*shape, *bottleneck, rates)));
    let ours = rates.of(&GupsRun::roles(*shape)) / 35.5;
    rows.push(record.row(title("roles / record of Blue Gene/L, 35.5 GUPS", *shape), 103.0 / 35.5, ours));
    rows
}

/// Returns the row on "the performance predicted by our model is within 70% of the observed performance (90% for small
/// systems)"; small is taken as up to 512 nodes.
fn of_prediction(shape: [u32; 3], bottleneck: f64, rates: &Rates) -> Row {
    let share = if nodes(shape) <= 512 { 0.9 } else { 0.7 };
    let family = Family { band: Band::AtMost, ..RATIO }.at("003:309");
    let family =
        family.reading("≤ 1: “is within 70% percent of the observed performance (90% for small systems)”");
    let title = title("least part of the printed bottleneck / roles", shape);
    family.row(title, 1.0, share * bottleneck / rates.of(&GupsRun::roles(shape)))
}

/// Returns the rows of table 3.
fn with_a_division(rates: &Rates) -> Vec<Row> {
    let mut rows = Vec::new();
    let better = RATIO.at("003:307").reading("1.6: “leads to about 60% improvement in performance”");
    let mean = Family { band: Band::Within(15.0), ..RATIO }.at("003:307");
    let mean = mean.reading("1: “the average of the smaller and larger power-of-two systems”");
    for (shape, [divided, predicted], source) in TABLE_3 {
        let basis = if shape == TABLE_3[0].0 { Basis::Calibrated } else { Basis::Predicted };
        let (without, with) = (GupsRun::roles(shape), GupsRun::roles(shape).by_division());
        let (without, with) = (rates.of(&without), rates.of(&with));
        let (n, divides) = (nodes(shape), Family { basis, ..RUN });
        rows.push(RUN.at(source).row(title("roles, owners without a division", shape), predicted, without));
        rows.push(divides.at(source).row(title("roles, owners by a division", shape), divided, with));
        rows.push(better.row(title("roles, without a division / with", shape), 1.6, without / with));
        let between = (rates.of_nodes(n / 3 * 2) + rates.of_nodes(n / 3 * 4)) / 2.0;
        rows.push(mean.row(
            title("roles, without a division / mean of neighbours", shape),
            1.0,
            without / between,
        ));
    }
    let (largest, ..) = TABLE_3[TABLE_3.len() - 1];
    let slower = Family { band: Band::AtMost, ..RATIO }.at("003:307");
    let slower = slower.reading("≤ 1: “performance on 768 nodes is less than that on 512 nodes”");
    let with = rates.of(&GupsRun::roles(largest).by_division());
    rows.push(slower.row("roles, 768 nodes by a division / 512", 1.0, with / rates.of_nodes(512)));
    rows
}

/// Returns the rows on the cycles that each core of a node works for an update, with 64 nodes. The paper measured them
/// by letting cores discard received data; here they are in the ledgers of the cores.
fn loads() -> Result<Vec<Row>, Failure> {
    let wanted = GupsRun::roles(TABLE_4[0].0);
    let words = wanted.words();
    let own: Vec<String> = words.split(' ').chain(NO_FILES).map(str::to_owned).collect();
    let summary = runs::summary("gups", &own, [])?;
    let places = summary["by_place"].as_array().map_or(&[][..], Vec::as_slice);
    let busy = |place: &serde_json::Value| {
        let spent = ["working", "fetching", "handling", "copying"];
        spent.into_iter().filter_map(|name| place["ledger_ps"][name].as_f64()).sum::<f64>()
    };
    let updates = f64::from(UPDATES) * f64::from(nodes(wanted.shape));
    let family = Family { unit: "cycles", ..RUN }.at("003:268");
    let mut rows = Vec::new();
    for (role, published) in (0..ROLES as usize).zip([95.0, 112.0, 114.0, 146.0]) {
        let spent: f64 = places.iter().skip(role).step_by(ROLES as usize).map(busy).sum();
        let cycles = spent / updates * CLOCK / 1e3;
        rows.push(family.row(
            title(&format!("roles, core {role}, an update"), wanted.shape),
            published,
            cycles,
        ));
        if role == 3 {
            let family = family.at("003:282");
            rows.push(family.row(
                title("roles, core 3, an update, by the rate", wanted.shape),
                143.0,
                cycles,
            ));
        }
    }
    Ok(rows)
}

/// Returns the rows on the cycles to receive a packet: the chip file has the costs of one, and of a further one by the
/// same call.
fn receives() -> [Row; 2] {
    let chip = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("the chip comes with Isles: {error}"));
    let preset = chip.default_preset();
    let times: TimingTable<HopCost> = preset.times();
    let cycles = |cost: Option<HopCost>| {
        let time = cost.map_or(f64::NAN, |cost| cost.over(0).nanoseconds());
        time * preset.clocks().core.megahertz() / 1e3
    };
    let (alone, more) = (cycles(times.receive), cycles(times.receive_more));
    let family = Family { unit: "cycles", basis: Basis::Calibrated, ..RUN }.at("003:179");
    [
        family.row("receiving a packet by itself", 600.0, alone),
        family.row("receiving a packet of four together", 330.0, (alone + 3.0 * more) / 4.0),
    ]
}

/// Returns the cores of the chip, of 32 × 32 × 32 nodes of four, that form a part with these extents: the first `cores`
/// of each node.
fn placement([x, y, z]: [u32; 3], cores: u32) -> String {
    let rows = (0..z).flat_map(|z| (0..y).map(move |y| 32 * (y + 32 * z)));
    let ranges = rows.flat_map(|row| {
        if cores == ROLES {
            vec![format!("{}-{}", 4 * row, 4 * (row + x) - 1)]
        } else {
            (0..x).map(|x| (4 * (row + x)).to_string()).collect()
        }
    });
    ranges.collect::<Vec<_>>().join(",")
}
