//! The tracks of a trace that count: rates, voltages and powers; and what the controller of voltages does.
//!
//! Their own file because they belong to domains and not to cores. Invariant: a counter is described before it counts.

use super::InitialState;
use super::sink::TraceSink;
use super::trace::{DOMAIN, FROM_MILLIVOLTS, TO_MILLIVOLTS, VOLTAGE_CHANGE};
use crate::energy::Energy;
use crate::export::perfetto::{Details, EncodedTime, Encoder, EventPrefix, Track};
use isles_chip::gear::Gears;
use isles_chip::quantity::{Attojoules, Picoseconds};
use isles_chip::supply::{SupplyChange, SupplyResponse, Transition};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The counters of a trace.
pub(super) struct Counters {
    gears: Gears,
    /// Of rates, by frequency domain.
    clocks: BTreeMap<u32, Track>,
    /// Of voltages, by voltage domain.
    supplies: BTreeMap<u32, Track>,
    /// The one controller of voltages.
    controller: EventPrefix,
    /// The first track that nothing has.
    free: Track,
}

impl Counters {
    /// Describes the counters of rates and voltages, from the track `free` on, and says what they are at the start.
    pub(super) fn new(
        encoder: &mut Encoder,
        mut free: Track,
        gears: &Gears,
        cores: &[InitialState],
    ) -> Counters {
        let mut next = || {
            let track = free;
            free = Track(track.0 + 1);
            track
        };
        let (mut clocks, mut supplies) = (BTreeMap::new(), BTreeMap::new());
        for InitialState { clock, supply, gear, step, .. } in cores {
            if let Entry::Vacant(vacant) = clocks.entry(*clock) {
                let track = *vacant.insert(next());
                encoder.describe_counter(track, &format!("rate of frequency domain {clock}"), "MHz");
                encoder.count(track, Picoseconds::ZERO, gears.gear(*gear).rate.megahertz());
            }
            let Some(voltage) = gears.voltage(*step) else { continue };
            if let Entry::Vacant(vacant) = supplies.entry(*supply) {
                let track = *vacant.insert(next());
                encoder.describe_counter(track, &format!("voltage of voltage domain {supply}"), "V");
                encoder.count(track, Picoseconds::ZERO, voltage.volts());
            }
        }
        let controller = next();
        encoder.describe(controller, "voltage controller, 1 ns is 1 ps");
        let (gears, controller) = (gears.clone(), EventPrefix::new(controller));
        Counters { gears, clocks, supplies, controller, free }
    }

    /// Says what has changed.
    pub(super) fn shift(&self, encoder: &mut Encoder, answer: &SupplyResponse) {
        let gears = &self.gears;
        for change in &answer.changes {
            match *change {
                SupplyChange::Rate { time, clock, gear } => {
                    if let Some(track) = self.clocks.get(&clock.0) {
                        encoder.count(*track, time, gears.gear(gear).rate.megahertz());
                    }
                }
                SupplyChange::Voltage { time, supply, step } => {
                    if let Some((track, voltage)) = self.supplies.get(&supply.0).zip(gears.voltage(step)) {
                        encoder.count(*track, time, voltage.volts());
                    }
                }
            }
        }
        if let Some(Transition { supply, start, end, from, to }) = answer.transition {
            let millivolts = |step| gears.voltage(step).map_or(0, |voltage| u64::from(voltage.0) / 1_000);
            let notes = [
                (DOMAIN, u64::from(supply.0)),
                (FROM_MILLIVOLTS, millivolts(from)),
                (TO_MILLIVOLTS, millivolts(to)),
            ];
            let details = Details { flow: None, last_flow: None, notes: &notes };
            encoder.begin(&self.controller, EncodedTime::new(start), VOLTAGE_CHANGE, details);
            encoder.end(&self.controller, EncodedTime::new(end));
        }
    }

    /// Writes the power of the chip and of each voltage domain over time; `energy` is that of the whole run.
    pub(super) fn count_powers(&self, outlet: &mut TraceSink, energy: &Energy) {
        let window = energy.profile.window;
        let first = self.free;
        let own = energy.models.first().map_or("", |model| model.name.as_str());
        let columns = energy.profile.windows().next().map_or(0, |(_, _, sums)| sums.len());
        let about = format!("by {own}, means of {window}; 1 ns is 1 ps");
        outlet.encoder.describe_counter(first, &format!("power of the chip {about}"), "W");
        for column in 0..columns {
            let what =
                if column + 1 == columns { "uncore".to_owned() } else { format!("voltage domain {column}") };
            let track = Track(first.0 + 1 + column as u64);
            outlet.encoder.describe_counter(track, &format!("power of {what} {about}"), "W");
        }
        for (start, length, sums) in energy.profile.windows().filter(|(_, length, _)| length.0 > 0) {
            let chip: Attojoules = sums.iter().copied().sum();
            for (number, drawn) in (0..).zip([chip].iter().chain(sums)) {
                outlet.encoder.count(Track(first.0 + number), start, drawn.mean_over(length).watts());
            }
            outlet.hand_over_portions();
        }
    }
}
