//! Values whose destructor may panic.

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::mem::{forget, take};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::thread::panicking;

/// Number of successive values of which one panics on drop.
const FRAGILE: u64 = 8;

thread_local! {
    /// `true` while destructors panic.
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// The payload of these panics.
struct Broken;

/// A number whose destructor may panic, wherever the runtime drops it.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Fragile(pub u64);

impl Fragile {
    /// The number, without a panic.
    pub fn into_number(mut self) -> u64 {
        let number = take(&mut self.0);
        forget(self);
        number
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        if self.0 % FRAGILE == 1 && ARMED.get() && !panicking() {
            panic_any(Broken);
        }
    }
}

/// Sets whether destructors panic from now on.
pub fn arm(panics: bool) {
    ARMED.set(panics);
}

/// Returns the result of `code`; `None` if the drop of a fragile value ended it. Other panics propagate.
pub fn survived<R>(code: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Broken>() => None,
        Err(payload) => resume_unwind(payload),
    }
}
