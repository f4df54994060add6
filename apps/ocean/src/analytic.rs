//! Closed-form solutions, and the errors of computed fields.

use crate::setup::{AMPLITUDE, Case, SOLITON, Setup, Stepping};

/// A comparison with a solution.
pub struct Comparison {
    /// The quantity that is compared.
    pub quantity: &'static str,
    /// The relative error.
    pub error: f64,
    /// The largest relative error that passes.
    pub allowed: f64,
}

/// Returns the height of the surface of a Kelvin wave at a position and a time, in a channel around the world: one
/// wave long, highest at the southern coast. Gill, Atmosphere-Ocean Dynamics (1982), section 10.4.
pub fn kelvin(setup: &Setup, east: f64, north: f64, time: f64) -> f64 {
    let speed = (setup.physics.gravity * 100.0).sqrt();
    let from_coast = north + setup.grid.rows as f64 * setup.grid.dy / 2.0;
    let length = setup.grid.columns as f64 * setup.grid.dx;
    let phase = std::f64::consts::TAU * (east - speed * time) / length;
    AMPLITUDE * (-setup.physics.coriolis * from_coast / speed).exp() * phase.cos()
}

/// Returns the surface and the eastward and northward velocities of the equatorial soliton of lowest order. Boyd,
/// Equatorial solitary waves, part I (1980), as in the test case of ROMS.
pub fn soliton(east: f64, north: f64, time: f64) -> [f64; 3] {
    let speed = -1.0 / 3.0 - 0.395 * SOLITON * SOLITON;
    let phase = SOLITON * (east - speed * time);
    let height = 0.771 * (SOLITON / phase.cosh()).powi(2);
    let slope = -2.0 * SOLITON * phase.tanh() * height;
    let (square, bell) = (north * north, (-0.5 * north * north).exp());
    [
        height * (3.0 + 6.0 * square) / 4.0 * bell,
        height * (-9.0 + 6.0 * square) / 4.0 * bell,
        slope * 2.0 * north * bell,
    ]
}

/// Surfaces at several times, each stored in rows from the south.
pub struct Surfaces<'a> {
    pub setup: &'a Setup,
    /// Time in seconds, and the surface at that time.
    pub at: &'a [(f64, &'a [f64])],
}

impl Surfaces<'_> {
    /// Compares the surfaces with the solution of the case; empty if it has none, or if the run was too short.
    pub fn compare(&self) -> Vec<Comparison> {
        if !self.setup.bathymetry.is_empty() {
            return Vec::new();
        }
        match self.setup.case {
            Case::Kelvin => self.compare_kelvin(),
            Case::Rossby => self.compare_soliton(),
            Case::Adjustment => self.compare_front(),
            _ => Vec::new(),
        }
    }

    /// Returns the first step from which all surfaces are compared; the first and the last surface always are.
    pub fn first_compared(setup: &Setup) -> u64 {
        let Stepping { step, steps, .. } = setup.stepping;
        if setup.case != Case::Adjustment || !setup.bathymetry.is_empty() {
            return steps;
        }
        (steps as f64 - std::f64::consts::TAU / setup.physics.coriolis / step).max(0.0) as u64
    }

    /// The last surface with its time, and a function of row and column for it.
    fn last(&self) -> Option<(f64, &[f64])> {
        self.at.last().map(|(time, surface)| (*time, *surface))
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, columns) = (self.setup.grid.rows, self.setup.grid.columns);
        (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }

    fn compare_kelvin(&self) -> Vec<Comparison> {
        let Some((time, surface)) = self.last() else { return Vec::new() };
        let (mut off, mut all) = (0.0, 0.0);
        for ((row, column), found) in self.cells().zip(surface) {
            let exact = kelvin(self.setup, self.setup.east(column), self.setup.north(row), time);
            off += (found - exact).powi(2);
            all += exact.powi(2);
        }
        vec![Comparison { quantity: "the Kelvin wave", error: (off / all).sqrt(), allowed: 0.05 }]
    }

    /// Compares speed and height of the soliton, found as the highest point of the surface north of the equator.
    fn compare_soliton(&self) -> Vec<Comparison> {
        let Some((time, surface)) = self.last().filter(|(time, _)| *time >= 10.0) else { return Vec::new() };
        let peak = |surface: &[f64]| {
            let north = self.cells().zip(surface).filter(|((row, _), _)| self.setup.north(*row) > 0.0);
            let highest = north.max_by(|one, other| one.1.total_cmp(other.1));
            highest.map(|((_, column), height)| (self.setup.east(column), *height))
        };
        let first = self.at.first().and_then(|(_, surface)| peak(surface));
        let (Some((from, start)), Some((to, end))) = (first, peak(surface)) else { return Vec::new() };
        let length = self.setup.grid.columns as f64 * self.setup.grid.dx;
        let speed = -1.0 / 3.0 - 0.395 * SOLITON * SOLITON;
        let wanted = from + speed * time;
        let off = (to - wanted + 1.5 * length).rem_euclid(length) - 0.5 * length;
        vec![
            Comparison {
                quantity: "the way of the soliton",
                error: (off / (speed * time)).abs(),
                allowed: 0.1,
            },
            Comparison {
                quantity: "the height of the soliton",
                error: (end / start - 1.0).abs(),
                allowed: 0.2,
            },
        ]
    }

    /// Compares the front after its waves have left: the mean of the last inertial period, within two radii of
    /// deformation.
    fn compare_front(&self) -> Vec<Comparison> {
        let setup = self.setup;
        let period = std::f64::consts::TAU / setup.physics.coriolis;
        let end = self.at.last().map_or(0.0, |(time, _)| *time);
        let last: Vec<&[f64]> =
            self.at.iter().filter(|(time, _)| *time > end - period).map(|(_, surface)| *surface).collect();
        if end < 2.5 * period || last.len() < 6 {
            return Vec::new();
        }
        let radius = (setup.physics.gravity * 100.0).sqrt() / setup.physics.coriolis;
        let (mut off, mut all) = (0.0, 0.0);
        for (number, (_, column)) in self.cells().enumerate() {
            let east = setup.east(column);
            if east.abs() > 2.0 * radius {
                continue;
            }
            let exact = AMPLITUDE * east.signum() * (1.0 - (-east.abs() / radius).exp());
            let mean = last.iter().map(|surface| surface[number]).sum::<f64>() / last.len() as f64;
            off += (mean - exact).powi(2);
            all += exact.powi(2);
        }
        vec![Comparison { quantity: "the front in balance", error: (off / all).sqrt(), allowed: 0.1 }]
    }
}
