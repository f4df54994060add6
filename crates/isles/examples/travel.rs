//! What a capture costs, for counting instructions.
//!
//! `ISLES_MACHINE=loopback ISLES_PLACES=2 valgrind --tool=callgrind travel handle 20000`, and the same with half as
//! many: the difference is what the other half costs. Two forms each of one thing are there to be compared with each
//! other: tasks that take a `number` or a `handle` along, and 1,024 numbers that go to the next place and back through
//! a `generic` function or a `concrete` one. An `empty` call goes to the next place and comes back; one `here` stays. A
//! `structure` of four fields, or a list of 1,000 `structures`, goes to the next place by serde; what comes back is a
//! number.
use isles::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Arc {
    source: u32,
    target: u32,
    length: f64,
    is_open: bool,
}

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

async fn structures(count: u64) -> isles::Result<()> {
    let arc = |number| Arc { source: number, target: number / 2, length: f64::from(number), is_open: true };
    let arcs: Vec<Arc> = (0..1000).map(arc).collect();
    for _ in 0..count {
        assert_eq!(at!(here().next(), arcs.len()).await?, 1000);
    }
    Ok(())
}

async fn structure(count: u64) -> isles::Result<()> {
    let arc = Arc { source: 300, target: 150, length: 1.5, is_open: true };
    for _ in 0..count {
        assert!(
            at!(here().next(), [arc] arc.is_open && arc.length > f64::from(arc.source - arc.target * 2))
                .await?
        );
    }
    Ok(())
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
        "structure" => structure(count).await?,
        "structures" => structures(count).await?,
        _ => eprintln!("travel empty|here|number|handle|generic|concrete|structure|structures COUNT"),
    }
    Ok(())
}
