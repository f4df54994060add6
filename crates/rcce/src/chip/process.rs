//! A rank of C in its own process, for programs that use threads, signals or other state of libc.
//!
//! It takes turns with the model over a few words of the shared memory:
//!
//! ```text
//! model   writes the answer, sets the turn to the rank, wakes it
//! rank    runs, writes its next request, sets the turn to the model, wakes it
//! ```
//!
//! Two wake-ups per request make it slower than a copy in one process. The chip's times vary with the addresses of
//! private memory, because a process has its own heap.

use crate::host::{describe, start_rank};
use crate::image::{Image, ProgramArguments};
use crate::interface::{MachineDescription, PortOperation, PortRequest};
use crate::segment::RankMemory;
use isles_app::Failure;
use rustix::fd::OwnedFd;
use rustix::thread::futex;
use std::cell::UnsafeCell;
use std::ffi::{OsString, c_void};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MODEL: u32 = 0;
const RANK: u32 = 1;

/// Interval at which the end of the process is polled.
const POLL_INTERVAL: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The words of one rank. `turn` determines which side may use the others.
#[repr(C)]
pub struct TurnWords {
    turn: AtomicU32,
    answer: AtomicU64,
    request: UnsafeCell<PortRequest>,
}

impl TurnWords {
    fn pass_turn(&self, to: u32) {
        self.turn.store(to, Ordering::SeqCst);
        let _ = futex::wake(&self.turn, futex::Flags::empty(), 1);
    }

    /// Waits until it is the turn of `own`, or for one interval.
    fn wait(&self, own: u32) -> bool {
        for _ in 0..200 {
            if self.turn.load(Ordering::SeqCst) == own {
                return true;
            }
            std::thread::yield_now();
        }
        let _ = futex::wait(&self.turn, futex::Flags::empty(), 1 - own, Some(&POLL_INTERVAL));
        self.turn.load(Ordering::SeqCst) == own
    }

    /// Returns the exit code to report for a process that has ended with `status`; `None` if it has made a request
    /// since the turn was last checked.
    fn end_of(&self, status: ExitStatus) -> Option<u64> {
        let code = status.code().filter(|code| *code != 0).unwrap_or(1);
        (!self.wait(MODEL)).then_some(code as u64)
    }

    fn request(&self) -> PortRequest {
        // NEED: the request is written by another process.
        // SOUND: it is called by the side whose turn it is, after the load of `turn` that shows it.
        unsafe { *self.request.get() }
    }

    fn set_request(&self, request: PortRequest) {
        // NEED: the request is read by another process.
        // SOUND: it is called by the side whose turn it is, before the store to `turn` that ends its turn.
        unsafe { *self.request.get() = request }
    }
}

/// A rank in a process.
pub struct ProcessRank {
    child: Child,
    words: &'static TurnWords,
    rank: u32,
}

impl ProcessRank {
    /// Starts the process; the program begins with the first answer.
    ///
    /// # Errors
    /// The system refuses.
    pub fn start(
        machine: &MachineDescription,
        descriptor: &OwnedFd,
        memory: RankMemory,
        program: &Path,
        words: &[OsString],
    ) -> Result<ProcessRank, Failure> {
        let served =
            ModelFacts { gigahertz: machine.gigahertz, domains: &machine.domains[..machine.ranks as usize] };
        let child = start_rank(
            machine.rank as usize,
            machine.ranks as usize,
            descriptor,
            memory,
            &served.to_string(),
            program,
            words,
        )?;
        Ok(ProcessRank { child, words: memory.turn_words(machine.rank as usize), rank: machine.rank })
    }

    /// Resumes the rank with the answer to its last request, until the next one.
    pub fn resume(&mut self, answer: u64) -> PortRequest {
        self.words.answer.store(answer, Ordering::SeqCst);
        self.words.pass_turn(RANK);
        while !self.words.wait(MODEL) {
            if let Ok(Some(status)) = self.child.try_wait() {
                let Some(code) = self.words.end_of(status) else {
                    break; // its last request came just before it ended
                };
                isles_app::console::notice(format_args!(
                    "the process of rank {} has ended: {status}",
                    self.rank
                ));
                return end(code);
            }
        }
        self.words.request()
    }
}

impl Drop for ProcessRank {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn end(code: u64) -> PortRequest {
    PortRequest { operation: PortOperation::End as u32, value: code, ..PortRequest::default() }
}

/// Facts of the model for such a process, encoded in one word of its command line: the clock, then the power domains.
struct ModelFacts<'a> {
    gigahertz: f64,
    domains: &'a [u32],
}

impl std::fmt::Display for ModelFacts<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.gigahertz)?;
        self.domains.iter().try_for_each(|domain| write!(out, ",{domain}"))
    }
}

/// Runs the program as a rank whose model is in another process.
///
/// # Errors
/// The words are not those of [`ProcessRank::start`], or the program cannot be loaded.
pub fn run_with_remote_model(
    segment: RankMemory,
    rank: usize,
    ranks: usize,
    model_facts: &str,
    program: &Path,
    words: &[OsString],
) -> Result<(), Failure> {
    let mut machine = describe(segment, rank, ranks);
    let mut numbers = model_facts.split(',');
    machine.gigahertz = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(1.0);
    for (domain, number) in machine.domains.iter_mut().zip(numbers) {
        *domain = number.parse().unwrap_or(0);
    }
    let turns = segment.turn_words(rank);
    machine.modelled = 1;
    machine.request = Some(ask);
    machine.context = std::ptr::from_ref(turns).cast_mut().cast();
    let image = Image::load(program)?;
    image.attach(&machine)?;
    while !turns.wait(RANK) {}
    image.run(&ProgramArguments::new(program, words)?);
    Ok(())
}

extern "C" fn ask(context: *mut c_void, request: *const PortRequest) -> u64 {
    // NEED: the library passes the context back as a pointer.
    // SOUND: `context` is the words of this rank in the mapping, which stays; `request` is a variable of the caller.
    let (turns, request) = unsafe { (&*context.cast::<TurnWords>(), *request) };
    let is_end = PortOperation::of(request.operation) == Some(PortOperation::End);
    if is_end {
        // NEED: this process ends without running libc's `exit`.
        // SOUND: null means all files.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    }
    turns.set_request(request);
    turns.pass_turn(MODEL);
    if is_end {
        std::process::exit(0);
    }
    while !turns.wait(RANK) {}
    turns.answer.load(Ordering::SeqCst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn words(turn: u32) -> TurnWords {
        TurnWords {
            turn: AtomicU32::new(turn),
            answer: AtomicU64::new(0),
            request: UnsafeCell::new(PortRequest::default()),
        }
    }

    #[test]
    fn a_process_that_ends_behind_its_last_request_has_not_failed() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(words(MODEL).end_of(ended(0)), None, "it has passed the turn with its last request");
        assert_eq!(words(RANK).end_of(ended(0)), Some(1), "it has ended without one");
        assert_eq!(words(RANK).end_of(ended(7)), Some(7));
        assert_eq!(words(RANK).end_of(ExitStatus::from_raw(9)), Some(1), "a signal");
    }
}
