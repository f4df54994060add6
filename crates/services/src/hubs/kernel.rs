//! The kernel of one place: its node, its inbox and outbox, the tasks that are ready, and the requests that wait.
//!
//! A pass of the kernel serves the packets that have arrived, the most urgent first, grants the locks that were given
//! back, and sends what waits. It comes before each choice of the task that runs next. Invariant: the node is not
//! borrowed while a waker is called.

use super::description::KernelCosts;
use super::table::{SystemId, send};
use isles_protocol::PlaceId;
use isles_protocol::hub::{
    AtOnce, Directory, HubId, HubNode, HubPacket, Output, PacketQueue, RequestTable, Routes, RunQueue,
    Status, Submission, TaskId,
};
use isles_runtime::{Cycles, Local, work};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Counters of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// Switches from a task to the kernel and back.
    pub switches: u64,
    /// Requests of tasks of the place.
    pub requests: u64,
    /// Packets served.
    pub packets: u64,
    /// Packets sent to other places.
    pub sent: u64,
}

impl KernelCounts {
    /// Adds the counters of another kernel.
    pub(super) fn add(&mut self, other: KernelCounts) {
        self.switches += other.switches;
        self.requests += other.requests;
        self.packets += other.packets;
        self.sent += other.sent;
    }
}

/// The result of a request that has returned.
pub(super) struct RequestOutcome {
    pub(super) status: Status,
    pub(super) payload: Vec<u8>,
    /// Number of the lock that it acquired or released.
    pub(super) grant: Option<u64>,
}

/// A request that a task waits for.
#[derive(Default)]
struct WaitingRequest {
    /// The result, once it has returned.
    outcome: Option<RequestOutcome>,
    /// Wakes whoever polls the request, if that is not the task itself.
    waker: Option<Waker>,
}

/// A submitted request: its number at the node, and its entry in the table of waits, which is reused only after the
/// task has taken the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubmittedRequest {
    number: u64,
    wait: u64,
}

/// The kernel of a place.
pub(super) struct HubKernel {
    pub(super) id: SystemId,
    here: PlaceId,
    pub(super) packet_bytes: usize,
    costs: KernelCosts,
    routes: Routes,
    node: RefCell<HubNode>,
    inbox: RefCell<PacketQueue>,
    outbox: RefCell<PacketQueue>,
    ready: RefCell<RunQueue>,
    /// The requests that tasks wait for, with the results of those that have returned.
    waits: RefCell<RequestTable<WaitingRequest>>,
    /// A reused buffer for outputs.
    outputs: RefCell<Vec<Output>>,
    counts: Cell<KernelCounts>,
    /// Number of the node's packets that were counted and charged.
    charged: Cell<u64>,
    /// The running task, the data of its waker, and whether it must run again because something has returned meanwhile.
    pub(super) current: Cell<Option<TaskId>>,
    pub(super) current_waker: Cell<*const ()>,
    pub(super) runs_again: Cell<bool>,
    pub(super) woken: Arc<WokenTasks>,
    pub(super) has_run: Cell<bool>,
    /// True from the wake of the worker until it has run: it looks at everything before it waits.
    is_worker_awake: Cell<bool>,
}

impl HubKernel {
    pub(super) fn new(id: SystemId, here: PlaceId, directory: Directory, routes: Routes) -> HubKernel {
        let tasks = directory.tasks().len();
        HubKernel {
            id,
            here,
            packet_bytes: usize::MAX,
            costs: KernelCosts::default(),
            routes,
            node: RefCell::new(HubNode::new(here, directory)),
            inbox: RefCell::default(),
            outbox: RefCell::default(),
            ready: RefCell::new(RunQueue::new(tasks)),
            waits: RefCell::default(),
            outputs: RefCell::default(),
            counts: Cell::default(),
            charged: Cell::new(0),
            current: Cell::new(None),
            current_waker: Cell::new(ptr::null()),
            runs_again: Cell::new(false),
            woken: Arc::default(),
            has_run: Cell::new(false),
            is_worker_awake: Cell::new(false),
        }
    }

    pub(super) fn with_bounds(self, packet_bytes: usize, costs: KernelCosts) -> HubKernel {
        HubKernel { packet_bytes, costs, ..self }
    }

    /// Applies `look` to the node.
    pub(super) fn read<R>(&self, look: impl FnOnce(&HubNode) -> R) -> R {
        look(&self.node.borrow())
    }

    pub(super) fn counts(&self) -> KernelCounts {
        self.counts.get()
    }

    fn count(&self, add: impl FnOnce(&mut KernelCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }

    /// Submits a request of a task, and takes its payload. A request that returns at once has no entry in the table of
    /// waits.
    pub(super) fn submit(&self, submission: &mut Submission) -> Result<RequestOutcome, SubmittedRequest> {
        self.count(|counts| counts.requests += 1);
        let mut outputs = mem::take(&mut *self.outputs.borrow_mut());
        let made = {
            let mut node = self.node.borrow_mut();
            if node.directory().place_of_hub(submission.hub) == Some(self.here) {
                charge(submission.payload.len() as u64 * self.costs.copy_kilobyte / 1000);
            }
            node.submit_at_once(submission, &mut outputs)
        };
        let outcome = match made {
            AtOnce::Done(status, grant) => {
                Ok(RequestOutcome { status, payload: mem::take(&mut submission.payload), grant })
            }
            AtOnce::Waits(number) => Err(self.wait_for(number)),
            AtOnce::NotHere => self.submit_by_packet(submission, &mut outputs),
        };
        self.execute_outputs(&mut outputs);
        *self.outputs.borrow_mut() = outputs;
        outcome
    }

    /// Submits a request that may leave the place, or wait for the kernel.
    fn submit_by_packet(
        &self,
        submission: &mut Submission,
        outputs: &mut Vec<Output>,
    ) -> Result<RequestOutcome, SubmittedRequest> {
        let submission = Submission { payload: mem::take(&mut submission.payload), ..*submission };
        let number = self.node.borrow_mut().submit(submission, outputs);
        let is_it = |output: &Output| matches!(output, Output::Return { number: of, .. } if *of == number);
        match outputs.iter().position(is_it).map(|at| outputs.remove(at)) {
            Some(Output::Return { status, payload, grant, .. }) => {
                Ok(RequestOutcome { status, payload, grant })
            }
            _ => Err(self.wait_for(number)),
        }
    }

    /// Adds the entry of a request that waits.
    fn wait_for(&self, number: u64) -> SubmittedRequest {
        let wait = self.waits.borrow_mut().insert(WaitingRequest::default());
        self.node.borrow_mut().set_tag(number, wait);
        SubmittedRequest { number, wait }
    }

    /// Takes the result of a request, if it has returned; otherwise its return will wake `waker`, or the task itself if
    /// that is the task's own waker.
    pub(super) fn poll_outcome(
        &self,
        asked: SubmittedRequest,
        task: TaskId,
        waker: &Waker,
    ) -> Option<RequestOutcome> {
        let mut waits = self.waits.borrow_mut();
        let waiting = waits.get_mut(asked.wait)?;
        let Some(outcome) = waiting.outcome.take() else {
            if self.is_polled_by(task, waker) {
                waiting.waker = None;
            } else if !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                waiting.waker = Some(waker.clone());
            }
            return None;
        };
        waits.remove(asked.wait);
        Some(outcome)
    }

    /// Returns `true` if `task` is running and `waker` is its own, not that of a future within it or of another task.
    #[inline]
    pub(super) fn is_polled_by(&self, task: TaskId, waker: &Waker) -> bool {
        self.current.get() == Some(task) && self.current_waker.get() == waker.data()
    }

    pub(super) fn time_out(&self, asked: SubmittedRequest) {
        self.drive(|node, outputs| node.time_out(asked.number, outputs));
    }

    /// Withdraws a request that nothing waits for any more; returns its result, if it has returned.
    pub(super) fn give_up(&self, asked: SubmittedRequest) -> Option<RequestOutcome> {
        let waiting = self.waits.borrow_mut().remove(asked.wait)?;
        if waiting.outcome.is_none() {
            self.drive(|node, outputs| node.give_up(asked.number, outputs));
        }
        waiting.outcome
    }

    /// Gives back the lock or block that a request to `hub` has obtained and nothing takes.
    pub(super) fn reject(&self, task: TaskId, hub: HubId, outcome: RequestOutcome) {
        let RequestOutcome { status, payload, grant } = outcome;
        if status == Status::Done {
            self.drive(|node, outputs| node.reject(task, hub, payload, grant, outputs));
        }
    }

    /// Gives a block of memory back.
    pub(super) fn deallocate(&self, task: TaskId, hub: HubId, number: u32) {
        let payload = number.to_le_bytes().to_vec();
        self.drive(|node, outputs| node.give_back(task, hub, payload, outputs));
    }

    pub(super) fn end_task(&self, task: TaskId) {
        self.drive(|node, outputs| node.end_task(task, outputs));
    }

    pub(super) fn place_died(&self, place: PlaceId) {
        let is_lost = |packet: &HubPacket| self.routes.next_hop(packet.to) == place;
        self.outbox.borrow_mut().remove_all(is_lost);
        for lost in self.routes.lost_with(place) {
            self.drive(|node, outputs| node.place_lost(lost, place, outputs));
        }
        self.wake_worker();
    }

    /// Queues a packet that has arrived; the next pass serves it.
    pub(super) fn arrive(&self, packet: HubPacket) {
        self.inbox.borrow_mut().push(packet);
        self.wake_worker();
    }

    /// Returns `true` if a pass has something to do.
    pub(super) fn has_work(&self) -> bool {
        !self.inbox.borrow().is_empty()
            || !self.outbox.borrow().is_empty()
            || self.node.borrow().is_deferred()
    }

    /// Serves the packets that have arrived, grants what was given back, and sends what waits.
    pub(super) fn progress(&self, local: &Local) {
        loop {
            loop {
                // Taken first, so that the inbox is not borrowed while the packet is served.
                let next = self.inbox.borrow_mut().pop();
                let Some(packet) = next else { break };
                if packet.to == self.here {
                    let bytes = packet.payload().len() as u64;
                    charge(self.costs.link + bytes * self.costs.arrived_kilobyte / 1000);
                    self.drive(|node, outputs| node.receive(packet, outputs));
                } else {
                    self.outbox.borrow_mut().push(packet);
                }
            }
            if self.node.borrow().is_deferred() {
                self.drive(HubNode::reschedule);
            }
            self.flush(local);
            if self.inbox.borrow().is_empty() {
                return;
            }
        }
    }

    fn flush(&self, local: &Local) {
        loop {
            let next = self.outbox.borrow_mut().pop();
            let Some(packet) = next else { return };
            self.count(|counts| counts.sent += 1);
            charge(self.costs.link);
            let hop = self.routes.next_hop(packet.to);
            send(local, self.id, hop, &packet);
        }
    }

    fn drive(&self, input: impl FnOnce(&mut HubNode, &mut Vec<Output>)) {
        let mut outputs = mem::take(&mut *self.outputs.borrow_mut());
        input(&mut self.node.borrow_mut(), &mut outputs);
        self.execute_outputs(&mut outputs);
        *self.outputs.borrow_mut() = outputs;
    }

    fn execute_outputs(&self, outputs: &mut Vec<Output>) {
        let packets = self.node.borrow().packets();
        let served = packets - self.charged.replace(packets);
        self.count(|counts| counts.packets += served);
        for output in outputs.drain(..) {
            match output {
                Output::Send(packet) => self.outbox.borrow_mut().push(packet),
                Output::Return { task, tag, status, payload, grant, .. } => {
                    let mut waker = None;
                    if let Some(waiting) = self.waits.borrow_mut().get_mut(tag) {
                        waiting.outcome = Some(RequestOutcome { status, payload, grant });
                        waker = waiting.waker.take();
                    }
                    match waker {
                        Some(waker) => waker.wake(),
                        None => self.make_ready(task),
                    }
                }
                Output::SetPriority { task, priority } => {
                    self.ready.borrow_mut().change_priority(task, priority)
                }
            }
        }
        charge(served * self.costs.packet);
    }

    pub(super) fn count_switches(&self, switches: u64) {
        self.count(|counts| counts.switches += switches);
        charge(switches * self.costs.switch);
    }

    /// Marks a task as ready to run.
    pub(super) fn make_ready(&self, task: TaskId) {
        if self.current.get() == Some(task) {
            return self.runs_again.set(true);
        }
        let Some(priority) = self.read(|node| node.priority(task)) else { return };
        self.ready.borrow_mut().push(task, priority);
        self.wake_worker();
    }

    /// Wakes the worker, at most once until it runs.
    fn wake_worker(&self) {
        if !self.is_worker_awake.replace(true) {
            self.woken.wake_worker();
        }
    }

    /// Records whether the worker runs, or is about to wait.
    pub(super) fn set_worker_awake(&self, is_awake: bool) {
        self.is_worker_awake.set(is_awake);
    }

    /// Returns `true` if a task more urgent than the running `task` is ready; then `task` becomes the first of its
    /// priority.
    pub(super) fn is_preempted(&self, task: TaskId) -> bool {
        let Some(own) = self.read(|node| node.priority(task)) else { return false };
        let mut ready = self.ready.borrow_mut();
        let is_preempted = ready.first().is_some_and(|first| first < own);
        if is_preempted {
            ready.push_front(task, own);
        }
        is_preempted
    }

    /// Takes the task that runs next.
    pub(super) fn next_task(&self) -> Option<TaskId> {
        self.ready.borrow_mut().pop()
    }

    /// Describes the waits of this place, one line each.
    pub(super) fn explain(&self) -> Vec<String> {
        let node = self.node.borrow();
        let directory = node.directory();
        let line = |(_, task, hub): (u64, TaskId, HubId)| {
            let task = &directory.tasks()[task.0 as usize].name;
            let hub_name = directory.hubs().get(hub.0 as usize).map_or("", |spec| spec.name.as_str());
            let place = directory.place_of_hub(hub).unwrap_or(self.here);
            format!("the hub {hub_name:?} at {place}, by the task {task:?}")
        };
        node.pending().map(line).collect()
    }
}

/// Charges the modelled core, if there is one.
#[inline]
fn charge(cycles: u64) {
    if cycles > 0 {
        work(Cycles(cycles));
    }
}

/// Tasks woken by something other than a hub, perhaps on another thread.
#[derive(Default)]
pub(super) struct WokenTasks {
    any: AtomicBool,
    tasks: Mutex<Vec<TaskId>>,
    worker: Mutex<Option<Waker>>,
}

impl WokenTasks {
    pub(super) fn wake_worker(&self) {
        let waker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Sets the waker of the worker.
    pub(super) fn set_worker(&self, waker: &Waker) {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if !worker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *worker = Some(waker.clone());
        }
    }

    /// Takes the woken tasks.
    pub(super) fn take(&self) -> Vec<TaskId> {
        if !self.any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        // PAIR hubs.woken: observe
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The waker of one task.
pub(super) struct TaskWaker {
    pub(super) task: TaskId,
    pub(super) woken: Arc<WokenTasks>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
        // PAIR hubs.woken: publish
        self.woken.any.store(true, Ordering::Release);
        self.woken.wake_worker();
    }
}
