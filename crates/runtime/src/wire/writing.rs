//! Values of the program into bytes: the encoding half of the format, as a serializer of serde.
//!
//! Positional: fields have no names and numbers no types. Effects of serde's attributes on such a format are checked
//! where that costs next to nothing: structures write the number of their fields, variants add a byte of their name. If
//! a value cannot be written, the error names the attribute, and the text of a refusing `Serialize` is kept.

use super::numbers::{self, Block};
use super::{DEPTH_MAX, EncodeError, NESTED_TOO_DEEP, Writer, interior_mutability, name_mark};
use serde::ser::{self, Serialize};
use std::fmt;

impl ser::Error for EncodeError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        EncodeError::Refused(text.to_string().into())
    }
}

/// Message for a list or map of unknown length.
const NO_LENGTH: &str = "it does not announce the number of entries: `#[serde(flatten)]`, or a list or \
     map written without its length, does not suit a positional format";

/// Writes values.
pub(super) struct Values<'w, 'a> {
    to: &'w mut Writer<'a>,
    /// Nesting depth of the present value.
    depth: u32,
}

impl<'w, 'a> Values<'w, 'a> {
    pub(crate) fn new(to: &'w mut Writer<'a>) -> Self {
        Values { to, depth: 0 }
    }

    /// Writes a value whose type is known here; lists of numbers go as a block.
    #[inline]
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        if self.to.watching {
            interior_mutability::refuse::<T>()?;
        }
        match numbers::of_value(value) {
            Some(block) => self.put_block(block),
            None => value.serialize(self),
        }
    }

    /// Writes a list of numbers: its length with the mark of a block, their kind, and their memory.
    pub(super) fn put_block(&mut self, block: Block<'_>) -> Result<(), EncodeError> {
        self.put_number((block.len as u64) << 1 | 1);
        self.to.put_byte(block.kind);
        self.to.put_bytes(block.bytes);
        Ok(())
    }

    /// Writes a number with seven bits a byte, the lowest first; the eighth bit says that more follow (LEB128).
    #[inline]
    pub(super) fn put_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.to.put_byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.to.put_byte(number as u8);
    }

    /// As [`Values::put_number`], for numbers of 128 bits.
    fn put_wide(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.to.put_byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.to.put_byte(number as u8);
    }

    /// Writes a signed number; small numbers of both signs become small ones.
    #[inline]
    fn put_signed(&mut self, number: i64) {
        self.put_number((number << 1 ^ number >> 63) as u64);
    }

    #[inline]
    fn put_variant(&mut self, index: u32, name: &str) {
        self.put_number(u64::from(index));
        self.to.put_byte(name_mark(name));
    }

    #[inline]
    fn descend(&mut self) -> Result<(), EncodeError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(EncodeError::Refused(NESTED_TOO_DEEP.into())) } else { Ok(()) }
    }

    /// Writes the only value within the present one.
    #[inline]
    fn put_within<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.descend()?;
        self.put(value)?;
        self.depth -= 1;
        Ok(())
    }

    /// Begins the `len` values within the present one.
    #[inline]
    fn parts(&mut self, len: usize) -> Result<Parts<'_, 'w, 'a>, EncodeError> {
        self.descend()?;
        Ok(Parts { values: self, left: len })
    }

    /// As [`Values::parts`], and writes their number.
    #[inline]
    fn counted(&mut self, len: usize) -> Result<Parts<'_, 'w, 'a>, EncodeError> {
        self.put_number(len as u64);
        self.parts(len)
    }
}

impl<'s, 'w, 'a> ser::Serializer for &'s mut Values<'w, 'a> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Parts<'s, 'w, 'a>;
    type SerializeTuple = Parts<'s, 'w, 'a>;
    type SerializeTupleStruct = Parts<'s, 'w, 'a>;
    type SerializeTupleVariant = Parts<'s, 'w, 'a>;
    type SerializeMap = Parts<'s, 'w, 'a>;
    type SerializeStruct = Parts<'s, 'w, 'a>;
    type SerializeStructVariant = Parts<'s, 'w, 'a>;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), EncodeError> {
        self.serialize_u8(u8::from(value))
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result<(), EncodeError> {
        self.serialize_u8(value as u8)
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<(), EncodeError> {
        self.put_signed(value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), EncodeError> {
        self.put_wide((value << 1 ^ value >> 127) as u128);
        Ok(())
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result<(), EncodeError> {
        self.to.put_byte(value);
        Ok(())
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result<(), EncodeError> {
        self.serialize_u64(u64::from(value))
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result<(), EncodeError> {
        self.serialize_u64(u64::from(value))
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<(), EncodeError> {
        self.put_number(value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), EncodeError> {
        self.put_wide(value);
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result<(), EncodeError> {
        self.to.put_bytes(&value.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<(), EncodeError> {
        self.to.put_bytes(&value.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_char(self, value: char) -> Result<(), EncodeError> {
        self.serialize_u32(u32::from(value))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), EncodeError> {
        self.serialize_bytes(value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeError> {
        self.put_number(value.len() as u64);
        self.to.put_bytes(value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), EncodeError> {
        self.serialize_u8(0)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        self.to.put_byte(1);
        self.put_within(value)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), EncodeError> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), EncodeError> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(
        self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<(), EncodeError> {
        self.put_variant(index, variant);
        Ok(())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.put_within(value)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.put_variant(index, variant);
        self.put_within(value)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        let len = len.ok_or_else(|| EncodeError::Refused(NO_LENGTH.into()))?;
        self.put_number((len as u64) << 1);
        self.parts(len)
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        self.parts(len)
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        len: usize,
    ) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        self.counted(len)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        self.put_variant(index, variant);
        self.counted(len)
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        let len = len.ok_or_else(|| EncodeError::Refused(NO_LENGTH.into()))?;
        self.counted(len)
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        self.counted(len)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Parts<'s, 'w, 'a>, EncodeError> {
        self.put_variant(index, variant);
        self.counted(len)
    }
}

/// The elements, fields or entries of a value.
pub(super) struct Parts<'s, 'w, 'a> {
    values: &'s mut Values<'w, 'a>,
    /// Number of elements still to come.
    left: usize,
}

impl Parts<'_, '_, '_> {
    #[inline]
    fn put<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.left = self.left.checked_sub(1).ok_or_else(wrong_length)?;
        self.values.put(value)
    }

    #[inline]
    fn close(self) -> Result<(), EncodeError> {
        self.values.depth -= 1;
        if self.left == 0 { Ok(()) } else { Err(wrong_length()) }
    }
}

#[cold]
fn wrong_length() -> EncodeError {
    EncodeError::Refused(
        "its `Serialize` announces a different number of elements or fields than it \
         writes"
            .into(),
    )
}

/// Implements one of serde's traits for values with parts.
macro_rules! parts {
    ($($of:ident $put:ident($($key:ident)?))*) => {$(
        impl ser::$of for Parts<'_, '_, '_> {
            type Ok = ();
            type Error = EncodeError;

            #[inline]
            fn $put<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), EncodeError> {
                self.put(value)
            }

            #[inline]
            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    )*};
}

parts! {
    SerializeSeq serialize_element()
    SerializeTuple serialize_element()
    SerializeTupleStruct serialize_field()
    SerializeTupleVariant serialize_field()
    SerializeStruct serialize_field(_key)
    SerializeStructVariant serialize_field(_key)
}

impl ser::SerializeMap for Parts<'_, '_, '_> {
    type Ok = ();
    type Error = EncodeError;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        self.values.put(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.put(value)
    }

    #[inline]
    fn end(self) -> Result<(), EncodeError> {
        self.close()
    }
}
