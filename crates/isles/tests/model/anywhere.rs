//! Tasks at places chosen by the runtime.

use isles::Result;
use isles::prelude::*;

/// Returns the number of times each place is among `visited`.
fn by_place(visited: &[Place]) -> Vec<usize> {
    places().map(|place| visited.iter().filter(|other| **other == place).count()).collect()
}

#[isles::test(places = 4)]
async fn a_loop_deals_its_tasks_out_to_all_places() -> Result<()> {
    let (visits, visited) = channel::<(Place, usize)>(40);
    finish(async {
        for number in 0..40 {
            spawn_anywhere!(visits.send((here(), number)).await?);
        }
        drop(visits);
    })
    .await?;
    let (mut all, mut visited) = (Vec::new(), visited.stream());
    while let Some(visit) = visited.next().await? {
        all.push(visit);
    }
    let (whither, mut numbers): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>(), "each ran once");
    // The first four tasks were placed before any ended; later the least busy place depends on timing.
    assert!(by_place(&whither).iter().all(|visits| *visits > 0), "{:?}", by_place(&whither));
    Ok(())
}

#[isles::test(places = 4)]
async fn tasks_that_start_one_another_go_round() -> Result<()> {
    fn go_on(left: usize, visits: &Sender<Place>) {
        spawn_anywhere!([left, visits = visits.clone()] {
            visits.send(here()).await?;
            if left > 1 {
                go_on(left - 1, &visits);
            }
        });
    }
    let (visits, visited) = channel::<Place>(8);
    finish(async { go_on(4, &visits) }).await?;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(visited.recv().await?);
    }
    assert_eq!(by_place(&all), [1; 4], "{all:?}");
    Ok(())
}

#[isles::test(places = 3)]
async fn a_place_whose_tasks_do_not_end_gets_no_more_before_the_others_have_as_many() -> Result<()> {
    let (stop, stopped) = channel::<()>(0);
    let (visits, visited) = channel::<Place>(64);
    finish(async {
        // One task stays at each place but the last, which is this one.
        for _ in 0..2 {
            spawn_anywhere!([stopped = stopped.clone()] {
                let _ = stopped.recv().await;
            });
        }
        for _ in 0..9 {
            let (ended, end) = channel::<()>(0);
            spawn_anywhere!([visits, ended] {
                visits.send(here()).await?;
                ended.close();
            });
            let _ = end.recv().await;
            let place = visited.recv().await?;
            assert_eq!(place, here(), "the others have a task each");
        }
        stop.close();
        Ok::<_, isles::Error>(())
    })
    .await
}

#[isles::test(places = 3)]
async fn errors_and_panics_come_out_of_the_finish_with_their_place() -> Result<()> {
    let failed = finish(async {
        spawn_anywhere!({
            Err("it cannot be done")?;
        });
    })
    .await;
    assert!(failed.unwrap_err().to_string().contains("it cannot be done"));
    let panicked = finish(async {
        spawn_anywhere!(panic!("at {}", here()));
    })
    .await;
    assert!(panicked.unwrap_err().to_string().contains("at place 1"));
    Ok(())
}

#[isles::test(places = 2)]
async fn the_home_of_a_channel_is_the_place_of_its_buffer() -> Result<()> {
    let (sender, receiver) = channel_at::<u8>(places().last().expect("there are two"), 1).await?;
    let there = at!(receiver.home(), (sender.home(), receiver.home())).await?;
    assert_eq!(there, (sender.home(), receiver.home()));
    assert_eq!(there.0.index(), 1);
    let (own, _) = channel::<u8>(0);
    assert_eq!(own.home(), here());
    Ok(())
}
