//! One message of 2,048 bytes across the middle of the mesh, alone and while all other cores read across it.

use super::access::STANDARD;
use super::bare::{bare, run};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_chip::Chip;
use isles_chip::bare::rcce::{Library, Participant};
use isles_chip::topology::CoreId;
use std::cell::Cell;
use std::rc::Rc;

/// V3.
pub const BISECTION: Experiment = Experiment {
    name: "bisection",
    about: "2,048 B over 5 hops across the middle of the mesh, alone and while 46 cores read lines across it, 533/800/800",
    source: "SCC interconnect evaluation (2011); which cores it paired is not known",
    rows: Rows::Model(bisection),
};

/// Bytes of a message.
const BYTES: usize = 2_048;

/// Who plays: the outermost cores of the first row.
const PLAYERS: [u32; 2] = [0, 10];

fn bisection(chip: &Chip) -> Vec<Row> {
    let alone = message(chip, false);
    let loaded = message(chip, true);
    let family = Family { deck: "V3", unit: "µs", band: Band::Within(5.0), basis: Basis::Predicted };
    let ratio = Family { unit: "", band: Band::Within(2.0), ..family };
    vec![
        family.row("alone", 19.2, alone),
        family.row("with a loaded bisection", 19.93, loaded),
        ratio.row("loaded against alone", 19.93 / 19.2, loaded / alone),
    ]
}

/// Microseconds of half a ping-pong.
fn message(chip: &Chip, is_loaded: bool) -> f64 {
    let bare = bare(chip, STANDARD);
    let took = Rc::new(Cell::new(None));
    let rounds = |count: u32| {
        let (start, seen) = (bare.now(), Rc::clone(&took));
        took.set(None);
        run(&bare, (0..48).filter(|core| is_loaded || PLAYERS.contains(core)), move |core| {
            let took = Rc::clone(&seen);
            let here = Participant { core, participants: 48, library: Library::BARE };
            async move {
                if !PLAYERS.contains(&here.rank()) {
                    return load(&here, &took).await;
                }
                play(&here, count).await;
                if here.rank() == PLAYERS[0] {
                    took.set(Some((here.core.now() - start).nanoseconds() / 1e3));
                }
            }
        });
        took.get().expect("the first player has ended") / f64::from(2 * count)
    };
    rounds(1);
    rounds(20)
}

async fn play(here: &Participant, rounds: u32) {
    for _ in 0..rounds {
        if here.rank() == PLAYERS[0] {
            here.send(PLAYERS[1], 0, BYTES).await;
            here.receive(PLAYERS[1], 0, BYTES).await;
        } else {
            here.receive(PLAYERS[0], 0, BYTES).await;
            here.send(PLAYERS[0], 0, BYTES).await;
        }
    }
}

/// Reads lines of the core in the column as far beyond the middle, until the game is over.
async fn load(here: &Participant, over: &Cell<Option<f64>>) {
    let me = here.rank();
    let mirrored = CoreId(me / 12 * 12 + (5 - me % 12 / 2) * 2 + me % 2);
    while over.get().is_none() {
        here.core.read_line(mirrored, 100).await;
    }
}
