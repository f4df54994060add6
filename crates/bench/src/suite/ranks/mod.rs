//! Suites whose contenders are ranks, of MPI or of RCCE, on hosts and on bare cores, or whose peers are programs of C
//! over them.
//!
//! Only groups them. Invariant: each is a table, as all suites are.

pub mod bare;
pub mod mpi;
pub mod prk;
pub mod rcce;
