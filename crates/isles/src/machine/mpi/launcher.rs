//! What the environment says of the launcher that has started this process, before the library is begun.
//!
//! Open MPI, MPICH's Hydra, and Slurm by PMIx or PMI2. `SLURM_PROCID` alone proves nothing: batch scripts have it, too.
//! What is found is remembered: once the library has begun, it is taken out of the environment for the sake of programs
//! that a rank starts. Invariant: a process that no launcher started is none of a run.

use crate::settings::table::setting;
use std::env;
use std::sync::OnceLock;

/// A launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launcher {
    /// How many ranks it says that there are, if it does.
    pub(crate) ranks: Option<u32>,
    /// The rank of this process.
    rank: u32,
}

/// The variables of each launcher: the rank, and how many there are.
const VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
];

impl Launcher {
    /// The one that has started this process, unless another machine was chosen by `ISLES_MACHINE`.
    pub(crate) fn of_environment() -> Option<Launcher> {
        static FOUND: OnceLock<Option<Launcher>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let chosen = env::var(setting("machine").variable).ok();
            let is_wanted = chosen.is_none_or(|machine| machine == "mpi");
            is_wanted.then(|| Launcher::of(&|name| env::var(name).ok())).flatten()
        });
        found.clone()
    }

    fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launcher> {
        let number = |name: &str| variable(name)?.parse().ok();
        VARIABLES
            .iter()
            .find_map(|(rank, ranks)| Some(Launcher { rank: number(rank)?, ranks: number(ranks) }))
    }

    /// Whether this is the process that speaks for all.
    pub(crate) fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Whether it has started more than this process, as far as it says.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn has_several(&self) -> bool {
        self.ranks.is_some_and(|ranks| ranks > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_rank_and_size() {
        let of = |set: &[(&str, &str)]| {
            Launcher::of(&|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let open_mpi =
            of(&[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "2")]);
        assert_eq!(open_mpi, Some(Launcher { rank: 2, ranks: Some(4) }));
        let hydra = of(&[("PMI_RANK", "0"), ("PMI_SIZE", "3")]);
        assert_eq!(hydra, Some(Launcher { rank: 0, ranks: Some(3) }));
        let slurm = of(&[("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "1")]);
        assert_eq!(slurm, Some(Launcher { rank: 1, ranks: Some(8) }));
        assert_eq!(of(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "8")]), None);
        assert_eq!(of(&[]), None);
    }
}
