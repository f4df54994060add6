//! State of one window at one place: its part, the location of the others, its epochs, and the waiting tasks.
//!
//! Invariant: nothing of it is borrowed while a task is woken or a message sent.

use super::header::{MessageHeader, MessageKind, WindowId};
use super::memory::words_of;
use super::queue::QueuedOperation;
use super::{PartLengths, WindowOptions};
use crate::team::Team;
use crate::window::header::WINDOW;
use isles_protocol::PlaceId;
use isles_protocol::window::{AccessEpoch, AccessLog, Exposure, LockQueue};
use isles_runtime::memory::free_bytes;
use isles_runtime::service::{Attachment, Encode, Members, PlaceGroup};
use isles_runtime::wire::Writer;
use isles_runtime::{Clock, Error, ErrorKind, Local, Result};
use isles_transport::{Class, Inbound, MappedMemory, Region};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::Location;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::task::{Poll, Waker};

/// Number of times a waiting task looks for messages itself before it gives way: some 4 µs in all.
const LOOKS_MAX: u32 = 64;

/// A line of the program.
pub(super) type Line = &'static Location<'static>;

/// Memory of a part.
enum Memory {
    /// In memory that others may have mapped.
    Region(Region),
    /// In memory of this place alone.
    Heap(Box<[AtomicU64]>),
    /// Nowhere: the system has no memory for it.
    None,
}

impl Memory {
    /// Takes `words` words, all zero.
    fn new(local: &Local, words: u64, is_shared: bool) -> Memory {
        let shared = if is_shared { local.endpoint().shared_memory() } else { None };
        if let Some(region) = shared.and_then(|memory| memory.allocate(words)) {
            return Memory::Region(region);
        }
        let mut heap = Vec::new();
        let len = usize::try_from(words)
            .ok()
            .filter(|len| (*len as u64).saturating_mul(8) <= free_bytes().unwrap_or(u64::MAX));
        let Some(len) = len.filter(|len| heap.try_reserve_exact(*len).is_ok()) else { return Memory::None };
        heap.resize_with(len, AtomicU64::default);
        Memory::Heap(heap.into())
    }
}

/// The words of a part that is lent. They stay where they are as long as the state of its window and `hold` live.
pub(super) struct BorrowedWords {
    pub(super) words: NonNull<[AtomicU64]>,
    /// Owner that keeps them mapped, if that is not the state itself.
    pub(super) hold: Option<Rc<dyn Any>>,
}

/// Location of the part of another member, as far as this place knows.
#[derive(Clone, Copy)]
pub(super) enum PartLocation {
    Unknown,
    /// In a region that this place can view.
    Mapped(Region),
    /// Reachable only by its owner.
    Remote,
}

/// State a place keeps of another member.
pub(super) struct Peer {
    pub(super) location: Cell<PartLocation>,
    /// True if messages of accesses went there since the last flush.
    pub(super) is_touched: Cell<bool>,
    /// Number of notices that have come from there.
    pub(super) notices: Cell<u64>,
}

/// A task that waits for something to be heard.
struct Wait {
    number: u64,
    waker: Waker,
    what: String,
}

/// State of one window at one place: its part, the location of the others, its epochs, and the waiting tasks.
pub(crate) struct WindowState {
    pub(super) id: WindowId,
    pub(super) attachment: Attachment,
    pub(super) members: Members,
    /// Ranks are positions in `members`; this is that of this place.
    pub(super) rank: u32,
    pub(super) lens: PartLengths,
    pub(super) element_bytes: usize,
    pub(super) options: WindowOptions,
    /// A team that only fences use.
    pub(super) team: Team,
    memory: Memory,
    /// True if the part here is lent as a slice, so that nobody may look at its words.
    is_lent: Cell<bool>,
    pub(super) peers: Box<[Peer]>,
    /// Its lines are none as long as the window is new.
    pub(super) epoch: RefCell<AccessEpoch<Option<Line>>>,
    /// Number of fences this place has passed.
    pub(super) fences: Cell<u64>,
    pub(super) exposure: RefCell<Exposure>,
    /// The lock of the part here; a request is answered by its token.
    pub(super) lock: RefCell<LockQueue<u32>>,
    pub(super) log: RefCell<AccessLog<String>>,
    /// In the queued form, what was queued for each member.
    pub(super) queued: RefCell<Vec<QueuedOperation>>,
    waits: RefCell<Vec<Wait>>,
    next_wait: Cell<u64>,
}

impl WindowState {
    pub(super) fn new(local: &Local, seed: super::Seed) -> WindowState {
        let members = seed.team.members().unwrap_or(Members::All(local.places()));
        let rank = members.rank_of(local.here()).unwrap_or_default();
        let bytes = seed.lens.of(rank).saturating_mul(seed.element_bytes as u64);
        let is_shared = !seed.options.queued;
        let peer = |_| Peer {
            location: Cell::new(if is_shared { PartLocation::Unknown } else { PartLocation::Remote }),
            is_touched: Cell::new(false),
            notices: Cell::new(0),
        };
        WindowState {
            id: seed.id,
            attachment: local.attachment(),
            rank: rank as u32,
            memory: Memory::new(local, words_of(bytes), is_shared),
            is_lent: Cell::new(false),
            peers: (0..members.len()).map(peer).collect(),
            members,
            lens: seed.lens,
            element_bytes: seed.element_bytes,
            options: seed.options,
            team: seed.team,
            epoch: RefCell::new(AccessEpoch::new(None)),
            fences: Cell::new(0),
            exposure: RefCell::default(),
            lock: RefCell::default(),
            log: RefCell::default(),
            queued: RefCell::default(),
            waits: RefCell::default(),
            next_wait: Cell::new(0),
        }
    }

    /// # Errors
    /// There was no memory for the part here.
    pub(super) fn check_memory(&self) -> Result<()> {
        match self.memory {
            Memory::Region(_) | Memory::Heap(_) => Ok(()),
            Memory::None => {
                let (len, size) = (self.lens.of(self.rank as usize), self.element_bytes);
                let text = format!("no memory for a window of {len} elements of {size} bytes each");
                Err(Error::new(ErrorKind::Misused, text))
            }
        }
    }

    /// Returns `true` if all places of the run can map the part here.
    pub(super) fn is_near(&self, local: &Local) -> bool {
        let is_mapped = self.region().is_some() || self.bytes_at(self.rank) == 0;
        is_mapped && local.endpoint().other_hosts().is_none()
    }

    /// Returns the words of the part here; none while it is lent.
    #[inline]
    pub(super) fn own<'a>(&'a self, local: &'a Local) -> &'a [AtomicU64] {
        match &self.memory {
            _ if self.is_lent.get() => &[],
            Memory::Region(region) => self.view(local, *region).unwrap_or_default(),
            Memory::Heap(words) => words,
            Memory::None => &[],
        }
    }

    /// Lends the words of the part here, of which [`WindowState::own`] shows nothing until [`WindowState::end_loan`];
    /// none if they are lent already.
    pub(super) fn lend(&self, local: &Local) -> Option<BorrowedWords> {
        let words = NonNull::from(self.own(local));
        let is_mapped = self.region().is_some();
        let hold = local.endpoint().shared_memory().filter(|_| is_mapped).map(MappedMemory::hold);
        (!self.is_lent.replace(true)).then_some(BorrowedWords { words, hold })
    }

    pub(super) fn end_loan(&self) {
        self.is_lent.set(false);
    }

    pub(super) fn is_lent(&self) -> bool {
        self.is_lent.get()
    }

    /// Returns where the part here lies, for those that can map it.
    pub(super) fn region(&self) -> Option<Region> {
        match self.memory {
            Memory::Region(region) => Some(region),
            Memory::Heap(_) | Memory::None => None,
        }
    }

    #[inline]
    fn view<'a>(&'a self, local: &'a Local, region: Region) -> Option<&'a [AtomicU64]> {
        local.endpoint().shared_memory()?.view(region)
    }

    /// Returns the words of the part of `target`, if they can be reached from here.
    #[inline]
    pub(super) fn mapped<'a>(&'a self, local: &'a Local, target: u32) -> Option<&'a [AtomicU64]> {
        if target == self.rank {
            return Some(self.own(local));
        }
        match self.peers[target as usize].location.get() {
            PartLocation::Mapped(region) => self.view(local, region),
            PartLocation::Unknown | PartLocation::Remote => None,
        }
    }

    /// Returns the bytes of the part of `target`.
    #[inline]
    pub(super) fn bytes_at(&self, target: u32) -> u64 {
        self.lens.of(target as usize).saturating_mul(self.element_bytes as u64)
    }

    #[inline]
    pub(super) fn place(&self, rank: u32) -> PlaceId {
        self.members.member(rank as usize)
    }

    /// Sends a message of this window to member `to`, which is another one.
    ///
    /// # Errors
    /// Nothing was sent: it is dead.
    pub(super) fn send(&self, local: &Local, to: u32, head: MessageHeader, body: &Encode<'_>) -> Result<()> {
        // Messages that must follow data are of their class. If a part is mapped, there are none.
        let is_mapped = matches!(self.peers[to as usize].location.get(), PartLocation::Mapped(_));
        let is_alone = matches!(head.kind, MessageKind::Locate | MessageKind::Post);
        let class = if is_mapped || is_alone { Class::Control } else { Class::Data };
        let encode = |writer: &mut Writer<'_>| {
            head.encode(writer);
            body(writer)
        };
        local.send(self.place(to), class, WINDOW, encode)?;
        Ok(())
    }

    /// Waits until `condition` returns something; `what` says for what.
    ///
    /// # Errors
    /// Those of `condition`.
    pub(super) async fn wait_until<R>(
        self: &Rc<Self>,
        what: impl Fn() -> String,
        mut condition: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        let mut waiting = WaitGuard { state: self, number: None };
        poll_fn(|context| {
            if let Some(result) = condition().or_else(|| spin_until(&mut condition)) {
                return Poll::Ready(result);
            }
            waiting.note(context.waker(), &what);
            Poll::Pending
        })
        .await
    }

    /// Wakes the tasks that wait, which look for themselves.
    pub(super) fn wake(&self) {
        let wakers: Vec<Waker> = self.waits.borrow().iter().map(|wait| wait.waker.clone()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the waits here, a line each.
    pub(super) fn explain(&self) -> Vec<String> {
        self.waits.borrow().iter().map(|wait| wait.what.clone()).collect()
    }
}

/// Polls for messages while nothing else is ready to run here, until `condition` returns a value.
///
/// A message that comes soon is seen sooner than through the place's queue.
pub(crate) fn spin_until<R>(condition: &mut impl FnMut() -> Option<R>) -> Option<R> {
    Local::with(|local| {
        let is_on_host = matches!(local.clock(), Clock::Host(_));
        let looks = if local.shares_processors() || !is_on_host { 0 } else { LOOKS_MAX };
        for _ in 0..looks {
            if local.has_ready() {
                return None;
            }
            if local.poll_messages(Inbound::All) > 0
                && let Some(result) = condition()
            {
                return Some(result);
            }
        }
        None
    })
}

/// A wait, until it is over or given up.
struct WaitGuard<'a> {
    state: &'a WindowState,
    number: Option<u64>,
}

impl WaitGuard<'_> {
    fn note(&mut self, waker: &Waker, what: &impl Fn() -> String) {
        let mut waits = self.state.waits.borrow_mut();
        if let Some(wait) = waits.iter_mut().find(|wait| Some(wait.number) == self.number) {
            wait.waker.clone_from(waker);
            return;
        }
        let number = self.state.next_wait.replace(self.state.next_wait.get() + 1);
        waits.push(Wait { number, waker: waker.clone(), what: what() });
        self.number = Some(number);
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let mut waits = self.state.waits.borrow_mut();
            let index = waits.iter().position(|wait| wait.number == number);
            let over = index.map(|index| waits.swap_remove(index));
            drop(waits);
            drop(over);
        }
    }
}

impl Drop for WindowState {
    fn drop(&mut self) {
        if let Memory::Region(region) = self.memory {
            self.attachment.try_with(|local| {
                if let Some(memory) = local.endpoint().shared_memory() {
                    memory.free(region);
                }
            });
        }
    }
}
