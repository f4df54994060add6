//! Small programs in which an operation is cancelled or fails halfway, or its object is used again after a drop.
//!
//! Each runs on at least three places, and fails by an assertion or an error.

use isles::prelude::*;
use isles::{ErrorKind, Mapping, MemoryKind, RecvError, Result, SharedOptions, channel_at, timeout};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::time::Duration;

/// Time limit of an operation on a busy host; anything longer counts as never.
const NEVER: Duration = Duration::from_secs(60);

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn second() -> Place {
    here().next()
}

fn last() -> Place {
    places().last().expect("there is a place")
}

/// Checks that every place still answers.
async fn all_answer() -> Result<()> {
    for place in places() {
        let answered = timeout(NEVER, async { at!(place, here()).await }).await??;
        assert_eq!(answered, place);
    }
    Ok(())
}

fn is_misused<V>(result: Result<V>) {
    assert_eq!(*result.err().expect("it is misuse").kind(), ErrorKind::Misused);
}

/// Returns the kind of the error at the other place, or `None` if the call did not fail there.
fn kind_of<V>(result: Result<V>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind().clone())
}

/// A guard reads the values that the previous guard wrote, even in memory with a write buffer.
pub async fn a_mapping_written_through_is_read_by_the_next_guard() -> Result<()> {
    for memory in [MemoryKind::Through, MemoryKind::Cached, MemoryKind::Uncached] {
        let mapping = Shared::with(Mapping::<u64>::new(8), SharedOptions::default().memory(memory)).await?;
        for number in 1..=20 {
            mapping.write().await?.set(number as usize % 8, number);
            assert_eq!(mapping.read().await?.get(number as usize % 8), number, "{memory:?}");
            let there = at!(last(), [mapping, number] mapping.read().await?.get(number as usize % 8)).await?;
            assert_eq!(there, number, "{memory:?}");
            at!(second(), [mapping, number] mapping.write().await?.set(0, 100 + number)).await?;
            assert_eq!(mapping.read().await?.get(0), 100 + number, "{memory:?}");
        }
        finish(async {
            for place in places() {
                spawn_at!(place, [mapping] for _ in 0..20 {
                    let mut guard = mapping.write().await?;
                    let count = guard.get(7);
                    guard.set(7, count + 1);
                });
            }
        })
        .await?;
        let count = mapping.read().await?.get(7);
        assert_eq!(count, 15 + 20 * place_count() as u64, "{memory:?}");
    }
    Ok(())
}

/// A place uses a channel, drops its ends, and uses it again: its values arrive in order.
pub async fn a_channel_that_is_used_again_keeps_its_order() -> Result<()> {
    for round in 0..20_u64 {
        let (sender, receiver) = channel::<u64>(1024);
        let first = sender.clone();
        finish(async {
            spawn_at!(last(), [first] for value in 0..400_u64 {
                first.send(value).await?;
            });
            for value in 0..400 {
                assert_eq!(receiver.recv().await?, value);
            }
            Ok::<_, isles::Error>(())
        })
        .await?;
        drop(first);
        // The place forgets the channel.
        isles::sleep(milliseconds(7)).await;
        let again = sender.clone();
        finish(async {
            spawn_at!(last(), [again, round] for value in 0..420_u64 {
                again.send(value).await?;
                for _ in 0..[0, 1, 2, 5][round as usize % 4] * u64::from(value > 16) {
                    yield_now().await;
                }
            });
            for value in 0..420 {
                assert_eq!(receiver.recv().await?, value, "round {round}");
                if value == 16 + round % 4 {
                    // The home is away while messages and values come.
                    let until = std::time::Instant::now() + Duration::from_micros(300 * (1 + round % 7));
                    while std::time::Instant::now() < until {
                        std::hint::spin_loop();
                    }
                }
            }
            Ok::<_, isles::Error>(())
        })
        .await?;
    }
    Ok(())
}

/// Tasks that receive without waiting see that the channel is closed, whoever received its values.
pub async fn who_asks_without_waiting_hears_of_the_end() -> Result<()> {
    for closes in [true, false] {
        for home in places() {
            let (sender, receiver) = channel_at::<u64>(home, 4).await?;
            finish(async {
                spawn_at!(last(), [sender] for value in 0..3_u64 {
                    sender.send(value).await?;
                });
                if closes {
                    for value in 0..3 {
                        assert_eq!(receiver.recv().await?, value);
                    }
                    sender.close();
                }
                drop(sender);
                let asked = timeout(NEVER, async {
                    let mut values = 0;
                    loop {
                        match receiver.try_recv().await {
                            Ok(_) => values += 1,
                            Err(RecvError::Empty) => yield_now().await,
                            Err(RecvError::Closed) => return values,
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
                assert_eq!(asked.await?, if closes { 0 } else { 3 });
                Ok::<_, isles::Error>(())
            })
            .await?;
        }
    }
    Ok(())
}

/// A `select!` with `default` sees the end of a channel, too.
pub async fn a_select_with_default_hears_of_the_end() -> Result<()> {
    let (sender, receiver) = channel::<u64>(8);
    for value in 0..3 {
        sender.send(value).await?;
    }
    sender.close();
    let values = at!(second(), [receiver] {
        timeout(NEVER, async {
            let mut values = 0_u64;
            loop {
                let is_over = select! {
                    received = receiver.recv() => match received {
                        Ok(_) => { values += 1; false }
                        Err(RecvError::Closed) => true,
                        Err(other) => panic!("{other}"),
                    },
                    default => { yield_now().await; false }
                };
                if is_over {
                    return values;
                }
            }
        }).await?
    });
    assert_eq!(values.await?, 3);
    Ok(())
}

/// A read that is cancelled while a writer of its place waits blocks no other guard.
pub async fn a_read_given_up_before_a_writer_keeps_nobody_waiting() -> Result<()> {
    for wait in [10, 20, 40] {
        let object = Shared::new(0_u64).await?;
        let all = finish(async {
            spawn_at!(last(), [object, wait] {
                let mut guard = object.write().await?;
                *guard += 1;
                isles::sleep(milliseconds(3 * wait)).await;
            });
            isles::sleep(milliseconds(wait)).await;
            spawn_at!(second(), [object, wait] drop(timeout(milliseconds(wait), object.read()).await));
            spawn_at!(second(), [object] * object.write().await? += 1);
            isles::sleep(milliseconds(wait)).await;
            *object.write().await? += 1;
            Ok::<_, isles::Error>(())
        });
        all.deadline(NEVER).await?;
        assert_eq!(*object.read().await?, 3);
    }
    Ok(())
}

/// A value whose number determines whether its `Serialize` and `Deserialize` succeed, fail or panic.
#[derive(Clone, Debug, PartialEq)]
struct Fickle(u8);

const READ_PANICS: u8 = 3;
const READ_FAILS: u8 = 4;
const WRITE_PANICS: u8 = 5;
const WRITE_FAILS: u8 = 6;

impl Serialize for Fickle {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            WRITE_PANICS => panic!("it cannot be written"),
            WRITE_FAILS => Err(serde::ser::Error::custom("it is not to be written")),
            number => serializer.serialize_u8(number),
        }
    }
}

impl<'de> Deserialize<'de> for Fickle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Fickle, D::Error> {
        match u8::deserialize(deserializer)? {
            READ_PANICS => panic!("it cannot be read"),
            READ_FAILS => Err(de::Error::custom("it is not to be read")),
            number => Ok(Fickle(number)),
        }
    }
}

/// A value that a place cannot deserialise is an error of guards there; the object can be written again.
pub async fn a_shared_value_that_cannot_be_read_is_an_error_of_its_reader() -> Result<()> {
    for number in [READ_PANICS, READ_FAILS] {
        let object = Shared::new(Fickle(0)).await?;
        object.write().await?.0 = number;
        for place in [second(), last()] {
            let kind = at!(place, [object] kind_of(object.read().await)).await?;
            assert!(matches!(kind, Some(ErrorKind::Undecodable | ErrorKind::Panicked)), "{number}: {kind:?}");
            let kind = at!(place, [object] kind_of(object.write().await)).await?;
            assert!(matches!(kind, Some(ErrorKind::Undecodable | ErrorKind::Panicked)), "{number}: {kind:?}");
        }
        all_answer().await?;
        // All places can read the next write of the home; on a chip the home reads its own value as others do.
        object.repair().await?.0 = 1;
        assert_eq!(at!(second(), [object] object.read().await?.0).await?, 1);
        // A place that cannot read the value replaces it.
        object.write().await?.0 = number;
        at!(second(), [object] { *object.repair().await? = Fickle(2); }).await?;
        assert_eq!(object.read().await?.0, 2);
        assert_eq!(at!(last(), [object] object.read().await?.0).await?, 2);
    }
    Ok(())
}

/// A value that its writer cannot serialise, or its home cannot deserialise, is an error elsewhere until the object is
/// repaired.
pub async fn a_shared_value_that_does_not_travel_is_repaired() -> Result<()> {
    for number in [READ_PANICS, READ_FAILS, WRITE_PANICS, WRITE_FAILS] {
        for writer in [here(), second()] {
            let object = Shared::new(Fickle(0)).await?;
            at!(writer, [object, number] object.write().await?.0 = number).await?;
            for reader in places().filter(|reader| *reader != writer) {
                let kind = at!(reader, [object] kind_of(object.read().await)).await?;
                let expected = [ErrorKind::Poisoned, ErrorKind::Undecodable, ErrorKind::Panicked];
                assert!(kind.as_ref().is_some_and(|kind| expected.contains(kind)), "{number}: {kind:?}");
            }
            all_answer().await?;
            at!(last(), [object] object.repair().await?.0 = 1).await?;
            for place in places() {
                assert_eq!(at!(place, [object] object.read().await?.0).await?, 1, "{number} at {place}");
            }
        }
    }
    Ok(())
}

/// A cancelled `start` has begun nothing, and its window still works.
pub async fn a_start_given_up_has_begun_nothing() -> Result<()> {
    let window = Window::<u64>::new(4).await?;
    at!(second(), [window] {
        assert!(timeout(milliseconds(20), window.start(&[0])).await.is_err());
        is_misused(window.complete().await);
        // The same for the local part.
        let own = window.rank();
        assert!(timeout(Duration::ZERO, window.start(&[own])).await.is_err());
        is_misused(window.complete().await);
    })
    .await?;
    all_answer().await?;
    finish(async {
        spawn_at!(second(), [window] {
            window.start(&[0]).await?;
            window.put(0, 0, &[7]).await?;
            window.complete().await?;
        });
        window.post(&[1])?;
        window.wait().await
    })
    .await?;
    let mut value = [0];
    window.read(0, &mut value)?;
    assert_eq!(value, [7]);
    Ok(())
}

/// A lock that is cancelled at any moment is not held, and leaves the epoch unchanged.
pub async fn a_lock_given_up_is_not_held() -> Result<()> {
    let window = Window::<u64>::new(1).await?;
    for polls in 0..6 {
        at!(second(), [window, polls] {
            give_up_after(polls, window.lock(0)).await;
            if polls == 0 {
                is_misused(window.unlock(0).await);
            }
        })
        .await?;
        at!(second(), [window] {
            // It may have been granted before the cancellation.
            drop(window.unlock(0).await);
            window.lock(0).await?;
            window.unlock(0).await?;
            if timeout(Duration::ZERO, window.lock(0)).await.is_ok() {
                window.unlock(0).await?;
            }
        })
        .await?;
        window.lock(0).await?;
        window.unlock(0).await?;
    }
    all_answer().await?;
    timeout(NEVER, fence_everywhere(&window)).await??;
    Ok(())
}

async fn fence_everywhere(window: &Window<u64>) -> Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, [window] window.fence().await?);
        }
    })
    .await
}

/// Polls `future` up to `polls` times, then drops it; returns its output if it was ready.
async fn give_up_after<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context))).await;
        if let std::task::Poll::Ready(output) = polled {
            return Some(output);
        }
        yield_now().await;
    }
    None
}

/// A lock that one task waits for is not unlocked by another task of its place.
pub async fn a_lock_that_is_waited_for_is_not_unlocked() -> Result<()> {
    for options in [isles::WindowOptions::default(), isles::WindowOptions::queued()] {
        let lens = vec![1; place_count()];
        let window = Window::<u64>::with_lens(&Team::world(), &lens, options).await?;
        window.lock(0).await?;
        window.put(0, 0, &[3]).await?;
        at!(second(), [window] {
            let (printed, asked) = channel::<()>(1);
            let (refused, over) = channel::<()>(1);
            finish(async {
                let other = window.clone();
                spawn(async move {
                    // In the queued form, the flush waits.
                    let locked = async {
                        other.lock(0).await?;
                        printed.send(()).await?;
                        other.flush(0).await
                    };
                    select! {
                        locked = locked => locked,
                        given_up = over.recv() => Ok(given_up?),
                    }
                });
                drop(timeout(milliseconds(10), asked.recv()).await);
                yield_now().await;
                is_misused(window.unlock(0).await);
                refused.send(()).await?;
                Ok::<_, isles::Error>(())
            })
            .await?;
        })
        .await?;
        window.unlock(0).await?;
        all_answer().await?;
    }
    Ok(())
}

/// Elements without bytes have bounds.
pub async fn a_window_of_elements_without_bytes_has_bounds() -> Result<()> {
    let window = Window::<()>::new(5).await?;
    window.put(1, 0, &[(); 5]).await?;
    is_misused(window.put(1, 0, &[(); 6]).await);
    is_misused(window.get(1, 3, &mut [(); 3]).await);
    is_misused(window.get(0, usize::MAX, &mut [(); 1]).await);
    Ok(())
}
