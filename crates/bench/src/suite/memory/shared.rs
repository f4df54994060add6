//! The suite `shared`: guards of shared objects, and a clustering over them.
//!
//! Its own file because its peers are graph libraries. It holds no code but the table. The invariant: of a clustering
//! time and modularity stand beside each other.

use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::{AppTask, Program};
use crate::suite::{ONE_PLACE, PAIR, RAW, TWO_PLACES};
use crate::suite::{app, figure, ours};

const NETWORKIT: &str = "NetworKit, PLM, 1 thread";
const IGRAPH: &str = "igraph, fastgreedy, 1 thread";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[GUARDS, SCAN, CLUSTERS];

const GUARDS: Group = Group {
    name: "guards",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: ours("isles-shared", 2) },
        Contender { label: RAW, program: ours("isles-raw", 2) },
    ],
    rows: &[
        Row {
            name: "read-guard",
            question: "a guard to read, where the last one was",
            unit: "ns",
            ours: figure(TWO_PLACES, "read_ns"),
            targets: &[Target::Value(30.0)],
            ..ROW
        },
        Row {
            name: "write-guard",
            question: "a guard to write, where the last one was",
            unit: "ns",
            ours: figure(TWO_PLACES, "write_ns"),
            targets: &[Target::Value(60.0)],
            ..ROW
        },
        Row {
            name: "hand-over",
            question: "a guard to write that changes hands between 2 places",
            ours: figure(TWO_PLACES, "hand_over_us"),
            beside: &[figure(RAW, "half_round_trip_us")],
            targets: &[Target::BestOf { limit: 3.0, of: &[RAW], words: "a raw message's" }],
            ..ROW
        },
    ],
};

/// The paper's form, in which each step searches all vertices.
const STEPS: AppTask =
    AppTask { name: "modularity", words: "--graph cond-mat-2005 --search all --steps 300", counted: None };

const SCAN: Group = Group {
    name: "steps",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: app(STEPS, 2) },
        Contender { label: ONE_PLACE, program: app(STEPS, 1) },
    ],
    rows: &[Row {
        name: "modularity-2",
        question: "300 steps of globally greedy vertex moving on cond-mat-2005",
        unit: "s",
        ours: figure(TWO_PLACES, "seconds"),
        beside: &[figure(ONE_PLACE, "seconds")],
        targets: &[Target::Speedup { limit: 1.7, over: ONE_PLACE }],
        ..ROW
    }],
};

const WHOLE: AppTask = AppTask { name: "modularity", words: "--graph hep-th", counted: None };

const CLUSTERS: Group = Group {
    name: "clusters",
    setting: "clusters of hep-th, 8,361 vertices and 15,751 edges, unweighted; reading not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(WHOLE, 1) },
        Contender { label: NETWORKIT, program: Program::Clustering { module: "networkit", graph: "hep-th" } },
        Contender { label: IGRAPH, program: Program::Clustering { module: "igraph", graph: "hep-th" } },
    ],
    rows: &[
        Row {
            name: "modularity-1",
            question: "clusters of hep-th until no move is good, 1 place",
            unit: "s",
            ours: figure(ONE_PLACE, "seconds"),
            peers: &[figure(NETWORKIT, "seconds"), figure(IGRAPH, "seconds")],
            targets: &[Target::BestPeer(1.0)],
            ..ROW
        },
        Row {
            name: "quality",
            question: "the modularity that comes of it",
            unit: "",
            better: Better::More,
            ours: figure(ONE_PLACE, "modularity"),
            peers: &[figure(NETWORKIT, "modularity"), figure(IGRAPH, "modularity")],
            targets: &[Target::BestPeer(1.0)],
            quoted_with: Some("modularity-1"),
            ..ROW
        },
    ],
};

/// What most rows have in common.
const ROW: Row = Row {
    name: "",
    question: "",
    unit: "us",
    better: Better::Less,
    ours: figure(TWO_PLACES, ""),
    peers: &[],
    beside: &[],
    targets: &[],
    quoted_with: None,
};
