//! The suite `aggregation`: many tiny messages to unpredictable places.
//!
//! It contains only the table. Invariant: counted updates are applied, and no contender of RandomAccess holds more
//! than 1,024 pending updates per place.

use crate::measure::{Better, Contender, Group, Row, Target};
use crate::mpi::{MpiLibrary, Ranks};
use crate::program::{AppTask, Program};
use crate::suite::{MPICH, ONE_PLACE, OPEN_MPI, PAIR, TWO_PLACES};
use crate::suite::{app, figure, mpich, open_mpi};

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[RANDOM_ACCESS, HPCC, SPAWNED, HISTOGRAM, INDEX_GATHER];

const ONE_PROCESS: &str = "C, 1 process";
const MESSAGE_EACH: &str = "isles, 2 places, a message each";

const GUPS: AppTask =
    AppTask { name: "gups", words: "--bits 26 --updates 67108864", counted: Some("updates") };
const MESSAGES: AppTask =
    AppTask { name: "gups", words: "--bits 20 --updates 1048576 --mode messages", counted: Some("updates") };

/// Millions per second of the items that an application counts.
const RATE: &str = "rate";

const RANDOM_ACCESS: Group = Group {
    name: "random-access",
    setting: "RandomAccess on 512 MiB, 2^26 updates, at most 1,024 ahead; 2 places on 2 cores, machine processes",
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: app(GUPS, 2) },
        Contender { label: ONE_PLACE, program: app(GUPS, 1) },
        Contender { label: MESSAGE_EACH, program: app(MESSAGES, 2) },
        open_mpi("aggregation", 2),
        mpich("aggregation", 2),
        Contender {
            label: ONE_PROCESS,
            program: Program::Mpi {
                library: MpiLibrary::OpenMpi,
                section: "aggregation",
                ranks: Ranks { count: 1, hosts: 1 },
            },
        },
    ],
    rows: &[Row {
        name: "gups",
        question: "updates of RandomAccess; MPI: in C by Alltoallv",
        unit: "M/s",
        better: Better::More,
        ours: figure(TWO_PLACES, RATE),
        peers: &[figure(OPEN_MPI, "updates_million"), figure(MPICH, "updates_million")],
        beside: &[
            figure(ONE_PROCESS, "updates_million"),
            figure(ONE_PLACE, RATE),
            figure(MESSAGE_EACH, RATE),
        ],
        targets: &[
            Target::BestOf { limit: 1.6, of: &[ONE_PROCESS], words: "C, 1 process" },
            Target::BestOf { limit: 5.0, of: &[OPEN_MPI, MPICH], words: "better MPI" },
        ],
        quoted_with: None,
    }],
};

const OF_HPCC: &str = "hpcc";
const GUPS_OF_HPCC: AppTask = AppTask { words: "--bits 24 --updates 67108864", ..GUPS };

/// Common part of both rows beside HPCC.
const BESIDE_HPCC: Row = Row {
    name: "",
    question: "",
    unit: "M/s",
    better: Better::More,
    ours: figure(TWO_PLACES, RATE),
    peers: &[],
    beside: &[],
    targets: &[],
    quoted_with: None,
};

const HPCC: Group = Group {
    name: "random-access-hpcc",
    setting: "RandomAccess on 128 MiB, the program of its authors; 2 places or ranks on 2 cores, machine processes",
    slow: true,
    contenders: &[
        Contender { label: TWO_PLACES, program: app(GUPS_OF_HPCC, 2) },
        Contender { label: OF_HPCC, program: Program::Hpcc },
    ],
    rows: &[
        Row {
            name: "gups-hpcc",
            question: "updates of RandomAccess; HPCC: 2 ranks",
            peers: &[figure(OF_HPCC, "updates_million")],
            targets: &[Target::BestPeer(5.0)],
            ..BESIDE_HPCC
        },
        Row {
            name: "gups-hpcc-alone",
            question: "updates of RandomAccess; HPCC: one process, half the table",
            peers: &[figure(OF_HPCC, "process_updates_million")],
            targets: &[Target::BestPeer(1.6)],
            ..BESIDE_HPCC
        },
    ],
};

const SPAWNED_EACH: &str = "isles, 2 places, a spawn_at! each";
const SPAWNED_GUPS: AppTask = AppTask { words: "--bits 20 --updates 8388608", ..GUPS };
const SPAWNED_MESSAGES: AppTask = AppTask { words: "--bits 20 --updates 8388608 --mode messages", ..GUPS };

const SPAWNED: Group = Group {
    name: "small-updates",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: app(SPAWNED_GUPS, 2) },
        Contender { label: SPAWNED_EACH, program: app(SPAWNED_MESSAGES, 2) },
    ],
    rows: &[Row {
        name: "spawned",
        question: "updates of RandomAccess on 8 MiB, aggregated",
        unit: "M/s",
        better: Better::More,
        ours: figure(TWO_PLACES, RATE),
        peers: &[],
        beside: &[figure(SPAWNED_EACH, RATE)],
        targets: &[],
        quoted_with: None,
    }],
};

const HISTOGRAM: Group = Group {
    name: "counts",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender {
            label: TWO_PLACES,
            program: app(
                AppTask { name: "histogram", words: "--counts 20000000", counted: Some("counts") },
                2,
            ),
        },
        open_mpi("aggregation", 2),
        mpich("aggregation", 2),
    ],
    rows: &[Row {
        name: "histogram",
        question: "counts into 1,000 entries of each place; MPI: in C, 4,096 ahead",
        unit: "M/s",
        better: Better::More,
        ours: figure(TWO_PLACES, RATE),
        peers: &[figure(OPEN_MPI, "counts_million"), figure(MPICH, "counts_million")],
        beside: &[],
        targets: &[Target::Value(100.0)],
        quoted_with: None,
    }],
};

const INDEX_GATHER: Group = Group {
    name: "reads",
    setting: PAIR,
    slow: false,
    contenders: &[Contender {
        label: TWO_PLACES,
        program: app(AppTask { name: "index-gather", words: "--reads 10000000", counted: Some("reads") }, 2),
    }],
    rows: &[Row {
        name: "index-gather",
        question: "random reads of 1,000 entries of each place",
        unit: "M/s",
        better: Better::More,
        ours: figure(TWO_PLACES, RATE),
        peers: &[],
        beside: &[],
        targets: &[Target::Value(50.0)],
        quoted_with: None,
    }],
};
