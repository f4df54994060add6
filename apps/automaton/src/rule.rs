//! Rules like that of Life: birth and survival by the number of living neighbours.
//!
//! They are read as Golly reads them: `B3/S23`, `b3s23`, `S23/B3`, `23/3` (survivals first), and `Life`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Allowed forms of a rule, for messages.
pub const ALLOWED: &str = "B and S with digits from 0 to 8, such as B3/S23, or 23/3";

/// A rule of the automaton: for each number of living neighbours, whether a cell is born and whether one survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Rule {
    births: [bool; 9],
    survivals: [bool; 9],
}

impl Rule {
    /// Conway's Life.
    pub const LIFE: Rule = Rule {
        births: [false, false, false, true, false, false, false, false, false],
        survivals: [false, false, true, true, false, false, false, false, false],
    };

    /// Returns the state of a cell in the next generation.
    pub fn next(&self, lives: bool, neighbors: usize) -> bool {
        if lives { self.survivals[neighbors] } else { self.births[neighbors] }
    }

    /// Returns the sums of a cell and its neighbours for which the next state may be living, each with the next state
    /// of a dead and of a living cell, 0 or 1.
    pub fn by_sum(&self) -> Vec<(u8, u8, u8)> {
        let all = (0..=9_usize).map(|sum| {
            let birth = self.births.get(sum).is_some_and(|birth| *birth);
            let survival = sum > 0 && self.survivals[sum - 1];
            (sum as u8, u8::from(birth), u8::from(survival))
        });
        all.filter(|(_, birth, survival)| birth + survival > 0).collect()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |counts: &[bool; 9]| -> String {
            (0..=8).filter(|count| counts[*count]).map(|count| count.to_string()).collect()
        };
        write!(f, "B{}/S{}", digits(&self.births), digits(&self.survivals))
    }
}

/// The error of a text that is not a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRule;

impl fmt::Display for NoRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allowed: {ALLOWED}")
    }
}

impl std::error::Error for NoRule {}

/// Parses numbers of neighbours, written as one digit each.
fn counts(digits: &str) -> Result<[bool; 9], NoRule> {
    let mut counts = [false; 9];
    for digit in digits.chars() {
        let count = digit.to_digit(9).ok_or(NoRule)?;
        counts[count as usize] = true;
    }
    Ok(counts)
}

impl FromStr for Rule {
    type Err = NoRule;

    fn from_str(text: &str) -> Result<Rule, NoRule> {
        let text = text.trim().to_ascii_lowercase();
        if text == "life" {
            return Ok(Rule::LIFE);
        }
        let (one, other) = match text.split_once('/') {
            Some(both) => both,
            // Without a slash, the second letter separates the two lists.
            None => {
                text.split_at(text.char_indices().skip(1).find(|(_, c)| "bs".contains(*c)).ok_or(NoRule)?.0)
            }
        };
        let (births, survivals) = match (one.strip_prefix('b'), other.strip_prefix('s')) {
            (Some(births), Some(survivals)) => (births, survivals),
            (None, None) => match (one.strip_prefix('s'), other.strip_prefix('b')) {
                (Some(survivals), Some(births)) => (births, survivals),
                (None, None) if text.len() > 1 => (other, one),
                _ => return Err(NoRule),
            },
            _ => return Err(NoRule),
        };
        Ok(Rule { births: counts(births)?, survivals: counts(survivals)? })
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> String {
        rule.to_string()
    }
}

impl TryFrom<String> for Rule {
    type Error = NoRule;

    fn try_from(text: String) -> Result<Rule, NoRule> {
        text.parse()
    }
}
