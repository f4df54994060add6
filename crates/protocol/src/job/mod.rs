//! State machine of the jobs that people manage, and the policies that place them.
//!
//! People send commands to a job ([`JobVerb`]), and its place reports its progress ([`JobReport`]). Each is a step of
//! one table, so a step that the table lacks cannot happen, whatever messages cross on the way. The verbs are those of
//! ManyMan, the job server of the SCC (van der Woning and Bakker, "Interactive Visualization and Task Management on the
//! 48-core Intel SCC"), with one word for each effect: pausing keeps the memory, a checkpoint frees it, killing loses
//! it.

mod placement;
#[cfg(test)]
mod tests;

pub use placement::{CoreLoad, Policy};

use std::fmt;

/// Declares the states: variant, name as users see it, and whether the job is at a place or on its way.
macro_rules! job_states {
    ($($(#[$doc:meta])* $state:ident $name:literal $is_active:literal;)*) => {
        /// State of a job.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum JobState {
            $($(#[$doc])* $state,)*
        }

        impl JobState {
            /// All states.
            pub const ALL: [JobState; [$($name),*].len()] = [$(JobState::$state),*];

            /// Returns `true` if the job is at a place, or on its way to one or from one.
            pub fn is_active(self) -> bool {
                match self {
                    $(JobState::$state => $is_active,)*
                }
            }

            /// Returns the name as users see it.
            pub fn name(self) -> &'static str {
                match self {
                    $(JobState::$state => $name,)*
                }
            }
        }
    };
}

job_states! {
    /// Not started yet.
    New "new" false;
    /// On its way to its place.
    Creating "creating" true;
    /// Running.
    Running "running" true;
    /// Suspended; its memory stays resident.
    Paused "paused" true;
    /// Running on until its state can be written.
    Checkpointing "checkpointing" true;
    /// At no place; its state is written.
    Checkpointed "checkpointed" false;
    /// On its way from one place to another.
    Moving "moving" true;
    /// Ending as soon as it can.
    Stopping "stopping" true;
    /// Killed.
    Stopped "stopped" false;
    /// Ended by itself.
    Finished "finished" false;
    /// Ended by a fault of its own, or with its place.
    Failed "failed" false;
}

impl JobState {
    /// Returns the state of that name.
    pub fn of_name(name: &str) -> Option<JobState> {
        JobState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Returns the state after `step`.
    ///
    /// # Errors
    /// [`IllegalStep`]: this state does not permit it.
    pub fn after(self, step: JobStep) -> Result<JobState, IllegalStep> {
        use JobState::{
            Checkpointed, Checkpointing, Creating, Failed, Finished, Moving, New, Paused, Running, Stopped,
            Stopping,
        };
        let after = match (self, step) {
            (New | Checkpointed | Stopped, JobStep::Commanded(JobVerb::Start)) => Creating,
            (Running, JobStep::Commanded(JobVerb::Pause)) => Paused,
            (Paused, JobStep::Commanded(JobVerb::Resume)) => Running,
            (Running | Paused, JobStep::Commanded(JobVerb::Checkpoint)) => Checkpointing,
            (Running | Paused, JobStep::Commanded(JobVerb::Move)) => Moving,
            (Creating | Running | Paused | Checkpointing | Moving, JobStep::Commanded(JobVerb::Kill)) => {
                Stopping
            }
            // Only a job that is at no place can be removed.
            (New | Checkpointed | Stopped | Finished | Failed, JobStep::Commanded(JobVerb::Remove)) => self,
            (Creating | Moving, JobStep::Reported(JobReport::Started)) => Running,
            // Killed before its place had it: it stops there.
            (Stopping, JobStep::Reported(JobReport::Started)) => Stopping,
            (Checkpointing, JobStep::Reported(JobReport::Saved)) => Checkpointed,
            (Moving, JobStep::Reported(JobReport::Saved)) => Moving,
            // It is still at its place.
            (Checkpointing | Moving, JobStep::Reported(JobReport::Unsaved { was_paused: true })) => Paused,
            (Checkpointing | Moving, JobStep::Reported(JobReport::Unsaved { was_paused: false })) => Running,
            (Stopping, JobStep::Reported(JobReport::Killed)) => Stopped,
            (state, JobStep::Reported(JobReport::Ended)) if state.is_active() => Finished,
            (state, JobStep::Reported(JobReport::Faulted)) if state.is_active() => Failed,
            (Stopping, JobStep::Reported(JobReport::Lost { .. })) => Stopped,
            (state, JobStep::Reported(JobReport::Lost { is_saved: true })) if state.is_active() => {
                Checkpointed
            }
            (state, JobStep::Reported(JobReport::Lost { is_saved: false })) if state.is_active() => Failed,
            _ => return Err(IllegalStep { state: self, step }),
        };
        Ok(after)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Declares the commands: variant, and name as users see it.
macro_rules! job_verbs {
    ($($(#[$doc:meta])* $verb:ident $name:literal;)*) => {
        /// Command to a job.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum JobVerb {
            $($(#[$doc])* $verb,)*
        }

        impl JobVerb {
            /// All verbs.
            pub const ALL: [JobVerb; [$($name),*].len()] = [$(JobVerb::$verb),*];

            /// Returns the name as users see it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(JobVerb::$verb => $name,)*
                }
            }
        }
    };
}

job_verbs! {
    /// Run at a place, from the beginning or from the saved state.
    Start "start";
    /// Suspend; the memory stays resident.
    Pause "pause";
    /// Continue.
    Resume "resume";
    /// Write the state, and free the place.
    Checkpoint "checkpoint";
    /// Continue at another place.
    Move "move";
    /// End, and lose the state.
    Kill "kill";
    /// Remove from the table.
    Remove "remove";
}

impl JobVerb {
    /// Returns the states that permit the command.
    pub fn allowed(self) -> impl Iterator<Item = JobState> {
        JobState::ALL.into_iter().filter(move |state| state.after(JobStep::Commanded(self)).is_ok())
    }
}

/// Report of a job's place about the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobReport {
    /// It runs there.
    Started,
    /// Its state is written, and it leaves its place.
    Saved,
    /// Its state could not be written; it stays at its place and goes on as before.
    Unsaved {
        /// True if it was paused before.
        was_paused: bool,
    },
    /// It was killed.
    Killed,
    /// It has ended by itself, without an error.
    Ended,
    /// It has ended by an error or a panic.
    Faulted,
    /// Its place is dead, or its job server was, or it could not be restored.
    Lost {
        /// True if a state of it was saved from which it can continue.
        is_saved: bool,
    },
}

/// One step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobStep {
    /// A command of a user.
    Commanded(JobVerb),
    /// A report of its place.
    Reported(JobReport),
}

/// A step that a state does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalStep {
    /// The state, which stays.
    pub state: JobState,
    /// The step.
    pub step: JobStep,
}

impl fmt::Display for IllegalStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IllegalStep { state, step } = self;
        match step {
            JobStep::Commanded(verb) => {
                let allowed: Vec<&str> = verb.allowed().map(JobState::name).collect();
                write!(f, "a job that is {state} cannot {}; allowed when {}", verb.name(), allowed.join(", "))
            }
            JobStep::Reported(report) => write!(f, "{report:?} was reported of a job that is {state}"),
        }
    }
}

impl std::error::Error for IllegalStep {}
