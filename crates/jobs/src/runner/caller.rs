//! The caller of a command: its working folder and environment, which are sent to the place that runs it.
//!
//! Words of a command, such as `./own.sh` or `data.txt`, are relative to the caller's folder, because the job server
//! may run elsewhere (as with `sbatch`).

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;

/// Names and values of variables.
pub type Environment = Vec<(String, String)>;

/// The process that requests a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Its working folder, as an absolute path.
    pub folder: PathBuf,
    /// All its variables.
    pub environment: Environment,
}

impl Caller {
    /// Returns this process, and the names of its non-UTF-8 variables, which are left out.
    ///
    /// # Errors
    /// The working folder is gone, or its path is not UTF-8: a line.
    pub fn this() -> Result<(Caller, Vec<String>), String> {
        let folder = std::env::current_dir().map_err(|cause| format!("the working folder: {cause}"))?;
        if folder.to_str().is_none() {
            return Err(format!("the working folder is {folder:?}; allowed: one whose path is UTF-8"));
        }
        let (mut environment, mut left_out) = (Vec::new(), Vec::new());
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => environment.push((name, value)),
                (Ok(name), Err(_)) => left_out.push(name),
                (Err(name), _) => left_out.push(name.to_string_lossy().into_owned()),
            }
        }
        environment.sort();
        Ok((Caller { folder, environment }, left_out))
    }

    /// Returns the value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Configures `command` to start in this folder with this environment.
    pub(crate) fn apply(&self, command: &mut Command) {
        let variables = self.environment.iter().map(|(name, value)| (name, value));
        command.current_dir(&self.folder).env_clear().envs(variables);
    }
}
