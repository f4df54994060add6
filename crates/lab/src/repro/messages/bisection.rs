//! One message of 2,048 bytes across the middle of the mesh, alone and while all other cores read across it.

use crate::repro::access::STANDARD;
use crate::repro::bare::{bare, run};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_chip::Chip;
use isles_chip::bare::rcce::{LibraryCosts, Participant};
use isles_chip::topology::CoreId;
use std::cell::Cell;
use std::rc::Rc;

/// V3 of the validation deck.
pub(crate) const BISECTION: Experiment = Experiment {
    name: "bisection",
    about: "2,048 B over 5 hops across the middle of the mesh, alone and while 46 cores read lines across it, 533/800/800",
    source: "SCC interconnect evaluation (2011); which cores it paired is not known",
    instructions: "nothing beside the lines but 20 cycles a call (bare), because the source measured\n\
                   the times of lines (V1) with its own copy, so they hold its instructions. Chosen with the\n\
                   message alone in view; where a row says so, iRCCE's",
    rows: RowSource::Model(bisection),
};

/// Bytes of a message.
const BYTES: usize = 2_048;

/// Sender and receiver of the message: the outermost cores of the first row.
const PLAYERS: [u32; 2] = [0, 10];

/// Number of rows of cores, of cores in a row, and of cores in half a row.
const ROWS: u32 = 4;
const ROW: u32 = 12;
const HALF: u32 = ROW / 2;

fn bisection(chip: &Chip) -> Vec<Row> {
    // The bare copy was chosen with the figure of the message alone in view; iRCCE's was not.
    let mut rows = Vec::from(played(chip, "V3", "", LibraryCosts::BARE, Basis::Calibrated));
    rows.extend(played(chip, "", ", iRCCE's instructions", LibraryCosts::IRCCE, Basis::Predicted));
    rows.extend(RECOVERIES.map(|(what, change)| recovering(chip, what, change)));
    rows
}

/// Other recovery times of links, which the slides' broadcast suggests.
const RECOVERIES: [(&str, &str); 2] = [
    ("links that recover at once", "links.recovery=0"),
    ("links that recover for 6 cycles", "links.recovery=6"),
];

/// Returns the row of the ratio with another constant of the links.
fn recovering(chip: &Chip, what: &str, change: &str) -> Row {
    let chip = chip.clone().with_constants(change, None);
    let chip = chip.unwrap_or_else(|fault| panic!("a constant of the chip: {fault:?}"));
    let [_, _, ratio] = played(&chip, "", &format!(", {what}"), LibraryCosts::BARE, Basis::Predicted);
    ratio
}

/// Returns the three figures with the instructions of a library; `basis` is that of the message alone.
fn played(chip: &Chip, deck: &'static str, with: &str, library: LibraryCosts, basis: Basis) -> [Row; 3] {
    let [alone, loaded] = [false, true].map(|is_loaded| message(chip, library, is_loaded));
    let family = Family { deck, unit: "µs", band: Band::Within(5.0), basis, source: "002:207", reading: "" };
    // The recovery time of links after a packet was fitted to the ratio, and this load chosen with it in view.
    let fitted = Family { basis: Basis::Calibrated, source: "002:201", ..family };
    let ratio =
        Family { unit: "", band: Band::Within(2.0), basis: Basis::Derived, source: "002:201-207", ..fitted };
    let ratio = ratio.reading("19.93 / 19.2: “19.93 microseconds”, “19.2 microseconds”");
    [
        family.row(format!("alone{with}"), 19.2, alone),
        fitted.row(format!("with a loaded bisection{with}"), 19.93, loaded),
        ratio.row(format!("loaded / alone{with}"), 19.93 / 19.2, loaded / alone),
    ]
}

/// Returns the microseconds of half a ping-pong.
fn message(chip: &Chip, library: LibraryCosts, is_loaded: bool) -> f64 {
    let bare = bare(chip, STANDARD);
    let took = Rc::new(Cell::new(None));
    let rounds = |count: u32| {
        let (start, seen) = (bare.now(), Rc::clone(&took));
        took.set(None);
        run(&bare, (0..48).filter(|core| is_loaded || PLAYERS.contains(core)), move |core| {
            let took = Rc::clone(&seen);
            let here = Participant { core, participants: 48, library };
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

/// Reads a line of each core beyond the middle in turn, until the ping-pong ends.
///
/// Each core begins with a different one. If each core read one core only, the time between its reads would always be
/// the same, all cores would be synchronized after a few lines, and they would not interfere.
async fn load(here: &Participant, over: &Cell<Option<f64>>) {
    let (row, column) = (here.rank() / ROW, here.rank() % ROW);
    let beyond = if column < HALF { HALF } else { 0 };
    for turn in row * HALF + column % HALF.. {
        if over.get().is_some() {
            return;
        }
        let (row, column) = (turn / HALF % ROWS, turn % HALF);
        here.core.read_line(CoreId(row * ROW + beyond + column), 100).await;
    }
}
