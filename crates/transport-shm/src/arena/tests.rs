//! The arena against its own invariants, with a memory that only takes notes.

use super::*;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

const BYTES: u64 = 4 << 20;

/// Notes which blocks came back, and which pages are there.
#[derive(Default)]
struct Notes {
    returned: RefCell<BTreeSet<u64>>,
    pages: RefCell<BTreeSet<u64>>,
    exhausted: Cell<bool>,
}

impl Store for Notes {
    fn is_returned(&self, offset: u64) -> bool {
        self.returned.borrow().contains(&offset)
    }

    fn populate(&self, offset: u64, len: u64) -> bool {
        assert_eq!((offset % PAGE_BYTES, len % PAGE_BYTES), (0, 0));
        if !self.exhausted.get() {
            self.pages.borrow_mut().extend((offset..offset + len).step_by(PAGE_BYTES as usize));
        }
        !self.exhausted.get()
    }

    fn release(&self, offset: u64, len: u64) {
        self.pages.borrow_mut().retain(|page| !(offset..offset + len).contains(page));
    }
}

impl Notes {
    /// The receiver's side of a block: given back once, and new when it is lent again.
    fn give_back(&self, offset: u64) {
        assert!(self.returned.borrow_mut().insert(offset));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Lend(usize),
    Return(usize),
    TakeBack,
    Forfeit(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![3 => 0..20_000usize, 1 => 0..1_000_000usize];
    let step = prop_oneof![
        6 => len.prop_map(Step::Lend),
        4 => any::<usize>().prop_map(Step::Return),
        1 => Just(Step::TakeBack),
        1 => (0..4u32).prop_map(Step::Forfeit),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn no_two_blocks_overlap_and_nothing_is_lost(steps in steps()) {
        let (notes, mut arena) = (Notes::default(), Arena::new(BYTES));
        // Blocks out: end and receiver by offset; and the order in which they were lent.
        let mut out: BTreeMap<u64, (u64, PlaceId)> = BTreeMap::new();
        let mut newest = None;
        for (number, step) in (0..).zip(steps) {
            match step {
                Step::Lend(len) => {
                    let to = PlaceId(number % 4);
                    let answer = arena.lend(len, to, &notes);
                    newest = answer.ok();
                    let Ok(offset) = answer else { continue };
                    notes.returned.borrow_mut().remove(&offset);
                    let end = offset + len as u64 + BLOCK_HEADER_BYTES;
                    prop_assert!(end <= BYTES && offset % PAGE_BYTES == 0);
                    prop_assert!(out.range(..end).next_back().is_none_or(|(_, (before, _))| *before <= offset));
                    let pages = notes.pages.borrow();
                    prop_assert!((offset..end).step_by(PAGE_BYTES as usize).all(|page| pages.contains(&page)));
                    out.insert(offset, (end, to));
                }
                Step::Return(choice) if !out.is_empty() => {
                    let offset = *out.keys().nth(choice % out.len()).unwrap();
                    out.remove(&offset);
                    notes.give_back(offset);
                    newest = None;
                }
                Step::TakeBack => {
                    if let Some(offset) = newest.take() {
                        arena.take_back_last(&notes);
                        out.remove(&offset);
                    }
                }
                Step::Forfeit(place) => {
                    arena.forfeit(PlaceId(place), &notes);
                    out.retain(|_, (_, to)| *to != PlaceId(place));
                    newest = None;
                }
                Step::Return(_) => {}
            }
            prop_assert!(arena.warm_bytes <= WARM_BYTES_MAX);
        }
        for offset in out.into_keys() {
            notes.give_back(offset);
        }
        // All is back: the whole arena can be lent as one.
        prop_assert!(arena.lend((BYTES - BLOCK_HEADER_BYTES) as usize, PlaceId(0), &notes).is_ok());
    }
}

#[test]
fn a_block_that_came_back_is_lent_again_with_its_pages() {
    let (notes, mut arena) = (Notes::default(), Arena::new(BYTES));
    let first = arena.lend(100_000, PlaceId(1), &notes).unwrap();
    notes.give_back(first);
    notes.exhausted.set(true);
    assert_eq!(arena.lend(100_000, PlaceId(1), &notes), Ok(first));
}

#[test]
fn an_arena_that_is_lent_out_says_so_until_a_block_comes_back() {
    let (notes, mut arena) = (Notes::default(), Arena::new(BYTES));
    let quarter = (BYTES / 4 - BLOCK_HEADER_BYTES) as usize;
    let blocks: Vec<u64> = (0..4).map(|_| arena.lend(quarter, PlaceId(1), &notes).unwrap()).collect();
    assert_eq!(arena.lend(1, PlaceId(1), &notes), Err(Shortage::Lent));
    assert!(!arena.has_returned(&notes));
    notes.give_back(blocks[2]);
    assert!(arena.has_returned(&notes));
    assert_eq!(arena.lend(1, PlaceId(1), &notes), Ok(blocks[2]));
}

#[test]
fn more_than_the_bound_goes_back_to_the_system() {
    let (notes, mut arena) = (Notes::default(), Arena::new(8 * WARM_BYTES_MAX));
    let half = (WARM_BYTES_MAX / 2 - BLOCK_HEADER_BYTES) as usize;
    let blocks: Vec<u64> = (0..6).map(|_| arena.lend(half, PlaceId(1), &notes).unwrap()).collect();
    blocks.into_iter().for_each(|offset| notes.give_back(offset));
    // Each new block looks at a few loans.
    for _ in 0..3 {
        let offset = arena.lend(1, PlaceId(1), &notes).unwrap();
        notes.returned.borrow_mut().remove(&offset);
    }
    assert_eq!(arena.warm_bytes, WARM_BYTES_MAX);
    let pages = notes.pages.borrow().len() as u64;
    assert_eq!(pages, WARM_BYTES_MAX / PAGE_BYTES + 3);
}

#[test]
fn without_memory_nothing_is_lent_and_nothing_is_lost() {
    let (notes, mut arena) = (Notes::default(), Arena::new(BYTES));
    notes.exhausted.set(true);
    assert_eq!(arena.lend(10_000, PlaceId(1), &notes), Err(Shortage::NoMemory));
    notes.exhausted.set(false);
    assert!(arena.lend((BYTES - BLOCK_HEADER_BYTES) as usize, PlaceId(1), &notes).is_ok());
}
