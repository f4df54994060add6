//! The suites `pipeline` and `hubs`: tasks that interact, as stages of a pipeline or by the hubs of a real-time kernel.
//!
//! It contains only the tables. The peers of a pipeline are a chain of tasks with channels, and the plain loop that
//! the stages replace. A loop of hubs is compared with the switches and messages that it consists of, measured in the
//! same run.

use super::{ONE_PLACE, PAIR, TWO_PLACES, figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const TOKIO: &str = "tokio, 1 thread";
const LOOP: &str = "plain loop";
const HUBS: &str = "isles";
const TOKIO_SEMAPHORES: &str = "tokio";
const ALL_PLACES: &str = "isles, 18 places";
const FOUR_PLACES: &str = "isles, 4 places";

/// The groups of `pipeline`, in the order in which they are run.
pub const GROUPS: &[Group] = &[SHORT, LONG, SLOW, RESIZES];

/// The groups of `hubs`.
pub const HUB_GROUPS: &[Group] = &[HUBS_ONE, HUBS_TWO];

const SHORT: Group = Group {
    name: "pipeline-short",
    setting: "8 stages that add a number, queues of 64; tokio: a task a stage, mpsc channels between them",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-pipeline-short", 1) },
        Contender { label: TOKIO, program: Program::Peer("tokio-pipeline") },
    ],
    rows: &[Row {
        name: "pipeline-items",
        question: "items through 8 trivial stages, 1 place",
        unit: "million/s",
        better: Better::More,
        ours: figure(ONE_PLACE, "rate_million"),
        peers: &[figure(TOKIO, "rate_million")],
        beside: &[],
        targets: &[Target::BestPeer(1.0)],
        quoted_with: None,
    }],
};

const LONG: Group = Group {
    name: "pipeline-long",
    setting: "4,000 items through 18 stages of about 20 µs each, without state, queues of 64",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-pipeline-long", 1) },
        Contender { label: TWO_PLACES, program: ours("isles-pipeline-long", 2) },
        Contender { label: ALL_PLACES, program: ours("isles-pipeline-long", 18) },
        Contender { label: LOOP, program: Program::Peer("loop-pipeline-long") },
    ],
    rows: &[
        Row {
            name: "pipeline-1",
            question: "18 stages at 1 place",
            unit: "s",
            better: Better::Less,
            ours: figure(ONE_PLACE, "seconds"),
            peers: &[figure(LOOP, "seconds")],
            beside: &[],
            targets: &[Target::BestPeer(1.1)],
            quoted_with: None,
        },
        Row {
            name: "pipeline-2",
            question: "18 stages at 2 places",
            unit: "s",
            better: Better::Less,
            ours: figure(TWO_PLACES, "seconds"),
            peers: &[figure(LOOP, "seconds")],
            beside: &[figure(ONE_PLACE, "seconds")],
            targets: &[Target::Speedup { limit: 1.8, over: ONE_PLACE }],
            quoted_with: None,
        },
        Row {
            name: "pipeline-18",
            question: "18 stages at 18 places on 2 cores",
            unit: "s",
            better: Better::Less,
            ours: figure(ALL_PLACES, "seconds"),
            peers: &[figure(LOOP, "seconds")],
            beside: &[figure(TWO_PLACES, "seconds")],
            targets: &[Target::BestPeer(1.1)],
            quoted_with: None,
        },
    ],
};

const SLOW: Group = Group {
    name: "pipeline-slow",
    setting: "4,000 items through a stage of about 360 µs between two short ones, queues of 64; 4 places on 2 cores \
              have 2 replicas of it",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-pipeline-slow", 1) },
        Contender { label: FOUR_PLACES, program: ours("isles-pipeline-slow", 4) },
    ],
    rows: &[Row {
        name: "pipeline-replicas",
        question: "a slow stage between short ones, in 2 replicas",
        unit: "s",
        better: Better::Less,
        ours: figure(FOUR_PLACES, "seconds"),
        peers: &[],
        beside: &[figure(ONE_PLACE, "seconds")],
        targets: &[Target::Speedup { limit: 1.8, over: ONE_PLACE }],
        quoted_with: None,
    }],
};

const RESIZES: Group = Group {
    name: "pipeline-resizes",
    setting: "18 stages of about 20 µs and 38 kB of state each, from 2 places to 1 and back every second item",
    slow: false,
    contenders: &[Contender { label: TWO_PLACES, program: ours("isles-pipeline-resizes", 2) }],
    rows: &[Row {
        name: "pipeline-pause",
        question: "time between two results at a resize, in times of an item through all stages; median",
        unit: "items",
        better: Better::Less,
        ours: figure(TWO_PLACES, "pause_items"),
        peers: &[],
        beside: &[],
        targets: &[Target::Value(2.0)],
        quoted_with: None,
    }],
};

/// Two tasks and two semaphores; a loop is four requests. Tokio's has neither priorities nor places.
const HUBS_ONE: Group = Group {
    name: "hubs-1",
    setting: "a semaphore loop on 1 place; a switch is a turn of yield_now between two tasks of the place",
    slow: false,
    contenders: &[
        Contender { label: HUBS, program: ours("isles-hub-loop", 1) },
        Contender { label: TOKIO_SEMAPHORES, program: Program::Peer("tokio-semaphore-loop") },
    ],
    rows: &[
        Row {
            name: "loop-1",
            question: "semaphore loop, 1 place",
            unit: "µs",
            better: Better::Less,
            ours: figure(HUBS, "loop_us"),
            peers: &[figure(TOKIO_SEMAPHORES, "loop_us")],
            beside: &[],
            targets: &[],
            quoted_with: None,
        },
        Row {
            name: "loop-switches",
            question: "semaphore loop, 1 place, in switches of a local task",
            unit: "switches",
            better: Better::Less,
            ours: figure(HUBS, "loop_parts"),
            peers: &[],
            beside: &[],
            targets: &[Target::Value(8.0)],
            quoted_with: None,
        },
    ],
};

const HUBS_TWO: Group = Group {
    name: "hubs-2",
    setting: PAIR,
    slow: false,
    contenders: &[Contender { label: HUBS, program: ours("isles-hub-loop", 2) }],
    rows: &[
        Row {
            name: "loop-2",
            question: "semaphore loop, a task and a semaphore at each of 2 places",
            unit: "µs",
            better: Better::Less,
            ours: figure(HUBS, "loop_us"),
            peers: &[],
            beside: &[],
            targets: &[],
            quoted_with: None,
        },
        Row {
            name: "loop-messages",
            question: "semaphore loop between 2 places, in half round trips of an empty at!",
            unit: "messages",
            better: Better::Less,
            ours: figure(HUBS, "loop_parts"),
            peers: &[],
            beside: &[],
            targets: &[Target::Value(4.8)],
            quoted_with: None,
        },
    ],
};
