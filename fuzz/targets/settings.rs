//! The settings of a run take any text; a refusal is one line.
//!
//! The text goes to each row of the table of settings: as its flag, or in its variable if it has none.
#![no_main]

use isles::{ConfigError, Flag, Launch, Machine, SETTINGS};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let answers = SETTINGS.iter().map(|row| {
        let name = row.flag.map_or(row.variable, |flag| flag.name);
        Launch::from_environment_with(Machine::Threads, &[Flag { variable: row.variable, name, value: text }])
    });
    for refusal in answers.filter_map(Result::<_, ConfigError>::err) {
        let line = refusal.to_string();
        assert!(text.contains('\n') || !line.contains('\n'), "{line}");
    }
});
