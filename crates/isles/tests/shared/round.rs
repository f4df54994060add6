//! One random program over shared objects, whose guards are checked against a sequential register model.
//!
//! Documented consistency: guards that exclude each other never exist at the same time, and a guard sees all earlier
//! writes under write guards. The model is a counter of writes in each value: no guard finds an older count than an
//! earlier guard, no count occurs twice, and at the end none is missing.

use isles::prelude::*;
use isles::{Controller, Mapping, Random, Result, SharedOptions, acquire_all};
use serde::{Deserialize, Serialize};

/// Guards of one task.
const GUARDS: u64 = 6;

/// A value with a list that a torn copy would break.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Register {
    writes: u64,
    copies: Vec<u64>,
}

impl Register {
    fn check(&self) {
        assert!(self.copies.iter().all(|copy| *copy == self.writes), "a value is half written: {self:?}");
    }

    fn write(&mut self) -> u64 {
        self.writes += 1;
        let len = self.writes as usize % 5 + 1;
        self.copies = vec![self.writes; len];
        self.writes
    }
}

/// Findings of one task: the counts that its writes made, which nobody else may make.
type Counts = Vec<u64>;

/// The options of the objects of this seed.
fn options(seed: u64) -> SharedOptions {
    let controllers = [Controller::Broadcast, Controller::Overlapped, Controller::Timestamp];
    SharedOptions::default().controller(controllers[(seed % 3) as usize])
}

/// Runs the program of `seed`: `tasks` at each place, which read and write a register, a mapping, or both.
pub(crate) async fn round(seed: u64) -> Result<()> {
    let register = Shared::with(Register { writes: 0, copies: vec![0] }, options(seed)).await?;
    let mapping = Shared::with(Mapping::<u64>::new(1), options(seed / 3)).await?;
    let made = PlaceLocal::new(Counts::new).await?;
    finish(async {
        for place in places() {
            for task in 0..2 {
                spawn_at!(place, {
                    let mut random = Random::stream(seed, 100 + here().index() as u64 * 2 + task);
                    let mut seen = (0, 0);
                    for _ in 0..GUARDS {
                        let count = match random.below(6) {
                            0 | 1 => read(&register, &mut seen.0).await?,
                            2 => write(&register, &mut seen.0).await?,
                            3 => read_mapping(&mapping, &mut seen.1).await?,
                            4 => write_mapping(&mapping, &mut seen.1, &mut random).await?,
                            _ => {
                                let (first, mut second) =
                                    acquire_all((mapping.read(), register.write())).await?;
                                check_mapping(&first, &mut seen.1);
                                seen.0 = second.write();
                                yield_now().await;
                                Some(seen.0)
                            }
                        };
                        made.lock().extend(count);
                    }
                });
            }
        }
    })
    .await?;
    let mut counts = made.reduce(|one, other| [one, other].concat()).await?;
    counts.sort_unstable();
    let writes = counts.len();
    counts.dedup();
    assert_eq!(counts.len(), writes, "two writes made one count");
    let (register, mapping) = (register.read().await?.writes, mapping.read().await?.get(0));
    assert_eq!(register + mapping, writes as u64, "a write is lost");
    Ok(())
}

/// Reads the register, which must not change meanwhile; makes no count.
async fn read(register: &Shared<Register>, seen: &mut u64) -> Result<Option<u64>> {
    let guard = register.read().await?;
    guard.check();
    assert!(guard.writes >= *seen, "an older value than before");
    *seen = guard.writes;
    yield_now().await;
    guard.check();
    assert_eq!(guard.writes, *seen, "a value changes under a reader");
    Ok(None)
}

/// Writes the register, alone; returns the count that this made.
async fn write(register: &Shared<Register>, seen: &mut u64) -> Result<Option<u64>> {
    let mut guard = register.write().await?;
    guard.check();
    assert!(guard.writes >= *seen, "an older value than before");
    *seen = guard.write();
    yield_now().await;
    assert_eq!(guard.writes, *seen, "two writers");
    Ok(Some(*seen))
}

async fn read_mapping(mapping: &Shared<Mapping<u64>>, seen: &mut u64) -> Result<Option<u64>> {
    let guard = mapping.read().await?;
    check_mapping(&guard, seen);
    yield_now().await;
    assert_eq!(guard.get(0), *seen, "a mapping changes under a reader");
    Ok(None)
}

/// Lets the mapping grow, and writes its last element before its first one, which is the count.
async fn write_mapping(
    mapping: &Shared<Mapping<u64>>,
    seen: &mut u64,
    random: &mut Random,
) -> Result<Option<u64>> {
    let mut guard = mapping.write().await?;
    check_mapping(&guard, seen);
    *seen += 1;
    let len = guard.len() + random.below(400) as usize;
    guard.grow(len);
    guard.set(len - 1, *seen);
    yield_now().await;
    guard.set(0, *seen);
    // Apart from those of the register.
    Ok(Some(1 << 32 | *seen))
}

/// Checks that a mapping is of one generation: its last elements are those of earlier counts, in order.
fn check_mapping(mapping: &Mapping<u64>, seen: &mut u64) {
    let count = mapping.get(0);
    assert!(count >= *seen, "an older mapping than before");
    *seen = count;
    let mut all = vec![0; mapping.len()];
    mapping.read(0, &mut all);
    let marks: Vec<u64> = all[1..].iter().copied().filter(|mark| *mark > 0).collect();
    assert!(marks.windows(2).all(|pair| pair[0] < pair[1]), "marks out of order");
    assert!(marks.last().is_none_or(|last| *last <= count), "a mark of a count that is to come");
}
