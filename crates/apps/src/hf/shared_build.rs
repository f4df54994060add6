//! One Fock build over all places: the density to each, units to each, the sums to the first.
//!
//! Every place has the functions and a density of its own. The density goes out by a broadcast, the sums come back by
//! a reduction of whole numbers; between them places need each other only to take the next unit from a counter.
//! Invariant: the sums are the same whatever the number of places, the balance and the machine.

use super::fock::{FockBuilder, Functions, UnitUnderWay, WorkUnit, units};
use super::integrals::one_electron;
use super::matrix::Matrix;
use super::{effort, fock};
use crate::console::Progress;
use clap::ValueEnum;
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

/// Quartets of shells that a place computes before it lets others have a turn. On the SCC they take a fifth of a
/// millisecond; with 8, requests to the counter wait so long that 48 cores take a quarter more than without a counter.
const QUARTETS_PER_TURN: usize = 3;

/// How the units are assigned to the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitBalance {
    /// Of n places, place p takes the units p, p + n, p + 2 n and so on.
    Static,
    /// Every place takes the next unit from a counter that all share.
    Dynamic,
}

/// What one place did in all builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct BuildShare {
    /// Units that it took.
    pub(super) units: u64,
    /// Quartets of shells whose integrals it computed.
    pub(super) quartets: u64,
    /// Seconds of this host that they took, waiting for a processor included.
    pub(super) seconds: f64,
}

/// What a place keeps between builds.
pub(super) struct BuildState {
    builder: FockBuilder,
    functions: usize,
    /// At the first place, the density of the next build and the sums of the last, up to the diagonal.
    density: Vec<f64>,
    sums: Vec<i64>,
    share: BuildShare,
}

impl BuildState {
    /// Prepares the pairs of shells.
    fn new(functions: Functions) -> BuildState {
        let size = one_electron::functions(&functions.shells);
        let builder = FockBuilder::new(&functions);
        work(effort::of_integrals(&builder.preparation()));
        BuildState {
            builder,
            functions: size,
            density: vec![0.0; size * (size + 1) / 2],
            sums: Vec::new(),
            share: BuildShare::default(),
        }
    }

    /// Adds the next quartets of a unit to the sums of this place; false if it is over.
    fn go_on(&mut self, unit: &mut UnitUnderWay) -> bool {
        let started = Instant::now();
        let part = self.builder.go_on(unit, QUARTETS_PER_TURN);
        if let Some(part) = &part {
            work(effort::of_unit(part, self.functions));
            self.share.quartets += part.quartets;
            self.share.seconds += started.elapsed().as_secs_f64();
        }
        part.is_some()
    }
}

/// Adds a unit to the sums of this place, with turns for others in between.
async fn add_unit(states: &PlaceLocal<BuildState>, unit: u64) {
    let mut under_way = {
        let mut state = states.lock();
        state.share.units += 1;
        let unit = WorkUnit::new(unit, state.builder.shells());
        state.builder.begin_unit(unit)
    };
    while states.lock().go_on(&mut under_way) {
        isles::yield_now().await; // requests for units, and the news of a death, have waited
    }
}

/// The places with the functions of a molecule.
pub(super) struct SharedBuild {
    states: PlaceLocal<BuildState>,
    balance: UnitBalance,
    size: usize,
}

impl SharedBuild {
    /// Gives every place the functions.
    pub(super) async fn new(functions: &Functions, balance: UnitBalance) -> isles::Result<SharedBuild> {
        let states = PlaceLocal::with(functions.clone(), BuildState::new).await?;
        Ok(SharedBuild { states, balance, size: one_electron::functions(&functions.shells) })
    }

    /// The two-electron part of the Fock matrix for a density, built by all places; called at the first.
    pub(super) async fn of(&self, density: &Matrix) -> isles::Result<Matrix> {
        let SharedBuild { states, balance, size } = self;
        let (balance, next) = (*balance, Counter::new());
        states.lock().density = fock::packed(density);
        finish(async {
            for place in places() {
                spawn_at!(place, take_part(states, balance, next).await?);
            }
        })
        .await?;
        Ok(fock::matrix(*size, &states.lock().sums))
    }

    /// What each place did, in order of the places.
    pub(super) async fn shares(&self) -> isles::Result<Vec<BuildShare>> {
        let states = &self.states;
        let mut shares = Vec::new();
        for place in places() {
            shares.push(at!(place, states.lock().share).await?);
        }
        Ok(shares)
    }
}

/// The part of this place in a build.
async fn take_part(
    states: &PlaceLocal<BuildState>,
    balance: UnitBalance,
    next: Counter,
) -> isles::Result<()> {
    let team = Team::world();
    let mut density = std::mem::take(&mut states.lock().density);
    team.broadcast_slice(0, &mut density).await?;
    let all = {
        let mut state = states.lock();
        state.builder.begin(&density);
        state.density = density;
        work(effort::of_matrix(state.functions));
        units(state.builder.shells())
    };
    let mut progress = (here().index() == 0).then(|| Progress::new(all, "units"));
    let mut queue = UnitQueue::new(balance, next, all);
    let mut coming = queue.take().await?;
    while let Some(unit) = coming {
        // What a dead place had added is lost, and its loss is the error of the whole: the others need not go on.
        if places().any(Place::is_dead) {
            break;
        }
        coming = queue.take_during(add_unit(states, unit)).await?;
        if let Some(progress) = progress.as_mut().filter(|progress| progress.is_due()) {
            progress.tell(unit + 1); // units are assigned in order, so about as many are done
        }
    }
    drop(progress);
    let mut sums = states.lock().builder.sums();
    work(effort::of_matrix(states.lock().functions));
    team.reduce_slice(0, &mut sums, i64::wrapping_add).await?;
    states.lock().sums = sums;
    Ok(())
}

/// The units of one place, one after the other.
struct UnitQueue {
    balance: UnitBalance,
    next: Counter,
    own: u64,
    all: u64,
}

impl UnitQueue {
    fn new(balance: UnitBalance, next: Counter, all: u64) -> UnitQueue {
        UnitQueue { balance, next, own: here().index() as u64, all }
    }

    /// The next unit.
    async fn take(&mut self) -> isles::Result<Option<u64>> {
        if self.balance == UnitBalance::Dynamic {
            return self.next.take_below(self.all).await;
        }
        let unit = self.own;
        self.own += place_count() as u64;
        Ok((unit < self.all).then_some(unit))
    }

    /// The next unit, which is asked for before `compute` begins, so that the way to the counter and back is no loss.
    async fn take_during(&mut self, compute: impl Future<Output = ()>) -> isles::Result<Option<u64>> {
        let mut taking = pin!(self.take());
        let begun = poll_fn(|context| Poll::Ready(taking.as_mut().poll(context))).await;
        compute.await;
        match begun {
            Poll::Ready(unit) => unit,
            Poll::Pending => taking.await,
        }
    }
}
