//! The application `ocean`: its arguments, the run over all places, its checks and output.
//!
//! Invariant: the result depends on the setup only; sums over the grid are taken at the first place, in one order.

use crate::analytic::Surfaces;
use crate::bathymetry::{self, GeoRegion};
use crate::model::{Fields, Tiling, run_part};
use crate::records::{Recording, Records, Snapshot, Totals, sum};
use crate::setup::{Case, Grid, Physics, Setup, Stepping};
use crate::{netcdf, picture};
use clap::{Args, ValueEnum, value_parser};
use isles::prelude::*;
use isles::{Claim, Plan};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

/// Limits: cells of a side, cells of all levels, and steps.
const SIDE_MAX: i64 = 1 << 14;
const CELLS_MAX: usize = 1 << 28;
const STEPS_MAX: u64 = 10_000_000;

/// The default number of records of a run.
const RECORDS: u64 = 20;

/// Most bytes of kept snapshots that are written as results; two snapshots are always kept.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;

/// The largest relative change of water or tracer that counts as rounding.
const LOSS_MAX: f64 = 1e-12;

/// The arguments of `isles run ocean`.
#[derive(Args, Clone, Debug)]
pub struct Ocean {
    /// The case to compute
    #[arg(long, value_enum, default_value = "channel")]
    case: Case,

    /// Cells from south to north [default: those of the case]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(4..=SIDE_MAX))]
    rows: Option<u32>,

    /// Cells from west to east [default: those of the case]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(4..=SIDE_MAX))]
    columns: Option<u32>,

    /// Layers [default: those of the case]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000))]
    levels: Option<u32>,

    /// Steps [default: those of the case]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=STEPS_MAX))]
    steps: Option<u64>,

    /// Length of a step in seconds [default: that of the case]
    #[arg(long, value_name = "S")]
    step: Option<f64>,

    /// Number of short surface steps per step [default: that of the case]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000))]
    substeps: Option<u32>,

    /// Tiles from south to north and from west to east, one for each place [default: nearly square tiles]
    #[arg(long, value_name = "RxC")]
    tiles: Option<String>,

    /// Steps from one record to the next [default: as many as make 20 records, fewer if they do not fit into 4 GiB]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    every: Option<u64>,

    /// A netCDF file with heights above the sea over latitude and longitude, for the depths
    #[arg(long, value_name = "FILE", requires = "region")]
    bathymetry: Option<String>,

    /// Its variable [default: the first over two dimensions]
    #[arg(long, value_name = "NAME", requires = "bathymetry")]
    variable: Option<String>,

    /// Region of the earth, in degrees: west, east, south, north
    #[arg(long, value_name = "W,E,S,N", allow_hyphen_values = true, requires = "bathymetry")]
    region: Option<String>,

    /// Also draw the final surface, as PNG; - is standard output
    #[arg(long, value_name = "FILE")]
    png: Option<String>,

    /// Also write the records as netCDF, with velocities at fixed depths; - is standard output
    #[arg(long, value_name = "FILE")]
    netcdf: Option<String>,
}

/// The input of a run.
#[derive(Clone, Serialize)]
pub struct OceanInput {
    case: Case,
    grid: Grid,
    physics: Physics,
    stepping: Stepping,
    bathymetry: Option<String>,
    tiles: Option<Tiling>,
    #[serde(skip)]
    setup: Setup,
    #[serde(skip)]
    recording: Recording,
}

/// The result of a run.
#[derive(Serialize)]
pub struct OceanFound {
    /// A hash of all bits of the state after the last step.
    hash: String,
    /// Cells of all levels, multiplied by the number of steps.
    cells: u64,
    /// The largest relative change of the water and of the tracer over all records.
    water_lost: f64,
    tracer_lost: f64,
    records: Vec<Totals>,
    #[serde(skip)]
    snapshots: Vec<Snapshot>,
    #[serde(skip)]
    input: OceanInput,
}

impl OceanFound {
    fn new(input: OceanInput, Records { totals: records, snapshots }: Records) -> OceanFound {
        let setup = &input.setup;
        let area = setup.grid.dx * setup.grid.dy;
        let cells =
            (0..setup.grid.rows).flat_map(|row| (0..setup.grid.columns).map(move |column| (row, column)));
        let water = area * sum(cells.map(|(row, column)| setup.depth(row, column)));
        let lost = |of: fn(&Totals) -> f64, all: f64| {
            let first = records.first().map_or(0.0, of);
            records.iter().map(|record| (of(record) - first).abs() / all.abs()).fold(0.0, f64::max)
        };
        let all = records.first().map_or(1.0, |record| record.tracer);
        OceanFound {
            hash: format!("{:016x}", snapshots.last().map_or(0, hash)),
            cells: (setup.grid.rows * setup.grid.columns * setup.grid.levels) as u64 * setup.stepping.steps,
            water_lost: lost(|record| record.volume, water),
            tracer_lost: lost(|record| record.tracer, all),
            records,
            snapshots,
            input,
        }
    }
}

/// Returns a hash of all bits of a snapshot.
fn hash(snapshot: &Snapshot) -> u64 {
    let flat = [&snapshot.surface, &snapshot.east, &snapshot.north]
        .into_iter()
        .flatten()
        .map(|value| value.to_bits());
    flat.chain(snapshot.hashes.iter().copied()).fold(0xcbf2_9ce4_8422_2325, |hash, bits| {
        (hash ^ bits).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    })
}

fn refused(flag: &str, value: impl std::fmt::Display, allowed: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{flag} is {value}; allowed: {allowed}"))
}

impl Ocean {
    fn setup(&self) -> Result<Setup, Failure> {
        let mut setup = self.case.setup();
        let own = setup.grid;
        let grid = &mut setup.grid;
        let resized = |given: Option<u32>, own: usize| given.map_or(own, |given| given as usize);
        (grid.rows, grid.columns) = (resized(self.rows, own.rows), resized(self.columns, own.columns));
        grid.levels = resized(self.levels, own.levels);
        // The domain keeps its size and cells become larger or smaller; the thin front keeps its cells.
        grid.dx *= own.columns as f64 / grid.columns as f64;
        grid.dy *= own.rows as f64 / grid.rows as f64;
        if grid.rows * grid.columns * grid.levels > CELLS_MAX {
            let given = format!("{}, --columns {} and --levels {}", grid.rows, grid.columns, grid.levels);
            return Err(refused("--rows", given, format!("together {CELLS_MAX} cells")));
        }
        let stepping = &mut setup.stepping;
        stepping.steps = self.steps.unwrap_or(stepping.steps);
        stepping.substeps = self.substeps.unwrap_or(stepping.substeps);
        stepping.step = self.step.unwrap_or(stepping.step);
        if let (Some(path), Some(given)) = (&self.bathymetry, &self.region) {
            let region = GeoRegion::read(given);
            let region = region
                .ok_or_else(|| refused("--region", given, "W,E,S,N in degrees, S and N from -89 to 89"))?;
            bathymetry::place(&mut setup, path, self.variable.as_deref(), region)?;
        }
        let (longest, by) = setup.longest_step();
        if !(setup.stepping.step > 0.0 && setup.stepping.step <= longest) {
            let down = 10_f64.powf(2.0 - longest.log10().floor());
            let allowed = format!(
                "above 0 and at most {}, the largest stable one ({by})",
                (longest * down).floor() / down
            );
            return Err(refused("--step", setup.stepping.step, allowed));
        }
        Ok(setup)
    }

    /// Returns the choice of records, such that the snapshots fit into memory.
    fn recording(&self, setup: &Setup) -> Result<Recording, Failure> {
        let (has_levels, steps) = (self.netcdf.is_some(), setup.stepping.steps);
        let kept_from = if has_levels { 0 } else { Surfaces::first_compared(setup) };
        let Grid { rows, columns, levels, .. } = setup.grid;
        // Six fields; with netCDF also both velocities of all levels, and the 26 fields of the file, 32 bits each,
        // once as numbers and once as bytes.
        let bytes = if has_levels { 48 + 16 * levels + 208 } else { 48 };
        let most = SNAPSHOT_BYTES_MAX / (rows * columns * bytes) as u64;
        let least = match most {
            _ if kept_from >= steps => 1,
            0..=2 => steps,
            // The first and the last snapshot are kept anyway.
            _ => (steps + 1 - kept_from.max(1)).div_ceil(most - 2),
        };
        let every = self.every.unwrap_or(steps.div_ceil(RECORDS).max(least));
        if every < least {
            let allowed =
                format!("at least {least}, for snapshots of at most {} GiB", SNAPSHOT_BYTES_MAX >> 30);
            return Err(refused("--every", every, allowed));
        }
        Ok(Recording { every, has_levels, kept_from })
    }

    fn tiling(&self, places: u32, setup: &Setup) -> Result<Option<Tiling>, Failure> {
        let Some(given) = &self.tiles else { return Ok(None) };
        let allowed = format!("RxC with R times C {places}, and a row and a column for each tile");
        let parsed = given
            .split_once('x')
            .and_then(|(rows, columns)| Some((rows.parse().ok()?, columns.parse().ok()?)));
        let fits = |(rows, columns): &(usize, usize)| {
            rows.checked_mul(*columns) == Some(places as usize)
                && *rows <= setup.grid.rows
                && *columns <= setup.grid.columns
        };
        let (rows, columns) = parsed.filter(fits).ok_or_else(|| refused("--tiles", given, allowed))?;
        Ok(Some(Tiling { rows, columns }))
    }
}

impl Application for Ocean {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "All fields are bit-identical at any number of places and with any tiling.",
        ..ApplicationInfo::new("ocean", env!("CARGO_PKG_DESCRIPTION"), "steps of tiles")
    };
    type Input = OceanInput;
    type Found = OceanFound;

    fn run_name(&self) -> String {
        let case = self.case.to_possible_value();
        format!("ocean-{}", case.as_ref().map_or("case", |case| case.get_name()))
    }

    fn reads(&self) -> Vec<Claim> {
        self.bathymetry.iter().map(|path| Claim::read(path, "the bathymetry")).collect()
    }

    fn open(&self, places: u32) -> Result<OceanInput, Failure> {
        let setup = self.setup()?;
        if (places as usize) > setup.grid.rows * setup.grid.columns {
            let allowed = format!("at least {places} cells, one for each place");
            return Err(refused(
                "--rows",
                format!("{} and --columns {}", setup.grid.rows, setup.grid.columns),
                allowed,
            ));
        }
        let recording = self.recording(&setup)?;
        let tiles = self.tiling(places, &setup)?;
        let Setup { case, grid, physics, stepping, .. } = setup;
        let bathymetry = self.bathymetry.clone();
        Ok(OceanInput { case, grid, physics, stepping, bathymetry, tiles, setup, recording })
    }

    fn heading(&self, input: &OceanInput) -> String {
        let Setup { grid, stepping, .. } = &input.setup;
        let case = self.run_name();
        let case = case.trim_start_matches("ocean-");
        let steps = count(stepping.steps, "step", "steps");
        let levels = count(grid.levels as u64, "level", "levels");
        format!("{case}: {} × {} cells, {levels}, {steps} of {} s", grid.columns, grid.rows, stepping.step)
    }

    async fn compute(
        input: OceanInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(OceanFound, WorkDone)> {
        let meter = distributor.meter(Some(input.setup.stepping.steps * place_count() as u64)).await?;
        let fields = Fields::new(&input.setup, input.tiles).await?;
        let setup = Replicated::new(input.setup.clone()).await?;
        let recording = input.recording;
        let started = now();
        let parts = everywhere!(run_part(&fields, &setup, recording, &meter).await?);
        let records = parts.await?.swap_remove(0);
        let done = meter.done(started).await?;
        Ok((OceanFound::new(input, records), done))
    }
}

impl RunResult for Ocean {
    fn text(&self, found: &OceanFound) -> String {
        let Some(last) = found.records.last() else { return String::new() };
        format!(
            "surface  {:.4} m at most\ncurrent  {:.4} m/s at most, mean of a column\nlost     {:.1e} of the water, {:.1e} of the tracer\nhash     {}",
            last.surface_max, last.speed_max, found.water_lost, found.tracer_lost, found.hash
        )
    }

    fn speed(&self, found: &OceanFound, seconds: f64) -> String {
        format!("{:.2} million cells a second", found.cells as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &OceanFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let setup = &found.input.setup;
        let mut holds = found.water_lost <= LOSS_MAX && found.tracer_lost <= LOSS_MAX;
        let mut text = "water and tracer are conserved".to_owned();
        if setup.case == Case::Lake && setup.physics.wind == 0.0 {
            holds &= found.records.iter().all(|record| record.surface_max == 0.0 && record.speed_max == 0.0);
            text += ", the lake is at rest";
        }
        let at: Vec<(f64, &[f64])> = found
            .snapshots
            .iter()
            .map(|snapshot| (snapshot.step as f64 * setup.stepping.step, snapshot.surface.as_slice()))
            .collect();
        for comparison in (Surfaces { setup, at: &at }).compare() {
            holds &= comparison.error <= comparison.allowed;
            text += &format!(", {} is off by {:.2} %", comparison.quantity, 100.0 * comparison.error);
        }
        if is_thorough {
            holds &= one_tile(&found.input)? == found.hash;
            text += "; all bits are those of one tile";
        }
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &OceanFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "step,volume_m3,tracer,energy,surface_max_m,speed_max_m_s")?;
        found.records.iter().try_for_each(|record| {
            let Totals { step, volume, tracer, energy, surface_max, speed_max } = record;
            writeln!(out, "{step},{volume},{tracer},{energy},{surface_max},{speed_max}")
        })
    }

    fn pictures(&self) -> Vec<(&'static str, &str)> {
        let png = self.png.as_ref().map(|path| ("--png", path.as_str()));
        png.into_iter().chain(self.netcdf.as_ref().map(|path| ("--netcdf", path.as_str()))).collect()
    }

    fn write_picture(&self, flag: &str, found: &OceanFound, out: &mut dyn Write) -> io::Result<()> {
        if flag == "--netcdf" {
            return netcdf::write_netcdf(&found.input.setup, &found.snapshots, out);
        }
        found
            .snapshots
            .last()
            .map_or(Ok(()), |last| picture::write_png(&found.input.setup, &last.surface, out))
    }
}

/// Returns the hash of the same run with one tile, at one simulated place.
fn one_tile(input: &OceanInput) -> Result<String, Failure> {
    let setup = input.setup.clone();
    let steps = setup.stepping.steps;
    let recording = Recording { every: steps, has_levels: false, kept_from: steps };
    let kept = Rc::new(Cell::new(0));
    let place = Rc::clone(&kept);
    let (ended, ..) = isles::simulate(1, Plan::calm(0), move || async move {
        let meter = WorkDistributor::plain::<Ocean>().meter(None).await?;
        let fields = Fields::new(&setup, None).await?;
        let records = run_part(&fields, &setup, recording, &meter).await?;
        place.set(records.snapshots.last().map_or(0, hash));
        Ok::<_, isles::Error>(())
    });
    ended.map_err(Failure::Run)?;
    Ok(format!("{:016x}", kept.get()))
}
