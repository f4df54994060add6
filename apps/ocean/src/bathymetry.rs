//! Reads depths of real seas from a netCDF file, such as the etopo files of Debian's ferret-datasets.
//!
//! The file has a variable over latitude and longitude, in this order, in metres above the sea. Each cell takes the
//! sample nearest to its middle; a missing sample is land. Invariant: accepted water is between [`SHALLOWEST`] and
//! [`DEEPEST`] deep.

use crate::setup::{Grid, Setup};
use isles_app::{Failure, input};
use isles_netcdf::{NetcdfFault, NetcdfFile};

/// Depth in metres; a shallower cell is land.
const SHALLOWEST: f64 = 20.0;

/// Largest accepted depth in metres: the Mariana Trench is 10,935 m deep.
const DEEPEST: f64 = 12_000.0;

/// Largest accepted file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Metres per degree of latitude, and the rotation rate of the earth, in radians per second.
const DEGREE: f64 = 111_194.93;
const ROTATION: f64 = 7.292_1e-5;

/// A region of the earth, in degrees.
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

/// Sets depths, spacing and rotation of `setup` from the sea of `region` in a file.
///
/// # Errors
/// [`Failure::Usage`]: the file cannot be read, has no such variable, does not cover the region, or has no water of
/// plausible depth there.
pub fn place(
    setup: &mut Setup,
    path: &str,
    variable: Option<&str>,
    region: GeoRegion,
) -> Result<(), Failure> {
    let refused = |reason: String| Failure::Usage(format!("{path}: {reason}"));
    let bytes = input::bytes(path, FILE_BYTES_MAX).map_err(|fault| refused(fault.to_string()))?;
    let unusable = |fault: NetcdfFault| refused(fault.to_string());
    let mut file = NetcdfFile::parse(bytes).map_err(unusable)?;
    let names = file.variables();
    let flat = |name: &&String| file.dimensions(name).is_ok_and(|dimensions| dimensions.len() == 2);
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
    let dimensions = file.dimensions(&chosen).map_err(unusable)?;
    let mut axis = |name: &String, is_longitude| {
        let samples = file.numbers(name).map_err(unusable)?;
        let axis = SampleAxis::new(samples, is_longitude);
        axis.ok_or_else(|| refused(format!("variable {name:?} has no axis; allowed: finite numbers")))
    };
    let (latitudes, longitudes) = (axis(&dimensions[0], false)?, axis(&dimensions[1], true)?);
    let heights = file.numbers(&chosen).map_err(unusable)?;
    if heights.len() != latitudes.samples.len() * longitudes.samples.len() {
        return Err(refused(format!("{chosen:?} differs in length from its axes")));
    }
    let depths = depths(&setup.grid, region, [&latitudes, &longitudes], &heights).map_err(refused)?;
    let (rows, columns) = (setup.grid.rows, setup.grid.columns);
    let middle = ((region.south + region.north) / 2.0).to_radians();
    setup.grid.dx = (region.east - region.west) * DEGREE * middle.cos() / columns as f64;
    setup.grid.dy = (region.north - region.south) * DEGREE / rows as f64;
    setup.grid.is_periodic = [false, region.east - region.west >= 360.0];
    setup.physics.coriolis = 2.0 * ROTATION * middle.sin();
    setup.physics.beta = 2.0 * ROTATION * middle.cos() * std::f64::consts::PI / (180.0 * DEGREE);
    setup.bathymetry = depths;
    Ok(())
}

/// Returns the metres of water in each cell of `grid` over `region`, 0 on land. The error is the text of a line.
fn depths(
    grid: &Grid,
    region: GeoRegion,
    [latitudes, longitudes]: [&SampleAxis; 2],
    heights: &[f64],
) -> Result<Vec<f64>, String> {
    let nearest = |axis: &SampleAxis, from: f64, to: f64, number: usize| {
        let middle = |index: usize| from + (to - from) * (index as f64 + 0.5) / number as f64;
        let found: Option<Vec<usize>> = (0..number).map(|index| axis.nearest(middle(index))).collect();
        found.ok_or_else(|| {
            let name = if axis.is_longitude { "longitudes" } else { "latitudes" };
            let [least, most] = axis.extent();
            format!("--region is not within its {name}; allowed: {least} to {most}")
        })
    };
    let near_rows = nearest(latitudes, region.south, region.north, grid.rows)?;
    let near_columns = nearest(longitudes, region.west, region.east, grid.columns)?;
    let mut depths = Vec::with_capacity(grid.rows * grid.columns);
    for row in &near_rows {
        for column in &near_columns {
            let depth = -heights[row * longitudes.samples.len() + column];
            if depth > DEEPEST {
                return Err(format!(
                    "its height {} lies in --region; allowed: at least -{DEEPEST} m",
                    -depth
                ));
            }
            depths.push(if depth >= SHALLOWEST { depth } else { 0.0 });
        }
    }
    if depths.iter().all(|depth| *depth == 0.0) {
        return Err("no water in --region".to_owned());
    }
    Ok(depths)
}

/// Latitudes or longitudes of samples, degrees.
struct SampleAxis {
    samples: Vec<f64>,
    is_longitude: bool,
    /// The largest distance between two neighbours.
    spacing: f64,
}

impl SampleAxis {
    /// Returns an axis with these samples; `None` if there are none, or one of them is not finite.
    fn new(samples: Vec<f64>, is_longitude: bool) -> Option<SampleAxis> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mut axis = SampleAxis { samples, is_longitude, spacing: 0.0 };
        axis.spacing =
            axis.samples.windows(2).map(|pair| axis.distance(pair[0], pair[1])).fold(0.0, f64::max);
        Some(axis)
    }

    /// The least and the greatest sample.
    fn extent(&self) -> [f64; 2] {
        let samples = || self.samples.iter().copied();
        [samples().fold(f64::INFINITY, f64::min), samples().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// Returns the distance of two coordinates in degrees; longitudes wrap at 360.
    fn distance(&self, one: f64, other: f64) -> f64 {
        let apart = (one - other).abs();
        if self.is_longitude { apart.rem_euclid(360.0).min((-apart).rem_euclid(360.0)) } else { apart }
    }

    /// Returns the index of the sample nearest to `value`; `None` if it is further away than neighbours are from each
    /// other.
    fn nearest(&self, value: f64) -> Option<usize> {
        let numbered = self.samples.iter().map(|sample| self.distance(*sample, value)).enumerate();
        let nearest = numbered.min_by(|one, other| one.1.total_cmp(&other.1));
        nearest.filter(|(_, distance)| *distance <= self.spacing).map(|(index, _)| index)
    }
}
