//! The home's side of an object: which places have a token, wait for one, or have a stale copy.
//!
//! Invariants: the holders are one place with `Write`, or places with `Read`. Requests are granted in order of arrival,
//! so none waits for ever. The home's own place is treated like every other one.

use super::{Controller, GiveBack, GuardMode, Token};
use crate::PlaceId;
use crate::ordered::{OrderedMap, OrderedSet};
use std::collections::VecDeque;

/// A place's request for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRequest {
    /// The place.
    pub place: PlaceId,
    /// Mode of the guard.
    pub mode: GuardMode,
    /// Generation of its copy.
    pub since: u64,
}

/// Action that the home must take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeStep {
    /// Send the token, and the changes since the copy of the request. If `flushes`, the place must drop the object from
    /// its caches.
    Grant {
        /// The granted request.
        request: ObjectRequest,
        /// Generation of the value.
        generation: u64,
        /// True if cached copies may be stale.
        flushes: bool,
        /// True if a writer died.
        is_poisoned: bool,
    },
    /// Recall the token of `place`, except for `keeps`.
    Recall {
        /// Place that has the token.
        place: PlaceId,
        /// Token that stays there.
        keeps: Token,
    },
}

/// A place gives back a token that it does not have, or asks twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHeld;

/// The home's side of a shared object: the holders of tokens, the waiting requests, and the stale copies.
#[derive(Debug)]
pub struct Home {
    controller: Controller,
    generation: u64,
    is_poisoned: bool,
    holders: OrderedMap<PlaceId, Token>,
    waiting: VecDeque<ObjectRequest>,
    recalled: OrderedMap<PlaceId, Token>,
    /// With controllers that use flags: the places whose caches are not stale.
    fresh: OrderedSet<PlaceId>,
}

impl Home {
    /// Makes the home of a new object, whose token `Write` is at `place`.
    pub fn new(controller: Controller, place: PlaceId) -> Home {
        Home {
            controller,
            generation: 0,
            is_poisoned: false,
            holders: OrderedMap::from_iter([(place, Token::Write)]),
            waiting: VecDeque::new(),
            recalled: OrderedMap::new(),
            fresh: OrderedSet::from_iter([place]),
        }
    }

    /// Returns the generation of the value, as far as the home knows: exact while no other place may write.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns `true` if a writer died or panicked.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    /// Adds a request; returns the steps to take.
    ///
    /// # Errors
    /// The place waits already, has what it asks for, or has a copy of a generation that never existed.
    pub fn request(&mut self, request: ObjectRequest) -> Result<Vec<HomeStep>, NotHeld> {
        let held = self.holders.get(request.place).copied().unwrap_or_default();
        let waits = self.waiting.iter().any(|waiting| waiting.place == request.place);
        if waits || held.covers(request.mode) {
            return Err(NotHeld);
        }
        self.waiting.push_back(request);
        Ok(self.proceed())
    }

    /// Handles a token that `place` gives back, whose changes have been applied; returns the steps to take.
    ///
    /// # Errors
    /// The token was not recalled.
    pub fn given_back(&mut self, place: PlaceId, back: GiveBack) -> Result<Vec<HomeStep>, NotHeld> {
        let had = self.holders.get(place).copied().unwrap_or_default();
        let is_its = back.had_written == (had == Token::Write);
        if self.recalled.remove(place) != Some(back.keeps) || !is_its {
            return Err(NotHeld);
        }
        if back.had_written {
            if back.generation > self.generation {
                self.mark_others_stale(place);
            }
            self.generation = self.generation.max(back.generation);
            self.is_poisoned = back.is_poisoned;
        }
        match back.keeps {
            Token::None => self.holders.remove(place),
            keeps => self.holders.insert(place, keeps),
        };
        Ok(self.proceed())
    }

    /// Handles the death of `place`; returns the steps to take. If it could write, the object is poisoned.
    pub fn place_died(&mut self, place: PlaceId) -> Vec<HomeStep> {
        self.is_poisoned |= self.holders.remove(place) == Some(Token::Write);
        self.waiting.retain(|request| request.place != place);
        self.recalled.remove(place);
        self.fresh.remove(place);
        self.proceed()
    }

    /// Returns `true` if `place` may write, so that its changes are accepted.
    pub fn may_write(&self, place: PlaceId) -> bool {
        self.holders.get(place) == Some(&Token::Write)
    }

    fn mark_others_stale(&mut self, writer: PlaceId) {
        self.fresh.retain(|place| place == writer);
    }

    fn proceed(&mut self) -> Vec<HomeStep> {
        let mut steps = Vec::new();
        while let Some(request) = self.waiting.front().copied() {
            // A token on its way back must not be taken for the one granted now.
            if self.recalled.contains_key(request.place) {
                break;
            }
            let keeps = match request.mode {
                GuardMode::Read => Token::Read,
                GuardMode::Write => Token::None,
            };
            let excludes = |(place, token): &(PlaceId, &Token)| *place != request.place && **token > keeps;
            let others: Vec<PlaceId> = self.holders.iter().filter(excludes).map(|(place, _)| place).collect();
            if others.is_empty() {
                self.waiting.pop_front();
                steps.push(self.grant(request));
                continue;
            }
            for place in others {
                if !self.recalled.contains_key(place) {
                    self.recalled.insert(place, keeps);
                    steps.push(HomeStep::Recall { place, keeps });
                }
            }
            break;
        }
        steps
    }

    fn grant(&mut self, request: ObjectRequest) -> HomeStep {
        let place = request.place;
        self.holders.insert(place, Token::for_guard(request.mode));
        let flushes = match self.controller {
            Controller::Timestamp => request.since < self.generation,
            Controller::Broadcast | Controller::Overlapped => !self.fresh.contains(place),
        };
        self.fresh.insert(place);
        if request.mode == GuardMode::Write && self.controller == Controller::Overlapped {
            self.mark_others_stale(place);
        }
        HomeStep::Grant { request, generation: self.generation, flushes, is_poisoned: self.is_poisoned }
    }
}
