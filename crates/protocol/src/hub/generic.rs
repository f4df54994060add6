//! The generic hub: a rule, and the requests that wait for it.

use super::message::{RequestId, ServiceReply, ServiceRequest, Status, TaskId};
use super::rules::{HubRule, Readiness};
use super::waiting::WaitingList;

/// A hub at its place.
///
/// A request for which the predicate holds is carried out and returned, and the waiting requests are checked again: at
/// once, or if the rule [defers](HubRule::defers), when the kernel schedules next.
#[derive(Debug)]
pub struct Hub {
    rule: Box<dyn HubRule>,
    /// Properties that the rule stated when the hub was made.
    pairs: bool,
    defers: bool,
    is_local: bool,
    waiting: WaitingList,
    /// True if waiting requests must be checked when the kernel schedules.
    is_deferred: bool,
    /// Number of times it was locked.
    grants: u64,
    /// The priority of the owner without inheritance, and the priority of its waiters that was last reported to it.
    owner_base: u8,
    reported_priority: Option<u8>,
}

/// A change of the priority that the owner of a hub inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inheritance {
    pub(super) task: TaskId,
    pub(super) grant: u64,
    pub(super) priority: Option<u8>,
}

impl Hub {
    /// Makes a hub without waiting requests.
    pub fn new(rule: Box<dyn HubRule>) -> Hub {
        Hub {
            pairs: rule.pairs(),
            defers: rule.defers(),
            is_local: rule.is_local(),
            rule,
            waiting: WaitingList::default(),
            is_deferred: false,
            grants: 0,
            owner_base: 0,
            reported_priority: None,
        }
    }

    /// Returns `true` if waiting requests are checked when the kernel schedules next.
    #[inline]
    pub(super) fn defers(&self) -> bool {
        self.defers
    }

    /// Returns `true` if only tasks of its place may use it.
    #[inline]
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns `true` if [`reschedule`](Hub::reschedule) has work.
    pub fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// Returns the task that has locked the hub.
    pub fn owner(&self) -> Option<TaskId> {
        self.rule.owner()
    }

    /// Returns the waiting requests, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &ServiceRequest> {
        self.waiting.iter()
    }

    /// Handles a request; adds the replies to `replies`.
    pub fn request(&mut self, request: ServiceRequest, replies: &mut Vec<ServiceReply>) {
        match self.readiness(&request) {
            Readiness::Refuse(status) => replies.push(reply(request, status)),
            Readiness::Now if !self.must_queue_behind(&request) => {
                self.execute(request, replies);
                self.after_action(replies);
            }
            _ if request.expired => replies.push(reply(request, Status::TimedOut)),
            _ if request.waits => self.waiting.insert(request),
            _ => replies.push(reply(request, Status::Failed)),
        }
    }

    /// Carries out a request that returns at once, and adds other replies to `replies`. Returns its status, and the
    /// number of the lock that it acquired or released; `None` if it waits. Not for a hub that
    /// [defers](HubRule::defers).
    #[inline]
    pub(super) fn request_at_once(
        &mut self,
        request: &mut ServiceRequest,
        replies: &mut Vec<ServiceReply>,
    ) -> Option<(Status, Option<u64>)> {
        match self.readiness(request) {
            Readiness::Refuse(status) => Some((status, None)),
            Readiness::Now => {
                let grant = self.synchronise(request, replies);
                self.serve_waiting(replies);
                Some((Status::Done, grant))
            }
            Readiness::Wait if request.waits => None,
            Readiness::Wait => Some((Status::Failed, None)),
        }
    }

    /// Adds a waiting request.
    pub(super) fn add_waiting(&mut self, request: ServiceRequest) {
        self.waiting.insert(request);
    }

    /// Returns `true` if a request must wait until the kernel schedules, because others do.
    fn must_queue_behind(&self, request: &ServiceRequest) -> bool {
        self.is_deferred && self.waiting.position_of(request.operation).is_some()
    }

    #[inline]
    fn partner_of(&self, request: &ServiceRequest) -> Option<usize> {
        let other = request.operation.other();
        if self.pairs { self.waiting.position_of(other) } else { None }
    }

    fn readiness(&self, request: &ServiceRequest) -> Readiness {
        let partner = self.partner_of(request).map(|position| self.waiting.get(position));
        self.rule.predicate(request, partner)
    }

    /// Carries out a request that does not wait (any more).
    fn execute(&mut self, mut request: ServiceRequest, replies: &mut Vec<ServiceReply>) {
        let at = replies.len();
        let grant = self.synchronise(&mut request, replies);
        replies.insert(at, ServiceReply { grant, ..reply(request, Status::Done) });
    }

    /// Runs the action of a request, and adds the reply to its partner; returns the number of the lock that the request
    /// acquired or released.
    #[inline]
    fn synchronise(&mut self, request: &mut ServiceRequest, replies: &mut Vec<ServiceReply>) -> Option<u64> {
        let before = self.rule.owner();
        match self.partner_of(request) {
            Some(position) => {
                let mut partner = self.waiting.take(position);
                self.rule.action(request, Some(&mut partner));
                replies.push(reply(partner, Status::Done));
            }
            None => self.rule.action(request, None),
        }
        let after = self.rule.owner();
        let is_locked = after == Some(request.task) && before != after;
        let is_unlocked = before == Some(request.task) && before != after;
        if is_locked {
            self.grants += 1;
            (self.owner_base, self.reported_priority) = (request.base, None);
        }
        (is_locked || is_unlocked).then_some(self.grants)
    }

    fn after_action(&mut self, replies: &mut Vec<ServiceReply>) {
        if self.defers {
            self.is_deferred = !self.waiting.is_empty();
        } else {
            self.serve_waiting(replies);
        }
    }

    /// Serves waiting requests with what is available now, the most urgent first; the kernel is about to schedule.
    pub fn reschedule(&mut self, replies: &mut Vec<ServiceReply>) {
        if std::mem::take(&mut self.is_deferred) {
            self.serve_waiting(replies);
        }
    }

    /// Checks all waiting requests, the most urgent first, until none of them synchronises.
    fn serve_waiting(&mut self, replies: &mut Vec<ServiceReply>) {
        let mut position = 0;
        while position < self.waiting.len() {
            match self.readiness(self.waiting.get(position)) {
                Readiness::Wait => position += 1,
                Readiness::Now => {
                    let request = self.waiting.take(position);
                    self.execute(request, replies);
                    position = 0;
                }
                Readiness::Refuse(status) => {
                    let request = self.waiting.take(position);
                    replies.push(reply(request, status));
                }
            }
        }
    }

    /// Ends the wait of a request whose time-out has passed, if it still waits.
    pub fn withdraw(&mut self, id: RequestId, replies: &mut Vec<ServiceReply>) {
        if let Some(request) = self.waiting.remove(id) {
            replies.push(reply(request, Status::TimedOut));
        }
    }

    /// Changes the priority of a waiting request, and its position in the list.
    pub fn change_priority(&mut self, id: RequestId, priority: u8) {
        self.waiting.change_priority(id, priority);
    }

    /// Releases what `task`, which has ended, holds, and drops its requests; `task` gets no replies.
    pub(crate) fn forget_task(&mut self, task: TaskId, replies: &mut Vec<ServiceReply>) {
        self.waiting.remove_all(|request| request.task == task);
        if self.rule.release(task) {
            self.after_action(replies);
        }
    }

    /// Returns the priority that the owner inherits, if it differs from the last report.
    pub(super) fn take_inheritance(&mut self) -> Option<Inheritance> {
        let task = self.rule.owner()?;
        let first = self.waiting.first().map(|request| request.priority.max(self.rule.ceiling()));
        let priority = first.filter(|priority| *priority < self.owner_base);
        if priority == self.reported_priority {
            return None;
        }
        self.reported_priority = priority;
        Some(Inheritance { task, grant: self.grants, priority })
    }
}

fn reply(request: ServiceRequest, status: Status) -> ServiceReply {
    let ServiceRequest { id, hub, operation, priority, payload, .. } = request;
    let gets = status == Status::Done && operation == super::HubOperation::Get;
    let payload = if gets { payload } else { Vec::new() };
    ServiceReply { id, hub, priority, status, payload, grant: None, boost: None }
}

impl super::HubOperation {
    /// Returns the other side of the hub.
    pub fn other(self) -> super::HubOperation {
        match self {
            super::HubOperation::Put => super::HubOperation::Get,
            super::HubOperation::Get => super::HubOperation::Put,
        }
    }
}
