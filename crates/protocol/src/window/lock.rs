//! The lock of one part: who holds it, and who waits.
//!
//! Requests are granted in the order in which they came, shared ones that follow each other together; so nobody waits
//! for ever behind shared ones. Invariant: the holders are one exclusive place, or shared ones.

use crate::PlaceId;
use std::collections::VecDeque;

/// Mode of a lock on a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Together with other shared ones.
    Shared,
    /// Alone.
    Exclusive,
}

/// A place unlocks what it has not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHeld;

/// The lock of one part; `T` is what the owner needs to answer a request.
#[derive(Debug)]
pub struct LockQueue<T> {
    holders: Vec<(PlaceId, LockMode)>,
    waiting: VecDeque<(PlaceId, LockMode, T)>,
}

impl<T> Default for LockQueue<T> {
    fn default() -> Self {
        LockQueue { holders: Vec::new(), waiting: VecDeque::new() }
    }
}

impl<T> LockQueue<T> {
    /// Notes a request; returns what is granted now.
    pub fn request(&mut self, place: PlaceId, mode: LockMode, answer: T) -> Vec<(PlaceId, T)> {
        self.waiting.push_back((place, mode, answer));
        self.grant()
    }

    /// Takes the lock, or its request for it, from `place`; returns what is granted now.
    ///
    /// # Errors
    /// It has neither.
    pub fn release(&mut self, place: PlaceId) -> Result<Vec<(PlaceId, T)>, NotHeld> {
        if let Some(index) = self.holders.iter().position(|(holder, _)| *holder == place) {
            self.holders.swap_remove(index);
        } else {
            let index = self.waiting.iter().position(|(waiting, _, _)| *waiting == place).ok_or(NotHeld)?;
            self.waiting.remove(index);
        }
        Ok(self.grant())
    }

    /// Takes out a place that has died; returns what is granted now.
    pub fn place_died(&mut self, place: PlaceId) -> Vec<(PlaceId, T)> {
        self.holders.retain(|(holder, _)| *holder != place);
        self.waiting.retain(|(waiting, _, _)| *waiting != place);
        self.grant()
    }

    /// Returns `true` if `place` holds the lock or waits for it; a sound place asks for it once.
    pub fn knows(&self, place: PlaceId) -> bool {
        let waits = self.waiting.iter().any(|(waiting, _, _)| *waiting == place);
        waits || self.holders.iter().any(|(holder, _)| *holder == place)
    }

    fn grant(&mut self) -> Vec<(PlaceId, T)> {
        let mut granted = Vec::new();
        while let Some((_, mode, _)) = self.waiting.front() {
            let fits = match mode {
                LockMode::Exclusive => self.holders.is_empty(),
                LockMode::Shared => self.holders.iter().all(|(_, held)| *held == LockMode::Shared),
            };
            if !fits {
                break;
            }
            let Some((place, mode, answer)) = self.waiting.pop_front() else { break };
            self.holders.push((place, mode));
            granted.push((place, answer));
        }
        granted
    }
}
