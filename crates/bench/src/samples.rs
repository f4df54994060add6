//! The values of one figure over the runs of its program.
//!
//! Its own file because every ratio and verdict rests on this one notion of the middle. It does not know
//! units. The invariant: never empty, always sorted, all finite.

use serde::Serialize;

/// At least one value, in ascending order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Takes the values in any order; `None` if there is none or one is not finite.
    pub fn new(mut values: Vec<f64>) -> Option<Samples> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Samples(values))
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The value in the middle; the mean of the two in the middle if their number is even.
    pub fn median(&self) -> f64 {
        let upper = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[upper] } else { (self.0[upper - 1] + self.0[upper]) / 2.0 }
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
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
    fn no_values_and_values_that_are_no_numbers_are_refused() {
        assert_eq!(Samples::new(vec![]), None);
        assert_eq!(Samples::new(vec![1.0, f64::NAN]), None);
        assert_eq!(Samples::new(vec![f64::INFINITY]), None);
    }
}
