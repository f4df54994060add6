//! The suite `glb`: tasks that create tasks, with a plain loop over the same tasks beside them.
//!
//! It contains only the table. Both sides visit the same tree with the same hash; the loop keeps the same stack, but
//! neither splits it nor polls for messages.

use super::{ONE_PLACE, TWO_PLACES, app, figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::{AppTask, Program};

const LOOP: &str = "plain loop";
const TWO_LOOPS: &str = "two plain loops at once, half of their time";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[T1, T1L, QUEENS, STEAL];

const T1_TASK: AppTask = AppTask { name: "uts", words: "--tree T1", counted: Some("nodes") };
const T1L_TASK: AppTask = AppTask { words: "--tree T1L", ..T1_TASK };
const QUEENS_TASK: AppTask = AppTask { name: "nqueens", words: "--n 14", counted: Some("placed") };

const fn contenders(task: AppTask, plain: &'static str) -> [Contender; 3] {
    [
        Contender { label: ONE_PLACE, program: app(task, 1) },
        Contender { label: TWO_PLACES, program: app(task, 2) },
        Contender { label: LOOP, program: Program::Peer(plain) },
    ]
}

const T1: Group = Group {
    name: "uts-t1",
    setting: "UTS, tree T1: 4,130,071 nodes",
    slow: false,
    contenders: const { &contenders(T1_TASK, "loop-uts-t1") },
    rows: &[on_one("uts-t1-1", "nodes of UTS tree T1, 1 place"), on_two("uts-t1-2", "UTS tree T1, 2 places")],
};

const T1L: Group = Group {
    name: "uts-t1l",
    setting: "UTS, tree T1L: 102,181,082 nodes",
    slow: false,
    contenders: const {
        let [one, two, plain] = contenders(T1L_TASK, "loop-uts-t1l");
        &[one, two, plain, Contender { label: TWO_LOOPS, program: Program::Peer("loops-uts-t1l") }]
    },
    rows: &[
        on_one("uts-t1l-1", "nodes of UTS tree T1L, 1 place"),
        Row {
            beside: &[figure(ONE_PLACE, "seconds"), figure(TWO_LOOPS, "seconds")],
            ..on_two("uts-t1l-2", "UTS tree T1L, 2 places")
        },
    ],
};

const QUEENS: Group = Group {
    name: "queens-14",
    setting: "14 queens: 365,596 boards, 27,358,552 queens placed",
    slow: false,
    contenders: const { &contenders(QUEENS_TASK, "loop-queens-14") },
    rows: &[
        on_one("queens-14-1", "queens placed of 14, 1 place; the loop is a recursion"),
        on_two("queens-14-2", "all boards of 14 queens, 2 places"),
    ],
};

const STEAL: Group = Group {
    name: "steals",
    setting: "2 places, machine processes; one has tasks of 70 ns, the other steals them one by one",
    slow: false,
    contenders: &[Contender { label: TWO_PLACES, program: ours("isles-steal", 2) }],
    rows: &[Row {
        name: "steal",
        question: "a random steal from a busy place, from request to task",
        unit: "µs",
        better: Better::Less,
        ours: figure(TWO_PLACES, "steal_us"),
        peers: &[],
        beside: &[],
        targets: const { &[Target::Value(5.0)] },
        quoted_with: None,
    }],
};

const fn on_one(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "million/s",
        better: Better::More,
        ours: figure(ONE_PLACE, "rate"),
        peers: const { &[figure(LOOP, "rate")] },
        beside: &[],
        targets: const { &[Target::BestPeer(0.95)] },
        quoted_with: None,
    }
}

const fn on_two(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(TWO_PLACES, "seconds"),
        peers: const { &[figure(LOOP, "seconds")] },
        beside: const { &[figure(ONE_PLACE, "seconds")] },
        targets: const { &[Target::Speedup { limit: 1.95, over: ONE_PLACE }] },
        quoted_with: None,
    }
}
