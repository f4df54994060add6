//! A function of the program as a value that travels.
//!
//! Its own file because it is the only way for code to travel that a program hands over at run time: bodies of `at!`
//! are known when the program is compiled and have descriptors (`image`). What takes a `fn` pointer takes no closure
//! with captures, so nothing that the caller holds, not even a proof without bytes, is copied to other places.
//!
//! It travels as the offset into the program's code, with a check word made of the function's type and of its first
//! instructions. Invariant: what arrives is called only if it lies in the code of this image and the check word,
//! computed again from what lies there, is the sender's.

use crate::image::{Segment, code};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::type_name;

/// How many bytes of a function's code take part in its check word.
const CODE_BYTES: usize = 16;

/// Pointers to functions.
///
/// # Safety
/// `at(address())` must be the function itself.
pub(crate) unsafe trait Pointer: Copy {
    /// Where its code starts.
    fn address(self) -> usize;

    /// The function of this type whose code starts at `address`.
    ///
    /// # Safety
    /// There is one.
    unsafe fn at(address: usize) -> Self;
}

macro_rules! pointers {
    ($(($($argument:ident),*))*) => {$(
        // NEED: only the compiler knows that an address is a function.
        // SOUND: both directions are casts of the one pointer.
        unsafe impl<$($argument,)* R> Pointer for fn($($argument),*) -> R {
            fn address(self) -> usize {
                (self as *const ()).expose_provenance()
            }

            // NEED: the trait asks for an unsafe function.
            // SOUND: what it asks of its caller is what the transmutation needs.
            unsafe fn at(address: usize) -> Self {
                // NEED: there is no cast from an address to a function.
                // SOUND: by the contract; function and data pointers have one size on all our targets.
                unsafe { std::mem::transmute::<*const (), Self>(std::ptr::with_exposed_provenance(address)) }
            }
        }
    )*};
}

pointers! { () (A) (A, B) }

/// A function that travels.
#[derive(Clone, Copy)]
pub(crate) struct Function<F>(pub(crate) F);

/// The word by which a receiver believes an address: made of the type and of the code that lies there.
fn check<F>(segment: &Segment, address: usize) -> u32 {
    let code = segment.bytes(address, CODE_BYTES);
    let bytes = type_name::<F>().bytes().chain(code.iter().copied());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32
}

impl<F: Pointer> Serialize for Function<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (code, address) = (code(), self.0.address());
        let offset = code.offset(address).ok_or_else(|| {
            serde::ser::Error::custom(
                "the function is not in the program itself but in a library that it loaded",
            )
        })?;
        (offset, check::<F>(code, address)).serialize(serializer)
    }
}

impl<'de, F: Pointer> Deserialize<'de> for Function<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (offset, sent) = <(u32, u32)>::deserialize(deserializer)?;
        let code = code();
        let address = code.address(offset).filter(|address| check::<F>(code, *address) == sent);
        let address = address.ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "there is no such function at offset {offset:#x} of the program"
            ))
        })?;
        // NEED: an offset becomes a function.
        // SOUND: the sender had a function of type `F` at this offset of the same image; the check word, of the type
        // and of the code that lies there, shows that neither number was damaged.
        Ok(Function(unsafe { F::at(address) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{DecodeError, Reader, Writer};

    fn seven() -> u32 {
        7
    }

    fn half(value: u32) -> u32 {
        value / 2
    }

    fn written<F: Pointer>(function: F) -> Vec<u8> {
        let mut bytes = vec![0; 32];
        let mut writer = Writer::new(&mut bytes);
        writer.put_value(&Function(function)).unwrap();
        let len = writer.written();
        bytes.truncate(len);
        bytes
    }

    fn read<F: Pointer>(bytes: &[u8]) -> Result<F, DecodeError> {
        Reader::new(bytes).take_value::<Function<F>>().map(|function| function.0)
    }

    #[test]
    fn a_function_arrives_as_itself() {
        let arrived: fn() -> u32 = read(&written(seven as fn() -> u32)).unwrap();
        assert_eq!(arrived(), 7);
        let arrived: fn(u32) -> u32 = read(&written(half as fn(u32) -> u32)).unwrap();
        assert_eq!(arrived(8), 4);
        let arrived: fn(u8, u8) -> u8 = read(&written((|a, b| a + b) as fn(u8, u8) -> u8)).unwrap();
        assert_eq!(arrived(1, 2), 3);
    }

    #[test]
    fn a_function_of_another_type_is_refused() {
        assert!(read::<fn(u32) -> u32>(&written(seven as fn() -> u32)).is_err());
    }

    #[test]
    fn damaged_numbers_are_refused() {
        let bytes = written(seven as fn() -> u32);
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[index] ^= 1 << bit;
                assert!(read::<fn() -> u32>(&damaged).is_err(), "byte {index}, bit {bit}");
            }
        }
        for offset in [0, u32::MAX] {
            let mut bytes = [0; 16];
            let mut writer = Writer::new(&mut bytes);
            writer.put_value(&(offset, 0_u32)).unwrap();
            assert!(read::<fn() -> u32>(&bytes).is_err());
        }
    }
}
