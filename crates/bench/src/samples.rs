//! The values of one figure over the runs of its program.
//!
//! It does not know units. Invariant: never empty, all finite, in the order of the runs.

use serde::{Deserialize, Serialize};

/// At least one value, in the order of the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Samples(Vec<f64>);

impl TryFrom<Vec<f64>> for Samples {
    type Error = &'static str;

    fn try_from(values: Vec<f64>) -> Result<Samples, &'static str> {
        Samples::new(values).ok_or("a figure has at least one value, and all are finite")
    }
}

impl From<Samples> for Vec<f64> {
    fn from(samples: Samples) -> Vec<f64> {
        samples.0
    }
}

impl Samples {
    /// Takes the values in the order of the runs; `None` if there is none or one is not finite.
    pub fn new(values: Vec<f64>) -> Option<Samples> {
        let is_usable = !values.is_empty() && values.iter().all(|value| value.is_finite());
        is_usable.then_some(Samples(values))
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.0.len()
    }

    /// Returns the smallest value.
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the middle value, or the mean of the two middle ones if the number of values is even.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[upper] } else { (sorted[upper - 1] + sorted[upper]) / 2.0 }
    }

    /// Returns the largest value.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the ratios to `other`, each within one run: a machine that is slower in some runs affects both. If the
    /// numbers of runs differ, returns the ratio of the medians.
    pub fn ratios_to(&self, other: &Samples) -> Samples {
        let in_pairs = self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect();
        let in_pairs = if self.0.len() == other.0.len() { Samples::new(in_pairs) } else { None };
        in_pairs.unwrap_or_else(|| Samples(vec![self.median() / other.median()]))
    }

    /// Returns the differences to `other`, each within one run; if the numbers of runs differ, that of the medians.
    pub fn less(&self, other: &Samples) -> Samples {
        let in_pairs = self.0.iter().zip(&other.0).map(|(ours, theirs)| ours - theirs).collect();
        let in_pairs = if self.0.len() == other.0.len() { Samples::new(in_pairs) } else { None };
        in_pairs.unwrap_or_else(|| Samples(vec![self.median() - other.median()]))
    }

    /// Returns the values of both, followed by those of `later`.
    pub fn joined(mut self, later: Samples) -> Samples {
        self.0.extend(later.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(Samples::new(vec![3.0, 1.0, 2.0]).unwrap().median(), 2.0);
        assert_eq!(Samples::new(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median(), 2.5);
    }

    #[test]
    fn a_ratio_is_that_of_the_same_runs() {
        let samples = |values: &[f64]| Samples::new(values.to_vec()).unwrap();
        let (slow, fast) = (samples(&[2.0, 4.0, 3.0]), samples(&[1.0, 2.0, 0.5]));
        let ratios = slow.ratios_to(&fast);
        assert_eq!((ratios.min(), ratios.median(), ratios.max()), (2.0, 2.0, 6.0));
        assert_eq!(slow.ratios_to(&samples(&[4.0])), samples(&[0.75]));
        assert_eq!((slow.min(), slow.median(), slow.max()), (2.0, 3.0, 4.0));
    }

    #[test]
    fn no_values_and_values_that_are_no_numbers_are_refused() {
        assert_eq!(Samples::new(vec![]), None);
        assert_eq!(Samples::new(vec![1.0, f64::NAN]), None);
        assert_eq!(Samples::new(vec![f64::INFINITY]), None);
    }
}
