//! `at!` and `spawn_at!`: a body runs at another place, with the variables that it uses.
//!
//! The macros cut a body into captures (encoded from references at the caller), a zero-sized closure (named on the wire
//! by its descriptor, see `image`), and for `at!` the same body once more for the case that the place is here. This
//! module sends the first two, runs what arrives, and returns the answer. `scope` and `finish` count it in its finish.

mod answer;
mod body;
pub(crate) mod function;
pub(crate) mod image;
mod pending;
mod shipment;
pub(crate) mod site;
pub(crate) mod span;

pub(crate) use answer::ReplyTo;
pub(crate) use pending::CallId;

use crate::call::answer::AnswerMemory;
use crate::call::pending::{Calls, ReplyFuture};
use crate::call::shipment::Shipment;
use crate::call::site::{Direction, INTERNAL, Site, SiteCounts};
use crate::capture::roundtrip_check::SHIPMENTS_MAX;
use crate::capture::{Ship, TaskOutcome, Travel};
use crate::error::{Error, ErrorKind, Result};
use crate::finish::{RemoteScope, Scope, ScopeKind};
use crate::local::{Encode, Local};
use crate::message::{Arrived, BodyHeader, Refused};
use crate::place::Place;
use crate::task::Priority;
use crate::task::coop::cooperate_call;
use crate::wire::{DecodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_transport::Source;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::Location;

/// The calls of one place: its own, and those of others whose bodies run here.
#[derive(Default)]
pub(crate) struct CallTable {
    /// Calls of this place that are not answered yet.
    pub(crate) pending: RefCell<Calls>,
    answer_memory: RefCell<AnswerMemory>,
    /// Scopes of bodies of `at!` that run here for other places.
    pub(crate) borrowed: RefCell<Slab<RemoteScope>>,
    /// True once the caller of a body here was gone before its answer; until then the worker need not check.
    pub(crate) any_abandoned: Cell<bool>,
    /// Calls and bytes of this place by site.
    pub(crate) site_counts: RefCell<SiteCounts>,
}

/// Runs an `at!` call: `body` gets the place, and calls [`at_here`] or [`at_there`].
pub fn at<V, B>(place: Place, body: B) -> impl Future<Output = Result<V>>
where
    B: AsyncFnOnce(Place) -> Result<V>,
{
    body(place)
}

/// Returns `true` if `place` is the calling place.
pub fn is_here(place: Place) -> bool {
    Local::with(|local| local.here() == place.id())
}

/// Runs the body of an `at!` whose place is here: it borrows what it uses, and nothing is serialised.
///
/// Now and then it yields, so that a loop of such calls does not monopolise the place.
///
/// # Errors
/// The error or panic of the body.
pub async fn at_here<S, R, B>(_site: S, tried: CheckResult<R>, body: B) -> Result<R::Value>
where
    S: Site,
    R: Ship,
    B: Future<Output = Result<R::Value>>,
{
    let (here, _span) = Local::with(|local| (local.here(), span_of_call::<S>(local, local.here())));
    let tried_body = async {
        let value = match tried.0 {
            Ok(_) => body::CatchPanic::new(body).await?,
            Err(error) => return Err(error),
        };
        body::checked_value::<S, R::Value>(value, R::check_roundtrip_value)
    };
    let result = cooperate_call(tried_body).await;
    result.map_err(|error| error.at(here, None).travelled().at(here, Some(S::LOCATION)))
}

/// Result of the round-trip check of the captures of a body that returns an `R`, for a call to the own place.
pub struct CheckResult<R>(Result<PhantomData<fn() -> R>>);

/// Checks the captures of an `at!` whose place is here, if they are among the first; they are not needed otherwise.
#[inline]
pub fn try_here<S, C, F, B, R>(_site: S, captures: C, _body: F) -> CheckResult<R>
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<R>>,
    R: Ship,
{
    CheckResult(check_roundtrip::<S>(Direction::Request, || captures.check_roundtrip()).map(|()| PhantomData))
}

/// Runs `check_roundtrip` on one of the first shipments of a site, in builds with debug assertions.
#[inline]
fn check_roundtrip<S: Site>(
    direction: Direction,
    check_roundtrip: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let is_on_trial = SHIPMENTS_MAX > 0
        && Local::with(|local| local.calls.site_counts.borrow_mut().is_on_trial(S::cell(), direction));
    if is_on_trial { check_roundtrip() } else { Ok(()) }
}

/// Runs the body of an `at!` at another place and returns its value.
///
/// # Errors
/// The error or panic of the body, with the place; [`ErrorKind::DeadPlace`]; [`ErrorKind::TooLong`];
/// [`ErrorKind::Undecodable`].
pub async fn at_there<S, C, F, B, R>(site: S, place: Place, captures: C, body: F) -> Result<R::Value>
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<R>>,
    R: Ship,
{
    cooperate_call(async { ask::<_, _, _, _, R>(site, place, captures, body).answer::<R>().await }).await
}

/// A call that was sent.
#[must_use]
pub struct CallFuture {
    /// Open until the answer arrives, or nothing waits for it any more.
    _span: span::OpenSpan,
    answered: Result<ReplyFuture>,
    to: PlaceId,
    site: &'static str,
}

impl CallFuture {
    /// Returns the result of the body, an `R`.
    pub async fn answer<R: Ship>(self) -> Result<R::Value> {
        let CallFuture { _span, answered, to, site } = self;
        let answer = answered?.await;
        answer.and_then(|answer| answer.decode::<R>()).map_err(|error| error.at(to, Some(site)))
    }
}

/// As [`at_there`], but sends the request before it returns, whatever the budget of the place.
pub fn ask<S, C, F, B, R>(_site: S, place: Place, captures: C, _body: F) -> CallFuture
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<R>>,
    R: Ship,
{
    let descriptor = body::CallBody::<S, C, F, B, R>::DESCRIPTOR;
    let to = place.id();
    Local::with(|local| {
        let _span = span_of_call::<S>(local, to);
        let checked = check_roundtrip::<S>(Direction::Request, || captures.check_roundtrip());
        let encode = |writer: &mut Writer<'_>| captures.encode(writer);
        let shipment = Shipment::from_site::<S>(to, descriptor, C::ROOM, &encode);
        CallFuture { _span, answered: shipment.request(local, checked), to, site: S::LOCATION }
    })
}

/// Opens the span of a call at its caller: from the request until the answer arrives.
#[inline]
fn span_of_call<S: Site>(local: &Local, to: PlaceId) -> span::OpenSpan {
    local.span(span::CALL, Some(to), || Some(Source::of_text(S::LOCATION)))
}

/// Runs an operation that the program called at `caller`: it may panic, and each of its errors names that line.
pub async fn called_at<V>(
    caller: &'static Location<'static>,
    operation: impl Future<Output = Result<V>>,
) -> Result<V> {
    let result = body::CatchPanic::new(operation).await;
    result.map_err(|error| error.called_at(Local::with(Local::here), caller))
}

/// Starts a body at `place`, counted by the enclosing finish; what `spawn_at!` expands to.
///
/// Returns once the message has left, not when the body has run. An error of sending (the place is dead, the captures
/// are too long) is an error of the enclosing finish.
#[track_caller]
pub fn spawn_at<S, C, F, B>(site: S, place: Place, captures: C, body: F)
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<()>>,
{
    Local::with(|local| {
        if place.id() == local.here() {
            spawn_here::<S, C, F, B>(local, &captures, body)
        } else {
            spawn_there(local, site, place.id(), &captures, &|error| error, body);
        }
    });
}

/// As [`spawn_at`], at another place; returns whether the message has left. If not, the enclosing finish gets the
/// error, with what `explain` adds to it, or is cancelled.
#[inline]
pub fn spawn_there<S, C, F, B>(
    local: &Local,
    _site: S,
    place: PlaceId,
    captures: &C,
    explain: &dyn Fn(Error) -> Error,
    _body: F,
) -> bool
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<()>>,
{
    let descriptor = body::SpawnBody::<S, C, F, B>::DESCRIPTOR;
    let checked = check_roundtrip::<S>(Direction::Request, || captures.check_roundtrip());
    let encode = |writer: &mut Writer<'_>| captures.encode(writer);
    Shipment::from_site::<S>(place, descriptor, C::ROOM, &encode).depart(local, checked, explain)
}

/// Starts a task here, counted by the enclosing finish, which reports its errors and panics.
#[track_caller]
pub fn spawn<F>(future: F)
where
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    spawn_with(Priority::Normal, future);
}

/// As [`spawn`], with a priority: within a place the most urgent ready task runs first.
#[track_caller]
pub fn spawn_with<F>(priority: Priority, future: F)
where
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    Local::with(|local| {
        let scope = local.begin();
        // NEED: starting a task of any lifetime is unsafe.
        // SOUND: the future is 'static.
        unsafe { local.start(body::PlainTask::new(future), scope, &INTERNAL, priority) };
    });
}

/// Starts a task here that no finish waits for, nor for what it starts. Its errors go to standard error.
#[track_caller]
pub fn spawn_detached<F>(future: F)
where
    F: Future + 'static,
    F::Output: TaskOutcome,
{
    Local::with(|local| {
        // NEED: starting a task of any lifetime is unsafe.
        // SOUND: the future is 'static.
        unsafe { local.start(body::PlainTask::new(future), Scope::DETACHED, &INTERNAL, Priority::Normal) };
    });
}

impl Local {
    /// Counts one more task in the scope of the running task; returns the new task's scope.
    #[inline]
    pub(crate) fn begin(&self) -> Scope {
        self.begin_in(self.scope())
    }

    /// Counts one more task in `scope`; returns the new task's scope.
    #[inline]
    pub fn begin_in(&self, scope: Scope) -> Scope {
        if let ScopeKind::Counted(key) = scope.kind() {
            self.finishes.begin(key);
            return scope;
        }
        match self.counting_key(scope) {
            Some(key) => {
                self.finishes.begin(key);
                Scope::counted(key)
            }
            None => Scope::DETACHED,
        }
    }
}

fn spawn_here<S: Site, C: Travel, F, B>(local: &Local, captures: &C, body: F)
where
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<()>>,
{
    let scope = local.begin();
    let decoded = check_roundtrip::<S>(Direction::Request, || captures.check_roundtrip())
        .and_then(|()| local.round_trip::<C>(captures))
        .or_else(|error| decode_refused(local, captures, error));
    match decoded {
        // NEED: the future has no `'static` type.
        // SOUND: decoded captures own what they hold, see `body`.
        Ok(decoded) => unsafe { local.start(body(decoded), scope, S::cell(), Priority::Normal) },
        Err(error) => local.finish_task(scope, Err(error.at(local.here(), Some(S::LOCATION)))),
    }
}

/// Reads captures that fill `bytes`.
fn decode_captures<C: Travel>(bytes: &[u8]) -> Result<C::Decoded> {
    let mut reader = Reader::new(bytes);
    let decoded = C::decode(&mut reader).map_err(undecodable)?;
    reader.finish().map_err(undecodable)?;
    Ok(decoded)
}

/// Returns the error of a body whose captures could not be read.
pub(crate) fn undecodable(fault: DecodeError) -> Error {
    Error::undecodable("its captures", fault)
}

/// Decodes captures that could not be written with `error`, as for this place, if a service lets them.
#[cold]
fn decode_refused<C: Travel>(local: &Local, captures: &C, error: Error) -> Result<C::Decoded> {
    let mut decoded = None;
    let mut decode = |bytes: &[u8]| decoded = Some(C::decode(&mut Reader::new(bytes)).map_err(undecodable));
    local.services().decode_refused(local, &|writer| captures.encode(writer), error, &mut decode)?;
    decoded.expect("a service that has written captures has them read")
}

/// Receives a `spawn_at!`.
#[inline(always)]
pub(crate) fn receive_spawn(
    local: &Local,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    let head = BodyHeader::decode(reader)?;
    start_spawned(local, source, head, reader)
}

/// Starts the task of a `spawn_at!` whose header has been read.
#[inline(always)]
pub fn start_spawned(
    local: &Local,
    source: PlaceId,
    head: BodyHeader,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    let scope = match head.finish {
        Some(finish) => Scope::counted(local.finishes.arrive(finish, source).map_err(Refused::TaskRefusal)?),
        None => Scope::DETACHED,
    };
    let arrived = Arrived { reader, scope, answer: ReplyTo::NONE };
    if let Err(error) = run_entry(local, head, arrived) {
        local.finish_task(scope, Err(error.at(local.here(), None)));
    }
    Ok(())
}

/// Receives an `at!`.
pub(crate) fn receive_call(
    local: &Local,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    let head = BodyHeader::decode(reader)?;
    let answer = ReplyTo::decode(source, reader)?;
    let scope = match head.finish.zip(answer.slot()) {
        Some((finish, call)) => {
            let borrowed =
                RemoteScope { finish, caller: source, key: None, counted: false, call, abandoned: false };
            Scope::remote(local.calls.borrowed.borrow_mut().insert(borrowed) as u32)
        }
        None => Scope::DETACHED,
    };
    if let Err(error) = run_entry(local, head, Arrived { reader, scope, answer }) {
        answer.refuse(local, scope, error.at(local.here(), None));
    }
    Ok(())
}

/// Finds the function of an entry and starts its task.
#[inline(always)]
fn run_entry(local: &Local, head: BodyHeader, arrived: Arrived<'_, '_>) -> Result<()> {
    let run = head.entry.resolve().map_err(|fault| Error::new(ErrorKind::Undecodable, fault.to_string()))?;
    let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // NEED: descriptors hold unsafe functions.
        // SOUND: a resolved function takes any captures.
        unsafe { run(local, arrived) }
    }));
    match started {
        Ok(result) => result.map_err(undecodable),
        Err(payload) => Err(Error::panicked(payload)),
    }
}

/// Receives the answer to an `at!`.
pub(crate) fn receive_reply(
    local: &Local,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    answer::receive(local, source, reader)
}

/// Receives the notice that nothing waits for the answer to an `at!` any more; drops its body, which then answers.
///
/// A body that has ended meanwhile is not found, nor is one of a detached task, for whose answer nothing waits.
pub(crate) fn receive_abandon(
    local: &Local,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> std::result::Result<(), Refused> {
    let call = CallId::decode(reader)?;
    let mut borrowed = local.calls.borrowed.borrow_mut();
    let mut entries = borrowed.iter_mut();
    if let Some((index, entry)) = entries.find(|(_, entry)| entry.caller == source && entry.call == call) {
        entry.abandoned = true;
        drop(borrowed);
        local.calls.any_abandoned.set(true);
        local.wake_suspended(|scope| scope == Scope::remote(index as u32));
    }
    Ok(())
}

/// Answers all calls to a place that died. They count as visits: their bodies may have started tasks that live
/// elsewhere.
pub(crate) fn place_died(local: &Local, place: PlaceId) {
    let concluded = local.calls.pending.borrow_mut().place_died(place);
    concluded.into_iter().for_each(|conclusion| conclusion.report(local, true));
}

impl Local {
    /// Encodes captures and decodes them again, as if they had travelled.
    fn round_trip<C: Travel>(&self, captures: &C) -> Result<C::Decoded> {
        let mut room = [0; 256];
        match self.write_captures(&mut room, &|writer| captures.encode(writer))? {
            Written::Here(len) => decode_captures::<C>(&room[..len]),
            Written::Longer(bytes) => decode_captures::<C>(&bytes),
        }
    }

    /// Writes captures for this place itself, into `room` if they fit.
    fn write_captures(&self, room: &mut [u8], encode: &Encode<'_>) -> Result<Written> {
        let writing = self.begin_writing(self.here());
        let mut writer = Writer::new(room);
        let written = encode(&mut writer);
        let len = writer.written();
        if written.is_err() || !writer.overflowed() {
            self.settle_sent(written)?;
            return Ok(Written::Here(len));
        }
        drop(writing);
        self.parts.borrow_mut().roll_back_sent();
        Ok(Written::Longer(self.encode_for_self(len, encode)?))
    }
}

/// Location of written captures.
enum Written {
    /// In the offered room; the number of bytes.
    Here(usize),
    /// In memory of their own.
    Longer(Vec<u8>),
}
