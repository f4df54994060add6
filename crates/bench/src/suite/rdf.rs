//! The suite `rdf`: SPARQL over the data of LUBM, with oxigraph beside it.
//!
//! It contains only the table. Oxigraph keeps its triples in memory and answers on one thread; it loads with one
//! thread per processor, if that is faster.

use super::{ONE_PLACE, TWO_PLACES, figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const OXIGRAPH: &str = "oxigraph";
const SNAPSHOT: &str = "snapshot, 1 place";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[LUBM, LARGE, TASKS];

const LUBM: Group = Group {
    name: "lubm",
    setting: "LUBM(10), 1.8 million triples with what the ontology implies; 14 queries, the least time of each; a \
              query is parsed, planned and evaluated, and all its solutions are there with their terms",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-rdf-lubm", 1) },
        Contender { label: TWO_PLACES, program: ours("isles-rdf-lubm", 2) },
        Contender { label: SNAPSHOT, program: ours("isles-rdf-snapshot", 1) },
        Contender { label: OXIGRAPH, program: Program::Peer("oxigraph") },
    ],
    rows: &[
        Row {
            name: "lubm-1",
            question: "geometric mean of 14 queries, 1 place",
            unit: "ms",
            better: Better::Less,
            ours: figure(ONE_PLACE, "mean_ms"),
            peers: &[figure(OXIGRAPH, "mean_ms")],
            beside: &[figure(TWO_PLACES, "mean_ms")],
            targets: &[Target::BestPeer(0.5)],
            quoted_with: None,
        },
        Row {
            name: "load-1",
            question: "triples of N-Triples loaded, 1 place",
            unit: "million/s",
            better: Better::More,
            ours: figure(ONE_PLACE, "load_rate"),
            peers: &[figure(OXIGRAPH, "load_rate")],
            beside: &[figure(TWO_PLACES, "load_rate")],
            targets: &[Target::BestPeer(1.0)],
            quoted_with: None,
        },
        Row {
            name: "open-1",
            question: "a snapshot of it opened and its checksum verified, 1 place",
            unit: "ms",
            better: Better::Less,
            ours: figure(SNAPSHOT, "load_ms"),
            peers: &[],
            beside: &[figure(ONE_PLACE, "load_ms"), figure(OXIGRAPH, "load_ms")],
            targets: &[],
            quoted_with: None,
        },
        Row {
            name: "lubm-snapshot-1",
            question: "geometric mean of 14 queries over the snapshot, 1 place",
            unit: "ms",
            better: Better::Less,
            ours: figure(SNAPSHOT, "mean_ms"),
            peers: &[figure(OXIGRAPH, "mean_ms")],
            beside: &[figure(ONE_PLACE, "mean_ms")],
            targets: &[],
            quoted_with: None,
        },
    ],
};

const LARGE: Group = Group {
    name: "large",
    setting: "LUBM(10), 3 queries with more than 100,000 intermediate rows, mode data",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-rdf-large", 1) },
        Contender { label: TWO_PLACES, program: ours("isles-rdf-large", 2) },
    ],
    rows: &[Row {
        name: "large-2",
        question: "sum of 3 large queries, 2 places",
        unit: "ms",
        better: Better::Less,
        ours: figure(TWO_PLACES, "sum_ms"),
        peers: &[],
        beside: &[figure(ONE_PLACE, "sum_ms")],
        targets: &[Target::Speedup { limit: 1.6, over: ONE_PLACE }],
        quoted_with: None,
    }],
};

const TASKS: Group = Group {
    name: "tasks",
    setting: "LUBM(10), 3 queries 20 times, mode task: each place has all triples; loading not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-rdf-tasks", 1) },
        Contender { label: TWO_PLACES, program: ours("isles-rdf-tasks", 2) },
    ],
    rows: &[Row {
        name: "tasks-2",
        question: "60 queries, each at one place, 2 places",
        unit: "s",
        better: Better::Less,
        ours: figure(TWO_PLACES, "query_seconds"),
        peers: &[],
        beside: &[figure(ONE_PLACE, "query_seconds")],
        targets: &[Target::Speedup { limit: 1.9, over: ONE_PLACE }],
        quoted_with: None,
    }],
};
