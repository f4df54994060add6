//! The lock of one part: its holders, and the waiting requests.
//!
//! Requests are granted in order of arrival, successive shared ones together; so no request waits for ever behind
//! shared ones. Invariant: the holders are one exclusive place, or shared ones.

use crate::PlaceId;
use std::collections::VecDeque;

/// Mode of a lock on a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Together with other shared locks.
    Shared,
    /// Alone.
    Exclusive,
}

/// A place unlocks a lock that it does not hold.
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
    /// Adds a request; returns the requests granted now.
    pub fn request(&mut self, place: PlaceId, mode: LockMode, answer: T) -> Vec<(PlaceId, T)> {
        self.waiting.push_back((place, mode, answer));
        self.grant()
    }

    /// Removes the lock of `place`, or its request; returns the requests granted now.
    ///
    /// # Errors
    /// The place has neither.
    pub fn release(&mut self, place: PlaceId) -> Result<Vec<(PlaceId, T)>, NotHeld> {
        if let Some(index) = self.holders.iter().position(|(holder, _)| *holder == place) {
            self.holders.swap_remove(index);
        } else {
            let index = self.waiting.iter().position(|(waiting, _, _)| *waiting == place).ok_or(NotHeld)?;
            self.waiting.remove(index);
        }
        Ok(self.grant())
    }

    /// Removes a place that has died; returns the requests granted now.
    pub fn place_died(&mut self, place: PlaceId) -> Vec<(PlaceId, T)> {
        self.holders.retain(|(holder, _)| *holder != place);
        self.waiting.retain(|(waiting, _, _)| *waiting != place);
        self.grant()
    }

    /// Returns `true` if `place` holds the lock or waits for it; a valid place requests it once.
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
