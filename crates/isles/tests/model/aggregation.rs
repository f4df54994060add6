//! Aggregation of small items.

use isles::prelude::*;
use isles::{AggregatorOptions, ErrorKind, ItemRoute, Result, Torus};

/// The instance at a place: how often each number was applied there.
type Counts = Vec<u64>;

/// Pushes `each` items from each place in `from` to each in `to`. Returns the counts of each place.
async fn push_all(
    options: AggregatorOptions,
    each: u64,
    from: Vec<Place>,
    to: Vec<Place>,
) -> Result<Vec<Counts>> {
    let counts = PlaceLocal::with(each as usize, |each| vec![0; each]).await?;
    let items = Aggregator::with(options, &counts, |counts: &mut Counts, number: u64| {
        counts[number as usize] += 1;
    })
    .await?;
    finish(async {
        for place in from {
            spawn_at!(place, [items, to, each] {
                for number in 0..each {
                    for target in &to {
                        items.push(*target, number).await?;
                    }
                }
            });
        }
    })
    .await?;
    // All items that the finish waited for have been applied, without further messages.
    everywhere!(counts.lock().clone()).await
}

/// Every place sends to every other, along `route`.
async fn all_to_all(route: ItemRoute, each: u64) -> Result<()> {
    let all: Vec<Place> = places().collect();
    for lookahead in [1, 64, 100_000] {
        let options = AggregatorOptions::default().route(route.clone()).lookahead(lookahead);
        let counts = push_all(options, each, all.clone(), all.clone()).await?;
        for (place, counts) in counts.iter().enumerate() {
            assert!(
                counts.iter().all(|count| *count == all.len() as u64),
                "place {place}, {lookahead}: {counts:?}"
            );
        }
    }
    Ok(())
}

#[isles::test(places = 4)]
async fn a_finish_ends_when_all_items_are_applied() -> Result<()> {
    all_to_all(ItemRoute::Direct, 300).await
}

#[isles::test(places = 6)]
async fn items_go_along_the_dimensions_of_a_torus() -> Result<()> {
    all_to_all(ItemRoute::Torus(Torus::new(&[3, 2]).unwrap()), 100).await
}

#[isles::test(places = 8)]
async fn with_roles_the_first_of_a_group_sends_and_the_last_applies() -> Result<()> {
    let all: Vec<Place> = places().collect();
    let (first, last) = (vec![all[0], all[4]], vec![all[3], all[7]]);
    let options = AggregatorOptions::default().route(ItemRoute::Roles(Torus::new(&[2, 1, 1]).unwrap()));
    let counts = push_all(options.clone(), 200, first.clone(), last).await?;
    for (place, counts) in counts.iter().enumerate() {
        let expected = if place % 4 == 3 { 2 } else { 0 };
        assert!(counts.iter().all(|count| *count == expected), "place {place}: {counts:?}");
    }
    let wrong = push_all(options, 1, first, vec![all[1]]).await.unwrap_err();
    assert_eq!(*wrong.kind(), ErrorKind::Several, "{wrong}");
    assert!(wrong.to_string().contains("for place 1: with roles, items go"), "{wrong}");
    Ok(())
}

#[isles::test(places = 8)]
async fn one_place_routes_two_dimensions_and_two_apply() -> Result<()> {
    let all: Vec<Place> = places().collect();
    let shape = Torus::new(&[2, 1]).unwrap();
    let route = ItemRoute::SharedRoles { shape, routers: 1, appliers: 3 };
    let options = AggregatorOptions::default().route(route);
    let (first, last) = (vec![all[0], all[4]], [&all[1..4], &all[5..8]].concat());
    let counts = push_all(options, 200, first, last).await?;
    for (place, counts) in counts.iter().enumerate() {
        let expected = if place % 4 == 0 { 0 } else { 2 };
        assert!(counts.iter().all(|count| *count == expected), "place {place}: {counts:?}");
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn items_of_nested_finishes_are_counted_apart() -> Result<()> {
    let counts = PlaceLocal::new(|| 0_u64).await?;
    let items = Aggregator::new(&counts, |count: &mut u64, by: u64| *count += by).await?;
    let last = places().last().expect("there are three");
    finish(async {
        items.push(last, 1).await?;
        for round in 1..20 {
            finish(async { items.push(last, 10).await }).await?;
            let count = at!(last, *counts.lock()).await?;
            assert!(count == 10 * round || count == 10 * round + 1, "{count} after {round} rounds");
        }
        Ok::<_, isles::Error>(())
    })
    .await?;
    assert_eq!(at!(last, *counts.lock()).await?, 191);
    Ok(())
}

#[isles::test(places = 2)]
async fn what_tasks_wait_for_leaves_without_the_end_of_their_finish() -> Result<()> {
    let seen = PlaceLocal::new(|| 0_u64).await?;
    let items = Aggregator::new(&seen, |seen: &mut u64, by: u64| *seen += by).await?;
    let last = places().last().expect("there are two");
    finish(async {
        items.push(last, 3).await?;
        at!(last, {
            while *seen.read() < 3 {
                isles::yield_now().await;
            }
        })
        .await
    })
    .await
}

#[isles::test(places = 2)]
async fn what_goes_wrong_in_an_item_comes_out_of_the_finish() -> Result<()> {
    let state = PlaceLocal::new(|| ()).await?;
    let items =
        Aggregator::new(&state, |(): &mut (), number: u32| assert!(number < 3, "item {number}")).await?;
    for place in places() {
        let failed = finish(async {
            for number in 0..4 {
                items.push(place, number).await?;
            }
            Ok::<_, isles::Error>(())
        })
        .await;
        let failed = failed.unwrap_err();
        assert!(*failed.kind() == ErrorKind::Panicked && failed.to_string().contains("item 3"), "{failed}");
    }
    Ok(())
}

#[isles::test(places = 4)]
async fn a_shape_of_another_number_of_places_is_refused() -> Result<()> {
    let state = PlaceLocal::new(|| ()).await?;
    let options = AggregatorOptions::default().route(ItemRoute::Torus(Torus::new(&[3, 2]).unwrap()));
    let refused = Aggregator::<u8>::with(options, &state, |(), _| ()).await.err().expect("six are not four");
    assert!(refused.to_string().contains("the shape 3x2 is for 6 places, but the run has 4"), "{refused}");
    Ok(())
}

#[isles::test(places = 3)]
async fn answers_come_in_the_order_of_the_questions() -> Result<()> {
    let offset = PlaceLocal::new(|| here().index() as u64 * 1_000_000).await?;
    let squares =
        Gatherer::new(&offset, |offset: &u64, number: u32| offset + u64::from(number).pow(2)).await?;
    let all: Vec<Place> = places().collect();
    let asked = |number: u32| (all[(number * 7 % 5) as usize % 3], number);
    let answers = squares.gather((0..6_000).map(asked)).await?;
    for (number, answer) in answers.iter().enumerate() {
        let (place, number) = asked(number as u32);
        assert_eq!(*answer, place.index() as u64 * 1_000_000 + u64::from(number).pow(2));
    }
    assert_eq!(answers.len(), 6_000);
    Ok(())
}

/// A panic discards the later items of its bucket, and the error names their number; other buckets are applied.
#[isles::test(places = 3)]
async fn an_item_that_panics_takes_those_behind_it_along_and_the_error_counts_them() -> Result<()> {
    for (route, bucket) in [(ItemRoute::Direct, 10), (ItemRoute::Torus(Torus::new(&[3]).unwrap()), 10)] {
        let counts = PlaceLocal::new(|| vec![0_u64; 30]).await?;
        let options = AggregatorOptions::default().route(route).bucket(bucket);
        let items = Aggregator::with(options, &counts, |counts: &mut Counts, number: u64| {
            assert!(number != 13, "an item that cannot be applied");
            counts[number as usize] += 1;
        })
        .await?;
        for target in places() {
            let error = finish(async {
                for number in 0..30 {
                    items.push(target, number).await?;
                }
                Ok::<_, isles::Error>(())
            })
            .await
            .expect_err("an item panics");
            assert_eq!(*error.kind(), ErrorKind::Panicked, "{error}");
            let said = "an item that cannot be applied; 7 of 10 items of a bucket were not applied, or \
                 only in part";
            assert!(error.to_string().contains(said), "{error}");
        }
        let applied = everywhere!(counts.lock().clone()).await?;
        let expected: Counts = (0..30).map(|number| u64::from(!(13..20).contains(&number))).collect();
        assert!(applied.iter().all(|counts| *counts == expected), "{applied:?}");
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn numbers_of_items_beyond_their_bound_are_refused_by_name() -> Result<()> {
    let counts = PlaceLocal::new(Counts::new).await?;
    let said = async |options: AggregatorOptions| {
        let made = Aggregator::with(options, &counts, |counts: &mut Counts, number: u64| counts.push(number));
        let error = made.await.err().expect("it is refused");
        assert_eq!(*error.kind(), ErrorKind::Misused);
        error.to_string()
    };
    for items in [(1 << 20) + 1, usize::MAX] {
        let text = said(AggregatorOptions::default().bucket(items)).await;
        let wanted = format!("bucket of an aggregator is {items} items; allowed: at most 1048576");
        assert!(text.contains(&wanted), "{text}");
        let text = said(AggregatorOptions::default().lookahead(items)).await;
        let wanted = format!("lookahead of an aggregator is {items} items; allowed: at most 1048576");
        assert!(text.contains(&wanted), "{text}");
    }
    Ok(())
}

/// An item that cannot be serialised if it is odd.
#[derive(serde::Deserialize)]
struct Evens(u64);

impl serde::Serialize for Evens {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 2 {
            0 => self.0.serialize(serializer),
            _ => Err(serde::ser::Error::custom("an odd number")),
        }
    }
}

#[isles::test(places = 2)]
async fn an_item_that_cannot_be_written_is_an_error_that_counts_what_is_lost_with_it() -> Result<()> {
    let counts = PlaceLocal::new(Counts::new).await?;
    let options = AggregatorOptions::default().bucket(4);
    let items =
        Aggregator::with(options, &counts, |counts: &mut Counts, Evens(item)| counts.push(item)).await?;
    let there = places().last().expect("there are two");
    let error = finish(async {
        for number in [0, 2, 4, 6, 8, 9, 10, 12, 14] {
            items.push(there, Evens(number)).await?;
        }
        Ok::<_, isles::Error>(())
    })
    .await
    .expect_err("an item cannot be written");
    let text = error.to_string();
    assert!(text.contains("an odd number; the 4 items of a bucket are lost"), "{text}");
    let mut applied = at!(there, counts.lock().clone()).await?;
    applied.sort_unstable();
    assert_eq!(applied, [0, 2, 4, 6, 14], "other buckets are applied");
    Ok(())
}
