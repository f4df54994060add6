//! Programs on a thousand places: of a modelled torus, and of the loopback when one of them is lost.
//!
//! A place keeps no state for each other place. These tests check that nothing assumes few places: numbers on the wire,
//! tables, a finish, collectives along trees, many senders to one place.

use isles::prelude::*;
use isles::{
    ChipReport, ErrorKind, Flag, Launch, Machine, ModelledChip, Plan, PlannedDeath, Protocol, Result,
    place_count, yield_now,
};
use isles_transport::PlaceId;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::OnceLock;

const PLACES: u32 = 1_024;

/// Blue Gene/P with one core for each place.
fn torus() -> ModelledChip {
    static TORUS: OnceLock<ModelledChip> = OnceLock::new();
    *TORUS.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("isles-many-{}.toml", std::process::id()));
        let file = include_str!("../../../../chips/bluegene-p.toml");
        let small = file.replace("tiles = [32, 32, 32]", "tiles = [8, 8, 4]");
        std::fs::write(&path, small).unwrap();
        let chip = ModelledChip::new(path.to_str().unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(chip.cores(), PLACES);
        chip
    })
}

/// Runs `program` on the torus; returns its result and the report.
fn on_torus<F, T>(places: u32, program: impl FnOnce() -> F) -> (T, ChipReport)
where
    F: Future<Output = Result<T>> + 'static,
    T: 'static,
{
    let (found, program) = (Rc::new(Cell::new(None)), program());
    let place = Rc::clone(&found);
    let main = move || async move {
        place.set(Some(program.await?));
        Ok::<_, isles::Error>(())
    };
    let launch = Launch::from_environment().unwrap().places(places);
    let (result, _, report) = launch.run_on_chip(torus(), main).unwrap();
    result.unwrap();
    (found.take().unwrap(), report)
}

/// Starts tasks from each place at others, under one finish; returns the sum of their counts.
async fn count_neighbours() -> Result<u64> {
    let counts = PlaceLocal::new(|| 0_u64).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for distance in [1, 300, 777] {
                    let other = Place::new((here().index() + distance) % place_count()).unwrap();
                    let from = here().index() as u64;
                    spawn_at!(other, *counts.lock() += from);
                }
            });
        }
    })
    .await?;
    counts.reduce(|a, b| a + b).await
}

#[test]
fn a_finish_ends_when_all_tasks_at_a_thousand_places_have_ended() {
    let (sum, report) = on_torus(PLACES, count_neighbours);
    let places = u64::from(PLACES);
    assert_eq!(sum, 3 * places * (places - 1) / 2);
    assert_eq!(report.ledgers.len(), PLACES as usize);
    let (_, again) = on_torus(PLACES, count_neighbours);
    assert_eq!(report.digest, again.digest);
}

/// A mesh of 4,096 cores with message buffers, each with room for a ring of each other.
fn mesh() -> ModelledChip {
    let text = [
        ("tiles = [4, 4]", "tiles = [64, 64]"),
        ("per_core = \"16 KiB\"", "per_core = \"4 MiB\""),
        ("serves_to = [3, 1]", "serves_to = [63, 31]"),
        ("serves_from = [0, 2]", "serves_from = [0, 32]"),
        ("serves_to = [3, 3]", "serves_to = [63, 63]"),
    ];
    let file = include_str!("../../../../chips/mesh.toml").to_owned();
    ModelledChip::parse("mesh-4096", &text.iter().fold(file, |file, (from, to)| file.replace(from, to)))
        .unwrap()
}

#[test]
fn as_many_places_run_by_message_buffers_as_the_check_of_the_chip_says() {
    let chip = mesh();
    let launch = Launch::from_environment().unwrap().places(chip.cores());
    let main = || async {
        finish(async {
            for place in places() {
                spawn_at!(place, _ = here());
            }
        })
        .await
    };
    let (result, _, report) = launch.run_on_chip(chip, main).unwrap();
    result.unwrap();
    assert_eq!(report.ledgers.len(), 4_096);
    let rooms = ModelledChip::rooms(chip.chip()).unwrap();
    assert_eq!((rooms[0].protocol, rooms[0].places), (Protocol::Doorbell, 4_096));
    let limit = "the protocol keeps state for each pair of places, for at most 2048 places";
    for room in rooms.iter().filter(|room| room.protocol != Protocol::Doorbell && room.places > 0) {
        assert!(room.places <= 2_048, "{room:?}");
        assert!(room.places < 2_048 || room.limit.as_deref() == Some(limit), "{room:?}");
    }
}

#[test]
fn a_place_calls_a_thousand_others_at_once_and_gets_each_answer_from_whom_it_asked() {
    let (answers, _) = on_torus(PLACES, || async {
        let answers = Rc::new(Cell::new(0_u64));
        finish(async {
            for place in places() {
                let answers = Rc::clone(&answers);
                isles::spawn(async move {
                    let answer = at!(place, here().index()).await?;
                    assert_eq!(answer, place.index());
                    answers.set(answers.get() + 1);
                    Ok::<_, isles::Error>(())
                });
            }
        })
        .await?;
        Ok(answers.get())
    });
    assert_eq!(answers, u64::from(PLACES));
}

/// Runs the checks of one member of a team of all places, one after the other.
async fn member() -> Result<()> {
    let team = Team::world();
    let (rank, size) = (team.rank(), team.size());
    assert_eq!((rank, size), (here().index(), place_count()));
    assert_eq!(team.rank_of(team.place_of(size - 1)), Some(size - 1));
    // The last member arrives late, and no member continues before it has.
    work(Cycles(if rank == size - 1 { 10_000_000 } else { 0 }));
    let late = team.broadcast(size - 1, (rank == size - 1).then(now)).await?;
    team.barrier().await?;
    assert!(now() >= late, "a barrier was over before all had come");
    let sum = team.all_reduce(rank, |a, b| a + b).await?;
    assert_eq!(sum, size * (size - 1) / 2);
    assert_eq!(team.exclusive_scan(1_usize, |a, b| a + b).await?.unwrap_or(0), rank);
    let root = size / 2 + 1;
    let gathered = team.gather(root, rank as u32).await?;
    if rank == root {
        assert!(gathered.unwrap().into_iter().eq(0..size as u32));
    }
    let mut slice = vec![if rank == root { 7_u64 } else { 0 }; 1_000];
    team.broadcast_slice(root, &mut slice).await?;
    assert!(slice.iter().all(|number| *number == 7));
    // More collectives without a barrier than a member may be ahead.
    for round in 0..20 {
        assert_eq!(team.broadcast(round, (rank == round).then_some(round)).await?, round);
    }
    Ok(())
}

#[test]
fn a_team_of_a_thousand_places_does_its_collectives() {
    let ((), report) = on_torus(PLACES, || async {
        finish(async {
            for place in places() {
                spawn_at!(place, member().await?);
            }
        })
        .await
    });
    assert!(report.messages > u64::from(PLACES) * 30, "{report}");
}

#[test]
fn a_team_of_some_of_hundreds_of_places_is_made_by_a_split() {
    on_torus(300, || async {
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let rank = here().index();
                    let team = Team::world().split(rank % 3, place_count() - rank).await?;
                    // In descending order, from the last place with that remainder on.
                    let places: Vec<usize> = team.places().map(Place::index).collect();
                    assert!(places.windows(2).all(|pair| pair[0] == pair[1] + 3));
                    assert_eq!(team.all_reduce(1, |a, b| a + b).await?, places.len());
                    team.barrier().await?;
                });
            }
        })
        .await
    });
}

#[test]
fn what_waits_for_room_to_a_crowd_arrives_in_the_order_in_which_it_was_sent() {
    let ((), _) = on_torus(PLACES, || async {
        let seen = PlaceLocal::new(|| 0_u32).await?;
        finish(async {
            for number in 0..4_u32 {
                for place in places() {
                    spawn_at!(place, {
                        assert_eq!(std::mem::replace(&mut *seen.lock(), number + 1), number);
                    });
                }
            }
        })
        .await
    });
}

#[test]
fn one_dead_place_of_a_thousand_is_the_error_of_the_finish_that_had_tasks_there() {
    let mut plan = Plan::calm(1);
    plan.losses = vec![PlannedDeath { place: PlaceId(700), step: 2_000 }];
    let ended = Rc::new(Cell::new(0));
    let counted = Rc::clone(&ended);
    let (result, _, _) = isles::simulate(PLACES, plan, move || async move {
        let result = finish(async {
            for place in places() {
                // Each task lives until the loss is known to all places.
                spawn_at!(place, {
                    while !Place::new(700).unwrap().is_dead() && here().index() != 700 {
                        yield_now().await;
                    }
                });
            }
        });
        let error = result.await.expect_err("a place with a task is lost");
        assert_eq!(*error.kind(), ErrorKind::DeadPlace(PlaceId(700)), "{error}");
        // The others continue.
        finish(async {
            for place in places().filter(|place| !place.is_dead()) {
                let counted = Rc::clone(&counted);
                isles::spawn(async move {
                    let one = at!(place, 1_u32).await?;
                    counted.set(counted.get() + one);
                    Ok::<_, isles::Error>(())
                });
            }
        })
        .await
    });
    result.unwrap();
    assert_eq!(ended.get(), PLACES - 1);
}

#[test]
fn a_number_of_places_that_a_machine_does_not_have_is_refused_with_its_own_bound() {
    let refused = |machine: &'static str, places: &'static str| {
        let flag = |variable, name, value| Flag { variable, name, value };
        let flags = [flag("ISLES_MACHINE", "--machine", machine), flag("ISLES_PLACES", "--places", places)];
        Launch::from_environment_with(Machine::Threads, &flags).err().map(|error| error.to_string())
    };
    let said = |places: &str, allowed: &str| {
        Some(format!("--places is \"{places}\"; allowed: a whole number from 1 to {allowed}"))
    };
    for machine in ["threads", "processes", "loopback"] {
        assert_eq!(refused(machine, "256"), None);
        assert_eq!(refused(machine, "257"), said("257", "256"));
    }
    assert_eq!(refused("chip:scc", "48"), None);
    assert_eq!(refused("chip:scc", "49"), said("49", "48, the cores of chip:scc"));
    assert_eq!(refused("chip:bluegene-p", "32768"), None);
    let most = "32768, the limit of a run, below the cores of chip:bluegene-p";
    for places in ["0", "32769", "131072"] {
        assert_eq!(refused("chip:bluegene-p", places), said(places, most));
    }
}
