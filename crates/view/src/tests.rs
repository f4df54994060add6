//! Snapshots, histories, warnings and replays of runs that are written down here sample by sample.

use super::*;
use isles_telemetry::MeshDescription;
use isles_telemetry::{
    COUNTERS, CounterId, DeathCause, EnergySample, LinkSample, Liveness, OpenFinish, PairCount, PlaceSample,
    ProgressSample, RunEnd, Sample,
};
use isles_telemetry::{LogReader, LogWriter, OutputLine, OutputStream, StageSample};

fn description(machine: &str) -> RunDescription {
    let mesh = machine.starts_with("chip:").then(|| MeshDescription {
        columns: 6,
        rows: 4,
        cores_per_tile: 2,
        name: "scc".to_owned(),
    });
    RunDescription { machine: machine.to_owned(), places: 2, mesh, ..RunDescription::default() }
}

/// A sample of two places that idle.
fn sample(time_ms: u64) -> Sample {
    let mut sample = Sample { time_ms, ..Sample::default() };
    sample.places.resize(2, Default::default());
    for place in &mut sample.places {
        (place.liveness, place.at_ns, place.copies) = (Liveness::Idle, time_ms * 1_000_000, time_ms + 1);
    }
    sample
}

fn set(sample: &mut Sample, place: usize, counter: CounterId, value: u64) {
    sample.places[place].values[counter.index()] = value;
}

#[test]
fn shares_come_from_differences_and_a_place_that_computes_is_busy() {
    let mut builder = SnapshotBuilder::new(&description("processes"));
    builder.build(sample(1000), None);
    let mut second = sample(2000);
    set(&mut second, 0, CounterId::BusyTime, 250_000_000);
    // This one has not copied since the first sample.
    second.places[1] = sample(1000).places[1].clone();
    second.places[1].liveness = Liveness::Busy;
    let shown = builder.build(second, None);
    assert_eq!(shown.places.busy, [0.25, 1.0]);
    assert_eq!(shown.places.state, [PlaceCondition::Idle, PlaceCondition::Busy]);
    assert_eq!((shown.seq, shown.time_ms, shown.model_ms), (2, 2000, None));
    assert_eq!((shown.places.counters.words(CounterId::Clock), shown.links), (None, None));
}

#[test]
fn states_are_those_that_are_known() {
    let mut builder = SnapshotBuilder::new(&description("processes"));
    let mut first = sample(1000);
    set(&mut first, 0, CounterId::FinishesOpen, 1);
    first.places[1].death = Some(DeathCause::Killed(9));
    let shown = builder.build(first.clone(), None);
    assert_eq!(shown.places.state, [PlaceCondition::Waiting, PlaceCondition::Dead]);
    assert_eq!(shown.places.cause[1].as_deref(), Some("its process was ended by signal 9"));
    let lost = builder.build(first.clone(), Some("gone"));
    assert_eq!((lost.state, lost.reason.as_deref()), (RunState::Unknown, Some("gone")));
    assert_eq!(lost.places.state, [PlaceCondition::Silent, PlaceCondition::Dead]);
    let ended = builder.build(Sample { end: RunEnd::Failed, ..first }, Some("gone"));
    assert_eq!((ended.state, ended.reason), (RunState::Failed, None));
    assert_eq!(ended.places.state, [PlaceCondition::Ended, PlaceCondition::Dead]);
}

#[test]
fn progress_is_shown_once_there_are_steps_and_never_more_than_all() {
    let mut builder = SnapshotBuilder::new(&description("processes"));
    let mut shown = |done, total, grows| {
        let unit = "sources".to_owned();
        let progress = ProgressSample { done, total, grows, unit, phase: String::new() };
        builder.build(Sample { progress, ..sample(1000) }, None).progress
    };
    let printed = |done, total, grows| {
        let (phase, label) = (String::new(), "sources".to_owned());
        Some(ProgressView { phase, label, done, total, grows })
    };
    assert_eq!(shown(0, 0, false), None);
    assert_eq!((shown(3, 8, false), shown(9, 8, false)), (printed(3, 8, false), printed(8, 8, false)));
    assert_eq!(shown(3, 8, true), printed(3, 8, true));
    assert_eq!(shown(9, 8, true), printed(9, 8, true), "there will be more");
    assert_eq!(shown(3, 0, false), printed(3, 0, true), "nobody knows how many there are");
    let progress = ProgressSample { phase: "check".to_owned(), ..ProgressSample::default() };
    let phase = builder.build(Sample { progress, ..sample(1000) }, None).progress.unwrap();
    assert_eq!((phase.phase.as_str(), phase.done, phase.total), ("check", 0, 0), "it has no steps yet");
}

#[test]
fn a_chip_has_clocks_links_and_modelled_time() {
    let mut builder = SnapshotBuilder::new(&description("chip:scc"));
    let mut first = sample(100);
    first.model_ns = 1_000_000;
    first.links = vec![LinkSample { from: 0, to: 1, busy_ps: 0 }];
    set(&mut first, 0, CounterId::Clock, 533_000);
    set(&mut first, 0, CounterId::Supply, 850_000);
    builder.build(first.clone(), None);
    let mut second = Sample { time_ms: 200, model_ns: 2_000_000, ..first };
    second.links[0].busy_ps = 500_000_000;
    let shown = builder.build(second.clone(), None);
    assert_eq!(shown.model_ms, Some(2.0));
    assert_eq!(shown.places.counters.shown(CounterId::Clock, 0), Some(533.0));
    assert_eq!(shown.places.counters.shown(CounterId::Supply, 0), Some(0.85));
    assert_eq!(shown.links.unwrap(), [LinkLoad { from: 0, to: 1, load: 0.5 }]);
    let still = builder.build(second, None);
    assert_eq!(still.links.unwrap()[0].load, 0.5, "no modelled time has passed");
}

/// A sample of a chip whose two cores have these energies, and everything else twice the first.
fn drawn(time_ms: u64, until_ns: u64, cores: [u64; 2]) -> Sample {
    let mut sample = Sample { model_ns: until_ns, ..sample(time_ms) };
    sample.energy = EnergySample { until_ns, nanojoules: 3 * cores[0] + cores[1] };
    for (place, energy) in cores.into_iter().enumerate() {
        set(&mut sample, place, CounterId::Energy, energy);
    }
    sample
}

/// The sum of a power over modelled time, in joules.
fn integral(history: &History, watts: &[f64]) -> f64 {
    let starts = std::iter::once(&0.0).chain(&history.model_ms);
    let passed = history.model_ms.iter().zip(starts).map(|(end, start)| (end - start) / 1e3);
    passed.zip(watts).map(|(seconds, watt)| seconds * watt).sum()
}

#[test]
fn power_is_the_energy_of_the_modelled_time_that_has_passed() {
    let mut builder = SnapshotBuilder::new(&description("chip:scc"));
    let first = builder.build(drawn(0, 0, [0, 0]), None);
    assert_eq!(first.power, Some(PowerView::default()));
    let second = builder.build(drawn(500, 1_000, [2_000, 500]), None);
    assert_eq!(second.places.watt.as_deref(), Some(&[2.0, 0.5][..]));
    assert_eq!(second.power, Some(PowerView { watt: 6.5, joule: 6.5e-6, until_ms: 1e-3 }));
    let still = builder.build(drawn(1_000, 1_000, [2_000, 500]), None);
    assert_eq!(still.power.unwrap().watt, 6.5, "no modelled time has passed");
    let third = builder.build(drawn(1_500, 1_000_000, [2_000, 999_500]), None);
    assert_eq!(third.places.watt.unwrap(), [0.0, 1.0]);
    // A chip whose power nobody has published.
    let unknown = builder.build(Sample { model_ns: 1, ..sample(2_000) }, None);
    assert_eq!((unknown.power, unknown.places.watt), (None, None));
    assert_eq!(unknown.places.counters.words(CounterId::Energy), None);
}

#[test]
fn a_history_of_power_sums_up_to_the_energy_however_few_of_its_snapshots_are_kept() {
    let description = description("chip:scc");
    let mut builder = SnapshotBuilder::new(&description);
    let mut ring = HistoryRing::new(2);
    // Polls are even, modelled time jumps, and the power is high between the recorded entries.
    let samples: Vec<Sample> = (0..40_u64)
        .map(|look| {
            let until = look * look * 1_000_000;
            drawn(look * 300, until, [until / 2 + (look % 3) * 300_000, until])
        })
        .chain([Sample { end: RunEnd::Ended, ..drawn(11_750, 1_600_000_000, [900_000_000, 1_600_000_000]) }])
        .collect();
    for sample in &samples {
        ring.push(&builder.build(sample.clone(), None));
    }
    let path = std::env::temp_dir().join(format!("isles-view-power-{}", std::process::id()));
    let mut log = LogWriter::create(&path, &description).unwrap();
    samples.iter().for_each(|sample| log.append(sample).unwrap());
    log.finish(RunEnd::Ended, None).unwrap();
    let run = ReplayedRun::of(LogReader::open(&path).unwrap());
    std::fs::remove_file(path).unwrap();
    let series = Series::of_name("watt").unwrap();
    for history in [ring.query(&[0], series, 0, u64::MAX), run.history(&[0], series, 0, u64::MAX)] {
        let core: Vec<f64> = history.series[&0].iter().map(|watt| watt.unwrap()).collect();
        assert!((integral(&history, &core) - 0.9).abs() < 1e-9, "{history:?}");
        assert!((integral(&history, &history.chip_watt) - 4.3).abs() < 1e-9, "{history:?}");
        assert_eq!(history.model_ms.last(), Some(&1_600.0));
    }
}

#[test]
fn pairs_beyond_the_largest_are_summed() {
    let mut builder = SnapshotBuilder::new(&RunDescription { places: 100, ..description("threads") });
    let mut first = sample(1);
    let pair =
        |number: u32| PairCount { from: number / 100, to: number % 100, messages: number.into(), bytes: 2 };
    first.pairs = (0..PAIRS_MAX as u32 + 3).map(pair).collect();
    let shown = builder.build(first, None);
    assert_eq!(shown.pairs.len(), PAIRS_MAX);
    assert_eq!(shown.pairs_rest, PairsRest { messages: 3, bytes: 6 }, "those with 0, 1 and 2 messages");
    assert!(shown.pairs.is_sorted());
}

/// The kinds of the warnings after these samples.
fn warned(samples: impl IntoIterator<Item = Sample>) -> Vec<(WarningKind, u32, u64)> {
    let mut builder = SnapshotBuilder::new(&description("processes"));
    let shown = samples.into_iter().map(|sample| builder.build(sample, None)).last().unwrap();
    shown.warnings.into_iter().map(|warning| (warning.kind, warning.place, warning.since_ms)).collect()
}

#[test]
fn a_place_that_does_not_give_way_is_told_of_until_it_does() {
    let stuck = |time: u64| {
        let mut sample = sample(time);
        (sample.places[1].liveness, sample.places[1].copies) = (Liveness::Busy, 7);
        sample
    };
    assert_eq!(warned([1000, 2000].map(stuck)), []);
    assert_eq!(warned([1000, 2000, 3500].map(stuck)), [(WarningKind::NoYield, 1, 1000)]);
    assert_eq!(warned([stuck(1000), stuck(2000), stuck(3500), sample(4000)]), []);
}

/// Samples of each second in which a finish is open; `change` says what else there is.
fn open_finish(seconds: u64, change: impl Fn(u64, &mut Sample)) -> Vec<Sample> {
    let one = |second: u64| {
        let mut sample = sample(1000 * second);
        sample.finishes = vec![OpenFinish {
            id: 1,
            parent: Some(0),
            live: 1,
            waits_for: vec![(1, 2)],
            label: "a.rs:1".to_owned(),
            ..OpenFinish::default()
        }];
        change(second, &mut sample);
        sample
    };
    (1..=seconds).map(one).collect()
}

#[test]
fn a_finish_is_told_of_only_if_nothing_happens_in_the_whole_run() {
    let counted =
        |counter: CounterId| move |second: u64, sample: &mut Sample| set(sample, 1, counter, second);
    let still = |_: u64, _: &mut Sample| {};
    assert_eq!(warned(open_finish(10, still)), []);
    assert_eq!(warned(open_finish(11, still)), [(WarningKind::FinishOpen, 0, 1_000)]);
    // A sound run, however long: tasks end, messages come, steps are done, modelled time passes, or a place computes.
    for counter in
        [CounterId::Tasks, CounterId::MessagesReceived, CounterId::FinishesReleased, CounterId::EnergyTime]
    {
        assert_eq!(warned(open_finish(600, counted(counter))), [], "{counter:?}");
    }
    assert_eq!(warned(open_finish(600, |second, sample| sample.progress.done = second)), []);
    let computes = |second: u64, sample: &mut Sample| {
        (sample.places[1].liveness, sample.places[1].copies) = (Liveness::Busy, second);
    };
    assert_eq!(warned(open_finish(600, computes)), []);
    // One that stood still and goes on.
    let late = |second: u64, sample: &mut Sample| set(sample, 0, CounterId::Tasks, u64::from(second > 20));
    assert_eq!(warned(open_finish(20, late)), [(WarningKind::FinishOpen, 0, 1_000)]);
    assert_eq!(warned(open_finish(22, late)), []);
    assert_eq!(warned(open_finish(31, late)), [(WarningKind::FinishOpen, 0, 21_000)]);
    let whole = |_: u64, sample: &mut Sample| sample.finishes[0].parent = None;
    assert_eq!(warned(open_finish(30, whole)), [], "the whole run is one finish");
}

#[test]
fn a_finish_of_a_chip_is_open_for_modelled_time() {
    let mut builder = SnapshotBuilder::new(&description("chip:scc"));
    let change = |_: u64, sample: &mut Sample| sample.model_ns = 40_000_000_000;
    let shown = open_finish(12, change).into_iter().map(|sample| builder.build(sample, None)).last().unwrap();
    assert_eq!(shown.finishes[0].open_ms, 40_000);
    let text = "the finish at a.rs:1 has been open for 40.0 s of modelled time and waits for 2 at place 1; nothing has \
                happened for 11.0 s";
    assert_eq!(shown.warnings[0].text, text);
}

#[test]
fn a_queue_that_grows_is_told_of_and_one_that_is_long_is_not() {
    let queue = |each: fn(u64) -> u64| {
        let sample = move |second: u64| {
            let mut sample = sample(1000 * second);
            set(&mut sample, 0, CounterId::Queue, each(second));
            sample
        };
        (1..=8).map(sample)
    };
    assert_eq!(warned(queue(|second| second * 1000)), [(WarningKind::QueueGrows, 0, 1000)]);
    assert_eq!(warned(queue(|_| 100_000)), []);
    assert_eq!(warned(queue(|second| second * 10)), []);
    assert_eq!(warned(queue(|second| if second == 8 { 100 } else { second * 1000 })), []);
}

#[test]
fn chatter_is_reported() {
    let chatter = |second: u64| {
        let mut sample = sample(1000 * second);
        let messages = 50_000 * second;
        sample.pairs = vec![PairCount { from: 1, to: 0, messages, bytes: messages * 20 }];
        sample
    };
    assert_eq!(warned((1..=5).map(chatter)), [(WarningKind::Chatter, 1, 2000)]);
    let long = |second: u64| {
        let mut sample = chatter(second);
        sample.pairs[0].bytes *= 100;
        sample
    };
    assert_eq!(warned((1..=5).map(long)), []);
}

#[test]
fn a_history_is_fine_for_ten_minutes_and_coarse_for_two_hours() {
    let mut builder = SnapshotBuilder::new(&description("processes"));
    let mut ring = HistoryRing::new(2);
    for half in 0..2 * 3600 * 3 {
        let mut sample = sample(500 * half);
        set(&mut sample, 1, CounterId::Tasks, half);
        ring.push(&builder.build(sample, None));
    }
    let end = 3600 * 3 * 1000;
    let tasks = Series::of_name("tasks").unwrap();
    let fine = ring.query(&[1, 9], tasks, end - 60_000, end);
    assert_eq!((fine.step_ms, fine.t.len(), fine.series.len()), (1000, 60, 1));
    assert_eq!(fine.series[&1][59], Some((end / 500 - 2) as f64));
    let coarse = ring.query(&[0, 1], tasks, 0, u64::MAX);
    assert_eq!((coarse.step_ms, coarse.t.len()), (10_000, 720));
    assert!(coarse.t.is_sorted() && coarse.t[0] >= end - 7_210_000);
    assert_eq!(ring.query(&[0], Series::of_name("watt").unwrap(), 0, u64::MAX).series[&0][0], None);
    assert_eq!(Series::of_name("nothing"), None);
}

#[test]
fn a_history_of_many_places_is_bounded_in_memory() {
    let mut builder = SnapshotBuilder::new(&RunDescription { places: 32_768, ..description("chip:x") });
    let mut ring = HistoryRing::new(32_768);
    for second in 0..20 {
        let all = PlaceSample { values: [1; COUNTERS.len()], ..PlaceSample::default() };
        let places = vec![all; 32_768];
        ring.push(&builder.build(Sample { time_ms: 1000 * second, places, ..Sample::default() }, None));
    }
    let kept = ring.query(&[0], Series::of_name("busy").unwrap(), 19_000, u64::MAX);
    assert_eq!(kept.t.last(), Some(&19_000));
    assert!(ring.query(&[0], Series::of_name("busy").unwrap(), 0, u64::MAX).t.len() < 15);
}

/// Returns the log of a run of two places for `seconds` seconds, with an end if one is given.
fn recorded(seconds: u64, end: Option<(RunEnd, Option<&str>)>) -> ReplayedRun {
    let name = format!("isles-replay-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let mut writer = LogWriter::create(&path, &description("processes")).unwrap();
    for second in 0..seconds {
        let mut sample = sample(1000 * second);
        set(&mut sample, 0, CounterId::BusyTime, second * 500_000_000);
        if let (Some((end, _)), true) = (end, second + 1 == seconds) {
            sample.end = end;
        }
        writer.append(&sample).unwrap();
    }
    if let Some((end, reason)) = end {
        writer.finish(end, reason).unwrap();
    }
    let run = LogReader::open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    ReplayedRun::of(run)
}

#[test]
fn a_replay_shows_what_was_and_says_that_the_end_of_a_cut_log_is_unknown() {
    let mut whole = recorded(100, Some((RunEnd::Failed, Some("place 1 is dead"))));
    assert_eq!(whole.length(), Some((99_000, false)));
    assert_eq!(whole.latest().state, RunState::Failed);
    assert_eq!(whole.latest().reason.as_deref(), Some("place 1 is dead"));
    let middle = whole.at(50_300).unwrap();
    assert_eq!((middle.time_ms, middle.seq, middle.state), (50_000, 51, RunState::Running));
    assert_eq!(middle.places.busy, [0.5, 0.0]);
    let history = whole.history(&[0, 7], Series::of_name("busy").unwrap(), 10_000, 20_000);
    assert_eq!((history.t.len(), history.series.len()), (11, 1));
    assert_eq!(history.series[&0][10], Some(0.5));

    let mut cut = recorded(100, None);
    assert_eq!(cut.length(), Some((99_000, true)));
    assert_eq!(cut.at(98_999).unwrap().state, RunState::Running);
    let last = cut.at(99_000).unwrap();
    assert_eq!(last.state, RunState::Unknown);
    assert_eq!(last.reason.as_deref(), Some("the log ends at 99.0 s, without the end of the run"));
    assert_eq!(last.places.state, [PlaceCondition::Silent; 2]);
    assert_eq!(recorded(0, None).at(5).unwrap().places.state, [PlaceCondition::Silent; 2]);
}

#[test]
fn a_summary_is_of_the_whole_run_and_knows_when_it_last_worked() {
    let description = description("processes");
    let path = std::env::temp_dir().join(format!("isles-summary-{}", std::process::id()));
    let mut log = LogWriter::create(&path, &description).unwrap();
    for second in 0..30_u64 {
        // The second place computes for half of each of the first ten seconds; then all wait, until the run ends.
        let mut sample = sample(1000 * second);
        set(&mut sample, 1, CounterId::BusyTime, 500_000_000 * second.min(10));
        set(&mut sample, 1, CounterId::Tasks, second.min(10));
        set(&mut sample, 0, CounterId::MessagesSent, 3);
        set(&mut sample, 0, CounterId::BytesSent, 300);
        sample.finishes = vec![OpenFinish { id: 1, parent: Some(0), ..OpenFinish::default() }];
        sample.end = if second == 29 { RunEnd::Failed } else { RunEnd::Running };
        log.append(&sample).unwrap();
    }
    let line = |seq, stream, text: &str| OutputLine { seq, time_ms: 1, stream, text: text.to_owned() };
    let lines = [line(1, OutputStream::Standard, "printed"), line(2, OutputStream::Result, "nodes  7")];
    log.append_output(0, &lines, true).unwrap();
    log.finish(RunEnd::Failed, Some("no luck")).unwrap();
    let summary = ReplayedRun::of(LogReader::open(&path).unwrap()).summary();
    std::fs::remove_file(path).unwrap();
    assert_eq!((summary.state, summary.reason.as_deref()), (RunState::Failed, Some("no luck")));
    assert_eq!((summary.time_ms, summary.working_ms, summary.model_ms), (29_000, 10_000, None));
    assert_eq!((summary.tasks, summary.messages, summary.bytes), (10, 3, 300));
    assert_eq!(summary.busy, [0.0, 5.0 / 29.0]);
    assert_eq!(summary.result, ["nodes  7"], "what was printed is output");
    assert_eq!(summary.power, None);
    let warned: Vec<(WarningKind, u32)> = summary.warnings.iter().map(|one| (one.kind, one.places)).collect();
    assert_eq!(warned, [(WarningKind::FinishOpen, 1)], "it is told also when it is over");
}

#[test]
fn stages_are_those_of_the_newest_groups_that_have_not_ended() {
    let path = std::env::temp_dir().join(format!("isles-stages-{}", std::process::id()));
    let mut log =
        LogWriter::create(&path, &RunDescription { places: 3, ..description("processes") }).unwrap();
    let mut now = sample(1000);
    now.places.push(now.places[1].clone());
    log.append(&now).unwrap();
    let group = |epoch, first, names: &[&str], waiting| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        StageSample { pipeline: 4, epoch, first, items_per_s: 2.5, waiting, queue: 4, names }.to_line()
    };
    let line = |(index, text): (usize, String)| {
        let seq = index as u64 + 1;
        OutputLine { seq, time_ms: 1000 * seq, stream: OutputStream::Stages, text }
    };
    let lines = |texts: Vec<String>| texts.into_iter().enumerate().map(line).collect::<Vec<_>>();
    // The group of the second epoch reports before the one of the first has ended. The third place dies.
    let first = lines(vec![group(1, 0, &["a", "b"], 1), group(2, 0, &["a"], 3), group(1, 0, &[], 0)]);
    let second = lines(vec![group(1, 2, &["c"], 0), "no report".to_owned(), group(2, 1, &["b", "c"], 2)]);
    let third = lines(vec!["no report".to_owned(), group(1, 1, &["b"], 4)]);
    for (place, lines) in [first, second, third].iter().enumerate() {
        log.append_output(place as u32, lines, true).unwrap();
    }
    log.finish(RunEnd::Ended, None).unwrap();
    let run = ReplayedRun::of(LogReader::open(&path).unwrap());
    std::fs::remove_file(path).unwrap();
    let at = |until_ms| {
        let StagesView { stages, reported } = stages_of(&run, until_ms);
        assert!(reported && stages.iter().all(|stage| stage.pipeline == 0));
        let row = |row: &StageView| (row.stage, row.name.clone(), row.place, row.waiting);
        stages.iter().map(row).collect::<Vec<_>>()
    };
    let row = |stage, name: &str, place, waiting| (stage, name.to_owned(), place, waiting);
    assert_eq!(at(0), []);
    assert_eq!(at(1000), [row(0, "a", 0, 1), row(1, "b", 0, 1), row(2, "c", 1, 0)]);
    assert_eq!(at(2000), [row(0, "a", 0, 3), row(1, "b", 2, 4), row(2, "c", 1, 0)]);
    assert_eq!(at(9000), [row(0, "a", 0, 3), row(1, "b", 1, 2), row(2, "c", 1, 2)]);
}
