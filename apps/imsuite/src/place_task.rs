//! Work of one place in a kernel: rounds with its nodes, messages to other nodes, questions, votes.
//!
//! One task per place runs all rounds. In a round it runs each of its nodes, sends their messages to the places of the
//! receivers, one call per message as in the suite, and waits until all have arrived; then a [`Phaser`] (a clock in
//! X10) starts the next round at all places. [`ReachableClosure`] adds the other data of a call. Invariant: a message
//! sent in a round is available in the next one.

use super::block::{CallCounts, NodeBlock, home};
use super::input::{Input, InputFacts};
use super::kernel::Kernel;
use super::ship::{ReachableClosure, Ship};
use isles::prelude::*;
use isles_app::frame::{RunMeter, WorkDone};
use std::rc::Rc;
use std::time::Instant;

/// Bytes that a place sends before it yields: half the capacity of a ring.
const TURN_BYTES: usize = 256 << 10;

/// Cycles of a node's part of a round on a modelled core, an estimate: a call, a loop over its messages and a test of
/// its state.
const STEP: u64 = 60;
/// Cycles per message at its node, excluding transport, an estimate: it is compared, inserted in order and read.
const MESSAGE: u64 = 40;

/// A node's part of a round.
pub struct NodeContext<'a, K: Kernel> {
    /// Number of the node.
    pub index: u32,
    /// Its state.
    pub node: &'a mut K::Node,
    /// Its neighbours, ascending.
    pub neighbours: &'a [u32],
    /// Messages sent to the node in the previous round, ordered by sender.
    pub inbox: Vec<(u32, K::Message)>,
    outgoing: &'a mut Vec<(u32, u32, K::Message)>,
}

impl<K: Kernel> NodeContext<'_, K> {
    /// Sends a message, available in the next round.
    pub fn send(&mut self, to: u32, message: K::Message) {
        self.outgoing.push((self.index, to, message));
    }

    /// Sends a message to all neighbours.
    pub fn send_all(&mut self, message: K::Message) {
        let index = self.index;
        self.outgoing.extend(self.neighbours.iter().map(|to| (index, *to, message.clone())));
    }

    /// Takes the messages, without their senders.
    pub fn messages(&mut self) -> impl Iterator<Item = K::Message> + use<K> {
        std::mem::take(&mut self.inbox).into_iter().map(|(_, message)| message)
    }
}

/// State of a place in a run of a kernel.
pub struct PlaceTask<K: Kernel> {
    shared: Rc<PlaceNodes<K>>,
    phaser: Phaser,
    meter: RunMeter,
    /// `true` if messages sent in this round belong to odd rounds.
    is_odd: bool,
    counts: CallCounts,
}

/// State shared by the tasks of a place.
struct PlaceNodes<K: Kernel> {
    nodes: PlaceLocal<NodeBlock<K>>,
    closure: Option<ReachableClosure>,
    facts: InputFacts,
}

impl<K: Kernel> PlaceTask<K> {
    /// Returns the facts about the input that all nodes know.
    pub fn facts(&self) -> InputFacts {
        self.shared.facts
    }

    /// Reports to observers that at most this many rounds follow.
    pub fn expect(&self, rounds: u32) {
        isles::progress::add_total(u64::from(rounds), "rounds");
    }

    /// Runs `step` for each node of this place between two rounds, without messages.
    pub fn each(&mut self, act: impl FnMut(&mut K::Node)) {
        let mut block = self.shared.nodes.lock();
        work(Cycles(STEP * block.nodes.len() as u64));
        block.nodes.iter_mut().for_each(act);
    }

    /// Runs one round: `step` processes for each node the messages sent to it in the previous round.
    ///
    /// # Errors
    /// A place has died.
    pub async fn round(&mut self, mut step: impl FnMut(&mut NodeContext<'_, K>)) -> isles::Result<()> {
        let started = Instant::now();
        let mut outgoing = Vec::new();
        let mut cycles = 0;
        {
            let mut block = self.shared.nodes.lock();
            for own in 0..block.nodes.len() {
                let (index, inbox) = (block.name_of(own), block.take(self.is_odd, own));
                cycles += STEP + MESSAGE * inbox.len() as u64;
                let NodeBlock { nodes, neighbours, .. } = &mut *block;
                let (node, neighbours) = (&mut nodes[own], &neighbours[own]);
                step(&mut NodeContext { index, node, neighbours, inbox, outgoing: &mut outgoing });
            }
        }
        cycles += MESSAGE * outgoing.len() as u64;
        self.meter.add_done(started);
        work(Cycles(cycles));
        self.is_odd = !self.is_odd;
        self.deliver(outgoing).await?;
        self.counts.rounds += 1;
        self.phaser.advance().await?;
        Ok(())
    }

    /// Sends messages, and waits until they have arrived.
    async fn deliver(&mut self, outgoing: Vec<(u32, u32, K::Message)>) -> isles::Result<()> {
        if outgoing.is_empty() {
            return Ok(());
        }
        for (_, to, _) in &outgoing {
            self.count(*to);
        }
        let (shared, is_odd) = (&self.shared, self.is_odd);
        let PlaceNodes { nodes, closure, facts } = &**shared;
        let size = facts.size;
        let bytes = 64 + closure.as_ref().map_or(0, ReachableClosure::bytes);
        finish(async {
            let mut sent_bytes = 0;
            for (from, to, message) in outgoing {
                spawn_at!(home(to, size), [nodes, closure, is_odd, from, to, message] {
                    let _ = closure; // it has travelled, and that is all that it is for
                    nodes.lock().receive(is_odd, from, to, message);
                });
                sent_bytes += bytes;
                if sent_bytes >= TURN_BYTES {
                    sent_bytes = 0;
                    isles::yield_now().await;
                }
            }
        })
        .await
    }

    /// Runs one round of questions: each node asks the node that `target` returns for it, if any. `take` gets each
    /// answer and the node that gave it. Messages of the previous round stay for the next one.
    ///
    /// # Errors
    /// A place has died.
    pub async fn ask(
        &mut self,
        target: impl Fn(u32, &K::Node) -> Option<u32>,
        take: fn(&mut K::Node, u32, K::Reply),
    ) -> isles::Result<()> {
        let questions: Vec<(usize, u32)> = {
            let block = self.shared.nodes.lock();
            let target = |own: usize| Some((own, target(block.name_of(own), &block.nodes[own])?));
            (0..block.nodes.len()).filter_map(target).collect()
        };
        for (_, target) in &questions {
            self.count(*target);
        }
        work(Cycles((STEP + MESSAGE) * questions.len() as u64));
        finish(async {
            for (own, target) in questions {
                let shared = Rc::clone(&self.shared);
                spawn(async move {
                    let PlaceNodes { nodes, closure, facts } = &*shared;
                    let reply = at!(home(target, facts.size), [nodes, closure, target] {
                        let _ = closure; // as in `deliver`
                        K::reply(nodes.lock().node(target))
                    });
                    let reply = reply.await?;
                    take(&mut nodes.lock().nodes[own], target, reply);
                    Ok::<_, isles::Error>(())
                });
            }
        })
        .await?;
        self.counts.rounds += 1;
        self.phaser.advance().await?;
        Ok(())
    }

    /// Returns `true` if `is_so` holds for any node of any place: the test that ends a loop of rounds.
    ///
    /// # Errors
    /// A place has died.
    pub async fn any(&self, is_so: impl Fn(&K::Node) -> bool) -> isles::Result<bool> {
        let own = self.shared.nodes.lock().nodes.iter().any(is_so);
        Team::world().all_reduce(own, |one, other| one || other).await
    }

    /// Counts a message to `node`.
    fn count(&mut self, node: u32) {
        self.counts.messages += 1;
        self.counts.calls += u64::from(home(node, self.shared.facts.size) != here());
    }
}

/// Outcome of a run of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelOutcome {
    /// Answer of each node.
    pub answers: Vec<Vec<i64>>,
    /// Counts over all places; each place ran all rounds.
    pub counts: CallCounts,
    /// Work of each place, and the time from the start of the places to the end of the last one.
    pub done: WorkDone,
}

/// Runs a kernel over all places.
///
/// # Errors
/// A place has died.
pub async fn run<K: Kernel>(input: &Input, ship: Ship, meter: &RunMeter) -> isles::Result<KernelOutcome> {
    let (facts, closure) = (input.facts(), ReachableClosure::of(ship, input, place_count()));
    let nodes = PlaceLocal::with(input.clone(), NodeBlock::<K>::new).await?;
    let phaser = Phaser::new();
    let started = now();
    finish(async {
        for place in places() {
            spawn_at!(place, [nodes, closure, phaser, meter, facts] {
                let shared = Rc::new(PlaceNodes { nodes, closure, facts });
                let mut task = PlaceTask::<K> {
                    shared: Rc::clone(&shared),
                    phaser,
                    meter: meter.clone(),
                    is_odd: false,
                    counts: CallCounts::default(),
                };
                K::run(&mut task).await?;
                shared.nodes.lock().counts = task.counts;
            });
        }
        drop(phaser);
    })
    .await?;
    let done = meter.done(started).await?;
    let (mut answers, mut counts) = (Vec::with_capacity(facts.size), CallCounts::default());
    for place in places() {
        let (more, counted) = at!(place, nodes.lock().found()).await?;
        answers.extend(more);
        counts.rounds = counted.rounds;
        counts.messages += counted.messages;
        counts.calls += counted.calls;
    }
    Ok(KernelOutcome { answers, counts, done })
}
