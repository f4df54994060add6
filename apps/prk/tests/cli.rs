//! `isles run prk`: each kernel checks itself on each machine, also where parts are uneven; refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Ended, Scene, ended, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-prk");

fn run(line: &str) -> Ended {
    let scene = Scene::new("prk");
    let mut command = scene.program(PROGRAM);
    command.args(words(line));
    ended(command)
}

/// Returns the JSON output of a run of a kernel, which must be right.
fn document(line: &str) -> Value {
    let ended = run(&format!("--json - --csv /dev/null {line}"));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["verification"]["holds"], true, "{line}: {document}");
    document
}

#[test]
fn each_kernel_is_right_on_each_machine() {
    for machine in ["threads", "processes", "loopback", "chip:scc"] {
        for (kernel, unit) in [
            ("stencil --places 6 --order 29", "MFlops/s"),
            ("stencil --places 5 --order 9 --radius 4", "MFlops/s"),
            ("stencil --places 3 --order 14 --radius 1", "MFlops/s"),
            ("transpose --places 3 --order 37", "MB/s"),
            ("transpose --places 5 --order 4", "MB/s"),
            ("p2p --places 4 --columns 30 --rows 11", "MFlops/s"),
            ("p2p --places 1 --columns 5 --rows 7", "MFlops/s"),
            ("nstream --places 3 --length 1001", "MB/s"),
        ] {
            let found = document(&format!("--machine {machine} --iterations 3 --kernel {kernel}"));
            assert_eq!(found["unit"], unit);
            // On the loopback time stands still.
            assert!(machine == "loopback" || found["kernel_rate"].as_f64().unwrap() > 0.0, "{found}");
        }
        let random = document(&format!("--machine {machine} --kernel random --places 2 --bits 9 --ratio 16"));
        assert_eq!(random["unit"], "GUPS/s");
    }
}

/// Parts of one row, column or point, and places without any. The check of p2p is (iterations + 1) × (columns + rows
/// - 2) in its last cell, as the Parallel Research Kernels have it.
#[test]
fn each_kernel_is_right_at_the_smallest_sizes_that_are_allowed() {
    let right = |line: &str| {
        for machine in ["threads", "chip:scc"] {
            document(&format!("--machine {machine} {line}"));
        }
    };
    for places in [1, 2, 3, 4, 5, 7, 8, 12] {
        for columns in
            [2, places + 1, places + 2, 2 * places - 1, 2 * places].into_iter().filter(|own| *own > places)
        {
            right(&format!("--kernel p2p --columns {columns} --rows 2 --iterations 3 --places {places}"));
        }
        for radius in (1..=4).filter(|radius| (2 * radius + 1) * (2 * radius + 1) >= places) {
            let order = 2 * radius + 1;
            right(&format!(
                "--kernel stencil --radius {radius} --order {order} --iterations 2 --places {places}"
            ));
        }
        for size in [1, 2, places - 1, places + 1].into_iter().filter(|size| *size > 0) {
            right(&format!("--kernel transpose --order {size} --iterations 2 --places {places}"));
            right(&format!("--kernel nstream --length {size} --iterations 2 --places {places}"));
        }
    }
    for (places, bits, ratio) in
        [(1, 1, 1024), (2, 1, 2048), (2, 11, 2), (4, 2, 2048), (8, 3, 2048), (8, 14, 1)]
    {
        right(&format!("--kernel random --bits {bits} --ratio {ratio} --places {places}"));
    }
    for line in [
        "p2p --columns 49 --rows 2",
        "p2p --columns 64 --rows 64",
        "stencil --order 7 --radius 3",
        "transpose --order 1",
    ] {
        document(&format!("--machine chip:scc --places 48 --iterations 2 --kernel {line}"));
    }
}

#[test]
fn the_stencil_over_shared_pages_has_the_bits_of_the_one_over_parts() {
    for size in ["--order 29", "--order 9 --radius 4", "--order 300 --radius 1", "--order 7 --radius 3"] {
        let size = format!("--kernel stencil --iterations 3 {size}");
        let parts = document(&format!("{size} --machine processes --places 3 --memory parts"));
        assert!(parts["digest"].is_string() && parts["pages"].is_null(), "{parts}");
        for (model, machine, places) in [
            ("exclusive", "processes", 3),
            ("strong", "threads", 2),
            ("strong", "processes", 9),
            ("release", "processes", 2),
            ("release", "processes", 5),
            ("release", "threads", 4),
        ] {
            let line = format!("{size} --machine {machine} --places {places} --memory svm --model {model}");
            let pages = document(&line);
            assert_eq!(pages["digest"], parts["digest"], "{line}");
            assert!(pages["pages"]["faults"].as_u64() > Some(0), "{line}: {pages}");
        }
    }
}

#[test]
fn the_lines_are_those_of_the_kernels() {
    let stdout = run("--kernel nstream --length 100000 --places 1 --json /dev/null --csv /dev/null").stdout;
    let mut lines = stdout.lines().skip_while(|line| *line != "Solution validates").skip(1);
    let rate: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let ["Rate", "(MB/s):", rate, "Avg", "time", "(s):", time] = rate[..] else { panic!("{stdout}") };
    let moved = rate.parse::<f64>().unwrap() * time.parse::<f64>().unwrap() * 1e6;
    // Four vectors of 100,000 doubles, as far as six digits say.
    assert!((moved / 3_200_000.0 - 1.0).abs() < 0.1, "{stdout}");
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    for (line, expected) in [
        ("--kernel heat", "--kernel is \"heat\"; allowed: stencil, transpose, p2p, nstream, random"),
        (
            "--kernel nstream --order 3",
            "--order is not for --kernel nstream; allowed with: stencil, transpose",
        ),
        ("--kernel random --iterations 3", "--iterations is not for --kernel random; allowed with: stencil"),
        ("--kernel stencil --order 4", "--order is 4; allowed with a radius of 2: at least 5"),
        ("--kernel p2p --columns 3 --places 3", "--columns is 3; allowed with 3 places: more than these"),
        ("--kernel random --places 3", "--places is 3; allowed with --kernel random: a power of two"),
        ("--kernel random --ratio 3", "--ratio is 3; allowed: a power of two"),
        (
            "--kernel random --bits 3 --places 1",
            "--bits 3 and --ratio 16 make 128 updates per place; allowed with 1 places: at least 2048",
        ),
        ("--kernel nstream --length 1000000000000", "the array has 24000000000000 bytes, but this host has "),
        ("--kernel transpose --order 1048576", "the array has 17592186044416 bytes, but this host has "),
        ("--kernel nstream --memory svm", "--memory is not for --kernel nstream; allowed with: stencil"),
        (
            "--kernel stencil --model strong",
            "--model is not for --memory parts; allowed only with --memory svm",
        ),
        (
            "--kernel stencil --memory svm --machine chip:scc",
            "--memory is \"svm\" with machine chip:scc; allowed with svm: processes, threads, mpi",
        ),
        (
            "--kernel stencil --memory svm --model lazy",
            "--model is \"lazy\"; allowed: exclusive, strong, release",
        ),
        ("--kernel p2p --iterations 0", "0 is not in 1..=1000000000"),
    ] {
        let ended = run(line);
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{line}: {}", ended.stderr);
    }
}

#[test]
fn a_run_names_all_files_that_it_has_written() {
    let scene = Scene::new("prk-files");
    let own = "wrote  out/prk-nstream.json\nwrote  out/prk-nstream.csv\n";
    for (machine, files) in [("threads", "--trace t.trace"), ("chip:scc", "--trace t.trace --links l.csv")] {
        let line = format!("--kernel nstream --length 100 --places 2 --machine {machine} {files}");
        let mut command = scene.program(PROGRAM);
        command.args(words(&line));
        let ended = ended(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let (_, named) = ended.stdout.split_once(own).expect("its own files come first");
        let mut named: Vec<&str> = named.lines().collect();
        named.sort_unstable();
        let expected = ["wrote  l.csv", "wrote  t.trace"];
        assert_eq!(named, expected[usize::from(machine == "threads")..], "{machine}");
    }
}
