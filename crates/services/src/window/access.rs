//! The accesses of a window: put, get, accumulate, fetch, compare and exchange.
//!
//! Each is checked first, then done at once if the part is mapped, and otherwise by message (`transfer`). The code that
//! depends on the type of elements is thin.

use super::forms::check::{AccessRecord, GET, PUT, UPDATE};
use super::forms::queue::{NotSent, QueuedOperationKind};
use super::header::{MessageHeader, MessageKind};
use super::memory::{self, Pieces};
use super::number::{Combine, NumberKind, WindowNumber};
use super::state::{Line, WindowState};
use super::{Window, describe, table, transfer};
use isles_protocol::window::EpochKind;
use isles_runtime::capture::Element;
use isles_runtime::service::coop::{Attempt, CALL, FastPath, slow_path, spend_budget, wait_until_sent};
use isles_runtime::service::span;
use isles_runtime::wire::Writer;
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_telemetry::CounterId;
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

/// Shape of a strided access: pieces of equal length at equal distances, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Elements of each piece.
    pub block: usize,
    /// Elements from the start of one piece to the start of the next, at least `block`.
    pub stride: usize,
}

impl Strided {
    /// Returns the pieces of an access to `len` elements, the first at `at`.
    fn elements(self, at: usize, len: usize) -> Result<Elements> {
        let Strided { block, stride } = self;
        if len == 0 {
            return Ok(Elements::contiguous(at, 0));
        }
        if block == 0 || !len.is_multiple_of(block) {
            let text = format!("{len} elements in pieces of {block}; allowed: a whole number of pieces");
            return Err(Error::new(ErrorKind::Misused, text));
        }
        if stride < block {
            let text = format!("pieces of {block} elements, {stride} apart, overlap");
            return Err(Error::new(ErrorKind::Misused, text));
        }
        Ok(Elements { at, block, stride, count: len / block })
    }
}

/// The pieces of one access, in elements.
#[derive(Clone, Copy)]
struct Elements {
    at: usize,
    block: usize,
    stride: usize,
    count: usize,
}

impl Elements {
    #[inline]
    fn contiguous(at: usize, len: usize) -> Elements {
        Elements { at, block: len, stride: len, count: 1 }
    }

    /// Returns `true` if all elements are among the first `len`.
    fn are_within(self, len: u64) -> bool {
        let Elements { at, block, stride, count } = self;
        let last = count.saturating_sub(1).checked_mul(stride).and_then(|skipped| at.checked_add(skipped));
        last.and_then(|last| last.checked_add(block)).is_some_and(|end| end as u64 <= len)
    }

    /// Returns their positions in bytes; beyond all memory if a number is too large.
    #[inline]
    fn layout(self, element_bytes: usize) -> Pieces {
        let bytes = |elements: usize| elements.saturating_mul(element_bytes);
        let (offset, block, stride) = (bytes(self.at), bytes(self.block), bytes(self.stride));
        Pieces { offset, block, stride, count: self.count }
    }
}

/// One access: its name, the rank of the part, the elements, and the line of the program.
#[derive(Clone, Copy)]
struct AccessCall {
    name: &'static str,
    /// [`GET`], [`PUT`] or [`UPDATE`].
    kind: u8,
    target: u32,
    elements: Elements,
    line: Line,
}

impl WindowState {
    /// Checks an access to the bytes of `layout` that starts now.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[inline]
    fn admit(&self, local: &Local, access: &AccessCall, layout: Pieces) -> Result<()> {
        if access.target as usize >= self.peers.len() {
            return Err(self.no_rank(access.target as usize));
        }
        let bytes = usize::try_from(self.bytes_at(access.target)).unwrap_or(usize::MAX);
        // Elements of size zero have bounds, too.
        if !layout.is_within(bytes) || self.element_bytes == 0 {
            self.check_elements(access)?;
        }
        if let Err(fault) = self.epoch.borrow_mut().access(access.target) {
            let text = format!(
                "{} at rank {} outside its access epoch: {}",
                access.name,
                access.target,
                describe(fault)
            );
            return Err(Error::new(ErrorKind::Misused, text));
        }
        // A put reports a death at the next synchronisation: the check would take a tenth of its time.
        if access.kind != PUT && local.is_dead(self.place(access.target)) {
            return Err(Error::dead(self.place(access.target)));
        }
        Ok(())
    }

    /// Returns the position in bytes of an access.
    #[inline]
    fn layout_of(&self, access: &AccessCall) -> Pieces {
        access.elements.layout(self.element_bytes)
    }

    #[cold]
    pub(super) fn no_rank(&self, rank: usize) -> Error {
        Error::new(ErrorKind::Misused, format!("rank {rank} of a window of {} places", self.peers.len()))
    }

    /// # Errors
    /// The access goes beyond the elements of its target.
    #[cold]
    fn check_elements(&self, access: &AccessCall) -> Result<()> {
        let Elements { at, block, stride, count } = access.elements;
        let (name, target, len) = (access.name, access.target, self.lens.of(access.target as usize));
        if access.elements.are_within(len) {
            return Ok(());
        }
        let text = match count {
            1 => format!(
                "{name} of {block} elements from {at} on at rank {target}, but that part has \
                 {len}"
            ),
            _ => format!(
                "{name} of {count} times {block} elements, {stride} apart, from {at} on at rank \
                 {target}, but that part has {len}"
            ),
        };
        Err(Error::new(ErrorKind::Misused, text))
    }

    /// Returns the words of the part if the access can be done at once.
    #[inline]
    fn at_once<'a>(&'a self, local: &'a Local, access: &AccessCall) -> Option<&'a [AtomicU64]> {
        let words = if self.options.checked { None } else { self.mapped(local, access.target) };
        if words.is_none() {
            local.add_count(CounterId::WindowByMessage, 1);
        }
        words
    }

    /// Prepares an access that cannot be done at once: asks where the part lies, and whether the access conflicts.
    ///
    /// The question goes the way of the unlock, which must not overtake it if the access is given up.
    async fn prepare(self: &Rc<Self>, access: &AccessCall) -> Result<()> {
        transfer::locate(self, access.target).await?;
        if self.options.checked { self.check(access).await } else { Ok(()) }
    }

    /// # Errors
    /// The access conflicts with another one.
    async fn check(self: &Rc<Self>, access: &AccessCall) -> Result<()> {
        let epoch = match self.epoch.borrow().kind() {
            EpochKind::Started => 0,
            EpochKind::Locked => 1,
            EpochKind::Fence | EpochKind::Closed => 2,
        };
        let Elements { at, block, stride, count } = access.elements;
        let [first, block, stride, count] = [at, block, stride, count].map(|number| number as u64);
        let line = access.line.to_string();
        let fences = self.fences.get();
        let claim = AccessRecord { kind: access.kind, epoch, fences, first, block, stride, count, line };
        let fault = if access.target == self.rank {
            super::forms::check::note(self, self.place(self.rank), claim).unwrap_or_default()
        } else {
            let head = MessageHeader::new(self.id, MessageKind::Check);
            let put = |writer: &mut Writer<'_>| writer.put_serde(&claim);
            let answer =
                transfer::request(self, access.target, "the check of an access to", head, &put).await?;
            String::from_utf8_lossy(&answer).into_owned()
        };
        if fault.is_empty() { Ok(()) } else { Err(Error::new(ErrorKind::Misused, fault)) }
    }

    /// Notifies `target` of data that have arrived.
    pub(super) fn notify(&self, local: &Local, target: u32) -> Result<()> {
        if target != self.rank {
            return self.send(local, target, MessageHeader::new(self.id, MessageKind::Notice), &|_| Ok(()));
        }
        let notices = &self.peers[target as usize].notices;
        notices.set(notices.get() + 1);
        self.wake();
        Ok(())
    }
}

/// Adds the line of the program to an error.
#[inline]
pub(super) fn named<V>(line: Line, result: Result<V>) -> Result<V> {
    result.map_err(|error| error.called_at(Local::with(Local::here), line))
}

impl<T: Element> Window<T> {
    /// Writes `data` to the part of `target`, from element `at` on.
    ///
    /// Others see the data after the next synchronisation of this place with `target`: a fence, a flush, an unlock, a
    /// `complete`.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn put<'a>(
        &'a self,
        target: usize,
        at: usize,
        data: &'a [T],
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        self.put_elements("a put", target, Elements::contiguous(at, data.len()), data, false)
    }

    /// As [`Window::put`], in pieces, the first at `at`.
    ///
    /// # Errors
    /// As [`Window`] says; [`Misused`](ErrorKind::Misused): `data` is not a whole number of pieces, or pieces overlap.
    #[track_caller]
    pub fn put_strided(
        &self,
        target: usize,
        at: usize,
        pieces: Strided,
        data: &[T],
    ) -> impl Future<Output = Result<()>> {
        let elements = pieces.elements(at, data.len());
        let line = Location::caller();
        async move { self.put_now("a strided put", target, named(line, elements)?, data, false, line).await }
    }

    /// As [`Window::put`], and notifies `target` once the data are there, for [`Window::notified`].
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn put_notify<'a>(
        &'a self,
        target: usize,
        at: usize,
        data: &'a [T],
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        self.put_elements("a put", target, Elements::contiguous(at, data.len()), data, true)
    }

    #[track_caller]
    #[inline]
    fn put_elements<'a>(
        &'a self,
        name: &'static str,
        target: usize,
        elements: Elements,
        data: &'a [T],
        notifies: bool,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        let line = Location::caller();
        self.put_now(name, target, elements, data, notifies, line)
    }

    #[inline]
    fn put_now<'a>(
        &'a self,
        name: &'static str,
        target: usize,
        elements: Elements,
        data: &'a [T],
        notifies: bool,
        line: Line,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        let access = AccessCall { name, kind: PUT, target: rank_of(target), elements, line };
        let (state, data): (_, &[u8]) = (self.state(), bytemuck::cast_slice(data));
        FastPath::named(line, move || {
            if put_at_once(state, &access, data, notifies)? {
                return Ok(Attempt::Done(()));
            }
            Ok(slow_path(|| put_bytes(state, access, data, notifies)))
        })
    }

    /// Reads elements of the part of `target`, from `at` on, into `into`.
    ///
    /// # Errors
    /// As [`Window`] says. After an error, `into` may hold a part of the result.
    #[track_caller]
    pub fn get<'a>(
        &'a self,
        target: usize,
        at: usize,
        into: &'a mut [T],
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        let line = Location::caller();
        self.get_now("a get", target, Elements::contiguous(at, into.len()), into, line)
    }

    /// As [`Window::get`], from pieces, the first at `at`.
    ///
    /// # Errors
    /// As [`Window::put_strided`].
    #[track_caller]
    pub fn get_strided(
        &self,
        target: usize,
        at: usize,
        pieces: Strided,
        into: &mut [T],
    ) -> impl Future<Output = Result<()>> {
        let elements = pieces.elements(at, into.len());
        let line = Location::caller();
        async move { self.get_now("a strided get", target, named(line, elements)?, into, line).await }
    }

    #[inline]
    fn get_now<'a>(
        &'a self,
        name: &'static str,
        target: usize,
        elements: Elements,
        into: &'a mut [T],
        line: Line,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        let access = AccessCall { name, kind: GET, target: rank_of(target), elements, line };
        let (state, mut into) = (self.state(), Some(bytemuck::cast_slice_mut(into)));
        FastPath::named(line, move || {
            let into: &mut [u8] = into.take().unwrap_or_default();
            if get_at_once(state, &access, into)? {
                return Ok(Attempt::Done(()));
            }
            Ok(slow_path(|| get_bytes(state, access, into)))
        })
    }
}

impl<T: WindowNumber> Window<T> {
    /// Combines elements of the part of `target`, from `at` on, with `operands`, each atomically.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn accumulate<'a>(
        &'a self,
        target: usize,
        at: usize,
        operands: &'a [T],
        how: Combine,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        let line = Location::caller();
        let elements = Elements::contiguous(at, operands.len());
        let access =
            AccessCall { name: "an accumulate", kind: UPDATE, target: rank_of(target), elements, line };
        let (state, operands): (_, &[u8]) = (self.state(), bytemuck::cast_slice(operands));
        FastPath::named(line, move || {
            if accumulate_at_once(state, &access, T::KIND, how, operands)? {
                return Ok(Attempt::Done(()));
            }
            Ok(slow_path(|| accumulate_bytes(state, access, T::KIND, how, operands)))
        })
    }

    /// Adds `value` to element `at` of the part of `target`, atomically; returns the previous value.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn fetch_add(&self, target: usize, at: usize, value: T) -> impl Future<Output = Result<T>> {
        self.fetch("a fetch_add", target, at, MessageKind::FetchAdd, [value.bits(), 0])
    }

    /// Replaces element `at` of the part of `target` by `new` if it has the bits of `expected`, atomically; returns the
    /// previous value.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn compare_exchange(
        &self,
        target: usize,
        at: usize,
        expected: T,
        new: T,
    ) -> impl Future<Output = Result<T>> {
        let operands = [expected.bits(), new.bits()];
        self.fetch("a compare_exchange", target, at, MessageKind::CompareExchange, operands)
    }

    #[track_caller]
    #[inline]
    fn fetch(
        &self,
        name: &'static str,
        target: usize,
        at: usize,
        how: MessageKind,
        operands: [u64; 2],
    ) -> impl Future<Output = Result<T>> {
        let (elements, line) = (Elements::contiguous(at, 1), Location::caller());
        let access = AccessCall { name, kind: UPDATE, target: rank_of(target), elements, line };
        let state = self.state();
        FastPath::named(line, move || {
            Ok(match fetch_at_once(state, &access, T::KIND, how, operands)? {
                Some(before) => Attempt::Done(T::of_bits(before)),
                None => slow_path(|| async move {
                    fetch_bits(state, access, T::KIND, how, operands).await.map(T::of_bits)
                }),
            })
        })
    }
}

/// Returns a rank in the form that windows keep; no window has the result if the rank is too large.
#[inline]
fn rank_of(target: usize) -> u32 {
    u32::try_from(target).unwrap_or(u32::MAX)
}

/// Does a put if the part is mapped; returns whether it did.
#[inline]
fn put_at_once(state: &WindowState, access: &AccessCall, data: &[u8], notifies: bool) -> Result<bool> {
    state.attachment.with(|local| {
        spend_budget(CALL);
        local.add_count(CounterId::WindowPuts, 1);
        let layout = state.layout_of(access);
        state.admit(local, access, layout)?;
        let Some(words) = state.at_once(local, access) else { return Ok(false) };
        memory::store(words, layout, data);
        if notifies { state.notify(local, access.target).map(|()| true) } else { Ok(true) }
    })?
}

async fn put_bytes(state: &Rc<WindowState>, access: AccessCall, data: &[u8], notifies: bool) -> Result<()> {
    let (target, layout) = (access.target, state.layout_of(&access));
    let _span = Local::with(|local| local.span(span::PUT, Some(state.place(target)), || None));
    state.prepare(&access).await?;
    let stored = Local::with(|local| {
        state.mapped(local, target).map(|words| {
            memory::store(words, layout, data);
            if notifies { state.notify(local, target) } else { Ok(()) }
        })
    });
    match stored {
        Some(stored) => stored,
        None if state.is_queued(target) => {
            state.enqueue(target, QueuedOperationKind::Put { layout, data: data.to_vec(), notifies });
            Ok(())
        }
        None => {
            transfer::send_put(state, target, layout, data, notifies)?;
            wait_until_sent().await;
            Ok(())
        }
    }
}

/// Does a get if the part is mapped; returns whether it did.
#[inline]
fn get_at_once(state: &WindowState, access: &AccessCall, into: &mut [u8]) -> Result<bool> {
    state.attachment.with(|local| {
        spend_budget(CALL);
        local.add_count(CounterId::WindowGets, 1);
        let layout = state.layout_of(access);
        state.admit(local, access, layout)?;
        let Some(words) = state.at_once(local, access) else { return Ok(false) };
        memory::load(words, layout, into);
        Ok(true)
    })?
}

async fn get_bytes(state: &Rc<WindowState>, access: AccessCall, into: &mut [u8]) -> Result<()> {
    let layout = state.layout_of(&access);
    let _span = Local::with(|local| local.span(span::GET, Some(state.place(access.target)), || None));
    state.prepare(&access).await?;
    let loaded = Local::with(|local| {
        state.mapped(local, access.target).map(|words| memory::load(words, layout, into)).is_some()
    });
    if loaded {
        return Ok(());
    }
    state.send_queued(access.target, NotSent::Kept).await?;
    transfer::ask_for(state, access.target, layout, into).await
}

/// Does an accumulate if the part is mapped; returns whether it did.
fn accumulate_at_once(
    state: &WindowState,
    access: &AccessCall,
    kind: NumberKind,
    how: Combine,
    operands: &[u8],
) -> Result<bool> {
    state.attachment.with(|local| {
        spend_budget(CALL);
        local.add_count(CounterId::WindowUpdates, 1);
        let layout = state.layout_of(access);
        state.admit(local, access, layout)?;
        let Some(words) = state.at_once(local, access) else { return Ok(false) };
        table::accumulate_bytes(words, layout.offset, kind, how, operands);
        Ok(true)
    })?
}

async fn accumulate_bytes(
    state: &Rc<WindowState>,
    access: AccessCall,
    kind: NumberKind,
    how: Combine,
    operands: &[u8],
) -> Result<()> {
    let layout = state.layout_of(&access);
    state.prepare(&access).await?;
    let applied = Local::with(|local| {
        let words = state.mapped(local, access.target);
        words.map(|words| table::accumulate_bytes(words, layout.offset, kind, how, operands)).is_some()
    });
    if applied {
        return Ok(());
    }
    let kinds = kinds(kind as u8, how);
    if state.is_queued(access.target) {
        let operands = operands.to_vec();
        state.enqueue(
            access.target,
            QueuedOperationKind::Accumulate { offset: layout.offset, kinds, operands },
        );
        return Ok(());
    }
    transfer::send_accumulate(state, access.target, layout.offset, kinds, operands)?;
    wait_until_sent().await;
    Ok(())
}

/// Adds to a number of mapped words, or compares and exchanges it; returns its previous value.
#[inline]
fn fetch_from(
    words: &[AtomicU64],
    layout: Pieces,
    kind: NumberKind,
    how: MessageKind,
    [one, other]: [u64; 2],
) -> u64 {
    match how {
        MessageKind::FetchAdd => memory::accumulate(words, layout.offset, kind, Combine::Sum, one),
        _ => memory::compare_exchange(words, layout.offset, kind, one, other),
    }
}

/// Does a fetch if the part is mapped; returns the previous value if it did.
#[inline]
fn fetch_at_once(
    state: &WindowState,
    access: &AccessCall,
    kind: NumberKind,
    how: MessageKind,
    operands: [u64; 2],
) -> Result<Option<u64>> {
    state.attachment.with(|local| {
        spend_budget(CALL);
        local.add_count(CounterId::WindowUpdates, 1);
        let layout = state.layout_of(access);
        state.admit(local, access, layout)?;
        let words = state.at_once(local, access);
        Ok(words.map(|words| fetch_from(words, layout, kind, how, operands)))
    })?
}

async fn fetch_bits(
    state: &Rc<WindowState>,
    access: AccessCall,
    kind: NumberKind,
    how: MessageKind,
    operands: [u64; 2],
) -> Result<u64> {
    let layout = state.layout_of(&access);
    state.prepare(&access).await?;
    let before = Local::with(|local| {
        let words = state.mapped(local, access.target);
        words.map(|words| fetch_from(words, layout, kind, how, operands))
    });
    if let Some(before) = before {
        return Ok(before);
    }
    state.send_queued(access.target, NotSent::Kept).await?;
    let head = MessageHeader { offset: layout.offset as u64, ..MessageHeader::new(state.id, how) };
    let kinds = kinds(kind as u8, Combine::Sum);
    let put = |writer: &mut Writer<'_>| {
        writer.put_bytes(&kinds);
        writer.put_u64(operands[0]);
        if how == MessageKind::CompareExchange {
            writer.put_u64(operands[1]);
        }
        Ok(())
    };
    let answer = transfer::request(state, access.target, "a fetch from", head, &put).await?;
    let bits = answer.try_into().map_err(|_| transfer::malformed(state, access.target))?;
    Ok(u64::from_le_bytes(bits))
}

/// Returns the kinds of an update on the wire: of the number and of the operation, padded to a word.
fn kinds(kind: u8, how: Combine) -> [u8; 8] {
    [kind, how as u8, 0, 0, 0, 0, 0, 0]
}
