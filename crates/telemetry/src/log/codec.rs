//! Encoding of samples: the changes of each place, as varints of differences.
//!
//! A place is a bit mask of its changed values, then the change of each, with its sign in the last bit. Lists that are
//! seldom long (finishes, pairs, links) follow in full. Invariant: decoding any bytes terminates, never panics, and
//! takes memory in proportion to the places of the run and the bytes.

use crate::counter::COUNTERS;
use crate::sample::{
    DeathCause, EnergySample, LinkSample, Liveness, OpenFinish, PairCount, PlaceSample, ProgressSample,
    RunEnd, Sample,
};
use serde::{Deserialize, Serialize};

/// Maximum number of pairs of places in a frame, those with the most bytes.
const PAIRS_MAX: usize = 256;

/// Maximum number of finishes in a frame.
const FINISHES_MAX: usize = 256;

/// Values of a place: liveness, time, copies, process, death, counters.
const VALUES: usize = 5 + COUNTERS.len();

/// Part of a frame besides the places.
#[derive(Serialize, Deserialize)]
struct Tail {
    end: RunEnd,
    progress: ProgressSample,
    missed: u64,
    finishes: Vec<OpenFinish>,
    /// Absent: as in the frame before.
    lists: Option<(Vec<PairCount>, Vec<LinkSample>)>,
}

fn values_of(place: &PlaceSample) -> [u64; VALUES] {
    let mut values = [0; VALUES];
    values[..5].copy_from_slice(&[
        place.liveness.encode(),
        place.at_ns,
        place.copies,
        place.process.into(),
        place.death.map_or(0, DeathCause::encode),
    ]);
    values[5..].copy_from_slice(&place.values);
    values
}

fn place_of(values: &[u64; VALUES]) -> PlaceSample {
    let mut place = PlaceSample {
        liveness: Liveness::decode(values[0]),
        at_ns: values[1],
        copies: values[2],
        process: values[3] as u32,
        death: DeathCause::decode(values[4]),
        values: [0; COUNTERS.len()],
    };
    place.values.copy_from_slice(&values[5..]);
    place
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Moves the sign of a change to the last bit, so that small changes of either sign are short.
fn fold_sign(change: u64) -> u64 {
    let change = change as i64;
    ((change << 1) ^ (change >> 63)) as u64
}

fn unfold_sign(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

/// Encodes `sample` as its difference to `before`; with the lists of pairs and links if `with_lists`.
pub(super) fn encode(before: &Sample, sample: &Sample, with_lists: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, fold_sign(sample.time_ms.wrapping_sub(before.time_ms)));
    put_varint(&mut bytes, fold_sign(sample.model_ns.wrapping_sub(before.model_ns)));
    put_varint(&mut bytes, fold_sign(sample.energy.until_ns.wrapping_sub(before.energy.until_ns)));
    put_varint(&mut bytes, fold_sign(sample.energy.nanojoules.wrapping_sub(before.energy.nanojoules)));
    let silent = PlaceSample::default();
    for (index, place) in sample.places.iter().enumerate() {
        let old = values_of(before.places.get(index).unwrap_or(&silent));
        let changes: Vec<u64> =
            values_of(place).iter().zip(old).map(|(new, old)| new.wrapping_sub(old)).collect();
        let changed = changes.iter().enumerate().filter(|(_, change)| **change != 0);
        put_varint(&mut bytes, changed.clone().fold(0, |bits, (index, _)| bits | 1 << index));
        changed.for_each(|(_, change)| put_varint(&mut bytes, fold_sign(*change)));
    }
    let lists = with_lists.then(|| {
        let mut pairs = sample.pairs.clone();
        pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.bytes), pair.from, pair.to));
        pairs.truncate(PAIRS_MAX);
        (pairs, sample.links.clone())
    });
    let finishes = sample.finishes.iter().take(FINISHES_MAX).cloned().collect();
    let (end, progress, missed) = (sample.end, sample.progress.clone(), sample.missed);
    let tail = Tail { end, progress, missed, finishes, lists };
    bytes.extend(postcard::to_allocvec(&tail).unwrap_or_default());
    bytes
}

/// Decodes the bytes that [`encode`] wrote for a run of `places` places; `None` for other bytes.
pub(super) fn decode(before: &Sample, places: u32, mut bytes: &[u8]) -> Option<Sample> {
    let bytes = &mut bytes;
    let time_ms = before.time_ms.wrapping_add(unfold_sign(take_varint(bytes)?));
    let model_ns = before.model_ns.wrapping_add(unfold_sign(take_varint(bytes)?));
    let energy = EnergySample {
        until_ns: before.energy.until_ns.wrapping_add(unfold_sign(take_varint(bytes)?)),
        nanojoules: before.energy.nanojoules.wrapping_add(unfold_sign(take_varint(bytes)?)),
    };
    let silent = PlaceSample::default();
    let mut decoded = Vec::with_capacity((places as usize).min(bytes.len()));
    for index in 0..places as usize {
        let mut values = values_of(before.places.get(index).unwrap_or(&silent));
        let bits = take_varint(bytes)?;
        if bits >> VALUES != 0 {
            return None;
        }
        for (_, value) in values.iter_mut().enumerate().filter(|(index, _)| bits >> index & 1 == 1) {
            *value = value.wrapping_add(unfold_sign(take_varint(bytes)?));
        }
        decoded.push(place_of(&values));
    }
    let tail: Tail = postcard::from_bytes(bytes).ok()?;
    let (pairs, links) = tail.lists.unwrap_or_else(|| (before.pairs.clone(), before.links.clone()));
    let is_inside = |place: u32| place < places;
    let are_inside = pairs.iter().all(|pair| is_inside(pair.from) && is_inside(pair.to))
        && tail.finishes.iter().all(|finish| is_inside(finish.home));
    are_inside.then_some(Sample {
        time_ms,
        model_ns,
        energy,
        end: tail.end,
        progress: tail.progress,
        missed: tail.missed,
        places: decoded,
        finishes: tail.finishes,
        pairs,
        links,
    })
}
