//! Changes of clocks, voltages and the governor of a modelled chip while jobs run.
//!
//! A change is requested at the places themselves, because on the chip only the first place of a supply may change it.
//! Invariant: a refused change has no effect on that supply, and its refusal has a kind.

use crate::request::{Refusal, RefusalKind};
use isles::GovernorPolicy;
use isles::clocks;
use isles::clocks::ClockError;
use isles::prelude::*;
use serde::{Deserialize, Serialize};

/// Change of clocks or voltage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ClockOrder {
    /// Sets the divider of all clocks of a supply, and the voltage with it.
    Supply(u32),
    /// Sets the divider of the clock of a tile, at the present voltage.
    Tile(u32),
    /// Sets the voltage of a supply, in volts; clocks stay.
    Voltage(f64),
}

/// Places that are requested to make the change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ClockScope {
    /// All of them.
    Chip,
    /// Those of a supply.
    Supply(u32),
    /// This one.
    Place(usize),
}

/// Outcome of a change at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ChangeOutcome {
    /// This place does not make the change.
    Nothing,
    Changed,
    /// Refused, because this governor controls the clocks.
    Governed(String),
}

/// Requests a change from all places that are `alive` and in `scope`. Returns the number of places that made it.
///
/// # Errors
/// The first refusal.
pub(crate) async fn change(order: ClockOrder, scope: ClockScope, alive: &[Place]) -> Result<usize, Refusal> {
    let (mut changed, mut keeper) = (0, None);
    for place in alive {
        let answer = at!(*place, [order, scope] change_here(order, scope)).await;
        match answer.map_err(|error| Refusal::from(error.to_string()))?? {
            ChangeOutcome::Nothing => {}
            ChangeOutcome::Changed => changed += 1,
            ChangeOutcome::Governed(governor) => keeper = Some(governor),
        }
    }
    match (changed, keeper) {
        (0, Some(governor)) => {
            let text = format!(
                "the governor {governor} controls the clocks; set another governor first, such as fixed"
            );
            Err(Refusal::of(RefusalKind::Governed, text))
        }
        (0, None) => Err(fixed()),
        (changed, _) => Ok(changed),
    }
}

/// Makes a change, if this place is the one to make it.
fn change_here(order: ClockOrder, scope: ClockScope) -> Result<ChangeOutcome, Refusal> {
    let Some(supply) = clocks::supply() else { return Ok(ChangeOutcome::Nothing) };
    let is_asked = match scope {
        ClockScope::Chip => true,
        ClockScope::Supply(number) => number == supply.number,
        ClockScope::Place(place) => place == here().index(),
    };
    if !is_asked {
        return Ok(ChangeOutcome::Nothing);
    }
    let changed = match order {
        ClockOrder::Supply(divider) => clocks::set_supply_divider(divider),
        ClockOrder::Tile(divider) => clocks::set_tile_divider(divider),
        ClockOrder::Voltage(volts) => clocks::set_supply_voltage(volts),
    };
    Ok(match (changed.map_err(refusal)?, clocks::supply_governor()) {
        (Some(_), _) => ChangeOutcome::Changed,
        (None, Some(governor @ GovernorPolicy::Capped(_))) => ChangeOutcome::Governed(governor.to_string()),
        (None, _) => ChangeOutcome::Nothing,
    })
}

/// Returns the supply of a place.
///
/// # Errors
/// Its clocks cannot be divided, or it is dead.
pub(crate) async fn supply_of(place: Place) -> Result<u32, Refusal> {
    let supply = at!(place, clocks::supply().map(|supply| supply.number)).await;
    supply.map_err(|error| Refusal::from(error.to_string()))?.ok_or_else(fixed)
}

/// Sets the governor of the chip, or only of the supply of a place.
///
/// # Errors
/// There is no governor of that name, or it is not for this run, or the place is dead.
pub(crate) async fn govern(policy: String, at: Option<Place>) -> Result<(), Refusal> {
    let Some(place) = at else { return govern_here(&policy, false) };
    let answer = at!(place, [policy] govern_here(&policy, true)).await;
    answer.map_err(|error| Refusal::from(error.to_string()))?
}

fn govern_here(policy: &str, is_of_supply: bool) -> Result<(), Refusal> {
    let named = policy.parse::<GovernorPolicy>().map_err(|allowed| {
        Refusal::of(RefusalKind::NoSuchGovernor, format!("the governor is {policy:?}; allowed: {allowed}"))
    })?;
    let set = if is_of_supply { clocks::set_supply_governor(named) } else { clocks::set_governor(named) };
    if set.map_err(refusal)? { Ok(()) } else { Err(fixed()) }
}

fn fixed() -> Refusal {
    let reason = "no clock has changed: this is not a chip with clock dividers".to_owned();
    Refusal::of(RefusalKind::ClocksFixed, reason)
}

fn refusal(error: ClockError) -> Refusal {
    let kind = match error {
        ClockError::Fixed => RefusalKind::ClocksFixed,
        ClockError::Divider { .. } => RefusalKind::NoSuchClock,
        ClockError::Voltage { .. } => RefusalKind::NoSuchVoltage,
        ClockError::VoltageTooLow { .. } | ClockError::ClocksTooFast { .. } => RefusalKind::VoltageTooLow,
        ClockError::UnderWay { .. } => RefusalKind::ChangeUnderWay,
        ClockError::Governor(_) => RefusalKind::NoSuchGovernor,
        ClockError::ChipGoverned { .. } => RefusalKind::Governed,
        _ => RefusalKind::Other,
    };
    Refusal::of(kind, error.to_string())
}
