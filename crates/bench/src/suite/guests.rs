//! The suite `guests`: messages between places that are guests of the hypervisor, beside places that are processes.
//!
//! Its own file because its programs need the feature `guests` and `/dev/kvm`; without, their rows have no figure. It
//! holds no code but the table. The invariant: both sides of a row run the same child.

use super::{PAIR, figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const GUESTS: &str = "isles, machine guests";
const PROCESSES: &str = "isles, machine processes";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[MESSAGE, SLEEPING];

const MESSAGE: Group = Group {
    name: "guest-message",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender {
            label: GUESTS,
            program: Program::Isles { child: "isles-message", machine: "guests", places: 2 },
        },
        Contender { label: PROCESSES, program: ours("isles-message", 2) },
    ],
    rows: &[Row {
        name: "guest-at",
        question: "empty at!, half round trip, both sides busy, between two guests; the other: two processes",
        ours: figure(GUESTS, "half_round_trip_us"),
        beside: &[figure(PROCESSES, "half_round_trip_us")],
        targets: &[Target::BestOf { limit: 1.3, of: &[PROCESSES], words: "the machine processes'" }],
        ..ROW
    }],
};

const SLEEPING: Group = Group {
    name: "guest-sleeping",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender {
            label: GUESTS,
            program: Program::Isles { child: "isles-sleeping", machine: "guests", places: 2 },
        },
        Contender { label: PROCESSES, program: ours("isles-sleeping", 2) },
    ],
    rows: &[Row {
        name: "guest-at-asleep",
        question: "empty at!, there and back, to a place that sleeps, between two guests; the other: two processes",
        ours: figure(GUESTS, "there_and_back_us"),
        beside: &[figure(PROCESSES, "there_and_back_us")],
        ..ROW
    }],
};

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
