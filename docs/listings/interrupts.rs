//! The first place interrupts all others by one request; where there are no interrupts, it sends each a message.
use isles::interrupts;
use isles::prelude::*;
use std::rc::Rc;

/// Waits until this place is called, and returns who called it.
async fn called() -> isles::Result<Place> {
    let calls = Rc::new(Monitor::new(None));
    let note = Rc::clone(&calls);
    let Some(_handler) = interrupts::handle(move |source| note.atomic(|call| *call = Some(source))) else {
        return Team::world().recv(0).await;
    };
    Ok(calls.when(Option::is_some, |call| call.take().expect("it is there")).await)
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let others: Vec<Place> = places().filter(|place| *place != here()).collect();
    finish(async {
        for place in &others {
            spawn_at!(*place, {
                let source = called().await?;
                println!("{} was called by {source}", here());
                assert_eq!(source.index(), 0);
            });
        }
        if !interrupts::raise(&others) {
            for place in &others {
                Team::world().send(place.index(), &here()).await?;
            }
        }
        Ok::<(), isles::Error>(())
    })
    .await
}
