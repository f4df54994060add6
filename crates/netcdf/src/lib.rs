//! Reads numbers from netCDF files of the classic format.
//!
//! Attributes of a variable define how its numbers are stored: as integers in units of `scale_factor` above
//! `add_offset`, with `_FillValue` or `missing_value` for missing values. The attributes are those of the CF
//! conventions, version 1.11, sections 2.5.1 and 8.1. It knows no quantity and no unit. Invariant: a number that is
//! returned is a value of the file's quantity, or not a number.

#![forbid(unsafe_code)]

mod padding;
#[cfg(test)]
mod tests;

use netcdf3::{DataSet, DataType, DataVector, FileReader, Variable};
use std::borrow::Cow;
use std::fmt;
use std::io::Cursor;

/// The reason why a file or a variable of it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetcdfFault {
    /// The file is not netCDF of the classic format, or has an error inside.
    Format {
        /// The error of the reader.
        detail: String,
    },
    /// The file has no such variable.
    NoVariable {
        /// The requested name.
        name: String,
        /// The names of all variables.
        variables: Vec<String>,
    },
    /// The variable holds text.
    Letters {
        /// Its name.
        name: String,
    },
    /// An attribute of the storage format is not a single finite number.
    Attribute {
        /// The name of the variable.
        variable: String,
        /// The name of the attribute.
        attribute: &'static str,
    },
}

impl fmt::Display for NetcdfFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetcdfFault::Format { detail } => write!(f, "not a netCDF file of the classic format ({detail})"),
            NetcdfFault::NoVariable { name, variables } => {
                write!(f, "no variable {name:?}; it has {}", variables.join(", "))
            }
            NetcdfFault::Letters { name } => write!(f, "variable {name:?} has letters; allowed: numbers"),
            NetcdfFault::Attribute { variable, attribute } => {
                write!(f, "{attribute} of variable {variable:?} is not a number; allowed: one finite number")
            }
        }
    }
}

impl std::error::Error for NetcdfFault {}

/// A netCDF file of the classic format, in memory.
pub struct NetcdfFile {
    reader: FileReader,
}

impl NetcdfFile {
    /// Reads the header of a file that has these bytes.
    ///
    /// # Errors
    /// [`NetcdfFault::Format`].
    pub fn parse(bytes: Vec<u8>) -> Result<NetcdfFile, NetcdfFault> {
        let bytes = match padding::with_padded_records(&bytes) {
            Cow::Borrowed(_) => bytes,
            Cow::Owned(padded) => padded,
        };
        let reader = FileReader::open_seek_read("bytes", Box::new(Cursor::new(bytes)));
        Ok(NetcdfFile { reader: reader.map_err(|fault| format_fault(&fault))? })
    }

    /// The names of all variables, in the order of the file.
    pub fn variables(&self) -> Vec<String> {
        self.set().get_var_names()
    }

    /// The names of the dimensions of a variable, the last one running fastest.
    ///
    /// # Errors
    /// [`NetcdfFault::NoVariable`].
    pub fn dimensions(&self, name: &str) -> Result<Vec<String>, NetcdfFault> {
        self.variable(name).map(Variable::dim_names)
    }

    /// The attribute `units` of a variable, if it has one.
    pub fn units(&self, name: &str) -> Option<String> {
        self.set().get_var(name)?.get_attr_as_string("units")
    }

    /// All numbers of a variable, unpacked; NaN for missing values.
    ///
    /// Missing are the stored values of `_FillValue` and `missing_value`, of any numeric type. Without a `_FillValue`
    /// the default one of the format is missing as well, but for bytes, which have none.
    ///
    /// # Errors
    /// There is no such variable, it has no numbers, or its attributes do not define how to unpack them.
    pub fn numbers(&mut self, name: &str) -> Result<Vec<f64>, NetcdfFault> {
        let storage = Storage::of(self.variable(name)?)?;
        let mut values: Vec<f64> = match self.reader.read_var(name).map_err(|fault| format_fault(&fault))? {
            DataVector::F64(values) => values,
            DataVector::F32(values) => values.into_iter().map(f64::from).collect(),
            DataVector::I32(values) => values.into_iter().map(f64::from).collect(),
            DataVector::I16(values) => values.into_iter().map(f64::from).collect(),
            DataVector::I8(values) => values.into_iter().map(f64::from).collect(),
            DataVector::U8(_) => return Err(NetcdfFault::Letters { name: name.to_owned() }),
        };
        values.iter_mut().for_each(|value| *value = storage.unpack(*value));
        Ok(values)
    }

    fn set(&self) -> &DataSet {
        self.reader.data_set()
    }

    fn variable(&self, name: &str) -> Result<&Variable, NetcdfFault> {
        let missing = || NetcdfFault::NoVariable { name: name.to_owned(), variables: self.variables() };
        self.set().get_var(name).ok_or_else(missing)
    }
}

/// Storage format of a variable's numbers.
struct Storage {
    missing: Vec<f64>,
    scale: Option<f64>,
    offset: Option<f64>,
}

impl Storage {
    fn of(variable: &Variable) -> Result<Storage, NetcdfFault> {
        let one = |attribute: &'static str| {
            let Some(values) = attribute_numbers(variable, attribute) else { return Ok(None) };
            match values[..] {
                [value] if value.is_finite() => Ok(Some(value)),
                _ => Err(NetcdfFault::Attribute { variable: variable.name().to_owned(), attribute }),
            }
        };
        let fill = attribute_numbers(variable, "_FillValue");
        let fill = fill.unwrap_or_else(|| default_fill(variable.data_type()).into_iter().collect());
        let marked = attribute_numbers(variable, "missing_value").unwrap_or_default();
        // Rounded to the type of the stored values: -1e34 as an `f64` attribute differs from that value in an `f32`
        // variable.
        let stored = |value: f64| match variable.data_type() {
            DataType::F32 => f64::from(value as f32),
            _ => value,
        };
        Ok(Storage {
            missing: fill.into_iter().chain(marked).map(stored).collect(),
            scale: one("scale_factor")?,
            offset: one("add_offset")?,
        })
    }

    /// Returns the unpacked value of `stored`.
    fn unpack(&self, stored: f64) -> f64 {
        if self.missing.contains(&stored) {
            return f64::NAN;
        }
        let scaled = self.scale.map_or(stored, |scale| stored * scale);
        self.offset.map_or(scaled, |offset| scaled + offset)
    }
}

/// The numbers of an attribute of any type; none if there is no such attribute, an empty list if it has no numbers.
fn attribute_numbers(variable: &Variable, name: &str) -> Option<Vec<f64>> {
    let attribute = variable.get_attr(name)?;
    fn wide<T: Copy + Into<f64>>(values: &[T]) -> Vec<f64> {
        values.iter().map(|value| (*value).into()).collect()
    }
    Some(match attribute.data_type() {
        DataType::F64 => attribute.get_f64().map(wide).unwrap_or_default(),
        DataType::F32 => attribute.get_f32().map(wide).unwrap_or_default(),
        DataType::I32 => attribute.get_i32().map(wide).unwrap_or_default(),
        DataType::I16 => attribute.get_i16().map(wide).unwrap_or_default(),
        DataType::I8 => attribute.get_i8().map(wide).unwrap_or_default(),
        DataType::U8 => Vec::new(),
    })
}

/// Returns the default fill value of a type; `None` for bytes, which have none.
fn default_fill(stored: DataType) -> Option<f64> {
    match stored {
        DataType::F64 => Some(netcdf3::NC_FILL_F64),
        DataType::F32 => Some(f64::from(netcdf3::NC_FILL_F32)),
        DataType::I32 => Some(f64::from(netcdf3::NC_FILL_I32)),
        DataType::I16 => Some(f64::from(netcdf3::NC_FILL_I16)),
        DataType::I8 | DataType::U8 => None,
    }
}

fn format_fault(fault: &netcdf3::ReadError) -> NetcdfFault {
    NetcdfFault::Format { detail: format!("{fault:?}").chars().take(80).collect() }
}
