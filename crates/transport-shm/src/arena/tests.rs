//! The arena against its own invariants, with a memory that only records calls.

use super::*;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const BYTES: u64 = 4 << 20;

/// Credit of the tests that check it.
const CREDIT: u64 = 8 << 20;

const MIB: u64 = 1 << 20;

/// Time at which all tests begin.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn arena(bytes: u64, credit: u64) -> Arena {
    Arena::new(bytes, credit, *START)
}

/// Records the returned blocks and the present pages.
#[derive(Default)]
struct Notes {
    returned: RefCell<BTreeSet<u64>>,
    taken: RefCell<BTreeSet<u64>>,
    pages: RefCell<BTreeSet<u64>>,
    /// Number of bytes whose pages were allocated.
    populated: Cell<u64>,
    exhausted: Cell<bool>,
    /// Time since the start.
    now: Cell<Duration>,
}

impl BlockStore for Notes {
    fn is_returned(&self, offset: u64) -> bool {
        self.returned.borrow().contains(&offset)
    }

    fn is_taken(&self, offset: u64) -> bool {
        self.taken.borrow().contains(&offset) || self.is_returned(offset)
    }

    fn populate(&self, offset: u64, len: u64) -> bool {
        assert_eq!((offset % PAGE_BYTES, len % PAGE_BYTES), (0, 0));
        if !self.exhausted.get() {
            self.populated.set(self.populated.get() + len);
            self.pages.borrow_mut().extend((offset..offset + len).step_by(PAGE_BYTES as usize));
        }
        !self.exhausted.get()
    }

    fn release(&self, offset: u64, len: u64) {
        self.pages.borrow_mut().retain(|page| !(offset..offset + len).contains(page));
    }
}

impl Notes {
    fn now(&self) -> Instant {
        *START + self.now.get()
    }

    fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }

    fn page_bytes(&self) -> u64 {
        self.pages.borrow().len() as u64 * PAGE_BYTES
    }

    /// Lends a block of `bytes` bytes, header included, which is taken and returned at once.
    fn exchange(&self, arena: &mut Arena, bytes: u64) {
        let offset = self.lend_taken(arena, (bytes - BLOCK_HEADER_BYTES) as usize, 1).unwrap();
        self.give_back(offset);
    }

    /// Lends a block and marks it as lent, as its sender does.
    fn lend(&self, arena: &mut Arena, len: usize, to: u32) -> Result<u64, AllocationError> {
        let offset = arena.lend(len, PlaceId(to), Class::Data, self.now(), self)?;
        self.returned.borrow_mut().remove(&offset);
        self.taken.borrow_mut().remove(&offset);
        Ok(offset)
    }

    /// Lends a block, which the receiver takes at once.
    fn lend_taken(&self, arena: &mut Arena, len: usize, to: u32) -> Result<u64, AllocationError> {
        let offset = self.lend(arena, len, to)?;
        self.taken.borrow_mut().insert(offset);
        Ok(offset)
    }

    /// Returns a block, as its receiver does; it must not have been returned since it was lent.
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
        let (notes, mut arena) = (Notes::default(), arena(BYTES, BYTES));
        // Lent blocks: end and receiver by offset; and the order in which they were lent.
        let mut out: BTreeMap<u64, (u64, PlaceId)> = BTreeMap::new();
        let mut newest = None;
        for (number, step) in (0..).zip(steps) {
            match step {
                Step::Lend(len) => {
                    let to = PlaceId(number % 4);
                    let answer = notes.lend(&mut arena, len, to.0);
                    newest = answer.ok();
                    let Ok(offset) = answer else { continue };
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
                    arena.reclaim_from_dead(PlaceId(place), &notes);
                    out.retain(|_, (_, to)| *to != PlaceId(place));
                    newest = None;
                }
                Step::Return(_) => {}
            }
            prop_assert!(arena.kept.bytes() <= CACHED_BYTES_MAX);
            let lent: u64 = arena.lent.iter().map(|loan| loan.bytes).sum();
            prop_assert_eq!(notes.page_bytes(), arena.kept.bytes() + lent, "no page is forgotten");
            prop_assert_eq!(arena.free.bytes() + lent, BYTES);
        }
        for offset in out.into_keys() {
            notes.give_back(offset);
        }
        // All blocks are back: the whole arena can be lent as one.
        prop_assert!(notes.lend(&mut arena, (BYTES - BLOCK_HEADER_BYTES) as usize, 0).is_ok());
    }
}

#[test]
fn a_block_that_came_back_is_lent_again_with_its_pages() {
    let (notes, mut arena) = (Notes::default(), arena(BYTES, BYTES));
    let first = notes.lend_taken(&mut arena, 100_000, 1).unwrap();
    notes.give_back(first);
    notes.exhausted.set(true);
    assert_eq!(notes.lend_taken(&mut arena, 100_000, 1), Ok(first));
}

#[test]
fn blocks_lent_one_after_the_other_take_turns_unless_they_are_long() {
    let credit = 250_000;
    for (bytes, distinct) in [(100_000, 2), (300_000, 1)] {
        let (notes, mut arena) = (Notes::default(), arena(BYTES, credit));
        let offsets: BTreeSet<u64> = (0..10)
            .map(|_| {
                let offset = notes.lend_taken(&mut arena, bytes, 1).unwrap();
                notes.give_back(offset);
                offset
            })
            .collect();
        assert_eq!(offsets.len(), distinct, "blocks of {bytes} bytes at a credit of {credit}");
    }
}

#[test]
fn an_arena_that_is_lent_out_says_so_until_a_block_comes_back() {
    let (notes, mut arena) = (Notes::default(), arena(BYTES, BYTES));
    let quarter = (BYTES / 4 - BLOCK_HEADER_BYTES) as usize;
    let blocks: Vec<u64> = (0..4).map(|_| notes.lend_taken(&mut arena, quarter, 1).unwrap()).collect();
    assert_eq!(notes.lend_taken(&mut arena, 1, 1), Err(AllocationError::Lent));
    assert!(!arena.has_returned(&notes));
    notes.give_back(blocks[2]);
    assert!(arena.has_returned(&notes));
    assert_eq!(notes.lend_taken(&mut arena, 1, 1), Ok(blocks[2]));
}

#[test]
fn more_than_the_bound_goes_back_to_the_system() {
    let (notes, mut arena) = (Notes::default(), arena(8 * CACHED_BYTES_MAX, CACHED_BYTES_MAX));
    let half = (CACHED_BYTES_MAX / 2 - BLOCK_HEADER_BYTES) as usize;
    let blocks: Vec<u64> = (0..6).map(|_| notes.lend_taken(&mut arena, half, 1).unwrap()).collect();
    blocks.into_iter().for_each(|offset| notes.give_back(offset));
    // Each new block checks a few loans.
    for _ in 0..3 {
        notes.lend_taken(&mut arena, 1, 1).unwrap();
    }
    assert_eq!(arena.kept.bytes(), CACHED_BYTES_MAX - 3 * PAGE_BYTES, "the three lie where pages were kept");
    assert_eq!(notes.page_bytes(), CACHED_BYTES_MAX);
}

#[test]
fn a_block_lies_where_pages_are_whatever_its_size() {
    for sizes in [&[33 * MIB][..], &[8 * MIB, 16 * MIB, 24 * MIB], &[1000 * MIB, 5 * MIB, 700 * MIB]] {
        let (notes, mut arena) = (Notes::default(), arena(8 << 30, CREDIT));
        for size in sizes.iter().cycle().take(30) {
            notes.exchange(&mut arena, *size);
            notes.pass(PERIOD / 10);
        }
        let longest = *sizes.iter().max().unwrap();
        assert_eq!(notes.populated.get(), longest, "{sizes:?}");
    }
}

#[test]
fn pages_for_long_blocks_are_kept_until_long_blocks_have_not_come_for_two_periods() {
    let (notes, mut arena) = (Notes::default(), arena(8 << 30, CREDIT));
    notes.exchange(&mut arena, 100 * MIB);
    for _ in 0..19 {
        notes.pass(PERIOD / 10);
        notes.exchange(&mut arena, MIB);
        assert_eq!(notes.page_bytes(), 100 * MIB);
    }
    notes.pass(PERIOD / 10);
    notes.exchange(&mut arena, MIB);
    assert!(notes.page_bytes() <= CACHED_BYTES_MAX + MIB, "{} bytes", notes.page_bytes());
}

#[test]
fn a_place_that_has_been_idle_for_a_period_keeps_no_pages() {
    let (notes, mut arena) = (Notes::default(), arena(8 << 30, CREDIT));
    assert_eq!(arena.idle(notes.now(), &notes), None);
    notes.exchange(&mut arena, 100 * MIB);
    let held = notes.lend_taken(&mut arena, 10, 1).unwrap();
    notes.pass(PERIOD / 4);
    assert_eq!(arena.idle(notes.now(), &notes), Some(PERIOD - PERIOD / 4));
    assert_eq!(notes.page_bytes(), 100 * MIB);
    notes.pass(PERIOD);
    assert_eq!(arena.idle(notes.now(), &notes), Some(PERIOD), "a block is out");
    assert_eq!(notes.page_bytes(), PAGE_BYTES);
    notes.give_back(held);
    assert_eq!(arena.idle(notes.now(), &notes), None);
    assert_eq!(notes.page_bytes(), 0);
}

#[test]
fn what_nobody_takes_is_bounded_for_each_class() {
    let (notes, mut arena) = (Notes::default(), arena(64 * CREDIT, CREDIT));
    let quarter = (CREDIT / 4 - BLOCK_HEADER_BYTES) as usize;
    let blocks: Vec<u64> = (0..4).map(|_| notes.lend(&mut arena, quarter, 1).unwrap()).collect();
    assert_eq!(notes.lend(&mut arena, 1, 2), Err(AllocationError::Lent), "to anybody");
    assert!(
        arena.lend(1, PlaceId(1), Class::Control, notes.now(), &notes).is_ok(),
        "control does not wait for data"
    );
    assert!(!arena.has_returned(&notes));
    notes.taken.borrow_mut().insert(blocks[3]);
    assert!(arena.has_returned(&notes), "a block that is taken gives credit, though it is in use");
    assert!(notes.lend(&mut arena, quarter, 1).is_ok());
    assert_eq!(notes.lend(&mut arena, 1, 2), Err(AllocationError::Lent));
    arena.write_off(PlaceId(1));
    let large = 2 * CREDIT as usize;
    assert!(notes.lend(&mut arena, large, 2).is_ok(), "a long block goes when nothing else lies there");
    assert_eq!(notes.lend(&mut arena, 1, 3), Err(AllocationError::Lent));
}

#[test]
fn pages_that_came_back_unnoticed_are_bounded() {
    let (notes, mut arena) = (Notes::default(), arena(1 << 30, CREDIT));
    let step = 64 << 10;
    let held: Vec<u64> = (0..200).map(|_| notes.lend_taken(&mut arena, step, 1).unwrap()).collect();
    // Blocks of changing sizes, so that none is reused; each is returned at once.
    for number in 0..2000 {
        let offset = notes.lend_taken(&mut arena, step + number % 7 * step, 1).unwrap();
        notes.give_back(offset);
        let lent: u64 = arena.lent.iter().map(|loan| loan.bytes).sum();
        let out = held.len() as u64 * (step as u64 + PAGE_BYTES);
        let slack = 8 * step as u64;
        assert!(lent <= out + CREDIT + slack, "{lent} bytes lent, {out} in use");
    }
}

#[test]
fn without_memory_nothing_is_lent_and_nothing_is_lost() {
    let (notes, mut arena) = (Notes::default(), arena(BYTES, BYTES));
    notes.exhausted.set(true);
    assert_eq!(notes.lend_taken(&mut arena, 10_000, 1), Err(AllocationError::NoMemory));
    assert_eq!((notes.page_bytes(), arena.free.bytes()), (0, BYTES));
    notes.exhausted.set(false);
    assert!(notes.lend(&mut arena, (BYTES - BLOCK_HEADER_BYTES) as usize, 1).is_ok());
}
