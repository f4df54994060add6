//! A job server with a kind of jobs whose step never returns, for tests of its end.

use isles_jobs::{
    Job, JobKind, JobOutput, JobProgress, JobServerOptions, Policy, Store, from_bytes, offer, serve, to_bytes,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Serialize, Deserialize)]
struct Stuck;

impl Job for Stuck {
    const NAME: &'static str = "stuck";
    const WORDS: &'static str = "";

    fn create(_: &[String]) -> Result<Stuck, String> {
        Ok(Stuck)
    }

    fn step(&mut self, _: &mut JobOutput) -> Result<JobProgress, String> {
        loop {
            std::thread::park();
        }
    }

    fn save(&self) -> Vec<u8> {
        to_bytes(self)
    }

    fn restore(bytes: &[u8]) -> Result<Stuck, String> {
        from_bytes(bytes)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    offer(const { &[JobKind::of::<Stuck>()] });
    isles::serve_if_joined();
    let directory = std::env::args().nth(1).ok_or("usage: stuck DIRECTORY")?;
    let options = JobServerOptions {
        store: Store::open(directory, "stuck")?,
        policy: Policy::Balanced,
        demonstration: None,
        is_modelled: false,
        page_commands: false,
    };
    let launch = isles::Launch::from_environment()?;
    Ok(serve(launch, options, Arc::new(AtomicBool::new(false)))?)
}
