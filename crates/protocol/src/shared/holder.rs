//! One place's side of an object: its token, the guards of its tasks, and the state of its copy.
//!
//! Invariants: guards exist only under a token that covers them; a writer is alone. A token goes back only when the
//! home recalls it, and no guard that it covers exists. A newly granted token serves one guard before it goes back; it
//! is reserved only while the first waiting task wants a guard that the token covers.

use super::{GuardMode, Token};

/// Answer to a task that wants a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It has the guard.
    Now,
    /// Wait: for a guard here to end, for a grant, or for the token to go back.
    Wait,
    /// Ask the home for the token of this guard, then wait.
    Ask,
}

/// A token that goes back to the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// Token that stays here.
    pub keeps: Token,
    /// Generation of the copy here; the changes since the home's generation go with it.
    pub generation: u64,
    /// True if `Write` was given up; otherwise the other fields mean nothing.
    pub had_written: bool,
    /// True if the object is poisoned, as far as this place knows.
    pub is_poisoned: bool,
}

/// A token that the home grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Mode of the guard.
    pub mode: GuardMode,
    /// Generation of the value.
    pub generation: u64,
    /// True if the object is poisoned.
    pub is_poisoned: bool,
    /// True if the changes with the grant could be applied to the copy here.
    pub is_applied: bool,
}

/// The home grants or recalls what was not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAsked;

/// One place's side of a shared object: its token, the guards of its tasks, and the state of its copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    token: Token,
    readers: u32,
    is_writing: bool,
    asked: Option<GuardMode>,
    recalled: Option<Token>,
    /// True if the token was granted for the first waiting task, which has not had its guard yet.
    is_reserved: bool,
    generation: u64,
    /// Generation of the copy; older than the token's if the changes in between could not be applied.
    copy: u64,
    is_poisoned: bool,
}

impl Holder {
    /// Makes the side of a place that has `token` at first.
    pub fn new(token: Token) -> Holder {
        Holder { token, ..Holder::default() }
    }

    /// Returns the token of this place: what it may do without asking.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Returns the generation of the value, as far as this place knows.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the generation of the copy here: the home need not send older changes.
    pub fn copy_generation(&self) -> u64 {
        self.copy
    }

    /// Returns `true` if the copy is the value.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.copy == self.generation
    }

    /// Returns `true` if a guard may show the copy: it is the value, and not poisoned.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.is_current() && !self.is_poisoned
    }

    /// Returns `true` if the object is poisoned, as far as this place knows.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    /// Returns the number of guards.
    pub fn guards(&self) -> u32 {
        self.readers + u32::from(self.is_writing)
    }

    /// Requests a guard for a task; no other task waits before it.
    #[inline]
    pub fn acquire(&mut self, mode: GuardMode) -> Admission {
        let is_free = match mode {
            GuardMode::Read => !self.is_writing,
            GuardMode::Write => !self.is_writing && self.readers == 0,
        };
        if self.token.covers(mode) && (self.recalled.is_none() || self.is_reserved) {
            if !is_free {
                return Admission::Wait;
            }
            self.is_reserved = false;
            match mode {
                GuardMode::Read => self.readers += 1,
                GuardMode::Write => self.is_writing = true,
            }
            return Admission::Now;
        }
        if self.asked.is_some() || self.recalled.is_some() {
            return Admission::Wait;
        }
        self.asked = Some(mode);
        Admission::Ask
    }

    /// Adds a guard for a task that already reads. It waits for nothing, because otherwise the task could wait for
    /// itself.
    #[inline]
    pub fn join_reader(&mut self) {
        self.readers += 1;
    }

    /// Ends a guard; for a writer, `has_changed` says whether it may have written. Returns the token that goes back.
    #[inline]
    pub fn release(&mut self, mode: GuardMode, has_changed: bool) -> Option<GiveBack> {
        match mode {
            GuardMode::Read => self.readers = self.readers.saturating_sub(1),
            GuardMode::Write => {
                self.is_writing = false;
                if has_changed {
                    self.generation += 1;
                    self.copy = self.generation;
                }
            }
        }
        self.give_back()
    }

    /// Accepts a token that the home grants. `next` is the guard that the first waiting task wants.
    ///
    /// # Errors
    /// The token was not asked for.
    pub fn granted(&mut self, granted: Granted, next: Option<GuardMode>) -> Result<(), NotAsked> {
        let Granted { mode, generation, is_poisoned, is_applied } = granted;
        if self.asked != Some(mode) || generation < self.generation {
            return Err(NotAsked);
        }
        self.asked = None;
        self.token = Token::for_guard(mode);
        self.is_reserved = next.is_some_and(|next| self.token.covers(next));
        self.generation = generation;
        if is_applied {
            self.copy = generation;
        }
        self.is_poisoned = is_poisoned;
        Ok(())
    }

    /// Recalls the token for the home, except for `keeps`. Returns the token that goes back now.
    ///
    /// # Errors
    /// The place has no more than `keeps`, or the token was recalled before.
    pub fn recall(&mut self, keeps: Token) -> Result<Option<GiveBack>, NotAsked> {
        if self.token <= keeps || self.recalled.is_some() {
            return Err(NotAsked);
        }
        self.recalled = Some(keeps);
        Ok(self.give_back())
    }

    /// Gives up the wait of a task; `next` is the guard that the first waiting task now wants. Returns the token that
    /// goes back now.
    pub fn give_up(&mut self, next: Option<GuardMode>) -> Option<GiveBack> {
        self.is_reserved &= next.is_some_and(|next| self.token.covers(next));
        self.give_back()
    }

    /// Records that another place has given back `Write` to this one, the home: the copy here is of `generation`.
    pub fn copied(&mut self, generation: u64, is_poisoned: bool) {
        self.generation = self.generation.max(generation);
        self.copy = self.generation;
        self.is_poisoned = is_poisoned;
    }

    /// Sets whether the object is poisoned.
    pub fn set_poisoned(&mut self, is_poisoned: bool) {
        self.is_poisoned = is_poisoned;
    }

    /// Handles the death of the home: no request will be granted.
    pub fn home_died(&mut self) {
        self.asked = None;
    }

    #[inline]
    fn give_back(&mut self) -> Option<GiveBack> {
        let keeps = self.recalled?;
        if self.is_reserved || self.is_writing || (keeps == Token::None && self.readers > 0) {
            return None;
        }
        self.recalled = None;
        let had_written = self.token == Token::Write;
        self.token = keeps;
        let (generation, is_poisoned) = (self.generation, self.is_poisoned);
        Some(GiveBack { keeps, generation, had_written, is_poisoned })
    }
}
