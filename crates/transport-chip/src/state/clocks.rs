//! Changes of clocks, in the order of turns: what a place asks for, and what the governor of the run orders.
//!
//! The cores carry them out and say what is allowed; here they enter the digest. Invariant: the governor has been
//! asked for every interval that had ended when the turn under way began.

use super::{Event, WorldState};
use crate::clocks::{ClockChange, ClockError};
use crate::governor::GovernorState;
use isles_chip::gear::GearId;
use isles_chip::governor::{Governor, Order};
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl WorldState {
    /// Puts the run under a governor, before anything runs.
    pub(crate) fn set_governor(&mut self, governor: Governor, gears: &[GearId]) {
        self.cores.begin(gears);
        self.governing = GovernorState::new(governor, self.statuses.len());
    }

    /// Asks the governor for all intervals until `present`.
    pub(super) fn govern(&mut self, present: Picoseconds) {
        let Some(governing) = &mut self.governing else { return };
        let (digest, tie_break) = (&mut self.digest, self.tie_break);
        governing.until(&mut self.cores, present, |time, order| {
            let (domain, gear) = match order {
                Order::Shift { domain, gear } => (domain << 1 | 1, gear),
                Order::Divide { domain, gear } => (domain << 1, gear),
            };
            let key = tie_break.key(time, EventClass::Timer, domain as u32, 0);
            digest.record(key, Event::Clocks as u32, u64::from(gear.0));
        });
    }

    /// `place` asks for another rate: of its supply or of its tile.
    pub(crate) fn change_clocks(
        &mut self,
        place: PlaceId,
        divider: u32,
        whole_supply: bool,
    ) -> Result<Option<ClockChange>, ClockError> {
        if self.governing.as_ref().is_some_and(GovernorState::owns_clocks) {
            return self.cores.gear_of(divider).map(|_| None);
        }
        let now = self.cores.now(place);
        let changed = if whole_supply {
            self.cores.shift_supply(place, divider)
        } else {
            self.cores.divide_tile(place, divider)
        }?;
        let key = self.key(now, EventClass::Timer, place);
        self.digest.record(key, Event::Clocks as u32, u64::from(divider) << 1 | u64::from(whole_supply));
        Ok(changed)
    }
}
