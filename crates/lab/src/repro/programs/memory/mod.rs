//! Programs over memory that cores or places share: windows, tables that all change, shared objects.

pub mod automaton;
pub mod gups;
mod gups_runs;
pub mod gups_table;
pub mod modularity;
pub mod svm;
