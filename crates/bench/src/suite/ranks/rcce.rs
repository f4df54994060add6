//! The suite `rcce`: programs of RCCE in C, beside the raw message of machine `processes` and MPI.
//!
//! It contains only the table. The peer carries 8 bytes and RCCE 32, a line of its message buffers; a send of RCCE
//! ends when it has been received.

use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;
use crate::suite::{MPICH, OPEN_MPI, PAIR, RAW, figure, mpich, open_mpi, ours};

const RCCE: &str = "RCCE";
const BITS: &str = "RCCE, flags of a bit";
const IRCCE: &str = "iRCCE";
const CHIP: &str = "RCCE, chip:scc";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[PROCESSES, MODEL];

const PROCESSES: Group = Group {
    name: "processes",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: RCCE, program: Program::Peer("rcce") },
        Contender { label: IRCCE, program: Program::Peer("ircce") },
        Contender { label: BITS, program: Program::Peer("rcce-bits") },
        Contender { label: RAW, program: ours("isles-raw", 2) },
        open_mpi("message", 2),
        mpich("message", 2),
    ],
    rows: &[Row {
        name: "ping-pong",
        question: "32 bytes by RCCE, half round trip, both sides busy; peers: 8 bytes",
        unit: "us",
        better: Better::Less,
        ours: figure(RCCE, "half_round_trip_us"),
        peers: &[
            figure(RAW, "half_round_trip_us"),
            figure(OPEN_MPI, "half_round_trip_us"),
            figure(MPICH, "half_round_trip_us"),
        ],
        beside: &[figure(IRCCE, "half_round_trip_us"), figure(BITS, "half_round_trip_us")],
        targets: &[Target::BestOf { limit: 1.5, of: &[RAW], words: "raw message" }],
        quoted_with: None,
    }],
};

const MODEL: Group = Group {
    name: "model",
    setting: "2 ranks on chip:scc, from the start of the program to its end",
    slow: false,
    contenders: &[Contender { label: CHIP, program: Program::Peer("rcce-chip") }],
    rows: &[
        Row {
            name: "calls",
            question: "puts of a line and reads of a flag on the modelled chip",
            unit: "million/s",
            better: Better::More,
            ours: figure(CHIP, "calls_million"),
            peers: &[],
            beside: &[],
            targets: &[Target::Value(1.0)],
            quoted_with: None,
        },
        Row {
            name: "sends",
            question: "blocking sends and receives of 32 bytes on the modelled chip",
            unit: "million/s",
            better: Better::More,
            ours: figure(CHIP, "messages_million"),
            peers: &[],
            beside: &[],
            targets: &[Target::Value(1.0)],
            quoted_with: None,
        },
    ],
};
