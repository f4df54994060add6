//! Suites whose contenders are ranks of MPI or of RCCE, on hosts and on bare cores, or whose peers are C programs over
//! them.
//!
//! It only groups them. Invariant: each is a table, like all suites.

pub mod bare;
pub mod mpi;
pub mod prk;
pub mod rcce;
