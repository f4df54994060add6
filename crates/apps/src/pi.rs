//! The application `pi`: π from random points in a square, as the smallest example of the suite.
//!
//! Batches of points are taken from a counter; each has random numbers of its own, so the number of hits depends on the
//! seed only. The result is compared with π: it may be off by a few standard deviations of the number of points.

use crate::frame::{OutputArguments, Outputs, RunFacts, SILENT, Verification, count, duration, write_json};
use crate::registry::{App, Failure};
use clap::{ArgMatches, Args, Command, FromArgMatches, value_parser};
use isles::prelude::*;
use isles::{Claim, Launch, Random};
use serde::Serialize;
use std::cell::RefCell;
use std::f64::consts::PI;
use std::rc::Rc;

/// Points of a batch, and what one of them costs on a modelled core: two numbers, a sum of squares and a comparison.
const BATCH: u64 = 10_000;
const POINT: Cycles = Cycles(40);

/// Most points of a run: hours on many cores.
const POINTS_MAX: u64 = 1_000_000_000_000_000;

/// How many standard deviations off the result may be: one run in 1.7 million is farther.
const DEVIATIONS_MAX: f64 = 5.0;

/// The application `pi`.
pub struct Pi;

/// The arguments of `isles run pi`.
#[derive(Args, Debug)]
struct Arguments {
    /// How many points, 1 to 10^15
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    points: u64,

    /// The seed of the random points
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,

    #[command(flatten)]
    outputs: OutputArguments,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    run: RunFacts,
    points: u64,
    random_seed: u64,
    hits: u64,
    pi: f64,
    error: f64,
    expected_error: f64,
    verification: Verification,
}

impl App for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn about(&self) -> &'static str {
        "π from random points in a square, with the error that is to be expected"
    }

    fn arguments(&self, command: Command) -> Command {
        Arguments::augment_args(command)
    }

    fn silent(&self) -> &'static [(&'static str, &'static str)] {
        &SILENT
    }

    fn reads(&self, _: &ArgMatches) -> Vec<Claim> {
        Vec::new()
    }

    fn run(&self, arguments: &ArgMatches, launch: Launch) -> Result<(), Failure> {
        let Arguments { points, random_seed, outputs } =
            Arguments::from_arg_matches(arguments).map_err(|error| Failure::Usage(error.to_string()))?;
        let outputs = Outputs::check("pi", &outputs, &launch)?;
        let mut facts = RunFacts::of(&launch);
        outputs.tell(&format!("{}; {}", count(points, "point", "points"), facts.where_it_runs()))?;
        let found = Rc::new(RefCell::new((0, 0.0)));
        let place = Rc::clone(&found);
        let (result, report) = launch.run(move || async move {
            *place.borrow_mut() = hits(points, random_seed).await?;
            Ok::<_, isles::Error>(())
        })?;
        result.map_err(Failure::Run)?;
        let (hits, seconds) = found.take();
        facts.complete(seconds, &report);
        let pi = 4.0 * hits as f64 / points as f64;
        let (error, expected_error) = ((pi - PI).abs(), (PI * (4.0 - PI) / points as f64).sqrt());
        let verification = Verification {
            holds: error <= DEVIATIONS_MAX * expected_error,
            text: format!("{error:.1e} from π; {expected_error:.1e} is one standard deviation"),
        };
        let text = format!(
            "pi     {pi:.10}\ntime   {}\nspeed  {:.1} million points a second\nmoved  {}",
            duration(seconds),
            points as f64 / seconds / 1e6,
            facts.moved()
        );
        let document =
            Document { run: facts, points, random_seed, hits, pi, error, expected_error, verification };
        outputs.write(
            &text,
            |out| write_json(out, &document),
            |out| writeln!(out, "points,hits,pi\n{points},{hits},{pi}"),
            Some(&document.verification),
        )
    }
}

/// How many of `points` points lie in the quarter of a circle, and the seconds that took.
async fn hits(points: u64, seed: u64) -> isles::Result<(u64, f64)> {
    let hits = PlaceLocal::new(|| 0_u64).await?;
    let next = Counter::new();
    let started = now();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                while let Some(batch) = next.take_below(points.div_ceil(BATCH)).await? {
                    let size = BATCH.min(points - batch * BATCH);
                    *hits.lock() += hits_of_batch(&mut Random::stream(seed, batch), size);
                    work(Cycles(POINT.0 * size));
                }
            });
        }
    })
    .await?;
    let seconds = (now() - started).as_secs_f64();
    Ok((hits.reduce(|one, other| one + other).await?, seconds))
}

fn hits_of_batch(random: &mut Random, points: u64) -> u64 {
    let is_hit = |_: &u64| random.unit().hypot(random.unit()) < 1.0;
    (0..points).filter(is_hit).count() as u64
}
