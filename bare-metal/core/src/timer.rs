//! Time: the clock of the machine, the millisecond timer, waiting.
//!
//! The clock is the HPET, which QEMU derives from the host's clock. The time-stamp counter is calibrated against it at
//! boot, so that reading the time needs no device.

use crate::{chip, interrupt, machine};
use core::sync::atomic::{AtomicU64, Ordering};

const CLOCK: u32 = 0xfed0_0000;
const CLOCK_PERIOD: u32 = CLOCK + 4;
const CLOCK_ENABLE: u32 = CLOCK + 0x10;
const CLOCK_COUNT: u32 = CLOCK + 0xf0;

const TIMER_VECTOR: u32 = 0xfee0_0320;
const TIMER_START: u32 = 0xfee0_0380;
const TIMER_COUNT: u32 = 0xfee0_0390;
const TIMER_DIVIDER: u32 = 0xfee0_03e0;
const PERIODIC: u32 = 1 << 17;
const UNDIVIDED: u32 = 0xb;

const PERIOD_NANOSECONDS: u64 = 1_000_000;
const CALIBRATION_NANOSECONDS: u64 = 2_000_000;
/// Number of clock readings for one moment of the calibration.
const LOOKS: usize = 8;
/// Time for which a waiter spins before it sleeps until the next timer interrupt.
///
/// It is longer than such a sleep; otherwise two threads that wait for each other would sleep each time.
const SPIN_NANOSECONDS: u64 = 1_500_000;

static MILLISECONDS: AtomicU64 = AtomicU64::new(0);
/// Time-stamp counter and nanoseconds at the calibration, and nanoseconds in 2^32 cycles.
static CYCLES_AT_START: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS_AT_START: AtomicU64 = AtomicU64::new(0);
static RATE: AtomicU64 = AtomicU64::new(0);

fn clock() -> u64 {
    let period = u64::from(machine::device_register(CLOCK_PERIOD).load(Ordering::Relaxed));
    u64::from(machine::device_register(CLOCK_COUNT).load(Ordering::Relaxed)) * period / 1_000_000
}

/// Readings of the clock, the time-stamp counter and the timer at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    /// Cycles taken by the reading.
    took: u64,
    nanoseconds: u64,
    cycles: u64,
    counted: u32,
}

/// Returns a moment: the fastest of several readings of the clocks.
///
/// The host may preempt the processor during a reading, which would make the calibration wrong by that time.
fn moment() -> Moment {
    let look = |_| {
        let cycles = machine::cycles();
        let nanoseconds = clock();
        let counted = u32::MAX - machine::device_register(TIMER_COUNT).load(Ordering::Relaxed);
        Moment { took: machine::cycles() - cycles, nanoseconds, cycles, counted }
    };
    (0..LOOKS).map(look).min().unwrap_or_default()
}

/// Starts clock and timer. The clock counts from the reset of the machine or from here, whichever is later.
pub fn start() {
    machine::device_register(CLOCK_ENABLE).store(1, Ordering::Relaxed);
    machine::device_register(TIMER_DIVIDER).store(UNDIVIDED, Ordering::Relaxed);
    machine::device_register(TIMER_START).store(u32::MAX, Ordering::Relaxed);
    let begin = moment();
    while clock() - begin.nanoseconds < CALIBRATION_NANOSECONDS {}
    let end = moment();
    let nanoseconds = end.nanoseconds - begin.nanoseconds;
    CYCLES_AT_START.store(begin.cycles, Ordering::Relaxed);
    NANOSECONDS_AT_START.store(begin.nanoseconds, Ordering::Relaxed);
    RATE.store((nanoseconds << 32) / (end.cycles - begin.cycles), Ordering::Relaxed);
    let in_period = u64::from(end.counted - begin.counted) * PERIOD_NANOSECONDS / nanoseconds;
    machine::device_register(TIMER_VECTOR).store(PERIODIC | interrupt::TIMER as u32, Ordering::Relaxed);
    machine::device_register(TIMER_START).store(in_period as u32, Ordering::Relaxed);
}

/// Returns the nanoseconds since the clock began to count.
pub fn nanoseconds() -> u64 {
    let cycles = machine::cycles().wrapping_sub(CYCLES_AT_START.load(Ordering::Relaxed));
    // A 128-bit division takes an emulator as long as a short message.
    let since = (u128::from(cycles) * u128::from(RATE.load(Ordering::Relaxed))) >> 32;
    NANOSECONDS_AT_START.load(Ordering::Relaxed) + since as u64
}

/// Returns the milliseconds counted by the timer.
pub fn milliseconds() -> u64 {
    MILLISECONDS.load(Ordering::Relaxed)
}

/// Counts a millisecond; called by the timer's interrupt.
pub fn count_millisecond() {
    MILLISECONDS.fetch_add(1, Ordering::Relaxed);
}

/// Sleeps for at least that many milliseconds.
pub fn sleep_milliseconds(milliseconds: u64) {
    let end = nanoseconds() + milliseconds * 1_000_000;
    while nanoseconds() < end {
        machine::sleep();
    }
}

/// Waits until `ready` returns a value: polls for a while, then sleeps from one timer interrupt to the next.
///
/// # Errors
/// A needed core has stopped, and `ready` still returns `None`.
pub fn wait_for<T>(
    needed: chip::Needed,
    mut ready: impl FnMut() -> Option<T>,
) -> Result<T, chip::StoppedCore> {
    let mut begin = None;
    loop {
        for _ in 0..100 {
            if let Some(value) = ready() {
                return Ok(value);
            }
        }
        let now = nanoseconds();
        if now - *begin.get_or_insert(now) < SPIN_NANOSECONDS {
            continue;
        }
        if let Some(stopped) = chip::stopped_core(needed) {
            return ready().ok_or(stopped);
        }
        machine::sleep();
    }
}
