//! The chip's interrupt controller, and the service of interrupts at a core.
//!
//! All targets of a request are called at about the same time. Each then accesses registers of the controller behind a
//! single port, one after the other. The system of a core does so at once, even while its place computes, so an
//! interrupt has arrived when the port has served it.
//!
//! [`InterruptService`] is the work of one core's system after interrupts, one job after the other, while its place
//! computes or waits. It does not know the content of jobs. A waiting place loses nothing; a busy one loses the time of
//! the job, and is charged at its next poll. Invariants: contention never makes an interrupt arrive earlier; a job
//! during which its place was busy is charged to that place once.

use super::Cores;
use crate::report::TimeCategory;
use crate::world::WorldError;
use isles_chip::kernel::Timeline;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::collections::VecDeque;

impl Cores {
    /// See [`Costs::check_interrupts`](super::Costs::check_interrupts).
    pub(crate) fn check_interrupts(&self) -> Result<(), WorldError> {
        self.costs.check_interrupts()
    }

    /// Returns the time of an access to a controller register by the core of `place`.
    pub(crate) fn controller_register(&self, place: PlaceId) -> Picoseconds {
        let register = self.times(place).test_and_set.unwrap_or_default();
        let controller = self.costs.interrupts.map(|traits| traits.tile);
        register.over(controller.map_or(0, |tile| self.topology().hops(self.tile(place), tile)))
    }

    /// Interrupts `targets` others from `place`, from `at` on, in as few requests as the mask allows. Returns the end
    /// of the requests, and the time at which each target is called.
    pub(crate) fn interrupt(
        &mut self,
        place: PlaceId,
        mut at: Picoseconds,
        targets: u32,
    ) -> (Picoseconds, Vec<Picoseconds>) {
        let traits = self.costs.interrupts.expect("the caller has checked that the chip has a controller");
        let times = self.times(place);
        let alone = times.interrupt.unwrap_or_default().over(0);
        let each = times.interrupt_more.unwrap_or_default().over(0);
        let register = self.controller_register(place);
        let (mut called, mut left) = (Vec::new(), targets);
        while left > 0 {
            let named = left.min(traits.targets_max.max(1));
            left -= named;
            at += register;
            let start = self.interrupts.reserve(self.present, at, each * u64::from(named));
            let passing = |number: u32| (start - at) + each * u64::from(number + 1);
            called.extend((0..named).map(|number| at + alone + traits.late(passing(number), each)));
        }
        (at, called)
    }
}

/// Service of one core's interrupts, one job after the other.
#[derive(Default)]
pub(crate) struct InterruptService {
    /// Busy times of the service.
    taken: Timeline,
    /// Start and duration of the jobs that are not yet charged.
    jobs: VecDeque<(Picoseconds, Picoseconds)>,
    /// Total waiting time of the place at its last poll.
    waited: Picoseconds,
}

impl InterruptService {
    /// Reserves `time` of the service, at `at` or later; returns its start.
    pub(crate) fn reserve(
        &mut self,
        present: Picoseconds,
        at: Picoseconds,
        time: Picoseconds,
    ) -> Picoseconds {
        let begin = self.taken.reserve(present, at, time);
        let after = self.jobs.iter().rposition(|(other, _)| *other <= begin).map_or(0, |index| index + 1);
        self.jobs.insert(after, (begin, time));
        begin
    }

    /// Charges the core of `place` for jobs of its service until now during which the place was busy.
    pub(crate) fn settle(&mut self, cores: &mut Cores, place: PlaceId) {
        let now = cores.now(place);
        let ledger = cores.ledger(place);
        let waited = ledger.time(TimeCategory::Waiting) + ledger.time(TimeCategory::Sleeping);
        let busy_until = now - (waited - self.waited);
        self.waited = waited;
        let begun = self.jobs.iter().take_while(|(begin, _)| *begin < now).count();
        let begun = self.jobs.drain(..begun);
        let lost = begun.filter(|(begin, _)| *begin < busy_until).map(|(_, time)| time);
        let lost = lost.fold(Picoseconds::ZERO, |sum, time| sum + time);
        cores.spend(place, lost, TimeCategory::Handling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::Costs;
    use crate::placement::Placement;
    use isles_chip::Chip;

    #[test]
    fn a_long_request_waits_at_the_port_and_a_later_one_behind_it() {
        let costs = Costs::of(&Chip::find("scc").unwrap()).unwrap();
        let core_map = Placement::Linear.core_map(costs.topology(), 48).unwrap();
        let mut cores = Cores::new(costs, core_map);
        let [near, far] = [0, 47].map(|place| cores.controller_register(PlaceId(place)));
        assert!(near < far, "{near} {far}: the controller is at the first tile");
        let times = *cores.times(PlaceId(0));
        let alone = times.interrupt.unwrap().over(0);
        let each = times.interrupt_more.unwrap().over(0);
        let (done, called) = cores.interrupt(PlaceId(0), Picoseconds(1_000), 47);
        // The SCC's controller takes up to 32 targets in one request, and 20 have passed before the first arrives.
        assert_eq!(done, Picoseconds(1_000) + near * 2);
        let first = Picoseconds(1_000) + near + alone;
        assert_eq!([called[0], called[19], called[31]], [first, first, first + each * 12]);
        assert_eq!(called[46], first + each * 27, "it waits for what the first request has left at the port");
        let (_, later) = cores.interrupt(PlaceId(47), Picoseconds(1_000), 1);
        assert!(later[0] > Picoseconds(1_000) + far + alone + each * 20, "behind those: {}", later[0]);
        let (_, calm) = cores.interrupt(PlaceId(47), Picoseconds(1_000_000_000), 1);
        assert_eq!(calm[0], Picoseconds(1_000_000_000) + far + alone);
    }
}
