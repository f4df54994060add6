//! A function of the program as a value that travels.
//!
//! It is the only way to send code that a program chooses at run time: bodies of `at!` are known when the program is
//! compiled and have descriptors (`image`). An API that takes a `fn` pointer accepts no closure with captures, so
//! nothing that the caller holds, not even a zero-sized proof, is copied to other places.
//!
//! A function travels as the offset into the program's code, with a check word made of the offset and of the function's
//! type. The code itself is not read: a debugger writes its breakpoints there. Invariant: what arrives is called only
//! if it lies in the code of this image, which the handshake found to be the sender's, and the check word matches its
//! offset and type.

use crate::call::image::code;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::type_name;

/// Pointers to functions.
///
/// # Safety
/// `at(address())` must be the function itself.
pub(crate) unsafe trait Pointer: Copy {
    /// Returns the start address of the code.
    fn address(self) -> usize;

    /// Returns the function of this type whose code starts at `address`.
    ///
    /// # Safety
    /// There is such a function.
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

/// Returns the check word of an offset: made of it and of the function's type.
fn check<F>(offset: u32) -> u32 {
    let bytes = offset.to_le_bytes().into_iter().chain(type_name::<F>().bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32
}

impl<F: Pointer> Serialize for Function<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let offset = code().offset(self.0.address()).ok_or_else(|| {
            serde::ser::Error::custom(
                "the function is not in the program itself but in a library that it loaded",
            )
        })?;
        (offset, check::<F>(offset)).serialize(serializer)
    }
}

impl<'de, F: Pointer> Deserialize<'de> for Function<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (offset, sent) = <(u32, u32)>::deserialize(deserializer)?;
        let checked = (check::<F>(offset) == sent).then_some(offset);
        let address = checked.and_then(|offset| code().address(offset)).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "there is no such function at offset {offset:#x} of the program"
            ))
        })?;
        // NEED: an offset becomes a function.
        // SOUND: the sender had a function of type `F` at this offset of the same image; the check word, of the offset
        // and of the type, shows that neither number was damaged and that the sender meant this type.
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
    #[cfg_attr(miri, ignore = "there is no code to set a breakpoint in")]
    fn a_breakpoint_of_a_debugger_changes_no_check_word() {
        use std::os::unix::fs::FileExt;

        fn stopped_at(value: u32) -> u32 {
            value.rotate_left(5) ^ 0x15_1e5
        }

        let function = stopped_at as fn(u32) -> u32;
        let without = written(function);
        // As a debugger does: this file writes to memory that the program itself may only read.
        let memory = std::fs::File::options().read(true).write(true).open("/proc/self/mem").unwrap();
        let (address, mut first) = (function.address() as u64, [0]);
        memory.read_exact_at(&mut first, address).unwrap();
        memory.write_all_at(&[first[0] ^ 0xff], address).unwrap();
        let arrived = read::<fn(u32) -> u32>(&without).map(Pointer::address);
        let with = written(function);
        memory.write_all_at(&first, address).unwrap();
        assert_eq!((arrived, with), (Ok(function.address()), without));
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
