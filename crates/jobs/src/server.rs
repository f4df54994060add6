//! The job server: the first place of a run, which keeps the table and executes requests.
//!
//! Its loop handles reports of places and requests, and regularly samples each core. Longer operations, such as a
//! running job or a sample of all cores, are separate tasks, so that nothing waits for them.

use crate::admission;
use crate::demonstration::Demonstration;
use crate::job::{self, JobKind};
use crate::request::{CoreView, JobOrder, JobReply, JobRequest, JobView, KindView, Refusal, RefusalKind};
use crate::response_tracker::ResponseTracker;
use crate::runner::clocks;
use crate::runner::clocks::{ClockOrder, ClockScope};
use crate::runner::{self, JobEvent, JobRunner, StartId, StartOrder, UsageSample, criu, process};
use crate::socket::JobSocket;
use crate::store::{JobSpec, Store};
use crate::table::{Followup, JobTable, ManagedJob};
use isles::Launch;
use isles::prelude::*;
use isles_protocol::job::{CoreLoad, JobState, Policy};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum interval between checks for requests.
const TURN: Duration = Duration::from_millis(10);

/// Interval between samples of all cores.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// Interval between lines about the pending end of the job server.
const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Hint on how to end a waiting job server.
const FORCE_HINT: &str = "; isles job end --force ends it without them";

/// Time limit for saving jobs when the job server is ended by force, if their places answer.
const FORCE_WAIT: Duration = Duration::from_secs(5);

/// Capacity of the queue of reports.
const EVENTS: usize = 256;

/// Memory that jobs may use on a core of the SCC, in bytes (004:1614 of the paper's text); on a chip only.
const CHIP_CORE_BYTES: u64 = 640 << 20;

/// Options of a job server.
#[derive(Clone, Debug)]
pub struct JobServerOptions {
    /// Storage of the jobs.
    pub store: Store,
    /// Policy for the choice of cores.
    pub policy: Policy,
    /// Runs demonstration jobs with this seed, which are removed at the end.
    pub demonstration: Option<u64>,
    /// `true` if the cores are those of a modelled chip.
    pub is_modelled: bool,
    /// `true` if a page with management rights may also create command jobs: its token then permits running any
    /// program.
    pub page_commands: bool,
}

/// Manages jobs of the kinds that were [offered](crate::offer) over the places of `launch` until it is ended, or
/// `is_over` is set.
///
/// # Errors
/// The run could not be started, or has failed: a line.
pub fn serve(launch: Launch, options: JobServerOptions, is_over: Arc<AtomicBool>) -> Result<(), String> {
    runner::process::exec_if_requested();
    runner::criu::wait_if_requested();
    runner::set_modelled(options.is_modelled);
    if !options.is_modelled {
        criu::begin_check();
    }
    let (ended, _) = launch.run(move || manage(options, is_over)).map_err(|error| error.to_string())?;
    ended.map_err(|error| error.to_string())
}

async fn manage(options: JobServerOptions, is_over: Arc<AtomicBool>) -> isles::Result<()> {
    let refused = |text: String| isles::Error::message(text);
    let _lock = options.store.lock().map_err(|error| refused(error.to_string()))?;
    let socket = JobSocket::listen(options.store.directory()).map_err(refused)?;
    let table = JobTable::load(options.store.clone()).map_err(|error| refused(error.to_string()))?;
    let runners = PlaceLocal::<JobRunner>::new(JobRunner::default).await?;
    while !options.is_modelled && !criu::is_checked() {
        isles::sleep(TURN).await;
    }
    let (events, event_receiver) = channel::<JobEvent>(EVENTS);
    let demonstration = options.demonstration.map(Demonstration::new);
    isles::notice(format_args!("jobs are managed in {}", options.store.directory().display()));
    let state = Rc::new(RefCell::new(SharedTable {
        table,
        cores: vec![CoreView::default(); place_count()],
        responses: ResponseTracker::default(),
    }));
    let mut server = JobServer { runners, events, state, options, shutdown: None, fault: None };
    server.run_event_loop(&socket, &event_receiver, demonstration, &is_over).await
}

/// State shared by the job server's tasks.
struct SharedTable {
    table: JobTable,
    cores: Vec<CoreView>,
    responses: ResponseTracker,
}

struct JobServer {
    runners: PlaceLocal<JobRunner>,
    events: Sender<JobEvent>,
    state: Rc<RefCell<SharedTable>>,
    options: JobServerOptions,
    shutdown: Option<Shutdown>,
    /// Last error of writing the table.
    fault: Option<String>,
}

/// Progress of the job server's end.
#[derive(Clone, Copy, Debug)]
struct Shutdown {
    /// Time from which everything that does not answer is killed.
    forced: Option<Instant>,
    /// Time of the next line about the pending end.
    next_notice: Instant,
    /// `true` if all places have been asked since the last job became inactive.
    has_asked: bool,
}

impl Shutdown {
    fn begin() -> Shutdown {
        Shutdown { forced: None, next_notice: Instant::now(), has_asked: false }
    }
}

impl JobServer {
    async fn run_event_loop(
        &mut self,
        socket: &JobSocket,
        event_receiver: &Receiver<JobEvent>,
        mut demonstration: Option<Demonstration>,
        is_over: &AtomicBool,
    ) -> isles::Result<()> {
        let (begun, begun_at) = (Instant::now(), now());
        let mut looked = None;
        loop {
            if let Ok(event) = event_receiver.recv_timeout(TURN).await {
                self.handle_event(event);
                while let Ok(event) = event_receiver.try_recv().await {
                    self.handle_event(event);
                }
            }
            self.keep_pace(begun, begun_at);
            while let Some((request, answer)) = socket.next() {
                let reply = self.handle_request(request).await;
                // Saved before the answer.
                self.save_if_changed();
                let _ = answer.send(reply); // who asked may have gone
            }
            if let Some(demonstration) = demonstration.as_mut().filter(|_| self.shutdown.is_none()) {
                let next = demonstration.next(now(), self.state.borrow().table.jobs());
                if let Some(request) = next {
                    demonstration.record_reply(&self.handle_request(request).await);
                }
            }
            let looks = looked.is_none_or(|looked| now().saturating_sub(looked) >= SAMPLE_EVERY);
            if looks {
                looked = Some(now());
                self.sample_cores();
            }
            if is_over.load(Ordering::Relaxed) {
                self.shutdown.get_or_insert_with(Shutdown::begin);
            }
            let is_over = self.shutdown.is_some() && self.end_jobs(looks);
            self.send_commands();
            self.save_if_changed();
            if is_over {
                self.forget(demonstration.iter().flat_map(Demonstration::own));
                return Ok(());
            }
        }
    }

    /// Checkpoints jobs and kills commands. Returns `true` once none is active. `looks` is `true` at regular intervals.
    fn end_jobs(&mut self, looks: bool) -> bool {
        let now = Instant::now();
        if self.state.borrow_mut().table.end_jobs(looks) {
            if let Some(shutdown) = self.shutdown.as_mut().filter(|shutdown| !shutdown.has_asked) {
                shutdown.has_asked = true;
                self.sample_cores();
            }
            return self.options.is_modelled || self.end_idle_places(now);
        }
        let Some(shutdown) = self.shutdown.as_mut().filter(|_| looks) else { return false };
        let (waits, forced) = (self.state.borrow().waits(now), shutdown.forced);
        if !waits.is_empty() && now >= shutdown.next_notice {
            shutdown.next_notice = now + NOTICE_EVERY;
            isles::notice(format_args!("isles: the job server waits: {}{FORCE_HINT}", waits.join("; ")));
        }
        forced.is_some_and(|since| self.force(now, since))
    }

    /// Kills unresponsive places without jobs, because the end of the run would silently wait for them. Returns `true`
    /// if no other place owes an answer.
    fn end_idle_places(&self, now: Instant) -> bool {
        let responses = &self.state.borrow().responses;
        let silent = responses.unresponsive(now);
        for place in &silent {
            let text = responses.unresponsive_text(*place, now).unwrap_or_default();
            isles::notice(format_args!("isles: {text}; it has no job, and is killed"));
            responses.process(*place).into_iter().for_each(process::kill_child);
        }
        responses.pending_count() == silent.len()
    }

    /// Kills the places that do not answer. Returns `true` if that was not enough and all jobs are lost.
    fn force(&self, now: Instant, since: Instant) -> bool {
        let mut state = self.state.borrow_mut();
        let silent = state.responses.unresponsive(now);
        silent.iter().filter_map(|place| state.responses.process(*place)).for_each(process::kill_child);
        if now.duration_since(since) < FORCE_WAIT {
            return false;
        }
        let active = state.table.jobs().filter(|(_, job)| job.state.is_active());
        let active: Vec<u64> = active.map(|(id, _)| id).collect();
        active.into_iter().for_each(|id| state.table.mark_lost(id, "the job server was ended by force"));
        if !silent.is_empty() {
            // A place that is a thread of this process cannot be killed, and the end of the run would wait for it.
            let written = state.table.save_if_changed();
            written.unwrap_or_else(|fault| isles::notice(format_args!("isles: {fault}")));
            std::process::exit(0);
        }
        true
    }

    /// Writes the table, if it has changed.
    fn save_if_changed(&mut self) {
        let kept = self.state.borrow_mut().table.save_if_changed();
        let fault = kept.err().map(|error| error.to_string());
        // It is retried, and reported once.
        if fault != self.fault {
            if let Some(fault) = &fault {
                isles::notice(format_args!("isles: cannot write the table of jobs: {fault}"));
            }
            self.fault = fault;
        }
    }

    /// Removes the jobs of the demonstration.
    fn forget(&mut self, jobs: impl Iterator<Item = u64>) {
        for job in jobs {
            // It may have been removed.
            let _ = self.state.borrow_mut().table.remove(job);
        }
        self.save_if_changed();
    }

    /// Slows a modelled chip, whose time was `begun_at` when the host's was `begun`, down to real time, so that users
    /// can follow it.
    fn keep_pace(&self, begun: Instant, begun_at: Duration) {
        if self.options.is_modelled {
            let ahead = now().saturating_sub(begun_at).saturating_sub(begun.elapsed());
            std::thread::sleep(ahead.min(Duration::from_millis(100)));
        }
    }

    fn handle_event(&self, event: JobEvent) {
        let id = event.start.job;
        let followup = self.state.borrow_mut().table.report(event);
        match followup {
            Followup::Nothing => {}
            Followup::Start(place, state) => {
                let start = self.state.borrow_mut().table.begin(id, place);
                self.launch(start, place, state);
            }
            Followup::Unsaved => {
                let state = self.state.borrow();
                let reason = state.table.job(id).map(|job| job.reason.clone()).unwrap_or_default();
                isles::notice(format_args!("isles: job {id}: {reason}"));
            }
        }
    }

    async fn handle_request(&mut self, request: JobRequest) -> JobReply {
        let done: Result<JobReply, Refusal> = match request {
            JobRequest::List => {
                let state = self.state.borrow();
                let jobs = state.table.jobs().map(|(id, job)| state.view(id, job)).collect();
                let kind =
                    |kind: &JobKind| KindView { name: kind.name.to_owned(), words: kind.words.to_owned() };
                let kinds = job::offered().iter().map(kind).collect();
                let (page_commands, criu) = (self.options.page_commands, criu::lack().is_none());
                Ok(JobReply::Jobs { jobs, kinds, page_commands, criu })
            }
            JobRequest::Cores => {
                let cores = self.core_views();
                let governor = isles::clocks::governor().map(|policy| policy.to_string());
                Ok(JobReply::Cores { policy: self.options.policy.name().to_owned(), governor, cores })
            }
            JobRequest::Create(spec) => self.create(spec),
            JobRequest::Begin { spec, at } => self.begin(spec, at),
            JobRequest::Order { job, order } => self.order(job, order),
            JobRequest::Output { job, lines } => self.output(job, lines),
            JobRequest::Clock { divider, at, tile } => self.set_clock(divider, at, tile).await,
            JobRequest::Voltage { volts, at } => self.set_voltage(volts, at).await,
            JobRequest::Govern { policy, at } => self.govern(policy, at).await,
            JobRequest::End { force } => {
                let now = Instant::now();
                let shutdown = self.shutdown.get_or_insert_with(Shutdown::begin);
                shutdown.forced = shutdown.forced.or_else(|| force.then_some(now));
                Ok(JobReply::Ending { waits: self.state.borrow().waits(now) })
            }
            JobRequest::Page { request } => {
                let is_command = |job| self.state.borrow().table.is_command(job);
                match admission::check_page(&request, self.options.page_commands, is_command) {
                    Ok(()) => return Box::pin(self.handle_request(*request)).await,
                    Err(refusal) => Err(refusal),
                }
            }
        };
        done.unwrap_or_else(JobReply::Refused)
    }

    fn create(&self, spec: JobSpec) -> Result<JobReply, Refusal> {
        admission::check_spec(&spec, self.options.is_modelled)?;
        let id = self.change_and_save(|table| Ok(table.create(spec)))?;
        self.job(id, Vec::new())
    }

    fn begin(&self, spec: JobSpec, at: Option<usize>) -> Result<JobReply, Refusal> {
        admission::check_spec(&spec, self.options.is_modelled)?;
        let (place, scores) = self.starting_place(at)?;
        let (start, state) =
            self.state.borrow_mut().table.start_and_save(place, |table| table.create(spec))?;
        self.launch_new(start, state, place, scores)
    }

    fn start(&self, id: u64, at: Option<usize>) -> Result<JobReply, Refusal> {
        let (place, scores) = self.starting_place(at)?;
        let (start, state) = self.state.borrow_mut().table.start_and_save(place, |_| id)?;
        self.launch_new(start, state, place, scores)
    }

    /// Starts jobs that the table on disk records as started.
    fn launch_new(
        &self,
        start: StartId,
        state: Option<Vec<u8>>,
        place: usize,
        scores: Vec<f64>,
    ) -> Result<JobReply, Refusal> {
        self.launch(start, place, state);
        self.job(start.job, scores)
    }

    /// Changes the table and saves it before the answer.
    fn change_and_save<T>(
        &self,
        change: impl FnOnce(&mut JobTable) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.state.borrow_mut().table.change_and_save(change)
    }

    fn job(&self, id: u64, scores: Vec<f64>) -> Result<JobReply, Refusal> {
        let state = self.state.borrow();
        Ok(JobReply::Job { job: Box::new(state.view(id, state.table.job(id)?)), scores })
    }

    fn order(&self, id: u64, order: JobOrder) -> Result<JobReply, Refusal> {
        let mut scores = Vec::new();
        match order {
            JobOrder::Start { at } => return self.start(id, at),
            JobOrder::Move { to } => self.move_job(id, to, &mut scores)?,
            JobOrder::Pause | JobOrder::Resume | JobOrder::Checkpoint | JobOrder::Kill => {
                let verb = order.verb().expect("the order is a step of the job's state");
                self.state.borrow_mut().table.apply_verb(id, verb)?;
            }
            JobOrder::Duplicate => {
                let copy = self.change_and_save(|table| table.duplicate(id))?;
                return self.job(copy, scores);
            }
            JobOrder::Remove => {
                self.state.borrow_mut().table.remove(id)?;
                return Ok(JobReply::Done { text: format!("job {id} is removed") });
            }
        }
        self.job(id, scores)
    }

    fn move_job(&self, id: u64, to: Option<usize>, scores: &mut Vec<f64>) -> Result<(), Refusal> {
        let from = self.state.borrow().table.job(id)?.place;
        let to = match self.place(to, "--to")? {
            Some(to) if Some(to) == from => {
                let text = format!("job {id} is already at place {to}; allowed: another place");
                return Err(Refusal::of(RefusalKind::NoSuchPlace, text));
            }
            Some(to) => to,
            None => {
                let cores = self.core_views();
                scores.extend(cores.iter().map(|core| core.score));
                let loads: Vec<CoreLoad> = cores.iter().map(load).collect();
                let own = {
                    let state = self.state.borrow();
                    let job = state.table.job(id)?;
                    CoreLoad {
                        processor: job.share,
                        memory: self.percent(job.memory),
                        jobs: 1,
                        is_dead: false,
                    }
                };
                let best = self.options.policy.choose_other(&loads, from.unwrap_or(0), &own);
                let text = || format!("job {id} stays where it is: no core is better");
                best.ok_or_else(|| Refusal::of(RefusalKind::NoBetterCore, text()))?
            }
        };
        self.state.borrow_mut().table.move_to(id, to)
    }

    /// Checks a place given by a request.
    fn place(&self, wanted: Option<usize>, flag: &str) -> Result<Option<usize>, Refusal> {
        let Some(place) = wanted else { return Ok(None) };
        let state = self.state.borrow();
        let last = state.cores.len() - 1;
        let no_place = |text: String| Refusal::of(RefusalKind::NoSuchPlace, text);
        let core = state.cores.get(place);
        let core = core.ok_or_else(|| no_place(format!("{flag} is {place}; allowed: 0 to {last}")))?;
        if core.is_dead {
            return Err(no_place(format!("{flag} is {place}, which is dead; allowed: another place")));
        }
        Ok(Some(place))
    }

    /// Returns the place at which a job starts: the given one, or the best one with the scores of all.
    fn starting_place(&self, wanted: Option<usize>) -> Result<(usize, Vec<f64>), Refusal> {
        if let Some(place) = self.place(wanted, "--at")? {
            return Ok((place, Vec::new()));
        }
        let cores = self.core_views();
        let loads: Vec<CoreLoad> = cores.iter().map(load).collect();
        let best = self.options.policy.choose(&loads);
        let best = best.ok_or_else(|| Refusal::of(RefusalKind::NoSuchPlace, "all places are dead"))?;
        Ok((best, cores.iter().map(|core| core.score).collect()))
    }

    /// Returns the current state of all cores: the last sample, and the present jobs.
    fn core_views(&self) -> Vec<CoreView> {
        let state = self.state.borrow();
        let mut cores = state.cores.clone();
        for (place, core) in cores.iter_mut().enumerate() {
            core.place = place;
            let at = |(_, job): &(u64, &ManagedJob)| job.state.is_active() && job.place == Some(place);
            core.jobs = state.table.jobs().filter(at).map(|(id, _)| id).collect();
            core.score = self.options.policy.score(&load(core));
        }
        cores
    }

    fn percent(&self, bytes: u64) -> f64 {
        let of_core = if self.options.is_modelled {
            CHIP_CORE_BYTES
        } else {
            isles::memory::host_bytes().map_or(u64::MAX, |bytes| bytes / place_count() as u64)
        };
        100.0 * bytes as f64 / of_core as f64
    }

    /// Starts the job at its place and records when the job or the place ends.
    fn launch(&self, start: StartId, place: usize, from: Option<Vec<u8>>) {
        let state = self.state.borrow();
        let Ok(job) = state.table.job(start.job) else { return };
        let order = StartOrder {
            id: start,
            runnable: job.spec.runnable.clone(),
            caller: job.spec.caller.clone(),
            state: from,
            output: state.table.store().output(start.job),
            images: state.table.store().images(start.job),
            mark: state.table.store().mark(start),
        };
        let Some(target) = Place::new(place) else { return };
        drop(state);
        let (runners, events, state) = (self.runners.clone(), self.events.clone(), Rc::clone(&self.state));
        // The table records the end of a job. A finish would fail with each dead place and wait for stopped ones, so
        // all tasks here are detached.
        spawn_detached(async move {
            let ended = finish(async {
                spawn_at!(target, [runners, order, events] runner::run(runners, order, events).await?);
            })
            .await;
            if let Err(error) = ended {
                let mut state = state.borrow_mut();
                if state.table.start_of(start.job) == Some(start) {
                    state.table.mark_lost(start.job, &error.to_string());
                }
            }
        });
    }

    /// Sends pending commands, in one task per place: the next batch after the arrival of the previous one.
    fn send_commands(&self) {
        for place in self.state.borrow_mut().table.begin_sending() {
            let (runners, state) = (self.runners.clone(), Rc::clone(&self.state));
            spawn_detached(async move {
                loop {
                    let commands = state.borrow_mut().table.next_commands(place);
                    let Some((commands, target)) = commands.zip(Place::new(place)) else { return };
                    // The commands of a dead place are lost; the tasks of its starts notice the death.
                    let _ = at!(target, [runners, commands] runners.lock().receive(commands)).await;
                }
            });
        }
    }

    fn output(&self, id: u64, lines: usize) -> Result<JobReply, Refusal> {
        let state = self.state.borrow();
        state.table.job(id)?;
        let store = state.table.store();
        let (lines, before) = store.tail(id, lines).map_err(|error| error.to_string())?;
        // The client may be in another folder.
        let file = store.output(id);
        let file = std::path::absolute(&file).unwrap_or(file);
        Ok(JobReply::Output { lines, before, file: file.display().to_string() })
    }

    async fn set_clock(&self, divider: u32, at: Option<usize>, tile: bool) -> Result<JobReply, Refusal> {
        let (order, scope) = match (at, tile) {
            (None, true) => {
                return Err(Refusal::of(RefusalKind::NoSuchPlace, "--tile needs a place; give --at"));
            }
            (Some(place), true) => {
                self.place(Some(place), "--at")?;
                (ClockOrder::Tile(divider), ClockScope::Place(place))
            }
            (at, false) => (ClockOrder::Supply(divider), self.supplies(at).await?),
        };
        let changed = clocks::change(order, scope, &self.alive()).await?;
        Ok(JobReply::Done {
            text: match order {
                ClockOrder::Tile(_) => format!("the tile now divides its clock by {divider}"),
                _ if changed == 1 => format!("1 supply now divides its clock by {divider}"),
                _ => format!("{changed} supplies now divide their clock by {divider}"),
            },
        })
    }

    async fn set_voltage(&self, volts: f64, at: Option<usize>) -> Result<JobReply, Refusal> {
        let scope = self.supplies(at).await?;
        let changed = clocks::change(ClockOrder::Voltage(volts), scope, &self.alive()).await?;
        let supplies =
            if changed == 1 { "1 supply gets".to_owned() } else { format!("{changed} supplies get") };
        Ok(JobReply::Done { text: format!("{supplies} {volts} V, or the next step above") })
    }

    async fn govern(&self, policy: String, at: Option<usize>) -> Result<JobReply, Refusal> {
        let place = self.place(at, "--at")?.and_then(Place::new);
        clocks::govern(policy.clone(), place).await?;
        let whose = match place {
            Some(place) => format!("the governor of supply {}", clocks::supply_of(place).await?),
            None => "the governor".to_owned(),
        };
        Ok(JobReply::Done { text: format!("{whose} is now {policy}") })
    }

    /// Returns the supply of a given place, or all.
    async fn supplies(&self, at: Option<usize>) -> Result<ClockScope, Refusal> {
        let place = self.place(at, "--at")?.and_then(Place::new);
        let Some(place) = place else { return Ok(ClockScope::Chip) };
        clocks::supply_of(place).await.map(ClockScope::Supply)
    }

    /// Returns the places that are not known to be dead.
    fn alive(&self) -> Vec<Place> {
        let state = self.state.borrow();
        places().filter(|place| !state.cores[place.index()].is_dead).collect()
    }

    /// Starts sampling all cores that have answered the last request.
    fn sample_cores(&self) {
        let of_core = self.percent(1);
        let mut state = self.state.borrow_mut();
        let now = Instant::now();
        let SharedTable { table, responses, .. } = &mut *state;
        responses.record_states(table.jobs().map(|(id, job)| (id, job.state)), now);
        for place in places().filter(|place| !state.cores[place.index()].is_dead).collect::<Vec<_>>() {
            if !state.responses.ask(place.index(), now) {
                continue;
            }
            let (runners, state) = (self.runners.clone(), Rc::clone(&self.state));
            spawn_detached(async move {
                let sample = at!(place, [runners] runners.lock().sample()).await;
                state.borrow_mut().record_sample(place.index(), sample.ok(), of_core);
            });
        }
    }
}

impl SharedTable {
    /// Records the sample of a place; `None` if the place is dead.
    fn record_sample(&mut self, place: usize, sample: Option<UsageSample>, percent_of_byte: f64) {
        let core = &mut self.cores[place];
        let Some(UsageSample { process, passed, busy, jobs, divider, supply, governor }) = sample else {
            *core = CoreView { is_dead: true, ..CoreView::default() };
            self.responses.died(place);
            return;
        };
        self.responses.answered(place, process);
        let mut of_jobs = 0.0;
        let mut memory = 0;
        for (start, busy, bytes) in jobs {
            self.table.record_usage(start, busy, bytes, passed);
            memory += bytes;
            of_jobs += self.table.job(start.job).map_or(0.0, |job| job.share);
        }
        let share = if passed.is_zero() { 0.0 } else { 100.0 * busy.as_secs_f64() / passed.as_secs_f64() };
        let core = &mut self.cores[place];
        core.processor = share.max(of_jobs);
        core.other = core.processor - of_jobs;
        core.memory = memory as f64 * percent_of_byte;
        core.divider = divider;
        core.governor = governor;
        core.supply = supply.map(|(number, ..)| number);
        core.megahertz = supply.map(|(_, hertz, _)| hertz as f64 / 1e6);
        core.volts = supply.and_then(|(.., volts)| volts);
    }
}

impl SharedTable {
    /// Returns a job as shown to users, with the reason for which it waits.
    fn view(&self, id: u64, job: &ManagedJob) -> JobView {
        let reasons = [Some(job.reason.clone()).filter(|reason| !reason.is_empty()), self.wait(id, job)];
        JobView {
            id,
            name: job.spec.name.clone(),
            runnable: job.spec.runnable.clone(),
            folder: job.spec.caller.as_ref().map(|caller| caller.folder.display().to_string()),
            state: job.state.name().to_owned(),
            place: job.place.filter(|_| job.state != JobState::New),
            processor: job.share,
            memory: if job.state.is_active() { job.memory } else { 0 },
            busy: (job.busy_before + job.busy).as_secs_f64(),
            reason: reasons.into_iter().flatten().collect::<Vec<_>>().join("; "),
        }
    }

    fn wait(&self, id: u64, job: &ManagedJob) -> Option<String> {
        let place = job.place.filter(|_| job.state.is_active())?;
        self.responses.wait_text(id, place, Instant::now())
    }

    /// Returns the reasons for which the end of the job server waits, if it takes more than a moment.
    fn waits(&self, now: Instant) -> Vec<String> {
        let active = || self.table.jobs().filter(|(_, job)| job.state.is_active());
        let silent = self.responses.unresponsive(now).into_iter().filter_map(|place| {
            let jobs = active().filter(|(_, job)| job.place == Some(place)).map(|(id, _)| id.to_string());
            let jobs: Vec<String> = jobs.collect();
            let text = self.responses.unresponsive_text(place, now)?;
            (!jobs.is_empty()).then(|| format!("{text}, with {}", numbered(&jobs)))
        });
        let answers =
            |job: &ManagedJob| job.place.is_none_or(|at| self.responses.unresponsive_text(at, now).is_none());
        let others = active().filter(|(_, job)| answers(job)).filter_map(|(id, job)| {
            let why = Some(job.reason.clone()).filter(|_| job.is_unsaved).or_else(|| self.wait(id, job))?;
            Some(format!("job {id}: {why}"))
        });
        silent.chain(others).collect()
    }
}

fn numbered(jobs: &[String]) -> String {
    match jobs {
        [job] => format!("job {job}"),
        jobs => format!("jobs {}", jobs.join(", ")),
    }
}

fn load(core: &CoreView) -> CoreLoad {
    CoreLoad {
        processor: core.processor,
        memory: core.memory,
        jobs: core.jobs.len() as u32,
        is_dead: core.is_dead,
    }
}
