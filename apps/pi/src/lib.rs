//! The application `pi`: π from random points in a square, as the smallest example of the suite, or from a series.
//!
//! Batches of points are taken from a counter; each has its own random numbers, so the number of hits depends on the
//! seed only. The sum of each batch of terms of the series is added as a whole number, so the order does not matter.
//! The result is compared with π: its error may be a few standard deviations of the number of points, or the first
//! omitted term.

#![forbid(unsafe_code)]

use clap::{Args, ValueEnum, value_parser};
use isles::Random;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, Balance, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::io::{self, Write};

/// Points per batch, and the cost of one on a modelled core: two numbers, a sum of squares and a comparison.
const BATCH: u64 = 10_000;
const POINT: Cycles = Cycles(40);

/// Most points of a run: hours on many cores.
const POINTS_MAX: u64 = 1_000_000_000_000_000;

/// Cycles per term of the series on a modelled core, and its floating-point operations. With these a run on 48 cores
/// at 800 MHz achieves the published rate of 2,232,382,092 operations per second (van der Woning and Bakker,
/// 004:1723).
const TERM: Cycles = Cycles(66);
const TERM_OPERATIONS: u64 = 4;

/// Sums of terms are whole multiples of one divided by this number.
const SUM_UNIT: f64 = (1_u128 << 80) as f64;

/// Largest accepted error of the result, in standard deviations: exceeded by one run in 1.7 million.
const DEVIATIONS_MAX: f64 = 5.0;

/// The arguments of `isles run pi`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Pi {
    /// Number of points, or terms, 1 to 10^15
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    points: u64,

    /// Method of computing π
    #[arg(long, value_enum, default_value_t)]
    method: Method,

    /// The seed of the random points
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,
}

/// Method of computing π.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Random points in a square; counts those in the circle
    #[default]
    Points,
    /// The terms of the series 4 - 4/3 + 4/5 - ..
    Series,
}

/// Result of a run: the number of points in the circle, or of operations of the terms, and the estimate of π with its
/// error and the expected error.
#[derive(Serialize)]
pub struct Estimate {
    hits: u64,
    operations: u64,
    pi: f64,
    error: f64,
    expected_error: f64,
}

impl Estimate {
    fn of(hits: u64, points: u64) -> Estimate {
        let pi = 4.0 * hits as f64 / points as f64;
        let expected_error = (PI * (4.0 - PI) / points as f64).sqrt();
        Estimate { hits, operations: 0, pi, error: (pi - PI).abs(), expected_error }
    }

    fn of_series(sum: i128, terms: u64) -> Estimate {
        let pi = sum as f64 / SUM_UNIT;
        // The first omitted term, with a fifth of it allowed for rounding.
        let expected_error = 0.25 / terms as f64 + 1e-15;
        let operations = TERM_OPERATIONS * terms;
        Estimate { hits: 0, operations, pi, error: (pi - PI).abs(), expected_error }
    }
}

impl Application for Pi {
    const INFO: ApplicationInfo = ApplicationInfo::new("pi", env!("CARGO_PKG_DESCRIPTION"), "batches");
    type Input = Pi;
    type Found = Estimate;

    fn open(&self, _: u32) -> Result<Pi, Failure> {
        Ok(self.clone())
    }

    fn heading(&self, _: &Pi) -> String {
        match self.method {
            Method::Points => count(self.points, "point", "points"),
            Method::Series => count(self.points, "term", "terms"),
        }
    }

    async fn compute(
        Pi { points, method, random_seed }: Pi,
        distributor: WorkDistributor,
    ) -> isles::Result<(Estimate, WorkDone)> {
        let sums = PlaceLocal::new(|| 0_i128).await?;
        let batches = distributor.units(points.div_ceil(BATCH), Balance::Dynamic).await?;
        let started = now();
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let mut own = batches.here();
                    while let Some(batch) = own.take().await? {
                        let size = BATCH.min(points - batch * BATCH);
                        *sums.lock() += match method {
                            Method::Points => {
                                i128::from(hits_of_batch(&mut Random::stream(random_seed, batch), size))
                            }
                            Method::Series => sum_of_batch(batch * BATCH, size),
                        };
                        let each = if method == Method::Points { POINT } else { TERM };
                        work(Cycles(each.0 * size));
                    }
                });
            }
        })
        .await?;
        let done = batches.done(started).await?;
        let sum = sums.reduce(|one, other| one + other).await?;
        let found = match method {
            Method::Points => Estimate::of(sum as u64, points),
            Method::Series => Estimate::of_series(sum, points),
        };
        Ok((found, done))
    }
}

impl RunResult for Pi {
    fn text(&self, Estimate { pi, .. }: &Estimate) -> String {
        format!("pi     {pi:.10}")
    }

    fn speed(&self, _: &Estimate, seconds: f64) -> String {
        let unit = if self.method == Method::Points { "points" } else { "terms" };
        format!("{:.1} million {unit} a second", self.points as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &Estimate, _: bool) -> Result<Option<Verification>, Failure> {
        let Estimate { error, expected_error, .. } = found;
        let meaning = if self.method == Method::Points { "one standard deviation" } else { "to be expected" };
        let text = format!("{error:.1e} from π; {expected_error:.1e} is {meaning}");
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

/// Returns the sum of the terms from `first` on, in units of [`SUM_UNIT`].
fn sum_of_batch(first: u64, terms: u64) -> i128 {
    let term = |number: u64| (if number.is_multiple_of(2) { 4.0 } else { -4.0 }) / (2 * number + 1) as f64;
    ((first..first + terms).map(term).sum::<f64>() * SUM_UNIT) as i128
}

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Pi>()
}
