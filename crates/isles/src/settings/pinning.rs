//! `ISLES_PIN`: the processors of the host to which places are pinned.
//!
//! This module reads and checks the setting; the machines apply [`Pinning`] when they start the places. Invariant: a
//! checked list has a distinct usable processor for each place.

use crate::settings::{ConfigError, Setting};
use isles_transport::{CoreList, CoreListError};
use isles_transport_shm::{PROCESSORS_MAX, Pinning, processors};

/// Allowed values of `ISLES_PIN`, for error texts.
const ALLOWED: &str = "auto, no, or processors and ranges of processors separated by commas, such as \
     0,2,4-7";

/// Source of a pinning that the program or the default sets, for error texts.
pub(crate) const DEFAULT_PINNING: &str = "the pinning";

/// Returns the default pinning.
pub(crate) fn default_pinning() -> Setting<Pinning> {
    Setting::new(DEFAULT_PINNING, Pinning::default())
}

/// Reads a setting.
pub(crate) fn read(source: &str, value: &str) -> Result<Setting<Pinning>, ConfigError> {
    let pinning = match value {
        "auto" => Pinning::Auto,
        "no" => Pinning::No,
        _ => {
            let list: CoreList =
                value.parse().map_err(|fault| ConfigError::new(source, value, allowed_processors(fault)))?;
            if let Some(strange) = list.missing(PROCESSORS_MAX as u32) {
                return Err(ConfigError::new(source, value, usable(&processors(), strange)));
            }
            Pinning::Processors(list.cores().map(|core| core as usize).collect())
        }
    };
    Ok(Setting::new(source, pinning))
}

/// Checks that `places` places can have the requested processors.
pub(crate) fn check(pinning: &Setting<Pinning>, places: u32) -> Result<(), ConfigError> {
    check_pinning(&processors(), pinning, places)
}

fn check_pinning(processors: &[usize], pinning: &Setting<Pinning>, places: u32) -> Result<(), ConfigError> {
    let Setting { value, source } = pinning;
    let Pinning::Processors(list) = value else { return Ok(()) };
    let refuse = |allowed| Err(ConfigError::new(source, &pinning_list(list), allowed));
    if let Some(strange) = list.iter().find(|processor| !processors.contains(processor)) {
        return refuse(usable(processors, *strange as u32));
    }
    if list.len() < places as usize {
        return refuse(format!("one processor for each of {places} places (this list has {})", list.len()));
    }
    Ok(())
}

fn allowed_processors(fault: CoreListError) -> String {
    match fault {
        CoreListError::Duplicate { core } => format!("each processor once ({core} is repeated)"),
        CoreListError::Unreadable => ALLOWED.to_owned(),
    }
}

fn usable(processors: &[usize], strange: u32) -> String {
    format!("processors that this program may use: {} ({strange} is not one)", pinning_list(processors))
}

/// Formats processors as a list for messages.
fn pinning_list(processors: &[usize]) -> String {
    let ranges = processors.iter().map(|processor| *processor as u32..=*processor as u32);
    CoreList::of(ranges).map_or_else(|_| "no processor".to_owned(), |list| list.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(value: &str, places: u32) -> String {
        let checked =
            read("ISLES_PIN", value).and_then(|pinning| check_pinning(&[0, 1, 4], &pinning, places));
        checked.expect_err(value).allowed
    }

    #[test]
    fn a_list_is_read_in_its_order() {
        let pinning = |value| read("--pin", value).unwrap().value;
        assert_eq!(pinning("auto"), Pinning::Auto);
        assert_eq!(pinning("no"), Pinning::No);
        assert_eq!(pinning("9,0,2-4"), Pinning::Processors(vec![9, 0, 2, 3, 4]));
        assert_eq!(pinning("1"), Pinning::Processors(vec![1]));
    }

    #[test]
    fn a_list_has_a_core_of_its_own_for_each_place_that_the_program_may_use() {
        for value in ["yes", "0-", "-1", "3-1", "0,,1"] {
            assert_eq!(refusal(value, 1), ALLOWED, "{value}");
        }
        assert_eq!(refusal("0,1,0", 2), "each processor once (0 is repeated)");
        assert_eq!(refusal("0-4", 2), "processors that this program may use: 0-1,4 (2 is not one)");
        assert_eq!(refusal("0,1", 3), "one processor for each of 3 places (this list has 2)");
        assert!(refusal("0-4294967295", 1).ends_with("(4294967295 is not one)"));
        let pinning = read("ISLES_PIN", "4,0,1").unwrap();
        assert_eq!(check_pinning(&[0, 1, 4], &pinning, 2), Ok(()), "more than places");
    }
}
