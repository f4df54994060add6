//! The collectives of the interconnect evaluation in its own set-up, and their scaling with the number of cores.
//!
//! The slides switch the second-level cache off and do not time the copy from memory into a buffer (002:171-175). Here,
//! data therefore begins and ends in message buffers, and only single accesses are charged, because the times of lines
//! were measured with the source's own copy. The slides do not say if the factors 22 and 6.4 are relative to the naive
//! form that they draw. Up to half a buffer, no core polls a flag. Longer messages are pipelined (002:175): the next
//! piece goes into one half of a buffer while the other half is fetched, and flags tell which piece is ready and which
//! was fetched. The slides do not give the size of their pieces.

use super::access::STANDARD;
use super::bare::{bare, run};
use super::quantity::{Quantity, Title};
use super::row::{Band, Basis, Family, Row};
use isles_chip::Chip;
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::bare::{BareCore, LINE_BYTES};
use isles_chip::topology::CoreId;

/// Number of all cores.
const CORES: u32 = 48;

/// Numbers of cores over which the slides show both collectives.
const SCALE: [u32; 7] = [2, 4, 8, 16, 24, 32, CORES];

/// Lines of a message: two short ones, and the largest that half a buffer holds.
const LENGTHS: [u32; 3] = [1, 8, PIECE];

/// Lines of messages that are pipelined, twice and four times a buffer.
const PIPELINED: [u32; 2] = [512, 1024];

/// Lines of a piece; a buffer holds two pieces beside the core's own result.
const PIECE: u32 = 64;

/// The line for a flag of core 0; those of the others follow.
const FLAGS: u32 = 192;

/// The line for flags of the core from which a core fetches.
const FLAG_OF_SOURCE: u32 = FLAGS + CORES;

/// Cycles of one poll of a flag.
const LOOK_CYCLES: u64 = LibraryCosts::BARE.look;

/// Message length of the rows over the number of cores, in lines.
const SCALED: u32 = 64;

/// First line of a buffer where a core stores its own result.
const OWN: u32 = 128;

/// Cycles to add a line of eight words, with loads and stores in the first-level cache, as in the reductions.
const ADD_CYCLES: u64 = 48;

/// A collective of `lines` lines among `cores` cores, as one core executes it.
#[derive(Clone, Copy)]
struct Collective {
    cores: u32,
    lines: u32,
}

impl Collective {
    fn others(self) -> impl Iterator<Item = CoreId> {
        (1..self.cores).map(CoreId)
    }

    /// The root writes into the buffers one after the other.
    async fn naive_put(self, core: BareCore) {
        if core.id().0 == 0 {
            for other in self.others() {
                for line in 0..self.lines {
                    core.write_line(other, line, [1; LINE_BYTES]).await;
                }
            }
        }
    }

    /// All cores fetch from the buffer of the root into their own.
    async fn parallel_get(self, core: BareCore) {
        if core.id().0 > 0 {
            for line in 0..self.lines {
                let content = core.read_line(CoreId(0), line).await;
                core.write_line(core.id(), OWN + line, content).await;
            }
        }
    }

    /// The root fetches from one core after the other and adds.
    async fn naive_reduce(self, core: BareCore) {
        if core.id().0 == 0 {
            for other in self.others() {
                self.add_from(&core, other).await;
            }
        }
    }

    /// In step *k*, each core whose number has bit *k* and all lower bits clear adds the sum of the core with the
    /// number 2^*k* higher. That sum is assumed to be ready: all cores begin a step at the same time, and a step takes
    /// the same time on all.
    async fn logarithmic(self, core: BareCore) {
        let me = core.id().0;
        for bit in 0..self.cores.next_power_of_two().trailing_zeros() {
            let other = me + (1 << bit);
            if me.is_multiple_of(2 << bit) && other < self.cores {
                self.add_from(&core, CoreId(other)).await;
            }
        }
    }

    async fn add_from(self, core: &BareCore, other: CoreId) {
        for line in 0..self.lines {
            let content = core.read_line(other, line).await;
            core.compute(ADD_CYCLES).await;
            core.write_line(core.id(), OWN + line, content).await;
        }
    }
}

/// The same forms for messages that do not fit: in pieces, with flags between the owner of a piece and its reader.
impl Collective {
    /// Returns the numbers of the pieces, from 1, as in flags.
    fn pieces(self) -> impl Iterator<Item = u8> {
        1..=(self.lines / PIECE) as u8
    }

    /// Returns the first line of a piece in a buffer.
    fn half(piece: u8) -> u32 {
        u32::from(piece % 2) * PIECE
    }

    /// Writes `piece` into the line `flag` of another core.
    async fn set_flag(core: &BareCore, to: CoreId, flag: u32, piece: u8) {
        core.write_line(to, flag, [piece; LINE_BYTES]).await;
    }

    /// Waits until the flag is `piece` or a later one; 0 needs no wait.
    async fn wait_flag(core: &BareCore, flag: u32, piece: u8) {
        if piece > 0 {
            core.wait_line(flag, LOOK_CYCLES, |said| said[0] >= piece).await;
        }
    }

    async fn naive_put_of_pieces(self, core: BareCore) {
        let me = core.id();
        if me.0 > 0 {
            for piece in self.pieces() {
                Self::wait_flag(&core, FLAG_OF_SOURCE, piece).await;
                Self::set_flag(&core, CoreId(0), FLAGS + me.0, piece).await;
            }
            return;
        }
        for other in self.others() {
            for piece in self.pieces() {
                Self::wait_flag(&core, FLAGS + other.0, piece.saturating_sub(2)).await;
                for line in 0..PIECE {
                    core.write_line(other, Self::half(piece) + line, [1; LINE_BYTES]).await;
                }
                Self::set_flag(&core, other, FLAG_OF_SOURCE, piece).await;
            }
        }
    }

    async fn parallel_get_of_pieces(self, core: BareCore) {
        let me = core.id();
        for piece in self.pieces() {
            if me.0 == 0 {
                for other in self.others() {
                    Self::wait_flag(&core, FLAGS + other.0, piece.saturating_sub(2)).await;
                }
                for other in self.others() {
                    Self::set_flag(&core, other, FLAG_OF_SOURCE, piece).await;
                }
            } else {
                Self::wait_flag(&core, FLAG_OF_SOURCE, piece).await;
                for line in 0..PIECE {
                    let content = core.read_line(CoreId(0), Self::half(piece) + line).await;
                    core.write_line(me, OWN + line, content).await;
                }
                Self::set_flag(&core, CoreId(0), FLAGS + me.0, piece).await;
            }
        }
    }

    async fn naive_reduce_of_pieces(self, core: BareCore) {
        let me = core.id();
        if me.0 > 0 {
            for piece in self.pieces() {
                Self::signal_piece(&core, CoreId(0), piece).await;
            }
            return;
        }
        for other in self.others() {
            for piece in self.pieces() {
                Self::add_piece(&core, other, piece).await;
            }
        }
    }

    /// Like `logarithmic`, but each piece goes up the tree behind the previous one.
    async fn logarithmic_of_pieces(self, core: BareCore) {
        let me = core.id().0;
        for piece in self.pieces() {
            for bit in 0..self.cores.next_power_of_two().trailing_zeros() {
                if !me.is_multiple_of(2 << bit) {
                    Self::signal_piece(&core, CoreId(me - (1 << bit)), piece).await;
                    break;
                }
                let other = me + (1 << bit);
                if other < self.cores {
                    Self::add_piece(&core, CoreId(other), piece).await;
                }
            }
        }
    }

    /// Signals to `to` that a piece is ready, which replaces the one before the last.
    async fn signal_piece(core: &BareCore, to: CoreId, piece: u8) {
        Self::wait_flag(core, FLAG_OF_SOURCE, piece.saturating_sub(2)).await;
        Self::set_flag(core, to, FLAGS + core.id().0, piece).await;
    }

    async fn add_piece(core: &BareCore, other: CoreId, piece: u8) {
        Self::wait_flag(core, FLAGS + other.0, piece).await;
        for line in 0..PIECE {
            let content = core.read_line(other, Self::half(piece) + line).await;
            core.compute(ADD_CYCLES).await;
            core.write_line(core.id(), OWN + line, content).await;
        }
        Self::set_flag(core, other, FLAG_OF_SOURCE, piece).await;
    }
}

/// Form of a collective.
#[derive(Clone, Copy)]
enum Form {
    NaivePut,
    ParallelGet,
    NaiveReduce,
    Logarithmic,
}

/// Returns the microseconds of a form.
fn took(chip: &Chip, form: Form, collective: Collective) -> f64 {
    let bare = bare(chip, STANDARD);
    let took = run(&bare, 0..collective.cores, |core| async move {
        if collective.lines > PIECE {
            return match form {
                Form::NaivePut => collective.naive_put_of_pieces(core).await,
                Form::ParallelGet => collective.parallel_get_of_pieces(core).await,
                Form::NaiveReduce => collective.naive_reduce_of_pieces(core).await,
                Form::Logarithmic => collective.logarithmic_of_pieces(core).await,
            };
        }
        match form {
            Form::NaivePut => collective.naive_put(core).await,
            Form::ParallelGet => collective.parallel_get(core).await,
            Form::NaiveReduce => collective.naive_reduce(core).await,
            Form::Logarithmic => collective.logarithmic(core).await,
        }
    });
    took.nanoseconds() / 1e3
}

/// Returns the rows: both factors in the slides' set-up, then both collectives over the number of cores.
pub fn rows(chip: &Chip) -> Vec<Row> {
    let factor = Family {
        deck: "",
        unit: "",
        band: Band::Within(25.0),
        basis: Basis::Predicted,
        source: "002:45",
        reading: "",
    };
    let mut rows = Vec::new();
    for (name, published, source, [old, new]) in [
        ("broadcast", 22.0, "002:45", [Form::NaivePut, Form::ParallelGet]),
        ("reduction", 6.4, "002:46", [Form::NaiveReduce, Form::Logarithmic]),
    ] {
        for lines in LENGTHS.into_iter().chain(PIPELINED) {
            let all = Collective { cores: CORES, lines };
            let how = if lines > PIECE { "as the slides, pipelined" } else { "as the slides" };
            let title = Title::from(name).over(Quantity::lines(lines)).and(format!("{how}, gain over naive"));
            rows.push(factor.at(source).row(title, published, took(chip, old, all) / took(chip, new, all)));
        }
    }
    // "Network contention doesn't seem to hurt" is read as the time of two cores, within a quarter.
    let derived = Family { basis: Basis::Derived, ..factor };
    let (flat, by_log) = (derived.at("002:306"), derived.at("002:359"));
    let flat = flat.reading("1: “contention doesn't seem to hurt broadcast performance”");
    let by_log = by_log.reading("log2 of the cores: “reduce scales as log p”");
    rows.extend(over_cores(chip, flat, "broadcast", Form::ParallelGet, |_| 1.0));
    let log = |cores: u32| f64::from(cores.next_power_of_two().trailing_zeros());
    rows.extend(over_cores(chip, by_log, "reduction", Form::Logarithmic, log));
    rows.extend(without_contention(chip, factor, flat));
    rows
}

/// Titles of rows, and changes of the constants that determine the interference of readers of one buffer.
const CONTENTION: [(&str, &str); 3] = [
    ("links that recover at once", "links.recovery=0"),
    ("links that recover for 6 cycles", "links.recovery=6"),
    ("a port for 48 readers", "buffer.readers_free=48"),
];

/// Returns the slides' broadcast with less interference of its readers, to show on which constant the factor depends.
fn without_contention(chip: &Chip, factor: Family, flat: Family) -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, change) in CONTENTION {
        let freed = chip.clone().with_constants(change, None);
        let freed = freed.unwrap_or_else(|fault| panic!("a constant of the chip: {fault:?}"));
        let get = |cores| took(&freed, Form::ParallelGet, Collective { cores, lines: SCALED });
        let put = took(&freed, Form::NaivePut, Collective { cores: CORES, lines: SCALED });
        let title = |text: &str| Title::from("broadcast").over(Quantity::lines(SCALED)).and(text.to_owned());
        rows.push(factor.row(
            title(&format!("as the slides, {what}, gain over naive")),
            22.0,
            put / get(CORES),
        ));
        rows.push(flat.row(
            title(&format!("time of {CORES} cores / 2, {what}")),
            1.0,
            get(CORES) / get(SCALE[0]),
        ));
    }
    rows
}

/// Returns the times relative to that of two cores.
fn over_cores(
    chip: &Chip,
    family: Family,
    name: &str,
    form: Form,
    published: impl Fn(u32) -> f64,
) -> Vec<Row> {
    let of = |cores| took(chip, form, Collective { cores, lines: SCALED });
    let two = of(SCALE[0]);
    let many = SCALE.into_iter().skip(1);
    let row = |cores| {
        let title = Title::from(name)
            .over(Quantity::lines(SCALED))
            .over(Quantity::cores(cores))
            .and("time / 2 cores");
        family.row(title, published(cores), of(cores) / two)
    };
    many.map(row).collect()
}
