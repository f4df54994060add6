//! Dynamic distribution of work by a counter or a channel: each place gets a share on every machine whose places share
//! a thread, and a modelled chip is as fast as with tasks that yield explicitly.

use isles::prelude::*;
use isles::{ChipReport, Launch, ModelledChip, Plan, Result, simulate};
use std::cell::RefCell;
use std::rc::Rc;

/// Cost of a unit of work on a modelled core: 94 µs of the SCC.
const UNIT: Cycles = Cycles(50_000);

/// Distributes `units` of work by a counter at the first place. Returns the number that each place has taken.
async fn deal(units: u64, cost: Cycles, gives_way: bool) -> Result<Vec<u64>> {
    let taken = PlaceLocal::new(|| 0_u64).await?;
    let next = Counter::new();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                while next.take_below(units).await?.is_some() {
                    work(cost);
                    *taken.lock() += 1;
                    if gives_way {
                        isles::yield_now().await;
                    }
                }
            });
        }
    })
    .await?;
    everywhere!(*taken.lock()).await
}

/// Distributes them by a channel without a buffer at the first place; if `selects`, one task sends and counts results.
async fn deal_by_channel(units: u64, cost: Cycles, selects: bool) -> Result<Vec<u64>> {
    let (jobs, queue) = channel::<u64>(0);
    let (results, answers) = channel::<Place>(16);
    let mut taken = vec![0; places().count()];
    finish(async {
        for place in places() {
            spawn_at!(place, [queue, results, cost] {
                let mut jobs = queue.stream();
                while jobs.next().await?.is_some() {
                    work(cost);
                    results.send(here()).await?;
                }
            });
        }
        drop((queue, results));
        if selects {
            let mut next = 0;
            while next < units {
                select! {
                    sent = jobs.send(next) => {
                        sent?;
                        next += 1;
                    },
                    place = answers.recv() => taken[place?.index()] += 1,
                }
            }
            drop(jobs);
        } else {
            spawn(async move {
                for unit in 0..units {
                    jobs.send(unit).await?;
                }
                Ok::<_, isles::Error>(())
            });
        }
        let mut answers = answers.stream();
        while let Some(place) = answers.next().await? {
            taken[place.index()] += 1;
        }
        Ok::<_, isles::Error>(())
    })
    .await?;
    Ok(taken)
}

/// Runs `deal` on `places` cores of the SCC; returns its result and the report.
fn on_chip(places: u32, units: u64, cost: Cycles, gives_way: bool) -> (Vec<u64>, ChipReport) {
    dealt_on_chip(places, move || deal(units, cost, gives_way))
}

/// Runs a distribution on `places` cores of the SCC. Returns its result and the report.
fn dealt_on_chip<F>(places: u32, deal: impl FnOnce() -> F + 'static) -> (Vec<u64>, ChipReport)
where
    F: Future<Output = Result<Vec<u64>>> + 'static,
{
    let taken = Rc::new(RefCell::new(Vec::new()));
    let out = Rc::clone(&taken);
    let main = move || async move {
        *out.borrow_mut() = deal().await?;
        Ok::<_, isles::Error>(())
    };
    let launch = Launch::from_environment().unwrap().places(places);
    let (result, _, report) = launch.run_on_chip(ModelledChip::new("scc").unwrap(), main).unwrap();
    result.unwrap();
    (taken.take(), report)
}

fn assert_spread(taken: &[u64], units: u64) {
    assert_eq!(taken.iter().sum::<u64>(), units);
    let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
    assert!(*least > 0, "each place has a share: {taken:?}");
    assert!(*most <= units.div_ceil(taken.len() as u64) * 4, "no place has most of it: {taken:?}");
}

#[test]
fn cores_of_a_chip_share_long_jobs_evenly_with_the_one_that_deals_them_out() {
    // Jobs of 10 ms, 1 ms and 100 µs.
    for (places, cost) in
        [(2, 5_330_000), (4, 5_330_000), (2, 533_000), (4, 533_000), (2, 53_300), (4, 53_300)]
    {
        let cost = Cycles(cost);
        let ways = [
            ("counter", dealt_on_chip(places, move || deal(60, cost, false)).0),
            ("channel", dealt_on_chip(places, move || deal_by_channel(60, cost, false)).0),
            ("select", dealt_on_chip(places, move || deal_by_channel(60, cost, true)).0),
        ];
        for (way, taken) in ways {
            assert_eq!(taken.iter().sum::<u64>(), 60, "{way}, {places} places, {cost:?}");
            let least = 60 / u64::from(places) * 8 / 10;
            assert!(taken.iter().all(|taken| *taken >= least), "{way}, {places} places, {cost:?}: {taken:?}");
        }
    }
}

#[test]
fn each_core_of_a_chip_takes_a_share_and_more_cores_take_less_time() {
    let mut before = u64::MAX;
    for places in [1, 2, 8, 48] {
        let (taken, report) = on_chip(places, 480, UNIT, false);
        assert_spread(&taken, 480);
        assert!(report.time.0 < before / 10 * 9, "{places} places take {}", report.time);
        before = report.time.0;
    }
}

#[test]
fn a_chip_is_nearly_as_fast_as_with_tasks_that_give_way_by_themselves() {
    for cost in [UNIT, Cycles(2_000), Cycles(20_000)] {
        let (_, alone) = on_chip(1, 480, cost, false);
        let speedup = |gives_way| {
            let (taken, report) = on_chip(48, 480, cost, gives_way);
            assert_eq!(taken.iter().sum::<u64>(), 480);
            alone.time.0 as f64 / report.time.0 as f64
        };
        let (ours, explicit) = (speedup(false), speedup(true));
        assert!(ours >= 0.7 * explicit, "{cost:?}: {ours:.2} times, {explicit:.2} with `yield_now`");
    }
}

#[test]
fn operations_proceed_where_the_code_before_them_takes_longer_than_a_turn() {
    let polls = Rc::new(std::cell::Cell::new(0));
    let counted = Rc::clone(&polls);
    let main = move || async move {
        let counter = Counter::new();
        // Each poll of the operation costs as much as a hundred turns may take, as with measured code.
        let mut take = std::pin::pin!(counter.take_below(3_u64));
        let taken = std::future::poll_fn(|context| {
            work(Cycles(1_000_000));
            counted.set(counted.get() + 1);
            assert!(counted.get() <= 3, "the operation never proceeds");
            take.as_mut().poll(context)
        });
        assert_eq!(taken.await?, Some(0));
        Ok::<_, isles::Error>(())
    };
    let launch = Launch::from_environment().unwrap().places(1);
    launch.run_on_chip(ModelledChip::new("scc").unwrap(), main).unwrap().0.unwrap();
    assert_eq!(polls.get(), 2, "it gives way once");
}

#[test]
fn each_place_of_the_loopback_takes_a_share_in_whatever_order() {
    // An adversarial plan delays a message for up to 200 turns.
    let plans = (0..20).flat_map(|seed| [(Plan::calm(seed), 101), (Plan::adversarial(seed), 4_000)]);
    for (plan, units) in plans {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let out = Rc::clone(&taken);
        let main = move || async move {
            *out.borrow_mut() = deal(units, UNIT, false).await?;
            Ok::<_, isles::Error>(())
        };
        let seed = plan.seed;
        let (result, ..) = simulate(4, plan, main);
        result.unwrap();
        let taken = taken.take();
        assert!(taken.iter().all(|taken| *taken > 0), "seed {seed}, {units} units: {taken:?}");
        assert_eq!(taken.iter().sum::<u64>(), units);
    }
}

#[test]
fn numbers_asked_for_several_at_a_time_are_each_given_once() {
    for seed in 0..50 {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let out = Rc::clone(&taken);
        let main = move || async move {
            let (next, mine) = (Counter::new(), PlaceLocal::new(Vec::<u32>::new).await?);
            finish(async {
                for place in places() {
                    spawn_at!(place, {
                        let most = here().index() as u32 + 1;
                        loop {
                            // Two requests are in flight, as for a place that asks ahead.
                            let (first, second) = (next.ask_below(100_u32, most), next.ask_below(100_u32, 3));
                            let (first, second) = (first.await?, second.await?);
                            assert!(first.len() <= most as usize && second.len() <= 3);
                            let is_over = second.is_empty();
                            mine.lock().extend(first.chain(second));
                            if is_over {
                                break;
                            }
                        }
                    });
                }
            })
            .await?;
            *out.borrow_mut() = everywhere!(mine.lock().clone()).await?.concat();
            Ok::<_, isles::Error>(())
        };
        let (result, ..) = simulate(3, Plan::adversarial(seed), main);
        result.unwrap();
        taken.borrow_mut().sort_unstable();
        assert_eq!(*taken.borrow(), (0..100).collect::<Vec<_>>(), "seed {seed}");
    }
}
