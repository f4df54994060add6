//! The choice of the form in which a value comes back from `at!`.
//!
//! By the same means as in [`super::kind`], for owned values: arrays of plain elements and plain values go as their
//! bytes, everything else by serde. [`super::returning`] checks whether a value can come back.

use super::form::{AlreadyRefused, CheckedReturn, Format, Plain, PlainVec};
use super::references::{HoldsReferences, TravelsWithReferences};
use super::{ReturnsByReference, Ship};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use bytemuck::{AnyBitPattern, NoUninit};
use std::marker::PhantomData;
use std::ops::Deref;

/// A value with the format in which it comes back.
pub struct Shipment<V, F> {
    value: V,
    format: PhantomData<F>,
}

impl<V, F: Format<V, Owned = V>> Ship for Shipment<V, F> {
    type Value = V;
    const ROOM: usize = F::ROOM;

    #[inline]
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        F::encode(&self.value, to)
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<V, DecodeError> {
        F::decode(from)
    }

    fn check_roundtrip(&self) -> crate::Result<()> {
        F::check_roundtrip(&self.value)
    }

    fn check_roundtrip_value(value: &V) -> crate::Result<()> {
        F::check_roundtrip(value)
    }
}

/// Values that hold references; refused at once.
pub struct Borrowers<V>(Vectors<V>);

/// Vectors of plain elements, and references, which are refused at once.
pub struct Vectors<V>(PlainResults<V>);

/// Plain values.
pub struct PlainResults<V>(Results<V>);

/// All other values.
pub struct Results<V>(PhantomData<V>);

impl<V> Deref for Borrowers<V> {
    type Target = Vectors<V>;

    fn deref(&self) -> &Vectors<V> {
        &self.0
    }
}

impl<V> Deref for Vectors<V> {
    type Target = PlainResults<V>;

    fn deref(&self) -> &PlainResults<V> {
        &self.0
    }
}

impl<V> Deref for PlainResults<V> {
    type Target = Results<V>;

    fn deref(&self) -> &Results<V> {
        &self.0
    }
}

/// Starts the choice of a format for values of the type of `_value`.
pub fn ship_tag<V>(_value: &V) -> Borrowers<V> {
    Borrowers(Vectors(PlainResults(Results(PhantomData))))
}

impl<V: HoldsReferences> Borrowers<V> {
    /// Refused.
    #[inline]
    pub fn __isles_ship(&self, value: V) -> Shipment<V, AlreadyRefused<V>>
    where
        V: TravelsWithReferences,
    {
        Shipment { value, format: PhantomData }
    }
}

impl<T: NoUninit + AnyBitPattern> Vectors<Vec<T>> {
    /// One copy of the elements.
    #[inline]
    pub fn __isles_ship(&self, value: Vec<T>) -> Shipment<Vec<T>, PlainVec<T>> {
        Shipment { value, format: PhantomData }
    }
}

impl<'r, T: ?Sized> Vectors<&'r T> {
    /// Refused.
    #[inline]
    pub fn __isles_ship(&self, value: &'r T) -> Shipment<&'r T, AlreadyRefused<&'r T>>
    where
        T: ReturnsByReference,
    {
        Shipment { value, format: PhantomData }
    }
}

impl<V: NoUninit + AnyBitPattern> PlainResults<V> {
    /// The bytes of the value.
    #[inline]
    pub fn __isles_ship(&self, value: V) -> Shipment<V, Plain> {
        Shipment { value, format: PhantomData }
    }
}

impl<V> Results<V> {
    /// Serde.
    #[inline]
    pub fn __isles_ship(&self, value: V) -> Shipment<V, CheckedReturn<V>> {
        Shipment { value, format: PhantomData }
    }
}
