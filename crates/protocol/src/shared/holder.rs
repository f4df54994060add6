//! One place's side of an object: its token, the guards of its tasks, and the state of its copy.
//!
//! Invariants: guards are there only under a token that covers them; a writer is alone. A token goes back only when the
//! home recalls it, and no guard is there that it covered. What was just granted serves one guard before it goes back;
//! it is reserved only while the task that waits first wants a guard which the token covers.

use super::{GuardMode, Token};

/// Action of a task that wants a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The guard is there.
    Now,
    /// Wait: for a guard here, for a grant, or for the token to go back.
    Wait,
    /// Ask the home for the token of this guard, then wait.
    Ask,
}

/// A token that goes back to the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// Token that stays here.
    pub keeps: Token,
    /// The generation of the copy here; changes since the home's go with it.
    pub generation: u64,
    /// True if `Write` was given up, so that the rest means something.
    pub had_written: bool,
    /// True if the object is poisoned, as far as this place knows.
    pub is_poisoned: bool,
}

/// A token that the home grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Mode of the guard.
    pub mode: GuardMode,
    /// The generation of the value.
    pub generation: u64,
    /// True if the object is poisoned.
    pub is_poisoned: bool,
    /// True if the changes that came along could be applied to the copy here.
    pub is_applied: bool,
}

/// The home says what nobody asked for.
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
    /// The token was granted for the task that waits first, which has not had its guard yet.
    is_reserved: bool,
    generation: u64,
    /// The generation of the copy; older than the token's if the changes in between could not be applied.
    copy: u64,
    is_poisoned: bool,
}

impl Holder {
    /// The side of a place that has `token` at first.
    pub fn new(token: Token) -> Holder {
        Holder { token, ..Holder::default() }
    }

    /// Returns the token of this place: what it may do without asking.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The generation of the value, as far as this place knows.
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

    /// Asks for a guard for a task; no other one waits before it.
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

    /// A task that reads already wants another guard to read, which waits for nobody: the first one may wait for it.
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

    /// Takes a token that the home grants. `next` is the guard that the task which waits first wants.
    ///
    /// # Errors
    /// Nobody asked for it.
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

    /// Recalls the token for the home, except what it lets the place keep. Returns the token that goes back now.
    ///
    /// # Errors
    /// The place has no more than it may keep, or is asked already.
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

    /// Notes that another place has given back `Write` to this one, the home: the copy here is of `generation`.
    pub fn copied(&mut self, generation: u64, is_poisoned: bool) {
        self.generation = self.generation.max(generation);
        self.copy = self.generation;
        self.is_poisoned = is_poisoned;
    }

    /// Sets whether the object is poisoned.
    pub fn set_poisoned(&mut self, is_poisoned: bool) {
        self.is_poisoned = is_poisoned;
    }

    /// Handles the death of the home: nothing that was asked will be granted.
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
