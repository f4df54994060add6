//! Captures of a body that travel to another place, and values that come back.
//!
//! The macros `at!` and `spawn_at!` find the variables and field paths that a body uses; this module decides, by type
//! and at compile time, how each of them is written, and as what the body sees it at the other place. It does not send,
//! and knows neither tasks nor places.
//!
//! There are three steps in three files: [`kind`] chooses the form of a capture at the call site (most specific first),
//! [`form`] holds the forms, [`shipment`] does the same for values that come back. Invariant: the body sees the same
//! types at both places, a value for a value and a reference for a reference.
//!
//! All of it is public only for the macros; programs name [`CanTravel`] and [`CanReturn`] at most.

pub mod form;
pub mod kind;
pub mod outcome;
pub mod references;
pub mod roundtrip_check;
pub mod shipment;

pub use kind::{Known, prefix, tag};
pub use outcome::{MainOutcome, TaskOutcome};
pub use shipment::ship_tag;

use crate::limits::ROOM_GUESS;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use bytemuck::{AnyBitPattern, NoUninit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, LinkedList, VecDeque};
use std::sync::atomic;

/// Captures that a call site sends with its body. They hold references: the sender copies nothing and keeps its
/// variables.
pub trait Travel {
    /// The owned captures at the receiving place.
    type Decoded: Bind;

    /// Estimated number of bytes that `encode` writes; this much room is requested first.
    const ROOM: usize = ROOM_GUESS;

    /// Writes the captures. Called again after the writer overflowed, with the same result.
    ///
    /// # Errors
    /// [`EncodeError`]: nothing can be sent.
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Reads what `encode` wrote.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are not what was written.
    fn decode(from: &mut Reader<'_>) -> Result<Self::Decoded, DecodeError>;

    /// Checks that what `encode` writes reads back as the same; does nothing for plain memory, which always does.
    ///
    /// # Errors
    /// It does not, or its `Serialize` or `Deserialize` panicked.
    fn check_roundtrip(&self) -> crate::Result<()> {
        Ok(())
    }
}

/// Captures that have arrived, and lend the body its variables.
pub trait Bind {
    /// Variables of the body: a value for a value, a reference for a reference.
    type Bound<'a>
    where
        Self: 'a;

    /// Lends the captures to the body; called once.
    fn bind(&mut self) -> Self::Bound<'_>;
}

/// A value on its way back from a body.
pub trait Ship {
    /// Type that the caller of `at!` gets.
    type Value;

    /// As [`Travel::ROOM`].
    const ROOM: usize = ROOM_GUESS;

    /// Writes the value. Called again after the writer overflowed, with the same result.
    ///
    /// # Errors
    /// [`EncodeError`]: nothing can be sent.
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Reads what `encode` wrote.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are not what was written.
    fn decode(from: &mut Reader<'_>) -> Result<Self::Value, DecodeError>;

    /// As [`Travel::check_roundtrip`].
    ///
    /// # Errors
    /// As for [`Travel::check_roundtrip`].
    fn check_roundtrip(&self) -> crate::Result<()> {
        Ok(())
    }

    /// As [`Ship::check_roundtrip`], for a value that is already at its caller.
    ///
    /// # Errors
    /// As for [`Travel::check_roundtrip`].
    fn check_roundtrip_value(_value: &Self::Value) -> crate::Result<()> {
        Ok(())
    }
}

/// Marks a small value that stands for parts on several places, such as `Replicated<T>`.
///
/// A body that reads a field through a handle (`graph.offsets`, where `graph: Replicated<Graph>`) takes the
/// handle along, not the field of the local copy.
pub trait Handle: Serialize + DeserializeOwned {
    /// Writes the handle, with the same bytes as its `Serialize`.
    ///
    /// # Errors
    /// [`EncodeError`]: it cannot be sent.
    #[doc(hidden)]
    #[inline]
    fn __isles_put(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(self)
    }

    /// Reads what [`Handle::__isles_put`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are not what was written.
    #[doc(hidden)]
    #[inline]
    fn __isles_take(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.take_value()
    }
}

/// Declares traits that every type with their supertraits implements: bounds with error messages of their own.
macro_rules! bounds {
    ($($(#[$attribute:meta])* pub trait $name:ident: ($($bound:tt)+);)+) => {$(
        $(#[$attribute])*
        pub trait $name: $($bound)+ {}

        #[diagnostic::do_not_recommend]
        impl<T: $($bound)+> $name for T {}
    )+};
}

bounds! {
    /// Types whose values may go to another place: all that serde can write, and read into something owned. Implemented
    /// for all such types; use it as the bound of a type parameter whose values a body captures.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot travel to another place",
        label = "this body captures a `{Self}`",
        note = "derive `serde::Serialize` and `serde::Deserialize` for it, or keep it on its place and \
             capture a handle (`Replicated`, `PlaceLocal`, `Global`)",
        note = "a type parameter needs the bound `isles::CanTravel`, which every type with serde's traits fulfils",
        note = "to send something else instead, list what travels: `at!(place, [name = expression] body)`",
        note = "references inside structures, `&mut` references and functions named as values (write \
             `|x| f(x)`) cannot travel"
    )]
    pub trait CanTravel: (Serialize + DeserializeOwned);

    /// Types whose values may go over a channel: those of [`CanTravel`] that borrow nothing. Implemented for all such
    /// types; use it as the bound of a type parameter whose values are sent.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be sent over a channel",
        label = "a channel carries values to other places, and a `{Self}` cannot go there",
        note = "derive `serde::Serialize` and `serde::Deserialize` for it, or keep it on its place and send a handle (`Replicated`, `PlaceLocal`, `Global`)",
        note = "borrowed data must be made owned (`String` instead of `&str`, `Vec<T>` instead of `&[T]`)",
        note = "a type parameter needs the bound `isles::CanSend`, which every owned type with serde's traits fulfils"
    )]
    pub trait CanSend: (Serialize + DeserializeOwned + 'static);

    /// Elements of windows, arrays and the slices of a team: numbers, arrays of them, and structures that derive the
    /// traits of `bytemuck`. Implemented for all such types; use it as the bound of a type parameter that stands for an
    /// element.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be an element of a window, an array, or a slice that a team moves",
        label = "elements are moved as bytes, and a `{Self}` may hold more than plain numbers",
        note = "derive `Clone, Copy, bytemuck::NoUninit, bytemuck::AnyBitPattern` for it, and add \
             `#[repr(C)]`: all fields must be numbers, without padding",
        note = "the program needs `bytemuck = {{ version = \"1\", features = [\"derive\"] }}` for that",
        note = "types that hold pointers, such as `String` and `Vec`, are sent over a channel or with \
             `send`",
        note = "a type parameter needs the bound `isles::array::Element`"
    )]
    pub trait Element: (NoUninit + AnyBitPattern);

    /// Types whose values may come back from another place: the same as [`CanTravel`]. Implemented for all such types;
    /// use it as the bound of a type parameter whose values a body returns.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot come back from another place",
        label = "this body returns a `{Self}`",
        note = "derive `serde::Serialize` and `serde::Deserialize` for it; borrowed data must be made \
             owned (`.clone()`, `.to_vec()`, `.to_string()`)",
        note = "a type parameter needs the bound `isles::CanReturn`, which every type with serde's traits fulfils",
        note = "end the body with `;` if nobody needs its value"
    )]
    pub trait CanReturn: (Serialize + DeserializeOwned);
}

/// Targets of references that may come back: none. It exists for its message.
#[diagnostic::on_unimplemented(
    message = "a reference to `{Self}` cannot come back from another place",
    label = "this body returns a reference",
    note = "return something owned: `.clone()`, `.to_owned()`, `.to_vec()`, `.to_string()`"
)]
pub trait ReturnsByReference {}

/// Targets of `&mut` references that may travel: none. It exists for its message.
#[diagnostic::on_unimplemented(
    message = "`&mut {Self}` cannot travel to another place",
    label = "this body captures a `&mut {Self}`, but could only change a copy",
    note = "to send the value as it is now, name it: `at!(place, [name = *reference] body)`"
)]
pub trait TravelsByMutableReference {}

/// Types of std that can be changed through a shared reference, and types that visibly hold them.
///
/// A body at its own place would change the caller's value, a body elsewhere a copy, so they do not travel.
/// (`RefUnwindSafe` finds `Cell` and `RefCell` in any structure, but no atomics and locks, and nothing in generic
/// code.)
pub trait InteriorMutable {}

/// Implements the trait for these types; the second list is of types that hold another one.
macro_rules! changeable {
    ($($alone:ty)*; $(($($owner:tt)*))*) => {
        $(impl InteriorMutable for $alone {})*
        $(impl<T: InteriorMutable> InteriorMutable for $($owner)* {})*
    };
}

impl<T: ?Sized> InteriorMutable for std::cell::Cell<T> {}
impl<T: ?Sized> InteriorMutable for std::cell::RefCell<T> {}
impl<T: ?Sized> InteriorMutable for std::sync::Mutex<T> {}
impl<T: ?Sized> InteriorMutable for std::sync::RwLock<T> {}
impl<T: InteriorMutable + ?Sized> InteriorMutable for &T {}
impl<T: InteriorMutable, const N: usize> InteriorMutable for [T; N] {}
impl<T: InteriorMutable, E> InteriorMutable for Result<T, E> {}
impl<K, V: InteriorMutable> InteriorMutable for BTreeMap<K, V> {}
impl<K, V: InteriorMutable, S> InteriorMutable for HashMap<K, V, S> {}

changeable! {
    atomic::AtomicBool atomic::AtomicI8 atomic::AtomicI16 atomic::AtomicI32 atomic::AtomicI64 atomic::AtomicIsize
    atomic::AtomicU8 atomic::AtomicU16 atomic::AtomicU32 atomic::AtomicU64 atomic::AtomicUsize;
    ([T]) (Vec<T>) (Option<T>) (Box<T>) (std::rc::Rc<T>) (std::sync::Arc<T>)
    (BTreeSet<T>) (BinaryHeap<T>) (LinkedList<T>) (VecDeque<T>)
}

/// Types with interior mutability that may travel: none. It exists for its message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel to another place",
    label = "this body captures a `{Self}`, but could only change a copy of what it holds",
    note = "to send what it holds, name it: `at!(place, [name = cell.get()] body)`, `counter.load(..)`, `mutex.lock()...clone()`",
    note = "data that several places change stays at one (`Global`, `Counter`) or has an instance at \
         each (`PlaceLocal`)"
)]
pub trait TravelsWithInteriorMutability {}

/// A type for which these traits hold, so that they have an implementation.
pub enum Nothing {}

#[diagnostic::do_not_recommend]
impl TravelsWithInteriorMutability for Nothing {}

#[diagnostic::do_not_recommend]
impl ReturnsByReference for Nothing {}

#[diagnostic::do_not_recommend]
impl TravelsByMutableReference for Nothing {}

/// A capture or shipment all of whose parts can travel; checked where the message belongs.
pub trait Sendable<Direction> {
    /// The type itself; unknown if it cannot travel, so that the error is reported only once.
    type Itself;

    /// Returns the value.
    fn itself(self) -> Self::Itself;
}

/// The direction of captures.
pub struct Outbound;

impl<C: Travel> Sendable<Outbound> for C {
    type Itself = C;

    #[inline]
    fn itself(self) -> C {
        self
    }
}

/// The direction of values that come back.
pub struct Returning;

impl<S: Ship> Sendable<Returning> for S {
    type Itself = S;

    #[inline]
    fn itself(self) -> S {
        self
    }
}

/// Checks that a capture can travel.
#[inline]
pub fn travelling<C: Sendable<Outbound>>(capture: C) -> C::Itself {
    capture.itself()
}

/// Checks that a value can come back.
#[inline]
pub fn returning<S: Sendable<Returning>>(shipment: S) -> S::Itself {
    shipment.itself()
}

/// Refuses a body that uses more than the macro found, or than its list says: the argument is a closure then. The
/// compiler shows the line of this function, so its name is part of the message.
pub fn closures_and_unlisted_variables_cannot_travel<A, R>(_: fn(A) -> R) {}

/// Gives a closure the signature that matches its captures; the macros need it for type inference.
pub fn signature<C, F, B>(_captures: &C, remote: F) -> F
where
    C: Travel,
    F: Fn(C::Decoded) -> B,
    B: Future,
{
    remote
}

impl Travel for () {
    type Decoded = ();
    const ROOM: usize = 0;

    #[inline]
    fn encode(&self, _to: &mut Writer<'_>) -> Result<(), EncodeError> {
        Ok(())
    }

    #[inline]
    fn decode(_from: &mut Reader<'_>) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl Bind for () {
    type Bound<'a> = ();

    #[inline]
    fn bind(&mut self) {}
}

/// The captures of a call site are nested pairs: `(first, (second, (third, ())))`.
impl<A: Travel, B: Travel> Travel for (A, B) {
    type Decoded = (A::Decoded, B::Decoded);
    const ROOM: usize = A::ROOM + B::ROOM;

    #[inline]
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.0.encode(to)?;
        self.1.encode(to)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Self::Decoded, DecodeError> {
        Ok((A::decode(from)?, B::decode(from)?))
    }

    fn check_roundtrip(&self) -> crate::Result<()> {
        self.0.check_roundtrip()?;
        self.1.check_roundtrip()
    }
}

impl<A: Bind, B: Bind> Bind for (A, B) {
    type Bound<'a>
        = (A::Bound<'a>, B::Bound<'a>)
    where
        Self: 'a;

    #[inline]
    fn bind(&mut self) -> Self::Bound<'_> {
        (self.0.bind(), self.1.bind())
    }
}

#[cfg(test)]
mod tests;
