//! The suite `mpi`: ranks of an MPI run as places, on one host and on several.
//!
//! It contains only the table. Invariants: ranks of one host are compared with an equal number of places of the
//! machine `processes`; ranks of several hosts, which are network namespaces of this one, with C over the same library
//! on the same hosts.

use crate::measure::{Better, Contender, Figure, Group, Row, Target};
use crate::mpi::MpiLibrary::{self, Mpich, OpenMpi};
use crate::mpi::Ranks;
use crate::output::ELAPSED;
use crate::program::{AppTask, Program};
use crate::suite::{BC_HEP_TH, BC_POWER, MPICH, OPEN_MPI, app, figure, ours};

const PROCESSES: &str = "isles, processes";
const RANKS: &str = "isles, ranks";
const GO: &str = "Go, all processors";
const OVER_OPEN_MPI: &str = "isles over Open MPI";
const FLAT: &str = "isles, flat";
const OVER_MPICH: &str = "isles over MPICH";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[
    ONE_HOST,
    ONE_HOST_LARGE,
    ONE_HOST_TOGETHER,
    POOL,
    CALLS,
    SIZES,
    TOGETHER,
    TOGETHER_6,
    IDLE,
    POWER_2,
    POWER_4,
    POWER_6,
    HEP_TH_2,
    HEP_TH_4,
    HEP_TH_6,
    START,
];

const fn on(
    library: MpiLibrary,
    label: &'static str,
    child: &'static str,
    count: u32,
    hosts: u32,
) -> Contender {
    let program = Program::IslesMpi { library, child, ranks: Ranks { count, hosts }, collectives: None };
    Contender { label, program }
}

/// Collectives of ranks on several hosts, by teams that ignore the hosts.
const fn flat(count: u32, hosts: u32) -> Contender {
    let ranks = Ranks { count, hosts };
    let program =
        Program::IslesMpi { library: OpenMpi, child: "isles-collective", ranks, collectives: Some("flat") };
    Contender { label: FLAT, program }
}

const fn in_c(
    library: MpiLibrary,
    label: &'static str,
    section: &'static str,
    count: u32,
    hosts: u32,
) -> Contender {
    Contender { label, program: Program::Mpi { library, section, ranks: Ranks { count, hosts } } }
}

/// The same child as ranks of one host and as processes.
const fn pair(child: &'static str) -> [Contender; 2] {
    [on(OpenMpi, RANKS, child, 2, 1), Contender { label: PROCESSES, program: ours(child, 2) }]
}

const ROW: Row = Row {
    name: "",
    question: "",
    unit: "us",
    better: Better::Less,
    ours: figure(RANKS, ""),
    peers: &[],
    beside: &[],
    targets: &[Target::BestPeer(1.1)],
    quoted_with: None,
};

/// More is better.
const RATE: Row = Row { better: Better::More, targets: &[Target::BestPeer(0.9)], ..ROW };

const ONE_HOST_SETTING: &str = "2 ranks of one host under mpirun, beside 2 places of the machine processes";

const ONE_HOST: Group = Group {
    name: "one-host",
    setting: ONE_HOST_SETTING,
    slow: false,
    contenders: const { &pair("isles-message") },
    rows: &[
        Row {
            name: "mpi-at",
            question: "empty at!, half round trip, 2 ranks of one host",
            ours: figure(RANKS, "half_round_trip_us"),
            peers: &[figure(PROCESSES, "half_round_trip_us")],
            ..ROW
        },
        Row {
            name: "mpi-spawn-at",
            question: "spawn_at! of a tiny body, 2 ranks of one host",
            unit: "million/s",
            ours: figure(RANKS, "rate_million"),
            peers: &[figure(PROCESSES, "rate_million")],
            ..RATE
        },
    ],
};

const POOL: Group = Group {
    name: "pool",
    setting: "50 jobs of 15 ms over a channel of capacity 0, a worker at each of 2 ranks of one host on 2 cores; sender \
              and buffer are at one of them",
    slow: false,
    contenders: &[
        on(OpenMpi, RANKS, "isles-pool", 2, 1),
        Contender { label: PROCESSES, program: ours("isles-pool", 2) },
        Contender { label: GO, program: Program::Go { section: "pool", processors: None } },
    ],
    rows: &[
        Row {
            name: "mpi-pool-time",
            question: "time of all 50 jobs; at best 375 ms",
            unit: "ms",
            ours: figure(RANKS, "pool_ms"),
            peers: &[figure(PROCESSES, "pool_ms"), figure(GO, "pool_ms")],
            targets: &[Target::BestPeer(1.15)],
            ..ROW
        },
        Row {
            name: "mpi-pool-share",
            question: "jobs of the rank that has done fewer, of 50",
            unit: "jobs",
            ours: figure(RANKS, "lesser_share"),
            peers: &[figure(PROCESSES, "lesser_share"), figure(GO, "lesser_share")],
            targets: &[Target::Value(22.0)],
            ..RATE
        },
    ],
};

const ONE_HOST_LARGE: Group = Group {
    name: "one-host-large",
    setting: ONE_HOST_SETTING,
    slow: false,
    contenders: const { &pair("isles-large") },
    rows: &[Row {
        name: "mpi-at-2m",
        question: "at! that moves 2 MiB and reads them, 2 ranks of one host",
        unit: "GB/s",
        ours: figure(RANKS, "read_gb"),
        peers: &[figure(PROCESSES, "read_gb")],
        ..RATE
    }],
};

const ONE_HOST_TOGETHER: Group = Group {
    name: "one-host-together",
    setting: ONE_HOST_SETTING,
    slow: false,
    contenders: const { &pair("isles-collective") },
    rows: &[Row {
        name: "mpi-barrier",
        question: "barrier, 2 ranks of one host",
        ours: figure(RANKS, "barrier_us"),
        peers: &[figure(PROCESSES, "barrier_us")],
        ..ROW
    }],
};

const TWO_HOSTS: &str =
    "2 ranks on 2 hosts, a core each; hosts are network namespaces, MPI's TCP between them";

/// The same child of ours over both libraries, and the same section of C.
const fn both(child: &'static str, section: &'static str) -> [Contender; 4] {
    [
        on(OpenMpi, OVER_OPEN_MPI, child, 2, 2),
        in_c(OpenMpi, OPEN_MPI, section, 2, 2),
        on(Mpich, OVER_MPICH, child, 2, 2),
        in_c(Mpich, MPICH, section, 2, 2),
    ]
}

/// Between hosts: within 15 % of the library's own time.
const HOSTS: Row = Row { targets: &[Target::BestPeer(1.15)], ..ROW };

/// A flood: at least 5 times the library's rate with single messages.
const FLOOD: Row = Row { unit: "million/s", better: Better::More, targets: &[Target::BestPeer(5.0)], ..ROW };

const CALLS: Group = Group {
    name: "two-hosts",
    setting: TWO_HOSTS,
    slow: false,
    contenders: const { &both("isles-message", "message") },
    rows: &[
        Row {
            name: "hosts-at",
            question: "empty at!, half round trip; C: 8 bytes",
            ours: figure(OVER_OPEN_MPI, "half_round_trip_us"),
            peers: &[figure(OPEN_MPI, "half_round_trip_us")],
            ..HOSTS
        },
        Row {
            name: "hosts-spawn-at",
            question: "spawn_at! of a tiny body; C: messages of 8 bytes, one answer a batch",
            ours: figure(OVER_OPEN_MPI, "rate_million"),
            peers: &[figure(OPEN_MPI, "rate_million"), figure(OPEN_MPI, "blocking_rate_million")],
            ..FLOOD
        },
        Row {
            name: "hosts-at-mpich",
            question: "empty at!, half round trip; C: 8 bytes",
            ours: figure(OVER_MPICH, "half_round_trip_us"),
            peers: &[figure(MPICH, "half_round_trip_us")],
            ..HOSTS
        },
        Row {
            name: "hosts-spawn-at-mpich",
            question: "spawn_at! of a tiny body; C: messages of 8 bytes, one answer a batch",
            ours: figure(OVER_MPICH, "rate_million"),
            peers: &[figure(MPICH, "rate_million"), figure(MPICH, "blocking_rate_million")],
            ..FLOOD
        },
    ],
};

const SIZES: Group = Group {
    name: "two-hosts-sizes",
    setting: TWO_HOSTS,
    slow: false,
    contenders: const { &both("isles-members-sizes", "sizes") },
    rows: &[
        Row {
            name: "hosts-8",
            question: "slice of 8 bytes, half round trip",
            ours: figure(OVER_OPEN_MPI, "us_8"),
            peers: &[figure(OPEN_MPI, "us_8")],
            ..HOSTS
        },
        Row {
            name: "hosts-1k",
            question: "slice of 1 KiB, half round trip",
            ours: figure(OVER_OPEN_MPI, "us_1k"),
            peers: &[figure(OPEN_MPI, "us_1k")],
            ..HOSTS
        },
        Row {
            name: "hosts-16k",
            question: "slice of 16 KiB, half round trip",
            ours: figure(OVER_OPEN_MPI, "us_16k"),
            peers: &[figure(OPEN_MPI, "us_16k")],
            ..HOSTS
        },
        Row {
            name: "hosts-256k",
            question: "slice of 256 KiB, half round trip",
            ours: figure(OVER_OPEN_MPI, "us_256k"),
            peers: &[figure(OPEN_MPI, "us_256k")],
            ..HOSTS
        },
        Row {
            name: "hosts-2m",
            question: "slice of 2 MiB, half round trip",
            ours: figure(OVER_OPEN_MPI, "us_2m"),
            peers: &[figure(OPEN_MPI, "us_2m")],
            ..HOSTS
        },
        Row {
            name: "hosts-8-mpich",
            question: "slice of 8 bytes, half round trip",
            ours: figure(OVER_MPICH, "us_8"),
            peers: &[figure(MPICH, "us_8")],
            ..HOSTS
        },
        Row {
            name: "hosts-1k-mpich",
            question: "slice of 1 KiB, half round trip",
            ours: figure(OVER_MPICH, "us_1k"),
            peers: &[figure(MPICH, "us_1k")],
            ..HOSTS
        },
        Row {
            name: "hosts-16k-mpich",
            question: "slice of 16 KiB, half round trip",
            ours: figure(OVER_MPICH, "us_16k"),
            peers: &[figure(MPICH, "us_16k")],
            ..HOSTS
        },
        Row {
            name: "hosts-256k-mpich",
            question: "slice of 256 KiB, half round trip",
            ours: figure(OVER_MPICH, "us_256k"),
            peers: &[figure(MPICH, "us_256k")],
            ..HOSTS
        },
        Row {
            name: "hosts-2m-mpich",
            question: "slice of 2 MiB, half round trip",
            ours: figure(OVER_MPICH, "us_2m"),
            peers: &[figure(MPICH, "us_2m")],
            ..HOSTS
        },
    ],
};

/// A collective of ranks on several hosts, over Open MPI.
const fn together(
    name: &'static str,
    question: &'static str,
    value: &'static str,
    peers: &'static [Figure],
) -> Row {
    Row { name, question, ours: figure(OVER_OPEN_MPI, value), peers, targets: &[], ..ROW }
}

const TOGETHER: Group = Group {
    name: "two-hosts-together",
    setting: TWO_HOSTS,
    slow: false,
    contenders: &[
        on(OpenMpi, OVER_OPEN_MPI, "isles-collective", 2, 2),
        in_c(OpenMpi, OPEN_MPI, "collective", 2, 2),
    ],
    rows: &[
        together(
            "hosts-barrier",
            "barrier of 2 ranks",
            "barrier_us",
            const { &[figure(OPEN_MPI, "barrier_us")] },
        ),
        together(
            "hosts-all-reduce",
            "all_reduce of 8 bytes, 2 ranks",
            "all_reduce_us",
            const { &[figure(OPEN_MPI, "all_reduce_us")] },
        ),
        together(
            "hosts-broadcast-8k",
            "broadcast of 8 KiB, 2 ranks",
            "broadcast_8k_us",
            const { &[figure(OPEN_MPI, "broadcast_8k_us")] },
        ),
        together(
            "hosts-broadcast-1m",
            "broadcast of 1 MiB, 2 ranks",
            "broadcast_1m_us",
            const { &[figure(OPEN_MPI, "broadcast_1m_us")] },
        ),
    ],
};

const TOGETHER_6: Group = Group {
    name: "three-hosts-together",
    setting: "6 ranks on 3 hosts; hosts are network namespaces, MPI's TCP between them",
    slow: false,
    contenders: &[
        on(OpenMpi, OVER_OPEN_MPI, "isles-collective", 6, 3),
        flat(6, 3),
        in_c(OpenMpi, OPEN_MPI, "collective", 6, 3),
    ],
    rows: &[
        together(
            "hosts-barrier-6",
            "barrier of 6 ranks",
            "barrier_us",
            const { &[figure(OPEN_MPI, "barrier_us"), figure(FLAT, "barrier_us")] },
        ),
        together(
            "hosts-all-reduce-6",
            "all_reduce of 8 bytes, 6 ranks",
            "all_reduce_us",
            const { &[figure(OPEN_MPI, "all_reduce_us"), figure(FLAT, "all_reduce_us")] },
        ),
        together(
            "hosts-all-reduce-8k-6",
            "all_reduce of 8 KiB, 6 ranks",
            "all_reduce_8k_us",
            const { &[figure(OPEN_MPI, "all_reduce_8k_us"), figure(FLAT, "all_reduce_8k_us")] },
        ),
        together(
            "hosts-all-reduce-1m-6",
            "all_reduce of 1 MiB, 6 ranks",
            "all_reduce_1m_us",
            const { &[figure(OPEN_MPI, "all_reduce_1m_us"), figure(FLAT, "all_reduce_1m_us")] },
        ),
        together(
            "hosts-broadcast-8k-6",
            "broadcast of 8 KiB, 6 ranks",
            "broadcast_8k_us",
            const { &[figure(OPEN_MPI, "broadcast_8k_us"), figure(FLAT, "broadcast_8k_us")] },
        ),
        together(
            "hosts-broadcast-1m-6",
            "broadcast of 1 MiB, 6 ranks",
            "broadcast_1m_us",
            const { &[figure(OPEN_MPI, "broadcast_1m_us"), figure(FLAT, "broadcast_1m_us")] },
        ),
    ],
};

const IDLE: Group = Group {
    name: "idle",
    setting: TWO_HOSTS,
    slow: false,
    contenders: const {
        &[on(OpenMpi, OVER_OPEN_MPI, "isles-idle", 2, 2), on(Mpich, OVER_MPICH, "isles-idle", 2, 2)]
    },
    rows: &[
        Row {
            name: "hosts-idle",
            question: "processor time of waiting ranks, of all cores",
            unit: "%",
            ours: figure(OVER_OPEN_MPI, "idle_percent"),
            targets: &[Target::Value(3.0)],
            ..ROW
        },
        Row {
            name: "hosts-idle-mpich",
            question: "processor time of waiting ranks, of all cores",
            unit: "%",
            ours: figure(OVER_MPICH, "idle_percent"),
            targets: &[Target::Value(3.0)],
            ..ROW
        },
    ],
};

/// Betweenness centrality of ranks on several hosts, beside the same number of processes on one host.
const fn whole_runs(task: AppTask, count: u32, hosts: u32) -> [Contender; 2] {
    let ranks = Ranks { count, hosts };
    [
        Contender { label: RANKS, program: Program::AppMpi { task, library: OpenMpi, ranks } },
        Contender { label: PROCESSES, program: app(task, count) },
    ]
}

const fn whole_run(name: &'static str, question: &'static str) -> [Row; 1] {
    [Row {
        name,
        question,
        unit: "s",
        ours: figure(RANKS, "seconds"),
        peers: const { &[figure(PROCESSES, "seconds")] },
        ..ROW
    }]
}

const POWER_2: Group = Group {
    name: "hosts-power-2",
    setting: "2 ranks on 2 hosts (Open MPI), beside as many places of the machine processes",
    slow: false,
    contenders: const { &whole_runs(BC_POWER, 2, 2) },
    rows: const { &whole_run("hosts-bc-power-2", "betweenness of power, 2 ranks on 2 hosts") },
};

const POWER_4: Group = Group {
    name: "hosts-power-4",
    setting: "4 ranks on 2 hosts (Open MPI), beside as many places of the machine processes",
    slow: false,
    contenders: const { &whole_runs(BC_POWER, 4, 2) },
    rows: const { &whole_run("hosts-bc-power-4", "betweenness of power, 4 ranks on 2 hosts") },
};

const POWER_6: Group = Group {
    name: "hosts-power-6",
    setting: "6 ranks on 3 hosts (Open MPI), beside as many places of the machine processes",
    slow: false,
    contenders: const { &whole_runs(BC_POWER, 6, 3) },
    rows: const { &whole_run("hosts-bc-power-6", "betweenness of power, 6 ranks on 3 hosts") },
};

const HEP_TH_2: Group = Group {
    name: "hosts-hep-th-2",
    setting: "2 ranks on 2 hosts (Open MPI), beside as many places of the machine processes",
    slow: false,
    contenders: const { &whole_runs(BC_HEP_TH, 2, 2) },
    rows: const { &whole_run("hosts-bc-hep-th-2", "betweenness of hep-th, 2 ranks on 2 hosts") },
};

const HEP_TH_4: Group = Group {
    name: "hosts-hep-th-4",
    setting: "4 ranks on 2 hosts (Open MPI), beside as many places of the machine processes",
    slow: false,
    contenders: const { &whole_runs(BC_HEP_TH, 4, 2) },
    rows: const { &whole_run("hosts-bc-hep-th-4", "betweenness of hep-th, 4 ranks on 2 hosts") },
};

const HEP_TH_6: Group = Group {
    name: "hosts-hep-th-6",
    setting: "6 ranks on 3 hosts (Open MPI), beside as many places of the machine processes",
    slow: false,
    contenders: const { &whole_runs(BC_HEP_TH, 6, 3) },
    rows: const { &whole_run("hosts-bc-hep-th-6", "betweenness of hep-th, 6 ranks on 3 hosts") },
};

const EMPTY: &str = "C, nothing but MPI_Init and MPI_Finalize";

const START: Group = Group {
    name: "start",
    setting: "64 ranks of one host under mpirun of Open MPI, from its start to its end",
    slow: false,
    contenders: &[on(OpenMpi, RANKS, "isles-start", 64, 1), in_c(OpenMpi, EMPTY, "start", 64, 1)],
    rows: &[Row {
        name: "mpi-start-64",
        question: "a program of one task at each of 64 places",
        unit: "s",
        ours: figure(RANKS, ELAPSED),
        beside: &[figure(EMPTY, ELAPSED)],
        targets: &[Target::Beyond { limit: 1.0, over: EMPTY }],
        ..ROW
    }],
};
