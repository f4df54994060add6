//! Windows: random programs against a sequential model, epochs, errors of misuse, elements without bytes.

#[path = "../windows/round.rs"]
pub(crate) mod round;

use isles::prelude::*;
use isles::{Combine, ErrorKind, Result, Strided, WindowOptions};
use round::round;
use std::time::Duration;

#[isles::test(places = 4)]
async fn random_programs_give_what_the_sequential_model_gives() -> Result<()> {
    for seed in 0..90 {
        round(seed).await?;
    }
    Ok(())
}

/// The program of the design: an edge goes to the neighbour, and a fence ends the step.
#[isles::test(places = 3)]
async fn an_edge_is_put_and_read_after_the_fence() -> Result<()> {
    let columns = 5;
    let window = Window::<f64>::new(columns).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let right = (window.rank() + 1) % window.size();
                let edge = vec![here().index() as f64; columns];
                window.put(right, 0, &edge).await?;
                window.fence().await?;
                let mut halo = vec![0.0; columns];
                window.read(0, &mut halo)?;
                let left = (window.rank() + window.size() - 1) % window.size();
                assert_eq!(halo, vec![left as f64; columns]);
            });
        }
    })
    .await
}

/// A counter under a lock, with a get and a put that are not one step.
#[isles::test(places = 4)]
async fn a_lock_lets_one_place_in_at_a_time() -> Result<()> {
    for options in [WindowOptions::default(), WindowOptions::queued(), WindowOptions::checked()] {
        let window = Window::<u32>::with_lens(&Team::world(), &[0, 3, 0, 0], options).await?;
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    for _ in 0..10 {
                        window.lock(1).await?;
                        let mut number = [0];
                        window.get(1, 2, &mut number).await?;
                        yield_now().await;
                        window.put(1, 2, &[number[0] + 1]).await?;
                        window.unlock(1).await?;
                    }
                });
            }
        })
        .await?;
        let mut all = [0; 3];
        window.fence_alone(&mut all).await?;
        assert_eq!(all, [0, 0, 40], "{options:?}");
    }
    Ok(())
}

/// Reads the part of rank 1.
trait FenceAlone {
    async fn fence_alone(&self, into: &mut [u32]) -> Result<()>;
}

impl FenceAlone for Window<u32> {
    async fn fence_alone(&self, into: &mut [u32]) -> Result<()> {
        self.lock_shared(1).await?;
        self.get(1, 0, into).await?;
        self.unlock(1).await
    }
}

/// In the queued form it is the unlock that waits for the lock.
#[isles::test(places = 3)]
async fn a_lock_that_is_given_up_goes_to_the_next() -> Result<()> {
    for options in [WindowOptions::default(), WindowOptions::queued()] {
        let window = Window::<u64>::with_lens(&Team::world(), &[0, 1, 0], options).await?;
        let owner = here().next();
        at!(owner, window.lock(1).await?).await?;
        let there = at!(owner.next(), {
            let limit = Duration::from_millis(1);
            let locked = isles::timeout(limit, async {
                window.lock(1).await?;
                window.unlock(1).await
            });
            locked.await.map_err(|error| error.kind().clone()).err()
        });
        assert_eq!(there.await?, Some(ErrorKind::DeadlinePassed), "{options:?}");
        at!(owner, window.unlock(1).await?).await?;
        window.lock(1).await?;
        window.put(1, 0, &[3]).await?;
        window.unlock(1).await?;
        assert_eq!(
            at!(owner, {
                let mut part = [0];
                window.read(0, &mut part)?;
                part[0]
            })
            .await?,
            3
        );
    }
    Ok(())
}

/// Returns the error text of an operation that must fail.
fn said<V>(result: Result<V>) -> String {
    let error = result.err().expect("it fails");
    assert_eq!(error.kind(), &ErrorKind::Misused, "{error}");
    error.to_string()
}

#[isles::test(places = 2)]
async fn misuse_names_the_access_and_what_it_met() -> Result<()> {
    let window = Window::<u32>::with_lens(&Team::world(), &[4, 0], WindowOptions::default()).await?;
    let text = said(window.put(0, 3, &[1, 2]).await);
    assert!(text.contains("a put of 2 elements from 3 on at rank 0, but that part has 4"), "{text}");
    assert!(text.contains(file!()), "{text}");
    let text = said(window.get(1, 0, &mut [0]).await);
    assert!(text.contains("a get of 1 elements from 0 on at rank 1, but that part has 0"), "{text}");
    let text = said(window.fetch_add(2, 0, 1).await);
    assert!(text.contains("rank 2 of a window of 2 places"), "{text}");
    let text = said(window.put_strided(0, 0, Strided { block: 2, stride: 1 }, &[1; 4]).await);
    assert!(text.contains("pieces of 2 elements, 1 apart, overlap"), "{text}");
    let text = said(window.get_strided(0, 0, Strided { block: 3, stride: 4 }, &mut [1; 4]).await);
    assert!(text.contains("4 elements in pieces of 3"), "{text}");
    let text = said(window.put(0, usize::MAX, &[1]).await);
    assert!(text.contains("but that part has 4"), "{text}");
    let text = said(window.read(4, &mut [0]));
    assert!(text.contains("a read of 1 elements from 4 on in a part that has 4"), "{text}");
    window.put(1, 0, &[]).await?;

    let text = said(window.start(&[0]).await);
    assert!(text.contains("a start within another epoch: the open epoch is that of a new window"), "{text}");
    assert!(said(window.complete().await).contains("a complete without a start"));
    assert!(said(window.unlock(0).await).contains("an unlock without a lock"));
    assert!(said(window.wait().await).contains("a wait without a post"));
    let window = Window::<u32>::new(1).await?;
    window.lock(0).await?;
    let line = line!() - 1;
    let text = said(window.put(1, 0, &[1]).await);
    assert!(text.contains("a put at rank 1 outside its access epoch"), "{text}");
    assert!(text.contains(&format!("the lock at {}:{line}", file!())), "{text}");
    window.unlock(0).await?;
    let text = said(window.accumulate(0, 0, &[1], Combine::Max).await);
    assert!(text.contains("no epoch is open since"), "{text}");
    Ok(())
}

#[isles::test(places = 3)]
async fn a_conflict_names_both_accesses() -> Result<()> {
    let window = Window::<u16>::with_lens(&Team::world(), &[9, 9, 9], WindowOptions::checked()).await?;
    window.put(2, 1, &[1; 4]).await?;
    let first = line!() - 1;
    let (text, second) = at!(here().next(), {
        window.put(2, 0, &[7]).await?;
        window.accumulate(2, 8, &[7], Combine::Sum).await?;
        (window.put(2, 3, &[7; 4]).await.err().map(|error| error.to_string()), line!())
    })
    .await?;
    let text = text.expect("it conflicts");
    let of = |place, line| format!("a put of place {place} at {}:{line}", file!());
    assert!(text.contains(&of(0, first)) && text.contains(&of(1, second)), "{text}");
    assert!(text.contains("elements 3 to 4 of the part of rank 2"), "{text}");
    let mut part = [0; 9];
    window.get(2, 5, &mut part[5..8]).await?;
    assert_eq!(part, [0; 9], "a put that conflicts changes nothing");
    window.accumulate(2, 8, &[7], Combine::Sum).await?;
    assert!(said(at!(here().next(), window.get(2, 1, &mut [0]).await?).await).contains("a get of place 1"));
    Ok(())
}

/// Windows of teams that are parts of the world, side by side.
#[isles::test(places = 4)]
async fn a_window_of_a_team_is_of_its_members() -> Result<()> {
    let all: Vec<Place> = places().collect();
    let (front, ends) = (Team::from_places(&all[..3])?, Team::from_places(&[all[3], all[0]])?);
    let (one, other) = (Window::<u8>::new_on(&front, 11).await?, Window::<u8>::new_on(&ends, 11).await?);
    assert_eq!((one.size(), other.size(), other.place_of(0), other.rank_of(all[0])), (3, 2, all[3], Some(1)));
    assert_eq!((other.rank_of(all[1]), other.len_of(1), other.len_of(2)), (None, 11, 0));
    at!(all[3], {
        assert_eq!(other.rank(), 0);
        other.put_notify(1, 5, &[1, 2, 3]).await?;
    })
    .await?;
    at!(all[1], one.put(0, 0, &[9; 11]).await?).await?;
    other.notified(0, 1).await?;
    let mut part = [0; 11];
    other.read(0, &mut part)?;
    assert_eq!(part, [0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0]);
    let stranger = Team::from_places(&all[1..])?;
    assert!(said(Window::<u8>::new_on(&stranger, 1).await).contains("not a member"));
    Ok(())
}

#[isles::test(places = 2)]
async fn a_window_that_no_memory_has_is_refused() -> Result<()> {
    let text = said(Window::<u64>::new(usize::MAX).await);
    assert!(text.contains("allowed: what fits memory"), "{text}");
    let text = said(Window::<u64>::new(1 << 55).await);
    assert!(text.contains("no memory for a window of 36028797018963968 elements of 8 bytes each"), "{text}");
    let lens = said(Window::<u64>::with_lens(&Team::world(), &[1], WindowOptions::default()).await);
    assert!(lens.contains("1 lengths for a window of 2 places"), "{lens}");
    let empty = Window::<[f64; 3]>::new(0).await?;
    empty.put(1, 0, &[]).await?;
    empty.fence_everywhere().await
}

/// Fences at all places.
trait FenceEverywhere {
    async fn fence_everywhere(&self) -> Result<()>;
}

impl FenceEverywhere for Window<[f64; 3]> {
    async fn fence_everywhere(&self) -> Result<()> {
        finish(async {
            for place in places() {
                spawn_at!(place, self.fence().await?);
            }
        })
        .await
    }
}

/// More than goes in one message, and more than the memory that places share, in elements of odd sizes.
#[isles::test(places = 2)]
async fn long_accesses_are_whole() -> Result<()> {
    const LEN: usize = 100_003;
    let window = Window::<[u8; 3]>::new(LEN).await?;
    let elements: Vec<[u8; 3]> = (0..LEN).map(|i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]).collect();
    window.put(1, 1, &elements[1..]).await?;
    window.flush(1).await?;
    let mut read = vec![[0; 3]; LEN];
    window.get(1, 0, &mut read).await?;
    assert!(read == elements);
    let mut every = vec![[0; 3]; LEN / 7];
    window.get_strided(1, 1, Strided { block: 1, stride: 7 }, &mut every).await?;
    assert!(every.iter().zip(elements[1..].iter().step_by(7)).all(|(one, other)| one == other));
    Ok(())
}

/// A part is given back with the last handle: many more windows than memory has room for.
#[isles::test(places = 2)]
async fn windows_are_freed_with_their_last_handle() -> Result<()> {
    for round in 0..300_u64 {
        let window = Window::<u64>::new(1 << 12).await?;
        at!(here().next(), {
            window.put(0, 1, &[round]).await?;
            window.flush(0).await?;
        })
        .await?;
        let mut number = [0; 3];
        window.read(0, &mut number)?;
        assert_eq!(number, [0, round, 0]);
    }
    Ok(())
}

/// On the SCC's exclusive sections a message of 8 KB goes in pieces of 160 bytes, each of which its sender writes. A
/// put ends when all are written. A sender that spawns instead, and computes first, keeps its receiver waiting, unless
/// it has waited until all is sent.
#[cfg(feature = "chip")]
#[test]
fn who_waits_until_it_has_sent_keeps_nobody_waiting() {
    use isles::{Launch, ModelledChip, Protocol, now};
    const COMPUTES: Duration = Duration::from_millis(100);
    let heard = |puts: bool, waits: bool| {
        let launch = Launch::from_environment().unwrap().places(2).protocol(Protocol::Sections);
        let found = std::rc::Rc::new(std::cell::Cell::new(Duration::ZERO));
        let place = std::rc::Rc::clone(&found);
        let main = move || async move {
            let window = Window::<u64>::new(1024).await?;
            let begun = now();
            let there = async {
                at!(here().next(), {
                    window.notified(if puts { 0 } else { 1 }, 1).await?;
                    now()
                })
                .await
            };
            let sends = async {
                let data = vec![7; 1024];
                if puts {
                    window.put_notify(1, 0, &data).await?;
                } else {
                    spawn_at!(here().next(), window.put_notify(1, 0, &data).await?);
                }
                if waits {
                    isles::flush_sends().await;
                }
                work(Cycles(533_000 * COMPUTES.as_millis() as u64));
                Ok::<_, isles::Error>(())
            };
            let (mut there, mut sends) = (Box::pin(there), Box::pin(sends));
            let mut sent = false;
            let time = std::future::poll_fn(|context| {
                let heard = there.as_mut().poll(context);
                sent = sent || sends.as_mut().poll(context).is_ready();
                heard
            })
            .await?;
            assert!(sent);
            place.set(time - begun);
            Ok::<_, isles::Error>(())
        };
        launch.run_on_chip(ModelledChip::new("scc").unwrap(), main).unwrap().0.unwrap();
        found.get()
    };
    assert!(heard(true, false) < COMPUTES / 10);
    assert!(heard(false, true) < COMPUTES / 10);
    assert!(heard(false, false) > COMPUTES);
}
