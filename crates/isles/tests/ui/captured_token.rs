//! A body run at each place captures nothing, not even a value without bytes: it would be copied out of nothing.
use isles::prelude::*;

/// A proof that only this thread has.
#[derive(Clone, Copy)]
struct Token(std::marker::PhantomData<*const ()>);

impl Token {
    fn count(self) -> u64 {
        1
    }
}

async fn bodies(token: Token, start: u64) -> isles::Result<()> {
    let _ = PlaceLocal::new(move || start).await?;
    let _ = PlaceLocal::new(move || token.count()).await?;
    let local = PlaceLocal::with(start, move |seed| seed + token.count()).await?;
    let _ = local.reduce(move |one, other| one + other + token.count()).await?;
    Ok(())
}

fn main() {}
