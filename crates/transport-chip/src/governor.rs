//! The governor of a run: its observations of the cores, and its orders.
//!
//! A governor runs beside the cores and costs them nothing; it uses the same voltage controller as programs do. It is
//! asked once the run has passed the end of an interval, before the next turn, so it knows everything until then and
//! slightly more of a core that has run ahead.

use crate::cores::Cores;
use crate::report::{Ledger, TimeCategory};
use isles_chip::governor::{Governor, INTERVAL, Observation, Order};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// State of a core when the governor was last asked.
#[derive(Clone, Copy, Default)]
struct CoreSample {
    time: Picoseconds,
    computed: u64,
    moved: u64,
    /// Thousandths of its time in which it computed, and moved data, between the last two samples.
    shares: [u32; 2],
}

impl CoreSample {
    /// Returns the next sample of a core with `ledger` at `time`.
    fn next(&self, ledger: &Ledger, time: Picoseconds) -> CoreSample {
        let computed = ledger.time(TimeCategory::Working).0 + ledger.time(TimeCategory::Measured).0;
        let moving = [TimeCategory::Handling, TimeCategory::Copying, TimeCategory::Fetching];
        let moved = moving.into_iter().map(|category| ledger.time(category).0).sum();
        let Some(length) = time.0.checked_sub(self.time.0).filter(|length| *length > 0) else { return *self };
        let share = |part: u64| (u128::from(part) * 1_000 / u128::from(length)) as u32;
        CoreSample {
            time,
            computed,
            moved,
            shares: [share(computed - self.computed), share(moved - self.moved)],
        }
    }
}

/// A governor with its state in a run.
pub(crate) struct GovernorState {
    governor: Governor,
    /// The only voltage domain that it governs; `None` for all.
    only: Option<usize>,
    due: Picoseconds,
    looks: Vec<CoreSample>,
}

impl GovernorState {
    /// Makes the state of a governor for `places` places from the start; `None` for a policy that never changes a
    /// clock.
    pub(crate) fn new(governor: Governor, places: usize) -> Option<GovernorState> {
        (!governor.is_fixed()).then(|| GovernorState {
            governor,
            only: None,
            due: INTERVAL,
            looks: vec![CoreSample::default(); places],
        })
    }

    /// As [`GovernorState::new`], from `present` on, for `only` one voltage domain if given; earlier activity is
    /// ignored.
    pub(crate) fn begun_at(
        governor: Governor,
        only: Option<usize>,
        cores: &Cores,
        present: Picoseconds,
    ) -> Option<GovernorState> {
        let places = cores.core_map().places();
        let mut state = GovernorState::new(governor, places as usize)?;
        state.only = only;
        state.due = Picoseconds((present.0 / INTERVAL.0 + 1) * INTERVAL.0);
        for (place, look) in (0..).map(PlaceId).zip(&mut state.looks) {
            let (_, ledger, now) = cores.look_at(place);
            *look = CoreSample { shares: [0; 2], ..look.next(ledger, now.max(present)) };
        }
        Some(state)
    }

    /// Returns the only voltage domain that it governs; `None` for all.
    pub(crate) fn only(&self) -> Option<usize> {
        self.only
    }

    /// Returns the time of the next decision.
    pub(crate) fn due(&self) -> Picoseconds {
        self.due
    }

    /// Returns `true` if only the governor may change the clocks of a domain, because it enforces a cap.
    pub(crate) fn owns_clocks(&self, domain: usize) -> bool {
        matches!(self.governor, Governor::Capped(_)) && self.only.is_none_or(|only| only == domain)
    }

    /// Asks the governor at the end of an interval; `record` gets each executed order with its time.
    pub(crate) fn ask(&mut self, cores: &mut Cores, mut record: impl FnMut(Picoseconds, Order)) {
        // Sample the energy until now before anything changes.
        cores.sample_until(self.due);
        let observed = self.observe(cores);
        for order in self.governor.decide(&observed) {
            cores.apply_order(self.due, order);
            record(self.due, order);
        }
        self.due += INTERVAL;
    }

    fn observe(&mut self, cores: &Cores) -> Vec<Observation> {
        let due = self.due;
        let shares = (0..).map(PlaceId).zip(&mut self.looks).map(|(place, look)| {
            let (domain, ledger, now) = cores.look_at(place);
            *look = look.next(ledger, now.max(due));
            (domain, look.shares)
        });
        let mut observed = of_domains(shares, cores.supply_count());
        for (domain, seen) in observed.iter_mut().enumerate() {
            seen.settled = cores.is_settled(domain, due);
        }
        observed
    }
}

/// Returns the observation of each domain: the load of its busiest place, and the means of all its places.
fn of_domains(shares: impl Iterator<Item = (usize, [u32; 2])>, domains: usize) -> Vec<Observation> {
    let mut observed = vec![Observation::default(); domains];
    let mut counts = vec![0; domains];
    for (domain, [computing, moving]) in shares {
        let seen = &mut observed[domain];
        seen.busy = seen.busy.max((computing + moving).min(1_000));
        seen.computing += computing;
        seen.moving += moving;
        counts[domain] += 1;
    }
    for (seen, count) in observed.iter_mut().zip(counts) {
        seen.computing /= count.max(1);
        seen.moving /= count.max(1);
    }
    observed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_sees_what_a_core_has_done_since_the_last_one() {
        let mut ledger = Ledger::default();
        let mut spend = |spent: &[(TimeCategory, u64)]| {
            spent.iter().for_each(|(category, time)| ledger.add(*category, Picoseconds(*time)));
            ledger
        };
        let (working, fetching) = (TimeCategory::Working, TimeCategory::Fetching);
        let first = spend(&[
            (working, 300),
            (TimeCategory::Measured, 100),
            (TimeCategory::Handling, 50),
            (TimeCategory::Copying, 150),
            (fetching, 200),
            (TimeCategory::Polling, 70),
            (TimeCategory::Waiting, 80),
            (TimeCategory::Sleeping, 50),
        ]);
        let look = CoreSample::default().next(&first, Picoseconds(1_000));
        assert_eq!(look.shares, [400, 400]);
        let look = look.next(&spend(&[(working, 10), (fetching, 30)]), Picoseconds(1_100));
        assert_eq!(look.shares, [100, 300]);
        assert_eq!(look.next(&spend(&[]), Picoseconds(1_100)).shares, [100, 300], "no time has passed");
    }

    #[test]
    fn a_domain_is_as_busy_as_its_busiest_place_and_computes_and_moves_as_all_do_in_the_mean() {
        let shares = [(0, [700, 400]), (2, [0, 0]), (0, [100, 100]), (2, [100, 200])];
        let seen = |busy, computing, moving| Observation { busy, computing, moving, settled: false };
        let expected = [seen(1_000, 400, 250), seen(0, 0, 0), seen(300, 50, 100)];
        assert_eq!(of_domains(shares.into_iter(), 3), expected);
    }
}
