//! The parser of the list of data sets takes any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isles_graph::fuzz::catalogue(bytes));
