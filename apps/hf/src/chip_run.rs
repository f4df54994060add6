//! A calculation on a modelled chip, for who wants its time and not its result.
//!
//! Runs what `isles run hf` runs; the energy is checked where another program's is known, so that a time never stands
//! for a calculation that went wrong. Writes nothing. Invariant: the same launch gives the same time.

use super::run::HartreeFock;
use isles::{Launch, ModelledChip};
use isles_app::Failure;
use isles_app::frame::{Application, Balance, Dealer};
use std::cell::RefCell;
use std::rc::Rc;

/// Seconds that a built-in molecule in a built-in basis set takes on a modelled chip, from the first build to the
/// last.
///
/// # Errors
/// [`Failure`]: as that of the command.
pub fn predicted_seconds(
    (molecule, basis): (&str, &str),
    balance: Balance,
    launch: &Launch,
    chip: ModelledChip,
) -> Result<f64, Failure> {
    let calculation = HartreeFock::of(molecule, basis, balance);
    let input = calculation.open(launch.chosen_places())?;
    let found = Rc::new(RefCell::new(None));
    let place = Rc::clone(&found);
    let main = move || async move {
        let dealer = Dealer::plain::<HartreeFock>();
        *place.borrow_mut() = Some(HartreeFock::compute(input, dealer).await?);
        Ok::<_, isles::Error>(())
    };
    launch.run_on_chip(chip, main)?.0.map_err(Failure::Run)?;
    let nothing = || Failure::Ended("the calculation ended without a result".to_owned());
    let (found, done) = found.take().ok_or_else(nothing)?;
    match calculation.verify(&found, false)? {
        Some(verification) if !verification.holds => Err(Failure::Refuted(verification.text)),
        _ => Ok(done.seconds),
    }
}
