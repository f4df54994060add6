//! The phasers of one place: the protocol's machine, and the waiting tasks.
//!
//! Invariant: a party has an entry in `waits` from an `advance` that must wait until its outcome is taken, even if
//! nothing polls meanwhile.

use super::Registration;
use super::travel::TravellingRegistrations;
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::phaser::{Advanced, Control, Output, Party, PhaserError, Phasers, RegistrationTransfer};
use isles_runtime::Local;
use isles_runtime::service::{Inquiry, OutputQueue, Refused};
use isles_runtime::wire::Reader;
use isles_transport::{Class, HandlerId};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::task::Waker;
use std::time::Duration;

/// Number of the control message of phasers.
pub(crate) const PHASER: HandlerId = HandlerId(6);

/// The phasers of a place, and the tasks that wait for them.
pub(crate) struct PhaserTable {
    machine: RefCell<Phasers>,
    waits: RefCell<HashMap<Party, Wait>>,
    outputs: OutputQueue<Output>,
    pub(super) travelling: TravellingRegistrations,
}

/// One party's wait for the next phase.
enum Wait {
    Pending(Option<Waker>),
    Over(Advanced),
}

impl PhaserTable {
    pub(super) fn open(&self) -> Party {
        self.machine.borrow_mut().open()
    }

    pub(super) fn register(&self, party: Party) -> Result<Party, PhaserError> {
        self.machine.borrow_mut().register(party)
    }

    /// Returns the phase of `party`: the one that it has ended, if it has not yet taken the outcome of its wait for the
    /// next.
    pub(super) fn phase(&self, party: Party) -> Result<u64, PhaserError> {
        let is_over = matches!(self.waits.borrow().get(&party), Some(Wait::Over(_)));
        self.machine.borrow().phase(party).map(|phase| phase - u64::from(is_over))
    }

    /// Returns `true` if `party` waits for the next phase, or did when its wait was dropped.
    pub(super) fn is_waiting(&self, party: Party) -> bool {
        self.waits.borrow().contains_key(&party)
    }

    pub(super) fn resume(&self, local: &Local, party: Party) -> Result<(), PhaserError> {
        if self.waits.borrow().contains_key(&party) {
            return Err(PhaserError::Waiting);
        }
        self.drive(local, |machine, outputs| machine.resume(party, outputs))
    }

    /// Returns the next phase if it has begun; otherwise wait for it with [`PhaserTable::poll`].
    pub(super) fn advance(&self, local: &Local, party: Party) -> Result<Option<Advanced>, PhaserError> {
        if self.waits.borrow().contains_key(&party) {
            // An earlier wait was dropped; this one continues it.
            return Ok(None);
        }
        self.drive(local, |machine, outputs| {
            let begun = machine.advance(party, outputs);
            if begun == Ok(None) {
                self.waits.borrow_mut().insert(party, Wait::Pending(None));
            }
            begun
        })
    }

    /// Returns the outcome that `party` waits for, if it is there; otherwise stores `waker`.
    pub(super) fn poll(&self, party: Party, waker: &Waker) -> Option<Advanced> {
        let mut waits = self.waits.borrow_mut();
        let wait = waits.get_mut(&party).expect("a party that advances has a wait");
        if let Wait::Over(advanced) = *wait {
            waits.remove(&party);
            return Some(advanced);
        }
        *wait = Wait::Pending(Some(waker.clone()));
        None
    }

    /// Ends the registration, in whatever state it is.
    pub(super) fn leave(&self, local: &Local, party: Party) {
        let wait = self.waits.borrow_mut().remove(&party);
        drop(wait);
        // The machine refuses only a party that has left, and a handle leaves once.
        let _ = self.drive(local, |machine, outputs| machine.leave(party, outputs));
    }

    /// Makes registrations of new tasks at `to`, one by each of `parties`: all of them or none.
    pub(super) fn depart(
        &self,
        parties: &[Party],
        to: PlaceId,
    ) -> Result<Vec<RegistrationTransfer>, PhaserError> {
        let mut machine = self.machine.borrow_mut();
        let mut tickets = Vec::with_capacity(parties.len());
        for (departed, party) in parties.iter().enumerate() {
            match machine.depart(*party, to) {
                Ok(ticket) => tickets.push(ticket),
                Err(error) => {
                    drop(machine);
                    self.undo_depart(&parties[..departed], to);
                    return Err(error);
                }
            }
        }
        Ok(tickets)
    }

    /// Takes back registrations that could not be sent.
    pub(super) fn undo_depart(&self, parties: &[Party], to: PlaceId) {
        let mut machine = self.machine.borrow_mut();
        for party in parties {
            // Refused only if the phaser's home died meanwhile; then nothing is counted any more.
            let _ = machine.undo_depart(*party, to);
        }
    }

    /// Registers a task that has arrived.
    pub(super) fn arrive(
        &self,
        local: &Local,
        ticket: RegistrationTransfer,
        source: PlaceId,
    ) -> Registration {
        self.drive(local, |machine, outputs| machine.arrive(ticket, source, outputs))
    }

    /// Gives the machine an input and carries out its outputs.
    fn drive<R>(&self, local: &Local, input: impl FnOnce(&mut Phasers, &mut Vec<Output>) -> R) -> R {
        let mut outputs = Vec::new();
        let result = input(&mut self.machine.borrow_mut(), &mut outputs);
        self.outputs.process(&mut outputs, |output| self.execute_output(local, output));
        result
    }

    fn execute_output(&self, local: &Local, output: Output) {
        match output {
            Output::Send { to, control } => {
                // If the place died meanwhile, `place_died` tells the machine.
                let _ = local.send(to, Class::Control, PHASER, |writer| writer.put_serde(&control));
            }
            Output::Wake { party, advanced } => self.wake(party, advanced),
        }
    }

    fn wake(&self, party: Party, advanced: Advanced) {
        let wait =
            self.waits.borrow_mut().get_mut(&party).map(|wait| std::mem::replace(wait, Wait::Over(advanced)));
        if let Some(Wait::Pending(Some(waker))) = wait {
            waker.wake();
        }
    }
}

impl Service for PhaserTable {
    const ROW: usize = 2;

    fn new(here: PlaceId, places: u32) -> Self {
        PhaserTable {
            machine: RefCell::new(Phasers::new(here, places)),
            waits: RefCell::default(),
            outputs: OutputQueue::default(),
            travelling: TravellingRegistrations::default(),
        }
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        self.drive(local, |machine, outputs| machine.place_died(place, outputs));
    }

    /// Returns one line for all tasks that wait for the same phase and places.
    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        let machine = self.machine.borrow();
        let mut groups: BTreeMap<(Vec<PlaceId>, u64), u64> = BTreeMap::new();
        for (party, wait) in self.waits.borrow().iter() {
            if let (Wait::Pending(_), Ok(places), Ok(phase)) =
                (wait, machine.waiting_for(*party), machine.phase(*party))
            {
                *groups.entry((places, phase)).or_default() += 1;
            }
        }
        let line = |((places, phase), tasks): ((Vec<PlaceId>, u64), u64)| {
            let places: Vec<String> = places.iter().map(PlaceId::to_string).collect();
            format!(
                "the end of phase {phase} of a phaser, for {tasks} tasks; it waits for {}",
                places.join(", ")
            )
        };
        groups.into_iter().map(line).collect()
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

/// Receives a control message.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let control: Control = reader.take_serde()?;
    let phasers = &PhaserTable::of(local);
    phasers
        .drive(local, |machine, outputs| machine.receive(source, control, outputs))
        .map_err(Refused::of_service)
}
