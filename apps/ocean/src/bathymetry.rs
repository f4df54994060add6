//! Depths of real seas, out of a netCDF file such as the etopo ones of Debian's ferret-datasets.
//!
//! The file has a variable over latitude and longitude, in this order, metres above the sea. Each cell takes the sample
//! nearest to its middle. Invariant: water that is accepted is at least [`SHALLOWEST`] deep.

use crate::setup::Setup;
use isles_app::{Failure, input};
use netcdf3::{DataVector, FileReader};
use std::io::Cursor;

/// Metres of water below which a cell is land.
const SHALLOWEST: f64 = 20.0;

/// Most bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Metres of a degree of latitude, and the rotation of the earth, per second.
const DEGREE: f64 = 111_194.93;
const ROTATION: f64 = 7.292_1e-5;

/// A part of the earth, degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeoRegion {
    pub west: f64,
    pub east: f64,
    pub south: f64,
    pub north: f64,
}

impl GeoRegion {
    /// Reads `W,E,S,N`.
    pub fn read(text: &str) -> Option<GeoRegion> {
        let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        let [west, east, south, north] = numbers?.try_into().ok()?;
        let is_good = west < east && east - west <= 360.0 && south < north && south >= -89.0 && north <= 89.0;
        is_good.then_some(GeoRegion { west, east, south, north })
    }
}

/// Puts the sea of `region` of a file into `setup`: depths, spacing and rotation.
///
/// # Errors
/// [`Failure::Usage`]: the file cannot be read, has no such variable, or has no water there.
pub fn place(
    setup: &mut Setup,
    path: &str,
    variable: Option<&str>,
    region: GeoRegion,
) -> Result<(), Failure> {
    let refused = |what: String| Failure::Usage(format!("{path}: {what}"));
    let bytes = input::bytes(path, FILE_BYTES_MAX).map_err(|fault| refused(fault.to_string()))?;
    let not_netcdf = |_| refused("not a netCDF file of the classic format".to_owned());
    let mut file = FileReader::open_seek_read(path, Box::new(Cursor::new(bytes))).map_err(not_netcdf)?;
    let names = file.data_set().get_var_names();
    let flat = |name: &&String| file.data_set().get_var(name).is_some_and(|found| found.num_dims() == 2);
    let chosen = match variable {
        Some(wanted) => names.iter().find(|name| *name == wanted).filter(flat),
        None => names.iter().find(flat),
    };
    let Some(chosen) = chosen.cloned() else {
        let wanted = variable.map_or("variable over two dimensions".to_owned(), |name| {
            format!("variable {name:?} over two dimensions")
        });
        return Err(refused(format!("no {wanted}; it has {}", names.join(", "))));
    };
    let dimensions = file.data_set().get_var(&chosen).map(|found| found.dim_names()).unwrap_or_default();
    let mut read =
        |name: &str| numbers(&mut file, name).ok_or_else(|| refused(format!("no numbers in {name:?}")));
    let (latitudes, longitudes) = (read(&dimensions[0])?, read(&dimensions[1])?);
    let heights = read(&chosen)?;
    if latitudes.is_empty() || heights.len() != latitudes.len() * longitudes.len() {
        return Err(refused(format!("{chosen:?} differs in length from its axes")));
    }
    let (rows, columns) = (setup.grid.rows, setup.grid.columns);
    let between = |from: f64, to: f64, index: usize, number: usize| {
        from + (to - from) * (index as f64 + 0.5) / number as f64
    };
    let mut depths = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        let near_row = nearest(&latitudes, between(region.south, region.north, row, rows), false);
        for column in 0..columns {
            let near = nearest(&longitudes, between(region.west, region.east, column, columns), true);
            let depth = -heights[near_row * longitudes.len() + near];
            depths.push(if depth >= SHALLOWEST { depth } else { 0.0 });
        }
    }
    if depths.iter().all(|depth| *depth == 0.0) {
        return Err(refused("no water in --region".to_owned()));
    }
    let middle = ((region.south + region.north) / 2.0).to_radians();
    setup.grid.dx = (region.east - region.west) * DEGREE * middle.cos() / columns as f64;
    setup.grid.dy = (region.north - region.south) * DEGREE / rows as f64;
    setup.grid.is_periodic = [false, region.east - region.west >= 360.0];
    setup.physics.coriolis = 2.0 * ROTATION * middle.sin();
    setup.physics.beta = 2.0 * ROTATION * middle.cos() * std::f64::consts::PI / (180.0 * DEGREE);
    setup.bathymetry = depths;
    Ok(())
}

/// The index of the sample nearest to `value`, where longitudes meet after 360 degrees.
fn nearest(axis: &[f64], value: f64, is_longitude: bool) -> usize {
    let distance = |sample: f64| {
        let apart = (sample - value).abs();
        if is_longitude { (apart.rem_euclid(360.0)).min((-apart).rem_euclid(360.0)) } else { apart }
    };
    let numbered = axis.iter().enumerate();
    numbered
        .min_by(|one, other| distance(*one.1).total_cmp(&distance(*other.1)))
        .map_or(0, |(index, _)| index)
}

fn numbers(file: &mut FileReader, name: &str) -> Option<Vec<f64>> {
    match file.read_var(name).ok()? {
        DataVector::F64(values) => Some(values),
        DataVector::F32(values) => Some(values.into_iter().map(f64::from).collect()),
        DataVector::I32(values) => Some(values.into_iter().map(f64::from).collect()),
        DataVector::I16(values) => Some(values.into_iter().map(f64::from).collect()),
        _ => None,
    }
}
