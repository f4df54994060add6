//! Round-trip checks: what is sent is written, read, and written again at the sender, and must give the same bytes.
//!
//! Serde's attributes may let the two directions of a type disagree, and a positional format cannot notice all of it.
//! In builds with debug assertions the first shipments of each call site are checked, wherever they go, so that a
//! program that would fail between places also fails at one place, with the same message. Plain values are not checked.
//!
//! Invariant: a check leaves nothing behind. Handles call [`is_on`] and count nothing for it.

use crate::error::panic::catch_panic_text;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Number of shipments of a call site that are checked, in each direction, at each place that sends them.
pub(crate) const SHIPMENTS_MAX: u32 = if cfg!(debug_assertions) { 8 } else { 0 };

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if the value that is now written or read belongs to a check and goes nowhere.
#[inline]
pub fn is_on() -> bool {
    SHIPMENTS_MAX > 0 && ON.get()
}

/// Checks a capture, whose copy is a `T`.
///
/// # Errors
/// [`ErrorKind::Undecodable`], or the panic of the value's `Serialize` or `Deserialize`.
#[cold]
pub(crate) fn capture<T: Serialize + DeserializeOwned>(
    write: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
) -> Result<()> {
    run::<T>(write, |bytes| Writer::watching(bytes))
}

/// Checks a value, and drops its copy.
///
/// # Errors
/// As for `capture`.
#[cold]
pub fn value<T: Serialize + DeserializeOwned>(value: &T) -> Result<()> {
    run::<T>(|writer| writer.put_value(value), |bytes| Writer::new(bytes))
}

fn run<T: Serialize + DeserializeOwned>(
    write: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    writer: fn(&mut [u8]) -> Writer<'_>,
) -> Result<()> {
    struct TrialGuard(bool);
    impl Drop for TrialGuard {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }
    let _before = TrialGuard(ON.replace(true));
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let sent = written(write, writer)?;
        let mut reader = Reader::new(&sent);
        let copy: T = reader.take_value().map_err(unreadable)?;
        let finished = reader.finish().map_err(unreadable);
        let again = written(|writer| writer.put_value(&copy), |bytes| Writer::new(bytes));
        // Its destructor runs only for the check, so a panic of it is no error of the shipment.
        let _ = catch_panic_text(|| drop(copy));
        finished?;
        if is_same(sent, again?) { Ok(()) } else { Err(Error::new(ErrorKind::Undecodable, DIFFERENT)) }
    }));
    tried.unwrap_or_else(|payload| Err(Error::panicked(payload)))
}

const DIFFERENT: &str = "a value reads back as a different one: its `Serialize` and `Deserialize` \
     disagree (`#[serde(with = ...)]` and its relatives, `skip_serializing` together with \
     `skip_deserializing`, or a hand-written `Serialize`)";

fn unreadable(fault: DecodeError) -> Error {
    Error::undecodable("a copy of it", fault)
}

fn written(
    write: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    writer: fn(&mut [u8]) -> Writer<'_>,
) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 1024];
    loop {
        let mut writer = writer(&mut bytes);
        write(&mut writer).map_err(Error::unencodable)?;
        let len = writer.written();
        let fits = !writer.overflowed();
        bytes.resize(len, 0);
        if fits {
            return Ok(bytes);
        }
    }
}

/// Returns `true` if the bytes are equal up to their order: each copy of a hash table has its own.
fn is_same(mut one: Vec<u8>, mut other: Vec<u8>) -> bool {
    one == other || {
        one.sort_unstable();
        other.sort_unstable();
        one == other
    }
}
