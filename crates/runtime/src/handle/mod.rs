//! Handles: small values that stand for something on one place or on all, and can be sent anywhere.
//!
//! All kinds use one mechanism, `part`: creating a handle makes its parts; dropping the last handle, anywhere, frees
//! them. The simplest kind is here: [`Global`], a reference to a value of one place.

mod counter;
mod place_local;
pub(crate) mod words;

pub use counter::{Counter, CounterNumber};
pub use place_local::{PlaceGuard, PlaceLocal, PlaceRef, Replicated};

use crate::attachment::FOREIGN;
use crate::capture::Handle;
use crate::local::Local;
use crate::part::PartRef;
use crate::place::Place;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;

/// Implements serde and `Handle` for a handle of the form `{ share: PartRef, value: Rc<T> }`.
#[doc(hidden)]
#[macro_export]
macro_rules! travels_by_share {
    ($handle:ident, $part:ty) => {
        impl<T: 'static> serde::Serialize for $handle<T> {
            #[inline]
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.share.serialize(serializer)
            }
        }

        impl<'de, T: 'static> serde::Deserialize<'de> for $handle<T> {
            #[inline]
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let (share, value) = $crate::service::PartRef::with_value(deserializer)?;
                $handle::of(share, value).ok_or_else(|| serde::de::Error::custom($crate::service::NO_VALUE))
            }
        }

        impl<T: 'static> Clone for $handle<T> {
            fn clone(&self) -> Self {
                $handle { share: self.share.clone(), value: std::rc::Rc::clone(&self.value) }
            }
        }

        impl<T: 'static> $crate::capture::Handle for $handle<T> {
            #[inline]
            fn __isles_put(
                &self,
                to: &mut $crate::wire::Writer<'_>,
            ) -> Result<(), $crate::wire::EncodeError> {
                self.share.put(to)
            }

            #[inline]
            fn __isles_take(from: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::wire::DecodeError> {
                let (share, value) = $crate::service::PartRef::take(from)?;
                $handle::of(share, value).ok_or_else(|| serde::de::Error::custom($crate::service::NO_VALUE))
            }
        }

        impl<T: 'static> $handle<T> {
            /// Returns the handle that has arrived, if `value` has the right type.
            #[inline]
            fn of(share: $crate::service::PartRef, value: Option<$crate::service::Value>) -> Option<Self> {
                let value = value?.downcast::<$part>().ok()?;
                Some($handle { share, value })
            }
        }
    };
}
pub use travels_by_share;

/// Message for a handle that has arrived at a place where its part has no value.
pub const NO_VALUE: &str = "the handle's part is not at this place";

/// A reference to a value that stays where it was made (X10's `GlobalRef`).
///
/// It can be sent to any place and back, but opened only at its [`home`](Global::home). The value lives until the last
/// reference, at any place, is dropped.
pub struct Global<T: 'static> {
    share: PartRef,
    value: PhantomData<Rc<T>>,
}

/// Error of a global reference opened away from home: go there with `at!(reference.home(), ..)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHome {
    /// Place of the value.
    pub home: Place,
    /// Place that tried to open it.
    pub here: Place,
}

impl fmt::Display for NotHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a reference to a value of {} was opened at {}", self.home, self.here)?;
        write!(f, "; open it inside `at!(reference.home(), ..)`")
    }
}

impl std::error::Error for NotHome {}

/// A value, opened at its home.
pub struct Opened<T>(Rc<T>);

impl<T> Deref for Opened<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: 'static> Global<T> {
    /// Makes a reference to `value`, whose home is here.
    pub fn new(value: T) -> Self {
        Global { share: PartRef::make(Rc::new(value), None), value: PhantomData }
    }

    /// Returns the place of the value.
    pub fn home(&self) -> Place {
        Place::of(self.share.id().home)
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`NotHome`]: this is another place.
    ///
    /// # Panics
    /// If the reference was made, or has arrived, in another run.
    #[track_caller]
    pub fn open(&self) -> Result<Opened<T>, NotHome> {
        let here = Place::of(Local::with(Local::here));
        assert!(!self.share.attachment().is_foreign(), "{FOREIGN}");
        self.share.value().map(Opened).ok_or(NotHome { home: self.home(), here })
    }
}

impl<T: 'static> Clone for Global<T> {
    fn clone(&self) -> Self {
        Global { share: self.share.clone(), value: PhantomData }
    }
}

impl<T: 'static> Serialize for Global<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.share.serialize(serializer)
    }
}

impl<'de, T: 'static> Deserialize<'de> for Global<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PartRef::deserialize(deserializer).map(|share| Global { share, value: PhantomData })
    }
}

impl<T: 'static> Handle for Global<T> {
    #[inline]
    fn __isles_put(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.share.put(to)
    }

    #[inline]
    fn __isles_take(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        PartRef::take(from).map(|(share, _)| Global { share, value: PhantomData })
    }
}
