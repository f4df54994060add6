//! Where a task panicked: the line is known to the panic hook only, and wanted where the payload is caught.
//!
//! The hook notes the line and calls the hook that was there before, so what is printed stays as it was. A program that
//! replaces the hook later loses the line in its errors, nothing else. Invariant: a note is of this thread, and is
//! taken by whoever catches the panic.

use crate::local::Local;
use std::cell::RefCell;
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

/// The line of the last panic of this thread, as `file:line:column`; once.
pub(crate) fn last_site() -> Option<String> {
    LAST.take()
}
