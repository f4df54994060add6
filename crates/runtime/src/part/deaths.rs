//! Handles of a dead place: how they are found and given back.
//!
//! A dead place gives nothing back, and it may have lent on what it had. So what was lent to it can be forgotten only
//! when all places that have a part from it count the part as lent by the home. A place that lent something to a dead
//! place asks the home of the part (`Inquire`). The home asks all living places (`Ask`). Each answers once it knows all
//! of these deaths, and so has received everything that the dead have sent: first it names the parts of this home that
//! it has from a dead place (`Adopt`), then it says that these were all (`Answer`). Then the home and the places that
//! inquired forget what was lent to the dead. A further death begins a new round, because the dead may have had parts
//! from each other.
//!
//! A pure machine. Invariant: nothing is forgotten before each living place has answered, in one round, about all
//! places whose death the home knew when the round began.

use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedSet;

/// Step to take after a death.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeathStep {
    /// Ask this place whether it knows these deaths, in this round.
    Ask(PlaceId, u64, Vec<PlaceId>),
    /// Leave the dead as parents of parts of this home, tell it of those, then that this was all of the round.
    Answer(PlaceId, u64, OrderedSet<PlaceId>),
    /// Ask this home about these deaths.
    Inquire(PlaceId, Vec<PlaceId>),
    /// Forget what was lent of parts of this place to the dead.
    Forget(OrderedSet<PlaceId>),
    /// Tell this place that it may do the same with the parts of this one.
    Tell(PlaceId, Vec<PlaceId>),
}

/// The deaths that a place knows, and what is asked about them.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    known: OrderedSet<PlaceId>,
    /// The round under way at this home.
    round: Option<Round>,
    rounds: u64,
    /// Questions that wait until the deaths that they are about are known here: of whom, in which round.
    questions: Vec<(PlaceId, u64, OrderedSet<PlaceId>)>,
}

/// A round of a home.
#[derive(Debug)]
struct Round {
    dead: OrderedSet<PlaceId>,
    unanswered: OrderedSet<PlaceId>,
    inquirers: OrderedSet<PlaceId>,
}

impl Deaths {
    /// Handles the death of `place`, of which this place has learned. `homes` are those of the parts that were lent to
    /// it from here, and `living` all other places that live.
    pub(super) fn record_death(
        &mut self,
        place: PlaceId,
        homes: OrderedSet<PlaceId>,
        here: PlaceId,
        living: &[PlaceId],
    ) -> Vec<DeathStep> {
        if !self.known.insert(place) {
            return Vec::new();
        }
        let mut steps = self.answer_known();
        let own = homes.contains(here);
        let inquire = |home: PlaceId| DeathStep::Inquire(home, vec![place]);
        let others = homes.iter().filter(|home| *home != here && !self.known.contains(*home));
        steps.extend(others.map(inquire));
        if own || self.round.is_some() {
            self.begin(OrderedSet::default(), OrderedSet::default(), living, &mut steps);
        }
        steps
    }

    /// Handles the report of another place that it has lent parts of this home to these places, which it knows to be
    /// dead.
    pub(super) fn receive_inquiry(
        &mut self,
        by: PlaceId,
        dead: Vec<PlaceId>,
        living: &[PlaceId],
    ) -> Vec<DeathStep> {
        let mut steps = Vec::new();
        // A death that is not known here yet begins a new round when it is.
        self.begin(OrderedSet::from_iter([by]), dead.into_iter().collect(), living, &mut steps);
        steps
    }

    /// Handles the question of another home.
    pub(super) fn asked(&mut self, by: PlaceId, round: u64, dead: Vec<PlaceId>) -> Vec<DeathStep> {
        self.questions.push((by, round, dead.into_iter().collect()));
        self.answer_known()
    }

    /// Handles the answer of a living place.
    pub(super) fn answered(&mut self, by: PlaceId, number: u64) -> Vec<DeathStep> {
        let mut steps = Vec::new();
        if let Some(round) = self.round.as_mut().filter(|_| number == self.rounds) {
            round.unanswered.remove(by);
            self.conclude(&mut steps);
        }
        steps
    }

    /// The questions about deaths that are all known.
    fn answer_known(&mut self) -> Vec<DeathStep> {
        let known = &self.known;
        let (ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.questions).into_iter().partition(|(.., dead)| dead.is_subset(known));
        self.questions = waiting;
        let living = ready.into_iter().filter(|(home, ..)| !self.known.contains(*home));
        living.map(|(home, round, dead)| DeathStep::Answer(home, round, dead)).collect()
    }

    /// Begins a round about all deaths that are known here or to `inquirers`, in the place of one under way.
    fn begin(
        &mut self,
        mut inquirers: OrderedSet<PlaceId>,
        mut dead: OrderedSet<PlaceId>,
        living: &[PlaceId],
        steps: &mut Vec<DeathStep>,
    ) {
        if let Some(before) = self.round.take() {
            dead.extend(before.dead.iter());
            inquirers.extend(before.inquirers.iter());
        }
        dead.extend(self.known.iter());
        self.rounds += 1;
        let unanswered: OrderedSet<PlaceId> =
            living.iter().copied().filter(|place| !self.known.contains(*place)).collect();
        let about: Vec<PlaceId> = self.known.iter().collect();
        steps.extend(unanswered.iter().map(|place| DeathStep::Ask(place, self.rounds, about.clone())));
        self.round = Some(Round { dead, unanswered, inquirers });
        self.conclude(steps);
    }

    /// Ends the round if all have answered, and the deaths that it is about are known here, too.
    fn conclude(&mut self, steps: &mut Vec<DeathStep>) {
        let known = &self.known;
        let is_over = |round: &Round| {
            let unanswered = round.unanswered.iter().all(|place| known.contains(place));
            unanswered && round.dead.is_subset(known)
        };
        let Some(round) = self.round.take_if(|round| is_over(round)) else { return };
        let dead: Vec<PlaceId> = round.dead.iter().collect();
        steps.push(DeathStep::Forget(round.dead));
        let living = round.inquirers.iter().filter(|place| !self.known.contains(*place));
        steps.extend(living.map(|place| DeathStep::Tell(place, dead.clone())));
    }
}
