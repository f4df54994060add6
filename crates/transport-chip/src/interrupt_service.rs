//! The system of one core: what an interrupt lets it do, one job after the other, while its place computes or waits.
//!
//! It does not know what a job is. A place that waits loses nothing by it; one that computes or copies loses the time
//! of the job, and is charged when it looks next. Invariant: what a system did while its place was busy is charged to
//! that place once.

use crate::cores::Cores;
use crate::report::TimeCategory;
use isles_chip::kernel::Timeline;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::collections::VecDeque;

/// See the file header.
#[derive(Default)]
pub(crate) struct InterruptService {
    /// When it works.
    taken: Timeline,
    /// Jobs that are not charged: when each begins, and how long it takes.
    jobs: VecDeque<(Picoseconds, Picoseconds)>,
    /// How long the place had waited in all when it last looked.
    waited: Picoseconds,
}

impl InterruptService {
    /// Lets it work for so long, at `at` or later; gives when it begins.
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

    /// Charges `place`, whose core it is, for what it has done until now while the place was busy.
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
