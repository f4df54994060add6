//! Currents out of a netCDF file of the classic format.
//!
//! The file has `u` and `v` over four dimensions: time, depth, north and east, in this order. Each dimension has a
//! variable of its name: seconds, metres below the surface, and metres or degrees (if their units say so). A value that
//! is not a number, or `_FillValue`, is over land; `h`, over the last two dimensions, is the depth of the sea floor.
//! Invariant: axes rise, and begin at 0 north and east.

use crate::current::SampledCurrent;
use crate::glide::DEEPEST;
use isles_app::input;
use netcdf3::{DataVector, FileReader};
use std::fmt;
use std::io::Cursor;

/// Most bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Metres of a degree of latitude.
const DEGREE: f64 = 111_194.93;

/// The reason why a file has no currents.
#[derive(Debug)]
pub enum CurrentsFault {
    /// The file cannot be read.
    Read(input::ReadFault),
    /// The file is not netCDF of the classic format, or has an error inside.
    Format { what: String },
    /// A variable is not there.
    NoVariable { name: String, known: Vec<String> },
    /// A variable has another number of dimensions.
    Dimensions { name: &'static str, found: usize },
    /// An axis does not rise.
    Axis { name: String },
}

impl fmt::Display for CurrentsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CurrentsFault::Read(fault) => fault.fmt(f),
            CurrentsFault::Format { what } => {
                write!(f, "not a netCDF file of the classic format ({what})")
            }
            CurrentsFault::NoVariable { name, known } => {
                write!(f, "no variable {name:?}; it has {}", known.join(", "))
            }
            CurrentsFault::Dimensions { name, found } => {
                write!(f, "variable {name:?} has {found} dimensions; allowed: time, depth, north and east")
            }
            CurrentsFault::Axis { name } => {
                write!(f, "variable {name:?} is not ascending; allowed: ascending numbers")
            }
        }
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
/// [`CurrentsFault`]: it has none.
pub fn read_currents(path: &str) -> Result<Currents, CurrentsFault> {
    let bytes = input::bytes(path, FILE_BYTES_MAX).map_err(CurrentsFault::Read)?;
    let mut file = FileReader::open_seek_read(path, Box::new(Cursor::new(bytes)))
        .map_err(|fault| format_fault(&fault))?;
    let names = dimensions(&file)?;
    let mut axes: [Vec<f64>; 4] = Default::default();
    for (axis, name) in axes.iter_mut().zip(&names) {
        *axis = variable(&mut file, name)?;
        if axis.is_empty() || !axis.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(CurrentsFault::Axis { name: name.clone() });
        }
    }
    let is_degrees = |name: &String| {
        let units = file.data_set().get_var(name).and_then(|found| found.get_attr_as_string("units"));
        units.is_some_and(|units| units.starts_with("degree"))
    };
    let mut origin = [0.0; 2];
    if is_degrees(&names[2]) && is_degrees(&names[3]) {
        origin = [axes[3][0], axes[2][0]];
        let across = DEGREE * origin[1].to_radians().cos();
        axes[2].iter_mut().for_each(|north| *north *= DEGREE);
        axes[3].iter_mut().for_each(|east| *east *= across);
    }
    for axis in &mut axes[2..] {
        let first = axis[0];
        axis.iter_mut().for_each(|value| *value -= first);
    }
    let [east, north] = [velocities(&mut file, "u")?, velocities(&mut file, "v")?];
    let all: usize = axes.iter().map(Vec::len).product();
    if [&east, &north].iter().any(|values| values.len() != all) {
        return Err(CurrentsFault::Format { what: "u and v differ in length from their axes".to_owned() });
    }
    let floor = match file.data_set().has_var("h") {
        true => variable(&mut file, "h")?.into_iter().filter(|depth| depth.is_finite()).fold(0.0, f64::max),
        false => f64::max(DEEPEST, axes[1].last().copied().unwrap_or_default()),
    };
    Ok(Currents { samples: SampledCurrent { axes, east, north }, floor, origin })
}

/// The names of the four dimensions of `u`, which `v` has as well.
fn dimensions(file: &FileReader) -> Result<[String; 4], CurrentsFault> {
    let set = file.data_set();
    let of = |name: &'static str| {
        let known = || set.get_var_names();
        let variable = set
            .get_var(name)
            .ok_or_else(|| CurrentsFault::NoVariable { name: name.to_owned(), known: known() })?;
        let names = variable.dim_names();
        let found = names.len();
        <[String; 4]>::try_from(names).map_err(|_| CurrentsFault::Dimensions { name, found })
    };
    let (east, north) = (of("u")?, of("v")?);
    if east != north {
        return Err(CurrentsFault::Format { what: "u and v have different dimensions".to_owned() });
    }
    Ok(east)
}

/// All numbers of a variable, not a number where it has none.
fn variable(file: &mut FileReader, name: &str) -> Result<Vec<f64>, CurrentsFault> {
    if !file.data_set().has_var(name) {
        let known = file.data_set().get_var_names();
        return Err(CurrentsFault::NoVariable { name: name.to_owned(), known });
    }
    let fill = file.data_set().get_var(name).and_then(|variable| {
        let double = variable.get_attr_f64("_FillValue").map(|values| values[0]);
        double.or(variable.get_attr_f32("_FillValue").map(|values| f64::from(values[0])))
    });
    let mut values: Vec<f64> = match file.read_var(name).map_err(|fault| format_fault(&fault))? {
        DataVector::F64(values) => values,
        DataVector::F32(values) => values.into_iter().map(f64::from).collect(),
        DataVector::I32(values) => values.into_iter().map(f64::from).collect(),
        DataVector::I16(values) => values.into_iter().map(f64::from).collect(),
        DataVector::I8(values) => values.into_iter().map(f64::from).collect(),
        DataVector::U8(_) => return Err(CurrentsFault::Format { what: format!("{name:?} has letters") }),
    };
    for value in values.iter_mut().filter(|value| Some(**value) == fill) {
        *value = f64::NAN;
    }
    Ok(values)
}

/// The numbers of `u` or `v`, not a number over land.
fn velocities(file: &mut FileReader, name: &str) -> Result<Vec<f32>, CurrentsFault> {
    Ok(variable(file, name)?.into_iter().map(|value| value as f32).collect())
}

fn format_fault(fault: &netcdf3::ReadError) -> CurrentsFault {
    CurrentsFault::Format { what: format!("{fault:?}").chars().take(80).collect() }
}
