//! `isles run ocean`: the same bits on every machine and at every tiling, known solutions, files, refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-ocean");

/// Returns the JSON output of `isles run ocean` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("ocean");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn all_bits_are_the_same_on_every_machine_and_at_every_tiling() {
    let sea = "--case basin --rows 24 --columns 30 --levels 4 --steps 10 --substeps 5";
    let one = document(&format!("{sea} --places 1 --machine threads --verify"));
    assert_eq!(one["verification"]["holds"], true, "{one}");
    for (machine, places, tiles) in [
        ("threads", 3, "--tiles 1x3"),
        ("processes", 2, "--tiles 2x1"),
        ("processes", 2, "--tiles 1x2"),
        ("loopback", 6, "--tiles 2x3"),
        ("chip:scc --protocol sections", 48, "--tiles 6x8"),
    ] {
        let other = document(&format!("{sea} --places {places} --machine {machine} {tiles}"));
        assert_eq!(other["hash"], one["hash"], "{places} places, {machine} {tiles}");
        assert_eq!(other["records"], one["records"]);
    }
}

#[test]
fn waves_and_fronts_are_those_of_their_closed_forms() {
    for (case, expected) in [
        ("lake --steps 20", ", the lake is at rest"),
        ("kelvin", ", the Kelvin wave is off by "),
        ("rossby", ", the way of the soliton is off by "),
        ("adjustment", ", the front in balance is off by "),
    ] {
        let document = document(&format!("--case {case} --places 2 --machine threads"));
        assert_eq!(document["verification"]["holds"], true, "{case}: {}", document["verification"]);
        let text = document["verification"]["text"].as_str().unwrap();
        assert!(text.starts_with("water and tracer are conserved") && text.contains(expected), "{text}");
    }
}

#[test]
fn the_surface_is_drawn_and_the_records_are_written_as_netcdf() {
    let scene = Scene::new("ocean-files");
    let line = "--case kelvin --rows 12 --columns 24 --steps 4 --places 2 --machine threads --png k.png --netcdf k.nc";
    let ended = scene.run(&words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("wrote  k.png\nwrote  k.nc\n"), "{ended:?}");
    let bytes = std::fs::read(scene.path("k.png")).unwrap();
    let reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (384, 192));
    let bytes = std::fs::read(scene.path("k.nc")).unwrap();
    assert_eq!(bytes[..4], *b"CDF\x02");
    let table = scene.result("out/ocean-kelvin.csv");
    assert!(table.starts_with("step,volume_m3,tracer,energy,surface_max_m,speed_max_m_s\n0,"), "{table}");
}

#[test]
fn what_cannot_be_computed_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("ocean-refused");
    let text = scene.file("text.nc", "no netCDF");
    let not_netcdf = format!("--bathymetry {} --region 0,1,0,1", text.display());
    for (line, expected) in [
        ("--case channel --step 5000", "--step is 5000; allowed: above 0 and at most"),
        ("--step 2000", "the largest stable one ("),
        ("--step 0", "--step is 0; allowed: above 0 and at most"),
        ("--places 4 --tiles 3x2", "--tiles is 3x2; allowed: RxC with R times C 4"),
        ("--places 2 --tiles 2", "--tiles is 2; allowed: RxC"),
        ("--rows 16384 --columns 16384", "together 268435456 cells"),
        ("--case storm", "--case is \"storm\"; allowed: lake, kelvin, rossby, adjustment, basin, channel"),
        ("--every 1 --steps 1000000 --netcdf x.nc", "--every is 1; allowed: at least "),
        ("--case adjustment --step 1 --steps 200000 --every 1", "for snapshots of at most 4 GiB"),
        ("--bathymetry x.nc --region 1,0,0,1", "--region is 1,0,0,1; allowed: W,E,S,N in degrees"),
        (not_netcdf.as_str(), "text.nc: not a netCDF file of the classic format"),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}
