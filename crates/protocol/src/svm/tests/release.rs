//! The model release: random programs without data races beside a sequential memory.
//!
//! In one round different places write words of a page; rounds end at a barrier, which releases and acquires. Some
//! words are changed only under the lock of their page. Fetches, differences and lock messages take time, while others
//! act.

use super::super::{LockAction, LockMessage, LockNode, LockNumber, PageAccess, PageNumber, ReleaseCache};
use super::{Choices, seeds};
use crate::PlaceId;
use std::collections::{BTreeMap, VecDeque};

const WORDS: usize = 4;
const ROUNDS: usize = 4;

/// A page as a place sees it.
type Content = [u32; WORDS];

/// Next operation of a place.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Read {
        page: usize,
        word: usize,
    },
    Write {
        page: usize,
        word: usize,
        value: u32,
    },
    /// Adds 1 to word 0 under the lock of the page.
    Locked {
        page: usize,
    },
}

/// Current step of a place.
enum ProgramStep {
    Next,
    /// A copy is being fetched; the access follows.
    Fetching {
        page: usize,
        content: Option<Content>,
    },
    /// The lock is requested; its grant, with a release and an acquire, precedes the access.
    Locking {
        lock: LockNumber,
    },
    /// Differences are in flight; then the lock is given back, or the barrier is reached.
    Releasing {
        frees_lock: Option<LockNumber>,
    },
    AtBarrier,
}

struct ReleasePlace {
    cache: ReleaseCache,
    locks: LockNode,
    copies: BTreeMap<usize, (Content, Option<Content>)>,
    differences: VecDeque<(usize, Content, Content)>,
    program: VecDeque<Operation>,
    current_step: ProgramStep,
}

struct ReleaseWorld {
    places: Vec<ReleasePlace>,
    homes: Vec<Content>,
    truth: Vec<Content>,
    /// Lock messages in flight, by receiver and sender.
    links: Vec<Vec<VecDeque<LockMessage>>>,
}

/// Word 0 of each page is changed under the lock; the others have one writer in a round, or only readers.
fn deal_round(choices: &mut Choices, world: &mut ReleaseWorld) {
    let pages = world.homes.len();
    for (page, word) in (0..pages).flat_map(|page| (1..WORDS).map(move |word| (page, word))) {
        let writer = choices.below(world.places.len() + 1);
        for _ in 0..choices.below(4) {
            let place = if writer < world.places.len() { writer } else { choices.below(world.places.len()) };
            let is_write = writer < world.places.len() && choices.below(2) == 0;
            let value = choices.below(1000) as u32;
            let operation = if is_write {
                Operation::Write { page, word, value }
            } else {
                Operation::Read { page, word }
            };
            world.places[place].program.push_back(operation);
        }
    }
    for place in &mut world.places {
        let page = choices.below(pages);
        place.program.insert(choices.below(place.program.len() + 1), Operation::Locked { page });
    }
}

impl ReleaseWorld {
    fn new(places: usize, pages: usize) -> ReleaseWorld {
        let place = |here: usize| ReleasePlace {
            cache: ReleaseCache::new(pages as u32),
            locks: LockNode::new(PlaceId(here as u32), places as u32),
            copies: BTreeMap::new(),
            differences: VecDeque::new(),
            program: VecDeque::new(),
            current_step: ProgramStep::Next,
        };
        ReleaseWorld {
            places: (0..places).map(place).collect(),
            homes: vec![[0; WORDS]; pages],
            truth: vec![[0; WORDS]; pages],
            links: vec![vec![VecDeque::new(); places]; places],
        }
    }

    fn is_home(&self, place: usize, page: usize) -> bool {
        page * self.places.len() / self.homes.len() == place
    }

    /// Begins a release at the place: its changes are in flight from now on.
    fn begin_release(&mut self, place: usize, frees_lock: Option<LockNumber>) {
        let ReleasePlace { cache, copies, differences, current_step, .. } = &mut self.places[place];
        for page in cache.release() {
            let (content, twin) = copies.get_mut(&page.index()).expect("a dirty page has a copy");
            differences.push_back((page.index(), *content, twin.take().expect("a dirty page has a twin")));
        }
        *current_step = ProgramStep::Releasing { frees_lock };
    }

    fn acquire(&mut self, place: usize) {
        let ReleasePlace { cache, copies, .. } = &mut self.places[place];
        for page in cache.acquire() {
            let (_, twin) = copies.remove(&page.index()).expect("a page that is dropped was there");
            assert_eq!(twin, None, "a page with changes was dropped");
        }
    }

    /// Makes a place take one step; returns `false` if it must wait.
    fn act(&mut self, place: usize) -> bool {
        match &mut self.places[place].current_step {
            ProgramStep::AtBarrier => return false,
            ProgramStep::Fetching { page, content: content @ None } => *content = Some(self.homes[*page]),
            ProgramStep::Fetching { page, content: Some(content) } => {
                let (page, content) = (*page, *content);
                self.places[place].copies.insert(page, (content, None));
                self.places[place].current_step = ProgramStep::Next;
            }
            ProgramStep::Locking { lock } => {
                let lock = *lock;
                return self.places[place].locks.holds(lock) && self.enter(place);
            }
            ProgramStep::Releasing { frees_lock } => {
                let frees_lock = *frees_lock;
                if self.write_difference(place) {
                    return true;
                }
                self.places[place].current_step = ProgramStep::AtBarrier;
                if let Some(lock) = frees_lock {
                    self.places[place].current_step = ProgramStep::Next;
                    self.lock_step(place, |node, out| node.release(lock, out));
                }
            }
            ProgramStep::Next => return self.operate(place),
        }
        true
    }

    fn operate(&mut self, place: usize) -> bool {
        let Some(operation) = self.places[place].program.front().copied() else {
            self.begin_release(place, None);
            return true;
        };
        let (page, word, access) = match operation {
            Operation::Read { page, word } => (page, word, PageAccess::Read),
            Operation::Write { page, word, .. } => (page, word, PageAccess::Write),
            Operation::Locked { page } => (page, 0, PageAccess::Write),
        };
        let lock = LockNumber(page as u32);
        let is_locked = matches!(operation, Operation::Locked { .. });
        if is_locked && !self.places[place].locks.holds(lock) {
            self.places[place].current_step = ProgramStep::Locking { lock };
            self.lock_step(place, |node, out| node.request(lock, out));
            return true;
        }
        if !self.is_home(place, page) && !self.is_mapped(place, page, access) {
            self.fault(place, page, access);
            return true;
        }
        self.access(place, page, word, operation);
        self.places[place].program.pop_front();
        if is_locked {
            self.begin_release(place, Some(lock));
        }
        true
    }

    /// Writes the next difference of a release to its home; returns `false` if there is none.
    fn write_difference(&mut self, place: usize) -> bool {
        let Some((page, now, before)) = self.places[place].differences.pop_front() else { return false };
        for word in (0..WORDS).filter(|word| now[*word] != before[*word]) {
            self.homes[page][word] = now[word];
        }
        true
    }

    /// Handles the grant of a lock: changes go home before the copies are dropped.
    fn enter(&mut self, place: usize) -> bool {
        self.begin_release(place, None);
        while self.write_difference(place) {}
        self.acquire(place);
        self.places[place].current_step = ProgramStep::Next;
        true
    }

    fn lock_step(&mut self, place: usize, step: impl FnOnce(&mut LockNode, &mut Vec<LockAction>)) {
        let mut actions = Vec::new();
        step(&mut self.places[place].locks, &mut actions);
        for action in actions {
            if let LockAction::Send { to, message } = action {
                self.links[to.index()][place].push_back(message);
            }
        }
    }

    /// Delivers a lock message from one place to another, if there is one.
    fn deliver(&mut self, from: usize, to: usize) {
        if let Some(message) = self.links[to][from].pop_front() {
            self.lock_step(to, |node, out| node.receive(PlaceId(from as u32), message, out));
        }
    }

    fn is_mapped(&self, place: usize, page: usize, access: PageAccess) -> bool {
        let copy = self.places[place].copies.get(&page);
        copy.is_some_and(|(_, twin)| access == PageAccess::Read || twin.is_some())
    }

    fn fault(&mut self, place: usize, page: usize, access: PageAccess) {
        let state = &mut self.places[place];
        // A store to a page without a copy is two faults here, so that the fetch takes time.
        let is_there = state.copies.contains_key(&page);
        let access = if is_there { access } else { PageAccess::Read };
        let action = state.cache.fault(PageNumber(page as u32), access).expect("a page of the region");
        assert_eq!((action.fetches, action.access), (!is_there, access));
        if action.fetches {
            state.current_step = ProgramStep::Fetching { page, content: None };
        } else if action.twins {
            let (content, twin) = state.copies.get_mut(&page).expect("it is there");
            *twin = Some(*content);
        }
    }

    fn access(&mut self, place: usize, page: usize, word: usize, operation: Operation) {
        let is_home = self.is_home(place, page);
        let seen = match self.places[place].copies.get_mut(&page) {
            Some((content, _)) if !is_home => &mut content[word],
            _ => &mut self.homes[page][word],
        };
        let expected = &mut self.truth[page][word];
        assert_eq!(seen, expected, "place {place} sees another value: {operation:?}");
        match operation {
            Operation::Read { .. } => {}
            Operation::Write { value, .. } => *expected = value,
            Operation::Locked { .. } => *expected += 1,
        }
        *seen = *expected;
    }
}

#[test]
fn random_programs_without_races_see_a_sequential_memory() {
    for seed in seeds() {
        let mut choices = Choices(seed);
        let (places, pages) = (2 + choices.below(7), 1 + choices.below(4));
        let mut world = ReleaseWorld::new(places, pages);
        for _ in 0..ROUNDS {
            deal_round(&mut choices, &mut world);
            let mut turns = 0;
            while world.places.iter().any(|place| !matches!(place.current_step, ProgramStep::AtBarrier)) {
                world.act(choices.below(places));
                world.deliver(choices.below(places), choices.below(places));
                turns += 1;
                assert!(turns < 1_000_000, "seed {seed}: a wait without end");
            }
            for place in 0..places {
                world.acquire(place);
                world.places[place].current_step = ProgramStep::Next;
            }
        }
        assert_eq!(world.homes, world.truth, "seed {seed}");
    }
}

#[test]
fn a_page_is_twinned_once_and_kept_while_it_is_dirty() {
    let page = PageNumber(1);
    let mut cache = ReleaseCache::new(3);
    let first = cache.fault(page, PageAccess::Write).unwrap();
    assert_eq!((first.fetches, first.twins, first.access), (true, true, PageAccess::Write));
    let again = cache.fault(page, PageAccess::Read).unwrap();
    assert_eq!((again.fetches, again.twins, again.access), (false, false, PageAccess::Write));
    assert_eq!(cache.acquire(), [], "changes that are not at their home are not dropped");
    assert_eq!(cache.release(), [page]);
    assert_eq!(cache.release(), []);
    assert_eq!(cache.acquire(), [page]);
    assert_eq!(cache.fault(PageNumber(3), PageAccess::Read), None);
}
