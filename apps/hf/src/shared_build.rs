//! A Fock build over all places: broadcast of the density, units for each place, reduction of the sums.
//!
//! Every place has the functions and its own density. The density is broadcast, and the sums are reduced as integers;
//! in between, places share only a counter of units. Invariant: the sums do not depend on the number of places, the
//! balance or the machine.

use super::fock::{ActiveUnit, FockBuilder, Functions, WorkUnit, units};
use super::integrals::one_electron;
use super::matrix::Matrix;
use super::{effort, fock};
use isles::HeldMemory;
use isles::glb::RunBalance;
use isles::prelude::*;
use isles_app::frame::{Balance, UnitKernel, UnitQueue, WorkDistributor, WorkDone, WorkUnits};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Quartets of shells that a place computes before it yields. On the SCC they take a fifth of a millisecond; with 8,
/// requests to the counter wait so long that 48 cores take a quarter longer than without a counter.
const QUARTETS_PER_TURN: usize = 3;

/// State that a place keeps between builds.
pub(super) struct BuildState {
    builder: FockBuilder,
    functions: usize,
    /// The stolen unit whose parts are computed here.
    stolen: Option<ActiveUnit>,
    /// Density of the next build, at the first place, and sums of the last one, up to the diagonal.
    density: Vec<f64>,
    sums: Vec<i64>,
    _held: HeldMemory,
}

impl BuildState {
    /// Prepares the pairs of shells.
    fn new(functions: Functions) -> BuildState {
        let size = one_electron::functions(&functions.shells);
        let builder = FockBuilder::new(&functions);
        let packed = (size * (size + 1) / 2 * size_of::<f64>()) as u64;
        let held = isles::hold_memory(builder.bytes() + 2 * packed);
        work(effort::of_integrals(&builder.preparation()));
        BuildState {
            builder,
            functions: size,
            stolen: None,
            density: vec![0.0; size * (size + 1) / 2],
            sums: Vec::new(),
            _held: held,
        }
    }

    fn begin_unit(&mut self, unit: u64) -> ActiveUnit {
        self.builder.begin_unit(WorkUnit::new(unit, self.builder.shells()))
    }

    /// Adds the next quartets of a unit to the sums of this place; returns `false` if it is complete.
    fn advance_unit(&mut self, unit: &mut ActiveUnit) -> bool {
        let part = self.builder.advance_unit(unit, QUARTETS_PER_TURN);
        if let Some(part) = &part {
            work(effort::of_unit(part, self.functions));
        }
        part.is_some()
    }
}

/// Adds a unit to the sums of this place, yielding in between.
async fn add_unit(states: &PlaceLocal<BuildState>, unit: u64) {
    let mut active_unit = states.lock().begin_unit(unit);
    while states.lock().advance_unit(&mut active_unit) {
        isles::yield_now().await; // requests for units, and the news of a death, have waited
    }
}

/// Kernel that adds a unit to the sums of the place that has stolen it; a part of it has the quartets between two
/// yields.
#[derive(Clone, Serialize, Deserialize)]
struct BuildKernel {
    states: PlaceLocal<BuildState>,
}

impl UnitKernel for BuildKernel {
    fn compute(&self, unit: u64, is_begun: bool) -> bool {
        let mut state = self.states.lock();
        let active_unit = state.stolen.take().filter(|_| is_begun);
        let mut active_unit = active_unit.unwrap_or_else(|| state.begin_unit(unit));
        let goes_on = state.advance_unit(&mut active_unit);
        state.stolen = goes_on.then_some(active_unit);
        !goes_on
    }
}

/// The places, with the functions of a molecule.
pub(super) struct SharedBuild {
    states: PlaceLocal<BuildState>,
    units: WorkUnits,
    size: usize,
    /// Balance of all builds, if units are stolen.
    balance: Option<RunBalance>,
}

impl SharedBuild {
    /// Distributes the functions to all places.
    pub(super) async fn new(
        functions: &Functions,
        distributor: &WorkDistributor,
        balance: Balance,
    ) -> isles::Result<SharedBuild> {
        let states = PlaceLocal::with(functions.clone(), BuildState::new).await?;
        let units = distributor.units(units(functions.shells.len()), balance).await?;
        let size = one_electron::functions(&functions.shells);
        Ok(SharedBuild { states, units, size, balance: None })
    }

    /// Returns the two-electron part of the Fock matrix for a density, built by all places. The first place calls it,
    /// in a separate step of a phase.
    pub(super) async fn of(&mut self, density: &Matrix) -> isles::Result<Matrix> {
        let units = self.units.restarted();
        let states = &self.states;
        states.lock().density = fock::packed(density);
        if units.are_stolen() {
            finish(async { everywhere!(begin(states).await?).await }).await?;
            let balance = units.balance(BuildKernel { states: states.clone() }).await?;
            self.balance.get_or_insert_default().add(balance);
            finish(async { everywhere!(end(states).await?).await }).await?;
        } else {
            finish(async {
                for place in places() {
                    spawn_at!(place, take_part(states, units.here()).await?);
                }
            })
            .await?;
        }
        Ok(fock::matrix(self.size, &states.lock().sums))
    }

    /// Returns the work of the places in all builds since `started`, a time of [`now`].
    pub(super) async fn done(&self, started: Duration) -> isles::Result<WorkDone> {
        Ok(WorkDone { balance: self.balance.clone(), ..self.units.done(started).await? })
    }
}

/// Runs the part of this place in a build.
async fn take_part(states: &PlaceLocal<BuildState>, mut units: UnitQueue<'_>) -> isles::Result<()> {
    begin(states).await?;
    while let Some(unit) = units.take().await? {
        add_unit(states, unit).await;
    }
    drop(units);
    end(states).await
}

/// Receives the density from the first place.
async fn begin(states: &PlaceLocal<BuildState>) -> isles::Result<()> {
    let mut density = std::mem::take(&mut states.lock().density);
    Team::world().broadcast_slice(0, &mut density).await?;
    let mut state = states.lock();
    state.builder.begin(&density);
    state.density = density;
    work(effort::of_matrix(state.functions));
    Ok(())
}

/// Adds the sums of this place to those of the others, at the first place.
async fn end(states: &PlaceLocal<BuildState>) -> isles::Result<()> {
    let mut sums = states.lock().builder.sums();
    work(effort::of_matrix(states.lock().functions));
    Team::world().reduce_slice(0, &mut sums, i64::wrapping_add).await?;
    states.lock().sums = sums;
    Ok(())
}
