//! Handles: small values that stand for something on one place or on all, and can be sent anywhere.
//!
//! The flavours share one mechanism, `part`: creating a handle makes its parts, the last handle gone, anywhere, frees
//! them.

mod counter;
mod global;
mod place_local;
mod replicated;

pub(crate) use counter::WordTable;
pub use counter::{Counter, CounterNumber};
pub use global::{Global, NotHome, Opened};
pub use place_local::{PlaceGuard, PlaceLocal, PlaceRef};
pub use replicated::Replicated;

/// Implements serde and `Handle` for a handle of the form `{ share: PartRef, value: Rc<T> }`.
macro_rules! travels_by_share {
    ($handle:ident, $part:ty) => {
        impl<T: 'static> serde::Serialize for $handle<T> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.share.serialize(serializer)
            }
        }

        impl<'de, T: 'static> serde::Deserialize<'de> for $handle<T> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let (share, value) = crate::part::PartRef::with_value(deserializer)?;
                match value.map(std::rc::Rc::downcast::<$part>) {
                    Some(Ok(value)) => Ok($handle { share, value }),
                    _ => Err(serde::de::Error::custom("the handle's part is not at this place")),
                }
            }
        }

        impl<T: 'static> Clone for $handle<T> {
            fn clone(&self) -> Self {
                $handle { share: self.share.clone(), value: std::rc::Rc::clone(&self.value) }
            }
        }

        impl<T: 'static> crate::capture::Handle for $handle<T> {}
    };
}
pub(crate) use travels_by_share;
