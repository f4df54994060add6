//! The suite `core`: the central measurements, their peers and their targets.
//!
//! It contains only the table. Invariant: comparable things are compared; if a peer has two forms of a thing, both are
//! peers. A program that does the same is a peer and may be the baseline; bounds and other forms of ours are shown in
//! `beside`.

use super::{BC_HEP_TH, BC_POWER, CROSSBEAM, MPICH, ONE_PLACE, OPEN_MPI, PAIR, RAW, TWO_PLACES};
use super::{app, figure, mpich, of_better_mpi, on_two_places, open_mpi, ours};
use crate::measure::{Better, Contender, Figure, Group, Row, Target};
use crate::program::Program;

const ISLES: &str = "isles";
const LINE: &str = "cache line";
const RING: &str = "plain ring";
const MARKED_RING: &str = "ring with marked slots";
const GO: &str = "Go";
const NETWORKIT: &str = "NetworKit, 1 thread";
const IGRAPH: &str = "igraph, 1 thread";
const FUTEX: &str = "futex";
const THREADS: &str = "isles, machine threads";
const STEADY: &str = "isles, steady";
const BUSY_HOST: &str = "isles, busy host";
const SEQUENTIAL: &str = "the kernel, no places";
const GENERIC: &str = "isles, vector";
const SIZES: &str = "isles, block";
const HANDLE: &str = "isles, capture";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[
    MESSAGE,
    SLEEPING,
    ROUNDS,
    LOCAL,
    COLLECTIVE,
    LARGE,
    ALIKE,
    SIDE_BY_SIDE,
    OVERSUBSCRIBED_8,
    OVERSUBSCRIBED_48,
    MEMORY,
    POWER,
    HEP_TH,
    COLD,
];

/// Common part of most rows.
const ROW: Row = Row {
    name: "",
    question: "",
    unit: "us",
    better: Better::Less,
    ours: figure(ISLES, ""),
    peers: &[],
    beside: &[],
    targets: &[],
    quoted_with: None,
};

const MESSAGE: Group = Group {
    name: "message",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: RAW, program: ours("isles-raw", 2) },
        Contender { label: ISLES, program: ours("isles-message", 2) },
        Contender {
            label: THREADS,
            program: Program::Isles { child: "isles-message", machine: "threads", places: 2 },
        },
        Contender { label: LINE, program: Program::Peer("cache-line") },
        Contender { label: RING, program: Program::Peer("plain-ring") },
        Contender { label: MARKED_RING, program: Program::Peer("marked-ring") },
        open_mpi("message", 2),
        mpich("message", 2),
        Contender { label: CROSSBEAM, program: Program::Peer("crossbeam") },
        Contender { label: GO, program: Program::Go { section: "channels", processors: None } },
    ],
    rows: &[
        Row {
            name: "raw-message",
            question: "smallest message of the transport, half round trip, both sides busy; cache line: no message",
            ours: figure(RAW, "half_round_trip_us"),
            peers: &[
                figure(MARKED_RING, "half_round_trip_us"),
                figure(RING, "half_round_trip_us"),
                figure(OPEN_MPI, "half_round_trip_us"),
                figure(MPICH, "half_round_trip_us"),
            ],
            beside: &[figure(LINE, "half_round_trip_us")],
            targets: &[Target::BestPeer(1.25), of_better_mpi(0.6)],
            ..ROW
        },
        Row {
            name: "at",
            question: "empty at!, half round trip, both sides busy; MPI: 8 bytes",
            ours: figure(ISLES, "half_round_trip_us"),
            peers: &[figure(OPEN_MPI, "half_round_trip_us"), figure(MPICH, "half_round_trip_us")],
            targets: &[Target::BestPeer(1.0)],
            ..ROW
        },
        Row {
            name: "at-threads",
            question: "empty at! between two threads, half round trip; peers: channels",
            ours: figure(THREADS, "half_round_trip_us"),
            peers: &[figure(CROSSBEAM, "half_round_trip_us"), figure(GO, "half_round_trip_us")],
            ..ROW
        },
        Row {
            name: "spawn-at",
            question: "spawn_at! of a tiny body under one finish; peers: messages of 8 bytes, one answer a batch",
            unit: "million/s",
            better: Better::More,
            ours: figure(ISLES, "rate_million"),
            peers: &[
                figure(MARKED_RING, "rate_million"),
                figure(RING, "rate_million"),
                figure(CROSSBEAM, "rate_million"),
                figure(OPEN_MPI, "rate_million"),
                figure(OPEN_MPI, "blocking_rate_million"),
                figure(MPICH, "rate_million"),
                figure(MPICH, "blocking_rate_million"),
                figure(GO, "rate_million"),
            ],
            targets: &[Target::Value(10.0)],
            ..ROW
        },
    ],
};

const SLEEPING: Group = Group {
    name: "sleeping",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-sleeping", 2) },
        Contender { label: FUTEX, program: Program::Peer("futex") },
    ],
    rows: &[
        Row {
            name: "at-sleeping",
            question: "empty at! to a place asleep after 450 us idle, round trip; futex: wake and answer",
            ours: figure(ISLES, "there_and_back_us"),
            peers: &[figure(FUTEX, "there_and_back_us")],
            targets: &[Target::BestPeer(1.25)],
            ..ROW
        },
        Row {
            name: "at-long-asleep",
            question: "the same after 1.3 ms: its processor sleeps too",
            ours: figure(ISLES, "long_asleep_us"),
            peers: &[figure(FUTEX, "long_asleep_us")],
            ..ROW
        },
    ],
};

const ROUNDS: Group = Group {
    name: "rounds",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-after-sleep", 2) },
        Contender { label: BUSY_HOST, program: ours("isles-crowded", 2) },
        Contender { label: STEADY, program: ours("isles-message", 2) },
        open_mpi("rounds", 2),
        mpich("rounds", 2),
    ],
    rows: &[
        Row {
            name: "at-after-sleep",
            question: "100,000 empty at! in a row, half round trip, after both places slept 30 ms; MPI: 8 bytes; steady: without the sleep",
            ours: figure(ISLES, "half_round_trip_us"),
            peers: &[figure(OPEN_MPI, "half_round_trip_us"), figure(MPICH, "half_round_trip_us")],
            beside: &[figure(STEADY, "half_round_trip_us")],
            targets: &[Target::BestOf { limit: 1.2, of: &[STEADY], words: "steady calls" }],
            ..ROW
        },
        Row {
            name: "at-crowded",
            question: "the same beside four busy processes of the lowest priority",
            ours: figure(BUSY_HOST, "half_round_trip_us"),
            peers: &[figure(OPEN_MPI, "crowded_us"), figure(MPICH, "crowded_us")],
            targets: &[of_better_mpi(1.0)],
            ..ROW
        },
    ],
};

const LOCAL: Group = Group {
    name: "local",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-spawn", 2) },
        Contender { label: "rayon", program: Program::Peer("rayon") },
        Contender { label: "smol", program: Program::Peer("smol") },
        Contender { label: "tokio, 1 thread", program: Program::Peer("tokio-one") },
        Contender { label: "tokio, all cores", program: Program::Peer("tokio-many") },
        Contender { label: GO, program: Program::Go { section: "tasks", processors: None } },
    ],
    rows: &[Row {
        name: "spawn",
        question: "a million tasks started and awaited at one place, no handles kept; rayon: one worker",
        unit: "ns/task",
        ours: figure(ISLES, "spawn_ns"),
        peers: &[
            figure("rayon", "spawn_ns"),
            figure("smol", "spawn_ns"),
            figure("tokio, 1 thread", "spawn_ns"),
            figure("tokio, all cores", "spawn_ns"),
            figure(GO, "spawn_ns"),
        ],
        targets: &[Target::Value(60.0)],
        ..ROW
    }],
};

const COLLECTIVE: Group = Group {
    name: "collective",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-collective", 2) },
        open_mpi("collective", 2),
        mpich("collective", 2),
    ],
    rows: &[
        collective(
            "barrier",
            "barrier of 2 places",
            &[figure(OPEN_MPI, "barrier_us"), figure(MPICH, "barrier_us")],
            "barrier_us",
        ),
        collective(
            "all-reduce",
            "all_reduce of 8 bytes, 2 places",
            &[figure(OPEN_MPI, "all_reduce_us"), figure(MPICH, "all_reduce_us")],
            "all_reduce_us",
        ),
        collective(
            "broadcast-8k",
            "broadcast of 8 KiB, 2 places, changing root",
            &[figure(OPEN_MPI, "broadcast_8k_us"), figure(MPICH, "broadcast_8k_us")],
            "broadcast_8k_us",
        ),
        collective(
            "broadcast-1m",
            "broadcast of 1 MiB, 2 places, changing root",
            &[figure(OPEN_MPI, "broadcast_1m_us"), figure(MPICH, "broadcast_1m_us")],
            "broadcast_1m_us",
        ),
    ],
};

const fn collective(
    name: &'static str,
    question: &'static str,
    peers: &'static [Figure],
    value: &'static str,
) -> Row {
    Row {
        name,
        question,
        ours: figure(ISLES, value),
        peers,
        targets: const { &[Target::BestPeer(0.7)] },
        ..ROW
    }
}

const LARGE: Group = Group {
    name: "large",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-large", 2) },
        open_mpi("large", 2),
        mpich("large", 2),
        Contender { label: "memcpy", program: Program::Peer("memcpy") },
    ],
    rows: &[
        Row {
            quoted_with: Some("read-2m"), // what only arrives may still cost its reader something
            ..large(
                "move-2m",
                "2 MiB moved by at! of a plain array; MPI: 8 bytes back",
                &[figure(OPEN_MPI, "answered_gb"), figure(MPICH, "answered_gb")],
                "answered_gb",
            )
        },
        large(
            "read-2m",
            "2 MiB moved, each word read by the receiver",
            &[figure(OPEN_MPI, "read_gb"), figure(MPICH, "read_gb")],
            "read_gb",
        ),
        large(
            "stream-2m",
            "2 MiB messages one after the other, 8 under way",
            &[figure(OPEN_MPI, "stream_gb"), figure(MPICH, "stream_gb")],
            "stream_gb",
        ),
    ],
};

const fn large(
    name: &'static str,
    question: &'static str,
    peers: &'static [Figure],
    value: &'static str,
) -> Row {
    Row {
        name,
        question,
        unit: "GB/s",
        better: Better::More,
        ours: figure(ISLES, value),
        peers,
        beside: const { &[figure("memcpy", "copy_gb")] },
        targets: const { &[Target::BestPeer(1.3)] },
        ..ROW
    }
}

const ALIKE: Group = Group {
    name: "alike",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: GENERIC, program: ours("isles-generic", 2) },
        Contender { label: SIZES, program: ours("isles-sizes", 2) },
        Contender { label: HANDLE, program: ours("isles-handle", 2) },
    ],
    rows: &[
        Row {
            name: "generic-1024",
            question: "at! with a Vec<f64> of 1,024, from a generic function and a concrete one",
            ours: figure(GENERIC, "generic_us"),
            beside: &[figure(GENERIC, "concrete_us")],
            targets: &[Target::BestOf { limit: 1.1, of: &[GENERIC], words: "concrete" }],
            ..ROW
        },
        Row {
            name: "move-33m",
            question: "33 MiB moved by at! of a slice, beside 30 MiB",
            unit: "GB/s",
            better: Better::More,
            ours: figure(SIZES, "of_33_mib_gb"),
            beside: &[figure(SIZES, "of_30_mib_gb")],
            targets: &[Target::BestOf { limit: 0.85, of: &[SIZES], words: "that of 30 MiB" }],
            ..ROW
        },
        Row {
            name: "spawn-handle",
            question: "spawn_at! that captures a handle, beside one that captures a number",
            unit: "ns/task",
            ours: figure(HANDLE, "handle_ns"),
            beside: &[figure(HANDLE, "number_ns")],
            targets: &[Target::BestOf { limit: 1.3, of: &[HANDLE], words: "that with a number" }],
            ..ROW
        },
    ],
};

const SIDE_BY_SIDE: Group = Group {
    name: "side-by-side",
    setting: "two runs of 1 place each at the same time, betweenness of power",
    slow: false,
    contenders: &[Contender { label: ISLES, program: Program::Peer("side-by-side") }],
    rows: &[Row {
        name: "two-runs",
        question: "the slower one of two runs side by side, beside one run alone",
        unit: "s",
        ours: figure(ISLES, "together_s"),
        beside: &[figure(ISLES, "alone_s")],
        targets: &[Target::BestOf { limit: 1.1, of: &[ISLES], words: "one alone" }],
        ..ROW
    }],
};

const OVERSUBSCRIBED_8: Group = Group {
    name: "crowd-8",
    setting: "8 places, machine processes; Open MPI yielding when idle, MPICH without such an option",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-crowd", 8) },
        open_mpi("crowd", 8),
        mpich("crowd", 8),
    ],
    rows: &[
        oversubscribed_ring("ring-8", "8 bytes round a ring of 8 places on fewer cores, one hop"),
        oversubscribed_barrier("barrier-8", "barrier of 8 places on fewer cores"),
        oversubscribed_idle("idle-8", "processor time of 8 waiting places, of all cores"),
    ],
};

const OVERSUBSCRIBED_48: Group = Group {
    name: "crowd-48",
    setting: "48 places, machine processes; Open MPI yielding when idle, MPICH without such an option",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: ours("isles-crowd", 48) },
        open_mpi("crowd", 48),
        mpich("crowd", 48),
    ],
    rows: &[
        oversubscribed_ring("ring-48", "8 bytes round a ring of 48 places on fewer cores, one hop"),
        oversubscribed_barrier("barrier-48", "barrier of 48 places on fewer cores"),
        oversubscribed_idle("idle-48", "processor time of 48 waiting places, of all cores"),
    ],
};

const fn oversubscribed_ring(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        ours: figure(ISLES, "hop_us"),
        peers: const { &[figure(OPEN_MPI, "hop_us"), figure(MPICH, "hop_us")] },
        targets: &[Target::BestPeer(1.0)],
        ..ROW
    }
}

const fn oversubscribed_barrier(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        ours: figure(ISLES, "barrier_us"),
        peers: const { &[figure(OPEN_MPI, "barrier_us"), figure(MPICH, "barrier_us")] },
        targets: &[Target::BestPeer(1.0)],
        ..ROW
    }
}

const fn oversubscribed_idle(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "%",
        ours: figure(ISLES, "idle_percent"),
        targets: &[Target::Value(1.0)],
        ..ROW
    }
}

const MEMORY: Group = Group {
    name: "memory",
    setting: PAIR,
    slow: false,
    contenders: &[Contender { label: ISLES, program: ours("isles-memory", 2) }],
    rows: &[
        Row {
            name: "idle-memory",
            question: "resident memory of an idle place beyond the same program without places",
            unit: "MiB",
            ours: figure(ISLES, "idle_mib"),
            targets: &[Target::Value(2.0)],
            ..ROW
        },
        Row {
            name: "load-memory",
            question: "resident memory of a place after a million spawn_at! and 64 messages of 2 MiB",
            unit: "MiB",
            ours: figure(ISLES, "loaded_mib"),
            beside: &[figure(ISLES, "stated_bound_mib")],
            targets: &[Target::BestOf { limit: 1.0, of: &[ISLES], words: "stated bound (docs/memory.md)" }],
            ..ROW
        },
    ],
};

const POWER: Group = Group {
    name: "power",
    setting: "betweenness of power, 4,941 vertices and 6,594 edges, unweighted; reading not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(BC_POWER, 1) },
        Contender { label: TWO_PLACES, program: app(BC_POWER, 2) },
        Contender { label: SEQUENTIAL, program: Program::Peer("sequential-power") },
        Contender { label: NETWORKIT, program: Program::Betweenness { module: "networkit", graph: "power" } },
        Contender { label: IGRAPH, program: Program::Betweenness { module: "igraph", graph: "power" } },
    ],
    rows: &[
        betweenness("power-1", "betweenness of power, 1 place"),
        on_two_places("power-2", "betweenness of power, 2 places"),
    ],
};

const HEP_TH: Group = Group {
    name: "hep-th",
    setting: "betweenness of hep-th, 8,361 vertices and 15,751 edges, unweighted; reading not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(BC_HEP_TH, 1) },
        Contender { label: TWO_PLACES, program: app(BC_HEP_TH, 2) },
        Contender { label: SEQUENTIAL, program: Program::Peer("sequential-hep-th") },
        Contender {
            label: NETWORKIT,
            program: Program::Betweenness { module: "networkit", graph: "hep-th" },
        },
        Contender { label: IGRAPH, program: Program::Betweenness { module: "igraph", graph: "hep-th" } },
    ],
    rows: &[
        betweenness("hep-th-1", "betweenness of hep-th, 1 place"),
        on_two_places("hep-th-2", "betweenness of hep-th, 2 places"),
    ],
};

const fn betweenness(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        ours: figure(ONE_PLACE, "seconds"),
        peers: const { &[figure(NETWORKIT, "seconds"), figure(IGRAPH, "seconds")] },
        beside: const { &[figure(SEQUENTIAL, "seconds")] },
        targets: const { &[Target::BestPeer(1.0)] },
        ..ROW
    }
}

const COLD: Group = Group {
    name: "cold",
    setting: "./run in a fresh copy of the checkout, nothing built and nothing downloaded; Rust is installed",
    slow: true,
    contenders: &[Contender { label: ISLES, program: Program::Peer("cold-run") }],
    rows: &[Row {
        name: "cold-run",
        question: "first ./run, with downloads, to the end of the main job",
        unit: "s",
        ours: figure(ISLES, "seconds"),
        targets: &[Target::Value(75.0)],
        ..ROW
    }],
};
