//! Clocks and voltages of the cores of a modelled chip, from inside a program.
//!
//! On a chip whose clocks can be divided ([`ModelledChip`](crate::ModelledChip) `scc`: 1,600 MHz by 2 to 16) a program
//! can trade time for energy while it runs. The rules are those of RCCE, the library of the SCC: cores that share a
//! supply (eight on the SCC) are asked for together, by the first place of them; the chip has one controller of
//! voltages, which takes milliseconds for each change. A program's results never depend on it.
//!
//! *On a real machine nothing here has any effect*: requests answer `Ok(None)` at once, and clocks stay with the
//! operating system. How it is reckoned: `docs/chip/energy.md`.

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
    /// The chip whose places run in this thread, with the stopwatch of their code.
    static CHIP: RefCell<Option<Rc<Stopwatch>>> = const { RefCell::new(None) };
}

/// While it lives, the places of this thread are on the cores of a chip.
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

/// Returns the chip's answer for the place that asks; `otherwise` if there is no chip.
pub(crate) fn ask<R>(otherwise: R, question: impl FnOnce(&ChipWorld, PlaceId) -> R) -> R {
    ask_for(otherwise, || PlaceId(here().index() as u32), question)
}

/// As [`ask`], for another place than the calling task's, or where no task runs.
pub(super) fn ask_for<R>(
    otherwise: R,
    place: impl FnOnce() -> PlaceId,
    question: impl FnOnce(&ChipWorld, PlaceId) -> R,
) -> R {
    let chip = CHIP.with_borrow(Option::clone);
    chip.map_or(otherwise, |chip| chip.ask(place(), question))
}

/// Asks that all cores which share the supply of this place run by another divider of their clock, at the lowest
/// voltage that carries it.
///
/// To slow down, the dividers change at once and the voltage falls when the controller is done; to speed up, the
/// voltage rises first and the dividers follow. This place goes on when the controller takes the request; when all is
/// done the answer says. `None`: nothing came of it, because another place is the first of this supply and only that
/// one may ask, because a governor keeps a cap (`capped`), or because this is a real machine.
///
/// # Errors
/// [`ClockError`]: nothing has changed.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_supply_divider(divider: u32) -> Result<Option<ClockChange>, ClockError> {
    ask(Ok(None), |world, place| world.shift_supply(place, divider))
}

/// Asks for the lowest voltage of the supply of this place that is not below `volts`; clocks stay. As with
/// [`set_supply_divider`], only the first place of a supply may ask, and `None` says that nothing came of it.
///
/// # Errors
/// [`ClockError`]: nothing has changed; with [`ClockError::ClocksTooFast`] divide clocks first.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_supply_voltage(volts: f64) -> Result<Option<ClockChange>, ClockError> {
    let microvolts = (volts * 1e6).round().clamp(0.0, f64::from(u32::MAX)) as u32; // no number is 0
    ask(Ok(None), |world, place| world.set_supply_voltage(place, Microvolts(microvolts)))
}

/// Puts the run under another governor, from now on. The voltages that it begins with are changed one supply after the
/// other; a cap holds when all of them are. False on a real machine, where nothing comes of it.
///
/// # Errors
/// [`ClockError`]: the policy is not for this run, or a change of a supply is under way.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_governor(policy: GovernorPolicy) -> Result<bool, ClockError> {
    ask(Ok(false), |world, place| world.change_governor(place, policy).map(|()| true))
}

/// Puts the supply of this place alone under another governor, from now on; any of its places may ask. A cap is then
/// one of the cores of that supply. False on a real machine, where nothing comes of it.
///
/// # Errors
/// [`ClockError`]: a governor governs the whole chip, the policy is not for this supply, or a change of it is under
/// way.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_supply_governor(policy: GovernorPolicy) -> Result<bool, ClockError> {
    ask(Ok(false), |world, place| world.change_supply_governor(place, policy).map(|()| true))
}

/// Returns the policy that chooses the rates of this place's supply now: its own governor, or that of the chip;
/// `None` on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn supply_governor() -> Option<GovernorPolicy> {
    ask(None, |world, place| Some(world.supply_policy(place)))
}

/// Returns the policy that chooses the rates of the chip now; `None` on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn governor() -> Option<GovernorPolicy> {
    ask(None, |world, _| Some(world.policy()))
}

/// The number of the supply of this place's core, its rate in hertz and its voltage in volts, as far as the chip says;
/// `None` on a real machine.
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
    /// Its number: cores with the same one change together.
    pub number: u32,
    /// The rate of the core.
    pub hertz: u64,
    /// The voltage, if the chip says any.
    pub volts: Option<f64>,
}

/// Asks for another divider of the clock of this place's tile, at once and at the present voltage. `None`: nothing
/// came of it, because a governor keeps a cap, or because this is a real machine.
///
/// # Errors
/// [`ClockError`]: nothing has changed; with [`ClockError::VoltageTooLow`] ask for the supply instead.
///
/// # Panics
/// On a chip, outside of a task.
pub fn set_tile_divider(divider: u32) -> Result<Option<ClockChange>, ClockError> {
    ask(Ok(None), |world, place| world.divide_tile(place, divider))
}

/// Waits until no change of the supply of this place is under way. The place does nothing else meanwhile, as in RCCE:
/// it does not even take in messages. Returns at once on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn wait_for_supply() {
    ask((), |world, place| world.await_supply(place));
}

/// Halts the core of this place for `limit`, at most an hour: it draws what a sleeping core draws, runs no task and
/// takes in no message. Returns whether it did; on a real machine nothing happens, because a place that waits there
/// sleeps anyway.
///
/// A program that looks for a message between halts finds it up to `limit` late, and saves what polling draws.
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

/// Returns the divider of the clock of this place's core now; `None` if it cannot be divided, and on a real machine.
///
/// # Panics
/// On a chip, outside of a task.
pub fn divider() -> Option<u32> {
    ask(None, |world, place| world.divider(place))
}
