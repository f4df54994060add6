//! Report of a run on a chip: times, ledgers, changes of gears, and the traffic on links and between places.

use crate::cores::LineTraffic;
use crate::demand::undeclared::UndeclaredRegion;
use crate::energy::Energy;
use crate::shared::Stale;
use isles_chip::kernel::Digest;
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::{CoreId, Link, LinkEnd};
use isles_transport::PlaceId;
use isles_transport::ordered::OrderedMap;
use std::fmt;

/// Category of a core's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCategory {
    /// Work declared by the program with `work`, within the core and its first-level cache.
    Working,
    /// Lines of private memory for this work, from the second-level cache or a memory controller.
    Fetching,
    /// Instructions of the message protocol.
    Handling,
    /// Moving lines between private memory and message buffers, and bytes of shared memory.
    Copying,
    /// Polling for messages, in a turn.
    Polling,
    /// Polling for messages while there were none.
    Waiting,
    /// Halted between polls for messages.
    Sleeping,
    /// Program time measured on the host; see [`ChipWorld::charge`](crate::ChipWorld::charge).
    Measured,
}

/// All categories, in the order of a ledger.
pub(crate) const TIME_CATEGORIES: [(TimeCategory, &str); 8] = [
    (TimeCategory::Working, "working"),
    (TimeCategory::Fetching, "fetching"),
    (TimeCategory::Handling, "handling"),
    (TimeCategory::Copying, "copying"),
    (TimeCategory::Polling, "polling"),
    (TimeCategory::Waiting, "waiting"),
    (TimeCategory::Sleeping, "sleeping"),
    (TimeCategory::Measured, "measured"),
];

/// Time of a core by category; the sum is the elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger([u64; TIME_CATEGORIES.len()]);

impl Ledger {
    /// Returns the time of `category`.
    pub fn time(&self, category: TimeCategory) -> Picoseconds {
        Picoseconds(self.0[category as usize])
    }

    /// Returns the busy time of the core: everything but polling, waiting and sleeping.
    pub fn busy(&self) -> Picoseconds {
        let idle = [TimeCategory::Polling, TimeCategory::Waiting, TimeCategory::Sleeping];
        Picoseconds(self.total().0 - idle.iter().map(|category| self.time(*category).0).sum::<u64>())
    }

    /// Returns the total time.
    pub fn total(&self) -> Picoseconds {
        Picoseconds(self.0.iter().sum())
    }

    #[inline]
    pub(crate) fn add(&mut self, category: TimeCategory, time: Picoseconds) {
        self.0[category as usize] += time.0;
    }
}

/// Numbers of changes of rates and voltages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GearChanges {
    /// Changes of the rate of a frequency domain.
    pub rates: u64,
    /// Changes of the voltage of a voltage domain.
    pub voltages: u64,
}

/// File accesses of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTraffic {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of reads that missed the server's memory.
    pub cold: u64,
    /// Total number of bytes.
    pub bytes: u64,
    /// Total time that places waited for files.
    pub waited: Picoseconds,
}

impl FileTraffic {
    /// Returns the rate at which the server has served waiting places, in bytes per second; `None` if no place waited.
    pub fn rate(&self) -> Option<f64> {
        (self.waited.0 > 0).then(|| self.bytes as f64 * 1e12 / self.waited.0 as f64)
    }
}

impl fmt::Display for FileTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileTraffic { reads, writes, cold, bytes, waited } = self;
        let waited = waited.0 as f64 / 1e9;
        write!(
            f,
            "{reads} read, {cold} of them cold, {writes} written; {bytes} bytes; places waited {waited:.3} ms"
        )?;
        self.rate().map_or(Ok(()), |rate| write!(f, ", at {:.1} MB/s", rate / 1e6))
    }
}

/// Report of a run on a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Time at the core of the first place.
    pub time: Picoseconds,
    /// Number of messages received.
    pub messages: u64,
    /// Bytes of these messages, without headers.
    pub bytes: u64,
    /// Lines of message buffers written and read.
    pub lines: LineTraffic,
    /// `true` if programs have declared operations by class, with costs from the chip file.
    pub by_class: bool,
    /// Lines of private memory fetched from controllers, by the declared work.
    pub fetched: u64,
    /// Busy time of each memory controller, by its number; empty if none was ever busy.
    pub controllers: Vec<Picoseconds>,
    /// `true` if a memory controller was ever saturated.
    pub is_memory_crowded: bool,
    /// File accesses of programs.
    pub files: FileTraffic,
    /// Flits times links that they crossed.
    pub flit_hops: u64,
    /// Digest and number of all events, to compare runs.
    pub digest: Digest,
    /// The core of each place.
    pub cores: Vec<CoreId>,
    /// Time of each place by category, until its own clock.
    pub ledgers: Vec<Ledger>,
    /// Changes of rates and voltages.
    pub shifts: GearChanges,
    /// Reads of shared memory that missed a write; `None` if no place has shared memory.
    pub stale: Option<Stale>,
    /// First line of the program with steps that may walk an undeclared region; `None` if there is none.
    pub undeclared_region: Option<UndeclaredRegion>,
    /// Energy drawn by the chip; `None` if its power is not published.
    pub energy: Option<Energy>,
}

/// Maximum number of memory controllers that a report lists.
const CONTROLLERS_LISTED_MAX: usize = 16;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { time, messages, bytes, lines, fetched, flit_hops, digest, .. } = self;
        writeln!(f, "predicted time  {:.6} ms", time.0 as f64 / 1e9)?;
        writeln!(
            f,
            "moved           {bytes} bytes in {messages} messages; {} lines written, {} read, {fetched} fetched, \
             {flit_hops} flit-hops",
            lines.written, lines.read
        )?;
        let total: u128 = self.ledgers.iter().map(|ledger| u128::from(ledger.total().0)).sum();
        let share = |(category, name)| {
            let spent: u128 = self.ledgers.iter().map(|ledger| u128::from(ledger.time(category).0)).sum();
            let permille = spent * 1_000 / total.max(1);
            (spent > 0).then(|| format!("{name} {}.{} %", permille / 10, permille % 10))
        };
        let shares: Vec<String> = TIME_CATEGORIES.into_iter().filter_map(share).collect();
        writeln!(f, "cores           {}", shares.join(", "))?;
        writeln!(f, "events          {}", digest.events())?;
        writeln!(f, "digest          {digest}")?;
        // A list of thousands, one for each node, would be unreadable.
        let busy = self.controllers.iter().map(|busy| busy.0 as f64 / time.0.max(1) as f64 * 100.0);
        if (1..=CONTROLLERS_LISTED_MAX).contains(&self.controllers.len()) {
            let busy: Vec<String> = busy.map(|percent| format!("{percent:.1} %")).collect();
            writeln!(f, "controllers     busy {}", busy.join(", "))?;
        }
        if self.files.reads + self.files.writes > 0 {
            writeln!(f, "files           {}", self.files)?;
        }
        let GearChanges { rates, voltages } = self.shifts;
        if rates + voltages > 0 {
            writeln!(f, "clocks          {rates} changes of rates, {voltages} of voltages")?;
        }
        if let Some(stale) = &self.stale {
            writeln!(f, "shared memory   {} stale reads", stale.number)?;
            for read in &stale.first {
                writeln!(f, "  {}", read.describe("place"))?;
            }
        }
        match &self.energy {
            Some(energy) => write!(f, "{energy}"),
            None => write!(f, "energy          unknown: the chip's file has no power model"),
        }
    }
}

/// Load of one directed link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLoad {
    /// The link.
    pub link: Link,
    /// Start and end of the link.
    pub ends: (LinkEnd, LinkEnd),
    /// Number of flits that crossed the link.
    pub flits: u64,
    /// Time during which the link carried them.
    pub busy: Picoseconds,
    /// Busy time as a fraction of the run, from its start to the latest clock of a place.
    pub utilisation: f64,
}

/// Messages from one place to another that the receiver has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The sender.
    pub source: PlaceId,
    /// The receiver.
    pub target: PlaceId,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of these messages, without headers.
    pub bytes: u64,
}

/// Counts of messages and bytes for each pair of places that have exchanged messages.
pub(crate) struct Traffic {
    /// Counts by source and target.
    counts: Vec<OrderedMap<PlaceId, [u64; 2]>>,
}

impl Traffic {
    pub(crate) fn new(places: usize) -> Traffic {
        Traffic { counts: vec![OrderedMap::new(); places] }
    }

    pub(crate) fn count(&mut self, source: PlaceId, target: PlaceId, bytes: u64) {
        let [messages, sum] = self.counts[source.index()].get_or_default(target);
        *messages += 1;
        *sum += bytes;
    }

    /// Returns the flows, ordered by source and target.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        let by_source = (0..).map(PlaceId).zip(&self.counts);
        let flows = by_source.flat_map(|(source, targets)| {
            targets.iter().map(move |(target, [messages, bytes])| Flow {
                source,
                target,
                messages: *messages,
                bytes: *bytes,
            })
        });
        flows.collect()
    }
}
