//! Channels between running tasks, on every machine.

use isles::prelude::*;
use isles::{ErrorKind, Launch, Machine, RecvError, SendErrorKind};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Returns place `number` of the run, or the last one if there are fewer.
fn place(number: usize) -> Place {
    places().take(number + 1).next_back().expect("there is always the first place")
}

#[isles::test]
async fn values_arrive_in_order_whatever_the_capacity() -> isles::Result<()> {
    for capacity in [0, 1, 7, 1024] {
        for from in places() {
            let (sender, receiver) = channel::<u64>(capacity);
            finish(async {
                spawn_at!(from, {
                    for value in 0..200_u64 {
                        sender.send(value).await?;
                    }
                });
                for value in 0..200 {
                    assert_eq!(receiver.recv().await?, value, "capacity {capacity} from {from}");
                }
                Ok::<_, isles::Error>(())
            })
            .await?;
        }
    }
    Ok(())
}

/// A task that computes at the home serves requests that arrived meanwhile before it takes the next value itself.
#[test]
fn a_value_goes_to_whom_asked_first_also_while_the_home_computed() {
    static HAS_ASKED: AtomicBool = AtomicBool::new(false);
    let main = || async {
        let (sender, receiver) = channel::<u32>(4);
        for value in 0..3 {
            sender.send(value).await?;
        }
        let there = place(1);
        finish(async {
            let own = receiver.clone();
            assert_eq!(own.recv().await?, 0);
            spawn_at!(there, [receiver] {
                let mut received = pin!(receiver.recv());
                let value = poll_fn(|context| {
                    let polled = received.as_mut().poll(context);
                    HAS_ASKED.store(true, Ordering::Release);
                    polled
                })
                .await?;
                assert_eq!(value, 1);
            });
            // The spawn is already sent, so this may be one piece of work.
            while !HAS_ASKED.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            assert_eq!(own.recv().await?, 2);
            Ok::<_, isles::Error>(())
        })
        .await
    };
    let launch = Launch::from_environment().unwrap().machine(Machine::Threads).places(2);
    launch.run(main).unwrap().0.unwrap();
}

#[isles::test]
async fn a_receiver_at_another_place_gets_each_value_once() -> isles::Result<()> {
    for capacity in [0, 3] {
        let (sender, receiver) = channel::<u64>(capacity);
        let sums = PlaceLocal::new(|| 0_u64).await?;
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    while let Ok(value) = receiver.recv().await {
                        *sums.lock() += value;
                    }
                });
            }
            for value in 1..=300 {
                sender.send(value).await?;
            }
            sender.close();
            Ok::<_, isles::Error>(())
        })
        .await?;
        assert_eq!(sums.reduce(|one, other| one + other).await?, 300 * 301 / 2);
    }
    Ok(())
}

#[isles::test]
async fn the_last_sender_anywhere_closes_the_channel() -> isles::Result<()> {
    for capacity in [0, 2, 64] {
        let (sender, receiver) = channel::<(u32, String)>(capacity);
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let here = here().index() as u32;
                    for number in 0..10_u32 {
                        sender.send((here, format!("{here}.{number}"))).await?;
                    }
                });
            }
            drop(sender);
            let (mut count, mut values) = (0, receiver.stream());
            while let Some((from, text)) = values.next().await? {
                assert!(text.starts_with(&format!("{from}.")));
                count += 1;
            }
            assert_eq!(count, 10 * place_count());
            Ok::<_, isles::Error>(())
        })
        .await?;
        assert_eq!(receiver.recv().await, Err(RecvError::Closed));
    }
    Ok(())
}

#[isles::test]
async fn a_send_that_nobody_can_receive_has_its_value_back() -> isles::Result<()> {
    let last = place(3);
    let (sender, receiver) = channel::<String>(1);
    sender.send("kept".to_owned()).await?;
    finish(async {
        spawn_at!(last, {
            // The send waits for room that never comes.
            let error = sender.send("mine".to_owned()).await.expect_err("nobody receives");
            assert_eq!((error.value.as_str(), error.kind), ("mine", SendErrorKind::Closed));
            let error = isles::Error::from(sender.send(String::new()).await.expect_err("it is closed"));
            assert_eq!(error.kind(), &ErrorKind::Closed);
        });
        drop(receiver);
        Ok::<_, isles::Error>(())
    })
    .await
}

#[isles::test]
async fn what_does_not_wait_says_so() -> isles::Result<()> {
    let (sender, receiver) = channel::<u8>(1);
    for place in places() {
        at!(place, {
            assert_eq!(receiver.try_recv().await, Err(RecvError::Empty));
            assert_eq!(receiver.recv_timeout(Duration::from_millis(1)).await, Err(RecvError::DeadlinePassed));
            sender.try_send(1).await?;
            let full = sender.try_send(2).await.expect_err("there is no room");
            assert_eq!((full.value, full.kind), (2, SendErrorKind::Full));
            let late = sender.send_timeout(3, Duration::from_millis(1)).await.expect_err("there is no room");
            assert_eq!((late.value, late.kind), (3, SendErrorKind::DeadlinePassed));
            assert_eq!((receiver.try_recv().await?, receiver.capacity()), (1, 1));
        })
        .await?;
    }
    Ok(())
}

#[isles::test]
async fn receives_that_are_given_up_do_not_turn_the_order_round() -> isles::Result<()> {
    for home in places() {
        for there in places() {
            let (sender, receiver) = channel_at::<u64>(home, 16).await?;
            for value in 0..12 {
                sender.send(value).await?;
            }
            sender.close();
            at!(there, [home, receiver] {
                let mut got = Vec::new();
                for turn in 0..6 {
                    // A branch that is not chosen, a time-out, and a future that is dropped after one poll.
                    match turn % 3 {
                        0 => select! {
                            value = receiver.recv() => got.push(value?),
                            () = std::future::ready(()) => {}
                        },
                        1 => got.extend(receiver.recv_timeout(Duration::ZERO).await.ok()),
                        _ => {
                            let poll = std::future::poll_fn(|context| {
                                Poll::Ready(pin!(receiver.recv()).poll(context))
                            });
                            if let Poll::Ready(value) = poll.await {
                                got.push(value?);
                            }
                        }
                    }
                }
                while let Ok(value) = receiver.recv().await {
                    got.push(value);
                }
                assert_eq!(got, (0..12).collect::<Vec<u64>>(), "from {home} at {}", here());
            })
            .await?;
        }
    }
    Ok(())
}

#[isles::test]
async fn nobody_waits_for_room_that_another_place_only_keeps() -> isles::Result<()> {
    for capacity in [1, 2, 8, 64] {
        let (sender, receiver) = channel::<u64>(capacity);
        finish(async {
            spawn_at!(place(1), {
                for value in 0..200 {
                    sender.send(value).await?;
                }
            });
            for value in 0..200 {
                assert_eq!(receiver.recv().await?, value);
            }
            Ok::<_, isles::Error>(())
        })
        .await?;
        at!(place(2), {
            for value in 0..capacity {
                let sent = sender.try_send(value as u64).await;
                assert!(sent.is_ok(), "{value} of {capacity}: {sent:?}");
            }
            let full = sender.try_send(0).await.expect_err("it is full");
            assert_eq!(full.kind, SendErrorKind::Full, "capacity {capacity}");
        })
        .await?;
        for value in 0..capacity {
            assert_eq!(receiver.recv().await?, value as u64);
        }
    }
    Ok(())
}

#[isles::test]
async fn ends_are_cloned_whatever_the_values_are() -> isles::Result<()> {
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Job(String);
    let (sender, receiver) = channel::<Job>(1);
    sender.clone().send(Job("wash up".to_owned())).await?;
    assert_eq!(receiver.clone().recv().await?.0, "wash up");
    Ok(())
}

#[isles::test]
async fn a_channel_can_be_sent_over_a_channel() -> isles::Result<()> {
    let (requests, queue) = channel::<(u64, Sender<u64>)>(0);
    let server = place(2);
    finish(async {
        spawn_at!(server, {
            let mut requests = queue.stream();
            while let Some((number, answer)) = requests.next().await? {
                answer.send(number * number).await?;
            }
        });
        drop(queue);
        for number in 0..20 {
            let (answer, receiver) = channel(0);
            requests.send((number, answer)).await?;
            assert_eq!(receiver.recv().await?, number * number);
        }
        drop(requests);
        Ok::<_, isles::Error>(())
    })
    .await
}

/// A stream keeps one receive for all values: it is given up while it waits, used again, and used after its end.
#[isles::test]
async fn a_stream_goes_on_after_waits_that_were_given_up_and_stays_ended() -> isles::Result<()> {
    for capacity in [0, 3] {
        for home in [place(0), place(1)] {
            let (sender, receiver) = channel_at::<u64>(home, capacity).await?;
            finish(async {
                spawn_at!(place(1), {
                    let (mut values, mut given_up) = (receiver.stream(), 0);
                    for expected in 0..6 {
                        let value = loop {
                            match isles::timeout(Duration::from_millis(1), values.next()).await {
                                Ok(value) => break value?,
                                Err(_) => given_up += 1,
                            }
                        };
                        assert_eq!(value, Some(expected), "capacity {capacity}, home {home}");
                    }
                    assert!(given_up > 0, "no wait was given up");
                    assert_eq!([values.next().await?, values.next().await?], [None, None]);
                });
                for value in 0..6 {
                    isles::sleep(Duration::from_millis(5)).await;
                    sender.send(value).await?;
                }
                sender.close();
                Ok::<_, isles::Error>(())
            })
            .await?;
        }
    }
    Ok(())
}

#[isles::test]
async fn of_several_channels_the_one_that_is_ready_is_chosen() -> isles::Result<()> {
    let (first, second) = (place(1), place(2));
    let (even, evens) = channel::<u32>(0);
    let (odd, odds) = channel_at::<u32>(first, 0).await?;
    let (taken, all) = channel::<u32>(64);
    finish(async {
        spawn_at!(first, {
            for number in 0..20_u32 {
                even.send(2 * number).await?;
            }
        });
        spawn_at!(second, {
            for number in 0..20_u32 {
                odd.send(2 * number + 1).await?;
            }
        });
        for _ in 0..40 {
            let number = select! {
                number = evens.recv() => number?,
                number = odds.recv() => number?,
            };
            taken.send(number).await?;
        }
        Ok::<_, isles::Error>(())
    })
    .await?;
    let mut numbers = Vec::new();
    while let Ok(number) = all.try_recv().await {
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    Ok(())
}

#[isles::test]
async fn a_select_sends_to_one_channel_only() -> isles::Result<()> {
    let (left, right) = (place(1), place(2));
    let (to_left, from_left) = channel_at::<u64>(left, 2).await?;
    let (to_right, from_right) = channel_at::<u64>(right, 0).await?;
    let sums = PlaceLocal::new(|| 0_u64).await?;
    finish(async {
        spawn_at!(left, {
            let mut values = from_left.stream();
            while let Some(value) = values.next().await? {
                *sums.lock() += value;
            }
        });
        spawn_at!(right, {
            let mut values = from_right.stream();
            while let Some(value) = values.next().await? {
                *sums.lock() += value;
            }
        });
        for value in 1..=100 {
            select! {
                sent = to_left.send(value) => sent?,
                sent = to_right.send(value) => sent?,
            }
        }
        to_left.close();
        to_right.close();
        Ok::<_, isles::Error>(())
    })
    .await?;
    assert_eq!(sums.reduce(|one, other| one + other).await?, 5050);
    Ok(())
}

#[isles::test]
async fn a_default_does_not_wait_and_other_futures_take_part() -> isles::Result<()> {
    let (sender, receiver) = channel_at::<u8>(place(1), 1).await?;
    let nothing = select! {
        value = receiver.recv() => Some(value?),
        default => None,
    };
    assert_eq!(nothing, None);
    let late = select! {
        value = receiver.recv() => Some(value?),
        () = std::future::ready(()) => None,
    };
    assert_eq!(late, None);
    select! {
        sent = sender.send(7) => sent?,
        default => panic!("there is room"),
    }
    let full = select! {
        sent = sender.send(8) => sent.is_ok(),
        default => false,
    };
    assert!(!full);
    assert_eq!(receiver.recv().await?, 7);
    Ok(())
}

#[isles::test]
async fn what_is_not_allowed_is_said() -> isles::Result<()> {
    let error = channel_at::<u8>(here(), 2_000_000).await.expect_err("more than 2^20");
    assert_eq!(error.kind(), &ErrorKind::Misused);
    assert!(
        error.to_string().contains("the capacity of a channel is 2000000; allowed: 0 to 1048576"),
        "{error}"
    );
    let (sender, receiver) = channel::<u8>(4);
    sender.send(1).await?;
    receiver.close();
    let refused = sender.send(2).await.expect_err("it is closed");
    assert_eq!((refused.value, refused.kind.clone()), (2, SendErrorKind::Closed));
    assert_eq!(refused.to_string(), "the channel is closed");
    assert_eq!(receiver.recv().await?, 1);
    assert_eq!(receiver.recv().await, Err(RecvError::Closed));
    Ok(())
}

/// Kills the process of this place, as a fault would.
fn die() {
    std::process::exit(9);
}

#[isles::test(machines = [processes])]
async fn a_death_ends_each_wait_and_a_sender_has_its_value_back() -> isles::Result<()> {
    let (victim, other) = (place(1), place(2));
    let (to_victim, from_victim) = channel_at::<u64>(victim, 0).await?;
    let (kept, left) = channel::<u64>(4);
    let (forgotten, mine) = channel::<u64>(4);
    let ended = finish(async {
        // The victim has the last sender of one channel and the last receiver of another.
        spawn_at!(victim, {
            kept.send(7).await?;
            std::future::pending::<()>().await;
            drop((kept, mine));
        });
        drop((kept, mine));
        spawn_at!(other, {
            let error = to_victim.send(1).await.expect_err("nobody receives there");
            assert_eq!((error.value, error.kind), (1, SendErrorKind::DeadPlace(victim.id())));
        });
        assert_eq!(left.recv().await?, 7);
        spawn_at!(victim, die());
        // Noticed by the count of handles, once the handles of the dead place are settled.
        assert_eq!(left.recv().await, Err(RecvError::Closed));
        let refused = loop {
            match forgotten.send(2).await {
                Ok(()) => isles::yield_now().await,
                Err(error) => break error,
            }
        };
        assert_eq!((refused.value, refused.kind), (2, SendErrorKind::Closed));
        assert_eq!(from_victim.recv().await, Err(RecvError::DeadPlace(victim.id())));
        Ok::<_, isles::Error>(())
    });
    let error = ended.await.expect_err("tasks were lost there");
    assert!(error.to_string().contains("DeadPlace"), "{error}");
    Ok(())
}

#[isles::test(machines = [processes])]
async fn a_stream_to_a_place_that_dies_ends_with_its_death_and_the_value_that_was_not_sent()
-> isles::Result<()> {
    const RECEIVED: u64 = 10_000;
    let victim = place(1);
    let (sender, receiver) = channel_at::<u64>(victim, 64).await?;
    let ended = finish(async {
        spawn_at!(victim, {
            for value in 0..RECEIVED {
                assert_eq!(receiver.recv().await?, value);
            }
            die();
        });
        let mut value = 0;
        let error = loop {
            match sender.send(value).await {
                Ok(()) => value += 1,
                Err(error) => break error,
            }
        };
        assert!(value >= RECEIVED, "only {value} were sent");
        let dead = SendErrorKind::DeadPlace(victim.id());
        assert_eq!((error.value, error.kind), (value, dead.clone()));
        for value in 0..100 {
            let error = sender.send(value).await.expect_err("nobody receives there");
            assert_eq!((error.value, error.kind), (value, dead.clone()));
        }
        Ok::<_, isles::Error>(())
    });
    let error = ended.await.expect_err("a task was lost there");
    assert!(error.to_string().contains("DeadPlace"), "{error}");
    Ok(())
}

#[isles::test]
async fn a_select_in_a_body_that_travels_is_seen_through_and_a_body_returns_as_an_async_function()
-> isles::Result<()> {
    let (jobs, queue) = channel::<u32>(0);
    let (stop, stopped) = channel::<()>(0);
    let (limit, worker) = (7, place(1));
    let ended = finish(async {
        spawn_at!(worker, {
            loop {
                select! {
                    job = queue.recv() => {
                        if job? == limit {
                            return Err(isles::Error::message("job 7 broke"));
                        }
                    }
                    () = isles::sleep(Duration::MAX) => {}
                    _ = stopped.recv() => break,
                }
            }
            Ok(())
        });
        for job in [1, 7] {
            jobs.send(job).await?;
        }
        Ok::<_, isles::Error>(())
    });
    let error = ended.await.expect_err("it says so");
    assert!(error.to_string().contains("job 7 broke"), "{error}");
    drop(stop);
    Ok(())
}

#[isles::test]
async fn the_last_expression_of_a_body_may_be_a_select_and_each_branch_a_result() -> isles::Result<()> {
    let (numbers, given) = channel::<u32>(1);
    numbers.send(3).await?;
    let there = place(1);
    let double = at!(there, {
        let two = 2;
        select! {
            number = given.recv() => Ok(two * number?),
            () = isles::sleep(Duration::MAX) => Err(isles::Error::message("too late")),
        }
    });
    assert_eq!(double.await?, 6);
    Ok(())
}

#[isles::test(machines = [loopback])]
async fn a_block_ends_a_branch_also_before_one_that_begins_with_parentheses() -> isles::Result<()> {
    let (numbers, given) = channel::<(u32, u32)>(1);
    let mut taken = Vec::new();
    for number in 0..2 {
        select! {
            sent = numbers.send((number, number)) => { sent?; }
            () = isles::sleep(Duration::MAX) => unreachable!(),
        }
        select! {
            pair = given.recv() => if let Ok((left, _)) = pair { taken.push(left) }
            () = isles::sleep(Duration::MAX) => {}
            default => unreachable!(),
        }
    }
    assert_eq!(taken, [0, 1]);
    Ok(())
}
