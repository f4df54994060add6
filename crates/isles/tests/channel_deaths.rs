//! Channels whose places die, in seeded worlds with delays.

use isles::prelude::*;
use isles::{Plan, PlannedDeath, RecvError, Result, simulate};
use isles_transport::PlaceId;

#[test]
fn the_death_of_the_last_sender_s_place_closes_the_channel() {
    for seed in 0..20 {
        let plan = Plan { losses: vec![PlannedDeath { place: PlaceId(1), step: 400 }], ..Plan::calm(seed) };
        let main = || async {
            let dead = Place::new(1).expect("there are two");
            let (sender, receiver) = channel::<u64>(0);
            let ended = finish(async {
                spawn_at!(dead, {
                    sender.send(1).await?;
                    loop {
                        yield_now().await;
                    }
                });
                drop(sender);
                assert_eq!(receiver.recv().await, Ok(1));
                assert_eq!(receiver.recv().await, Err(RecvError::Closed));
                Ok::<_, isles::Error>(())
            });
            assert!(ended.await.is_err(), "a place has died");
            Ok::<_, isles::Error>(())
        };
        let result: Result<()> = simulate(2, plan, main).0;
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
