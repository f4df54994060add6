//! An invented world of places that run small scripts under finishes, with every choice made from outside.
//!
//! It is the other half of the contract: it acts as a runtime, keeps the ground truth beside the machines, and checks
//! each release against it. `explore` explores it exhaustively, `random` at random. Invariant: two equal worlds have
//! the same future.

use super::super::*;
use crate::PlaceId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

/// One step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Start the script here.
    Spawn(usize),
    /// Start the script at the place.
    Send(u32, usize),
    /// Run the script at the place and wait for its reply.
    At(u32, usize),
    /// Run the script at the place, but give up waiting at once.
    Abandon(u32, usize),
    /// Open a finish with the script as its body, and wait for it.
    Finish(usize),
    /// Count a departure to the place, fail to send the task, and undo the count.
    FailToSend(u32),
    /// End with an error.
    Fail,
    /// Cancel the finish.
    Cancel,
}

/// A deliberate error, to show that the checks can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// None: the protocol as it is.
    None,
    /// Reports lose what was sent.
    IgnoreSent,
    /// Reports lose what was received.
    IgnoreReceived,
    /// Questions are lost.
    LoseAsks,
    /// Questions ask for one task too few.
    AskTooEarly,
    /// Replies deny that the visit was counted.
    DenyVisits,
    /// Visits are not counted when a request of theirs is abandoned.
    AbandonUncounted,
    /// A request whose target died is taken as not counted.
    TrustTheDead,
    /// Questions after a death do not name the dead place.
    HideDeath,
    /// Questions after a death are not sent, but believed answered.
    SkipOrphans,
    /// No place ever says that it rests.
    NeverRests,
}

/// Constants of a world; not part of a state's identity.
#[derive(Debug)]
pub struct Setting {
    pub places: u32,
    /// The scripts; script 0 is the body of a finish at place 0.
    pub program: Vec<Vec<Step>>,
    /// The places that may die.
    pub victims: Vec<u32>,
    pub mutant: Mutant,
    /// Number of questions of a finish that do not wait for the next rest of the home; at least one.
    pub prompt_questions: u32,
}

impl Setting {
    fn machine(&self, place: u32) -> Finishes {
        let mut machine = Finishes::new(PlaceId(place), self.places);
        machine.prompt_questions = self.prompt_questions;
        machine
    }
}

impl Hash for Setting {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The account of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Account {
    Governed { id: FinishId, key: Key },
    Visit { id: FinishId, from: PlaceId, request: u32, key: Option<Key>, counted: bool },
}

impl Account {
    /// Returns the finish and the key, if the task has one; a task without a key is not governed.
    fn governed(self) -> Option<(FinishId, Key)> {
        match self {
            Account::Governed { id, key } => Some((id, key)),
            Account::Visit { id, key, .. } => key.map(|key| (id, key)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Waits {
    No,
    Reply(u32),
    Release(Key),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Task {
    script: usize,
    step: usize,
    account: Account,
    waits: Waits,
}

impl Task {
    fn new(script: usize, account: Account) -> Task {
        Task { script, step: 0, account, waits: Waits::No }
    }
}

/// A request in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    number: u32,
    id: FinishId,
    key: Key,
    to: PlaceId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum InFlightMessage {
    Task { id: FinishId, script: usize },
    Request { id: FinishId, script: usize, request: u32 },
    Reply { request: u32, counted: bool },
}

/// An action that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A task does its next step, or is dropped if its finish is cancelled.
    Run(u32, usize),
    /// A message arrives.
    Deliver(u32, u32, usize),
    /// The next control message arrives.
    Hear(u32, u32),
    /// A victim dies.
    Kill(u32),
    /// The first place learns of the death of the second.
    Notice(u32, u32),
    /// The place asks the questions that it held back.
    Rest(u32),
}

/// Actual events under one finish, whatever the machines believe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroundTruth {
    pub failed: u64,
    pub cancelled: bool,
    pub lost: bool,
    pub touched_victim: bool,
    pub remote: u32,
    pub reports: u32,
    pub asks: u32,
    pub outcome: Option<Outcome>,
}

/// The world.
#[derive(Clone, Debug, Hash)]
pub struct World<'a> {
    setting: &'a Setting,
    pub machines: Vec<Finishes>,
    pub truths: BTreeMap<FinishId, GroundTruth>,
    roots: BTreeMap<(u32, Key), FinishId>,
    tasks: Vec<Vec<Task>>,
    messages: BTreeMap<(u32, u32), Vec<InFlightMessage>>,
    controls: BTreeMap<(u32, u32), VecDeque<Control>>,
    requests: Vec<Vec<Request>>,
    next_request: u32,
    dead: BTreeSet<u32>,
    /// Pairs of a place and a dead place whose death it has noticed.
    noticed: BTreeSet<(u32, u32)>,
}

impl<'a> World<'a> {
    pub fn new(setting: &'a Setting) -> World<'a> {
        let places = setting.places;
        let mut world = World {
            setting,
            machines: (0..places).map(|place| setting.machine(place)).collect(),
            truths: BTreeMap::new(),
            roots: BTreeMap::new(),
            tasks: vec![Vec::new(); places as usize],
            messages: BTreeMap::new(),
            controls: BTreeMap::new(),
            requests: vec![Vec::new(); places as usize],
            next_request: 0,
            dead: BTreeSet::new(),
            noticed: BTreeSet::new(),
        };
        world.open(0, 0);
        world
    }

    fn is_cancelled(&self, place: u32, task: &Task) -> bool {
        task.account.governed().is_some_and(|(_, key)| self.machines[place as usize].is_cancelled(key))
    }

    /// Returns `true` if the task waits for an inner finish that is cancelled already.
    fn waits_in_vain(&self, place: u32, task: &Task) -> bool {
        matches!(task.waits, Waits::Release(key) if self.machines[place as usize].is_cancelled(key))
    }

    fn machine(&mut self, place: u32) -> &mut Finishes {
        &mut self.machines[place as usize]
    }

    fn truth(&mut self, id: FinishId) -> &mut GroundTruth {
        self.truths.get_mut(&id).unwrap()
    }

    /// Opens a finish with a script as its body.
    fn open(&mut self, place: u32, script: usize) -> Key {
        let key = self.machine(place).open();
        let id = self.machine(place).id(key);
        self.roots.insert((place, key), id);
        self.truths.insert(id, GroundTruth::default());
        self.keep(place, Task::new(script, Account::Governed { id, key }));
        key
    }

    fn keep(&mut self, place: u32, task: Task) {
        let tasks = &mut self.tasks[place as usize];
        let position = tasks.partition_point(|other| other < &task);
        tasks.insert(position, task);
    }

    fn post(&mut self, from: u32, to: PlaceId, message: InFlightMessage) {
        if self.dead.contains(&to.0) {
            self.lose(&[message]);
            return;
        }
        let messages = self.messages.entry((from, to.0)).or_default();
        let position = messages.partition_point(|other| other < &message);
        messages.insert(position, message);
    }

    fn lose(&mut self, messages: &[InFlightMessage]) {
        for message in messages {
            if let InFlightMessage::Task { id, .. } = message {
                self.truth(*id).lost = true;
            }
        }
    }

    /// Carries out the outputs of a machine, and checks each release.
    fn carry_out(&mut self, place: u32, out: Vec<Output>) -> Result<(), String> {
        for output in out {
            match output {
                Output::Send { to, control } => self.send(place, to, control),
                Output::Cancelled { .. } => {}
                Output::Released { key, outcome } => {
                    let Some(id) = self.roots.remove(&(place, key)) else {
                        return Err(format!("wrong release at place {place}: {key:?}"));
                    };
                    self.check_release(id)?;
                    self.check_outcome(id, &outcome)?;
                    self.truth(id).outcome = Some(outcome);
                    self.wake(place, Waits::Release(key));
                }
            }
        }
        Ok(())
    }

    fn wake(&mut self, place: u32, cause: Waits) -> bool {
        let waiting = self.tasks[place as usize].iter().position(|task| task.waits == cause);
        let Some(index) = waiting else { return false };
        let mut task = self.tasks[place as usize].remove(index);
        task.waits = Waits::No;
        self.keep(place, task);
        true
    }

    fn send(&mut self, from: u32, to: PlaceId, mut control: Control) {
        let (mutant, mut answer) = (self.setting.mutant, None);
        match &mut control {
            Control::Report(report) => {
                self.truth(report.finish).reports += u32::from(!report.more);
                for entry in &mut report.entries {
                    match mutant {
                        Mutant::IgnoreSent => entry.sent = 0,
                        Mutant::IgnoreReceived => entry.received = 0,
                        _ => {}
                    }
                }
            }
            Control::Ask { finish, missing, dead } => {
                self.truth(*finish).asks += 1;
                match mutant {
                    Mutant::LoseAsks => return,
                    Mutant::AskTooEarly => *missing = missing.saturating_sub(1),
                    Mutant::HideDeath => *dead = None,
                    Mutant::SkipOrphans if dead.is_some() => answer = Some(empty_answer(*finish)),
                    _ => {}
                }
            }
            Control::Forget { .. } | Control::Cancel { .. } => {}
        }
        let (from, to, control) = match answer {
            Some(answer) => (to.0, from, answer),
            None => (from, to.0, control),
        };
        if !self.dead.contains(&to) {
            self.controls.entry((from, to)).or_default().push_back(control);
        }
    }

    fn living(&self) -> impl Iterator<Item = u32> {
        (0..self.setting.places).filter(|place| !self.dead.contains(place))
    }

    /// Checks a finish that was released: nothing that it governs may be left at live places, or in flight to them.
    fn check_release(&self, over: FinishId) -> Result<(), String> {
        for place in self.living() {
            let governed = |task: &&Task| task.account.governed().is_some_and(|(id, _)| id == over);
            if let Some(task) = self.tasks[place as usize].iter().find(governed) {
                return Err(format!("released while {task:?} is live at place {place}"));
            }
            if let Some(request) = self.requests[place as usize].iter().find(|request| request.id == over) {
                return Err(format!("released while {request:?} of place {place} is under way"));
            }
        }
        for (&(from, to), messages) in &self.messages {
            for message in messages {
                let mut receiver = self.machines[to as usize].clone();
                let (id, taken) = match *message {
                    InFlightMessage::Task { id, .. } => (id, receiver.arrive(id, PlaceId(from)).is_ok()),
                    InFlightMessage::Request { id, .. } => (id, receiver.visit(id, PlaceId(from)).is_ok()),
                    InFlightMessage::Reply { .. } => continue,
                };
                if id == over && (taken || (to == id.home().0 && !self.dead.contains(&from))) {
                    return Err(format!("released while {message:?} is under way from {from} to {to}"));
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, place: u32, mut task: Task) -> Result<(), String> {
        if self.is_cancelled(place, &task) {
            return self.drop_task(place, task);
        }
        let step = self.setting.program[task.script].get(task.step).copied();
        task.step += 1;
        match step {
            None => self.end_task(place, task, None),
            Some(Step::Fail) => {
                let fault = Fault::Failed { place: PlaceId(place), payload: Payload::default() };
                self.end_task(place, task, Some(fault))
            }
            Some(step) => self.take_step(place, task, step),
        }
    }

    fn drop_task(&mut self, place: u32, task: Task) -> Result<(), String> {
        let Waits::Release(inner) = task.waits else { return self.end_task(place, task, None) };
        let mut out = Vec::new();
        let id = self.roots[&(place, inner)];
        self.truth(id).cancelled = true;
        self.machine(place).cancel(inner, Reason::Requested("outer".into()), &mut out);
        self.keep(place, task);
        self.carry_out(place, out)
    }

    /// Returns the finish and key that the task may use; makes a visit on first use, and counts it if `count`.
    fn use_account(&mut self, place: u32, task: &mut Task, count: bool) -> Option<(FinishId, Key)> {
        if let Account::Visit { id, from, key, counted, .. } = &mut task.account {
            let machine = &mut self.machines[place as usize];
            if key.is_none() {
                *key = machine.visit(*id, *from).ok();
            }
            if count && !*counted && key.is_some() {
                *counted = true;
                machine.count_visit((*key)?, *from);
                self.truth(task.account.governed()?.0).remote += 1;
            }
        }
        task.account.governed()
    }

    fn take_step(&mut self, place: u32, mut task: Task, step: Step) -> Result<(), String> {
        let step = match step {
            Step::Send(to, script) | Step::At(to, script) | Step::Abandon(to, script) if to == place => {
                Step::Spawn(script)
            }
            Step::FailToSend(to) if to == place => Step::FailToSend((to + 1) % self.setting.places),
            step => step,
        };
        if let Step::Finish(script) = step {
            task.waits = Waits::Release(self.open(place, script));
            self.keep(place, task);
            return Ok(());
        }
        let count = match step {
            Step::At(..) => false,
            Step::Abandon(..) => self.setting.mutant != Mutant::AbandonUncounted,
            _ => true,
        };
        let Some((id, key)) = self.use_account(place, &mut task, count) else {
            self.keep(place, task);
            return Ok(());
        };
        let mut out = Vec::new();
        match step {
            Step::Spawn(script) => {
                self.machine(place).begin(key);
                self.keep(place, Task::new(script, Account::Governed { id, key }));
            }
            Step::Send(to, script) => {
                self.truth(id).touched_victim |= self.setting.victims.contains(&to);
                if let Ok(id) = self.machine(place).depart(key, PlaceId(to)) {
                    self.truth(id).remote += 1;
                    self.post(place, PlaceId(to), InFlightMessage::Task { id, script });
                }
            }
            Step::At(to, script) => {
                let request = self.request(place, key, to, script);
                task.waits = request.map_or(Waits::No, Waits::Reply);
            }
            Step::Abandon(to, script) => _ = self.request(place, key, to, script),
            Step::FailToSend(to) => {
                if self.machine(place).depart(key, PlaceId(to)).is_ok() {
                    self.machine(place).undo_depart(key, PlaceId(to));
                }
            }
            Step::Cancel => {
                self.truth(id).cancelled = true;
                self.machine(place).cancel(key, Reason::Requested("tired".into()), &mut out);
            }
            Step::Fail | Step::Finish(_) => unreachable!("handled before"),
        }
        self.keep(place, task);
        self.carry_out(place, out)
    }

    fn request(&mut self, place: u32, key: Key, to: u32, script: usize) -> Option<u32> {
        let id = self.machine(place).request(key, PlaceId(to)).ok()?;
        self.truth(id).touched_victim |= self.setting.victims.contains(&to);
        let number = self.next_request;
        self.next_request += 1;
        self.requests[place as usize].push(Request { number, id, key, to: PlaceId(to) });
        self.post(place, PlaceId(to), InFlightMessage::Request { id, script, request: number });
        Some(number)
    }

    fn end_task(&mut self, place: u32, mut task: Task, fault: Option<Fault>) -> Result<(), String> {
        let mut out = Vec::new();
        let waits = matches!(task.waits, Waits::Reply(_));
        if waits {
            self.use_account(place, &mut task, true);
        }
        match task.account {
            Account::Governed { id, key } => {
                self.truth(id).failed += u64::from(fault.is_some());
                self.machine(place).end(key, fault, &mut out);
            }
            Account::Visit { from, request, key, counted, .. } => {
                if let Some(key) = key {
                    self.machine(place).end(key, None, &mut out);
                }
                let counted = counted && self.setting.mutant != Mutant::DenyVisits;
                self.post(place, from, InFlightMessage::Reply { request, counted });
            }
        }
        self.carry_out(place, out)
    }

    fn deliver(&mut self, from: PlaceId, to: u32, message: InFlightMessage) -> Result<(), String> {
        let mut out = Vec::new();
        match message {
            InFlightMessage::Task { id, script } => match self.machine(to).arrive(id, from) {
                Ok(key) => self.keep(to, Task::new(script, Account::Governed { id, key })),
                Err(_) => self.truth(id).lost = true,
            },
            InFlightMessage::Request { id, script, request } => {
                let account = Account::Visit { id, from, request, key: None, counted: false };
                self.keep(to, Task::new(script, account));
            }
            InFlightMessage::Reply { request, counted } => self.settle(to, request, counted, &mut out),
        }
        self.carry_out(to, out)
    }

    /// Ends a request, and resumes the task that waits for it, if it still exists.
    fn settle(&mut self, place: u32, number: u32, counted: bool, out: &mut Vec<Output>) {
        let requests = &mut self.requests[place as usize];
        let Some(position) = requests.iter().position(|request| request.number == number) else { return };
        let Request { key, to, .. } = requests.remove(position);
        let waiting = self.tasks[place as usize].iter().position(|task| task.waits == Waits::Reply(number));
        if let Some(index) = waiting {
            let mut task = self.tasks[place as usize].remove(index);
            task.waits = Waits::No;
            if counted {
                self.use_account(place, &mut task, true);
            }
            self.keep(place, task);
        }
        self.machine(place).settle(key, to, counted, out);
    }

    fn hear(&mut self, from: u32, to: u32, control: Control) -> Result<(), String> {
        let mut out = Vec::new();
        let verdict = self.machine(to).receive(PlaceId(from), control.clone(), &mut out);
        if let Err(violation) = verdict {
            return Err(format!("violation: {violation}: {control:?}"));
        }
        self.carry_out(to, out)
    }

    fn kill(&mut self, victim: u32) {
        self.dead.insert(victim);
        for task in std::mem::take(&mut self.tasks[victim as usize]) {
            if let Account::Governed { id, .. } = task.account {
                self.truth(id).lost = true;
            }
        }
        self.requests[victim as usize].clear();
        let doomed: Vec<_> = self.messages.keys().copied().filter(|&(_, to)| to == victim).collect();
        for pair in doomed {
            let messages = self.messages.remove(&pair).unwrap();
            self.lose(&messages);
        }
        self.controls.retain(|&(_, to), _| to != victim);
    }

    fn notice(&mut self, place: u32, dead: u32) -> Result<(), String> {
        self.noticed.insert((place, dead));
        let messages = self.messages.remove(&(dead, place)).unwrap_or_default();
        self.lose(&messages);
        self.controls.remove(&(dead, place));
        let mut out = Vec::new();
        self.machine(place).place_died(PlaceId(dead), &mut out);
        let broken = self.requests[place as usize].iter().filter(|request| request.to.0 == dead);
        for number in broken.map(|request| request.number).collect::<Vec<_>>() {
            self.settle(place, number, self.setting.mutant != Mutant::TrustTheDead, &mut out);
        }
        self.carry_out(place, out)
    }

    fn check_outcome(&self, id: FinishId, outcome: &Outcome) -> Result<(), String> {
        let truth = &self.truths[&id];
        let dead = outcome.faults.iter().any(|fault| matches!(fault, Fault::DeadPlace { .. }));
        let faults = outcome.faults.len() as u64 + outcome.faults_lost;
        let steps = || self.setting.program.iter().flatten();
        let visits = steps().any(|step| matches!(step, Step::At(..) | Step::Abandon(..)));
        if dead && !truth.touched_victim {
            return Err("blames a place that it never reached".into());
        }
        if truth.lost && !dead && !visits {
            return Err("lost tasks without a fault".into());
        }
        if !self.dead.is_empty() {
            return Ok(());
        }
        if faults != truth.failed || outcome.cancelled.is_some() != truth.cancelled {
            return Err(format!("wrong outcome: {outcome:?} for {truth:?}"));
        }
        if truth.reports > truth.asks + self.setting.places - 1 {
            return Err(format!("too many reports: {truth:?}"));
        }
        if truth.asks > truth.remote {
            return Err(format!("too many questions: {truth:?}"));
        }
        Ok(())
    }
}

impl crate::tests::World for World<'_> {
    type Action = Action;

    /// Returns all actions that can happen next, in a fixed order; equal ones once.
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (place, tasks) in (0..).zip(&self.tasks) {
            let runnable = tasks.iter().enumerate().filter(|(index, task)| {
                !tasks[..*index].contains(task)
                    && (task.waits == Waits::No
                        || self.is_cancelled(place, task) && !self.waits_in_vain(place, task))
            });
            actions.extend(runnable.map(|(index, _)| Action::Run(place, index)));
        }
        for (&(from, to), messages) in &self.messages {
            let distinct = (0..messages.len()).filter(|&index| !messages[..index].contains(&messages[index]));
            actions.extend(distinct.map(|index| Action::Deliver(from, to, index)));
        }
        actions.extend(self.controls.keys().map(|&(from, to)| Action::Hear(from, to)));
        for &dead in &self.dead {
            let living = (0..self.setting.places).filter(|place| !self.dead.contains(place));
            let unaware = living.filter(|&place| !self.noticed.contains(&(place, dead)));
            actions.extend(unaware.map(|place| Action::Notice(place, dead)));
        }
        let rests = self.setting.mutant != Mutant::NeverRests;
        let holds_back = |place: &u32| rests && self.machines[*place as usize].holds_back();
        actions.extend(self.living().filter(holds_back).map(Action::Rest));
        if self.truths.values().any(|truth| truth.outcome.is_none()) {
            let doomed = self.setting.victims.iter().filter(|victim| !self.dead.contains(victim));
            actions.extend(doomed.map(|&victim| Action::Kill(victim)));
        }
        actions
    }

    /// Returns `true` if nothing but a further death can happen.
    fn is_over(&self, actions: &[Action]) -> bool {
        actions.iter().all(|action| matches!(action, Action::Kill(_)))
    }

    /// Makes one action happen.
    fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Run(place, index) => {
                let task = self.tasks[place as usize].remove(index);
                self.run(place, task)
            }
            Action::Deliver(from, to, index) => {
                let messages = self.messages.get_mut(&(from, to)).unwrap();
                let message = messages.remove(index);
                if messages.is_empty() {
                    self.messages.remove(&(from, to));
                }
                self.deliver(PlaceId(from), to, message)
            }
            Action::Hear(from, to) => {
                let queue = self.controls.get_mut(&(from, to)).unwrap();
                let control = queue.pop_front().unwrap();
                if queue.is_empty() {
                    self.controls.remove(&(from, to));
                }
                self.hear(from, to, control)
            }
            Action::Kill(victim) => {
                self.kill(victim);
                Ok(())
            }
            Action::Notice(place, dead) => self.notice(place, dead),
            Action::Rest(place) => {
                let mut out = Vec::new();
                self.machine(place).ask_deferred(&mut out);
                self.carry_out(place, out)
            }
        }
    }

    /// Checks the end, when nothing more can happen: each finish must be over, with nothing left behind.
    fn check_end(&self) -> Result<(), String> {
        if let Some(&(place, key)) = self.roots.keys().find(|(place, _)| !self.dead.contains(place)) {
            return Err(format!("hangs: {}", self.machines[place as usize].waiting_for(key)));
        }
        for place in self.living() {
            let machine = &self.machines[place as usize];
            if machine.proxies.len() != machine.held() {
                return Err(format!("leaks: place {place} holds more than proxies: {machine:?}"));
            }
            for (home, serial) in machine.proxies.keys() {
                let owed = self.machines[home.index()].forgets.get(PlaceId(place));
                if self.dead.contains(&home.0) || !owed.is_some_and(|owed| owed.contains(&serial)) {
                    return Err(format!("leaks: place {place} keeps finish {serial} of {home} for ever"));
                }
            }
        }
        Ok(())
    }
}

fn empty_answer(finish: FinishId) -> Control {
    let entries = Vec::new();
    Control::Report(FinishReport { finish, answers: 1, entries, fault: None, faults_lost: 0, more: false })
}
