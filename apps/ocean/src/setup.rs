//! Grid, physics, and the cases with their initial fields.
//!
//! Rows run from south to north, columns from west to east. Units are SI; the soliton has units of its own, in which
//! gravity, depth and the gradient of the Coriolis parameter are 1. Invariant: a step up to [`Setup::longest_step`] is
//! stable as long as currents grow by less than [`SPEED_MAX`] of the speed of surface waves.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Largest growth of currents for which an accepted step stays stable, as a fraction of the speed of the fastest
/// surface wave.
pub const SPEED_MAX: f64 = 0.02;

/// A case with a known solution, or one of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// Water at rest over rough ground, which stays at rest
    Lake,
    /// A wave that runs along a coast
    Kelvin,
    /// The soliton of Rossby waves at the equator (Boyd, 1980)
    Rossby,
    /// A surface front that reaches balance with its current (Rossby, 1938)
    Adjustment,
    /// A closed basin under winds that make two gyres
    Basin,
    /// The benchmark of the paper: a channel of 512 x 64 x 30 around the world, 200 steps
    Channel,
}

/// The grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// Cells from south to north.
    pub rows: usize,
    /// Cells from west to east.
    pub columns: usize,
    /// Layers from the bottom to the surface, each an equal fraction of the depth.
    pub levels: usize,
    /// Metres from one column to the next.
    pub dx: f64,
    /// Metres from one row to the next.
    pub dy: f64,
    /// `true` if the last row adjoins the first one; likewise for columns.
    pub is_periodic: [bool; 2],
}

/// Constants of the physics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Physics {
    /// Metres per second squared.
    pub gravity: f64,
    /// Coriolis parameter in the middle row, per second.
    pub coriolis: f64,
    /// Northward gradient of the Coriolis parameter, per metre and second.
    pub beta: f64,
    /// Horizontal viscosity, square metres per second.
    pub viscosity: f64,
    /// Vertical viscosity, square metres per second.
    pub vertical_viscosity: f64,
    /// Horizontal diffusivity of the tracer.
    pub diffusivity: f64,
    /// Vertical diffusivity of the tracer.
    pub vertical_diffusivity: f64,
    /// Linear drag at the bottom, metres per second.
    pub drag: f64,
    /// Wind stress divided by the density of water, square metres per second squared.
    pub wind: f64,
}

/// Time steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stepping {
    /// Seconds of a step of the internal mode.
    pub step: f64,
    /// Steps of the external mode per step of the internal mode.
    pub substeps: u32,
    /// Steps of the internal mode.
    pub steps: u64,
}

/// The complete input of a computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Initial fields.
    pub case: Case,
    /// The grid.
    pub grid: Grid,
    /// Constants.
    pub physics: Physics,
    /// Time steps.
    pub stepping: Stepping,
    /// Depth of the water in metres in each cell, rows from the south, 0 on land; empty unless read from a file.
    pub bathymetry: Vec<f64>,
}

/// Water at rest over flat ground, the base of all cases.
const STILL: Physics = Physics {
    gravity: 9.81,
    coriolis: 0.0,
    beta: 0.0,
    viscosity: 0.0,
    vertical_viscosity: 0.0,
    diffusivity: 0.0,
    vertical_diffusivity: 0.0,
    drag: 0.0,
    wind: 0.0,
};

/// Height of the surface of the Kelvin wave and of the front, metres.
pub const AMPLITUDE: f64 = 0.1;

/// Parameter for the size and speed of the soliton.
pub const SOLITON: f64 = 0.394;

impl Case {
    /// Returns the setup of a case with its own sizes.
    pub fn setup(self) -> Setup {
        let grid = |rows, columns, levels, spacing, is_periodic| Grid {
            rows,
            columns,
            levels,
            dx: spacing,
            dy: spacing,
            is_periodic,
        };
        let (grid, physics, (step, substeps, steps)) = match self {
            Case::Lake => {
                (grid(96, 128, 8, 5e3, [false; 2]), Physics { coriolis: 1e-4, ..STILL }, (240.0, 20, 100))
            }
            Case::Kelvin => {
                let physics = Physics { coriolis: 1e-4, ..STILL };
                (grid(48, 96, 4, 2e4, [false, true]), physics, (600.0, 4, 102))
            }
            Case::Rossby => {
                let physics = Physics { gravity: 1.0, beta: 1.0, ..STILL };
                (grid(48, 144, 1, 1.0 / 3.0, [false, true]), physics, (0.1, 4, 400))
            }
            Case::Adjustment => {
                let physics = Physics { coriolis: 1e-4, ..STILL };
                (grid(4, 640, 2, 2e4, [true; 2]), physics, (600.0, 4, 320))
            }
            Case::Basin => {
                let physics = Physics {
                    coriolis: 1e-4,
                    beta: 2e-11,
                    viscosity: 400.0,
                    vertical_viscosity: 0.005,
                    diffusivity: 100.0,
                    vertical_diffusivity: 1e-4,
                    drag: 5e-4,
                    wind: 1e-4,
                    ..STILL
                };
                (grid(96, 96, 12, 1e4, [false; 2]), physics, (300.0, 20, 600))
            }
            Case::Channel => {
                let physics = Physics {
                    coriolis: -1.2e-4,
                    beta: 1.3e-11,
                    viscosity: 400.0,
                    vertical_viscosity: 0.02,
                    diffusivity: 100.0,
                    vertical_diffusivity: 1e-4,
                    drag: 5e-4,
                    wind: 2e-4,
                    ..STILL
                };
                (grid(64, 512, 30, 2e4, [false, true]), physics, (200.0, 20, 200))
            }
        };
        let stepping = Stepping { step, substeps, steps };
        Setup { case: self, grid, physics, stepping, bathymetry: Vec::new() }
    }
}

impl Setup {
    /// Returns the metres from the middle of the grid north to the middle of a row.
    pub fn north(&self, row: usize) -> f64 {
        (row as f64 + 0.5 - self.grid.rows as f64 / 2.0) * self.grid.dy
    }

    /// Returns the metres from the middle of the grid east to the middle of a column.
    pub fn east(&self, column: usize) -> f64 {
        (column as f64 + 0.5 - self.grid.columns as f64 / 2.0) * self.grid.dx
    }

    /// Returns the depth of the water at rest in a cell, in metres; 0 on land.
    pub fn depth(&self, row: usize, column: usize) -> f64 {
        let Grid { rows, columns, .. } = self.grid;
        if !self.bathymetry.is_empty() {
            return self.bathymetry[row * columns + column];
        }
        let (across, along) = ((row as f64 + 0.5) / rows as f64, (column as f64 + 0.5) / columns as f64);
        let bump = |row: f64, column: f64, size: f64| {
            (-((across - row).powi(2) + (along - column).powi(2)) / (size * size)).exp()
        };
        let wave = |number: f64, part: f64| (number * std::f64::consts::PI * part).sin();
        match self.case {
            Case::Lake => {
                let rough = 3_000.0
                    + 900.0 * wave(7.0, along) * wave(5.0, across)
                    + 400.0 * wave(23.0, along + across);
                let ground = rough - 5_500.0 * bump(0.5, 0.3, 0.12) - 2_600.0 * bump(0.4, 0.7, 0.1);
                if ground > 20.0 { ground } else { 0.0 }
            }
            Case::Kelvin | Case::Adjustment => 100.0,
            Case::Rossby => 1.0,
            Case::Basin => {
                let ground =
                    1_000.0 * (wave(1.0, along) * wave(1.0, across)).sqrt() - 500.0 * bump(0.45, 0.6, 0.06);
                ground.max(50.0) * f64::from(bump(0.3, 0.25, 0.05) < 0.5)
            }
            Case::Channel => 4_000.0 - 1_500.0 * (-((along - 0.4) / 0.05).powi(2)).exp(),
        }
    }

    /// Returns the initial height of the surface, in metres.
    pub fn surface(&self, row: usize, column: usize) -> f64 {
        let (east, north) = (self.east(column), self.north(row));
        match self.case {
            Case::Kelvin => crate::analytic::kelvin(self, east, north, 0.0),
            Case::Rossby => crate::analytic::soliton(east, north, 0.0)[0],
            Case::Adjustment => AMPLITUDE * if east > 0.0 { 1.0 } else { -1.0 },
            _ => 0.0,
        }
    }

    /// Returns the initial eastward velocity at the western face of a cell, equal on all levels.
    pub fn velocity_east(&self, row: usize, column: usize) -> f64 {
        let (east, north) = (self.east(column) - 0.5 * self.grid.dx, self.north(row));
        match self.case {
            Case::Kelvin => {
                crate::analytic::kelvin(self, east, north, 0.0) * (self.physics.gravity / 100.0).sqrt()
            }
            Case::Rossby => crate::analytic::soliton(east, north, 0.0)[1],
            _ => 0.0,
        }
    }

    /// Returns the initial northward velocity at the southern face of a cell, equal on all levels.
    pub fn velocity_north(&self, row: usize, column: usize) -> f64 {
        let (east, north) = (self.east(column), self.north(row) - 0.5 * self.grid.dy);
        match self.case {
            Case::Rossby => crate::analytic::soliton(east, north, 0.0)[2],
            _ => 0.0,
        }
    }

    /// Returns the initial tracer; levels count from the bottom. It is a temperature, warm above and to the north,
    /// with a patch.
    pub fn tracer(&self, row: usize, column: usize, level: usize) -> f64 {
        let Grid { rows, columns, levels, .. } = self.grid;
        let (across, along) = (row as f64 / rows as f64, column as f64 / columns as f64);
        let up = (level as f64 + 0.5) / levels as f64;
        let patch = (-((across - 0.5).powi(2) + (along - 0.5).powi(2)) / 0.01).exp();
        4.0 + 12.0 * up * up + 4.0 * across + 2.0 * patch
    }

    /// Returns the Coriolis parameter of a row, per second.
    pub fn coriolis(&self, row: usize) -> f64 {
        self.physics.coriolis + self.physics.beta * self.north(row)
    }

    /// Returns the eastward wind stress in a row.
    pub fn wind(&self, row: usize) -> f64 {
        let across = (row as f64 + 0.5) / self.grid.rows as f64;
        match self.case {
            Case::Basin => -self.physics.wind * (std::f64::consts::TAU * across).cos(),
            _ => self.physics.wind * (std::f64::consts::PI * across).sin(),
        }
    }

    /// Returns the depth of the deepest water, in metres.
    pub fn deepest(&self) -> f64 {
        let cells =
            (0..self.grid.rows).flat_map(|row| (0..self.grid.columns).map(move |column| (row, column)));
        cells.map(|(row, column)| self.depth(row, column)).fold(0.0, f64::max)
    }

    /// Returns the depth of the shallowest water that is not land, in metres.
    fn shallowest(&self) -> f64 {
        let cells =
            (0..self.grid.rows).flat_map(|row| (0..self.grid.columns).map(move |column| (row, column)));
        let wet = cells.map(|(row, column)| self.depth(row, column)).filter(|depth| *depth > 0.0);
        wet.fold(f64::INFINITY, f64::min)
    }

    /// Returns the speed of the fastest initial current, in metres per second.
    fn fastest(&self) -> f64 {
        let cells =
            (0..self.grid.rows).flat_map(|row| (0..self.grid.columns).map(move |column| (row, column)));
        let speed = |(row, column)| self.velocity_east(row, column).hypot(self.velocity_north(row, column));
        cells.map(speed).fold(0.0, f64::max)
    }

    /// Returns the longest stable step of the internal mode in seconds, and the limit that determines it.
    ///
    /// Surface waves: forward-backward steps are stable while a wave crosses less than a cell in a short step, divided
    /// by the root of the sum of squares of both directions; a tenth is left for the Coriolis force. Internal mode:
    /// currents that grow from their initial speed by [`SPEED_MAX`] of the wave speed cross less than half a cell;
    /// mixing stays below the limit of extrapolated tendencies, 0.227 of the square of a cell; the Coriolis force
    /// turns less than a quarter radian.
    pub fn longest_step(&self) -> (f64, &'static str) {
        let Physics { gravity, viscosity, diffusivity, vertical_viscosity, vertical_diffusivity, .. } =
            self.physics;
        let Grid { dx, dy, levels, .. } = self.grid;
        let wave = (gravity * self.deepest()).sqrt();
        let per_metre = (1.0 / (dx * dx) + 1.0 / (dy * dy)).sqrt();
        let thin = self.shallowest() / levels as f64;
        let turn = self.coriolis(0).abs().max(self.coriolis(self.grid.rows - 1).abs());
        let layers = if levels > 1 { vertical_viscosity.max(vertical_diffusivity) } else { 0.0 };
        let bounds = [
            (0.9 * f64::from(self.stepping.substeps) / (wave * per_metre), "surface waves, by --substeps"),
            (0.5 / ((SPEED_MAX * wave + self.fastest()) * per_metre), "currents"),
            (0.22 / (viscosity.max(diffusivity) * per_metre * per_metre), "horizontal mixing"),
            (0.22 * thin * thin / layers, "vertical mixing in the thinnest layer"),
            (if levels > 1 { 0.25 / turn } else { f64::INFINITY }, "the Coriolis force"),
        ];
        let least = bounds.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
        least.expect("there are bounds")
    }
}

/// Returns a small sea with all physics: wind, mixing, land, a slope.
#[cfg(test)]
pub(crate) fn small(rows: usize, columns: usize, steps: u64) -> Setup {
    let mut setup = Case::Basin.setup();
    let own = setup.grid;
    (setup.grid.rows, setup.grid.columns, setup.grid.levels) = (rows, columns, 4);
    setup.grid.dx *= own.columns as f64 / columns as f64;
    setup.grid.dy *= own.rows as f64 / rows as f64;
    (setup.stepping.steps, setup.stepping.substeps) = (steps, 3);
    setup.physics.wind = 1e-2;
    setup
}
