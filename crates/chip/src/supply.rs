//! Rates and voltages of a chip as they change: who may change what, in which order, and how long it takes.
//!
//! Tiles that share a clock (a frequency domain) have a divider; tiles that share a supply (a voltage domain) have
//! a voltage, which must carry the fastest of their rates. A divider is a register: it changes at once. Voltages are
//! changed by one controller for the whole chip, one request after the other, each taking the `voltage_change` of the
//! chip file. So to slow down, dividers change at once and the voltage falls when the controller is done; to speed up,
//! the voltage rises first and dividers follow. These are the rules of RCCE, the library of the SCC.
//!
//! While a voltage changes the higher one counts: for power, and against the chip. A pure state machine: requests with
//! their time in, changes with their times out. Invariant: at no time is a rate set that the voltage does not carry.

use crate::chip::{Chip, FrequencyDomainId, VoltageDomainId};
use crate::gear::{GearId, Gears, StepId};
use crate::quantity::Picoseconds;
use crate::topology::TileId;
use std::fmt;

/// Something that changes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A frequency domain runs in another gear.
    Rate {
        /// From when on.
        time: Picoseconds,
        /// Which domain.
        clock: FrequencyDomainId,
        /// In which gear.
        gear: GearId,
    },
    /// A voltage domain counts as being at another step.
    Voltage {
        /// From when on.
        time: Picoseconds,
        /// Which domain.
        supply: VoltageDomainId,
        /// At which step.
        step: StepId,
    },
}

/// What the controller does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The domain.
    pub supply: VoltageDomainId,
    /// When it begins: at once, or when earlier requests are done.
    pub start: Picoseconds,
    /// When the voltage is the new one.
    pub end: Picoseconds,
    /// From which step.
    pub from: StepId,
    /// To which step.
    pub to: StepId,
}

/// What comes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// All that changes, in the order of time.
    pub changes: Vec<Change>,
    /// What the controller does, if it has to.
    pub transition: Option<Transition>,
}

/// Why a request was refused; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A change of this voltage domain is under way.
    UnderWay {
        /// Until when.
        until: Picoseconds,
    },
    /// The present voltage does not carry that rate.
    VoltageTooLow,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::UnderWay { until } => {
                write!(out, "a change of the domain is under way until {until} of the chip's time")
            }
            Refusal::VoltageTooLow => out.write_str("the present voltage does not carry that rate"),
        }
    }
}

impl std::error::Error for Refusal {}

/// One voltage domain.
#[derive(Clone, Debug)]
struct Supply {
    step: StepId,
    clocks: Vec<FrequencyDomainId>,
    /// When its last change is done.
    settled: Picoseconds,
    /// When anything was asked for last: what is asked for later by somebody whose clock is behind counts from then.
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
    /// When the controller has done all that it was asked for.
    free: Picoseconds,
}

impl Supplies {
    /// The domains of `chip`, all in the first of `gears`; none if its clocks cannot be divided, or if tiles with one
    /// clock have several supplies.
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

    /// The gear of a frequency domain when all that was asked for is done.
    pub fn gear(&self, clock: FrequencyDomainId) -> GearId {
        self.clocks[clock.0 as usize]
    }

    /// The step of a voltage domain when all that was asked for is done.
    pub fn step(&self, supply: VoltageDomainId) -> StepId {
        self.supplies[supply.0 as usize].step
    }

    /// When the last change of a voltage domain is done, or was.
    pub fn settled(&self, supply: VoltageDomainId) -> Picoseconds {
        self.supplies[supply.0 as usize].settled
    }

    /// The frequency domains of a voltage domain.
    pub fn clocks(&self, supply: VoltageDomainId) -> &[FrequencyDomainId] {
        &self.supplies[supply.0 as usize].clocks
    }

    /// Puts a voltage domain into a gear before anything runs: it takes no time.
    pub fn begin(&mut self, supply: VoltageDomainId, gear: GearId) {
        let domain = &mut self.supplies[supply.0 as usize];
        domain.step = self.gears.gear(gear).step;
        for clock in &domain.clocks {
            self.clocks[clock.0 as usize] = gear;
        }
    }

    /// At `now` all clocks of a voltage domain are asked to run in `gear`, at the lowest voltage that carries it.
    ///
    /// # Errors
    /// [`Refusal::UnderWay`].
    pub fn shift(
        &mut self,
        now: Picoseconds,
        supply: VoltageDomainId,
        gear: GearId,
    ) -> Result<Answer, Refusal> {
        let domain = &mut self.supplies[supply.0 as usize];
        let now = now.max(domain.asked);
        if domain.settled > now {
            return Err(Refusal::UnderWay { until: domain.settled });
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
            Change::Rate { time: rise.map_or(now, |rise| rise.end), clock: *clock, gear }
        });
        let voltage = transition.map(|transition| {
            let time = if to > from { transition.start } else { transition.end };
            Change::Voltage { time, supply, step: to }
        });
        let changes = if rise.is_some() {
            voltage.into_iter().chain(rates).collect()
        } else {
            rates.chain(voltage).collect()
        };
        Ok(Answer { changes, transition })
    }

    /// At `now` one clock is asked to run in `gear` at the present voltage: at once, without the controller.
    ///
    /// # Errors
    /// [`Refusal`]: the voltage does not carry that rate, or is about to change.
    pub fn divide(
        &mut self,
        now: Picoseconds,
        clock: FrequencyDomainId,
        gear: GearId,
    ) -> Result<Answer, Refusal> {
        let supply = self.supplies.iter_mut().find(|supply| supply.clocks.contains(&clock));
        let supply = supply.ok_or(Refusal::VoltageTooLow)?;
        let now = now.max(supply.asked);
        if supply.settled > now {
            return Err(Refusal::UnderWay { until: supply.settled });
        }
        if self.gears.gear(gear).step > supply.step {
            return Err(Refusal::VoltageTooLow);
        }
        supply.asked = now;
        let known = &mut self.clocks[clock.0 as usize];
        let changes = if *known == gear { Vec::new() } else { vec![Change::Rate { time: now, clock, gear }] };
        *known = gear;
        Ok(Answer { changes, transition: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLISECOND: u64 = 1_000_000_000;
    const TRANSITION: u64 = 16_500_000_000;

    fn scc() -> (Gears, Supplies) {
        let chip = Chip::find("scc").unwrap_or_else(|error| panic!("{error}"));
        let gears = Gears::of(&chip, chip.power_models().first());
        let supplies = Supplies::of(&chip, &gears).unwrap();
        (gears, supplies)
    }

    fn at(milliseconds: u64) -> Picoseconds {
        Picoseconds(milliseconds * MILLISECOND)
    }

    const FIRST: VoltageDomainId = VoltageDomainId(0);

    /// The tiles (0, 0), (1, 0), (0, 1) and (1, 1) of the SCC.
    const TILES: [u32; 4] = [0, 1, 6, 7];

    #[test]
    fn slowing_down_divides_at_once_and_the_voltage_falls_when_the_controller_is_done() {
        let (gears, mut supplies) = scc();
        let (slow, end) = (gears.divided_by(8).unwrap(), Picoseconds(MILLISECOND + TRANSITION));
        let answer = supplies.shift(at(1), FIRST, slow).unwrap();
        let rate = |clock| Change::Rate { time: at(1), clock: FrequencyDomainId(clock), gear: slow };
        let voltage = Change::Voltage { time: end, supply: FIRST, step: StepId(0) };
        assert_eq!(answer.changes, TILES.map(rate).into_iter().chain([voltage]).collect::<Vec<_>>());
        let (from, to) = (StepId(4), StepId(0));
        assert_eq!(answer.transition, Some(Transition { supply: FIRST, start: at(1), end, from, to }));
        assert_eq!((supplies.settled(FIRST), supplies.step(FIRST)), (end, StepId(0)));
    }

    #[test]
    fn speeding_up_raises_the_voltage_first_and_divides_when_it_is_there() {
        let (gears, mut supplies) = scc();
        let (fast, end) = (gears.divided_by(2).unwrap(), Picoseconds(MILLISECOND + TRANSITION));
        let answer = supplies.shift(at(1), FIRST, fast).unwrap();
        assert_eq!(answer.changes[0], Change::Voltage { time: at(1), supply: FIRST, step: StepId(5) });
        let rate = |clock| Change::Rate { time: end, clock: FrequencyDomainId(clock), gear: fast };
        assert_eq!(answer.changes[1..], TILES.map(rate));
    }

    #[test]
    fn the_controller_serves_one_domain_after_the_other_and_a_domain_one_request_at_a_time() {
        let (gears, mut supplies) = scc();
        let slow = gears.divided_by(8).unwrap();
        let first = supplies.shift(at(0), FIRST, slow).unwrap().transition.unwrap();
        let second = supplies.shift(at(1), VoltageDomainId(1), slow).unwrap().transition.unwrap();
        assert_eq!((second.start, second.end), (first.end, first.end + (first.end - first.start)));
        let until = first.end;
        assert_eq!(supplies.shift(at(2), FIRST, gears.first()), Err(Refusal::UnderWay { until }));
        assert!(supplies.shift(until, FIRST, gears.first()).is_ok());
    }

    #[test]
    fn a_divider_within_the_voltage_needs_no_controller_and_one_beyond_it_is_refused() {
        let (gears, mut supplies) = scc();
        let (tile, slow) = (FrequencyDomainId(7), gears.divided_by(16).unwrap());
        let answer = supplies.divide(at(1), tile, slow).unwrap();
        assert_eq!(answer.changes, [Change::Rate { time: at(1), clock: tile, gear: slow }]);
        assert_eq!((answer.transition, supplies.gear(tile)), (None, slow));
        let fast = gears.divided_by(2).unwrap();
        assert_eq!(supplies.divide(at(1), tile, fast), Err(Refusal::VoltageTooLow));
        let among_equals = gears.divided_by(9).unwrap();
        supplies.begin(FIRST, slow);
        assert_eq!(supplies.shift(at(1), FIRST, among_equals).unwrap().transition, None);
    }

    #[test]
    fn a_clock_is_divided_from_the_moment_on_at_which_its_voltage_has_changed() {
        let (gears, mut supplies) = scc();
        let (clock, slow) = (FrequencyDomainId(0), gears.divided_by(8).unwrap());
        let until = supplies.shift(at(1), FIRST, slow).unwrap().transition.unwrap().end;
        assert_eq!(supplies.divide(Picoseconds(until.0 - 1), clock, slow), Err(Refusal::UnderWay { until }));
        let slowest = gears.divided_by(16).unwrap();
        let changes = supplies.divide(until, clock, slowest).unwrap().changes;
        assert_eq!(changes, [Change::Rate { time: until, clock, gear: slowest }]);
    }

    #[test]
    fn who_asks_with_a_clock_behind_is_served_after_what_was_asked_for_before() {
        let (gears, mut supplies) = scc();
        let (clock, slow) = (FrequencyDomainId(0), gears.divided_by(8).unwrap());
        assert!(supplies.divide(at(5), clock, slow).is_ok());
        let changes = supplies.divide(at(2), clock, gears.first()).unwrap().changes;
        assert_eq!(changes, [Change::Rate { time: at(5), clock, gear: gears.first() }]);
        let transition = supplies.shift(at(3), FIRST, slow).unwrap().transition.unwrap();
        assert_eq!(transition.start, at(5));
    }

    #[test]
    fn what_is_so_already_changes_nothing() {
        let (gears, mut supplies) = scc();
        assert_eq!(supplies.shift(at(1), FIRST, gears.first()), Ok(Answer::default()));
        assert_eq!(supplies.divide(at(1), FrequencyDomainId(0), gears.first()), Ok(Answer::default()));
    }

    #[test]
    fn a_chip_whose_clock_cannot_be_divided_has_nothing_to_change() {
        let chip = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
        assert!(Supplies::of(&chip, &Gears::of(&chip, None)).is_none());
    }

    proptest! {
        #[test]
        fn no_rate_is_ever_set_that_the_voltage_does_not_carry(
            requests in prop::collection::vec((0..30u64, 0..24u32, 0..15u16, any::<bool>()), 1..60)
        ) {
            let (gears, mut supplies) = scc();
            let mut changes = Vec::new();
            let (mut now, mut transitions) = (0, Vec::new());
            for (wait, tile, gear, whole) in requests {
                now += wait;
                let (clock, gear) = (FrequencyDomainId(tile), GearId(gear));
                let supply = VoltageDomainId(tile % 6 / 2 + tile / 12 * 3);
                let answer = if whole {
                    supplies.shift(at(now), supply, gear)
                } else {
                    supplies.divide(at(now), clock, gear)
                };
                let Ok(answer) = answer else { continue };
                transitions.extend(answer.transition);
                changes.extend(answer.changes);
            }
            prop_assert!(transitions.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let time = |change: &Change| match change {
                Change::Rate { time, .. } | Change::Voltage { time, .. } => *time,
            };
            changes.sort_by_key(time); // stable: what was asked for first comes first
            let (mut rates, mut steps) = ([gears.first(); 24], [gears.gear(gears.first()).step; 6]);
            for (index, change) in changes.iter().enumerate() {
                match change {
                    Change::Rate { clock, gear, .. } => rates[clock.0 as usize] = *gear,
                    Change::Voltage { supply, step, .. } => steps[supply.0 as usize] = *step,
                }
                if changes.get(index + 1).is_some_and(|next| time(next) == time(change)) {
                    continue;
                }
                for (tile, gear) in rates.iter().enumerate() {
                    prop_assert!(gears.gear(*gear).step <= steps[tile % 6 / 2 + tile / 12 * 3]);
                }
            }
        }
    }
}
