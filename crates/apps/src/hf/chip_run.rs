//! A calculation on a modelled chip, for who wants its time and not its result.
//!
//! Runs what `isles run hf` runs; the energy is checked where another program's is known, so that a time never stands
//! for a calculation that went wrong. Writes nothing. Invariant: the same launch gives the same time.

use super::run::{CONVERGENCE, Calculation, CalculationInput, ITERATIONS};
use super::shared_build::UnitBalance;
use super::verify;
use crate::registry::Failure;
use isles::{Launch, ModelledChip};
use std::cell::RefCell;
use std::rc::Rc;

/// Seconds that a built-in molecule in a built-in basis set takes on a modelled chip, from the first build to the
/// last.
///
/// # Errors
/// [`Failure`]: as that of the command.
pub fn predicted_seconds(
    (molecule, basis): (&str, &str),
    balance: UnitBalance,
    launch: &Launch,
    chip: ModelledChip,
) -> Result<f64, Failure> {
    let calculation = Calculation::new(&CalculationInput::of(molecule, basis))?;
    let golden = verify::golden(&calculation.molecule, basis, false);
    let found = Rc::new(RefCell::new(None));
    let place = Rc::clone(&found);
    let main = move || async move {
        *place.borrow_mut() = Some(calculation.run(balance, (ITERATIONS, CONVERGENCE), false).await?);
        Ok::<_, isles::Error>(())
    };
    let (result, ..) = launch.run_on_chip(chip, main)?;
    result.map_err(Failure::Run)?;
    let outcome = found.take().unwrap_or_default();
    let energy = outcome.iterations.last().map_or(f64::NAN, |last| last.energy);
    match golden.map(|golden| verify::check(golden, energy, CONVERGENCE)) {
        Some(verification) if !verification.holds => Err(Failure::Refuted(verification.text)),
        _ => Ok(outcome.seconds),
    }
}
