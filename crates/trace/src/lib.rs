//! Traces of runs: what a file says of a run, who writes it, and who reads it back.
//!
//! A run on a modelled chip and a run on the host are written by the same encoder ([`perfetto`]), with the same names
//! ([`names`]) and the same tracks of calls ([`spans`]). What is read back ([`reader`]) becomes tables ([`stats`]).
//! Times are whole units of the file; how long one is, the file says. It knows no machine and opens no file.
//!
//! Invariant: what the writer writes, the reader reads.

#![forbid(unsafe_code)]

pub mod names;
pub mod perfetto;
pub mod reader;
pub mod spans;
pub mod stats;
