//! `isles bare` as a user runs it: images are built, run by QEMU, and refused.
//!
//! Tests that run images report that they are skipped, and why, if there is no QEMU or Rust has no target for bare
//! cores; `./test --long bare` installs both. `ISLES_TEST_ROUNDS` is the number of times that cores print their ids
//! and meet.

#[path = "../../cli/tests/command/page_block.rs"]
mod page_block;

use page_block::assert_shown;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// The root of the sources.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn bare(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isles-bare")).args(words).current_dir(root()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the missing requirement for running images here, with the remedy; `None` if there is none.
fn missing() -> Option<&'static str> {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("qemu-system-x86_64") {
        return Some("no qemu-system-x86_64: apt-get install qemu-system-x86");
    }
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap().stdout;
    let target = Path::new(text(&sysroot).trim()).join("lib/rustlib/x86_64-unknown-none");
    (!target.is_dir()).then_some("no target: rustup target add x86_64-unknown-none")
}

/// Builds an image, and checks that it has at most 64 KiB. `words` are the arguments of `isles bare build`.
fn build(name: &str, words: &[&str]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let image = file(name);
    let out = bare(&[&["build"], words, &["-o", image.to_str().unwrap()]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let bytes = fs::metadata(&image).unwrap().len();
    assert!(bytes <= 64 << 10, "{name} has {bytes} bytes");
    image
}

fn build_rust(program: &str) -> PathBuf {
    build(&format!("{program}.img"), &["bare-metal/examples", "--bin", program])
}

/// Builds an image of a program of `examples/c`.
fn build_rcce(program: &str, options: &[&str]) -> PathBuf {
    let source = format!("examples/c/{program}.c");
    build(&format!("{program}{}.img", options.concat()), &[&[&*source], options].concat())
}

/// Runs an image on cores; returns the exit code, the lines of each core, and standard error.
fn run(cores: &[usize], image: &Path, arguments: &[&str]) -> (i32, Vec<Vec<String>>, String) {
    let list: Vec<String> = cores.iter().map(usize::to_string).collect();
    let (list, image) = (list.join(","), image.to_str().unwrap());
    run_words(&[&["--cores", &list, "--", image], arguments].concat(), cores)
}

fn run_words(words: &[&str], cores: &[usize]) -> (i32, Vec<Vec<String>>, String) {
    let out = bare(&[&["run", "--limit", "300"], words].concat());
    let stdout = text(&out.stdout);
    let of_core = |core: &usize| {
        let begin = format!("[{core:02}]: ");
        stdout.lines().filter_map(|line| line.strip_prefix(&begin)).map(String::from).collect()
    };
    (out.status.code().unwrap(), cores.iter().map(of_core).collect(), text(&out.stderr))
}

macro_rules! needs_machines {
    () => {
        if let Some(why) = missing() {
            println!("skipped: {why}");
            return;
        }
    };
}

#[test]
fn cores_print_their_ids_and_meet_at_barriers() {
    needs_machines!();
    let image = build_rust("ids");
    let all = [&[5, 47][..], &[0, 1, 24, 47], &[0, 1, 2, 3, 4, 5, 6, 7]];
    let rounds = std::env::var("ISLES_TEST_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    for (round, cores) in (0..rounds).flat_map(|round| all.map(|cores| (round, cores))) {
        let (code, lines, stderr) = run(cores, &image, &[]);
        assert_eq!(code, 0, "round {round}: {lines:?} {stderr}");
        for (rank, (core, lines)) in cores.iter().zip(lines).enumerate() {
            let of = format!("core {core} is rank {rank} of {}, tile ", cores.len());
            assert!(lines[0].starts_with(&of) && lines[0].ends_with(", 533 and 800 MHz"), "{lines:?}");
            assert!(lines[1].starts_with("101 barriers, "), "{lines:?}");
        }
    }
    println!("2, 4 and 8 cores met {rounds} of {rounds} times");
}

#[test]
fn a_division_by_zero_dumps_its_core_and_the_others_get_an_error() {
    needs_machines!();
    let (code, lines, stderr) = run(&[3, 9, 30], &build_rust("divide"), &[]);
    assert_eq!(code, 1, "{stderr}");
    assert!(lines[2][0].starts_with("exception 0 (divide error) at 0x10"), "{lines:?}");
    assert_eq!(lines[2][1], "core 30, rank 2 of 3");
    assert!(lines[2].iter().any(|line| line.contains("rax 0000000000000007")), "{lines:?}");
    for other in &lines[..2] {
        assert_eq!(other[..], ["core 30 does not answer: an exception or a panic has stopped it"]);
    }
    assert!(stderr.contains("error: core 30 was stopped by exception 0\n"), "{stderr}");
    assert!(stderr.contains("error: core 3 ended with exit code 1\n"), "{stderr}");
    let shown = format!("[30]: {}\n[03]: {}\n{stderr}", lines[2][0], lines[0][0]);
    assert_shown("bare-metal.md", "crates/bare/tests/cli.rs: exception", &shown);
}

#[test]
fn a_core_takes_part_in_two_exchanges_at_once() {
    needs_machines!();
    let (code, lines, stderr) = run(&[0, 1, 2], &build_rust("ring"), &[]);
    assert_eq!(code, 0, "{lines:?} {stderr}");
    assert!(lines[0][0].starts_with("two exchanges of 100 rounds of 32 B at once: verified, "), "{lines:?}");
    assert_eq!(lines[2][..], ["channel 2: 100 rounds verified"]);
}

#[test]
fn threads_that_never_yield_are_preempted_and_user_mode_cannot_touch_the_supervisor() {
    needs_machines!();
    let (code, lines, stderr) = run(&[12], &build_rust("threads"), &[]);
    assert_eq!(code, 0, "{lines:?} {stderr}");
    let [kernel, user, fault, deep, printed, kept] = &lines[0][..] else { panic!("{lines:?}") };
    assert_eq!(kernel, "two threads in supervisor mode that never yield took 5 turns each");
    assert_eq!(user, "two threads in user mode that never yield took 5 turns each");
    assert!(fault.starts_with("thread 1: exception 14 (page fault) in user mode at 0x10"), "{fault}");
    for fault in [fault, deep] {
        assert!(fault.contains(", error code 0x7, address 0x"), "{fault}");
    }
    assert_eq!([printed.as_str(), kept], ["a text of the image", "the supervisor's memory is as it was"]);
}

#[test]
fn devices_exchange_messages_between_threads_of_both_modes_by_poll_and_by_interrupt() {
    needs_machines!();
    let image = build_rust("xipx");
    for (cores, arguments, expected) in [
        (&[0, 1][..], ["ping-pong", "32", "50", "kernel", "poll"], "1 to one: 32 bytes "),
        (&[0, 1], ["ping-pong", "2048", "20", "user", "interrupt"], "1 to one: 2048 bytes "),
        (&[0, 1], ["ping-ping", "1024", "50", "user", "poll"], "1 to one: 1024 bytes "),
        (&[5, 0, 47], ["ping-pong", "100", "20", "kernel", "interrupt"], "2 to one: 100 bytes "),
        (&[5, 0, 47], ["ping-ping", "2048", "20", "user", "poll"], "2 to one: 2048 bytes "),
    ] {
        let (code, lines, stderr) = run(cores, &image, &arguments);
        assert_eq!(code, 0, "{lines:?} {stderr}");
        let [pattern, .., threads, mode] = arguments;
        let begin = format!("{pattern}, {threads} threads, {mode}, {expected}");
        assert!(lines[0][0].starts_with(&begin) && lines[0][0].ends_with(" MB/s"), "{lines:?}");
    }
    let (code, lines, _) = run(&[0, 1], &image, &["ping-pong", "4096"]);
    assert_eq!(code, 1);
    assert!(lines[0][0].starts_with("xipx: 2 cores, ping-pong, 4096 B, 200 rounds, kernel, poll; allowed: "));
}

#[test]
fn threads_of_c_exchange_messages_with_two_cores_at_once() {
    needs_machines!();
    let image = build("exchange.img", &["bare-metal/examples/c/exchange.c"]);
    let (code, lines, errors) = run(&[0, 1, 2], &image, &["100"]);
    assert_eq!(code, 0, "{lines:?} {errors}");
    assert_eq!(lines[0], ["2 exchanges at once, 100 rounds each, 0 wrong answers"]);
}

#[test]
fn c_programs_exclude_each_other_by_lock_registers() {
    needs_machines!();
    let source = file("locks.c");
    fs::write(
        &source,
        "#include <bare.h>\n#include <stdio.h>\n\
         int main(void) { uint64_t bytes; volatile uint32_t *shared = (void *)bare_shared_memory(&bytes);\n\
         for (int round = 0; round < 2000; round++) {\n\
         if (bare_acquire_lock(7)) return 1;\n\
         shared[0] = shared[0] + 1; bare_release_lock(7); }\n\
         bare_acquire_lock(8); shared[1]++; bare_release_lock(8);\n\
         while (bare_rank() == 0 && shared[1] < (uint32_t)bare_ranks()) bare_sleep(1);\n\
         if (bare_rank() == 0) { printf(\"%u\\n\", shared[0]);\n\
         if (bare_try_lock(9) || bare_try_lock(9) == 0) return 1; }\n\
         return bare_acquire_lock(48) + bare_release_lock(-1) + 2; }\n",
    )
    .unwrap();
    let (code, lines, errors) = run(&[4, 7, 40], &build("locks.img", &[source.to_str().unwrap()]), &[]);
    assert_eq!((code, &lines[0][..]), (0, &["6000".to_owned()][..]), "{lines:?} {errors}");
}

#[test]
fn a_stack_that_overflows_stops_its_core_with_a_dump() {
    needs_machines!();
    let source = file("deep.c");
    fs::write(
        &source,
        "#include <bare.h>\n#include <stdlib.h>\n\
         static int deep(void *bytes) { volatile char room[(long)bytes]; room[0] = 1; return room[0]; }\n\
         int main(int count, char **words) { int end; void *bytes = (void *)(long)atoi(words[2]);\n\
         if (words[1][0] == 'm') return deep(bytes);\n\
         bare_thread_join(bare_thread_start(deep, bytes), &end); return end; }\n",
    )
    .unwrap();
    let image = build("deep.img", &[source.to_str().unwrap()]);
    for (thread, bytes, fits) in [
        ("main", "250000", true),
        ("main", "263000", false),
        ("main", "400000", false),
        ("thread", "12000", true),
        ("thread", "17000", false),
        ("thread", "60000", false),
    ] {
        let (code, lines, errors) = run(&[3], &image, &[thread, bytes]);
        let text = lines.concat().join(" ");
        assert_eq!(code, 1, "{thread} {bytes}: {text} {errors}");
        assert_eq!(
            errors.contains("core 3 ended with exit code 1"),
            fits,
            "{thread} {bytes}: {text} {errors}"
        );
        assert_eq!(text.contains("stack overflow: address 0x"), !fits, "{thread} {bytes}: {text} {errors}");
    }
}

#[test]
fn ircce_runs_a_ping_ping_and_rcce_waits_for_ever() {
    needs_machines!();
    let (code, lines, stderr) = run(&[0, 1], &build_rcce("pingping", &["-DIRCCE"]), &["1000", "50", "3"]);
    assert_eq!(code, 0, "{lines:?} {stderr}");
    assert_eq!(lines[0][1], "Verification SUCCESSFUL");
    let image = build_rcce("pingping", &[]);
    let out = bare(&["run", "--limit", "2", "--cores", "0,1", "--", image.to_str().unwrap()]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(1), String::new()));
    assert!(text(&out.stderr).contains("error: core 0 was ended by --limit\n"), "{}", text(&out.stderr));
}

/// Returns the process of the machine of `core`, among those started by `launcher`.
fn machine_of(launcher: u32, core: usize) -> String {
    let is_it = |pid: &String| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{launcher}\n")) && text(&words).contains(&format!("\0core={core}\0"))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.map(|entry| entry.file_name().to_string_lossy().into_owned()).find(is_it).unwrap()
}

#[test]
fn a_machine_that_is_killed_is_named_by_those_that_wait_for_it() {
    needs_machines!();
    // Core 0 sleeps for ten minutes before it raises the pin that core 47 waits for.
    let image = build("figure2-killed.img", &["bare-metal/examples/c/figure2.c"]);
    let mut launcher = Command::new(env!("CARGO_BIN_EXE_isles-bare"))
        .args(["run", "--limit", "300", "--cores", "0,47", "--", image.to_str().unwrap(), "600000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(launcher.stdout.take().unwrap()).lines().map(Result::unwrap);
    let hellos = [lines.next().unwrap(), lines.next().unwrap()];
    assert!(hellos.iter().all(|line| line.contains("Hello, World")), "{hellos:?}");
    let killed = Command::new("kill").args(["-9", &machine_of(launcher.id(), 0)]).status().unwrap();
    assert!(killed.success());
    assert_eq!(lines.collect::<Vec<_>>(), ["[47]: core 0 does not answer: its machine is gone"]);
    let out = launcher.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let stderr = text(&out.stderr);
    assert!(
        stderr.contains("error: core 0 was lost: its virtual machine ended without a message\n"),
        "{stderr}"
    );
    assert!(stderr.contains("error: core 47 ended with exit code 1\n"), "{stderr}");
}

#[test]
fn messages_are_measured_in_each_pattern() {
    needs_machines!();
    let image = build_rust("exchange");
    for (pattern, cores) in [("ping-pong", &[0, 1][..]), ("ping-ping", &[2, 3]), ("two-to-one", &[0, 1, 2])] {
        let (code, lines, stderr) = run(cores, &image, &[pattern, "2048", "20"]);
        assert_eq!(code, 0, "{lines:?} {stderr}");
        let is_measured =
            lines[0][0].starts_with(&format!("{pattern}: 2048 bytes ")) && lines[0][0].ends_with(" MB/s");
        assert!(is_measured, "{lines:?}");
    }
    let (code, lines, _) = run(&[0, 1], &image, &["two-to-one"]);
    assert_eq!(lines[0][..], ["exchange: 2 cores, 32 B, 200 rounds; allowed: 3, 2048, 1"]);
    assert_eq!(code, 1);
}

#[test]
fn two_images_run_at_once_by_a_table() {
    needs_machines!();
    let (ids, ring) = (build_rust("ids"), build_rust("ring"));
    let table = file("two.table");
    let lines = format!("# two programs\n0,1 {}\n40-42 {}\n", ids.display(), ring.display());
    fs::write(&table, lines).unwrap();
    let (code, lines, stderr) = run_words(&["--table", table.to_str().unwrap()], &[0, 1, 40, 41, 42]);
    assert_eq!(code, 0, "{lines:?} {stderr}");
    assert!(lines[1][0].starts_with("core 1 is rank 1 of 2, "), "{lines:?}");
    assert_eq!(lines[3][..], ["channel 1: 100 rounds verified"]);
}

#[test]
fn programs_of_rcce_run_unmodified() {
    needs_machines!();
    for (program, options, arguments) in [
        ("shift", &[][..], &[][..]),
        ("stencil", &[], &[]),
        ("share", &[], &[]),
        ("pingpong", &[], &[]),
        ("pingpong", &["-DIRCCE"], &["20000"]),
    ] {
        let image = build_rcce(program, options);
        let (code, lines, stderr) = run(&[0, 1], &image, arguments);
        assert_eq!(code, 0, "{program}: {lines:?} {stderr}");
        assert!(lines[0].iter().any(|line| line == "Verification SUCCESSFUL"), "{program}: {lines:?}");
        if program == "pingpong" {
            let shown = format!("[00]: {}", lines[0].join("\n[00]: "));
            assert_shown("bare-metal.md", "crates/bare/tests/cli.rs: pingpong", &shown);
        }
    }
    let image = build_rcce("hello", &[]);
    let (code, lines, _) = run(&[7, 0, 33], &image, &[]);
    assert_eq!(code, 0);
    for (rank, lines) in lines.iter().enumerate() {
        assert_eq!(lines[..], [format!("hello from rank {rank} of 3")]);
    }
}

#[test]
fn the_largest_example_of_c_is_an_image_of_at_most_64_kib_and_verifies() {
    needs_machines!();
    let (code, lines, stderr) = run(&[0, 1, 2, 3], &build_rcce("bt", &["-Os"]), &[]);
    assert_eq!(code, 0, "{lines:?} {stderr}");
    assert!(lines[0].iter().any(|line| line == "Verification SUCCESSFUL"), "{lines:?}");
}

#[test]
fn a_function_that_the_c_library_lacks_is_refused_by_the_compiler() {
    needs_machines!();
    let source = file("lacks.c");
    fs::write(&source, "#include <math.h>\nint main(void) { return (int)pow(2, 3); }\n").unwrap();
    let out = bare(&["build", source.to_str().unwrap(), "-o", file("lacks.img").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("implicit declaration of function"), "{}", text(&out.stderr));
}

#[test]
fn two_programs_of_rcce_cannot_share_a_core() {
    let table = file("shared.table");
    fs::write(&table, "0,1 pingpong.img\n0,2 pingpong.img\n").unwrap();
    assert_eq!(
        refused(&["run", "--table", table.to_str().unwrap()]),
        "error: core 0 is named twice; a core runs one image"
    );
}

#[test]
fn the_program_of_figure_2_handles_both_pins_of_core_47() {
    needs_machines!();
    let image = build("figure2.img", &["bare-metal/examples/c/figure2.c"]);
    let (code, lines, stderr) = run(&[0, 1, 5, 24, 47], &image, &["20"]);
    assert_eq!(code, 0, "{lines:?} {stderr}");
    assert_eq!(lines[3][..], ["Hello, World -- I'm core 24!"]);
    assert_eq!(
        lines[0][..],
        [
            "Hello, World -- I'm core 0!",
            "I'm going to trigger core 47's LINT0 now.",
            "Now I'm toggling core 47's LINT1."
        ]
    );
    let [hello, first, time, second, later] = &lines[4][..] else { panic!("{lines:?}") };
    assert_eq!([hello.as_str(), first], ["Hello, World -- I'm core 47!", "I've been interrupted!"]);
    assert_eq!(second, "Another interruption!");
    let seconds = |line: &str| -> u64 {
        let line = line.strip_prefix("(SCC has been booted for ").unwrap();
        line.strip_suffix(" seconds)").unwrap().parse().unwrap()
    };
    assert!(seconds(time) <= seconds(later));
}

#[test]
fn printf_writes_what_that_of_the_host_writes() {
    needs_machines!();
    let source = "crates/bare/tests/printf.c";
    let image = build("printf.img", &[source]);
    let host = file("printf");
    let gcc = Command::new("gcc").current_dir(root()).args([source, "-w", "-o"]).arg(&host).status().unwrap();
    assert!(gcc.success());
    let expected = text(&Command::new(&host).output().unwrap().stdout);
    let (code, lines, stderr) = run(&[0], &image, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(lines[0].len() > 40);
    assert_eq!(lines[0], expected.lines().collect::<Vec<_>>());
}

/// Runs words that are refused with exit code 2, and returns the one line.
fn refused(words: &[&str]) -> String {
    let out = bare(words);
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{words:?}: {stderr}");
    assert!(out.stdout.is_empty() && stderr.lines().count() == 1, "{words:?}: {stderr}");
    stderr.trim_end().to_string()
}

#[test]
fn what_cannot_be_run_is_one_line() {
    for (words, expected) in [
        (&[][..], "error: a command is missing; allowed: build, run; see isles bare --help"),
        (&["boot"], "error: unknown command boot; allowed: build, run"),
        (
            &["run", "--cores", "0-48", "--", "a"],
            "error: --cores: no core \"48\"; the chip has cores 0 to 47",
        ),
        (
            &["run", "--cores", "0", "--", "README.md"],
            "error: image README.md: not an ELF file of 64 bits for x86-64; build images with isles bare build",
        ),
        (
            &["run", "--cores", "0", "--", "none.img"],
            "error: image none.img: No such file or directory (os error 2)",
        ),
        (
            &["build", "README.md"],
            "error: README.md is neither a file PROGRAM.c nor a folder with a Cargo.toml",
        ),
        (&["build"], "error: no program; use isles bare build PROGRAM.c, or the folder of a crate"),
        (&["build", "--fast"], "error: unknown option --fast; allowed: -o, --bin, -D, -I, -O, -U, -g"),
    ] {
        assert_eq!(refused(words), expected);
    }
    let own = env!("CARGO_BIN_EXE_isles-bare");
    assert_eq!(
        refused(&["run", "--cores", "0", "--", own]),
        format!(
            "error: image {own}: an ELF file without a PVH note (an image for an operating system?); \
             build images with isles bare build"
        )
    );
}

#[test]
fn without_qemu_the_line_names_its_package() {
    let image = file("header.img");
    let mut bytes = vec![0; 120];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (bytes[18], bytes[32], bytes[54], bytes[56]) = (62, 64, 56, 1);
    (bytes[64], bytes[72], bytes[96]) = (4, 120, 24);
    bytes.extend(b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0\x20\0\x10\0\0\0\0\0");
    fs::write(&image, bytes).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_isles-bare"))
        .args(["run", "--cores", "0", "--"])
        .arg(&image)
        .env("PATH", file("empty"))
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(
        text(&out.stderr),
        "error: qemu-system-x86_64, needed to run the cores, is not on PATH; on Debian: apt-get install \
         qemu-system-x86\n"
    );
}
