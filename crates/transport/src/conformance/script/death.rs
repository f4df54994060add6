//! The scripts of places that die and of the survivors.
//!
//! The last places of the run are the victims: they send numbered messages to the survivors, take nothing, and die.
//! Each survivor must see a prefix of the numbers in order, then the death once. Then the survivors exchange final
//! messages, during which a second death or a late message would be detected.

use super::{Script, Step};
use crate::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};

/// Number of messages of a victim to each survivor in each class.
const MESSAGES_BEFORE_END: u64 = 40;

/// Number of messages of a survivor to each other one, at the end.
const FINAL_MESSAGES: u64 = 100;

/// Steps of a victim between its last message and its death, so that senders to it mostly wait by then.
const WAIT_STEPS: u32 = 200;

/// Maximum number of messages to one victim in one step.
const SENDS_PER_STEP: usize = 16;

/// Way in which the victims end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conformance) enum VictimEnd {
    /// They die after their last message.
    Sudden,
    /// They die while the survivors send to them, mostly waiting for room.
    UnderPressure,
    /// They leave in good order instead of dying.
    Orderly,
}

/// Returns the script of `here`; the places from `survivors` on end by `end`.
pub(in crate::conformance) fn death(here: PlaceId, survivors: u32, end: VictimEnd) -> Box<dyn Script> {
    if here.0 >= survivors {
        let wait_steps = if end == VictimEnd::UnderPressure { WAIT_STEPS } else { 0 };
        return Box::new(Victim { unsent: numbered(survivors, MESSAGES_BEFORE_END, here), end, wait_steps });
    }
    Box::new(Survivor {
        survivors,
        end,
        seen: Vec::new(),
        final_messages: numbered(survivors, FINAL_MESSAGES, here),
        heard: 0,
    })
}

struct Victim {
    unsent: Vec<(PlaceId, Class, u64)>,
    end: VictimEnd,
    /// Steps before the end after everything is sent.
    wait_steps: u32,
}

/// A survivor's state about one place.
#[derive(Clone, Default)]
struct Seen {
    numbers: [u64; 2],
    death_reported: bool,
    refused: bool,
}

struct Survivor {
    survivors: u32,
    end: VictimEnd,
    seen: Vec<Seen>,
    final_messages: Vec<(PlaceId, Class, u64)>,
    heard: u64,
}

/// Returns `count` messages to each of the first `places` except `here`, in each class; the last entry is sent first.
fn numbered(places: u32, count: u64, here: PlaceId) -> Vec<(PlaceId, Class, u64)> {
    let routes = (0..places).map(PlaceId).filter(|place| *place != here);
    let lanes: Vec<_> = routes.flat_map(|place| [(place, Class::Data), (place, Class::Control)]).collect();
    let row = |number| lanes.iter().map(move |&(place, class)| (place, class, number));
    (0..count).rev().flat_map(row).collect()
}

fn send(endpoint: &dyn Endpoint, (to, class, number): (PlaceId, Class, u64)) -> Result<(), SendError> {
    endpoint.send(to, class, HandlerId(0), 8, &mut |bytes| {
        bytes.copy_from_slice(&number.to_le_bytes());
        Some(8)
    })
}

/// Sends the next unsent messages. Returns the next step.
fn send_next(endpoint: &dyn Endpoint, unsent: &mut Vec<(PlaceId, Class, u64)>) -> Step {
    let Some(next) = unsent.last() else { return Step::Idle };
    match send(endpoint, *next) {
        Ok(()) => unsent.pop().map_or(Step::Idle, |_| Step::Busy),
        Err(SendError::Full) => Step::Idle,
        Err(error) => panic!("to a living place: {error:?}"),
    }
}

impl Script for Victim {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        if !self.unsent.is_empty() {
            return send_next(endpoint, &mut self.unsent);
        }
        if self.wait_steps == 0 {
            return if self.end == VictimEnd::Orderly { Step::Leave } else { Step::Die };
        }
        self.wait_steps -= 1;
        std::thread::yield_now();
        Step::Busy
    }
}

impl Script for Survivor {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        self.seen.resize(endpoint.places() as usize, Seen::default());
        let victims: Vec<PlaceId> = (self.survivors..endpoint.places()).map(PlaceId).collect();
        let arrived = endpoint.progress(Inbound::All, &mut |arrival| self.take(endpoint, arrival));
        let mut worked = arrived > 0;
        for victim in &victims {
            worked |= self.press(endpoint, *victim);
        }
        let settled = |place: &PlaceId| {
            let seen = &self.seen[place.index()];
            if self.end == VictimEnd::Orderly {
                seen.numbers == [MESSAGES_BEFORE_END; 2]
            } else {
                seen.death_reported && seen.refused
            }
        };
        if victims.iter().all(settled) {
            worked |= send_next(endpoint, &mut self.final_messages) == Step::Busy;
            if self.final_messages.is_empty()
                && self.heard == u64::from(self.survivors - 1) * FINAL_MESSAGES * 2
            {
                return Step::Done;
            }
        }
        if worked { Step::Busy } else { Step::Idle }
    }
}

impl Survivor {
    fn take(&mut self, endpoint: &dyn Endpoint, arrival: Arrival<'_>) {
        match arrival {
            Arrival::Died { place, .. } => {
                let victim = place.0 >= self.survivors && self.end != VictimEnd::Orderly;
                assert!(victim, "{place} was told dead and is not");
                assert!(endpoint.is_dead(place), "{place} was told dead but does not count as dead");
                let woken = endpoint.shared_memory().is_some_and(|memory| memory.wake(place));
                assert!(!woken, "{place} was told dead and can be woken");
                let seen = &mut self.seen[place.index()];
                assert!(!seen.death_reported, "{place} was told dead twice");
                seen.death_reported = true;
            }
            Arrival::Message(message) => {
                let seen = &mut self.seen[message.source.index()];
                assert!(!seen.death_reported, "a message of {} came after its death", message.source);
                let due = &mut seen.numbers[message.class as usize];
                assert_eq!(message.body.bytes(), due.to_le_bytes(), "{}: order broken", message.source);
                *due += 1;
                self.heard += u64::from(message.source.0 < self.survivors);
            }
        }
    }

    /// Sends to `victim` until the error is that it is dead. Returns `true` if a message was sent.
    fn press(&mut self, endpoint: &dyn Endpoint, victim: PlaceId) -> bool {
        let seen = &mut self.seen[victim.index()];
        if !seen.death_reported && self.end != VictimEnd::UnderPressure {
            return false;
        }
        for sent in 0..SENDS_PER_STEP {
            match send(endpoint, (victim, Class::Data, 0)) {
                Err(SendError::DeadPlace(place)) => {
                    assert_eq!(place, victim, "another place was blamed");
                    assert!(endpoint.is_dead(victim), "{victim} answers as dead but does not count as dead");
                    seen.refused = true;
                    return false;
                }
                answer => {
                    assert!(
                        !seen.death_reported && !seen.refused,
                        "{victim} is dead and the answer to a send was {answer:?}"
                    );
                    if answer.is_err() {
                        assert_eq!(answer, Err(SendError::Full));
                        return sent > 0;
                    }
                }
            }
        }
        true
    }
}
