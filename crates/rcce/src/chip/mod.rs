//! Ranks on the bare cores of a modelled chip: each is a coroutine of C inside the future of its core.
//!
//! The future resumes the coroutine, executes the library's request on its core, and resumes it with the answer. So
//! ranks run in the order of the chip's time, in one thread, and a run is deterministic.

mod access;
mod energy;
mod model;
mod pages;
mod process;
mod rank;
mod watchdog;

use crate::arguments::{Isolation, MeasuredWork, RunArguments};
use crate::host::{deadlock_line, describe};
use crate::image::{Image, ProgramArguments};
use crate::interface::{PortOperation, PortRequest, RANKS_MAX};
use crate::segment::RankMemory;
use isles_app::{Failure, console};
use isles_chip::bare::{BareChip, BareCore};
use isles_chip::quantity::{Picoseconds, scaled};
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};
use model::RankModel;
use process::ProcessRank;
pub use process::{TurnWords, run_with_remote_model};
use rank::ChipRank;
use rustix::fd::OwnedFd;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A rank, in this process or in its own.
enum AnyRank {
    Copy(ChipRank),
    Process(ProcessRank),
}

impl AnyRank {
    fn resume(&mut self, answer: u64) -> PortRequest {
        match self {
            AnyRank::Copy(rank) => rank.resume(answer),
            AnyRank::Process(rank) => rank.resume(answer),
        }
    }
}

/// Runs the program on the chip of this name.
///
/// # Errors
/// The chip, the preset or the program is invalid; a rank fails; ranks deadlock.
pub fn run(name: &str, arguments: &RunArguments) -> Result<(), Failure> {
    let chip = Chip::find(name).map_err(|error| Failure::Usage(error.to_string()))?;
    let chip = at_preset(chip, arguments.preset.as_deref())?;
    let preset = chip.default_preset().clone();
    let cores = chip.topology().cores().min(RANKS_MAX as u32);
    if arguments.ranks > cores {
        return Err(Failure::Usage(format!(
            "{} ranks on chip:{name}; allowed: 1 to {cores}",
            arguments.ranks
        )));
    }
    let bare = BareChip::new(&chip, &preset).ok_or_else(|| {
        Failure::Usage(format!(
            "chip:{name} has no message buffers of 32-byte lines, or their costs are not known"
        ))
    })?;
    let (memory, descriptor) = RankMemory::create()?;
    let model = Rc::new(RankModel::new(memory, arguments.ranks, &chip, &preset));
    let ranks = load(&chip, &preset, arguments, &descriptor, memory)?;
    let json = arguments.json.as_deref().map(create_file).transpose()?;
    if arguments.isolate == Isolation::Copy {
        watchdog::name_faults();
    }
    if arguments.watchdog > 0 {
        watchdog::watch(Duration::from_secs(arguments.watchdog.into()));
    }
    let begin = Instant::now();
    let ended = run_ranks(&bare, &model, ranks, arguments);
    // NEED: programs write through libc, whose buffers this process would not flush at its end.
    // SOUND: null is allowed and means all.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    ended?;
    report(name, &chip, &preset, arguments.ranks, model, begin.elapsed(), json)
}

/// An output file and its description.
type NamedFile = (File, String);

fn create_file(path: &Path) -> Result<NamedFile, Failure> {
    let name = path.display().to_string();
    let file = File::create(path)
        .map_err(|cause| Failure::Usage(format!("--json: cannot write {name}: {cause}")))?;
    Ok((file, name))
}

/// Returns the chip at the requested preset of its clocks.
fn at_preset(chip: Chip, name: Option<&str>) -> Result<Chip, Failure> {
    let Some(name) = name else { return Ok(chip) };
    let all: Vec<_> = chip.presets().iter().map(Preset::name).collect();
    let refusal = format!("--preset {name}: {} has no such preset; allowed: {}", chip.name(), all.join(", "));
    chip.with_preset(name).ok_or(Failure::Usage(refusal))
}

/// Loads a copy of the program for each rank.
fn load(
    chip: &Chip,
    preset: &Preset,
    arguments: &RunArguments,
    descriptor: &OwnedFd,
    memory: RankMemory,
) -> Result<Vec<AnyRank>, Failure> {
    let program = &arguments.program;
    let bytes = std::fs::read(program)
        .map_err(|cause| Failure::Usage(format!("cannot read the program {}: {cause}", program.display())))?;
    if arguments.isolate == Isolation::Process {
        Image::load_copy(program, &bytes)?; // so that a file that is no program is refused once
    }
    let words = Rc::new(ProgramArguments::new(program, &arguments.words)?);
    let domain = |core: u32| chip.voltage_domain(chip.topology().tile_of(CoreId(core))).0;
    (0..arguments.ranks)
        .map(|rank| {
            let mut machine = describe(memory, rank as usize, arguments.ranks as usize);
            machine.modelled = 1;
            machine.gigahertz = preset.clocks().core.megahertz() / 1e3;
            for core in 0..arguments.ranks {
                machine.domains[core as usize] = domain(core);
            }
            Ok(match arguments.isolate {
                Isolation::Copy => {
                    let image = Rc::new(Image::load_copy(program, &bytes)?);
                    AnyRank::Copy(ChipRank::new(image, machine, Rc::clone(&words))?)
                }
                Isolation::Process => AnyRank::Process(ProcessRank::start(
                    &machine,
                    descriptor,
                    memory,
                    program,
                    &arguments.words,
                )?),
            })
        })
        .collect()
}

/// Runs all ranks to their end.
fn run_ranks(
    bare: &BareChip,
    model: &Rc<RankModel>,
    ranks: Vec<AnyRank>,
    arguments: &RunArguments,
) -> Result<(), Failure> {
    let count = ranks.len();
    let slots: Vec<_> = ranks.into_iter().map(|rank| RefCell::new(Some(rank))).collect();
    let ratio = match arguments.work {
        MeasuredWork::Nothing => None,
        MeasuredWork::Host(ratio) => Some(ratio),
    };
    let end = bare.run((0..count as u32).map(CoreId), |core| {
        let rank = slots[core.id().0 as usize].take().expect("each core has one rank");
        serve(core, rank, Rc::clone(model), ratio)
    });
    if let Some(why) = model.failure() {
        return Err(Failure::Ended(why));
    }
    end.map(drop).map_err(|deadlock| {
        let control = model.segment.control();
        let is_waiting = |rank: usize| deadlock.waiting.iter().any(|(core, _)| core.0 as usize == rank);
        let waiting: Vec<_> =
            (0..count).filter(|rank| is_waiting(*rank)).map(|rank| control.current_call(rank)).collect();
        let gone: Vec<_> =
            (0..count).filter(|rank| !is_waiting(*rank) && !control.is_finalized(*rank)).collect();
        Failure::Ended(deadlock_line(&waiting, &gone))
    })
}

/// Runs a rank to its end.
async fn serve(core: BareCore, mut rank: AnyRank, model: Rc<RankModel>, ratio: Option<f64>) {
    let number = core.id().0 as usize;
    let mut answer = 0;
    while !model.has_failed() {
        let begin = ratio.map(|_| Instant::now());
        watchdog::enter(number);
        let request = rank.resume(answer);
        watchdog::leave();
        if let (Some(ratio), Some(begin)) = (ratio, begin) {
            let time = Picoseconds((begin.elapsed().as_secs_f64() * ratio * 1e12) as u64);
            model.spend(&core, time).await;
        }
        if PortOperation::of(request.operation) == Some(PortOperation::End) {
            model.end_rank(number, request.value, model.now(&core));
            return;
        }
        answer = model.perform(&core, &request).await;
    }
}

/// Prints the figures of the model.
fn report(
    name: &str,
    chip: &Chip,
    preset: &Preset,
    ranks: u32,
    model: Rc<RankModel>,
    host: Duration,
    json: Option<NamedFile>,
) -> Result<(), Failure> {
    let (end, requests) = (model.end(), model.requests());
    let Ok(model) = Rc::try_unwrap(model) else { unreachable!("all ranks have ended") };
    let joules = model.accounts.into_inner().joules(end);
    let energies: Vec<_> =
        joules.iter().map(|(model, joules)| format!("{} by {model}", scaled(*joules, "J"))).collect();
    let energies = match energies.len() {
        0 => String::new(),
        _ => format!(", {} for all {} cores", energies.join(", "), chip.topology().cores()),
    };
    console::notice(format_args!(
        "chip:{name}: {} predicted on {} cores at {}{energies} ({requests} requests in {:.3} s on this host)",
        scaled(end.nanoseconds() / 1e9, "s"),
        ranks,
        preset.name(),
        host.as_secs_f64()
    ));
    let Some((mut file, name_of_file)) = json else { return Ok(()) };
    let energies: serde_json::Map<_, _> =
        joules.into_iter().map(|(model, joules)| (model, joules.into())).collect();
    let document = serde_json::json!({
        "machine": format!("chip:{name}"),
        "preset": preset.name(),
        "ranks": ranks,
        "predicted_seconds": end.nanoseconds() / 1e9,
        "joules": energies,
        "requests": requests,
        "host_seconds": host.as_secs_f64(),
    });
    writeln!(file, "{document:#}")
        .map_err(|cause| Failure::Ended(format!("--json: cannot write {name_of_file}: {cause}")))
}
