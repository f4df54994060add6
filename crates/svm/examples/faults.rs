//! Measures a page fault that another process serves, and one that needs no other process; for `isles bench svm`.
//!
//! A second process writes pages; this one then takes a guard for each. Each guard is one round trip of messages: to
//! the other process, which holds the page, and back. The first is measured also over sockets, as between hosts, here
//! on the loopback interface. Prints the medians in microseconds.

use isles_protocol::PlaceId;
use isles_protocol::svm::Consistency;
use isles_svm::{PAGE_BYTES, PageRegion, PlaceAddress, RegionSeed};
use std::error::Error;
use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{Command, Stdio};
use std::time::Instant;

const PAGES: usize = 2_000;
/// Elements of a page.
const PAGE: usize = PAGE_BYTES / 8;
const LEN: usize = PAGES * PAGE;
/// The argument of the second process, before the way to it.
const SECOND: &str = "second";
/// The way to the second process: over sockets.
const SOCKETS: &str = "sockets";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == SECOND) {
        return serve(words.last().is_some_and(|word| word == SOCKETS));
    }
    for (by_sockets, [read, write]) in
        [(false, ["read_us", "write_us"]), (true, ["socket_read_us", "socket_write_us"])]
    {
        measure_pair(by_sockets, [read, write])?;
    }
    let seed = PageRegion::<u64>::prepare(LEN, true)?;
    let addresses = [seed.address()];
    let alone = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, LEN, Consistency::Strong)?;
    println!("measured alone_us {}", median(&alone, |region, at| Ok(region.read(at..at + 1)?[0]))?);
    Ok(())
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
fn measure_pair(by_sockets: bool, names: [&str; 2]) -> Outcome<()> {
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
    println!("measured {} {}", names[0], median(&region, |region, at| Ok(region.read(at..at + 1)?[0]))?);
    writeln!(input)?;
    line()??;
    println!("measured {} {}", names[1], median(&region, |region, at| Ok(region.write(at..at + 1)?[0]))?);
    writeln!(input)?;
    line()??;
    writeln!(input)?;
    drop(region);
    child.wait()?;
    Ok(())
}

/// The median of the microseconds that an access of each page takes.
fn median(
    region: &PageRegion<u64>,
    access: impl Fn(&PageRegion<u64>, usize) -> Outcome<u64>,
) -> Outcome<f64> {
    let mut times = Vec::new();
    for page in 0..PAGES {
        let started = Instant::now();
        std::hint::black_box(access(region, page * PAGE)?);
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[PAGES / 2])
}

/// The second process: writes all pages whenever it is told.
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
