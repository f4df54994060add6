//! Random programs over an invented network, in an order that a seed determines, against the model of lists.
//!
//! `ISLES_TEST_SEEDS` sets the number of seeds; `ISLES_SEED` selects one.

use super::model::{ListModel, Outcome};
use super::*;
use crate::hub::node::LogEntry;
use std::collections::{BTreeMap, VecDeque};

/// Number of seeds in ordinary test runs.
const SEEDS: u64 = 500;

/// Number of steps of a program before it is ended.
const STEPS: u32 = 300;

/// SplitMix64.
struct Stream(u64);

impl Stream {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % bound as u64) as usize
    }
}

fn kinds(stream: &mut Stream) -> HubKind {
    match stream.below(10) {
        0 => HubKind::Port,
        1 => HubKind::Event,
        2 => HubKind::Semaphore { count: stream.below(3) as u16 },
        3 | 4 => HubKind::Resource { ceiling: [0, 0, 20][stream.below(3)] },
        5 => HubKind::Fifo { capacity: 1 + stream.below(3) as u32 },
        6 => HubKind::MemoryPool { blocks: stream.below(3) as u32, block_bytes: 8 },
        7 => HubKind::PacketPool { packets: stream.below(3) as u32 },
        8 => HubKind::DataEvent,
        _ => HubKind::BlackBoard,
    }
}

/// Places, packets in flight between them, and waiting tasks.
struct World {
    stream: Stream,
    kinds: Vec<HubKind>,
    directory: Directory,
    nodes: Vec<HubNode>,
    routes: Vec<Routes>,
    outboxes: Vec<PacketQueue>,
    inboxes: Vec<PacketQueue>,
    /// Packets in flight, by sender and receiver.
    links: BTreeMap<(usize, usize), VecDeque<HubPacket>>,
    /// The requests of each task that have not returned.
    waiting: Vec<Vec<u64>>,
    returned: u64,
    submitted: u64,
    given_up: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut stream = Stream(seed);
        let places = 1 + stream.below(4) as u32;
        let (tasks, hubs) = (2 + stream.below(5), 1 + stream.below(4));
        let mut directory = Directory::new();
        let mut map = Vec::new();
        for task in 0..tasks {
            let name = format!("task {task}");
            let priority = [10, 20, 20, 30, 200][stream.below(5)];
            directory.add_task(TaskSpec { name: name.clone(), priority }).expect("a new name");
            map.push((name, stream.below(places as usize) as u32));
        }
        let kinds: Vec<HubKind> = (0..hubs).map(|_| kinds(&mut stream)).collect();
        for (hub, kind) in kinds.iter().enumerate() {
            let name = format!("hub {hub}");
            let entity = Entity::Known(kind.clone());
            directory.add_hub(HubSpec { name: name.clone(), entity }).expect("a new name");
            map.push((name, stream.below(places as usize) as u32));
        }
        let pairs = map.iter().map(|(name, place)| (name.as_str(), *place));
        directory.apply_map(pairs, places).expect("a good map");
        // A line of places, perhaps with an extra link.
        let mut links: Vec<_> = (1..places).map(|place| (PlaceId(place - 1), PlaceId(place))).collect();
        links.push((PlaceId(0), PlaceId(stream.below(places as usize) as u32)));
        World {
            kinds,
            nodes: (0..places).map(|here| HubNode::new(PlaceId(here), directory.clone())).collect(),
            routes: (0..places)
                .map(|here| Routes::over_links(PlaceId(here), places, &links).expect("a line"))
                .collect(),
            outboxes: vec![PacketQueue::new(); places as usize],
            inboxes: vec![PacketQueue::new(); places as usize],
            links: BTreeMap::new(),
            waiting: vec![Vec::new(); tasks],
            directory,
            stream,
            returned: 0,
            submitted: 0,
            given_up: 0,
        }
    }

    fn feed(&mut self, node: usize, input: impl FnOnce(&mut HubNode, &mut Vec<Output>)) {
        let mut outputs = Vec::new();
        input(&mut self.nodes[node], &mut outputs);
        for output in outputs {
            match output {
                Output::Send(packet) => self.outboxes[node].push(packet),
                Output::Return { task, number, .. } => {
                    let waiting = &mut self.waiting[task.0 as usize];
                    let at = waiting.iter().position(|other| *other == number);
                    waiting.remove(at.expect("a request returns once"));
                    self.returned += 1;
                }
                Output::SetPriority { task, priority } => {
                    assert!(self.nodes[node].priority(task).is_some(), "{task:?} {priority}");
                }
            }
        }
    }

    fn submit(&mut self, task: usize) {
        let place = self.place_of(task);
        let hub = HubId(self.stream.below(self.kinds.len()) as u32);
        let operation = [HubOperation::Put, HubOperation::Get][self.stream.below(2)];
        let word = self.stream.below(3) as u32;
        let payload = word.to_le_bytes()[..[0, 4, 4, 4][self.stream.below(4)]].to_vec();
        let waits = self.stream.below(4) > 0;
        let mut submission = Submission { task: TaskId(task as u32), hub, operation, waits, payload, tag: 0 };
        let mut outputs = Vec::new();
        self.submitted += 1;
        let at_once = match self.stream.below(2) {
            0 => AtOnce::NotHere,
            _ => self.nodes[place].submit_at_once(&mut submission, &mut outputs),
        };
        match at_once {
            AtOnce::Done(..) => self.returned += 1,
            AtOnce::Waits(number) => self.waiting[task].push(number),
            AtOnce::NotHere => {
                let number = self.nodes[place].submit(submission, &mut outputs);
                self.waiting[task].push(number);
            }
        }
        self.feed(place, |_, given| given.append(&mut outputs));
    }

    fn place_of(&self, task: usize) -> usize {
        self.directory.place_of_task(TaskId(task as u32)).expect("a task").index()
    }

    fn step(&mut self) {
        let places = self.nodes.len();
        let node = self.stream.below(places);
        match self.stream.below(10) {
            0..3 => {
                let task = self.stream.below(self.waiting.len());
                // Most requests are waited for; some are asynchronous.
                if self.waiting[task].len() < 1 + self.stream.below(2) {
                    self.submit(task);
                }
            }
            3 => self.feed(node, HubNode::reschedule),
            4 => self.end_a_wait(),
            5 => self.send(node),
            _ => self.deliver(node),
        }
    }

    fn end_a_wait(&mut self) {
        let task = self.stream.below(self.waiting.len());
        let Some(number) = self.waiting[task].first().copied() else { return };
        let place = self.place_of(task);
        match self.stream.below(4) {
            0 => {
                self.waiting[task].remove(0);
                self.given_up += 1;
                self.feed(place, |node, outputs| node.give_up(number, outputs));
            }
            _ => self.feed(place, |node, outputs| node.time_out(number, outputs)),
        }
    }

    fn send(&mut self, node: usize) {
        let Some(packet) = self.outboxes[node].pop() else { return };
        let next = self.routes[node].next_hop(packet.to).index();
        self.links.entry((node, next)).or_default().push_back(packet);
    }

    /// Delivers a packet to a node, or makes the node serve one.
    fn deliver(&mut self, node: usize) {
        let from = self.stream.below(self.nodes.len());
        let arrived = self.links.get_mut(&(from, node)).and_then(VecDeque::pop_front);
        match arrived {
            Some(packet) if packet.to.index() == node => self.inboxes[node].push(packet),
            Some(packet) => self.outboxes[node].push(packet),
            None => {
                if let Some(packet) = self.inboxes[node].pop() {
                    self.feed(node, |node, outputs| node.receive(packet, outputs));
                }
            }
        }
    }

    /// Delivers all packets, and makes the kernels schedule.
    fn settle(&mut self) {
        loop {
            let before = self.nodes.iter().map(HubNode::packets).sum::<u64>();
            for node in 0..self.nodes.len() {
                while !self.outboxes[node].is_empty() {
                    self.send(node);
                }
                for _ in 0..8 * self.nodes.len() {
                    self.deliver(node);
                }
                self.feed(node, HubNode::reschedule);
            }
            let is_empty = self.outboxes.iter().chain(&self.inboxes).all(PacketQueue::is_empty)
                && self.links.values().all(VecDeque::is_empty);
            if is_empty && before == self.nodes.iter().map(HubNode::packets).sum::<u64>() {
                return;
            }
        }
    }

    /// Returns pairs of a task that waits for a lock and the lock's owner.
    fn waits_for(&self) -> Vec<(u32, u32)> {
        let all = self.nodes.iter().flat_map(HubNode::hubs);
        let of = |(_, state): (HubId, &Hub)| {
            let waiting: Vec<u32> = state.waiting().map(|request| request.task.0).collect();
            let owner = state.owner().map(|owner| owner.0);
            waiting.into_iter().filter_map(move |task| Some((task, owner?))).collect::<Vec<_>>()
        };
        all.flat_map(of).collect()
    }

    /// Returns `true` if tasks wait for each other's locks.
    fn is_deadlocked(&self) -> bool {
        let mut edges = self.waits_for();
        loop {
            let before = edges.len();
            let owners: Vec<u32> = edges.iter().map(|(_, owner)| *owner).collect();
            let waiting: Vec<u32> = edges.iter().map(|(task, _)| *task).collect();
            edges.retain(|(task, owner)| owners.contains(task) && waiting.contains(owner));
            if edges.len() == before {
                return before > 0;
            }
        }
    }

    /// Checks effective priorities by the definition: the least fixed point over all places. In a deadlock of locks,
    /// whose owners pass a priority round, one may be more urgent.
    fn check_priorities(&self, seed: u64) {
        let is_deadlocked = self.is_deadlocked();
        let mut priorities: Vec<u8> = self.directory.tasks().iter().map(|task| task.priority).collect();
        let all = || self.nodes.iter().flat_map(HubNode::hubs);
        for _ in 0..=priorities.len() {
            for (hub, state) in all() {
                let HubKind::Resource { ceiling } = self.kinds[hub.0 as usize] else { continue };
                let Some(owner) = state.owner() else { continue };
                for request in state.waiting() {
                    let inherited = priorities[request.task.0 as usize].max(ceiling);
                    let own = &mut priorities[owner.0 as usize];
                    *own = inherited.min(*own);
                }
            }
        }
        for (task, priority) in self.nodes.iter().flat_map(HubNode::tasks) {
            let expected = priorities[task.0 as usize];
            let is_right = priority == expected || is_deadlocked && priority < expected;
            assert!(is_right, "ISLES_SEED={seed}: {task:?} has {priority} and not {expected}");
        }
    }

    /// Replays the steps of each hub on the model.
    fn check_hubs(&mut self, seed: u64) {
        for node in 0..self.nodes.len() {
            let log = std::mem::take(&mut self.nodes[node].log);
            for (hub, kind) in self.kinds.iter().enumerate() {
                if self.directory.place_of_hub(HubId(hub as u32)) == Some(PlaceId(node as u32)) {
                    let model = replay(&log, hub as u32, kind.clone(), PlaceId(node as u32), seed);
                    model.check_idle();
                }
            }
        }
    }
}

/// Replays the log of a place on the model of one hub, and compares the outcomes.
fn replay(log: &[LogEntry], hub: u32, kind: HubKind, place: PlaceId, seed: u64) -> ListModel {
    let mut model = ListModel::new(kind);
    let (mut expected, mut found): (Vec<Outcome>, Vec<Outcome>) = (Vec::new(), Vec::new());
    for entry in log {
        let of = match entry {
            LogEntry::Served(PacketBody::Request(request)) => request.hub,
            LogEntry::Served(PacketBody::Withdraw { hub, .. } | PacketBody::ChangeRequest { hub, .. }) => {
                *hub
            }
            LogEntry::Rescheduled(hub) | LogEntry::Ended(hub, _) => *hub,
            LogEntry::Replied(reply) if reply.hub.0 == hub => {
                found.push((reply.id, reply.status, reply.payload.clone()));
                continue;
            }
            LogEntry::Served(_) | LogEntry::Replied(_) => continue,
        };
        if of.0 == hub {
            assert_eq!(found, expected, "ISLES_SEED={seed}: hub {hub} before {entry:?}");
            expected.extend(model.step(entry, place));
        }
    }
    assert_eq!(found, expected, "ISLES_SEED={seed}: hub {hub}");
    model
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    (0..STEPS).for_each(|_| world.step());
    world.settle();
    world.check_priorities(seed);
    // Requests that would wait for ever end by their time-outs, and nothing is lost.
    for task in 0..world.waiting.len() {
        let place = world.place_of(task);
        for number in world.waiting[task].clone() {
            world.feed(place, |node, outputs| node.time_out(number, outputs));
        }
    }
    world.settle();
    assert_eq!(world.submitted, world.returned + world.given_up, "ISLES_SEED={seed}");
    assert!(world.waiting.iter().all(Vec::is_empty), "ISLES_SEED={seed}");
    world.check_priorities(seed);
    world.check_hubs(seed);
}

#[test]
fn random_programs_of_all_hubs_do_what_lists_do() {
    let read = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match read("ISLES_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("ISLES_TEST_SEEDS").unwrap_or(SEEDS),
    };
    seeds.for_each(run);
}
