//! A place takes any messages from its peers and goes on working.
#![no_main]

#[path = "../../crates/isles/tests/strangers/conversation.rs"]
mod conversation;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conversation::hold(bytes));
