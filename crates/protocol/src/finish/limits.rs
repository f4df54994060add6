//! The bounds of the finish protocol, in one file.
//!
//! Because of them each message fits a fixed buffer, and a place's memory for finishes can be stated. Nothing here is
//! tuned at run time. Invariant: [`CONTROL_BYTES_MAX`] follows from the others.

/// Longest text of one reason, in bytes of UTF-8; longer texts are cut at a character.
pub const TEXT_BYTES_MAX: usize = 1024;

/// Largest payload of one fault in bytes; a larger one is refused.
pub const PAYLOAD_BYTES_MAX: usize = 1024;

/// Largest number of task faults that one finish keeps (without dead places); further ones are only counted.
pub const FAULTS_MAX: usize = 16;

/// Largest number of table entries in one part of a report; a longer report travels in several parts.
pub const REPORT_ENTRIES_MAX: usize = 32;

/// Number of released finishes that a home collects for one place before it tells that place to forget them.
///
/// A place therefore keeps at most this many idle proxies for each home, besides those of open finishes.
pub const FORGET_BATCH: usize = 32;

/// Number of questions of one finish that are asked immediately; further ones wait until the place rests.
///
/// Otherwise tasks that hop from place to place would cause a question at every hop.
pub const PROMPT_QUESTIONS: u32 = 16;

/// Largest number of table entries that an idle proxy keeps allocated for reuse.
pub(super) const IDLE_ENTRIES_MAX: usize = 4;

/// Largest number of empty ledgers that a place keeps for reuse.
pub(super) const SPARE_LEDGERS_MAX: usize = 8;

/// Largest encoding of a 32-bit and of a 64-bit number in postcard's variable-length form, in bytes.
const U32_BYTES: usize = 5;
const U64_BYTES: usize = 10;

const FINISH_BYTES: usize = 2 * U32_BYTES + U64_BYTES;
const ENTRY_BYTES: usize = U32_BYTES + 2 * U64_BYTES;
const FAULT_BYTES: usize = 1 + 1 + U32_BYTES + U32_BYTES + PAYLOAD_BYTES_MAX;
const REPORT_BYTES: usize =
    1 + FINISH_BYTES + U32_BYTES + U32_BYTES + REPORT_ENTRIES_MAX * ENTRY_BYTES + FAULT_BYTES + U64_BYTES + 1;
const CANCEL_BYTES: usize = 1 + FINISH_BYTES + 1 + U32_BYTES + TEXT_BYTES_MAX;
const FORGET_BYTES: usize = 1 + U32_BYTES + FORGET_BATCH * U64_BYTES;

/// Largest encoding of one [`Control`](super::Control) message in postcard, in bytes.
pub const CONTROL_BYTES_MAX: usize = 2048;

const _: () = assert!(REPORT_BYTES <= CONTROL_BYTES_MAX);
const _: () = assert!(CANCEL_BYTES <= CONTROL_BYTES_MAX);
const _: () = assert!(FORGET_BYTES <= CONTROL_BYTES_MAX);
