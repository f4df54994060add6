//! An invented world of places whose tasks share one phaser, with every choice made from outside.
//!
//! It acts as a runtime, keeps the ground truth beside the machines, and checks each new phase against it.

use super::super::*;
use crate::PlaceId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

/// One step of a script; after the last one the task leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Signal and wait.
    Advance,
    /// Signal, wait, and be dropped while waiting.
    GiveUp,
    /// Signal.
    Resume,
    /// Start the script here, registered.
    Spawn(usize),
    /// Start the script at the place, registered.
    Send(u32, usize),
    /// Count a departure to the place, and take it back.
    FailToSend(u32),
}

/// A deliberate error, to show that the checks can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// None: the protocol as it is.
    None,
    /// Reports lose what was sent.
    IgnoreSent,
    /// Reports claim one party too few.
    HideParty,
    /// News of a phase is lost.
    LoseAdvance,
    /// Questions after a death are not sent, but believed answered.
    SkipOrphans,
}

/// Constants of a world; not part of a state's identity.
#[derive(Debug)]
pub struct Setting {
    pub places: u32,
    /// The scripts; script 0 opens the phaser at place 0.
    pub program: Vec<Vec<Step>>,
    /// The places that may die.
    pub victims: Vec<u32>,
    pub mutant: Mutant,
}

impl Hash for Setting {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Task {
    script: usize,
    step: usize,
    party: Party,
    /// Phases that the task has gone through, as it counts them.
    phase: u64,
    signalled: bool,
    waits: bool,
}

/// An action that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Run(u32, usize),
    Deliver(u32, u32, usize),
    Hear(u32, u32),
    Kill(u32),
    Notice(u32, u32),
}

/// The world.
#[derive(Clone, Debug, Hash)]
pub struct World<'a> {
    setting: &'a Setting,
    machines: Vec<Phasers>,
    tasks: Vec<Vec<Task>>,
    tickets: BTreeMap<(u32, u32), Vec<(RegistrationTransfer, usize)>>,
    controls: BTreeMap<(u32, u32), VecDeque<Control>>,
    dead: BTreeSet<u32>,
    noticed: BTreeSet<(u32, u32)>,
}

impl<'a> World<'a> {
    pub fn new(setting: &'a Setting) -> World<'a> {
        let places = setting.places;
        let mut world = World {
            setting,
            machines: (0..places).map(|place| Phasers::new(PlaceId(place), places)).collect(),
            tasks: vec![Vec::new(); places as usize],
            tickets: BTreeMap::new(),
            controls: BTreeMap::new(),
            dead: BTreeSet::new(),
            noticed: BTreeSet::new(),
        };
        let party = world.machines[0].open();
        world.start(0, party, 0);
        world
    }

    fn machine(&mut self, place: u32) -> &mut Phasers {
        &mut self.machines[place as usize]
    }

    fn start(&mut self, place: u32, party: Party, script: usize) {
        let phase = self.machine(place).phase(party).unwrap();
        self.keep(place, Task { script, step: 0, party, phase, signalled: false, waits: false });
    }

    fn keep(&mut self, place: u32, task: Task) {
        let tasks = &mut self.tasks[place as usize];
        let position = tasks.partition_point(|other| other < &task);
        tasks.insert(position, task);
    }

    fn run(&mut self, place: u32, mut task: Task) -> Result<(), String> {
        let mut out = Vec::new();
        let Some(step) = self.setting.program[task.script].get(task.step).copied() else {
            self.machine(place).leave(task.party, &mut out).map_err(|error| error.to_string())?;
            return self.carry_out(place, out);
        };
        task.step += 1;
        let step = match step {
            Step::Send(to, script) if to == place => Step::Spawn(script),
            Step::FailToSend(to) if to == place => Step::FailToSend((to + 1) % self.setting.places),
            step => step,
        };
        match step {
            Step::Advance | Step::GiveUp => match self.machine(place).advance(task.party, &mut out) {
                Ok(Some(advanced)) => self.enter_phase(place, &mut task, advanced)?,
                Ok(None) => {
                    task.signalled = true;
                    task.waits = true;
                }
                Err(error) => self.check_error(error)?,
            },
            Step::Resume => match self.machine(place).resume(task.party, &mut out) {
                Ok(()) => task.signalled = true,
                Err(error) => self.check_error(error)?,
            },
            Step::Spawn(script) => match self.machine(place).register(task.party) {
                Ok(party) => self.start(place, party, script),
                Err(error) => self.check_error(error)?,
            },
            Step::Send(to, script) => match self.machine(place).depart(task.party, PlaceId(to)) {
                Ok(_) if self.dead.contains(&to) => {}
                Ok(ticket) => {
                    let tickets = self.tickets.entry((place, to)).or_default();
                    tickets.push((ticket, script));
                    tickets.sort_unstable();
                }
                Err(error) => self.check_error(error)?,
            },
            Step::FailToSend(to) => match self.machine(place).depart(task.party, PlaceId(to)) {
                Ok(_) => self.machine(place).undo_depart(task.party, PlaceId(to)).unwrap(),
                Err(error) => self.check_error(error)?,
            },
        }
        self.keep(place, task);
        self.carry_out(place, out)?;
        if step == Step::GiveUp { self.give_up(place, task.party) } else { Ok(()) }
    }

    fn give_up(&mut self, place: u32, party: Party) -> Result<(), String> {
        let tasks = &mut self.tasks[place as usize];
        let Some(index) = tasks.iter().position(|task| task.party == party && task.waits) else {
            return Ok(());
        };
        tasks.remove(index);
        let mut out = Vec::new();
        self.machine(place).leave(party, &mut out).map_err(|error| error.to_string())?;
        self.carry_out(place, out)
    }

    /// Only a death or an earlier signal excuses an error.
    fn check_error(&self, error: PhaserError) -> Result<(), String> {
        match error {
            PhaserError::Resumed => Ok(()),
            PhaserError::DeadPlace(place) if self.dead.contains(&place.0) => Ok(()),
            error => Err(format!("wrong error: {error}")),
        }
    }

    fn living(&self) -> impl Iterator<Item = u32> {
        (0..self.setting.places).filter(|place| !self.dead.contains(place))
    }

    /// Checks, when a task begins a new phase, that every party has signalled in the phase before.
    fn enter_phase(&self, place: u32, task: &mut Task, advanced: Advanced) -> Result<(), String> {
        task.waits = false;
        if let Some(dead) = advanced.dead {
            if !self.dead.contains(&dead.0) {
                return Err(format!("blames {dead}, which lives"));
            }
            if dead.0 == 0 {
                return Ok(());
            }
        }
        task.signalled = false;
        task.phase += 1;
        if task.phase != advanced.phase {
            return Err(format!("wrong phase: {advanced:?} for {task:?} at place {place}"));
        }
        for other in self.living() {
            let late = |task: &&Task| task.phase + u64::from(task.signalled) < advanced.phase;
            if let Some(task) = self.tasks[other as usize].iter().find(late) {
                return Err(format!("advanced while {task:?} of place {other} has not signalled"));
            }
        }
        for (&(from, to), tickets) in &self.tickets {
            for &(ticket, _) in tickets {
                let mut receiver = self.machines[to as usize].clone();
                let taken = receiver.arrive(ticket, PlaceId(from), &mut Vec::new()).is_ok();
                if taken && ticket.phase < advanced.phase {
                    return Err(format!("advanced while {ticket:?} was under way from {from} to {to}"));
                }
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, place: u32, out: Vec<Output>) -> Result<(), String> {
        for output in out {
            match output {
                Output::Send { to, control } => self.send(place, to.0, control),
                Output::Wake { party, advanced } => {
                    let tasks = &mut self.tasks[place as usize];
                    let Some(index) = tasks.iter().position(|task| task.party == party && task.waits) else {
                        return Err(format!("woke {party:?}, which does not wait"));
                    };
                    let mut task = tasks.remove(index);
                    self.enter_phase(place, &mut task, advanced)?;
                    self.keep(place, task);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, from: u32, to: u32, mut control: Control) {
        match (self.setting.mutant, &mut control) {
            (Mutant::IgnoreSent, Control::Report(report)) => {
                report.entries.iter_mut().for_each(|entry| entry.sent = 0);
            }
            (Mutant::HideParty, Control::Report(report)) => report.parties = report.parties.saturating_sub(1),
            (Mutant::LoseAdvance, Control::Advance { .. }) => return,
            (Mutant::SkipOrphans, &mut Control::Ask { phaser, .. }) => {
                let entries = Vec::new();
                let parties = self.machines[to as usize].held() as u64;
                let report = PhaserReport { phaser, phase: 0, parties, answers: 1, entries, more: false };
                self.controls.entry((to, from)).or_default().push_back(Control::Report(report));
                return;
            }
            _ => {}
        }
        if !self.dead.contains(&to) {
            self.controls.entry((from, to)).or_default().push_back(control);
        }
    }

    fn kill(&mut self, victim: u32) {
        self.dead.insert(victim);
        self.tasks[victim as usize].clear();
        self.tickets.retain(|&(_, to), _| to != victim);
        self.controls.retain(|&(_, to), _| to != victim);
    }
}

impl crate::tests::World for World<'_> {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (place, tasks) in (0..).zip(&self.tasks) {
            let runnable = tasks.iter().enumerate().filter(|(_, task)| !task.waits);
            actions.extend(runnable.map(|(index, _)| Action::Run(place, index)));
        }
        for (&(from, to), tickets) in &self.tickets {
            let distinct = (0..tickets.len()).filter(|&index| !tickets[..index].contains(&tickets[index]));
            actions.extend(distinct.map(|index| Action::Deliver(from, to, index)));
        }
        actions.extend(self.controls.keys().map(|&(from, to)| Action::Hear(from, to)));
        for &dead in &self.dead {
            let unaware = self.living().filter(|&place| !self.noticed.contains(&(place, dead)));
            actions.extend(unaware.map(|place| Action::Notice(place, dead)));
        }
        if self.machines[0].held() > 0 {
            let doomed = self.setting.victims.iter().filter(|victim| !self.dead.contains(victim));
            actions.extend(doomed.map(|&victim| Action::Kill(victim)));
        }
        actions
    }

    fn is_over(&self, actions: &[Action]) -> bool {
        actions.iter().all(|action| matches!(action, Action::Kill(_)))
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        let mut out = Vec::new();
        match action {
            Action::Run(place, index) => {
                let task = self.tasks[place as usize].remove(index);
                self.run(place, task)
            }
            Action::Deliver(from, to, index) => {
                let tickets = self.tickets.get_mut(&(from, to)).unwrap();
                let (ticket, script) = tickets.remove(index);
                if tickets.is_empty() {
                    self.tickets.remove(&(from, to));
                }
                let arrived = self.machine(to).arrive(ticket, PlaceId(from), &mut out);
                match arrived {
                    Ok(party) => self.start(to, party, script),
                    Err(error) => self.check_error(error)?,
                }
                self.carry_out(to, out)
            }
            Action::Hear(from, to) => {
                let queue = self.controls.get_mut(&(from, to)).unwrap();
                let control = queue.pop_front().unwrap();
                if queue.is_empty() {
                    self.controls.remove(&(from, to));
                }
                let heard = self.machine(to).receive(PlaceId(from), control, &mut out);
                heard.map_err(|violation| format!("violation: {violation}"))?;
                self.carry_out(to, out)
            }
            Action::Kill(victim) => {
                self.kill(victim);
                Ok(())
            }
            Action::Notice(place, dead) => {
                self.noticed.insert((place, dead));
                self.tickets.remove(&(dead, place));
                self.controls.remove(&(dead, place));
                self.machine(place).place_died(PlaceId(dead), &mut out);
                self.carry_out(place, out)
            }
        }
    }

    fn check_end(&self) -> Result<(), String> {
        for place in self.living() {
            if let Some(task) = self.tasks[place as usize].first() {
                return Err(format!("hangs: {task:?} at place {place}"));
            }
            if self.machines[place as usize].held() > 0 {
                return Err(format!("leaks: place {place}: {:?}", self.machines[place as usize]));
            }
        }
        Ok(())
    }
}
