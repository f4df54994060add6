//! Policies that choose a core for a job whose user names none.

/// Load of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreLoad {
    /// Use of its processor in percent.
    pub processor: f64,
    /// Use of its memory in percent.
    pub memory: f64,
    /// Jobs there.
    pub jobs: u32,
    /// `true` if its place is dead, so that nothing can be started there.
    pub is_dead: bool,
}

/// Rule that chooses a core: the one with the least score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// ManyMan's (004:1602 of the paper's text): the sum of processor use, memory use and number of jobs.
    #[default]
    Manyman,
    /// Counts each job as a whole processor, because the use of a new one is not measured yet; adds other use of the
    /// processor, and memory.
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

    /// Returns the policy of that name.
    pub fn of_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Returns the score of a core; less is better.
    pub fn score(self, core: &CoreLoad) -> f64 {
        let jobs = f64::from(core.jobs);
        match self {
            Policy::Manyman => core.processor + core.memory + jobs,
            Policy::Balanced => 100.0 * jobs + (core.processor - 100.0 * jobs).max(0.0) + core.memory,
        }
    }

    /// Returns the core for a new job, the first of those with the least score; `None` if all are dead.
    pub fn choose(self, cores: &[CoreLoad]) -> Option<usize> {
        let alive = cores.iter().enumerate().filter(|(_, core)| !core.is_dead);
        alive
            .min_by(|(_, one), (_, other)| self.score(one).total_cmp(&self.score(other)))
            .map(|(core, _)| core)
    }

    /// Returns the core to which a job should move from core `from`, where `own` is its part of the load; `None` if no
    /// other core is better. Of equal ones it is the first after `from`.
    pub fn choose_other(self, cores: &[CoreLoad], from: usize, own: &CoreLoad) -> Option<usize> {
        let others = (1..cores.len()).map(|step| (from + step) % cores.len());
        let alive = others.filter(|core| !cores[*core].is_dead);
        let best =
            alive.min_by(|one, other| self.score(&cores[*one]).total_cmp(&self.score(&cores[*other])))?;
        let without_job = cores.get(from).map(|core| CoreLoad {
            processor: (core.processor - own.processor).max(0.0),
            memory: (core.memory - own.memory).max(0.0),
            jobs: core.jobs.saturating_sub(own.jobs),
            is_dead: core.is_dead,
        });
        let is_better =
            without_job.is_none_or(|load| load.is_dead || self.score(&cores[best]) < self.score(&load));
        is_better.then_some(best)
    }
}
