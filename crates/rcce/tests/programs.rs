//! Tests of C programs with `isles-rcce cc` and `rccerun`: the examples verify and print the same on processes and on
//! the chip; corner cases of the interface behave as in RCCE; stuck runs end with an error line.

#[path = "../../cli/tests/command/page_block.rs"]
mod page_block;

use page_block::assert_shown;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CHIP: &[&str] = &["--machine", "chip:scc"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of this test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn started() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isles-rcce"));
    command.env("ISLES_CACHE", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles `source` with `options`, and returns the program.
fn compiled(source: &Path, options: &[&str], folder: &Path) -> PathBuf {
    let program = folder.join(format!("{}{}", source.file_stem().unwrap().display(), options.concat()));
    let mut command = started();
    command.arg("cc").args(["-Wall", "-Wextra", "-Werror"]).args(options).arg(source).arg("-o").arg(&program);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

fn example(name: &str, options: &[&str], folder: &Path) -> PathBuf {
    compiled(&root().join("examples/c").join(name), options, folder)
}

fn test_program(name: &str, options: &[&str], folder: &Path) -> PathBuf {
    compiled(&root().join("crates/rcce/tests/c").join(name), options, folder)
}

fn run(ranks: u32, machine: &[&str], program: &Path, words: &[&str]) -> Output {
    let mut command = started();
    command.arg("rccerun").args(["-n", &ranks.to_string()]).args(machine).arg("--").arg(program).args(words);
    command.output().unwrap()
}

/// Runs the program, which must succeed, and returns its standard output.
fn printed(ranks: u32, machine: &[&str], program: &Path, words: &[&str]) -> String {
    let output = run(ranks, machine, program, words);
    assert!(output.status.success(), "{ranks} {machine:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Returns the line and the exit code of a run that fails.
fn failed(ranks: u32, machine: &[&str], program: &Path, words: &[&str]) -> (String, Option<i32>) {
    let output = run(ranks, machine, program, words);
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "{line}");
    (line, output.status.code())
}

#[test]
fn the_examples_verify_and_print_the_same_on_both_machines() {
    let folder = scratch("examples");
    for name in ["hello", "shift", "stencil", "share", "bt", "lu"] {
        let program = example(&format!("{name}.c"), &[], &folder);
        for ranks in [1, 2, 5] {
            let on_host = printed(ranks, &[], &program, &[]);
            assert_eq!(on_host, printed(ranks, CHIP, &program, &[]), "{name} on {ranks}");
            if name != "hello" {
                assert!(on_host.ends_with("Verification SUCCESSFUL\n"), "{name} on {ranks}: {on_host}");
            }
        }
    }
}

#[test]
fn a_rank_in_a_process_of_its_own_prints_the_same_and_makes_the_same_requests() {
    let folder = scratch("isolate");
    let program = example("lu.c", &[], &folder);
    let json = |isolate: &str| {
        let file = folder.join(isolate);
        let machine = [CHIP, &["--isolate", isolate, "--json", file.to_str().unwrap()]].concat();
        let printed = printed(3, &machine, &program, &[]);
        let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        (printed, document["requests"].as_u64().unwrap())
    };
    assert_eq!(json("copy"), json("process"));
    let stuck = test_program("stuck.c", &[], &folder);
    let machine = [CHIP, &["--isolate", "process"]].concat();
    assert!(failed(3, &machine, &stuck, &["ring"]).0.starts_with("error: deadlock: rank 0 in RCCE_send"));
    assert_eq!(failed(2, &machine, &stuck, &["exit"]).0, "error: rank 1 has ended with exit code 7\n");
}

#[test]
fn both_kinds_of_flags_have_the_same_results_and_a_bit_takes_more_requests() {
    let folder = scratch("flags");
    let run = |options: &[&str]| {
        let program = example("lu.c", options, &folder);
        let json = folder.join("model.json");
        let machine = [CHIP, &["--json", json.to_str().unwrap()]].concat();
        let printed = printed(3, &machine, &program, &[]);
        let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let requests = document["requests"].as_u64().unwrap();
        (printed, requests, document["predicted_seconds"].as_f64().unwrap())
    };
    let (line, bit) = (run(&[]), run(&["--bit-flags"]));
    assert_eq!(line.0, bit.0);
    // Times also vary with the addresses of the program's data, by about a hundredth.
    assert!(bit.1 > line.1, "{} against {}", bit.1, line.1);
    assert_eq!(run(&[]), line, "the same run takes the same time of the chip");
}

#[test]
fn a_ping_pong_delivers_every_length_by_rcce_and_ircce() {
    let folder = scratch("pingpong");
    for options in [
        &[][..],
        &["-DIRCCE"],
        &["-DIRCCE", "--bit-flags"],
        &["-DIRCCE", "-DPIPELINED"],
        &["-DIRCCE", "-DPIPELINED", "--bit-flags"],
    ] {
        let program = example("pingpong.c", options, &folder);
        for machine in [&[][..], CHIP] {
            let output = run(2, machine, &program, &[]);
            let (printed, stderr) = (text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{options:?} {machine:?}: {stderr}");
            assert_eq!(printed.lines().count(), 15);
            assert!(printed.ends_with("Verification SUCCESSFUL\n"), "{options:?} {machine:?}: {printed}");
            if machine == CHIP {
                assert_shown("rcce.md", "crates/rcce/tests/programs.rs: chip", &stderr);
            }
        }
    }
}

#[test]
fn a_pipelined_message_and_a_multicast_take_less_time_of_the_chip() {
    let folder = scratch("pipelined");
    let seconds = |program: &Path, ranks: u32, words: &[&str]| {
        let json = folder.join("model.json");
        printed(ranks, &[CHIP, &["--json", json.to_str().unwrap()]].concat(), program, words);
        let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        document["predicted_seconds"].as_f64().unwrap()
    };
    let ping_pong = |options: &[&str]| seconds(&example("pingpong.c", options, &folder), 2, &["65536"]);
    let (plain, pipelined) = (ping_pong(&["-DIRCCE"]), ping_pong(&["-DIRCCE", "-DPIPELINED"]));
    assert!(pipelined < plain, "{pipelined} s pipelined, {plain} s by requests");
    let multicast = test_program("multicast.c", &[], &folder);
    let (one_by_one, at_once) = (seconds(&multicast, 8, &["sends"]), seconds(&multicast, 8, &["multicast"]));
    assert!(at_once < one_by_one, "{at_once} s by a multicast, {one_by_one} s by sends");
}

#[test]
fn the_interface_is_that_of_rcce() {
    let folder = scratch("interface");
    for (name, options) in
        [("gory.c", &[][..]), ("simple.c", &[]), ("simple.c", &["--bit-flags"]), ("power.c", &[])]
    {
        let program = test_program(name, options, &folder);
        for machine in [&[][..], CHIP] {
            assert_eq!(printed(4, machine, &program, &[]), "ok\n", "{name} {options:?} {machine:?}");
        }
    }
}

#[test]
fn a_divider_that_the_chip_refuses_is_not_booked() {
    let folder = scratch("refused");
    let program = test_program("refused.c", &[], &folder);
    let scc = std::fs::read_to_string(root().join("chips/scc.toml")).unwrap();
    let few = scc.replace("dividers = [2, 16]", "dividers = [2, 12]");
    assert_ne!(few, scc);
    let chip = folder.join("few.toml");
    std::fs::write(&chip, few).unwrap();
    let machine = format!("chip:{}", chip.display());
    assert_eq!(printed(4, &["--machine", &machine], &program, &[]), "ok\n");
}

/// The program is single-stepped by a flag of this processor.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_logged_call_that_is_overwritten_meanwhile_is_not_compared() {
    let folder = scratch("order");
    let program = test_program("order.c", &[], &folder);
    assert_eq!(printed(1, &[], &program, &[]), "ok\n");
}

#[test]
fn requests_of_ircce_end_in_any_order() {
    let folder = scratch("requests");
    for options in [&[][..], &["--bit-flags"]] {
        let program = test_program("requests.c", options, &folder);
        for machine in [&[][..], CHIP] {
            assert_eq!(printed(4, machine, &program, &[]), "ok\n", "{options:?} {machine:?}");
        }
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let folder = scratch("deadlock");
    let program = test_program("stuck.c", &[], &folder);
    let bits = test_program("stuck.c", &["--bit-flags"], &folder);
    for (program, machine) in [(&program, &[][..]), (&program, CHIP), (&bits, &[]), (&bits, CHIP)] {
        let (line, code) = failed(3, machine, program, &["ring"]);
        let ring = "error: deadlock: rank 0 in RCCE_send for rank 1, rank 1 in RCCE_send for rank 2, rank 2 in \
                    RCCE_send for rank 0\n";
        assert_eq!((line.as_str(), code), (ring, Some(1)), "{machine:?}");
        assert_shown("rcce.md", "crates/rcce/tests/programs.rs: deadlock", &line);
    }
    for machine in [&[][..], CHIP] {
        let (line, code) = failed(2, machine, &program, &["gone"]);
        let gone =
            "error: rank 1 has ended without RCCE_finalize; deadlock: rank 0 in RCCE_recv for rank 1\n";
        assert_eq!((line.as_str(), code), (gone, Some(1)), "{machine:?}");
        let (line, code) = failed(2, machine, &program, &["exit"]);
        assert_eq!(
            (line.as_str(), code),
            ("error: rank 1 has ended with exit code 7\n", Some(1)),
            "{machine:?}"
        );
        let of = |words| [format!("RCCE_malloc({words}) at rank"), "RCCE_shmalloc(64) at rank 1".into()];
        for (how, calls) in
            [("order", of(32)), ("more", ["RCCE_finalize(0) at rank".into(), of(32)[1].clone()])]
        {
            let (line, code) = failed(3, machine, &program, &[how]);
            assert!(line.starts_with("error: collective call 9 is "), "{how}: {line}");
            assert!(calls.iter().all(|call| line.contains(call)), "{how}: {line}");
            assert_eq!(code, Some(1));
        }
    }
}

#[test]
fn a_rank_of_a_chip_that_fails_or_spins_is_named_with_its_function() {
    let folder = scratch("faults");
    let program = test_program("stuck.c", &["-O0"], &folder);
    for (how, expected) in [
        (
            "fault",
            "error: rank 1 was ended by signal 11: a bad access to memory, or a stack of more than 8 MiB",
        ),
        (
            "deep",
            "error: rank 1 was ended by signal 11: a bad access to memory, or a stack of more than 8 MiB",
        ),
        ("spin", "error: rank 1 has made no call for 1 s"),
    ] {
        let (line, code) = failed(2, &[CHIP, &["--watchdog", "1"]].concat(), &program, &[how]);
        let function = match how {
            "fault" => "bad_access",
            "deep" => "too_deep",
            _ => "main",
        };
        assert!(line.starts_with(expected), "{line}");
        assert!(!cfg!(target_arch = "x86_64") || line.contains(&format!("(it is in {function})")), "{line}");
        assert_eq!(code, Some(1), "{line}");
    }
}

#[test]
fn bad_input_is_one_line_with_exit_code_2() {
    let folder = scratch("bad");
    let program = example("hello.c", &[], &folder);
    let shell = Path::new("/bin/sh");
    for (ranks, machine, program, expected) in [
        (49, &[][..], &*program, "--ranks is \"49\"; allowed: 1 to 48"),
        (2, &["--machine", "threads"], &program, "--machine is \"threads\"; allowed: processes, chip:NAME"),
        (2, &["--machine", "chip:none"], &program, "chip is \"none\""),
        (2, &["--machine", "chip:scc", "--preset", "1"], &program, "--preset 1: "),
        (2, &["--machine", "chip:bluegene-p"], &program, "chip:bluegene-p has no message buffers"),
        (2, &["--preset", "533/800/800"], &program, "--preset cannot be combined with --machine processes"),
        (2, &["--machine", "chip:scc", "--json", "/nowhere/x"], &program, "--json: cannot write /nowhere/x"),
        (2, &[], shell, "isles rccerun cannot run /bin/sh: "),
        (2, CHIP, shell, "isles rccerun cannot run /bin/sh: "),
        (2, &[], Path::new("/nowhere"), "cannot read the program /nowhere"),
    ] {
        let (line, code) = failed(ranks, machine, program, &[]);
        assert!(line.contains(expected), "{line} has no {expected}");
        assert_eq!(code, Some(2), "{line}");
    }
    let folder = scratch("compiler");
    let program = folder.join("hello");
    let words = [
        OsStr::new("cc"),
        root().join("examples/c/hello.c").as_os_str(),
        OsStr::new("-o"),
        program.as_os_str(),
    ]
    .map(OsStr::to_owned);
    let spoken = started().args(&words).env("CC", "cc -DHELLO_FROM_CC -v").output().unwrap();
    assert!(
        spoken.status.success() && text(&spoken.stderr).contains("HELLO_FROM_CC"),
        "CC may have arguments"
    );
    assert!(printed(2, &[], &program, &[]).ends_with("hello from rank 1 of 2\n"));
    let none = started().args(["cc", "x.c"]).env("CC", "isles-no-such-compiler").output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no C compiler isles-no-such-compiler"), "{}", text(&none.stderr));
}
