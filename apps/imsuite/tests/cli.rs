//! `isles run imsuite`: the same answers on every machine, files of the suite's form, refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/damage.rs"]
mod damage;
#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, ended, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-imsuite");

/// The kernels, by their names on the command line.
const KERNELS: [&str; 12] = ["BF", "DST", "BY", "DR", "DS", "KC", "DP", "HS", "LCR", "MIS", "MST", "VC"];

/// Returns the JSON output of `isles run imsuite` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("imsuite");
    let arguments = format!("--json - --csv /dev/null {line}");
    let mut command = scene.isles(&words(&arguments));
    command.env("ISLES_STALL_LIMIT", "60"); // a run that hangs ends, and says where
    let ended = ended(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// All of a result; none of it may depend on the places.
fn answer(document: &Value) -> [&Value; 3] {
    ["rounds", "node_messages", "answers"].map(|name| &document[name])
}

#[test]
fn every_kernel_finds_the_same_on_every_machine() {
    let machines = [("threads", "3"), ("processes", "4"), ("loopback", "2"), ("chip:scc", "48")];
    for (number, kernel) in KERNELS.into_iter().enumerate() {
        let line = format!("--kernel {kernel} --generate 20 --random-seed 5");
        let one = document(&format!("{line} --places 1 --machine threads"));
        assert_eq!(one["verification"]["holds"], true, "{one}");
        assert_eq!((one["answers"].as_array().unwrap().len(), &one["calls"]), (20, &Value::from(0)));
        // Two machines a kernel: over all kernels each machine has its turn with small and with long runs.
        for (machine, places) in [machines[number % 2], machines[2 + number % 2], machines[3]] {
            let other = document(&format!("{line} --places {places} --machine {machine} --ship reachable"));
            assert_eq!(answer(&other), answer(&one), "{kernel}, {places} places, {machine}");
            assert_eq!(other["verification"]["holds"], true);
            assert_eq!((&other["run"]["kernel"], &other["run"]["nodes"]), (&kernel.into(), &20.into()));
        }
    }
}

/// The families of a kernel, as the command names them.
fn families(kernel: &str) -> &'static [&'static str] {
    match kernel {
        "HS" | "LCR" => &["ring"],
        "VC" => &["sparse-min", "chain", "star"],
        _ => &["sparse-max", "sparse-min", "ring", "chain", "star"],
    }
}

/// Most nodes of a network in the long test. Along a ring or a chain DST takes as many rounds as nodes squared, and BY
/// as many messages as nodes cubed.
fn nodes_max(kernel: &str, family: &str) -> usize {
    match (kernel, family) {
        ("DST", "ring" | "chain") | ("BY", _) => 128,
        _ => 512,
    }
}

#[test]
#[ignore = "takes minutes: ./test imsuite"]
fn a_thousand_networks_of_all_kernels_and_families_are_verified_on_every_machine() {
    const RUNS: usize = 1000;
    let cases: Vec<(&str, &str)> = KERNELS
        .into_iter()
        .flat_map(|kernel| families(kernel).iter().map(move |family| (kernel, *family)))
        .collect();
    let mut random = isles::Random::new(1);
    for number in 0..RUNS {
        let (kernel, family) = cases[number % cases.len()];
        let machine = ["threads", "processes", "chip:scc", "loopback"][random.index(4)];
        let sizes =
            [8, 9, 16, 31, 64, 100, 128, 256, 512].map(|size: usize| size.min(nodes_max(kernel, family)));
        let (size, places) = (sizes[random.index(sizes.len())], 1 + random.index(16));
        let line = format!(
            "--kernel {kernel} --generate {size},{family} --random-seed {number} --places {places} --machine {machine}"
        );
        assert_eq!(document(&line)["verification"]["holds"], true, "{line}");
    }
}

#[test]
fn shipping_what_is_reachable_moves_the_matrix_with_each_call() {
    let run = |ship: &str| {
        let line = "--kernel MIS --generate 24,sparse-min --places 3 --machine processes";
        document(&format!("{line} --ship {ship}"))
    };
    let (minimal, reachable) = (run("minimal"), run("reachable"));
    let of = |document: &Value, name: &str| document[name].as_u64().unwrap();
    assert_eq!(of(&minimal, "calls"), of(&reachable, "calls"));
    let more =
        reachable["run"]["bytes_moved"].as_u64().unwrap() - minimal["run"]["bytes_moved"].as_u64().unwrap();
    let calls = of(&minimal, "calls");
    assert!(calls > 10 && more > calls * 24 * 24 * 8, "{more} bytes more in {calls} calls");
}

#[test]
fn a_file_is_read_and_its_result_is_told_and_written() {
    let scene = Scene::new("imsuite-file");
    let file = scene.file("ring.txt", "4\n7\n90\n3\n12\n");
    let line = format!("--kernel lcr --input {} --places 2", file.display());
    let ended = scene.run(&words(&line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.starts_with("LCR on 4 nodes with 4 edges; 2 places (processes)\nrounds "),
        "{ended:?}"
    );
    let checked = "\nchecked  all nodes take node 1 for the leader, which has the greatest identifier, 90\n";
    assert!(ended.stdout.contains(checked), "{ended:?}");
    assert_eq!(scene.result("out/imsuite-LCR.csv"), "node,answer\n0,1\n1,1\n2,1\n3,1\n");
}

#[test]
fn a_file_of_another_system_gives_what_its_own_form_gives() {
    let scene = Scene::new("imsuite-endings");
    let plain = "3\n0\n010\n101\n010\n";
    let utf16: Vec<u8> = format!("\u{feff}{plain}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let answers = [
        plain.as_bytes().to_vec(),
        format!("\u{feff}{}", plain.replace('\n', "\r\n")).into_bytes(),
        plain.replace('\n', "\r").into_bytes(),
        utf16,
    ]
    .map(|bytes| document(&format!("--kernel BF --input {}", scene.file("net.txt", bytes).display())));
    assert_eq!(answer(&answers[0])[2], &serde_json::json!([[0], [1], [2]]));
    for other in &answers[1..] {
        assert_eq!(answer(other), answer(&answers[0]));
    }
}

#[test]
fn what_cannot_be_run_is_refused_in_a_line() {
    let scene = Scene::new("imsuite-refused");
    let name = scene.file("net.txt", "2\n01\n1\n").display().to_string();
    let sparse = scene.file("sparse.txt", "2\n").display().to_string();
    std::fs::File::options().write(true).open(&sparse).and_then(|file| file.set_len(8 << 30)).unwrap();
    let endless = scene.run(&words("--kernel MIS --input /dev/zero"));
    assert!(endless.refusal().starts_with("error: /dev/zero: line 1: "), "{endless:?}");
    for (line, expected) in [
        (
            "--kernel LCR --generate 8,star",
            "--generate is \"8,star\"; LCR is not defined on that family; allowed: ring",
        ),
        (
            "--kernel KC --generate 8 --committee 9",
            "--generate is \"8\"; K is 9; allowed: 1 to 8, the number of nodes",
        ),
        (
            "--kernel MIS --generate 1025 --ship reachable",
            "--ship is \"reachable\"; allowed: minimal, because there are 1025 nodes and reachable takes at most 1024",
        ),
        (
            "--kernel MIS --input /no/such/file",
            "/no/such/file: cannot be read: No such file or directory (os error 2)",
        ),
        (
            &format!("--kernel MIS --input {sparse}"),
            &format!("{sparse}: cannot be read: it has more than 16 MiB; allowed: at most 16 MiB"),
        ),
        (
            &format!("--kernel MIS --input {name}"),
            &format!("{name}: line 3: \"1\"; allowed: 2 entries of a row of the matrix, each 0 or 1"),
        ),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!(ended.refusal(), format!("error: {expected}"));
    }
    for line in
        ["--kernel XY --generate 8", "--kernel BF", "--generate 8", "--kernel BF --generate 8 --input net"]
    {
        assert_eq!(scene.run(&words(line)).code, Some(2), "{line}");
    }
}

#[test]
fn damaged_files_are_refused_in_one_line_or_run_as_what_they_say() {
    let scene = Scene::new("imsuite-damaged");
    let forms = [
        ("BF", "3\n0\n010\n101\n010\n"),
        ("LCR", "3\n5\n2\n9\n"),
        ("MST", "3\n011\n101\n110\n \n0\n3\n4\n3\n0\n5\n4\n5\n0\n"),
    ];
    for seed in 0..damage::rounds(25) {
        for (kernel, text) in forms {
            let mut dice = damage::Dice::new(seed);
            let same = damage::of_another_system(text, &mut dice);
            let bytes = damage::damaged(text.as_bytes(), &mut dice);
            for (bytes, is_same) in [(same, true), (bytes, false)] {
                let file = scene.file("net.txt", &bytes).display().to_string();
                let line = format!(
                    "--kernel {kernel} --input {file} --machine threads --places 1 --json - --csv /dev/null"
                );
                let found = scene.run(&words(&line));
                let is_right = found.code == Some(0) && found.stdout.contains("\"holds\":true");
                let title = format!("seed {seed}: {} gave {found:?}", String::from_utf8_lossy(&bytes));
                assert!(is_right || !is_same && found.refusal().len() < 600, "{title}");
            }
        }
    }
}
