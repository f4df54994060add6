//! The METIS decoder takes any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isles_graph::fuzz::metis(bytes));
