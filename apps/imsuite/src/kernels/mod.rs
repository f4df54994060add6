//! The twelve kernels, one file each, grouped by the kind of their results.
//!
//! Each file names the publication of its algorithm, the messages of its nodes in each round, and the check of its
//! answer. The code is our own; the suite's X10 sources have another licence. This file finds a kernel by its name.
//! Invariant: all functions map a name to the same kernel.

mod agreement;
mod paths;
mod sets;

use super::input::Input;
use super::kernel::{Kernel, KernelName};
use super::place_task::{self, KernelOutcome};
use super::ship::Ship;
use isles_app::frame::RunMeter;

/// Runs the same code with the kernel of a name.
macro_rules! with_kernel {
    ($name:expr, $kernel:ident => $body:expr) => {
        match $name {
            KernelName::BF => with_kernel!(@ paths::BellmanFord, $kernel => $body),
            KernelName::DST => with_kernel!(@ paths::ShortestPathTree, $kernel => $body),
            KernelName::DR => with_kernel!(@ paths::RoutingTables, $kernel => $body),
            KernelName::MST => with_kernel!(@ paths::SpanningTree, $kernel => $body),
            KernelName::DS => with_kernel!(@ sets::DominatingSet, $kernel => $body),
            KernelName::MIS => with_kernel!(@ sets::IndependentSet, $kernel => $body),
            KernelName::VC => with_kernel!(@ sets::TreeColouring, $kernel => $body),
            KernelName::KC => with_kernel!(@ sets::Committees, $kernel => $body),
            KernelName::BY => with_kernel!(@ agreement::Byzantine, $kernel => $body),
            KernelName::DP => with_kernel!(@ agreement::NetworkLeader, $kernel => $body),
            KernelName::HS => with_kernel!(@ agreement::TwoWayRing, $kernel => $body),
            KernelName::LCR => with_kernel!(@ agreement::OneWayRing, $kernel => $body),
        }
    };
    (@ $type:ty, $kernel:ident => $body:expr) => {{
        type $kernel = $type;
        $body
    }};
}

/// Runs the kernel of `input` over all places.
///
/// # Errors
/// A place has died.
pub async fn run(input: &Input, ship: Ship, meter: &RunMeter) -> isles::Result<KernelOutcome> {
    with_kernel!(input.kernel, Chosen => place_task::run::<Chosen>(input, ship, meter).await)
}

/// Checks the answers of the kernel of `input`; returns a summary in a few words.
///
/// # Errors
/// A one-line message that names the wrong answer.
pub fn verify(input: &Input, answers: &[Vec<i64>]) -> Result<String, String> {
    if answers.len() != input.size() {
        return Err(format!("{} answers of {} nodes", answers.len(), input.size()));
    }
    with_kernel!(input.kernel, Chosen => <Chosen as Kernel>::verify(input, answers))
}
