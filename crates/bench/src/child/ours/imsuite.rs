//! The kernels of IMSuite one after the other, each in a run of its own, so that its bytes are known.
//!
//! Its own file because other children are one run. It uses what `isles run imsuite` uses. The invariant: each answer
//! is verified, and the networks and draws of both ways of shipping are the same.

use super::run;
use crate::child::{median, say};
use crate::options::Effort;
use isles_app::frame::{Application, Dealer};
use isles_imsuite::ImSuite;
use isles_imsuite::kernel::KernelName;
use isles_imsuite::ship::Ship;
use std::cell::Cell;
use std::rc::Rc;

/// The seed of the networks, and of what nodes draw.
const SEED: u64 = 1;

/// With minimal captures. Prints `mean_ms`, and `KERNEL_ms` and `KERNEL_kb` of each kernel.
pub fn minimal(effort: Effort) {
    all(effort, Ship::Minimal);
}

/// With all that is reachable. Prints the same.
pub fn reachable(effort: Effort) {
    all(effort, Ship::Reachable);
}

fn all(effort: Effort, ship: Ship) {
    let mut logarithms = Vec::new();
    for kernel in KernelName::ALL {
        let (mut seconds, mut bytes) = (Vec::new(), 0);
        // A run that is longer than a batch varies less, and costs more.
        while seconds.len() < effort.repetitions
            && seconds.iter().all(|time| *time < effort.batch.as_secs_f64())
        {
            let (time, moved) = measured(kernel, ship);
            seconds.push(time);
            bytes = moved;
        }
        let seconds = median(seconds);
        logarithms.push(seconds.ln());
        say(&format!("{kernel}_ms"), seconds * 1e3);
        say(&format!("{kernel}_kb"), bytes as f64 / 1e3);
    }
    say("mean_ms", (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp() * 1e3);
}

/// The seconds of a run, and the bytes that it moved.
fn measured(kernel: KernelName, ship: Ship) -> (f64, u64) {
    let network = match kernel {
        KernelName::HS | KernelName::LCR => "128,ring",
        KernelName::VC => "128,chain",
        _ => "128,sparse-min",
    };
    let seconds = Rc::new(Cell::new(f64::NAN));
    let place = Rc::clone(&seconds);
    let report = run(move || async move {
        let app = ImSuite::generated(kernel, network, SEED, ship);
        let input = app.open(isles::place_count() as u32).map_err(isles::Error::message)?;
        let (found, done) = ImSuite::compute(input, Dealer::plain::<ImSuite>()).await?;
        let checked = app.verify(&found, false).map_err(isles::Error::message)?;
        if !checked.is_some_and(|checked| checked.holds) {
            return Err(isles::Error::message(format!("the answer of {kernel} is refuted")));
        }
        place.set(done.seconds);
        Ok(())
    });
    (seconds.get(), report.bytes())
}
