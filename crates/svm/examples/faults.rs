//! Measures page faults served by another process and by a local handler; for `isles bench svm`.
//!
//! A second process writes pages; this one then takes a guard for each. Each guard is one round trip of messages: to
//! the other process, which holds the page, and back. The first is measured also over sockets, as between hosts, here
//! on the loopback interface. For comparison there is a bare handler: a thread that waits in `poll` for the faults of
//! another one and maps the page, without a protocol. Everything is measured on the idle host, and again while a thread
//! of least priority keeps each processor busy, because waking an idle processor takes longer. Prints the medians in
//! microseconds; the names of the second state begin with `busy_`. Each process starts on a processor of its own, as
//! places do. The argument `bare` measures the bare handler only, `pages` all but that.

#[allow(dead_code, reason = "the calls of the crate, of which the bare handler needs some")]
#[path = "../src/sys.rs"]
mod sys;

use isles_protocol::PlaceId;
use isles_protocol::svm::Consistency;
use isles_svm::{PAGE_BYTES, PageRegion, PlaceAddress, RegionError, RegionSeed};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::error::Error;
use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const PAGES: usize = 2_000;
/// Elements of a page.
const PAGE: usize = PAGE_BYTES / 8;
const LEN: usize = PAGES * PAGE;
/// The argument of the second process, followed by the transport.
const SECOND: &str = "second";
/// The transport to the second process: sockets.
const SOCKETS: &str = "sockets";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == SECOND) {
        start_on(1)?;
        return serve(words.last().is_some_and(|word| word == SOCKETS));
    }
    let part = words.first().map_or("", String::as_str);
    start_on(0)?;
    measure_all(part, "")?;
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism()?.get() {
            scope.spawn(|| keep_busy(&ends));
        }
        let measured = measure_all(part, "busy_");
        ends.store(true, Ordering::Relaxed);
        measured
    })
}

/// Moves this process to a processor that it may use, and does not bind it.
fn start_on(index: usize) -> Outcome<()> {
    let allowed = sched_getaffinity(None)?;
    let processor = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).nth(index);
    let mut own = CpuSet::new();
    if let Some(processor) = processor {
        own.set(processor);
        sched_setaffinity(None, &own)?;
    }
    Ok(sched_setaffinity(None, &allowed)?)
}

/// Computes at the least priority until `ends`.
fn keep_busy(ends: &AtomicBool) {
    // If this fails, the figures are only worse.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19);
    while !ends.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Takes the measurements of `part`, and prints them with the prefix `state`.
fn measure_all(part: &str, state: &str) -> Outcome<()> {
    if part != "pages" {
        println!("measured {state}bare_us {}", measure_bare()?);
    }
    if part == "bare" {
        return Ok(());
    }
    for (by_sockets, [read, write]) in
        [(false, ["read_us", "write_us"]), (true, ["socket_read_us", "socket_write_us"])]
    {
        measure_pair(by_sockets, [read, write].map(|name| format!("{state}{name}")))?;
    }
    let seed = PageRegion::<u64>::prepare(LEN, true)?;
    let addresses = [seed.address()];
    let alone = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, LEN, Consistency::Strong)?;
    println!("measured {state}alone_us {}", median(|page| Ok(alone.read(page * PAGE..page * PAGE + 1)?[0]))?);
    Ok(())
}

/// Measures touches of pages that a thread maps on notice of the fault.
fn measure_bare() -> Outcome<f64> {
    let file = sys::memory_file(PAGES * PAGE_BYTES)?;
    let [frames, view] = [0; 2].map(|_| sys::PageMapping::of_file(file.as_fd(), PAGES * PAGE_BYTES));
    let (frames, view) = (frames?, view?);
    (0..PAGES).for_each(|page| frames.byte(page * PAGE_BYTES).store(1, Ordering::Relaxed));
    let fault = sys::Userfault::open()?;
    fault.register(&view, 0..PAGES * PAGE_BYTES)?;
    std::thread::scope(|scope| {
        let handler = scope.spawn(|| -> Result<(), RegionError> {
            let mut handled = 0;
            while handled < PAGES {
                poll(&mut [PollFd::new(&fault, PollFlags::IN)], None)
                    .map_err(sys::failed("poll", "allow more open files"))?;
                while let Some(event) = fault.next() {
                    let page = (event.address - view.base() as usize) / PAGE_BYTES;
                    fault.map(&view, page, false)?;
                    handled += 1;
                }
            }
            Ok(())
        });
        let taken = median(|page| Ok(view.byte(page * PAGE_BYTES).load(Ordering::Relaxed).into()));
        handler.join().map_err(|_| "the handler panicked")??;
        taken
    })
}

/// Returns the seed of a place, which listens if pages are to travel over sockets.
fn seed_of(is_first: bool, by_sockets: bool) -> Outcome<RegionSeed> {
    let mut seed = PageRegion::<u64>::prepare(LEN, is_first)?;
    if by_sockets {
        seed.listen()?;
    }
    Ok(seed)
}

/// Measures guards to read and to write pages that a second process has written, and prints them by these names.
fn measure_pair(by_sockets: bool, names: [String; 2]) -> Outcome<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([SECOND, if by_sockets { SOCKETS } else { "memory" }])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut line = || output.next().ok_or("the second process has ended");
    let second: PlaceAddress = serde_json::from_str(&line()??)?;
    let seed = seed_of(true, by_sockets)?;
    let addresses = [seed.address(), second];
    writeln!(input, "{}", serde_json::to_string(&addresses)?)?;
    let region = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, LEN, Consistency::Strong)?;
    line()??;
    println!("measured {} {}", names[0], median(|page| Ok(region.read(page * PAGE..page * PAGE + 1)?[0]))?);
    writeln!(input)?;
    line()??;
    println!("measured {} {}", names[1], median(|page| Ok(region.write(page * PAGE..page * PAGE + 1)?[0]))?);
    writeln!(input)?;
    line()??;
    writeln!(input)?;
    drop(region);
    child.wait()?;
    Ok(())
}

/// The median of the microseconds that an access of each page takes.
fn median(access: impl Fn(usize) -> Outcome<u64>) -> Outcome<f64> {
    let mut times = Vec::new();
    for page in 0..PAGES {
        let started = Instant::now();
        std::hint::black_box(access(page)?);
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[PAGES / 2])
}

/// The second process: writes all pages on request.
fn serve(by_sockets: bool) -> Outcome<()> {
    let seed = seed_of(false, by_sockets)?;
    println!("{}", serde_json::to_string(&seed.address())?);
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    let addresses: Vec<PlaceAddress> = serde_json::from_str(&line)?;
    let region = PageRegion::<u64>::join(seed, PlaceId(1), &addresses, LEN, Consistency::Strong)?;
    for _ in 0..3 {
        for page in 0..PAGES {
            region.write(page * PAGE..page * PAGE + 1)?[0] += 1;
        }
        println!("written");
        stdin().read_line(&mut line)?;
    }
    Ok(())
}
