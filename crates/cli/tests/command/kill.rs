//! kill -9 and SIGSTOP of any place, at random moments of a real run: each wait ends with an answer, and nothing is
//! left behind.
//!
//! A round starts `isles run bc` over processes, waits until the place to be killed has computed for a random time (its
//! own processor time, so the machine's load does not matter), and kills it. The graph is large enough that no run ends
//! before that. `ISLES_TEST_KILLS` is the number of rounds of each test, `ISLES_SEED` the first seed; the seed of each
//! round is printed. The time that the survivors took is printed too, and not checked.

use crate::scene::{
    Ended, PlaceProcess, Random, Running, Scene, busy_ns, has_thread, is_over, kill, signal, state, until,
    words,
};
use rustix::process::Signal;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Number of rounds in the ordinary tests.
const ROUNDS: u64 = 5;

/// Processor time after which a place with all its threads has surely joined and computes, and so have the others.
const COMPUTING_NS: u64 = 20_000_000;

/// Maximum processor time of a place before it is killed.
const KILL_NS_MAX: u64 = 300_000_000;

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// Returns the rounds of one test, each with its random numbers.
fn rounds() -> impl Iterator<Item = Random> {
    let read = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let first = read("ISLES_SEED").unwrap_or(clock);
    (0..read("ISLES_TEST_KILLS").unwrap_or(ROUNDS)).map(move |round| {
        println!("ISLES_SEED={} (round {round})", first + round);
        Random(first + round)
    })
}

/// One run that computes, and the processes of its places other than the first.
struct Run {
    scene: Scene,
    running: Running,
    others: Vec<PlaceProcess>,
}

impl Run {
    fn start(random: &mut Random) -> Run {
        let scene = Scene::new("kill");
        let places = 4 + random.below(5);
        let balance = ["static", "dynamic", "glb"][random.below(3) as usize];
        let line = format!(
            "run bc --graph rmat-high --machine processes --balance {balance} --places {places} --json -"
        );
        let running = Running::start(scene.isles(&words(&line)));
        let mut others = Vec::new();
        until("the places have started", || {
            others = scene.places();
            others.len() as u64 == places - 1
        });
        println!("{places} places, {balance}");
        Run { scene, running, others }
    }

    /// Waits until a process has computed for a random time.
    fn let_compute(&self, pid: i32, random: &mut Random) {
        until("it has joined", || has_thread(pid, "isles-watch"));
        let joined = busy_ns(pid).expect("nobody has killed it yet");
        let more = COMPUTING_NS + random.below(KILL_NS_MAX - COMPUTING_NS);
        until("it has computed", || busy_ns(pid).expect("nobody has killed it yet") >= joined + more);
    }

    /// Waits for the end of all processes. Returns the output of the first process, and the time since `since`.
    fn conclude(self, since: Instant) -> (Ended, Duration) {
        let Run { scene, running, .. } = self;
        let ended = running.finish();
        scene.until_all_ended();
        let took = since.elapsed();
        scene.assert_nothing_left();
        println!("{took:?}: {:?}", ended.stderr);
        assert_eq!(ended.stdout, "", "a run that failed wrote a result");
        (ended, took)
    }
}

/// Prints the times of the rounds.
fn tell(mut took: Vec<Duration>) {
    took.sort();
    if let Some(longest) = took.last() {
        println!("over after {:?} (median), {longest:?} (longest)", took[took.len() / 2]);
    }
}

/// Returns the lines of the error, which are the last output.
fn errors(ended: &Ended) -> Vec<&str> {
    ended.stderr.lines().skip_while(|line| !line.starts_with("error: ")).collect()
}

#[test]
fn a_killed_place_is_a_dead_place_error_that_names_it() {
    let took = rounds().map(|mut random| {
        let run = Run::start(&mut random);
        let victim = run.others[random.below(run.others.len() as u64) as usize];
        run.let_compute(victim.pid, &mut random);
        assert_eq!(
            run.scene.named_memory(),
            [""; 0],
            "the run uses memory with a name, which could be left behind"
        );
        let since = Instant::now();
        kill(victim.pid);
        let (ended, took) = run.conclude(since);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let (errors, name) = (errors(&ended), format!("DeadPlace: place {} is dead", victim.place));
        assert!(errors[0].starts_with("error: "), "{ended:?}");
        assert!(errors.iter().any(|line| line.contains(&name)), "{victim:?} is not named: {ended:?}");
        took
    });
    tell(took.collect());
}

#[test]
fn nobody_outlives_the_first_place() {
    let took = rounds().map(|mut random| {
        let run = Run::start(&mut random);
        run.let_compute(run.others[0].pid, &mut random);
        let since = Instant::now();
        kill(run.running.child.id() as i32);
        let (ended, took) = run.conclude(since);
        assert_eq!((ended.code, errors(&ended)), (None, vec![]), "{ended:?}");
        took
    });
    tell(took.collect());
}

/// The run is so short that the kill may come at any moment between the first process and the last output: while the
/// places start, join, work or leave.
#[test]
fn a_place_that_is_killed_at_any_moment_leaves_nothing_and_no_wait() {
    let (joined, whole) = whole_run_ns();
    println!("a place has a processor for {} ms until it joins, for {} ms in all", joined / MS, whole / MS);
    for mut random in rounds() {
        let scene = Scene::new("moment");
        let running = start_short_run(&scene);
        let place = 1 + random.below(3) as u32;
        // Most of a short run is its start, so every other kill comes after it.
        let share =
            if random.below(2) == 0 { random.below(joined) } else { joined + random.below(whole - joined) };
        if let Some(pid) = until_started(&scene, &running, place) {
            until("its time has come", || busy_ns(pid).is_none_or(|time| time >= share) || is_over(pid));
            kill(pid);
        }
        let ended = running.finish();
        scene.until_all_ended();
        scene.assert_nothing_left();
        println!("{:?} {:?}", ended.code, ended.stderr);
        assert_over(&ended, place);
    }
}

/// Asserts that a short run has succeeded, or reports that `place` is dead.
fn assert_over(ended: &Ended, place: u32) {
    let errors = errors(ended);
    match ended.code {
        Some(0) => assert!(errors.is_empty() && ended.stdout.contains("betweenness"), "{ended:?}"),
        Some(1) => {
            assert!(ended.stderr.contains(&format!("DeadPlace: place {place} is dead")), "{ended:?}");
        }
        Some(2) => {
            assert!(errors.len() == 1 && errors[0].contains(&format!("place {place}")), "{ended:?}");
        }
        _ => panic!("{ended:?}"),
    }
}

/// Fate of a run in which one process was stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// The process continues.
    Continued,
    /// The process is killed while it is stopped.
    Killed,
    /// The first place is killed while the process is stopped.
    Alone,
}

/// A stopped process does not answer, does not watch its parent, and keeps the memory that it was about to return.
/// Others wait for it as long as it is stopped, because they cannot know that it does not compute.
#[test]
fn a_stopped_place_goes_on_where_it_stood_or_is_a_dead_place() {
    let (joined, whole) = whole_run_ns();
    let (mut stopped, mut ways) = (0, [0; 3]);
    for mut random in rounds() {
        let scene = Scene::new("stop");
        let running = start_short_run(&scene);
        let (first, place) = (running.child.id() as i32, random.below(4) as u32);
        let then = match random.below(if place == 0 { 2 } else { 3 }) {
            0 => Then::Continued,
            1 => Then::Killed,
            _ => Then::Alone,
        };
        let share =
            if random.below(2) == 0 { random.below(joined) } else { joined + random.below(whole - joined) };
        let pid = if place == 0 { Some(first) } else { until_started(&scene, &running, place) };
        if let Some(pid) = pid {
            until("its time has come", || busy_ns(pid).is_none_or(|time| time >= share) || is_over(pid));
            signal(pid, Signal::STOP);
            until("it stands", || is_in(pid, 'T') || is_over(pid));
            stopped += u32::from(!is_over(pid));
            // The others continue meanwhile, until they need it.
            for _ in 0..random.below(100) {
                scene.processes();
            }
            ways[then as usize] += 1;
            match then {
                Then::Continued => signal(pid, Signal::CONT),
                Then::Killed => kill(pid),
                Then::Alone => kill(first),
            }
        }
        let ended = running.finish();
        scene.until_all_ended();
        scene.assert_nothing_left();
        println!("place {place} {then:?}: {:?} {:?}", ended.code, ended.stderr);
        let killed_first = then == Then::Alone || (then == Then::Killed && place == 0);
        match ended.code {
            None => assert!(killed_first && errors(&ended).is_empty(), "{ended:?}"),
            Some(code) => {
                assert!(then != Then::Continued || code == 0, "{ended:?}");
                assert_over(&ended, place);
            }
        }
    }
    println!("{stopped} stood, of {ways:?}");
    assert!(stopped > 0, "no process was ever stopped before its run was over");
}

fn start_short_run(scene: &Scene) -> Running {
    let line = "run bc --graph karate --machine processes --places 4 --json - --csv /dev/null";
    Running::start(scene.isles(&words(line)))
}

/// Returns the processor time of a place when it joins, and when a short run is over.
fn whole_run_ns() -> (u64, u64) {
    let scene = Scene::new("whole");
    let running = start_short_run(&scene);
    let (mut joined, mut whole) = (0, 1);
    until("the run is over", || {
        for process in scene.places() {
            let Some(time) = busy_ns(process.pid) else { continue };
            whole = time.max(whole);
            if !has_thread(process.pid, "isles-watch") {
                joined = time.max(joined);
            }
        }
        is_over(running.child.id() as i32)
    });
    assert_eq!(running.finish().code, Some(0));
    (joined.min(whole - 1).max(1), whole)
}

/// Returns the process of `place` as soon as it exists; `None` if the run is over before it was seen.
fn until_started(scene: &Scene, running: &Running, place: u32) -> Option<i32> {
    let mut pid = None;
    until("the place has started, or all is over", || {
        pid = scene.places().into_iter().find(|process| process.place == place).map(|process| process.pid);
        pid.is_some() || is_over(running.child.id() as i32)
    });
    pid
}

/// Returns `true` if a process is in the state with this letter in `/proc/PID/stat`.
fn is_in(pid: i32, wanted: char) -> bool {
    state(pid) == Some(wanted)
}
