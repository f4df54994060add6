//! What a capture costs, for counting instructions.
//!
//! `ISLES_MACHINE=loopback ISLES_PLACES=2 valgrind --tool=callgrind travel handle 20000`, and the same with half as
//! many: the difference is what the other half costs. Two forms each of one thing are there to be compared with each
//! other: tasks that take a `number` or a `handle` along, and 1,024 numbers that go to the next place and back through
//! a `generic` function or a `concrete` one. An `empty` call goes to the next place and
//! comes back; one `here` stays.
use isles::prelude::*;

async fn tasks_with_a_number(count: u64) -> isles::Result<()> {
    let place = here().next();
    let number = count;
    finish(async { (0..count).for_each(|_| spawn_at!(place, assert!(number > 0))) }).await
}

async fn tasks_with_a_handle(count: u64) -> isles::Result<()> {
    let place = here().next();
    let sum = PlaceLocal::new(|| 0_u64).await?;
    finish(async { (0..count).for_each(|_| spawn_at!(place, *sum.lock() += 1)) }).await?;
    assert_eq!(sum.reduce(|one, other| one + other).await?, count);
    Ok(())
}

async fn echo<T: isles::CanTravel + isles::CanReturn + Clone>(value: &T) -> isles::Result<T> {
    at!(here().next(), value.clone()).await
}

async fn echo_numbers(value: &Vec<f64>) -> isles::Result<Vec<f64>> {
    at!(here().next(), value.clone()).await
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let form = arguments.next().unwrap_or_default();
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1000);
    let numbers = vec![1.5_f64; 1024];
    match form.as_str() {
        "number" => tasks_with_a_number(count).await?,
        "empty" => {
            for _ in 0..count {
                at!(here().next(), ()).await?;
            }
        }
        "here" => {
            for _ in 0..count {
                at!(here(), ()).await?;
            }
        }
        "handle" => tasks_with_a_handle(count).await?,
        "generic" => {
            for _ in 0..count {
                assert_eq!(echo(&numbers).await?.len(), numbers.len());
            }
        }
        "concrete" => {
            for _ in 0..count {
                assert_eq!(echo_numbers(&numbers).await?.len(), numbers.len());
            }
        }
        _ => eprintln!("travel empty|here|number|handle|generic|concrete COUNT"),
    }
    Ok(())
}
