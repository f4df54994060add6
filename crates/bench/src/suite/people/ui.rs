//! The suite `ui`: the cost of observing a run.
//!
//! The peer is the same run without observers. It contains only the table. A page is the real server with a reader of
//! its stream; both use the processors of the places. Invariant: observers start and end outside the timed part.

use super::super::{figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::output::PROCESSORS;
use crate::program::Program;

const UNOBSERVED: &str = "nobody looks";
const PAGE: &str = "with a page";
const RECORD: &str = "recorded";
const TRACE: &str = "traced";

/// Largest cost of a page: 2 % over the unobserved run.
const OF_NOBODY: &[Target] = &[Target::BestPeer(1.02)];

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[FLOOD, FLOOD_ON_CHIP, BETWEENNESS, BETWEENNESS_ON_CHIP, TRACED, TRACED_SHORT];

const FLOOD: Group = Group {
    name: "flood",
    setting: "10⁶ tasks between neighbours, 2 places on 2 cores, machine processes",
    slow: false,
    contenders: &[
        Contender { label: UNOBSERVED, program: ours("isles-flood", 2) },
        Contender { label: PAGE, program: watched("watched-flood", "processes", 2) },
        Contender { label: RECORD, program: ours("recorded-flood", 2) },
    ],
    rows: &[
        flood_row("flood-page", "10⁶ tasks between 2 places, with a page"),
        processors_row("flood-processors", "processors for the floods, with a page"),
    ],
};

const FLOOD_ON_CHIP: Group = Group {
    name: "flood-chip",
    setting: "10⁶ tasks between neighbours on the 48 modelled cores of an SCC; time of the host",
    slow: false,
    contenders: &[
        Contender { label: UNOBSERVED, program: on_chip("isles-flood") },
        Contender { label: PAGE, program: watched("watched-flood", CHIP, CORES) },
        Contender { label: RECORD, program: on_chip("recorded-flood") },
    ],
    rows: &[
        flood_row("flood-chip-page", "10⁶ tasks between 48 modelled cores, with a page"),
        processors_row("flood-chip-processors", "processors for the floods, with a page"),
    ],
};

const BETWEENNESS: Group = Group {
    name: "betweenness",
    setting: "betweenness of hep-th, 2 places on 2 cores, machine processes",
    slow: false,
    contenders: &[
        Contender { label: UNOBSERVED, program: ours("isles-betweenness-hep-th-often", 2) },
        Contender { label: PAGE, program: watched("watched-hep-th", "processes", 2) },
    ],
    rows: &[
        betweenness_row("betweenness-page", "betweenness of hep-th, 2 places, with a page"),
        processors_row("betweenness-processors", "processors for betweenness of hep-th, with a page"),
    ],
};

const BETWEENNESS_ON_CHIP: Group = Group {
    name: "betweenness-chip",
    setting: "betweenness of power on the 48 modelled cores of an SCC; time of the host",
    slow: false,
    contenders: &[
        Contender { label: UNOBSERVED, program: on_chip("isles-betweenness-power-often") },
        Contender { label: PAGE, program: watched("watched-power", CHIP, CORES) },
    ],
    rows: &[
        betweenness_row("betweenness-chip-page", "betweenness of power, 48 modelled cores, with a page"),
        processors_row("betweenness-chip-processors", "processors for betweenness of power, with a page"),
    ],
};

const TRACED: Group = Group {
    name: "trace",
    setting: "10⁶ tasks once, 2 places on 2 cores, machine processes; a place keeps its first 524,288 events",
    slow: false,
    contenders: &[
        Contender { label: UNOBSERVED, program: ours("isles-flood-once", 2) },
        Contender { label: TRACE, program: ours("traced-flood", 2) },
    ],
    rows: &[traced("trace-flood", "10⁶ tasks between 2 places, with --trace")],
};

const TRACED_SHORT: Group = Group {
    name: "trace-short",
    setting: "10⁵ tasks once, 2 places on 2 cores, machine processes; a place keeps all events",
    slow: false,
    contenders: &[
        Contender { label: UNOBSERVED, program: ours("isles-flood-short", 2) },
        Contender { label: TRACE, program: ours("traced-short", 2) },
    ],
    rows: &[traced("trace-flood-short", "10⁵ tasks between 2 places, with --trace")],
};

const CHIP: &str = "chip:scc";
const CORES: u32 = 48;

/// A child of ours over the cores of a modelled chip.
const fn on_chip(child: &'static str) -> Program {
    Program::Isles { child, machine: CHIP, places: CORES }
}

/// A child that opens a page on another one.
const fn watched(child: &'static str, machine: &'static str, places: u32) -> Program {
    Program::Watched { child, machine, places }
}

/// A row of the flood with a page, compared with the unobserved flood and, for information, with a record only.
const fn flood_row(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "ms",
        better: Better::Less,
        ours: figure(PAGE, "flood_ms"),
        peers: const { &[figure(UNOBSERVED, "flood_ms")] },
        beside: const { &[figure(RECORD, "flood_ms")] },
        targets: OF_NOBODY,
        quoted_with: None,
    }
}

/// A row of betweenness with a page, compared with the unobserved run.
const fn betweenness_row(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(PAGE, "seconds"),
        peers: const { &[figure(UNOBSERVED, "seconds")] },
        beside: &[],
        targets: OF_NOBODY,
        quoted_with: None,
    }
}

/// A row of processor time from start to end, including the server. It only informs: a page has a cost at the start
/// that is negligible in a long run.
const fn processors_row(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(PAGE, PROCESSORS),
        peers: const { &[figure(UNOBSERVED, PROCESSORS)] },
        beside: &[],
        targets: &[],
        quoted_with: None,
    }
}

/// A row of a flood with a trace, which only informs.
const fn traced(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "ms",
        better: Better::Less,
        ours: figure(TRACE, "flood_ms"),
        peers: const { &[figure(UNOBSERVED, "flood_ms")] },
        beside: &[],
        targets: &[],
        quoted_with: None,
    }
}
