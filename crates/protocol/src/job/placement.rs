//! To which core a job goes that names none.

/// Load of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreLoad {
    /// Use of its processor in percent.
    pub processor: f64,
    /// Use of its memory in percent.
    pub memory: f64,
    /// Jobs there.
    pub jobs: u32,
    /// True if nothing can be started there: its place is dead.
    pub is_dead: bool,
}

/// Rule that chooses a core: the one with the least score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// ManyMan's (004:1602 of the paper's text): use of processor and memory weigh the same, and each job counts one.
    #[default]
    Manyman,
    /// A job that was just started counts as a whole processor, though its use is not seen yet; what else uses the
    /// processor, and memory, come after that.
    Balanced,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 2] = [Policy::Manyman, Policy::Balanced];

    /// Returns the name as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Manyman => "manyman",
            Policy::Balanced => "balanced",
        }
    }

    /// The policy of that name.
    pub fn of_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The score of a core; less is better.
    pub fn score(self, core: &CoreLoad) -> f64 {
        let jobs = f64::from(core.jobs);
        match self {
            Policy::Manyman => core.processor + core.memory + jobs,
            Policy::Balanced => 100.0 * jobs + (core.processor - 100.0 * jobs).max(0.0) + core.memory,
        }
    }

    /// The core for a job that is nowhere: the first of those with the least score; none if all are dead.
    pub fn choose(self, cores: &[CoreLoad]) -> Option<usize> {
        let alive = cores.iter().enumerate().filter(|(_, core)| !core.is_dead);
        alive.min_by(|(_, one), (_, other)| self.score(one).total_cmp(&self.score(other))).map(|(at, _)| at)
    }

    /// The core to which a job moves that is at `from`, where it uses `own` of what that core does; never `from`
    /// itself, and none if it is not better anywhere. Of equal ones it is the first behind `from`.
    pub fn choose_other(self, cores: &[CoreLoad], from: usize, own: &CoreLoad) -> Option<usize> {
        let behind = (1..cores.len()).map(|step| (from + step) % cores.len());
        let alive = behind.filter(|at| !cores[*at].is_dead);
        let best =
            alive.min_by(|one, other| self.score(&cores[*one]).total_cmp(&self.score(&cores[*other])))?;
        let stays = cores.get(from).map(|core| CoreLoad {
            processor: (core.processor - own.processor).max(0.0),
            memory: (core.memory - own.memory).max(0.0),
            jobs: core.jobs.saturating_sub(own.jobs),
            is_dead: core.is_dead,
        });
        let is_better =
            stays.is_none_or(|stays| stays.is_dead || self.score(&cores[best]) < self.score(&stays));
        is_better.then_some(best)
    }
}
