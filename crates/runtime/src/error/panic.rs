//! Caught panics of the program's code: their texts, their lines, and which of them are no faults.
//!
//! Only the panic hook knows the line, and it is needed where the payload is caught. Our hook records it and calls the
//! previous one, so the output stays the same; only a `println!` whose reader is gone prints nothing. A program may set
//! its own hook: ours is put before it again after the first turn of the main task, and when a panic came without a
//! record. Hooks belong to the whole process, and none is set while this code inspects the present one; so it inspects
//! only while no other run goes on in the process, lest a panic of that run fall into the gap. Invariant: a record
//! belongs to its thread, and whoever catches the panic takes it.

use crate::error::entered::entered;
use crate::error::{Error, ErrorKind};
use isles_transport::notice;
use std::any::Any;
use std::cell::RefCell;
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{mem, ptr};

/// Beginning of the panic message of `println!`, up to the cause.
const PRINT_FAILED: &str = "failed printing to stdout: ";

/// EPIPE, as the standard library prints it.
const CLOSED_PIPE: &str = "(os error 32)";

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// State of the panic hook of this process.
struct PanicHook {
    /// The address of our hook while it is set, 0 before. A hook that another one calls does not count as set.
    address: usize,
    /// Number of runs in progress, see [`WatchedRun`].
    runs: usize,
}

static PANIC_HOOK: Mutex<PanicHook> = Mutex::new(PanicHook { address: 0, runs: 0 });

fn lock() -> MutexGuard<'static, PanicHook> {
    PANIC_HOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PanicHook {
    /// Sets our hook if the program may have set its own, and no other run can panic meanwhile.
    fn reinstall_if_replaced(&mut self) {
        if self.address == 0 || self.runs <= 1 {
            self.set();
        }
    }

    /// Puts our hook before the one that is set, unless that is ours.
    ///
    /// If another thread panics meanwhile, the standard library's hook prints it, and its line is not recorded.
    fn set(&mut self) {
        if std::thread::panicking() {
            return; // hooks cannot be changed in a destructor that runs because of a panic
        }
        let before = std::panic::take_hook();
        if address(&before) == self.address {
            std::panic::set_hook(before);
            return;
        }
        let hook: Hook = Box::new(move |panic| {
            let in_place = entered().is_some();
            if let (Some(site), true) = (panic.location(), in_place) {
                LAST.set(Some(site.to_string()));
            }
            if !(in_place && is_closed_output(panic.payload())) {
                before(panic);
            }
        });
        self.address = address(&hook);
        std::panic::set_hook(hook);
    }
}

/// A run of this process, from before its main task starts: the lines of its panics are recorded.
#[derive(Debug)]
pub(crate) struct WatchedRun(());

impl WatchedRun {
    pub(crate) fn begin() -> WatchedRun {
        let mut hook = lock();
        hook.runs += 1;
        hook.reinstall_if_replaced();
        WatchedRun(())
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        lock().runs -= 1;
    }
}

/// Puts our hook back after the program may have set its own.
pub(crate) fn watch() {
    lock().reinstall_if_replaced();
}

/// As [`watch`], once for each process: for a place that serves while other places may already run. In the process of
/// the first place, that one checks before a task of the program can reach another place.
pub(crate) fn watch_once() {
    let mut hook = lock();
    if hook.address == 0 {
        hook.set();
    }
}

/// Returns the address of a hook; no two of ours have the same address at one time, because none of them is empty.
fn address(hook: &Hook) -> usize {
    ptr::from_ref(&**hook).cast::<()>() as usize
}

/// Runs code of the program within an operation of the runtime, which goes on if it panics.
///
/// # Errors
/// The description of the panic; see [`describe`].
#[inline]
pub(crate) fn catch_panic_text<R>(code: impl FnOnce() -> R) -> Result<R, Box<str>> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| describe(payload).into())
}

/// Drops a value of the program within an operation of the runtime, which goes on if that panics: nothing waits for the
/// drop, so the panic is reported on standard error.
pub fn drop_caught<T>(value: T) {
    if const { !needs_drop::<T>() } {
        return;
    }
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        report_failed_drop(payload);
    }
}

#[cold]
fn report_failed_drop(payload: Box<dyn Any + Send>) {
    let error = Error::panicked(payload);
    // As for a detached task: output of the destructor that nobody reads is no fault.
    if *error.kind() != ErrorKind::OutputClosed {
        let here = entered();
        let error = here.into_iter().fold(error, |error, here| error.at(here, None));
        notice(format_args!("isles: the drop of a value failed {error}"));
    }
}

/// Returns the line and the text of the panic whose payload was caught last on this thread.
///
/// The line is unknown if a hook of the program kept it from ours, which is possible until the first panic is caught
/// here.
pub(crate) fn describe(payload: Box<dyn Any + Send>) -> String {
    let site = LAST.take().unwrap_or_else(|| {
        lock().set();
        "an unknown line".to_owned()
    });
    let described = format!("at {site}: {}", text(&*payload).unwrap_or("the payload is not text"));
    discard(payload);
    described
}

/// Drops the payload of a panic, which is a value of the program. If that panics, its own payload is leaked: dropping
/// it might panic again, for ever.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
        LAST.take();
    }
}

/// Returns the message of a panic if it is text.
fn text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Returns `true` if a `println!` panicked because standard output has no reader any more.
pub(crate) fn is_closed_output(payload: &(dyn Any + Send)) -> bool {
    let cause = text(payload).and_then(|text| text.strip_prefix(PRINT_FAILED));
    cause.is_some_and(|cause| cause.ends_with(CLOSED_PIPE))
}
