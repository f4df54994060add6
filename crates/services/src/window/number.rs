//! Numbers that windows combine: all of Rust's of up to 64 bits.
//!
//! The kind of a number and the operation are one byte each in a message, so the owner of a part needs no code for each
//! type of element. A number is held as its bits, the upper ones zero.

use bytemuck::{AnyBitPattern, NoUninit};

/// Operation of `accumulate`: combines an element with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Combine {
    /// Adds; integers wrap around.
    Sum,
    /// Keeps the smaller one.
    Min,
    /// Keeps the larger one.
    Max,
    /// Keeps the bits that both have; floating-point numbers by their representation.
    And,
    /// Keeps the bits that at least one has.
    Or,
    /// Keeps the bits that exactly one has.
    Xor,
    /// Takes the operand.
    Replace,
}

impl Combine {
    const ALL: [Combine; 7] =
        [Combine::Sum, Combine::Min, Combine::Max, Combine::And, Combine::Or, Combine::Xor, Combine::Replace];

    pub(super) fn of(byte: u8) -> Option<Combine> {
        Combine::ALL.get(usize::from(byte)).copied()
    }
}

/// An element that can be combined and compared atomically: all of Rust's numbers of up to 64 bits.
pub trait WindowNumber: NoUninit + AnyBitPattern + sealed::Sealed {
    #[doc(hidden)]
    const KIND: NumberKind;
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// Makes the kinds, the trait's implementations, and the table of operations.
macro_rules! numbers {
    ($($Kind:ident: $number:ty as $bits:ty, $sum:expr;)*) => {
        /// The kind of a number; not part of the public interface.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum NumberKind {
            $(#[doc = stringify!($number)] $Kind,)*
        }

        impl NumberKind {
            const ALL: &[NumberKind] = &[$(NumberKind::$Kind),*];

            pub(super) fn of(byte: u8) -> Option<NumberKind> {
                NumberKind::ALL.get(usize::from(byte)).copied()
            }

            #[inline]
            pub(super) const fn bytes(self) -> usize {
                match self {
                    $(NumberKind::$Kind => size_of::<$number>(),)*
                }
            }
        }

        /// Returns the bits of the result of `how` on two numbers.
        #[inline]
        pub(super) fn combine(kind: NumberKind, how: Combine, one: u64, other: u64) -> u64 {
            match how {
                Combine::And => return one & other,
                Combine::Or => return one | other,
                Combine::Xor => return one ^ other,
                Combine::Replace => return other,
                Combine::Sum | Combine::Min | Combine::Max => {}
            }
            match kind {
                $(NumberKind::$Kind => {
                    let (one, other) = (<$number>::of_bits(one), <$number>::of_bits(other));
                    let sum: fn($number, $number) -> $number = $sum;
                    match how {
                        Combine::Sum => sum(one, other),
                        Combine::Min => one.min(other),
                        _ => one.max(other),
                    }
                    .bits()
                })*
            }
        }

        $(
            impl sealed::Sealed for $number {}
            impl WindowNumber for $number {
                const KIND: NumberKind = NumberKind::$Kind;
                #[inline]
                fn bits(self) -> u64 {
                    u64::from(bytemuck::cast::<$number, $bits>(self))
                }
                #[inline]
                fn of_bits(bits: u64) -> $number {
                    bytemuck::cast::<$bits, $number>(bits as $bits)
                }
            }
        )*
    };
}

numbers! {
    U8: u8 as u8, u8::wrapping_add;
    U16: u16 as u16, u16::wrapping_add;
    U32: u32 as u32, u32::wrapping_add;
    U64: u64 as u64, u64::wrapping_add;
    I8: i8 as u8, i8::wrapping_add;
    I16: i16 as u16, i16::wrapping_add;
    I32: i32 as u32, i32::wrapping_add;
    I64: i64 as u64, i64::wrapping_add;
    F32: f32 as u32, |one, other| one + other;
    F64: f64 as u64, |one, other| one + other;
}

impl NumberKind {
    /// Reads a number from `bytes`, which has its length.
    #[inline]
    pub(super) fn read(self, bytes: &[u8]) -> u64 {
        match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => unreachable!("numbers have 1, 2, 4 or 8 bytes"),
        }
    }

    /// Returns a mask of the bits of the number.
    #[inline]
    pub(super) const fn mask(self) -> u64 {
        u64::MAX >> (u64::BITS as usize - 8 * self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined<N: WindowNumber>(how: Combine, one: N, other: N) -> N {
        N::of_bits(combine(N::KIND, how, one.bits(), other.bits()))
    }

    #[test]
    fn numbers_are_combined_as_their_types_do() {
        assert_eq!(combined(Combine::Sum, 250_u8, 10), 4);
        assert_eq!(combined(Combine::Min, -3_i16, 2), -3);
        assert_eq!(combined(Combine::Max, -3_i64, 2), 2);
        assert_eq!(combined(Combine::Sum, 0.5_f32, 0.25).to_bits(), 0.75_f32.to_bits());
        assert_eq!(combined(Combine::Min, -0.5_f64, 0.25).to_bits(), (-0.5_f64).to_bits());
        assert_eq!(combined(Combine::Xor, 0b110_u32, 0b011), 0b101);
        assert_eq!(combined(Combine::Replace, 1_i8, -1), -1);
    }

    #[test]
    fn a_number_on_the_wire_is_read_back() {
        for (index, kind) in NumberKind::ALL.iter().enumerate() {
            assert_eq!(NumberKind::of(index as u8), Some(*kind));
            assert_eq!(*kind as usize, index);
        }
        assert_eq!(NumberKind::of(NumberKind::ALL.len() as u8), None);
        for (index, how) in Combine::ALL.into_iter().enumerate() {
            assert_eq!(Combine::of(index as u8), Some(how));
        }
        assert_eq!(Combine::of(Combine::ALL.len() as u8), None);
        assert_eq!((NumberKind::U8.mask(), NumberKind::F64.mask()), (0xff, u64::MAX));
    }
}
