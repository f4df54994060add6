//! The application suite of Isles.
//!
//! Exists so that programs, tests and benchmarks share one implementation of each application. This crate
//! uses nothing of the runtime but the façade, and its sequential parts ([`graph`], the kernels) not even that.
//! Invariant: an application's answer is the same, bit for bit, at every place count and on every machine; where an
//! argument left out depends on the places, for the same value of it.

#![forbid(unsafe_code)]

pub mod console;
pub mod frame;
pub mod graph;
pub mod registry;

/// Declares the applications: a module each, and the type in it that is the application.
macro_rules! applications {
    ($($module:ident: $application:ident,)*) => {
        $(pub mod $module;)*

        /// All applications, in the order in which they are listed.
        pub const APPS: &[&dyn registry::App] = &[$(frame::Framed::<$module::$application>::APP),*];
    };
}

applications! {
    bc: Betweenness,
    ga: GeneticAlgorithm,
    hf: HartreeFock,
    nqueens: Queens,
    pi: Pi,
    uts: TreeSearch,
}
