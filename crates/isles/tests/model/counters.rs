//! The counters of channels, members, windows, aggregators and shared objects, on several machines, in the report of
//! a run.

use isles::counters::{COUNTERS, CounterId, CounterKind};
use isles::prelude::*;
use isles::{Combine, Launch, Machine, Result, RunReport};

/// Bytes of a slice that is lent, not copied into a message.
const LONG: usize = 5_000;

/// Runs a program of two places that uses each service.
async fn program() -> Result<()> {
    let other = Place::new(1).expect("there are two");
    let (sender, receiver) = isles::channel::<u8>(1);
    let state = PlaceLocal::new(|| 0_u64).await?;
    let items = Aggregator::new(&state, |state: &mut u64, item: u64| *state += item).await?;
    let window = Window::<u64>::new(2).await?;
    let shared = Shared::new(0_u64).await?;
    finish(async {
        spawn_at!(other, {
            for value in 0..3 {
                sender.send(value).await?;
            }
            Team::world().send(0, &1_u8).await?;
            Team::world().send_slice(0, &[7_u8; LONG]).await?;
            window.put(0, 0, &[5]).await?;
            window.accumulate(0, 1, &[1], Combine::Sum).await?;
            let mut number = [0];
            window.get(0, 0, &mut number).await?;
            *shared.write().await? += 1;
            assert_eq!(*shared.read().await?, 1);
        });
        for item in 0..10 {
            items.push(other, item).await?;
        }
        for value in 0..3 {
            assert_eq!(receiver.recv().await?, value);
        }
        assert_eq!(Team::world().recv::<u8>(1).await?, 1);
        let mut slice = [0_u8; LONG];
        Team::world().recv_slice(1, &mut slice).await?;
        assert_eq!(slice, [7; LONG]);
        Ok::<_, isles::Error>(())
    })
    .await?;
    assert_eq!(*shared.read().await?, 1);
    Ok(())
}

/// Checks the counters and their sums over all places; counters that depend on the order of events are not exact.
fn check(report: &RunReport, machine: &str) {
    let counted = |id| report.count(id);
    assert_eq!(counted(CounterId::ChannelsMade), 1, "{machine}");
    assert_eq!((counted(CounterId::ChannelSent), counted(CounterId::ChannelReceived)), (3, 3), "{machine}");
    assert_eq!(counted(CounterId::MemberSent), 2, "{machine}");
    assert_eq!(counted(CounterId::MemberRead), 1, "{machine}");
    let accesses = [CounterId::WindowPuts, CounterId::WindowGets, CounterId::WindowUpdates].map(counted);
    assert_eq!(accesses, [1, 1, 1], "{machine}");
    assert_eq!((counted(CounterId::ItemsPushed), counted(CounterId::ItemsApplied)), (10, 10), "{machine}");
    assert!((1..=10).contains(&counted(CounterId::BucketsSent)), "{machine}");
    assert_eq!((counted(CounterId::ObjectWrites), counted(CounterId::ObjectReads)), (1, 2), "{machine}");
    let text = report.counters();
    for counter in COUNTERS.iter().filter(|counter| counter.kind == CounterKind::Count) {
        let line = text.lines().find(|line| line.split(' ').next() == Some(counter.name));
        let sum = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        assert_eq!(sum.unwrap_or_default(), counted(counter.id), "{machine}: {}\n{text}", counter.name);
    }
}

#[test]
fn each_service_counts_what_it_does_and_the_report_has_a_line_for_each_counter_that_is_not_0() {
    let (result, report, _) = isles::simulate(2, isles::Plan::calm(3), program);
    result.unwrap();
    check(&report, "loopback");
    assert!(
        (1..=3).contains(&report.count(CounterId::WindowByMessage)),
        "where the part lies is asked first"
    );
    assert!(report.count(CounterId::ObjectHandOvers) > 0);
    let (result, report) =
        Launch::from_environment().unwrap().machine(Machine::Threads).places(2).run(program).unwrap();
    result.unwrap();
    check(&report, "threads");
    assert!(report.count(CounterId::WindowByMessage) <= 1, "each part is mapped");
}
