//! The reader of tapes takes any bytes: a tape in the one form in which it is written, or a fault.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isles::fuzz_tape(bytes));
