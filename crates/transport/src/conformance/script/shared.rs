//! Scripts and preludes about memory that places share: words and regions.
//!
//! A message announces a write, as in a program; or the writer wakes its reader.

use super::{Script, Step};
use crate::random::Random;
use crate::{Arrival, Body, Class, Endpoint, HandlerId, Inbound, MappedMemory, PlaceId, Region, SendError};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of the longest region of these promises; four regions exist at the same time.
const REGION_WORDS_MAX: usize = 1_000;

/// Number of regions allocated one after the other.
const REGIONS: u64 = 300;

/// Returns the shared memory of an endpoint that offers it.
fn offered(endpoint: &dyn Endpoint) -> &dyn MappedMemory {
    endpoint.shared_memory().unwrap_or_else(|| panic!("{} shares no memory", endpoint.here()))
}

/// Writes a word of its own and one of each place that shares memory with it, and reads them when all have written.
#[derive(Default)]
pub(in crate::conformance) struct Words {
    written: bool,
    announced: u32,
    heard: u32,
}

impl Words {
    fn write(endpoint: &dyn Endpoint, memory: &dyn MappedMemory) {
        assert!(memory.words() >= 2, "{} words are too few to be of use", memory.words());
        // Relaxed is enough here and below: the control message that follows carries the order.
        let own = memory.word(endpoint.here(), 0).expect("a place shares its own memory");
        let before = own.fetch_add(u64::from(endpoint.here().0) + 1, Ordering::Relaxed);
        assert_eq!(before, 0, "words start at zero");
        for word in Words::of_all(endpoint, memory, 1) {
            word.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the words of the places that share memory with this one.
    fn of_all<'a>(
        endpoint: &dyn Endpoint,
        memory: &'a dyn MappedMemory,
        index: u32,
    ) -> impl Iterator<Item = (PlaceId, &'a AtomicU64)> {
        (0..endpoint.places()).map(PlaceId).filter_map(move |place| Some((place, memory.word(place, index)?)))
    }

    fn check(endpoint: &dyn Endpoint, memory: &dyn MappedMemory) {
        for (place, word) in Words::of_all(endpoint, memory, 0) {
            assert_eq!(word.load(Ordering::Relaxed), u64::from(place.0) + 1, "the word of {place}");
        }
        let own = memory.word(endpoint.here(), 1).expect("a place shares its own memory");
        let sharing = Words::of_all(endpoint, memory, 1).count();
        assert_eq!(
            own.load(Ordering::Relaxed),
            sharing as u64,
            "all that share with {} add to it",
            endpoint.here()
        );
    }
}

impl Script for Words {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let others = endpoint.places() - 1;
        let memory = offered(endpoint);
        if !std::mem::replace(&mut self.written, true) {
            Words::write(endpoint, memory);
        }
        let arrived = endpoint.progress(Inbound::All, &mut |_| self.heard += 1);
        let mut sent = false;
        while self.announced < others {
            let to = PlaceId((endpoint.here().0 + 1 + self.announced) % endpoint.places());
            if endpoint.send(to, Class::Control, HandlerId(0), 0, &mut |_| Some(0)).is_err() {
                break;
            }
            self.announced += 1;
            sent = true;
        }
        if self.announced == others && self.heard == others {
            Words::check(endpoint, memory);
            return Step::Done;
        }
        if sent || arrived > 0 { Step::Busy } else { Step::Idle }
    }
}

/// Writes a region and announces it to the others; each of them reads it, adds one to its first word, and acknowledges.
#[derive(Default)]
pub(in crate::conformance) struct Regions {
    own: Option<Region>,
    /// Messages still to be sent: a region, or the acknowledgement of one (`None`).
    unsent: VecDeque<(PlaceId, Option<Region>)>,
    /// Number of regions of other places that were read here, and of places that have read the region of this one.
    read: [u32; 2],
}

/// Returns the content of the region of a place, which also gives its length.
fn pattern(place: PlaceId) -> impl Iterator<Item = u64> {
    (1..200 + u64::from(place.0) * 100).map(move |index| u64::from(place.0) << 32 | index)
}

impl Regions {
    fn begin(&mut self, endpoint: &dyn Endpoint) {
        let here = endpoint.here();
        let memory = offered(endpoint);
        let words = 1 + pattern(here).count() as u64;
        let region = memory.allocate(words).expect("room for a region");
        let view = memory.view(region).expect("a place shares its own memory");
        assert_eq!((region.place, view.len() as u64), (here, words), "the region is not as it was asked for");
        // Relaxed is enough here and below: the messages carry the order.
        view[1..].iter().zip(pattern(here)).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        let others = (0..endpoint.places()).map(PlaceId).filter(|place| *place != here);
        self.unsent = others.map(|to| (to, Some(region))).collect();
        self.own = Some(region);
    }

    fn hear(&mut self, endpoint: &dyn Endpoint, source: PlaceId, bytes: &[u8]) {
        let memory = offered(endpoint);
        let Some((start, words)) = bytes.split_at_checked(8) else {
            self.read[1] += 1;
            return;
        };
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let view = memory.view(Region { place: source, start: number(start), words: number(words) });
        assert_eq!(view.is_some(), memory.word(source, 0).is_some(), "words and regions of {source}");
        if let Some(view) = view {
            let seen = view[1..].iter().map(|word| word.load(Ordering::Relaxed));
            assert!(seen.eq(pattern(source)), "the region of {source} is not what it wrote");
            view[0].fetch_add(1, Ordering::Relaxed);
        }
        self.read[0] += 1;
        self.unsent.push_back((source, None));
    }

    /// Sends messages as far as there is room. Returns `true` if any was sent.
    fn send(&mut self, endpoint: &dyn Endpoint) -> bool {
        let before = self.unsent.len();
        for (to, region) in std::mem::take(&mut self.unsent) {
            let answer = endpoint.send(to, Class::Control, HandlerId(0), 16, &mut |room| {
                let Some(region) = region else { return Some(0) };
                room[..8].copy_from_slice(&region.start.to_le_bytes());
                room[8..].copy_from_slice(&region.words.to_le_bytes());
                Some(16)
            });
            match answer {
                Ok(()) => {}
                Err(SendError::Full) => self.unsent.push_back((to, region)),
                Err(error) => panic!("{to}: {error}"),
            }
        }
        self.unsent.len() < before
    }

    fn end(&self, endpoint: &dyn Endpoint) {
        let memory = offered(endpoint);
        let others = (0..endpoint.places()).map(PlaceId).filter(|place| *place != endpoint.here());
        let sharing = others.filter(|place| memory.word(*place, 0).is_some()).count();
        let region = self.own.expect("it was told to the others");
        let first = &memory.view(region).expect("a place shares its own memory")[0];
        assert_eq!(first.load(Ordering::Relaxed), sharing as u64, "all that share with {}", endpoint.here());
        memory.free(region);
    }
}

impl Script for Regions {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        if self.own.is_none() {
            self.begin(endpoint);
        }
        let sent = self.send(endpoint);
        let arrived = endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => match message.body {
                Body::Inline(bytes) => self.hear(endpoint, message.source, bytes),
                Body::Block(_) => panic!("nobody sends blocks"),
            },
            Arrival::Died { place, .. } => panic!("{place} was told dead and is not"),
        });
        if self.unsent.is_empty() && self.read == [endpoint.places() - 1; 2] {
            self.end(endpoint);
            return Step::Done;
        }
        if sent || arrived > 0 { Step::Busy } else { Step::Idle }
    }
}

/// Number of rounds that the turn makes.
const ROUNDS: u64 = 200;

/// Passes a turn from place to place: by a word of the next one, which is woken, or by a message if it shares none.
#[derive(Default)]
pub(in crate::conformance) struct Wakes {
    passed: u64,
    /// Number of turns that arrived as messages.
    heard: u64,
}

impl Wakes {
    fn is_first(endpoint: &dyn Endpoint) -> bool {
        endpoint.here() == PlaceId(0)
    }

    /// Returns the number of turns that have arrived here.
    fn turns(&self, endpoint: &dyn Endpoint) -> u64 {
        let own = offered(endpoint).word(endpoint.here(), 0).expect("a place shares its own memory");
        // Relaxed is enough here and below, because only the word itself is passed on.
        self.heard + own.load(Ordering::Relaxed)
    }

    /// Returns `true` if it is this place's turn, which begins with the first place.
    fn has_turn(&self, endpoint: &dyn Endpoint) -> bool {
        let turns = self.turns(endpoint) + u64::from(Wakes::is_first(endpoint));
        self.passed < ROUNDS && turns > self.passed
    }

    /// Passes the turn on, if there is room.
    fn pass(&mut self, endpoint: &dyn Endpoint) {
        let (next, memory) = (PlaceId((endpoint.here().0 + 1) % endpoint.places()), offered(endpoint));
        if let Some(word) = memory.word(next, 0) {
            word.fetch_add(1, Ordering::Relaxed);
            assert!(memory.wake(next), "{next} shares memory and cannot be woken");
        } else if endpoint.send(next, Class::Control, HandlerId(0), 0, &mut |_| Some(0)).is_err() {
            return;
        }
        self.passed += 1;
    }
}

impl Script for Wakes {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let arrived = endpoint.progress(Inbound::All, &mut |_| self.heard += 1);
        let had_turn = self.has_turn(endpoint);
        if had_turn {
            self.pass(endpoint);
        }
        // The last turn returns to the first place.
        let is_over = self.passed == ROUNDS && (!Wakes::is_first(endpoint) || self.turns(endpoint) == ROUNDS);
        if is_over {
            return Step::Done;
        }
        if had_turn || arrived > 0 { Step::Busy } else { Step::Idle }
    }

    fn wait(&self, endpoint: &dyn Endpoint) {
        let is_last = || self.passed == ROUNDS && self.turns(endpoint) == ROUNDS;
        endpoint.wait_with(None, &|| self.has_turn(endpoint) || is_last());
    }
}

/// Panics unless regions are zero, disjoint, reusable, and refused if there is no memory.
pub(in crate::conformance) fn allocate_and_free(endpoint: &dyn Endpoint) {
    let memory = offered(endpoint);
    let refused = [u64::MAX, u64::MAX / 8, 1 << 50];
    assert!(refused.iter().all(|words| memory.allocate(*words).is_none()), "more memory than there is");
    let mut random = Random::new(u64::from(endpoint.here().0));
    let mut held: VecDeque<(Region, u64)> = VecDeque::new();
    for mark in 1..=REGIONS {
        let words = 1 + random.index(REGION_WORDS_MAX) as u64;
        let region = memory.allocate(words).expect("what was given back is there again");
        for beyond in [Region { start: u64::MAX, ..region }, Region { words: u64::MAX, ..region }] {
            assert!(memory.view(beyond).is_none(), "{beyond:?} is shown");
        }
        let view = memory.view(region).expect("a place shares its own memory");
        // Relaxed: no other place knows the region.
        assert!(view.iter().all(|word| word.swap(mark, Ordering::Relaxed) == 0), "a new region is not zero");
        held.push_back((region, mark));
        if held.len() == 4 {
            let chosen = random.index(held.len());
            give_back(memory, held.swap_remove_back(chosen).expect("there are four"));
        }
    }
    held.into_iter().for_each(|held| give_back(memory, held));
}

fn give_back(memory: &dyn MappedMemory, (region, mark): (Region, u64)) {
    let view = memory.view(region).expect("a place shares its own memory");
    assert!(view.iter().all(|word| word.load(Ordering::Relaxed) == mark), "two regions overlap");
    memory.free(region);
}
