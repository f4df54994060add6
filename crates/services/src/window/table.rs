//! The windows of one place as one of its services: the requests that wait for an answer, and the messages of others.
//!
//! A message of a window that this place no longer knows is dropped: its last handle is gone, so nothing waits for the
//! access. Invariant: a request has an entry from its send until its answer is taken or given up.

use super::forms::{check, served};
use super::header::{MessageHeader, MessageKind, WindowId, size_of_number, take_pieces};
use super::memory::{self, Pieces};
use super::number::{Combine, NumberKind};
use super::state::WindowState;
use crate::table::service::Service;
use crate::window::header::WINDOW;
use isles_protocol::PlaceId;
use isles_protocol::ordered::{OrderedMap, OrderedSet};
use isles_protocol::window::LockMode;
use isles_runtime::service::{Inquiry, NumberHasherBuilder, Refused};
use isles_runtime::wire::{DecodeError, Reader};
use isles_runtime::{Error, Local, Result};
use isles_transport::Class;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The windows of a place.
#[derive(Default)]
pub(crate) struct WindowTable {
    windows: RefCell<OrderedMap<WindowId, Weak<WindowState>>>,
    /// Number of windows this place has made.
    made: Cell<u64>,
    /// Windows of which this place serves the part of a member.
    served: RefCell<OrderedMap<WindowId, Rc<WindowState>>>,
    /// Windows whose service ended before it began: the owner's `EndServe` came before the maker's `Serve`, which may
    /// never come.
    ended_early: RefCell<OrderedSet<WindowId>>,
    requests: RefCell<HashMap<u32, PendingRequest, NumberHasherBuilder>>,
    last_token: Cell<u32>,
}

/// A request in progress.
struct PendingRequest {
    to: PlaceId,
    /// Purpose of the request, for messages to people.
    what: &'static str,
    answer: Option<Result<Vec<u8>>>,
    waker: Option<Waker>,
}

impl WindowTable {
    /// Returns an id that no window has had.
    pub(super) fn next_id(&self, here: PlaceId) -> WindowId {
        WindowId { home: here, serial: self.made.replace(self.made.get() + 1) }
    }

    pub(super) fn insert(&self, state: &Rc<WindowState>) {
        self.windows.borrow_mut().insert(state.id, Rc::downgrade(state));
    }

    pub(super) fn remove(&self, id: WindowId) {
        self.windows.borrow_mut().remove(id);
    }

    fn find(&self, id: WindowId) -> Option<Rc<WindowState>> {
        self.windows.borrow().get(id).and_then(Weak::upgrade).or_else(|| self.served(id))
    }

    /// Begins to serve a part of another place, until its owner ends that, unless it has ended it already.
    ///
    /// # Errors
    /// This place serves a part of the window already.
    pub(super) fn begin_service(&self, state: WindowState) -> Result<(), Refused> {
        let id = state.id;
        if self.ended_early.borrow_mut().remove(id) {
            return Ok(());
        }
        if self.served.borrow().contains_key(id) {
            return Err(Refused::of_service("it asks a place twice to serve a window"));
        }
        self.served.borrow_mut().insert(id, Rc::new(state));
        Ok(())
    }

    /// Returns the state of a window of which this place serves a part.
    pub(super) fn served(&self, id: WindowId) -> Option<Rc<WindowState>> {
        self.served.borrow().get(id).cloned()
    }

    /// Ends the service of a part; a `Serve` for it that arrives later has no effect.
    pub(super) fn end_service(&self, id: WindowId) {
        let ended = self.served.borrow_mut().remove(id);
        if ended.is_none() {
            self.ended_early.borrow_mut().insert(id);
        }
        drop(ended);
    }

    fn states(&self) -> Vec<Rc<WindowState>> {
        let windows = self.windows.borrow();
        windows.values().filter_map(Weak::upgrade).chain(self.served.borrow().values().cloned()).collect()
    }

    /// Opens a request to `to`; the message carries its token.
    pub(super) fn open(&self, to: PlaceId, what: &'static str) -> OpenRequest {
        let mut requests = self.requests.borrow_mut();
        let mut token = self.last_token.get();
        loop {
            token = token.wrapping_add(1);
            if token != 0 && !requests.contains_key(&token) {
                break;
            }
        }
        self.last_token.set(token);
        requests.insert(token, PendingRequest { to, what, answer: None, waker: None });
        OpenRequest { token }
    }

    /// Answers a request; returns `false` if `source` was not asked that.
    fn answer(&self, source: PlaceId, token: u32, answer: Result<Vec<u8>>) -> bool {
        let mut requests = self.requests.borrow_mut();
        let Some(request) = requests.get_mut(&token) else {
            // It was given up.
            return true;
        };
        if request.to != source || request.answer.is_some() {
            return false;
        }
        request.answer = Some(answer);
        let waker = request.waker.take();
        drop(requests);
        waker.into_iter().for_each(Waker::wake);
        true
    }
}

/// The answer to a request, as a future. Dropping it gives up the request.
pub(super) struct OpenRequest {
    pub(super) token: u32,
}

impl Future for OpenRequest {
    type Output = Result<Vec<u8>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Local::with(|local| {
            let mut requests = WindowTable::of(local).requests.borrow_mut();
            let request =
                requests.get_mut(&self.token).expect("a request has an entry until its answer is taken");
            match request.answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => {
                    request.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        Local::try_with(|local| {
            let given_up = WindowTable::of(local).requests.borrow_mut().remove(&self.token);
            drop(given_up);
        });
    }
}

impl Service for WindowTable {
    const ROW: usize = 6;

    fn new(_here: PlaceId, _places: u32) -> Self {
        WindowTable::default()
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        let asked: Vec<u32> = {
            let requests = self.requests.borrow();
            let of_place =
                requests.iter().filter(|(_, request)| request.to == place && request.answer.is_none());
            of_place.map(|(token, _)| *token).collect()
        };
        for token in asked {
            self.answer(place, token, Err(Error::dead(place)));
        }
        for state in self.states() {
            state.log.borrow_mut().place_died(place);
            let granted = state.lock.borrow_mut().place_died(place);
            grant(local, &state, granted);
            state.wake();
        }
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        let requests = self.requests.borrow();
        let mut asked: BTreeMap<(PlaceId, &str), u64> = BTreeMap::new();
        for request in requests.values().filter(|request| request.answer.is_none()) {
            *asked.entry((request.to, request.what)).or_default() += 1;
        }
        let line =
            |((to, what), count): ((PlaceId, &str), u64)| format!("{what} a window, of {to}, {count} times");
        let waits = self.states().into_iter().flat_map(|state| state.explain());
        asked.into_iter().map(line).chain(waits).collect()
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

/// Notifies places that they have the lock of the part here.
pub(super) fn grant(local: &Local, state: &WindowState, granted: Vec<(PlaceId, u32)>) {
    for (place, token) in granted {
        if place == local.here() {
            WindowTable::of(local).answer(place, token, Ok(Vec::new()));
        } else {
            reply(local, state.id, place, token, &[]);
        }
    }
}

/// Answers a request.
fn reply(local: &Local, window: WindowId, to: PlaceId, token: u32, answer: &[u8]) {
    let head = MessageHeader { token, ..MessageHeader::new(window, MessageKind::Reply) };
    // A place that died meanwhile waits for nothing.
    let _ = local.send_with_size_hint(to, Class::Control, WINDOW, answer.len() + 24, |writer| {
        head.encode(writer);
        writer.put_bytes(answer);
        Ok(())
    });
}

/// Receives a message of a window.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let head = MessageHeader::decode(reader)?;
    if head.kind == MessageKind::Reply {
        let is_asked = WindowTable::of(local).answer(source, head.token, Ok(reader.rest().to_vec()));
        return if is_asked { Ok(()) } else { Err(Refused::UnknownCall) };
    }
    if head.kind == MessageKind::Serve {
        served::serve(local, source, head.window, reader)?;
        reply(local, head.window, source, head.token, &[]);
        return Ok(());
    }
    if head.kind == MessageKind::EndServe {
        return served::end_serve(local, source, head.window, reader);
    }
    let Some(state) = WindowTable::of(local).find(head.window) else { return Ok(()) };
    if state.servers.is_some() && !state.is_server() {
        return receive_as_owner(&state, source, head);
    }
    let rank = state.members.rank_of(source);
    let rank =
        rank.ok_or_else(|| Refused::of_service("it accesses a window of which it is not a member"))? as u32;
    match head.kind {
        MessageKind::Put | MessageKind::PutNotify | MessageKind::PutStrided => {
            put(local, &state, head, reader)?
        }
        MessageKind::Accumulate => accumulate(local, &state, head, reader)?,
        MessageKind::Get | MessageKind::FetchAdd | MessageKind::CompareExchange => {
            let answer = fetch(local, &state, head, reader)?;
            reply(local, state.id, source, head.token, &answer);
        }
        MessageKind::Flush => reply(local, state.id, source, head.token, &[]),
        MessageKind::Locate => {
            let region = state.region().map(|region| [region.start, region.words].map(u64::to_le));
            reply(local, state.id, source, head.token, bytemuck::cast_slice(region.as_slice()));
        }
        MessageKind::LockExclusive | MessageKind::LockShared => lock(local, &state, source, head)?,
        MessageKind::Unlock => {
            unlock(local, &state, source)?;
            if head.token != 0 {
                reply(local, state.id, source, head.token, &[]);
            }
        }
        MessageKind::Post => state.exposure.borrow_mut().posted(rank),
        MessageKind::Complete if state.is_server() => {}
        MessageKind::Complete => {
            let completed = state.exposure.borrow_mut().completed(rank);
            completed.map_err(|_| Refused::of_service("it completes an epoch that was not posted for it"))?;
        }
        MessageKind::Check => {
            let fault = check::note(&state, source, reader.take_serde()?);
            reply(local, state.id, source, head.token, fault.unwrap_or_default().as_bytes());
        }
        MessageKind::Notice | MessageKind::Reply => {}
        MessageKind::Serve
        | MessageKind::EndServe
        | MessageKind::ServedNotice
        | MessageKind::ServedComplete => return Err(Refused::of_service("it serves no part here")),
    }
    announce(local, &state, head.kind, rank);
    Ok(())
}

/// Wakes the tasks of the owner for what a message has announced, after its data.
fn announce(local: &Local, state: &WindowState, kind: MessageKind, rank: u32) {
    let is_heard = [MessageKind::Notice, MessageKind::PutNotify, MessageKind::Post, MessageKind::Complete];
    if !is_heard.contains(&kind) {
        return;
    }
    if state.is_server() {
        served::forward(local, state, kind, rank);
        return;
    }
    if matches!(kind, MessageKind::Notice | MessageKind::PutNotify) {
        let notices = &state.peers[rank as usize].notices;
        notices.set(notices.get() + 1);
    }
    state.wake();
}

/// Receives a message at the owner of a part that another place serves.
fn receive_as_owner(state: &WindowState, source: PlaceId, head: MessageHeader) -> Result<(), Refused> {
    let from_server = source == state.server_of(state.rank);
    let rank = match head.kind {
        MessageKind::Post => state.members.rank_of(source),
        MessageKind::ServedNotice | MessageKind::ServedComplete if from_server => {
            usize::try_from(head.offset).ok().filter(|rank| *rank < state.peers.len())
        }
        _ => None,
    };
    let rank = rank.ok_or_else(|| Refused::of_service("it accesses a window that another place serves"))?;
    match head.kind {
        MessageKind::Post => state.exposure.borrow_mut().posted(rank as u32),
        MessageKind::ServedComplete => {
            let completed = state.exposure.borrow_mut().completed(rank as u32);
            completed.map_err(|_| Refused::of_service("it completes an epoch that was not posted for it"))?;
        }
        _ => {
            let notices = &state.peers[rank].notices;
            notices.set(notices.get() + 1);
        }
    }
    state.wake();
    Ok(())
}

/// Handles the request of `source` for the lock of the part here.
fn lock(local: &Local, state: &WindowState, source: PlaceId, head: MessageHeader) -> Result<(), Refused> {
    let mode = if head.kind == MessageKind::LockShared { LockMode::Shared } else { LockMode::Exclusive };
    // A place that asked repeatedly would fill the memory here.
    if state.lock.borrow().knows(source) {
        return Err(Refused::of_service("it asks for a lock that it has or waits for"));
    }
    let granted = state.lock.borrow_mut().request(source, mode, head.token);
    grant(local, state, granted);
    Ok(())
}

/// Takes the lock of the part here from `holder`.
pub(super) fn unlock(local: &Local, state: &WindowState, holder: PlaceId) -> Result<(), Refused> {
    let granted = state.lock.borrow_mut().release(holder);
    let granted = granted.map_err(|_| Refused::of_service("it gives back a lock that it does not hold"))?;
    state.log.borrow_mut().unlocked(holder);
    grant(local, state, granted);
    Ok(())
}

/// # Errors
/// The bytes are not all within the part here, or no member may access it now.
fn check_range(state: &WindowState, layout: Pieces) -> Result<(), Refused> {
    if state.is_lent() {
        return Err(Refused::of_service("it accesses a part of a window that is not open"));
    }
    let bytes = usize::try_from(state.bytes_at(state.rank)).unwrap_or(usize::MAX);
    match layout.is_within(bytes) {
        true => Ok(()),
        false => Err(Refused::of_service(format_args!("it accesses bytes beyond the {bytes} of a window"))),
    }
}

fn put(
    local: &Local,
    state: &WindowState,
    head: MessageHeader,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    let layout = match head.kind {
        MessageKind::PutStrided => take_pieces(head.offset, reader)?,
        _ => Pieces::contiguous(size_of_number(head.offset)?, reader.left()),
    };
    check_range(state, layout)?;
    let data = reader.rest();
    if layout.bytes() != Some(data.len()) {
        return Err(Refused::of_service("its data do not have the announced length"));
    }
    state.store_own(local, layout, data);
    Ok(())
}

/// Reads the kinds of an update: of the number, and of the operation.
fn take_kinds(
    state: &WindowState,
    head: MessageHeader,
    reader: &mut Reader<'_>,
) -> Result<(NumberKind, Combine), Refused> {
    let [kind, how, ..] = reader.take_pod::<[u8; 8]>()?;
    let (kind, how) = (NumberKind::of(kind), Combine::of(how));
    let (Some(kind), Some(how)) = (kind, how) else {
        return Err(Refused::of_service("it combines numbers of an unknown kind"));
    };
    match kind.bytes() == state.element_bytes && (head.offset as usize).is_multiple_of(kind.bytes()) {
        true => Ok((kind, how)),
        false => Err(Refused::of_service("it combines numbers where there are none")),
    }
}

fn accumulate(
    local: &Local,
    state: &WindowState,
    head: MessageHeader,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    let (kind, how) = take_kinds(state, head, reader)?;
    let operands = reader.rest();
    let layout = Pieces::contiguous(size_of_number(head.offset)?, operands.len());
    check_range(state, layout)?;
    match state.served() {
        Some(part) => part.accumulate(layout.offset, kind, how, operands),
        None => accumulate_bytes(state.own(local), layout.offset, kind, how, operands),
    }
    Ok(())
}

/// Combines the numbers from byte `offset` on with operands.
pub(super) fn accumulate_bytes(
    words: &[AtomicU64],
    offset: usize,
    kind: NumberKind,
    how: Combine,
    operands: &[u8],
) {
    for (index, operand) in operands.chunks_exact(kind.bytes()).enumerate() {
        memory::accumulate(words, offset + index * kind.bytes(), kind, how, kind.read(operand));
    }
}

fn fetch(
    local: &Local,
    state: &WindowState,
    head: MessageHeader,
    reader: &mut Reader<'_>,
) -> Result<Vec<u8>, Refused> {
    if head.kind == MessageKind::Get {
        let layout = take_pieces(head.offset, reader)?;
        check_range(state, layout)?;
        let mut answer = vec![0; layout.bytes().unwrap_or_default()];
        state.load_own(local, layout, &mut answer);
        return Ok(answer);
    }
    let (kind, _) = take_kinds(state, head, reader)?;
    let layout = Pieces::contiguous(size_of_number(head.offset)?, kind.bytes());
    check_range(state, layout)?;
    let mut operand = || -> Result<u64, DecodeError> { Ok(reader.take_u64()? & kind.mask()) };
    let one = operand()?;
    let other = if head.kind == MessageKind::CompareExchange { operand()? } else { 0 };
    let change = |words: &[AtomicU64], offset| match head.kind {
        MessageKind::FetchAdd => memory::accumulate(words, offset, kind, Combine::Sum, one),
        _ => memory::compare_exchange(words, offset, kind, one, other),
    };
    let before = match state.served() {
        Some(part) => part.update(layout.offset, kind.bytes(), change),
        None => change(state.own(local), layout.offset),
    };
    Ok(before.to_le_bytes().to_vec())
}
