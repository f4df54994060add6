//! State of one place: its hubs, its tasks, and their requests.
//!
//! Priority inheritance: a hub reports the most urgent priority of its waiting requests to the place of its owner,
//! whenever it changes. The place gives the task the most urgent of its own priority and those that it inherits from
//! what it holds. If the task itself waits for other hubs, the place reports the new priority to these, which sort the
//! request again and report to their owners in turn. So inheritance is transitive, across places.
//!
//! Invariant: an effective priority is the most urgent of the task's own and those inherited by what it holds.

use super::directory::{Directory, HubSpec, TaskSpec};
use super::generic::{Hub, Inheritance};
use super::message::{
    HubId, HubOperation, HubPacket, PacketBody, RequestId, ServiceReply, ServiceRequest, Status, TaskId,
};
use super::slots::{IndexTable, RequestTable};
use crate::PlaceId;
use crate::ordered::{OrderedMap, OrderedSet};
use std::collections::VecDeque;

/// Action that a place must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a packet to another place.
    Send(HubPacket),
    /// Return a request of a task of this place.
    Return {
        /// The task.
        task: TaskId,
        /// The number of the request.
        number: u64,
        /// Tag of its submission.
        tag: u64,
        /// Outcome of the request.
        status: Status,
        /// Data that the request received.
        payload: Vec<u8>,
        /// Number of the lock that it acquired or released, if the hub is a resource.
        grant: Option<u64>,
    },
    /// Set the priority of a task of this place.
    SetPriority {
        /// The task.
        task: TaskId,
        /// The priority.
        priority: u8,
    },
}

/// A request, as a task makes it.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The task, one of this place.
    pub task: TaskId,
    /// The hub.
    pub hub: HubId,
    /// The side of the hub.
    pub operation: HubOperation,
    /// True if the request waits when it cannot synchronise at once.
    pub waits: bool,
    /// The data.
    pub payload: Vec<u8>,
    /// Returned with the request.
    pub tag: u64,
}

/// Outcome of [`HubNode::submit_at_once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// It has returned, with the number of the lock that it acquired or released if the hub has an owner.
    Done(Status, Option<u64>),
    /// It waits, under this number.
    Waits(u64),
    /// It needs [`HubNode::submit`].
    NotHere,
}

/// A task of this place.
#[derive(Clone, Debug)]
struct Task {
    base: u8,
    effective: u8,
    held: Vec<Held>,
    /// Locks that were released before the reply arrived that grants them.
    ended: Vec<(HubId, u64)>,
    /// The requests that have not returned.
    requests: Vec<(u64, HubId)>,
}

impl Task {
    fn new(base: u8) -> Task {
        Task { base, effective: base, held: Vec::new(), ended: Vec::new(), requests: Vec::new() }
    }

    /// Records that a lock was acquired or released; the two replies may have overtaken each other.
    fn note_lock(&mut self, hub: HubId, grant: u64, operation: HubOperation, inherited: Option<u8>) {
        let lock = (hub, grant);
        match operation {
            HubOperation::Get => match self.ended.iter().position(|ended| *ended == lock) {
                Some(at) => _ = self.ended.swap_remove(at),
                None => self.held.push(Held { hub, grant, inherited }),
            },
            HubOperation::Put => match self.held.iter().position(|held| (held.hub, held.grant) == lock) {
                Some(at) => _ = self.held.swap_remove(at),
                None => self.ended.push(lock),
            },
        }
    }
}

/// A lock that a task holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    hub: HubId,
    grant: u64,
    inherited: Option<u8>,
}

/// A request of a task of this place that has not returned.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    task: TaskId,
    hub: HubId,
    operation: HubOperation,
    tag: u64,
    /// True if nothing waits for it any more.
    is_given_up: bool,
}

/// The hubs and tasks of one place.
#[derive(Debug)]
pub struct HubNode {
    here: PlaceId,
    directory: Directory,
    /// Hubs of this place.
    hubs: IndexTable<Hub>,
    tasks: IndexTable<Task>,
    pending: RequestTable<PendingRequest>,
    /// Hubs with work for when the kernel schedules.
    deferred: OrderedSet<u32>,
    /// Places that are dead or behind a dead one, with the dead one.
    lost: OrderedMap<PlaceId, PlaceId>,
    /// A reused buffer for replies.
    replies: Vec<ServiceReply>,
    /// Packets of this place to itself that are not yet served.
    own: VecDeque<PacketBody>,
    packets: u64,
    /// Events at the hubs of this place, in order.
    #[cfg(test)]
    pub(super) log: Vec<LogEntry>,
}

/// A step of a hub, for tests.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(super) enum LogEntry {
    Served(PacketBody),
    Rescheduled(HubId),
    Ended(HubId, TaskId),
    Replied(ServiceReply),
}

impl HubNode {
    /// Largest number of waiting requests of a place. The rest of the table is for requests that give something back.
    pub const WAITING_MAX: usize = RequestTable::<PendingRequest>::LEN_MAX - 4_096;

    /// Makes the node of place `here`, from a directory whose map has been applied.
    pub fn new(here: PlaceId, directory: Directory) -> HubNode {
        let hub = |(hub, spec): (u32, &HubSpec)| {
            (directory.place_of_hub(HubId(hub)) == Some(here)).then(|| Hub::new(spec.entity.rule()))
        };
        let task = |(task, spec): (u32, &TaskSpec)| {
            (directory.place_of_task(TaskId(task)) == Some(here)).then(|| Task::new(spec.priority))
        };
        let hubs = (0..).zip(directory.hubs()).map(hub).collect();
        let tasks = (0..).zip(directory.tasks()).map(task).collect();
        HubNode {
            here,
            hubs,
            tasks,
            directory,
            pending: RequestTable::default(),
            deferred: OrderedSet::new(),
            lost: OrderedMap::new(),
            replies: Vec::new(),
            own: VecDeque::new(),
            packets: 0,
            #[cfg(test)]
            log: Vec::new(),
        }
    }

    /// Returns the tasks and hubs of all places.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the effective priority of a task of this place.
    pub fn priority(&self, task: TaskId) -> Option<u8> {
        self.tasks.get(task.0).map(|task| task.effective)
    }

    /// Returns the tasks of this place, with their priorities.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, u8)> {
        self.tasks.iter().map(|(task, entry)| (TaskId(task), entry.effective))
    }

    /// Returns the number of packets this place has served so far: requests, replies, and changes.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns `true` if [`reschedule`](HubNode::reschedule) has work.
    #[inline]
    pub fn is_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Returns the requests of this place that have not returned, with their tasks and hubs.
    pub fn pending(&self) -> impl Iterator<Item = (u64, TaskId, HubId)> {
        self.pending.iter().filter(|(_, pending)| !pending.is_given_up).map(|(n, p)| (n, p.task, p.hub))
    }

    /// Returns the hubs of this place.
    pub fn hubs(&self) -> impl Iterator<Item = (HubId, &Hub)> {
        self.hubs.iter().map(|(hub, state)| (HubId(hub), state))
    }

    /// Makes a request; returns its number, which its [`Output::Return`] carries. If
    /// [`WAITING_MAX`](HubNode::WAITING_MAX) requests of the place wait, it returns with [`Status::Overflow`].
    pub fn submit(&mut self, submission: Submission, outputs: &mut Vec<Output>) -> u64 {
        let is_full = self.pending.len() >= HubNode::WAITING_MAX;
        self.submit_unless(is_full, submission, outputs)
    }

    /// Makes a request to a hub of this place that does not [defer](super::HubRule::defers), without a packet.
    ///
    /// [`AtOnce::Done`]: it has returned, and `submission.payload` is the data that it received. [`AtOnce::Waits`]: its
    /// [`Output::Return`] will have this number. [`AtOnce::NotHere`]: nothing has happened; call
    /// [`submit`](HubNode::submit).
    pub fn submit_at_once(&mut self, submission: &mut Submission, outputs: &mut Vec<Output>) -> AtOnce {
        let Submission { task, hub, operation, waits, tag, .. } = *submission;
        let (Some(entry), Some(state), true) =
            (self.tasks.get_mut(task.0), self.hubs.get_mut(hub.0), self.own.is_empty())
        else {
            return AtOnce::NotHere;
        };
        if state.defers() {
            return AtOnce::NotHere;
        }
        let is_full = self.pending.len() >= HubNode::WAITING_MAX;
        let mut request = ServiceRequest {
            id: RequestId { place: self.here, number: self.pending.spare_number() },
            hub,
            task,
            operation,
            waits,
            expired: false,
            priority: entry.effective,
            base: entry.base,
            payload: std::mem::take(&mut submission.payload),
        };
        #[cfg(test)]
        let mut served = request.clone();
        let Some((status, grant)) = state.request_at_once(&mut request, &mut self.replies) else {
            if is_full {
                submission.payload = request.payload;
                return AtOnce::NotHere;
            }
            let number =
                self.pending.insert(PendingRequest { task, hub, operation, tag, is_given_up: false });
            request.id.number = number;
            entry.requests.push((number, hub));
            self.packets += 1;
            #[cfg(test)]
            {
                served.id = request.id;
                self.log.push(LogEntry::Served(PacketBody::Request(served)));
            }
            state.add_waiting(request);
            self.after_own_request(hub, task, outputs);
            return AtOnce::Waits(number);
        };
        // The request and its reply.
        self.packets += 2;
        if let Some(grant) = grant {
            entry.note_lock(hub, grant, operation, None);
        }
        if status == Status::Done && operation == HubOperation::Get {
            submission.payload = request.payload;
        }
        #[cfg(test)]
        {
            let (ServiceRequest { id, priority, .. }, payload) = (&served, submission.payload.clone());
            let (id, priority) = (*id, *priority);
            self.log.push(LogEntry::Served(PacketBody::Request(served)));
            let reply = ServiceReply { id, hub, priority, status, payload, grant, boost: None };
            self.log.push(LogEntry::Replied(reply));
        }
        if !self.replies.is_empty() || grant.is_some() {
            self.after_own_request(hub, task, outputs);
        }
        AtOnce::Done(status, grant)
    }

    /// Handles the effects of a request of `task` on a hub of its place.
    fn after_own_request(&mut self, hub: HubId, task: TaskId, outputs: &mut Vec<Output>) {
        let mut replies = std::mem::take(&mut self.replies);
        self.after_hub(hub.0, &mut replies, outputs);
        self.replies = replies;
        self.settle_priority(task, outputs);
        self.serve_own(outputs);
    }

    fn submit_unless(&mut self, is_full: bool, submission: Submission, outputs: &mut Vec<Output>) -> u64 {
        let Submission { task, hub, operation, waits, payload, tag } = submission;
        let number = self.pending.insert(PendingRequest { task, hub, operation, tag, is_given_up: false });
        let status = match (self.directory.place_of_hub(hub), self.tasks.get_mut(task.0)) {
            (Some(_), Some(_)) if is_full => Err(Status::Overflow),
            (Some(place), Some(entry)) => match self.lost.get(place) {
                Some(dead) => Err(Status::DeadPlace(*dead)),
                None => Ok((place, entry)),
            },
            _ => Err(Status::Invalid),
        };
        let (place, entry) = match status {
            Ok(found) => found,
            Err(status) => {
                self.pending.remove(number);
                outputs.push(Output::Return { task, number, tag, status, payload: Vec::new(), grant: None });
                return number;
            }
        };
        entry.requests.push((number, hub));
        let (priority, base) = (entry.effective, entry.base);
        let id = RequestId { place: self.here, number };
        let request =
            ServiceRequest { id, hub, task, operation, waits, expired: false, priority, base, payload };
        let body = PacketBody::Request(request);
        if place == self.here && self.own.is_empty() {
            self.serve(body, outputs);
        } else {
            self.send(place, priority, body, outputs);
        }
        self.serve_own(outputs);
        number
    }

    /// Replaces the tag of a request that has not returned.
    #[inline]
    pub fn set_tag(&mut self, number: u64, tag: u64) {
        if let Some(pending) = self.pending.get_mut(number) {
            pending.tag = tag;
        }
    }

    /// Handles a packet of another place for this one.
    pub fn receive(&mut self, packet: HubPacket, outputs: &mut Vec<Output>) {
        self.serve(packet.body, outputs);
        self.serve_own(outputs);
    }

    /// Handles the time-out of a request. The request still returns, as done if it has synchronised meanwhile.
    pub fn time_out(&mut self, number: u64, outputs: &mut Vec<Output>) {
        let Some(&PendingRequest { task, hub, .. }) = self.pending.get(number) else { return };
        let id = RequestId { place: self.here, number };
        let priority = self.priority(task).unwrap_or(u8::MAX);
        if let Some(place) = self.directory.place_of_hub(hub) {
            self.send(place, priority, PacketBody::Withdraw { id, hub }, outputs);
        }
        self.serve_own(outputs);
    }

    /// Withdraws a request that nothing waits for any more; a lock or a block that it has received meanwhile goes back.
    pub fn give_up(&mut self, number: u64, outputs: &mut Vec<Output>) {
        if let Some(pending) = self.pending.get_mut(number) {
            pending.is_given_up = true;
            self.time_out(number, outputs);
        }
    }

    /// Grants the locks and blocks that were given back; the kernel is about to choose the task that runs next.
    pub fn reschedule(&mut self, outputs: &mut Vec<Output>) {
        while let Some(hub) = self.deferred.pop_first() {
            #[cfg(test)]
            self.log.push(LogEntry::Rescheduled(HubId(hub)));
            let mut replies = Vec::new();
            if let Some(state) = self.hubs.get_mut(hub) {
                state.reschedule(&mut replies);
            }
            self.after_hub(hub, &mut replies, outputs);
            self.serve_own(outputs);
        }
    }

    /// Handles the end of a task of this place: everything that it holds is given back.
    pub fn end_task(&mut self, task: TaskId, outputs: &mut Vec<Output>) {
        let Some(entry) = self.tasks.get(task.0) else { return };
        for Held { hub, .. } in entry.held.clone() {
            self.give_back(task, hub, Vec::new(), outputs);
        }
        let own: Vec<u32> = self.hubs.iter().filter(|(_, hub)| hub.is_local()).map(|(hub, _)| hub).collect();
        for hub in own {
            self.forget(hub, task, outputs);
        }
    }

    /// Handles the loss of place `lost`, which is `dead` or is reached through `dead`: requests to its hubs return,
    /// what its tasks hold here is given back, and inheritance from its hubs ends.
    pub fn place_lost(&mut self, lost: PlaceId, dead: PlaceId, outputs: &mut Vec<Output>) {
        if self.lost.insert(lost, dead).is_some() {
            return;
        }
        let is_of = |hub: HubId| self.directory.place_of_hub(hub) == Some(lost);
        let returned: Vec<(u64, HubId)> =
            self.pending.iter().filter(|(_, p)| is_of(p.hub)).map(|(number, p)| (number, p.hub)).collect();
        for (number, hub) in returned {
            let id = RequestId { place: self.here, number };
            self.accept(ServiceReply::refused(id, hub, Status::DeadPlace(dead)), outputs);
        }
        let tasks = || (0..self.directory.tasks().len() as u32).map(TaskId);
        let (gone, own): (Vec<TaskId>, Vec<TaskId>) = (
            tasks().filter(|task| self.directory.place_of_task(*task) == Some(lost)).collect(),
            tasks().filter(|task| self.tasks.get(task.0).is_some()).collect(),
        );
        let hubs: Vec<u32> = self.hubs.iter().map(|(hub, _)| hub).collect();
        for hub in hubs {
            gone.iter().for_each(|task| self.forget(hub, *task, outputs));
        }
        for task in own {
            if let Some(entry) = self.tasks.get_mut(task.0) {
                entry.held.retain(|held| self.directory.place_of_hub(held.hub) != Some(lost));
            }
            self.settle_priority(task, outputs);
        }
        self.serve_own(outputs);
    }

    fn forget(&mut self, hub: u32, task: TaskId, outputs: &mut Vec<Output>) {
        #[cfg(test)]
        self.log.push(LogEntry::Ended(HubId(hub), task));
        let mut replies = Vec::new();
        if let Some(state) = self.hubs.get_mut(hub) {
            state.forget_task(task, &mut replies);
        }
        self.after_hub(hub, &mut replies, outputs);
        self.serve_own(outputs);
    }

    /// Gives back the lock or the block that a [`Get`](HubOperation::Get) of a task has received and nothing takes: the
    /// payload and the grant of its [`Output::Return`]. A count, a bit or a packet is lost.
    pub fn reject(
        &mut self,
        task: TaskId,
        hub: HubId,
        payload: Vec<u8>,
        grant: Option<u64>,
        outputs: &mut Vec<Output>,
    ) {
        let is_held =
            |entry: &Task, grant| entry.held.iter().any(|held| (held.hub, held.grant) == (hub, grant));
        match grant {
            // A lock that was released must not release a later one of the task.
            Some(grant) if self.tasks.get(task.0).is_some_and(|entry| is_held(entry, grant)) => {
                self.give_back(task, hub, Vec::new(), outputs);
            }
            None if self.hubs.get(hub.0).is_some_and(Hub::is_local) => {
                self.give_back(task, hub, payload, outputs);
            }
            _ => {}
        }
    }

    /// Gives back a lock or a block, without a reply.
    pub fn give_back(&mut self, task: TaskId, hub: HubId, payload: Vec<u8>, outputs: &mut Vec<Output>) {
        let submission =
            Submission { task, hub, operation: HubOperation::Put, waits: false, payload, tag: 0 };
        let number = self.submit_unless(false, submission, outputs);
        if let Some(pending) = self.pending.get_mut(number) {
            pending.is_given_up = true;
        } else {
            let is_its =
                |output: &Output| matches!(output, Output::Return { number: of, .. } if *of == number);
            outputs.retain(|output| !is_its(output));
        }
    }

    /// Sends a packet, or keeps it if it is for this place.
    fn send(&mut self, to: PlaceId, priority: u8, body: PacketBody, outputs: &mut Vec<Output>) {
        if to == self.here {
            self.own.push_back(body);
        } else {
            outputs.push(Output::Send(HubPacket { from: self.here, to, priority, body }));
        }
    }

    fn serve_own(&mut self, outputs: &mut Vec<Output>) {
        while let Some(body) = self.own.pop_front() {
            self.serve(body, outputs);
        }
    }

    fn serve(&mut self, body: PacketBody, outputs: &mut Vec<Output>) {
        self.packets += 1;
        #[cfg(test)]
        self.log.push(LogEntry::Served(body.clone()));
        let mut replies = std::mem::take(&mut self.replies);
        let hub = match body {
            PacketBody::Return(reply) => {
                self.replies = replies;
                return self.accept(reply, outputs);
            }
            PacketBody::ChangeTask { task, hub, grant, priority } => {
                self.replies = replies;
                return self.inherit(hub, Inheritance { task, grant, priority }, outputs);
            }
            PacketBody::Request(request) if self.lost.contains_key(request.id.place) => {
                // Its task is gone, so nothing would give back what it gets.
                self.replies = replies;
                return;
            }
            PacketBody::Request(request) => {
                let hub = request.hub;
                match self.hubs.get_mut(hub.0) {
                    None => replies.push(ServiceReply::refused(request.id, hub, Status::Invalid)),
                    Some(state) if state.is_local() && request.id.place != self.here => {
                        replies.push(ServiceReply::refused(request.id, hub, Status::NotLocal));
                    }
                    Some(state) => state.request(request, &mut replies),
                }
                hub
            }
            PacketBody::Withdraw { id, hub } => {
                if let Some(state) = self.hubs.get_mut(hub.0) {
                    state.withdraw(id, &mut replies);
                }
                hub
            }
            PacketBody::ChangeRequest { id, hub, priority } => {
                if let Some(state) = self.hubs.get_mut(hub.0) {
                    state.change_priority(id, priority);
                }
                hub
            }
        };
        self.after_hub(hub.0, &mut replies, outputs);
        self.replies = replies;
    }

    /// Sends the replies of a hub, and reports the waiting priority to its owner.
    fn after_hub(&mut self, hub: u32, replies: &mut Vec<ServiceReply>, outputs: &mut Vec<Output>) {
        let inheritance = match self.hubs.get_mut(hub) {
            Some(state) => {
                if state.is_deferred() {
                    self.deferred.insert(hub);
                }
                state.take_inheritance()
            }
            None => None,
        };
        #[cfg(test)]
        self.log.extend(replies.iter().cloned().map(LogEntry::Replied));
        if inheritance.is_none() && self.own.is_empty() {
            // The usual case, without the queue.
            if let [ServiceReply { id: RequestId { place, .. }, .. }] = replies[..]
                && place == self.here
            {
                self.packets += 1;
                let reply = replies.pop().expect("it is there");
                return self.accept(reply, outputs);
            }
        }
        for mut reply in replies.drain(..) {
            if let Some(Inheritance { grant, priority, .. }) = inheritance {
                // One packet tells the owner both.
                if reply.grant == Some(grant) {
                    reply.boost = priority;
                }
            }
            let to = reply.id.place;
            let priority = reply.priority.min(reply.boost.unwrap_or(u8::MAX));
            self.send(to, priority, PacketBody::Return(reply), outputs);
        }
        let Some(Inheritance { task, grant, priority }) = inheritance else { return };
        let Some(place) = self.directory.place_of_task(task) else { return };
        let body = PacketBody::ChangeTask { task, hub: HubId(hub), grant, priority };
        self.send(place, priority.unwrap_or(u8::MAX), body, outputs);
    }

    /// Handles the reply to a request of this place.
    fn accept(&mut self, reply: ServiceReply, outputs: &mut Vec<Output>) {
        let ServiceReply { id, status, payload, grant, boost, .. } = reply;
        let Some(PendingRequest { task, hub, operation, tag, is_given_up }) = self.pending.remove(id.number)
        else {
            return;
        };
        if let Some(entry) = self.tasks.get_mut(task.0) {
            entry.requests.retain(|(number, _)| *number != id.number);
            if let Some(grant) = grant {
                entry.note_lock(hub, grant, operation, boost);
            }
        }
        if is_given_up {
            if status == Status::Done && operation == HubOperation::Get {
                self.reject(task, hub, payload, grant, outputs);
            }
        } else {
            outputs.push(Output::Return { task, number: id.number, tag, status, payload, grant });
        }
        self.settle_priority(task, outputs);
    }

    /// Starts or ends the inheritance of a task.
    fn inherit(&mut self, hub: HubId, inheritance: Inheritance, outputs: &mut Vec<Output>) {
        let Inheritance { task, grant, priority } = inheritance;
        let Some(entry) = self.tasks.get_mut(task.0) else { return };
        let is_it = |held: &&mut Held| (held.hub, held.grant) == (hub, grant);
        if let Some(held) = entry.held.iter_mut().find(is_it) {
            held.inherited = priority;
            self.settle_priority(task, outputs);
        }
    }

    /// Sets a task's priority to the most urgent of its own and those that it inherits, and reports it to the hubs
    /// where it waits.
    fn settle_priority(&mut self, task: TaskId, outputs: &mut Vec<Output>) {
        let Some(entry) = self.tasks.get_mut(task.0) else { return };
        if entry.held.is_empty() && entry.effective == entry.base {
            return;
        }
        let inherited = entry.held.iter().filter_map(|held| held.inherited).min();
        let priority = inherited.unwrap_or(u8::MAX).min(entry.base);
        if priority == std::mem::replace(&mut entry.effective, priority) {
            return;
        }
        outputs.push(Output::SetPriority { task, priority });
        let requests = entry.requests.clone();
        for (number, hub) in requests {
            let id = RequestId { place: self.here, number };
            if let Some(place) = self.directory.place_of_hub(hub) {
                self.send(place, priority, PacketBody::ChangeRequest { id, hub, priority }, outputs);
            }
        }
    }
}

impl ServiceReply {
    fn refused(id: RequestId, hub: HubId, status: Status) -> ServiceReply {
        ServiceReply { id, hub, priority: 0, status, payload: Vec::new(), grant: None, boost: None }
    }
}
