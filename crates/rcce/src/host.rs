//! Ranks as processes of this host.
//!
//! Each rank is another process of this program, which maps the shared memory and loads the user's program. The first
//! process watches: a failed rank, or a deadlock of sleeping ranks, ends the run with an error line.

use crate::chip::run_with_remote_model;
use crate::image::{Image, ProgramArguments};
use crate::interface::{CurrentCall, MachineDescription, RANKS_MAX, VERSION, waiting_list};
use crate::segment::RankMemory;
use isles_app::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::ptr;

/// Interval at which the watcher checks whether all ranks sleep.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Placeholder for the model facts in the command line of a rank without a model.
const HOST: &str = "host";

/// A rank's process.
struct RankProcess {
    child: Child,
    end: OwnedFd,
    status: Option<ExitStatus>,
}

/// The processes of all ranks, killed on drop.
struct RankProcesses(Vec<RankProcess>);

impl Drop for RankProcesses {
    fn drop(&mut self) {
        for process in self.0.iter_mut().filter(|process| process.status.is_none()) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

/// Returns the power domain of a core of the SCC, by RCCE's numbering, from its tile column and row.
fn power_domain(core: u32) -> u32 {
    let (column, row) = (core / 2 % 6, core / 12);
    column / 2 + 3 * (row / 2)
}

/// Describes a machine of `ranks` ranks, without a model.
pub fn describe(segment: RankMemory, rank: usize, ranks: usize) -> MachineDescription {
    MachineDescription {
        version: VERSION,
        rank: rank as u32,
        ranks: ranks as u32,
        modelled: 0,
        control: segment.control(),
        buffers: segment.buffers(),
        shared: segment.shared(),
        shared_bytes: crate::interface::SHARED_BYTES as u64,
        request: None,
        context: ptr::null_mut(),
        gigahertz: 1.0,
        cores: std::array::from_fn(|core| core as u32),
        domains: std::array::from_fn(|core| power_domain(core as u32)),
    }
}

/// Starts the process of a rank. `model_facts` is [`HOST`], or the word that [`run_with_remote_model`] reads.
///
/// # Errors
/// The system refuses.
pub fn start_rank(
    rank: usize,
    ranks: usize,
    descriptor: &OwnedFd,
    memory: RankMemory,
    model_facts: &str,
    program: &Path,
    words: &[OsString],
) -> Result<Child, Failure> {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("isles-rcce"));
    let mut command = Command::new(own);
    let parent = std::process::id() as usize;
    let numbers = [descriptor.as_raw_fd() as usize, memory.address(), rank, ranks, parent];
    command.arg("rank").args(numbers.map(|number| number.to_string()));
    command.arg(model_facts).arg(program).args(words);
    if rank != 0 {
        command.stdin(Stdio::null());
    }
    command.spawn().map_err(|cause| Failure::Ended(format!("cannot start rank {rank}: {cause}")))
}

/// Runs the program over `ranks` processes.
///
/// # Errors
/// A rank has failed, or all ranks wait for each other.
pub fn run(ranks: usize, program: &Path, words: &[OsString]) -> Result<(), Failure> {
    Image::load(program)?;
    let (memory, descriptor) = RankMemory::create()?;
    let mut processes = RankProcesses(Vec::with_capacity(ranks));
    for rank in 0..ranks {
        let child = start_rank(rank, ranks, &descriptor, memory, HOST, program, words)?;
        let end = Pid::from_raw(child.id() as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let end = end.ok_or(()).map_err(|()| Failure::Ended(format!("rank {rank} has no process")))?;
        let end = end.map_err(|cause| Failure::Ended(format!("cannot watch rank {rank}: {cause}")))?;
        processes.0.push(RankProcess { child, end, status: None });
    }
    watch(&mut processes, memory)
}

fn watch(processes: &mut RankProcesses, segment: RankMemory) -> Result<(), Failure> {
    let control = segment.control();
    let mut asleep: Option<Vec<Option<u32>>> = None;
    loop {
        let living = processes.0.iter().filter(|process| process.status.is_none());
        let mut ends: Vec<_> = living.map(|process| PollFd::new(&process.end, PollFlags::IN)).collect();
        if ends.is_empty() {
            return Ok(());
        }
        let ended = poll(&mut ends, Some(&POLL_INTERVAL)).unwrap_or(0);
        drop(ends);
        for rank in 0..processes.0.len() {
            let process = &mut processes.0[rank];
            if process.status.is_some() {
                continue;
            }
            process.status = process.child.try_wait().ok().flatten();
            if let Some(status) = process.status.filter(|status| !status.success()) {
                return Err(Failure::Ended(control.complaint().unwrap_or_else(|| exit_error(rank, status))));
            }
        }
        if ended > 0 {
            asleep = None;
            continue;
        }
        let now: Vec<_> = (0..processes.0.len())
            .filter(|rank| processes.0[*rank].status.is_none())
            .map(|rank| control.sleep(rank))
            .collect();
        if !now.is_empty() && now.iter().all(Option::is_some) && asleep.as_ref() == Some(&now) {
            return Err(Failure::Ended(deadlock(processes, segment)));
        }
        asleep = Some(now);
    }
}

fn exit_error(rank: usize, status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("rank {rank} has ended with exit code {code}"),
        (None, Some(signal)) => format!("rank {rank} was ended by signal {signal}"),
        (None, None) => format!("rank {rank} has ended"),
    }
}

fn deadlock(processes: &RankProcesses, segment: RankMemory) -> String {
    let control = segment.control();
    let (mut waiting, mut gone) = (Vec::new(), Vec::new());
    for (rank, process) in processes.0.iter().enumerate() {
        match process.status {
            None => waiting.push(control.current_call(rank)),
            Some(_) if !control.is_finalized(rank) => gone.push(rank),
            Some(_) => {}
        }
    }
    deadlock_line(&waiting, &gone)
}

/// Returns the error line about deadlocked ranks, and ranks that have ended without `RCCE_finalize`.
pub fn deadlock_line(waiting: &[CurrentCall], gone: &[usize]) -> String {
    let waits = format!("deadlock: {}", waiting_list(waiting));
    match gone {
        [] => waits,
        [rank] => format!("rank {rank} has ended without RCCE_finalize; {waits}"),
        [rank, ..] => {
            format!("rank {rank} and {} more have ended without RCCE_finalize; {waits}", gone.len() - 1)
        }
    }
}

/// Pins each rank to its own processor, if there are enough.
fn pin_rank(rank: usize, ranks: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    if (allowed.count() as usize) < ranks {
        return;
    }
    if let Some(processor) = processors.nth(rank) {
        let mut own = CpuSet::new();
        own.set(processor);
        let _ = sched_setaffinity(None, &own); // without it, the run is only slower
    }
}

/// The main function of a process that is a rank: `isles-rcce rank DESCRIPTOR ADDRESS RANK RANKS PARENT
/// TOLD PROGRAM ..`.
///
/// # Errors
/// The process was not started by the first one, or the program cannot be loaded.
pub fn run_as_rank(words: &[OsString]) -> Result<(), Failure> {
    let refused = || Failure::Usage("only isles rccerun starts isles-rcce rank".into());
    let number =
        |at: usize| words.get(at).and_then(|word| word.to_str()?.parse::<usize>().ok()).ok_or_else(refused);
    let (descriptor, address) = (number(0)?, number(1)?);
    let (rank, ranks, parent) = (number(2)?, number(3)?, number(4)?);
    let model_facts = words.get(5).and_then(|word| word.to_str()).ok_or_else(refused)?;
    let program = PathBuf::from(words.get(6).ok_or_else(refused)?);
    if rank >= ranks || ranks > RANKS_MAX {
        return Err(refused());
    }
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The first process may have ended before this took effect.
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() as usize != parent) {
        return Err(refused());
    }
    // NEED: the descriptor is inherited, so it has no owner in this process.
    // SOUND: the first process hands it over as an argument; if it is not open, mapping it fails.
    let memory = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
    let segment = RankMemory::map(memory.as_fd(), address)?;
    if model_facts != HOST {
        return run_with_remote_model(segment, rank, ranks, model_facts, &program, &words[7..]);
    }
    pin_rank(rank, ranks);
    let image = Image::load(&program)?;
    image.attach(&describe(segment, rank, ranks))?;
    image.run(&ProgramArguments::new(&program, &words[7..])?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_domains_are_those_of_rcce() {
        let of = |cores: [u32; 6]| cores.map(power_domain);
        assert_eq!(of([0, 4, 8, 24, 28, 47]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of([13, 3, 14, 16, 35, 36]), [0, 0, 0, 1, 5, 3]);
    }

    #[test]
    fn a_rank_that_has_gone_is_named_before_those_that_wait_for_it() {
        let waiting = [CurrentCall { rank: 0, call: "RCCE_recv".into(), peer: Some(1) }];
        assert_eq!(
            deadlock_line(&waiting, &[1]),
            "rank 1 has ended without RCCE_finalize; deadlock: rank 0 in RCCE_recv for rank 1"
        );
    }
}
