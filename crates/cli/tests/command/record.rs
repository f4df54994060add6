//! Recorded runs: the contents of the run directory, the view of an observer, and refusals.

use isles_chip::Chip;
use isles_chip::energy::{Load, OperatingPoint};
use isles_chip::quantity::{Microvolts, Rate};
use isles_telemetry::{
    COUNTERS, CounterId, LogReader, ObserverLink, OutputStream, PagesReader, ProgressSample, RunDirectory,
    RunEnd, Sample,
};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A folder of one test, which is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("isles-record-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the command, which runs in this folder.
    fn isles(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.current_dir(&self.0).args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.isles(arguments).output().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn total(sample: &Sample, counter: CounterId) -> u64 {
    sample.places.iter().map(|place| place.value(counter)).sum()
}

#[test]
fn each_machine_leaves_a_whole_log_and_the_same_answer() {
    let scratch = Scratch::new("machines");
    let mut answers = Vec::new();
    for (machine, mesh) in [("threads", None), ("processes", None), ("chip:scc", Some((6, 4)))] {
        let directory = machine.replace(':', "-");
        let output = scratch.run(&[
            "run",
            "bc",
            "--graph",
            "karate",
            "--places",
            "4",
            "--machine",
            machine,
            "--record",
            &directory,
            "--csv",
            "scores.csv",
        ]);
        assert!(output.status.success(), "{machine}: {}", text(&output.stderr));
        answers.push(std::fs::read_to_string(scratch.path("scores.csv")).unwrap());
        let run = LogReader::open(&RunDirectory::log_path(&scratch.path(&directory))).unwrap();
        assert_eq!(run.end(), Some((RunEnd::Ended, None)), "{machine}");
        assert_eq!(run.gaps(), 0);
        let description = run.description();
        assert_eq!((description.machine.as_str(), description.places), (machine, 4));
        assert_eq!(description.mesh.as_ref().map(|mesh| (mesh.columns, mesh.rows)), mesh);
        assert!(description.arguments.contains(&"karate".to_owned()));
        let last = run.samples(run.len() - 1, run.len()).remove(0);
        let received = total(&last, CounterId::MessagesReceived);
        assert!(total(&last, CounterId::Tasks) > 0 && received > 0, "{machine}: {last:?}");
        assert_eq!(
            last.progress,
            ProgressSample { done: 34, total: 34, unit: "sources".to_owned(), ..ProgressSample::default() }
        );
        assert!(total(&last, CounterId::MessagesSent) >= received, "{machine}");
        let pairs: u64 = last.pairs.iter().map(|pair| pair.messages).sum();
        assert_eq!(pairs, total(&last, CounterId::MessagesSent), "{machine}");
        assert_eq!(last.links.is_empty(), mesh.is_none());
        assert_eq!(last.places[0].value(CounterId::Clock) > 0, mesh.is_some());
        assert!(!scratch.path(&directory).join("observe.sock").exists(), "the socket goes with the run");
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
}

#[test]
fn what_an_application_prints_of_its_result_is_shown_too() {
    let scratch = Scratch::new("result");
    for machine in ["threads", "processes", "chip:scc"] {
        let directory = machine.replace(':', "-");
        let common = ["--depth", "6", "--places", "2", "--machine", machine, "--record", &directory];
        let output = scratch.run(&[&["run", "uts"], &common[..]].concat());
        let run = LogReader::open(&RunDirectory::log_path(&scratch.path(&directory))).unwrap();
        let results = run.output(0).iter().filter(|line| line.stream == OutputStream::Result);
        let shown: Vec<&str> = results.map(|line| line.text.as_str()).collect();
        assert!(shown.iter().any(|line| line.starts_with("nodes ")), "{machine}: {shown:?}");
        assert!(text(&output.stdout).contains(&shown.join("\n")), "{machine}: {shown:?}, {output:?}");
        assert_eq!(text(&output.stdout).matches("\nnodes  ").count(), 1, "it is printed once");
    }
}

#[test]
fn applications_say_how_far_they_are() {
    let scratch = Scratch::new("progress");
    // The first flag says if all steps are done at the end: an evolution, or the rounds of a kernel, may need fewer
    // than are allowed. The second says if the total is unknown, like the size of a tree. The units of hf are those of
    // a step.
    let applications: [(&[&str], &str, u64, bool, bool); 8] = [
        (&["hf", "--molecule", "h2", "--balance", "dynamic"], "units", 4, true, false),
        (&["hf", "--molecule", "h2", "--balance", "glb"], "units", 4, true, false),
        (&["pi", "--points", "1000000"], "batches", 1, true, false),
        (&["ga", "--islands", "3", "--generations-max", "40"], "generations", 120, false, false),
        (&["imsuite", "--kernel", "KC", "--generate", "32"], "rounds", 2 * 3 * 3 * 2, false, false),
        (&["imsuite", "--kernel", "BF", "--generate", "32"], "rounds", 0, false, true),
        (&["uts", "--depth", "6"], "nodes", 0, false, true),
        (&["nqueens", "--n", "8"], "queens", 0, false, true),
    ];
    for (number, (application, unit, least, is_exact, is_open)) in applications.into_iter().enumerate() {
        for machine in ["processes", "chip:scc"] {
            let directory = format!("{number}-{}", machine.replace(':', "-"));
            let common = ["--places", "2", "--machine", machine, "--record", &directory];
            let output = scratch.run(&[&["run"], application, &common].concat());
            assert!(output.status.success(), "{application:?}, {machine}: {}", text(&output.stderr));
            let run = LogReader::open(&RunDirectory::log_path(&scratch.path(&directory))).unwrap();
            let ProgressSample { done, total, grows, unit: said, phase } =
                run.samples(run.len() - 1, run.len()).remove(0).progress;
            assert_eq!(said, unit, "{application:?}, {machine}");
            // On a chip the check would be part of the prediction.
            let last = if machine == "processes" { "stability check, product " } else { "SCF, iteration " };
            let is_hf = application[0] == "hf";
            assert!(if is_hf { phase.starts_with(last) } else { phase.is_empty() }, "{machine}: {phase}");
            assert_eq!(
                grows || total == 0,
                is_open,
                "{application:?}, {machine}: {done} of {total}, {grows}"
            );
            assert!(done > 0, "{application:?}, {machine}");
            if least == 0 {
                assert_eq!(total, 0, "{application:?}, {machine}");
                continue;
            }
            assert!(total >= least && total % least == 0, "{application:?}, {machine}: {done} of {total}");
            assert!(done <= total, "{application:?}, {machine}: {done} of {total}");
            assert!(done == total || !is_exact, "{application:?}, {machine}: {done} of {total}");
        }
    }
}

#[test]
fn a_recorded_run_on_a_chip_is_the_same_run() {
    let scratch = Scratch::new("digest");
    let arguments = ["run", "bc", "--graph", "karate", "--machine", "chip:scc", "--report", "chip"];
    let plain = scratch.run(&arguments);
    let recorded = scratch.run(&[&arguments[..], &["--record", "run"]].concat());
    let digest = |output: &Output| {
        let printed = text(&output.stderr);
        printed.lines().find(|line| line.starts_with("digest")).map(str::to_owned).expect("a digest is told")
    };
    assert_eq!(digest(&plain), digest(&recorded));
}

/// Returns the processor time of a process as the system counts it, in hundredths of a second.
fn time_used(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // Fields 14 and 15 of proc_pid_stat(5); field 3 is the first one here.
    let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// Starts a run that is recorded into `run`, and reads its counters.
fn observed(scratch: &Scratch, run: &[&str]) -> (Child, PagesReader) {
    let mut child = scratch.isles(run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let file = loop {
        match ObserverLink::connect(&scratch.path("run")) {
            Ok((_, file)) => break file,
            Err(error) => assert!(child.try_wait().unwrap().is_none(), "{error}"),
        }
        std::thread::yield_now();
    };
    (child, PagesReader::open(file).unwrap())
}

#[test]
fn on_a_chip_the_counters_of_a_place_that_does_not_sleep_are_new_several_times_a_second() {
    let scratch = Scratch::new("fresh");
    let run = ["run", "bc", "--rmat", "large", "--machine", "chip:scc", "--places", "8", "--record", "run"];
    let (mut child, mut reader) = observed(&scratch, &run);
    // Place 0 computes and deals out sources, and is always busy once all have begun. Its executor turns are as
    // frequent as the time that eight places need for a source each, about ten per second in a debug build.
    let has_begun = |sample: &Sample| sample.places[0].value(CounterId::Tasks) > 10;
    while !has_begun(&reader.read().unwrap()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        std::thread::yield_now();
    }
    let mut copies = || reader.read().unwrap().places[0].copies;
    // Measured in the run's own processor time, which passes more slowly if the machine does other work.
    let (mut last, mut changed, mut ages) = (copies(), time_used(child.id()), Vec::new());
    while ages.len() < 16 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        let now = copies();
        if now != last {
            let time = time_used(child.id());
            ages.push(time - changed);
            (last, changed) = (now, time);
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    ages.sort();
    assert!(ages[8] < Duration::from_secs(1), "{ages:?}");
}

/// A place that yielded after each source was reported to have run one task for seconds.
#[test]
fn the_counters_of_a_place_whose_turns_are_long_are_new_after_some_of_them() {
    let scratch = Scratch::new("turns");
    let run = ["run", "bc", "--rmat", "16,0.55,0.1,0.1,0.25", "--places", "2", "--record", "run"];
    let (mut child, mut reader) = observed(&scratch, &run);
    // The counters of place 1, and the sources that both had done when they were last seen to change.
    let (mut last, mut done, mut between) = (None, 0, Vec::new());
    while between.len() < 6 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        let sample = reader.read().unwrap();
        if sample.progress.done > 0 && last != Some(sample.places[1].copies) {
            last = Some(sample.places[1].copies);
            between.push(sample.progress.done - std::mem::replace(&mut done, sample.progress.done));
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Both places together do 128 sources while one of them counts its executor turns without reading the time. The
    // median is taken, because a process may have been without a processor for long.
    between.remove(0);
    between.sort_unstable();
    assert!(between[2] < 64, "{between:?}");
}

#[test]
fn an_observer_sees_a_run_while_it_runs_and_its_end_when_it_is_killed() {
    let scratch = Scratch::new("live");
    let mut child = scratch
        .isles(&["run", "uts", "--depth", "30", "--places", "2", "--record", "run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (link, file) = loop {
        match ObserverLink::connect(&scratch.path("run")) {
            Ok(connected) => break connected,
            Err(error) => assert!(child.try_wait().unwrap().is_none(), "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(link.description().places, 2);
    let mut reader = PagesReader::open(file).unwrap();
    // Wait until both places have been busy.
    let is_busy = |sample: &Sample| sample.places.iter().all(|place| place.value(CounterId::BusyTime) > 0);
    while !is_busy(&reader.read().unwrap()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        std::thread::yield_now();
    }
    assert!(link.is_alive());
    child.kill().unwrap();
    child.wait().unwrap();
    while link.is_alive() {
        std::thread::yield_now();
    }
    let last = reader.read().unwrap();
    assert_eq!(last.end, RunEnd::Running, "it could not say how it ended");
    let run = LogReader::open(&RunDirectory::log_path(&scratch.path("run"))).unwrap();
    assert!(run.end().is_none() && !run.is_empty());
}

#[test]
fn a_directory_that_is_not_empty_and_machines_that_cannot_are_refused() {
    let scratch = Scratch::new("refused");
    std::fs::write(scratch.path("full"), "").unwrap();
    let refusal = |arguments: &[&str]| {
        let output = scratch.run(&[&["run", "pi", "--places", "2"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let printed = refusal(&["--record", "."]);
    assert_eq!(
        printed,
        "error: --record is \".\"; allowed: a directory that is empty or does not exist yet; this one is \
         not empty\n"
    );
    assert!(refusal(&["--record", "full"]).starts_with("error: --record is \"full\"; allowed: "));
    assert!(refusal(&["--record", &"x".repeat(200)]).contains("too long for a socket"));
    let printed = refusal(&["--record", "new", "--machine", "loopback"]);
    assert!(printed.contains("nothing with machine loopback"), "{printed}");
    assert!(!scratch.path("new").exists());
}

#[test]
fn the_table_of_counters_is_printed() {
    let output = Scratch::new("counters").run(&["counters"]);
    let printed = text(&output.stdout);
    assert_eq!(printed.lines().count(), COUNTERS.len());
    for counter in COUNTERS {
        let line =
            printed.lines().find(|line| line.split(' ').next() == Some(counter.name)).expect(counter.name);
        assert!(line.contains(counter.unit) && line.ends_with(counter.description));
    }
}

/// Returns the maximum power of an SCC and of one of its cores: all cores compute at the highest of its presets, by the
/// power model that a run uses.
fn highest_power() -> [f64; 2] {
    let chip = Chip::find("scc").unwrap();
    let model = &chip.power_models()[0];
    let point = OperatingPoint { rate: Rate::new(1_600_000_000, 2).unwrap(), voltage: Microvolts(1_162_500) };
    [model.chip(48, Load::Compute, point).watts(), model.core(Load::Compute, point).watts()]
}

#[test]
fn the_power_of_a_recorded_run_is_its_energy_and_never_more_than_the_chip_can_draw() {
    let scratch = Scratch::new("power");
    let applications: [&[&str]; 5] = [
        &["uts", "--tree", "T1", "--depth", "8"],
        &["pi", "--points", "300000"],
        &["bc", "--graph", "karate", "--balance", "dynamic"],
        &["ga", "--islands", "3", "--generations-max", "20"],
        &["hf", "--molecule", "h2"],
    ];
    let settings: [&[&str]; 4] = [
        &["--places", "48"],
        &["--places", "5"],
        &["--places", "8", "--governor", "on-demand"],
        &["--places", "12", "--preset", "800/1600/1066"],
    ];
    let most = highest_power();
    let runs = applications.iter().flat_map(|application| settings.map(|setting| (*application, setting)));
    for (number, (application, setting)) in runs.enumerate() {
        let directory = format!("run{number}");
        let files = ["--machine", "chip:scc", "--record", &directory, "--summary", "summary.json"];
        let output = scratch.run(&[&["run"], application, setting, &files].concat());
        assert!(output.status.success(), "{application:?} {setting:?}: {}", text(&output.stderr));
        let summary = std::fs::read_to_string(scratch.path("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        let energy = summary["energy"]["models"][0]["total_j"].as_f64().unwrap();
        let run = LogReader::open(&RunDirectory::log_path(&scratch.path(&directory))).unwrap();
        let mut before = Sample::default();
        let mut sum = 0.0;
        run.visit(0, run.len(), |sample| {
            let passed = sample.energy.until_ns - before.energy.until_ns;
            let drawn = sample.energy.nanojoules - before.energy.nanojoules;
            sum += drawn as f64 / 1e9;
            let said = format!("{application:?} {setting:?}: {drawn} nJ in {passed} ns");
            // Energies are truncated to a nanojoule.
            assert!(drawn as f64 <= most[0] * passed as f64 + 1.0, "{said}");
            for (number, place) in sample.places.iter().enumerate() {
                let value = place.value(CounterId::Energy);
                let drawn =
                    value - before.places.get(number).map_or(0, |before| before.value(CounterId::Energy));
                assert!(drawn as f64 <= most[1] * passed as f64 + 1.0, "{said}, {drawn} at place {number}");
            }
            before = sample.clone();
        });
        assert!((sum / energy - 1.0).abs() < 1e-3, "{application:?} {setting:?}: {sum} of {energy} J");
    }
}
