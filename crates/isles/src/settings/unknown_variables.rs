//! Warnings about unknown variables `ISLES_*`, most of which are misspelt.
//!
//! They are no errors, because another version may read them and a program may have its own. The known names are those
//! of the table of settings. Invariant: a run warns once, whatever its number of places, processes and launches.

use crate::machine::guests::GUEST_VARIABLE;
use crate::print::notice;
use crate::settings::table::SETTINGS;
use crate::settings::{FLAGS_VARIABLE, SWEEP_VARIABLE, VERSION_VARIABLE};
use crate::trace::TRACE_VARIABLE;
use isles_transport_shm::processes::JOIN_VARIABLE;
use std::sync::Once;

/// Prefix of all our variables.
const PREFIX: &str = "ISLES_";

/// Prefix of the variables that our own tests read.
const OF_TESTS: &str = "ISLES_TEST_";

/// Warns of each unknown variable that begins with `ISLES_`, with the nearest known name; once per process.
///
/// [`Launch::from_environment`](crate::Launch::from_environment) calls it; processes that launch nothing call it
/// themselves. It is silent in a place, and in a process that `isles launch` or `isles sweep` started, because the
/// parent has already warned.
pub fn warn_of_unknown_variables() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        let of_starters = [JOIN_VARIABLE, FLAGS_VARIABLE, SWEEP_VARIABLE];
        if of_starters.iter().any(|name| std::env::var_os(name).is_some()) {
            return;
        }
        let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
        for line in warnings(set.map(|(name, _)| name.to_string_lossy().into_owned())) {
            notice(line);
        }
    });
}

/// Returns the warnings about unknown variables in `set`.
fn warnings(set: impl Iterator<Item = String>) -> Vec<String> {
    let known = known();
    let is_strange = |name: &String| {
        name.starts_with(PREFIX)
            && !name.starts_with(OF_TESTS)
            && name != TRACE_VARIABLE
            && name != GUEST_VARIABLE
            && name != VERSION_VARIABLE
            && !known.contains(&name.as_str())
    };
    let warning = |name: String| {
        let advice = match nearest(&known, &name) {
            Some(near) => format!("did you mean {near}?"),
            None => "the page Machines of the book lists all variables".to_owned(),
        };
        format!("warning: unknown variable {}; {advice}", name.escape_debug())
    };
    set.filter(is_strange).map(warning).collect()
}

/// Returns the variables that a user may set.
fn known() -> Vec<&'static str> {
    SETTINGS.iter().map(|row| row.variable).collect()
}

/// Returns the known name nearest to `name`, within an edit distance of a third of its length.
///
/// The bound is that of the Rust compiler. `CHIP_` is easily omitted or added, so it does not count.
fn nearest<'a>(known: &[&'a str], name: &str) -> Option<&'a str> {
    fn stem(name: &str) -> &str {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        name.strip_prefix("CHIP_").unwrap_or(name)
    }
    let name = name.to_uppercase();
    let name = stem(&name);
    let most = name.chars().count().max(3) / 3;
    let distances = known.iter().map(|other| (strsim::damerau_levenshtein(stem(other), name), other));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= most).then_some(*nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> String {
        warnings([name.to_owned()].into_iter()).join("\n")
    }

    #[test]
    fn a_misspelt_variable_is_told_with_the_nearest_that_is_known() {
        for (name, near) in [
            ("ISLES_PLACE", "ISLES_PLACES"),
            ("ISLES_Places", "ISLES_PLACES"),
            ("ISLES_MACHIEN", "ISLES_MACHINE"),
            ("ISLES_CASHE", "ISLES_CACHE"),
            ("ISLES_SED", "ISLES_SEED"),
            ("ISLES_CHIP_PROTOCL", "ISLES_CHIP_PROTOCOL"),
            ("ISLES_TRACES", "ISLES_TRACE"),
            ("ISLES_CHIP_STALL_LIMITS", "ISLES_STALL_LIMIT"),
        ] {
            let expected = format!("warning: unknown variable {name}; did you mean {near}?");
            assert_eq!(of(name), expected);
        }
    }

    #[test]
    fn one_that_resembles_none_is_told_without_a_guess() {
        for name in ["ISLES_", "ISLES_THREADS", "ISLES_CHIP_", "ISLES_MY\nOWN"] {
            let line = of(name);
            let expected = "; the page Machines of the book lists all variables";
            assert!(
                line.starts_with("warning: unknown variable ISLES_") && line.ends_with(expected),
                "{line}"
            );
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }

    #[test]
    fn what_is_known_and_what_is_not_ours_is_not_told() {
        let others = ["PATH", "isles_places", "MY_ISLES_PLACES", "ISLES_TEST_SEEDS"].map(str::to_owned);
        assert_eq!(warnings(known().into_iter().map(str::to_owned).chain(others)), [""; 0]);
    }
}
