//! The chip as seen by a core: its number, its place in the mesh, rates, tile locks, pins of other cores, their
//! states.

use crate::interrupt::Pin;
use crate::{bell, machine, program, timer};
use bare_map as map;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use map::{record, register};

/// A core that has stopped while its program continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedCore {
    /// Number of the core.
    pub core: usize,
    /// One of the states of `bare_map::record`.
    pub state: u32,
}

impl fmt::Display for StoppedCore {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.state {
            record::FAULTED => "an exception or a panic has stopped it",
            record::ENDED => "its program has ended",
            _ => "its machine is gone",
        };
        write!(text, "core {} does not answer: {why}", self.core)
    }
}

static CORE: AtomicUsize = AtomicUsize::new(0);
static PHYSICAL: AtomicU64 = AtomicU64::new(0);

/// Returns the number of this core, 0 to 47.
pub fn core() -> usize {
    CORE.load(Ordering::Relaxed)
}

/// Returns the number of the tile of this core, 0 to 23.
pub fn tile() -> usize {
    core() / 2
}

fn word(offset: usize) -> &'static AtomicU32 {
    &machine::window(offset, 1)[0]
}

/// Returns the word at `offset` of the record of this core.
pub(crate) fn own_record(offset: usize) -> &'static AtomicU32 {
    word(map::record_of(core()) + offset)
}

/// Returns `true` if the window is mapped.
///
/// After that the console is a ring; before, it is the serial line.
pub(crate) fn has_joined() -> bool {
    PHYSICAL.load(Ordering::Relaxed) != 0
}

/// Maps the chip's memory and claims this core's part of it.
pub(crate) fn join(core: usize, physical: u64) {
    machine::map_window(physical);
    CORE.store(core, Ordering::Relaxed);
    let [magic, version] = [0, 4].map(|offset| word(offset).load(Ordering::Relaxed));
    assert!(
        (magic, version) == (map::MAGIC, map::VERSION),
        "the memory of the chip has version {version} ({magic:#x}), this image {}",
        map::VERSION
    );
    PHYSICAL.store(physical, Ordering::Relaxed);
    machine::map_program(physical, core, (0..program::ranks()).map(program::core_of));
    // PAIR bare.state: publish
    own_record(record::STATE).store(record::RUNNING, Ordering::Release);
}

/// Returns the rates of this core's tile and of the mesh in MHz, as set by the launcher.
///
/// The rates are only data for programs: they do not change the speed of the emulator.
pub fn rates_mhz() -> (u32, u32) {
    let rates = word(map::registers_of(tile()) + register::RATES).load(Ordering::Relaxed);
    (rates & 0xffff, rates >> 16)
}

/// Takes the lock of `core`, a test-and-set register of its tile. Locks are not reentrant.
///
/// # Errors
/// A core of the program has stopped while this one waited.
pub fn acquire_lock(core: usize) -> Result<(), StoppedCore> {
    timer::wait_for(Needed::Any, || try_lock(core).then_some(()))
}

/// Takes the lock of `core` if it is free; returns `true` on success.
pub fn try_lock(core: usize) -> bool {
    let own = self::core() as u32 + 1;
    // PAIR bare.lock: observe
    lock(core).compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// Releases the lock of `core`, regardless of its holder, as on the SCC.
pub fn release_lock(core: usize) {
    // PAIR bare.lock: publish
    lock(core).store(0, Ordering::Release);
}

/// Returns the lock register of `core`.
pub(crate) fn lock(core: usize) -> &'static AtomicU32 {
    assert!(core < map::CORES, "core {core}; allowed: 0 to {}", map::CORES - 1);
    word(map::lock_of(core))
}

/// Raises an interrupt pin of `core`, which handles it once even if it was raised several times meanwhile.
pub fn interrupt_core(core: usize, pin: Pin) {
    assert!(core < map::CORES, "core {core}; allowed: 0 to {}", map::CORES - 1);
    // PAIR bare.pins: publish
    word(map::pins_of(core)).fetch_or(1 << pin as u32, Ordering::Release);
    bell::ring_for_pin(core);
}

/// Takes the raised pins of this core that are in `wanted`, one bit each; the others stay raised.
pub(crate) fn take_pins(wanted: u32) -> u32 {
    let pins = word(map::pins_of(core()));
    if pins.load(Ordering::Relaxed) & wanted == 0 {
        return 0;
    }
    // PAIR bare.pins: observe
    pins.fetch_and(!wanted, Ordering::Acquire) & wanted
}

/// The cores of the program that a wait depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// An unknown one: the wait fails once all others have ended.
    Any,
    /// All: none may end.
    All,
}

/// Returns a core of this program, other than this one, that has stopped so that a wait cannot succeed.
///
/// A core with exit code 0 counts only if all are needed, or if all others have ended.
pub fn stopped_core(needed: Needed) -> Option<StoppedCore> {
    let mut ended = None;
    let mut lives = false;
    for core in (0..program::ranks()).map(program::core_of).filter(|other| *other != core()) {
        // PAIR bare.state: observe
        let state = word(map::record_of(core) + record::STATE).load(Ordering::Acquire);
        let code = word(map::record_of(core) + record::EXIT_CODE).load(Ordering::Relaxed);
        match state {
            // The cause: cores that ended with an error may have done so because of this one.
            record::FAULTED | record::LOST => return Some(StoppedCore { core, state }),
            record::ENDED => ended = ended.max(Some((code != 0, core))),
            _ => lives = true,
        }
    }
    let is_hopeless = |(has_failed, _): &(bool, usize)| *has_failed || needed == Needed::All || !lives;
    ended.filter(is_hopeless).map(|(_, core)| StoppedCore { core, state: record::ENDED })
}

/// Returns the words of the message buffer of `core`.
pub(crate) fn buffer(core: usize) -> &'static [AtomicU64] {
    machine::wide_window(map::buffer_of(core), map::BUFFER_BYTES / 8)
}
