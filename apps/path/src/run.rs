//! The application `path`: its arguments, the run over all places, its checks and output.
//!
//! With one place the search runs alone (S-TVE in the paper); with more, the first place distributes the dives
//! (P-TVE). Invariant: the route depends on the mission only.

use crate::case::{Case, Mission, PlanArguments};
use crate::current::{Current, Velocity};
use crate::glide::SPEED;
use crate::parallel::{Idle, IdleWait, Searched, plan_route, sequential};
use crate::picture;
use crate::route::{Leg, geojson, is_feasible, legs, length};
use crate::sea::Position;
use crate::zermelo::{self, Shear};
use clap::{Args, value_parser};
use isles::prelude::*;
use isles::{Claim, measured};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;

/// The arguments of `isles run path`.
#[derive(Args, Clone, Debug)]
pub struct PathPlanner {
    #[command(flatten)]
    plan: PlanArguments,

    /// Way in which a worker waits before its first dive
    #[arg(long, value_enum, default_value = "block")]
    idle: Idle,

    /// Microseconds of a sleep between two polls for a message
    #[arg(long, value_name = "US", default_value = "1000", value_parser = value_parser!(u64).range(1..=10_000_000))]
    nap: u64,

    /// Start all places and end at once, to measure the cost of launching
    #[arg(long)]
    noop: bool,

    /// Also write the route as GeoJSON; - is standard output
    #[arg(long, value_name = "FILE")]
    geojson: Option<String>,
}

/// The requested plan.
#[derive(Clone, Serialize)]
pub struct PathInput {
    mission: String,
    columns: u32,
    rows: u32,
    spacing: f64,
    reach: u32,
    profiles: u32,
    quantum: u32,
    idle: Idle,
    nap: u64,
    noop: bool,
    #[serde(skip)]
    plan: Mission,
    #[serde(skip)]
    case: Option<Case>,
}

/// A route, and the effort of finding it.
#[derive(Serialize)]
pub struct PathFound {
    /// Arrival at the goal in seconds; `None` if it is unreachable, or nothing was planned.
    arrival: Option<u32>,
    /// Length in metres.
    length: f64,
    /// Edges examined, dives along them, and evaluations of the current.
    edges: u64,
    dives: u64,
    evaluations: u64,
    legs: Vec<Leg>,
    #[serde(skip)]
    input: PathInput,
}

impl PathFound {
    fn new(input: PathInput, found: Option<&Searched<'_>>) -> PathFound {
        let legs = found.map(|found| legs(&input.plan, &found.search)).unwrap_or_default();
        PathFound {
            arrival: legs.last().map(|leg| leg.arrival),
            length: length(&legs),
            edges: found.map_or(0, |found| found.search.examined()),
            dives: found.map_or(0, |found| found.dives),
            evaluations: found.map_or(0, |found| found.evaluations),
            legs,
            input,
        }
    }

    /// Returns the analytic optimum in seconds, if the case has one and no obstacle is in its way.
    fn optimum(&self) -> Option<f64> {
        let PathInput { plan, case, .. } = &self.input;
        let is_free = plan.sea.obstacles.is_empty() && plan.sea.islands.is_empty();
        let [from, to] = [plan.start, plan.goal].map(|end| plan.sea.position(end));
        let optimum = match &plan.sea.current {
            Current::Uniform(current) => zermelo::uniform(from, to, *current, SPEED),
            Current::Shear { middle, per_second } => {
                zermelo::shear(from, to, Shear { middle: *middle, rate: *per_second }, SPEED)
            }
            _ => None,
        };
        optimum.filter(|_| is_free && case.is_some())
    }
}

/// Returns the largest accepted ratio of the best time along edges to the analytic optimum, ignoring the rounding of
/// arrivals. In still water, a way between two headings at most `angle` apart is longer by the secant of half of it; a
/// current up to `ratio` of the glider's speed stretches that by at most the quotient of its fastest and slowest way.
fn tolerance(reach: u32, ratio: f64) -> f64 {
    let angle = (1.0 / f64::from(reach)).atan();
    let longer = 1.0 / (angle / 2.0).cos() - 1.0;
    1.0 + longer * (1.0 + ratio) / (1.0 - ratio)
}

impl Application for PathPlanner {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The route is the same at any number of places. With one place the search \
         runs alone; with more, the first one distributes the dive profiles of each edge to the others. \
         --svg draws the route.",
        draws_result: true,
        ..ApplicationInfo::new("path", env!("CARGO_PKG_DESCRIPTION"), "edges and dives")
    };
    type Input = PathInput;
    type Found = PathFound;

    fn run_name(&self) -> String {
        format!("path-{}", self.plan.name())
    }

    fn reads(&self) -> Vec<Claim> {
        self.plan.currents.iter().map(|path| Claim::read(path, "the currents")).collect()
    }

    fn open(&self, _: u32) -> Result<PathInput, Failure> {
        let plan = self.plan.plan()?;
        Ok(PathInput {
            mission: self.plan.currents.clone().unwrap_or_else(|| self.plan.name()),
            columns: plan.sea.columns,
            rows: plan.sea.rows,
            spacing: self.plan.spacing,
            reach: self.plan.reach,
            profiles: self.plan.profiles,
            quantum: self.plan.quantum,
            idle: self.idle,
            nap: self.nap,
            noop: self.noop,
            case: self.plan.currents.is_none().then_some(self.plan.case),
            plan,
        })
    }

    fn heading(&self, input: &PathInput) -> String {
        let PathInput { mission, columns, rows, spacing, profiles, noop, .. } = input;
        let title = if *noop { "no search on" } else { "the fastest route over" };
        let profiles = count(u64::from(*profiles), "dive profile", "dive profiles");
        format!("{mission}: {title} {columns} × {rows} waypoints {spacing} km apart, {profiles} an edge")
    }

    async fn compute(input: PathInput, distributor: WorkDistributor) -> isles::Result<(PathFound, WorkDone)> {
        let meter = distributor.meter(None).await?;
        if input.noop {
            let started = now();
            everywhere!(Team::world().barrier().await?).await?;
            let done = meter.done(started).await?;
            return Ok((PathFound::new(input, None), done));
        }
        let waiting = IdleWait { idle: input.idle, nap: Duration::from_micros(input.nap) };
        let shared = Replicated::new(input.plan.clone()).await?;
        let started = now();
        let found = measured("search", plan_route(&input.plan, &shared, waiting, &meter)).await?;
        let done = meter.done(started).await?;
        let found = PathFound::new(input.clone(), Some(&found));
        Ok((found, done))
    }
}

impl RunResult for PathPlanner {
    fn text(&self, found: &PathFound) -> String {
        if found.input.noop {
            return String::new();
        }
        let Some(arrival) = found.arrival else { return "no route leads there".to_owned() };
        let hours = f64::from(arrival) / 3_600.0;
        let mut text =
            format!("arrival   {hours:.2} h ({arrival} s)\nlength    {:.1} km", found.length / 1e3);
        let deepest = found.legs.iter().map(|leg| leg.depth).fold(0.0, f64::max);
        let dives = found.legs.len() - 1;
        text += &format!("\nlegs      {dives}, the deepest dive to {deepest:.0} m");
        if let Some(optimum) = found.optimum() {
            let later = 100.0 * (f64::from(arrival) / optimum - 1.0);
            text += &format!(
                "\noptimum   {:.2} h by Zermelo; the route is {later:.2} % later",
                optimum / 3_600.0
            );
        }
        text + &format!("\nexamined  {} edges, {} dives", found.edges, found.dives)
    }

    fn speed(&self, found: &PathFound, seconds: f64) -> String {
        format!("{:.0} dives a second", found.dives as f64 / seconds)
    }

    fn verify(&self, found: &PathFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let (plan, Some(arrival)) = (&found.input.plan, found.arrival) else { return Ok(None) };
        let mut holds = is_feasible(plan, &found.legs);
        let mut text = "the glider was flown along the route again".to_owned();
        if let Some(optimum) = found.optimum() {
            let water = |north| {
                plan.sea.current.at(crate::current::Moment { east: 0.0, north, depth: 0.0, time: 0.0 })
            };
            let Position { north, .. } = plan.sea.position(crate::sea::Waypoint(plan.sea.waypoints() - 1));
            let strongest = [0.0, north].map(|north| {
                let Velocity { east, north } = water(north);
                east.hypot(north)
            });
            let ratio = strongest[0].max(strongest[1]) / SPEED;
            let rounding = f64::from(plan.resolution.quantum) * found.legs.len() as f64;
            let latest = optimum * tolerance(plan.sea.reach, ratio.min(0.95)) + rounding;
            holds &= f64::from(arrival) >= optimum * 0.999 && f64::from(arrival) <= latest;
            text += "; it arrives between Zermelo's optimum and what the headings of the grid allow";
        }
        if is_thorough {
            let again = sequential(plan, |_| {});
            holds &= legs(plan, &again.search) == found.legs && again.evaluations == found.evaluations;
            text += "; compared with the search on one processor";
        }
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &PathFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "longitude,latitude,east_m,north_m,arrival_s,profile,depth_m")?;
        found.legs.iter().try_for_each(|leg| {
            let Leg { longitude, latitude, position, arrival, profile, depth, .. } = leg;
            let Position { east, north } = position;
            writeln!(out, "{longitude:.6},{latitude:.6},{east},{north},{arrival},{profile},{depth}")
        })
    }

    fn pictures(&self) -> Vec<(&'static str, &str)> {
        self.geojson.iter().map(|path| ("--geojson", path.as_str())).collect()
    }

    fn write_picture(&self, flag: &str, found: &PathFound, out: &mut dyn Write) -> io::Result<()> {
        if flag == "--geojson" {
            return writeln!(out, "{:#}", geojson(&found.legs));
        }
        let hours = found.arrival.map(|arrival| format!("{:.1} h", f64::from(arrival) / 3_600.0));
        let hours = hours.unwrap_or_else(|| "no way".to_owned());
        let caption =
            format!("{}: {hours} over {:.1} km at {SPEED} m/s", found.input.mission, found.length / 1e3);
        picture::write_svg(&found.input.plan, &found.legs, &caption, out)
    }
}
