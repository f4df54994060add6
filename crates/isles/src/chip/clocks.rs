//! Clocks and voltages of the cores of a modelled chip, from inside a program.
//!
//! On a chip with clock dividers ([`ModelledChip`](crate::ModelledChip) `scc`: 1,600 MHz divided by 2 to 16) a program
//! can trade time for energy while it runs. The rules are those of RCCE, the library of the SCC: cores that share a
//! voltage supply (eight on the SCC) change together, at the request of their first place; the chip has one voltage
//! controller, which takes milliseconds for each change. Results of a program never depend on it.
//!
//! *On a real machine nothing here has any effect*: requests return `Ok(None)` at once, and the operating system keeps
//! control of the clocks. `docs/chip/energy.md` describes the model.

use super::GovernorPolicy;
use super::work::stopwatch::Stopwatch;
use crate::here;
use isles_chip::quantity::{Microvolts, Picoseconds};
use isles_transport::PlaceId;
use isles_transport_chip::ChipWorld;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

pub use isles_transport_chip::{ClockChange, ClockError};

/// Longest halt of a core by [`halt`].
const HALT_MAX: Duration = Duration::from_secs(3_600);

thread_local! {
    /// The stopwatch of the chip whose places run in this thread.
    static CHIP: RefCell<Option<Rc<Stopwatch>>> = const { RefCell::new(None) };
}

/// While it exists, the places of this thread are on the cores of a chip.
pub(crate) struct ChipScope(Option<Rc<Stopwatch>>);

impl ChipScope {
    pub(crate) fn of(stopwatch: &Rc<Stopwatch>) -> ChipScope {
        ChipScope(CHIP.replace(Some(Rc::clone(stopwatch))))
    }
}

impl Drop for ChipScope {
    fn drop(&mut self) {
        CHIP.set(self.0.take());
    }
}

/// Calls `question` with the chip and the calling place; returns `otherwise` if there is no chip.
pub(crate) fn ask<R>(otherwise: R, question: impl FnOnce(&ChipWorld, PlaceId) -> R) -> R {
    ask_for(otherwise, || PlaceId(here().index() as u32), question)
}

/// As [`ask`], for a place other than the calling task's, or outside of tasks.
pub(super) fn ask_for<R>(
    otherwise: R,
    place: impl FnOnce() -> PlaceId,
    question: impl FnOnce(&ChipWorld, PlaceId) -> R,
) -> R {
    let chip = CHIP.with_borrow(Option::clone);
    chip.map_or(otherwise, |chip| chip.ask(place(), question))
}

/// Sets the clock divider of all cores that share the supply of this place, with the lowest voltage that supports it.
///
/// To slow down, the dividers change at once and the voltage later; to speed up, the voltage rises first and the
/// dividers follow. The call returns when the controller has accepted the request; the [`ClockChange`] says when the
/// change is complete. `None` means that nothing changes: this place is not the first of its supply, a governor
/// enforces a cap (`capped`), or this is a real machine.
///
/// # Errors
/// [`ClockError`]; nothing has changed.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_supply_divider(divider: u32) -> Result<Option<ClockChange>, ClockError> {
    ask(Ok(None), |world, place| world.shift_supply(place, divider))
}

/// Sets the supply of this place to the lowest voltage that is not below `volts`; clocks are unchanged. As with
/// [`set_supply_divider`], only the first place of a supply may call it, and `None` means that nothing changes.
///
/// # Errors
/// [`ClockError`]; nothing has changed. For [`ClockError::ClocksTooFast`], divide the clocks first.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_supply_voltage(volts: f64) -> Result<Option<ClockChange>, ClockError> {
    let microvolts = (volts * 1e6).round().clamp(0.0, f64::from(u32::MAX)) as u32; // no number is 0
    ask(Ok(None), |world, place| world.set_supply_voltage(place, Microvolts(microvolts)))
}

/// Sets the governor of the run from now on. Its initial voltages are set one supply after the other, and a cap holds
/// once all of them are set. Returns `false`, without effect, on a real machine.
///
/// # Errors
/// [`ClockError`]: the policy is impossible for this run, or a supply is changing.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_governor(policy: GovernorPolicy) -> Result<bool, ClockError> {
    ask(Ok(false), |world, place| world.change_governor(place, policy).map(|()| true))
}

/// Sets the governor of this place's supply only, from now on; any place of the supply may call it. A cap then applies
/// to the cores of that supply. Returns `false`, without effect, on a real machine.
///
/// # Errors
/// [`ClockError`]: the whole chip has a governor, the policy is impossible for this supply, or the supply is changing.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_supply_governor(policy: GovernorPolicy) -> Result<bool, ClockError> {
    ask(Ok(false), |world, place| world.change_supply_governor(place, policy).map(|()| true))
}

/// Returns the current policy for this place's supply: its own governor, or that of the chip; `None` on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn supply_governor() -> Option<GovernorPolicy> {
    ask(None, |world, place| Some(world.supply_policy(place)))
}

/// Returns the current policy for the chip; `None` on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn governor() -> Option<GovernorPolicy> {
    ask(None, |world, _| Some(world.policy()))
}

/// Returns the number, clock rate and voltage of this place's supply; `None` on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn supply() -> Option<SupplyReading> {
    ask(None, |world, place| {
        let (rate, voltage) = world.operating_point(place);
        let hertz = rate.hertz() / u64::from(rate.divider());
        let volts = voltage.map(|voltage| f64::from(voltage.0) / 1e6);
        Some(SupplyReading { number: world.supply(place), hertz, volts })
    })
}

/// Readings of the supply of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SupplyReading {
    /// Number of the supply; its cores change together.
    pub number: u32,
    /// Clock rate of the core in hertz.
    pub hertz: u64,
    /// Voltage in volts, if the chip file has voltages.
    pub volts: Option<f64>,
}

/// Sets the clock divider of this place's tile, at once and at the present voltage. `None` means that nothing changes,
/// because a governor enforces a cap or this is a real machine.
///
/// # Errors
/// [`ClockError`]; nothing has changed. For [`ClockError::VoltageTooLow`], use [`set_supply_divider`] instead.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_tile_divider(divider: u32) -> Result<Option<ClockChange>, ClockError> {
    ask(Ok(None), |world, place| world.divide_tile(place, divider))
}

/// Waits until no change of this place's supply is in progress. As in RCCE, the place does nothing else meanwhile, not
/// even handle messages. Returns at once on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn wait_for_supply() {
    ask((), |world, place| world.await_supply(place));
}

/// Halts the core of this place for `limit`, at most an hour: it draws the power of a sleeping core, runs no task and
/// handles no message. Returns `false`, without effect, on a real machine, where a waiting place sleeps anyway.
///
/// A program that checks for a message between halts finds it up to `limit` late, and saves the energy of polling.
///
/// # Panics
/// On a chip, outside of a task.
pub fn halt(limit: Duration) -> bool {
    let nanoseconds = limit.min(HALT_MAX).as_nanos() as u64; // an hour fits
    ask(false, |world, place| {
        world.halt(place, Picoseconds(1_000 * nanoseconds));
        true
    })
}

/// Returns the current clock divider of this place's core; `None` if the clock cannot be divided, and on a real
/// machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn divider() -> Option<u32> {
    ask(None, |world, place| world.divider(place))
}
