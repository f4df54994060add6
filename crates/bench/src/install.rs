//! Installation of missing peers.
//!
//! Invariant: packages are named by the suite's programs, never by the user.

use crate::work_folder::WorkFolder;
use std::fmt;
use std::process::{Command, Stdio};

/// Packages to install, names separated by blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Package {
    /// From the distribution, by apt-get.
    Debian(&'static str),
    /// From Python's index, by pip, into the work folder; the user's Python is not changed.
    Python(&'static str),
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Package::Debian(names) => write!(f, "apt-get install {names}"),
            Package::Python(names) => write!(f, "pip install {names}"),
        }
    }
}

impl Package {
    /// Installs the package.
    ///
    /// # Errors
    /// One line with the package that could not be installed, and the reason.
    pub fn install(self, folder: &WorkFolder) -> Result<(), String> {
        match self {
            Package::Debian(names) => {
                let mut update = Command::new("apt-get");
                update.args(["update", "-qq"]);
                let mut install = Command::new("apt-get");
                install.env("DEBIAN_FRONTEND", "noninteractive");
                install.args(["install", "-qq", "--no-install-recommends", "-y"]).args(names.split(' '));
                self.succeed(update)?;
                self.succeed(install)
            }
            Package::Python(names) => {
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]);
                pip.arg(folder.python_modules()).args(names.split(' '));
                self.succeed(pip)
            }
        }
    }

    fn succeed(self, mut command: Command) -> Result<(), String> {
        let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{self}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        Err(format!("{self}: {last}"))
    }
}
