//! Constants of a chip that a sweep varies: `--set KEY=LIST`, with numbers, values with units, and ranges `1..8`.
//!
//! All combinations of several keys are tried. It knows no chip: the run refuses a value that a constant cannot have.
//! Invariant: empty lists and more than [`SETTINGS_MAX`] combinations are refused.

use isles_app::Failure;
use isles_app::runs::refusal;

/// Largest number of combinations that are tried.
const SETTINGS_MAX: usize = 10_000;

/// One value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub key: String,
    pub value: String,
}

/// Returns all combinations of `--set`, each in the order of the keys; a single empty one if it is absent.
///
/// # Errors
/// A key has no value, or occurs twice; a range is empty; a text names no key.
pub fn combinations(source: &str, said: Option<&str>) -> Result<Vec<Vec<Constant>>, Failure> {
    let mut all: Vec<Vec<Constant>> = vec![Vec::new()];
    let said = said.unwrap_or_default();
    for change in said.split(';').map(str::trim).filter(|change| !change.is_empty()) {
        let refused = |allowed: &str| refusal(source, change, allowed);
        let (key, list) =
            change.split_once('=').ok_or_else(|| refused("KEY=VALUE, KEY=1,2,4 or KEY=1..8"))?;
        if all[0].iter().any(|before| before.key == key.trim()) {
            return Err(refused(&format!("each key once; {} is repeated", key.trim())));
        }
        let values = values(list.trim()).map_err(|allowed| refused(&allowed))?;
        if all.len() * values.len() > SETTINGS_MAX {
            return Err(refused(&format!("at most {SETTINGS_MAX} combinations of all values")));
        }
        let with = |before: &Vec<Constant>| {
            let before = before.clone();
            let one = |value: &String| Constant { key: key.trim().to_owned(), value: value.clone() };
            values.iter().map(move |value| [&before[..], &[one(value)]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    if all[0].is_empty() && !said.is_empty() {
        return Err(refusal(source, said, "KEY=VALUE, KEY=1,2,4 or KEY=1..8"));
    }
    Ok(all)
}

/// Returns a combination as the argument of a run.
pub fn to_argument(constants: &[Constant]) -> String {
    let one = |constant: &Constant| format!("{}={}", constant.key, constant.value);
    constants.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Returns the flags that repeat the combination.
pub fn flags(constants: &[Constant]) -> String {
    constants.iter().map(|Constant { key, value }| format!(" --set '{key}={value}'")).collect()
}

/// Returns the values of a list, or the allowed form.
fn values(list: &str) -> Result<Vec<String>, String> {
    if list.starts_with('[') {
        return Ok(vec![list.to_owned()]);
    }
    let mut values = Vec::new();
    for part in list.split(',').map(str::trim) {
        match part.split_once("..") {
            Some((first, last)) => values.extend(range(first.trim(), last.trim())?),
            None if part.is_empty() => {
                return Err("values separated by commas, none of them empty".to_owned());
            }
            None => values.push(part.to_owned()),
        }
    }
    Ok(values)
}

/// Returns the integers of a range, each with the unit after its end.
fn range(first: &str, last: &str) -> Result<Vec<String>, String> {
    let allowed = "a range of whole numbers from low to high, such as 1..8 or 1..8 ns";
    let digits = last.find(|c: char| !c.is_ascii_digit()).unwrap_or(last.len());
    let (last, unit) = last.split_at(digits);
    let ends = first.parse::<u64>().ok().zip(last.parse::<u64>().ok());
    let (first, last) = ends.filter(|(first, last)| first <= last).ok_or(allowed)?;
    if last - first >= SETTINGS_MAX as u64 {
        return Err(format!("a range of at most {SETTINGS_MAX} numbers"));
    }
    Ok((first..=last).map(|number| format!("{number}{unit}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(said: &str) -> Vec<String> {
        combinations("--set", Some(said)).unwrap().iter().map(|constants| to_argument(constants)).collect()
    }

    #[test]
    fn lists_and_ranges_are_tried_with_each_other() {
        assert_eq!(tried("a=1..3"), ["a=1", "a=2", "a=3"]);
        assert_eq!(
            tried("a=1,2..3 ns; b = x y,z"),
            ["a=1; b=x y", "a=1; b=z", "a=2 ns; b=x y", "a=2 ns; b=z", "a=3 ns; b=x y", "a=3 ns; b=z"]
        );
        assert_eq!(tried("topology.tiles=[8, 8]"), ["topology.tiles=[8, 8]"]);
        assert_eq!(combinations("--set", None).unwrap(), [vec![]]);
    }

    #[test]
    fn what_is_empty_or_too_much_is_refused() {
        let refused = |said: &str| combinations("--set", Some(said)).unwrap_err().to_string();
        let range = "allowed: a range of whole numbers from low to high, such as 1..8 or 1..8 ns";
        assert_eq!(refused("a=8..1"), format!("--set is \"a=8..1\"; {range}"));
        assert_eq!(refused("a=x..y"), format!("--set is \"a=x..y\"; {range}"));
        assert_eq!(refused(";;;"), "--set is \";;;\"; allowed: KEY=VALUE, KEY=1,2,4 or KEY=1..8");
        assert_eq!(refused("a=1; a=2"), "--set is \"a=2\"; allowed: each key once; a is repeated");
        assert_eq!(refused("a"), "--set is \"a\"; allowed: KEY=VALUE, KEY=1,2,4 or KEY=1..8");
        assert_eq!(
            refused("a=1,,2"),
            "--set is \"a=1,,2\"; allowed: values separated by commas, none of them empty"
        );
        assert!(refused("a=1..100000").contains("at most 10000 numbers"));
        assert!(refused("a=1..200;b=1..200").contains("at most 10000 combinations"));
    }
}
