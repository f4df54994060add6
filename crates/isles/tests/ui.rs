//! Programs that must not compile, and the compiler's messages: each file in `ui/` beside its message.
//!
//! After a change of wording: `TRYBUILD=overwrite cargo test -p isles --test ui`, then read the difference.

#[test]
fn the_messages_of_the_compiler_are_as_written() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
