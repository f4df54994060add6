//! One message of 2,048 bytes across the middle of the mesh, alone and with all other cores sending across it too.

use super::access::STANDARD;
use super::bare::{bare, run};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_chip::Chip;
use isles_chip::bare::rcce::{Library, Participant};
use std::cell::Cell;
use std::rc::Rc;

/// V3.
pub const BISECTION: Experiment = Experiment {
    name: "bisection",
    about: "2,048 B over 5 hops across the middle of the mesh, alone and with 23 other pairs doing the same",
    source: "SCC interconnect evaluation (2011); which cores it paired is not known",
    rows: Rows::Model(bisection),
};

/// Bytes of a message.
const BYTES: usize = 2_048;

fn bisection(chip: &Chip) -> Vec<Row> {
    let alone = message(chip, 1);
    let loaded = message(chip, 24);
    let family = Family { deck: "V3", unit: "µs", band: Band::Within(5.0), basis: Basis::Predicted };
    let ratio = Family { unit: "", band: Band::Within(2.0), ..family };
    vec![
        family.row("alone", 19.2, alone),
        family.row("with a loaded bisection", 19.93, loaded),
        ratio.row("loaded against alone", 19.93 / 19.2, loaded / alone),
    ]
}

/// Microseconds of half a ping-pong between the outermost cores of the first row, among so many pairs.
fn message(chip: &Chip, pairs: u32) -> f64 {
    let bare = bare(chip, STANDARD);
    // Core c of column x plays with the one of column 5 - x in the same row.
    let partner = |core: u32| core / 12 * 12 + (5 - core % 12 / 2) * 2 + core % 2;
    let left = |core: &u32| core % 12 < 6;
    let players: Vec<u32> =
        (0..48).filter(left).take(pairs as usize).flat_map(|core| [core, partner(core)]).collect();
    let end = Rc::new(Cell::new(0.0));
    let rounds = |count: u32| {
        let start = bare.now();
        let seen = Rc::clone(&end);
        run(&bare, players.iter().copied(), move |core| {
            let (end, here) =
                (Rc::clone(&seen), Participant { core, participants: 48, library: Library::BARE });
            async move {
                let (me, other) = (here.rank(), partner(here.rank()));
                for _ in 0..count {
                    if left(&me) {
                        here.send(other, 0, BYTES).await;
                        here.receive(other, 0, BYTES).await;
                    } else {
                        here.receive(other, 0, BYTES).await;
                        here.send(other, 0, BYTES).await;
                    }
                }
                if me == 0 {
                    end.set((here.core.now() - start).nanoseconds() / 1e3);
                }
            }
        });
        end.get() / f64::from(2 * count)
    };
    rounds(1);
    rounds(20)
}
