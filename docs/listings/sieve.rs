//! Prime numbers out of a chain of filters: each takes out the multiples of one prime and sends the rest on.
//!
//! After the sieve of C. A. R. Hoare, "Communicating Sequential Processes" (1978), which he ascribes to M. D. McIlroy.
use isles::prelude::*;

const PRIMES: usize = 12;

/// Sends on what `prime` does not divide, until nobody wants any more.
async fn filter(prime: u64, numbers: Receiver<u64>, rest: Sender<u64>) -> isles::Result<()> {
    let mut numbers = numbers.stream();
    while let Some(number) = numbers.next().await? {
        if number % prime != 0 && rest.send(number).await.is_err() {
            break; // the next filter has gone
        }
    }
    Ok(())
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let mut primes = Vec::new();
    finish(async {
        let (first, mut numbers) = channel::<u64>(8);
        spawn(async move {
            let mut number = 2;
            while first.send(number).await.is_ok() {
                number += 1;
            }
        });
        let mut home = here();
        while primes.len() < PRIMES {
            let prime = numbers.recv().await?; // the first number that all filters let through
            primes.push(prime);
            let place = home.next(); // the next filter is at the next place, and so is its input
            let (rest, filtered) = channel_at::<u64>(place, 8).await?;
            spawn_at!(home, filter(prime, numbers, rest).await);
            (numbers, home) = (filtered, place);
        }
        Ok::<_, isles::Error>(()) // the last receiver goes, and with it the filters, one after the other
    })
    .await?;
    println!("{primes:?}");
    assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]);
    Ok(())
}
