//! The forms in which a capture travels and is decoded.
//!
//! A form is a way to write (bytes of plain memory, or serde) together with a view of the decoded value (as a value, as
//! a reference, as what it dereferences to). [`super::kind`] chooses; nothing here inspects types.

use super::{
    Bind, CanReturn, CanTravel, Handle, InteriorMutable, Travel, TravelsWithInteriorMutability,
    roundtrip_check,
};
use crate::limits::{HANDLE_ROOM, ROOM_GUESS};
use crate::wire::{DecodeError, EncodeError, PodSlice, Reader, Writer};
use bytemuck::{AnyBitPattern, NoUninit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::ops::Deref;

/// A way to write a `Source` and to read it back as something owned.
pub trait Format<Source: ?Sized> {
    /// Type of the decoded value.
    type Owned;

    /// As [`Travel::ROOM`].
    const ROOM: usize = ROOM_GUESS;

    /// Writes `source`.
    ///
    /// # Errors
    /// [`EncodeError`]: it cannot be sent.
    fn encode(source: &Source, to: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Reads what `encode` wrote.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes are not what was written.
    fn decode(from: &mut Reader<'_>) -> Result<Self::Owned, DecodeError>;

    /// As [`Travel::check_roundtrip`].
    ///
    /// # Errors
    /// As for [`Travel::check_roundtrip`].
    fn check_roundtrip(_source: &Source) -> crate::Result<()> {
        Ok(())
    }
}

/// One plain value, by its bytes.
pub struct Plain;

impl<T: NoUninit + AnyBitPattern> Format<T> for Plain {
    type Owned = T;
    const ROOM: usize = size_of::<T>();

    #[inline]
    fn encode(source: &T, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_pod(source);
        Ok(())
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<T, DecodeError> {
        from.take_pod()
    }
}

/// Plain elements, read into a vector of their own.
pub struct PlainVec<T>(PhantomData<T>);

impl<T: NoUninit + AnyBitPattern, S: AsRef<[T]> + ?Sized> Format<S> for PlainVec<T> {
    type Owned = Vec<T>;

    #[inline]
    fn encode(source: &S, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_pod_slice(source.as_ref());
        Ok(())
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
        from.take_pod_vec()
    }
}

/// Plain elements, left in the message if that is possible.
pub struct InPlace<T>(PhantomData<T>);

impl<T: NoUninit + AnyBitPattern> Format<[T]> for InPlace<T> {
    type Owned = PodSlice<T>;

    #[inline]
    fn encode(source: &[T], to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_pod_slice(source);
        Ok(())
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<PodSlice<T>, DecodeError> {
        from.take_pod_slice()
    }
}

/// Any serialisable source, read as an `Owned`.
pub struct Serialised<Owned>(PhantomData<Owned>);

impl<S: Serialize + ?Sized, O: DeserializeOwned> Format<S> for Serialised<O> {
    type Owned = O;

    #[inline]
    fn encode(source: &S, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(source)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<O, DecodeError> {
        from.take_value()
    }
}

/// Like [`Serialised`], for types not yet known to be able to travel; the error names [`CanTravel`].
pub struct CheckedSerde<T>(PhantomData<T>);

impl<T: CanTravel> Format<T> for CheckedSerde<T> {
    type Owned = T;

    #[inline]
    fn encode(source: &T, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(source)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<T, DecodeError> {
        from.take_value()
    }

    fn check_roundtrip(source: &T) -> crate::Result<()> {
        roundtrip_check::capture::<T>(|writer| writer.put_value(source))
    }
}

/// A handle, by the bytes of its `Serialize`, which most handles write without serde.
pub struct ByName<H>(PhantomData<H>);

impl<H: Handle> Format<H> for ByName<H> {
    type Owned = H;
    const ROOM: usize = HANDLE_ROOM;

    #[inline]
    fn encode(source: &H, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        source.__isles_put(to)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<H, DecodeError> {
        H::__isles_take(from)
    }

    fn check_roundtrip(source: &H) -> crate::Result<()> {
        roundtrip_check::capture::<H>(|writer| writer.put_value(source))
    }
}

/// Like [`CheckedSerde`], for the elements of a slice.
pub struct CheckedElements<T>(PhantomData<T>);

impl<T: CanTravel> Format<[T]> for CheckedElements<T> {
    type Owned = Vec<T>;

    #[inline]
    fn encode(source: &[T], to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_values(source)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
        from.take_value()
    }

    fn check_roundtrip(source: &[T]) -> crate::Result<()> {
        roundtrip_check::capture::<Vec<T>>(|writer| writer.put_values(source))
    }
}

/// Like [`CheckedSerde`], for returned values.
pub struct CheckedReturn<V>(PhantomData<V>);

impl<V: CanReturn> Format<V> for CheckedReturn<V> {
    type Owned = V;

    #[inline]
    fn encode(source: &V, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put_value(source)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<V, DecodeError> {
        from.take_value()
    }

    fn check_roundtrip(source: &V) -> crate::Result<()> {
        roundtrip_check::value(source)
    }
}

/// The format of types with interior mutability: its bound holds for no type, so nothing is ever written.
pub struct RefusedFormat<T>(PhantomData<T>);

impl<T: InteriorMutable + TravelsWithInteriorMutability> Format<T> for RefusedFormat<T> {
    type Owned = T;

    fn encode(_source: &T, _to: &mut Writer<'_>) -> Result<(), EncodeError> {
        unreachable!("only `Nothing` travels though it can be changed")
    }

    fn decode(_from: &mut Reader<'_>) -> Result<T, DecodeError> {
        unreachable!("only `Nothing` travels though it can be changed")
    }
}

/// The format of types that were refused when the format was chosen; so they are refused once, and never written.
pub struct AlreadyRefused<T>(PhantomData<T>);

impl<T> Format<T> for AlreadyRefused<T> {
    type Owned = T;

    fn encode(_source: &T, _to: &mut Writer<'_>) -> Result<(), EncodeError> {
        unreachable!("only `Nothing` has this format")
    }

    fn decode(_from: &mut Reader<'_>) -> Result<T, DecodeError> {
        unreachable!("only `Nothing` has this format")
    }
}

/// A decoded value, seen as a value.
pub struct OwnedCapture<T>(Option<T>);

impl<T> From<T> for OwnedCapture<T> {
    fn from(value: T) -> Self {
        OwnedCapture(Some(value))
    }
}

impl<T> Bind for OwnedCapture<T> {
    type Bound<'a>
        = T
    where
        Self: 'a;

    #[inline]
    fn bind(&mut self) -> T {
        self.0.take().expect("a capture is bound once")
    }
}

/// A decoded value, seen by reference.
pub struct BorrowedCapture<T>(T);

impl<T> From<T> for BorrowedCapture<T> {
    fn from(value: T) -> Self {
        BorrowedCapture(value)
    }
}

impl<T> Bind for BorrowedCapture<T> {
    type Bound<'a>
        = &'a T
    where
        Self: 'a;

    #[inline]
    fn bind(&mut self) -> &T {
        &self.0
    }
}

/// A decoded value, seen as a reference to what it dereferences to.
pub struct DerefCapture<T>(T);

impl<T> From<T> for DerefCapture<T> {
    fn from(value: T) -> Self {
        DerefCapture(value)
    }
}

impl<T: Deref> Bind for DerefCapture<T> {
    type Bound<'a>
        = &'a T::Target
    where
        Self: 'a;

    #[inline]
    fn bind(&mut self) -> &T::Target {
        &self.0
    }
}

/// One capture: a reference to its source, written in format `F` and decoded as `L`.
pub struct Capture<'a, S: ?Sized, F, L> {
    source: &'a S,
    form: PhantomData<(F, L)>,
}

impl<'a, S: ?Sized, F, L> Capture<'a, S, F, L> {
    /// Captures `source` by reference.
    pub fn of(source: &'a S) -> Self {
        Capture { source, form: PhantomData }
    }
}

impl<S: ?Sized, F: Format<S>, L: Bind + From<F::Owned>> Travel for Capture<'_, S, F, L> {
    type Decoded = L;
    const ROOM: usize = F::ROOM;

    #[inline]
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        F::encode(self.source, to)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<L, DecodeError> {
        F::decode(from).map(L::from)
    }

    fn check_roundtrip(&self) -> crate::Result<()> {
        F::check_roundtrip(self.source)
    }
}
