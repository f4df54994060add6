//! Priority inheritance: the examples of the source, and chains over places.

use super::*;

/// Nodes whose packets arrive at once, in order.
struct Nodes(Vec<HubNode>);

impl Nodes {
    fn new(directory: &Directory, places: u32) -> Nodes {
        Nodes((0..places).map(|here| HubNode::new(PlaceId(here), directory.clone())).collect())
    }

    /// Does something at a node; returns what came back to tasks, in order.
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
    // In the pass of the unlock a more urgent one asks.
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
    // The most urgent waits for the one who waits.
    assert_eq!(nodes.ask(2, ask(2, 1, Get, true)), []);
    assert_eq!((nodes.priority(0, 0), nodes.priority(1, 1)), (Some(10), Some(10)));
    // It gives up: all have again what is theirs.
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
    // The hubs that a task holds when it ends are free again.
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
    assert_eq!(nodes.at(0, |node, outputs| node.place_died(PlaceId(1), outputs)), [(0, dead)]);
    assert_eq!(nodes.ask(0, ask(0, 1, Get, true)), [(0, dead)]);
    assert_eq!(nodes.ask(0, ask(0, 0, Get, true)), [(0, Status::Done)]);
}

#[test]
fn a_lock_that_comes_after_it_was_given_up_goes_back() {
    let lock = HubKind::Resource { ceiling: 0 };
    let directory = directory(&[("a", 5, 0), ("b", 6, 0)], &[("lock", lock, 0)], 1);
    let mut node = HubNode::new(PlaceId(0), directory);
    let mut outputs = Vec::new();
    node.submit(ask(0, 0, Get, true), &mut outputs);
    let waiting = node.submit(ask(1, 0, Get, true), &mut outputs);
    node.submit(ask(0, 0, Put, true), &mut outputs);
    node.reschedule(&mut outputs);
    // It has been granted by now.
    node.give_up(waiting, &mut outputs);
    node.end_task(TaskId(1), &mut outputs);
    outputs.clear();
    node.submit(ask(0, 0, Get, false), &mut outputs);
    assert!(matches!(outputs.as_slice(), [.., Output::Return { status: Status::Done, .. }]), "{outputs:?}");
}
