//! A place takes whatever a peer writes into the memory that they share.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isles_transport_shm::fuzz::ring(bytes));
