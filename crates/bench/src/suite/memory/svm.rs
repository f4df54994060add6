//! The suite `svm`: page faults that another process serves, and Jacobi over shared pages beside an array in parts.
//!
//! Its own file because its rows are others than those of windows. It holds no code but the table. The bound of a fault
//! stands beside the fault that needs no other process, which is a handler alone.

use crate::measure::{Better, Contender, Figure, Group, Row, Target};
use crate::program::{AppTask, Program};

const FAULTS: &str = "isles, faults";
const RELEASE: &str = "isles, pages, release";
const STRONG: &str = "isles, pages, strong";
const PARTS: &str = "isles, array in parts";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[PAGE_FAULTS, JACOBI];

const PAGE_FAULTS: Group = Group {
    name: "faults",
    setting: "2 processes, model strong, 2,000 pages that the other process has written; median of the guards of a page",
    slow: false,
    contenders: &[Contender { label: FAULTS, program: Program::Peer("svm-faults") }],
    rows: &[
        fault("fault-read", "a page to read, from another process", "read_us"),
        fault("fault-write", "a page to write, from another process", "write_us"),
        Row { targets: &[], ..fault("fault-alone", "a page that no other place has", "alone_us") },
    ],
};

const fn fault(name: &'static str, question: &'static str, of: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "µs",
        better: Better::Less,
        ours: figure(FAULTS, of),
        peers: &[],
        beside: &[],
        targets: const { &[Target::Value(30.0)] },
        quoted_with: None,
    }
}

const fn figure(contender: &'static str, name: &'static str) -> Figure {
    Figure { contender, name }
}

const fn on_two(task: AppTask) -> Program {
    Program::App { task, machine: "processes", places: 2 }
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
        Contender { label: RELEASE, program: on_two(RELEASE_TASK) },
        Contender { label: STRONG, program: on_two(STRONG_TASK) },
        Contender { label: PARTS, program: on_two(PARTS_TASK) },
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
