//! The malleable pipeline of the SCC: 18 stages from two pairs of cameras to tracked objects, on 1 to 18 cores.
//!
//! The paper prints the speed-up with 18 cores, and the numbers of cores at which the efficiency jumps, but not the
//! costs of the stages (004:1352). [`COSTS`] are costs that yield these three, found by a search over pipelines whose
//! two pairs cost the same; so the speed-up with 18 cores and the jumps are calibrated. The effects of the model and
//! the runtime are predicted: the distance of a run from the speed-up that its costs allow (004:1348), the bytes that a
//! fusion moves, and the time for which a resize delays results. Each row is a run of `isles run pipeline
//! --stage-costs`; a period is the time between two results in the stable state, like the paper's values (004:1356).

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{document, seconds};
use isles_app::{Failure, runs};
use serde_json::Value;

/// The speed-ups of the paper's figure 5.
pub(crate) const PIPELINE: Experiment = Experiment {
    name: "pipeline",
    about: "a pipeline of 18 stages on 1 to 18 cores: how many times faster than on one, and what a resize costs, \
            at 533/800/800",
    source: "Jahn et al., Malleable Software Pipelines for Efficient Many-core System Utilization, MARC 2012",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Cost of each stage, in units of [`UNIT`]: two captures, the six stages of each of two pairs, and four stages behind
/// them. Their sum is 9.7 times the largest.
const COSTS: [u64; 18] = [29, 20, 53, 17, 31, 2, 34, 39, 53, 17, 31, 2, 34, 39, 60, 58, 31, 32];

/// Cycles of a unit. This is a choice of ours: the costliest stage takes a ninth of a second, as for a robot that
/// handles a frame in a second on one core.
const UNIT: u64 = 1_000_000;

/// Number of frames of a run, enough for the stable state.
const FRAMES: u32 = 80;

/// Maximum number of bytes of the state of a stage.
const STATE_BYTES: f64 = 38_000.0;

const SPEED_UP: Family = Family {
    deck: "",
    unit: "",
    band: Band::Within(2.0),
    basis: Basis::Calibrated,
    source: "004:1356",
    reading: "",
};
const UNPUBLISHED: Family =
    Family { band: Band::Unpublished, basis: Basis::Predicted, source: "", ..SPEED_UP };
const SHAPE: Family = Family { band: Band::AtMost, ..SPEED_UP };

fn rows() -> Result<Vec<Row>, Failure> {
    let all = COSTS.len();
    let periods = runs::all(all, "runs", |number| period_of(number + 1))?;
    let speed_ups: Vec<f64> = periods.iter().map(|period| periods[0] / period).collect();
    let efficiency = |cores: usize| speed_ups[cores - 1] / cores as f64;
    let mut rows = Vec::new();
    for (cores, speed_up) in (1..).zip(&speed_ups) {
        let title = Title::from("speed-up").over(Quantity::cores(cores));
        rows.push(match cores {
            18 => SPEED_UP.row(title, 9.7, *speed_up),
            _ => UNPUBLISHED.row(title, f64::NAN, *speed_up),
        });
    }
    let falls = SHAPE.reading("≤ 1: “The efficiency drops when increasing the number of cores”");
    let rises = SHAPE.reading("≤ 1: “increasing the number of cores from 9 to 10 or from 11 to 12”");
    // "Positive jumps in efficiency when increasing the number of cores from 9 to 10 or from 11 to 12."
    for cores in 1..all {
        let (jumps, ratio) = (cores == 9 || cores == 11, efficiency(cores + 1) / efficiency(cores));
        let (over, under) = if jumps { (cores, cores + 1) } else { (cores + 1, cores) };
        let title = format!("efficiency, {over} cores / {under}");
        rows.push(if jumps { rises } else { falls }.row(title, 1.0, if jumps { 1.0 / ratio } else { ratio }));
    }
    let theoretical = speed_ups_of_costs();
    let least =
        speed_ups.iter().zip(&theoretical).map(|(ours, theory)| ours / theory).fold(f64::MAX, f64::min);
    let of_theory = Family { band: Band::Within(5.0), basis: Basis::Predicted, ..SPEED_UP }.at("004:1348");
    let of_theory = of_theory
        .reading("1: “theoretical performance model and the performance of the real implementation”");
    rows.push(of_theory.row("least part of the theoretical speed-up, 1 to 18 cores", 1.0, least));
    let fused = fused()?;
    let moved = Family { unit: "bytes", band: Band::Within(1.0), ..of_theory }.at("004:1358");
    rows.push(moved.row(
        "state that moves as 18 groups fuse, one of two states",
        STATE_BYTES,
        fused.moved_bytes,
    ));
    let title = "pause of that, in times of a frame on one core";
    rows.push(UNPUBLISHED.row(title, f64::NAN, fused.pause / periods[0]));
    Ok(rows)
}

/// Returns the speed-ups that the costs allow with 1, 2, … cores: the sum of the costs divided by the slowest group of
/// the best partition.
fn speed_ups_of_costs() -> Vec<f64> {
    let total: u64 = COSTS.iter().sum();
    let fits = |cores: usize, most: u64| {
        let (mut groups, mut sum) = (1, 0);
        for cost in COSTS {
            if sum + cost > most {
                (groups, sum) = (groups + 1, 0);
            }
            sum += cost;
        }
        groups <= cores
    };
    let greatest = COSTS.into_iter().max().expect("there are stages");
    let slowest =
        |cores: usize| (greatest..=total).find(|most| fits(cores, *most)).expect("one group fits in all");
    (1..=COSTS.len()).map(|cores| total as f64 / slowest(cores) as f64).collect()
}

/// Returns the seconds between two results in the stable state on `cores` cores, measured over the second half of the
/// frames.
fn period_of(cores: usize) -> Result<f64, Failure> {
    let seconds_of = |frames| seconds("pipeline", &run_of(cores, frames, "")?);
    Ok((seconds_of(FRAMES)? - seconds_of(FRAMES / 2)?) / f64::from(FRAMES / 2))
}

/// Runs the pipeline on `cores` cores and returns the JSON report.
fn run_of(cores: usize, frames: u32, more: &str) -> Result<Value, Failure> {
    let costs: Vec<String> = COSTS.iter().map(|cost| (cost * UNIT).to_string()).collect();
    let costs = costs.join(",");
    let words = format!("--machine chip:scc --places {cores} --frames {frames} --stage-costs {costs} {more}");
    document("pipeline", words.trim_end())
}

/// Cost of a change of groups.
struct ResizeCost {
    moved_bytes: f64,
    /// Seconds between the results before and after the change.
    pause: f64,
}

/// Fuses all stages onto one core, in the middle of a run on 18.
fn fused() -> Result<ResizeCost, Failure> {
    let document = run_of(COSTS.len(), FRAMES, &format!("--resize 1@{}", FRAMES / 2))?;
    let report = &document["pipeline"];
    let pause = &report["resizes"][0]["pause"];
    let pause = pause["secs"].as_f64().zip(pause["nanos"].as_f64()).map(|(whole, rest)| whole + rest / 1e9);
    let missing = || Failure::Ended("a run of pipeline has no resize".to_owned());
    let moved_bytes = report["moved_bytes"].as_f64().ok_or_else(missing)?;
    Ok(ResizeCost { moved_bytes, pause: pause.ok_or_else(missing)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costs_allow_the_published_speed_up_and_the_efficiency_jumps_where_it_does() {
        let speed_ups = speed_ups_of_costs();
        assert!((speed_ups[17] - 9.7).abs() < 1e-9);
        let efficiencies: Vec<f64> =
            (1..).zip(&speed_ups).map(|(cores, speed_up)| speed_up / f64::from(cores)).collect();
        let jumps: Vec<usize> =
            (1..18).filter(|cores| efficiencies[*cores] > efficiencies[cores - 1]).collect();
        assert_eq!(jumps, [9, 11], "{efficiencies:?}");
    }
}
