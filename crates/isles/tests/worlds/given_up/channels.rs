//! Channels whose sends and receives are cancelled, whose ends leave a place and return, and whose values panic on
//! drop.

use super::fragile::Fragile;
use super::{interrupt, run_worlds};
use isles::prelude::*;
use isles::{Random, RecvError, Result, SendErrorKind, channel_at};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

thread_local! {
    /// Values whose send succeeded, values that may have been sent, and received values.
    static SENT: RefCell<BTreeSet<u64>> = RefCell::default();
    static UNSURE: RefCell<BTreeSet<u64>> = RefCell::default();
    static RECEIVED: RefCell<BTreeSet<u64>> = RefCell::default();
}

fn note_received(value: u64) {
    assert!(RECEIVED.with_borrow_mut(|received| received.insert(value)), "{value} came twice");
}

fn limit(random: &mut Random) -> Duration {
    Duration::from_micros(random.below(40))
}

/// Sends values from `first` on, each by a random operation that may be cancelled.
async fn produce(seed: u64, first: u64, sender: &Sender<Fragile>) -> Result<()> {
    let mut random = Random::stream(seed, first);
    for value in first..first + 1 + random.below(30) {
        let limit = limit(&mut random);
        let sent = match random.below(4) {
            0 => {
                interrupt("services/channel/mod try_send", &mut random, sender.try_send(Fragile(value))).await
            }
            1 => {
                let sent = sender.send_timeout(Fragile(value), limit);
                interrupt("services/channel/mod send_timeout", &mut random, sent).await
            }
            _ => interrupt("services/channel/mod send", &mut random, sender.send(Fragile(value))).await,
        };
        match sent {
            Some(Ok(())) => drop(SENT.with_borrow_mut(|sent| sent.insert(value))),
            Some(Err(error)) => {
                let is_explained = matches!(error.kind, SendErrorKind::Full | SendErrorKind::DeadlinePassed);
                assert!(is_explained, "{:?}", error.kind);
                assert_eq!(error.value.into_number(), value, "another value came back");
            }
            None => drop(UNSURE.with_borrow_mut(|unsure| unsure.insert(value))),
        }
    }
    Ok(())
}

/// Receives until the channel is closed, by operations that may be cancelled.
async fn consume(seed: u64, number: u64, receiver: &Receiver<Fragile>) -> Result<()> {
    let mut random = Random::stream(seed, 1 << 40 | number);
    loop {
        let limit = limit(&mut random);
        let received = match random.below(5) {
            0 => interrupt("services/channel/mod try_recv", &mut random, receiver.try_recv()).await,
            1 => {
                let received = receiver.recv_timeout(limit);
                interrupt("services/channel/mod recv_timeout", &mut random, received).await
            }
            2 => {
                let mut values = receiver.stream();
                let next = interrupt("services/channel/mod next", &mut random, values.next()).await;
                match next.transpose()? {
                    None => None,
                    Some(Some(value)) => Some(Ok(value)),
                    Some(None) => Some(Err(RecvError::Closed)),
                }
            }
            3 => {
                // In a branch of a `select!` that another branch ends.
                let received = select! {
                    received = receiver.recv() => received,
                    _ = yield_now() => Err(RecvError::Empty),
                };
                Some(received)
            }
            _ => interrupt("services/channel/mod recv", &mut random, receiver.recv()).await,
        };
        match received {
            Some(Ok(value)) => note_received(value.into_number()),
            Some(Err(RecvError::Closed)) => return Ok(()),
            None | Some(Err(RecvError::Empty | RecvError::DeadlinePassed)) => yield_now().await,
            Some(Err(error)) => return Err(isles::Error::from(error)),
        }
    }
}

async fn program(seed: u64) -> Result<()> {
    for set in [&SENT, &UNSURE, &RECEIVED] {
        set.with_borrow_mut(BTreeSet::clear);
    }
    let mut random = Random::stream(seed, 0);
    let any =
        |random: &mut Random| Place::new(random.below(place_count() as u64) as usize).expect("it is there");
    let (home, capacity) = (any(&mut random), [0, 1, 2, 16, 64][random.below(5) as usize]);
    let made =
        interrupt("services/channel/mod channel_at", &mut random, channel_at::<Fragile>(home, capacity))
            .await;
    let (sender, receiver) = match made {
        Some(made) => made?,
        None => channel_at(home, capacity).await?,
    };
    finish(async {
        for number in 0..1 + random.below(3) {
            let place = any(&mut random);
            spawn_at!(place, [seed, number, receiver] consume(seed, number, &receiver).await?);
        }
        for turn in 0..1 + random.below(3) {
            // The ends leave with the tasks of a round, and return with those of the next.
            finish(async {
                for task in 0..1 + random.below(3) {
                    let (place, first) = (any(&mut random), (turn * 10 + task) << 8);
                    spawn_at!(place, [seed, first, sender] produce(seed, first, &sender).await?);
                }
            })
            .await?;
            for _ in 0..random.below(40) {
                yield_now().await;
            }
        }
        drop(sender);
        Ok::<_, isles::Error>(())
    })
    .await?;
    let (sent, unsure, received) = (SENT.take(), UNSURE.take(), RECEIVED.take());
    let lost: Vec<_> = sent.difference(&received).collect();
    assert!(lost.is_empty(), "sent, and not received: {lost:?}");
    let invented: Vec<_> =
        received.iter().filter(|value| !sent.contains(value) && !unsure.contains(value)).collect();
    assert!(invented.is_empty(), "received, and not sent: {invented:?}");
    let is_closed = at!(home, [receiver] matches!(receiver.recv().await, Err(RecvError::Closed)));
    assert!(is_closed.await?);
    Ok(())
}

#[test]
fn no_value_is_lost_or_doubled() {
    run_worlds("channels", program);
}
