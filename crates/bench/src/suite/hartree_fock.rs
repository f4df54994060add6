//! The suite `hf`: Hartree-Fock calculations, with PySCF beside them.
//!
//! It contains only the table. Both sides iterate from their own guess to 1e-10 hartree and compute all integrals in
//! each iteration (direct SCF); PySCF uses libcint, hand-tuned C, on one thread.

use super::{ONE_PLACE, TWO_PLACES, app, figure, on_two_places};
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::{AppTask, Program};

const PYSCF: &str = "PySCF, 1 thread";

/// The energy must be that of PySCF, which `--verify` asks for.
const BENZENE_TASK: AppTask = AppTask {
    name: "hf",
    words: "--molecule benzene --basis 3-21g --balance dynamic --verify",
    counted: None,
};
const ASPIRIN_TASK: AppTask =
    AppTask { words: "--molecule aspirin --basis sto-3g --balance dynamic --verify", ..BENZENE_TASK };

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[BENZENE, ASPIRIN];

const BENZENE: Group = Group {
    name: "benzene",
    setting: "benzene in 3-21G, 66 functions; reading the molecule not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(BENZENE_TASK, 1) },
        Contender { label: TWO_PLACES, program: app(BENZENE_TASK, 2) },
        Contender { label: PYSCF, program: Program::HartreeFock { molecule: "benzene", basis: "3-21g" } },
    ],
    rows: &[
        on_one("benzene-1", "energy of benzene in 3-21G, 1 place"),
        on_two_places("benzene-2", "energy of benzene in 3-21G, 2 places"),
    ],
};

const ASPIRIN: Group = Group {
    name: "aspirin",
    setting: "aspirin in STO-3G, 73 functions; reading the molecule not timed",
    slow: false,
    contenders: &[
        Contender { label: ONE_PLACE, program: app(ASPIRIN_TASK, 1) },
        Contender { label: TWO_PLACES, program: app(ASPIRIN_TASK, 2) },
        Contender { label: PYSCF, program: Program::HartreeFock { molecule: "aspirin", basis: "sto-3g" } },
    ],
    rows: &[
        on_one("aspirin-1", "energy of aspirin in STO-3G, 1 place"),
        on_two_places("aspirin-2", "energy of aspirin in STO-3G, 2 places"),
    ],
};

const fn on_one(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(ONE_PLACE, "seconds"),
        peers: const { &[figure(PYSCF, "seconds")] },
        beside: &[],
        targets: const { &[Target::BestPeer(1.5)] },
        quoted_with: None,
    }
}
