//! Promises about the parts of a window: locks in order, conflicts detected, epochs that allow only what belongs to
//! them.

use super::*;
use crate::PlaceId;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A step of a program on one lock: a place requests it, gives it back, or dies.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(u32, bool),
    Release(u32),
    Die(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u32..5, any::<bool>()).prop_map(|(place, shared)| Step::Ask(place, shared)),
        4 => (0_u32..5).prop_map(Step::Release),
        1 => (0_u32..5).prop_map(Step::Die),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// An exclusive holder is alone, requests are granted in order, and in the end each place had the lock.
    #[test]
    fn a_lock_is_held_by_one_or_by_shared_ones_in_the_order_of_requests(steps in steps()) {
        let mut queue = LockQueue::default();
        let mut held: BTreeMap<u32, bool> = BTreeMap::new();
        let mut asked: Vec<(u32, bool, usize)> = Vec::new();
        let check = |granted: Vec<(PlaceId, usize)>,
                     asked: &mut Vec<(u32, bool, usize)>,
                     held: &mut BTreeMap<u32, bool>| {
            for (place, number) in granted {
                let (first, shared, of) = asked.remove(0);
                assert_eq!((place.0, number), (first, of), "granted out of order");
                assert!(held.values().all(|other| *other && shared), "{held:?} with {place}");
                held.insert(place.0, shared);
            }
            let fits = asked.first().is_some_and(|(_, shared, _)| held.values().all(|other| *other && *shared));
            assert!(!fits, "nobody was let in");
        };
        for (number, step) in steps.into_iter().enumerate() {
            let granted = match step {
                Step::Ask(place, shared) => {
                    let has = held.contains_key(&place) || asked.iter().any(|(other, _, _)| *other == place);
                    prop_assert_eq!(queue.knows(PlaceId(place)), has);
                    if has {
                        continue;
                    }
                    asked.push((place, shared, number));
                    let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
                    queue.request(PlaceId(place), mode, number)
                }
                Step::Release(place) => {
                    let has = held.remove(&place).is_some() || asked.iter().any(|(other, _, _)| *other == place);
                    asked.retain(|(other, _, _)| *other != place);
                    let released = queue.release(PlaceId(place));
                    prop_assert_eq!(released.is_ok(), has);
                    released.unwrap_or_default()
                }
                Step::Die(place) => {
                    held.remove(&place);
                    asked.retain(|(other, _, _)| *other != place);
                    queue.place_died(PlaceId(place))
                }
            };
            check(granted, &mut asked, &mut held);
        }
    }

    /// The log finds the overlaps that a comparison of single elements finds.
    #[test]
    fn a_conflict_is_an_element_that_both_touch(
        first in prop::collection::vec((0_u64..4, 1_u64..4), 1..4),
        second in prop::collection::vec((0_u64..4, 1_u64..4), 1..4),
        kinds in (0..3_usize, 0..3_usize),
    ) {
        let kind = |index: usize| [AccessKind::Get, AccessKind::Put, AccessKind::Update][index];
        let elements = |gaps: &[(u64, u64)]| {
            let mut at = 0;
            let mut ranges = Vec::new();
            for (gap, len) in gaps {
                ranges.push(at + gap..at + gap + len);
                at += gap + len;
            }
            ranges
        };
        let access = |origin, kind, elements| {
            WindowAccess { origin: PlaceId(origin), kind, epoch: EpochTag::Started, fences: 0, elements, line: origin }
        };
        let mut log = AccessLog::default();
        let (a, b) = (elements(&first), elements(&second));
        log.note(access(0, kind(kinds.0), a.clone())).unwrap();
        let noted = log.note(access(1, kind(kinds.1), b.clone()));
        let common = a.iter().cloned().flatten().find(|element| b.iter().any(|range| range.contains(element)));
        let harmless = kinds.0 == kinds.1 && kinds.0 != 1;
        match (noted, common) {
            (Ok(()), common) => prop_assert!(common.is_none() || harmless),
            (Err(conflict), Some(element)) => {
                prop_assert!(!harmless);
                prop_assert_eq!(conflict.overlap.start, element);
                prop_assert_eq!((conflict.first.line, conflict.second.line), (0, 1));
            }
            (Err(conflict), None) => panic!("no element in common: {conflict:?}"),
        }
    }
}

#[test]
fn the_log_forgets_what_is_over() {
    let put = |origin, (epoch, fences)| WindowAccess {
        origin: PlaceId(origin),
        kind: AccessKind::Put,
        epoch,
        fences,
        elements: std::iter::once(0..1).collect(),
        line: (),
    };
    let mut log = AccessLog::default();
    log.note(put(0, (EpochTag::Fence, 1))).unwrap();
    assert!(log.note(put(1, (EpochTag::Fence, 1))).is_err());
    assert!(log.note(put(1, (EpochTag::Locked, 1))).is_err());
    // An access after a fence follows those before it, even if the owner has not passed the fence yet.
    log.note(put(1, (EpochTag::Locked, 2))).unwrap();
    log.unlocked(PlaceId(1));
    log.note(put(1, (EpochTag::Fence, 2))).unwrap();
    log.fenced(3);
    log.note(put(0, (EpochTag::Locked, 3))).unwrap();
    assert!(log.note(put(1, (EpochTag::Locked, 3))).is_err());
    log.unlocked(PlaceId(0));
    log.note(put(1, (EpochTag::Started, 3))).unwrap();
    assert!(log.note(put(2, (EpochTag::Started, 3))).is_err());
    log.waited();
    log.note(put(2, (EpochTag::Started, 3))).unwrap();
    log.place_died(PlaceId(2));
    log.note(put(3, (EpochTag::Started, 3))).unwrap();
}

#[test]
fn an_epoch_lets_through_what_belongs_to_it() {
    let mut epoch = AccessEpoch::new(1);
    assert_eq!(epoch.access(7), Ok(()));
    let fault = |epoch, since| EpochFault { epoch, since, is_pending: false };
    let pending = |epoch, since| EpochFault { epoch, since, is_pending: true };
    let in_fence = |since| fault(EpochKind::Fence, since);
    assert_eq!(epoch.start([1], 2), Err(in_fence(1)));
    assert_eq!(epoch.lock(1, LockMode::Shared, 2), Err(in_fence(1)));
    assert_eq!(epoch.complete(2), Err(in_fence(1)));
    assert_eq!(epoch.fence(3), Ok(()));
    assert_eq!(epoch.start([3, 1, 3], 4), Ok(()));
    assert_eq!(epoch.access(1), Err(pending(EpochKind::Started, 4)));
    assert_eq!(epoch.complete(4), Err(pending(EpochKind::Started, 4)));
    epoch.started();
    assert_eq!([1, 3].map(|target| epoch.access(target)), [Ok(()); 2]);
    let started = fault(EpochKind::Started, 4);
    assert_eq!(epoch.access(2), Err(started));
    assert_eq!(epoch.fence(5), Err(started));
    assert_eq!(epoch.lock(1, LockMode::Shared, 5), Err(started));
    assert_eq!(epoch.complete(6), Ok(vec![1, 3]));
    let closed = fault(EpochKind::Closed, 6);
    assert_eq!(epoch.access(1), Err(closed));
    assert_eq!(epoch.unlock(1, 7), Err(closed));
    assert_eq!(epoch.lock(1, LockMode::Shared, 8), Ok(()));
    assert_eq!(epoch.lock(2, LockMode::Exclusive, 9), Ok(()));
    assert_eq!(epoch.lock(2, LockMode::Shared, 10), Err(pending(EpochKind::Locked, 9)));
    assert_eq!(epoch.access(2), Err(pending(EpochKind::Locked, 9)));
    assert_eq!(epoch.unlock(2, 10), Err(pending(EpochKind::Locked, 9)));
    epoch.locked(1);
    epoch.locked(2);
    assert_eq!(epoch.lock(2, LockMode::Shared, 10), Err(fault(EpochKind::Locked, 9)));
    assert_eq!(epoch.access(2), Ok(()));
    assert_eq!(epoch.access(3), Err(fault(EpochKind::Locked, 8)));
    assert_eq!(epoch.unlock(2, 11), Ok(LockMode::Exclusive));
    assert_eq!(epoch.unlock(1, 12), Ok(LockMode::Shared));
    assert_eq!(epoch.kind(), EpochKind::Closed);
}

#[test]
fn what_is_given_up_leaves_the_epoch_as_it_was() {
    let mut epoch = AccessEpoch::new(1);
    epoch.start([1], 2).unwrap();
    epoch.give_up_start();
    assert_eq!((epoch.kind(), epoch.access(0)), (EpochKind::Fence, Ok(())));
    epoch.fence(3).unwrap();
    for target in [1, 2] {
        epoch.lock(target, LockMode::Exclusive, 4).unwrap();
    }
    epoch.give_up_lock(2);
    assert_eq!(epoch.kind(), EpochKind::Locked);
    epoch.give_up_lock(1);
    assert_eq!(epoch.kind(), EpochKind::Fence);
    // A lock that was held stays, and ends the epoch.
    epoch.lock(1, LockMode::Shared, 5).unwrap();
    epoch.locked(1);
    epoch.give_up_lock(1);
    epoch.lock(2, LockMode::Shared, 6).unwrap();
    assert_eq!(epoch.unlock(1, 7), Ok(LockMode::Shared));
    epoch.give_up_lock(2);
    assert_eq!(epoch.kind(), EpochKind::Closed);
}

#[test]
fn an_exposure_ends_when_all_have_completed() {
    let mut target = Exposure::default();
    assert_eq!(target.wait(), Err(NotClosed));
    assert_eq!(target.completed(1), Err(NotClosed));
    assert_eq!(target.post(vec![1, 2]), Ok(()));
    assert_eq!(target.post(vec![1]), Err(NotClosed));
    assert_eq!(target.wait(), Ok(Some(1)));
    assert_eq!(target.completed(1), Ok(()));
    assert_eq!(target.completed(1), Err(NotClosed));
    assert_eq!(target.wait(), Ok(Some(2)));
    assert_eq!(target.completed(2), Ok(()));
    assert_eq!(target.wait(), Ok(None));

    let mut origin = Exposure::default();
    origin.posted(4);
    assert_eq!(origin.start(&[4, 5]), Some(5));
    origin.posted(5);
    assert_eq!(origin.start(&[4, 5]), None);
    assert_eq!(origin.start(&[4, 5]), Some(4));
}
