//! Reads the file of counters, without a mapping and without contact with the run.
//!
//! Groups are read three times; see `docs/design/telemetry.md`. Invariant: whatever the file holds, a read terminates,
//! takes at most the memory that its header states, and does not affect the run.

use super::{
    ENERGY_VALUES, FINISH_VALUES, FINISHES, FINISHES_VALUES, HEADER_WORDS, LABEL_BYTES, LINKS_MAX, MAGIC,
    PHASE_BYTES, PLACE_VALUES, PLACE_WORDS, PLACES_MAX, PROGRESS_WORDS, PageLayout, STATE_WORDS, UNIT_BYTES,
    VERSION, WAITS, group_words, header,
};
use crate::counter::{COUNTERS, CounterId, names_hash};
use crate::page::output;
use crate::sample::{
    DeathCause, EnergySample, LinkSample, Liveness, OpenFinish, OutputLine, PairCount, PlaceSample,
    ProgressSample, RunEnd, Sample,
};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of attempts to read a group that its place may be writing.
const TRIES: usize = 4;

/// Error of reading counters.
#[derive(Debug)]
pub enum PageError {
    /// A system call failed.
    Unreadable(io::Error),
    /// The file is not a file of counters; the text names the fault.
    NotCounters(&'static str),
    /// The run has another version of Isles with this layout of the file.
    OtherLayout(u64),
    /// The run has another version of Isles with other counters.
    OtherCounters(CounterTable),
}

/// Table of the counters of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterTable {
    /// Number of counters.
    pub counters: u64,
    /// Hash of their names in order.
    pub names_hash: u64,
}

impl CounterTable {
    /// Returns the table of this program.
    pub(super) const OURS: CounterTable =
        CounterTable { counters: COUNTERS.len() as u64, names_hash: names_hash() };
}

impl fmt::Display for CounterTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} counters, whose names have the hash {:016x}", self.counters, self.names_hash)
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::Unreadable(cause) => write!(f, "the counters cannot be read: {cause}"),
            PageError::NotCounters(why) => write!(f, "not the counters of a run: {why}"),
            PageError::OtherLayout(theirs) => write!(
                f,
                "the counters of the run have layout {theirs}; allowed: {VERSION}, that of this program; use the \
                 program of the run's version"
            ),
            PageError::OtherCounters(theirs) => write!(
                f,
                "the run has {theirs}; allowed: those of this program, {}; use the program of the run's version",
                CounterTable::OURS
            ),
        }
    }
}

impl std::error::Error for PageError {}

impl From<io::Error> for PageError {
    fn from(cause: io::Error) -> PageError {
        PageError::Unreadable(cause)
    }
}

/// Returns the resident bytes of a process of this host; `None` if it has ended or belongs to another user.
fn resident_bytes(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64).filter(|bytes| *bytes > 0)
}

/// Reads the counters of a run.
#[derive(Debug)]
pub struct PagesReader {
    file: File,
    layout: PageLayout,
    started_unix_ms: u64,
    /// Last reading of each place.
    places: Vec<PlaceSample>,
    /// Memory of the process of each place at its last reading.
    memory: Vec<u64>,
    /// The last energy of the chip that matched the sum of all cores, and the energy of each.
    energy: (EnergySample, Vec<u64>),
    /// Done and total steps of all places since the run began.
    progress: [u64; PROGRESS_WORDS],
    finishes: Vec<Vec<OpenFinish>>,
    /// Number of messages that each place had sent when its row of peers was read, and the row.
    rows: Vec<(u64, Vec<PairCount>)>,
    missed: u64,
}

impl PagesReader {
    /// Checks the header of the file.
    ///
    /// # Errors
    /// It is not a file of counters, or is one of another version.
    pub fn open(file: File) -> Result<PagesReader, PageError> {
        let size = file.metadata()?.len();
        if size < 8 * HEADER_WORDS {
            return Err(PageError::NotCounters("it is shorter than its header"));
        }
        let words = read_words(&file, 0, HEADER_WORDS)?;
        if words[header::MAGIC] != MAGIC {
            return Err(PageError::NotCounters("its first word is different"));
        }
        if words[header::VERSION] != VERSION {
            return Err(PageError::OtherLayout(words[header::VERSION]));
        }
        let theirs = CounterTable { counters: words[header::COUNTERS], names_hash: words[header::NAMES] };
        if theirs != CounterTable::OURS {
            return Err(PageError::OtherCounters(theirs));
        }
        let (places, links) = (words[header::PLACES], words[header::LINKS]);
        if !(1..=u64::from(PLACES_MAX)).contains(&places) || links > u64::from(LINKS_MAX) {
            return Err(PageError::NotCounters("its numbers of places and links are impossible"));
        }
        let layout = PageLayout::new(places as u32, links as u32);
        if size < 8 * layout.words() {
            return Err(PageError::NotCounters("it is shorter than its header says"));
        }
        Ok(PagesReader {
            file,
            layout,
            started_unix_ms: words[header::STARTED],
            places: vec![PlaceSample::default(); places as usize],
            memory: vec![0; places as usize],
            energy: (EnergySample::default(), vec![0; places as usize]),
            progress: [0; PROGRESS_WORDS],
            finishes: vec![Vec::new(); places as usize],
            rows: vec![(0, Vec::new()); places as usize],
            missed: 0,
        })
    }

    /// Returns the time at which the run began, in milliseconds since 1970.
    pub fn started_unix_ms(&self) -> u64 {
        self.started_unix_ms
    }

    /// Returns the current counts of the run. The memory of a place is that of its process if it runs on this host;
    /// after its end, the last known value.
    ///
    /// # Errors
    /// A read failed.
    pub fn read(&mut self) -> Result<Sample, PageError> {
        self.read_places()?;
        self.read_energy()?;
        self.read_finishes()?;
        self.read_rows()?;
        let words = read_words(&self.file, 0, HEADER_WORDS)?;
        let links = words[header::LINKS_USED].min(self.layout.links.into());
        let links = read_words(&self.file, self.layout.links_at(), 2 * links)?;
        let links = links.chunks_exact(2).map(|link| LinkSample {
            from: (link[0] >> 32) as u32,
            to: link[0] as u32,
            busy_ps: link[1],
        });
        Ok(Sample {
            time_ms: words[header::HEARTBEAT],
            model_ns: words[header::MODEL],
            energy: self.energy.0,
            end: RunEnd::decode(words[header::END]),
            progress: ProgressSample {
                done: self.progress[0].saturating_sub(words[header::PHASE_BEGIN]),
                total: self.progress[1].saturating_sub(words[header::PHASE_BEGIN + 1]),
                grows: words[header::GROWS] != 0,
                unit: text(&words[header::UNIT..header::UNIT + UNIT_BYTES / 8]),
                phase: text(&words[header::PHASE..header::PHASE + PHASE_BYTES / 8]),
            },
            missed: self.missed,
            links: links.collect(),
            places: self.places.clone(),
            finishes: self.finishes.iter().flatten().cloned().collect(),
            pairs: self.rows.iter().flat_map(|(_, row)| row).copied().collect(),
        })
    }

    /// Returns `true` if the output of places is kept: in a run of up to 1,024 places.
    pub fn keeps_output(&self) -> bool {
        self.layout.keeps_output()
    }

    /// Returns the last lines that `place` has printed after number `after`; none for an unknown place.
    ///
    /// # Errors
    /// A read failed.
    pub fn output(&self, place: u32, after: u64) -> Result<Vec<OutputLine>, PageError> {
        if !self.layout.keeps_output() || place >= self.layout.places() {
            return Ok(Vec::new());
        }
        let at = self.layout.output_at(place);
        // The order matters; see `output`.
        let end = read_words(&self.file, at, 1)?[0];
        if end == 0 {
            return Ok(Vec::new());
        }
        let words = read_words(&self.file, at + output::RING_HEADER, output::RING_WORDS)?;
        let first = read_words(&self.file, at + 1, 1)?[0];
        Ok(output::decode(end, &words, first, after))
    }

    /// Reads the groups of all places; retries those that were being written.
    fn read_places(&mut self) -> Result<(), PageError> {
        let words = PLACE_WORDS;
        let (first, all) = (self.layout.place_at(0), words * u64::from(self.layout.places));
        let mut left: Vec<u32> = (0..self.layout.places).collect();
        for _ in 0..TRIES {
            let [before, values, after] = self.read_thrice(first, all)?;
            self.progress = progress(&after);
            left.retain(|place| {
                let at = *place as usize * words as usize;
                let is_whole = before[at] == after[at] && before[at].is_multiple_of(2);
                if is_whole && before[at] > 0 {
                    decode_place(&values[at + 1..], &mut self.places[*place as usize]);
                }
                !is_whole
            });
            if left.is_empty() {
                break;
            }
        }
        self.missed += left.len() as u64;
        let deaths = read_words(&self.file, self.layout.deaths_at(), self.layout.places.into())?;
        let mut last = (0, None);
        for ((place, memory), word) in self.places.iter_mut().zip(&mut self.memory).zip(deaths) {
            place.death = DeathCause::decode(word);
            // Places of one process follow each other.
            if place.process != last.0 {
                last = (place.process, resident_bytes(place.process));
            }
            *memory = last.1.unwrap_or(*memory);
            place.values[CounterId::MemoryBytes.index()] = *memory;
        }
        Ok(())
    }

    /// Reads the energy of the chip and of its cores as of one time; otherwise keeps both from the previous reading.
    fn read_energy(&mut self) -> Result<(), PageError> {
        let [before, values, after] = self.read_thrice(header::ENERGY as u64, ENERGY_VALUES as u64 + 1)?;
        let is_whole = before[0] == after[0] && before[0].is_multiple_of(2);
        let is_of_then = |place: &PlaceSample| place.value(CounterId::EnergyTime) == values[1];
        let (chip, cores) = &mut self.energy;
        if is_whole && self.places.iter().all(is_of_then) {
            *chip = EnergySample { until_ns: values[1], nanojoules: values[2] };
            for (core, place) in cores.iter_mut().zip(&self.places) {
                *core = place.value(CounterId::Energy);
            }
        }
        for (core, place) in cores.iter().zip(&mut self.places) {
            place.values[CounterId::Energy.index()] = *core;
            place.values[CounterId::EnergyTime.index()] = chip.until_ns;
        }
        Ok(())
    }

    /// Reads the open finishes of all places.
    fn read_finishes(&mut self) -> Result<(), PageError> {
        for place in 0..self.layout.places {
            let index = place as usize;
            if self.places[index].value(CounterId::FinishesOpen) == 0 {
                self.finishes[index].clear();
                continue;
            }
            let (at, words) = (self.layout.finishes_at(place), group_words(FINISHES_VALUES));
            let mut is_whole = false;
            for _ in 0..TRIES {
                let [before, values, after] = self.read_thrice(at, words)?;
                is_whole = before[0] == after[0] && before[0].is_multiple_of(2);
                if is_whole {
                    self.finishes[index] = decode_finishes(place, &values[1..]);
                    break;
                }
            }
            self.missed += u64::from(!is_whole);
        }
        Ok(())
    }

    /// Reads the rows of peers of all places that have sent messages since the last reading.
    fn read_rows(&mut self) -> Result<(), PageError> {
        let peers = self.layout.peers();
        for from in 0..peers {
            let sent = self.places[from as usize].value(CounterId::MessagesSent);
            let (seen, row) = &mut self.rows[from as usize];
            if *seen == sent {
                continue;
            }
            let words = read_words(&self.file, self.layout.peers_at(from), 2 * u64::from(peers))?;
            let pairs = words.chunks_exact(2).zip(0..).map(|(pair, to)| PairCount {
                from,
                to,
                messages: pair[0],
                bytes: pair[1],
            });
            (*seen, *row) = (sent, pairs.filter(|pair| pair.messages > 0).collect());
        }
        Ok(())
    }

    /// Reads the same words three times in order; system calls are not reordered.
    fn read_thrice(&self, at: u64, words: u64) -> Result<[Vec<u64>; 3], PageError> {
        let read = || read_words(&self.file, at, words);
        Ok([read()?, read()?, read()?])
    }
}

fn read_words(file: &File, at: u64, words: u64) -> Result<Vec<u64>, PageError> {
    let mut bytes = vec![0; 8 * words as usize];
    file.read_exact_at(&mut bytes, 8 * at)?;
    let (whole, _) = bytes.as_chunks::<8>();
    Ok(whole.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

/// Returns the sums of the progress of all places.
fn progress(places: &[u64]) -> [u64; PROGRESS_WORDS] {
    let mut sums = [0_u64; PROGRESS_WORDS];
    for place in places.chunks_exact(PLACE_WORDS as usize) {
        for (sum, word) in sums.iter_mut().zip(&place[PLACE_VALUES + 1..]) {
            *sum = sum.saturating_add(*word);
        }
    }
    sums
}

/// Returns the text in `words` up to its first zero byte.
fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn decode_place(values: &[u64], place: &mut PlaceSample) {
    place.liveness = Liveness::decode(values[0]);
    (place.at_ns, place.copies, place.process) = (values[1], values[2], values[3] as u32);
    let counters = place.values.len();
    place.values.copy_from_slice(&values[STATE_WORDS..STATE_WORDS + counters]);
}

fn decode_finishes(home: u32, values: &[u64]) -> Vec<OpenFinish> {
    let listed = values[0].min(FINISHES as u64) as usize;
    let one = |values: &[u64]| {
        let waits = values[4..4 + WAITS].iter().filter(|word| **word != 0);
        OpenFinish {
            id: values[0],
            home,
            parent: values[1].checked_sub(1),
            since_ms: values[2],
            live: values[3],
            waits_for: waits.map(|word| ((word >> 32) as u32, *word as u32)).collect(),
            label: text(&values[4 + WAITS..4 + WAITS + LABEL_BYTES / 8]),
        }
    };
    values[1..].chunks_exact(FINISH_VALUES).take(listed).map(one).collect()
}
