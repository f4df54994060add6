//! Calls of this place that are not answered yet.

use super::answer::Answer;
use crate::attachment::Attachment;
use crate::call::site::SiteCell;
use crate::error::{Error, Result};
use crate::finish::Scope;
use crate::limits::REPLY_SPIN_POLLS;
use crate::local::Local;
use crate::message::Handler;
use crate::wire::{DecodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_transport::{Class, Inbound};
use slab::Slab;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The id of one call in the table of its caller.
// One aligned word, so that it is written and read in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub(crate) struct CallId {
    index: u32,
    /// Tells a call from an earlier one with the same index.
    generation: u32,
}

impl CallId {
    pub(crate) fn encode(self, writer: &mut Writer<'_>) {
        writer.put_u32(self.index);
        writer.put_u32(self.generation);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(CallId { index: reader.take_u32()?, generation: reader.take_u32()? })
    }
}

struct Pending {
    generation: u32,
    to: PlaceId,
    /// The caller's scope, and the key of its finish, which counts the call as a live task until it is settled.
    scope: Scope,
    key: Option<Key>,
    site: &'static SiteCell,
    state: CallState,
}

enum CallState {
    /// The caller waits; `None` until it has been polled.
    Waiting(Option<Waker>),
    /// The answer has arrived and is not yet taken.
    Answered(Result<Answer>),
    /// The caller is gone; its finish still waits for the answer.
    Abandoned,
}

/// The calls of one place.
#[derive(Default)]
pub(crate) struct Calls {
    pending: Slab<Pending>,
    generation: u32,
}

/// Effect of an answer on the finish of the caller; reported once the table is no longer borrowed.
pub(super) struct CallCompletion {
    to: PlaceId,
    scope: Scope,
    key: Option<Key>,
    waker: Option<Waker>,
}

impl CallCompletion {
    /// Reports to the finish, and wakes the caller. `counted` says whether the finish counted the body.
    pub(super) fn report(self, local: &Local, counted: bool) {
        if let Some(key) = self.key {
            if counted {
                // The caller may be a body that is not counted itself.
                local.counting_key(self.scope);
            }
            local.finishes.settle(local, key, self.to, counted);
        }
        if let Some(waker) = self.waker {
            waker.wake();
        }
    }
}

impl Calls {
    /// Adds a call that is about to be sent.
    pub(super) fn open(
        &mut self,
        to: PlaceId,
        scope: Scope,
        key: Option<Key>,
        site: &'static SiteCell,
    ) -> CallId {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let pending = Pending { generation, to, scope, key, site, state: CallState::Waiting(None) };
        CallId { index: self.pending.insert(pending) as u32, generation }
    }

    /// Removes a call that could not be sent.
    pub(super) fn forget(&mut self, slot: CallId) {
        if self.get(slot).is_some() {
            self.pending.remove(slot.index as usize);
        }
    }

    fn get(&mut self, slot: CallId) -> Option<&mut Pending> {
        self.pending.get_mut(slot.index as usize).filter(|pending| pending.generation == slot.generation)
    }

    fn is_waiting(&mut self, slot: CallId) -> bool {
        self.get(slot).is_some_and(|pending| matches!(pending.state, CallState::Waiting(_)))
    }

    /// Takes the answer, if it has arrived; otherwise stores the waker.
    fn take(&mut self, slot: CallId, context: &mut Context<'_>) -> Option<Result<Answer>> {
        let pending = self.get(slot)?;
        if let CallState::Waiting(waker) = &mut pending.state {
            waker.replace(context.waker().clone());
            return None;
        }
        match self.pending.remove(slot.index as usize).state {
            CallState::Answered(answer) => Some(answer),
            CallState::Waiting(_) | CallState::Abandoned => None,
        }
    }

    /// Stores the answer of a call; `None` if `source` did not get that call.
    pub(super) fn answer(
        &mut self,
        slot: CallId,
        source: PlaceId,
        answer: Result<Answer>,
    ) -> Option<CallCompletion> {
        let pending = self.get(slot).filter(|pending| pending.to == source)?;
        let (to, scope, key) = (pending.to, pending.scope, pending.key);
        match std::mem::replace(&mut pending.state, CallState::Answered(answer)) {
            CallState::Waiting(waker) => Some(CallCompletion { to, scope, key, waker }),
            CallState::Abandoned => {
                self.pending.remove(slot.index as usize);
                // The caller was counted when it ended, and its scope no longer exists.
                Some(CallCompletion { to, scope: Scope::DETACHED, key, waker: None })
            }
            CallState::Answered(first) => {
                pending.state = CallState::Answered(first);
                None
            }
        }
    }

    /// Answers all calls to `place` with its death.
    pub(super) fn place_died(&mut self, place: PlaceId) -> Vec<CallCompletion> {
        let slots = self.pending.iter().filter(|(_, pending)| pending.to == place);
        let slots: Vec<CallId> = slots
            .map(|(index, pending)| CallId { index: index as u32, generation: pending.generation })
            .collect();
        slots.into_iter().filter_map(|slot| self.answer(slot, place, Err(Error::dead(place)))).collect()
    }

    /// Returns the waiting calls, as the place and the site of each; for reports.
    pub(crate) fn waiting(&self) -> Vec<(PlaceId, &'static str)> {
        let waiting =
            self.pending.iter().filter(|(_, pending)| matches!(pending.state, CallState::Waiting(_)));
        waiting.map(|(_, pending)| (pending.to, pending.site.location())).collect()
    }
}

/// The wait for the answer of one call.
pub(super) struct ReplyFuture {
    /// `None` once the answer is taken.
    slot: Option<CallId>,
    /// Run and place at which the call is registered.
    attachment: Attachment,
}

impl ReplyFuture {
    pub(crate) fn new(local: &Local, slot: CallId) -> Self {
        ReplyFuture { slot: Some(slot), attachment: local.attachment() }
    }
}

impl Future for ReplyFuture {
    type Output = Result<Answer>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = self.slot.expect("an answer is taken once");
        let taken = self.attachment.with(|local| {
            spin_for_reply(local, slot);
            local.calls.pending.borrow_mut().take(slot, context)
        });
        match taken {
            Err(foreign) => Poll::Ready(Err(foreign)),
            Ok(None) => Poll::Pending,
            Ok(Some(answer)) => {
                self.slot = None;
                Poll::Ready(answer)
            }
        }
    }
}

impl Drop for ReplyFuture {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        self.attachment.try_with(|local| abandon(local, slot));
    }
}

/// Polls for messages while nothing else is ready to run here: the answer to a short call arrives sooner than the way
/// through the place's queue would take.
fn spin_for_reply(local: &Local, slot: CallId) {
    if local.shares_processors || local.has_ready() {
        return;
    }
    let mut was_empty = false;
    for _ in 0..REPLY_SPIN_POLLS {
        if local.poll_messages(Inbound::All) == 0 {
            was_empty = true;
        } else if local.has_ready() {
            return;
        } else if !local.calls.pending.borrow_mut().is_waiting(slot) {
            if was_empty {
                local.restart_turn_clock();
            }
            return;
        }
    }
}

/// Abandons a call whose caller is gone; its finish still waits for the body, which is told to end.
#[cold]
fn abandon(local: &Local, slot: CallId) {
    let mut calls = local.calls.pending.borrow_mut();
    let Some(pending) = calls.get(slot) else { return };
    if !matches!(pending.state, CallState::Waiting(_)) {
        calls.pending.remove(slot.index as usize);
        return;
    }
    pending.state = CallState::Abandoned;
    let (scope, to) = (pending.scope, pending.to);
    drop(calls);
    // The calling body ends before the answer says whether it counts, so it counts.
    local.counting_key(scope);
    // In the class of the call, so that it does not overtake the call. A dead place need not get it.
    let _ = local.send(to, Class::Data, Handler::Abandon.id(), |writer| {
        slot.encode(writer);
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::site::INTERNAL;
    use crate::finish::RemoteScope;
    use crate::local::Clock;
    use isles_protocol::finish::Finishes;
    use isles_transport::loopback::{Plan, World};

    /// A body at place 1 of a call from place 0, which makes a call to place 2.
    fn nested_call(local: &Local) -> (u32, CallId) {
        let mut home = Finishes::new(PlaceId(0), 3);
        let opened = home.open();
        let finish = home.id(opened);
        let call = CallId { index: 0, generation: 0 };
        let entry =
            RemoteScope { finish, caller: PlaceId(0), key: None, counted: false, call, abandoned: false };
        let index = local.calls.borrowed.borrow_mut().insert(entry) as u32;
        let scope = Scope::remote(index);
        let key = local.visiting_key(scope).unwrap();
        local.finishes.request(key, PlaceId(2)).unwrap();
        (index, local.calls.pending.borrow_mut().open(PlaceId(2), scope, Some(key), &INTERNAL))
    }

    #[test]
    fn a_body_counts_if_its_call_counted_even_if_the_answer_comes_before_it_waits() {
        let world = World::new(3, Plan::calm(0));
        for counted in [false, true] {
            let local = Local::new(Box::new(world.endpoint(PlaceId(1))), Clock::host(), |_, _| Box::new(()));
            let (index, slot) = nested_call(&local);
            let answer = Ok(Answer::Bytes(Vec::new()));
            let conclusion = local.calls.pending.borrow_mut().answer(slot, PlaceId(2), answer).unwrap();
            conclusion.report(&local, counted);
            assert_eq!(local.calls.borrowed.borrow()[index as usize].counted, counted);
        }
    }
}
