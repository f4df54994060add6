//! The settings of a run take any text; a refusal is one line.
//!
//! The text goes to each of them: the machine, the number of places, the reports.
#![no_main]

use isles::{ConfigError, Launch, Machine};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let launch = || Launch::from_environment_or(Machine::Threads).expect("the fuzzer sets nothing");
    let answers: [Result<Launch, ConfigError>; 3] = [
        launch().machine_named("--machine", text),
        launch().places_named("--places", text),
        launch().reports_named("--report", text),
    ];
    for refusal in answers.into_iter().filter_map(Result::err) {
        let line = refusal.to_string();
        assert!(text.contains('\n') || !line.contains('\n'), "{line}");
    }
});
