//! The missions that can be planned, and their arguments.
//!
//! Invariant: an accepted mission can be planned: start and goal are waypoints in water.

use crate::current::{Current, Jet, Velocity};
use crate::file::{CurrentsFault, read_currents};
use crate::glide::Resolution;
use crate::sea::{Obstacle, Position, Sea, Waypoint};
use clap::{Args, ValueEnum, value_parser};
use isles_app::Failure;
use serde::{Deserialize, Serialize};

/// Largest number of waypoints of a mission, and of columns or rows.
const WAYPOINTS_MAX: u32 = 1 << 20;
const SIDE_MAX: i64 = 1 << 14;

/// The longest mission: 60 days, in seconds.
const HORIZON: u32 = 60 * 86_400;

/// Longitude and latitude of missions that do not come from a file: the shelf off New Jersey, where Slocum gliders
/// fly.
const ORIGIN: [f64; 2] = [-73.5, 39.0];

/// Metres per kilometre.
const KILOMETRE: f64 = 1_000.0;

/// A mission whose currents are analytic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// A current that is the same everywhere and always
    Uniform,
    /// An eastward current that grows linearly to the north: Zermelo's problem
    #[value(alias = "shear")]
    Zermelo,
    /// A meandering jet that changes in time and with depth, with an island and a ship
    Jet,
}

/// The arguments of a mission.
#[derive(Args, Clone, Debug)]
pub struct PlanArguments {
    /// The currents
    #[arg(long, value_enum, default_value = "jet")]
    pub case: Case,

    /// netCDF file with currents instead: u and v over time, depth, y and x, as written by `isles run ocean`
    #[arg(long, value_name = "FILE", conflicts_with = "case")]
    pub currents: Option<String>,

    /// Waypoints from west to east, and from south to north; of a file as many as it has room for, at most
    #[arg(long, value_name = "N", default_value = "25", value_parser = value_parser!(u32).range(2..=SIDE_MAX))]
    pub columns: u32,

    /// Waypoints from south to north
    #[arg(long, value_name = "N", default_value = "13", value_parser = value_parser!(u32).range(1..=SIDE_MAX))]
    pub rows: u32,

    /// Kilometres between neighbouring waypoints
    #[arg(long, value_name = "KM", default_value = "2")]
    pub spacing: f64,

    /// The longest edge, in columns and rows: 1 for 8 headings, 2 for 16, 3 for 32
    #[arg(long, value_name = "N", default_value = "2", value_parser = value_parser!(u32).range(1..=8))]
    pub reach: u32,

    /// Start of the glider, in kilometres east and north of the first waypoint [default: the west, of the jet the east]
    #[arg(long, value_name = "X,Y", allow_hyphen_values = true)]
    pub from: Option<String>,

    /// Goal of the glider [default: the other side]
    #[arg(long, value_name = "X,Y", allow_hyphen_values = true)]
    pub to: Option<String>,

    /// Forbidden disc in kilometres, with its velocity in m/s if it moves; may be repeated
    #[arg(long, value_name = "X,Y,R[,U,V]", allow_hyphen_values = true)]
    pub obstacle: Vec<String>,

    /// Dive profiles of each edge, the deepest to 200 m
    #[arg(long, value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..=1000))]
    pub profiles: u32,

    /// Length in metres of the pieces of an edge
    #[arg(long, value_name = "M", default_value = "25")]
    pub piece: f64,

    /// Time in seconds for which a current counts as constant
    #[arg(long, value_name = "S", default_value = "600")]
    pub slot: f64,

    /// Arrivals are rounded up to multiples of this number of seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = value_parser!(u32).range(1..=86_400))]
    pub quantum: u32,
}

/// A mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mission {
    /// The water that the glider goes through.
    pub sea: Sea,
    /// The step of the integration along edges.
    pub resolution: Resolution,
    /// Start of the glider, at time 0.
    pub start: Waypoint,
    /// Goal of the glider.
    pub goal: Waypoint,
}

impl PlanArguments {
    /// Returns the mission.
    ///
    /// # Errors
    /// [`Failure::Usage`]: it cannot be planned.
    pub fn plan(&self) -> Result<Mission, Failure> {
        for (flag, value, [least, most]) in [
            ("--spacing", self.spacing, [0.05, 500.0]),
            ("--piece", self.piece, [1.0, 10_000.0]),
            ("--slot", self.slot, [1.0, 864_000.0]),
        ] {
            if !(least..=most).contains(&value) {
                return Err(refused(flag, value, &format!("{least} to {most}")));
            }
        }
        let mut sea = match &self.currents {
            Some(path) => self.sea_of_file(path)?,
            None => self.sea_of_case(),
        };
        if u64::from(sea.columns) * u64::from(sea.rows) > u64::from(WAYPOINTS_MAX) {
            let given = format!("{} and --rows {}", sea.columns, sea.rows);
            return Err(refused("--columns", given, &format!("together {WAYPOINTS_MAX} waypoints")));
        }
        for value in &self.obstacle {
            sea.obstacles.push(obstacle(value)?);
        }
        let middle = sea.rows / 2 * sea.columns;
        let (west, east) = (middle + sea.columns / 12, middle + sea.columns - 1 - sea.columns / 12);
        // Against the jet, so that dives into the still water below it pay off.
        let (start, goal) = if matches!(sea.current, Current::Jet(_)) { (east, west) } else { (west, east) };
        let start = self.end("--from", self.from.as_deref(), Waypoint(start), &sea)?;
        let goal = self.end("--to", self.to.as_deref(), Waypoint(goal), &sea)?;
        let resolution = Resolution {
            profiles: self.profiles,
            piece: self.piece,
            slot: self.slot,
            quantum: self.quantum,
            horizon: HORIZON,
        };
        Ok(Mission { sea, resolution, start, goal })
    }

    /// Returns the name of the plan.
    pub fn name(&self) -> String {
        match (&self.currents, self.case.to_possible_value()) {
            (None, Some(case)) => case.get_name().to_owned(),
            _ => "file".to_owned(),
        }
    }

    fn sea_of_case(&self) -> Sea {
        let spacing = self.spacing * KILOMETRE;
        let [width, height] = [self.columns - 1, self.rows - 1].map(|steps| f64::from(steps) * spacing);
        let (current, mut islands, mut obstacles) = match self.case {
            Case::Uniform => (Current::Uniform(Velocity { east: 0.15, north: 0.1 }), Vec::new(), Vec::new()),
            Case::Zermelo => {
                // 0.25 m/s at the edges.
                let per_second = 0.5 / height.max(spacing);
                (Current::Shear { middle: height / 2.0, per_second }, Vec::new(), Vec::new())
            }
            Case::Jet => {
                let current = Current::Jet(jet(width, height.max(spacing)));
                (current, vec![island(width, height)], vec![ship(width, height)])
            }
        };
        // With so few rows, a route cannot pass the islands.
        if self.rows < 5 {
            islands.clear();
            obstacles.clear();
        }
        Sea {
            columns: self.columns,
            rows: self.rows,
            spacing,
            reach: self.reach,
            current,
            islands,
            obstacles,
            floor: 1_000.0,
            origin: ORIGIN,
        }
    }

    fn sea_of_file(&self, path: &str) -> Result<Sea, Failure> {
        let usage = |fault: CurrentsFault| Failure::Usage(format!("{path}: {fault}"));
        let read = read_currents(path).map_err(usage)?;
        let spacing = self.spacing * KILOMETRE;
        let [_, _, norths, easts] = &read.samples.axes;
        let room = |axis: &[f64]| {
            let steps = (axis.last().copied().unwrap_or_default() / spacing).floor();
            steps.min(SIDE_MAX as f64) as u32 + 1
        };
        let (columns, rows) = (self.columns.min(room(easts)), self.rows.min(room(norths)));
        if columns < 2 {
            let allowed = "less than the extent of the file from west to east";
            return Err(refused("--spacing", self.spacing, allowed));
        }
        Ok(Sea {
            columns,
            rows,
            spacing,
            reach: self.reach,
            current: Current::Sampled(Box::new(read.samples)),
            islands: Vec::new(),
            obstacles: Vec::new(),
            floor: read.floor,
            origin: read.origin,
        })
    }

    /// Parses the waypoint of a flag, which must be in water.
    fn end(
        &self,
        flag: &str,
        value: Option<&str>,
        default: Waypoint,
        sea: &Sea,
    ) -> Result<Waypoint, Failure> {
        let (waypoint, shown) = match value {
            None => {
                let Position { east, north } = sea.position(default);
                (default, format!("{},{}", east / KILOMETRE, north / KILOMETRE))
            }
            Some(value) => {
                let allowed = format!(
                    "X,Y in kilometres from 0,0 to {},{}",
                    f64::from(sea.columns - 1) * self.spacing,
                    f64::from(sea.rows - 1) * self.spacing
                );
                let position = match numbers(value).as_deref() {
                    Some([east, north]) => {
                        Some(Position { east: east * KILOMETRE, north: north * KILOMETRE })
                    }
                    _ => None,
                };
                let found = position.and_then(|position| sea.nearest(position));
                (found.ok_or_else(|| refused(flag, value, &allowed))?, value.to_owned())
            }
        };
        if sea.is_closed(sea.position(waypoint)) {
            return Err(refused(flag, shown, "a position in water, outside obstacles"));
        }
        Ok(waypoint)
    }
}

/// Returns a jet whose meanders fit into a sea with these sides, in metres.
fn jet(width: f64, height: f64) -> Jet {
    Jet {
        middle: height / 2.0,
        width: height / 6.0,
        speed: 0.45,
        drift: 0.03,
        wavelength: width / 1.5,
        amplitude: 1.2,
        swing: 0.3,
        period: 2.0 * 86_400.0,
        decay: 150.0,
    }
}

fn island(width: f64, height: f64) -> Obstacle {
    let middle = Position { east: 0.55 * width, north: 0.45 * height };
    Obstacle { middle, radius: 0.12 * height, velocity: Velocity::default() }
}

/// Returns a slow ship that crosses the sea from north to south, towing an array.
fn ship(width: f64, height: f64) -> Obstacle {
    let middle = Position { east: 0.75 * width, north: height };
    Obstacle { middle, radius: 0.08 * height, velocity: Velocity { east: 0.0, north: -0.3 } }
}

/// Parses the obstacle `value`.
fn obstacle(value: &str) -> Result<Obstacle, Failure> {
    let allowed = "X,Y,R in kilometres, with R above 0, and if it moves also U,V in m/s";
    let (middle, radius, velocity) = match numbers(value).as_deref() {
        Some([east, north, radius]) => ([*east, *north], *radius, Velocity::default()),
        Some([east, north, radius, u, v]) => ([*east, *north], *radius, Velocity { east: *u, north: *v }),
        _ => return Err(refused("--obstacle", value, allowed)),
    };
    if radius <= 0.0 {
        return Err(refused("--obstacle", value, allowed));
    }
    let [east, north] = middle.map(|side| side * KILOMETRE);
    Ok(Obstacle { middle: Position { east, north }, radius: radius * KILOMETRE, velocity })
}

/// Parses finite numbers separated by commas.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    text.split(',').map(number).collect()
}

fn refused(flag: &str, value: impl std::fmt::Display, allowed: &str) -> Failure {
    Failure::Usage(format!("{flag} is {value}; allowed: {allowed}"))
}
