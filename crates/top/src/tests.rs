//! Tests of keys and pictures on a simulated terminal.

use crate::draw;
use crate::jobs::JobSource;
use crate::screen::{KeyOutcome, Pane, Screen};
use isles_telemetry::{
    COUNTERS, CounterId, DeathCause, EnergySample, Liveness, OpenFinish, PairCount, ProgressSample,
    RunDescription, RunEnd, Sample,
};
use isles_view::{Snapshot, SnapshotBuilder, StageView};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

/// A run of some places, sampled at these times in seconds.
struct Scene {
    screen: Screen,
    builder: SnapshotBuilder,
}

impl Scene {
    fn new(places: u32, machine: &str) -> Scene {
        let words = ["prog\u{1b}[2J".to_owned(), "argument".to_owned()];
        let description = RunDescription { machine: machine.to_owned(), places, ..RunDescription::default() };
        let description = description.with_command(words);
        Scene { screen: Screen::new(&description), builder: SnapshotBuilder::new(&description) }
    }

    /// Advances to `second`; `change` edits the sample.
    fn look(&mut self, second: u64, change: impl FnOnce(&mut Sample)) -> Snapshot {
        let mut sample = Sample { time_ms: 1000 * second, ..Sample::default() };
        sample.places.resize(self.screen.run.places as usize, Default::default());
        for (number, place) in sample.places.iter_mut().enumerate() {
            (place.liveness, place.at_ns, place.copies) = (Liveness::Idle, 1_000_000_000 * second, second);
            place.values[CounterId::Tasks.index()] = 100 * second * (number as u64 + 1);
            place.values[CounterId::BusyTime.index()] = 100_000_000 * second * (number as u64 % 10);
        }
        change(&mut sample);
        let snapshot = self.builder.build(sample, None);
        self.screen.take(snapshot.clone());
        snapshot
    }

    fn press(&mut self, keys: &str) {
        for key in keys.chars() {
            let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
            assert_eq!(
                self.screen.key(KeyEvent::new(code, KeyModifiers::NONE)),
                KeyOutcome::Continue,
                "{key}"
            );
        }
    }

    fn code(&mut self, code: KeyCode) -> KeyOutcome {
        self.screen.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn picture(&self) -> String {
        self.picture_of(130)
    }

    fn picture_of(&self, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 16)).unwrap();
        terminal.draw(|frame| draw::screen(frame, &self.screen)).unwrap();
        terminal.backend().to_string()
    }
}

#[test]
fn places_are_rows_with_shares_and_rates_and_no_control_characters() {
    let mut scene = Scene::new(4, "processes");
    scene.look(1, |_| ());
    scene.look(2, |sample| sample.places[3].death = Some(DeathCause::Killed(9)));
    let picture = scene.picture();
    assert!(picture.contains("prog[2J argument") && !picture.contains('\u{1b}'), "{picture}");
    assert!(picture.contains("runs for 2.0 s on 4 places (processes), busy 8 %"), "{picture}");
    assert!(picture.contains("4 of 4 places"));
    let row = picture.lines().find(|line| line.contains("20 %")).unwrap();
    assert!(
        row.contains("██········") && row.contains("600") && row.contains("300"),
        "tasks and tasks a second: {row}"
    );
    assert!(picture.contains("dead") && !picture.contains("MHz"));
    scene.press("kkkjjjjjjj\n");
    let place = scene.picture();
    assert!(place.contains("its process was ended by signal 9"), "{place}");
    scene.code(KeyCode::Esc);
    assert_eq!(scene.screen.pane, Pane::Places);
}

#[test]
fn how_far_the_program_is_stands_in_the_head_if_it_says_so() {
    let mut scene = Scene::new(2, "threads");
    scene.look(1, |_| ());
    assert!(scene.picture().contains("busy 5 % "), "{}", scene.picture());
    scene.look(2, |sample| {
        let unit = "sour\u{1b}ces".to_owned();
        sample.progress = ProgressSample { done: 12, total: 34, unit, ..ProgressSample::default() };
    });
    assert!(scene.picture().contains("busy 5 %, 12 of 34 sources "), "{}", scene.picture());
    scene.look(3, |sample| {
        let (unit, phase) = ("updates".to_owned(), "ch\u{1b}eck".to_owned());
        sample.progress = ProgressSample { done: 5, unit, phase, ..ProgressSample::default() };
    });
    assert!(scene.picture().contains("busy 5 %, check, 5 updates so far "), "{}", scene.picture());
    scene.look(4, |sample| {
        sample.progress = ProgressSample { phase: "check".to_owned(), ..ProgressSample::default() };
    });
    assert!(scene.picture().contains("busy 5 %, check "), "{}", scene.picture());
}

#[test]
fn a_pause_keeps_looking() {
    let mut scene = Scene::new(2, "threads");
    scene.look(1, |_| ());
    scene.press("p");
    scene.look(2, |_| ());
    scene.look(3, |_| ());
    let paused = scene.picture();
    assert!(paused.contains("for 1.0 s") && paused.contains("PAUSED"), "{paused}");
    scene.press("p");
    assert!(scene.picture().contains("for 3.0 s"));
}

#[test]
fn filters_order_and_pins_choose_the_rows() {
    let mut scene = Scene::new(12, "threads");
    scene.look(1, |sample| sample.places[7].liveness = Liveness::Busy);
    scene.look(2, |sample| {
        sample.places[7].liveness = Liveness::Busy;
        sample.places[4].values[CounterId::Queue.index()] = 9;
    });
    scene.press("/1,3-4\n");
    assert_eq!(scene.screen.places(), [1, 3, 4]);
    assert!(scene.picture().contains("3 of 12 places"));
    scene.press("j ");
    assert_eq!(scene.screen.places(), [3, 1, 4], "a pinned place stands first");
    scene.press(" ");
    assert_eq!(scene.screen.places(), [1, 3, 4], "the cursor stays on its place");
    scene.code(KeyCode::Esc);
    scene.press("/busy\n");
    assert_eq!(scene.screen.places(), [7]);
    scene.press("/");
    scene.code(KeyCode::Esc);
    scene.press("o");
    assert_eq!(scene.screen.places()[..2], [9, 8]);
    scene.press("o");
    assert_eq!(scene.screen.places()[0], 4);
    scene.press("o");
    assert_eq!(scene.screen.places()[0], 0);
}

#[test]
fn panes_show_finishes_messages_warnings_and_keys() {
    let mut scene = Scene::new(2, "threads");
    let change = |sample: &mut Sample| {
        let outer = OpenFinish { id: 1, label: "the whole run".into(), ..OpenFinish::default() };
        let inner = OpenFinish {
            id: 2,
            parent: Some(1),
            label: "src/main.rs:7".into(),
            waits_for: vec![(1, 3)],
            ..OpenFinish::default()
        };
        sample.finishes = vec![outer, inner];
        // Nothing happens.
        sample.places.iter_mut().for_each(|place| place.values[CounterId::Tasks.index()] = 0);
        sample.pairs = vec![PairCount { from: 0, to: 1, messages: 12, bytes: 345 }];
    };
    scene.look(1, change);
    scene.press("gw");
    assert!(scene.picture().contains("no warnings"));
    scene.look(20, change);
    assert!(
        scene.picture().contains("finish-open  place 0     the finish at src/main.rs:7"),
        "{}",
        scene.picture()
    );
    scene.press("gf");
    assert!(scene.picture().contains("  src/main.rs:7 at place 0, open for 20.0 s; waits for 3 at place 1"));
    scene.press("gm");
    assert!(scene.picture().contains("0 to 1                12 messages            345 bytes"));
    scene.press("gl");
    assert!(scene.picture().contains("no pipeline runs"));
    let name = "mat\u{1b}ch".to_owned();
    scene.screen.stages = vec![StageView {
        pipeline: 0,
        stage: 6,
        name,
        place: 1,
        items_per_s: 2.54,
        waiting: 3,
        queue: 4,
        time_ms: 0,
    }];
    let picture = scene.picture();
    assert!(
        picture
            .contains("match                    pipeline 0   place 1            2.5 items/s, 3 of 4 waiting"),
        "{picture}"
    );
    scene.press("?");
    assert!(scene.picture().contains("samples are still read meanwhile"));
    scene.press("gt");
    assert_eq!(scene.screen.pane, Pane::Places);
}

#[test]
fn a_chip_has_clocks_and_watts_and_the_end_of_a_run_is_said() {
    let mut scene = Scene::new(48, "chip:scc");
    scene.look(1, |_| ());
    scene.look(2, |sample| {
        sample.places[0].values[CounterId::Clock.index()] = 533_000;
        sample.energy = EnergySample { nanojoules: 9_000_000, until_ns: 1_000_000 };
        sample.places[0].values[CounterId::Energy.index()] = 1_230_000;
        sample.end = RunEnd::Ended;
    });
    let picture = scene.picture();
    assert!(picture.contains("MHz") && picture.contains("533") && picture.contains("1.23"), "{picture}");
    assert!(picture.contains("has ended for 2.0 s, 0.000 ms modelled on 48 places"), "{picture}");
    let text = draw::text(&scene.screen);
    assert_eq!(text.lines().count(), 2 + 1 + 48);
}

#[test]
fn keys_that_end_are_q_and_control_c_and_a_small_terminal_is_no_matter() {
    let mut scene = Scene::new(3, "threads");
    scene.look(1, |_| ());
    assert_eq!(scene.code(KeyCode::Char('q')), KeyOutcome::End);
    let control = |character| KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL);
    assert_eq!(scene.screen.key(control('c')), KeyOutcome::End);
    for character in ['d', 'k', 'w'] {
        assert_eq!(scene.screen.key(control(character)), KeyOutcome::Continue);
    }
    scene.press("/q");
    assert_eq!(scene.screen.filter, "q", "letters go to the filter");
    for (width, height) in [(1, 1), (10, 3), (40, 5)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw::screen(frame, &scene.screen)).unwrap();
    }
}

#[test]
fn a_narrow_terminal_has_fewer_columns_and_cuts_no_heading() {
    let mut scene = Scene::new(2, "chip:scc");
    scene.look(1, |_| {});
    let headings = |picture: String| -> Vec<String> {
        let line = picture.lines().find(|line| line.contains("place ")).unwrap().to_owned();
        line.split_whitespace().map(|word| word.trim_matches(['"', '│']).to_owned()).collect()
    };
    let all = headings(scene.picture());
    for width in [80, 70, 60] {
        let some = headings(scene.picture_of(width));
        assert!(some.len() < all.len() && some.iter().all(|name| all.contains(name)), "{width}: {some:?}");
        for needed in ["state", "busy", "queue"] {
            assert!(some.iter().any(|name| name == needed), "{width}: {some:?}");
        }
    }
}

#[test]
fn each_counter_stands_in_the_look_at_a_place() {
    let mut scene = Scene::new(1, "chip:scc");
    scene.look(1, |sample| {
        sample.energy = EnergySample { until_ns: 1, nanojoules: 1 };
        sample.places[0].values = std::array::from_fn(|index| 1_000_000_007 + index as u64);
    });
    scene.code(KeyCode::Enter);
    let mut terminal = Terminal::new(TestBackend::new(130, 60)).unwrap();
    terminal.draw(|frame| draw::screen(frame, &scene.screen)).unwrap();
    let picture = terminal.backend().to_string();
    for (index, counter) in COUNTERS.iter().enumerate() {
        let value = counter.shown(1_000_000_007 + index as u64);
        let label = format!("{:<18}{value} {}", counter.name.replace('_', " "), counter.unit);
        assert!(picture.contains(&label), "{label} is not in {picture}");
    }
}

/// Answer of a job server with two jobs.
const JOBS: &str = concat!(
    r#"{"answer":"jobs","jobs":[{"id":3,"name":"pi\u001b[2J","state":"running","place":1,"processor":99.6,"#,
    r#""memory":2e6,"busy":1.5,"reason":""},{"id":4,"name":"sum","state":"failed","place":null,"processor":0,"#,
    r#""memory":0,"busy":0.25,"reason":"no memory"}],"kinds":[]}"#
);

/// A job server that answers `requests` requests for a run of two jobs, and then ends.
fn job_server(folder: &Path, requests: usize) -> JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(folder.join("socket")).unwrap();
    std::thread::spawn(move || {
        let answer = |asked: &str| match asked.contains("output") {
            true => r#"{"answer":"output","lines":["a \u001b[2Jline","the last"],"before":0,"file":"f"}"#,
            false => JOBS,
        };
        let one = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).unwrap();
            writeln!(stream, "{}", answer(&asked)).unwrap();
            asked
        };
        (0..requests).map(one).collect()
    })
}

#[test]
fn jobs_are_listed_and_one_shows_its_last_lines() {
    let folder = std::env::temp_dir().join(format!("isles-top-jobs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut scene = Scene::new(2, "chip:scc");
    scene.look(1, |_| ());
    scene.press("gj");
    assert!(scene.picture().contains("0 jobs: isles top RUN --jobs DIR shows them"), "{}", scene.picture());
    scene.screen.has_jobs = true;
    let source = JobSource::of(&folder);
    source.refresh(&mut scene.screen.jobs, None);
    assert!(scene.picture().contains("socket: No such file"), "{}", scene.picture());
    let server = job_server(&folder, 3);
    source.refresh(&mut scene.screen.jobs, None);
    let picture = scene.picture();
    assert!(
        picture.contains("2 jobs") && picture.contains("pi[2J") && !picture.contains('\u{1b}'),
        "{picture}"
    );
    let row = picture.lines().find(|line| line.contains("running")).unwrap();
    assert!(row.contains("100 %") && row.contains("1.5 s"), "{row}");
    assert!(picture.contains("no memory"), "{picture}");
    scene.press("k\n");
    assert_eq!((scene.screen.pane, scene.screen.chosen_job()), (Pane::Job, Some(3)));
    let chosen = scene.screen.chosen_job();
    source.refresh(&mut scene.screen.jobs, chosen);
    let picture = scene.picture();
    assert!(picture.contains("job 3, its last lines") && picture.contains("the last"), "{picture}");
    assert!(!picture.contains('\u{1b}'), "{picture}");
    scene.code(KeyCode::Esc);
    scene.press("j");
    assert_eq!((scene.screen.pane, scene.screen.chosen_job()), (Pane::Jobs, Some(4)));
    let asked = server.join().unwrap();
    assert!(asked[2].contains(r#""job":3"#), "{asked:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
