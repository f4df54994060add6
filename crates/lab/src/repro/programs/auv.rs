//! The computer of an underwater vehicle: an ocean model and a path planner at many clocks of the SCC, over RCKMPI.
//!
//! Each run is one of `isles run ocean` or `isles run path`, by protocol `sections`, with a divider of the tiles and
//! clocks of mesh and memory over the costs of the preset 800/1600/1066. The paper has plots without digits and
//! sentences about them; each sentence is one or more rows, and *in most cases* becomes a share of settings. The ocean
//! runs fewer steps than the paper's, because each costs the same; time and energy are of the steps alone, and of the
//! search alone. Invariant: every row could come out on the wrong side.

use super::super::quantity::Title;
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::CORES;
use isles_app::{Failure, runs};
use serde_json::Value;

/// The evaluation of the paper.
pub(crate) const AUV: Experiment = Experiment {
    name: "auv",
    about: "an ocean model and a path planner at clocks of tiles, mesh and memory, over RCKMPI: time, power and energy",
    source: "Woithe et al., battery-operated cyber-physical systems, MARC 2012, paper 7",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Clocks of the chip in MHz, the tiles' as a divider of 1,600.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clocks {
    divider: u32,
    mesh: u32,
    memory: u32,
}

/// The paper's highest setting, Tile800_Mesh1600_DDR1066; the same with a slow mesh, and with slow tiles.
const HIGHEST: Clocks = Clocks { divider: 2, mesh: 1600, memory: 1066 };
const SLOW_MESH: Clocks = Clocks { mesh: 400, ..HIGHEST };
const SLOW_TILES: Clocks = Clocks { divider: 5, ..HIGHEST };
const HALF_TILES: Clocks = Clocks { divider: 4, ..HIGHEST };

/// The settings of the comparisons. The paper does not list its own; these are its highest, and variants with a lower
/// clock.
const SETTINGS: [Clocks; 9] = [
    HIGHEST,
    SLOW_MESH,
    Clocks { mesh: 800, ..HIGHEST },
    Clocks { memory: 800, ..HIGHEST },
    Clocks { divider: 3, ..HIGHEST },
    Clocks { divider: 3, mesh: 800, memory: 800 },
    HALF_TILES,
    SLOW_TILES,
    Clocks { divider: 5, mesh: 400, memory: 800 },
];

/// Arguments of the ocean: the grid is the paper's, and `--steps` is the number of its steps that are run.
const OCEAN: &str = "--case channel --steps 2 --every 2";

/// Arguments of the path planner: a mission with a short search.
const PATH: &str = "--case jet --columns 13 --rows 7 --spacing 4";

/// Numbers of cores at which the planner is evaluated.
const PLANNERS: [u32; 8] = [1, 2, 11, 12, 20, 21, 30, CORES];

/// Result of a run.
#[derive(Clone, Copy, Debug)]
struct RunCost {
    seconds: f64,
    joules: f64,
}

impl RunCost {
    fn watts(self) -> f64 {
        self.joules / self.seconds
    }
}

const SHAPE: Family = Family {
    deck: "",
    unit: "",
    band: Band::AtMost,
    basis: Basis::Predicted,
    source: "004:1457",
    reading: "",
};

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = ocean()?;
    rows.extend(planner()?);
    rows.extend(both()?);
    Ok(rows)
}

/// Runs an application on `cores` cores at these clocks; only the part `region` of the run counts.
fn run(app: &str, words: &str, cores: u32, clocks: Clocks, region: &str) -> Result<RunCost, Failure> {
    let Clocks { divider, mesh, memory } = clocks;
    let words = format!(
        "{words} --machine chip:scc --protocol sections --places {cores} --preset 800/1600/1066 --governor fixed:{divider} --json /dev/null --csv /dev/null"
    );
    let mut own: Vec<String> = words.split(' ').map(str::to_owned).collect();
    own.extend(["--set".to_owned(), format!("mesh={mesh} MHz; memory={memory} MHz")]);
    let summary = runs::summary(app, &own, [])?;
    let regions = summary["regions"].as_array().map_or(&[][..], Vec::as_slice);
    let found = regions.iter().find(|found| found["name"] == region);
    let figures = |found: &Value| {
        let seconds = found["time_ps"].as_f64()? / 1e12;
        Some(RunCost { seconds, joules: found["energy_j"].as_f64()? })
    };
    found.and_then(figures).ok_or_else(|| Failure::Ended(format!("a run of {app} has no region {region}")))
}

fn run_ocean(cores: u32, clocks: Clocks, more: &str) -> Result<RunCost, Failure> {
    run("ocean", &format!("{OCEAN}{more}"), cores, clocks, "steps")
}

fn run_path(cores: u32, clocks: Clocks, more: &str) -> Result<RunCost, Failure> {
    run("path", &format!("{PATH}{more}"), cores, clocks, "search")
}

/// Placement of the ocean's smaller runs: one core of each tile, so that all memory controllers serve them.
const SPREAD: &str = " --placement spread";

/// Runs of the ocean at all settings, on 24 cores and on all.
struct OceanRuns {
    few: Vec<RunCost>,
    many: Vec<RunCost>,
}

fn ocean() -> Result<Vec<Row>, Failure> {
    let both = [24, CORES].into_iter();
    let all: Vec<(u32, Clocks)> = both.flat_map(|cores| SETTINGS.map(|clocks| (cores, clocks))).collect();
    let mut few = runs::all(all.len(), "runs of the ocean", |number| {
        let (cores, clocks) = all[number];
        run_ocean(cores, clocks, if cores == 24 { SPREAD } else { "" })
    })?;
    let many = few.split_off(SETTINGS.len());
    let runs = OceanRuns { few, many };
    let mut rows = runs.times();
    rows.extend(runs.energies());
    rows.extend(runs.powers());
    rows.extend(runs.half_rate());
    rows.extend(tilings()?);
    Ok(rows)
}

/// Returns the index of a setting among those of the ocean.
fn at(clocks: Clocks) -> usize {
    SETTINGS.iter().position(|setting| *setting == clocks).expect("it is one of them")
}

impl OceanRuns {
    /// Returns the share of the settings at which `of` is smaller with 24 cores.
    fn share(&self, of: fn(RunCost) -> f64) -> f64 {
        let less = self.few.iter().zip(&self.many).filter(|(few, many)| of(**few) < of(**many)).count();
        less as f64 / SETTINGS.len() as f64
    }

    fn times(&self) -> Vec<Row> {
        let mut slowest_first: Vec<f64> = self.many.iter().map(|ran| ran.seconds).collect();
        slowest_first.sort_by(|one, other| other.total_cmp(one));
        let best = self.few.iter().map(|ran| ran.seconds).fold(f64::INFINITY, f64::min);
        let near = Family { band: Band::Within(25.0), basis: Basis::Derived, ..SHAPE };
        let near = near.reading("1: “nearly identically to the second slowest configuration of 48 nodes”");
        let faster = SHAPE.reading("≤ 1: “and outperformed the slowest”");
        let most = SHAPE.reading("≤ 1 / 2: “In most cases, the runtime for 48 cores”");
        let of = |what| format!("ocean, time of 24 cores at their best / 48 at their {what}");
        vec![
            near.row(of("second slowest"), 1.0, best / slowest_first[1]),
            faster.row(of("slowest"), 1.0, best / slowest_first[0]),
            most.row(
                "ocean, part of the settings where 24 cores are faster than 48",
                0.5,
                self.share(|ran| ran.seconds),
            ),
        ]
    }

    fn energies(&self) -> Vec<Row> {
        let shape = SHAPE.at("004:1463");
        let near = Family { band: Band::Within(25.0), basis: Basis::Derived, ..shape };
        let near = near.reading("1: “similar to the lowest configuration of the 48 cores”");
        let less = shape.reading("≤ 1 / 2: “generally more energy efficient to use 48 cores”");
        let faster = shape.reading("≤ 1: “the 48 node setting does outperform the 24”");
        let highest = self.few[at(HIGHEST)];
        let least = self.many.iter().copied().min_by(|one, other| one.joules.total_cmp(&other.joules));
        let frugal = least.unwrap_or(highest);
        vec![
            less.row(
                "ocean, part of the settings where 24 cores need less energy than 48",
                0.5,
                self.share(|ran| ran.joules),
            ),
            near.row(
                "ocean, energy of 24 cores at the highest setting / least of 48",
                1.0,
                highest.joules / frugal.joules,
            ),
            faster.row(
                "ocean, time of 48 cores at their least energy / 24 at the highest setting",
                1.0,
                frugal.seconds / highest.seconds,
            ),
        ]
    }

    fn powers(&self) -> Vec<Row> {
        let shape = SHAPE.at("004:1461");
        let several = shape.reading("≤ 1: “reduced power by several watts”, 2 or more");
        let most = shape.reading("≤ 1: “The most pronounced effect on power were high tile frequencies”");
        let mut rows = Vec::new();
        for (cores, ran) in [(24, &self.few), (CORES, &self.many)] {
            let saved = |clocks: Clocks| ran[at(HIGHEST)].watts() - ran[at(clocks)].watts();
            let (by_mesh, by_tiles) = (saved(SLOW_MESH), saved(SLOW_TILES));
            let title = format!("ocean, {cores} cores, 2 W / power that a mesh of 400 MHz saves");
            rows.push(several.row(title, 1.0, 2.0 / by_mesh));
            let title = format!("ocean, {cores} cores, power moved by mesh / tiles");
            rows.push(most.row(title, 1.0, by_mesh / by_tiles));
        }
        rows
    }

    fn half_rate(&self) -> Vec<Row> {
        let (half, best) = (self.many[at(HALF_TILES)], self.few[at(HIGHEST)]);
        let shape = SHAPE.at("004:1503");
        let comparable = Family { band: Band::Within(15.0), ..shape };
        let comparable = comparable
            .reading("1: “nearly the same runtime and energy profiles as the best setting for 24 nodes”");
        let energy = shape.reading("≤ 1: “more runtime and energy efficient”");
        let power = shape.reading("≤ 1: “greatly reduces the required power”");
        let of = |what| format!("ocean, {what} of 48 cores at half the rate / 24 at the highest setting");
        vec![
            comparable.row(of("time"), 1.0, half.seconds / best.seconds),
            energy.row(of("energy"), 1.0, half.joules / best.joules),
            power.row(of("power"), 1.0, half.watts() / best.watts()),
        ]
    }
}

/// Returns the rows on all ways to cut the grid into 48 tiles.
fn tilings() -> Result<Vec<Row>, Failure> {
    let all: Vec<[u32; 2]> =
        (1..=CORES).filter(|rows| CORES.is_multiple_of(*rows)).map(|rows| [rows, CORES / rows]).collect();
    let ran = runs::all(all.len(), "tilings", |number| {
        let [rows, columns] = all[number];
        run_ocean(CORES, HIGHEST, &format!(" --tiles {rows}x{columns}"))
    })?;
    let own = run_ocean(CORES, HIGHEST, "")?.seconds;
    let best = ran.iter().map(|ran| ran.seconds).fold(f64::INFINITY, f64::min);
    let alone = Family { band: Band::Unpublished, source: "", unit: "ms", ..SHAPE };
    let optimal = Family { band: Band::Within(5.0), ..SHAPE }.at("004:1455");
    let optimal = optimal.reading("1: “We empirically validated that the tile dimensions used are optimal”");
    let mut rows =
        vec![optimal.row("ocean, tiles with the shortest halos / best tiling by trial", 1.0, own / best)];
    for ([tiles, columns], ran) in all.iter().zip(&ran) {
        rows.push(alone.row(
            format!("ocean, 48 cores, {tiles} x {columns} tiles"),
            f64::NAN,
            1e3 * ran.seconds,
        ));
    }
    Ok(rows)
}

fn planner() -> Result<Vec<Row>, Failure> {
    let settings = [HIGHEST, SLOW_MESH, SLOW_TILES];
    let all: Vec<(u32, Clocks)> =
        settings.iter().flat_map(|clocks| PLANNERS.map(|cores| (cores, *clocks))).collect();
    let ran = runs::all(all.len(), "runs of the planner", |number| {
        let (cores, clocks) = all[number];
        run_path(cores, clocks, "")
    })?;
    let at = |clocks: Clocks, cores: u32| {
        let found = all.iter().position(|run| *run == (cores, clocks));
        ran[found.expect("it was run")]
    };
    let seconds = |clocks, cores| at(clocks, cores).seconds;
    let speed_up = |clocks, cores| seconds(clocks, 1) / seconds(clocks, cores);
    let mut rows = Vec::new();
    for (clocks, name) in [(HIGHEST, "highest setting"), (SLOW_MESH, "slow mesh"), (SLOW_TILES, "slow tiles")]
    {
        let ratio = |one: u32, other: u32| seconds(clocks, one) / seconds(clocks, other);
        rows.extend(by_number_of_cores(name, speed_up(clocks, 2), ratio));
    }
    rows.push(optimum()?);
    let faster = SHAPE.at("004:1489");
    let slower = faster.reading("≤ 1: “Lowering the mesh speed does decrease the speedup”");
    let tiles = faster.reading("≤ 1: “not as significant as observed when changing the CPU frequency”");
    rows.push(slower.row(
        "planner, 21 cores, speed-up, slow mesh / highest setting",
        1.0,
        speed_up(SLOW_MESH, 21) / speed_up(HIGHEST, 21),
    ));
    let longer = |clocks| seconds(clocks, 21) / seconds(HIGHEST, 21) - 1.0;
    rows.push(tiles.row(
        "planner, 21 cores, time added by slow mesh / slow tiles",
        1.0,
        longer(SLOW_MESH) / longer(SLOW_TILES),
    ));
    let comparable = Family { band: Band::Within(15.0), ..SHAPE }.at("004:1491");
    let comparable = comparable.reading("1: “a comparable energy profile of the highest speed SCC setting”");
    let no_worse = SHAPE.at("004:1491").reading("≤ 1: “the energy difference is not substantial”");
    rows.push(comparable.row(
        "planner, 21 cores, energy, slow mesh / highest setting",
        1.0,
        at(SLOW_MESH, 21).joules / at(HIGHEST, 21).joules,
    ));
    for cores in [30, CORES] {
        let ratio = at(SLOW_TILES, cores).joules / at(HIGHEST, cores).joules;
        rows.push(no_worse.row(
            format!("planner, {cores} cores, energy, slow tiles / highest setting"),
            1.0,
            ratio,
        ));
    }
    rows.extend(idle(at(HIGHEST, CORES), at(HIGHEST, 30))?);
    Ok(rows)
}

/// Returns the rows on the paper's remarks about the planner by its number of cores, at one setting; `ratio` is that of
/// the times with two numbers of cores.
fn by_number_of_cores(name: &str, speed_up_of_two: f64, ratio: impl Fn(u32, u32) -> f64) -> [Row; 4] {
    let shape = SHAPE.at("004:1473");
    let first = shape.reading("≤ 1: “There is an initial communication overhead for two cores”");
    let best = shape.reading("≤ 3 / 4: “the optimal number of nodes should be 21”");
    let more = shape.reading("≤ 1: “Additional nodes only provide overhead”");
    let comparable = Family { band: Band::Within(3.0), basis: Basis::Derived, ..shape };
    let comparable = comparable.reading("1: “the second work delegation will leave one slave idle”");
    let title = |what: &str| format!("planner, {name}, {what}");
    [
        first.row(title("speed-up of 2 cores"), 1.0, speed_up_of_two),
        comparable.row(title("time of 12 cores / 11"), 1.0, ratio(12, 11)),
        best.row(title("time of 21 cores / 20"), 0.75, ratio(21, 20)),
        more.row(title("time of 21 cores / 48"), 1.0, ratio(21, CORES)),
    ]
}

/// Returns the row on the number of cores with the shortest search.
fn optimum() -> Result<Row, Failure> {
    let ran =
        runs::all(CORES as usize - 1, "numbers of cores", |number| run_path(number as u32 + 2, HIGHEST, ""))?;
    let best = (2_u32..).zip(&ran).min_by(|one, other| one.1.seconds.total_cmp(&other.1.seconds));
    let exact = Family { band: Band::Within(0.0), source: "004:1473", ..SHAPE };
    Ok(exact.row(
        "planner, highest setting, cores with the shortest search",
        21.0,
        best.map_or(0.0, |best| f64::from(best.0)),
    ))
}

/// Returns the rows on workers that sleep, compared with those that block, and on the cost of launching.
fn idle(blocking: RunCost, blocking_few: RunCost) -> Result<Vec<Row>, Failure> {
    let [sleeping, sleeping_few] =
        [run_path(CORES, HIGHEST, " --idle sleep")?, run_path(30, HIGHEST, " --idle sleep")?];
    let shape = SHAPE.at("004:1482-1487");
    let less = shape.reading("≤ 1: “greatly reduces the overall energy used by the slave”");
    let longer = shape.reading("≤ 1: “introduces latency for the first receive”");
    let mut rows = Vec::new();
    for (cores, blocks, sleeps) in [(30, blocking_few, sleeping_few), (CORES, blocking, sleeping)] {
        rows.push(less.row(
            Title::from(format!("planner, {cores} cores, energy, sleeping / blocking workers")),
            1.0,
            sleeps.joules / blocks.joules,
        ));
        rows.push(longer.row(
            Title::from(format!("planner, {cores} cores, time, blocking / sleeping workers")),
            1.0,
            blocks.seconds / sleeps.seconds,
        ));
    }
    let words = format!(
        "{PATH} --noop --machine chip:scc --protocol sections --places {CORES} --preset 800/1600/1066"
    );
    let document = super::document("path", &words)?;
    let launching = super::seconds("path", &document)?;
    let alone = Family { band: Band::Unpublished, source: "", unit: "ms", ..SHAPE };
    rows.push(alone.row(
        "planner, 48 cores, a program that starts and ends (MPI-NOOP)",
        f64::NAN,
        1e3 * launching,
    ));
    Ok(rows)
}

/// Returns the rows on the paper's remarks about both programs.
fn both() -> Result<Vec<Row>, Failure> {
    let slower = |one: RunCost, other: RunCost| one.seconds / other.seconds;
    let ocean = slower(run_ocean(CORES, SLOW_MESH, "")?, run_ocean(CORES, HIGHEST, "")?);
    let fast = run_path(21, HIGHEST, "")?;
    let planner = slower(run_path(21, SLOW_MESH, "")?, fast);
    let shape = SHAPE.at("004:1501");
    let greater = shape.reading("≤ 1: “While the impact is greater for ROMS”");
    let highest = shape.reading("≤ 1: “Ideally, the highest tile, mesh and memory speed”");
    let mut rows = vec![greater.row("slowdown by a slow mesh, planner / ocean", 1.0, planner / ocean)];
    let others = runs::all(SETTINGS.len(), "settings", |number| run_path(21, SETTINGS[number], ""))?;
    let least = others.iter().map(|ran| ran.seconds).fold(f64::INFINITY, f64::min);
    rows.push(highest.row(
        "planner, 21 cores, time at the highest setting / shortest of all",
        1.0,
        fast.seconds / least,
    ));
    Ok(rows)
}
