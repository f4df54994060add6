//! Traces of runs: encoder, reader and tables.
//!
//! Runs on a modelled chip and on the host use the same encoder ([`perfetto`]), names ([`names`]) and tracks of calls
//! ([`spans`]). The [`reader`] returns events, from which [`stats`] makes tables. Times are whole units, whose length
//! the file states. It knows no machine and opens no file.
//!
//! Invariant: what the writer writes, the reader reads.

#![forbid(unsafe_code)]

pub mod names;
pub mod perfetto;
pub mod reader;
pub mod spans;
pub mod stats;
