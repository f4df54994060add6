//! The suite `hubs`: a semaphore loop over the hubs of a real-time kernel, on one place and between two.
//!
//! Its own file because its measures are switches and messages of the same run: a loop is compared with what it consists
//! of. It holds no code but the table. A loop is two tasks, two semaphores, four requests. Tokio's loop is two tasks of
//! one thread and two of its semaphores, which have neither priorities nor places.

use super::{PAIR, figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const ISLES: &str = "isles";
const TOKIO: &str = "tokio";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[ONE, TWO];

const ONE: Group = Group {
    name: "hubs-1",
    setting: "a semaphore loop on 1 place; a switch is a turn of yield_now between two tasks of the place",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-hub-loop", 1) },
        Contender { label: TOKIO, program: Program::Peer("tokio-semaphore-loop") },
    ],
    rows: &[
        Row {
            name: "loop-1",
            question: "semaphore loop, 1 place",
            unit: "µs",
            better: Better::Less,
            ours: figure(ISLES, "loop_us"),
            peers: &[figure(TOKIO, "loop_us")],
            beside: &[],
            targets: &[],
            quoted_with: None,
        },
        Row {
            name: "loop-switches",
            question: "semaphore loop, 1 place, in switches of a local task",
            unit: "switches",
            better: Better::Less,
            ours: figure(ISLES, "loop_parts"),
            peers: &[],
            beside: &[],
            targets: &[Target::Value(8.0)],
            quoted_with: None,
        },
    ],
};

const TWO: Group = Group {
    name: "hubs-2",
    setting: PAIR,
    slow: false,
    contenders: &[Contender { label: ISLES, program: ours("isles-hub-loop", 2) }],
    rows: &[
        Row {
            name: "loop-2",
            question: "semaphore loop, a task and a semaphore at each of 2 places",
            unit: "µs",
            better: Better::Less,
            ours: figure(ISLES, "loop_us"),
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
            ours: figure(ISLES, "loop_parts"),
            peers: &[],
            beside: &[],
            targets: &[Target::Value(4.8)],
            quoted_with: None,
        },
    ],
};
