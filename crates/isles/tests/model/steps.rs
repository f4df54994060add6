//! Programs of steps on a modelled chip: the computation of a step does not delay messages of the previous one.
//!
//! In a step each of 48 places reads memory, where twelve share a controller, and then all synchronise. Messages of few
//! words fill the ring of a place that still computes, so they wait for room; on a host their senders would wait.

use isles::prelude::*;
use isles::{Launch, ModelledChip, clocks};
use std::rc::Rc;
use std::time::Duration;

const PLACES: u32 = 48;
const STEPS: u64 = 3;

/// Lines that a place reads in a step, its part of 4,096 by 4,096 cells of 16 bytes: hardly one is still in its cache.
/// And the time of a controller for each: 66.7 cycles of the memory's 800 MHz.
const LINES: u64 = 174_720;
const LINE_NS: f64 = 66.7 / 0.8;

/// Ways in which the places synchronise after a step.
const WAYS: [&str; 4] = ["barrier", "all_reduce", "ring", "slice"];

async fn steps(way: u64, pieces: u64, cycles: u64, divider: u32) -> isles::Result<()> {
    clocks::set_tile_divider(divider).map_err(isles::Error::message)?;
    let team = Team::world();
    let (rank, size) = (team.rank(), team.size());
    for _ in 0..STEPS {
        for piece in 0..pieces {
            work(Work::new().cycles(cycles / pieces).streamed(32 * LINES / pieces).of(32 * LINES));
            if piece + 1 < pieces {
                yield_now().await;
            }
        }
        match WAYS[way as usize] {
            "barrier" => team.barrier().await?,
            "all_reduce" => assert_eq!(team.all_reduce(1, |a, b| a + b).await?, size),
            "ring" => {
                let before: usize =
                    team.send_recv((rank + 1) % size, &rank, (rank + size - 1) % size).await?;
                assert_eq!(before, (rank + size - 1) % size);
            }
            _ => team.all_reduce_slice(&mut [1.0; 40], |a, b| a + b).await?,
        }
    }
    Ok(())
}

/// Returns the time of the steps of all places on the SCC.
fn time(way: usize, pieces: u64, cycles: u64, divider: u32) -> Duration {
    let taken = Rc::new(std::cell::Cell::new(Duration::ZERO));
    let (kept, way) = (Rc::clone(&taken), way as u64);
    let main = move || async move {
        let started = now();
        finish(async {
            for place in places() {
                spawn_at!(place, { steps(way, pieces, cycles, divider).await });
            }
        })
        .await?;
        kept.set(now() - started);
        Ok::<_, isles::Error>(())
    };
    let launch = Launch::from_environment().unwrap().places(PLACES);
    launch.run_on_chip(ModelledChip::new("scc").unwrap(), main).unwrap().0.unwrap();
    taken.get()
}

/// Returns the time that the controllers need for all lines: twelve places share each.
fn bound() -> Duration {
    Duration::from_nanos((12.0 * (STEPS * LINES) as f64 * LINE_NS) as u64)
}

/// Returns the part of `time` that may depend on the order in which messages are seen.
fn slack(time: Duration) -> Duration {
    time / 1_000
}

#[test]
fn steps_that_want_all_of_memory_take_what_its_controllers_need() {
    for (way, name) in WAYS.iter().enumerate() {
        let taken = time(way, 1, 0, 3);
        assert!(taken >= bound() && taken < bound() + bound() / 50, "{name}: {taken:?} of {:?}", bound());
        for pieces in [4, 16, 64] {
            let cut = time(way, pieces, 0, 3);
            assert!(cut.abs_diff(taken) <= slack(taken), "{name}, {pieces} pieces: {cut:?}, {taken:?}");
        }
    }
}

#[test]
fn time_never_falls_when_the_clock_falls_or_the_work_grows() {
    let rises = |times: &[Duration]| times.windows(2).all(|pair| pair[0] <= pair[1] + slack(pair[1]));
    for (way, name) in WAYS.iter().enumerate() {
        let by_divider: Vec<_> = (3..=16).map(|divider| time(way, 1, 0, divider)).collect();
        assert!(rises(&by_divider), "{name}: {by_divider:?}");
        let by_work: Vec<_> = (0..12).map(|more| time(way, 1, 8_000_000 * more, 3)).collect();
        assert!(rises(&by_work), "{name}: {by_work:?}");
    }
}
