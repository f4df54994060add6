//! Exhaustive exploration of small worlds, for the tests of all protocols here.
//!
//! Depth first over all choices, each state once. It knows nothing about what is explored. Invariant: states with equal
//! fingerprints (64 bits) are taken to be equal.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A world in which several events can happen next.
pub(crate) trait World: Clone + Hash {
    /// One possible event.
    type Action: Copy + Debug;

    /// Returns all events that can happen next, in a fixed order.
    fn actions(&self) -> Vec<Self::Action>;

    /// Makes one event happen; returns an error if something wrong is seen.
    fn act(&mut self, action: Self::Action) -> Result<(), String>;

    /// Returns `true` if, with these events possible, nothing more has to happen.
    fn is_over(&self, actions: &[Self::Action]) -> bool;

    /// Checks a world that is over.
    fn check_end(&self) -> Result<(), String>;
}

/// Result of an exploration.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) states: usize,
    /// Failures with the path to each, one for each beginning of the message.
    pub(crate) failures: BTreeMap<String, String>,
}

fn fingerprint(world: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Visits every reachable state, but none beyond a failure; stops after `limit` states.
pub(crate) fn explore<W: World>(start: W, limit: usize) -> Findings {
    let mut seen = HashSet::from([fingerprint(&start)]);
    let actions = start.actions();
    let mut path = vec![(start, actions)];
    let mut taken = Vec::new();
    let mut findings = Findings::default();
    while let Some((world, actions)) = path.last_mut() {
        let Some(action) = actions.pop() else {
            path.pop();
            taken.pop();
            continue;
        };
        let mut next = world.clone();
        taken.push(action);
        let mut verdict = next.act(action);
        let open = next.actions();
        if verdict.is_ok() && next.is_over(&open) {
            verdict = next.check_end();
        }
        if seen.len() > limit {
            findings.failures.insert("endless".into(), format!("more than {limit} states"));
            break;
        }
        if seen.insert(fingerprint(&next)) && verdict.is_ok() {
            path.push((next, open));
            continue;
        }
        if let Err(failure) = verdict {
            let beginning = failure.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            findings.failures.entry(beginning).or_insert_with(|| format!("{failure}\nafter {taken:?}"));
        }
        taken.pop();
    }
    findings.states = seen.len();
    findings
}

/// Runs one world to its end; the seed decides each choice. `rare` choices are taken one time in sixteen.
pub(crate) fn run<W: World>(
    mut world: W,
    mut seed: u64,
    rare: impl Fn(&W::Action) -> bool,
) -> Result<(), String> {
    for _ in 0..200_000 {
        let mut actions = world.actions();
        if world.is_over(&actions) {
            return world.check_end();
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if !(seed >> 33).is_multiple_of(16) {
            actions.retain(|action| !rare(action));
        }
        let index = (seed >> 40) as usize % actions.len();
        world.act(actions[index])?;
    }
    Err("endless".into())
}
