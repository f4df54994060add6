//! The records of a run as a netCDF file of the classic format, with 64-bit offsets.
//!
//! Velocities lie at the middles of cells and at fixed depths, for a route planner: `u` and `v` over time, depth, y
//! and x; the surface and its tracer over time, y and x; the depth of the sea floor over y and x. Values over land are
//! the fill value of the format. Invariant: the values are those of the records, rounded to 32 bits.

use crate::records::Snapshot;
use crate::setup::Setup;
use netcdf3::{DataSet, FileWriter, NC_FILL_F32, Version};
use std::cell::RefCell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

/// Depths of the velocities, in metres below the surface; depths without water are left out.
const DEPTHS: [f64; 12] = [0.0, 10.0, 25.0, 50.0, 75.0, 100.0, 125.0, 150.0, 200.0, 500.0, 1_000.0, 2_000.0];

/// A shared byte buffer: it can be read after its writer has been dropped.
#[derive(Clone, Default)]
struct SharedBytes(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SharedBytes {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

/// Writes the records of a run as netCDF.
///
/// # Errors
/// The type that `out` returns.
pub fn write_netcdf(setup: &Setup, records: &[Snapshot], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&encoded(setup, records)?)
}

fn other(fault: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{fault:?}"))
}

fn encoded(setup: &Setup, records: &[Snapshot]) -> io::Result<Vec<u8>> {
    let grid = &setup.grid;
    let deepest = setup.deepest();
    let depths: Vec<f64> = DEPTHS.into_iter().filter(|depth| *depth <= deepest).collect();
    let set = definition(setup, records.len(), depths.len()).map_err(other)?;
    let bytes = SharedBytes::default();
    {
        let mut writer =
            FileWriter::open_seek_write("the records", Box::new(bytes.clone())).map_err(other)?;
        writer.set_def(&set, Version::Offset64Bit, 0).map_err(other)?;
        let times: Vec<f64> = records.iter().map(|record| record.step as f64 * setup.stepping.step).collect();
        let axis = |number: usize, spacing: f64| {
            (0..number).map(|index| (index as f64 + 0.5) * spacing).collect::<Vec<f64>>()
        };
        writer.write_var_f64("time", &times).map_err(other)?;
        writer.write_var_f64("depth", &depths).map_err(other)?;
        writer.write_var_f64("y", &axis(grid.rows, grid.dy)).map_err(other)?;
        writer.write_var_f64("x", &axis(grid.columns, grid.dx)).map_err(other)?;
        let wet = |values: &mut dyn Iterator<Item = f64>| -> Vec<f32> {
            let land = cells(setup).map(|(row, column)| setup.depth(row, column) == 0.0).cycle();
            values
                .zip(land)
                .map(|(value, is_land)| if is_land { NC_FILL_F32 } else { value as f32 })
                .collect()
        };
        let depth = wet(&mut cells(setup).map(|(row, column)| setup.depth(row, column)));
        writer.write_var_f32("h", &depth).map_err(other)?;
        let surface = wet(&mut records.iter().flat_map(|record| record.surface.iter().copied()));
        writer.write_var_f32("zeta", &surface).map_err(other)?;
        let tracer = wet(&mut records.iter().flat_map(|record| record.tracer.iter().copied()));
        writer.write_var_f32("temp", &tracer).map_err(other)?;
        let (mut u, mut v) = (Vec::new(), Vec::new());
        for record in records {
            for depth in &depths {
                for (row, column) in cells(setup) {
                    let [east, north] = velocity(setup, record, row, column, *depth);
                    u.push(east);
                    v.push(north);
                }
            }
        }
        writer.write_var_f32("u", &u).map_err(other)?;
        writer.write_var_f32("v", &v).map_err(other)?;
        writer.close().map_err(other)?;
    }
    Ok(bytes.0.take().into_inner())
}

/// Dimensions, variables and their units.
fn definition(setup: &Setup, times: usize, depths: usize) -> Result<DataSet, netcdf3::InvalidDataSet> {
    let grid = &setup.grid;
    let mut set = DataSet::new();
    set.add_global_attr_string("title", "isles ocean")?;
    for (name, size) in [("time", times), ("depth", depths), ("y", grid.rows), ("x", grid.columns)] {
        set.add_fixed_dim(name, size)?;
        set.add_var_f64(name, &[name])?;
        set.add_var_attr_string(name, "units", if name == "time" { "s" } else { "m" })?;
    }
    set.add_var_attr_string("depth", "positive", "down")?;
    let flat = ["time", "y", "x"];
    for (name, dimensions, units, long_name) in [
        ("h", &flat[1..], "m", "depth of the water at rest"),
        ("zeta", &flat[..], "m", "height of the surface"),
        ("temp", &flat[..], "degC", "tracer at the surface"),
        ("u", &["time", "depth", "y", "x"][..], "m s-1", "eastward velocity"),
        ("v", &["time", "depth", "y", "x"][..], "m s-1", "northward velocity"),
    ] {
        set.add_var_f32(name, dimensions)?;
        set.add_var_attr_string(name, "units", units)?;
        set.add_var_attr_string(name, "long_name", long_name)?;
        set.add_var_attr_f32(name, "_FillValue", vec![NC_FILL_F32])?;
    }
    Ok(set)
}

fn cells(setup: &Setup) -> impl Iterator<Item = (usize, usize)> + Clone + use<> {
    let (rows, columns) = (setup.grid.rows, setup.grid.columns);
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

/// Returns the velocity in the middle of a cell at a depth: that of the level there, averaged over both faces; the
/// fill value where there is no water.
fn velocity(setup: &Setup, record: &Snapshot, row: usize, column: usize, depth: f64) -> [f32; 2] {
    let (rows, columns, levels) = (setup.grid.rows, setup.grid.columns, setup.grid.levels);
    let water = setup.depth(row, column);
    if depth >= water {
        return [NC_FILL_F32; 2];
    }
    let level = ((1.0 - depth / water) * levels as f64).ceil() as usize - 1;
    let at = |row: usize, column: usize| (level.min(levels - 1) * rows + row) * columns + column;
    let mean = |values: &[f64], one: usize, two: usize| (0.5 * (values[one] + values[two])) as f32;
    let (here, east, north) =
        (at(row, column), at(row, (column + 1) % columns), at((row + 1) % rows, column));
    [mean(&record.levels_east, here, east), mean(&record.levels_north, here, north)]
}
