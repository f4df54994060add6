//! Shared objects: random readers and writers against a register model, order, errors of misuse, poison, growth.

#[path = "../shared/round.rs"]
mod round;

use crate::page_block::assert_shown;
use isles::prelude::*;
use isles::{
    AcquireAll, Controller, ErrorKind, Exclusion, IndexRange, IndexSpace, Mapping, MemoryKind, ReadGuard,
    Result, SharedOptions, acquire_all,
};
use round::round;

#[isles::test(places = 4)]
async fn random_readers_and_writers_see_what_the_register_holds() -> Result<()> {
    for seed in 0..60 {
        round(seed).await?;
    }
    Ok(())
}

/// The program of the documentation.
#[isles::test(places = 3)]
async fn each_place_adds_one() -> Result<()> {
    let total = Shared::new(0u64).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                *total.write().await? += 1;
            });
        }
    })
    .await?;
    assert_eq!(*total.read().await?, 3);
    Ok(())
}

#[isles::test(places = 4)]
async fn values_are_the_same_under_all_controllers_and_kinds_of_memory() -> Result<()> {
    all_kinds().await
}

/// Lets each place in turn add to a text and to a mapping, with each controller, memory and exclusion.
async fn all_kinds() -> Result<()> {
    for options in all_options() {
        let text = Shared::with(String::new(), options).await?;
        let squares = Shared::with(Mapping::<u32>::new(10), options).await?;
        for step in 0..6u32 {
            let place =
                Place::new(step as usize % place_count()).expect("the number is below that of places");
            at!(place, {
                let mut guard = text.write().await?;
                guard.push_str(&step.to_string());
                guard.release().await;
                let mut guard = squares.write().await?;
                let len = guard.len() + 700;
                guard.grow(len);
                guard.set(step as usize * 700, step * step);
                guard.release().await;
            })
            .await?;
        }
        for place in places() {
            at!(place, {
                assert_eq!(*text.read().await?, "012345", "{options:?}");
                let guard = squares.read().await?;
                assert_eq!(guard.len(), 4210);
                let found: Vec<u32> = (0..6).map(|step| guard.get(step * 700)).collect();
                assert_eq!(found, [0, 1, 4, 9, 16, 25], "{options:?}");
            })
            .await?;
        }
    }
    Ok(())
}

fn all_options() -> impl Iterator<Item = SharedOptions> {
    let controllers = [Controller::Broadcast, Controller::Overlapped, Controller::Timestamp];
    let kinds = [MemoryKind::Cached, MemoryKind::Uncached, MemoryKind::Through];
    let both = kinds.into_iter().flat_map(move |memory| {
        controllers.map(|controller| SharedOptions::default().controller(controller).memory(memory))
    });
    both.flat_map(|options| [options, options.exclusive_by_program()])
}

/// On a chip, where nothing keeps caches coherent.
#[cfg(feature = "chip")]
mod chip {
    use super::*;
    use isles::{ChipReport, Launch, ModelledChip};
    use std::time::Duration;

    fn on_chip<F>(program: impl FnOnce() -> F) -> ChipReport
    where
        F: Future<Output = Result<()>> + 'static,
    {
        let launch = Launch::from_environment().unwrap().places(4);
        let program = program();
        let (result, _, report) =
            launch.run_on_chip(ModelledChip::new("scc").unwrap(), move || program).unwrap();
        result.unwrap();
        report
    }

    #[test]
    fn nothing_is_stale_under_all_controllers_and_kinds_of_memory() {
        assert_eq!(on_chip(all_kinds).stale.expect("memory was used").number, 0);
        let growth = on_chip(|| async {
            for options in all_options() {
                extended_by_all(options).await?;
            }
            Ok(())
        });
        assert_eq!(growth.stale.expect("memory was used").number, 0);
        let rounds = on_chip(|| async {
            for seed in 0..12 {
                round(seed).await?;
            }
            Ok(())
        });
        assert_eq!(rounds.stale.expect("memory was used").number, 0);
    }

    /// Place 1 reads, place 0 writes, and place 1 reads again, with an object whose guards do not flush.
    #[test]
    fn a_forgotten_flush_is_a_stale_read_that_names_both_accesses() {
        for memory in [MemoryKind::Cached, MemoryKind::Through] {
            for exclusion in [Exclusion::Guards, Exclusion::Program] {
                let report = on_chip(move || async move {
                    let mut options = SharedOptions::default().memory(memory);
                    options.exclusion = exclusion;
                    let object = Shared::with(Mapping::<u64>::new(100), options.without_flushes()).await?;
                    let other = here().next();
                    let look = async || at!(other, object.read().await?.get(3)).await;
                    assert_eq!(look().await?, 0);
                    object.write().await?.set(3, 7);
                    assert_eq!(look().await?, 0, "{memory:?} {exclusion:?}");
                    Ok(())
                });
                let stale = report.stale.expect("memory was used");
                assert!(stale.number > 0, "{memory:?} {exclusion:?}");
                let last = stale.first.last().expect("it is listed");
                assert_eq!((last.core.0, last.missed.core.0), (1, 0), "{last:?}");
                // Written through, the 7 is still in the write buffer of its writer.
                if memory == MemoryKind::Cached {
                    assert_shown("shared.md", "crates/isles/tests/model/shared.rs", &last.describe("place"));
                }
            }
        }
    }

    /// Uses a mapping in one of two ways. Returns the time taken. Its 64 KiB fit the second-level cache of a core, but
    /// not the first.
    async fn use_mapping(options: SharedOptions, is_read_often: bool) -> Result<Duration> {
        const LEN: usize = 8_192;
        let object = Shared::with(Mapping::<u64>::new(LEN), options).await?;
        let other = here().next();
        let passes = if is_read_often { 12 } else { 0 };
        let started = isles::now();
        for step in 0..3 {
            let mut guard = object.write().await?;
            guard.set(step, 1);
            guard.release().await;
            at!(other, {
                let guard = object.read().await?;
                assert_eq!(guard.get(step), 1);
                let mut all = vec![0; LEN];
                for _ in 0..passes {
                    guard.read(0, &mut all);
                    assert_eq!(all.iter().sum::<u64>(), step as u64 + 1);
                }
            })
            .await?;
        }
        Ok(isles::now() - started)
    }

    /// Data that is read often is best cached, in spite of the flushes; data that changes owner for each element is
    /// not.
    #[test]
    fn a_policy_that_measures_finds_the_best_memory_of_two_unlike_patterns() {
        on_chip(|| async {
            let mut found = Vec::new();
            for is_read_often in [true, false] {
                let options = SharedOptions::default().exclusive_by_program();
                let measured = options
                    .measured(async |options| use_mapping(options, is_read_often).await.map(drop))
                    .await?;
                let time = use_mapping(measured, is_read_often).await?;
                for kind in [MemoryKind::Cached, MemoryKind::Uncached, MemoryKind::Through] {
                    let other = use_mapping(options.memory(kind), is_read_often).await?;
                    // Objects of one kind have different addresses, so times are similar but not equal.
                    assert!(time <= other + other / 50, "{measured:?}: {time:?}; {kind:?}: {other:?}");
                }
                found.push(measured.memory);
            }
            assert_eq!(found[0], MemoryKind::Cached, "{found:?}");
            assert_ne!(found[1], MemoryKind::Cached, "{found:?}");
            Ok(())
        });
    }

    /// A guard with outdated lines costs their flush: 7,500 cycles, and 300 for each of the 128 lines of a chunk.
    #[test]
    fn a_flush_costs_by_the_lines_of_the_object() {
        let time = |memory: MemoryKind, steps: usize| {
            on_chip(move || async move {
                let options = SharedOptions::default().memory(memory).controller(Controller::Timestamp);
                let options = options.exclusive_by_program();
                let object = Shared::with(Mapping::<u64>::new(512), options).await?;
                let other = here().next();
                for step in 0..steps {
                    let mut guard = object.write().await?;
                    guard.set(step, 1);
                    guard.release().await;
                    at!(other, object.read().await?.get(step)).await?;
                }
                Ok(())
            })
            .time
        };
        let of_ten = |memory| time(memory, 20) - time(memory, 10);
        let cycles = (of_ten(MemoryKind::Cached) - of_ten(MemoryKind::Through)).0 * 533 / 1_000_000;
        // Ten times: a chunk at the writer, and a chunk and the table's two lines at the reader.
        let flushes = 10 * (2 * (7_500 + 300 * 128) + 7_500 + 300 * 2);
        assert!(cycles.abs_diff(flushes) < flushes / 10, "{cycles} cycles, not {flushes}");
    }
}

#[isles::test(places = 2)]
async fn guards_that_wait_for_their_own_task_or_in_a_circle_are_misuse() -> Result<()> {
    let (first, second) = (Shared::new(1).await?, Shared::new(2).await?);
    let held = second.read().await?;
    let error = first.write().await.err().expect("it comes before the one that is held");
    assert_eq!(error.kind(), &ErrorKind::Misused);
    assert!(error.to_string().contains("precedes the one whose guard was taken at"), "{error}");
    let again = second.read().await?;
    assert_eq!(*again + *held, 4, "a task may read twice");
    let error = second.write().await.err().expect("it would wait for itself");
    assert!(
        error.to_string().contains("the task already has a guard of this shared object, taken at"),
        "{error}"
    );
    drop((held, again));
    let (two, mut one) = acquire_all((second.read(), first.write())).await?;
    *one += *two;
    drop((one, two));
    assert_eq!(*first.read().await?, 3);
    Ok(())
}

#[isles::test(places = 1)]
async fn a_guard_that_is_kept_across_the_end_of_its_finish_is_misuse() -> Result<()> {
    let object = Shared::new(5).await?;
    let kept = std::cell::RefCell::new(None);
    let ended = finish(async {
        *kept.borrow_mut() = Some(object.read().await?);
        Ok::<_, isles::Error>(())
    })
    .await;
    let error = ended.expect_err("a guard is left");
    assert_eq!(error.kind(), &ErrorKind::Misused);
    assert!(error.to_string().contains("outlived its finish"), "{error}");
    assert!(error.to_string().contains("shared.rs:"), "{error}");
    drop(kept);
    *object.write().await? += 1;
    Ok(())
}

#[isles::test(places = 2)]
async fn a_panic_of_a_writer_poisons_until_it_is_repaired() -> Result<()> {
    let object = Shared::new(vec![1, 2]).await?;
    let other = here().next();
    let panicked = at!(other, {
        let mut guard = object.write().await?;
        guard.push(3);
        assert!(guard.is_empty(), "a mistake of a program");
    })
    .await;
    assert!(panicked.is_err());
    let error = object.read().await.err().expect("it is poisoned");
    assert_eq!(error.kind(), &ErrorKind::Poisoned);
    object.repair().await?.truncate(2);
    assert_eq!(at!(other, object.read().await?.len()).await?, 2);
    Ok(())
}

/// A wait that is given up lets the others proceed.
#[isles::test(places = 2)]
async fn a_guard_that_nobody_waits_for_any_more_hinders_nobody() -> Result<()> {
    let object = Shared::new(0).await?;
    let other = here().next();
    finish(async {
        spawn_at!(other, {
            for _ in 0..50 {
                *object.write().await? += 1;
            }
        });
        for _ in 0..50 {
            let wait = object.write();
            let _ = isles::timeout(std::time::Duration::ZERO, wait).await;
            yield_now().await;
        }
        Ok::<_, isles::Error>(())
    })
    .await?;
    assert_eq!(*object.read().await? % 50, 0);
    Ok(())
}

/// A graph composed of a space and two mappings; another composed object has the space as well.
struct Vertices {
    space: IndexSpace,
    degrees: Shared<Mapping<u32>>,
    colours: Shared<Mapping<u8>>,
}

struct VerticesReading<'a> {
    indices: ReadGuard<'a, IndexRange>,
    degrees: ReadGuard<'a, Mapping<u32>>,
}

impl Vertices {
    fn read(&self) -> impl AcquireAll<Guards = VerticesReading<'_>> {
        // Not in the order in which they are acquired.
        let parts = (self.degrees.read(), self.space.read());
        parts.compose(|(degrees, indices)| VerticesReading { indices, degrees })
    }
}

#[isles::test(places = 3)]
async fn composed_objects_acquire_their_parts_in_one_order_and_read_one_in_common_once() -> Result<()> {
    let space = IndexSpace::new(5).await?;
    let options = SharedOptions::default();
    let (degrees, colours) = (space.mapping(options).await?, space.mapping(options).await?);
    let vertices = Vertices { space, degrees, colours };
    let total = Shared::new(0u32).await?;
    vertices.degrees.write().await?.set(4, 7);
    finish(async {
        for place in places() {
            let (space, degrees) = (vertices.space.clone(), vertices.degrees.clone());
            let (colours, total) = (vertices.colours.clone(), total.clone());
            spawn_at!(place, {
                let vertices = Vertices { space, degrees, colours };
                for _ in 0..20 {
                    let both =
                        (total.write(), (vertices.read(), vertices.space.read()), vertices.colours.write());
                    let (mut total, (reading, indices), mut colours) = acquire_all(both).await?;
                    assert_eq!((reading.indices.len(), indices.indices()), (5, 0..5));
                    *total += reading.degrees.get(4);
                    let seen = colours.get(0);
                    colours.set(0, seen + 1);
                }
            });
        }
        Ok::<_, isles::Error>(())
    })
    .await?;
    assert_eq!(*total.read().await?, 3 * 20 * 7);
    assert_eq!(vertices.colours.read().await?.get(0), 60);
    // Reading and writing one object at once is a deadlock with oneself, in any position.
    let both = (vertices.space.read(), (vertices.degrees.read(), vertices.degrees.write()));
    let error = acquire_all(both).await.err().expect("it would wait for itself");
    assert_eq!(error.kind(), &ErrorKind::Misused);
    Ok(())
}

/// Lets each place extend a space and write to the new elements of its mappings; one mapping is created in between.
async fn extended_by_all(options: SharedOptions) -> Result<()> {
    let space = IndexSpace::with(0, options).await?;
    let squares: Shared<Mapping<u64>> = space.mapping(options).await?;
    let mut late: Vec<Shared<Mapping<u8>>> = Vec::new();
    for step in 0..6 {
        let place = Place::new(step % place_count()).expect("the number is below that of places");
        at!(place, {
            let added = space.extend(300).await?;
            assert_eq!(added, 300 * step..300 * (step + 1));
            let mut guard = squares.write().await?;
            added.for_each(|index| guard.set(index, (index * index) as u64));
            guard.release().await;
        })
        .await?;
        if step % 2 == 1 {
            late.push(space.mapping(options).await?);
        }
    }
    let last = place_count() as u32 - 1;
    let lens = at!(Place::new(last as usize).expect("it is the last"), {
        let (indices, guard) = acquire_all((space.read(), squares.read())).await?;
        let sum: u64 = indices.indices().map(|index| guard.get(index)).sum();
        assert_eq!(sum, (0..1_800u64).map(|index| index * index).sum::<u64>());
        drop((indices, guard));
        let mut lens = Vec::new();
        for mapping in &late {
            lens.push(mapping.read().await?.len());
        }
        lens
    })
    .await?;
    // In chunks of 512 elements of the longest kind.
    assert_eq!(lens, [2_048, 2_048, 2_048], "{options:?}");
    Ok(())
}

#[isles::test(places = 3)]
async fn mappings_grow_with_their_space() -> Result<()> {
    for options in all_options() {
        extended_by_all(options).await?;
    }
    let space = IndexSpace::new(3).await?;
    let mapping: Shared<Mapping<u32>> = space.mapping(SharedOptions::default()).await?;
    // New indices change the space alone, as long as there is a reserve.
    let held = mapping.read().await?;
    let error = space.extend(1).await.expect_err("the space comes before its mapping");
    assert_eq!(error.kind(), &ErrorKind::Misused);
    drop(held);
    assert_eq!(space.extend(500).await?, 3..503);
    Ok(())
}
