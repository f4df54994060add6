//! The table of jobs against invented places: random verbs, reports, deaths of places and of the job server.

use crate::job::{self, JobProgress};
use crate::kinds::KINDS;
use crate::seat::{JobEvent, Runnable, StartId, Told};
use crate::store::{JobSpec, Store};
use crate::table::{Followup, JobTable};
use isles::Random;
use isles_protocol::job::{JobState, JobVerb};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A directory that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isles-jobs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path); // it need not be there
        Folder(path)
    }

    fn store(&self) -> Store {
        Store::open(&self.0, "tests").unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const PLACES: usize = 3;

/// What a place has of a job: the state that it was started from, and what it was told.
struct AtPlace {
    place: usize,
    state: u64,
    is_to_be_saved: bool,
    is_to_be_killed: bool,
    has_started: bool,
}

/// Places as they might be, whose jobs count their steps.
struct World {
    table: JobTable,
    random: Random,
    at: BTreeMap<StartId, AtPlace>,
    /// What a job has counted to, of all that was ever written or runs.
    counted: BTreeMap<u64, u64>,
}

impl World {
    fn verb(&mut self, id: u64) {
        let verb = JobVerb::ALL[self.random.index(JobVerb::ALL.len())];
        let before = self.table.job(id).unwrap().state;
        match verb {
            JobVerb::Start => {
                let place = self.random.index(PLACES);
                if let Ok((start, state)) = self.table.start(id, place) {
                    self.begin(start, place, state);
                }
            }
            JobVerb::Remove => {
                if self.table.remove(id).is_ok() {
                    self.counted.remove(&id);
                    let copy = self.table.create(spec());
                    self.counted.insert(copy, 0);
                }
            }
            verb => {
                if self.table.tell(id, verb).is_ok() {
                    assert!(before.is_active());
                    let start = self.table.start_of(id).unwrap();
                    if verb == JobVerb::Move {
                        self.table.aim(id, self.random.index(PLACES));
                    }
                    if let Some(job) = self.at.get_mut(&start) {
                        job.is_to_be_saved |= matches!(verb, JobVerb::Move | JobVerb::Checkpoint);
                        job.is_to_be_killed |= verb == JobVerb::Kill;
                    }
                }
            }
        }
    }

    fn begin(&mut self, start: StartId, place: usize, state: Option<Vec<u8>>) {
        let state = state.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        // A state that is gone on from is never of another job, and none older than the last that was written.
        assert!(state <= self.counted[&start.job], "{start:?} goes on from {state}");
        self.counted.insert(start.job, state);
        let job = AtPlace { place, state, is_to_be_saved: false, is_to_be_killed: false, has_started: false };
        assert!(self.at.insert(start, job).is_none(), "{start:?} runs twice");
    }

    /// A place does something, if a job is there.
    fn place_acts(&mut self) {
        let starts: Vec<StartId> = self.at.keys().copied().collect();
        if starts.is_empty() {
            return;
        }
        let start = starts[self.random.index(starts.len())];
        let job = self.at.get_mut(&start).unwrap();
        let told = if !job.has_started {
            job.has_started = true;
            Told::Started(None)
        } else if job.is_to_be_killed {
            Told::Killed
        } else if job.is_to_be_saved {
            Told::Saved(job.state.to_le_bytes().to_vec())
        } else if self.random.chance(5) {
            Told::Ended("done".to_owned())
        } else if self.random.chance(2) {
            Told::Faulted("a fault".to_owned())
        } else {
            job.state += 1;
            let counted = self.counted.get_mut(&start.job).unwrap();
            *counted = (*counted).max(job.state);
            Told::Output(vec![job.state.to_string()])
        };
        if !matches!(told, Told::Started(_) | Told::Output(_)) {
            self.at.remove(&start);
        }
        let event = JobEvent { start, busy: Duration::ZERO, told };
        if let Followup::Start(place, state) = self.table.report(event.clone()) {
            let next = self.table.begin(start.job, place);
            self.begin(next, place, state);
        }
        // A report that comes a second time does nothing.
        if !self.at.contains_key(&start) {
            assert_eq!(self.table.report(event), Followup::Nothing);
        }
    }

    fn place_dies(&mut self) {
        let place = self.random.index(PLACES);
        let lost: Vec<StartId> =
            self.at.iter().filter(|(_, job)| job.place == place).map(|(start, _)| *start).collect();
        for start in lost {
            self.at.remove(&start);
            if self.table.start_of(start.job) == Some(start) {
                self.table.lose(start.job, "its place died");
            }
        }
    }

    fn server_dies(&mut self, folder: &Folder) {
        self.at.clear();
        self.table = JobTable::load(folder.store()).unwrap();
    }

    /// What holds at any time.
    fn check(&self, jobs: usize) {
        assert_eq!(self.table.jobs().count(), jobs, "a job was lost or doubled");
        for (id, job) in self.table.jobs() {
            let here: Vec<_> = self.at.keys().filter(|start| start.job == id).collect();
            assert!(here.len() <= 1, "job {id} runs at two places");
            // It is at a place exactly if it is active: none is forgotten there, none is waited for in vain.
            assert_eq!(job.state.is_active(), here.len() == 1, "job {id} is {}", job.state);
            if job.state == JobState::Checkpointed {
                assert!(self.table.store().has_state(id), "the state of job {id} is lost");
            }
        }
    }
}

fn spec() -> JobSpec {
    JobSpec { name: "a job".to_owned(), what: Runnable::Task("count".to_owned(), Vec::new()) }
}

/// As many as `ISLES_TEST_SEEDS` says.
fn seeds(default: u64) -> u64 {
    std::env::var("ISLES_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_is_told_and_dies_no_job_is_lost_or_doubled_or_in_no_state() {
    const JOBS: usize = 20;
    for seed in 0..seeds(40) {
        let folder = Folder::new("worlds");
        let table = JobTable::load(folder.store()).unwrap();
        let mut world =
            World { table, random: Random::new(seed), at: BTreeMap::new(), counted: BTreeMap::new() };
        for _ in 0..JOBS {
            let id = world.table.create(spec());
            world.counted.insert(id, 0);
        }
        for _ in 0..400 {
            let ids: Vec<u64> = world.table.jobs().map(|(id, _)| id).collect();
            let id = ids[world.random.index(JOBS)];
            match world.random.below(100) {
                0..45 => world.verb(id),
                45..97 => world.place_acts(),
                97..99 => world.place_dies(),
                _ => {
                    world.table.keep().unwrap();
                    world.server_dies(&folder);
                }
            }
            world.check(JOBS);
        }
    }
}

#[test]
fn each_kind_goes_on_from_its_state_to_the_same_result() {
    for (kind, words) in [("pi", "200000"), ("sum", "170000"), ("memory", "1"), ("count", "20")] {
        let kind = KINDS.iter().find(|known| known.name() == kind).unwrap();
        let words = [words.to_owned()];
        let run = |is_moved: bool| {
            let mut job = (kind.open)(&words, None).unwrap();
            let mut output = job::JobOutput::default();
            let mut lines = Vec::new();
            loop {
                let progress = job.step(&mut output).unwrap();
                lines.extend(output.take());
                if let JobProgress::Done(result) = progress {
                    return (result, lines);
                }
                if is_moved {
                    job = (kind.open)(&words, Some(&job.save())).unwrap();
                }
            }
        };
        assert_eq!(run(true), run(false), "{}", kind.name());
    }
}

#[test]
fn a_state_of_another_kind_or_program_or_cut_short_is_refused() {
    let folder = Folder::new("states");
    let store = folder.store();
    store.save_state(1, "pi", &[7; 100]).unwrap();
    assert_eq!(store.load_state(1, "pi").unwrap(), [7; 100]);
    let refused = store.load_state(1, "sum").unwrap_err().to_string();
    assert!(refused.contains("a state of pi of tests") && refused.contains("allowed: of sum"), "{refused}");
    let other = Store::open(&folder.0, "another").unwrap().load_state(1, "pi").unwrap_err().to_string();
    assert!(other.contains("allowed: of pi of another"), "{other}");
    let path = folder.0.join("job-1.state");
    let bytes = std::fs::read(&path).unwrap();
    for len in 0..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(store.load_state(1, "pi").is_err(), "{len} bytes");
    }
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let refused = store.load_state(1, "pi").unwrap_err().to_string();
    assert!(refused.contains("do not fit their check word"), "{refused}");
}

#[test]
fn a_table_with_a_fault_is_refused_with_its_file_and_what_is_allowed() {
    let folder = Folder::new("tables");
    let mut table = JobTable::load(folder.store()).unwrap();
    table.create(spec());
    table.keep().unwrap();
    let path = folder.0.join("jobs.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, said) in [
        ("\"new\"", "\"sleeping\"", "a state of a job"),
        ("\"form\": 1", "\"form\": 9", "the form is 9; allowed: 1"),
        ("\"tests\"", "\"others\"", "allowed: those of tests"),
        ("\"id\": 1", "\"id\": 9", "jobs[0] has number 9"),
        ("\"jobs\"", "\"job\"", "missing field"),
    ] {
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let refused = JobTable::load(folder.store()).unwrap_err().to_string();
        assert!(refused.contains("jobs.json") && refused.contains(said), "{refused}");
    }
}
