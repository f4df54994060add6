//! One instance at each place ([`PlaceLocal`]), and one value with a copy at each place ([`Replicated`]): at all
//! places, or at those of a team.

use super::travels_by_share;
use crate::attachment::FOREIGN;
use crate::call;
use crate::call::function::Function;
use crate::error::{Error, ErrorKind, Result};
use crate::local::Local;
use crate::members::{Members, PlaceGroup};
use crate::part::{PartRef, fold, replicate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::rc::Rc;

/// A handle to one instance of `T` at each place (X10's `PlaceLocalHandle`); at a place it refers to the instance
/// there.
pub struct PlaceLocal<T: 'static> {
    // Dropped before `share`, so that the table of parts is the last to drop the instance, and catches a panic.
    value: Rc<Instance<T>>,
    share: PartRef,
}

travels_by_share!(PlaceLocal, Instance<T>);

/// The instance of a place, and the line of the program that took its last guard.
struct Instance<T> {
    cell: RefCell<T>,
    line: Cell<Option<&'static Location<'static>>>,
}

impl<T> Instance<T> {
    fn new(value: T) -> Instance<T> {
        Instance { cell: RefCell::new(value), line: Cell::new(None) }
    }

    /// Returns the message for an instance that is locked or read.
    fn in_use(&self) -> String {
        let line = self.line.get().map(|line| format!(" since {line}")).unwrap_or_default();
        match self.cell.try_borrow() {
            Ok(_) => format!(
                "the instance is being read{line}: that guard of `read` was held across an `await`, or \
                 is still alive"
            ),
            Err(_) => format!("the instance is locked{line}: that {LOCKED}"),
        }
    }
}

/// Exclusive use of a place's instance; it must be dropped before the next [`PlaceLocal::lock`] or
/// [`PlaceLocal::read`].
pub struct PlaceGuard<'a, T>(RefMut<'a, T>);

/// Shared use of a place's instance; there may be several, and all must be dropped before the next
/// [`PlaceLocal::lock`].
pub struct PlaceRef<'a, T>(Ref<'a, T>);

/// Returns all places.
fn everywhere() -> Members {
    Members::All(Local::with(Local::places))
}

/// Message for an instance that is in use.
const LOCKED: &str = "guard of `lock` was held across an `await`, or is still alive; to wait on a \
     `Monitor` or the like, use `read()`: `states.read().when(..).await`";

impl<T: 'static> PlaceLocal<T> {
    /// Makes one instance at every place with `make`; returns once all of them exist.
    ///
    /// `make` runs at each place, so it is a function or a closure that captures nothing. Use [`PlaceLocal::with`] to
    /// pass it a value.
    ///
    /// # Errors
    /// A place is dead, or `make` panicked at one.
    #[track_caller]
    pub fn new(make: fn() -> T) -> impl Future<Output = Result<Self>> {
        let caller = Location::caller();
        call::called_at(caller, async move {
            PlaceLocal::make(caller, everywhere(), Function(make), |Function(make)| make()).await
        })
    }

    /// As [`PlaceLocal::new`], at the members of `team` only; one of them makes it.
    ///
    /// A handle to it cannot be used elsewhere: a body that captures it fails there.
    ///
    /// # Errors
    /// As for [`PlaceLocal::new`]; [`Misused`](ErrorKind::Misused): this place is no member, or the team belongs to
    /// another run.
    #[track_caller]
    pub fn new_on(team: &impl PlaceGroup, make: fn() -> T) -> impl Future<Output = Result<Self>> {
        let (caller, members) = (Location::caller(), team.members());
        call::called_at(caller, async move {
            PlaceLocal::make(caller, members?, Function(make), |Function(make)| make()).await
        })
    }

    /// As [`PlaceLocal::new`], with a copy of `seed` for each place.
    ///
    /// # Errors
    /// As for [`PlaceLocal::new`].
    #[track_caller]
    pub fn with<A>(seed: A, make: fn(A) -> T) -> impl Future<Output = Result<Self>>
    where
        A: Serialize + DeserializeOwned + Clone,
    {
        let caller = Location::caller();
        call::called_at(caller, async move {
            let seed = (seed, Function(make));
            PlaceLocal::make(caller, everywhere(), seed, |(seed, Function(make))| make(seed)).await
        })
    }

    /// As [`PlaceLocal::new_on`], with a copy of `seed` for each member.
    ///
    /// # Errors
    /// As for [`PlaceLocal::new_on`].
    #[track_caller]
    pub fn with_on<A>(team: &impl PlaceGroup, seed: A, make: fn(A) -> T) -> impl Future<Output = Result<Self>>
    where
        A: Serialize + DeserializeOwned + Clone,
    {
        let (caller, members) = (Location::caller(), team.members());
        call::called_at(caller, async move {
            let seed = (seed, Function(make));
            PlaceLocal::make(caller, members?, seed, |(seed, Function(make))| make(seed)).await
        })
    }

    /// Makes the instances from copies of `seed` with `make`, for the line `caller` of the program.
    async fn make<S, M>(
        caller: &'static Location<'static>,
        members: Members,
        seed: S,
        make: M,
    ) -> Result<Self>
    where
        S: Serialize + DeserializeOwned + Clone,
        M: Fn(S) -> T + Copy,
    {
        let value = Rc::new(Instance::new(make(seed.clone())));
        let there = move |seed: S| Instance::new(make(seed));
        let share = replicate(caller, members, &seed, Rc::clone(&value), there).await?;
        Ok(PlaceLocal { share, value })
    }

    /// Returns the instance of this place, for exclusive use.
    ///
    /// A place runs one task at a time, so this never waits; but a guard that is held across an `await` still exists
    /// when the next task runs.
    ///
    /// # Panics
    /// If the instance is already locked or read, or the handle is of another run.
    #[track_caller]
    pub fn lock(&self) -> PlaceGuard<'_, T> {
        assert!(!self.share.attachment().is_foreign(), "{FOREIGN}");
        match self.value.cell.try_borrow_mut() {
            Ok(guard) => {
                self.value.line.set(Some(Location::caller()));
                PlaceGuard(guard)
            }
            Err(_) => panic!("{}", self.value.in_use()),
        }
    }

    /// Returns the line that took the present guard of this place's instance, if there is one, and whether it is one of
    /// [`PlaceLocal::lock`].
    #[doc(hidden)]
    pub fn held_since(&self) -> Option<(&'static Location<'static>, bool)> {
        let is_held = self.value.cell.try_borrow_mut().is_err();
        let line = self.value.line.get().filter(|_| is_held)?;
        Some((line, self.value.cell.try_borrow().is_err()))
    }

    /// Returns the instance of this place, for shared use: several tasks may read it at once, even across an `await`.
    ///
    /// For values that change behind a shared reference, such as a [`Monitor`](crate::Monitor) or a cell:
    /// `states.read().when(..).await`.
    ///
    /// # Panics
    /// If the instance is locked, or the handle is of another run.
    #[track_caller]
    pub fn read(&self) -> PlaceRef<'_, T> {
        assert!(!self.share.attachment().is_foreign(), "{FOREIGN}");
        match self.value.cell.try_borrow() {
            Ok(guard) => {
                self.value.line.set(Some(Location::caller()));
                PlaceRef(guard)
            }
            Err(_) => panic!("{}", self.value.in_use()),
        }
    }

    /// Folds all instances, in the order of the places, or of the ranks of a team; the instances stay in place.
    ///
    /// The order of the merges depends only on the number of instances, so a floating-point result has the same bits in
    /// every run with that number, whichever place calls. `merge` runs at several places, so it captures nothing.
    ///
    /// # Errors
    /// A place is dead, an instance is locked, or `merge` panicked.
    #[track_caller]
    pub fn reduce(&self, merge: fn(T, T) -> T) -> impl Future<Output = Result<T>>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        let read = |instance: &Instance<T>| match instance.cell.try_borrow() {
            Ok(value) => Ok(value.clone()),
            Err(_) => Err(Error::new(ErrorKind::Misused, instance.in_use())),
        };
        call::called_at(Location::caller(), fold::<Instance<T>, T, _>(&self.share, read, merge))
    }
}

impl<T> Deref for PlaceGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for PlaceRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for PlaceGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A handle to a value of which each place has its own copy; it dereferences to the local one.
///
/// [`Replicated::new`] makes the copies once; the handle is a few bytes wherever it travels. The copies are read-only:
/// other places would not see a change.
pub struct Replicated<T: 'static> {
    // As in `PlaceLocal`.
    value: Rc<T>,
    share: PartRef,
}

travels_by_share!(Replicated, T);

impl<T: Serialize + DeserializeOwned + 'static> Replicated<T> {
    /// Copies `value` to every place; returns once all have it.
    ///
    /// The value itself becomes the copy here. Costs two messages a place; the value goes down a binary tree.
    ///
    /// # Errors
    /// A place is dead, the value is too long for a message, or a place cannot decode it.
    #[track_caller]
    pub fn new(value: T) -> impl Future<Output = Result<Self>> {
        let caller = Location::caller();
        call::called_at(caller, async move { Replicated::make(caller, everywhere(), value).await })
    }

    /// As [`Replicated::new`], for the members of `team` only; one of them makes it.
    ///
    /// # Errors
    /// As for [`Replicated::new`]; [`Misused`](ErrorKind::Misused): this place is no member, or the team belongs to
    /// another run.
    #[track_caller]
    pub fn new_on(team: &impl PlaceGroup, value: T) -> impl Future<Output = Result<Self>> {
        let (caller, members) = (Location::caller(), team.members());
        call::called_at(caller, async move { Replicated::make(caller, members?, value).await })
    }

    async fn make(caller: &'static Location<'static>, members: Members, value: T) -> Result<Self> {
        let value = Rc::new(value);
        let share = replicate(caller, members, &*value, Rc::clone(&value), |copy: T| copy).await?;
        Ok(Replicated { share, value })
    }
}

impl<T: 'static> Deref for Replicated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
