//! Shared objects whose guards are cancelled, and whose values some places temporarily cannot deserialise.

use super::{attempt, interrupt, run_worlds};
use isles::prelude::*;
use isles::{ErrorKind, IndexSpace, Mapping, Random, Result, SharedOptions, acquire_all};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

thread_local! {
    /// Number of writes of a sequential register; `None` while it is unknown.
    static WRITES: Cell<u64> = const { Cell::new(0) };
    /// Numbers of tasks that write and that read.
    static INSIDE: Cell<[u32; 2]> = const { Cell::new([0; 2]) };
    /// Places that currently can neither serialise nor deserialise a value.
    static REFUSING: RefCell<BTreeSet<usize>> = RefCell::default();
}

/// A number of writes, on which some places fail or panic.
#[derive(Clone, Debug, Default)]
struct Count(u64);

impl Drop for Count {
    /// Panics at places that refuse values; only the runtime drops a value there.
    fn drop(&mut self) {
        if !std::thread::panicking() && self.0 % 3 == 1 {
            let is_refused = REFUSING.with_borrow(|refusing| refusing.contains(&here().index()));
            assert!(!is_refused, "it is dropped with a panic");
        }
    }
}

/// Returns the error of the program's code for a value, if this place currently refuses values.
fn refusal(number: u64) -> std::result::Result<(), &'static str> {
    if !REFUSING.with_borrow(|refusing| refusing.contains(&here().index())) {
        return Ok(());
    }
    assert!(number.is_multiple_of(2), "it is refused with a panic");
    Err("it is refused")
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        refusal(self.0).map_err(ser::Error::custom)?;
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Count, D::Error> {
        let number = u64::deserialize(deserializer)?;
        refusal(number).map_err(de::Error::custom)?;
        Ok(Count(number))
    }
}

/// A task within a guard.
struct Inside(usize);

impl Inside {
    fn enter(writes: bool) -> Inside {
        let mut inside = INSIDE.get();
        inside[usize::from(!writes)] += 1;
        INSIDE.set(inside);
        assert!(inside[0] == 0 || inside == [1, 0], "{} write and {} read", inside[0], inside[1]);
        Inside(usize::from(!writes))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut inside = INSIDE.get();
        inside[self.0] -= 1;
        INSIDE.set(inside);
    }
}

fn check(value: u64) {
    assert_eq!(value, WRITES.get(), "a guard sees the last write");
}

async fn linger(random: &mut Random) {
    for _ in 0..random.below(4) {
        yield_now().await;
    }
}

/// Guards of one object or several, each of which may be cancelled.
async fn guards(seed: u64, number: u64, object: &Shared<u64>, mapping: &Shared<Mapping<u64>>) -> Result<()> {
    let mut random = Random::stream(seed, number);
    for _ in 0..2 + random.below(8) {
        match random.below(5) {
            0 | 1 => {
                let Some(guard) = interrupt("services/shared/guard read", &mut random, object.read()).await
                else {
                    continue;
                };
                let (guard, _inside) = (guard?, Inside::enter(false));
                check(*guard);
                linger(&mut random).await;
                check(*guard);
            }
            2 | 3 => {
                let repairs = random.below(4) == 0;
                let guard = match repairs {
                    true => interrupt("services/shared/guard repair", &mut random, object.repair()).await,
                    false => interrupt("services/shared/guard write", &mut random, object.write()).await,
                };
                let Some(guard) = guard else { continue };
                let (mut guard, inside) = (guard?, Inside::enter(true));
                check(*guard);
                linger(&mut random).await;
                if random.below(3) > 0 {
                    *guard += 1;
                    WRITES.set(*guard);
                }
                drop(inside);
                interrupt("services/shared/guard release", &mut random, guard.release()).await;
            }
            _ => {
                let both = acquire_all((mapping.write(), object.read()));
                let Some(both) = interrupt("services/shared/acquire acquire_all", &mut random, both).await
                else {
                    continue;
                };
                let ((mut mapping, object), _inside) = (both?, Inside::enter(false));
                check(*object);
                let count = mapping.get(0) + 1;
                mapping.set(0, count);
                linger(&mut random).await;
                assert_eq!(mapping.get(0), count, "two writers of a mapping");
                check(*object);
            }
        }
    }
    Ok(())
}

/// Indices that grow with their mappings, by operations that may be cancelled.
async fn indices(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 3);
    attempt("services/shared/space new", &mut random, IndexSpace::new(4)).await?;
    let made = IndexSpace::with(4, SharedOptions::default());
    let space = match interrupt("services/shared/space with", &mut random, made).await {
        Some(space) => space?,
        None => IndexSpace::new(4).await?,
    };
    let mapping = space.mapping::<u64>(SharedOptions::default()).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, [seed, space] {
                let mut random = Random::stream(seed, 60 + here().index() as u64);
                for _ in 0..3 {
                    let count = 1 + random.below(400) as usize;
                    let added = space.extend(count);
                    attempt("services/shared/space extend", &mut random, added).await?;
                    let made = space.mapping::<u32>(SharedOptions::default());
                    attempt("services/shared/space mapping", &mut random, made).await?;
                    if let Some(range) = interrupt("services/shared/space read", &mut random, space.read()).await {
                        assert!(range?.len() >= 4);
                    }
                }
            });
        }
    })
    .await?;
    // The added part has elements, also of mappings that others made or gave up meanwhile.
    let added = space.extend(1).await?;
    assert!(mapping.read().await?.len() >= added.end);
    Ok(())
}

/// Reads and writes of a value that places temporarily refuse.
async fn fickle(seed: u64, object: &Shared<Count>) -> Result<()> {
    let mut random = Random::stream(seed, 90 + here().index() as u64);
    for _ in 0..2 + random.below(6) {
        let own = here().index();
        REFUSING.with_borrow_mut(|refusing| match random.below(3) {
            0 => refusing.insert(own),
            _ => refusing.remove(&own),
        });
        let failed = match random.below(4) {
            0 => interrupt("services/shared/guard write", &mut random, object.write())
                .await
                .map(|guard| guard.map(|mut guard| guard.0 += 1 + random.below(2))),
            1 => interrupt("services/shared/guard repair", &mut random, object.repair())
                .await
                .map(|guard| guard.map(|mut guard| guard.0 += 1)),
            _ => interrupt("services/shared/guard read", &mut random, object.read())
                .await
                .map(|guard| guard.map(drop)),
        };
        if let Some(Err(error)) = failed {
            let explained = [ErrorKind::Undecodable, ErrorKind::Panicked, ErrorKind::Poisoned];
            assert!(explained.contains(error.kind()), "{error}");
        }
    }
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    WRITES.set(0);
    REFUSING.take();
    let mut random = Random::stream(seed, 0);
    attempt("services/shared/mod new", &mut random, Shared::new(1_u64)).await?;
    let made = Shared::with(2_u64, SharedOptions::default());
    attempt("services/shared/mod with", &mut random, made).await?;
    let team = Team::world();
    let made = Shared::with_on(&team, 3_u64, SharedOptions::default());
    attempt("services/shared/mod with_on", &mut random, made).await?;
    let mapping = Shared::new(Mapping::<u64>::new(1)).await?;
    let object = Shared::new(0_u64).await?;
    finish(async {
        for place in places() {
            for task in 0..2 {
                let number = 10 + place.index() as u64 * 2 + task;
                spawn_at!(place, [seed, number, object, mapping] guards(seed, number, &object, &mapping).await?);
            }
        }
    })
    .await?;
    check(*object.read().await?);
    indices(seed).await?;
    let object = Shared::new(Count(0)).await?;
    everywhere!(fickle(seed, &object).await?).await?;
    REFUSING.take();
    object.repair().await?.0 = 77;
    let counts = everywhere!(object.read().await?.0).await?;
    assert!(counts.iter().all(|count| *count == 77), "{counts:?}");
    Ok(())
}

#[test]
fn guards_see_the_last_write_and_nobody_waits_for_ever() {
    run_worlds("shared", program);
}
