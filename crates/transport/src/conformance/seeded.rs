//! Runs promises on the loopback, each for many seeds.
//!
//! A place runs only when it is busy or when its wait would end, so a lost wake-up stalls the world, and a stalled
//! world fails immediately. There is no clock here.

use super::{Fixture, Promise, Script, Step};
use crate::loopback::{LoopbackEndpoint, Plan, World};
use crate::{Arrival, Endpoint, Inbound, PlaceId, notice};
use std::ops::Range;

/// Turns in a row without a busy one after which a run counts as stalled.
const QUIET_TURNS_MAX: u32 = 20_000;

/// Number of final checks for unexpected messages.
const LAST_LOOKS: u32 = 3;

/// Promises on simulated worlds.
#[derive(Clone)]
pub struct Seeded {
    /// The world of a seed.
    pub plan: fn(u64) -> Plan,
    /// Seeds to run.
    pub seeds: Range<u64>,
    /// Number of places of the world for one place of a run: place `p` of `n` has `p`, `n + p`, and so on.
    pub ends: u32,
    /// Creates the endpoint of a place as the scripts see it: the only one, or one that wraps several.
    pub attach: fn(Vec<LoopbackEndpoint>, u32) -> Box<dyn Endpoint>,
}

impl Seeded {
    /// Returns the fixture of the world's plain endpoints.
    pub fn plain(plan: fn(u64) -> Plan, seeds: Range<u64>) -> Seeded {
        fn only(mut endpoints: Vec<LoopbackEndpoint>, _places: u32) -> Box<dyn Endpoint> {
            Box::new(endpoints.remove(0))
        }
        Seeded { plan, seeds, ends: 1, attach: only }
    }
}

/// The world of a run, in which several places may form one.
struct HostedWorld {
    world: World,
    places: u32,
    ends: u32,
}

impl HostedWorld {
    /// Returns the places of the world that form `place`.
    fn ends_of(&self, place: PlaceId) -> impl Iterator<Item = PlaceId> {
        let places = self.places;
        (0..self.ends).map(move |end| PlaceId(end * places + place.0))
    }

    fn wakes(&self, place: PlaceId) -> bool {
        self.ends_of(place).any(|end| self.world.wakes(end))
    }

    fn choose(&self, runnable: &[PlaceId]) -> Option<PlaceId> {
        let chosen = self.world.choose(runnable)?;
        for other in self.ends_of(chosen).skip(1).filter(|other| self.world.is_alive(*other)) {
            self.world.choose(&[other]);
        }
        Some(chosen)
    }

    fn kill(&self, place: PlaceId) {
        self.ends_of(place).for_each(|end| self.world.kill(end));
    }
}

/// One place of a run.
struct ScriptRunner {
    here: PlaceId,
    endpoint: Box<dyn Endpoint>,
    script: Box<dyn Script>,
    last: Step,
}

/// Prints the failed seed.
struct Failing(u64);

impl Drop for Failing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            notice(format_args!("seed {} fails", self.0));
        }
    }
}

impl Fixture for Seeded {
    fn keep(&self, promise: &Promise) {
        for seed in self.seeds.clone() {
            let _failing = Failing(seed);
            let (places, ends) = (promise.places, self.ends);
            let joined = HostedWorld { world: World::new(places * ends, (self.plan)(seed)), places, ends };
            let runner = |here| ScriptRunner {
                here,
                endpoint: (self.attach)(
                    joined.ends_of(here).map(|end| joined.world.endpoint(end)).collect(),
                    places,
                ),
                script: (promise.script)(here),
                last: Step::Busy,
            };
            let mut runners: Vec<ScriptRunner> = (0..promise.places).map(PlaceId).map(runner).collect();
            play(&joined, &mut runners);
            look_for_more(&joined.world, &runners);
            drop(runners);
            assert_eq!(joined.world.live_blocks(), 0, "a block is not given back");
        }
    }
}

fn play(world: &HostedWorld, runners: &mut [ScriptRunner]) {
    let mut quiet_turns = 0;
    while runners.iter().any(|runner| matches!(runner.last, Step::Busy | Step::Idle)) {
        let ready = |runner: &&ScriptRunner| match runner.last {
            Step::Busy => true,
            Step::Idle => world.wakes(runner.here),
            Step::Done | Step::Die | Step::Leave => false,
        };
        let runnable: Vec<PlaceId> = runners.iter().filter(ready).map(|runner| runner.here).collect();
        let Some(chosen) = world.choose(&runnable) else {
            assert!(world.world.advance(), "stalled: all wait and nothing is under way");
            continue;
        };
        let runner = &mut runners[chosen.index()];
        runner.last = runner.script.step(&*runner.endpoint);
        quiet_turns = if runner.last == Step::Idle { quiet_turns + 1 } else { 0 };
        assert!(quiet_turns < QUIET_TURNS_MAX, "stalled: places wake and find nothing to do");
        if runner.last == Step::Leave {
            runner.endpoint.leave();
        }
        if matches!(runner.last, Step::Die | Step::Leave) {
            world.kill(chosen);
        }
    }
}

/// Checks that nothing more arrives once all scripts are done.
fn look_for_more(world: &World, runners: &[ScriptRunner]) {
    for look in 0.. {
        let living = runners.iter().filter(|runner| world.is_alive(runner.here));
        living.for_each(|runner| expect_nothing(&*runner.endpoint));
        if !world.advance() && look >= LAST_LOOKS && world.in_flight() == 0 {
            return;
        }
    }
}

/// Panics if something arrives.
fn expect_nothing(endpoint: &dyn Endpoint) {
    endpoint.progress(Inbound::All, &mut |arrival| match arrival {
        Arrival::Message(message) => panic!("one message too many from {}", message.source),
        Arrival::Died { place, .. } => panic!("{place} was told dead once too often"),
    });
}
