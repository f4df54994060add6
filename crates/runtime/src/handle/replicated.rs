//! One value, one copy at each place.

use super::travels_by_share;
use crate::call;
use crate::error::Result;
use crate::part::{PartRef, replicate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;

/// A handle to a value of which each place has its own copy; it dereferences to the local one.
///
/// The copies are made once, by [`Replicated::new`]; the handle is a few bytes wherever it travels. The copies are
/// read-only: what one place did to its own would not be seen by the others.
pub struct Replicated<T: 'static> {
    share: PartRef,
    value: Rc<T>,
}

travels_by_share!(Replicated, T);

impl<T: Serialize + DeserializeOwned + 'static> Replicated<T> {
    /// Copies `value` to every place; ends when all have it.
    ///
    /// The value itself becomes the copy here. Costs two messages a place; the value goes down a binary tree.
    ///
    /// # Errors
    /// A place is dead, the value is too long for a message, or cannot be read at a place.
    #[track_caller]
    pub fn new(value: T) -> impl Future<Output = Result<Self>> {
        let caller = Location::caller();
        call::called_at(caller, async move {
            let value = Rc::new(value);
            let share = replicate(caller, &*value, Rc::clone(&value), |copy: T| copy).await?;
            Ok(Replicated { share, value })
        })
    }
}

impl<T: 'static> Deref for Replicated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
