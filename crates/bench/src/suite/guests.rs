//! The suite `guests`: the start of a guest of the hypervisor, and messages between places that are guests, beside
//! places that are processes.
//!
//! A separate file because its programs need the feature `guests` and `/dev/kvm`; without the device, its rows have no
//! figure. It contains only the table. Invariant: both sides of a row run the same build of the same child.

use super::{PAIR, figure};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const GUESTS: &str = "isles, machine guests";
const PROCESSES: &str = "isles, machine processes";
const START: &str = "a guest";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[STARTS, MESSAGE, SLEEPING];

const STARTS: Group = Group {
    name: "guest-starts",
    setting: "guests one after the other, in one process; median of 11",
    slow: false,
    contenders: &[Contender { label: START, program: Program::Kvm("guest-start") }],
    rows: &[Row {
        name: "guest-start",
        question: "a guest from nothing to the end of an empty function in it",
        unit: "ms",
        ours: figure(START, "start_ms"),
        targets: &[Target::Value(20.0)],
        ..ROW
    }],
};

const MESSAGE: Group = Group {
    name: "guest-message",
    setting: PAIR,
    slow: false,
    contenders: &both("isles-message"),
    rows: &[Row {
        name: "guest-at",
        question: "empty at!, half round trip, both sides busy, between two guests",
        ours: figure(GUESTS, "half_round_trip_us"),
        beside: &[figure(PROCESSES, "half_round_trip_us")],
        targets: &[Target::BestOf { limit: 1.3, of: &[PROCESSES], words: "machine processes" }],
        ..ROW
    }],
};

const SLEEPING: Group = Group {
    name: "guest-sleeping",
    setting: PAIR,
    slow: false,
    contenders: &both("isles-sleeping"),
    rows: &[Row {
        name: "guest-at-asleep",
        question: "empty at!, round trip, to a sleeping guest",
        ours: figure(GUESTS, "there_and_back_us"),
        beside: &[figure(PROCESSES, "there_and_back_us")],
        ..ROW
    }],
};

/// A child of ours on both machines.
const fn both(child: &'static str) -> [Contender; 2] {
    [
        Contender { label: GUESTS, program: Program::WithGuests { child, machine: "guests" } },
        Contender { label: PROCESSES, program: Program::WithGuests { child, machine: "processes" } },
    ]
}

/// Fields that the rows have in common; each row sets the rest.
const ROW: Row = Row {
    name: "",
    question: "",
    unit: "us",
    better: Better::Less,
    ours: figure(GUESTS, ""),
    peers: &[],
    beside: &[],
    targets: &[],
    quoted_with: None,
};
