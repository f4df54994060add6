//! Tests of the scheme: the same bits at every tiling, stable steps, no new extremes, and netCDF files that are read
//! back.

use crate::bathymetry::{self, GeoRegion};
use crate::model::{Fields, Tiling, run_part};
use crate::netcdf::write_netcdf;
use crate::records::{Recording, Records, Snapshot, Totals};
use crate::run::Ocean;
use crate::scheme::tracer::at_face;
use crate::setup::{Case, Setup, small};
use isles::Plan;
use isles::prelude::*;
use isles_app::frame::WorkDistributor;
use netcdf3::{DataVector, FileReader};
use proptest::prelude::*;
use std::cell::RefCell;
use std::io::Cursor;
use std::rc::Rc;

/// Returns the snapshots of a run on simulated places, in an order that `seed` fixes.
fn records(setup: &Setup, order: (u32, u64), tiling: Option<Tiling>) -> isles::Result<Vec<Snapshot>> {
    let recording = Recording { every: 2, has_levels: true, kept_from: 0 };
    Ok(recorded(setup, order, tiling, recording)?.snapshots)
}

fn recorded(
    setup: &Setup,
    (places, seed): (u32, u64),
    tiling: Option<Tiling>,
    recording: Recording,
) -> isles::Result<Records> {
    let (kept, setup) = (Rc::new(RefCell::new(Records::default())), setup.clone());
    let place = Rc::clone(&kept);
    let (ended, ..) = isles::simulate(places, Plan::calm(seed), move || async move {
        let meter = WorkDistributor::plain::<Ocean>().meter(None).await?;
        let fields = Fields::new(&setup, tiling).await?;
        let setup = Replicated::new(setup).await?;
        let parts = everywhere!(run_part(&fields, &setup, recording, &meter).await?).await?;
        *place.borrow_mut() = parts.into_iter().next().unwrap_or_default();
        Ok::<_, isles::Error>(())
    });
    ended?;
    Ok(kept.take())
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
fn no_water_is_gained_or_lost_under_wind_beside_land() {
    let setup = small(12, 12, 20);
    let all = records(&setup, (2, 0), None).unwrap();
    let water = |record: &Snapshot| record.surface.iter().sum::<f64>();
    let last = &all[all.len() - 1];
    assert!(last.surface.iter().any(|height| height.abs() > 1e-4), "something moves");
    assert!((water(last) - water(&all[0])).abs() < 1e-12);
}

#[test]
fn snapshots_are_kept_from_the_step_that_is_said_and_sums_of_every_record() {
    let setup = small(6, 8, 9);
    let kept = |every: u64, kept_from: u64| {
        let recording = Recording { every, has_levels: false, kept_from };
        let Records { totals, snapshots } = recorded(&setup, (2, 3), None, recording).unwrap();
        let steps: Vec<u64> = snapshots.iter().map(|snapshot| snapshot.step).collect();
        assert_eq!(totals.len(), 9_usize.div_ceil(every as usize) + 1);
        for snapshot in &snapshots {
            let of_it = totals.iter().find(|totals| totals.step == snapshot.step);
            assert_eq!(of_it, Some(&Totals::of(&setup, snapshot)));
        }
        steps
    };
    assert_eq!(kept(1, 9), [0, 9]);
    assert_eq!(kept(2, 6), [0, 6, 8, 9]);
    assert_eq!(kept(20, 0), [0, 9]);
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

/// Writes a file of heights in whole metres, with one missing cell, from 10 to 13 east and from 40 to 42 north.
fn file_of_heights(path: &std::path::Path, heights: [i16; 12], fill: Option<i16>) {
    let mut set = netcdf3::DataSet::new();
    let axes = [("lat", vec![40.0, 41.0, 42.0]), ("lon", vec![10.0, 11.0, 12.0, 13.0])];
    for (name, values) in &axes {
        set.add_fixed_dim(name, values.len()).unwrap();
        set.add_var_f64(name, &[name]).unwrap();
    }
    set.add_var_i16("height", &["lat", "lon"]).unwrap();
    set.add_var_attr_f64("height", "scale_factor", vec![0.5]).unwrap();
    if let Some(fill) = fill {
        // Twice, because the writer does not pad to a whole word as the format requires.
        set.add_var_attr_i16("height", "_FillValue", vec![fill; 2]).unwrap();
    }
    let mut file = netcdf3::FileWriter::open(path).unwrap();
    file.set_def(&set, netcdf3::Version::Classic, 0).unwrap();
    axes.iter().for_each(|(name, values)| file.write_var_f64(name, values).unwrap());
    file.write_var_i16("height", &heights).unwrap();
    file.close().unwrap();
}

#[test]
fn depths_are_unpacked_and_a_region_outside_of_the_file_or_too_deep_is_refused() {
    let path = std::env::temp_dir().join(format!("isles-ocean-{}.nc", std::process::id()));
    let mut heights = [-2_000; 12];
    heights[5] = i16::MIN;
    let place = |region: [f64; 4]| {
        let [west, east, south, north] = region;
        let mut setup = small(3, 4, 1);
        let region = GeoRegion { west, east, south, north };
        let placed = bathymetry::place(&mut setup, path.to_str().unwrap(), None, region);
        placed.map(|()| setup.bathymetry).map_err(|fault| fault.to_string())
    };
    file_of_heights(&path, heights, Some(i16::MIN));
    let all = [9.5, 13.5, 39.5, 42.5];
    let mut expected = [1_000.0; 12];
    expected[5] = 0.0;
    assert_eq!(place(all).unwrap(), expected);
    for (region, named) in [
        ([20.0, 24.0, 39.5, 42.5], "--region is not within its longitudes; allowed: 10 to 13"),
        ([9.5, 20.0, 39.5, 42.5], "--region is not within its longitudes; allowed: 10 to 13"),
        ([9.5, 13.5, 30.0, 42.5], "--region is not within its latitudes; allowed: 40 to 42"),
    ] {
        let error = place(region).unwrap_err();
        assert!(error.ends_with(named), "{error}");
    }
    // The same longitudes plus 360 degrees.
    assert_eq!(place([369.5, 373.5, 39.5, 42.5]).unwrap(), expected);
    file_of_heights(&path, heights, None);
    let error = place(all).unwrap_err();
    assert!(error.ends_with("its height -16384 lies in --region; allowed: at least -12000 m"), "{error}");
    std::fs::remove_file(path).unwrap();
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
