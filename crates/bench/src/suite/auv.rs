//! The suite `auv`: the ocean model beside a plain loop in C, and the planner beside searches in an expanded graph.
//!
//! It contains only the table. The loop in C computes the same bits; it is built twice: for any processor of its kind,
//! like the Rust code, and for the one at hand.

use super::{ONE_PLACE, TWO_PLACES, app, figure};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::output::RATE;
use crate::program::{AppTask, Program};

const C: &str = "C, one loop";
const C_NATIVE: &str = "C, one loop, native";
const PLANNER: &str = "isles";
const PETGRAPH: &str = "petgraph";
const NETWORKX: &str = "networkx";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[OCEAN, PLANNERS];

const OCEAN_TASK: AppTask =
    AppTask { name: "ocean", words: "--case channel --steps 40 --every 40", counted: Some("cells") };

const OCEAN: Group = Group {
    name: "ocean",
    setting: "the channel of 512 x 64 x 30 cells, 40 steps; machine processes; C with -O3, and with -march=native",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(OCEAN_TASK, 1) },
        Contender { label: TWO_PLACES, program: app(OCEAN_TASK, 2) },
        Contender { label: C, program: Program::OceanLoop { is_native: false } },
        Contender { label: C_NATIVE, program: Program::OceanLoop { is_native: true } },
    ],
    rows: &[
        Row {
            name: "ocean-1",
            question: "cells of the ocean model, 1 place",
            unit: "million/s",
            better: Better::More,
            ours: figure(ONE_PLACE, RATE),
            peers: &[figure(C, RATE), figure(C_NATIVE, RATE)],
            beside: &[],
            targets: &[
                Target::BestOf { limit: 0.91, of: &[C], words: "C, one loop" },
                Target::BestPeer(0.91),
            ],
            quoted_with: None,
        },
        Row {
            name: "ocean-2",
            question: "the ocean model, 2 places",
            unit: "s",
            better: Better::Less,
            ours: figure(TWO_PLACES, "seconds"),
            peers: &[],
            beside: &[figure(ONE_PLACE, "seconds")],
            targets: &[Target::Speedup { limit: 1.85, over: ONE_PLACE }],
            quoted_with: None,
        },
    ],
};

const PLANNERS: Group = Group {
    name: "planners",
    setting: "9 x 5 waypoints, arrivals in whole minutes; all are given when a glider arrives along each edge by the \
              minute of its departure; making the expanded graph is timed",
    slow: false,
    contenders: &[
        Contender { label: PLANNER, program: Program::Peer("path-planner") },
        Contender { label: PETGRAPH, program: Program::Peer("path-petgraph") },
        Contender { label: NETWORKX, program: Program::Peer("path-networkx") },
    ],
    rows: &[Row {
        name: "planner-1",
        question: "the earliest arrival, 1 place",
        unit: "ms",
        better: Better::Less,
        ours: figure(PLANNER, "search_ms"),
        peers: &[figure(PETGRAPH, "search_ms"), figure(NETWORKX, "search_ms")],
        beside: &[],
        targets: &[
            Target::BestOf { limit: 0.667, of: &[PETGRAPH], words: "petgraph" },
            Target::BestOf { limit: 0.1, of: &[NETWORKX], words: "networkx" },
        ],
        quoted_with: None,
    }],
};
