//! The table of jobs with simulated places: random orders, reports, deaths of places and of the job server.

use crate::command_queue::{CommandInbox, NumberedCommand};
use crate::job::{self, JobProgress};
use crate::kinds::KINDS;
use crate::request::RefusalKind;
use crate::runner::{Control, JobEvent, JobEventKind, Runnable, StartId};
use crate::store::{JobSpec, Store};
use crate::table::{Followup, JobTable};
use isles::Random;
use isles_protocol::job::{JobState, JobVerb};
use std::collections::{BTreeMap, VecDeque};
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

/// A job at its place.
struct AtPlace {
    state: u64,
    has_started: bool,
    /// Number of the command after which it sent its state.
    saved_by: Option<u64>,
}

/// A simulated place, whose jobs count their steps.
#[derive(Default)]
struct ModelPlace {
    inbox: CommandInbox,
    jobs: BTreeMap<StartId, AtPlace>,
    /// A batch of commands in flight to this place.
    batch: Option<Batch>,
    /// Batches that have arrived, and may arrive again.
    old: Vec<Batch>,
}

type Batch = Vec<(StartId, NumberedCommand)>;

/// The table, the places, and all messages between them, which arrive in any order possible for messages of tasks.
struct World {
    folder: Folder,
    table: JobTable,
    random: Random,
    places: Vec<ModelPlace>,
    /// Starts in flight, with their place and state.
    starts: Vec<(StartId, usize, u64)>,
    /// Reports that have not arrived; those of one start arrive in order.
    reports: BTreeMap<StartId, VecDeque<JobEventKind>>,
    /// Highest count of each job, over all written states and all running jobs.
    counted: BTreeMap<u64, u64>,
    /// `true` if states can be written.
    has_room: bool,
    /// `true` if commands may arrive twice.
    has_repeats: bool,
}

impl World {
    fn new(seed: u64, jobs: usize) -> World {
        let folder = Folder::new("worlds");
        let table = JobTable::load(folder.store()).unwrap();
        let mut world = World {
            folder,
            table,
            random: Random::new(seed),
            places: (0..PLACES).map(|_| ModelPlace::default()).collect(),
            starts: Vec::new(),
            reports: BTreeMap::new(),
            counted: BTreeMap::new(),
            has_room: true,
            has_repeats: true,
        };
        (0..jobs).for_each(|_| world.create());
        world
    }

    fn create(&mut self) {
        let job = self.table.create(spec());
        self.counted.insert(job, 0);
    }

    fn verb(&mut self) {
        let jobs: Vec<u64> = self.table.jobs().map(|(id, _)| id).collect();
        let id = jobs[self.random.index(jobs.len())];
        let place = self.random.index(PLACES);
        match JobVerb::ALL[self.random.index(JobVerb::ALL.len())] {
            JobVerb::Start => {
                let has_room = self.has_room;
                let started = self.with_room(has_room, "jobs", |table| table.start_and_save(place, |_| id));
                if let Ok((start, state)) = started {
                    self.launch(start, place, state);
                }
            }
            JobVerb::Remove => {
                if self.table.remove(id).is_ok() {
                    self.counted.remove(&id);
                    self.create();
                }
            }
            JobVerb::Move => drop(self.table.move_to(id, place)), // it may be refused
            verb => drop(self.table.apply_verb(id, verb)),        // as above
        }
    }

    fn launch(&mut self, start: StartId, place: usize, state: Option<Vec<u8>>) {
        let state = state.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        // A job never continues from a state of another job, nor from one older than the last that was written.
        assert!(state <= self.counted[&start.job], "{start:?} goes on from {state}");
        self.counted.insert(start.job, state);
        self.starts.push((start, place, state));
    }

    /// Delivers a start or a batch of commands, or a batch once more.
    fn message_arrives(&mut self) {
        for place in self.table.begin_sending() {
            assert!(self.places[place].batch.is_none(), "two batches are on their way to one place");
            self.places[place].batch = self.table.next_commands(place);
        }
        let place = self.random.index(PLACES);
        let model = &mut self.places[place];
        if self.has_repeats && self.random.chance(10) && !model.old.is_empty() {
            let again = model.old[self.random.index(model.old.len())].clone();
            again.iter().for_each(|(start, command)| model.inbox.receive(*start, *command));
        } else if self.random.chance(50) && !self.starts.is_empty() {
            let (start, place, state) = self.starts.swap_remove(self.random.index(self.starts.len()));
            let model = &mut self.places[place];
            model.inbox.begin(start);
            let job = AtPlace { state, has_started: false, saved_by: None };
            assert!(model.jobs.insert(start, job).is_none(), "{start:?} runs twice");
        } else if let Some(batch) = model.batch.take() {
            batch.iter().for_each(|(start, command)| model.inbox.receive(*start, *command));
            model.old.push(batch);
            model.batch = self.table.next_commands(place);
        }
    }

    /// Lets a job act at its place.
    fn job_acts(&mut self) {
        let place = self.random.index(PLACES);
        let ModelPlace { inbox, jobs, .. } = &mut self.places[place];
        if jobs.is_empty() {
            return;
        }
        let at = self.random.index(jobs.len());
        let (start, job) = jobs.iter_mut().nth(at).unwrap();
        let start = *start;
        let NumberedCommand { number, control } = inbox.newest(start).unwrap();
        let kind = if !job.has_started {
            job.has_started = true;
            Some(JobEventKind::Started)
        } else if job.saved_by == Some(number) {
            None
        } else {
            match control {
                Control::Pause | Control::Leave => None,
                Control::Kill => Some(JobEventKind::Killed),
                Control::Save => {
                    job.saved_by = Some(number);
                    Some(JobEventKind::Saved(job.state.to_le_bytes().to_vec()))
                }
                Control::Run if self.random.chance(5) => Some(JobEventKind::Ended("done".to_owned())),
                Control::Run if self.random.chance(2) => Some(JobEventKind::Faulted("a fault".to_owned())),
                Control::Run => {
                    job.state += 1;
                    let counted = self.counted.get_mut(&start.job).unwrap();
                    *counted = (*counted).max(job.state);
                    Some(JobEventKind::Output(vec![job.state.to_string()]))
                }
            }
        };
        let is_end =
            matches!(kind, Some(JobEventKind::Killed | JobEventKind::Ended(_) | JobEventKind::Faulted(_)));
        if is_end || (job.has_started && control == Control::Leave) {
            jobs.remove(&start);
            inbox.end(start);
        }
        self.reports.entry(start).or_default().extend(kind);
    }

    /// Delivers a report to the job server.
    fn report_arrives(&mut self) {
        self.reports.retain(|_, reports| !reports.is_empty());
        if self.reports.is_empty() {
            return;
        }
        let at = self.random.index(self.reports.len());
        let (start, reports) = self.reports.iter_mut().nth(at).unwrap();
        let (start, kind) = (*start, reports.pop_front().unwrap());
        let has_room = self.has_room || !matches!(kind, JobEventKind::Saved(_));
        let event = JobEvent { start, busy: Duration::ZERO, kind };
        match self.with_room(has_room, &format!("job-{}", start.job), |table| table.report(event)) {
            Followup::Nothing => {}
            Followup::Start(place, state) => {
                let next = self.table.begin(start.job, place);
                self.launch(next, place, state);
            }
            Followup::Unsaved => assert!(!has_room),
        }
    }

    /// Applies `change` to the table while `file` can be written, or cannot.
    fn with_room<T>(&mut self, has_room: bool, file: &str, change: impl FnOnce(&mut JobTable) -> T) -> T {
        // A folder with the name of the temporary file blocks the write.
        let obstacle = self.folder.0.join(file).with_extension("new");
        if !has_room {
            std::fs::create_dir(&obstacle).unwrap();
        }
        let done = change(&mut self.table);
        if !has_room {
            std::fs::remove_dir(&obstacle).unwrap();
        }
        done
    }

    fn place_dies(&mut self) {
        let dead = self.random.index(PLACES);
        let there = self.places[dead].jobs.keys().copied();
        let coming = self.starts.iter().filter(|(_, place, _)| *place == dead).map(|(start, ..)| *start);
        let lost: Vec<StartId> = there.chain(coming).collect();
        self.starts.retain(|(_, place, _)| *place != dead);
        self.places[dead] = ModelPlace::default();
        // Its reports may arrive before or after the news of its death.
        for start in lost {
            if self.table.start_of(start.job) == Some(start) {
                self.table.mark_lost(start.job, "its place died");
            }
        }
        while self.table.next_commands(dead).is_some() {}
    }

    fn server_dies(&mut self) {
        self.table.save_if_changed().unwrap();
        self.places.iter_mut().for_each(|place| *place = ModelPlace::default());
        self.starts.clear();
        self.reports.clear();
        self.table = JobTable::load(self.folder.store()).unwrap();
    }

    /// Checks the invariants that hold at any time.
    fn check(&self, jobs: usize) {
        assert_eq!(self.table.jobs().count(), jobs, "a job was lost or doubled");
        for (id, job) in self.table.jobs() {
            let at_places = self.places.iter().flat_map(|place| &place.jobs);
            let here: Vec<_> = at_places.filter(|(start, _)| start.job == id).collect();
            let is_stepping = |(start, job): &&(&StartId, &AtPlace)| {
                let newest = self.places.iter().find_map(|place| place.inbox.newest(**start));
                job.saved_by.is_none() || job.saved_by < newest.map(|newest| newest.number)
            };
            let leaves = |start: &StartId| {
                let newest = self.places.iter().find_map(|place| place.inbox.newest(*start));
                newest.is_some_and(|newest| newest.control == Control::Leave)
            };
            let stepping = here.iter().filter(is_stepping).filter(|(start, _)| !leaves(start)).count();
            let coming = self.starts.iter().filter(|(start, ..)| start.job == id).count();
            assert!(stepping + coming <= 1, "job {id} runs at two places");
            // The start of an active job exists somewhere, or its end is in flight: the table never waits in vain.
            if let Some(start) = self.table.start_of(id) {
                let is_there = here.iter().any(|(here, _)| **here == start)
                    || self.starts.iter().any(|(coming, ..)| *coming == start);
                let ends = self.reports.get(&start).and_then(VecDeque::back);
                let ends = matches!(
                    ends,
                    Some(JobEventKind::Killed | JobEventKind::Ended(_) | JobEventKind::Faulted(_))
                );
                assert!(is_there || ends, "job {id} is {} and nowhere", job.state);
            }
            if job.state == JobState::Checkpointed {
                assert!(self.table.store().has_state(id), "the state of job {id} is lost");
            }
        }
    }

    /// Checks the invariant that holds when all messages have arrived: each job obeys the table.
    fn check_commands(&self) {
        for (place, start) in
            self.places.iter().flat_map(|place| place.jobs.keys().map(move |start| (place, start)))
        {
            if self.table.start_of(start.job) != Some(*start) {
                continue;
            }
            let state = self.table.job(start.job).unwrap().state;
            let control = place.inbox.newest(*start).unwrap().control;
            let wanted = if state == JobState::Paused { Control::Pause } else { Control::Run };
            assert_eq!(control, wanted, "{start:?} is {state}");
        }
    }

    /// Delivers all messages and lets all jobs act until `is_over`, without new verbs or deaths.
    fn go_on_until(&mut self, is_over: impl Fn(&mut JobTable) -> bool) {
        for _ in 0..100_000 {
            if is_over(&mut self.table) {
                return;
            }
            match self.random.below(3) {
                0 => self.message_arrives(),
                1 => self.job_acts(),
                _ => self.report_arrives(),
            }
        }
        let active = self.table.jobs().filter(|(_, job)| job.state.is_active());
        let active: Vec<String> = active.map(|(id, job)| format!("job {id} is {}", job.state)).collect();
        panic!("it waits for ever: {}", active.join(", "));
    }
}

fn spec() -> JobSpec {
    JobSpec::new("a job", Runnable::Task("count".to_owned(), Vec::new()))
}

/// Returns the number of seeds: that of `ISLES_TEST_SEEDS`, or `default`.
fn seeds(default: u64) -> u64 {
    std::env::var("ISLES_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_is_told_and_dies_no_job_is_lost_or_doubled_or_in_no_state() {
    for seed in 0..seeds(40) {
        let jobs = 1 + (seed % 20) as usize;
        println!("seed {seed}");
        let mut world = World::new(seed, jobs);
        // In a third of the worlds no place dies, in a third there is always room.
        let (has_deaths, has_faults) = (!seed.is_multiple_of(3), seed % 3 != 1);
        for _ in 0..400 {
            world.has_room = !has_faults || world.random.chance(70);
            match world.random.below(100) {
                0..30 => world.verb(),
                30..55 => world.message_arrives(),
                55..75 => world.job_acts(),
                75..97 => world.report_arrives(),
                97..99 if has_deaths => world.place_dies(),
                99 if has_deaths => world.server_dies(),
                _ => {}
            }
            world.check(jobs);
        }
        // Without further orders, no job stays in transition.
        let stays =
            |state: JobState| !state.is_active() || matches!(state, JobState::Running | JobState::Paused);
        (world.has_room, world.has_repeats) = (true, false);
        world.go_on_until(|table| table.jobs().all(|(_, job)| stays(job.state)));
        (0..1000).for_each(|_| world.message_arrives());
        world.check_commands();
        world.go_on_until(|table| table.end_jobs(true));
        world.check(jobs);
        // A job that has left a place is gone there.
        for _ in 0..10_000 {
            world.message_arrives();
            world.job_acts();
        }
        assert!(world.places.iter().all(|place| place.jobs.is_empty()), "a place keeps a job that has ended");
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
    assert!(refused.contains("do not match their checksum"), "{refused}");
}

#[test]
fn a_table_with_a_fault_is_refused_with_its_file_and_what_is_allowed() {
    let folder = Folder::new("tables");
    let mut table = JobTable::load(folder.store()).unwrap();
    table.create(spec());
    table.save_if_changed().unwrap();
    let path = folder.0.join("jobs.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        ("\"new\"", "\"sleeping\"", "a state of a job"),
        ("\"form\": 1", "\"form\": 9", "the format is 9; allowed: 1"),
        ("\"tests\"", "\"others\"", "allowed: those of tests"),
        ("\"id\": 1", "\"id\": 9", "jobs[0] has number 9"),
        ("\"jobs\"", "\"job\"", "missing field"),
    ] {
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let refused = JobTable::load(folder.store()).unwrap_err().to_string();
        assert!(refused.contains("jobs.json") && refused.contains(expected), "{refused}");
    }
}

#[test]
fn what_cannot_be_kept_is_neither_made_nor_started() {
    let folder = Folder::new("kept");
    let mut table = JobTable::load(folder.store()).unwrap();
    let first = table.change_and_save(|table| Ok(table.create(spec()))).unwrap();
    table.store().save_state(first, "count", &[1]).unwrap();
    // A folder with the name of the temporary file prevents the write of the table.
    let obstacle = folder.0.join("jobs.new");
    std::fs::create_dir(&obstacle).unwrap();
    let refused = table.change_and_save(|table| Ok(table.create(spec()))).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::NotKept);
    assert!(
        refused.reason.contains("nothing was started or created") && refused.reason.contains("jobs.json")
    );
    let refused = table.start_and_save(0, |_| first).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::NotKept);
    assert_eq!(table.jobs().map(|(id, job)| (id, job.state)).collect::<Vec<_>>(), [(first, JobState::New)]);
    std::fs::remove_dir(&obstacle).unwrap();
    assert!(table.start_and_save(0, |_| first).is_ok());
    assert!(!table.store().has_state(first), "it begins");
    // Across servers no number is used twice, and none is skipped.
    assert_eq!(table.change_and_save(|table| Ok(table.create(spec()))).unwrap(), first + 1);
    let loaded = JobTable::load(folder.store()).unwrap();
    assert_eq!(loaded.jobs().count(), 2);
}

#[test]
fn a_copy_of_a_job_whose_state_is_gone_or_damaged_is_refused_and_leaves_nothing() {
    let folder = Folder::new("copies");
    let mut table = JobTable::load(folder.store()).unwrap();
    let job = table.create(spec());
    let (start, _) = table.start(job, 0).unwrap();
    let report = |kind| JobEvent { start, busy: Duration::ZERO, kind };
    table.report(report(JobEventKind::Started));
    table.apply_verb(job, JobVerb::Checkpoint).unwrap();
    table.report(report(JobEventKind::Saved(vec![1, 2, 3])));
    let copy = table.change_and_save(|table| table.duplicate(job)).unwrap();
    assert_eq!(table.job(copy).unwrap().state, JobState::Checkpointed);
    assert_eq!(table.start(copy, 0).unwrap().1, Some(vec![1, 2, 3]));
    let path = folder.0.join(format!("job-{job}.state"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let damaged = table.change_and_save(|table| table.duplicate(job)).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    let gone = table.change_and_save(|table| table.duplicate(job)).unwrap_err();
    for refused in [damaged, gone] {
        assert_eq!(refused.kind, RefusalKind::BadCheckpoint);
        assert!(refused.reason.contains(&format!("job-{job}.state")), "{}", refused.reason);
    }
    assert_eq!(table.jobs().count(), 2);
    assert!(!table.store().has_state(copy + 1));
}
