//! Windows in memory of a modelled chip, served by a place on the other core of each member's tile.

use super::windows::round::round_on;
use isles::prelude::*;
use isles::{ErrorKind, Launch, ModelledChip, Result, ServedMemory, WindowOptions, now};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const BOTH: [ServedMemory; 2] = [ServedMemory::Shared, ServedMemory::Buffer];

/// Returns a launch of `places` places on the SCC, two on each tile, with half of each buffer for windows.
fn launch(places: u32) -> Launch {
    Launch::from_environment().unwrap().places(places).window_lines(128)
}

fn on_scc<F>(launch: &Launch, main: impl FnOnce() -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + 'static,
{
    launch.run_on_chip(ModelledChip::new("scc").unwrap(), main).unwrap().0
}

/// Returns the team of the first places of all tiles.
fn computing() -> Result<Team> {
    Team::from_places(&places().step_by(2).collect::<Vec<_>>())
}

#[test]
fn random_programs_give_what_the_sequential_model_gives() {
    for seed in 0..60 {
        on_scc(&launch(8), || async move {
            let memory = BOTH[seed as usize % 2];
            round_on(seed, &computing()?, WindowOptions::served(memory)).await
        })
        .unwrap();
    }
}

/// Two members change numbers in one word, while the owner of the word computes.
#[test]
fn updates_of_one_word_do_not_meet() {
    on_scc(&launch(6), || async {
        for memory in BOTH {
            let window =
                Window::<u8>::with_lens(&computing()?, &[0, 0, 8], WindowOptions::served(memory)).await?;
            finish(async {
                for rank in 0..3 {
                    spawn_at!(window.place_of(rank), {
                        for _ in 0..20 {
                            window.fetch_add(2, rank, 1).await?;
                            window.accumulate(2, 3, &[1, 2], isles::Combine::Sum).await?;
                        }
                        window.flush(2).await?;
                    });
                }
            })
            .await?;
            let found = at!(window.place_of(2), {
                let mut found = [0; 8];
                window.read(0, &mut found)?;
                found
            });
            assert_eq!(found.await?, [20, 20, 20, 60, 120, 0, 0, 0], "{memory:?}");
        }
        Ok(())
    })
    .unwrap();
}

/// Returns the time of a get, a put and a lock of a part whose owner computes.
fn beside_one_that_computes(served: Option<ServedMemory>) -> Duration {
    let found = Rc::new(Cell::new(Duration::ZERO));
    let place = Rc::clone(&found);
    on_scc(&launch(4), move || async move {
        let options = WindowOptions::default();
        let options = served.map_or(options, WindowOptions::served);
        let window = Window::<u64>::with_lens(&computing()?, &[64, 64], options).await?;
        let time = finish(async {
            spawn_at!(window.place_of(1), work(Cycles(53_300_000)));
            at!(window.place_of(0), {
                isles::sleep(Duration::from_millis(10)).await;
                let begun = now();
                window.lock(1).await?;
                window.put(1, 0, &[3; 64]).await?;
                let mut number = [0];
                window.get(1, 63, &mut number).await?;
                assert_eq!(number, [3]);
                window.unlock(1).await?;
                now() - begun
            })
            .await
        });
        place.set(time.await?);
        Ok(())
    })
    .unwrap();
    found.get()
}

#[test]
fn an_owner_that_computes_keeps_nobody_waiting() {
    for memory in BOTH {
        let time = beside_one_that_computes(Some(memory));
        assert!(time < Duration::from_millis(1), "{memory:?}: {time:?}");
    }
    let time = beside_one_that_computes(None);
    assert!(time > Duration::from_millis(50), "{time:?}");
}

#[test]
fn a_part_lies_where_the_options_say() {
    // The owner reads its buffer faster than memory behind a controller.
    let read = |memory| {
        let found = Rc::new(Cell::new(Duration::ZERO));
        let place = Rc::clone(&found);
        on_scc(&launch(2), move || async move {
            let window =
                Window::<u64>::with_lens(&computing()?, &[256], WindowOptions::served(memory)).await?;
            let begun = now();
            window.read(0, &mut [0; 256])?;
            place.set(now() - begun);
            Ok(())
        })
        .unwrap();
        found.get()
    };
    let [shared, buffer] = BOTH.map(read);
    assert!(buffer * 2 < shared, "{buffer:?}, {shared:?}");
}

#[test]
fn a_buffer_has_room_again_when_the_window_is_gone() {
    on_scc(&launch(4), || async {
        for round in 0..20_u64 {
            let options = WindowOptions::served(ServedMemory::Buffer);
            let window = Window::<u64>::with_lens(&computing()?, &[512, 512], options).await?;
            window.put(1, 511, &[round]).await?;
            window.flush(1).await?;
            let beyond = Window::<u64>::with_lens(&computing()?, &[1, 0], options).await;
            let text = beyond.map(drop).unwrap_err().to_string();
            assert!(text.contains("no room in the message buffer (see --window-lines)"), "{text}");
            drop(window);
            // The message that the last handle is gone is in flight.
            isles::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    })
    .unwrap();
}

/// Waits until the owners' messages that a window is gone have arrived.
async fn settle() {
    isles::sleep(Duration::from_millis(1)).await;
}

/// Creates and drops a window that takes all lines for windows of two buffers.
async fn check_buffers_are_free() -> Result<()> {
    let options = WindowOptions::served(ServedMemory::Buffer);
    let window = Window::<u64>::with_lens(&computing()?, &[512, 512], options).await?;
    window.put(1, 511, &[7]).await?;
    window.flush(1).await?;
    drop(window);
    settle().await;
    Ok(())
}

#[test]
fn a_buffer_has_room_again_when_a_window_was_not_made() {
    on_scc(&launch(4), || async {
        for lens in [[1000, 200], [200, 1000], [513, 512], [512, 513]] {
            let options = WindowOptions::served(ServedMemory::Buffer);
            let refused = Window::<u64>::with_lens(&computing()?, &lens, options).await;
            assert_eq!(*refused.map(drop).unwrap_err().kind(), ErrorKind::Misused);
            settle().await;
            check_buffers_are_free().await?;
        }
        Ok(())
    })
    .unwrap();
}

/// If the creation of a window is given up at any point, `EndServe` and `Serve` reach the servers in either order.
#[test]
fn a_buffer_has_room_again_when_the_making_is_given_up() {
    on_scc(&launch(4), || async {
        let (mut given_up, mut made) = (0, 0);
        for step in 0..160 {
            let options = WindowOptions::served(ServedMemory::Buffer);
            let (team, lens) = (computing()?, [300, 300]);
            let making = Window::<u64>::with_lens(&team, &lens, options);
            match isles::timeout(Duration::from_nanos(step * 250), making).await {
                Ok(window) => made += usize::from(window.map(drop).is_ok()),
                Err(_) => given_up += 1,
            }
            // Replicas of a window that is given up before all places have one are dropped later.
            isles::sleep(Duration::from_millis(20)).await;
            check_buffers_are_free().await?;
        }
        assert!(given_up > 20 && made > 5, "{given_up} given up, {made} made");
        Ok(())
    })
    .unwrap();
}

/// On a chip whose file does not state the cost of shared memory, members serve their own parts.
#[test]
fn a_chip_without_controllers_of_memory_serves_as_others_do() {
    let program = || async {
        for memory in BOTH {
            let options = WindowOptions::served(memory);
            let window = Window::<u64>::with_lens(&Team::world(), &[5, 5, 5], options).await?;
            window.put(2, 1, &[4]).await?;
            window.flush(2).await?;
            let mut number = [0];
            window.get(2, 1, &mut number).await?;
            assert_eq!(number, [4], "{memory:?}");
        }
        Ok::<_, isles::Error>(())
    };
    let launch = Launch::from_environment().unwrap().places(3);
    launch.run_on_chip(ModelledChip::new("bluegene-p").unwrap(), program).unwrap().0.unwrap();
}

#[test]
fn what_cannot_be_served_is_named() {
    on_scc(&launch(3), || async {
        let refused = |lens: Vec<usize>, team: Team, options| async move {
            let refused = Window::<u64>::with_lens(&team, &lens, options).await.map(drop).unwrap_err();
            assert_eq!(*refused.kind(), ErrorKind::Misused);
            refused.to_string()
        };
        let options = WindowOptions::served(ServedMemory::Shared);
        let text = refused(vec![1, 1], computing()?, options).await;
        assert!(text.contains("place 2, but no place on its tile could serve it"), "{text}");
        let mut queued = WindowOptions::queued();
        queued.served = Some(ServedMemory::Shared);
        let text = refused(vec![1; 3], Team::world(), queued).await;
        assert!(text.contains("queued or checked"), "{text}");
        Ok(())
    })
    .unwrap();
}

/// On a machine without such memory the option changes nothing.
#[isles::test(places = 3)]
async fn a_served_window_works_on_every_machine() -> Result<()> {
    if isles::shared_memory::SharedMemory::new(1, isles::shared_memory::MemoryKind::Through).is_some() {
        return Ok(());
    }
    let options = WindowOptions::served(ServedMemory::Buffer);
    let window = Window::<u32>::with_lens(&Team::world(), &[5, 5, 5], options).await?;
    window.put(2, 1, &[4]).await?;
    window.flush(2).await?;
    let mut number = [0];
    window.get(2, 1, &mut number).await?;
    assert_eq!(number, [4]);
    Ok(())
}
