//! Readers of the settings that no other module owns: machine, places, reports, silence, seed.
//!
//! Each gets a text and its source, and returns the value or an error with what is allowed. They know neither variables
//! nor flags. Invariant: any text yields a value or an error of one line.

use super::{ConfigError, MachineName, Report, Setting};
use crate::machine::{Machine, driver};
use std::time::Duration;

/// Reads a machine's name from `source`. It does not look for the chip of a chip's name.
pub(super) fn machine(source: &str, value: &str) -> Result<Setting<MachineName>, ConfigError> {
    Ok(Setting::new(source, driver::read_name(source, value)?))
}

/// Reads a number of places. The limit of a chip is checked later, when the chip is known. All other machines have the
/// same limit, so any of them serves if none is set.
pub(super) fn places(
    source: &str,
    value: &str,
    machine: Option<&MachineName>,
) -> Result<Setting<u32>, ConfigError> {
    let places = |number| Setting::new(source, number);
    match machine {
        Some(MachineName::Chip(name)) => value.parse().map(places).map_err(|_| {
            ConfigError::new(source, value, format!("a whole number from 1 to the cores of {name}"))
        }),
        Some(MachineName::Known(machine)) => check_places(source, value, *machine).map(places),
        None => check_places(source, value, Machine::Threads).map(places),
    }
}

/// Parses a number of places and checks that `machine` can have that many.
///
/// # Errors
/// `value` is not a number, or not between 1 and the limit.
pub(super) fn check_places(source: &str, value: &str, machine: Machine) -> Result<u32, ConfigError> {
    let (most, why) = machine.driver().places_max();
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| ConfigError::new(source, value, format!("a whole number from 1 to {most}{why}")))
}

/// Reads a list of reports.
pub(super) fn reports(source: &str, value: &str) -> Result<Vec<Report>, ConfigError> {
    let one = |name: &str| {
        let found = Report::ALL.into_iter().find(|(known, _)| *known == name);
        let allowed = || format!("{}, or several separated by commas", Report::names(|_| true));
        let refused = if name.is_empty() { value } else { name };
        found.map(|(_, report)| report).ok_or_else(|| ConfigError::new(source, refused, allowed()))
    };
    value.split(',').map(one).collect()
}

/// Reads a time without progress, in seconds; `None` means never.
pub(super) fn silence(source: &str, value: &str) -> Result<Option<Duration>, ConfigError> {
    let seconds: f64 = value
        .parse()
        .ok()
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .ok_or_else(|| ConfigError::new(source, value, "seconds of silence, from 0 (never) to 86400"))?;
    Ok((seconds > 0.0).then(|| Duration::from_secs_f64(seconds)))
}

/// Reads the silence, in seconds, after which a place of another host counts as lost; `None` means never.
pub(crate) fn host_silence(source: &str, value: &str) -> Result<Option<Duration>, ConfigError> {
    let seconds: Option<f64> = value.parse().ok();
    match seconds.filter(|seconds| *seconds == 0.0 || (1.0..=3600.0).contains(seconds)) {
        Some(seconds) => Ok((seconds > 0.0).then(|| Duration::from_secs_f64(seconds))),
        None => Err(ConfigError::new(source, value, "1 to 3600 seconds, or 0 for never")),
    }
}

/// Reads the kind of collectives of teams over several hosts; `true` for hierarchical ones.
pub(crate) fn hierarchical_collectives(source: &str, value: &str) -> Result<bool, ConfigError> {
    match value {
        "hierarchical" => Ok(true),
        "flat" => Ok(false),
        _ => Err(ConfigError::new(source, value, "hierarchical, flat")),
    }
}

/// Reads the seed of the order of events.
pub(super) fn seed(source: &str, value: &str) -> Result<u64, ConfigError> {
    value.parse().map_err(|_| ConfigError::new(source, value, "a whole number from 0 to 2^64 - 1"))
}

#[cfg(test)]
mod tests {
    use crate::settings::tests::read;

    #[test]
    fn bad_values_are_named_with_what_is_allowed() {
        let error = |name, value| read(name, value).unwrap_err();
        assert_eq!(
            error("ISLES_MACHINE", "gpu"),
            format!(
                r#"ISLES_MACHINE is "gpu"; allowed: threads, processes, mpi, loopback{}"#,
                if cfg!(feature = "chip") { ", chip:NAME, chip:FILE.toml" } else { "" }
            )
        );
        for value in ["0", "257", "-1", "two", "1e9"] {
            assert_eq!(
                error("ISLES_PLACES", value),
                format!("ISLES_PLACES is {value:?}; allowed: a whole number from 1 to 256")
            );
        }
        assert!(error("ISLES_REPORT", "captures,all").starts_with(r#"ISLES_REPORT is "all""#));
        for value in [",", "captures,", ",finish"] {
            assert!(
                error("ISLES_REPORT", value).starts_with(&format!("ISLES_REPORT is {value:?}; allowed: "))
            );
        }
        let line = r#"ISLES_HOST_SILENCE is "x"; allowed: 1 to 3600 seconds, or 0 for never"#;
        assert_eq!(error("ISLES_HOST_SILENCE", "x"), line);
        let line = r#"ISLES_COLLECTIVES is "x"; allowed: hierarchical, flat"#;
        assert_eq!(error("ISLES_COLLECTIVES", "x"), line);
        assert!(error("ISLES_STALL", "-3").starts_with("ISLES_STALL is"));
        assert!(error("ISLES_STALL_LIMIT", "soon").starts_with("ISLES_STALL_LIMIT is"));
        assert!(error("ISLES_SEED", "x").starts_with("ISLES_SEED"));
    }
}
