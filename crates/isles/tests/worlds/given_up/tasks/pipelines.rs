//! Pipelines whose sends, receives and changes are cancelled, and which are cancelled themselves.

use super::super::{attempt, run_worlds};
use isles::pipeline::{self, Options, Partition, Pipeline, RunningPipeline, StageCosts, Stages};
use isles::prelude::*;
use isles::{Random, Result};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Stages of [`Chain`].
const STAGES: usize = 4;

/// Stages with and without a state, one of which waits. A result is the item and the number of items so far.
#[derive(Clone, Serialize, Deserialize)]
struct Chain;

impl Pipeline for Chain {
    type Input = u64;
    type Output = (u64, u64);

    fn stages(&self) -> Stages<u64, (u64, u64)> {
        let count = |count: &mut u64, value: u64| {
            *count += 1;
            (value, *count)
        };
        let wait = async |value: u64| {
            isles::yield_now().await;
            value
        };
        let stages = Stages::new().map("twice", |value: u64| 2 * value).map_async("wait", wait).replicated(2);
        stages.stateful("count", 0, count).map("half", |(value, count)| (value / 2, count))
    }
}

/// Items by the outcome of their sends.
#[derive(Default)]
struct Sendings {
    sent: BTreeSet<u64>,
    given_up: BTreeSet<u64>,
}

/// Changes the groups in a random way; `usable` is the number of places that the pipeline may use.
async fn change(random: &mut Random, usable: &mut usize, flow: &RunningPipeline<Chain>) -> Result<()> {
    const NAMES: [&str; 5] = [
        "isles/pipeline/flow resize",
        "isles/pipeline/flow resize_to",
        "isles/pipeline/flow move_to",
        "isles/pipeline/flow measured_costs",
        "isles/pipeline/flow rebalance",
    ];
    let kind = random.below(NAMES.len() as u64) as usize;
    let cores = 1 + random.below((*usable).min(STAGES) as u64) as usize;
    let partition = Partition::optimal(&StageCosts::new(vec![1; STAGES]), cores);
    let chosen: Vec<Place> = places().take(1 + random.below(place_count() as u64) as usize).collect();
    let moved = chosen.len();
    match kind {
        0 => attempt(NAMES[kind], random, flow.resize(cores)).await?,
        1 => attempt(NAMES[kind], random, flow.resize_to(partition)).await?,
        2 => {
            let done = attempt(NAMES[kind], random, flow.move_to(chosen)).await?;
            *usable = if done.is_some() { moved } else { *usable };
            done
        }
        3 => attempt(NAMES[kind], random, flow.measured_costs()).await?.map(drop),
        _ => attempt(NAMES[kind], random, flow.rebalance()).await?,
    };
    Ok(())
}

async fn feed(seed: u64, flow: RunningPipeline<Chain>, sendings: Rc<RefCell<Sendings>>) -> Result<()> {
    let mut random = Random::stream(seed, 1);
    let mut usable = place_count();
    for item in 0..random.below(30) {
        if random.below(3) == 0 {
            change(&mut random, &mut usable, &flow).await?;
        }
        let is_sent = attempt("isles/pipeline/flow send", &mut random, flow.send(item)).await?.is_some();
        let mut sendings = sendings.borrow_mut();
        if is_sent {
            sendings.sent.insert(item)
        } else {
            sendings.given_up.insert(item)
        };
    }
    flow.close();
    Ok(())
}

/// Sends items and receives their results; checks that the results of all sent items arrive, in order.
async fn pass_items(seed: u64, flow: RunningPipeline<Chain>) -> Result<()> {
    let sendings = Rc::new(RefCell::new(Sendings::default()));
    let (sender, noted) = (flow.clone(), Rc::clone(&sendings));
    let mut random = Random::stream(seed, 2);
    let mut received: Vec<(u64, u64)> = Vec::new();
    finish(async {
        spawn(async move { feed(seed, sender, noted).await });
        loop {
            match attempt("isles/pipeline/flow recv", &mut random, flow.recv()).await? {
                Some(Some(result)) => received.push(result),
                Some(None) => return Ok::<_, isles::Error>(()),
                None => {}
            }
        }
    })
    .await?;
    let counts: Vec<u64> = received.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, (1..=received.len() as u64).collect::<Vec<_>>(), "items the state has not seen");
    assert!(received.is_sorted(), "in another order: {received:?}");
    let received: BTreeSet<u64> = received.into_iter().map(|(item, _)| item).collect();
    let Sendings { sent, given_up } = &*sendings.borrow();
    assert!(sent.is_subset(&received), "lost: {:?}", sent.difference(&received).collect::<Vec<_>>());
    assert!(received.iter().all(|item| sent.contains(item) || given_up.contains(item)), "invented");
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 0);
    let options = || Options { queue: 1 + seed as usize % 3, ..Options::default() };
    let whole = pipeline::run(Chain, options(), async |flow| pass_items(seed, flow).await);
    attempt("isles/pipeline/mod run", &mut random, whole).await?;
    pipeline::run(Chain, options(), async |flow| pass_items(seed, flow).await).await?;
    let mut results = 0;
    let whole = pipeline::process(Chain, options(), 0..40, |_| ());
    attempt("isles/pipeline/mod process", &mut random, whole).await?;
    pipeline::process(Chain, options(), 0..40, |_| results += 1).await?;
    assert_eq!(results, 40);
    Ok(())
}

#[test]
fn a_pipeline_whose_operations_are_given_up_loses_and_doubles_nothing() {
    run_worlds("pipelines", program);
}
