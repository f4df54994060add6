//! The `isles` command, as people and scripts use it.

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles");

mod apart;
mod bounds;
mod calibrate;
mod chip;
mod color;
mod container;
mod doctor;
mod exports;
mod glb;
mod hosts;
mod kill;
mod page_block;
mod pages;
mod pi;
mod plot;
mod power;
#[allow(dead_code, reason = "not all that a trace holds is looked at here")]
#[path = "../../../transport-chip/tests/chip/protobuf.rs"]
mod protobuf;
mod record;
mod repro;
mod results;
mod run;
mod scene;
mod seeds;
mod sparql;
mod sweep;
mod tape;
mod trace;
mod transcripts;
mod ui;
mod usage;
mod version;
