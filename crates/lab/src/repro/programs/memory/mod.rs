//! Programs over shared memory of cores or places: windows, tables that all places change, shared objects.

pub mod automaton;
pub mod gups;
mod gups_runs;
pub mod gups_table;
pub mod modularity;
pub mod svm;
