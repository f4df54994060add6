//! Programs started by an MPI launcher: the peer in C, and our children built with MPI.
//!
//! Separate from [`crate::program`] because only it knows launchers, and hosts that are network namespaces.
//! Invariants: a peer and a child of ours with the same numbers of ranks and hosts get the same options and cores;
//! hosts created for a run are removed after it.

use crate::install::Package;
use crate::program::available::{Missing, is_installed};
use crate::work_folder::WorkFolder;
use std::path::Path;
use std::process::{Command, Stdio};

/// The MPI libraries that can be installed side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiLibrary {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

/// Numbers of ranks and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Number of ranks, divided evenly over the hosts.
    pub count: u32,
    /// 1 for this host alone; more are network namespaces, which only root may create.
    pub hosts: u32,
}

impl MpiLibrary {
    fn compiler(self) -> &'static str {
        match self {
            MpiLibrary::OpenMpi => "mpicc.openmpi",
            MpiLibrary::Mpich => "mpicc.mpich",
        }
    }

    fn launcher(self) -> &'static str {
        match self {
            MpiLibrary::OpenMpi => "mpirun.openmpi",
            MpiLibrary::Mpich => "mpirun.mpich",
        }
    }

    /// Returns its name in the options of `hosts.sh`, and in names of folders.
    fn word(self) -> &'static str {
        match self {
            MpiLibrary::OpenMpi => "openmpi",
            MpiLibrary::Mpich => "mpich",
        }
    }

    fn package(self) -> Package {
        match self {
            MpiLibrary::OpenMpi => Package::Debian("openmpi-bin libopenmpi-dev"),
            MpiLibrary::Mpich => Package::Debian("mpich libmpich-dev"),
        }
    }

    /// Returns the options for one rank per core if they fit; otherwise Open MPI is asked to yield, for which MPICH
    /// has no option.
    fn placement(self, ranks: u32) -> &'static [&'static str] {
        let fits = ranks as usize <= crate::machine::cores();
        match (self, fits) {
            (MpiLibrary::OpenMpi, true) => &["--allow-run-as-root", "--bind-to", "core"],
            (MpiLibrary::OpenMpi, false) => &[
                "--allow-run-as-root",
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "mpi_yield_when_idle",
                "1",
            ],
            (MpiLibrary::Mpich, true) => &["-bind-to", "core"],
            (MpiLibrary::Mpich, false) => &[],
        }
    }

    fn check(self) -> Result<(), Missing> {
        for tool in [self.compiler(), self.launcher()] {
            if !is_installed(tool) {
                return Err(Missing::of_package(format!("{tool} not found"), self.package()));
            }
        }
        Ok(())
    }

    /// Returns the launcher's command for this program.
    fn launch(self, folder: &WorkFolder, ranks: Ranks, program: &Path) -> Result<Command, Missing> {
        let mut command;
        if ranks.hosts == 1 {
            command = Command::new(self.launcher());
            command.args(self.placement(ranks.count)).args(["-n", &ranks.count.to_string()]);
        } else {
            let script = folder.write_file("hosts.sh", include_str!("../../../.ci/hosts.sh"))?;
            may_make_hosts(&script)?;
            let per_host = ranks.count / ranks.hosts;
            command = Command::new("bash");
            command.arg(script).args(["once", self.word()]);
            command.args([ranks.hosts.to_string(), per_host.to_string()]);
        }
        command.arg(program);
        Ok(command)
    }

    /// Returns the command of `peers/mpi.c`, built with this library.
    ///
    /// # Errors
    /// A tool is missing; the error says how to install it.
    pub fn peer(self, folder: &WorkFolder, ranks: Ranks) -> Result<Command, Missing> {
        self.built(folder, ranks, "mpi.c", include_str!("../peers/mpi.c"))
    }

    /// Returns the command of `peers/prk.c`, built with this library.
    ///
    /// # Errors
    /// A tool is missing; the error says how to install it.
    pub fn kernels(self, folder: &WorkFolder, ranks: Ranks) -> Result<Command, Missing> {
        self.built(folder, ranks, "prk.c", include_str!("../peers/prk.c"))
    }

    fn built(self, folder: &WorkFolder, ranks: Ranks, name: &str, source: &str) -> Result<Command, Missing> {
        self.check()?;
        let options = &["-O3", "-march=native", "-x", "c"];
        let program = folder.build(self.compiler(), options, &["-lm"], name, source)?;
        self.launch(folder, ranks, &program)
    }

    /// Returns the command of the program of `package`, this one or an application's, built with this library.
    ///
    /// # Errors
    /// A tool is missing; the error says how to install it.
    pub fn own(self, folder: &WorkFolder, ranks: Ranks, package: &str) -> Result<Command, Missing> {
        self.check()?;
        let program = folder.build_own(self.word(), package, "mpi", &[("MPICC", self.compiler())])?;
        let mut command = self.launch(folder, ranks, &program)?;
        // The launcher determines the number of places and their hosts.
        command.env_remove("ISLES_MACHINE").env_remove("ISLES_PLACES");
        Ok(command)
    }
}

/// Checks that network namespaces can be created here.
fn may_make_hosts(script: &Path) -> Result<(), Missing> {
    let output = Command::new("bash").arg(script).arg("can").stdin(Stdio::null()).output();
    let output = output.map_err(|error| Missing::new(format!("bash: {error}"), "install it"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stdout);
    Err(Missing::new(why.trim(), "run it as root where namespaces are permitted"))
}
