//! One body at all places, and what came of it at each.
//!
//! The calls to the other places leave before the body here runs, so that all of them run at once.

use crate::error::{Error, Result};
use crate::join::join_all;
use crate::place::{Place, here, places};

/// What `everywhere!` expands to: `call` begins the body at one place.
///
/// # Errors
/// One error is itself, several are a list, as of a finish; all bodies have ended then.
pub async fn everywhere<T, F>(call: impl Fn(Place) -> F) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>>,
{
    let here = here();
    let others = places().filter(|place| *place != here);
    let mut results = join_all(others.chain([here]).map(call).collect()).await;
    let own = results.pop();
    own.into_iter().for_each(|own| results.insert(here.index(), own));
    let (mut values, mut errors) = (Vec::with_capacity(results.len()), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    Error::collect(errors, 0).map_or(Ok(values), Err)
}
