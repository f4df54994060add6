//! Tasks that create tasks, as plain loops, which are the peers of the applications; and steals.
//!
//! The loop visits a tree as the application's bag does, with the same hash and the same stack of nodes with unvisited
//! children; it is separate code, so that the overhead of a bag is visible. Invariant: each child checks its result
//! against the published one.

use super::ours::run;
use crate::child::timing::Effort;
use crate::child::timing::{pin, print_figure, seconds_of_whole};
use isles::glb::{self, Bag, Balanced};
use isles_nqueens::{QueensCount, sequential};
use isles_uts::tree::{SAMPLES, SampleTree, SearchTree, TreeSize, child, root};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::thread;
use std::time::Instant;

fn sample(name: &str) -> &'static SampleTree {
    SAMPLES.iter().find(|sample| sample.name == name).expect("a published tree")
}

/// Prints the time of `tasks` tasks, and the rate in millions per second.
fn print_times(seconds: f64, tasks: u64) {
    print_figure("seconds", seconds);
    print_figure("rate", tasks as f64 / seconds / 1e6);
}

/// Visits T1 in a loop. Prints `seconds` and `rate`.
pub fn loop_t1(_effort: Effort) {
    walk("T1");
}

/// Visits T1L in a loop. Prints `seconds` and `rate`.
pub fn loop_t1l(_effort: Effort) {
    walk("T1L");
}

/// Visits T1L in two loops at once, on a core each. Prints `seconds`, half of the time until both have ended.
pub fn loops_t1l(_effort: Effort) {
    let sample = sample("T1L");
    let walk = |side| {
        pin(side);
        plain_walk(&SearchTree::new(sample.rules))
    };
    let started = Instant::now();
    let sizes = thread::scope(|scope| {
        let other = scope.spawn(|| walk(1));
        [walk(0), other.join().expect("the walk does not panic")]
    });
    print_figure("seconds", started.elapsed().as_secs_f64() / 2.0);
    assert_eq!(sizes, [sample.size; 2]);
}

fn walk(name: &str) {
    let sample = sample(name);
    let started = Instant::now();
    let size = plain_walk(&SearchTree::new(sample.rules));
    print_times(started.elapsed().as_secs_f64(), size.nodes);
    assert_eq!(size, sample.size, "{name}");
}

/// Returns the size of a tree by a loop over a stack.
fn plain_walk(tree: &SearchTree) -> TreeSize {
    let mut size = TreeSize::default();
    let mut stack = Vec::new();
    let mut next = (root(tree.rules().root_seed), 0);
    loop {
        let (state, depth) = next;
        let children = tree.children(&state, depth);
        size.nodes += 1;
        size.depth = size.depth.max(depth);
        match children {
            0 => size.leaves += 1,
            _ => stack.push((state, depth, children)),
        }
        let Some((state, depth, left)) = stack.last_mut() else { return size };
        *left -= 1;
        next = (child(state, *left), *depth + 1);
        if *left == 0 {
            stack.pop();
        }
    }
}

/// Places 14 queens by recursion. Prints `seconds` and `rate`.
pub fn loop_queens(effort: Effort) {
    let seconds = seconds_of_whole(effort, || check(sequential(black_box(14))));
    print_times(seconds, PLACED);
}

/// Queens placed for all boards of 14.
const PLACED: u64 = 27_358_552;

fn check(count: QueensCount) {
    assert_eq!((count.solutions, count.placed), (365_596, PLACED), "14 queens");
}

/// Tasks that a thief gets one at a time. A task computes one hash.
#[derive(Clone, Serialize, Deserialize)]
struct TinyTasks {
    left: u64,
    done: u64,
    state: [u32; 5],
}

impl Bag for TinyTasks {
    type Result = u64;

    fn process(&mut self, count: usize) -> usize {
        let count = self.left.min(count as u64);
        for number in 0..count {
            self.state = child(&self.state, number as u32);
        }
        self.left -= count;
        self.done += count;
        count as usize
    }

    fn split(&mut self) -> Option<TinyTasks> {
        self.left = self.left.checked_sub(1)?;
        Some(TinyTasks { left: 1, done: 0, state: self.state })
    }

    fn merge(&mut self, other: TinyTasks) {
        self.left += other.left;
        self.done += other.done;
    }

    fn result(self) -> u64 {
        self.done
    }
}

/// Number of tasks in the steal measurement: about two seconds.
const TINY_TASKS: u64 = 30_000_000;

/// Steals one task at a time from a place that computes. Prints `steal_us`, the mean of the successful steals.
pub fn steals(_effort: Effort) {
    run(|| async {
        let Balanced { result, balance } =
            glb::run(TinyTasks { left: TINY_TASKS, done: 0, state: root(1) }).await?;
        assert_eq!(result, TINY_TASKS);
        let thief = balance.places[1].as_ref().expect("nobody has died");
        assert!(thief.stolen > 1000, "{balance}");
        print_figure("steal_us", thief.stealing.as_secs_f64() / thief.stolen as f64 * 1e6);
        print_figure("steals", thief.stolen as f64);
        Ok(())
    });
}
