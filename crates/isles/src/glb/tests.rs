//! Runs in seeded worlds: each task once, whatever the order and the delays; deaths; and the pure machine against a
//! model without places.

use super::*;
use crate::{Plan, simulate};
use serde::Deserialize;

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
