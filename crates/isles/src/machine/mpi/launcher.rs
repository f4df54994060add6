//! Detects, from the environment, the launcher that started this process, before MPI is initialized.
//!
//! Known are Open MPI, MPICH's Hydra, and Slurm by PMIx or PMI2. `SLURM_PROCID` alone proves nothing, because batch
//! scripts have it too. The result is cached: once MPI is initialized, the launcher's variables are removed from the
//! environment, so that programs started by a rank do not see them. Invariant: a process that no launcher started is
//! not part of a run.

use crate::print::notice;
use crate::settings::table::setting;
use std::sync::{Once, OnceLock};
use std::{env, fs};

/// An MPI launcher, as seen by a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launcher {
    /// Number of ranks, if the launcher states it.
    pub(crate) ranks: Option<u32>,
    /// The rank of this process.
    rank: u32,
}

/// The variables of each launcher: the rank and the number of ranks.
const VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
];

impl Launcher {
    /// Returns the launcher that started this process, or `None` if `ISLES_MACHINE` chooses another machine.
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

    /// Returns `true` in rank 0, which prints errors for all.
    pub(crate) fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Returns the rank of this process.
    #[cfg(feature = "mpi")]
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns `true` if the launcher reports more than one rank.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn has_several(&self) -> bool {
        self.ranks.is_some_and(|ranks| ranks > 1)
    }
}

/// Warns once, in the first of several tasks of Slurm, that each task runs alone, unless a machine was chosen.
///
/// Only a task itself warns, whose parent is Slurm's process: programs started by a task see the same variables.
pub(crate) fn warn_of_single_tasks() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        let is_chosen = env::var_os(setting("machine").variable).is_some();
        let Some(tasks) = lone_tasks(&|name| env::var(name).ok()).filter(|_| !is_chosen) else { return };
        let parent = format!("/proc/{}/comm", std::os::unix::process::parent_id());
        if fs::read_to_string(parent).is_ok_and(|name| name.trim() == "slurmstepd") {
            notice(format_args!(
                "warning: Slurm started {tasks} independent tasks, so each does the whole run alone; \
                 `srun --mpi=pmix` makes them ranks of Open MPI, `srun --mpi=pmi2` of MPICH; if this is \
                 intended, set ISLES_MACHINE"
            ));
        }
    });
}

/// Returns the number of tasks of the Slurm step, if this process is the first of several without a launcher.
fn lone_tasks(variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    let number = |name: &str| -> Option<u32> { variable(name)?.parse().ok() };
    let is_first = number("SLURM_PROCID") == Some(0) && Launcher::of(variable).is_none();
    number("SLURM_STEP_NUM_TASKS").filter(|tasks| is_first && *tasks > 1)
}

/// Returns the end of an error text, which names each library's launcher: in Slurm if it has started this process,
/// otherwise on Debian.
#[cfg(feature = "mpi")]
pub(crate) fn names_of_launchers() -> &'static str {
    match env::var_os("SLURM_STEP_ID") {
        Some(_) => "; `srun --mpi=pmix` for Open MPI, `srun --mpi=pmi2` for MPICH",
        None => "; on Debian `mpirun.openmpi`, `mpirun.mpich`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn tasks_of_slurm_that_know_no_other_are_seen_by_the_first() {
        let step = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "4")];
        assert_eq!(lone_tasks(&of(&step)), Some(4));
        assert_eq!(lone_tasks(&of(&[step[0], step[1], ("PMI_RANK", "0")])), None);
        assert_eq!(lone_tasks(&of(&[("SLURM_PROCID", "1"), step[1]])), None);
        assert_eq!(lone_tasks(&of(&[step[0], ("SLURM_STEP_NUM_TASKS", "1")])), None);
        assert_eq!(lone_tasks(&of(&[step[0], ("SLURM_NTASKS", "4")])), None, "a batch script is no step");
    }

    #[test]
    fn launchers_are_known_by_rank_and_size() {
        let of = |set: &[(&str, &str)]| Launcher::of(&of(set));
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
