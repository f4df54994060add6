//! Rounds of random programs over channels, on any machine: each sent value is received once and in order.
//!
//! A seed determines a round: channels with several homes and capacities, tasks that send in all ways and cancel some
//! sends, tasks that receive in all ways and leave. Each task records its sent or received values; the sums must agree
//! after each round. A task receives the values of another one in order if all receivers are at one place
//! (`docs/design/channels.md`, Order).

use isles::prelude::*;
use isles::{Error, Random, RecvError, Result, SendError, SendErrorKind, random_here, yield_now};
use std::collections::BTreeMap;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Number of values, and their checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Account {
    pub count: u64,
    sum: u64,
}

impl Account {
    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add((value + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17));
    }

    fn merge(self, other: Account) -> Account {
        Account { count: self.count + other.count, sum: self.sum.wrapping_add(other.sum) }
    }
}

/// Values sent and values received at one place.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Accounts {
    pub sent: Account,
    pub received: Account,
}

type Ends = (Sender<u64>, Receiver<u64>);

/// Last value that a task has received from each sending task over each channel.
struct Seen {
    in_order: bool,
    last: BTreeMap<(u64, usize), u64>,
}

impl Seen {
    fn note(&mut self, accounts: &PlaceLocal<Accounts>, channel: usize, value: u64) -> Result<()> {
        accounts.lock().received.add(value);
        let before = self.last.insert((value >> 32, channel), value);
        if self.in_order && before.is_some_and(|before| before >= value) {
            return Err(Error::message(format!("{value:#x} came after {before:x?}")));
        }
        Ok(())
    }
}

/// Sends `count` values in random ways; ways that also receive record the received values.
async fn produce(
    (seed, first, count): (u64, u64, u64),
    ends: Vec<Ends>,
    accounts: PlaceLocal<Accounts>,
    mut seen: Seen,
) -> Result<()> {
    let mut random = Random::stream(seed, first);
    for value in first..first + count {
        let number = random.below(ends.len() as u64) as usize;
        let (one, other) = (&ends[number], &ends[(number + 1) % ends.len()]);
        let limit = Duration::from_nanos(random.below(3_000));
        let sent: std::result::Result<(), SendError<u64>> = match random.below(8) {
            0 => select! {
                sent = one.0.send(value) => sent,
                sent = other.0.send(value) => sent,
            },
            1 => select! {
                sent = one.0.send(value) => sent,
                () = isles::sleep(limit) => Err(SendError { value, kind: SendErrorKind::DeadlinePassed }),
            },
            2 => select! {
                sent = one.0.send(value) => sent,
                got = one.1.recv() => {
                    seen.note(&accounts, number, got?)?;
                    Err(SendError { value, kind: SendErrorKind::Full })
                }
            },
            3 => select! {
                sent = one.0.send(value) => sent,
                default => Err(SendError { value, kind: SendErrorKind::Full }),
            },
            4 => one.0.try_send(value).await,
            5 => one.0.send_timeout(value, limit).await,
            _ => one.0.send(value).await,
        };
        match sent {
            Ok(()) => accounts.lock().sent.add(value),
            Err(error) if error.value != value => return Err(Error::message("another value came back")),
            Err(error) => match error.kind {
                SendErrorKind::Full | SendErrorKind::DeadlinePassed => yield_now().await,
                _ => return Err(error.into()),
            },
        }
    }
    Ok(())
}

/// Receives in random ways until the channel is closed or `left` values have arrived.
async fn consume(
    (seed, number, mut left): (u64, usize, u64),
    receiver: Receiver<u64>,
    accounts: PlaceLocal<Accounts>,
    mut seen: Seen,
) -> Result<()> {
    let mut random = Random::stream(seed, left);
    while left > 0 {
        let received = match random.below(6) {
            0 => select! {
                value = receiver.recv() => value,
                () = std::future::ready(()) => Err(RecvError::Empty),
            },
            1 => receiver.recv_timeout(Duration::from_nanos(random.below(3_000))).await,
            2 => receiver.try_recv().await,
            3 => {
                // Dropped after one poll.
                let look = std::future::poll_fn(|context| Poll::Ready(pin!(receiver.recv()).poll(context)));
                match look.await {
                    Poll::Ready(value) => value,
                    Poll::Pending => Err(RecvError::Empty),
                }
            }
            _ => receiver.recv().await,
        };
        match received {
            Ok(value) => {
                seen.note(&accounts, number, value)?;
                left -= 1;
            }
            Err(RecvError::Closed) => return Ok(()),
            Err(RecvError::Empty | RecvError::DeadlinePassed) => yield_now().await,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Runs a round, and checks that the sums of all sent and all received values since the creation of `accounts` agree.
///
/// # Errors
/// The sums differ, or a value arrived out of order.
pub async fn round(seed: u64, accounts: &PlaceLocal<Accounts>) -> Result<Accounts> {
    let mut random = random_here(seed);
    let place = |random: &mut Random| Place::new(random.below(place_count() as u64) as usize).unwrap();
    let mut ends: Vec<Ends> = Vec::new();
    for _ in 0..1 + random.below(2) {
        let capacity = [0, 0, 1, 2, 7, 16][random.below(6) as usize];
        ends.push(channel_at(place(&mut random), capacity).await?);
    }
    // Values of a task that also receives go to two places.
    let only = (random.below(2) == 0).then(|| place(&mut random));
    finish(async {
        for (number, (_, receiver)) in ends.iter().enumerate() {
            // Those that leave; and one that stays to the end.
            for left in [1 + random.below(9), 1 + random.below(20), u64::MAX] {
                let (to, receiver) = (only.unwrap_or_else(|| place(&mut random)), receiver.clone());
                let (what, in_order) = ((seed ^ left, number, left), only.is_some());
                spawn_at!(to, [what, in_order, receiver, accounts] {
                    consume(what, receiver, accounts.clone(), Seen { in_order, last: BTreeMap::new() }).await?;
                });
            }
        }
        finish(async {
            for task in 0..1 + random.below(3) {
                let (from, ends) = (only.unwrap_or_else(|| place(&mut random)), ends.clone());
                let (what, in_order) = ((seed, task << 32, 1 + random.below(12)), only.is_some());
                spawn_at!(from, [what, in_order, ends, accounts] {
                    produce(what, ends, accounts.clone(), Seen { in_order, last: BTreeMap::new() }).await?;
                });
            }
        })
        .await?;
        ends.iter().for_each(|(sender, _)| sender.close());
        Ok::<_, Error>(())
    })
    .await
    .map_err(|error| Error::message(format!("round {seed}: {error}")))?;
    let all = accounts.reduce(|all, one| Accounts {
        sent: all.sent.merge(one.sent),
        received: all.received.merge(one.received),
    });
    let all = all.await?;
    if all.sent != all.received {
        return Err(Error::message(format!(
            "round {seed}: {:?} sent, {:?} received",
            all.sent, all.received
        )));
    }
    Ok(all)
}
