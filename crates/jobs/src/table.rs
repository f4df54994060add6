//! The table of jobs, with the state of each.
//!
//! Every change of a job is a transition of the state machine; so an order that crosses a report is refused, and a late
//! report is ignored. Invariant: an active job has a start with a number of its own, and the directory matches the
//! table once [`JobTable::save_if_changed`] has returned.

use crate::command_queue::{CommandQueue, NumberedCommand};
use crate::request::{OrderInfo, Refusal, RefusalKind};
use crate::runner::criu;
use crate::runner::process::kill_marked;
use crate::runner::{Control, JobEvent, JobEventKind, Runnable, StartId};
use crate::store::{JobSpec, Store, StoreError, StoredJob};
use isles_protocol::job::{JobReport, JobState, JobStep, JobVerb};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A job.
#[derive(Clone, Debug)]
pub(crate) struct ManagedJob {
    pub(crate) spec: JobSpec,
    pub(crate) state: JobState,
    pub(crate) place: Option<usize>,
    /// Target place, if the job moves.
    pub(crate) target: Option<usize>,
    /// `true` if the job was paused when its checkpoint was ordered.
    was_paused: bool,
    /// `true` if the last write of its state failed.
    pub(crate) is_unsaved: bool,
    pub(crate) starts: u64,
    pub(crate) reason: String,
    /// Computing time: before this start, and in it.
    pub(crate) busy_before: Duration,
    pub(crate) busy: Duration,
    pub(crate) memory: u64,
    /// Use of the processor in percent, at the last sample.
    pub(crate) share: f64,
}

/// The jobs of a job server.
#[derive(Debug)]
pub(crate) struct JobTable {
    store: Store,
    next: u64,
    jobs: BTreeMap<u64, ManagedJob>,
    /// Pending commands by place.
    commands: BTreeMap<usize, CommandQueue>,
    is_changed: bool,
}

/// Action required after a report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Followup {
    Nothing,
    /// The job must be started at this place, from this state.
    Start(usize, Option<Vec<u8>>),
    /// The state of the job could not be written, for the first time; `reason` has the cause.
    Unsaved,
}

impl JobTable {
    /// Loads the table of `store`. Jobs that were active when their job server ended are lost, or return to their
    /// checkpoint.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub(crate) fn load(store: Store) -> Result<JobTable, StoreError> {
        let (next, stored) = store.load()?;
        let mut table =
            JobTable { store, next, jobs: BTreeMap::new(), commands: BTreeMap::new(), is_changed: true };
        for job in stored {
            let state = JobState::of_name(&job.state).expect("the store has looked at it");
            let StoredJob { id, spec, place, starts, reason, busy, .. } = job;
            let busy_before = Duration::from_secs_f64(busy.clamp(0.0, 1e12));
            let managed = ManagedJob { state, place, starts, reason, busy_before, ..ManagedJob::new(spec) };
            table.jobs.insert(id, managed);
            if state.is_active() {
                table.mark_lost(id, "its job server ended");
            }
        }
        Ok(table)
    }

    /// Returns the directory.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns all jobs, by number.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (u64, &ManagedJob)> {
        self.jobs.iter().map(|(id, job)| (*id, job))
    }

    /// Returns a job.
    ///
    /// # Errors
    /// No such job exists; a line with the existing numbers.
    pub(crate) fn job(&self, id: u64) -> Result<&ManagedJob, Refusal> {
        self.jobs.get(&id).ok_or_else(|| no_job(id, self.jobs.keys().copied()))
    }

    /// Returns `true` if there is such a job and it is a command.
    pub(crate) fn is_command(&self, id: u64) -> bool {
        self.jobs.get(&id).is_some_and(|job| matches!(job.spec.runnable, Runnable::Command(_)))
    }

    /// Returns the start of an active job.
    pub(crate) fn start_of(&self, id: u64) -> Option<StartId> {
        let job = self.jobs.get(&id).filter(|job| job.state.is_active())?;
        Some(StartId { job: id, start: job.starts })
    }

    /// Creates a job.
    pub(crate) fn create(&mut self, spec: JobSpec) -> u64 {
        let id = self.next;
        self.next += 1;
        self.jobs.insert(id, ManagedJob::new(spec));
        self.is_changed = true;
        id
    }

    /// Copies a job, with its checkpoint if it has one.
    ///
    /// # Errors
    /// There is no such job; its state cannot be copied.
    pub(crate) fn duplicate(&mut self, id: u64) -> Result<u64, Refusal> {
        let job = self.job(id)?;
        let (spec, state) = (job.spec.clone(), job.state);
        if let (Runnable::Task(kind, _), JobState::Checkpointed) = (&spec.runnable, state) {
            let unreadable = |error: StoreError| Refusal::of(RefusalKind::BadCheckpoint, error.to_string());
            let bytes = self.store.load_state(id, kind).map_err(unreadable)?;
            let unwritten = |error: StoreError| Refusal::of(RefusalKind::NotKept, error.to_string());
            self.store.save_state(self.next, kind, &bytes).map_err(unwritten)?;
        }
        let copy = self.create(spec);
        // Two copies of a command would be the same processes.
        if state == JobState::Checkpointed && !self.is_command(id) {
            self.jobs.get_mut(&copy).expect("it was made just now").state = JobState::Checkpointed;
        }
        Ok(copy)
    }

    /// Applies an order to a job; queues the command for its place.
    ///
    /// # Errors
    /// There is no such job, or its state does not permit the order: a line.
    pub(crate) fn apply_verb(&mut self, id: u64, verb: JobVerb) -> Result<(), Refusal> {
        self.job(id)?;
        let needs_criu = OrderInfo::of_verb(verb).is_some_and(|order| order.needs_criu);
        if self.is_command(id)
            && needs_criu
            && let Some(lack) = criu::lack()
        {
            let verb = verb.name();
            let text = format!(
                "job {id} is a command, which can {verb} only with CRIU, and {lack}; allowed: pause, resume, kill"
            );
            return Err(Refusal::of(RefusalKind::NotForCommands, text));
        }
        let job = self.jobs.get_mut(&id).expect("it was found above");
        let after = job.state.after(JobStep::Commanded(verb));
        let before = job.state;
        job.state = after
            .map_err(|refused| Refusal::of(RefusalKind::NotInThisState, format!("job {id}: {refused}")))?;
        self.is_changed = true;
        let control = match verb {
            JobVerb::Start | JobVerb::Remove => return Ok(()),
            JobVerb::Pause => Control::Pause,
            JobVerb::Resume => Control::Run,
            JobVerb::Checkpoint | JobVerb::Move => {
                job.was_paused = before == JobState::Paused;
                Control::Save
            }
            JobVerb::Kill => Control::Kill,
        };
        self.command(id, control);
        Ok(())
    }

    /// Moves a job to `place`.
    ///
    /// # Errors
    /// As for [`JobTable::apply_verb`].
    pub(crate) fn move_to(&mut self, id: u64, place: usize) -> Result<(), Refusal> {
        self.apply_verb(id, JobVerb::Move)?;
        self.jobs.entry(id).and_modify(|job| job.target = Some(place));
        Ok(())
    }

    /// Checkpoints jobs and kills commands, if their states permit it; returns `true` if no job is active any more. A
    /// job whose state could not be written before is retried only if `retries`.
    pub(crate) fn end_jobs(&mut self, retries: bool) -> bool {
        let is_settled = |state| matches!(state, JobState::Running | JobState::Paused);
        let is_due = |job: &ManagedJob| is_settled(job.state) && (retries || !job.is_unsaved);
        let due: Vec<u64> = self.jobs().filter(|(_, job)| is_due(job)).map(|(id, _)| id).collect();
        for id in due {
            let verb = if self.is_command(id) { JobVerb::Kill } else { JobVerb::Checkpoint };
            let applied = self.apply_verb(id, verb);
            debug_assert!(applied.is_ok(), "{applied:?}");
        }
        self.jobs.values().all(|job| !job.state.is_active())
    }

    /// Queues a command for the last start of a job.
    fn command(&mut self, id: u64, control: Control) {
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(place) = job.place else { return };
        self.commands.entry(place).or_default().push(StartId { job: id, start: job.starts }, control);
    }

    /// Returns the places with pending commands and no sending task. The caller sends for each until [`next_commands`]
    /// is `None`.
    ///
    /// [`next_commands`]: JobTable::next_commands
    pub(crate) fn begin_sending(&mut self) -> Vec<usize> {
        let due = |(place, queue): (&usize, &mut CommandQueue)| queue.begin_sending().then_some(*place);
        self.commands.iter_mut().filter_map(due).collect()
    }

    /// Returns the next commands for a place. The previous ones must have arrived, unless the place is dead.
    pub(crate) fn next_commands(&mut self, place: usize) -> Option<Vec<(StartId, NumberedCommand)>> {
        self.commands.get_mut(&place)?.next_batch()
    }

    /// Records the start of a job at a place; returns the start and the state to continue from.
    ///
    /// # Errors
    /// Its state does not permit a start, or cannot be read: a line, and nothing has changed.
    pub(crate) fn start(&mut self, id: u64, place: usize) -> Result<(StartId, Option<Vec<u8>>), Refusal> {
        let job = self.job(id)?;
        let state = match (&job.spec.runnable, job.state) {
            (runnable, JobState::Checkpointed) => {
                let loaded = self.store.load_state(id, state_kind(runnable));
                Some(loaded.map_err(|error| Refusal::of(RefusalKind::BadCheckpoint, error.to_string()))?)
            }
            _ => None,
        };
        self.apply_verb(id, JobVerb::Start)?;
        Ok((self.begin(id, place), state))
    }

    /// Starts the job that `choose` finds or creates; the table on disk is updated before this returns.
    ///
    /// # Errors
    /// As for [`JobTable::start`], or the table cannot be written: nothing has changed.
    pub(crate) fn start_and_save(
        &mut self,
        place: usize,
        choose: impl FnOnce(&mut JobTable) -> u64,
    ) -> Result<(StartId, Option<Vec<u8>>), Refusal> {
        let (start, state) = self.change_and_save(|table| {
            let id = choose(table);
            table.start(id, place)
        })?;
        if state.is_none() {
            self.store.remove_state(start.job);
        }
        Ok((start, state))
    }

    /// Applies `change`, which creates or starts a job, and writes the table; if either fails, nothing has changed.
    ///
    /// # Errors
    /// That of `change`, or that the table cannot be written.
    pub(crate) fn change_and_save<T>(
        &mut self,
        change: impl FnOnce(&mut JobTable) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let before = (self.next, self.jobs.clone());
        let done = change(self).and_then(|done| match self.save_if_changed() {
            Ok(()) => Ok(done),
            Err(error) => Err(Refusal::of(
                RefusalKind::NotKept,
                format!(
                    "nothing was started or created, because the table of jobs cannot be written: {error}"
                ),
            )),
        });
        if done.is_err() {
            (before.0..=self.next).for_each(|new| self.store.remove_state(new));
            (self.next, self.jobs) = before;
        }
        done
    }

    /// Records the arrival of a moving job at `place`.
    pub(crate) fn begin(&mut self, id: u64, place: usize) -> StartId {
        self.is_changed = true;
        let job = self.jobs.get_mut(&id).expect("the caller has checked the job");
        job.starts += 1;
        job.place = Some(place);
        job.target = None;
        job.is_unsaved = false;
        job.busy_before += std::mem::take(&mut job.busy);
        job.reason.clear();
        StartId { job: id, start: job.starts }
    }

    /// Handles a report of a job's place; ignores one of an earlier start.
    pub(crate) fn report(&mut self, JobEvent { start, busy, kind }: JobEvent) -> Followup {
        if self.start_of(start.job) != Some(start) {
            return Followup::Nothing;
        }
        let id = start.job;
        self.is_changed = true;
        self.jobs.entry(id).and_modify(|job| job.busy = job.busy.max(busy));
        let report = match kind {
            JobEventKind::Output(lines) => {
                let written = self.store.append(id, &lines);
                // A failed write of the job is the more important error.
                let job = self.jobs.get_mut(&id).filter(|job| !job.is_unsaved);
                if let Some((error, job)) = written.err().zip(job) {
                    job.reason = format!("lines of its output are lost: {error}");
                }
                return Followup::Nothing;
            }
            JobEventKind::Started => {
                // The image of a command is outdated: its files have changed since.
                if self.is_command(id) {
                    self.store.remove_state(id);
                }
                JobReport::Started
            }
            JobEventKind::Saved(state) => return self.saved(id, state),
            JobEventKind::Unsaved(fault) => {
                let job = self.jobs.get(&id);
                let is_due =
                    |job: &&ManagedJob| matches!(job.state, JobState::Checkpointing | JobState::Moving);
                let was_paused = job.filter(is_due).map(|job| job.was_paused);
                return was_paused.map_or(Followup::Nothing, |paused| self.unsaved(id, paused, &fault));
            }
            JobEventKind::Unrestored { fault, state } => self.unrestored(id, &fault, &state),
            JobEventKind::Killed => JobReport::Killed,
            JobEventKind::Ended(result) => self.set_reason(id, result, JobReport::Ended),
            JobEventKind::Faulted(fault) => self.set_reason(id, fault, JobReport::Faulted),
        };
        self.step(id, report);
        Followup::Nothing
    }

    fn set_reason(&mut self, id: u64, reason: String, report: JobReport) -> JobReport {
        self.jobs.entry(id).and_modify(|job| job.reason = reason);
        report
    }

    fn step(&mut self, id: u64, report: JobReport) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // A report that crossed an order is no longer a valid transition.
        if let Ok(after) = job.state.after(JobStep::Reported(report)) {
            job.state = after;
        }
        if !job.state.is_active() {
            job.share = 0.0;
        }
    }

    /// Handles the received state of a job: writes it, makes the job leave its place and continues it at its target. If
    /// the write fails, the job continues at its place.
    fn saved(&mut self, id: u64, state: Vec<u8>) -> Followup {
        let Some(job) = self.jobs.get(&id) else { return Followup::Nothing };
        if !matches!(job.state, JobState::Checkpointing | JobState::Moving) {
            return Followup::Nothing; // it is being stopped: its state is not needed
        }
        let (target, was_paused) = (job.target.filter(|_| job.state == JobState::Moving), job.was_paused);
        if let Err(error) = self.store.save_state(id, state_kind(&job.spec.runnable), &state) {
            return self.unsaved(id, was_paused, &error);
        }
        self.jobs.entry(id).and_modify(|job| {
            job.is_unsaved = false;
            job.reason.clear();
        });
        self.command(id, Control::Leave);
        self.step(id, JobReport::Saved);
        target.map_or(Followup::Nothing, |place| Followup::Start(place, Some(state)))
    }

    /// Handles a state that cannot be written: the job continues at its place.
    fn unsaved(&mut self, id: u64, was_paused: bool, fault: &dyn fmt::Display) -> Followup {
        let reason = format!("it continues where it is, because its state cannot be written: {fault}");
        let report = self.set_reason(id, reason, JobReport::Unsaved { was_paused });
        self.step(id, report);
        self.command(id, if was_paused { Control::Pause } else { Control::Run });
        let job = self.jobs.get_mut(&id).filter(|job| !job.is_unsaved);
        job.map_or(Followup::Nothing, |job| {
            job.is_unsaved = true;
            Followup::Unsaved
        })
    }

    /// Handles a failed restore: the job returns to its checkpoint. A command that was restored in place, because its
    /// state could not be written, has one only if that can be written now.
    fn unrestored(&mut self, id: u64, fault: &str, state: &[u8]) -> JobReport {
        let runnable = self.jobs.get(&id).map(|job| &job.spec.runnable);
        let save = |runnable| self.store.save_state(id, state_kind(runnable), state);
        let is_saved = self.store.has_state(id) || runnable.is_some_and(|runnable| save(runnable).is_ok());
        self.set_reason(id, format!("it cannot be restored: {fault}"), JobReport::Lost { is_saved })
    }

    /// Handles the death of a job's place or of its job server.
    pub(crate) fn mark_lost(&mut self, id: u64, why: &str) {
        let is_saved = self.store.has_state(id);
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.state.is_active()) else { return };
        why.clone_into(&mut job.reason);
        if matches!(job.spec.runnable, Runnable::Command(_)) {
            // A restored command has the mark of an earlier start.
            (1..=job.starts).for_each(|start| kill_marked(&self.store.mark(StartId { job: id, start })));
        }
        self.is_changed = true;
        self.step(id, JobReport::Lost { is_saved });
    }

    /// Records the resource usage of a job.
    pub(crate) fn record_usage(&mut self, start: StartId, busy: Duration, memory: u64, passed: Duration) {
        if self.start_of(start.job) != Some(start) {
            return;
        }
        let Some(job) = self.jobs.get_mut(&start.job) else { return };
        let more = busy.saturating_sub(job.busy);
        job.share = if passed.is_zero() { 0.0 } else { 100.0 * more.as_secs_f64() / passed.as_secs_f64() };
        (job.busy, job.memory) = (busy, memory);
    }

    /// Removes a job.
    ///
    /// # Errors
    /// Its state does not permit removal, or its files cannot be removed: a line.
    pub(crate) fn remove(&mut self, id: u64) -> Result<(), Refusal> {
        self.apply_verb(id, JobVerb::Remove)?;
        self.store.remove(id).map_err(|error| error.to_string())?;
        self.jobs.remove(&id);
        Ok(())
    }

    /// Writes the table, if it has changed.
    ///
    /// # Errors
    /// The write failed and will be retried.
    pub(crate) fn save_if_changed(&mut self) -> Result<(), StoreError> {
        if !self.is_changed {
            return Ok(());
        }
        let stored = |(id, job): (&u64, &ManagedJob)| StoredJob {
            id: *id,
            spec: job.spec.clone(),
            state: job.state.name().to_owned(),
            place: job.place,
            starts: job.starts,
            reason: job.reason.clone(),
            busy: (job.busy_before + job.busy).as_secs_f64(),
            environment: None,
        };
        self.store.save(self.next, self.jobs.iter().map(stored).collect())?;
        self.is_changed = false;
        Ok(())
    }
}

impl ManagedJob {
    fn new(spec: JobSpec) -> ManagedJob {
        ManagedJob {
            spec,
            state: JobState::New,
            place: None,
            target: None,
            was_paused: false,
            is_unsaved: false,
            starts: 0,
            reason: String::new(),
            busy_before: Duration::ZERO,
            busy: Duration::ZERO,
            memory: 0,
            share: 0.0,
        }
    }
}

/// Returns the kind of a job's state, as its file names it.
fn state_kind(runnable: &Runnable) -> &str {
    match runnable {
        Runnable::Task(kind, _) => kind,
        Runnable::Command(_) => "a command of the system",
    }
}

fn no_job(id: u64, known: impl Iterator<Item = u64>) -> Refusal {
    let known: Vec<String> = known.map(|id| id.to_string()).collect();
    let text = match &known[..] {
        [] => format!("there is no job {id}: there are no jobs"),
        known => format!("there is no job {id}; allowed: {}", known.join(", ")),
    };
    Refusal::of(RefusalKind::NoSuchJob, text)
}
