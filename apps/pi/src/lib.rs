//! The application `pi`: π from random points in a square, as the smallest example of the suite.
//!
//! Batches of points are taken from a counter; each has random numbers of its own, so the number of hits depends on the
//! seed only. The result is compared with π: it may be off by a few standard deviations of the number of points.

#![forbid(unsafe_code)]

use clap::{Args, value_parser};
use isles::Random;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{Application, Balance, Dealer, Verification, WorkDone, count};
use serde::Serialize;
use std::f64::consts::PI;
use std::io::{self, Write};

/// Points of a batch, and what one of them costs on a modelled core: two numbers, a sum of squares and a comparison.
const BATCH: u64 = 10_000;
const POINT: Cycles = Cycles(40);

/// Most points of a run: hours on many cores.
const POINTS_MAX: u64 = 1_000_000_000_000_000;

/// How many standard deviations off the result may be: one run in 1.7 million is farther.
const DEVIATIONS_MAX: f64 = 5.0;

/// The arguments of `isles run pi`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Pi {
    /// How many points, 1 to 10^15
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    points: u64,

    /// The seed of the random points
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,
}

/// What is found: how many points lie in the circle, and π as they say it, with its error and the one to be expected.
#[derive(Serialize)]
pub struct Estimate {
    hits: u64,
    pi: f64,
    error: f64,
    expected_error: f64,
}

impl Estimate {
    fn of(hits: u64, points: u64) -> Estimate {
        let pi = 4.0 * hits as f64 / points as f64;
        let expected_error = (PI * (4.0 - PI) / points as f64).sqrt();
        Estimate { hits, pi, error: (pi - PI).abs(), expected_error }
    }
}

impl Application for Pi {
    const NAME: &'static str = "pi";
    const ABOUT: &'static str = env!("CARGO_PKG_DESCRIPTION");
    const UNITS: &'static str = "batches";
    type Input = Pi;
    type Found = Estimate;

    fn open(&self, _: u32) -> Result<Pi, Failure> {
        Ok(self.clone())
    }

    fn heading(&self, _: &Pi) -> String {
        count(self.points, "point", "points")
    }

    async fn compute(Pi { points, random_seed }: Pi, dealer: Dealer) -> isles::Result<(Estimate, WorkDone)> {
        let hits = PlaceLocal::new(|| 0_u64).await?;
        let batches = dealer.units(points.div_ceil(BATCH), Balance::Dynamic).await?;
        let started = now();
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let mut own = batches.here();
                    while let Some(batch) = own.take().await? {
                        let size = BATCH.min(points - batch * BATCH);
                        *hits.lock() += hits_of_batch(&mut Random::stream(random_seed, batch), size);
                        work(Cycles(POINT.0 * size));
                    }
                });
            }
        })
        .await?;
        let done = batches.done(started).await?;
        Ok((Estimate::of(hits.reduce(|one, other| one + other).await?, points), done))
    }

    fn text(&self, Estimate { pi, .. }: &Estimate) -> String {
        format!("pi     {pi:.10}")
    }

    fn speed(&self, _: &Estimate, seconds: f64) -> String {
        format!("{:.1} million points a second", self.points as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &Estimate, _: bool) -> Result<Option<Verification>, Failure> {
        let Estimate { error, expected_error, .. } = found;
        let text = format!("{error:.1e} from π; {expected_error:.1e} is one standard deviation");
        Ok(Some(Verification { holds: *error <= DEVIATIONS_MAX * expected_error, text }))
    }

    fn write_csv(&self, found: &Estimate, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "points,hits,pi\n{},{},{}", self.points, found.hits, found.pi)
    }
}

fn hits_of_batch(random: &mut Random, points: u64) -> u64 {
    let is_hit = |_: &u64| random.unit().hypot(random.unit()) < 1.0;
    (0..points).filter(is_hit).count() as u64
}

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Pi>()
}
