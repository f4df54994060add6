//! The epochs of one place at one window: what its program may do now ([`AccessEpoch`]), and the state of `post`,
//! `start`, `complete` and `wait` ([`Exposure`]).
//!
//! A place counts the notices that it has received and not used: an origin may complete an epoch, and a target post the
//! next one, before the other side has called. Invariants: locks are held in the locked state only, where at least one
//! is held or requested; at most one epoch of an origin is ahead, because `post` comes first; nothing is accessed under
//! a lock or a `start` that is not granted; one that is given up leaves the epoch as it was.

use super::lock::LockMode;
use crate::ordered::OrderedMap;

/// Kind of a place's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochKind {
    /// None.
    Closed,
    /// Between two fences: every target may be accessed.
    Fence,
    /// Between `start` and `complete`: the targets of its group.
    Started,
    /// At least one lock is held or requested: the targets that are locked.
    Locked,
}

/// Reason why an operation is not allowed now: the open epoch, and the line that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochFault<L> {
    /// The epoch.
    pub epoch: EpochKind,
    /// The line that began it, or requested it.
    pub since: L,
    /// True if its `start`, or the lock of the target, was requested and is not granted yet.
    pub is_pending: bool,
}

/// The access epoch of one place; `L` is a line of the program.
#[derive(Debug)]
pub struct AccessEpoch<L> {
    kind: EpochKind,
    since: L,
    /// True if there was an access since the last fence.
    has_accessed: bool,
    /// The targets of the group, in order, while started.
    group: Vec<u32>,
    /// The targets whose locks are held or requested.
    locks: Vec<Lock<L>>,
    /// The epoch before this one, and its line, while nothing of this one is granted.
    before: Option<(EpochKind, L)>,
}

/// A lock of the part of a target.
#[derive(Debug)]
struct Lock<L> {
    target: u32,
    mode: LockMode,
    /// The line that requested it.
    line: L,
    is_granted: bool,
}

impl<L: Copy> Lock<L> {
    fn fault(&self) -> EpochFault<L> {
        EpochFault { epoch: EpochKind::Locked, since: self.line, is_pending: !self.is_granted }
    }
}

impl<L: Copy> AccessEpoch<L> {
    /// Makes the epoch of a new window, which the program made at `line`: that of a fence.
    pub fn new(line: L) -> AccessEpoch<L> {
        let (group, locks) = (Vec::new(), Vec::new());
        AccessEpoch { kind: EpochKind::Fence, since: line, has_accessed: false, group, locks, before: None }
    }

    /// Returns its kind.
    pub fn kind(&self) -> EpochKind {
        self.kind
    }

    fn fault(&self) -> EpochFault<L> {
        let is_pending = self.kind == EpochKind::Started && self.before.is_some();
        EpochFault { epoch: self.kind, since: self.since, is_pending }
    }

    /// Records an access to `target`.
    ///
    /// # Errors
    /// The target may not be accessed now.
    #[inline]
    pub fn access(&mut self, target: u32) -> Result<(), EpochFault<L>> {
        let may = match self.kind {
            EpochKind::Fence => true,
            EpochKind::Closed => false,
            EpochKind::Started => self.is_started() && self.group.binary_search(&target).is_ok(),
            EpochKind::Locked => self.lock_of(target).is_some_and(|lock| lock.is_granted),
        };
        self.has_accessed |= may;
        if may { Ok(()) } else { Err(self.refusal(target)) }
    }

    /// Returns the reason why `target` may not be accessed or unlocked.
    #[cold]
    fn refusal(&self, target: u32) -> EpochFault<L> {
        self.lock_of(target).map_or_else(|| self.fault(), Lock::fault)
    }

    /// Returns `true` if the `start` of the epoch is granted.
    #[inline]
    fn is_started(&self) -> bool {
        self.kind == EpochKind::Started && self.before.is_none()
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

    /// Requests the epoch of `group`, which [`AccessEpoch::started`] grants, or [`AccessEpoch::give_up_start`] ends.
    ///
    /// # Errors
    /// Another epoch is open: started, locked, or that of a fence in which something was accessed.
    pub fn start(&mut self, group: impl IntoIterator<Item = u32>, line: L) -> Result<(), EpochFault<L>> {
        self.leave_fence()?;
        self.group = group.into_iter().collect();
        self.group.sort_unstable();
        self.group.dedup();
        self.before = Some((self.kind, self.since));
        self.enter(EpochKind::Started, line);
        Ok(())
    }

    /// Records that all members of the group have posted.
    pub fn started(&mut self) {
        self.before = None;
    }

    /// Gives up a `start` that is not granted, and returns to the epoch before it.
    pub fn give_up_start(&mut self) {
        if self.kind == EpochKind::Started {
            self.group = Vec::new();
            self.resume();
        }
    }

    /// Ends the epoch of `start`; returns its targets.
    ///
    /// # Errors
    /// The epoch is not open, or not granted yet.
    pub fn complete(&mut self, line: L) -> Result<Vec<u32>, EpochFault<L>> {
        if !self.is_started() {
            return Err(self.fault());
        }
        self.enter(EpochKind::Closed, line);
        Ok(std::mem::take(&mut self.group))
    }

    /// Requests the lock of `target`, which [`AccessEpoch::locked`] grants, or [`AccessEpoch::give_up_lock`] ends.
    ///
    /// # Errors
    /// The lock is held or requested already, or another epoch is open, as for [`AccessEpoch::start`].
    pub fn lock(&mut self, target: u32, mode: LockMode, line: L) -> Result<(), EpochFault<L>> {
        if let Some(lock) = self.lock_of(target) {
            return Err(lock.fault());
        }
        if self.kind != EpochKind::Locked {
            self.leave_fence()?;
            self.before = Some((self.kind, self.since));
            self.enter(EpochKind::Locked, line);
        }
        self.locks.push(Lock { target, mode, line, is_granted: false });
        Ok(())
    }

    /// Records that the lock of `target` was granted.
    pub fn locked(&mut self, target: u32) {
        if let Some(lock) = self.locks.iter_mut().find(|lock| lock.target == target) {
            lock.is_granted = true;
            self.before = None;
        }
    }

    /// Records that the owner is asked for the lock of `target` only now: nothing may be done under it until it is
    /// granted.
    pub fn ask_lock(&mut self, target: u32) {
        if let Some(lock) = self.locks.iter_mut().find(|lock| lock.target == target) {
            lock.is_granted = false;
        }
    }

    /// Gives up the lock of `target`, which is not granted; if it was the only one, returns to the epoch before it.
    pub fn give_up_lock(&mut self, target: u32) {
        self.locks.retain(|lock| lock.target != target || lock.is_granted);
        if self.kind == EpochKind::Locked && self.locks.is_empty() {
            self.resume();
        }
    }

    /// Returns to the epoch before this one; to none, if this one was used.
    fn resume(&mut self) {
        let (kind, since) = self.before.take().unwrap_or((EpochKind::Closed, self.since));
        self.enter(kind, since);
    }

    /// Unlocks `target`; returns the mode of the lock.
    ///
    /// # Errors
    /// It is not locked, or the lock is not granted yet.
    pub fn unlock(&mut self, target: u32, line: L) -> Result<LockMode, EpochFault<L>> {
        let Some(index) = self.locks.iter().position(|lock| lock.target == target && lock.is_granted) else {
            return Err(self.refusal(target));
        };
        let Lock { mode, .. } = self.locks.swap_remove(index);
        if self.locks.is_empty() {
            self.enter(EpochKind::Closed, line);
        }
        Ok(mode)
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

    fn lock_of(&self, target: u32) -> Option<&Lock<L>> {
        self.locks.iter().find(|lock| lock.target == target)
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
    /// Records that `target` has posted for this place.
    pub fn posted(&mut self, target: u32) {
        *self.posts.get_or_default(target) += 1;
    }

    /// Returns the first of `group` that has not posted; uses up the posts of all if there is none.
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

    /// Records that `origin` has completed its epoch.
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

/// Uses up one count of each of `group`, or none if one has no count; returns the first that has none.
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
