//! Priority inheritance: the examples of the source, and chains over places.

use super::*;

/// Nodes whose packets arrive at once and in order.
struct Nodes(Vec<HubNode>);

impl Nodes {
    fn new(directory: &Directory, places: u32) -> Nodes {
        Nodes((0..places).map(|here| HubNode::new(PlaceId(here), directory.clone())).collect())
    }

    /// Applies `input` to a node; returns the outcomes for tasks, in order.
    fn at(&mut self, node: usize, input: impl FnOnce(&mut HubNode, &mut Vec<Output>)) -> Vec<(u32, Status)> {
        let mut outputs = Vec::new();
        input(&mut self.0[node], &mut outputs);
        let (mut returned, mut queue) = (Vec::new(), std::collections::VecDeque::from(outputs));
        while let Some(output) = queue.pop_front() {
            match output {
                Output::Send(packet) => {
                    let mut more = Vec::new();
                    self.0[packet.to.index()].receive(packet, &mut more);
                    queue.extend(more);
                }
                Output::Return { task, status, .. } => returned.push((task.0, status)),
                Output::SetPriority { .. } => {}
            }
        }
        returned
    }

    fn ask(&mut self, node: usize, submission: Submission) -> Vec<(u32, Status)> {
        self.at(node, |node, outputs| _ = node.submit(submission, outputs))
    }

    fn reschedule(&mut self, node: usize) -> Vec<(u32, Status)> {
        self.at(node, HubNode::reschedule)
    }

    fn priority(&self, node: usize, task: u32) -> Option<u8> {
        self.0[node].priority(TaskId(task))
    }
}

use HubOperation::{Get, Put};

#[test]
fn a_lock_is_given_away_when_the_kernel_schedules_and_not_with_the_unlock() {
    let tasks = [("owner", 200, 0), ("waiter", 150, 0), ("late", 50, 0)];
    let directory = directory(&tasks, &[("lock", HubKind::Resource { ceiling: 0 }, 0)], 1);
    let mut nodes = Nodes::new(&directory, 1);
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::Done)]);
    assert_eq!(nodes.ask(0, ask(1, 0, Get, true)), []);
    assert_eq!(nodes.priority(0, 0), Some(150));
    assert_eq!(nodes.ask(0, ask(0, 0, Put, true)), [(0, Status::Done)]);
    assert_eq!(nodes.priority(0, 0), Some(200));
    // A more urgent task asks in the pass of the unlock.
    assert_eq!(nodes.ask(0, ask(2, 0, Get, true)), []);
    assert_eq!(nodes.reschedule(0), [(2, Status::Done)]);
    assert_eq!(nodes.ask(0, ask(2, 0, Put, true)), [(2, Status::Done)]);
    assert_eq!(nodes.reschedule(0), [(1, Status::Done)]);
}

#[test]
fn a_chain_of_resources_on_three_places_passes_the_priority_on_and_takes_it_back() {
    let lock = HubKind::Resource { ceiling: 0 };
    let directory = directory(
        &[("low", 200, 0), ("middle", 100, 1), ("high", 10, 2)],
        &[("one", lock.clone(), 1), ("two", lock, 2)],
        3,
    );
    let mut nodes = Nodes::new(&directory, 3);
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::Done)]);
    assert_eq!(nodes.ask(1, ask(1, 1, Get, true)), [(1, Status::Done)]);
    assert_eq!(nodes.ask(1, ask(1, 0, Get, true)), []);
    assert_eq!((nodes.priority(0, 0), nodes.priority(1, 1)), (Some(100), Some(100)));
    // The most urgent task waits for the one that waits.
    assert_eq!(nodes.ask(2, ask(2, 1, Get, true)), []);
    assert_eq!((nodes.priority(0, 0), nodes.priority(1, 1)), (Some(10), Some(10)));
    // It gives up: all have their own priorities again.
    assert_eq!(nodes.at(2, |node, outputs| node.time_out(0, outputs)), [(2, Status::TimedOut)]);
    assert_eq!((nodes.priority(0, 0), nodes.priority(1, 1)), (Some(100), Some(100)));
}

#[test]
fn nobody_inherits_beyond_the_ceiling_and_nobody_above_it_gets_the_lock() {
    let lock = HubKind::Resource { ceiling: 50 };
    let directory = directory(&[("low", 200, 0), ("fair", 60, 0), ("high", 10, 0)], &[("lock", lock, 0)], 1);
    let mut nodes = Nodes::new(&directory, 1);
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::Done)]);
    assert_eq!(nodes.ask(0, ask(2, 0, Get, true)), [(2, Status::CeilingViolated)]);
    assert_eq!(nodes.ask(0, ask(1, 0, Get, true)), []);
    assert_eq!(nodes.priority(0, 0), Some(60));
    assert_eq!(nodes.ask(0, ask(1, 0, Put, true)), [(1, Status::NotOwner)]);
}

#[test]
fn a_pool_refuses_a_task_of_another_place_and_keeps_its_blocks() {
    let pool = HubKind::MemoryPool { blocks: 1, block_bytes: 8 };
    let directory = directory(&[("far", 5, 0), ("near", 5, 1)], &[("pool", pool, 1)], 2);
    let mut nodes = Nodes::new(&directory, 2);
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::NotLocal)]);
    assert_eq!(nodes.ask(1, ask(1, 0, Get, false)), [(1, Status::Done)]);
    assert_eq!(nodes.ask(1, ask(1, 0, Get, false)), [(1, Status::Failed)]);
    // The hubs that a task holds at its end are free again.
    assert_eq!(nodes.at(1, |node, outputs| node.end_task(TaskId(1), outputs)), []);
    assert_eq!(nodes.ask(1, ask(1, 0, Get, false)), [(1, Status::Done)]);
}

#[test]
fn a_dead_place_ends_the_waits_for_its_hubs_and_gives_up_its_locks() {
    let lock = HubKind::Resource { ceiling: 0 };
    let directory =
        directory(&[("a", 5, 0), ("b", 5, 1)], &[("lock", lock, 0), ("far", HubKind::Event, 1)], 2);
    let mut nodes = Nodes::new(&directory, 2);
    assert_eq!(nodes.ask(1, ask(1, 0, Get, true)), [(1, Status::Done)]);
    assert_eq!(nodes.ask(0, ask(0, 1, Get, true)), []);
    let dead = Status::DeadPlace(PlaceId(1));
    assert_eq!(nodes.at(0, |node, outputs| node.place_lost(PlaceId(1), PlaceId(1), outputs)), [(0, dead)]);
    assert_eq!(nodes.ask(0, ask(0, 1, Get, true)), [(0, dead)]);
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::Done)]);
}

#[test]
fn a_request_of_a_dead_place_gets_nothing_and_its_locks_no_longer_raise_priorities() {
    let lock = HubKind::Resource { ceiling: 0 };
    let tasks = [("low", 200, 0), ("high", 10, 1), ("other", 30, 0)];
    let directory = directory(&tasks, &[("near", lock.clone(), 0), ("far", lock, 1)], 2);
    let mut nodes = Nodes::new(&directory, 2);
    assert_eq!(nodes.ask(0, ask(0, 1, Get, true)), [(0, Status::Done)]);
    assert_eq!(nodes.ask(1, ask(1, 1, Get, true)), []);
    assert_eq!(nodes.priority(0, 0), Some(10));
    // Its packet is still in flight.
    let mut sent = Vec::new();
    nodes.0[1].submit(ask(1, 0, Get, true), &mut sent);
    nodes.at(0, |node, outputs| node.place_lost(PlaceId(1), PlaceId(1), outputs));
    assert_eq!(nodes.priority(0, 0), Some(200));
    let Some(Output::Send(late)) = sent.pop() else { panic!("a packet to place 0: {sent:?}") };
    assert_eq!(nodes.at(0, |node, outputs| node.receive(late, outputs)), []);
    assert_eq!(nodes.ask(0, ask(2, 0, Get, false)), [(2, Status::Done)]);
}

#[test]
fn too_many_requests_that_wait_are_an_error_of_the_next_and_a_lock_can_still_be_given_back() {
    let lock = HubKind::Resource { ceiling: 0 };
    let directory = directory(&[("a", 5, 0)], &[("event", HubKind::Event, 1), ("lock", lock, 1)], 2);
    let mut nodes = Nodes::new(&directory, 2);
    assert_eq!(nodes.ask(0, ask(0, 1, Get, true)), [(0, Status::Done)]);
    for _ in 0..HubNode::WAITING_MAX {
        assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), []);
    }
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::Overflow)]);
    nodes.at(0, |node, outputs| node.give_back(TaskId(0), HubId(1), Vec::new(), outputs));
    assert_eq!(nodes.0[1].hubs().find_map(|(hub, state)| (hub.0 == 1).then(|| state.owner())), Some(None));
}

#[test]
fn a_signal_within_a_place_is_carried_out_though_too_many_requests_wait() {
    let semaphore = HubKind::Semaphore { count: 0 };
    let directory = directory(&[("a", 5, 0)], &[("semaphore", semaphore, 0)], 1);
    let mut node = HubNode::new(PlaceId(0), directory);
    let mut outputs = Vec::new();
    for _ in 0..HubNode::WAITING_MAX {
        assert!(matches!(node.submit_at_once(&mut ask(0, 0, Get, true), &mut outputs), AtOnce::Waits(_)));
    }
    assert_eq!(node.submit_at_once(&mut ask(0, 0, Get, true), &mut outputs), AtOnce::NotHere);
    let signalled = node.submit_at_once(&mut ask(0, 0, Put, false), &mut outputs);
    assert_eq!((signalled, outputs.len()), (AtOnce::Done(Status::Done, None), 1));
}

#[test]
fn a_lock_or_a_block_that_nobody_takes_goes_back() {
    let (lock, pool) = (HubKind::Resource { ceiling: 0 }, HubKind::MemoryPool { blocks: 1, block_bytes: 8 });
    let directory = directory(&[("a", 5, 0), ("b", 6, 0)], &[("lock", lock, 0), ("pool", pool, 0)], 1);
    let mut node = HubNode::new(PlaceId(0), directory);
    for (hub, data) in [(0, Vec::new()), (1, 8_u32.to_le_bytes().to_vec())] {
        let get = |task| Submission { payload: data.clone(), ..ask(task, hub, Get, false) };
        let mut outputs = Vec::new();
        node.submit(get(0), &mut outputs);
        let Some(Output::Return { status: Status::Done, payload, grant, .. }) = outputs.pop() else {
            panic!("the first request has it: {outputs:?}")
        };
        node.submit(get(1), &mut outputs);
        assert!(matches!(outputs.pop(), Some(Output::Return { status: Status::Failed, .. })));
        node.reject(TaskId(0), HubId(hub), payload.clone(), grant, &mut outputs);
        node.reschedule(&mut outputs);
        outputs.clear();
        node.submit(get(1), &mut outputs);
        assert!(matches!(outputs.pop(), Some(Output::Return { status: Status::Done, .. })), "hub {hub}");
        // A second time is too late: another task has it now.
        node.reject(TaskId(0), HubId(hub), payload, grant, &mut outputs);
        node.reschedule(&mut outputs);
        outputs.clear();
        node.submit(get(0), &mut outputs);
        assert!(matches!(outputs.pop(), Some(Output::Return { status: Status::Failed, .. })), "hub {hub}");
    }
}

/// A lock that is granted with its unlock.
#[derive(Debug, Default)]
struct PromptLock(Option<TaskId>);

impl HubRule for PromptLock {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        let is_ready = match request.operation {
            Put => self.0 == Some(request.task),
            Get => self.0.is_none(),
        };
        if is_ready { Readiness::Now } else { Readiness::Wait }
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        self.0 = (request.operation == Get).then_some(request.task);
    }

    fn owner(&self) -> Option<TaskId> {
        self.0
    }
}

#[test]
fn the_owner_of_a_lock_without_rescheduling_inherits_too_when_it_was_locked_at_once() {
    let mut directory = directory(&[("owner", 200, 0), ("waiter", 50, 0)], &[], 1);
    let entity = Entity::Own(|| Box::new(PromptLock::default()));
    directory.add_hub(HubSpec { name: "lock".to_owned(), entity }).expect("a new name");
    directory.apply_map([("owner", 0), ("waiter", 0), ("lock", 0)], 1).expect("a good map");
    let mut node = HubNode::new(PlaceId(0), directory);
    let (mut outputs, owner) = (Vec::new(), TaskId(0));
    assert_eq!(
        node.submit_at_once(&mut ask(0, 0, Get, true), &mut outputs),
        AtOnce::Done(Status::Done, Some(1))
    );
    let AtOnce::Waits(number) = node.submit_at_once(&mut ask(1, 0, Get, true), &mut outputs) else {
        panic!("the lock is taken");
    };
    assert_eq!((node.priority(owner), std::mem::take(&mut outputs).len()), (Some(50), 1));
    let unlocked = node.submit_at_once(&mut ask(0, 0, Put, true), &mut outputs);
    assert_eq!((unlocked, node.priority(owner)), (AtOnce::Done(Status::Done, Some(1)), Some(200)));
    let is_granted = |output: &Output| match output {
        Output::Return { number: of, grant, .. } => (*of, *grant) == (number, Some(2)),
        _ => false,
    };
    assert!(outputs.iter().any(is_granted), "{outputs:?}");
}
