//! `isles launch`: starts a program over places. Also starts the program of the benchmarks.

use crate::hosts::{self, HostsArguments};
use crate::plot::Picture;
use clap::Args;
use isles::{
    Claim, Destination, EXIT_BY_SIGNAL, FLAGS_VARIABLE, Flag, Machine, SignalForwarder, WriteError, setting,
};
use isles_app::companion::{BENCH, spawn_failure};
use isles_app::console;
use isles_app::runs::refusal;
use isles_app::seeds::{SeedsArguments, compare_program};
use isles_app::ui::{UiArguments, UiPlan, UiServer};
use isles_app::{Failure, PlaceArguments};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments of `isles launch`.
#[derive(Args)]
pub struct Arguments {
    // First, because the flags of places have a heading of their own.
    /// The program and its own arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,

    #[command(flatten)]
    places: PlaceArguments,

    #[command(flatten)]
    hosts: HostsArguments,

    #[command(flatten)]
    seeds: SeedsArguments,

    #[command(flatten)]
    ui: UiArguments,
}

/// The arguments of `isles bench`.
#[derive(Args)]
pub struct BenchArguments {
    /// Arguments of the benchmarks; see `isles bench --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Reason why `isles launch --hosts` serves no page.
const ON_HOSTS: &str = "the page is served on the host of the first rank; put --ui after the --, as in `-- isles \
                         run bc \
     --ui`";

/// Reason why `isles launch` starts no ranks.
const OF_RANKS: &str = "isles launch does not start MPI ranks; use mpirun, as in `mpirun -n 4 PROGRAM`, \
     with settings as variables such as ISLES_RECORD=DIR";

/// Becomes the program, with the places in its environment; with a live page, waits for the program instead.
pub fn launch(arguments: &mut Arguments) -> Result<(), Failure> {
    if let Some(command) = arguments.hosts.command(&arguments.program, &arguments.places.flags())? {
        arguments.ui.reject_with("--hosts", ON_HOSTS)?;
        return if arguments.hosts.is_dry() { hosts::print(&command) } else { become_program(command) };
    }
    if let Some(number) = &arguments.seeds.seeds {
        return compare_seeds(arguments, number);
    }
    let ui = arguments.ui.plan(&mut arguments.places)?;
    let (program, own) =
        arguments.program.split_first().ok_or_else(|| Failure::Usage("which program?".to_owned()))?;
    // A name without a folder is looked up elsewhere.
    let own_file = Path::new(program).parent().is_some_and(|folder| !folder.as_os_str().is_empty());
    let reads = own_file.then(|| Claim::read(program, "the program"));
    let launch = arguments.places.launch(reads.into_iter().collect())?;
    if launch.chosen_machine() == Machine::Mpi {
        return Err(Failure::Usage(OF_RANKS.to_owned()));
    }
    let mut command = Command::new(program);
    command.args(own);
    let mut flags = Vec::new();
    for Flag { variable, name, value } in arguments.places.flags() {
        command.env(variable, value);
        flags.push(format!("{variable}={name}"));
    }
    command
        .env(FLAGS_VARIABLE, flags.join(","))
        .env(setting("places").variable, launch.chosen_places().to_string())
        .env(setting("machine").variable, launch.chosen_machine().name());
    if found(program).is_some_and(|file| !isles::is_isles_program(&file).unwrap_or(true)) {
        let program = program.display();
        console::notice(format_args!(
            "warning: {program} does not look like an Isles program: it is started once, without places"
        ));
    }
    let Some(server) = ui.map(UiPlan::start).transpose()? else { return become_program(command) };
    let ended = wait_for(&mut command, &server);
    server.end();
    match ended? {
        0 => Ok(()),
        // The program has printed its error.
        code => std::process::exit(code),
    }
}

/// Runs the program with several seeds on a modelled chip.
fn compare_seeds(arguments: &Arguments, number: &str) -> Result<(), Failure> {
    arguments.ui.reject_with("--seeds", "a page shows one run")?;
    let words = arguments.program.iter().map(|word| word.clone().into_string());
    let words = words.collect::<Result<Vec<_>, _>>();
    let words =
        words.map_err(|word| refusal("the program", &word.to_string_lossy(), "arguments in UTF-8"))?;
    let (program, own) = words.split_first().ok_or_else(|| Failure::Usage("which program?".to_owned()))?;
    let launch = arguments.places.launch(vec![Claim::read(program, "the program")])?;
    compare_program(number, program, own, &arguments.places, &launch)
}

/// Starts the program and waits for it; returns its exit code. Signals to this process go to the program, then to the
/// server of its page.
fn wait_for(command: &mut Command, server: &UiServer) -> Result<i32, Failure> {
    // Signals are held before the program starts; otherwise one that comes meanwhile would end only this process.
    let started = SignalForwarder::new().and_then(|forwarder| {
        command.spawn().and_then(|mut child| forwarder.wait(&mut child, server.process()))
    });
    let status = started.map_err(|cause| spawn_failure(command, &cause))?;
    if let Some(signal) = status.signal() {
        let name = signal_hook::low_level::signal_name(signal);
        let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
        let program = command.get_program();
        console::notice(format_args!("error: {program:?} was ended by signal {signal}{name}"));
    }
    Ok(status.code().or(status.signal().map(|signal| EXIT_BY_SIGNAL + signal)).unwrap_or(1))
}

/// Returns the file that the system would start, if there is one.
fn found(program: &OsString) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Text of `isles bench --help`, so that help does not build the benchmarks.
const BENCH_USAGE: &str = include_str!("../../bench/src/usage.txt");

/// Becomes the program `isles-bench` beside this one, or, in a checkout, the one that Cargo builds.
pub fn bench(arguments: &BenchArguments) -> Result<(), Failure> {
    let arguments = &arguments.arguments;
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        return console::print(BENCH_USAGE).map_err(Failure::stdout);
    }
    let mut command = BENCH.command()?;
    let Some(picture) = BenchPicture::take(arguments)? else {
        command.args(arguments);
        return become_program(command);
    };
    command.args(&picture.words);
    let started = command.status();
    let status = started.map_err(|cause| spawn_failure(&command, &cause))?;
    let drawn = if status.success() { picture.draw() } else { Ok(()) };
    picture.clear();
    match status.success() {
        true => drawn,
        // The program has printed its error.
        false => std::process::exit(status.code().unwrap_or(1)),
    }
}

/// The picture that `--svg` asks for, and the words without it.
struct BenchPicture {
    svg: Destination,
    /// Arguments of the program, always with `--json`.
    words: Vec<OsString>,
    json: PathBuf,
    /// True if the file is temporary, because the user did not ask for it.
    is_scratch: bool,
}

impl BenchPicture {
    /// Takes `--svg FILE` out of the words, if present.
    fn take(words: &[OsString]) -> Result<Option<BenchPicture>, Failure> {
        let Some(at) = words.iter().position(|word| word == "--svg") else { return Ok(None) };
        let said = |word: &OsString| word.to_string_lossy().into_owned();
        let path = words.get(at + 1).map(said).ok_or_else(|| refusal("--svg", "", "- or a file"))?;
        let mut words: Vec<OsString> = [&words[..at], &words[at + 2..]].concat();
        if let Some(other) = words.iter().find(|word| *word == "table" || *word == "--list") {
            let allowed =
                format!("nothing with {}; to draw earlier measurements, use isles plot", said(other));
            return Err(refusal("--svg", &path, &allowed));
        }
        let json = words.iter().rposition(|word| word == "--json").and_then(|at| words.get(at + 1)).map(said);
        let is_scratch = json.is_none();
        let json = match json.as_deref() {
            Some("-") => return Err(refusal("--json", "-", "a file, because --svg draws its contents")),
            Some(json) => PathBuf::from(json),
            None => env::temp_dir().join(format!("isles-bench-{}.json", std::process::id())),
        };
        let claim = Destination::check("--json", Some(&json.to_string_lossy()), &json, &[])?;
        let claims = [Claim::written(&claim, "--json")];
        let svg = Destination::check("--svg", Some(&path), Path::new(&path), &claims)?;
        if is_scratch {
            words.extend(["--json".into(), json.clone().into_os_string()]);
        }
        Ok(Some(BenchPicture { svg, words, json, is_scratch }))
    }

    fn draw(&self) -> Result<(), Failure> {
        let cause = |cause| Failure::from(WriteError { path: self.json.display().to_string(), cause });
        let text = std::fs::read_to_string(&self.json).map_err(cause)?;
        Picture::of_text("the outcome", &text)?.write(self.svg.clone())
    }

    /// Removes the temporary file.
    fn clear(&self) {
        if self.is_scratch {
            let _ = std::fs::remove_file(&self.json); // of a run that failed there is none
        }
    }
}

fn become_program(mut command: Command) -> Result<(), Failure> {
    let cause = command.exec();
    Err(spawn_failure(&command, &cause))
}
