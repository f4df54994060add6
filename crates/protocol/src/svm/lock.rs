//! The locks of a region at one place: requests, grants, and the queues of the locks whose home is this place.
//!
//! A lock is a number; its home is place `number mod places`, which grants it to one place at a time, in order of
//! arrival of the requests. A lock that is neither held nor awaited takes no memory. The caller makes stores under the
//! lock visible to the next holder: it releases before it gives the lock back, and acquires after the grant (entry and
//! exit of a critical section in release consistency: Gharachorloo and others, ISCA 1990).
//!
//! Invariants: at most one place holds a lock; a grant follows the release of the holder before it.

use crate::PlaceId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The number of a lock of a region, the same at every place. Any number is a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockNumber(pub u32);

/// Message about a lock between places of a region. Messages of one ordered pair of places must arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LockMessage {
    /// To the home: the sender waits for the lock.
    Request {
        /// The lock.
        lock: LockNumber,
    },
    /// From the home: the receiver holds the lock.
    Grant {
        /// The lock.
        lock: LockNumber,
    },
    /// To the home: the sender, which holds the lock, gives it back.
    Release {
        /// The lock.
        lock: LockNumber,
    },
}

/// Action that the caller of a [`LockNode`] must perform, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAction {
    /// Send a message to another place.
    Send {
        /// The receiver.
        to: PlaceId,
        /// The message.
        message: LockMessage,
    },
    /// The program holds a lock that it has requested.
    Granted {
        /// The lock.
        lock: LockNumber,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum OwnLock {
    Requested,
    /// The program no longer waits; the lock goes back as soon as it is granted.
    Abandoned,
    Held,
}

/// The locks of a region at one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockNode {
    here: PlaceId,
    places: u32,
    pub(super) own: BTreeMap<LockNumber, OwnLock>,
    /// For the locks whose home is this place: the holder, and behind it the waiting places.
    pub(super) queues: BTreeMap<LockNumber, VecDeque<PlaceId>>,
    is_lost: bool,
}

impl LockNode {
    /// Makes the locks of a place in a new region; none is held.
    ///
    /// # Panics
    /// If `here` is not one of `places`.
    pub fn new(here: PlaceId, places: u32) -> LockNode {
        assert!(here.0 < places, "{here} is not one of {places} places");
        LockNode { here, places, own: BTreeMap::new(), queues: BTreeMap::new(), is_lost: false }
    }

    /// Returns the home of a lock.
    pub fn home(&self, lock: LockNumber) -> PlaceId {
        PlaceId(lock.0 % self.places)
    }

    /// Returns `true` if the program holds the lock.
    pub fn holds(&self, lock: LockNumber) -> bool {
        self.own.get(&lock) == Some(&OwnLock::Held)
    }

    /// Requests a lock for the program. Ignored if it holds or awaits the lock already, and after a loss.
    pub fn request(&mut self, lock: LockNumber, out: &mut Vec<LockAction>) {
        if self.is_lost {
            return;
        }
        match self.own.get_mut(&lock) {
            // The request is still in flight or in the queue.
            Some(own @ OwnLock::Abandoned) => *own = OwnLock::Requested,
            Some(OwnLock::Requested | OwnLock::Held) => {}
            None => {
                self.own.insert(lock, OwnLock::Requested);
                self.send(self.home(lock), LockMessage::Request { lock }, out);
            }
        }
    }

    /// Gives a lock back, or gives up the wait for it. Ignored if the program neither holds nor awaits it.
    pub fn release(&mut self, lock: LockNumber, out: &mut Vec<LockAction>) {
        match self.own.get_mut(&lock) {
            Some(own @ OwnLock::Requested) => *own = OwnLock::Abandoned,
            Some(OwnLock::Held) => {
                self.own.remove(&lock);
                self.send(self.home(lock), LockMessage::Release { lock }, out);
            }
            Some(OwnLock::Abandoned) | None => {}
        }
    }

    /// Handles a message. Messages that no valid place sends are ignored.
    pub fn receive(&mut self, from: PlaceId, message: LockMessage, out: &mut Vec<LockAction>) {
        let mut inbox = VecDeque::from([(from, message)]);
        while let Some((from, message)) = inbox.pop_front() {
            if let Some((to, message)) = self.take(from, message, out) {
                if to == self.here {
                    inbox.push_back((self.here, message));
                } else {
                    out.push(LockAction::Send { to, message });
                }
            }
        }
    }

    /// Handles the death of a place of the region: no lock is granted any more. The caller ends the waits.
    pub fn place_died(&mut self) {
        self.is_lost = true;
    }

    fn send(&mut self, to: PlaceId, message: LockMessage, out: &mut Vec<LockAction>) {
        if to == self.here {
            self.receive(to, message, out);
        } else if !self.is_lost {
            out.push(LockAction::Send { to, message });
        }
    }

    /// Handles one message; returns the resulting messages.
    fn take(
        &mut self,
        from: PlaceId,
        message: LockMessage,
        out: &mut Vec<LockAction>,
    ) -> Option<(PlaceId, LockMessage)> {
        if self.is_lost {
            return None;
        }
        match message {
            LockMessage::Request { lock } if self.home(lock) == self.here => {
                let queue = self.queues.entry(lock).or_default();
                if queue.contains(&from) {
                    return None;
                }
                queue.push_back(from);
                (queue.len() == 1).then_some((from, LockMessage::Grant { lock }))
            }
            LockMessage::Release { lock } if self.home(lock) == self.here => {
                let queue = self.queues.get_mut(&lock).filter(|queue| queue.front() == Some(&from))?;
                queue.pop_front();
                let next = queue.front().copied();
                if next.is_none() {
                    self.queues.remove(&lock);
                }
                next.map(|next| (next, LockMessage::Grant { lock }))
            }
            LockMessage::Grant { lock } if self.home(lock) == from => match self.own.get_mut(&lock)? {
                own @ OwnLock::Requested => {
                    *own = OwnLock::Held;
                    out.push(LockAction::Granted { lock });
                    None
                }
                OwnLock::Abandoned => {
                    self.own.remove(&lock);
                    Some((from, LockMessage::Release { lock }))
                }
                OwnLock::Held => None,
            },
            LockMessage::Request { .. } | LockMessage::Release { .. } | LockMessage::Grant { .. } => None,
        }
    }
}
