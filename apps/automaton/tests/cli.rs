//! `isles run automaton`: the same generations on every machine whichever way edges go, pictures, refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-automaton");

/// Returns the JSON output of `isles run automaton` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("automaton");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_generations_are_the_same_on_every_machine_whichever_way_edges_go() {
    let field = "--pattern random --rows 50 --columns 320 --generations 40 --rule B36/S23";
    let one = document(&format!("{field} --places 1 --machine threads --verify"));
    assert_eq!(one["verification"]["holds"], true, "{one}");
    assert_eq!(one["hashes"].as_array().unwrap().len(), 41);
    for exchange in ["one-sided", "two-sided", "queued"] {
        for (machine, places) in [
            ("threads", 3),
            ("processes", 2),
            ("loopback", 5),
            ("chip:scc", 7),
            ("chip:scc --protocol sections", 28),
        ] {
            let other =
                document(&format!("{field} --exchange {exchange} --places {places} --machine {machine}"));
            assert_eq!(other["hashes"], one["hashes"], "{exchange}, {places} places, {machine}");
            assert_eq!(other["populations"], one["populations"]);
        }
    }
    for (exchange, places) in [("served", 2), ("served", 4), ("served-buffers --window-lines 64", 4)] {
        let other = document(&format!("{field} --exchange {exchange} --places {places} --machine chip:scc"));
        assert_eq!(other["hashes"], one["hashes"], "{exchange}, {places} places");
    }
}

/// The populations are those of `bgolly` 3.3 (Debian 12).
#[test]
fn a_gun_fires_and_is_drawn() {
    let scene = Scene::new("automaton-gun");
    let line = "--rows 160 --columns 640 --generations 300 --places 2 --machine threads --exchange queued --verify \
                --png life.png --gif life.gif --gif-every 30";
    let ended = scene.run(&words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heading = "gosper-gun on 160 × 640 cells, B3/S23, 300 steps, queued; 2 places (threads)\n";
    assert!(ended.stdout.starts_with(heading), "{ended:?}");
    assert!(ended.stdout.contains("\ngeneration  300\npopulation  86\nhash        "), "{ended:?}");
    assert!(
        ended.stdout.contains("\nchecked  all 301 generations are those of one processor\n"),
        "{ended:?}"
    );
    assert!(ended.stdout.ends_with("wrote  life.png\nwrote  life.gif\n"), "{ended:?}");
    let bytes = |name| std::fs::read(scene.path(name)).unwrap();
    let decoder = png::Decoder::new(std::io::Cursor::new(bytes("life.png")));
    let mut reader = decoder.read_info().unwrap();
    let mut image = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut image).unwrap();
    let black: u32 = image.iter().map(|byte| byte.count_zeros()).sum();
    // Of the large field the gun and its gliders are shown, each cell as a square.
    let ((width, height), dots) = (reader.info().size(), f64::from(black / 86).sqrt() as u32);
    assert_eq!((black, dots > 1), (86 * dots * dots, true), "{width} x {height}");
    assert!(width <= 512 && height <= 512 && width % dots == 0 && height % dots == 0, "{width} x {height}");
    let gif = bytes("life.gif");
    let mut decoder = gif::DecodeOptions::new().read_info(gif.as_slice()).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        frames.push(frame.buffer.iter().filter(|dot| **dot == 1).count());
    }
    let dots = frames[0] / 36;
    assert_eq!((frames.len(), frames[0], frames[10]), (11, 36 * dots, 86 * dots));
}

#[test]
fn a_pattern_of_a_file_is_run() {
    let scene = Scene::new("automaton-file");
    let toad = scene.file("toad.rle", "#N Toad\nx = 4, y = 2, rule = B3/S23\nb3o$3o!\n");
    let line = format!("--file {} --rows 8 --columns 8 --generations 2 --places 3 --csv -", toad.display());
    let ended = scene.run(&words(&line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "generation,population,hash");
    assert!(lines[1].starts_with("0,6,") && lines[2].starts_with("1,6,"), "{ended:?}");
    assert_eq!(lines[1].split_once(',').unwrap().1, lines[3].split_once(',').unwrap().1, "its period is 2");
    assert_ne!(lines[1].split_once(',').unwrap().1, lines[2].split_once(',').unwrap().1);
}

/// Files of Life as they lie on LifeWiki and as Golly writes them, with the populations that Golly finds.
#[test]
fn files_as_golly_reads_them_have_its_populations() {
    let scene = Scene::new("automaton-golly");
    for (name, text, populations) in [
        ("marked", "#C x and y are alive\nx = 7, y = 1, rule = B3/S23\nx2b2yo!\n", [4, 3, 3]),
        ("comments", "x = 3, y = 3, rule = B3/S23\n#C a\nbob$2bo$\n#C b\n3o!\n", [5, 5, 5]),
        ("lower-case", "x = 3, y = 3, rule = b3s23\nbob$2bo$3o!\n", [5, 5, 5]),
        ("small-head", "x = 2, y = 2, rule = B3/S23\nbob$2bo$3o!\n", [5, 5, 5]),
        ("empty", "x = 0, y = 0, rule = B3/S23\n!\n", [0, 0, 0]),
    ] {
        let file = scene.file(&format!("{name}.rle"), text).display().to_string();
        let found = document(&format!("--file {file} --rows 64 --columns 64 --generations 6 --places 2"));
        let found: Vec<u64> = (0..3).map(|step| found["populations"][step].as_u64().unwrap()).collect();
        assert_eq!(found, populations, "{name}");
    }
}

#[test]
fn what_cannot_run_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("automaton-refused");
    let bad = scene.file("bad.rle", "x = 3, y = 3\nbo$2bz$3o!\n");
    for (line, expected) in [
        (
            "--pattern gosper",
            "--pattern is \"gosper\"; allowed: glider, gosper-gun, breeder, random; for an RLE file use --file",
        ),
        (
            "--pattern ./gun.rle",
            "--pattern is \"./gun.rle\"; allowed: glider, gosper-gun, breeder, random; for an RLE file use --file",
        ),
        (
            &*format!("--file {}", bad.display()),
            "bad.rle: line 2, column 6: 'z'; allowed: a number, b, o, $ or !",
        ),
        ("--file none.rle", "none.rle: "),
        ("--rule B3", "--rule is \"B3\"; allowed: B and S with digits from 0 to 8, such as B3/S23, or 23/3"),
        ("--columns 100", "--columns is 100; allowed: a multiple of 8"),
        ("--rows 3 --places 4 --pattern random", "--rows is 3; allowed: at least 4, one for each place"),
        ("--pattern glider --columns 65536 --rows 65536", "allowed: at most 1073741824 cells in total"),
        (
            "--rows 5 --places 1",
            "--rows is 5 and --columns 8192; allowed: at least 9 and 36, the size of the pattern",
        ),
        ("--gif a.gif --gif-every 1 --generations 2000", "--gif-every is 1; allowed: at most 1000 pictures"),
        ("--png a.gif --gif a.gif", "--gif is \"a.gif\""),
        ("--png none/a.png", "--png is \"none/a.png\""),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}
