//! Members of a team that name different roots: the run ends with an error that names both, on every machine.
//!
//! A root does not wait in a broadcast, nor do the others in a reduction, so a member may have left before a message
//! with another root arrives. An error that no call can return ends the run.

use isles::prelude::*;
use isles::{Launch, ModelledChip, Plan, Result, simulate};

/// Runs one collective at every member, with the place's number modulo 2 as its root.
async fn collective(name: &'static str) -> Result<()> {
    finish(async {
        for place in places() {
            let is_reduce = name == "reduce";
            spawn_at!(place, {
                let (team, root) = (Team::world(), here().index() % 2);
                if is_reduce {
                    let _ = team.reduce(root, here().index(), |a, b| a + b).await?;
                } else {
                    let value = (here().index() == root).then_some(root);
                    let _ = team.broadcast(root, value).await?;
                }
            });
        }
    })
    .await
}

macro_rules! refused {
    ($($name:ident: $places:literal, $what:literal;)*) => {$(
        #[isles::test(places = $places, machines = [threads, processes])]
        #[should_panic(expected = "the members of the team are in different collectives")]
        async fn $name() -> Result<()> {
            collective($what).await
        }
    )*};
}

refused! {
    two_places_broadcast_from_different_roots: 2, "broadcast";
    three_places_broadcast_from_different_roots: 3, "broadcast";
    eight_places_broadcast_from_different_roots: 8, "broadcast";
    two_places_reduce_to_different_roots: 2, "reduce";
    three_places_reduce_to_different_roots: 3, "reduce";
    eight_places_reduce_to_different_roots: 8, "reduce";
}

#[test]
fn different_roots_end_a_run_of_the_loopback_with_an_error_in_whatever_order() {
    for seed in 0..100 {
        for (places, name) in
            [(2, "broadcast"), (3, "broadcast"), (5, "broadcast"), (3, "reduce"), (5, "reduce")]
        {
            let (result, ..) = simulate(places, Plan::adversarial(seed), move || collective(name));
            let error = result.expect_err(&format!("{name} of {places} places, seed {seed}")).to_string();
            assert!(error.contains("different collectives") && error.contains("with root 1"), "{error}");
        }
    }
}

#[test]
fn different_roots_end_a_run_on_a_chip_with_an_error() {
    for (places, name) in
        [(2, "broadcast"), (3, "broadcast"), (48, "broadcast"), (3, "reduce"), (48, "reduce")]
    {
        let launch = Launch::from_environment().unwrap().places(places);
        let chip = ModelledChip::new("scc").unwrap();
        let (result, ..) = launch.run_on_chip(chip, move || collective(name)).unwrap();
        let error = result.expect_err(name).to_string();
        assert!(error.contains("different collectives") && error.contains("with root 1"), "{error}");
    }
}

#[test]
fn what_a_call_has_ended_with_does_not_end_the_run_again() {
    for seed in 0..20 {
        let main = || async {
            drop(collective("broadcast").await);
            // The next collective fails with the fault that the members have detected meanwhile.
            isles::sleep(std::time::Duration::from_millis(5)).await;
            for place in places() {
                at!(place, assert!(Team::world().barrier().await.is_err())).await?;
            }
            Ok::<_, isles::Error>(())
        };
        let (result, ..) = simulate(3, Plan::adversarial(seed), main);
        result.unwrap();
    }
}

#[test]
fn members_on_a_chip_that_had_left_before_have_the_error_at_their_next_collective() {
    for (places, name) in [(3, "broadcast"), (48, "broadcast"), (3, "reduce"), (48, "reduce")] {
        let launch = Launch::from_environment().unwrap().places(places);
        let main = move || async move {
            drop(collective(name).await);
            let ended = everywhere!(match Team::world().barrier().await {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            })
            .await?;
            for (place, said) in ended.iter().enumerate() {
                assert!(said.contains("different collectives"), "{name}, place {place} of {places}: {said}");
            }
            Ok::<_, isles::Error>(())
        };
        let (result, ..) = launch.run_on_chip(ModelledChip::new("scc").unwrap(), main).unwrap();
        result.unwrap();
    }
}
