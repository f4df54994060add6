//! Types whose values can be changed through a shared reference.
//!
//! A body at another place changes a copy of such a value; a body of `at!` at its own place would change the caller's.
//! If a capture itself has such a type, the compiler refuses it (`capture::kind`); this file finds those inside
//! structures, while a value is written for a round-trip check in a build with debug assertions. The names of the types
//! of std (and of `lock_api`) are known; a type that hides its own cell from serde is not found.

use super::EncodeError;
use std::any::type_name;

/// Path prefixes of such types.
const CELLS: &[&str] = &[
    "core::cell::Cell<",
    "core::cell::RefCell<",
    "core::sync::atomic::Atomic",
    "std::sync::mutex::Mutex<",
    "std::sync::rwlock::RwLock<",
    "std::sync::poison::mutex::Mutex<",
    "std::sync::poison::rwlock::RwLock<",
    "std::sync::nonpoison::mutex::Mutex<",
    "std::sync::nonpoison::rwlock::RwLock<",
    "lock_api::mutex::Mutex<",
    "lock_api::rwlock::RwLock<",
];

/// Path prefixes of types that show their content.
const OWNERS: &[&str] = &[
    "&",
    "alloc::boxed::Box<",
    "alloc::rc::Rc<",
    "alloc::sync::Arc<",
    "alloc::vec::Vec<",
    "core::option::Option<",
    "[",
];

/// Refuses a `T` that can be changed through a shared reference.
///
/// # Errors
/// The type, with advice.
pub(crate) fn refuse<T: ?Sized>() -> Result<(), EncodeError> {
    refuse_named(type_name::<T>())
}

/// As [`refuse`], for the type of this name.
fn refuse_named(whole: &str) -> Result<(), EncodeError> {
    let mut name = whole;
    while let Some(held) = OWNERS.iter().find_map(|owner| name.strip_prefix(owner)) {
        name = held;
    }
    if !CELLS.iter().any(|cell| name.starts_with(cell)) {
        return Ok(());
    }
    Err(EncodeError::Refused(
        format!("it holds a `{whole}`, which the body could change: at another place that would change a copy; send what it contains").into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::sync::{Arc, Mutex, RwLock};

    #[test]
    fn cells_are_found_behind_what_owns_them() {
        assert!(refuse::<Cell<u8>>().is_err());
        assert!(refuse::<RefCell<Vec<u8>>>().is_err());
        assert!(refuse::<AtomicU64>().is_err());
        assert!(refuse::<[AtomicBool]>().is_err());
        assert!(refuse::<Mutex<String>>().is_err());
        assert!(refuse::<Option<Arc<RwLock<u8>>>>().is_err());
        assert!(refuse::<Vec<Box<AtomicBool>>>().is_err());
    }

    #[test]
    fn a_type_that_only_names_a_cell_passes() {
        assert!(refuse::<std::marker::PhantomData<Cell<u8>>>().is_ok());
        assert!(refuse::<crate::Global<RefCell<u8>>>().is_ok());
        assert!(refuse::<(String, [u8; 3])>().is_ok());
    }
}
