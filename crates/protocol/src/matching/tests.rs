//! Matching against a model that keeps everything in two lists, and the credit in any order of events.

use super::*;
use crate::credit::{SendCredit, TooMany};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(Envelope),
    Receive(ReceivePattern),
    /// Puts back the message of a receive; the number, modulo their count, selects it.
    PutBack(usize),
    Cancel(usize),
    Die(PlaceId),
    Remove(u64),
}

fn envelope() -> impl Strategy<Value = Envelope> {
    (0..2_u64, 0..2_u64, 0..3_u32).prop_map(|(team, tag, source)| Envelope {
        team,
        tag,
        source: PlaceId(source),
    })
}

fn wanted() -> impl Strategy<Value = ReceivePattern> {
    (envelope(), any::<bool>()).prop_map(|(Envelope { team, tag, source }, is_any)| ReceivePattern {
        team,
        tag,
        source: (!is_any).then_some(source),
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => envelope().prop_map(Step::Arrive),
        6 => wanted().prop_map(Step::Receive),
        2 => any::<usize>().prop_map(Step::PutBack),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => (0..3_u32).prop_map(|place| Step::Die(PlaceId(place))),
        1 => (0..2_u64).prop_map(Step::Remove),
    ]
}

/// The model in two lists: the definition.
#[derive(Default)]
struct Model {
    unexpected: Vec<(u64, Envelope)>,
    posted: Vec<(ReceiveId, ReceivePattern)>,
    got: Vec<(ReceiveId, u64, Envelope)>,
}

impl Model {
    fn admit(&mut self, order: u64, envelope: Envelope) -> Option<ReceiveId> {
        match self.posted.iter().position(|(_, wanted)| wanted.fits(&envelope)) {
            Some(index) => {
                let (id, _) = self.posted.remove(index);
                self.got.push((id, order, envelope));
                Some(id)
            }
            None => {
                self.unexpected.push((order, envelope));
                self.unexpected.sort_by_key(|(order, _)| *order);
                None
            }
        }
    }

    fn take(&mut self, wanted: ReceivePattern) -> Option<u64> {
        let index = self.unexpected.iter().position(|(_, envelope)| wanted.fits(envelope))?;
        let (order, envelope) = self.unexpected.remove(index);
        self.got.push((ReceiveId(u64::MAX), order, envelope));
        Some(order)
    }
}

proptest! {
    #[test]
    fn each_message_goes_where_the_definition_says(steps in prop::collection::vec(step(), 0..80)) {
        let (mut matching, mut model) = (Matching::default(), Model::default());
        let mut messages = 0;
        for step in steps {
            match step {
                Step::Arrive(envelope) => {
                    let got = matching.arrive(envelope, messages);
                    prop_assert_eq!(got.as_ref().map(|(id, _)| *id), model.admit(messages, envelope));
                    prop_assert!(got.is_none_or(|(_, matched)| matched.message == messages));
                    messages += 1;
                }
                Step::Receive(wanted) => {
                    let is_next = model.posted.iter().all(|(_, other)| {
                        let clash = other.source.is_none() || wanted.source.is_none()
                            || other.source == wanted.source;
                        (other.team, other.tag) != (wanted.team, wanted.tag) || !clash
                    });
                    prop_assert_eq!(matching.is_next(wanted), is_next);
                    let is_here = model.unexpected.iter().any(|(_, envelope)| wanted.fits(envelope));
                    let left = if is_here { TakeOutcome::Left } else { TakeOutcome::Nothing };
                    prop_assert_eq!(matching.take_if(wanted, |_| false), left);
                    let got = matching.take(wanted);
                    prop_assert_eq!(got.as_ref().map(|matched| matched.message), model.take(wanted));
                    if got.is_none() {
                        model.posted.push((matching.post(wanted), wanted));
                    }
                }
                Step::PutBack(which) if !model.got.is_empty() => {
                    let (_, order, envelope) = model.got.remove(which % model.got.len());
                    let got = matching.put_back(Matched { envelope, order, message: order });
                    prop_assert_eq!(got.map(|(id, _)| id), model.admit(order, envelope));
                }
                Step::Cancel(which) if !model.posted.is_empty() => {
                    let (id, _) = model.posted.remove(which % model.posted.len());
                    matching.cancel(id);
                }
                Step::PutBack(_) | Step::Cancel(_) => {}
                Step::Die(dead) => {
                    let ended = matching.place_died(dead, |team| team == 0);
                    let is_ended = |wanted: &ReceivePattern| {
                        wanted.source == Some(dead) || (wanted.source.is_none() && wanted.team == 0)
                    };
                    let expected: Vec<ReceiveId> = model.posted.iter()
                        .filter(|(_, wanted)| is_ended(wanted)).map(|(id, _)| *id).collect();
                    model.posted.retain(|(_, wanted)| !is_ended(wanted));
                    prop_assert_eq!(ended, expected);
                }
                Step::Remove(team) => {
                    let gone = matching.remove(|envelope, _| envelope.team == team);
                    let before = model.unexpected.len();
                    model.unexpected.retain(|(_, envelope)| envelope.team != team);
                    prop_assert_eq!(gone.len(), before - model.unexpected.len());
                }
            }
            prop_assert_eq!(matching.len(), model.unexpected.len());
            prop_assert_eq!(matching.is_empty(), model.unexpected.is_empty());
        }
    }

    /// Never more than the credit is in flight, and once all is received a sender can always go on.
    #[test]
    fn credit_bounds_what_lies_and_never_stays_used_up(sends in prop::collection::vec(any::<bool>(), 0..2_000)) {
        let (mut credit, mut acknowledgement) = (SendCredit::default(), Acknowledgement::default());
        let (mut pending, mut sent_in_a_row) = (0, 0);
        for is_send in sends {
            if is_send && credit.take(UNACKNOWLEDGED_MAX) {
                pending += 1;
                sent_in_a_row += 1;
                prop_assert_eq!(acknowledgement.arrived(), Ok(()));
                prop_assert!(pending <= UNACKNOWLEDGED_MAX);
            } else if is_send {
                prop_assert!(pending > UNACKNOWLEDGED_MAX / 2, "closed with {} pending", pending);
            } else if pending > 0 {
                pending -= 1;
                sent_in_a_row = 0;
                if let Some(count) = acknowledgement.received() {
                    prop_assert_eq!(credit.acknowledge(count), Ok(()));
                }
            }
        }
        prop_assert!(sent_in_a_row <= UNACKNOWLEDGED_MAX);
        prop_assert_eq!(SendCredit::default().acknowledge(1), Err(TooMany));
    }

    /// Whatever a hostile sender does, no more messages than the credit are kept.
    #[test]
    fn one_more_than_the_credit_is_refused(arrivals in prop::collection::vec(any::<bool>(), 0..2_000)) {
        let (mut acknowledgement, mut pending) = (Acknowledgement::default(), 0_u32);
        for is_arrival in arrivals {
            if is_arrival {
                pending += u32::from(acknowledgement.arrived().is_ok());
            } else if pending > 0 {
                pending -= 1;
                acknowledgement.received();
            }
            prop_assert!(pending <= UNACKNOWLEDGED_MAX);
        }
    }
}

#[test]
fn a_receive_whose_message_is_withdrawn_is_as_old_as_before() {
    let wanted = ReceivePattern { team: 0, tag: 0, source: None };
    let of = |source| Envelope { team: 0, tag: 0, source: PlaceId(source) };
    let mut matching = Matching::default();
    let (first, second) = (matching.post(wanted), matching.post(wanted));
    assert_eq!(matching.arrive(of(1), 'a').map(|(id, _)| id), Some(first));
    assert_eq!(matching.post_again(first, wanted), None);
    assert_eq!(matching.arrive(of(2), 'b').map(|(id, _)| id), Some(first));
    assert_eq!(matching.arrive(of(2), 'c').map(|(id, _)| id), Some(second));
    assert_eq!(matching.arrive(of(2), 'd'), None);
    assert_eq!(matching.post_again(first, wanted).map(|matched| matched.message), Some('d'));
}
