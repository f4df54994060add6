//! The product of time and clock rate stays the same for programs that exchange and compute in steps.
//!
//! A step computes far longer than its messages take, and only a small part of these has another clock: the mesh and
//! the memory. If messages sent before the work of a step leave only after it, places wait for each other for whole
//! steps, at some clocks and not at others, and the law is violated by up to a factor of two.

use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::{Flag, Launch, Machine, ModelledChip, Result};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const STEPS: u64 = 6;

/// Ways in which the members exchange the edges of their parts.
const WAYS: [&str; 5] = ["halos", "messages", "channels", "windows", "collectives"];

/// The extents of the square that the members share.
const SIZES: [usize; 10] = [128, 150, 160, 176, 180, 191, 192, 193, 200, 256];

const PLACES: [u32; 5] = [1, 2, 4, 8, 16];

/// Maximum relative difference of time times clock between the dividers of one program.
const TOLERANCE: f64 = 0.03;

/// Returns the cycles that a member computes in a step: twenty times the time of its messages, or more.
fn computed(way: usize, cells: usize) -> Cycles {
    let each = if WAYS[way] == "collectives" { 100 } else { 40 };
    Cycles(each * cells as u64)
}

async fn halos(plate: &DistArray<f64, 2>) -> Result<()> {
    let [rows, columns] = plate.lock().extents();
    for _ in 0..STEPS {
        plate.exchange().await?;
        work(computed(0, rows * columns));
    }
    Ok(())
}

/// The members as a ring, each with a strip of the square.
struct Ring {
    team: Team,
    before: usize,
    after: usize,
    edge: Vec<f64>,
    part: Cycles,
}

impl Ring {
    fn new(way: usize, size: usize) -> Ring {
        let team = Team::world();
        let (rank, members) = (team.rank(), team.size());
        let (before, after) = ((rank + members - 1) % members, (rank + 1) % members);
        Ring {
            team,
            before,
            after,
            edge: vec![rank as f64; size],
            part: computed(way, size * size / members),
        }
    }

    async fn messages(&self) -> Result<()> {
        let mut beside = self.edge.clone();
        for _ in 0..STEPS {
            self.team.send_slice(self.before, &self.edge).await?;
            self.team.send_slice(self.after, &self.edge).await?;
            self.team.recv_slice(self.after, &mut beside).await?;
            self.team.recv_slice(self.before, &mut beside).await?;
            work(self.part);
        }
        Ok(())
    }

    async fn channels(&self) -> Result<()> {
        let (from_before, of_before) = channel::<Vec<f64>>(2);
        let (from_after, of_after) = channel::<Vec<f64>>(2);
        let senders = self.team.all_gather((from_before, from_after)).await?;
        for _ in 0..STEPS {
            senders[self.before].1.send(self.edge.clone()).await?;
            senders[self.after].0.send(self.edge.clone()).await?;
            of_before.recv().await?;
            of_after.recv().await?;
            work(self.part);
        }
        Ok(())
    }

    async fn windows(&self, window: &Window<f64>) -> Result<()> {
        let len = self.edge.len();
        for _ in 0..STEPS {
            window.put(self.before, len, &self.edge).await?;
            window.put(self.after, 0, &self.edge).await?;
            window.fence().await?;
            work(self.part);
        }
        Ok(())
    }

    async fn collectives(&self) -> Result<()> {
        let mut edge = self.edge.clone();
        for _ in 0..STEPS {
            self.team.all_gather((edge[0], edge[1])).await?;
            self.team.all_reduce_slice(&mut edge, f64::max).await?;
            work(self.part);
        }
        Ok(())
    }
}

async fn steps(way: usize, size: usize, plate: &DistArray<f64, 2>, window: &Window<f64>) -> Result<Duration> {
    let ring = Ring::new(way, size);
    ring.team.barrier().await?;
    let started = now();
    match WAYS[way] {
        "halos" => halos(plate).await?,
        "messages" => ring.messages().await?,
        "channels" => ring.channels().await?,
        "windows" => ring.windows(window).await?,
        _ => ring.collectives().await?,
    }
    ring.team.barrier().await?;
    Ok(now() - started)
}

/// Returns the time of the steps of a program on the SCC at a divider of the clock.
fn time(way: usize, size: usize, places: u32, divider: u32) -> Duration {
    let taken = Rc::new(Cell::new(Duration::ZERO));
    let kept = Rc::clone(&taken);
    let main = move || async move {
        let team = Team::world();
        let plate = DistArray::with_halo(&team, [size; 2], [Distribution::Block; 2], Halo::new(1)).await?;
        let window = Window::new(2 * size).await?;
        kept.set(everywhere!(steps(way, size, &plate, &window).await?).await?[0]);
        Ok::<_, isles::Error>(())
    };
    let policy = format!("fixed:{divider}");
    let governor = Flag { variable: "ISLES_CHIP_GOVERNOR", name: "--governor", value: &policy };
    let chip = ModelledChip::new("scc").unwrap();
    let launch = Launch::from_environment_with(Machine::Chip(chip), &[governor]).unwrap().places(places);
    launch.run_on_chip(chip, main).unwrap().0.unwrap();
    taken.get()
}

/// Checks the law for a program at these dividers, in ascending order.
fn check(way: usize, size: usize, places: u32, dividers: &[u32]) {
    let times: Vec<f64> =
        dividers.iter().map(|divider| time(way, size, places, *divider).as_secs_f64()).collect();
    let products: Vec<f64> =
        times.iter().zip(dividers).map(|(time, divider)| time / f64::from(*divider)).collect();
    let least = products.iter().copied().fold(f64::INFINITY, f64::min);
    let most = products.iter().copied().fold(0.0, f64::max);
    let what = format!("{}, {size} x {size} on {places} places, dividers {dividers:?}", WAYS[way]);
    assert!(most <= least * (1.0 + TOLERANCE), "{what}: times over dividers {products:?}");
    assert!(times.is_sorted(), "{what}: a slower clock is faster: {times:?}");
}

#[test]
fn time_times_clock_is_the_same_at_all_clocks() {
    for way in 0..WAYS.len() {
        for (places, sizes) in
            [(1, &[192][..]), (2, &[192]), (4, &[180, 192, 193]), (8, &[192]), (16, &[200])]
        {
            sizes.iter().for_each(|size| check(way, *size, places, &[2, 4, 5, 6, 16]));
        }
    }
}

#[test]
#[ignore = "minutes in a debug build; for the long run"]
fn time_times_clock_is_the_same_at_all_clocks_sizes_and_places() {
    let dividers: Vec<u32> = (2..=16).collect();
    for way in 0..WAYS.len() {
        for places in PLACES {
            SIZES.iter().for_each(|size| check(way, *size, places, &dividers));
        }
    }
}
