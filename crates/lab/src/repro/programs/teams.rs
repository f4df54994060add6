//! Broadcasts and reductions of teams among all cores of the SCC, by each tree and by the model's choice.
//!
//! The counterpart of `collective` through the whole runtime: messages from place to place, where the papers put lines
//! into buffers. The runtime's own instructions are not charged.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use isles::prelude::*;
use isles::{Broadcast, Launch, ModelledChip, Reduce, Shape};
use isles_app::Failure;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The collectives of teams.
pub(crate) const TEAMS: Experiment = Experiment {
    name: "teams",
    about: "collectives of a team of 48 places, by tree and as the model chooses, at 533/800/800",
    source: "ours alone; compare with broadcast and collectives",
    instructions: "",
    rows: RowSource::Runs(teams),
};

/// Numbers of bytes of a slice.
const LENGTHS: [usize; 5] = [32, 1 << 10, 2 << 10, 4 << 10, 16 << 10];

/// Broadcasts by tree, and by the model's choice.
const BROADCASTS: [Broadcast; 10] = [
    Broadcast::By(Shape::Flat),
    Broadcast::By(Shape::Binomial),
    Broadcast::By(Shape::Chain),
    Broadcast::By(Shape::Fan(2)),
    Broadcast::By(Shape::Fan(3)),
    Broadcast::By(Shape::Fan(7)),
    Broadcast::ScatterAllGather,
    Broadcast::Asynchronous(3),
    Broadcast::Asynchronous(7),
    Broadcast::Auto,
];

fn teams() -> Result<Vec<Row>, Failure> {
    let family = Family {
        deck: "",
        unit: "µs",
        band: Band::Unpublished,
        basis: Basis::Predicted,
        source: "",
        reading: "",
    };
    let mut rows = Vec::new();
    let mut put = |name: String, times: Vec<(u64, u64)>, is_reduction: bool| {
        for (bytes, (broadcast, reduction)) in LENGTHS.into_iter().zip(times) {
            let nanoseconds = if is_reduction { reduction } else { broadcast };
            let title = Title::from(name.as_str()).over(Quantity::length(bytes));
            rows.push(family.row(title, f64::NAN, nanoseconds as f64 / 1e3));
        }
    };
    for broadcast in BROADCASTS {
        put(format!("broadcast {broadcast}"), run(broadcast, Reduce::Logarithmic)?, false);
    }
    for reduce in [Reduce::Serial, Reduce::Logarithmic, Reduce::Auto] {
        put(format!("reduction {reduce}"), run(Broadcast::By(Shape::Binomial), reduce)?, true);
    }
    Ok(rows)
}

/// Returns the nanoseconds of a broadcast and of a reduction of each length.
fn run(broadcast: Broadcast, reduce: Reduce) -> Result<Vec<(u64, u64)>, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?;
    let launch = launch.places(48).broadcast(broadcast).reduce(reduce);
    let chip = ModelledChip::new("scc").map_err(|error| usage(&error))?;
    let found = Rc::new(RefCell::new(Vec::new()));
    let place = Rc::clone(&found);
    let main = move || async move {
        for bytes in LENGTHS {
            let times = [false, true].map(|is_reduction| took(bytes, is_reduction));
            let [broadcast, reduction] = times;
            let pair = (broadcast.await?, reduction.await?);
            place.borrow_mut().push(pair);
        }
        Ok::<_, isles::Error>(())
    };
    let (result, ..) = launch.run_on_chip(chip, main).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    Ok(found.take())
}

/// Returns the time from the start of the first member to the end of the last one, in nanoseconds.
async fn took(bytes: usize, is_reduction: bool) -> isles::Result<u64> {
    let spans = PlaceLocal::new(|| (0, 0)).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let (team, mut slice) = (Team::world(), vec![7_u64; bytes / 8]);
                // The first question to the model takes no modelled time.
                team.barrier().await?;
                let began = now();
                if is_reduction {
                    team.reduce_slice(0, &mut slice, |one, other| one + other).await?;
                } else {
                    team.broadcast_slice(0, &mut slice).await?;
                }
                *spans.lock() = (began.as_nanos() as u64, now().as_nanos() as u64);
                // A member that ended immediately would report to the first place while others are still busy.
                let patience = Duration::from_micros(500 + bytes as u64 * 4 / 5);
                while now() < began + patience {
                    work(Cycles(200));
                    isles::yield_now().await;
                }
            });
        }
    })
    .await?;
    let (first, last) =
        spans.reduce(|one: (u64, u64), other| (one.0.min(other.0), one.1.max(other.1))).await?;
    Ok(last - first)
}
