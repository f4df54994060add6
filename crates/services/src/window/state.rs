//! State of one window at one place: its part, the location of the others, its epochs, and the waiting tasks.
//!
//! Invariant: nothing of it is borrowed while a task is woken or a message is sent.

use super::forms::queue::QueuedOperation;
use super::forms::served::{ServeRequest, ServedMemory, ServedPart};
use super::header::{MessageHeader, MessageKind, WindowId};
use super::memory::Pieces;
use super::memory::words_of;
use super::{PartLengths, WindowOptions};
use super::{memory, transfer};
use crate::shared::MemoryRange;
use crate::team::Team;
use crate::window::header::WINDOW;
use isles_protocol::PlaceId;
use isles_protocol::window::{AccessEpoch, AccessLog, Exposure, LockQueue};
use isles_runtime::memory::free_bytes;
use isles_runtime::service::coop::spin_until;
use isles_runtime::service::{Attachment, Encode, Members, PlaceGroup};
use isles_runtime::wire::Writer;
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_transport::{Class, MappedMemory, Region};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::Location;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::task::{Poll, Waker};

/// A line of the program.
pub(super) type Line = &'static Location<'static>;

/// Memory of a part.
enum Memory {
    /// A region that other places may have mapped.
    Region(Region),
    /// Memory of this place alone.
    Heap(Box<[AtomicU64]>),
    /// Memory of a modelled chip; at the owner of the part and at its server.
    Served(ServedPart),
    /// None: the system has no memory for the part.
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

/// The words of a part that is lent. They do not move while the state of its window and `hold` live.
pub(super) struct BorrowedWords {
    pub(super) words: NonNull<[AtomicU64]>,
    /// The owner of their mapping, if that is not the state itself.
    pub(super) hold: Option<Rc<dyn Any>>,
}

/// Location of the part of another member, as known here.
#[derive(Clone, Copy)]
pub(super) enum PartLocation {
    Unknown,
    /// A region that this place can view.
    Mapped(Region),
    /// Reachable only through messages.
    Remote,
}

/// State a place keeps of another member.
pub(super) struct Peer {
    pub(super) location: Cell<PartLocation>,
    /// True if accesses were sent there since the last flush.
    pub(super) is_touched: Cell<bool>,
    /// Number of notices received from there.
    pub(super) notices: Cell<u64>,
}

/// A task that waits for a message.
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
    /// The rank of this place: its position in `members`.
    pub(super) rank: u32,
    pub(super) lens: PartLengths,
    pub(super) element_bytes: usize,
    pub(super) options: WindowOptions,
    /// A team that only fences use; `None` at a server.
    pub(super) team: Option<Team>,
    /// The server of each rank; `None` if each member serves its own part.
    pub(super) servers: Option<Vec<PlaceId>>,
    memory: Memory,
    /// True while the part here is lent as a slice, so that nothing else may access its words.
    is_lent: Cell<bool>,
    pub(super) peers: Box<[Peer]>,
    /// Has no lines while the window is new.
    pub(super) epoch: RefCell<AccessEpoch<Option<Line>>>,
    /// Number of fences this place has passed.
    pub(super) fences: Cell<u64>,
    pub(super) exposure: RefCell<Exposure>,
    /// The lock of the part here; a request is answered by its token.
    pub(super) lock: RefCell<LockQueue<u32>>,
    pub(super) log: RefCell<AccessLog<String>>,
    /// In the queued form, the operations queued for all members.
    pub(super) queued: RefCell<Vec<QueuedOperation>>,
    waits: RefCell<Vec<Wait>>,
    next_wait: Cell<u64>,
}

/// The parts of a state that differ between members and servers.
struct WindowSetup {
    id: WindowId,
    members: Members,
    rank: u32,
    lens: PartLengths,
    element_bytes: usize,
    options: WindowOptions,
    team: Option<Team>,
    servers: Option<Vec<PlaceId>>,
    memory: Memory,
}

impl WindowState {
    /// Returns the state of a member.
    pub(super) fn new(local: &Local, seed: super::Seed) -> WindowState {
        let members = seed.team.members().unwrap_or(Members::All(local.places()));
        let rank = members.rank_of(local.here()).unwrap_or_default();
        let bytes = seed.lens.of(rank).saturating_mul(seed.element_bytes as u64);
        let memory = match seed.options.served.filter(|_| seed.servers.is_some()) {
            Some(kind) => ServedPart::take(local, kind, bytes).map_or(Memory::None, Memory::Served),
            None => Memory::new(local, words_of(bytes), !seed.options.queued),
        };
        let setup = WindowSetup {
            id: seed.id,
            members,
            rank: rank as u32,
            lens: seed.lens,
            element_bytes: seed.element_bytes,
            options: seed.options,
            team: Some(seed.team),
            servers: seed.servers,
            memory,
        };
        WindowState::of_setup(local, setup)
    }

    /// Returns the state of the server of a part.
    pub(super) fn server(
        local: &Local,
        id: WindowId,
        request: ServeRequest,
        part: ServedPart,
    ) -> WindowState {
        let ServeRequest { members, lens, element_bytes, servers, rank, .. } = request;
        let setup = WindowSetup {
            id,
            members,
            rank,
            lens,
            element_bytes,
            options: WindowOptions::default(),
            team: None,
            servers: Some(servers),
            memory: Memory::Served(part),
        };
        WindowState::of_setup(local, setup)
    }

    fn of_setup(local: &Local, setup: WindowSetup) -> WindowState {
        let is_shared = !setup.options.queued && setup.servers.is_none();
        let peer = |_| Peer {
            location: Cell::new(if is_shared { PartLocation::Unknown } else { PartLocation::Remote }),
            is_touched: Cell::new(false),
            notices: Cell::new(0),
        };
        WindowState {
            id: setup.id,
            attachment: local.attachment(),
            rank: setup.rank,
            memory: setup.memory,
            is_lent: Cell::new(false),
            peers: (0..setup.members.len()).map(peer).collect(),
            members: setup.members,
            lens: setup.lens,
            element_bytes: setup.element_bytes,
            options: setup.options,
            team: setup.team,
            servers: setup.servers,
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
            Memory::Region(_) | Memory::Heap(_) | Memory::Served(_) => Ok(()),
            Memory::None => {
                let (len, size) = (self.lens.of(self.rank as usize), self.element_bytes);
                let memory = match self.options.served {
                    Some(ServedMemory::Buffer) => "room in the message buffer (see --window-lines)",
                    _ => "memory",
                };
                let text = format!("no {memory} for a window of {len} elements of {size} bytes each");
                Err(Error::new(ErrorKind::Misused, text))
            }
        }
    }

    /// Returns `true` if all places of the run can map the part here.
    pub(super) fn is_near(&self, local: &Local) -> bool {
        let is_mapped = self.region().is_some() || self.bytes_at(self.rank) == 0;
        is_mapped && local.endpoint().other_hosts().is_none()
    }

    /// Returns the words of the part here; empty while it is lent.
    #[inline]
    pub(super) fn own<'a>(&'a self, local: &'a Local) -> &'a [AtomicU64] {
        match &self.memory {
            _ if self.is_lent.get() => &[],
            Memory::Region(region) => self.view(local, *region).unwrap_or_default(),
            Memory::Heap(words) => words,
            Memory::Served(_) | Memory::None => &[],
        }
    }

    /// Returns the part in memory of a modelled chip, at its owner and its server.
    pub(super) fn served(&self) -> Option<&ServedPart> {
        match &self.memory {
            Memory::Served(part) => Some(part),
            Memory::Region(_) | Memory::Heap(_) | Memory::None => None,
        }
    }

    /// Returns the range of the part of this member, if a server serves it.
    pub(super) fn served_range(&self) -> Option<MemoryRange> {
        self.served().map(|part| part.range)
    }

    /// Reads bytes of the part here; `layout` lies within it.
    pub(super) fn load_own(&self, local: &Local, layout: Pieces, into: &mut [u8]) {
        match self.served() {
            Some(part) => part.load(layout, into),
            None => memory::load(self.own(local), layout, into),
        }
    }

    /// Writes bytes of the part here; `layout` lies within it.
    pub(super) fn store_own(&self, local: &Local, layout: Pieces, data: &[u8]) {
        match self.served() {
            Some(part) => part.store(layout, data),
            None => memory::store(self.own(local), layout, data),
        }
    }

    /// Returns `true` at the server of a part.
    pub(super) fn is_server(&self) -> bool {
        self.team.is_none()
    }

    /// Returns `true` if this place itself serves the part of `target`.
    #[inline]
    pub(super) fn is_own(&self, target: u32) -> bool {
        target == self.rank && self.servers.is_none()
    }

    /// Returns the place that serves accesses to the part of `rank`.
    #[inline]
    pub(super) fn server_of(&self, rank: u32) -> PlaceId {
        match &self.servers {
            Some(servers) => servers[rank as usize],
            None => self.place(rank),
        }
    }

    /// Asks the servers to serve the parts; `ranges` are in the order of the ranks.
    ///
    /// # Errors
    /// A server is dead.
    pub(super) async fn begin_service(self: &Rc<Self>, ranges: Vec<MemoryRange>) -> Result<()> {
        for (rank, range) in (0..).zip(ranges) {
            let request = ServeRequest {
                members: self.members.clone(),
                lens: self.lens.clone(),
                element_bytes: self.element_bytes,
                servers: self.servers.clone().unwrap_or_default(),
                rank,
                range,
            };
            let head = MessageHeader::new(self.id, MessageKind::Serve);
            let put = |writer: &mut Writer<'_>| writer.put_serde(&request);
            transfer::request(self, rank, "the service of", head, &put).await?;
        }
        Ok(())
    }

    /// Lends the words of the part here, which [`WindowState::own`] hides until [`WindowState::end_loan`]; `None` if
    /// they are lent already.
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

    /// Returns the region of the part here, for places that can map it.
    pub(super) fn region(&self) -> Option<Region> {
        match self.memory {
            Memory::Region(region) => Some(region),
            Memory::Heap(_) | Memory::Served(_) | Memory::None => None,
        }
    }

    #[inline]
    fn view<'a>(&'a self, local: &'a Local, region: Region) -> Option<&'a [AtomicU64]> {
        local.endpoint().shared_memory()?.view(region)
    }

    /// Returns the words of the part of `target`, if this place can access them directly.
    #[inline]
    pub(super) fn mapped<'a>(&'a self, local: &'a Local, target: u32) -> Option<&'a [AtomicU64]> {
        if self.is_own(target) {
            return Some(self.own(local));
        }
        match self.peers[target as usize].location.get() {
            PartLocation::Mapped(region) => self.view(local, region),
            PartLocation::Unknown | PartLocation::Remote => None,
        }
    }

    /// Returns the number of bytes of the part of `target`.
    #[inline]
    pub(super) fn bytes_at(&self, target: u32) -> u64 {
        self.lens.of(target as usize).saturating_mul(self.element_bytes as u64)
    }

    #[inline]
    pub(super) fn place(&self, rank: u32) -> PlaceId {
        self.members.member(rank as usize)
    }

    /// Sends a message of this window to another member `to`, or to its server.
    ///
    /// # Errors
    /// The receiver is dead, and nothing was sent.
    pub(super) fn send(&self, local: &Local, to: u32, head: MessageHeader, body: &Encode<'_>) -> Result<()> {
        // Messages that must follow data have their class. If a part is mapped, there are none.
        let is_mapped = matches!(self.peers[to as usize].location.get(), PartLocation::Mapped(_));
        let is_alone = matches!(head.kind, MessageKind::Locate | MessageKind::Post);
        let class = if is_mapped || is_alone { Class::Control } else { Class::Data };
        let encode = |writer: &mut Writer<'_>| {
            head.encode(writer);
            body(writer)
        };
        let place = if head.kind == MessageKind::Post { self.place(to) } else { self.server_of(to) };
        local.send(place, class, WINDOW, encode)?;
        Ok(())
    }

    /// Waits until `condition` returns a result; `what` describes the wait.
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

    /// Wakes the waiting tasks, which check by themselves.
    pub(super) fn wake(&self) {
        let wakers: Vec<Waker> = self.waits.borrow().iter().map(|wait| wait.waker.clone()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the waits here, one line each.
    pub(super) fn explain(&self) -> Vec<String> {
        self.waits.borrow().iter().map(|wait| wait.what.clone()).collect()
    }
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
        let _ = self.attachment.try_with(|local| match &self.memory {
            Memory::Region(region) => {
                if let Some(memory) = local.endpoint().shared_memory() {
                    memory.free(*region);
                }
            }
            Memory::Served(part) if !self.is_server() => {
                let head = MessageHeader::new(self.id, MessageKind::EndServe);
                let put = |writer: &mut Writer<'_>| writer.put_serde(&part.range);
                // A dead server cannot give it back.
                if self.send(local, self.rank, head, &put).is_err() {
                    part.give_back();
                }
            }
            // The owner's `EndServe` gives the range back.
            Memory::Served(_) | Memory::Heap(_) | Memory::None => {}
        });
    }
}
