//! Panics of the program's code, caught: what is said of them, and at which line they were.
//!
//! The line is known to the panic hook only, and wanted where the payload is caught.
//!
//! The hook notes the line and calls the hook that was there before, so what is printed stays as it was. A program that
//! replaces the hook later loses the line in its errors, nothing else. Invariant: a note is of this thread, and is
//! taken by whoever catches the panic.

use crate::local::Local;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes the lines of panics of places from now on; called by each of them at its start.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let (Some(site), Some(())) = (panic.location(), Local::try_with(|_| ())) {
                LAST.set(Some(site.to_string()));
            }
            before(panic);
        }));
    });
}

/// Runs code of the program in the middle of an operation of the runtime, which goes on if it panics.
///
/// # Errors
/// What the panic says, see [`describe`].
#[inline]
pub(crate) fn caught<R>(code: impl FnOnce() -> R) -> Result<R, Box<str>> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| describe(&*payload).into())
}

/// The line and the text of the panic whose payload was caught last on this thread.
pub(crate) fn describe(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let site = LAST.take().unwrap_or_else(|| "an unknown line".to_owned());
    format!("at {site}: {}", text.unwrap_or("the payload is no text"))
}
