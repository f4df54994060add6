//! Hostile programs: random trees of tasks that do everything a program may do, compared with a prediction.
//!
//! A seed determines a tree. [`grow`] runs it: local and remote tasks, calls with answers, nested finishes, errors,
//! panics, awaited cancellations and cancellations that race with everything, handles that travel, captures of 0 to 200
//! kB. [`Node::expected`] walks the same tree without running it, and returns the number of tasks that must have ended
//! and of errors that each finish must have collected. Both must agree after each tree on every machine, and no value
//! may be left.
//!
//! `ISLES_TEST_HOSTILE` sets the number of trees, `ISLES_SEED` selects one. A tree that stalls ends with the stall
//! report after the limit of a test; [`Watch`] ends one that is busy forever.

use isles::prelude::*;
use isles::{Error, ErrorKind, Plan, Result, place_count, yield_now};
use std::future::pending;
use std::ops::Range;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Trees of each machine in the ordinary tests.
const TREES: u64 = 60;

/// Time limit of a tree on any machine.
const TREE_MAX: Duration = Duration::from_secs(300);

/// Depth of a tree, which has about 70 tasks on average.
const DEPTH: u32 = 5;

/// A node of a tree; everything below it follows from its seed.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Node {
    seed: u64,
    depth: u32,
    /// `true` if its outcome is predictable, that is, no cancellation races with it.
    judged: bool,
}

/// Way in which a node starts one of its children.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Here,
    There,
    Call,
    Nested,
    /// A finish of tasks that wait forever, until one of them cancels it.
    Cancelled,
    /// A finish that may be cancelled at any moment.
    Race,
    /// Tasks that add to a counter of the node.
    Count,
}

/// End of the task of a node.
#[derive(Clone, Copy, PartialEq)]
enum NodeOutcome {
    Well,
    Error,
    Panic,
}

/// Expected outcome of a tree.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// Judged tasks of the whole tree.
    tasks: u64,
    /// Errors that the surrounding finish collects, except that of the root.
    errors: u64,
}

fn scramble(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl Node {
    fn root(tree: u64) -> Node {
        Node { seed: scramble(tree), depth: DEPTH, judged: true }
    }

    /// Returns a number below `limit`, determined by the node and `question`.
    fn draw(self, question: u64, limit: u64) -> u64 {
        scramble(self.seed ^ question << 48) % limit
    }

    fn children(self) -> impl Iterator<Item = (Way, Node)> {
        let count = if self.depth == 0 { 0 } else { self.draw(1, 5) };
        (0..count).map(move |index| {
            let child = Node { seed: scramble(self.seed ^ (index + 1) << 32), depth: self.depth - 1, ..self };
            let way = match child.draw(2, 32) {
                0..8 => Way::Here,
                8..16 => Way::There,
                16..22 => Way::Call,
                22..26 => Way::Nested,
                26..28 => Way::Cancelled,
                28..30 => Way::Race,
                _ => Way::Count,
            };
            (way, Node { judged: self.judged && way != Way::Race, ..child })
        })
    }

    fn end(self) -> NodeOutcome {
        match self.draw(3, 24) {
            0 if self.judged => NodeOutcome::Error,
            1 if self.judged => NodeOutcome::Panic,
            _ => NodeOutcome::Well,
        }
    }

    fn fails(self) -> u64 {
        u64::from(self.end() != NodeOutcome::Well)
    }

    /// Returns the place where its task runs.
    fn place(self, index: u64) -> Place {
        Place::new(self.draw(4 + index, place_count() as u64) as usize).unwrap()
    }

    /// Returns the number of its tasks besides its children.
    fn width(self) -> u64 {
        1 + self.draw(100, 4)
    }

    /// Returns the bytes that travel with it.
    fn cargo(self) -> Vec<u8> {
        let len = match self.draw(101, 64) {
            0 => 200_000,
            1..4 => 20_000,
            4..16 => 1_000,
            other => other,
        };
        (0..len).map(|at| (self.seed ^ (at * 7)) as u8).collect()
    }

    fn expected(self) -> Expected {
        let mut all = Expected { tasks: u64::from(self.judged), errors: 0 };
        for (way, child) in self.children() {
            let below = child.expected();
            all.tasks += match way {
                Way::Here | Way::There | Way::Call | Way::Nested => below.tasks,
                Way::Cancelled | Way::Race | Way::Count => 0,
            };
            all.errors += match way {
                Way::Here | Way::There => below.errors + child.fails(),
                // The caller handles the error of the body; tasks that the body has started belong to the same finish.
                Way::Call => below.errors,
                Way::Nested | Way::Cancelled | Way::Race | Way::Count => 0,
            };
        }
        all
    }
}

/// Returns the number of errors that a finish has collected.
fn errors(result: &Result<()>) -> u64 {
    match result {
        Ok(()) => 0,
        Err(error) if *error.kind() == ErrorKind::Several => {
            let text = error.to_string();
            let number = text.split(' ').next().and_then(|number| number.parse().ok());
            number.unwrap_or_else(|| panic!("no number of errors in {text}"))
        }
        Err(_) => 1,
    }
}

/// Counters of the tasks of all trees of a run.
#[derive(Clone)]
struct Counts {
    /// Judged tasks that have ended at this place.
    ended: PlaceLocal<u64>,
    /// Tasks that hold something at this place.
    held: PlaceLocal<i64>,
}

/// A value that is counted until it is dropped.
struct Held(PlaceLocal<i64>);

impl Held {
    fn new(held: PlaceLocal<i64>) -> Held {
        *held.lock() += 1;
        Held(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

/// Waits forever, holding a counted value.
async fn hold(held: PlaceLocal<i64>) {
    let _held = Held::new(held);
    pending::<()>().await
}

/// Runs the tree below `node`.
fn grow(
    node: Node,
    ended: PlaceLocal<u64>,
    held: PlaceLocal<i64>,
) -> Pin<Box<dyn Future<Output = Result<()>>>> {
    Box::pin(async move {
        let counts = Counts { ended: ended.clone(), held: held.clone() };
        for (way, child) in node.children() {
            start(way, child, &counts).await?;
        }
        if node.draw(102, 4) == 0 {
            yield_now().await;
        }
        if node.judged {
            *ended.lock() += 1;
        }
        match node.end() {
            NodeOutcome::Well => Ok(()),
            NodeOutcome::Error => Err(Error::message(format!("on purpose, by {:x}", node.seed))),
            // As a panic, but without a message from the hook.
            NodeOutcome::Panic => resume_unwind(Box::new(format!("on purpose, by {:x}", node.seed))),
        }
    })
}

/// Starts the child of a node, and checks the outcomes that are known at once.
async fn start(way: Way, child: Node, counts: &Counts) -> Result<()> {
    let (ended, held) = (counts.ended.clone(), counts.held.clone());
    let (place, width) = (child.place(0), child.width());
    match way {
        Way::Here => spawn(grow(child, ended, held)),
        Way::There => {
            let cargo = child.cargo();
            spawn_at!(place, {
                assert_eq!(cargo, child.cargo(), "what travelled with {:x}", child.seed);
                grow(child, ended, held).await
            });
        }
        Way::Call => {
            let cargo = child.cargo();
            let answer = at!(place, {
                grow(child, ended, held).await?;
                Ok::<_, Error>(cargo.into_iter().rev().collect::<Vec<u8>>())
            });
            let expected = child.cargo().into_iter().rev();
            match answer.await {
                Ok(cargo) => {
                    assert!(child.fails() == 0 && cargo.into_iter().eq(expected), "{:x}", child.seed)
                }
                // In a finish that was cancelled meanwhile, the call ends with the cancellation.
                Err(error) => assert!(child.fails() == 1 || !child.judged, "{error}"),
            }
        }
        Way::Nested => {
            let result = finish(grow(child, ended, held)).await;
            if child.judged {
                assert_eq!(errors(&result), child.expected().errors + child.fails(), "{result:?}");
            }
        }
        Way::Cancelled => wait_until_cancelled(child, held).await,
        Way::Race => {
            // Any result is allowed.
            let _ = finish(async {
                spawn_at!(place, {
                    for _ in 0..width {
                        yield_now().await;
                    }
                    isles::cancel("on purpose");
                });
                let _held = Held::new(held.clone());
                grow(child, ended, held).await
            })
            .await;
        }
        Way::Count => {
            let counter = Counter::new();
            finish(async {
                for index in 1..=width {
                    spawn_at!(child.place(index), counter.add(index).await.map(|_| ()));
                }
            })
            .await?;
            assert_eq!(counter.get().await?, width * (width + 1) / 2);
        }
    }
    Ok(())
}

/// Runs a finish of tasks at all places that wait forever, until one of them cancels it.
async fn wait_until_cancelled(node: Node, held: PlaceLocal<i64>) {
    let result = finish(async {
        for index in 1..=node.width() {
            spawn_at!(node.place(index), hold(held).await);
        }
        spawn_at!(node.place(0), isles::cancel("on purpose"));
        pending::<()>().await;
    });
    let error = result.await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Cancelled, "{error}");
}

/// Watchdog that ends the test if a tree does not end.
struct Watch(Sender<u64>);

impl Watch {
    fn new() -> Watch {
        let (begin, trees) = channel();
        std::thread::spawn(move || {
            let mut last = 0;
            loop {
                match trees.recv_timeout(TREE_MAX) {
                    Ok(tree) => last = tree,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("ISLES_SEED={last} has not ended in {TREE_MAX:?}, and is busy");
                        std::process::abort();
                    }
                }
            }
        });
        Watch(begin)
    }

    fn begin(&self, tree: u64) {
        self.0.send(tree).expect("the watch goes on");
    }
}

fn trees() -> Range<u64> {
    let read = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match read("ISLES_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("ISLES_TEST_HOSTILE").unwrap_or(TREES),
    }
}

/// Waits until no counted value is left at any place, while messages are still in flight.
async fn until_nothing_is_held(held: &PlaceLocal<i64>) -> Result<()> {
    const ROUNDS_MAX: usize = 10_000;
    for _ in 0..ROUNDS_MAX {
        if held.reduce(|a, b| a + b).await? == 0 {
            return Ok(());
        }
    }
    Err(Error::message("something is held that nobody waits for"))
}

/// Runs one tree after the other, and compares each with its prediction.
async fn grow_all() -> Result<()> {
    grow_each(trees()).await
}

async fn grow_each(trees: Range<u64>) -> Result<()> {
    let counts = Counts { ended: PlaceLocal::new(|| 0).await?, held: PlaceLocal::new(|| 0).await? };
    let (watch, mut before) = (Watch::new(), 0);
    for tree in trees {
        watch.begin(tree);
        let root = Node::root(tree);
        let result = finish(grow(root, counts.ended.clone(), counts.held.clone())).await;
        let (expected, ended) = (root.expected(), counts.ended.reduce(|a, b| a + b).await?);
        assert_eq!(ended - before, expected.tasks, "tasks; ISLES_SEED={tree}: {result:?}");
        assert_eq!(errors(&result), expected.errors + root.fails(), "errors; ISLES_SEED={tree}: {result:?}");
        until_nothing_is_held(&counts.held)
            .await
            .unwrap_or_else(|error| panic!("ISLES_SEED={tree}: {error}"));
        before = ended;
    }
    Ok(())
}

#[isles::test(places = 4, machines = [threads])]
async fn hostile_programs_are_counted_right_on_threads() -> Result<()> {
    grow_all().await
}

#[isles::test(places = 3, machines = [processes])]
async fn hostile_programs_are_counted_right_on_processes() -> Result<()> {
    grow_all().await
}

/// Each tree runs in a separate world, with a different order and number of places.
#[test]
fn hostile_programs_are_counted_right_on_the_loopback() {
    for tree in trees() {
        let world = || grow_each(tree..tree + 1);
        let (result, ..) = isles::simulate(1 + (tree % 6) as u32, Plan::adversarial(tree), world);
        result.unwrap_or_else(|error| panic!("ISLES_SEED={tree}: {error}"));
    }
}

#[cfg(feature = "chip")]
#[test]
fn hostile_programs_are_counted_right_on_a_modelled_chip() {
    let chip = isles::Machine::Chip(isles::ModelledChip::new("scc").unwrap());
    let launch = isles::Launch::from_environment().unwrap().machine(chip).places(6);
    launch.run(grow_all).unwrap().0.unwrap();
}

#[test]
fn the_trees_have_of_everything() {
    let (mut ways, mut ends, mut nodes) = ([0; 7], [0; 3], vec![Node::root(0)]);
    nodes.extend((1..TREES).map(Node::root));
    let mut total = 0;
    while let Some(node) = nodes.pop() {
        total += 1;
        ends[node.end() as usize] += 1;
        for (way, child) in node.children() {
            ways[way as usize] += 1;
            nodes.push(child);
        }
    }
    assert!(ways.iter().chain(&ends).all(|count| *count > 20), "{ways:?} {ends:?}");
    assert!((40..120).contains(&(total / TREES)), "{total} tasks in {TREES} trees");
}
