//! Bytes back into values of the program: the decoding half of the format, as a deserializer of serde.
//!
//! It never panics, whatever the bytes, and goes no deeper than [`DEPTH_MAX`]. If a structure does not take all of its
//! fields, or asks for more, the error names the attribute that causes it; the rest is never misread.

use super::numbers::{self, Blocks, Number, OneNumber};
use super::{DEPTH_MAX, DecodeError, NESTED_TOO_DEEP, Reader, copied, name_mark};
use serde::de::value::U32Deserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use std::fmt;

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        DecodeError::Refused(text.to_string().into())
    }
}

/// Message for a type that asks the format for types.
const NOT_SAID: &str = "its `Deserialize` asks for the type of what follows, but a positional format \
     does not record it: `#[serde(untagged)]`, `#[serde(tag = ...)]` and `#[serde(flatten)]` do not suit \
     it";

/// Message for a number that does not fit its type.
const OUT_OF_RANGE: &str = "a number is out of the range of its type";

/// Not inlined, so that code that reads numbers is short enough to be inlined into loops over them.
#[cold]
#[inline(never)]
fn refused(text: impl Into<Box<str>>) -> DecodeError {
    DecodeError::Refused(text.into())
}

/// Reads values.
pub(super) struct Values<'r, 'de> {
    from: &'r mut Reader<'de>,
    /// Nesting depth of the present value.
    depth: u32,
}

/// Methods that read a number after its `first` byte, which says that more follow. Numbers of 128 bits have their own,
/// because all others would pay for them.
macro_rules! long_numbers {
    ($($take:ident $number:ty),*) => {$(
        fn $take(&mut self, first: u8) -> Result<$number, DecodeError> {
            let (mut number, mut shift) = (<$number>::from(first & 0x7f), 7);
            loop {
                let byte = self.byte()?;
                let bits = <$number>::from(byte & 0x7f);
                if shift >= <$number>::BITS || bits << shift >> shift != bits {
                    return Err(refused(OUT_OF_RANGE));
                }
                number |= bits << shift;
                if byte < 0x80 {
                    return Ok(number);
                }
                shift += 7;
            }
        }
    )*};
}

impl<'r, 'de> Values<'r, 'de> {
    pub(crate) fn new(from: &'r mut Reader<'de>) -> Self {
        Values { from, depth: 0 }
    }

    /// Reads what `seed` asks for; lists of numbers come as a block.
    #[inline]
    pub(crate) fn take<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DecodeError> {
        match numbers::wanted(&seed, self)? {
            Some(list) => Ok(list),
            None => seed.deserialize(self),
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = self.from.bytes.get(self.from.position).copied();
        let byte = byte.ok_or(DecodeError::Truncated { needed: 1, left: 0 })?;
        self.from.position += 1;
        Ok(byte)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, DecodeError> {
        let bytes = self.from.bytes.get(self.from.position..).unwrap_or_default();
        // Nearly all numbers have one byte or two.
        match *bytes {
            [first, ..] if first < 0x80 => {
                self.from.position += 1;
                Ok(u64::from(first))
            }
            [first, second, ..] if second < 0x80 => {
                self.from.position += 2;
                Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => {
                let first = self.byte()?;
                self.long_number(first)
            }
        }
    }

    long_numbers! { long_number u64, long_wide u128 }

    fn wide(&mut self) -> Result<u128, DecodeError> {
        match self.byte()? {
            first if first < 0x80 => Ok(u128::from(first)),
            first => self.long_wide(first),
        }
    }

    #[inline]
    fn signed(&mut self) -> Result<i64, DecodeError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn bytes(&mut self) -> Result<&'de [u8], DecodeError> {
        let len = self.number()?;
        let len = usize::try_from(len).map_err(|_| DecodeError::LengthOutOfRange { len })?;
        self.from.take_bytes(len)
    }

    fn text(&mut self) -> Result<&'de str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| refused("a text is not UTF-8"))
    }

    /// Reads the length of a list, and whether it is a block.
    #[inline]
    fn list_head(&mut self) -> Result<(usize, bool), DecodeError> {
        let head = self.number()?;
        let len = head >> 1;
        let elements = usize::try_from(len).map_err(|_| DecodeError::LengthOutOfRange { len })?;
        Ok((elements, head & 1 != 0))
    }

    /// Returns the bytes of a block whose length and kind have been read.
    fn block(&mut self, len: usize, width: usize) -> Result<&'de [u8], DecodeError> {
        let bytes = len.checked_mul(width).ok_or(DecodeError::LengthOutOfRange { len: len as u64 })?;
        self.from.take_bytes(bytes)
    }

    #[inline]
    fn within<R>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        if self.depth == DEPTH_MAX {
            return Err(refused(NESTED_TOO_DEEP));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Passes the `len` elements of the present value to `visitor`, which must take all.
    #[inline]
    fn elements<V: Visitor<'de>>(&mut self, len: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.within(|values| {
            let mut elements = Elements { values, left: len };
            let value = visitor.visit_seq(&mut elements)?;
            match elements.left {
                0 => Ok(value),
                left => Err(refused(format!(
                    "{left} elements are left: its `Deserialize` takes fewer than were written"
                ))),
            }
        })
    }

    /// Passes the fields of the present value, whose number comes first, to `visitor`, which must take exactly these.
    /// They have `names` names where they are read: some may have several.
    #[inline]
    fn fields<V: Visitor<'de>>(
        &mut self,
        name: &'static str,
        names: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let written = usize::try_from(self.number()?).map_err(|_| refused(OUT_OF_RANGE))?;
        if written > names {
            return Err(too_many(name, written, names));
        }
        self.within(|values| {
            let mut fields = Fields(Elements { values, left: written });
            let value = visitor.visit_seq(&mut fields);
            match (value, fields.0.left) {
                (Ok(value), 0) => Ok(value),
                (Ok(_), left) => Err(too_many(name, written, written - left)),
                // A field that was not written shifts the others, so any error may result.
                (Err(error), _) if written < names => Err(too_few(name, written, names, &error)),
                (Err(error), _) => Err(error),
            }
        })
    }

    /// Passes the numbers of a block to `visitor` one by one.
    fn numbers<V: Visitor<'de>>(&mut self, len: usize, visitor: V) -> Result<V::Value, DecodeError> {
        let kind = self.byte()?;
        let width = numbers::width(kind).ok_or_else(|| refused("a list has an unknown kind of numbers"))?;
        let bytes = self.block(len, width)?;
        let numbers = bytes.chunks_exact(width).map(|bytes| OneNumber { kind, bytes });
        let mut sequence = de::value::SeqDeserializer::<_, de::value::Error>::new(numbers);
        let value = visitor.visit_seq(&mut sequence).map_err(de::Error::custom)?;
        sequence.end().map_err(de::Error::custom)?;
        Ok(value)
    }
}

#[inline]
fn narrow<N: TryFrom<W>, W>(number: W) -> Result<N, DecodeError> {
    N::try_from(number).map_err(|_| refused(OUT_OF_RANGE))
}

impl Blocks for Values<'_, '_> {
    type Error = DecodeError;

    #[inline]
    fn list<N: Number>(&mut self) -> Result<Option<Vec<N>>, DecodeError> {
        let before = self.from.position;
        let (len, is_block) = self.list_head()?;
        if !is_block || self.byte()? != N::KIND {
            self.from.position = before;
            return Ok(None);
        }
        Ok(Some(copied(len, self.block(len, size_of::<N>())?)))
    }

    fn optional_list<N: Number>(&mut self) -> Result<Option<Option<Vec<N>>>, DecodeError> {
        let before = self.from.position;
        match self.byte()? {
            0 => return Ok(Some(None)),
            1 => {
                if let Some(list) = self.list::<N>()? {
                    return Ok(Some(Some(list)));
                }
            }
            _ => {}
        }
        self.from.position = before;
        Ok(None)
    }
}

/// Methods that read one number and pass it to the visitor.
macro_rules! numbers {
    ($($deserialize:ident $take:ident $visit:ident)*) => {$(
        #[inline]
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(narrow(self.$take()?)?)
        }
    )*};
}

/// Methods for what cannot be read without names or types.
macro_rules! not_said {
    ($($deserialize:ident)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, DecodeError> {
            Err(refused(NOT_SAID))
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Values<'_, 'de> {
    type Error = DecodeError;

    fn is_human_readable(&self) -> bool {
        false
    }

    numbers! {
        deserialize_i8 byte_signed visit_i8
        deserialize_i16 signed visit_i16
        deserialize_i32 signed visit_i32
        deserialize_i64 signed visit_i64
        deserialize_u8 byte visit_u8
        deserialize_u16 number visit_u16
        deserialize_u32 number visit_u32
        deserialize_u64 number visit_u64
        deserialize_u128 wide visit_u128
    }

    not_said! { deserialize_any deserialize_ignored_any deserialize_identifier }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.byte()? {
            0 => visitor.visit_bool(false),
            1 => visitor.visit_bool(true),
            _ => Err(refused("a bool is neither 0 nor 1")),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let number = self.wide()?;
        visitor.visit_i128((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_f32(self.from.take_pod()?)
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_f64(self.from.take_pod()?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let number: u32 = narrow(self.number()?)?;
        visitor.visit_char(char::from_u32(number).ok_or_else(|| {
            refused(
                "a char is not a Unicode scalar \
                 value",
            )
        })?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_borrowed_bytes(self.bytes()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.byte()? {
            0 => visitor.visit_none(),
            1 => self.within(|values| visitor.visit_some(values)),
            _ => Err(refused("an `Option` is neither `None` nor `Some`")),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.within(|values| visitor.visit_newtype_struct(values))
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.list_head()? {
            (len, true) => self.numbers(len, visitor),
            (len, false) => self.elements(len, visitor),
        }
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.elements(len, visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.fields(name, len, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let len = self.number()?;
        let entries = usize::try_from(len).map_err(|_| DecodeError::LengthOutOfRange { len })?;
        self.within(|values| {
            let mut elements = Elements { values, left: entries };
            let value = visitor.visit_map(&mut elements)?;
            match elements.left {
                0 => Ok(value),
                left => Err(refused(format!(
                    "{left} entries are left: its `Deserialize` takes fewer than were written"
                ))),
            }
        })
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.fields(name, fields.len(), visitor)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let index: u32 = narrow(self.number()?)?;
        let mark = self.byte()?;
        // Aliases of variants are in the list, too, so the own name may come later, but never earlier.
        let known = variants.get(index as usize..).unwrap_or_default();
        if !known.iter().any(|variant| name_mark(variant) == mark) {
            return Err(refused(format!(
                "variant {index} of `{name}` is written under one name and read under another: \
                 `#[serde(skip)]` on a variant, and a variant with two names, do not suit a positional \
                 format"
            )));
        }
        self.within(|values| visitor.visit_enum(Variant { values, index, name }))
    }
}

impl Values<'_, '_> {
    #[inline]
    fn byte_signed(&mut self) -> Result<i8, DecodeError> {
        self.byte().map(|byte| byte as i8)
    }
}

/// Elements of a list or a tuple, entries of a map.
struct Elements<'s, 'r, 'de> {
    values: &'s mut Values<'r, 'de>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Elements<'_, '_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeError> {
        match self.left.checked_sub(1) {
            None => Ok(None),
            Some(left) => {
                self.left = left;
                self.values.take(seed).map(Some)
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Elements<'_, '_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DecodeError> {
        de::SeqAccess::next_element_seed(self, seed)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DecodeError> {
        self.values.take(seed)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// Fields of a structure.
struct Fields<'s, 'r, 'de>(Elements<'s, 'r, 'de>);

#[cold]
fn too_many(name: &str, written: usize, read: usize) -> DecodeError {
    refused(format!(
        "`{name}` is written with {written} fields and read with {read}: `#[serde(skip_deserializing)]` does not suit \
         a positional format"
    ))
}

#[cold]
fn too_few(name: &str, written: usize, names: usize, error: &DecodeError) -> DecodeError {
    refused(format!(
        "`{name}` is written with {written} fields and has {names} names of fields where it is read: \
         `#[serde(skip_serializing)]` and `#[serde(skip_serializing_if = ...)]` do not suit a positional format \
         ({error})"
    ))
}

impl<'de> de::SeqAccess<'de> for Fields<'_, '_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeError> {
        if self.0.left > 0 {
            return self.0.next_element_seed(seed);
        }
        Err(refused("no field is left"))
    }
}

/// A variant whose number was read.
struct Variant<'s, 'r, 'de> {
    values: &'s mut Values<'r, 'de>,
    index: u32,
    name: &'static str,
}

impl<'de> de::EnumAccess<'de> for Variant<'_, '_, 'de> {
    type Error = DecodeError;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), DecodeError> {
        let index: U32Deserializer<DecodeError> = self.index.into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, '_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn unit_variant(self) -> Result<(), DecodeError> {
        Ok(())
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, DecodeError> {
        self.values.take(seed)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.values.fields(self.name, len, visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.values.fields(self.name, fields.len(), visitor)
    }
}
