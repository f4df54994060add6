//! The suite `channels`: values between running tasks, at two places and at one.
//!
//! It contains only the table. Invariant: a peer has channels of the same capacity, or messages with the same
//! completion as the send. Depending on the measurement, Go's channels are faster on one processor or on all: both are
//! peers, and the better one is the baseline.

use super::{CROSSBEAM, MPICH, ONE_PLACE, OPEN_MPI, PAIR, RAW, TWO_PLACES};
use super::{figure, mpich, of_better_mpi, open_mpi, ours};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const GO_ONE: &str = "Go, 1 processor";
const GO_ALL: &str = "Go, all processors";
const OVER_CHANNELS: &str = "isles, 2 places, channels";
const TOKIO: &str = "tokio, 1 thread";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[BETWEEN_PLACES, WITHIN_A_PLACE, POOL, MEMBERS, LONG_MESSAGES, WAVEFRONT];

/// A crossbeam channel is between two threads on two cores, in either group.
const CROSSBEAM_CHANNEL: Contender = Contender { label: CROSSBEAM, program: Program::Peer("crossbeam") };

const BETWEEN_PLACES: Group = Group {
    name: "between-places",
    setting: "2 places on 2 cores, machine processes; each buffer is at the place that receives from it",
    slow: false,
    contenders: &[
        Contender { label: RAW, program: ours("isles-raw", 2) },
        Contender { label: TWO_PLACES, program: ours("isles-channels", 2) },
        open_mpi("channels", 2),
        mpich("channels", 2),
        CROSSBEAM_CHANNEL,
    ],
    rows: &[
        Row {
            name: "rendezvous",
            question: "8 bytes over a channel of capacity 0, half round trip; MPI: Ssend and Recv",
            unit: "us",
            better: Better::Less,
            ours: figure(TWO_PLACES, "half_round_trip_us"),
            peers: &[figure(OPEN_MPI, "half_round_trip_us"), figure(MPICH, "half_round_trip_us")],
            beside: &[figure(RAW, "half_round_trip_us")],
            targets: &[Target::BestOf { limit: 2.5, of: &[RAW], words: "raw message" }],
            quoted_with: None,
        },
        Row {
            name: "stream",
            question: "stream of 8 bytes over a channel of capacity 1,024; crossbeam: two threads; MPI: Send and Recv",
            unit: "million/s",
            better: Better::More,
            ours: figure(TWO_PLACES, "rate_million"),
            peers: &[
                figure(CROSSBEAM, "rate_million"),
                figure(OPEN_MPI, "blocking_rate_million"),
                figure(MPICH, "blocking_rate_million"),
            ],
            beside: &[],
            targets: &[Target::BestOf { limit: 0.5, of: &[CROSSBEAM], words: "crossbeam" }],
            quoted_with: None,
        },
    ],
};

const WITHIN_A_PLACE: Group = Group {
    name: "within-a-place",
    setting: "two tasks at 1 place, machine processes; crossbeam: two threads on 2 cores",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: ours("isles-channels-local", 1) },
        CROSSBEAM_CHANNEL,
        Contender { label: GO_ONE, program: Program::Go { section: "channels", processors: Some(1) } },
        Contender { label: GO_ALL, program: Program::Go { section: "channels", processors: None } },
        Contender { label: TOKIO, program: Program::Peer("tokio-channel") },
    ],
    rows: &[
        Row {
            name: "rendezvous-local",
            question: "8 bytes over a channel of capacity 0 between two tasks of a place, half round trip",
            unit: "us",
            better: Better::Less,
            ours: figure(ONE_PLACE, "half_round_trip_us"),
            peers: &[figure(GO_ONE, "half_round_trip_us"), figure(GO_ALL, "half_round_trip_us")],
            beside: &[],
            targets: &[Target::BestPeer(1.0)],
            quoted_with: None,
        },
        Row {
            name: "stream-local",
            question: "stream of 8 bytes between two tasks of a place, capacity 1,024; crossbeam: two threads",
            unit: "million/s",
            better: Better::More,
            ours: figure(ONE_PLACE, "rate_million"),
            peers: &[
                figure(CROSSBEAM, "rate_million"),
                figure(GO_ONE, "rate_million"),
                figure(GO_ALL, "rate_million"),
                figure(TOKIO, "rate_million"),
            ],
            beside: &[],
            targets: &[Target::BestOf { limit: 1.0, of: &[CROSSBEAM], words: "crossbeam" }],
            quoted_with: None,
        },
    ],
};

const POOL: Group = Group {
    name: "pool",
    setting: "50 jobs of 15 ms over a channel of capacity 0, a worker at each of 2 places on 2 cores, machine \
              processes; sender and buffer are at one of them",
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: ours("isles-pool", 2) },
        Contender { label: CROSSBEAM, program: Program::Peer("crossbeam-pool") },
        Contender { label: GO_ALL, program: Program::Go { section: "pool", processors: None } },
    ],
    rows: &[
        Row {
            name: "pool-time",
            question: "time of all 50 jobs; at best 375 ms",
            unit: "ms",
            better: Better::Less,
            ours: figure(TWO_PLACES, "pool_ms"),
            peers: &[figure(CROSSBEAM, "pool_ms"), figure(GO_ALL, "pool_ms")],
            beside: &[],
            targets: &[Target::BestPeer(1.15)],
            quoted_with: None,
        },
        Row {
            name: "pool-share",
            question: "jobs of the worker that has done fewer, of 50",
            unit: "jobs",
            better: Better::More,
            ours: figure(TWO_PLACES, "lesser_share"),
            peers: &[figure(CROSSBEAM, "lesser_share"), figure(GO_ALL, "lesser_share")],
            beside: &[],
            targets: &[Target::Value(22.0)],
            quoted_with: None,
        },
    ],
};

const MEMBERS: Group = Group {
    name: "members",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: ours("isles-members", 2) },
        open_mpi("message", 2),
        mpich("message", 2),
    ],
    rows: &[
        Row {
            name: "send-recv",
            question: "`send` and `recv` of a number between two members of a team, half round trip; MPI: Send and Recv",
            unit: "us",
            better: Better::Less,
            ours: figure(TWO_PLACES, "value_us"),
            peers: &[figure(OPEN_MPI, "half_round_trip_us"), figure(MPICH, "half_round_trip_us")],
            beside: &[],
            targets: &[of_better_mpi(1.0)],
            quoted_with: None,
        },
        Row {
            name: "send-recv-slice",
            question: "the same with `send_slice` and `recv_slice` of 8 bytes, into existing memory",
            unit: "us",
            better: Better::Less,
            ours: figure(TWO_PLACES, "slice_us"),
            peers: &[figure(OPEN_MPI, "half_round_trip_us"), figure(MPICH, "half_round_trip_us")],
            beside: &[],
            targets: &[of_better_mpi(1.0)],
            quoted_with: None,
        },
    ],
};

const LONG_MESSAGES: Group = Group {
    name: "long-messages",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: ours("isles-members-large", 2) },
        open_mpi("large", 2),
        mpich("large", 2),
    ],
    rows: &[Row {
        name: "send-recv-2m",
        question: "`send_slice` and `recv_slice` of 2 MiB, round trip; MPI: Send and Recv",
        unit: "GB/s",
        better: Better::More,
        ours: figure(TWO_PLACES, "ping_pong_gb"),
        peers: &[figure(OPEN_MPI, "ping_pong_gb"), figure(MPICH, "ping_pong_gb")],
        beside: &[],
        targets: &[of_better_mpi(1.0)],
        quoted_with: None,
    }],
};

const WAVEFRONT: Group = Group {
    name: "wavefront",
    setting: "the kernel p2p of the Parallel Research Kernels, columns split over 2 places on 2 cores, machine \
              processes; a row is swept from left to right, one after the other, and costs one message of 8 bytes",
    slow: false,
    contenders: &[
        Contender { label: TWO_PLACES, program: ours("isles-wavefront", 2) },
        Contender { label: OVER_CHANNELS, program: ours("isles-wavefront-channels", 2) },
        Contender { label: ONE_PLACE, program: ours("isles-wavefront", 1) },
        open_mpi("wavefront", 2),
        mpich("wavefront", 2),
    ],
    rows: &[
        Row {
            name: "wavefront-1024",
            question: "wave over 1,024 x 1,024 cells by slices, or channels of capacity 16; MPI: Send and Recv in C",
            ours: figure(TWO_PLACES, "square_mflops"),
            peers: &[figure(OPEN_MPI, "square_mflops"), figure(MPICH, "square_mflops")],
            beside: &[figure(OVER_CHANNELS, "square_mflops"), figure(ONE_PLACE, "square_mflops")],
            ..SWEEP
        },
        Row {
            name: "wavefront-128x8192",
            question: "the same over 128 columns and 8,192 rows",
            ours: figure(TWO_PLACES, "tall_mflops"),
            peers: &[figure(OPEN_MPI, "tall_mflops"), figure(MPICH, "tall_mflops")],
            beside: &[figure(OVER_CHANNELS, "tall_mflops"), figure(ONE_PLACE, "tall_mflops")],
            ..SWEEP
        },
    ],
};

/// Common part of the rows of the wave.
const SWEEP: Row = Row {
    name: "",
    question: "",
    unit: "MFLOP/s",
    better: Better::More,
    ours: figure(TWO_PLACES, ""),
    peers: &[],
    beside: &[],
    targets: &[of_better_mpi(1.0)],
    quoted_with: None,
};
