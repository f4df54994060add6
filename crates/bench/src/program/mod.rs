//! The command that starts each contender, or the reason why it cannot start.
//!
//! It does not know the meaning of the figures. Invariant: a contender is either a command that can be run or a
//! [`Missing`] with its remedy.

pub mod available;

use crate::child;
use crate::child::timing::Effort;
use crate::install::Package;
use crate::mpi::{MpiLibrary, Ranks};
use crate::work_folder::WorkFolder;
use available::{Missing, built, is_installed, succeeds};
use std::fs::File;
use std::process::{Command, Stdio};

/// A program that prints figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A peer that is part of this binary, by the name of the child.
    Peer(&'static str),
    /// A child of this binary that runs images on bare cores, by QEMU.
    BareCores(&'static str),
    /// A child of this binary that needs `/dev/kvm`.
    Kvm(&'static str),
    /// A child of this binary as built with guests, on two places.
    WithGuests {
        /// The name of the child.
        child: &'static str,
        /// Value of `ISLES_MACHINE`.
        machine: &'static str,
    },
    /// A program of ours that is part of this binary.
    Isles {
        /// The name of the child.
        child: &'static str,
        /// Value of `ISLES_MACHINE`.
        machine: &'static str,
        /// Value of `ISLES_PLACES`.
        places: u32,
    },
    /// The program of an application, which prints its JSON document.
    App {
        /// Application and its arguments.
        task: AppTask,
        /// Value of `ISLES_MACHINE`.
        machine: &'static str,
        /// Value of `ISLES_PLACES`.
        places: u32,
    },
    /// The same, built with MPI.
    AppMpi {
        /// Application and its arguments.
        task: AppTask,
        /// MPI library.
        library: MpiLibrary,
        /// Numbers of ranks and hosts.
        ranks: Ranks,
    },
    /// A program that is part of this binary and opens a page on one of our runs.
    Watched {
        /// The name of the child.
        child: &'static str,
        /// Value of `ISLES_MACHINE`.
        machine: &'static str,
        /// Value of `ISLES_PLACES`.
        places: u32,
    },
    /// `peers/mpi.c`.
    Mpi {
        /// MPI library.
        library: MpiLibrary,
        /// Section of the program.
        section: &'static str,
        /// Numbers of ranks and hosts.
        ranks: Ranks,
    },
    /// `peers/prk.c`.
    MpiKernel {
        /// MPI library.
        library: MpiLibrary,
        /// The kernel and its numbers, separated by blanks.
        words: &'static str,
        /// Numbers of ranks and hosts.
        ranks: Ranks,
    },
    /// A program of ours that is part of this binary, built with MPI.
    IslesMpi {
        /// MPI library.
        library: MpiLibrary,
        /// The name of the child.
        child: &'static str,
        /// Numbers of ranks and hosts.
        ranks: Ranks,
        /// Value of `ISLES_COLLECTIVES`, if it is set.
        collectives: Option<&'static str>,
    },
    /// `peers/ocean.c` with the steps of the application's task.
    OceanLoop {
        /// `true` if it is built for the processor at hand, not for a generic one as the application is.
        is_native: bool,
    },
    /// `peers/hpcc.sh`, which runs HPCC with two ranks.
    Hpcc,
    /// `peers/spawn.go`.
    Go {
        /// Section of the program.
        section: &'static str,
        /// Number of processors that run goroutines; all if `None`.
        processors: Option<u32>,
    },
    /// `peers/simgrid.cpp`.
    SimGrid {
        /// Section of the program.
        section: &'static str,
        /// Network model.
        model: &'static str,
        /// Style of communication, with or without mailboxes.
        style: &'static str,
        /// Number of messages, or round trips, of each host.
        messages: u32,
        /// Bytes of a message.
        bytes: u32,
    },
    /// `peers/betweenness.py` on a graph of the collection.
    Betweenness {
        /// The Python module that computes it: `networkit` or `igraph`.
        module: &'static str,
        /// The graph's name.
        graph: &'static str,
    },
    /// `peers/clustering.py` on a graph of the collection.
    Clustering {
        /// The Python module that computes it: `networkit` or `igraph`.
        module: &'static str,
        /// Its method: `plm` of NetworKit, `multilevel` or `fastgreedy` of igraph.
        method: &'static str,
        /// The graph's name.
        graph: &'static str,
    },
    /// `peers/hartree_fock.py` on a built-in molecule.
    HartreeFock {
        /// The molecule's name.
        molecule: &'static str,
        /// The basis set's name.
        basis: &'static str,
    },
}

/// Task of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppTask {
    /// The application's name.
    pub name: &'static str,
    /// Its arguments, separated by blanks.
    pub words: &'static str,
    /// The number in its JSON document whose rate is a figure, if any.
    pub counted: Option<&'static str>,
}

impl AppTask {
    /// Returns the name of the program.
    pub fn program(self) -> String {
        format!("isles-{}", self.name)
    }

    /// Returns all arguments: its own, and those that send its document to standard output and disable other files.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        self.words.split(' ').chain(["--json", "-", "--csv", "/dev/null"])
    }
}

/// The device of KVM.
const KVM: &str = "/dev/kvm";

/// Oversubscribed places take seconds per batch with some libraries; all contenders get the same limit.
const OVERSUBSCRIBED_REPETITIONS_MAX: usize = 3;

/// Returns the effort of a program of `places` places or ranks for one figure.
fn of_places(places: u32, effort: Effort) -> Effort {
    let is_oversubscribed = places as usize > crate::machine::cores();
    let most = if is_oversubscribed { OVERSUBSCRIBED_REPETITIONS_MAX } else { usize::MAX };
    Effort { repetitions: effort.repetitions.min(most), ..effort }
}

impl Program {
    /// Returns the command that prints this contender's figures, building it first if necessary.
    ///
    /// # Errors
    /// A tool is missing; the error says how to install it.
    pub fn command(&self, folder: &WorkFolder, effort: Effort) -> Result<Command, Missing> {
        match *self {
            Program::Peer(name) => this_binary(name, effort),
            Program::BareCores(name) => bare_cores(name, effort),
            Program::Kvm(name) => {
                needs_kvm()?;
                this_binary(name, effort)
            }
            Program::WithGuests { child, machine } => with_guests(folder, child, machine, effort),
            Program::Isles { child, machine, places } => {
                let mut command = this_binary(child, of_places(places, effort))?;
                command.env("ISLES_MACHINE", machine).env("ISLES_PLACES", places.to_string());
                Ok(command)
            }
            Program::App { task, machine, places } => {
                let mut command = Command::new(built(&task.program())?);
                command.args(task.words());
                command.env("ISLES_MACHINE", machine).env("ISLES_PLACES", places.to_string());
                Ok(command)
            }
            Program::AppMpi { task, library, ranks } => {
                let mut command = library.own(folder, ranks, &task.program())?;
                command.args(task.words());
                Ok(command)
            }
            Program::Watched { child, machine, places } => {
                let server = built("isles-dashboard")?;
                let own = Program::Isles { child, machine, places };
                let mut command = own.command(folder, effort)?;
                command.env(child::watched::SERVER, server);
                Ok(command)
            }
            Program::Mpi { library, section, ranks } => {
                let mut command = library.peer(folder, ranks)?;
                command.arg(section);
                set_effort(&mut command, of_places(ranks.count, effort));
                Ok(command)
            }
            Program::MpiKernel { library, words, ranks } => {
                let mut command = library.kernels(folder, ranks)?;
                command.args(words.split(' '));
                Ok(command)
            }
            Program::IslesMpi { library, child, ranks, collectives } => {
                let mut command = library.own(folder, ranks, "isles-bench")?;
                command.envs(collectives.map(|word| ("ISLES_COLLECTIVES", word)));
                command.args(["child", child]);
                set_effort(&mut command, of_places(ranks.count, effort));
                Ok(command)
            }
            Program::OceanLoop { is_native } => ocean_loop(folder, is_native, effort),
            Program::Hpcc => hpcc(folder),
            Program::Go { section, processors } => go(folder, section, processors, effort),
            Program::SimGrid { section, model, style, messages, bytes } => {
                simgrid(folder, [section, model, style, &messages.to_string(), &bytes.to_string()])
            }
            Program::Betweenness { module, graph } => {
                let text = include_str!("../../peers/betweenness.py");
                with_edges(folder, module, "betweenness.py", text, graph)
            }
            Program::Clustering { module, method, graph } => {
                let text = include_str!("../../peers/clustering.py");
                let mut command = with_edges(folder, module, "clustering.py", text, graph)?;
                command.arg(method);
                Ok(command)
            }
            Program::HartreeFock { molecule, basis } => hartree_fock(folder, molecule, basis),
        }
    }
}

impl Program {
    /// Returns the figure of its output whose rate is also a figure.
    pub fn counted(&self) -> Option<&'static str> {
        match self {
            Program::App { task, .. } | Program::AppMpi { task, .. } => task.counted,
            _ => None,
        }
    }
}

/// Returns a child of this binary that needs QEMU and `isles-bare`.
fn bare_cores(name: &str, effort: Effort) -> Result<Command, Missing> {
    if !is_installed("qemu-system-x86_64") {
        return Err(Missing::of_package("qemu-system-x86_64 not found", Package::Debian("qemu-system-x86")));
    }
    built("isles-bare")?;
    this_binary(name, effort)
}

/// Checks that this host supports guests.
fn needs_kvm() -> Result<(), Missing> {
    match File::options().read(true).write(true).open(KVM) {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing::new(format!("{KVM}: {error}"), "run it on a host with KVM, as its user")),
    }
}

/// Returns a child of this program, or of a build of it with guests.
fn with_guests(folder: &WorkFolder, child: &str, machine: &str, effort: Effort) -> Result<Command, Missing> {
    needs_kvm()?;
    let mut command = if cfg!(feature = "guests") {
        this_binary(child, effort)?
    } else {
        let mut command = Command::new(folder.build_own("guests", "isles-bench", "guests", &[])?);
        command.args(["child", child]);
        set_effort(&mut command, effort);
        command
    };
    command.env("ISLES_MACHINE", machine).env("ISLES_PLACES", "2");
    Ok(command)
}

fn this_binary(name: &str, effort: Effort) -> Result<Command, Missing> {
    if !child::exists(name) {
        return Err(Missing::new(
            format!("this build has no child `{name}`"),
            "it comes with a later version",
        ));
    }
    let path = std::env::current_exe()
        .map_err(|error| Missing::new(format!("own program: {error}"), "start it again"))?;
    let mut command = Command::new(path);
    command.args(["child", name]);
    set_effort(&mut command, effort);
    Ok(command)
}

fn ocean_loop(folder: &WorkFolder, is_native: bool, effort: Effort) -> Result<Command, Missing> {
    if !is_installed("cc") {
        return Err(Missing::of_package("cc not found", Package::Debian("gcc libc6-dev")));
    }
    let options: &[&str] = match is_native {
        true => &["-O3", "-march=native", "-ffp-contract=off"],
        false => &["-O3", "-ffp-contract=off"],
    };
    let name = if is_native { "ocean-native.c" } else { "ocean.c" };
    let program = folder.build("cc", options, &["-lm"], name, include_str!("../../peers/ocean.c"))?;
    let mut command = Command::new(program);
    command.args(["40", &effort.repetitions.to_string()]);
    Ok(command)
}

fn hpcc(folder: &WorkFolder) -> Result<Command, Missing> {
    // HPCC takes no options: it would run with `--version`.
    let is_there = succeeds(Command::new("sh").args(["-c", "command -v hpcc"]));
    if !is_there || !is_installed("mpirun.openmpi") {
        return Err(Missing::of_package("hpcc not found", Package::Debian("hpcc openmpi-bin")));
    }
    let mut command = Command::new("bash");
    command.arg(folder.write_file("hpcc.sh", include_str!("../../peers/hpcc.sh"))?);
    Ok(command)
}

fn go(
    folder: &WorkFolder,
    section: &str,
    processors: Option<u32>,
    effort: Effort,
) -> Result<Command, Missing> {
    let present = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if present.is_err() {
        return Err(Missing::of_package("go not found", Package::Debian("golang-go")));
    }
    let program = folder.build("go", &["build"], &[], "spawn.go", include_str!("../../peers/spawn.go"))?;
    let mut command = Command::new(program);
    command.arg(section).env_remove("GOMAXPROCS");
    if let Some(processors) = processors {
        command.env("GOMAXPROCS", processors.to_string());
    }
    set_effort(&mut command, effort);
    Ok(command)
}

fn simgrid(folder: &WorkFolder, words: [&str; 5]) -> Result<Command, Missing> {
    let package = Package::Debian("g++ libsimgrid-dev");
    if !is_installed("g++") {
        return Err(Missing::of_package("g++ not found", package));
    }
    let mut header = Command::new("g++");
    header.args(["-E", "-x", "c++", "-include", "simgrid/s4u.hpp", "/dev/null"]);
    if !succeeds(&mut header) {
        return Err(Missing::of_package("simgrid/s4u.hpp not found", package));
    }
    let source = include_str!("../../peers/simgrid.cpp");
    let program = folder.build("g++", &["-O2"], &["-lsimgrid"], "simgrid.cpp", source)?;
    let mut command = Command::new(program);
    command.args(words);
    Ok(command)
}

/// Returns a Python script, with `module`, on the edges of a graph.
fn with_edges(
    folder: &WorkFolder,
    module: &'static str,
    name: &str,
    text: &str,
    graph: &str,
) -> Result<Command, Missing> {
    let mut command = python_with(folder, module)?;
    let edges = folder.edges(graph)?;
    let script = folder.write_file(name, text)?;
    command.arg(script).arg(module).arg(edges);
    Ok(command)
}

/// Returns Python with `module`.
fn python_with(folder: &WorkFolder, module: &'static str) -> Result<Command, Missing> {
    let python = || {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", folder.python_modules());
        python
    };
    if !succeeds(python().args(["-c", &format!("import {module}")])) {
        let package = Package::Python(module);
        return Err(Missing::of_package(format!("python3 has no module {module}"), package));
    }
    Ok(python())
}

fn hartree_fock(folder: &WorkFolder, molecule: &str, basis: &str) -> Result<Command, Missing> {
    let mut command = python_with(folder, "pyscf")?;
    let text = match molecule {
        "benzene" => include_str!("../../../../apps/hf/data/molecules/benzene.inp"),
        "aspirin" => include_str!("../../../../apps/hf/data/molecules/aspirin.inp"),
        other => return Err(Missing::new(format!("there is no molecule {other}"), "name one that there is")),
    };
    let atoms = folder.write_file(&format!("{molecule}.inp"), text)?;
    let script = folder.write_file("hartree_fock.py", include_str!("../../peers/hartree_fock.py"))?;
    command.arg(script).arg(atoms).arg(basis);
    Ok(command)
}

fn set_effort(command: &mut Command, effort: Effort) {
    command.arg(effort.batch.as_millis().to_string()).arg(effort.repetitions.to_string());
}
