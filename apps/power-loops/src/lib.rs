//! The application `power-loops`: four loops at mixed clocks of a chip's power domains, for fitting a power model.
//!
//! It is the program of P. Cichowski, J. Keller and C. Kessler, "Modelling Power Consumption of the Intel SCC", 6th
//! MARC symposium (2012), paper 9 (004:1861-1882): one core of each power domain, its master, sets the clock of the
//! domain; a coordinator numbers the masters, and the first `--high-domains` of them use the high clock; then all
//! cores loop for a while. The summary of the run has the power. A real machine keeps its clocks. Invariant: the sum
//! of a pass is the same at every place, so it can be checked.

#![forbid(unsafe_code)]

mod program;

use clap::{Args, value_parser};
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use program::{LoopProgram, pass_sum, pass_work};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Dividers of the SCC's clock of 1,600 MHz.
const DIVIDERS: std::ops::RangeInclusive<i64> = 2..=16;

/// Largest number of power domains of a chip.
const DOMAINS_MAX: i64 = 256;

/// The arguments of `isles run power-loops`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct PowerLoops {
    /// Number of power domains that take the high clock; a larger number means all
    #[arg(long, value_name = "K", default_value = "6", value_parser = value_parser!(u32).range(0..=DOMAINS_MAX))]
    high_domains: u32,

    /// Clock divider of these domains, 2 to 16
    #[arg(long, value_name = "D", default_value = "2", value_parser = value_parser!(u32).range(DIVIDERS))]
    high_divider: u32,

    /// Clock divider of the others, 2 to 16
    #[arg(long, value_name = "D", default_value = "16", value_parser = value_parser!(u32).range(DIVIDERS))]
    low_divider: u32,

    /// Loop to run
    #[arg(long, value_enum, default_value_t)]
    program: LoopProgram,

    /// Duration in milliseconds of modelled time, 1 to 1000000
    #[arg(long, value_name = "N", default_value = "1000", value_parser = value_parser!(u64).range(1..=1_000_000))]
    milliseconds: u64,
}

/// Work of a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PlaceLoops {
    /// Number of its domain among the masters, from 1, if it is a master.
    master: Option<u32>,
    /// Clock divider in the loop; `None` if the clock cannot be divided.
    divider: Option<u32>,
    passes: u64,
    /// Sum of the last pass.
    sum: i64,
}

/// Result of a run.
#[derive(Serialize)]
pub struct LoopsFound {
    /// Loops of each place.
    loops: Vec<PlaceLoops>,
    #[serde(skip)]
    program: LoopProgram,
}

impl Application for PowerLoops {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The power of a run is in its --summary; `isles power fit` fits a model to powers.",
        ..ApplicationInfo::new("power-loops", env!("CARGO_PKG_DESCRIPTION"), "loops")
    };
    type Input = PowerLoops;
    type Found = LoopsFound;

    fn open(&self, _: u32) -> Result<PowerLoops, Failure> {
        Ok(self.clone())
    }

    fn heading(&self, _: &PowerLoops) -> String {
        let PowerLoops { high_domains, high_divider, low_divider, .. } = self;
        format!(
            "{} at a divider of {high_divider}, the others of {low_divider}",
            count(u64::from(*high_domains), "domain", "domains")
        )
    }

    async fn compute(
        input: PowerLoops,
        distributor: WorkDistributor,
    ) -> isles::Result<(LoopsFound, WorkDone)> {
        let PowerLoops { high_domains, high_divider, low_divider, program, milliseconds } = input;
        let meter = distributor.meter(Some(place_count() as u64)).await?;
        let done = PlaceLocal::new(|| None::<PlaceLoops>).await?;
        let started = now();
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let begun = Instant::now();
                    let master = set_clocks(high_domains, [high_divider, low_divider]).await?;
                    let (sum, end) =
                        (pass_sum(program, here().index()), now() + Duration::from_millis(milliseconds));
                    let mut passes = 0;
                    while now() < end {
                        work(pass_work(program));
                        passes += 1;
                        isles::yield_now().await;
                    }
                    let divider = isles::clocks::divider();
                    meter.add_done(begun);
                    *done.lock() = Some(PlaceLoops { master, divider, passes, sum });
                });
            }
        })
        .await?;
        let work_done = meter.done(started).await?;
        let mut found = Vec::new();
        for place in places() {
            found.extend(at!(place, done.lock().clone()).await?);
        }
        Ok((LoopsFound { loops: found, program }, work_done))
    }
}

impl RunResult for PowerLoops {
    fn text(&self, LoopsFound { loops, .. }: &LoopsFound) -> String {
        let masters = loops.iter().filter(|place| place.master.is_some()).count();
        let passes: u64 = loops.iter().map(|place| place.passes).sum();
        format!("{} of power domains, {passes} passes", count(masters as u64, "master", "masters"))
    }

    fn speed(&self, found: &LoopsFound, seconds: f64) -> String {
        let passes: u64 = found.loops.iter().map(|place| place.passes).sum();
        format!("{:.1} passes a second", passes as f64 / seconds)
    }

    fn verify(&self, found: &LoopsFound, _: bool) -> Result<Option<Verification>, Failure> {
        let expected = program::sum_by_formula(found.program);
        let wrong = found.loops.iter().filter(|place| place.sum != expected).count();
        let masters = found.loops.iter().filter_map(|place| place.master);
        let are_numbered = masters.clone().max().unwrap_or_default() as usize == masters.count();
        let text = format!("{wrong} of {} sums differ from their formulas", found.loops.len());
        Ok(Some(Verification { holds: wrong == 0 && are_numbered, text }))
    }

    fn write_csv(&self, found: &LoopsFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "place,master,divider,passes,sum")?;
        let text = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        for (place, PlaceLoops { master, divider, passes, sum }) in found.loops.iter().enumerate() {
            writeln!(out, "{place},{},{},{passes},{sum}", text(*master), text(*divider))?;
        }
        Ok(())
    }
}

/// Step 1: the masters of the domains report to the coordinator, which is the first place, receive their numbers, and
/// set the clocks of their domains; all continue once the clocks are set. Returns the number of this place if it is a
/// master.
async fn set_clocks(high_domains: u32, [high, low]: [u32; 2]) -> isles::Result<Option<u32>> {
    let refused = |error: isles::clocks::ClockError| isles::Error::message(error.to_string());
    let team = Team::world();
    // Only the first place of a supply gets an answer to its request and becomes its master.
    let is_master = isles::clocks::set_supply_divider(low).map_err(refused)?.is_some();
    let masters = team.gather_slice(0, &[u32::from(is_master)]).await?;
    // The coordinator numbers the masters from 1, and gives all others 0.
    let numbers = masters.map(|masters| {
        let number = |last: &mut u32, is_master: &u32| {
            *last += is_master;
            Some(*last * is_master)
        };
        masters.iter().scan(0, number).collect::<Vec<u32>>()
    });
    let own = team.scatter_slice(0, numbers.as_deref()).await?;
    let master = own.first().copied().filter(|number| *number > 0);
    isles::clocks::wait_for_supply();
    if master.is_some_and(|number| number <= high_domains) {
        isles::clocks::set_supply_divider(high).map_err(refused)?;
        isles::clocks::wait_for_supply();
    }
    team.barrier().await?;
    Ok(master)
}

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<PowerLoops>()
}
