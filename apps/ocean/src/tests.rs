//! Tests of the scheme: the same bits at every tiling, stable steps, no new extremes, and netCDF that is read back.

use crate::bathymetry::GeoRegion;
use crate::model::{Fields, Recording, Snapshot, Tiling, run_part};
use crate::netcdf::write_netcdf;
use crate::run::Ocean;
use crate::setup::{Case, Setup};
use crate::tracer::at_face;
use isles::Plan;
use isles::prelude::*;
use isles_app::frame::WorkDistributor;
use netcdf3::{DataVector, FileReader};
use proptest::prelude::*;
use std::cell::RefCell;
use std::io::Cursor;
use std::rc::Rc;

/// The records of a run on simulated places, whose order `seed` fixes.
fn records(
    setup: &Setup,
    (places, seed): (u32, u64),
    tiling: Option<Tiling>,
) -> isles::Result<Vec<Snapshot>> {
    let (kept, setup) = (Rc::new(RefCell::new(Vec::new())), setup.clone());
    let place = Rc::clone(&kept);
    let recording = Recording { every: 2, has_levels: true };
    let (ended, ..) = isles::simulate(places, Plan::calm(seed), move || async move {
        let meter = WorkDistributor::plain::<Ocean>().meter(None).await?;
        let fields = Fields::new(&setup, tiling).await?;
        let setup = Replicated::new(setup).await?;
        let parts = everywhere!(run_part(&fields, &setup, recording, &meter).await?).await?;
        *place.borrow_mut() = parts.concat();
        Ok::<_, isles::Error>(())
    });
    ended?;
    Ok(kept.take())
}

/// A small sea with all physics: wind, mixing, land, a slope.
fn small(rows: usize, columns: usize, steps: u64) -> Setup {
    let mut setup = Case::Basin.setup();
    let own = setup.grid;
    (setup.grid.rows, setup.grid.columns, setup.grid.levels) = (rows, columns, 4);
    setup.grid.dx *= own.columns as f64 / columns as f64;
    setup.grid.dy *= own.rows as f64 / rows as f64;
    (setup.stepping.steps, setup.stepping.substeps) = (steps, 3);
    setup.physics.wind = 1e-2;
    setup
}

#[test]
fn all_bits_are_the_same_at_every_tiling_with_tiles_narrower_than_their_halo() {
    let setup = small(10, 13, 6);
    let one = records(&setup, (1, 0), None).unwrap();
    assert_eq!(one.iter().map(|record| record.step).collect::<Vec<_>>(), [0, 2, 4, 6]);
    assert!(one[3].surface.iter().any(|height| height.abs() > 1e-4), "something moves");
    for (rows, columns) in [(1, 2), (2, 1), (3, 1), (1, 5), (2, 3), (10, 1), (1, 13)] {
        let places = (rows * columns) as u32;
        let other = records(&setup, (places, 7), Some(Tiling { rows, columns })).unwrap();
        assert!(other == one, "{rows} x {columns}");
    }
}

#[test]
fn the_longest_step_that_is_allowed_is_stable_and_twice_that_is_not() {
    let mut setup = Case::Kelvin.setup();
    (setup.stepping.steps, setup.grid.levels) = (200, 2);
    let (longest, by) = setup.longest_step();
    assert!(by.starts_with("surface waves"), "{by}");
    setup.stepping.step = longest;
    let last = records(&setup, (1, 0), None).unwrap().pop().unwrap();
    assert!(last.surface.iter().all(|height| height.abs() < 0.2));
    setup.stepping.step = 2.0 * longest;
    let error = records(&setup, (2, 0), None).unwrap_err().to_string();
    assert!(error.contains("the model became unstable before step"), "{error}");
}

#[test]
fn a_tracer_that_is_the_same_everywhere_stays_so_and_one_that_is_not_gets_no_new_extremes() {
    let setup = small(12, 12, 20);
    let all = records(&setup, (2, 0), None).unwrap();
    let wet: Vec<bool> = (0..144).map(|cell| setup.depth(cell / 12, cell % 12) > 0.0).collect();
    let bounds = |record: &Snapshot| {
        let values = record.tracer.iter().zip(&wet).filter(|(_, wet)| **wet).map(|(value, _)| *value);
        values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((_, high), (_, high_after)) = (bounds(&all[0]), bounds(&all[all.len() - 1]));
    assert!(high_after <= high + 1e-12, "the surface is warmest at the start: {high} {high_after}");
    let water = |record: &Snapshot| record.surface.iter().zip(&wet).map(|(height, _)| height).sum::<f64>();
    assert!((water(&all[all.len() - 1]) - water(&all[0])).abs() < 1e-12);
}

#[test]
fn records_are_read_back_from_netcdf_with_the_fill_value_over_land() {
    let setup = small(6, 8, 2);
    let all = records(&setup, (1, 0), None).unwrap();
    let mut bytes = Vec::new();
    write_netcdf(&setup, &all, &mut bytes).unwrap();
    let mut file = FileReader::open_seek_read("records", Box::new(Cursor::new(bytes))).unwrap();
    assert_eq!(file.data_set().get_var("u").unwrap().dim_names(), ["time", "depth", "y", "x"]);
    assert_eq!(file.read_var("time").unwrap(), DataVector::F64(vec![0.0, 600.0]));
    let DataVector::F32(surface) = file.read_var("zeta").unwrap() else { panic!("32 bits") };
    for (cell, height) in surface[48..].iter().enumerate() {
        match setup.depth(cell / 8, cell % 8) > 0.0 {
            true => assert_eq!(*height, all[1].surface[cell] as f32),
            false => assert_eq!(*height, netcdf3::NC_FILL_F32),
        }
    }
}

#[test]
fn a_part_of_the_earth_has_four_edges_in_order() {
    let region = GeoRegion::read("-75, -70,38,42").unwrap();
    assert_eq!((region.west, region.east, region.south, region.north), (-75.0, -70.0, 38.0, 42.0));
    for wrong in ["", "1,2,3", "2,1,0,1", "0,1,1,0", "0,1,-90,0", "0,400,0,1", "a,b,c,d"] {
        assert_eq!(GeoRegion::read(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn the_tracer_at_a_face_lies_between_those_of_its_cells(
        first in -10.0_f64..10.0,
        before in -10.0_f64..10.0,
        rise in -10.0_f64..10.0,
        courant in 0.0_f64..1.0,
    ) {
        let found = at_face(first, before, rise, courant);
        let (low, high) = (first.min(first + rise), first.max(first + rise));
        prop_assert!(found >= low - 1e-12 && found <= high + 1e-12, "{found} of {low} to {high}");
    }
}
