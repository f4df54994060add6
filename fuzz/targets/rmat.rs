//! The parser of R-MAT parameters takes any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isles_graph::fuzz::rmat(bytes));
