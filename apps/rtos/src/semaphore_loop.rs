//! The application `semaphore-loop`: two tasks signal each other by two semaphores.
//!
//! A loop is two signals and two tests: 4 requests, 8 packets, 4 switches (OpenComRTOS, table V). The first loop is not
//! timed. Invariant: both tasks count all loops, under every map.

use crate::program::{HubArguments, HubProgram, HubRun};
use clap::{Args, value_parser};
use isles::hub::{HubDescription, HubKind, HubMap, HubTask, Wait};
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The arguments of `isles run semaphore-loop`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct SemaphoreLoop {
    /// Number of measured loops, 1 to 2^32 - 1; one more runs first
    #[arg(long, value_name = "N", default_value = "1000", value_parser = value_parser!(u32).range(1..))]
    loops: u32,

    #[command(flatten)]
    hubs: HubArguments,
}

/// The result of a task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Looped {
    loops: u32,
    /// Time of all loops except the first, in nanoseconds; 0 for the task that does not measure.
    nanoseconds: u64,
}

/// The result of a run.
#[derive(Serialize)]
pub struct SemaphoreLoopFound {
    /// Number of loops that each task has counted.
    left: u32,
    right: u32,
    /// Time of one loop in microseconds.
    loop_us: f64,
    /// Switches, requests and packets of one loop, including the first and the last loop.
    switches: f64,
    requests: f64,
    packets: f64,
    /// Messages between places of one loop.
    messages: f64,
    #[serde(skip)]
    expected: u32,
}

fn describe(_: u32) -> HubDescription {
    HubDescription::new()
        .task("left", 20)
        .task("right", 10)
        .hub("ping", HubKind::Semaphore { count: 0 })
        .hub("pong", HubKind::Semaphore { count: 0 })
}

/// Returns a map with each semaphore where it is tested.
fn usual_map(places: u32) -> HubMap {
    let other = u32::from(places > 1);
    HubMap::of([("left", 0), ("pong", 0), ("right", other), ("ping", other)])
}

async fn body(task: HubTask, loops: u32) -> isles::Result<Looped> {
    let (ping, pong) = (task.semaphore("ping")?, task.semaphore("pong")?);
    if task.name() == "right" {
        for _ in 0..loops {
            task.test(ping, Wait::Forever).await?;
            task.signal(pong, Wait::Forever).await?;
        }
        return Ok(Looped { loops, nanoseconds: 0 });
    }
    let mut begun = now();
    for number in 0..loops {
        if number == 1 {
            begun = now();
        }
        task.signal(ping, Wait::Forever).await?;
        task.test(pong, Wait::Forever).await?;
    }
    Ok(Looped { loops, nanoseconds: (now() - begun).as_nanos() as u64 })
}

impl Application for SemaphoreLoop {
    const INFO: ApplicationInfo = ApplicationInfo::new(
        "semaphore-loop",
        "Two tasks that signal each other by two semaphores, as OpenComRTOS measures its kernel",
        "loops",
    );
    type Input = HubProgram<u32>;
    type Found = SemaphoreLoopFound;

    fn open(&self, places: u32) -> Result<HubProgram<u32>, Failure> {
        HubProgram::open(&self.hubs, self.loops.saturating_add(1), describe, usual_map(places), places)
    }

    fn heading(&self, input: &HubProgram<u32>) -> String {
        format!("{} loops of two tasks and two semaphores, the first left out", input.arguments)
    }

    async fn compute(
        input: HubProgram<u32>,
        distributor: WorkDistributor,
    ) -> isles::Result<(SemaphoreLoopFound, WorkDone)> {
        let _steps = distributor.open_steps();
        distributor.begin_phase("loops");
        let loops = input.arguments;
        let HubRun { tasks, kernel } = input.run(describe, body).await?;
        let (left, right) = (tasks["left"], tasks["right"]);
        let seconds = left.nanoseconds as f64 / 1e9;
        let each = |count: u64| count as f64 / f64::from(loops);
        let found = SemaphoreLoopFound {
            left: left.loops,
            right: right.loops,
            loop_us: seconds * 1e6 / f64::from(loops - 1),
            switches: each(kernel.switches),
            requests: each(kernel.requests),
            packets: each(kernel.packets),
            messages: each(kernel.sent),
            expected: loops,
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for SemaphoreLoop {
    fn text(&self, found: &SemaphoreLoopFound) -> String {
        let SemaphoreLoopFound { loop_us, switches, requests, packets, messages, .. } = found;
        format!(
            "a loop    {loop_us:.3} us\nswitches  {switches:.2}\nrequests  {requests:.2}\npackets   {packets:.2}\nmessages  {messages:.2} between places"
        )
    }

    fn speed(&self, found: &SemaphoreLoopFound, seconds: f64) -> String {
        format!("{:.1} loops a second", f64::from(found.left) / seconds)
    }

    fn verify(&self, found: &SemaphoreLoopFound, _: bool) -> Result<Option<Verification>, Failure> {
        let SemaphoreLoopFound { left, right, expected, .. } = found;
        let holds = left == expected && right == expected;
        Ok(Some(Verification {
            holds,
            text: format!("the tasks counted {left} and {right} of {expected} loops"),
        }))
    }

    fn write_csv(&self, found: &SemaphoreLoopFound, out: &mut dyn Write) -> io::Result<()> {
        let SemaphoreLoopFound { left, loop_us, switches, requests, packets, messages, .. } = found;
        writeln!(out, "loops,loop_us,switches,requests,packets,messages")?;
        writeln!(out, "{left},{loop_us},{switches},{requests},{packets},{messages}")
    }
}
