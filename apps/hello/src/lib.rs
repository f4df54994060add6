//! The application `hello`: each place reports its number; the first program to run on a machine.
//!
//! The greetings are collected at the first place, which also checks that each place has sent its own.

#![forbid(unsafe_code)]

use clap::Args;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, Balance, RunResult, Verification, WorkDistributor, WorkDone,
};
use serde::Serialize;
use std::io::{self, Write};

/// The arguments of `isles run hello`: none of its own.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Hello {}

/// Result of the application: `true` if each place has sent its own greeting.
///
/// The greetings themselves are not part of the result, because their number depends on the places.
#[derive(Serialize)]
pub struct Greetings {
    complete: bool,
    #[serde(skip)]
    lines: Vec<String>,
}

impl Application for Hello {
    const INFO: ApplicationInfo = ApplicationInfo::new("hello", env!("CARGO_PKG_DESCRIPTION"), "greetings");
    type Input = ();
    type Found = Greetings;

    fn open(&self, _: u32) -> Result<(), Failure> {
        Ok(())
    }

    fn heading(&self, _: &()) -> String {
        "a greeting from each place".to_owned()
    }

    async fn compute(_: (), distributor: WorkDistributor) -> isles::Result<(Greetings, WorkDone)> {
        let units = distributor.units(place_count() as u64, Balance::Static).await?;
        let started = now();
        let mut lines = Vec::with_capacity(place_count());
        for place in places() {
            let line = at!(place, {
                let mut own = units.here();
                while own.take().await?.is_some() {}
                Ok::<String, isles::Error>(format!("hello from {}", here()))
            });
            lines.push(line.await?);
        }
        let done = units.done(started).await?;
        let complete = lines.iter().zip(places()).all(|(line, place)| *line == format!("hello from {place}"));
        Ok((Greetings { complete, lines }, done))
    }
}

impl RunResult for Hello {
    fn text(&self, found: &Greetings) -> String {
        found.lines.join("\n")
    }

    fn speed(&self, found: &Greetings, seconds: f64) -> String {
        format!("{:.0} greetings a second", found.lines.len() as f64 / seconds)
    }

    fn verify(&self, found: &Greetings, _: bool) -> Result<Option<Verification>, Failure> {
        let text = "each place has sent its own greeting".to_owned();
        Ok(Some(Verification { holds: found.complete, text }))
    }

    fn write_csv(&self, found: &Greetings, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "greeting")?;
        found.lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Hello>()
}
