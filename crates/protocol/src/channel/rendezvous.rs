//! A rendezvous at its home: the tasks that wait to send or to receive, and the lent values.
//!
//! A value is lent to a receiver and stays its sender's until the place of that receiver reports that a task has taken
//! it. Only then does the send end. A sender that belongs to a choice keeps its value: it is granted one receiver, and
//! sends the value when its task chooses it. If that receiver has left meanwhile, and there is no other, the send is
//! declined, and its task may choose another operation. Invariants: at most one operation of a choice is granted or
//! claimed here, and two of the same choice are never matched; a chosen sender never waits for a receiver.

use super::step::{Cancelled, ChannelStep, Choice, HeldResource, OfferOutcome, OperationId, WantOutcome};
use super::step::{PutBackViolation, SlotViolation};
use crate::PlaceId;
use std::collections::VecDeque;

/// The choice that an operation belongs to, in the whole run.
type ChoiceId = Option<(PlaceId, u64)>;

fn choice_of(id: OperationId, choice: Choice) -> ChoiceId {
    choice.map(|number| (id.place, number))
}

/// A waiting sender.
#[derive(Clone, Debug)]
struct Sender<V> {
    /// Position in the order of arrival.
    turn: u64,
    id: OperationId,
    choice: ChoiceId,
    /// True if its task decides: it asks, and is granted a receiver before it sends its value.
    asks: bool,
    waits: bool,
    /// The value, if it is here.
    value: Option<V>,
}

/// A lent value.
#[derive(Clone, Debug)]
struct Loan<V> {
    receiver: OperationId,
    /// Sender of the value, which is `None` while it is away.
    sender: Sender<V>,
    /// True if the send was given up.
    is_given_up: bool,
    /// True if the value was not taken, but is not back yet from being copied for the receiver.
    is_back: bool,
}

/// A sender that may choose its receiver.
#[derive(Clone, Debug)]
struct Grant<V> {
    sender: Sender<V>,
    /// The granted receiver, which may have left.
    receiver: OperationId,
    receiver_choice: ChoiceId,
}

/// A waiting receiver.
#[derive(Clone, Copy, Debug)]
struct Receiver {
    id: OperationId,
    choice: ChoiceId,
    /// True if it waits for any sender; otherwise it waits only for the sender that was granted it.
    waits: bool,
}

/// The state of a rendezvous at its home.
#[derive(Clone, Debug)]
pub struct Rendezvous<V> {
    next_turn: u64,
    /// In the order of their turns.
    sending: VecDeque<Sender<V>>,
    granted: Vec<Grant<V>>,
    receiving: VecDeque<Receiver>,
    /// In the order in which they began, which is mostly that in which they end.
    loans: VecDeque<Loan<V>>,
    is_closed: bool,
}

impl<V> Rendezvous<V> {
    /// Creates an open rendezvous.
    pub(super) fn new() -> Rendezvous<V> {
        Rendezvous {
            next_turn: 0,
            sending: VecDeque::new(),
            granted: Vec::new(),
            receiving: VecDeque::new(),
            loans: VecDeque::new(),
            is_closed: false,
        }
    }

    fn new_sender(&mut self, id: OperationId, choice: ChoiceId, asks: bool, waits: bool) -> Sender<V> {
        let turn = self.next_turn;
        self.next_turn += 1;
        Sender { turn, id, choice, asks, waits, value: None }
    }

    /// Returns the number of senders that wait for a receiver.
    pub(super) fn waiting_senders(&self) -> usize {
        self.sending.len()
    }

    /// As [`ChannelHome::is_closed`](super::ChannelHome::is_closed).
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// As [`ChannelHome::offer`](super::ChannelHome::offer).
    pub(super) fn offer(
        &mut self,
        id: OperationId,
        value: V,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<V> {
        if self.is_closed {
            return OfferOutcome::Refused(value);
        }
        let found = self.free_receiver(None);
        if found.is_none() && !waits {
            return OfferOutcome::Full(value);
        }
        let sender = self.new_sender(id, None, false, waits);
        match found {
            Some(found) => self.lend(found, sender, value, steps),
            None => self.sending.push_back(Sender { value: Some(value), ..sender }),
        }
        OfferOutcome::Waits
    }

    /// As [`ChannelHome::ask`](super::ChannelHome::ask).
    pub(super) fn ask(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> OfferOutcome<()> {
        if self.is_closed {
            return OfferOutcome::Refused(());
        }
        let choice = choice_of(id, choice);
        if !waits && self.receiver_for_choice(choice).is_none() {
            return OfferOutcome::Full(());
        }
        let sender = self.new_sender(id, choice, true, waits);
        self.sending.push_back(sender);
        self.match_waiting(steps);
        OfferOutcome::Waits
    }

    /// As [`ChannelHome::choose`](super::ChannelHome::choose).
    pub(super) fn choose(
        &mut self,
        id: OperationId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<OfferOutcome<V>, SlotViolation> {
        let found = self.granted.iter().position(|grant| grant.sender.id == id).ok_or(SlotViolation)?;
        let Grant { sender, receiver, .. } = self.granted.swap_remove(found);
        if self.is_closed {
            return Ok(OfferOutcome::Refused(value));
        }
        let claimed = self.receiving.iter().position(|other| other.id == receiver);
        match claimed.or_else(|| self.free_receiver(sender.choice)) {
            Some(found) => self.lend(found, sender, value, steps),
            None => self.wait_again(sender, value, steps),
        }
        self.match_waiting(steps);
        self.dismiss(steps);
        Ok(OfferOutcome::Waits)
    }

    /// As [`ChannelHome::want`](super::ChannelHome::want).
    pub(super) fn want(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> WantOutcome<V> {
        if self.is_closed {
            return WantOutcome::Ended;
        }
        if self.loan(id).is_some() || self.receiving.iter().any(|other| other.id == id) {
            return WantOutcome::Ended; // No sound place names two operations alike.
        }
        self.receiving.push_back(Receiver { id, choice: choice_of(id, choice), waits });
        self.match_waiting(steps);
        let is_idle = |last: &Receiver| last.id == id && !self.is_claimed(id);
        if !waits && self.receiving.back().is_some_and(is_idle) {
            self.receiving.pop_back();
            return WantOutcome::Empty;
        }
        WantOutcome::Waits
    }

    /// As [`ChannelHome::retain`](super::ChannelHome::retain).
    pub(super) fn retain(
        &mut self,
        receiver: OperationId,
        value: V,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Option<V> {
        let Some(found) = self.loan(receiver) else { return Some(value) };
        if !self.loans[found].is_back {
            self.loans[found].sender.value = Some(value);
        } else if let Some(loan) = self.loans.remove(found) {
            self.take_back(loan, value, steps);
        }
        None
    }

    /// As [`ChannelHome::taken`](super::ChannelHome::taken).
    pub(super) fn taken(
        &mut self,
        receiver: OperationId,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<Option<V>, PutBackViolation> {
        let found = self.loan(receiver).filter(|found| !self.loans[*found].is_back);
        let loan = found.and_then(|found| self.loans.remove(found)).ok_or(PutBackViolation)?;
        steps.push(ChannelStep::Accept(loan.sender.id, 0));
        Ok(loan.sender.value)
    }

    /// As [`ChannelHome::not_taken`](super::ChannelHome::not_taken).
    pub(super) fn not_taken(
        &mut self,
        receiver: OperationId,
        value: Option<V>,
        steps: &mut Vec<ChannelStep<V>>,
    ) -> Result<(), PutBackViolation> {
        let found =
            self.loan(receiver).filter(|found| !self.loans[*found].is_back).ok_or(PutBackViolation)?;
        let Some(value) = value.or_else(|| self.loans[found].sender.value.take()) else {
            self.loans[found].is_back = true; // It is being copied at this moment.
            return Ok(());
        };
        if let Some(loan) = self.loans.remove(found) {
            self.take_back(loan, value, steps);
        }
        Ok(())
    }

    /// Returns the index of the loan to `receiver`.
    fn loan(&self, receiver: OperationId) -> Option<usize> {
        self.loans.iter().position(|loan| loan.receiver == receiver)
    }

    /// As [`ChannelHome::holders`](super::ChannelHome::holders): a sender waits for each loan, and other senders for
    /// each grant.
    pub(super) fn holders(&self) -> Vec<(PlaceId, HeldResource)> {
        let lent = self.loans.iter().map(|loan| (loan.receiver.place, HeldResource::Value));
        let granted = self.granted.iter().map(|grant| (grant.sender.id.place, HeldResource::Room));
        lent.chain(granted).collect()
    }

    /// As [`ChannelHome::take_offer`](super::ChannelHome::take_offer).
    pub(super) fn take_offer(&mut self, steps: &mut Vec<ChannelStep<V>>) -> Option<V> {
        if !self.receiving.is_empty() || self.sending.front().is_none_or(|first| first.value.is_none()) {
            return None;
        }
        let first = self.sending.pop_front()?;
        steps.push(ChannelStep::Accept(first.id, 0));
        first.value
    }

    /// Takes back a value that was not taken: the next receiver gets it, or its sender waits again.
    fn take_back(&mut self, loan: Loan<V>, value: V, steps: &mut Vec<ChannelStep<V>>) {
        let Loan { sender, is_given_up, .. } = loan;
        if is_given_up {
            steps.push(ChannelStep::GiveBack(sender.id, value));
        } else if self.is_closed {
            steps.push(ChannelStep::Refuse(sender.id, Some(value)));
        } else {
            match self.free_receiver(sender.choice) {
                Some(found) => self.lend(found, sender, value, steps),
                None => self.wait_again(sender, value, steps),
            }
        }
    }

    /// As [`ChannelHome::cancel`](super::ChannelHome::cancel).
    pub(super) fn cancel(&mut self, id: OperationId, steps: &mut Vec<ChannelStep<V>>) -> Cancelled<V> {
        if let Some(found) = self.receiving.iter().position(|other| other.id == id) {
            self.receiving.remove(found);
            return Cancelled::Now(None);
        }
        let found = self.sending.iter().position(|sender| sender.id == id);
        if let Some(sender) = found.and_then(|found| self.sending.remove(found)) {
            return Cancelled::Now(sender.value);
        }
        if let Some(found) = self.granted.iter().position(|grant| grant.sender.id == id) {
            self.granted.swap_remove(found);
            self.match_waiting(steps);
            self.dismiss(steps);
            return Cancelled::Granted;
        }
        if let Some(loan) = self.loans.iter_mut().find(|loan| loan.sender.id == id) {
            loan.is_given_up = true;
        }
        Cancelled::Later
    }

    /// As [`ChannelHome::close`](super::ChannelHome::close).
    pub(super) fn close(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        self.is_closed = true;
        let refused = std::mem::take(&mut self.sending);
        steps.extend(refused.into_iter().map(|sender| ChannelStep::Refuse(sender.id, sender.value)));
        let ended = std::mem::take(&mut self.receiving);
        steps.extend(ended.into_iter().map(|receiver| ChannelStep::End(receiver.id)));
    }

    /// As [`ChannelHome::place_died`](super::ChannelHome::place_died). A value lent to `place` counts as taken: it may
    /// have been, and then nobody else may get it.
    pub(super) fn place_died(&mut self, place: PlaceId, steps: &mut Vec<ChannelStep<V>>) -> Vec<V> {
        let (dead, living): (VecDeque<_>, _) =
            std::mem::take(&mut self.sending).into_iter().partition(|sender| sender.id.place == place);
        self.sending = living;
        self.receiving.retain(|receiver| receiver.id.place != place);
        self.granted.retain(|grant| grant.sender.id.place != place);
        let given_up = self.loans.iter_mut().filter(|loan| loan.sender.id.place == place);
        given_up.for_each(|loan| loan.is_given_up = true);
        let (lost, living): (VecDeque<_>, _) =
            std::mem::take(&mut self.loans).into_iter().partition(|loan| loan.receiver.place == place);
        self.loans = living;
        let mut left: Vec<V> = dead.into_iter().filter_map(|sender| sender.value).collect();
        for loan in lost {
            steps.push(ChannelStep::Accept(loan.sender.id, 0));
            left.extend(loan.sender.value);
        }
        self.match_waiting(steps);
        self.dismiss(steps);
        left
    }

    /// Returns `true` if this receiver was granted to a sender.
    fn is_claimed(&self, receiver: OperationId) -> bool {
        self.granted.iter().any(|grant| grant.receiver == receiver)
    }

    /// Returns the index of the first receiver that is granted to no sender and is not of `choice`.
    fn free_receiver(&self, choice: ChoiceId) -> Option<usize> {
        self.receiving.iter().position(|receiver| {
            (choice.is_none() || receiver.choice != choice) && !self.is_claimed(receiver.id)
        })
    }

    /// As `free_receiver`, for a sender that asks: no other operation of either choice may be granted or
    /// claimed.
    fn receiver_for_choice(&self, choice: ChoiceId) -> Option<usize> {
        let is_granted = |of: ChoiceId| {
            let is_of_choice = |grant: &Grant<V>| grant.sender.choice == of || grant.receiver_choice == of;
            of.is_some() && self.granted.iter().any(is_of_choice)
        };
        if is_granted(choice) {
            return None;
        }
        self.receiving.iter().position(|receiver| {
            (choice.is_none() || receiver.choice != choice)
                && !is_granted(receiver.choice)
                && !self.is_claimed(receiver.id)
        })
    }

    /// Lends `value` of `sender` to the receiver at index `found`, until its place reports the outcome.
    fn lend(&mut self, found: usize, sender: Sender<V>, value: V, steps: &mut Vec<ChannelStep<V>>) {
        if let Some(receiver) = self.receiving.remove(found) {
            steps.push(ChannelStep::Lend(receiver.id, value));
            self.loans.push_back(Loan { receiver: receiver.id, sender, is_given_up: false, is_back: false });
        }
    }

    /// Handles a sender without a receiver: it waits with its value, or is declined, or does not wait and gets its
    /// value back.
    fn wait_again(&mut self, sender: Sender<V>, value: V, steps: &mut Vec<ChannelStep<V>>) {
        let back = match (sender.waits, sender.asks) {
            (false, _) => return steps.push(ChannelStep::Full(sender.id, Some(value))),
            (true, false) => Some(value),
            (true, true) => {
                steps.push(ChannelStep::Decline(sender.id, value));
                None
            }
        };
        let found = self.sending.partition_point(|other| other.turn < sender.turn);
        self.sending.insert(found, Sender { value: back, ..sender });
    }

    /// Matches waiting senders and receivers, the longest waiting first.
    fn match_waiting(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        let mut next = 0;
        while next < self.sending.len() && self.receiving.len() > self.claimed() {
            let (asks, choice) = (self.sending[next].asks, self.sending[next].choice);
            let found = if asks { self.receiver_for_choice(choice) } else { self.free_receiver(choice) };
            let Some(found) = found else {
                next += 1;
                continue;
            };
            let Some(mut sender) = self.sending.remove(next) else { return };
            match sender.value.take() {
                Some(value) => self.lend(found, sender, value, steps),
                None => {
                    steps.push(ChannelStep::Grant(sender.id));
                    let Receiver { id, choice, .. } = self.receiving[found];
                    self.granted.push(Grant { sender, receiver: id, receiver_choice: choice });
                }
            }
        }
    }

    /// Returns the number of waiting receivers that were granted to a sender.
    fn claimed(&self) -> usize {
        if self.granted.is_empty() {
            return 0;
        }
        self.receiving.iter().filter(|receiver| self.is_claimed(receiver.id)).count()
    }

    /// Ends the wait of nonblocking receivers that were granted to a sender, if that has left.
    fn dismiss(&mut self, steps: &mut Vec<ChannelStep<V>>) {
        let granted = &self.granted;
        self.receiving.retain(|receiver| {
            let stays = receiver.waits || granted.iter().any(|grant| grant.receiver == receiver.id);
            if !stays {
                steps.push(ChannelStep::Empty(receiver.id));
            }
            stays
        });
    }
}
