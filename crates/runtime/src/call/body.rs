//! The two kinds of travelling bodies, as their descriptors run them, and the wrappers of a task's future.
//!
//! A body is a zero-sized closure: it can be made from nothing wherever the program runs, because the compiler has
//! proved that it captures nothing. Its captures arrive as bytes and are decoded into owned values.

use super::answer::ReplyGuard;
use super::check_roundtrip;
use crate::call::image::Descriptor;
use crate::call::site::{Direction, Site};
use crate::call::span;
use crate::capture::{Ship, TaskOutcome, Travel};
use crate::error::{Error, Result, panic};
use crate::local::Local;
use crate::message::Arrived;
use crate::task::Priority;
use crate::wire::DecodeError;
use isles_transport::Source;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body of `spawn_at!`, as a type.
pub(super) struct SpawnBody<S, C, F, B>(PhantomData<(S, C, F, B)>);

/// A body of `at!`, as a type.
pub(super) struct CallBody<S, C, F, B, R>(PhantomData<(S, C, F, B, R)>);

/// Returns the hash of a monomorphic body: its site, and the sizes that tell its types apart.
const fn hash(site: u64, decoded_size: usize, future_size: usize) -> u64 {
    (site ^ (decoded_size as u64).rotate_left(20) ^ (future_size as u64).rotate_left(40))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Makes a closure of type `F` from nothing.
///
/// # Safety
/// A value of `F` must have existed: it does at the sender.
unsafe fn materialise<F: Copy>() -> F {
    const {
        assert!(
            size_of::<F>() == 0,
            "the body of at! or spawn_at! uses a variable that the macro could not see: \
             name it in an explicit list, at!(place, [variable] body)"
        );
    }
    // NEED: a zero-sized closure has no bytes to send.
    // SOUND: `F` is zero-sized and `Copy`, and by the contract a value of it exists, which this copies.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

impl<S, C, F, B> SpawnBody<S, C, F, B>
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<()>>,
{
    /// The descriptor that names this body on the wire.
    pub(super) const DESCRIPTOR: &'static Descriptor =
        // NEED: whoever names the descriptor gets `run` called.
        // SOUND: `run` is sound for any captures that decode.
        unsafe { &Descriptor::new(hash(S::HASH, size_of::<C::Decoded>(), size_of::<B>()), Self::run) };

    /// # Safety
    /// Called through the descriptor, which a sender that has the closure named.
    unsafe fn run(local: &Local, arrived: Arrived<'_, '_>) -> std::result::Result<(), DecodeError> {
        let decoded = C::decode(arrived.reader)?;
        arrived.reader.finish()?;
        // NEED: the closure has no bytes, so it is made here; its future has no `'static` type.
        // SOUND: a sender that has the closure named it; the future owns what it holds, for the closure is empty and
        // the captures are decoded values.
        let body = unsafe { materialise::<F>() };
        unsafe { local.start(body(decoded), arrived.scope, S::cell(), Priority::Normal) };
        Ok(())
    }
}

impl<S, C, F, B, R> CallBody<S, C, F, B, R>
where
    S: Site,
    C: Travel,
    F: Fn(C::Decoded) -> B + Copy,
    B: Future<Output = Result<R>>,
    R: Ship,
{
    /// The descriptor that names this body on the wire.
    pub(super) const DESCRIPTOR: &'static Descriptor =
        // NEED: whoever names the descriptor gets `run` called.
        // SOUND: `run` is sound for any captures that decode.
        unsafe { &Descriptor::new(hash(!S::HASH, size_of::<C::Decoded>(), size_of::<B>()), Self::run) };

    /// # Safety
    /// As for a `SpawnBody`.
    unsafe fn run(local: &Local, arrived: Arrived<'_, '_>) -> std::result::Result<(), DecodeError> {
        let decoded = C::decode(arrived.reader)?;
        arrived.reader.finish()?;
        // NEED: the closure has no bytes, so it is made here.
        // SOUND: a sender that has the closure named it.
        let body = unsafe { materialise::<F>() };
        let answering = ReplyGuard::new(arrived.answer, arrived.scope);
        let future = answer::<S, B, R>(body(decoded), answering);
        // NEED: the future has no `'static` type.
        // SOUND: as for a `SpawnBody`.
        unsafe { local.start(future, arrived.scope, S::cell(), Priority::Normal) };
        Ok(())
    }
}

async fn answer<S, B, R>(body: B, answering: ReplyGuard) -> Result<()>
where
    S: Site,
    B: Future<Output = Result<R>>,
    R: Ship,
{
    let source = || Some(Source::of_text(S::LOCATION));
    let span = Local::with(|local| local.span(span::BODY, Some(answering.caller()), source));
    let result = CatchPanic::new(body).await;
    let result = result.and_then(|value| checked_value::<S, R>(value, R::check_roundtrip));
    drop(span);
    answering.send(result);
    Ok(())
}

/// Returns the value of a body, if `check_roundtrip` finds nothing or is not called.
///
/// # Errors
/// As for `check_roundtrip`; the value is then dropped, and a panic of that drop is not reported: a copy of the value
/// has most likely panicked in the same way.
pub(super) fn checked_value<S: Site, V>(value: V, check: impl FnOnce(&V) -> Result<()>) -> Result<V> {
    match check_roundtrip::<S>(Direction::Reply, || check(&value)) {
        Ok(()) => Ok(value),
        Err(error) => {
            // The panic is printed by the hook.
            _ = panic::catch_panic_text(|| drop(value));
            Err(error)
        }
    }
}

/// A future whose panic becomes its error.
pub(super) struct CatchPanic<B>(B);

impl<B> CatchPanic<B> {
    pub(crate) fn new(body: B) -> Self {
        CatchPanic(body)
    }
}

impl<V, B: Future<Output = Result<V>>> Future for CatchPanic<B> {
    type Output = Result<V>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // NEED: pin projection to the only field.
        // SOUND: the field is never moved.
        let body = unsafe { self.map_unchecked_mut(|guarded| &mut guarded.0) };
        match catch_unwind(AssertUnwindSafe(|| body.poll(context))) {
            Ok(polled) => polled,
            Err(payload) => Poll::Ready(Err(Error::panicked(payload))),
        }
    }
}

/// A plain future as a task: its outcome becomes a result.
pub(super) struct PlainTask<F>(F);

impl<F> PlainTask<F> {
    pub(crate) fn new(future: F) -> Self {
        PlainTask(future)
    }
}

impl<F> Future for PlainTask<F>
where
    F: Future,
    F::Output: TaskOutcome,
{
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // NEED: pin projection to the only field.
        // SOUND: the field is never moved.
        let future = unsafe { self.map_unchecked_mut(|plain| &mut plain.0) };
        future.poll(context).map(TaskOutcome::into_result)
    }
}
