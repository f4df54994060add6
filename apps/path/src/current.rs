//! Currents: the velocity of the water at a position, a depth and a time.
//!
//! Analytic fields are functions; a sampled field is interpolated linearly between its samples in all four dimensions
//! and constant beyond them. Positions are in metres east and north, depths in metres below the surface, times in
//! seconds. Invariant: a field is a pure function, so it is the same at all places.

use isles::Work;
use serde::{Deserialize, Serialize};

/// A velocity in metres per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Velocity {
    /// Eastward.
    pub east: f64,
    /// Northward.
    pub north: f64,
}

/// The position and time at which a velocity is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Metres east of the first waypoint.
    pub east: f64,
    /// Metres north of it.
    pub north: f64,
    /// Metres below the surface.
    pub depth: f64,
    /// Seconds since the start of the mission.
    pub time: f64,
}

/// A field of currents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Current {
    /// The same everywhere and always.
    Uniform(Velocity),
    /// Eastward, proportional to the distance from the line `middle`: Zermelo's problem with a closed-form solution.
    Shear {
        /// Metres north.
        middle: f64,
        /// Increase of the velocity per metre north, per second.
        per_second: f64,
    },
    /// A meandering jet whose amplitude oscillates, decaying and turning with depth.
    Jet(Jet),
    /// Samples of a model.
    Sampled(Box<SampledCurrent>),
}

/// The meandering jet of Cencini et al., Mixing in a meandering jet: a Markovian approximation (1999), used to test
/// TVE, scaled to metres and seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jet {
    /// The middle of the meanders, metres north.
    pub middle: f64,
    /// Half the width of the jet, metres.
    pub width: f64,
    /// Velocity of its axis at the surface, metres per second.
    pub speed: f64,
    /// Velocity of its meanders, metres per second.
    pub drift: f64,
    /// Length of a meander, metres.
    pub wavelength: f64,
    /// Mean amplitude of the meanders, in widths.
    pub amplitude: f64,
    /// Amplitude of the oscillation of `amplitude`, in widths.
    pub swing: f64,
    /// Period of that oscillation, in seconds.
    pub period: f64,
    /// The depth over which the current decays by a factor of e and turns by one radian, in metres.
    pub decay: f64,
}

impl Jet {
    fn at(&self, moment: Moment) -> Velocity {
        let wave = std::f64::consts::TAU / self.wavelength;
        let amplitude = self.width
            * (self.amplitude
                + self.swing * (std::f64::consts::TAU * moment.time / self.period + 1.57).cos());
        let (sine, cosine) = (wave * (moment.east - self.drift * moment.time)).sin_cos();
        let slope = 1.0 + (wave * amplitude * sine).powi(2);
        let (root, offset) = (slope.sqrt(), moment.north - self.middle - amplitude * cosine);
        let argument = offset / (self.width * root);
        // The stream function is -speed · width · tanh(argument).
        let profile = self.speed / argument.cosh().powi(2);
        let d_east = (wave * amplitude * sine) / root
            - offset * wave.powi(3) * amplitude.powi(2) * sine * cosine / (root * slope);
        let (east, north) = (profile / root, -profile * d_east);
        let scale = (-moment.depth / self.decay).exp();
        let (turn_sine, turn_cosine) = (moment.depth / self.decay).sin_cos();
        Velocity {
            east: scale * (east * turn_cosine + north * turn_sine),
            north: scale * (north * turn_cosine - east * turn_sine),
        }
    }
}

/// Samples on a grid in time, depth, north and east; each axis is increasing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledCurrent {
    /// Coordinates in seconds, metres, metres and metres.
    pub axes: [Vec<f64>; 4],
    /// Eastward velocities in the order of the axes, the last one varying fastest; NaN over land.
    pub east: Vec<f32>,
    /// Northward velocities, likewise.
    pub north: Vec<f32>,
}

impl SampledCurrent {
    /// Returns the velocity at a moment; samples over land count as still water.
    fn at(&self, moment: Moment) -> Velocity {
        let wanted = [moment.time, moment.depth, moment.north, moment.east];
        let mut corners: [(usize, usize, f64); 4] = [(0, 0, 0.0); 4];
        for ((corner, axis), value) in corners.iter_mut().zip(&self.axes).zip(wanted) {
            *corner = bracket(axis, value);
        }
        let mut found = Velocity::default();
        for corner in 0..16_usize {
            let (mut index, mut weight) = (0, 1.0);
            for (number, (low, high, part)) in corners.iter().enumerate() {
                let is_high = corner >> number & 1 == 1;
                index = index * self.axes[number].len() + if is_high { *high } else { *low };
                weight *= if is_high { *part } else { 1.0 - *part };
            }
            let (east, north) = (f64::from(self.east[index]), f64::from(self.north[index]));
            if weight > 0.0 && east.is_finite() && north.is_finite() {
                found.east += weight * east;
                found.north += weight * north;
            }
        }
        found
    }

    /// Returns `true` if the nearest sample at the surface is over land.
    pub fn is_land(&self, east: f64, north: f64) -> bool {
        let near = |axis: &[f64], value| {
            let (low, high, part) = bracket(axis, value);
            if part < 0.5 { low } else { high }
        };
        let [_, _, norths, easts] = &self.axes;
        !self.east[near(norths, north) * easts.len() + near(easts, east)].is_finite()
    }
}

/// Returns the two samples around `value`, and its fraction of the way from the first to the second, from 0 to 1.
fn bracket(axis: &[f64], value: f64) -> (usize, usize, f64) {
    let after = axis.partition_point(|sample| *sample <= value);
    match after {
        0 => (0, 0, 0.0),
        after if after == axis.len() => (after - 1, after - 1, 0.0),
        after => {
            let (low, high) = (axis[after - 1], axis[after]);
            (after - 1, after, (value - low) / (high - low))
        }
    }
}

impl Current {
    /// Returns the velocity of the water.
    pub fn at(&self, moment: Moment) -> Velocity {
        match self {
            Current::Uniform(velocity) => *velocity,
            Current::Shear { middle, per_second } => {
                Velocity { east: per_second * (moment.north - middle), north: 0.0 }
            }
            Current::Jet(jet) => jet.at(moment),
            Current::Sampled(samples) => samples.at(moment),
        }
    }

    /// Returns the cost of `number` evaluations on a modelled core, from the operations of the formulas above. A
    /// function such as `exp` counts as 40 floating-point operations, because the P54C takes 70 to 120 cycles for one.
    pub fn work(&self, number: u64) -> Work {
        match self {
            Current::Uniform(_) => Work::new().integers(4 * number),
            Current::Shear { .. } => Work::new().integers(6 * number).floats(2 * number),
            // Six functions and about forty other operations.
            Current::Jet(_) => Work::new().integers(60 * number).floats(280 * number).divisions(8 * number),
            Current::Sampled(samples) => {
                let bytes = 8 * samples.east.len() as u64;
                let steps: u32 = samples.axes.iter().map(|axis| axis.len().max(1).ilog2() + 1).sum();
                Work::new()
                    .integers(240 * number)
                    .floats(150 * number)
                    .divisions(4 * number)
                    .branches((48 + u64::from(steps)) * number)
                    .scattered(16 * number, bytes)
            }
        }
    }
}
