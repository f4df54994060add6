//! The suite `prk`: the Parallel Research Kernels over distributed arrays, against C over MPI that does the same.
//!
//! A separate file because both sides are whole programs: `isles run prk`, and `peers/prk.c` with the same algorithms
//! and sizes. It contains only the table. Invariant: both sides run the same number of iterations, and time all but
//! the first.

use crate::measure::{Better, Contender, Group, Row};
use crate::mpi::{MpiLibrary, Ranks};
use crate::output::RATE;
use crate::program::{AppTask, Program};
use crate::suite::{MPICH, OPEN_MPI, app, figure, of_better_mpi};

const OURS: &str = "isles";

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[
    STENCIL,
    TRANSPOSE_128,
    TRANSPOSE_1000,
    TRANSPOSE_4096,
    P2P_1024,
    P2P_128,
    RANDOM,
    STENCIL_4,
    TRANSPOSE_4,
    RANDOM_4,
];

/// Ours and both libraries, with this number of places.
const fn contenders(words: &'static str, of_peer: &'static str, places: u32) -> [Contender; 3] {
    let task = AppTask { name: "prk", words, counted: Some("operations") };
    [
        Contender { label: OURS, program: app(task, places) },
        in_c(OPEN_MPI, MpiLibrary::OpenMpi, of_peer, places),
        in_c(MPICH, MpiLibrary::Mpich, of_peer, places),
    ]
}

const fn in_c(label: &'static str, library: MpiLibrary, words: &'static str, count: u32) -> Contender {
    Contender { label, program: Program::MpiKernel { library, words, ranks: Ranks { count, hosts: 1 } } }
}

const RATED: Row = Row {
    name: "",
    question: "",
    unit: "million/s",
    better: Better::More,
    ours: figure(OURS, RATE),
    peers: const { &[figure(OPEN_MPI, RATE), figure(MPICH, RATE)] },
    beside: &[],
    targets: const { &[of_better_mpi(1.0)] },
    quoted_with: None,
};

const ON_TWO: &str = "2 places on 2 cores, machine processes; C over MPI with -O3 -march=native";
const ON_FOUR: &str = "4 places on 2 cores, machine processes; C over MPI with -O3 -march=native";

/// A group with one row.
macro_rules! kernel {
    (
        $group:ident, $name:literal, $row:literal, $question:literal, $setting:expr, $ours:literal, $peer:literal,
        $places:literal
    ) => {
        const $group: Group = Group {
            name: $name,
            setting: $setting,
            slow: false,
            contenders: const { &contenders($ours, $peer, $places) },
            rows: const { &[Row { name: $row, question: $question, ..RATED }] },
        };
    };
}

kernel!(
    STENCIL,
    "stencil",
    "stencil-1000",
    "stencil of radius 2 over 1,000 x 1,000 points, operations",
    ON_TWO,
    "--kernel stencil --iterations 100",
    "stencil 100 1000 2",
    2
);
kernel!(
    TRANSPOSE_128,
    "transpose-small",
    "transpose-128",
    "transpose of order 128, bytes",
    ON_TWO,
    "--kernel transpose --order 128 --iterations 5000",
    "transpose 5000 128",
    2
);
kernel!(
    TRANSPOSE_1000,
    "transpose",
    "transpose-1000",
    "transpose of order 1,000, bytes",
    ON_TWO,
    "--kernel transpose --order 1000 --iterations 100",
    "transpose 100 1000",
    2
);
kernel!(
    TRANSPOSE_4096,
    "transpose-large",
    "transpose-4096",
    "transpose of order 4,096, bytes",
    ON_TWO,
    "--kernel transpose --order 4096 --iterations 5",
    "transpose 5 4096",
    2
);
kernel!(
    P2P_1024,
    "p2p",
    "p2p-1024",
    "wave over 1,024 x 1,024 cells, operations",
    ON_TWO,
    "--kernel p2p --iterations 200",
    "p2p 200 1024 1024",
    2
);
kernel!(
    P2P_128,
    "p2p-tall",
    "p2p-128x8192",
    "wave over 128 columns and 8,192 rows, operations",
    ON_TWO,
    "--kernel p2p --columns 128 --rows 8192 --iterations 100",
    "p2p 100 128 8192",
    2
);
kernel!(
    RANDOM,
    "random",
    "random-2^20",
    "random updates of a table of 2^20",
    ON_TWO,
    "--kernel random --bits 20 --ratio 16",
    "random 20 16",
    2
);
kernel!(
    STENCIL_4,
    "stencil-crowd",
    "stencil-1000-on-4",
    "stencil of radius 2 over 1,000 x 1,000 points, operations, 4 places",
    ON_FOUR,
    "--kernel stencil --iterations 50",
    "stencil 50 1000 2",
    4
);
kernel!(
    TRANSPOSE_4,
    "transpose-crowd",
    "transpose-1000-on-4",
    "transpose of order 1,000, bytes, 4 places",
    ON_FOUR,
    "--kernel transpose --order 1000 --iterations 50",
    "transpose 50 1000",
    4
);
kernel!(
    RANDOM_4,
    "random-crowd",
    "random-2^20-on-4",
    "random updates of a table of 2^20, 4 places",
    ON_FOUR,
    "--kernel random --bits 20 --ratio 1",
    "random 20 1",
    4
);
