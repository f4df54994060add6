//! A program with jobs of its own: they count primes, and `isles job` starts, pauses, moves and checkpoints them.
use isles_jobs::{Job, JobKind, JobOutput, JobProgress, JobServerOptions, Policy, Store};
use isles_jobs::{from_bytes, offer, serve, to_bytes};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All that a job has to remember: so little is a checkpoint.
#[derive(Serialize, Deserialize)]
struct Primes {
    limit: u64,
    at: u64,
    found: u64,
}

impl Job for Primes {
    const NAME: &'static str = "primes";
    const WORDS: &'static str = "LIMIT";

    fn create(words: &[String]) -> Result<Primes, String> {
        let limit = words.first().and_then(|word| word.parse().ok());
        let limit = limit.ok_or_else(|| format!("the words are {words:?}; allowed: a whole number"))?;
        Ok(Primes { limit, at: 2, found: 0 })
    }

    /// A thousand numbers: little enough that others at the place wait for a moment only.
    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String> {
        let end = self.limit.min(self.at + 1000);
        let is_prime =
            |number: &u64| (2..).take_while(|d| d * d <= *number).all(|d| !number.is_multiple_of(d));
        self.found += (self.at..end).filter(is_prime).count() as u64;
        self.at = end;
        output.line(format!("{} primes below {end}", self.found));
        Ok(if end < self.limit { JobProgress::More } else { JobProgress::Done(self.found.to_string()) })
    }

    fn save(&self) -> Vec<u8> {
        to_bytes(self)
    }

    fn restore(bytes: &[u8]) -> Result<Primes, String> {
        from_bytes(bytes)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    offer(const { &[JobKind::of::<Primes>()] }); // first of all, so that all places know
    isles::serve_if_joined();
    let directory = std::env::args().nth(1).ok_or("usage: primes DIRECTORY")?;
    let options = JobServerOptions {
        store: Store::open(directory, "primes")?,
        policy: Policy::Balanced,
        demonstration: None,
        is_modelled: false,
        page_commands: false,
    };
    let launch = isles::Launch::from_environment()?;
    Ok(serve(launch, options, Arc::new(AtomicBool::new(false)))?)
}
