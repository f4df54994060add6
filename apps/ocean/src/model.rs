//! The model over all places: its arrays, the order of a step, and its records.
//!
//! Each place has a tile of every array. A long step computes the tendencies of the levels and exchanges their means;
//! then the short steps of the external mode, with one exchange each; then the new velocities of the levels and the
//! tracer, with an exchange after each. Invariant: halos match the neighbours wherever a step reads them, so every
//! value is computed from the same numbers at any tiling.

use crate::records::{Recording, Records, Snapshot, Totals};
use crate::scheme::external::{External, Statics, Transports};
use crate::scheme::momentum::{Ahead, Component, Factors, LevelFields, RowBuffers};
use crate::scheme::tile::{HALO, Tile};
use crate::scheme::tracer::{Advection, TracerFields, TracerScratch};
use crate::setup::Setup;
use isles::array::{DistArray, Distribution, Halo};
use isles::measured;
use isles::prelude::*;
use isles_app::frame::RunMeter;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A number of tiles from south to north and from west to east.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tiling {
    pub rows: usize,
    pub columns: usize,
}

/// The distributed arrays of the model.
#[derive(Clone, Serialize, Deserialize)]
pub struct Fields {
    /// Surface and mean velocities, as three layers.
    fast: DistArray<f64, 3>,
    /// Means of the tendencies of both velocities.
    slow: DistArray<f64, 3>,
    /// Both velocities: buffers for before and after a step, swapped at each step.
    velocities: [[DistArray<f64, 3>; 2]; 2],
    /// Tracers: buffers for before and after a step, swapped at each step.
    tracers: [DistArray<f64, 3>; 2],
    /// Content, surface tracer and hash of each column.
    columns: DistArray<f64, 3>,
}

impl Fields {
    /// Creates the arrays of a setup, filled with zeros.
    ///
    /// # Errors
    /// A place has died, or there is no such tiling.
    pub async fn new(setup: &Setup, tiling: Option<Tiling>) -> isles::Result<Fields> {
        let team = Team::world();
        let grid = &setup.grid;
        let cut = match tiling {
            Some(Tiling { rows, columns }) => [Distribution::Parts(rows), Distribution::Parts(columns)],
            None => [Distribution::Block; 2],
        };
        let array = async |layers: usize, halo: Halo| {
            let distributions = [Distribution::Whole, cut[0], cut[1]];
            DistArray::with_halo(&team, [layers, grid.rows, grid.columns], distributions, halo).await
        };
        let halo = Halo::periodic(HALO).without_axis(0);
        Ok(Fields {
            fast: array(3, halo).await?,
            slow: array(2, halo).await?,
            velocities: [
                [array(grid.levels, halo).await?, array(grid.levels, halo).await?],
                [array(grid.levels, halo).await?, array(grid.levels, halo).await?],
            ],
            tracers: [array(grid.levels, halo).await?, array(grid.levels, halo).await?],
            columns: array(3, Halo::default()).await?,
        })
    }

    fn tile(&self, setup: &Setup) -> Tile {
        let part = self.fast.read();
        let [_, rows, columns] = part.extents();
        let [_, row, column] = if rows * columns == 0 { [0; 3] } else { part.global([0; 3]) };
        let grid = [setup.grid.rows, setup.grid.columns];
        Tile { rows, columns, first: [row, column], grid, levels: setup.grid.levels }
    }
}

/// Index of the fields before step `number`.
fn now(number: u64) -> usize {
    (number % 2) as usize
}

/// Index of the fields after step `number`.
fn after(number: u64) -> usize {
    now(number + 1)
}

/// The part of the model at one place.
struct TileState<'a> {
    fields: &'a Fields,
    setup: &'a Setup,
    tile: Tile,
    statics: Statics,
    transports: Transports,
    /// Tendencies of both velocities in the previous step.
    tendencies: [Vec<f64>; 2],
    /// Column means of the velocities after a step, before they are shifted.
    next_means: [Vec<f64>; 2],
    rows: RowBuffers,
    /// Vertical velocities at the bottoms of levels and at the surface.
    rise: Vec<f64>,
    /// The surface before the step.
    before: Vec<f64>,
    scratch: TracerScratch,
}

impl<'a> TileState<'a> {
    /// The part at the start.
    fn new(fields: &'a Fields, setup: &'a Setup) -> TileState<'a> {
        let tile = fields.tile(setup);
        let depth = |row, column| setup.depth(row, column);
        let is_open = |row: usize, column: usize, back: [usize; 2]| {
            let [periodic_rows, periodic_columns] = setup.grid.is_periodic;
            let is_wall = (back[0] == 1 && row == 0 && !periodic_rows)
                || (back[1] == 1 && column == 0 && !periodic_columns);
            let row_before = (row + setup.grid.rows - back[0]) % setup.grid.rows;
            let column_before = (column + setup.grid.columns - back[1]) % setup.grid.columns;
            let is_wet = depth(row, column) > 0.0 && depth(row_before, column_before) > 0.0;
            f64::from(is_wet && !is_wall)
        };
        let statics = Statics {
            depth: tile.fill(depth),
            mask_u: tile.fill(|row, column| is_open(row, column, [0, 1])),
            mask_v: tile.fill(|row, column| is_open(row, column, [1, 0])),
            coriolis: tile.fill(|row, _| setup.coriolis(row)),
            wind: tile.fill(|row, _| setup.wind(row)),
        };
        let (plane, volume) = (tile.plane(), tile.plane() * tile.levels);
        let zeros = |number: usize| vec![0.0; number];
        let part = TileState {
            fields,
            setup,
            tile,
            transports: Transports::new(&tile),
            tendencies: [zeros(volume), zeros(volume)],
            next_means: [zeros(plane), zeros(plane)],
            rows: RowBuffers::new(&tile),
            rise: zeros(volume + plane),
            before: zeros(plane),
            scratch: TracerScratch::new(&tile),
            statics,
        };
        part.start();
        part
    }

    /// Sets the initial fields, with their halos.
    fn start(&self) {
        let (tile, setup) = (&self.tile, self.setup);
        let Statics { depth, mask_u, mask_v, .. } = &self.statics;
        let masked = |mask: &[f64], values: Vec<f64>| -> Vec<f64> {
            values.into_iter().zip(mask).map(|(value, mask)| if *mask > 0.0 { value } else { 0.0 }).collect()
        };
        let surface = masked(depth, tile.fill(|row, column| setup.surface(row, column)));
        let u = masked(mask_u, tile.fill(|row, column| setup.velocity_east(row, column)));
        let v = masked(mask_v, tile.fill(|row, column| setup.velocity_north(row, column)));
        let levels = |values: &[f64]| values.repeat(tile.levels);
        self.fields.velocities[0][0].lock().values_mut().copy_from_slice(&levels(&u));
        self.fields.velocities[0][1].lock().values_mut().copy_from_slice(&levels(&v));
        self.fields.fast.lock().values_mut().copy_from_slice(&[surface, u, v].concat());
        let tracer = |level| masked(depth, tile.fill(|row, column| setup.tracer(row, column, level)));
        let tracer: Vec<f64> = (0..tile.levels).flat_map(tracer).collect();
        self.fields.tracers[0].lock().values_mut().copy_from_slice(&tracer);
    }

    /// Runs step `number`, counted from 0.
    async fn advance(&mut self, number: u64) -> isles::Result<()> {
        self.compute_tendency(number);
        self.fields.slow.exchange().await?;
        self.run_external(number).await?;
        self.shift(number);
        for velocity in &self.fields.velocities[after(number)] {
            velocity.exchange().await?;
        }
        self.advect(number);
        self.fields.tracers[after(number)].exchange().await
    }

    /// Computes the tendencies of step `number`, and the velocities after it, before `shift` sets their
    /// column means.
    fn compute_tendency(&mut self, number: u64) {
        let TileState { fields, setup, tile, statics, tendencies, next_means, rise, before, rows, .. } = self;
        let plane = tile.plane();
        let fast = fields.fast.read();
        let (surface, means) = fast.values().split_at(plane);
        let (u_mean, v_mean) = means.split_at(plane);
        before.copy_from_slice(surface);
        let mut slow = fields.slow.lock();
        let (slow_u, slow_v) = slow.values_mut().split_at_mut(plane);
        let [u, v] = [0, 1].map(|direction| fields.velocities[now(number)][direction].read());
        let [mut next_u, mut next_v] =
            [0, 1].map(|direction| fields.velocities[after(number)][direction].lock());
        let (u, v, rise) = (u.values(), v.values(), &rise[..]);
        let [east, north] = Component::both(tile, &setup.grid, &setup.physics, statics);
        let [tendency_u, tendency_v] = tendencies;
        let [mean_u, mean_v] = next_means;
        let factors = || Factors::new(tile, setup.stepping.step, number == 0);
        let seen = [
            LevelFields { own: u, other: v, rise, surface, other_mean: v_mean },
            LevelFields { own: v, other: u, rise, surface, other_mean: u_mean },
        ];
        let mut ahead = [
            Ahead {
                tendency: tendency_u,
                next: next_u.values_mut(),
                next_mean: mean_u,
                slow: slow_u,
                factors: factors(),
            },
            Ahead {
                tendency: tendency_v,
                next: next_v.values_mut(),
                next_mean: mean_v,
                slow: slow_v,
                factors: factors(),
            },
        ];
        // Row by row, so that data that both components use is read from memory once.
        for line in tile.lines(0) {
            east.compute_tendency(&line, &seen[0], &mut ahead[0], rows);
            north.compute_tendency(&line, &seen[1], &mut ahead[1], rows);
        }
        work(self.work_of_levels(110, 72));
    }

    async fn run_external(&mut self, number: u64) -> isles::Result<()> {
        let substeps = self.setup.stepping.substeps;
        let cost = self.work_of_cells(48, 104);
        self.transports.clear();
        for substep in 0..substeps {
            {
                let slow = self.fields.slow.read();
                let (slow_u, slow_v) = slow.values().split_at(self.tile.plane());
                let mut fast = self.fields.fast.lock();
                let (surface, means) = fast.values_mut().split_at_mut(self.tile.plane());
                let (u, v) = means.split_at_mut(self.tile.plane());
                let external = External {
                    tile: &self.tile,
                    grid: &self.setup.grid,
                    physics: &self.setup.physics,
                    statics: &self.statics,
                    slow: [slow_u, slow_v],
                    step: self.setup.stepping.step / f64::from(substeps),
                };
                let is_u_first = (number * u64::from(substeps) + u64::from(substep)).is_multiple_of(2);
                external.advance([surface, u, v], &mut self.transports, is_u_first);
            }
            work(cost);
            self.fields.fast.exchange().await?;
        }
        Ok(())
    }

    /// Shifts the new velocities of each column to the mean of the external mode.
    fn shift(&mut self, number: u64) {
        let fast = self.fields.fast.read();
        let wanted = fast.values()[self.tile.plane()..].chunks(self.tile.plane());
        let both = Component::both(&self.tile, &self.setup.grid, &self.setup.physics, &self.statics);
        let velocities = &self.fields.velocities[after(number)];
        for (((component, velocity), wanted), mean) in
            both.iter().zip(velocities).zip(wanted).zip(&self.next_means)
        {
            component.shift(velocity.lock().values_mut(), mean, wanted);
        }
        work(self.work_of_levels(6, 32));
    }

    /// Computes the tracer after step `number`.
    fn advect(&mut self, number: u64) {
        let TileState { fields, setup, tile, statics, transports, rise, before, scratch, .. } = self;
        let plane = tile.plane();
        let fast = fields.fast.read();
        let (surface, means) = fast.values().split_at(plane);
        let (mean_u, mean_v) = means.split_at(plane);
        let advection = Advection {
            tile,
            grid: &setup.grid,
            physics: &setup.physics,
            statics,
            surface: [before, surface],
            mean: [mean_u, mean_v],
            step: setup.stepping.step,
            substeps: setup.stepping.substeps,
        };
        let [u, v] = [0, 1].map(|direction| fields.velocities[after(number)][direction].read());
        let old = fields.tracers[now(number)].read();
        let mut new = fields.tracers[after(number)].lock();
        let seen = TracerFields {
            velocities: [u.values(), v.values()],
            sums: [&transports.sum_u, &transports.sum_v],
            tracer: old.values(),
        };
        advection.advance(&seen, new.values_mut(), rise, scratch);
        work(self.work_of_levels(106, 48));
    }

    /// Returns the cost of `floats` operations and `bytes` of memory for each cell of each level, with half as many
    /// integer operations. The bytes are streamed from all arrays of the tile. They count each array with levels once;
    /// planes, and rows of all levels that are read twice, stay in a cache.
    fn work_of_levels(&self, floats: u64, bytes: u64) -> Work {
        let cells = (self.tile.rows * self.tile.columns * self.tile.levels) as u64;
        Work::new()
            .floats(floats * cells)
            .integers(floats * cells / 2)
            .streamed(bytes * cells)
            .of(self.bytes())
    }

    /// Returns the same cost for each cell of the surface, including a ring around the tile.
    fn work_of_cells(&self, floats: u64, bytes: u64) -> Work {
        let cells = ((self.tile.rows + 2) * (self.tile.columns + 2)) as u64;
        // The planes of the external mode are read again in the next short step.
        Work::new()
            .floats(floats * cells)
            .integers(floats * cells / 2)
            .streamed(bytes * cells)
            .of(bytes * cells)
    }

    /// Returns the bytes of all arrays of the tile.
    fn bytes(&self) -> u64 {
        8 * (self.tile.plane() * (9 * self.tile.levels + 24)) as u64
    }

    /// Collects the model after `step` steps at the member of rank 0; `None` at others.
    async fn record(&self, step: u64, recording: Recording) -> isles::Result<Option<Snapshot>> {
        self.sum_columns(step);
        let fast = self.fields.fast.gather(0).await?;
        let columns = self.fields.columns.gather(0).await?;
        let mut levels = [None, None];
        if recording.has_levels {
            for (velocity, levels) in self.fields.velocities[now(step)].iter().zip(&mut levels) {
                *levels = velocity.gather(0).await?;
            }
        }
        let (Some(fast), Some(columns)) = (fast, columns) else { return Ok(None) };
        let layer =
            |all: &[f64], number: usize| all.chunks(all.len() / 3).nth(number).unwrap_or_default().to_vec();
        let [levels_east, levels_north] = levels.map(Option::unwrap_or_default);
        Ok(Some(Snapshot {
            step,
            surface: layer(&fast, 0),
            east: layer(&fast, 1),
            north: layer(&fast, 2),
            content: layer(&columns, 0),
            tracer: layer(&columns, 1),
            hashes: layer(&columns, 2).into_iter().map(f64::to_bits).collect(),
            levels_east,
            levels_north,
        }))
    }

    /// Computes content, surface value and hash of each column of the tile.
    fn sum_columns(&self, step: u64) {
        let (tile, plane) = (&self.tile, self.tile.plane());
        let fast = self.fields.fast.read();
        let tracer = self.fields.tracers[now(step)].read();
        let (surface, tracer) = (&fast.values()[..plane], tracer.values());
        let [u, v] = [0, 1].map(|direction| self.fields.velocities[now(step)][direction].read());
        let mut columns = self.fields.columns.lock();
        for row in 0..tile.rows as isize {
            for column in 0..tile.columns as isize {
                let at = tile.at(row, column);
                let thick = (self.statics.depth[at] + surface[at]) / tile.levels as f64;
                let (mut content, mut hash) = (0.0, 0xcbf2_9ce4_8422_2325_u64);
                for level in 0..tile.levels {
                    let value = tracer[level * plane + at];
                    content += value * thick;
                    for value in [value, u.values()[level * plane + at], v.values()[level * plane + at]] {
                        hash = (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
                    }
                }
                columns[[0, row, column]] = content;
                columns[[1, row, column]] = tracer[(tile.levels - 1) * plane + at];
                columns[[2, row, column]] = f64::from_bits(hash);
            }
        }
    }
}

/// Runs the model at this place.
///
/// # Errors
/// A place has died, or the model has become unstable.
pub async fn run_part(
    fields: &Fields,
    setup: &Setup,
    recording: Recording,
    meter: &RunMeter,
) -> isles::Result<Records> {
    let mut part = TileState::new(fields, setup);
    let (mut records, steps) = (Records::default(), setup.stepping.steps);
    let mut keep = |snapshot: Snapshot| {
        records.totals.push(Totals::of(setup, &snapshot));
        if [0, steps].contains(&snapshot.step) || snapshot.step >= recording.kept_from {
            records.snapshots.push(snapshot);
        }
    };
    part.record(0, recording).await?.into_iter().for_each(&mut keep);
    // No place may enter the timed region while the first record is being collected.
    Team::world().barrier().await?;
    for step in 0..steps {
        let started = Instant::now();
        measured("steps", part.advance(step)).await?;
        meter.add_done(started);
        let done = step + 1;
        if done.is_multiple_of(recording.every) || done == steps {
            let record = part.record(done, recording).await?;
            let is_finite = |record: &Snapshot| record.surface.iter().all(|height| height.is_finite());
            // All places stop together: one that continued would wait for the others.
            if !Team::world().broadcast(0, record.as_ref().map(is_finite)).await? {
                let text = format!("the model became unstable before step {done}; use a shorter --step");
                return Err(isles::Error::message(text));
            }
            record.into_iter().for_each(&mut keep);
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::small;
    use isles::Plan;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// The range of a tracer before and after a run, on the tile of a place.
    #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    struct Course {
        /// The least and the greatest value in water, before and after the steps.
        before: [f64; 2],
        after: [f64; 2],
        /// The highest surface after the steps, in metres.
        surface: f64,
    }

    /// Returns the least and the greatest value of the tracer over all levels in the water of a tile.
    fn bounds(part: &TileState, tracer: &DistArray<f64, 3>) -> [f64; 2] {
        let (tile, tracer) = (&part.tile, tracer.read());
        let cells = (0..tile.rows as isize)
            .flat_map(|row| (0..tile.columns as isize).map(move |column| tile.at(row, column)));
        let wet: Vec<usize> = cells.filter(|at| part.statics.depth[*at] > 0.0).collect();
        let values = (0..tile.levels).flat_map(|level| wet.iter().map(move |at| level * tile.plane() + at));
        values
            .map(|index| tracer.values()[index])
            .fold([f64::INFINITY, f64::NEG_INFINITY], |bounds, value| {
                [bounds[0].min(value), bounds[1].max(value)]
            })
    }

    async fn follow(fields: &Fields, setup: &Setup, uniform: Option<f64>) -> isles::Result<Course> {
        let mut part = TileState::new(fields, setup);
        if let Some(value) = uniform {
            let mut tracer = fields.tracers[0].lock();
            for level in tracer.values_mut().chunks_mut(part.tile.plane()) {
                let water = level.iter_mut().zip(&part.statics.depth).filter(|(_, depth)| **depth > 0.0);
                water.for_each(|(tracer, _)| *tracer = value);
            }
        }
        let before = bounds(&part, &fields.tracers[0]);
        Team::world().barrier().await?;
        for step in 0..setup.stepping.steps {
            part.advance(step).await?;
        }
        let fast = fields.fast.read();
        let surface =
            fast.values()[..part.tile.plane()].iter().fold(0.0, |most, height| f64::max(most, height.abs()));
        Ok(Course { before, after: bounds(&part, &fields.tracers[now(setup.stepping.steps)]), surface })
    }

    /// Returns the range of a tracer over all places; it starts uniform, or as in the case if `None`.
    fn course(uniform: Option<f64>) -> Course {
        let kept = Rc::new(RefCell::new(Vec::new()));
        let place = Rc::clone(&kept);
        let (ended, ..) = isles::simulate(2, Plan::calm(0), move || async move {
            let setup = small(12, 12, 20);
            let fields = Fields::new(&setup, None).await?;
            let setup = Replicated::new(setup).await?;
            *place.borrow_mut() = everywhere!(follow(&fields, &setup, uniform).await?).await?;
            Ok::<_, isles::Error>(())
        });
        ended.unwrap();
        let joined = |one: [f64; 2], other: [f64; 2]| [one[0].min(other[0]), one[1].max(other[1])];
        let all = kept.take().into_iter().reduce(|one, other| Course {
            before: joined(one.before, other.before),
            after: joined(one.after, other.after),
            surface: one.surface.max(other.surface),
        });
        all.expect("there are places")
    }

    #[test]
    fn a_tracer_that_is_the_same_everywhere_stays_so() {
        let Course { before, after, surface } = course(Some(1.0));
        assert_eq!(before, [1.0; 2]);
        assert!(surface > 1e-4, "something moves");
        assert!(after.iter().all(|value| (value - 1.0).abs() < 1e-12), "{after:?}");
    }

    #[test]
    fn a_tracer_gets_no_new_extremes_at_any_level() {
        let Course { before, after, surface } = course(None);
        assert!(before[1] - before[0] > 10.0 && surface > 1e-4, "{before:?}");
        assert!(after[0] >= before[0] - 1e-12 && after[1] <= before[1] + 1e-12, "{before:?} {after:?}");
    }
}
