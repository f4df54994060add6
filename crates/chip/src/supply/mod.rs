//! Changes of rates and voltages of a chip: their rules, order and duration.
//!
//! Tiles that share a clock (a frequency domain) have a divider; tiles that share a supply (a voltage domain) have a
//! voltage, which must support the fastest of their rates. A divider is a register, which changes at once. One
//! controller for the whole chip changes voltages, one request after the other, each taking the `voltage_change` of the
//! chip file. To slow down, dividers change at once and the voltage falls later; to speed up, the voltage rises first
//! and dividers follow. These are the rules of RCCE, the library of the SCC.
//!
//! While a voltage changes, the higher one counts for the power. It is a pure state machine, from timed requests to
//! timed changes. Invariant: the voltage supports the set rate at all times.

use crate::chip::{Chip, FrequencyDomainId, VoltageDomainId};
use crate::gear::{GearId, Gears, VoltageStepId};
use crate::quantity::Picoseconds;
use crate::topology::TileId;
use std::fmt;

/// A change at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyChange {
    /// A frequency domain changes its gear.
    Rate {
        /// Time of the change.
        time: Picoseconds,
        /// The domain.
        clock: FrequencyDomainId,
        /// Its new gear.
        gear: GearId,
    },
    /// A voltage domain changes its voltage step.
    Voltage {
        /// Time of the change.
        time: Picoseconds,
        /// The domain.
        supply: VoltageDomainId,
        /// Its new step.
        step: VoltageStepId,
    },
}

/// A voltage change by the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The domain.
    pub supply: VoltageDomainId,
    /// Start of the change: at once, or when earlier requests are complete.
    pub start: Picoseconds,
    /// Time from which the new voltage applies.
    pub end: Picoseconds,
    /// Step before the change.
    pub from: VoltageStepId,
    /// Step after the change.
    pub to: VoltageStepId,
}

/// Response to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupplyResponse {
    /// All changes, in the order of time.
    pub changes: Vec<SupplyChange>,
    /// Voltage change of the controller, if one is needed.
    pub transition: Option<Transition>,
}

/// Error of a request; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyError {
    /// A change of this voltage domain is in progress.
    UnderWay {
        /// End of that change.
        until: Picoseconds,
    },
    /// The present voltage does not support that rate.
    VoltageTooLow,
}

impl fmt::Display for SupplyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SupplyError::UnderWay { until } => {
                write!(out, "a change of the domain is in progress until {until} of modelled time")
            }
            SupplyError::VoltageTooLow => out.write_str("the present voltage is too low for that rate"),
        }
    }
}

impl std::error::Error for SupplyError {}

/// One voltage domain.
#[derive(Clone, Debug)]
struct Supply {
    step: VoltageStepId,
    clocks: Vec<FrequencyDomainId>,
    /// End of its last change.
    settled: Picoseconds,
    /// Time of the last request; a later call from a core whose clock is behind counts from then.
    asked: Picoseconds,
}

/// All domains of a chip.
#[derive(Clone, Debug)]
pub struct Supplies {
    gears: Gears,
    transition: Picoseconds,
    supplies: Vec<Supply>,
    /// The gear of each frequency domain.
    clocks: Vec<GearId>,
    /// Time at which the controller has completed all requests.
    free: Picoseconds,
}

impl Supplies {
    /// Returns the domains of `chip`, all in the first of `gears`; `None` if its clocks cannot be divided, or if tiles
    /// with one clock have several supplies.
    pub fn of(chip: &Chip, gears: &Gears) -> Option<Supplies> {
        chip.dividers()?;
        let mut owner = vec![None; chip.frequency_domains() as usize];
        for tile in (0..chip.topology().tiles()).map(TileId) {
            let supply = chip.voltage_domain(tile);
            let known = owner[chip.frequency_domain(tile).0 as usize].get_or_insert(supply);
            if *known != supply {
                return None;
            }
        }
        let clocks = |supply| {
            let clocks = (0..).map(FrequencyDomainId).zip(&owner);
            clocks.filter(|(_, owner)| **owner == Some(supply)).map(|(clock, _)| clock).collect()
        };
        let first = gears.first();
        let supply = |number| Supply {
            step: gears.gear(first).step,
            clocks: clocks(VoltageDomainId(number)),
            settled: Picoseconds::ZERO,
            asked: Picoseconds::ZERO,
        };
        Some(Supplies {
            transition: chip.default_preset().times().voltage_change.unwrap_or_default().over(0),
            supplies: (0..chip.voltage_domains()).map(supply).collect(),
            clocks: vec![first; owner.len()],
            free: Picoseconds::ZERO,
            gears: gears.clone(),
        })
    }

    /// Returns the gear of a frequency domain after all requests.
    pub fn gear(&self, clock: FrequencyDomainId) -> GearId {
        self.clocks[clock.0 as usize]
    }

    /// Returns the voltage step of a voltage domain after all requests.
    pub fn step(&self, supply: VoltageDomainId) -> VoltageStepId {
        self.supplies[supply.0 as usize].step
    }

    /// Returns the end of a voltage domain's last change, in the past or the future.
    pub fn settled(&self, supply: VoltageDomainId) -> Picoseconds {
        self.supplies[supply.0 as usize].settled
    }

    /// The frequency domains of a voltage domain.
    pub fn clocks(&self, supply: VoltageDomainId) -> &[FrequencyDomainId] {
        &self.supplies[supply.0 as usize].clocks
    }

    /// Sets the initial gear of a voltage domain, which takes no time.
    pub fn begin(&mut self, supply: VoltageDomainId, gear: GearId) {
        let domain = &mut self.supplies[supply.0 as usize];
        domain.step = self.gears.gear(gear).step;
        for clock in &domain.clocks {
            self.clocks[clock.0 as usize] = gear;
        }
    }

    /// Requests `gear` for all clocks of a voltage domain at `now`, with the lowest voltage that supports it.
    ///
    /// # Errors
    /// [`SupplyError::UnderWay`].
    pub fn shift(
        &mut self,
        now: Picoseconds,
        supply: VoltageDomainId,
        gear: GearId,
    ) -> Result<SupplyResponse, SupplyError> {
        let domain = &mut self.supplies[supply.0 as usize];
        let now = now.max(domain.asked);
        if domain.settled > now {
            return Err(SupplyError::UnderWay { until: domain.settled });
        }
        domain.asked = now;
        let (from, to) = (domain.step, self.gears.gear(gear).step);
        let moved: Vec<FrequencyDomainId> =
            domain.clocks.iter().copied().filter(|clock| self.clocks[clock.0 as usize] != gear).collect();
        let transition = (from != to).then(|| {
            let start = self.free.max(now);
            Transition { supply, start, end: start + self.transition, from, to }
        });
        if let Some(transition) = transition {
            (domain.step, domain.settled, self.free) = (to, transition.end, transition.end);
        }
        let rise = transition.filter(|_| to > from);
        let rates = moved.iter().map(|clock| {
            self.clocks[clock.0 as usize] = gear;
            SupplyChange::Rate { time: rise.map_or(now, |rise| rise.end), clock: *clock, gear }
        });
        let voltage = transition.map(|transition| {
            let time = if to > from { transition.start } else { transition.end };
            SupplyChange::Voltage { time, supply, step: to }
        });
        let changes = if rise.is_some() {
            voltage.into_iter().chain(rates).collect()
        } else {
            rates.chain(voltage).collect()
        };
        Ok(SupplyResponse { changes, transition })
    }

    /// Requests a voltage step for a voltage domain at `now`; its clocks are unchanged.
    ///
    /// # Errors
    /// [`SupplyError`]: the step does not support the fastest of its clocks, or a change is in progress.
    pub fn set_voltage(
        &mut self,
        now: Picoseconds,
        supply: VoltageDomainId,
        step: VoltageStepId,
    ) -> Result<SupplyResponse, SupplyError> {
        let domain = &mut self.supplies[supply.0 as usize];
        let now = now.max(domain.asked);
        if domain.settled > now {
            return Err(SupplyError::UnderWay { until: domain.settled });
        }
        let needed = |clock: &FrequencyDomainId| self.gears.gear(self.clocks[clock.0 as usize]).step;
        if domain.clocks.iter().map(needed).max().is_some_and(|needed| needed > step) {
            return Err(SupplyError::VoltageTooLow);
        }
        domain.asked = now;
        let from = domain.step;
        if from == step {
            return Ok(SupplyResponse::default());
        }
        let start = self.free.max(now);
        let transition = Transition { supply, start, end: start + self.transition, from, to: step };
        (domain.step, domain.settled, self.free) = (step, transition.end, transition.end);
        let time = if step > from { transition.start } else { transition.end };
        let changes = vec![SupplyChange::Voltage { time, supply, step }];
        Ok(SupplyResponse { changes, transition: Some(transition) })
    }

    /// Sets one clock to `gear` at `now` at the present voltage: at once, without the controller.
    ///
    /// # Errors
    /// [`SupplyError`]: the voltage does not support that rate, or a change is in progress.
    pub fn divide(
        &mut self,
        now: Picoseconds,
        clock: FrequencyDomainId,
        gear: GearId,
    ) -> Result<SupplyResponse, SupplyError> {
        let supply = self.supplies.iter_mut().find(|supply| supply.clocks.contains(&clock));
        let supply = supply.ok_or(SupplyError::VoltageTooLow)?;
        let now = now.max(supply.asked);
        if supply.settled > now {
            return Err(SupplyError::UnderWay { until: supply.settled });
        }
        if self.gears.gear(gear).step > supply.step {
            return Err(SupplyError::VoltageTooLow);
        }
        supply.asked = now;
        let known = &mut self.clocks[clock.0 as usize];
        let changes =
            if *known == gear { Vec::new() } else { vec![SupplyChange::Rate { time: now, clock, gear }] };
        *known = gear;
        Ok(SupplyResponse { changes, transition: None })
    }
}

#[cfg(test)]
mod tests;
