//! The settings of a run take any text; a refusal is one line.
//!
//! The text goes to each of them: the machine, the number of places, the reports, the protocol, the placement.
#![no_main]

use isles::{ConfigError, Flag, Launch, Machine};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let settings = [
        ("ISLES_MACHINE", "--machine"),
        ("ISLES_PLACES", "--places"),
        ("ISLES_REPORT", "--report"),
        ("ISLES_CHIP_PROTOCOL", "--protocol"),
        ("ISLES_CHIP_PLACEMENT", "--placement"),
    ];
    let answers = settings.map(|(variable, name)| {
        Launch::from_environment_with(Machine::Threads, &[Flag { variable, name, value: text }])
    });
    for refusal in answers.into_iter().filter_map(Result::<_, ConfigError>::err) {
        let line = refusal.to_string();
        assert!(text.contains('\n') || !line.contains('\n'), "{line}");
    }
});
