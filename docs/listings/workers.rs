//! A pool of workers at all places: jobs go out over one channel, results come back over another, in time or not.
use isles::prelude::*;
use std::pin::pin;
use std::time::Duration;

const JOBS: u64 = 50;
const NUMBERS: u64 = 20_000; // of a job

/// Returns the number of steps from `number` to 1: halved if even, otherwise tripled plus one.
fn steps(mut number: u64) -> u64 {
    let mut steps = 0;
    while number > 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

/// The most steps that a number of this job takes, and the number.
fn longest(job: u64) -> (u64, u64) {
    let (mut longest, mut all) = ((0, 0), 0);
    for number in NUMBERS * job + 1..=NUMBERS * (job + 1) {
        let steps = steps(number);
        longest = longest.max((steps, number));
        all += steps;
    }
    work(Cycles(10 * all)); // on a modelled chip; on a real machine nothing changes
    longest
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let (jobs, queue) = channel::<u64>(0); // no buffer: a job goes to a worker that waits for one
    let (results, answers) = channel::<((u64, u64), Place)>(16);
    let all = finish(async {
        for place in places() {
            spawn_at!(place, {
                let mut jobs = queue.stream();
                while let Some(job) = jobs.next().await? {
                    results.send((longest(job), here())).await?;
                }
            });
        }
        drop(results); // only the workers send
        let mut late = pin!(isles::sleep(Duration::from_secs(30)));
        let (mut all, mut next) = (Vec::new(), 0);
        while next < JOBS {
            select! {
                sent = jobs.send(next) => {
                    sent?;
                    next += 1;
                }
                answer = answers.recv() => all.push(answer?), // else all would wait for room, for ever
                () = late.as_mut() => return Err(isles::Error::message("the workers are too slow")),
            }
        }
        drop(jobs); // the workers end when they have done what was sent
        while all.len() < JOBS as usize {
            select! {
                answer = answers.recv() => all.push(answer?),
                () = late.as_mut() => return Err(isles::Error::message("the workers are too slow")),
            }
        }
        Ok(all)
    })
    .await?;
    let ((steps, number), _) = all.iter().max().expect("there were jobs");
    println!("of 1 to {}, {number} takes longest: {steps} steps", NUMBERS * JOBS);
    let shares = places().map(|place| all.iter().filter(|answer| answer.1 == place).count());
    println!("jobs by place: {:?}", shares.collect::<Vec<_>>());
    assert_eq!((all.len(), *steps, *number), (50, 524, 837_799));
    Ok(())
}
