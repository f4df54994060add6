//! Types of std that hold references: they are refused with a message that says what to write.
//!
//! The compiler's own message does not help: a `&str` is read from bytes of one lifetime and not of all, which it
//! reports as "implementation of `Deserialize` is not general enough". Structures of the program are not inspected.
//!
//! Invariant: no number has [`IsReference`], even if the compiler has not chosen its type yet (`vec![1, 2]`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// References, and types that visibly hold them.
pub trait IsReference {}

/// Types that hold references; a reference itself does not.
pub trait HoldsReferences {}

/// Marker for types that hold references and may travel, or come back: none. It exists for its message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds references, so it cannot travel to another place or come back from one",
    label = "this holds references",
    note = "make what travels owned: `String` in place of `&str`, `Vec<T>` in place of `&[T]`, `T` in place of `&T`",
    note = "to make it owned at the call, name it: `at!(place, [words = words.iter().map(|word| word.to_string()).collect::<Vec<_>>()] body)`"
)]
pub trait TravelsWithReferences {}

#[diagnostic::do_not_recommend]
impl TravelsWithReferences for super::Nothing {}

impl<T: ?Sized> IsReference for &T {}
impl<T: IsReference> IsReference for [T] {}
impl<T: IsReference + ?Sized> HoldsReferences for &T {}

/// Implements the trait for types that hold references: their parameters, and the type.
macro_rules! holders {
    ($([$($parameters:tt)*] $holder:ty;)*) => {$(
        impl<$($parameters)*> IsReference for $holder {}
        impl<$($parameters)*> HoldsReferences for $holder {}
    )*};
}

holders! {
    [T: IsReference, const N: usize] [T; N];
    [T: IsReference] Vec<T>;
    [T: IsReference] VecDeque<T>;
    [T: IsReference] Option<T>;
    [T: IsReference] Box<T>;
    [T: IsReference] BTreeSet<T>;
    [T: IsReference, S] HashSet<T, S>;
    [K: ?Sized, V] BTreeMap<&K, V>;
    [K: ?Sized, V, S] HashMap<&K, V, S>;
    [A: ?Sized, B] (&A, B);
    [A: ?Sized, B, C] (&A, B, C);
}

/// Implements the trait for types that hold a reference inside a value of these types: with a bound instead the
/// compiler would find overlapping implementations.
macro_rules! holders_behind {
    ($($value:ty)*) => {$(
        holders! {
            [V: ?Sized] BTreeMap<$value, &V>;
            [V: ?Sized, S] HashMap<$value, &V, S>;
            [B: ?Sized] ($value, &B);
            [B: ?Sized, C] ($value, &B, C);
        }
    )*};
}

holders_behind! { bool char String u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64 }
