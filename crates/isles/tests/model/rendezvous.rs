//! Channels without a buffer: a send completes when its value is received, and no `select!` matches itself.

use isles::SendErrorKind;
use isles::prelude::*;
use std::time::Duration;

/// Returns place `number` of the run, or the last one if there are fewer.
fn place(number: usize) -> Place {
    places().take(number + 1).next_back().expect("there is always the first place")
}

/// Runs workers at all places, which take `jobs` until they are stopped; each sends its sum and number of jobs to
/// `results`.
async fn work_until_stopped(
    jobs: &Receiver<u64>,
    stopped: &Receiver<()>,
    results: &Sender<(u64, u64)>,
) -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, [jobs, stopped, results] {
                let (mut sum, mut count) = (0, 0);
                loop {
                    select! {
                        job = jobs.recv() => { sum += job?; count += 1 },
                        _ = stopped.recv() => break,
                    }
                }
                results.send((sum, count)).await?;
            });
        }
    })
    .await
}

#[isles::test]
async fn what_a_rendezvous_has_sent_is_received() -> isles::Result<()> {
    for home in places() {
        for way in 0..3 {
            let (jobs, queue) = channel_at::<u64>(home, 0).await?;
            let (stop, stopped) = channel::<()>(1);
            let (results, all) = channel::<(u64, u64)>(8);
            let sent = finish(async {
                spawn(async move { work_until_stopped(&queue, &stopped, &results).await });
                let (mut sum, mut count) = (0, 0);
                for job in 1..=20 {
                    let is_sent = match way {
                        0 => jobs.send(job).await.is_ok(),
                        1 => select! {
                            sent = jobs.send(job) => sent.is_ok(),
                            () = isles::sleep(Duration::from_micros(3)) => false,
                        },
                        _ => match jobs.send_timeout(job, Duration::from_micros(3)).await {
                            Ok(()) => true,
                            Err(error) => {
                                assert_eq!((error.value, error.kind), (job, SendErrorKind::DeadlinePassed));
                                false
                            }
                        },
                    };
                    if is_sent {
                        (sum, count) = (sum + job, count + 1);
                    }
                }
                stop.close();
                Ok::<_, isles::Error>((sum, count))
            })
            .await?;
            let mut taken = (0, 0);
            while let Ok((sum, count)) = all.try_recv().await {
                taken = (taken.0 + sum, taken.1 + count);
            }
            assert_eq!(taken, sent, "way {way} over {home}");
        }
    }
    Ok(())
}

#[isles::test]
async fn a_selection_does_not_meet_itself() -> isles::Result<()> {
    for home in places() {
        let (sender, receiver) = channel_at::<u64>(home, 0).await?;
        let alone = select! {
            _ = sender.send(1) => "sent to nobody",
            _ = receiver.recv() => "received from nobody",
            () = isles::sleep(Duration::from_millis(2)) => "waits",
        };
        assert_eq!(alone, "waits");
        let none = select! {
            _ = sender.send(1) => "sent to nobody",
            _ = receiver.recv() => "received from nobody",
            default => "none",
        };
        assert_eq!(none, "none");
    }
    Ok(())
}

#[isles::test]
async fn of_two_selections_that_meet_one_sends_and_one_receives() -> isles::Result<()> {
    for round in 0..12 {
        let (home, there) = (place(round % 3), place(round / 3 % 3));
        let (sender, receiver) = channel_at::<u64>(home, 0).await?;
        let (tell, printed) = channel::<u64>(2);
        finish(async {
            for place in [here(), there] {
                spawn_at!(place, [sender, receiver, tell] {
                    let what = select! {
                        sent = sender.send(7) => { sent?; 1_u64 },
                        got = receiver.recv() => { assert_eq!(got?, 7); 2_u64 },
                    };
                    tell.send(what).await?;
                });
            }
        })
        .await?;
        assert_eq!(printed.recv().await? + printed.recv().await?, 3, "round {round}");
        assert!(receiver.try_recv().await.is_err(), "something stays behind");
    }
    Ok(())
}

#[isles::test]
async fn selections_that_wait_for_each_other_across_channels_all_go_on() -> isles::Result<()> {
    // Each member sends to one neighbour and receives from the other, in either order, until it has done both.
    for members in [2, 3, 5] {
        let mut ends = Vec::new();
        for member in 0..members {
            ends.push(channel_at::<u64>(place(member % 3), 0).await?);
        }
        finish(async {
            for member in 0..members {
                let (sender, receiver) = (ends[(member + 1) % members].0.clone(), ends[member].1.clone());
                spawn_at!(place(member * 2 % 3), [sender, receiver] {
                    let (mut has_sent, mut has_received) = (false, false);
                    while !(has_sent && has_received) {
                        match (has_sent, has_received) {
                            (false, false) => select! {
                                sent = sender.send(1) => { sent?; has_sent = true },
                                got = receiver.recv() => { got?; has_received = true },
                            },
                            (false, true) => { sender.send(1).await?; has_sent = true },
                            _ => { receiver.recv().await?; has_received = true },
                        }
                    }
                });
            }
        })
        .await?;
    }
    Ok(())
}

#[isles::test]
async fn those_who_do_not_wait_meet_those_who_do() -> isles::Result<()> {
    for home in places() {
        for there in places() {
            let (sender, receiver) = channel_at::<u64>(home, 0).await?;
            finish(async {
                spawn_at!(there, [receiver] {
                    assert_eq!(receiver.recv().await?, 5);
                });
                while sender.try_send(5).await.is_err() {
                    yield_now().await;
                }
                spawn_at!(there, [sender] {
                    select! {
                        sent = sender.send(6) => sent?,
                        () = isles::sleep(Duration::from_secs(20)) => panic!("nobody took it"),
                    }
                });
                loop {
                    match receiver.try_recv().await {
                        Ok(value) => break assert_eq!(value, 6),
                        Err(_) => yield_now().await,
                    }
                }
                Ok::<_, isles::Error>(())
            })
            .await?;
        }
    }
    Ok(())
}

/// A receive inside another future is given up like one that is a branch itself.
#[isles::test]
async fn a_selection_that_wraps_its_receive_meets_others() -> isles::Result<()> {
    for home in places() {
        for other in 0..3 {
            let (sender, receiver) = channel_at::<u64>(home, 0).await?;
            finish(async {
                spawn_at!(place(1), [other, sender, receiver] {
                    match other {
                        0 => drop(receiver.recv().await?),
                        1 => sender.send(5).await?,
                        _ => select! {
                            sent = sender.send(5) => sent?,
                            got = async { receiver.recv().await } => drop(got?),
                        },
                    }
                });
                let mut values = receiver.stream();
                select! {
                    sent = sender.send(1) => sent?,
                    got = values.next() => drop(got?),
                }
                Ok::<_, isles::Error>(())
            })
            .await?;
            assert!(receiver.try_recv().await.is_err(), "something stays behind");
        }
    }
    Ok(())
}

/// Sends three values concurrently, and receives them when all have arrived at the home of the channel.
async fn send_and_count(home: Place, sender: &Sender<u32>, receiver: &Receiver<u32>) -> isles::Result<()> {
    for value in 0..3 {
        let sender = sender.clone();
        spawn(async move { sender.send(value).await });
    }
    while at!(home, [receiver] receiver.buffered()).await? != Some(3) {
        yield_now().await;
    }
    for left in (0..3).rev() {
        receiver.recv().await?;
        assert_eq!(at!(home, [receiver] receiver.buffered()).await?, Some(left));
    }
    Ok(())
}

#[isles::test]
async fn a_channel_says_how_many_values_or_senders_wait() -> isles::Result<()> {
    for (home, capacity) in places().flat_map(|home| [(home, 0), (home, 4)]) {
        let (sender, receiver) = channel_at::<u32>(home, capacity).await?;
        assert_eq!(receiver.buffered().is_some(), home == here());
        finish(send_and_count(home, &sender, &receiver)).await?;
    }
    Ok(())
}
