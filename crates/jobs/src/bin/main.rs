//! The program `isles-jobs`, which `isles serve` and `isles job` become.

#![forbid(unsafe_code)]

use clap::error::ErrorKind;
use clap::{
    Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, value_parser,
};
use isles::{Machine, setting};
use isles_app::companion::{JOBS, VERSION};
use isles_app::ui::UiArguments;
use isles_app::usage::{self, outcome};
use isles_app::{CommandArguments, Failure, PlaceArguments, console};
use isles_jobs::{
    Caller, CoreView, JobOrder, JobReply, JobRequest, JobServerOptions, JobSpec, JobView, KINDS, ORDERS,
    OrderInfo, Refusal, Runnable, Store, ask, end, offer, serve, steers_text,
};
use isles_protocol::job::{JobState, Policy};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Name of the program in stored states of jobs.
const PROGRAM: &str = "isles-jobs";

#[derive(Parser)]
#[command(name = "isles", bin_name = "isles", version = VERSION)]
struct ProgramArguments {
    #[command(subcommand)]
    verb: ProgramVerb,

    #[command(flatten)]
    own: CommandArguments,
}

#[derive(Subcommand)]
enum ProgramVerb {
    /// Runs a job server over places until it is ended; see isles job
    Serve(Box<ServeArguments>),
    /// Starts, pauses, moves, checkpoints and ends jobs of isles serve
    Job(JobArguments),
}

#[derive(Args)]
struct ServeArguments {
    #[command(flatten)]
    places: PlaceArguments,

    #[command(flatten)]
    ui: UiArguments,

    #[command(flatten, next_help_heading = "Jobs")]
    state: StateArgument,

    /// Policy that chooses the core of a job without --at: manyman or balanced
    #[arg(long, value_name = "POLICY", default_value = "manyman", value_parser = policy)]
    policy: Policy,

    /// Start and end demonstration jobs in an order given by --seed; they are forgotten at the end, other jobs are
    /// left alone
    #[arg(long)]
    demo: bool,

    /// Let readers who may manage jobs on the page also start commands on this host: any program, as your user
    #[arg(long, requires = "ui")]
    allow_commands: bool,
}

#[derive(Args)]
struct StateArgument {
    /// Directory in which jobs are kept [default: isles/jobs in $XDG_STATE_HOME, else in ~/.local/state]
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

#[derive(Args)]
struct JobArguments {
    #[command(flatten)]
    state: StateArgument,

    /// Print answers as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    verb: JobCommand,
}

/// A job that may have to be created first.
#[derive(Args)]
struct NewJob {
    /// Name of the job
    #[arg(long)]
    name: Option<String>,

    /// Task of this kind, instead of a command: pi, sum, memory, count
    #[arg(long, value_name = "KIND")]
    task: Option<String>,

    /// The command, or the words of the task
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,
}

/// An order to an existing job: a command for each row of the table of orders, except `start`, which may also create a
/// job.
struct OrderCommand {
    job: u64,
    order: JobOrder,
}

impl OrderCommand {
    fn rows() -> impl Iterator<Item = &'static OrderInfo> {
        ORDERS.iter().filter(|row| !matches!(row.order, JobOrder::Start { .. }))
    }

    fn command(row: &OrderInfo) -> Command {
        let job = Arg::new("job")
            .value_name("JOB")
            .help("Number of the job")
            .required(true)
            .value_parser(value_parser!(u64));
        let command = Command::new(row.name).about(row.about).arg(job);
        command.args(row.place.map(|(flag, help)| {
            Arg::new(flag).long(flag).help(help).value_name("PLACE").value_parser(value_parser!(usize))
        }))
    }
}

impl Subcommand for OrderCommand {
    fn augment_subcommands(command: Command) -> Command {
        OrderCommand::rows().fold(command, |command, row| command.subcommand(OrderCommand::command(row)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        OrderCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        OrderCommand::rows().any(|row| row.name == name)
    }
}

impl FromArgMatches for OrderCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OrderCommand, clap::Error> {
        let given = matches.subcommand().and_then(|(name, own)| Some((OrderInfo::of_name(name)?, own)));
        let (row, own) = given.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let job = own.get_one("job").copied();
        let job = job.ok_or_else(|| clap::Error::new(ErrorKind::MissingRequiredArgument))?;
        let place = row.place.and_then(|(flag, _)| own.get_one(flag).copied());
        Ok(OrderCommand { job, order: row.order.with_place(place) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = OrderCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the help of `start` from the table of orders.
fn about_start() -> &'static str {
    OrderInfo::of_name("start").map_or("", |order| order.about)
}

#[derive(Subcommand)]
enum JobCommand {
    /// Lists all jobs
    List,
    /// Lists all cores, with the score that chooses one
    Cores,
    /// Creates a job without starting it
    Create(NewJob),
    #[command(about = about_start())]
    Start {
        /// Number of the job; without it, a new job
        job: Option<u64>,
        /// Place [default: the best one]
        #[arg(long, value_name = "PLACE")]
        at: Option<usize>,
        #[command(flatten)]
        new: NewJob,
    },
    #[command(flatten)]
    Order(OrderCommand),
    /// Prints the last lines of a job
    Output {
        /// Number of the job
        job: u64,
        /// Number of lines
        #[arg(long, value_name = "N", default_value = "100")]
        lines: usize,
    },
    /// Waits until a job is in a state, or in one that it does not leave by itself
    Wait {
        /// Number of the job
        job: u64,
        /// State to wait for
        #[arg(long, value_name = "STATE", value_parser = state)]
        until: Option<JobState>,
        /// Time limit, in seconds
        #[arg(long, value_name = "SECONDS", default_value = "60")]
        limit: u64,
    },
    /// Sets the clock divider of a modelled chip
    Clock {
        /// The divider
        divider: u32,
        /// Change only the supply of this place
        #[arg(long, value_name = "PLACE")]
        at: Option<usize>,
        /// Change only the tile of that place, at its present voltage
        #[arg(long, requires = "at")]
        tile: bool,
    },
    /// Sets the supply voltage of a modelled chip; clocks stay
    Voltage {
        /// Volts, rounded up to the next step
        volts: f64,
        /// Change only the supply of this place
        #[arg(long, value_name = "PLACE")]
        at: Option<usize>,
    },
    /// Sets the governor of a modelled chip, or of one of its supplies
    Governor {
        /// Governor, as for --governor of a run, such as capped:60W
        policy: String,
        /// Govern only the supply of this place
        #[arg(long, value_name = "PLACE")]
        at: Option<usize>,
    },
    /// Ends the job server and waits for its end; jobs are checkpointed, commands are killed
    End {
        /// Kill processes that do not answer, and lose their jobs
        #[arg(long)]
        force: bool,
    },
}

fn policy(word: &str) -> Result<Policy, String> {
    let names = Policy::ALL.map(Policy::name).join(", ");
    Policy::of_name(word).ok_or(names)
}

fn state(word: &str) -> Result<JobState, String> {
    let names = JobState::ALL.map(JobState::name).join(", ");
    JobState::of_name(word).ok_or(names)
}

fn main() -> ExitCode {
    offer(KINDS);
    isles::name_package(JOBS.package());
    isles::serve_if_joined();
    let matches = match usage::matches(&ProgramArguments::command(), std::env::args_os()) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    isles::warn_of_unknown_variables();
    let arguments = match ProgramArguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => return outcome(Err(Failure::Usage(error.to_string()))),
    };
    outcome(match arguments.verb {
        ProgramVerb::Serve(arguments) => manage(*arguments),
        ProgramVerb::Job(arguments) => run_job_command(arguments),
    })
}

impl StateArgument {
    fn directory(&self) -> Result<PathBuf, Failure> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let states = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        let none = || Failure::Usage("neither XDG_STATE_HOME nor HOME is set; give --state DIR".to_owned());
        Ok(states.ok_or_else(none)?.join("isles/jobs"))
    }
}

fn manage(mut arguments: ServeArguments) -> Result<(), Failure> {
    let plan = arguments.ui.plan(&mut arguments.places)?;
    let launch = arguments.places.launch(Vec::new())?;
    let is_modelled = matches!(launch.chosen_machine(), Machine::Chip(_));
    if arguments.allow_commands && is_modelled {
        let text = "--allow-commands cannot be combined with a modelled chip: its cores run no commands";
        return Err(Failure::Usage(text.to_owned()));
    }
    let directory = arguments.state.directory()?;
    let store = Store::open(&directory, PROGRAM);
    let store = store.map_err(|error| Failure::Usage(format!("--state: {error}")))?;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))
            .map_err(|cause| Failure::Ended(format!("signal {signal}: {cause}")))?;
    }
    let seed = arguments.places.value_of(setting("seed")).and_then(|given| given.parse().ok()).unwrap_or(1);
    let options = JobServerOptions {
        store,
        policy: arguments.policy,
        demonstration: arguments.demo.then_some(seed),
        is_modelled,
        page_commands: arguments.allow_commands,
    };
    if arguments.allow_commands {
        console::notice(
            "commands can be started from the page: anyone who manages jobs there can run any program as \
             your user",
        );
    }
    if arguments.demo && plan.is_none() {
        console::notice(
            "jobs come and go by themselves: isles job list shows them, --ui shows them on a page",
        );
    }
    let server = plan.map(|plan| plan.with_jobs(directory).start()).transpose()?;
    let served = serve(launch, options, is_over).map_err(Failure::Usage);
    if let Some(server) = server {
        server.end();
    }
    served
}

fn run_job_command(arguments: JobArguments) -> Result<(), Failure> {
    let JobArguments { state, json, verb } = arguments;
    let directory = state.directory()?;
    let ask = |request: JobRequest| match ask(&directory, &request) {
        Ok(JobReply::Refused(Refusal { reason, .. })) | Err(reason) => Err(Failure::Usage(plain(&reason))),
        Ok(reply) => Ok(reply),
    };
    let reply = match verb {
        JobCommand::List => ask(JobRequest::List),
        JobCommand::Cores => ask(JobRequest::Cores),
        JobCommand::Create(new) => ask(JobRequest::Create(new.spec()?)),
        JobCommand::Start { job: Some(job), at, new } => {
            if new.task.is_some() || !new.words.is_empty() || new.name.is_some() {
                let text = "an existing job keeps its name and words; allowed: only --at";
                return Err(Failure::Usage(text.to_owned()));
            }
            ask(JobRequest::Order { job, order: JobOrder::Start { at } })
        }
        JobCommand::Start { job: None, at, new } => ask(JobRequest::Begin { spec: new.spec()?, at }),
        JobCommand::Order(OrderCommand { job, order }) => ask(JobRequest::Order { job, order }),
        JobCommand::Output { job, lines } => ask(JobRequest::Output { job, lines }),
        JobCommand::Clock { divider, at, tile } => ask(JobRequest::Clock { divider, at, tile }),
        JobCommand::Voltage { volts, at } => ask(JobRequest::Voltage { volts, at }),
        JobCommand::Governor { policy, at } => ask(JobRequest::Govern { policy, at }),
        JobCommand::End { force } => {
            let hint = if force { "" } else { "; --force ends it without them" };
            let notify = |waits: &str| console::notice(format!("the job server waits: {waits}{hint}"));
            end(&directory, force, notify).map_err(Failure::Usage)
        }
        JobCommand::Wait { job, until, limit } => {
            let limit = Instant::now() + Duration::from_secs(limit);
            wait(job, until, limit, || ask(JobRequest::List))
        }
    }?;
    console::print(if json { to_json(&reply) } else { to_text(&reply) }).map_err(Failure::stdout)
}

impl NewJob {
    fn spec(self) -> Result<JobSpec, Failure> {
        let NewJob { name, task, words } = self;
        if task.is_none() && words.is_empty() {
            let text = "there is nothing to run; give --task KIND, or a command after --";
            return Err(Failure::Usage(text.to_owned()));
        }
        // A command may have a name that is invalid for a job.
        let default = plain(task.as_ref().or_else(|| words.first()).map_or("", String::as_str));
        let name = name.unwrap_or(default);
        let Some(kind) = task else {
            let (caller, left_out) = Caller::this().map_err(Failure::Usage)?;
            for variable in left_out {
                console::notice(format!("the variable {} is not UTF-8 and is left out", plain(&variable)));
            }
            return Ok(JobSpec { name, runnable: Runnable::Command(words), caller: Some(caller) });
        };
        Ok(JobSpec::new(name, Runnable::Task(kind, words)))
    }
}

/// Polls a job until it is in the wanted state.
fn wait(
    id: u64,
    state: Option<JobState>,
    limit: Instant,
    list: impl Fn() -> Result<JobReply, Failure>,
) -> Result<JobReply, Failure> {
    loop {
        let JobReply::Jobs { jobs, .. } = list()? else { return Err(unexpected()) };
        let job = jobs.into_iter().find(|job| job.id == id);
        let job = job.ok_or_else(|| Failure::Usage(format!("there is no job {id}")))?;
        let now = JobState::of_name(&job.state).ok_or_else(unexpected)?;
        let stays = !now.is_active() || now == JobState::Paused;
        if state.map_or(stays, |state| state == now) {
            return Ok(JobReply::Job { job: Box::new(job), scores: Vec::new() });
        }
        if Instant::now() >= limit || (stays && !now.is_active()) {
            let reason =
                if job.reason.is_empty() { String::new() } else { format!(": {}", plain(&job.reason)) };
            return Err(Failure::Ended(format!("job {id} is {now}{reason}")));
        }
        sleep(Duration::from_millis(20));
    }
}

fn unexpected() -> Failure {
    Failure::Ended("the job server has a different version".to_owned())
}

fn to_json(reply: &JobReply) -> String {
    serde_json::to_string_pretty(reply).expect("an answer has a form") + "\n"
}

fn to_text(reply: &JobReply) -> String {
    match reply {
        JobReply::Jobs { jobs, .. } => table_of_jobs(jobs),
        JobReply::Cores { policy, governor, cores } => {
            let governor = governor.as_ref().map(|governor| format!("governor of the clocks: {governor}\n"));
            table_of_cores(policy, cores) + &governor.unwrap_or_default()
        }
        JobReply::Job { job, scores } => {
            let mut text = table_of_jobs(std::slice::from_ref(job));
            if let (Some(place), false) = (job.place, scores.is_empty()) {
                let scores: Vec<String> = scores.iter().map(|score| format!("{score:.1}")).collect();
                let _ =
                    writeln!(text, "chosen by score, lower is better: place {place} of {}", scores.join(" "));
            }
            text
        }
        JobReply::Output { lines, before, file } => {
            let mut text = String::new();
            if *before > 0 {
                let _ = writeln!(text, "({before} bytes before these lines are in {file})");
            }
            lines.iter().for_each(|line| text += &format!("{}\n", plain(line)));
            text
        }
        JobReply::Ending { waits } => format!("the job server ends; it waits: {}\n", waits.join("; ")),
        JobReply::Done { text } => format!("{text}\n"),
        JobReply::Refused(Refusal { reason, .. }) => format!("{reason}\n"),
    }
}

fn table_of_jobs(jobs: &[JobView]) -> String {
    let mut text = format!(
        "{:>4}  {:<16} {:<13} {:>5} {:>6} {:>9} {:>9}  {}\n",
        "job", "name", "state", "place", "use", "memory", "computed", "what"
    );
    for job in jobs {
        let program = runnable_text(&job.runnable);
        let place = job.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
        let reason = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
        let line = format!(
            "{:>4}  {:<16} {:<13} {place:>5} {:>4.0} % {:>6.1} MB {:>7.2} s  {}{}",
            job.id,
            plain(&job.name),
            job.state,
            job.processor,
            job.memory as f64 / 1e6,
            job.busy,
            plain(&program),
            plain(&reason)
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns the command or task of a job as text; words with spaces and empty words are in quotation marks.
fn runnable_text(runnable: &Runnable) -> String {
    let (kind, words) = match runnable {
        Runnable::Task(kind, words) => (Some(kind), words),
        Runnable::Command(words) => (None, words),
    };
    let is_plain =
        |word: &str| !word.is_empty() && !word.contains(|sign: char| sign.is_whitespace() || sign == '"');
    let shown = |word: &String| if is_plain(word) { word.clone() } else { format!("{word:?}") };
    let words: Vec<String> = kind.into_iter().chain(words).map(shown).collect();
    words.join(" ")
}

fn table_of_cores(policy: &str, cores: &[CoreView]) -> String {
    let mut text = format!(
        "{:>5} {:>6} {:>6} {:>7} {:>8}  jobs (score by {policy}, lower is better)\n",
        "place", "use", "other", "memory", "score"
    );
    for core in cores {
        let jobs: Vec<String> = core.jobs.iter().map(u64::to_string).collect();
        let volts = core.volts.map(|volts| format!(" {volts} V")).unwrap_or_default();
        let supply = core.supply.map(|supply| format!(" supply {supply}")).unwrap_or_default();
        let clock =
            core.divider.map(|divider| format!(" clock / {divider}{volts}{supply}")).unwrap_or_default();
        let governor = core.governor.as_ref().filter(|governor| *governor != "fixed");
        let governor = governor.map(|governor| format!(" {governor}")).unwrap_or_default();
        let dead = if core.is_dead { " dead" } else { "" };
        let line = format!(
            "{:>5} {:>4.0} % {:>4.0} % {:>5.1} % {:>8.1}  {}{clock}{governor}{dead}",
            core.place,
            core.processor,
            core.other,
            core.memory,
            core.score,
            jobs.join(" ")
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns foreign text without terminal control characters.
fn plain(text: &str) -> String {
    text.chars()
        .map(|symbol| if steers_text(symbol) { char::REPLACEMENT_CHARACTER } else { symbol })
        .collect()
}
