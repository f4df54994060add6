//! Lists of numbers inside values, recognised by their type.
//!
//! Serde shows a format a `Vec<f64>` as numbers, one by one, and stable Rust has no specialisation. But wherever serde
//! passes a value with its type, at a field, an element, or the whole, the type can be compared with the lists of
//! numbers, and such a list goes as one block. Each type returns its identity once; the comparisons are in functions
//! without type parameters. In optimised code nothing is left of them.
//!
//! Invariant: a block records the kind of its numbers, so a reader that does not recognise the type (behind a `Box`,
//! say) reads them one by one, and one that does never takes them for others.

use bytemuck::{AnyBitPattern, NoUninit};
use serde::de::value::Error;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Element of a list of numbers.
pub(super) trait Number: NoUninit + AnyBitPattern {
    /// The byte that represents the type.
    const KIND: u8;
}

/// The bytes of a list of numbers.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// [`Number::KIND`].
    pub(super) kind: u8,
    pub(super) len: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Block<'a> {
    fn of<N: Number>(numbers: &'a [N]) -> Self {
        Block { kind: N::KIND, len: numbers.len(), bytes: bytemuck::cast_slice(numbers) }
    }
}

/// Returns the result of `lookup` for a type, whatever its lifetimes (as in the crate `typeid`).
///
/// Each type calls this once. The lookup is called with a constant, so optimised code knows its result.
#[inline]
fn found_for<T: ?Sized>(lookup: Lookup) -> Option<u8> {
    trait Identified {
        fn found(&self, lookup: Lookup) -> Option<u8>
        where
            Self: 'static;
    }
    impl<T: ?Sized> Identified for PhantomData<T> {
        #[inline]
        fn found(&self, lookup: Lookup) -> Option<u8>
        where
            Self: 'static,
        {
            lookup(TypeId::of::<T>())
        }
    }
    let tag = PhantomData::<T>;
    let tag: &dyn Identified = &tag;
    // NEED: `TypeId::of` asks for a type without borrows, and what is asked here may have some.
    // SOUND: lifetimes do not exist when the method runs; it reads nothing of what they guard.
    unsafe { std::mem::transmute::<&dyn Identified, &(dyn Identified + 'static)>(tag) }.found(lookup)
}

/// Returns the kind of the numbers in a type; `None` if it does not have the form that is looked up.
type Lookup = fn(TypeId) -> Option<u8>;

/// Source of a reader's blocks.
pub(super) trait Blocks {
    type Error;

    /// Takes the next value if it is a block of `N`; otherwise takes nothing.
    fn list<N: Number>(&mut self) -> Result<Option<Vec<N>>, Self::Error>;

    /// As [`Blocks::list`], for a list that may be absent.
    fn optional_list<N: Number>(&mut self) -> Result<Option<Option<Vec<N>>>, Self::Error>;
}

/// Returns the numbers of `value`, if it is a vector of them, or a reference to one, as serde shows elements of lists.
#[inline]
pub(super) fn of_value<T: ?Sized>(value: &T) -> Option<Block<'_>> {
    let address = std::ptr::from_ref(value).cast::<()>();
    match size_of_val(value) {
        LIST_BYTES => {
            let kind = found_for::<T>(kind_of_list)?;
            // NEED: a reference to a value of a type that the compiler does not know becomes one of its type.
            // SOUND: the value is a vector of this kind, and is borrowed for as long as the block.
            Some(unsafe { of_list(kind, address) })
        }
        REFERENCE_BYTES => {
            let kind = found_for::<T>(kind_of_list_reference)?;
            // NEED: as for the vector itself.
            // SOUND: the value is a reference to a vector of this kind, which is borrowed for even longer.
            Some(unsafe { of_list(kind, *address.cast::<*const ()>()) })
        }
        _ => None,
    }
}

/// Returns the numbers of `slice`, if its elements are numbers.
#[inline]
pub(super) fn of_slice<T>(slice: &[T]) -> Option<Block<'_>> {
    let kind = found_for::<T>(kind_of_number)?;
    // NEED: the compiler does not know that the elements are numbers.
    // SOUND: they are, so all of their bytes are initialised; the bytes are borrowed as the slice is.
    let bytes = unsafe { std::slice::from_raw_parts(slice.as_ptr().cast::<u8>(), size_of_val(slice)) };
    Some(Block { kind, len: slice.len(), bytes })
}

/// Bytes of a word.
const WORD_BYTES: usize = size_of::<u64>();

/// Returns `true` if a `T` is a number of at most a word.
#[inline]
pub fn is_word<T>() -> bool {
    size_of::<T>() <= WORD_BYTES && found_for::<T>(kind_of_number).is_some()
}

/// Returns the bits of a number of at most a word; `None` for any other value.
#[inline]
pub fn word_of<T>(value: &T) -> Option<u64> {
    let Block { bytes, .. } = of_slice(std::slice::from_ref(value)).filter(|_| is_word::<T>())?;
    let mut word = [0; WORD_BYTES];
    word[..size_of::<T>()].copy_from_slice(&bytes[..size_of::<T>()]);
    Some(u64::from_ne_bytes(word))
}

/// Returns the number from which [`word_of`] made `word`; `None` if a `T` is no such number.
#[inline]
pub fn of_word<T>(word: u64) -> Option<T> {
    let bytes = word.to_ne_bytes();
    // NEED: the compiler does not know that a `T` is a number.
    // SOUND: it is, so any bytes are one; there are enough of them, and they need not be aligned.
    is_word::<T>().then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Reads the value of `seed`, if that is a vector of numbers (or an optional one) and comes next as a block.
#[inline]
pub(super) fn wanted<'de, S, B>(_seed: &S, from: &mut B) -> Result<Option<S::Value>, B::Error>
where
    S: DeserializeSeed<'de>,
    B: Blocks,
{
    if size_of::<S>() != 0 || size_of::<S::Value>() != LIST_BYTES {
        return Ok(None);
    }
    let mut value = MaybeUninit::<S::Value>::uninit();
    let address = value.as_mut_ptr().cast::<()>();
    let is_taken = if let Some(kind) = found_for::<S>(kind_of_seed) {
        // NEED: the compiler does not know that the value is a vector of numbers.
        // SOUND: serde's seed `PhantomData<T>` asks for a `T`, which is a vector of this kind; there is room for it.
        unsafe { take_list(kind, from, address) }?
    } else if let Some(kind) = found_for::<S>(kind_of_optional_seed) {
        // NEED: as for a list that must be there.
        // SOUND: as for a list that must be there.
        unsafe { take_optional_list(kind, from, address) }?
    } else {
        false
    };
    // NEED: as above.
    // SOUND: what was taken has been written.
    Ok(is_taken.then(|| unsafe { value.assume_init() }))
}

/// Size of a vector of numbers, whatever they are, and of an optional one.
const LIST_BYTES: usize = size_of::<Vec<u8>>();

/// Bytes of a reference to a vector.
const REFERENCE_BYTES: usize = size_of::<&Vec<u8>>();

macro_rules! lookups {
    ($($name:ident { $($form:ty = $kind:literal)* })*) => {$(
        #[inline]
        fn $name(identity: TypeId) -> Option<u8> {
            $(if identity == TypeId::of::<$form>() {
                return Some($kind);
            })*
            None
        }
    )*};
}

macro_rules! numbers {
    ($($number:ident $kind:literal $visit:ident)*) => {
        $(impl Number for $number {
            const KIND: u8 = $kind;
        })*

        const _: () = {
            $(assert!(size_of::<Vec<$number>>() == LIST_BYTES && size_of::<Option<Vec<$number>>>() == LIST_BYTES);)*
        };

        lookups! {
            kind_of_number { $($number = $kind)* }
            kind_of_list { $(Vec<$number> = $kind)* }
            kind_of_list_reference { $(&'static Vec<$number> = $kind)* }
            kind_of_seed { $(PhantomData<Vec<$number>> = $kind)* }
            kind_of_optional_seed { $(PhantomData<Option<Vec<$number>>> = $kind)* }
        }

        /// Returns the numbers of the vector at `address`.
        ///
        /// # Safety
        /// A vector of numbers of this kind is there, for as long as the block.
        #[inline]
        unsafe fn of_list<'a>(kind: u8, address: *const ()) -> Block<'a> {
            match kind {
                // NEED: the address becomes a reference to what is there.
                // SOUND: by the contract.
                $($kind => Block::of(unsafe { &*address.cast::<Vec<$number>>() }),)*
                _ => unreachable!("a lookup finds known kinds"),
            }
        }

        /// Takes a list of numbers of this kind, if it comes next as a block; returns whether it was written to
        /// `address`.
        ///
        /// # Safety
        /// There is room for a vector of these numbers.
        #[inline]
        unsafe fn take_list<B: Blocks>(kind: u8, from: &mut B, address: *mut ()) -> Result<bool, B::Error> {
            match kind {
                $($kind => {
                    let Some(list) = from.list::<$number>()? else { return Ok(false) };
                    // NEED: as in `wanted`.
                    // SOUND: by the contract.
                    unsafe { address.cast::<Vec<$number>>().write(list) };
                })*
                _ => unreachable!("a lookup finds known kinds"),
            }
            Ok(true)
        }

        /// As [`take_list`], for a list that may be absent.
        ///
        /// # Safety
        /// There is room for an optional vector of these numbers.
        #[inline]
        unsafe fn take_optional_list<B: Blocks>(
            kind: u8,
            from: &mut B,
            address: *mut (),
        ) -> Result<bool, B::Error> {
            match kind {
                $($kind => {
                    let Some(list) = from.optional_list::<$number>()? else { return Ok(false) };
                    // NEED: as in `wanted`.
                    // SOUND: by the contract.
                    unsafe { address.cast::<Option<Vec<$number>>>().write(list) };
                })*
                _ => unreachable!("a lookup finds known kinds"),
            }
            Ok(true)
        }

        /// Returns the length of one number in bytes; `None` if no number is of this kind.
        pub(super) fn width(kind: u8) -> Option<usize> {
            match kind {
                $($kind => Some(size_of::<$number>()),)*
                _ => None,
            }
        }

        impl<'de> Deserializer<'de> for OneNumber<'_> {
            type Error = Error;

            #[inline]
            fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
                match self.kind {
                    $($kind => visitor.$visit(bytemuck::pod_read_unaligned::<$number>(self.bytes) as _),)*
                    _ => unreachable!("a block is of a known kind"),
                }
            }

            fn deserialize_newtype_struct<V: Visitor<'de>>(
                self,
                _name: &'static str,
                visitor: V,
            ) -> Result<V::Value, Error> {
                visitor.visit_newtype_struct(self)
            }

            forward_to_deserialize_any! {
                bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
                unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
            }
        }
    };
}

numbers! {
    u8 1 visit_u8
    i8 2 visit_i8
    u16 3 visit_u16
    i16 4 visit_i16
    u32 5 visit_u32
    i32 6 visit_i32
    u64 7 visit_u64
    i64 8 visit_i64
    usize 9 visit_u64
    isize 10 visit_i64
    u128 11 visit_u128
    i128 12 visit_i128
    f32 13 visit_f32
    f64 14 visit_f64
}

/// A number of a block, for a reader that takes them one by one.
#[derive(Clone, Copy)]
pub(super) struct OneNumber<'a> {
    /// A kind that [`width`] knows.
    pub(super) kind: u8,
    /// The bytes of the number, as many as its width.
    pub(super) bytes: &'a [u8],
}

impl<'de, 'a> IntoDeserializer<'de> for OneNumber<'a> {
    type Deserializer = OneNumber<'a>;

    #[inline]
    fn into_deserializer(self) -> OneNumber<'a> {
        self
    }
}
