//! Tests of settings: their sources and values; and the table against its readers: names, defaults, machines.
//!
//! The tests of `text` and of the `isles` command compare the texts of the book and of `--help`. Invariant: each test
//! iterates over the table, so no setting is forgotten.

use super::table::{FlagGroup, SETTINGS, SettingDefault, SettingRow};
use super::{Environment, FLAGS_VARIABLE, Flag, MachineName, Report, Setting, SettingSources};
use crate::machine::Machine;
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) fn read(name: &str, value: &str) -> Result<Environment, String> {
    let get = |asked: &str| (asked == name).then(|| value.to_owned());
    Environment::read_from(&SettingSources::new(&[], &get)).map_err(|error| error.to_string())
}

#[test]
fn good_values_are_taken() {
    let machine = |value| read("ISLES_MACHINE", value).unwrap().machine.map(|machine| machine.value);
    assert_eq!(machine("processes"), Some(MachineName::Known(Machine::Processes)));
    let places = read("ISLES_PLACES", "48").unwrap().places;
    assert_eq!(places, Some(Setting::new("ISLES_PLACES", 48)));
    assert_eq!(read("ISLES_REPORT", "captures,finish").unwrap().reports, [Report::Captures, Report::Finish]);
    assert_eq!(read("ISLES_STALL", "0").unwrap().stall_report, Some(None));
    let limit = read("ISLES_STALL_LIMIT", "0.5").unwrap();
    assert_eq!((limit.stall_report, limit.stall_limit), (None, Some(Some(Duration::from_millis(500)))));
    assert_eq!(read("ISLES_PLACES", "").unwrap().places, None);
}

#[test]
fn a_chip_is_a_name_until_somebody_starts_a_run_on_it() {
    // A folder and an unknown name: looking up such a chip would fail.
    for name in ["chip:/", "chip:nowhere", "chip:"] {
        let said = |asked: &str| match asked {
            "ISLES_MACHINE" => Some(name.to_owned()),
            "ISLES_PLACES" => Some("100000".to_owned()),
            _ => None,
        };
        let environment = Environment::read_from(&SettingSources::new(&[], &said)).unwrap();
        let machine = Setting::new("ISLES_MACHINE", MachineName::Chip(name.to_owned()));
        assert_eq!(environment.machine, Some(machine));
        assert_eq!(environment.places, Some(Setting::new("ISLES_PLACES", 100_000)));
        let error = environment.machine_or(Machine::Threads).unwrap_err();
        assert_eq!((error.source.as_str(), error.value.as_str()), ("ISLES_MACHINE", name));
    }
    let said = |asked: &str| match asked {
        "ISLES_MACHINE" => Some("chip:scc".to_owned()),
        "ISLES_PLACES" => Some("many".to_owned()),
        _ => None,
    };
    let error = Environment::read_from(&SettingSources::new(&[], &said)).unwrap_err();
    assert_eq!(error.allowed, "a whole number from 1 to the cores of chip:scc");
}

#[test]
fn a_flag_takes_the_place_of_its_variable_and_of_no_other() {
    let flag = |value| [Flag { variable: "ISLES_PLACES", name: "--places", value }];
    let bad = |asked: &str| asked.starts_with("ISLES_P").then(|| "0".to_owned());
    let read = |value, get: &dyn Fn(&str) -> Option<String>| {
        Environment::read_from(&SettingSources::new(&flag(value), get))
    };
    assert_eq!(read("3", &bad).unwrap().places, Some(Setting::new("--places", 3)));
    let error = |value| read(value, &bad).unwrap_err().to_string();
    assert_eq!(error(""), r#"--places is ""; allowed: a whole number from 1 to 256"#);
    let bad = |asked: &str| (asked == "ISLES_MACHINE").then(|| "gpu".to_owned());
    assert_eq!(read("3", &bad).unwrap_err().source, "ISLES_MACHINE");
}

#[test]
fn a_variable_that_a_flag_of_the_launcher_set_is_named_by_the_flag() {
    let get = |asked: &str| match asked {
        FLAGS_VARIABLE => Some("ISLES_PLACES=--places".to_owned()),
        "ISLES_PLACES" | "ISLES_SEED" => Some("x".to_owned()),
        _ => None,
    };
    let source = |get: &dyn Fn(&str) -> Option<String>| {
        Environment::read_from(&SettingSources::new(&[], get)).unwrap_err().source
    };
    assert_eq!(source(&get), "--places");
    assert_eq!(source(&|asked| get(asked).filter(|_| asked != "ISLES_PLACES")), "ISLES_SEED");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let environment = Environment::read_from(&SettingSources::new(&[], &|_| Some(String::new()))).unwrap();
    assert_eq!((environment.machine, environment.places), (None, None));
}

#[test]
fn no_two_settings_have_a_name_a_variable_or_a_flag_in_common() {
    let mut seen = BTreeSet::new();
    for row in SETTINGS {
        assert!(row.variable.starts_with("ISLES_"), "{row:?}");
        let flag = row.flag.map(|flag| flag.name);
        assert!(flag.is_none_or(|flag| flag.starts_with("--")), "{row:?}");
        let character = row.flag.and_then(|flag| flag.short).map(String::from);
        let names =
            [Some(row.name.to_owned()), Some(row.variable.to_owned()), flag.map(str::to_owned), character];
        names
            .into_iter()
            .flatten()
            .for_each(|name| assert!(seen.insert(name.clone()), "{name} is there twice"));
        let has_a_text = !row.about.is_empty() && !row.about.ends_with('.');
        assert!(has_a_text, "the text of {} is the beginning of a line", row.name);
    }
}

#[test]
fn a_default_that_is_a_value_is_what_holds_where_nothing_is_said() {
    for row in SETTINGS {
        let SettingDefault::Value(value) = row.default else { continue };
        let mut environment = Environment::defaults();
        (row.read)(&mut environment, &format!("the {}", row.name), value).unwrap();
        assert_eq!(environment, Environment::defaults(), "{}", row.name);
    }
}

#[test]
fn a_setting_that_a_summary_keeps_by_name_is_called_as_its_flag() {
    for row in SETTINGS.iter().filter(|row| row.is_in_summary()) {
        assert_eq!(row.flag.map(|flag| flag.name), Some(format!("--{}", row.name).as_str()));
    }
}

/// The reader of each row checks its value: errors name the source; files, and names of a chip, are checked later.
#[test]
fn each_reader_takes_what_its_row_says_and_names_what_it_refuses() {
    let later = |row: &SettingRow| {
        let is_file = row.flag.is_some_and(|flag| flag.group == FlagGroup::Files);
        is_file || ["record", "constants", "preset", "power model", "voltages"].contains(&row.name)
    };
    for row in SETTINGS.iter().filter(|row| !later(row)) {
        let said = |asked: &str| (asked == row.variable).then(|| "\u{7}no such value".to_owned());
        let read = Environment::read_from(&SettingSources::new(&[], &said));
        let is_read_elsewhere = ["cache", "map"].contains(&row.name);
        let is_of_no_meaning =
            cfg!(not(feature = "chip")) && row.variable.starts_with("ISLES_CHIP_") && row.name != "work";
        match read {
            Ok(_) => assert!(is_read_elsewhere || is_of_no_meaning, "{} takes anything", row.name),
            Err(error) => assert_eq!(error.source, row.variable),
        }
    }
}

#[cfg(feature = "chip")]
mod machines {
    use super::*;
    use crate::launch::Launch;
    use crate::settings::table::{OnOtherMachines, setting};

    /// Returns a valid value of the setting; on the SCC if it is a setting of chips.
    fn sample(row: &SettingRow) -> String {
        let scratch =
            |name: &str| std::env::temp_dir().join(format!("isles-settings-{}-{name}", std::process::id()));
        match row.name {
            "places" => "2".to_owned(),
            "report" => "finish".to_owned(),
            "color" => "auto".to_owned(),
            "protocol" => "doorbell".to_owned(),
            "constants" => "links.flit_time=2".to_owned(),
            "preset" => "800/1600/1066".to_owned(),
            "power model" => "manyman".to_owned(),
            "voltages" => "manyman".to_owned(),
            "work" => "host:20".to_owned(),
            name if row.flag.is_some_and(|flag| flag.group == FlagGroup::Files) || name == "record" => {
                scratch(name).display().to_string()
            }
            _ => match row.default {
                SettingDefault::Value(value) => value.to_owned(),
                _ => panic!("which value may {} have?", row.name),
            },
        }
    }

    /// Returns the errors of a launch that gets `said` as flags, and as variables.
    fn refused(said: &[(&SettingRow, &str)]) -> [Option<String>; 2] {
        let ended = |launch: Result<Launch, _>| launch.and_then(|launch| launch.check_outputs()).err();
        let flags: Vec<Flag<'_>> = said
            .iter()
            .filter_map(|(row, value)| Some(Flag { variable: row.variable, name: row.flag?.name, value }))
            .collect();
        let variable = |asked: &str| {
            let found = said.iter().find(|(row, _)| row.variable == asked);
            found.map(|(_, value)| (*value).to_owned())
        };
        let by_flags = SettingSources::new(&flags, &|_| None);
        let by_variables = SettingSources::new(&[], &variable);
        [by_flags, by_variables].map(|sources| {
            let environment = Environment::read_from(&sources);
            let launch = environment
                .and_then(|environment| Launch::with(environment, Machine::Threads, sources.flags));
            ended(launch).map(|error| error.to_string())
        })
    }

    #[test]
    fn a_setting_is_taken_and_refused_on_the_machines_that_its_row_names() {
        let machines = ["threads", "processes", "mpi", "loopback", "chip:scc"];
        for row in SETTINGS.iter().filter(|row| row.flag.is_some() && row.name != "machine") {
            let value = sample(row);
            for machine in machines {
                let on = read("ISLES_MACHINE", machine).unwrap().machine_or(Machine::Threads).unwrap();
                // A tape needs measured work.
                let work =
                    (row.name == "tape" && machine == "chip:scc").then_some((setting("work"), "host:20"));
                let said = [(setting("machine"), machine), (row, &value)];
                let said: Vec<(&SettingRow, &str)> = said.into_iter().chain(work).collect();
                let expected = match row.machines.on_other_machines {
                    _ if row.machines.include(on) => [false, false],
                    OnOtherMachines::Ignored => [false, false],
                    OnOtherMachines::FlagRefused => [true, false],
                    OnOtherMachines::Refused => [true, true],
                };
                let found = refused(&said);
                assert_eq!(
                    found.each_ref().map(Option::is_some),
                    expected,
                    "{} on {machine}: {found:?}",
                    row.name
                );
                for (line, source) in found.iter().zip([row.flag.map_or("", |flag| flag.name), row.variable])
                {
                    let names =
                        |line: &String| line.starts_with(&format!("{source} is {value:?}; allowed: "));
                    assert!(line.as_ref().is_none_or(names), "{line:?}");
                }
            }
        }
    }
}
