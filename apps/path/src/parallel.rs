//! The search over all places: the first one is the master, the others compute dives.
//!
//! For each edge the master sends one dive profile to each worker and receives the arrivals, round by round until all
//! profiles are done. With one place it computes the dives itself. A waiting worker blocks, or, until its first dive,
//! polls an asynchronous receive between sleeps. Polling delays its first dive, or its end if it had none, but a
//! sleeping core draws little power. Invariant: the search examines the same edges in the same order with any number
//! of workers.

use crate::case::Mission;
use crate::glide::{Dive, DiveResult, glide, work_of};
use crate::search::{Edge, RouteSearch, best};
use clap::ValueEnum;
use isles::prelude::*;
use isles::{Work, clocks};
use isles_app::frame::RunMeter;
use serde::{Deserialize, Serialize};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

/// The way in which a worker waits before its first dive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// It blocks in a receive
    Block,
    /// It polls for a message between sleeps
    Sleep,
}

/// The way in which idle workers wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleWait {
    pub idle: Idle,
    /// The length of a sleep.
    pub nap: Duration,
}

/// A message to a worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum WorkerOrder {
    Dive(Dive),
    End,
}

/// The result of a search over all places.
pub struct Searched<'p> {
    pub search: RouteSearch<'p>,
    /// Number of dives, and of their evaluations of the current.
    pub dives: u64,
    pub evaluations: u64,
}

/// Cost of the search per edge on a modelled core: its heap, and the check for land.
const SEARCH_OF_EDGE: Work = Work::new().integers(400).floats(60).branches(60);

/// Plans on one processor, without places; passes the cost to `charge`.
pub fn sequential(plan: &Mission, mut charge: impl FnMut(Work)) -> Searched<'_> {
    let mut found = Searched::begin(plan);
    while let Some(edge) = found.search.next_edge() {
        let glided = (0..plan.resolution.profiles).map(|profile| {
            let glided = glide(&plan.sea, &plan.resolution, dive(edge, profile));
            charge(work_of(&plan.sea, u64::from(glided.evaluations)));
            glided
        });
        found.add(edge, glided.collect());
        charge(SEARCH_OF_EDGE);
    }
    found
}

/// Plans over all places, led by the first one.
///
/// # Errors
/// A place has died.
pub async fn plan_route<'p>(
    plan: &'p Mission,
    shared: &Replicated<Mission>,
    waiting: IdleWait,
    meter: &RunMeter,
) -> isles::Result<Searched<'p>> {
    if isles::place_count() == 1 {
        let started = Instant::now();
        let found = sequential(plan, work);
        meter.add_done(started);
        return Ok(found);
    }
    finish(async {
        for place in places().skip(1) {
            spawn_at!(place, serve(shared, waiting, meter).await?);
        }
        lead(plan, meter).await
    })
    .await
}

/// Runs the master: requests the arrivals of all edges from the workers, then ends them.
async fn lead<'p>(plan: &'p Mission, meter: &RunMeter) -> isles::Result<Searched<'p>> {
    let team = Team::world();
    let workers = team.size() - 1;
    let mut found = Searched::begin(plan);
    while let Some(edge) = found.search.next_edge() {
        let started = Instant::now();
        let profiles: Vec<u32> = (0..plan.resolution.profiles).collect();
        let mut glided = Vec::with_capacity(profiles.len());
        for round in profiles.chunks(workers) {
            for (worker, profile) in (1..).zip(round) {
                team.send(worker, &WorkerOrder::Dive(dive(edge, *profile))).await?;
            }
            for (worker, _) in (1..).zip(round) {
                glided.push(team.recv::<DiveResult>(worker).await?);
            }
        }
        found.add(edge, glided);
        work(SEARCH_OF_EDGE);
        meter.add_done(started);
    }
    for worker in 1..=workers {
        team.send(worker, &WorkerOrder::End).await?;
    }
    Ok(found)
}

/// Runs a worker: computes dives until the master ends it.
async fn serve(plan: &Mission, waiting: IdleWait, meter: &RunMeter) -> isles::Result<()> {
    let team = Team::world();
    let mut order = match waiting.idle {
        Idle::Block => team.recv(0).await?,
        Idle::Sleep => poll_between_sleeps(pin!(team.recv(0)), waiting.nap).await?,
    };
    while let WorkerOrder::Dive(dive) = order {
        let started = Instant::now();
        let glided = glide(&plan.sea, &plan.resolution, dive);
        work(work_of(&plan.sea, u64::from(glided.evaluations)));
        team.send(0, &glided).await?;
        meter.add_done(started);
        order = team.recv(0).await?;
    }
    Ok(())
}

/// Awaits `receive` by polling it between sleeps of `nap`.
async fn poll_between_sleeps<T>(mut receive: Pin<&mut impl Future<Output = T>>, nap: Duration) -> T {
    loop {
        let looked = std::future::poll_fn(|context| {
            Poll::Ready(match receive.as_mut().poll(context) {
                Poll::Ready(received) => Some(received),
                Poll::Pending => None,
            })
        });
        if let Some(received) = looked.await {
            return received;
        }
        if clocks::halt(nap) {
            isles::yield_now().await; // messages are taken in between two halts
        } else {
            isles::sleep(nap).await;
        }
    }
}

impl<'p> Searched<'p> {
    fn begin(plan: &'p Mission) -> Searched<'p> {
        Searched { search: RouteSearch::new(&plan.sea, plan.start, plan.goal), dives: 0, evaluations: 0 }
    }

    /// Records the results of the dives along an edge, in order of the profiles.
    fn add(&mut self, edge: Edge, glided: Vec<DiveResult>) {
        self.dives += glided.len() as u64;
        self.evaluations += glided.iter().map(|glided| u64::from(glided.evaluations)).sum::<u64>();
        let (arrival, profile) = best(glided.into_iter().map(|glided| glided.arrival));
        self.search.record_arrival(edge, arrival, profile);
    }
}

fn dive(Edge { from, to, departure }: Edge, profile: u32) -> Dive {
    Dive { from, to, departure, profile }
}
