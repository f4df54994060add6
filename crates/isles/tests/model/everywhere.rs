//! One body at all places.

use isles::prelude::*;
use isles::{ErrorKind, Result};

#[isles::test(places = 5)]
async fn values_come_by_place_whoever_asks() -> Result<()> {
    let (word, offset) = ("place".to_owned(), 10);
    let expected: Vec<String> = (0..5).map(|place| format!("place {}", place + 10)).collect();
    let values = everywhere!(format!("{word} {}", here().index() + offset)).await?;
    assert_eq!(values, expected);
    for asker in places() {
        let values =
            at!(asker, everywhere!([word, offset] format!("{word} {}", here().index() + offset)).await?);
        assert_eq!(values.await?, expected);
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn members_of_a_team_meet_in_it() -> Result<()> {
    // The body here waits for the others, so their calls must have left before.
    let sums = everywhere!(Team::world().all_reduce(here().index(), |a, b| a + b).await?).await?;
    assert_eq!(sums, [3, 3, 3]);
    Ok(())
}

#[isles::test(places = 4)]
async fn one_error_is_itself_and_several_are_a_list() -> Result<()> {
    async fn fails(from: usize) -> Result<Vec<usize>> {
        everywhere!({
            if here().index() >= from {
                Err(format!("not at {}", here()))?;
            }
            here().index()
        })
        .await
    }
    assert_eq!(fails(4).await?, [0, 1, 2, 3]);
    let error = fails(3).await.unwrap_err();
    assert_eq!((error.kind(), error.place()), (&ErrorKind::Failed, places().last().map(Place::id)));
    let error = fails(1).await.unwrap_err();
    assert_eq!((error.kind(), error.causes().len()), (&ErrorKind::Several, 3));
    Ok(())
}
