//! Format recognition, decompression and the decoder behind it take any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isles_graph::fuzz::any(bytes));
