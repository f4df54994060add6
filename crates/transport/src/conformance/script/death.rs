//! The scripts of places that die and of those that see it.
//!
//! The last places of the run are the victims: they send numbered messages to the survivors, take nothing,
//! and die. Each survivor must see a first part of the numbers in order, then the death, once; then the
//! survivors exchange farewells, during which a second death or a late message would show.

use super::{Script, Step};
use crate::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};

/// Messages of a victim to each survivor in each class.
const LAST_WORDS: u64 = 40;

/// Messages of a survivor to each other one, at the end.
const FAREWELLS: u64 = 100;

/// Steps of a victim between its last word and its death, so that mostly those who press it wait by then.
const VIGIL_STEPS: u32 = 200;

/// Most messages to one victim in one step.
const SENDS_PER_STEP: usize = 16;

/// Way in which the victims end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conformance) enum End {
    /// They die after their last word.
    Sudden,
    /// They die while the survivors send to them, mostly waiting for room.
    UnderPressure,
    /// They leave in good order, and are no victims at all.
    Orderly,
}

/// The script of `here`: the places from `survivors` on come to their `end`.
pub(in crate::conformance) fn death(here: PlaceId, survivors: u32, end: End) -> Box<dyn Script> {
    if here.0 >= survivors {
        let vigil = if end == End::UnderPressure { VIGIL_STEPS } else { 0 };
        return Box::new(Victim { letters: numbered(survivors, LAST_WORDS, here), end, vigil });
    }
    Box::new(Survivor {
        survivors,
        end,
        seen: Vec::new(),
        farewells: numbered(survivors, FAREWELLS, here),
        heard: 0,
    })
}

struct Victim {
    letters: Vec<(PlaceId, Class, u64)>,
    end: End,
    /// Steps to pass before the end when all is sent.
    vigil: u32,
}

/// State a survivor keeps of one place.
#[derive(Clone, Default)]
struct Seen {
    numbers: [u64; 2],
    told: bool,
    refused: bool,
}

struct Survivor {
    survivors: u32,
    end: End,
    seen: Vec<Seen>,
    farewells: Vec<(PlaceId, Class, u64)>,
    heard: u64,
}

/// `count` messages to each of the first `places` but `here` and each class; the first to be sent is the last entry.
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

/// Sends the next of `messages`; returns what to do.
fn send_next(endpoint: &dyn Endpoint, letters: &mut Vec<(PlaceId, Class, u64)>) -> Step {
    let Some(letter) = letters.last() else { return Step::Idle };
    match send(endpoint, *letter) {
        Ok(()) => letters.pop().map_or(Step::Idle, |_| Step::Busy),
        Err(SendError::Full) => Step::Idle,
        Err(error) => panic!("to a living place: {error:?}"),
    }
}

impl Script for Victim {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        if !self.letters.is_empty() {
            return send_next(endpoint, &mut self.letters);
        }
        if self.vigil == 0 {
            return if self.end == End::Orderly { Step::Leave } else { Step::Die };
        }
        self.vigil -= 1;
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
            if self.end == End::Orderly { seen.numbers == [LAST_WORDS; 2] } else { seen.told && seen.refused }
        };
        if victims.iter().all(settled) {
            worked |= send_next(endpoint, &mut self.farewells) == Step::Busy;
            if self.farewells.is_empty() && self.heard == u64::from(self.survivors - 1) * FAREWELLS * 2 {
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
                let victim = place.0 >= self.survivors && self.end != End::Orderly;
                assert!(victim, "{place} was told dead and is not");
                assert!(endpoint.is_dead(place), "{place} was told dead but does not count as dead");
                let woken = endpoint.shared_memory().is_some_and(|memory| memory.wake(place));
                assert!(!woken, "{place} was told dead and can be woken");
                let seen = &mut self.seen[place.index()];
                assert!(!seen.told, "{place} was told dead twice");
                seen.told = true;
            }
            Arrival::Message(message) => {
                let seen = &mut self.seen[message.source.index()];
                assert!(!seen.told, "a message of {} came after its death", message.source);
                let due = &mut seen.numbers[message.class as usize];
                assert_eq!(message.body.bytes(), due.to_le_bytes(), "{}: order broken", message.source);
                *due += 1;
                self.heard += u64::from(message.source.0 < self.survivors);
            }
        }
    }

    /// Sends to `victim` until the answer is that it is dead; returns whether a message went.
    fn press(&mut self, endpoint: &dyn Endpoint, victim: PlaceId) -> bool {
        let seen = &mut self.seen[victim.index()];
        if !seen.told && self.end != End::UnderPressure {
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
                        !seen.told && !seen.refused,
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
