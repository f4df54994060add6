//! Balancing of applications whose tasks create tasks: the flags of `isles::glb`, and its report.
//!
//! Only these applications use it. Invariant: an absent flag means the library's default.

use super::{PlaceWork, WorkDone};
use crate::Failure;
use clap::{Args, value_parser};
use isles::glb::{BATCH_MAX, Parameters, RunBalance, STEALS_MAX};

/// The flags of `isles::glb`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Balance of tasks over places")]
pub struct BalanceArguments {
    /// Tasks between two polls for messages, 1 to 1048576 [default: as many as take 250 times as long as a poll]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(BATCH_MAX)))]
    batch: Option<u32>,

    /// Random steal attempts before the lifelines, 0 to 1024
    #[arg(long, value_name = "W", default_value_t = Parameters::default().random_steals,
          value_parser = value_parser!(u32).range(0..=i64::from(STEALS_MAX)))]
    random_steals: u32,

    /// Base of the lifeline graph, 2 to 1024
    #[arg(long, value_name = "L", default_value_t = Parameters::default().lifeline_base,
          value_parser = value_parser!(u32).range(2..=i64::from(STEALS_MAX)))]
    lifeline_base: u32,

    /// Lifelines of a place [default: as few as connect all places]
    #[arg(long, value_name = "Z", value_parser = value_parser!(u32).range(0..=i64::from(STEALS_MAX)))]
    lifelines: Option<u32>,

    /// Number of places among which a place chooses its random victims, 1 or more
    #[arg(long, value_name = "M", default_value_t = Parameters::default().victims_max,
          value_parser = value_parser!(u32).range(1..))]
    victims_max: u32,

    /// Seed of the random steals; the answer does not depend on it
    #[arg(long, value_name = "N", default_value_t = Parameters::default().seed)]
    steal_seed: u64,

    /// Survive the death of places other than the first, with the exact answer
    #[arg(long)]
    resilient: bool,
}

impl BalanceArguments {
    /// Returns the parameters for a run on `places` places.
    ///
    /// # Errors
    /// [`Failure::Usage`]: there are too few lifelines.
    pub fn parameters(&self, places: u32) -> Result<Parameters, Failure> {
        let parameters = Parameters {
            batch: self.batch,
            random_steals: self.random_steals,
            lifeline_base: self.lifeline_base,
            lifelines: self.lifelines,
            victims_max: self.victims_max,
            seed: self.steal_seed,
            resilient: self.resilient,
        };
        let refused = |fault| Failure::Usage(format!("--{fault}"));
        parameters.check(places as usize).map_err(refused)?;
        Ok(parameters)
    }
}

/// Returns the work of the places for the frame's report; the shares only if it `reports_shares`.
pub(super) fn work_done(balance: RunBalance, reports_shares: bool) -> WorkDone {
    let place = |place: &Option<isles::glb::PlaceBalance>| match place {
        Some(place) => PlaceWork { units: place.tasks, seconds: place.busy.as_secs_f64() },
        None => PlaceWork::default(),
    };
    let shares = balance.places.iter().map(place).filter(|_| reports_shares).collect();
    WorkDone { seconds: balance.elapsed.as_secs_f64(), shares, balance: Some(balance) }
}

/// Returns the text about the balance of tasks: a line for all, and one for each place.
pub(super) fn steals_text(balance: &RunBalance) -> String {
    let recovered = match balance.recovered {
        0 => String::new(),
        places => {
            format!("; the tasks of {} were done again", super::count(places, "dead place", "dead places"))
        }
    };
    format!("idle   {:.1} % of the places' time{recovered}\n\n{balance}", 100.0 * balance.idle())
        .trim_end()
        .to_owned()
}
