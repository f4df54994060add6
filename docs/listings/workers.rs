//! A pool of workers at all places: jobs go out over one channel, results come back over another, in time or not.
use isles::prelude::*;
use std::pin::pin;
use std::time::Duration;

const JOBS: u64 = 60;

/// How many steps `number` takes to 1: halved if even, else tripled and one more.
fn steps(mut number: u64) -> u64 {
    let mut steps = 0;
    while number > 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    work(Cycles(10 * steps)); // on a modelled chip; on a real machine nothing changes
    steps
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let (jobs, queue) = channel::<u64>(0); // no buffer: a job goes to a worker that waits for one
    let (results, answers) = channel::<(u64, u64)>(16);
    let all = finish(async {
        for place in places() {
            spawn_at!(place, {
                let mut jobs = queue.stream();
                while let Some(job) = jobs.next().await? {
                    results.send((steps(job), job)).await?;
                }
            });
        }
        drop(results); // only the workers send
        let mut late = pin!(isles::sleep(Duration::from_secs(30)));
        let (mut all, mut next) = (Vec::new(), 1);
        while next <= JOBS {
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
    let longest = all.iter().max().expect("there were jobs");
    println!("of 1 to {JOBS}, {} takes longest: {} steps", longest.1, longest.0);
    assert_eq!((all.len(), longest), (60, &(112, 55)));
    Ok(())
}
