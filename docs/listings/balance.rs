//! Tasks that make tasks, spread over all places while they run: in how many ways 40 is a sum.
use isles::glb::{self, Bag};
use isles::prelude::*;
use serde::{Deserialize, Serialize};

/// Sums that are not complete, and how many were.
#[derive(Clone, Serialize, Deserialize)]
struct Sums {
    /// Remainders to fill, each with the least number that may come next.
    open: Vec<(u32, u32)>,
    complete: u64,
}

impl Bag for Sums {
    type Result = u64;

    fn process(&mut self, count: usize) -> usize {
        for processed in 0..count {
            let Some((missing, least)) = self.open.pop() else { return processed };
            work(Cycles(50)); // on a modelled chip; on a real machine nothing changes
            if missing == 0 {
                self.complete += 1;
            }
            self.open.extend((least..=missing).map(|next| (missing - next, next)));
        }
        count
    }

    fn split(&mut self) -> Option<Sums> {
        let given = self.open.len() / 2; // the first ones are the largest
        (given > 0).then(|| Sums { open: self.open.drain(..given).collect(), complete: 0 })
    }

    fn merge(&mut self, other: Sums) {
        self.open.extend(other.open);
        self.complete += other.complete;
    }

    fn result(self) -> u64 {
        self.complete
    }
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let done = glb::run(Sums { open: vec![(40, 1)], complete: 0 }).await?;
    println!("40 is a sum in {} ways; {} tasks", done.result, done.balance.tasks());
    assert_eq!(done.result, 37_338); // whatever the machine and the number of places
    Ok(())
}
