//! Runs in seeded worlds: each task runs once, under any order and delay; deaths.

use super::*;
use crate::{Plan, PlannedDeath, simulate};
use isles_protocol::PlaceId;
use serde::Deserialize;
use std::cell::Cell;
use std::rc::Rc;

/// Tasks of a binary tree with uneven children: a task of `size` n is a node with n - 1 nodes below it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Trees {
    sizes: Vec<u64>,
    nodes: u64,
}

impl Trees {
    fn of(size: u64) -> Trees {
        Trees { sizes: vec![size], nodes: 0 }
    }
}

impl Bag for Trees {
    type Result = u64;

    fn process(&mut self, count: usize) -> usize {
        for processed in 0..count {
            let Some(size) = self.sizes.pop() else { return processed };
            self.nodes += 1;
            let below = size - 1;
            let first = below / 3;
            self.sizes.extend([first, below - first].into_iter().filter(|size| *size > 0));
        }
        count
    }

    fn split(&mut self) -> Option<Trees> {
        let given = self.sizes.len() / 2;
        (given > 0).then(|| Trees { sizes: self.sizes.drain(..given).collect(), nodes: 0 })
    }

    fn merge(&mut self, other: Trees) {
        self.nodes += other.nodes;
        self.sizes.extend(other.sizes);
    }

    fn result(self) -> u64 {
        assert_eq!(self.sizes, [], "tasks are left");
        self.nodes
    }
}

fn parameters(seed: u64) -> Parameters {
    let batch = Some(1 + (seed % 13) as u32);
    Parameters {
        batch,
        random_steals: (seed % 4) as u32,
        lifeline_base: 2 + (seed % 3) as u32,
        seed,
        ..Parameters::default()
    }
}

#[test]
fn each_task_is_processed_once_in_worlds_of_any_order_and_delay() {
    for places in [1, 2, 3, 5, 9, 17] {
        for seed in 0..30 {
            let (result, ..) = simulate(places, Plan::adversarial(seed), move || async move {
                let Balanced { result, balance } = run_with(parameters(seed), Trees::of(1000)).await?;
                assert_eq!((result, balance.tasks()), (1000, 1000));
                assert_eq!(balance.places.len(), places as usize);
                Ok::<_, Error>(())
            });
            result.unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
        }
    }
}

#[test]
fn every_place_gets_tasks_of_a_large_bag() {
    let (result, ..) = simulate(17, Plan::calm(1), || async {
        let parameters = Parameters { batch: Some(4), ..Parameters::default() };
        let Balanced { balance, .. } = run_with(parameters, Trees::of(100_000)).await?;
        let least = balance.places.iter().flatten().map(|place| place.tasks).min();
        assert!(least.is_some_and(|least| least > 1000), "{balance}");
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
fn parameters_that_are_not_allowed_are_an_error_and_no_run() {
    let (result, ..) = simulate(2, Plan::calm(1), || async {
        let parameters = Parameters { lifelines: Some(0), ..Parameters::default() };
        run_with(parameters, Trees::of(10)).await.map(|_| ())
    });
    let error = result.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Misused);
    assert!(error.to_string().contains("lifelines is 0; allowed: 1 to 1024 for 2 places"), "{error}");
}

/// Returns the id of a place, which only code at a place can get.
fn id_of(number: usize) -> PlaceId {
    let id = Rc::new(Cell::new(None));
    let slot = Rc::clone(&id);
    let say = move || async move { slot.set(Place::new(number).map(Place::id)) };
    simulate(number as u32 + 1, Plan::calm(0), say).0.expect("it only says it");
    id.get().expect("the last place")
}

/// Returns the number of seeds: `ISLES_TEST_SEEDS`, or a number that a debug build runs in seconds.
fn seeds() -> u64 {
    std::env::var("ISLES_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40)
}

/// An adverse world in which no place stops, so that a run has begun everywhere when the first place dies.
fn with_losses(losses: Vec<PlannedDeath>, seed: u64) -> Plan {
    Plan { losses, stops: Vec::new(), ..Plan::adversarial(seed) }
}

/// Runs a resilient computation in which places die, and returns its end.
fn end_with_deaths(places: u32, seed: u64, losses: Vec<PlannedDeath>) -> Result<Balanced<u64>> {
    let parameters = Parameters { resilient: true, ..parameters(seed) };
    let found = Rc::new(Cell::new(None));
    let slot = Rc::clone(&found);
    let (result, ..) = simulate(places, with_losses(losses, seed), move || async move {
        slot.set(Some(run_with(parameters, Trees::of(600)).await));
    });
    found.take().unwrap_or_else(|| panic!("{places} places, seed {seed}: {result:?}"))
}

/// A bag that discards its tasks once a place is dead, because their result is not used.
#[derive(Clone, Serialize, Deserialize)]
struct GivingUp(Trees);

impl Bag for GivingUp {
    type Result = u64;

    fn process(&mut self, count: usize) -> usize {
        if places().any(Place::is_dead) {
            self.0.sizes.clear();
        }
        self.0.process(count)
    }

    fn split(&mut self) -> Option<GivingUp> {
        self.0.split().map(GivingUp)
    }

    fn merge(&mut self, other: GivingUp) {
        self.0.merge(other.0);
    }

    fn result(self) -> u64 {
        self.0.result()
    }
}

#[test]
fn a_bag_that_gives_up_when_a_place_dies_breaks_no_promise() {
    let (place, mut died) = (id_of(2), 0);
    for seed in 0..400 {
        let losses = vec![PlannedDeath { place, step: 50 + 2 * seed % 700 }];
        let (result, ..) = simulate(5, with_losses(losses, seed), move || async move {
            run_with(parameters(seed), GivingUp(Trees::of(1000))).await.map(|_| ())
        });
        let Err(error) = result else { continue };
        assert_eq!(*error.kind(), ErrorKind::DeadPlace(place), "seed {seed}: {error}");
        died += 1;
    }
    assert!(died > 200, "only {died} runs were longer than their place lived");
}

/// Step from which a run has certainly begun; all places must be alive until then.
const BEGUN: u64 = 800;

#[test]
fn a_resilient_run_is_exact_whenever_a_place_dies() {
    let mut died = 0;
    for seed in 0..seeds() {
        for places in [2, 3, 5, 8] {
            let place = id_of(1 + seed as usize % (places as usize - 1));
            let death = PlannedDeath { place, step: BEGUN + seed * 97 % 4000 };
            let Balanced { result, balance } = end_with_deaths(places, seed, vec![death])
                .unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
            assert_eq!(result, 600, "{places} places, seed {seed}: {balance}");
            died += balance.recovered;
        }
    }
    assert!(died > seeds(), "only {died} runs were longer than their place lived");
}

#[test]
fn several_deaths_end_with_the_exact_result_or_an_error() {
    let (mut exact, mut lost) = (0, 0);
    for seed in 0..seeds() {
        for places in [4, 7] {
            let death = |number, step| PlannedDeath { place: id_of(number), step };
            let first = BEGUN + seed * 41 % 1000;
            let deaths = vec![
                death(1 + seed as usize % 3, first),
                death(3 - seed as usize % 2, first + seed * 29 % 700),
            ];
            match end_with_deaths(places, seed, deaths) {
                Ok(Balanced { result, balance }) => {
                    assert_eq!(result, 600, "{places} places, seed {seed}: {balance}");
                    exact += u64::from(balance.recovered > 1);
                }
                Err(error) => {
                    assert!(is_death(&error), "{places} places, seed {seed}: {error}");
                    lost += 1;
                }
            }
        }
    }
    assert!(exact > 0 && lost > 0, "{exact} runs were exact after two deaths, {lost} lost");
    println!("{exact} exact after two deaths, {lost} lost");
}

#[test]
fn a_death_ends_a_run_that_is_not_resilient_with_what_is_lost() {
    let (place, mut died) = (id_of(2), 0);
    for seed in 0..20 {
        let losses = vec![PlannedDeath { place, step: BEGUN + 31 * seed }];
        let (result, ..) = simulate(4, with_losses(losses, seed), move || async move {
            run_with(parameters(seed), Trees::of(2000)).await.map(|_| ())
        });
        let Err(error) = result else { continue };
        died += 1;
        assert_eq!(*error.kind(), ErrorKind::DeadPlace(place), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("3 other places had processed")
                && text.contains("its bag and the results of its processed tasks are lost"),
            "{text}"
        );
    }
    assert!(died > 10, "only {died} runs were longer than their place lived");
}
