//! What a program of Isles sees between the cores of a tile: half of a call with bytes there and back.
//!
//! The counterpart of `ping_pong` through the whole runtime. Of the runtime's own instructions nothing is charged, nor
//! what it does to the caches; messages themselves pay for their lines of private memory.

use super::ping_pong::length;
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles::{Launch, ModelledChip, Protocol, at, now, places};
use isles_apps::registry::Failure;
use std::cell::RefCell;
use std::rc::Rc;

/// The call.
pub const ECHO: Experiment = Experiment {
    name: "echo",
    about: "half of `at!` with bytes there and back between the cores of a tile, by protocol of Isles, at 533/800/800",
    source: "ours alone; compare with ping-pong",
    instructions: "",
    rows: Rows::Runs(echo),
};

/// Bytes of a message.
const LENGTHS: [usize; 9] = [1, 32, 256, 1 << 10, 2 << 10, 8 << 10, 16 << 10, 256 << 10, 1 << 20];

/// Calls of each length.
const CALLS: u32 = 4;

fn echo() -> Result<Vec<Row>, Failure> {
    let family = Family { deck: "", unit: "µs", band: Band::Unpublished, basis: Basis::Predicted };
    let mut rows = Vec::new();
    for protocol in Protocol::OF_BUFFERS {
        for (bytes, half) in LENGTHS.into_iter().zip(halves(protocol)?) {
            rows.push(family.row(format!("{protocol}, {}", length(bytes)), f64::NAN, half));
        }
    }
    Ok(rows)
}

/// Microseconds of half a call of each length.
fn halves(protocol: Protocol) -> Result<Vec<f64>, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?;
    let chip = ModelledChip::new("scc").map_err(|error| usage(&error))?;
    let found = Rc::new(RefCell::new(Vec::new()));
    let place = Rc::clone(&found);
    let main = move || async move {
        *place.borrow_mut() = calls().await?;
        Ok::<_, isles::Error>(())
    };
    let (result, ..) =
        launch.places(2).protocol(protocol).run_on_chip(chip, main).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    Ok(found.take())
}

async fn calls() -> isles::Result<Vec<f64>> {
    let other = places().last().expect("there are two");
    let mut halves = Vec::new();
    for bytes in LENGTHS {
        let ball = vec![7_u8; bytes];
        let start = now();
        for _ in 0..CALLS {
            let back: Vec<u8> = at!(other, ball.clone()).await?;
            assert_eq!(back, ball, "the ball is the same");
        }
        halves.push((now() - start).as_secs_f64() * 1e6 / f64::from(2 * CALLS));
    }
    Ok(halves)
}
