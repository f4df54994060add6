//! Lists of numbers inside of values, recognised by their type.
//!
//! Serde shows a format a `Vec<f64>` as so many numbers, one by one, and stable Rust has no specialisation. But
//! wherever serde hands a value over with its type, at a field, an element, or the whole, the type can be compared
//! with the lists of numbers, and such a list goes as one block. The comparison is decided when the program is
//! compiled.
//!
//! Invariant: a block says of what numbers it is, so that a reader that does not recognise the type (behind a `Box`,
//! say) reads them one by one, and one that does never takes them for others.

use bytemuck::{AnyBitPattern, NoUninit};
use serde::de::value::Error;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// What a list of numbers is made of.
pub(super) trait Number: NoUninit + AnyBitPattern {
    /// Stands for the type in the bytes.
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

/// The identity of a type, whatever its lifetimes (as in the crate `typeid`).
fn identity<T: ?Sized>() -> TypeId {
    trait Identified {
        fn identity(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> Identified for PhantomData<T> {
        fn identity(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let tag = PhantomData::<T>;
    let tag: &dyn Identified = &tag;
    // NEED: `TypeId::of` asks for a type without borrows, and what is asked here may have some.
    // SOUND: lifetimes do not exist when the method runs; it reads nothing of what they guard.
    unsafe { std::mem::transmute::<&dyn Identified, &(dyn Identified + 'static)>(tag) }.identity()
}

/// Whether `T` is `Wanted`, which has no lifetimes.
fn is<T: ?Sized, Wanted: 'static>() -> bool {
    identity::<T>() == TypeId::of::<Wanted>()
}

/// Gives `value` the type that it has.
///
/// # Safety
/// `From` and `To` are the same type.
unsafe fn same<From, To>(value: From) -> To {
    // NEED: the compiler does not know that the types are equal.
    // SOUND: by the contract; the original is not dropped.
    unsafe { std::mem::transmute_copy(&ManuallyDrop::new(value)) }
}

/// Where a reader finds blocks.
pub(super) trait Blocks {
    type Error;

    /// The next value, if it is a block of `N`; else nothing is taken.
    fn list<N: Number>(&mut self) -> Result<Option<Vec<N>>, Self::Error>;

    /// As [`Blocks::list`], for one that may be absent.
    fn optional_list<N: Number>(&mut self) -> Result<Option<Option<Vec<N>>>, Self::Error>;
}

macro_rules! numbers {
    ($($number:ident $kind:literal $visit:ident)*) => {
        $(impl Number for $number {
            const KIND: u8 = $kind;
        })*

        /// The numbers of `value`, if it is a vector of them, or a reference to one, as serde shows elements of
        /// lists.
        #[inline]
        pub(super) fn of_value<T: ?Sized>(value: &T) -> Option<Block<'_>> {
            let size = size_of_val(value);
            if size == size_of::<Vec<u8>>() {
                $(if is::<T, Vec<$number>>() {
                    // NEED: a reference to a value of a type that the compiler does not know becomes one of its type.
                    // SOUND: the type is `Vec` of this number, as was just asked.
                    return Some(Block::of(unsafe { &*std::ptr::from_ref(value).cast::<Vec<$number>>() }));
                })*
            } else if size == size_of::<&Vec<u8>>() {
                $(if is::<T, &'static Vec<$number>>() {
                    // NEED: as for the vector itself.
                    // SOUND: the type is a reference to a vector of this number, of a lifetime that contains that of
                    // the reference to it.
                    return Some(Block::of(unsafe { *std::ptr::from_ref(value).cast::<&Vec<$number>>() }));
                })*
            }
            None
        }

        /// The numbers of `slice`, if its elements are numbers.
        #[inline]
        pub(super) fn of_slice<T>(slice: &[T]) -> Option<Block<'_>> {
            $(if is::<T, $number>() {
                // NEED: as for a value.
                // SOUND: the elements are this number, as was just asked.
                return Some(Block::of(unsafe {
                    std::slice::from_raw_parts(slice.as_ptr().cast::<$number>(), slice.len())
                }));
            })*
            None
        }

        /// What `seed` asks for, if that is a vector of numbers (or an optional one) and comes next as a block.
        #[inline]
        pub(super) fn wanted<'de, S, B>(_seed: &S, from: &mut B) -> Result<Option<S::Value>, B::Error>
        where
            S: DeserializeSeed<'de>,
            B: Blocks,
        {
            if size_of::<S>() != 0 || size_of::<S::Value>() != size_of::<Vec<u8>>() {
                return Ok(None);
            }
            $(if is::<S, PhantomData<Vec<$number>>>() {
                // NEED: as for a value.
                // SOUND: serde's seed `PhantomData<T>` asks for a `T`, and `T` is this list, as was just asked.
                return Ok(from.list::<$number>()?.map(|list| unsafe { same(list) }));
            }
            if is::<S, PhantomData<Option<Vec<$number>>>>() {
                // NEED: as for a value.
                // SOUND: as for a list that must be there.
                return Ok(from.optional_list::<$number>()?.map(|list| unsafe { same(list) }));
            })*
            Ok(None)
        }

        /// Bytes of one number; none if no number is of this kind.
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
    /// As many bytes as its width.
    pub(super) bytes: &'a [u8],
}

impl<'de, 'a> IntoDeserializer<'de> for OneNumber<'a> {
    type Deserializer = OneNumber<'a>;

    #[inline]
    fn into_deserializer(self) -> OneNumber<'a> {
        self
    }
}
