//! The epochs of one place at one window: what its program may do now ([`AccessEpoch`]), and what `post`, `start`,
//! `complete` and `wait` have told each other ([`Exposure`]).
//!
//! A place counts what it has heard and not used: an origin may complete an epoch, and a target post the next one,
//! before the other side has called. Invariants: locks are held in the locked state only, and at least one is; of one
//! origin at most one epoch is ahead, because `post` comes first.

use super::lock::LockMode;
use crate::ordered::OrderedMap;

/// What kind of epoch a place is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochKind {
    /// None.
    Closed,
    /// Between two fences: every target may be accessed.
    Fence,
    /// Between `start` and `complete`: the targets of its group.
    Started,
    /// At least one lock is held: the targets that are locked.
    Locked,
}

/// Why something may not be done now: the epoch that it met, and the line that made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochFault<L> {
    /// The epoch.
    pub epoch: EpochKind,
    /// The line that began it.
    pub since: L,
}

/// The access epoch of one place; `L` is a line of the program.
#[derive(Debug)]
pub struct AccessEpoch<L> {
    kind: EpochKind,
    since: L,
    /// Whether something was accessed since the last fence.
    has_accessed: bool,
    /// The targets of the group, in order, while started.
    group: Vec<u32>,
    /// The targets that are locked, with how and by which line.
    locks: Vec<(u32, LockMode, L)>,
}

impl<L: Copy> AccessEpoch<L> {
    /// The epoch of a new window, which the program made at `line`: that of a fence.
    pub fn new(line: L) -> AccessEpoch<L> {
        let (group, locks) = (Vec::new(), Vec::new());
        AccessEpoch { kind: EpochKind::Fence, since: line, has_accessed: false, group, locks }
    }

    /// Returns its kind.
    pub fn kind(&self) -> EpochKind {
        self.kind
    }

    fn fault(&self) -> EpochFault<L> {
        EpochFault { epoch: self.kind, since: self.since }
    }

    /// Notes an access to `target`.
    ///
    /// # Errors
    /// The target may not be accessed now.
    #[inline]
    pub fn access(&mut self, target: u32) -> Result<(), EpochFault<L>> {
        let may = match self.kind {
            EpochKind::Fence => true,
            EpochKind::Closed => false,
            EpochKind::Started => self.group.binary_search(&target).is_ok(),
            EpochKind::Locked => self.lock_of(target).is_some(),
        };
        self.has_accessed |= may;
        if may { Ok(()) } else { Err(self.fault()) }
    }

    /// Ends a fence epoch, or none, and begins the next at `line`.
    ///
    /// # Errors
    /// Another kind of epoch is open.
    pub fn fence(&mut self, line: L) -> Result<(), EpochFault<L>> {
        match self.kind {
            EpochKind::Started | EpochKind::Locked => Err(self.fault()),
            EpochKind::Closed | EpochKind::Fence => {
                self.has_accessed = false;
                self.enter(EpochKind::Fence, line);
                Ok(())
            }
        }
    }

    /// Begins the epoch of `group`.
    ///
    /// # Errors
    /// Another epoch is open: started, locked, or that of a fence in which something was accessed.
    pub fn start(&mut self, group: impl IntoIterator<Item = u32>, line: L) -> Result<(), EpochFault<L>> {
        self.leave_fence()?;
        self.group = group.into_iter().collect();
        self.group.sort_unstable();
        self.group.dedup();
        self.enter(EpochKind::Started, line);
        Ok(())
    }

    /// Ends the epoch of `start`; returns its targets.
    ///
    /// # Errors
    /// It is not open.
    pub fn complete(&mut self, line: L) -> Result<Vec<u32>, EpochFault<L>> {
        if self.kind != EpochKind::Started {
            return Err(self.fault());
        }
        self.enter(EpochKind::Closed, line);
        Ok(std::mem::take(&mut self.group))
    }

    /// Locks `target`.
    ///
    /// # Errors
    /// It is locked already, or another epoch is open, as for [`AccessEpoch::start`].
    pub fn lock(&mut self, target: u32, mode: LockMode, line: L) -> Result<(), EpochFault<L>> {
        if let Some((_, _, since)) = self.lock_of(target) {
            return Err(EpochFault { epoch: EpochKind::Locked, since: *since });
        }
        if self.kind != EpochKind::Locked {
            self.leave_fence()?;
            self.enter(EpochKind::Locked, line);
        }
        self.locks.push((target, mode, line));
        Ok(())
    }

    /// Unlocks `target`; returns how it was locked.
    ///
    /// # Errors
    /// It is not locked.
    pub fn unlock(&mut self, target: u32, line: L) -> Result<LockMode, EpochFault<L>> {
        let Some(index) = self.locks.iter().position(|(locked, _, _)| *locked == target) else {
            return Err(self.fault());
        };
        let (_, mode, _) = self.locks.swap_remove(index);
        if self.locks.is_empty() {
            self.enter(EpochKind::Closed, line);
        }
        Ok(mode)
    }

    /// Returns the targets that are locked.
    pub fn locked(&self) -> impl Iterator<Item = u32> + '_ {
        self.locks.iter().map(|(target, _, _)| *target)
    }

    /// Leaves a fence epoch without accesses, or none.
    fn leave_fence(&self) -> Result<(), EpochFault<L>> {
        match self.kind {
            EpochKind::Closed => Ok(()),
            EpochKind::Fence if !self.has_accessed => Ok(()),
            _ => Err(self.fault()),
        }
    }

    fn enter(&mut self, kind: EpochKind, line: L) {
        (self.kind, self.since) = (kind, line);
    }

    fn lock_of(&self, target: u32) -> Option<&(u32, LockMode, L)> {
        self.locks.iter().find(|(locked, _, _)| *locked == target)
    }
}

/// Both sides of the epochs of `post` and `start` at one place; members are ranks.
#[derive(Debug, Default)]
pub struct Exposure {
    /// Posts of each target that no `start` has used.
    posts: OrderedMap<u32, u64>,
    /// The group of the `post` that no `wait` has ended.
    exposed: Option<Vec<u32>>,
    /// Completions of each origin that no `wait` has used.
    completed: OrderedMap<u32, u64>,
}

/// An exposure is open already, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotClosed;

impl Exposure {
    /// Notes that `target` has posted for this place.
    pub fn posted(&mut self, target: u32) {
        *self.posts.get_or_default(target) += 1;
    }

    /// Returns the first of `group` that has not posted; uses the posts of all if there is none.
    pub fn start(&mut self, group: &[u32]) -> Option<u32> {
        use_all(&mut self.posts, group)
    }

    /// Opens an exposure for `group`.
    ///
    /// # Errors
    /// One is open.
    pub fn post(&mut self, group: Vec<u32>) -> Result<(), NotClosed> {
        if self.exposed.is_some() {
            return Err(NotClosed);
        }
        self.exposed = Some(group);
        Ok(())
    }

    /// Notes that `origin` has completed its epoch.
    ///
    /// # Errors
    /// No exposure of this place is open for it.
    pub fn completed(&mut self, origin: u32) -> Result<(), NotClosed> {
        let is_exposed = self.exposed.as_ref().is_some_and(|group| group.contains(&origin));
        if !is_exposed || self.completed.contains_key(origin) {
            return Err(NotClosed);
        }
        self.completed.insert(origin, 1);
        Ok(())
    }

    /// Ends the exposure if all of its group have completed; returns the first that has not.
    ///
    /// # Errors
    /// None is open.
    pub fn wait(&mut self) -> Result<Option<u32>, NotClosed> {
        let group = self.exposed.as_ref().ok_or(NotClosed)?;
        let missing = use_all(&mut self.completed, group);
        if missing.is_none() {
            self.exposed = None;
        }
        Ok(missing)
    }
}

/// Takes one of the counts of each of `group`, or of none if one has none; returns the first that has none.
fn use_all(counts: &mut OrderedMap<u32, u64>, group: &[u32]) -> Option<u32> {
    if let Some(missing) = group.iter().find(|member| !counts.contains_key(**member)) {
        return Some(*missing);
    }
    for member in group {
        if let Some(count) = counts.get_mut(*member) {
            *count -= 1;
            if *count == 0 {
                counts.remove(*member);
            }
        }
    }
    None
}
