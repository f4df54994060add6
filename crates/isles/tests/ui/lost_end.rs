//! `main` ends with `()` or a `Result` whose error is known.

#[isles::main]
async fn main() -> u8 {
    3
}
