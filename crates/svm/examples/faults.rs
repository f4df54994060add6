//! Measures a page fault that another process serves, and one that needs no other process; for `isles bench svm`.
//!
//! A second process writes pages; this one then takes a guard for each. Each guard is one round trip of messages: to
//! the other process, which holds the page, and back. Prints the medians in microseconds.

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
/// The argument of the second process.
const SECOND: &str = "second";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if std::env::args().nth(1).as_deref() == Some(SECOND) {
        return serve();
    }
    let mut child = Command::new(std::env::current_exe()?)
        .arg(SECOND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut line = || output.next().ok_or("the second process has ended");
    let second: PlaceAddress = serde_json::from_str(&line()??)?;
    let seed: RegionSeed = PageRegion::<u64>::prepare(LEN, true)?;
    let addresses = [seed.address(), second];
    writeln!(input, "{}", serde_json::to_string(&addresses)?)?;
    let region = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, LEN, Consistency::Strong)?;
    line()??;
    println!("measured read_us {}", median(&region, |region, at| Ok(region.read(at..at + 1)?[0]))?);
    writeln!(input)?;
    line()??;
    println!("measured write_us {}", median(&region, |region, at| Ok(region.write(at..at + 1)?[0]))?);
    writeln!(input)?;
    line()??;
    writeln!(input)?;
    drop(region);
    child.wait()?;
    let seed = PageRegion::<u64>::prepare(LEN, true)?;
    let addresses = [seed.address()];
    let alone = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, LEN, Consistency::Strong)?;
    println!("measured alone_us {}", median(&alone, |region, at| Ok(region.read(at..at + 1)?[0]))?);
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
fn serve() -> Outcome<()> {
    let seed = PageRegion::<u64>::prepare(LEN, false)?;
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
