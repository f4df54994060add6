//! The suite `windows`: memory of a place that another one reads and writes, and a program that uses it.
//!
//! It contains only the table. Invariant: an access has completed at its target when it counts, for peers as for ours.

use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::AppTask;
use crate::suite::{MPICH, ONE_PLACE, OPEN_MPI, PAIR, TWO_PLACES};
use crate::suite::{app, figure, mpich, of_better_mpi, open_mpi, ours};

const TWO_SIDED: &str = "isles, 2 places, two-sided";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[ACCESSES, AUTOMATON];

const ACCESSES: Group = Group {
    name: "accesses",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: ours("isles-windows", 2) },
        open_mpi("windows", 2),
        mpich("windows", 2),
    ],
    rows: &[
        Row {
            name: "put-flush",
            question: "`put` of 8 bytes and `flush`; MPI: Put and Win_flush",
            ours: figure(TWO_PLACES, "put_us"),
            peers: &[figure(OPEN_MPI, "put_us"), figure(MPICH, "put_us")],
            targets: &[Target::BestOf { limit: 1.0, of: &[OPEN_MPI], words: "Open MPI" }],
            ..ACCESS
        },
        Row {
            name: "fetch-add",
            question: "`fetch_add` of 8 bytes; MPI: Fetch_and_op and Win_flush",
            ours: figure(TWO_PLACES, "fetch_add_us"),
            peers: &[figure(OPEN_MPI, "fetch_add_us"), figure(MPICH, "fetch_add_us")],
            targets: &[Target::BestOf { limit: 0.5, of: &[OPEN_MPI], words: "Open MPI" }],
            ..ACCESS
        },
        Row {
            name: "put-1m",
            question: "`put` of 1 MiB and `flush`; MPI: Put and Win_flush",
            unit: "GB/s",
            better: Better::More,
            ours: figure(TWO_PLACES, "put_1m_gb"),
            peers: &[figure(OPEN_MPI, "put_1m_gb"), figure(MPICH, "put_1m_gb")],
            targets: &[of_better_mpi(1.0)],
            ..ACCESS
        },
        Row {
            name: "halo-8k",
            question: "8 KiB to and from both neighbours, `put_notify` and `notified`; MPI: two Sendrecv",
            ours: figure(TWO_PLACES, "halo_us"),
            peers: &[figure(OPEN_MPI, "halo_us"), figure(MPICH, "halo_us")],
            targets: &[of_better_mpi(0.7)],
            ..ACCESS
        },
    ],
};

/// Common part of the rows of accesses.
const ACCESS: Row = Row {
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

const STEPS: AppTask = AppTask {
    name: "automaton",
    words: "--pattern random --rows 1024 --columns 8192 --generations 400 --exchange one-sided",
    counted: None,
};
const STEPS_TWO_SIDED: AppTask = AppTask {
    words: "--pattern random --rows 1024 --columns 8192 --generations 400 --exchange two-sided",
    ..STEPS
};

const AUTOMATON: Group = Group {
    name: "steps",
    setting: "1,024 rows of 8,192 cells in strips over 2 places on 2 cores, machine processes, 400 steps",
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: app(STEPS, 2) },
        Contender { label: TWO_SIDED, program: app(STEPS_TWO_SIDED, 2) },
        Contender { label: ONE_PLACE, program: app(STEPS, 1) },
        open_mpi("automaton", 2),
        mpich("automaton", 2),
    ],
    rows: &[Row {
        name: "automaton",
        question: "a cellular automaton, edges one-sided; MPI: Isend and Irecv in C",
        unit: "s",
        better: Better::Less,
        ours: figure(TWO_PLACES, "seconds"),
        peers: &[figure(OPEN_MPI, "seconds"), figure(MPICH, "seconds")],
        beside: &[
            figure(TWO_SIDED, "seconds"),
            figure(ONE_PLACE, "seconds"),
            figure(OPEN_MPI, "one_sided_seconds"),
            figure(MPICH, "one_sided_seconds"),
        ],
        targets: &[
            Target::BestOf { limit: 1.0, of: &[TWO_SIDED], words: "two-sided" },
            Target::Speedup { limit: 1.85, over: ONE_PLACE },
        ],
        quoted_with: None,
    }],
};
