//! Marked regions of a program: their time and energy, apart from the rest of the run.

use isles::prelude::*;
use isles::{Launch, Machine, MeasuredRegion, ModelledChip, Result, measured};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Runs a program whose beginning and end take three times as long as its steps, which are divided among the places.
async fn program(start: Cycles, step: Cycles) -> Result<()> {
    everywhere!({
        let team = Team::world();
        work(start);
        team.barrier().await?;
        measured("steps", async {
            for _ in 0..10 {
                work(step);
                team.barrier().await?;
            }
            Ok::<_, isles::Error>(())
        })
        .await?;
        work(start);
    })
    .await
    .map(drop)
}

#[cfg(feature = "chip")]
#[test]
fn on_a_chip_a_region_has_its_own_time_and_energy() {
    const STEP: u64 = 533_000; // a millisecond of the SCC's cores
    let summary = Arc::new(OnceLock::new());
    let chip = ModelledChip::new("scc").unwrap();
    let launch = Launch::from_environment().unwrap().places(4).keeping_summary(&summary);
    let main = || program(Cycles(15 * STEP), Cycles(STEP));
    let (result, report, modelled) = launch.run_on_chip(chip, main).unwrap();
    result.unwrap();
    let [steps] = &report.regions()[..] else { panic!("{:?}", report.regions()) };
    assert_eq!((steps.name.as_str(), steps.entries, steps.places), ("steps", 4, 4));
    let time = steps.time();
    assert!(time > Duration::from_millis(10) && time < Duration::from_micros(10_200), "{time:?}");
    // All cores compute all the time, so energy is divided like time.
    let own = &modelled.energy.as_ref().unwrap().models[0];
    let share = time.as_secs_f64() / (modelled.time.0 as f64 / 1e12);
    assert!((share - 0.25).abs() < 0.01, "{share}");
    let text = summary.get().unwrap();
    let number = |key: &str| -> f64 {
        let (_, of_regions) = text.split_once("\"regions\"").unwrap();
        let (_, value) = of_regions.split_once(&format!("\"{key}\": ")).unwrap();
        value.split([',', '\n', '}']).next().unwrap().trim().parse().unwrap()
    };
    assert_eq!(number("time_ps"), time.as_nanos() as f64 * 1e3);
    let energy = number("energy_j") / own.total().joules();
    assert!((energy - share).abs() < 0.02, "{energy} of the energy in {share} of the time");
}

#[test]
fn on_threads_a_region_has_its_own_time() {
    let launch = Launch::from_environment().unwrap().machine(Machine::Threads).places(3);
    let main = || async {
        measured("before", yield_now()).await;
        program(Cycles(1), Cycles(1)).await
    };
    let (result, report) = launch.run(main).unwrap();
    result.unwrap();
    let regions = report.regions();
    let names: Vec<&str> = regions.iter().map(|region| region.name.as_str()).collect();
    assert_eq!(names, ["before", "steps"], "in the order of the program");
    let lengths: Vec<Duration> = regions.iter().map(MeasuredRegion::time).collect();
    assert!(lengths.iter().all(|length| *length > Duration::ZERO), "{lengths:?}");
    assert_eq!((regions[0].places, regions[1].places, regions[1].entries), (1, 3, 3));
}
