//! Reads currents from a netCDF file of the classic format.
//!
//! The file has `u` and `v` over four dimensions: time, depth, north and east, in this order. Each dimension has a
//! variable of its name: seconds, metres below the surface, and metres or degrees (according to their units). A
//! missing value is over land; `h`, over the last two dimensions, is the depth of the sea floor. Invariant: axes are
//! finite and increasing, and begin at 0 north and east.

use crate::current::SampledCurrent;
use crate::glide::DEEPEST;
use isles_app::input;
use isles_netcdf::{NetcdfFault, NetcdfFile};
use std::fmt;

/// Largest accepted file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Metres per degree of latitude.
const DEGREE: f64 = 111_194.93;

/// The reason why a file has no currents.
#[derive(Debug)]
pub enum CurrentsFault {
    /// The file cannot be read.
    Read(input::ReadFault),
    /// The file is not netCDF of the classic format, or a variable cannot be read.
    Netcdf(NetcdfFault),
    /// The dimensions of the velocities differ, or do not match their axes.
    Mismatch(&'static str),
    /// A variable has the wrong number of dimensions.
    Dimensions { name: &'static str, found: usize },
    /// An axis is not strictly increasing, or not finite.
    Axis { name: String },
}

impl fmt::Display for CurrentsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CurrentsFault::Read(fault) => fault.fmt(f),
            CurrentsFault::Netcdf(fault) => fault.fmt(f),
            CurrentsFault::Mismatch(reason) => f.write_str(reason),
            CurrentsFault::Dimensions { name, found } => {
                write!(f, "variable {name:?} has {found} dimensions; allowed: time, depth, north and east")
            }
            CurrentsFault::Axis { name } => {
                write!(f, "variable {name:?} is not ascending; allowed: ascending finite numbers")
            }
        }
    }
}

impl From<NetcdfFault> for CurrentsFault {
    fn from(fault: NetcdfFault) -> CurrentsFault {
        CurrentsFault::Netcdf(fault)
    }
}

/// The content of a file.
pub struct Currents {
    pub samples: SampledCurrent,
    /// The deepest water, metres.
    pub floor: f64,
    /// Longitude and latitude of the first sample, degrees; 0 if the file is in metres.
    pub origin: [f64; 2],
}

/// Reads the currents of a file.
///
/// # Errors
/// [`CurrentsFault`].
pub fn read_currents(path: &str) -> Result<Currents, CurrentsFault> {
    let bytes = input::bytes(path, FILE_BYTES_MAX).map_err(CurrentsFault::Read)?;
    let mut file = NetcdfFile::parse(bytes)?;
    let names = dimensions(&file)?;
    let mut axes: [Vec<f64>; 4] = Default::default();
    for (axis, name) in axes.iter_mut().zip(&names) {
        *axis = file.numbers(name)?;
        check_axis(name, axis)?;
    }
    let is_degrees = |name: &String| file.units(name).is_some_and(|units| units.starts_with("degree"));
    let mut origin = [0.0; 2];
    if is_degrees(&names[2]) && is_degrees(&names[3]) {
        origin = [axes[3][0], axes[2][0]];
        let across = DEGREE * origin[1].to_radians().cos();
        axes[2].iter_mut().for_each(|north| *north *= DEGREE);
        axes[3].iter_mut().for_each(|east| *east *= across);
    }
    for (axis, name) in axes.iter_mut().zip(&names).skip(2) {
        let first = axis[0];
        axis.iter_mut().for_each(|value| *value -= first);
        check_axis(name, axis)?;
    }
    let [east, north] = [velocities(&mut file, "u")?, velocities(&mut file, "v")?];
    let all: usize = axes.iter().map(Vec::len).product();
    if [&east, &north].iter().any(|values| values.len() != all) {
        return Err(CurrentsFault::Mismatch("u and v differ in length from their axes"));
    }
    let floor = match file.variables().iter().any(|name| name == "h") {
        true => file.numbers("h")?.into_iter().filter(|depth| depth.is_finite()).fold(0.0, f64::max),
        false => f64::max(DEEPEST, axes[1].last().copied().unwrap_or_default()),
    };
    Ok(Currents { samples: SampledCurrent { axes, east, north }, floor, origin })
}

/// Checks that an axis is not empty and that its numbers are finite and increasing.
fn check_axis(name: &str, axis: &[f64]) -> Result<(), CurrentsFault> {
    let is_good = !axis.is_empty()
        && axis.iter().all(|value| value.is_finite())
        && axis.windows(2).all(|pair| pair[0] < pair[1]);
    if is_good { Ok(()) } else { Err(CurrentsFault::Axis { name: name.to_owned() }) }
}

/// Returns the names of the four dimensions of `u`, which `v` must share.
fn dimensions(file: &NetcdfFile) -> Result<[String; 4], CurrentsFault> {
    let of = |name: &'static str| {
        let names = file.dimensions(name)?;
        let found = names.len();
        <[String; 4]>::try_from(names).map_err(|_| CurrentsFault::Dimensions { name, found })
    };
    let (east, north) = (of("u")?, of("v")?);
    if east != north {
        return Err(CurrentsFault::Mismatch("u and v have different dimensions"));
    }
    Ok(east)
}

/// Returns the numbers of `u` or `v`; NaN over land.
fn velocities(file: &mut NetcdfFile, name: &str) -> Result<Vec<f32>, CurrentsFault> {
    Ok(file.numbers(name)?.into_iter().map(|value| value as f32).collect())
}
