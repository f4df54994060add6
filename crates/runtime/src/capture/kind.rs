//! The choice of a capture's form by its type, at the call site.
//!
//! Stable Rust has no specialisation, but method lookup has an order. Each level below is a type that dereferences to
//! the next one, and its method exists only for the types that the level is for, so `tag(&x).__isles_capture()` finds
//! the most specific level that fits. This works where the compiler knows the type, so in the macro's expansion and
//! never inside a generic function of ours.
//!
//! Invariant: the last level takes every type. [`super::travelling`] checks later whether it can travel, because a
//! field behind a handle is inspected here and then stays at home.

use super::form::{
    AlreadyRefused, BorrowedCapture, ByName, Capture, CheckedElements, CheckedSerde, DerefCapture, InPlace,
    OwnedCapture, Plain, PlainVec, RefusedFormat, Serialised,
};
use super::references::{HoldsReferences, TravelsWithReferences};
use super::{Handle, InteriorMutable, TravelsByMutableReference};
use crate::wire::PodSlice;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Deref;

/// Makes the compiler determine a type before its form is chosen: a method call on an unknown type is an error.
pub trait Known {
    /// Does nothing.
    #[inline]
    fn __isles_known(&self) {}

    /// Returns the value.
    #[inline]
    fn __isles_known_value(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

impl<T: ?Sized> Known for T {}

/// A chain of types, each dereferencing to the next; the last one holds the reference.
macro_rules! levels {
    ($(#[$note:meta])* $name:ident) => {
        $(#[$note])*
        pub struct $name<'a, X>(&'a X);

        impl<'a, X> $name<'a, X> {
            fn new(source: &'a X) -> Self {
                $name(source)
            }

            /// Returns the captured value.
            fn source(&self) -> &'a X {
                self.0
            }
        }
    };
    ($(#[$note:meta])* $name:ident, $(#[$next_note:meta])* $next:ident $($rest:tt)*) => {
        $(#[$note])*
        pub struct $name<'a, X>($next<'a, X>);

        impl<'a, X> $name<'a, X> {
            fn new(source: &'a X) -> Self {
                $name($next::new(source))
            }
        }

        impl<'a, X> Deref for $name<'a, X> {
            type Target = $next<'a, X>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        levels!($(#[$next_note])* $next $($rest)*);
    };
}

levels! {
    /// Values with interior mutability; refused at once.
    Cells,
    /// Values that hold references; refused at once.
    Borrowers,
    /// Arrays of plain elements, text, and mutable references, which are refused at once.
    Bulk,
    /// References to other slices.
    Slices,
    /// References to plain values.
    PlainReferences,
    /// References to handles.
    ReferencesToHandles,
    /// References to other values.
    References,
    /// Plain values.
    PlainValues,
    /// Handles.
    HandleValues,
    /// All other values.
    Values
}

/// Starts the choice of a form for the variable or field `source`.
pub fn tag<X>(source: &X) -> Cells<'_, X> {
    Cells::new(source)
}

impl<'a, T: InteriorMutable> Cells<'a, T> {
    /// Refused.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'a, T, RefusedFormat<T>, OwnedCapture<T>> {
        Capture::of(self.source())
    }
}

impl<'a, T: HoldsReferences> Borrowers<'a, T> {
    /// Refused.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'a, T, AlreadyRefused<T>, OwnedCapture<T>>
    where
        T: TravelsWithReferences,
    {
        Capture::of(self.source())
    }
}

impl<'a, 'r, T: NoUninit + AnyBitPattern> Bulk<'a, &'r [T]> {
    /// The elements stay in the message.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, [T], InPlace<T>, DerefCapture<PodSlice<T>>> {
        Capture::of(self.source())
    }
}

impl<'a, T: NoUninit + AnyBitPattern> Bulk<'a, Vec<T>> {
    /// One copy of the elements.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'a, [T], PlainVec<T>, OwnedCapture<Vec<T>>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r, T: NoUninit + AnyBitPattern> Bulk<'a, &'r Vec<T>> {
    /// One copy of the elements: the body may ask for more than a slice.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, [T], PlainVec<T>, BorrowedCapture<Vec<T>>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r> Bulk<'a, &'r str> {
    /// Text.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, str, Serialised<String>, DerefCapture<String>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r, T> Bulk<'a, &'r mut T> {
    /// Refused.
    #[inline]
    pub fn __isles_capture(
        &self,
    ) -> Capture<'a, &'r mut T, AlreadyRefused<&'r mut T>, OwnedCapture<&'r mut T>>
    where
        T: TravelsByMutableReference,
    {
        Capture::of(self.source())
    }
}

impl<'a, 'r, T> Slices<'a, &'r [T]> {
    /// Element by element.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, [T], CheckedElements<T>, DerefCapture<Vec<T>>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r, T: NoUninit + AnyBitPattern> PlainReferences<'a, &'r T> {
    /// The bytes of the value.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, T, Plain, BorrowedCapture<T>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r, H: Handle> ReferencesToHandles<'a, &'r H> {
    /// The handle.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, H, ByName<H>, BorrowedCapture<H>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r, T> References<'a, &'r T> {
    /// Serde.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'r, T, CheckedSerde<T>, BorrowedCapture<T>> {
        Capture::of(self.source())
    }
}

impl<'a, T: NoUninit + AnyBitPattern> PlainValues<'a, T> {
    /// The bytes of the value.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'a, T, Plain, OwnedCapture<T>> {
        Capture::of(self.source())
    }
}

impl<'a, H: Handle> HandleValues<'a, H> {
    /// The handle.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'a, H, ByName<H>, OwnedCapture<H>> {
        Capture::of(self.source())
    }
}

impl<'a, T> Values<'a, T> {
    /// Serde.
    #[inline]
    pub fn __isles_capture(&self) -> Capture<'a, T, CheckedSerde<T>, OwnedCapture<T>> {
        Capture::of(self.source())
    }
}

levels! {
    /// Handles.
    Handles,
    /// References to handles.
    HandleReferences,
    /// Everything else.
    Plainly
}

/// Starts the choice between `source` itself, if it is a handle, and its fields that the body uses.
pub fn prefix<X>(source: &X) -> Handles<'_, X> {
    Handles::new(source)
}

impl<'a, H: Handle> Handles<'a, H> {
    /// The handle travels; its fields are not inspected.
    #[inline]
    pub fn __isles_choose<V>(
        &self,
        _fields: impl FnOnce() -> V,
    ) -> Capture<'a, H, ByName<H>, OwnedCapture<H>> {
        Capture::of(self.source())
    }
}

impl<'a, 'r, H: Handle> HandleReferences<'a, &'r H> {
    /// The handle travels; its fields are not inspected.
    #[inline]
    pub fn __isles_choose<V>(
        &self,
        _fields: impl FnOnce() -> V,
    ) -> Capture<'r, H, ByName<H>, BorrowedCapture<H>> {
        Capture::of(self.source())
    }
}

impl<X> Plainly<'_, X> {
    /// The fields travel.
    #[inline]
    pub fn __isles_choose<V>(&self, fields: impl FnOnce() -> V) -> V {
        fields()
    }
}
