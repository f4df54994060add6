//! Pipelines in seeded worlds: each result once and in order under any resizes; deaths; errors.

mod replicas;

use super::*;
use crate::prelude::*;
use crate::{Plan, PlannedDeath, simulate};
use isles_protocol::PlaceId;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Eighteen stages: every third has a state, two are in branches, one waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Mixed {
    /// Bytes of the large state of one stage.
    ballast: usize,
    has_states: bool,
    fails_at: Option<u64>,
    /// The most replicas of each stage without state.
    replicas: usize,
}

const PLAIN: Mixed = Mixed { ballast: 0, has_states: true, fails_at: None, replicas: 1 };
const REPLICATED: Mixed = Mixed { replicas: 3, ..PLAIN };

/// Returns a hash of a state and a value, which depends on their order.
fn mixed(state: u64, value: u64) -> u64 {
    (state ^ value.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn stateful(state: &mut (u64, Vec<u8>), value: u64) -> u64 {
    state.0 = mixed(state.0, value);
    if let Some(byte) = state.1.first_mut() {
        *byte = byte.wrapping_add(value as u8);
        return state.0 ^ u64::from(*byte);
    }
    state.0
}

impl Pipeline for Mixed {
    type Input = u64;
    type Output = u64;

    fn stages(&self) -> Stages<u64, u64> {
        let (fails_at, replicas) = (self.fails_at, self.replicas);
        let mut stages = Stages::new()
            .try_map("fallible", move |value| match fails_at {
                Some(at) if at == value => Err(Error::message("no")),
                _ => Ok(mixed(1, value)),
            })
            .replicated(replicas)
            .branch("branch", |value| (value, value.to_string()), branch_of_numbers, branch_of_texts)
            .join("join", mixed)
            .map_async("waiting", async |value| {
                crate::yield_now().await;
                value + 1
            })
            .replicated(replicas);
        for round in 0..6 {
            stages = stages.map("odd", move |value| mixed(round, value)).replicated(replicas);
            stages = match self.has_states {
                true => stages.stateful("memory", (round, vec![0; self.ballast]), stateful),
                false => stages.map("no memory", |value| value + 1).replicated(replicas),
            };
        }
        stages
    }
}

fn branch_of_numbers<In: CanSend>(stages: Stages<In, u64>) -> Stages<In, u64> {
    stages.map("number", |value| value.rotate_left(3))
}

fn branch_of_texts<In: CanSend>(stages: Stages<In, String>) -> Stages<In, u64> {
    stages.map("text", |text| text.len() as u64)
}

/// Returns the results of the pipeline, computed in a plain loop.
fn expected(pipeline: &Mixed, items: u64) -> Vec<u64> {
    let mut states: Vec<_> = (0..6).map(|round| (round, vec![0; pipeline.ballast])).collect();
    let mut results = Vec::new();
    for item in 0..items {
        let value = mixed(1, item);
        let mut value = mixed(value.rotate_left(3), value.to_string().len() as u64) + 1;
        for (round, state) in (0..).zip(&mut states) {
            value = mixed(round, value);
            value = if pipeline.has_states { stateful(state, value) } else { value + 1 };
        }
        results.push(value);
    }
    results
}

/// Returns the next number of a small generator, so that a seed determines the resizes.
fn draw(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

/// Resizes to `cores`, which may exceed the living places.
async fn try_resize(flow: &RunningPipeline<Mixed>, cores: usize) -> Result<()> {
    match flow.resize(cores).await {
        Err(error) if *error.kind() == ErrorKind::Misused && places().any(Place::is_dead) => Ok(()),
        resized => resized,
    }
}

/// Sends `items` through and resizes before one in `apart`, from the sending or the receiving task.
async fn resized(
    pipeline: Mixed,
    options: Options,
    items: u64,
    apart: usize,
    seed: u64,
) -> Result<PipelineReport> {
    let all = place_count().min(18 + 8 * (pipeline.replicas - 1));
    let results = Rc::new(RefCell::new(Vec::new()));
    let body = async |flow: RunningPipeline<Mixed>| {
        let feed = async {
            let mut random = seed;
            for item in 0..items {
                if seed.is_multiple_of(2) && draw(&mut random, apart) == 0 {
                    try_resize(&flow, 1 + draw(&mut random, all)).await?;
                }
                flow.send(item).await?;
            }
            flow.close();
            Ok(())
        };
        let drain = async {
            let mut random = seed;
            while let Some(result) = flow.recv().await? {
                results.borrow_mut().push(result);
                if seed % 2 == 1 && draw(&mut random, apart) == 0 {
                    try_resize(&flow, 1 + draw(&mut random, all)).await?;
                }
            }
            Ok(())
        };
        both(feed, drain).await
    };
    let ((), report) = run(pipeline.clone(), options, body).await?;
    assert_eq!(*results.borrow(), expected(&pipeline, items), "seed {seed}");
    Ok(report)
}

/// Polls up to that number of times, then cancels.
async fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let (mut future, mut polled) = (Box::pin(future), 0);
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        let output = future.as_mut().poll(context);
        if output.is_pending() {
            context.waker().wake_by_ref();
        }
        output.map(Some)
    })
    .await
}

/// Sends items, cancels some of the sends, and checks that each result arrives at most once, in order, and that all
/// completed sends arrive.
async fn given_up(options: Options, seed: u64) -> Result<()> {
    const ITEMS: u64 = 80;
    let pipeline = Mixed { has_states: false, replicas: 1 + seed as usize % 2, ..PLAIN };
    let (sent, results) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let body = async |flow: RunningPipeline<Mixed>| {
        let feed = async {
            let mut random = seed;
            for item in 0..ITEMS {
                if draw(&mut random, 9) == 0 {
                    try_resize(&flow, 1 + draw(&mut random, place_count().min(18))).await?;
                }
                let polls = if draw(&mut random, 2) == 0 { usize::MAX } else { draw(&mut random, 6) };
                if let Some(done) = polled(flow.send(item), polls).await {
                    done?;
                    sent.borrow_mut().push(item);
                }
            }
            flow.close();
            Ok(())
        };
        let drain = async {
            while let Some(result) = flow.recv().await? {
                results.borrow_mut().push(result);
            }
            Ok(())
        };
        both(feed, drain).await
    };
    let ((), report) = run(pipeline.clone(), options, body).await?;
    let all = expected(&pipeline, ITEMS);
    let item =
        |result: &u64| all.iter().position(|other| other == result).expect("a result of an item") as u64;
    let came: Vec<u64> = results.borrow().iter().map(item).collect();
    assert!(came.is_sorted_by(|one, next| one < next), "seed {seed}: {came:?}");
    assert!(sent.borrow().iter().all(|item| came.contains(item)), "seed {seed}: {sent:?}, {came:?}");
    assert_eq!(report.items, came.len() as u64);
    Ok(())
}

#[test]
fn an_item_whose_send_is_given_up_comes_once_or_not_at_all() {
    for places in [1, 2, 5] {
        for seed in 0..40 {
            let checkpoint = (seed % 3 == 0).then_some(7);
            let options = Options { queue: 1 + seed as usize % 3, checkpoint, ..Options::default() };
            let (result, ..) =
                simulate(places, Plan::adversarial(seed), move || given_up(options.clone(), seed));
            result.unwrap();
        }
    }
}

#[test]
fn results_come_in_order_each_once_whatever_is_resized_in_worlds_of_any_order_and_delay() {
    for places in [1, 2, 3, 7, 18, 20] {
        for seed in 0..20 {
            let (result, ..) = simulate(places, Plan::adversarial(seed), move || async move {
                let options = Options { queue: 1 + seed as usize % 5, ..Options::default() };
                let report = resized(PLAIN, options, 60, 5, seed).await?;
                assert_eq!(report.items, 60);
                Ok::<_, Error>(())
            });
            result.unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
        }
    }
}

#[test]
fn ten_thousand_resizes_of_18_stages_with_38_kilobytes_of_state_lose_double_and_reorder_nothing() {
    let (result, ..) = simulate(18, Plan::calm(1), || async {
        let pipeline = Mixed { ballast: 38_000, ..PLAIN };
        let results = Rc::new(Cell::new(0_u64));
        let wanted = expected(&pipeline, 10_000);
        let body = async |flow: RunningPipeline<Mixed>| {
            let feed = async {
                let mut random = 7;
                for item in 0..10_000 {
                    let now = flow.partition().groups();
                    let other = 1 + draw(&mut random, 17);
                    flow.resize(if other < now { other } else { other + 1 }).await?;
                    flow.send(item).await?;
                }
                flow.close();
                Ok(())
            };
            let drain = async {
                while let Some(result) = flow.recv().await? {
                    assert_eq!(result, wanted[results.get() as usize]);
                    results.set(results.get() + 1);
                }
                Ok(())
            };
            both(feed, drain).await
        };
        let ((), report) = run(pipeline, Options::default(), body).await?;
        assert_eq!((results.get(), report.items, report.resizes.len()), (10_000, 10_000, 10_000));
        assert!(report.moved_bytes > 10_000 * 38_000, "{}", report.moved_bytes);
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
fn items_wait_while_more_changes_are_under_way_than_a_queue_holds_items() {
    const QUEUE: usize = 3;
    let (result, ..) = simulate(2, Plan::adversarial(6), || async {
        let sent = Rc::new(Cell::new(0));
        let counted = Rc::clone(&sent);
        let body = async move |flow: RunningPipeline<Mixed>| {
            let feed = async {
                for item in 0..20 {
                    flow.resize(1 + item as usize % 2).await?;
                    flow.send(item).await?;
                    counted.set(item + 1);
                }
                flow.close();
                Ok(())
            };
            let drain = async {
                // The first resize comes before the first item; no result is received while items enter.
                let mut before = (0, 0);
                while before.1 < 1000 {
                    before =
                        if before.0 == counted.get() { (before.0, before.1 + 1) } else { (counted.get(), 0) };
                    crate::yield_now().await;
                }
                assert_eq!(counted.get(), QUEUE as u64);
                let mut results = Vec::new();
                while let Some(result) = flow.recv().await? {
                    results.push(result);
                }
                assert_eq!(results, expected(&PLAIN, 20));
                Ok(())
            };
            both(feed, drain).await
        };
        let options = Options { queue: QUEUE, ..Options::on(2) };
        let ((), report) = run(PLAIN, options, body).await?;
        assert_eq!((sent.get(), report.resizes.len()), (20, 20));
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
fn a_state_moves_only_when_its_stage_does() {
    let (result, ..) = simulate(3, Plan::calm(1), || async {
        let pipeline = Mixed { ballast: 1000, ..PLAIN };
        let one_more = async |flow: RunningPipeline<Mixed>| {
            let two = Partition::of_ends(vec![9, 18]);
            for partition in [two.clone(), Partition::of_ends(vec![9, 17, 18]), two] {
                flow.resize_to(partition).await?;
                flow.send(1).await?;
                flow.recv().await?;
            }
            Ok(flow.received())
        };
        let options = Options { cores: Some(2), ..Options::default() };
        let (received, report) = run(pipeline, options, one_more).await?;
        // The last stage has moved to the third place and back; no other has moved.
        let state = report.stages[17].state_bytes.expect("it has a state") as u64;
        assert!(state > 1000, "{state}");
        // One byte more or less, as numbers grow.
        assert!(received == 3 && report.moved_bytes.abs_diff(2 * state) < 10, "{report:?}");
        assert_eq!(
            report.resizes.iter().map(|resize| (resize.item, resize.from, resize.to)).collect::<Vec<_>>(),
            [(1, 2, 3), (2, 3, 2)]
        );
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
fn two_pipelines_share_places_and_one_moves_to_those_that_the_other_has_left() {
    let (result, ..) = simulate(4, Plan::adversarial(2), || async {
        let all: Vec<Place> = places().collect();
        let (left, right) = (all[..2].to_vec(), all[2..].to_vec());
        let body = async |flow: RunningPipeline<Mixed>| {
            let wanted = expected(&PLAIN, 30);
            for item in 0..30 {
                match item {
                    10 => flow.move_to(left.clone()).await?,
                    20 => flow.move_to(right.clone()).await?,
                    _ => {}
                }
                flow.send(item).await?;
                assert_eq!(flow.recv().await?, Some(wanted[item as usize]));
                if item == 15 {
                    let other = Options { places: Some(right.clone()), ..Options::default() };
                    let mut results = Vec::new();
                    process(PLAIN, other, 0..20, |result| results.push(result)).await?;
                    assert_eq!(results, expected(&PLAIN, 20));
                }
            }
            assert_eq!(flow.measured_costs().await?.stages(), 18);
            let error = flow.move_to(Vec::new()).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Misused);
            Ok(())
        };
        let ((), report) = run(PLAIN, Options::default(), body).await?;
        let places = report.stages.iter().flat_map(|stage| &stage.places);
        assert!(places.clone().all(|place| *place >= 2), "{report:?}");
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
fn a_stage_that_fails_ends_the_pipeline_and_is_named() {
    for places in [1, 3] {
        let (result, ..) = simulate(places, Plan::adversarial(3), || async {
            let pipeline = Mixed { fails_at: Some(20), ..PLAIN };
            process(pipeline, Options::default(), 0..100, |_| {}).await.map(|_| ())
        });
        let error = result.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Failed, "{error}");
        assert!(error.to_string().contains("stage `fallible`: no"), "{error}");
    }
}

/// A stage that panics, and one with too large a state.
#[derive(Clone, Serialize, Deserialize)]
struct Faulty {
    state: usize,
}

impl Pipeline for Faulty {
    type Input = u64;
    type Output = u64;

    fn stages(&self) -> Stages<u64, u64> {
        Stages::new()
            .map("first", |value| value)
            .stateful("hoarder", vec![0_u8; self.state], |state, value| {
                state.push(0);
                value
            })
            .map("divides", |value: u64| 100 / (5 - value.min(5)))
    }
}

#[test]
fn a_panic_and_a_state_that_is_too_large_name_the_stage() {
    let run_of = |state: usize, items: u64, checkpoint: Option<u64>| {
        let (result, ..) = simulate(2, Plan::calm(1), move || async move {
            let body = async |flow: RunningPipeline<Faulty>| {
                for item in 0..items {
                    flow.send(item).await?;
                    flow.recv().await?;
                }
                Ok(())
            };
            run(Faulty { state }, Options { checkpoint, ..Options::default() }, body).await.map(|_| ())
        });
        result
    };
    let error = run_of(0, 6, None).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Panicked);
    assert!(error.to_string().contains("stage `divides`: "), "{error}");
    let error = run_of(39_000, 1, None).unwrap_err();
    let text = "the state of stage `hoarder` has 39004 bytes; allowed: at most 38912";
    assert!(*error.kind() == ErrorKind::Misused && error.to_string().contains(text), "{error}");
    let error = run_of(38_906, 5, Some(1)).unwrap_err();
    assert!(
        *error.kind() == ErrorKind::Misused && error.to_string().contains("the state of stage `hoarder`"),
        "{error}"
    );
    run_of(38_000, 5, Some(1)).unwrap();
}

#[test]
fn a_body_that_panics_behind_a_resize_ends_the_run() {
    for seed in 0..20 {
        let (result, ..) = simulate(3, Plan::calm(seed), || async {
            let body = async |flow: RunningPipeline<Faulty>| {
                flow.resize(1).await?;
                if std::hint::black_box(true) {
                    panic!("the body");
                }
                Ok(())
            };
            run(Faulty { state: 100 }, Options::on(3), body).await.map(|_| ())
        });
        let error = result.unwrap_err();
        assert!(error.to_string().contains("the body"), "{error}");
    }
}

#[test]
fn options_and_resizes_that_are_not_allowed_are_refused_and_the_pipeline_goes_on() {
    let (result, ..) = simulate(2, Plan::calm(1), || async {
        let refused = [
            (Options::on(0), "a pipeline on 0 cores; allowed: 1 to 2, for 18 stages and 2 places"),
            (Options::on(3), "a pipeline on 3 cores; allowed: 1 to 2"),
            (Options { queue: 0, ..Options::default() }, "the queue of a group is 0; allowed: 1 to 1048576"),
            (
                Options { checkpoint: Some(0), ..Options::default() },
                "after every 0 items; allowed: 1 or more",
            ),
            (
                Options { places: Some(vec![here(); 2]), ..Options::default() },
                "allowed: at least one, each once",
            ),
            (
                Options { costs: Some(StageCosts::new(vec![1])), ..Options::default() },
                "the costs cover 1 stages",
            ),
        ];
        for (options, text) in refused {
            let error = process(PLAIN, options, 0..1, |_| {}).await.unwrap_err();
            assert!(*error.kind() == ErrorKind::Misused && error.to_string().contains(text), "{error}");
        }
        let body = async |flow: RunningPipeline<Mixed>| {
            for cores in [0, 3] {
                let error = flow.resize(cores).await.unwrap_err();
                assert!(
                    error.to_string().contains(&format!("a pipeline on {cores} cores; allowed: 1 to 2")),
                    "{error}"
                );
            }
            flow.send(0).await?;
            assert_eq!(flow.recv().await?, Some(expected(&PLAIN, 1)[0]));
            flow.close();
            let error = flow.send(1).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Closed);
            assert_eq!(flow.recv().await?, None);
            Ok(())
        };
        run(PLAIN, Options::default(), body).await.map(|_| ())
    });
    result.unwrap();
}

#[test]
fn results_that_nobody_receives_are_dropped_and_the_error_of_the_body_is_that_of_the_run() {
    let (result, ..) = simulate(3, Plan::adversarial(5), || async {
        let body = async |flow: RunningPipeline<Mixed>| {
            flow.send(1).await?;
            flow.resize(2).await?;
            flow.send(2).await
        };
        let ((), report) = run(PLAIN, Options::default(), body).await?;
        assert_eq!(report.items, 2);
        let body = async |flow: RunningPipeline<Mixed>| {
            flow.send(1).await?;
            Err::<(), _>(Error::message("enough"))
        };
        let error = run(PLAIN, Options::default(), body).await.unwrap_err();
        assert!(error.to_string().contains("enough"), "{error}");
        Ok::<_, Error>(())
    });
    result.unwrap();
}

/// Returns the id of a place, which only code at a place can get.
fn id_of(number: usize) -> PlaceId {
    let id = Rc::new(Cell::new(None));
    let slot = Rc::clone(&id);
    let say = move || async move { slot.set(Place::new(number).map(Place::id)) };
    simulate(number as u32 + 1, Plan::calm(0), say).0.expect("it only says it");
    id.get().expect("the last place")
}

/// Runs a body in a world in which places die at given steps, and checks that the body ends.
fn end_with_deaths<R: 'static>(
    places: u32,
    deaths: &[(usize, u64)],
    seed: u64,
    body: impl AsyncFnOnce() -> R + 'static,
) -> R {
    let losses = deaths.iter().map(|(place, step)| PlannedDeath { place: id_of(*place), step: *step });
    let plan = Plan { losses: losses.collect(), stops: Vec::new(), ..Plan::adversarial(seed) };
    let found = Rc::new(Cell::new(None));
    let slot = Rc::clone(&found);
    let (result, ..) = simulate(places, plan, move || async move {
        slot.set(Some(body().await));
    });
    let result = result.map_err(|error| error.to_string());
    found.take().unwrap_or_else(|| panic!("{places} places, seed {seed}: {result:?}"))
}

/// Runs a pipeline of 120 items in which a place dies.
fn end_with_death(
    places: u32,
    death: (usize, u64),
    seed: u64,
    pipeline: Mixed,
    checkpoint: Option<u64>,
) -> Result<PipelineReport> {
    end_with_deaths(places, &[death], seed, async move || {
        let options = Options { checkpoint, ..Options::default() };
        resized(pipeline, options, 120, 30, seed).await
    })
}

/// Step from which a pipeline has certainly begun; all places must be alive until then.
const BEGUN: u64 = 1500;

#[test]
fn with_checkpoints_results_are_exact_whenever_a_place_dies() {
    let all = [(true, 1, 1), (true, 7, 1), (true, 1000, 1), (false, 1, 1), (true, 7, 3), (false, 1, 3)];
    for (has_states, checkpoint, replicas) in all {
        let mut died = 0;
        for seed in 0..40 {
            let places = 2 + seed as u32 % 5;
            let place = 1 + seed as usize % (places as usize - 1);
            let pipeline = Mixed { has_states, replicas, ..PLAIN };
            let step = BEGUN + seed * 337 % 9000;
            let report = end_with_death(places, (place, step), seed, pipeline, Some(checkpoint))
                .unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
            assert_eq!(report.items, 120);
            died += report.lost_places;
        }
        assert!(died > 10, "only {died} runs lost a place that had stages");
    }
}

#[test]
fn with_checkpoints_results_are_exact_if_a_place_dies_while_items_wait_for_changes() {
    let mut died = 0;
    for seed in 260..380 {
        let places = 2 + seed as u32 % 5;
        let place = 1 + seed as usize % (places as usize - 1);
        let pipeline = if seed % 2 == 0 { PLAIN } else { REPLICATED };
        let step = BEGUN + seed * 337 % 9000;
        let report = end_with_deaths(places, &[(place, step)], seed, async move || {
            let options = Options { checkpoint: Some(1 + seed % 9), queue: 1, ..Options::default() };
            resized(pipeline, options, 60, 2, seed).await
        });
        let report = report.unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
        assert_eq!(report.items, 60);
        died += report.lost_places;
    }
    assert!(died > 10, "only {died} runs lost a place that had stages");
}

#[test]
fn with_checkpoints_results_are_exact_if_a_second_place_dies_while_the_pipeline_recovers() {
    let mut died = 0;
    for seed in 0..120 {
        let places = 4 + seed as u32 % 3;
        let first = BEGUN + seed * 137 % 5000;
        let deaths = [(1, first), (2 + seed as usize % 2, first + 1 + seed * 7 % 400)];
        let report = end_with_deaths(places, &deaths, seed, async move || {
            let options = Options { checkpoint: Some(1 + seed % 9), ..Options::default() };
            resized(PLAIN, options, 120, 30, seed).await
        });
        let report = report.unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
        assert_eq!(report.items, 120);
        died += usize::from(report.lost_places == 2);
    }
    assert!(died > 10, "only {died} runs lost two places that had stages");
}

/// Sends items and receives results; most receives are cancelled.
async fn received_in_parts(checkpoint: Option<u64>, seed: u64) -> Result<Vec<u64>> {
    let results = RefCell::new(Vec::new());
    let body = async |flow: RunningPipeline<Mixed>| {
        let feed = async {
            for item in 0..120 {
                flow.send(item).await?;
            }
            flow.close();
            Ok(())
        };
        let drain = async {
            let mut random = seed;
            loop {
                // One in four is not cancelled, so that the pipeline recovers in the end.
                let polls = if draw(&mut random, 4) == 0 { usize::MAX } else { draw(&mut random, 200) };
                match polled(flow.recv(), polls).await.transpose()? {
                    Some(Some(result)) => results.borrow_mut().push(result),
                    Some(None) => return Ok(()),
                    None => {}
                }
            }
        };
        both(feed, drain).await
    };
    run(PLAIN, Options { checkpoint, ..Options::default() }, body).await?;
    Ok(results.into_inner())
}

#[test]
fn a_receive_that_is_given_up_while_the_pipeline_recovers_keeps_nothing_from_going_on() {
    for (seed, checkpoint) in (0..60).flat_map(|seed| [(seed, None), (seed, Some(5))]) {
        let death = (1 + seed as usize % 2, BEGUN + seed * 113 % 4000);
        let received =
            end_with_deaths(3, &[death], seed, async move || received_in_parts(checkpoint, seed).await);
        match received {
            Ok(received) => assert_eq!(received, expected(&PLAIN, 120), "seed {seed}"),
            Err(error) => {
                let is_death = matches!(error.kind(), ErrorKind::DeadPlace(_));
                assert!(checkpoint.is_none() && is_death, "seed {seed}: {error}");
            }
        }
    }
}

/// A stage that fails with the stored error of a death.
#[derive(Clone, Serialize, Deserialize)]
struct Remembering {
    dead: usize,
}

impl Pipeline for Remembering {
    type Input = u64;
    type Output = u64;

    fn stages(&self) -> Stages<u64, u64> {
        let dead = self.dead;
        Stages::new().map("first", |value| value).try_map("remembers", move |value: u64| match value {
            3 => {
                let dead = Place::new(dead).expect("it is a place of the world").id();
                Err(Error::new(ErrorKind::DeadPlace(dead), "it was dead".to_owned()))
            }
            _ => Ok(value),
        })
    }
}

#[test]
fn a_stage_that_tells_of_a_death_has_failed_and_no_group_was_lost() {
    for (dead, checkpoint) in [0, 1].into_iter().flat_map(|dead| [(dead, None), (dead, Some(1))]) {
        let (result, ..) = simulate(2, Plan::calm(1), move || async move {
            let options = Options { checkpoint, ..Options::default() };
            process(Remembering { dead }, options, 0..20, |_| {}).await.map(|_| ())
        });
        let error = result.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Failed, "{error}");
        let text = error.to_string();
        assert!(text.contains("stage `remembers`: ") && text.contains("; it was dead"), "{error}");
    }
}

#[test]
fn a_state_that_arrives_after_its_group_was_given_up_is_not_kept() {
    let (result, ..) = simulate(1, Plan::calm(1), || async {
        let mut local = local::LocalPipeline::new(&PLAIN, 1_000);
        local.abort(5);
        let state = || local::SavedStage { stage: 7, state: Some(vec![0; 100]) };
        local.deliver(4, state());
        assert_eq!(local.waiting_states(), 0);
        local.deliver(5, state());
        assert_eq!(local.waiting_states(), 1);
    });
    result.unwrap();
}

#[test]
fn without_checkpoints_a_death_ends_the_pipeline_and_names_the_stages() {
    let mut died = 0;
    for seed in 0..40 {
        let pipeline = if seed % 2 == 0 { PLAIN } else { REPLICATED };
        let Err(error) = end_with_death(4, (2, BEGUN + seed * 131), seed, pipeline, None) else { continue };
        assert!(
            matches!(error.kind(), ErrorKind::DeadPlace(place) if *place == id_of(2)),
            "seed {seed}: {error}"
        );
        died += usize::from(error.to_string().contains("it ran stage `"));
    }
    assert!(died > 10, "only {died} runs lost a place that had stages");
}
