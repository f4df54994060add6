//! Experiments that run whole programs of Isles on the modelled chip, as other languages and systems ran theirs.
//!
//! Each takes long or changes with the runtime, so it runs only if it is asked for by name. Invariant: nothing here
//! reads the chip file itself; what a row says is the time or the energy of a run.

pub mod at_opt;
pub mod betweenness;
pub mod ga;
pub mod hartree_fock;
pub mod rates;
pub mod teams;
