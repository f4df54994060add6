//! Lists of plain elements inside structures that travel by serde: as one block of bytes.
//!
//! Serde sees a `Vec<u32>` as numbers and writes them one by one. A field with `#[serde(with = "isles::plain")]` goes
//! as the bytes of its elements instead, with one copy at each side. Elements are plain types of `bytemuck`: numbers,
//! arrays of them, and structures that derive its traits. A list that is itself a capture needs no attribute.
//!
//! ```
//! # use serde::{Deserialize, Serialize};
//! #[derive(Serialize, Deserialize)]
//! struct Graph {
//!     #[serde(with = "isles_runtime::plain")] // in a program: `isles::plain`
//!     offsets: Vec<u32>,
//!     #[serde(with = "isles_runtime::plain::optional")]
//!     weights: Option<Box<[f64]>>,
//! }
//! ```
//!
//! The bytes are those of this machine: use it for travel between places, not for files. Any bytes are read or refused;
//! reading allocates no more than the bytes that are there.

use crate::wire::copied;
use bytemuck::{AnyBitPattern, NoUninit};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Writes a list: anything that dereferences to a slice.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<L, T, S>(list: &L, serializer: S) -> Result<S::Ok, S::Error>
where
    L: Deref<Target = [T]>,
    T: NoUninit,
    S: Serializer,
{
    const { assert!(size_of::<T>() > 0, "elements without bytes cannot be counted by their bytes") };
    serializer.serialize_bytes(bytemuck::cast_slice(list))
}

/// Reads a list: anything that comes from a vector.
///
/// # Errors
/// The bytes are not a whole number of elements, or those of the deserializer.
pub fn deserialize<'de, L, T, D>(deserializer: D) -> Result<L, D::Error>
where
    L: Deref<Target = [T]> + From<Vec<T>>,
    T: NoUninit + AnyBitPattern,
    D: Deserializer<'de>,
{
    deserializer.deserialize_bytes(Elements(PhantomData)).map(L::from)
}

/// The same for a list that may be absent: `#[serde(with = "isles::plain::optional")]`.
pub mod optional {
    use super::{
        AnyBitPattern, Deref, Deserialize, Deserializer, List, ListAsBytes, NoUninit, Serialize, Serializer,
    };

    /// Writes the list, if present.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<L, T, S>(list: &Option<L>, serializer: S) -> Result<S::Ok, S::Error>
    where
        L: Deref<Target = [T]>,
        T: NoUninit,
        S: Serializer,
    {
        list.as_ref().map(ListAsBytes).serialize(serializer)
    }

    /// Reads the list, if present.
    ///
    /// # Errors
    /// As for a list that is present.
    pub fn deserialize<'de, L, T, D>(deserializer: D) -> Result<Option<L>, D::Error>
    where
        L: Deref<Target = [T]> + From<Vec<T>>,
        T: NoUninit + AnyBitPattern,
        D: Deserializer<'de>,
    {
        Ok(Option::<List<L>>::deserialize(deserializer)?.map(|list| list.0))
    }
}

/// A list that is written as bytes.
struct ListAsBytes<'a, L>(&'a L);

impl<L: Deref<Target = [T]>, T: NoUninit> Serialize for ListAsBytes<'_, L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, serializer)
    }
}

/// A list that is read from bytes.
struct List<L>(L);

impl<'de, L, T> Deserialize<'de> for List<L>
where
    L: Deref<Target = [T]> + From<Vec<T>>,
    T: NoUninit + AnyBitPattern,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(List)
    }
}

/// Takes bytes in any of the forms in which formats pass them.
struct Elements<T>(PhantomData<T>);

impl<'de, T: NoUninit + AnyBitPattern> Visitor<'de> for Elements<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of elements of {} bytes each", size_of::<T>())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
        const { assert!(size_of::<T>() > 0, "elements without bytes cannot be counted by their bytes") };
        if !bytes.len().is_multiple_of(size_of::<T>()) {
            return Err(E::invalid_length(bytes.len(), &self));
        }
        Ok(copied(bytes.len() / size_of::<T>(), bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element::<u8>()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{DecodeError, Reader, Writer};
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        before: String,
        #[serde(with = "super")]
        numbers: Vec<u32>,
        #[serde(with = "super")]
        points: Box<[[f64; 2]]>,
        #[serde(with = "super::optional")]
        weights: Option<Vec<i16>>,
        after: u64,
    }

    fn record() -> impl Strategy<Value = Record> {
        let lists = (
            prop::collection::vec(any::<u32>(), 0..50),
            prop::collection::vec([-1e9..1e9, -1e9..1e9], 0..20),
            prop::option::of(prop::collection::vec(any::<i16>(), 0..20)),
        );
        ("[a-z]{0,5}", lists, any::<u64>()).prop_map(|(before, (numbers, points, weights), after)| Record {
            before,
            numbers,
            points: points.into(),
            weights,
            after,
        })
    }

    fn written(record: &Record) -> Vec<u8> {
        let mut counter = Writer::new(&mut []);
        counter.put_value(record).unwrap();
        let mut bytes = vec![0; counter.written()];
        Writer::new(&mut bytes).put_value(record).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Record, DecodeError> {
        Reader::new(bytes).take_value()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_at_any_address(record in record(), shift in 0..8usize) {
            let bytes = [vec![0; shift], written(&record)].concat();
            prop_assert_eq!(read(&bytes[shift..]), Ok(record));
        }

        #[test]
        fn a_message_that_was_cut_or_changed_is_refused_or_read_and_never_more(
            record in record(),
            cut in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            value in any::<u8>(),
        ) {
            let mut bytes = written(&record);
            prop_assert!(read(&bytes[..cut.index(bytes.len())]).is_err());
            let at = at.index(bytes.len());
            bytes[at] = value;
            if let Ok(other) = read(&bytes) {
                prop_assert!(other.numbers.len() * 4 + other.points.len() * 16 <= bytes.len());
            }
        }

        #[test]
        fn garbage_is_refused_or_read_and_never_more(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn elements_go_as_their_bytes() {
        let numbers = vec![u32::MAX; 100];
        let record = Record { before: String::new(), numbers, points: [].into(), weights: None, after: 0 };
        // The number of fields; two bytes of length and four for each number.
        assert_eq!(written(&record).len(), 1 + 1 + 2 + 400 + 1 + 1 + 1);
    }

    #[test]
    fn half_an_element_is_refused() {
        let half = [5, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0];
        assert!(matches!(read(&half), Err(DecodeError::Refused(_))));
    }

    #[test]
    fn a_length_that_no_memory_holds_is_refused_before_anything_is_allocated() {
        let endless = [5, 0, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert!(matches!(read(&endless), Err(DecodeError::Truncated { .. } | DecodeError::Refused(_))));
    }

    #[test]
    fn a_format_without_bytes_gives_them_one_by_one() {
        let bytes = [1_u8, 0, 0, 0, 2, 0, 0, 0];
        let sequence =
            serde::de::value::SeqDeserializer::<_, serde::de::value::Error>::new(bytes.into_iter());
        let numbers: Vec<u32> = deserialize(sequence).unwrap();
        assert_eq!(numbers, [u32::from_le(1), u32::from_le(2)]);
    }
}
