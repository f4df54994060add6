//! `isles-guest`: measures costs in a guest and in a process on this host, in ticks of the time-stamp counter.
//!
//! The measurements are those of tables I to III and figure 3 of the MetalSVM paper (Reble et al., 2012). Each value is
//! the median of its rounds; for Jacobi and context switches it is the minimum, because other processes interrupt
//! those. The result is a JSON document on standard output: the processor, and an object for each side. With the
//! argument `starts` it is a line for the bench: the start of a guest alone.

use isles_hypervisor::{Guest, GuestError};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Rounds of the short measurements, of thread starts, and of guest starts.
const ROUNDS: usize = 301;
const THREADS: usize = 51;
const STARTS: usize = 11;

/// Sweeps of a Jacobi iteration, and rounds of its measurement.
const SWEEPS: usize = 400;
const SWEEP_ROUNDS: usize = 5;

/// Number of observed context switches, and the limit of their measurement in ticks.
const SWITCHES: u64 = 200;
const SWITCH_TICKS: u64 = 20_000_000_000;

/// Number of first-touched pages.
const PAGES: usize = 256;
const PAGE: usize = 4096;

/// Returns the time-stamp counter.
fn ticks() -> u64 {
    // NEED: the counter has no safe function.
    // SOUND: every processor of x86-64 has the instruction, and Linux lets programs execute it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns the ticks of `rounds` calls, in ascending order.
fn sorted(rounds: usize, mut body: impl FnMut()) -> Vec<u64> {
    let mut taken: Vec<u64> = (0..rounds)
        .map(|_| {
            let begin = ticks();
            body();
            ticks() - begin
        })
        .collect();
    taken.sort_unstable();
    taken
}

/// Returns the median ticks of `rounds` calls.
fn median(rounds: usize, body: impl FnMut()) -> u64 {
    sorted(rounds, body)[rounds / 2]
}

/// Returns the minimum ticks of `rounds` calls, for work so long that other processes interrupt it.
fn least(rounds: usize, body: impl FnMut()) -> u64 {
    sorted(rounds, body)[0]
}

/// A side of a measurement: runs code in a process or a guest.
trait CodeSide {
    const NAME: &'static str;

    /// Runs `body` on this side, on the calling thread.
    fn run<R>(body: impl FnOnce() -> R) -> R;
}

/// Code in the process.
struct InProcess;

impl CodeSide for InProcess {
    const NAME: &'static str = "process";

    fn run<R>(body: impl FnOnce() -> R) -> R {
        body()
    }
}

/// Code in a guest.
struct InGuest;

impl CodeSide for InGuest {
    const NAME: &'static str = "guest";

    fn run<R>(body: impl FnOnce() -> R) -> R {
        match Guest::new("guest") {
            Ok(mut guest) => guest.run(|_| body()),
            Err(error) => panic!("cannot create another guest: {error}"),
        }
    }
}

/// Returns the median ticks of the first touch of a page. The memory is mapped before, and its first page touched, so
/// that a guest's tables cover it.
fn page_fault() -> u64 {
    let mut memory = vec![0_u8; (PAGES + 1) * PAGE];
    black_box(&mut memory)[0] = 1;
    let mut page = 0;
    median(PAGES, || {
        page += 1;
        black_box(&mut memory)[page * PAGE] = 1;
    })
}

fn getpid() -> u64 {
    median(ROUNDS, || {
        black_box(std::process::id());
    })
}

/// Returns the median ticks to start and join a thread that does nothing.
fn thread() -> u64 {
    median(THREADS, || {
        let _ = std::thread::spawn(|| ()).join(); // it does not panic
    })
}

/// Runs a Jacobi iteration on a square of `side` × `side` cells with a hot upper edge.
fn jacobi(side: usize) -> u64 {
    let mut cells = vec![0.0_f64; side * side];
    cells[..side].fill(1.0);
    let mut next = cells.clone();
    least(SWEEP_ROUNDS, || {
        for _ in 0..SWEEPS {
            for row in 1..side - 1 {
                for cell in row * side + 1..(row + 1) * side - 1 {
                    next[cell] =
                        0.25 * (cells[cell - side] + cells[cell + side] + cells[cell - 1] + cells[cell + 1]);
                }
            }
            std::mem::swap(&mut cells, &mut next);
        }
        black_box(&cells);
    })
}

/// Pins the calling thread to the first processor that it may use.
fn pin() {
    let allowed = rustix::thread::sched_getaffinity(None);
    let Some(first) = allowed.ok().and_then(|set| (0..CpuSet::MAX_CPU).find(|cpu| set.is_set(*cpu))) else {
        return;
    };
    let mut one = CpuSet::new();
    one.set(first);
    // If the system refuses, both tasks share a processor only by chance, which shows in the figure.
    let _ = sched_setaffinity(None, &one);
}

/// Returns the ticks of two instances of the iteration on one processor.
fn two_jacobi<S: CodeSide>(side: usize) -> u64 {
    least(SWEEP_ROUNDS, || {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    pin();
                    S::run(|| jacobi(side))
                });
            }
        });
    })
}

/// Returns the minimum ticks between the last store of one task and the first of the other, both on one processor.
///
/// Each task stores the counter in shared memory in a loop (004:2345). A store that follows one of the other task ends
/// a context switch.
fn context_switch<S: CodeSide>() -> u64 {
    let shared = [AtomicU64::new(0), AtomicU64::new(0)];
    let (count, least) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let end = ticks() + SWITCH_TICKS;
    std::thread::scope(|scope| {
        for own in 0..2_usize {
            let (shared, count, least) = (&shared, &count, &least);
            scope.spawn(move || {
                pin();
                S::run(|| {
                    // Relaxed: both tasks are on one processor.
                    let mut other = shared[1 - own].load(Ordering::Relaxed);
                    while count.load(Ordering::Relaxed) < SWITCHES {
                        // The order matters: read the other way round, a task preempted between the two would see a
                        // store later than `now`.
                        let seen = shared[1 - own].load(Ordering::Relaxed);
                        let now = ticks();
                        if seen != other {
                            other = seen;
                            least.fetch_min(now.saturating_sub(seen), Ordering::Relaxed);
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        shared[own].store(now, Ordering::Relaxed);
                        if now > end {
                            break;
                        }
                    }
                });
            });
        }
    });
    least.into_inner()
}

/// Returns the figures of a side, as members of a JSON object.
fn figures<S: CodeSide>() -> Vec<(&'static str, u64)> {
    let [page_fault, getpid, thread, jacobi_128, jacobi_32] =
        S::run(|| [page_fault(), getpid(), thread(), jacobi(128), jacobi(32)]);
    vec![
        ("page_fault", page_fault),
        ("getpid", getpid),
        ("thread", thread),
        ("jacobi_128", jacobi_128),
        ("jacobi_32", jacobi_32),
        ("two_jacobi_128", two_jacobi::<S>(128)),
        ("context_switch", context_switch::<S>()),
    ]
}

fn object<S: CodeSide>(figures: &[(&'static str, u64)]) -> String {
    let members: Vec<String> = figures.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("\"{}\":{{{}}}", S::NAME, members.join(","))
}

/// Returns the name of the processor, without characters that JSON would escape.
fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.and_then(|line| line.split_once(": ")).map_or("", |(_, name)| name);
    name.chars().filter(|character| !matches!(character, '"' | '\\') && !character.is_control()).collect()
}

fn measure() -> Result<String, GuestError> {
    isles_hypervisor::check()?;
    let process = figures::<InProcess>();
    let mut guest = Guest::new("guest")?;
    let hypercall = guest.run(|calls| median(ROUNDS, || calls.null_hypercall()));
    drop(guest);
    let start = median(STARTS, || InGuest::run(|| ()));
    let mut of_guest = vec![("hypercall", hypercall), ("start", start)];
    of_guest.extend(figures::<InGuest>());
    Ok(format!(
        "{{\"processor\":\"{}\",{},{}}}",
        cpu_name(),
        object::<InProcess>(&process),
        object::<InGuest>(&of_guest)
    ))
}

/// Prints the line for the bench: the median time to create a guest and run an empty function in it, in milliseconds.
fn starts() -> Result<String, GuestError> {
    isles_hypervisor::check()?;
    let mut taken: Vec<f64> = (0..STARTS)
        .map(|_| {
            let begin = Instant::now();
            InGuest::run(|| ());
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    taken.sort_by(f64::total_cmp);
    Ok(format!("measured start_ms {}", taken[STARTS / 2]))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure(),
        ["starts"] => starts(),
        _ => {
            eprintln!("error: the arguments are {:?}; allowed: none, starts", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: cannot measure a guest: {error}");
            ExitCode::from(2)
        }
    }
}
