//! The suite `shared`: guards of shared objects, and a clustering over them; and the suite `svm`: page faults that
//! another process serves, and Jacobi over shared pages beside an array in parts.
//!
//! It contains only the table. Invariant: the time and the modularity of a clustering are shown together.

use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::{AppTask, Program};
use crate::suite::{ONE_PLACE, PAIR, RAW, TWO_PLACES};
use crate::suite::{app, figure, ours};

const PLM: &str = "NetworKit, PLM, 1 thread";
const MULTILEVEL: &str = "igraph, multilevel, 1 thread";
const FAST_GREEDY: &str = "igraph, fastgreedy, 1 thread";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[GUARDS, SCAN, CLUSTERS, POWER];

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
            question: "a read guard at the place of the last one",
            unit: "ns",
            ours: figure(TWO_PLACES, "read_ns"),
            targets: &[Target::Value(30.0)],
            ..ROW
        },
        Row {
            name: "write-guard",
            question: "a write guard at the place of the last one",
            unit: "ns",
            ours: figure(TWO_PLACES, "write_ns"),
            targets: &[Target::Value(60.0)],
            ..ROW
        },
        Row {
            name: "hand-over",
            question: "a write guard that moves between 2 places",
            ours: figure(TWO_PLACES, "hand_over_us"),
            beside: &[figure(RAW, "half_round_trip_us")],
            targets: &[Target::BestOf { limit: 3.0, of: &[RAW], words: "raw message" }],
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

/// The multilevel method, as in the libraries.
const COLLABORATIONS: AppTask =
    AppTask { name: "modularity", words: "--graph cond-mat-2005 --method multilevel", counted: None };
const GRID: AppTask =
    AppTask { name: "modularity", words: "--graph power --method multilevel", counted: None };

const CLUSTERS: Group = Group {
    name: "clusters",
    setting: "clusters of cond-mat-2005, 40,421 vertices and 175,693 edges, unweighted; reading not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(COLLABORATIONS, 1) },
        Contender { label: PLM, program: library("networkit", "plm", "cond-mat-2005") },
        Contender { label: MULTILEVEL, program: library("igraph", "multilevel", "cond-mat-2005") },
    ],
    rows: &[
        Row {
            name: "modularity-1",
            question: "clusters of cond-mat-2005 by several levels, 1 place",
            peers: &[figure(PLM, "seconds"), figure(MULTILEVEL, "seconds")],
            ..TIME
        },
        Row {
            name: "quality",
            question: "its modularity",
            peers: &[figure(PLM, "modularity"), figure(MULTILEVEL, "modularity")],
            quoted_with: Some("modularity-1"),
            ..QUALITY
        },
    ],
};

const POWER: Group = Group {
    name: "clusters-power",
    setting: "clusters of power, 4,941 vertices and 6,594 edges, unweighted; reading not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(GRID, 1) },
        Contender { label: PLM, program: library("networkit", "plm", "power") },
        Contender { label: MULTILEVEL, program: library("igraph", "multilevel", "power") },
        // On cond-mat-2005 it takes 200 times as long as the others.
        Contender { label: FAST_GREEDY, program: library("igraph", "fastgreedy", "power") },
    ],
    rows: &[
        Row {
            name: "power-1",
            question: "clusters of power by several levels, 1 place",
            peers: &[figure(PLM, "seconds"), figure(MULTILEVEL, "seconds"), figure(FAST_GREEDY, "seconds")],
            ..TIME
        },
        Row {
            name: "power-quality",
            question: "its modularity",
            peers: &[
                figure(PLM, "modularity"),
                figure(MULTILEVEL, "modularity"),
                figure(FAST_GREEDY, "modularity"),
            ],
            quoted_with: Some("power-1"),
            ..QUALITY
        },
    ],
};

const fn library(module: &'static str, method: &'static str, graph: &'static str) -> Program {
    Program::Clustering { module, method, graph }
}

const TIME: Row =
    Row { unit: "s", ours: figure(ONE_PLACE, "seconds"), targets: &[Target::BestPeer(1.0)], ..ROW };

const QUALITY: Row = Row {
    unit: "",
    better: Better::More,
    ours: figure(ONE_PLACE, "modularity"),
    targets: &[Target::BestPeer(1.0)],
    ..ROW
};

/// Common part of most rows.
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

const FAULTS: &str = "isles, faults";
const BARE: &str = "a bare handler in one process";
const RELEASE: &str = "isles, pages, release";
const STRONG: &str = "isles, pages, strong";
const PARTS: &str = "isles, array in parts";

/// All groups of the suite `svm`, in the order in which they are run.
pub const PAGE_GROUPS: &[Group] = &[PAGE_FAULTS, JACOBI];

const PAGE_FAULTS: Group = Group {
    name: "faults",
    setting: "2 processes, model strong, 2,000 pages that the other process has written; median of the guards of a page",
    slow: false,
    contenders: &[
        Contender { label: FAULTS, program: Program::Peer("svm-faults") },
        Contender { label: BARE, program: Program::Peer("svm-bare") },
    ],
    rows: &[
        fault("fault-read", "a page to read, from another process", "read_us"),
        fault("fault-write", "a page to write, from another process", "write_us"),
        no_target(fault("fault-alone", "a page that no other place has", "alone_us")),
        no_target(fault(
            "fault-socket",
            "a page to read, over a socket of the loopback interface",
            "socket_read_us",
        )),
        busy(fault(
            "fault-read-busy",
            "a page to read, from another process, processors busy",
            "busy_read_us",
        )),
        busy(fault(
            "fault-write-busy",
            "a page to write, from another process, processors busy",
            "busy_write_us",
        )),
    ],
};

/// Returns the row for the same host while threads of the lowest priority keep its processors busy.
const fn busy(row: Row) -> Row {
    Row { peers: const { &[figure(BARE, "busy_bare_us")] }, ..row }
}

const fn no_target(row: Row) -> Row {
    Row { targets: &[], peers: &[], ..row }
}

const fn fault(name: &'static str, question: &'static str, of: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "µs",
        better: Better::Less,
        ours: figure(FAULTS, of),
        peers: const { &[figure(BARE, "bare_us")] },
        beside: &[],
        targets: const { &[Target::Value(30.0)] },
        quoted_with: None,
    }
}

const PARTS_TASK: AppTask =
    AppTask { name: "jacobi", words: "--order 2048 --sweeps 100 --memory parts", counted: None };
const RELEASE_TASK: AppTask =
    AppTask { words: "--order 2048 --sweeps 100 --memory svm --model release", ..PARTS_TASK };
const STRONG_TASK: AppTask =
    AppTask { words: "--order 2048 --sweeps 100 --memory svm --model strong", ..PARTS_TASK };

const JACOBI: Group = Group {
    name: "jacobi",
    setting: "2,048 x 2,048 cells, 100 sweeps, 2 places, machine processes; setting up the grid not timed",
    slow: false,
    contenders: &[
        Contender { label: RELEASE, program: app(RELEASE_TASK, 2) },
        Contender { label: STRONG, program: app(STRONG_TASK, 2) },
        Contender { label: PARTS, program: app(PARTS_TASK, 2) },
    ],
    rows: &[
        Row {
            name: "jacobi-release",
            question: "Jacobi over shared pages, model release",
            unit: "s",
            better: Better::Less,
            ours: figure(RELEASE, "seconds"),
            peers: &[figure(PARTS, "seconds")],
            beside: &[],
            targets: &[Target::BestPeer(1.3)],
            quoted_with: None,
        },
        Row {
            name: "jacobi-strong",
            question: "Jacobi over shared pages, model strong",
            unit: "s",
            better: Better::Less,
            ours: figure(STRONG, "seconds"),
            peers: &[figure(PARTS, "seconds")],
            beside: &[],
            targets: &[],
            quoted_with: None,
        },
    ],
};
