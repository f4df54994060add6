//! Parameters of load balancing: X10's n, w, l, z and m, and survival of deaths.
//!
//! Programs and command lines set them. Invariant: parameters that pass [`Parameters::check`] connect all places.

use super::lifelines::dimensions;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest number of tasks in a batch.
pub const BATCH_MAX: u32 = 1 << 20;

/// Largest number of random steals and of lifelines, and largest base.
pub const STEALS_MAX: u32 = 1024;

/// Parameters of load balancing. The defaults are those of X10's library, except for the batch, whose size is measured.
///
/// The letters are those of X10's `GLBParameters`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Number of tasks that a place processes between two looks for messages (n), 1 to 2^20; `None`: as many as take
    /// 250 times as long as the look. X10's default is 100.
    pub batch: Option<u32>,
    /// Number of places that are asked at random before the lifelines (w), 0 to 1024.
    pub random_steals: u32,
    /// Base of the lifeline graph (l), 2 to 1024.
    pub lifeline_base: u32,
    /// Number of lifelines of a place (z); `None`: the least that connects all places, ceil(log_l P). More are useless.
    pub lifelines: Option<u32>,
    /// Number of places from which a place draws its random victims (m), at least 1.
    pub victims_max: u32,
    /// The seed of the random choices. The result does not depend on it.
    pub seed: u64,
    /// True if the run survives the death of places other than the first, with the exact result.
    pub resilient: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            batch: None,
            random_steals: 4,
            lifeline_base: 4,
            lifelines: None,
            victims_max: 1024,
            seed: 1,
            resilient: false,
        }
    }
}

/// A parameter that is not allowed: its name, its value, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterFault {
    name: &'static str,
    value: u32,
    allowed: String,
}

impl fmt::Display for ParameterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; allowed: {}", self.name, self.value, self.allowed)
    }
}

impl std::error::Error for ParameterFault {}

impl Parameters {
    /// Checks the parameters for a run on `places` places.
    ///
    /// # Errors
    /// The first one that is not allowed.
    pub fn check(&self, places: usize) -> Result<(), ParameterFault> {
        let least_lifelines = dimensions(places, (self.lifeline_base as usize).max(2)) as u32;
        let lifelines = self.lifelines.unwrap_or(least_lifelines);
        for (name, value, least, most) in [
            ("batch", self.batch.unwrap_or(1), 1, BATCH_MAX),
            ("random_steals", self.random_steals, 0, STEALS_MAX),
            ("lifeline_base", self.lifeline_base, 2, STEALS_MAX),
            ("victims_max", self.victims_max, 1, u32::MAX),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ParameterFault { name, value, allowed: format!("{least} to {most}") });
            }
        }
        if !(least_lifelines..=STEALS_MAX).contains(&lifelines) {
            let allowed = format!(
                "{least_lifelines} to {STEALS_MAX} for {places} places and base {}",
                self.lifeline_base
            );
            return Err(ParameterFault { name: "lifelines", value: lifelines, allowed });
        }
        Ok(())
    }

    /// Returns the largest number of lifelines of a place among `members`.
    pub(super) fn lifelines_of(&self, members: usize) -> usize {
        let least = dimensions(members, self.lifeline_base as usize);
        self.lifelines.map_or(least, |lifelines| lifelines as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_cannot_be_are_refused_with_what_is_allowed() {
        let default = Parameters::default;
        for (parameters, places, expected) in [
            (Parameters { batch: Some(0), ..default() }, 1, "batch is 0; allowed: 1 to 1048576"),
            (Parameters { random_steals: 2000, ..default() }, 1, "random_steals is 2000; allowed: 0 to 1024"),
            (Parameters { lifeline_base: 1, ..default() }, 9, "lifeline_base is 1; allowed: 2 to 1024"),
            (Parameters { victims_max: 0, ..default() }, 1, "victims_max is 0; allowed: 1 to 4294967295"),
            (
                Parameters { lifelines: Some(2), ..default() },
                48,
                "lifelines is 2; allowed: 3 to 1024 for 48 places and base 4",
            ),
        ] {
            assert_eq!(parameters.check(places).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn the_defaults_and_just_enough_lifelines_are_allowed() {
        for places in [1, 2, 5, 48, 256, 32_768] {
            assert_eq!(Parameters::default().check(places), Ok(()));
        }
        let parameters = Parameters { lifelines: Some(3), ..Parameters::default() };
        assert_eq!((parameters.check(48), parameters.check(2)), (Ok(()), Ok(())));
        assert_eq!((parameters.lifelines_of(2), Parameters::default().lifelines_of(48)), (3, 3));
    }
}
