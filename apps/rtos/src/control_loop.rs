//! The application `control-loop`: a sensor, a controller, an actuator and a logger, each a task.
//!
//! The sensor has the plant, a tank whose level falls by itself. Readings go to the controller through a FIFO,
//! commands to the actuator through a port, the applied flow back to the plant through a port, and all of them to the
//! logger through FIFOs. The set point is on a black board, a resource protects the log, and an event ends the loop.
//! All numbers are integers, so the values of the tasks are the same under every map; [`alone`] computes them without
//! tasks.

use crate::program::{Digest, HubArguments, HubProgram};
use clap::{Args, value_parser};
use isles::hub::{HubDescription, HubKind, HubMap, HubTask, Wait};
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The arguments of `isles run control-loop`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct ControlLoop {
    /// Steps of the loop, 1 to 2^32 - 1
    #[arg(long, value_name = "N", default_value = "1000", value_parser = value_parser!(u32).range(1..))]
    steps: u32,

    #[command(flatten)]
    hubs: HubArguments,
}

/// The result of a run.
#[derive(Serialize)]
pub struct ControlLoopFound {
    steps: u32,
    /// The value of each task: the last level of the sensor, the last command of the controller, the total applied by
    /// the actuator, and the digest of the logger.
    tasks: BTreeMap<String, i64>,
    /// The time of a step in microseconds.
    step_us: f64,
}

/// The set point and the initial level, in thousandths.
const SET_POINT: i64 = 500_000;
const LEVEL: i64 = 100_000;

/// Largest amount that the actuator applies in a step.
const APPLIED_MAX: i64 = 20_000;

/// Returns the level after a step in which `applied` was added and a fiftieth of the tank ran out.
fn next_level(level: i64, applied: i64) -> i64 {
    level - level / 50 + applied
}

/// A controller with a proportional and an integral part.
#[derive(Default)]
struct PiController {
    sum: i64,
}

impl PiController {
    fn command(&mut self, set_point: i64, level: i64) -> i64 {
        let error = set_point - level;
        self.sum += error;
        error / 4 + self.sum / 40
    }
}

fn apply(command: i64) -> i64 {
    command.clamp(0, APPLIED_MAX)
}

fn describe(_: u32) -> HubDescription {
    let fifo = || HubKind::Fifo { capacity: 4 };
    HubDescription::new()
        .task("sensor", 10)
        .task("controller", 20)
        .task("actuator", 15)
        .task("logger", 200)
        .hub("readings", fifo())
        .hub("commands", HubKind::Port)
        .hub("applied", HubKind::Port)
        .hub("levels", fifo())
        .hub("drives", fifo())
        .hub("set point", HubKind::BlackBoard)
        .hub("log", HubKind::Resource { ceiling: 5 })
        .hub("end", HubKind::Event)
        .packet_bytes(8)
}

/// Returns a map with a task at each place, as far as there are places, and each hub at a task that reads from it.
fn usual_map(places: u32) -> HubMap {
    let at = |number: u32| number % places;
    HubMap::of([
        ("sensor", at(0)),
        ("controller", at(1)),
        ("actuator", at(2)),
        ("logger", at(3)),
        ("readings", at(1)),
        ("commands", at(2)),
        ("applied", at(0)),
        ("levels", at(3)),
        ("drives", at(3)),
        ("set point", at(1)),
        ("log", at(3)),
        ("end", at(3)),
    ])
}

fn number(data: &[u8]) -> i64 {
    data.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

async fn body(task: HubTask, steps: u32) -> isles::Result<i64> {
    match task.name() {
        "sensor" => sensor(&task, steps).await,
        "controller" => controller(&task, steps).await,
        "actuator" => actuator(&task, steps).await,
        _ => logger(&task, steps).await,
    }
}

async fn sensor(task: &HubTask, steps: u32) -> isles::Result<i64> {
    let (readings, applied, levels) = (task.fifo("readings")?, task.port("applied")?, task.fifo("levels")?);
    let log = task.resource("log")?;
    let mut level = LEVEL;
    for _ in 0..steps {
        task.put(readings, &level.to_le_bytes(), Wait::Forever).await?;
        task.test(log, Wait::Forever).await?;
        task.signal(log, Wait::Forever).await?;
        task.put(levels, &level.to_le_bytes(), Wait::Forever).await?;
        level = next_level(level, number(&task.get(applied, Wait::Forever).await?));
    }
    Ok(level)
}

async fn controller(task: &HubTask, steps: u32) -> isles::Result<i64> {
    let (readings, commands) = (task.fifo("readings")?, task.port("commands")?);
    let board = task.get(task.black_board("set point")?, Wait::Forever).await?;
    let (set_point, mut controller, mut command) = (number(&board[8..]), PiController::default(), 0);
    for _ in 0..steps {
        let level = number(&task.get(readings, Wait::Forever).await?);
        command = controller.command(set_point, level);
        task.put(commands, &command.to_le_bytes(), Wait::Forever).await?;
    }
    Ok(command)
}

async fn actuator(task: &HubTask, steps: u32) -> isles::Result<i64> {
    let (commands, applied, drives) = (task.port("commands")?, task.port("applied")?, task.fifo("drives")?);
    let mut sum = 0;
    for _ in 0..steps {
        let drive = apply(number(&task.get(commands, Wait::Forever).await?));
        sum += drive;
        task.put(applied, &drive.to_le_bytes(), Wait::Forever).await?;
        task.put(drives, &drive.to_le_bytes(), Wait::Forever).await?;
    }
    task.signal(task.event("end")?, Wait::Forever).await?;
    Ok(sum)
}

async fn logger(task: &HubTask, steps: u32) -> isles::Result<i64> {
    let (levels, drives, log) = (task.fifo("levels")?, task.fifo("drives")?, task.resource("log")?);
    task.put(task.black_board("set point")?, &SET_POINT.to_le_bytes(), Wait::Forever).await?;
    let mut digest = Digest::new();
    for _ in 0..steps {
        let level = task.get(levels, Wait::Forever).await?;
        let drive = task.get(drives, Wait::Forever).await?;
        task.test(log, Wait::Forever).await?;
        digest.add(&level);
        digest.add(&drive);
        task.signal(log, Wait::Forever).await?;
    }
    task.test(task.event("end")?, Wait::Forever).await?;
    Ok(digest.0 as i64)
}

/// Returns the values of the tasks, computed in one loop without tasks.
fn alone(steps: u32) -> BTreeMap<String, i64> {
    let (mut level, mut controller, mut command, mut sum) = (LEVEL, PiController::default(), 0, 0);
    let mut digest = Digest::new();
    for _ in 0..steps {
        command = controller.command(SET_POINT, level);
        let drive = apply(command);
        digest.add(&level.to_le_bytes());
        digest.add(&drive.to_le_bytes());
        (level, sum) = (next_level(level, drive), sum + drive);
    }
    let values = [("sensor", level), ("controller", command), ("actuator", sum), ("logger", digest.0 as i64)];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Application for ControlLoop {
    const INFO: ApplicationInfo = ApplicationInfo::new(
        "control-loop",
        "Sensor, controller, actuator and logger over hubs, at the places of a map",
        "steps",
    );
    type Input = HubProgram<u32>;
    type Found = ControlLoopFound;

    fn open(&self, places: u32) -> Result<HubProgram<u32>, Failure> {
        HubProgram::open(&self.hubs, self.steps, describe, usual_map(places), places)
    }

    fn heading(&self, input: &HubProgram<u32>) -> String {
        format!("{} steps of a control loop of four tasks", input.arguments)
    }

    async fn compute(
        input: HubProgram<u32>,
        distributor: WorkDistributor,
    ) -> isles::Result<(ControlLoopFound, WorkDone)> {
        let _steps = distributor.open_steps();
        distributor.begin_phase("steps");
        let (steps, begun) = (input.arguments, now());
        let tasks = input.run(describe, body).await?.tasks;
        let seconds = (now() - begun).as_secs_f64();
        let step_us = seconds * 1e6 / f64::from(steps);
        Ok((ControlLoopFound { steps, tasks, step_us }, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for ControlLoop {
    fn text(&self, found: &ControlLoopFound) -> String {
        let lines = found.tasks.iter().map(|(name, value)| format!("{name:<10}  {value}\n"));
        lines.collect::<String>() + &format!("a step      {:.3} us", found.step_us)
    }

    fn speed(&self, found: &ControlLoopFound, seconds: f64) -> String {
        format!("{:.1} steps a second", f64::from(found.steps) / seconds)
    }

    fn verify(&self, found: &ControlLoopFound, _: bool) -> Result<Option<Verification>, Failure> {
        let holds = found.tasks == alone(found.steps);
        let text = "the values of the tasks against those of one loop without tasks".to_owned();
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &ControlLoopFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "task,value")?;
        found.tasks.iter().try_for_each(|(name, value)| writeln!(out, "{name},{value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_reaches_the_set_point() {
        let level = alone(1000)["sensor"];
        assert!((level - SET_POINT).abs() < SET_POINT / 100, "{level}");
    }
}
