//! The suites of memory that places share: windows, shared objects, shared pages, and tables that many small items
//! change.

pub mod aggregation;
pub mod shared;
pub mod windows;
