//! The program of this core: ranks, arguments, barrier, end.

use crate::{chip, machine, timer};
use bare_map as map;
use core::sync::atomic::{AtomicU32, Ordering};
use map::{program, record};

/// Returns the offset of the area of this core's program in the window.
fn area() -> usize {
    map::program_of(chip::own_record(record::PROGRAM).load(Ordering::Relaxed) as usize % map::PROGRAMS_MAX)
}

fn word(offset: usize) -> &'static AtomicU32 {
    &machine::window(area() + offset, 1)[0]
}

/// Returns the number of cores of the program.
pub fn ranks() -> usize {
    (word(program::RANKS).load(Ordering::Relaxed) as usize).min(map::CORES)
}

/// Returns the rank of this core: its position in the list of cores of the program.
pub fn rank() -> usize {
    chip::own_record(record::RANK).load(Ordering::Relaxed) as usize
}

/// Returns the core of `rank`.
///
/// # Panics
/// If there is no such rank.
pub fn core_of(rank: usize) -> usize {
    assert!(rank < ranks(), "rank {rank}; the program has {}", ranks());
    word(program::CORES + 4 * rank).load(Ordering::Relaxed) as usize % map::CORES
}

/// Returns the number of arguments, including the name of the image, and the address of their text.
pub fn arguments() -> (usize, usize) {
    let count = word(program::ARGUMENTS).load(Ordering::Relaxed) as usize;
    (count, map::WINDOW_ADDRESS + area() + program::ARGUMENT_TEXT)
}

/// Returns argument `number`, 0 being the name of the image; `None` if there is no such argument or it is not UTF-8.
pub fn argument(number: usize) -> Option<&'static str> {
    let (count, address) = arguments();
    // NEED: arguments are bytes in the window, whose words are otherwise atomic.
    // SOUND: the launcher has written them before this machine started, and nothing writes there later.
    let text = unsafe { core::slice::from_raw_parts(address as *const u8, program::ARGUMENT_TEXT_BYTES) };
    let word = text.split(|byte| *byte == 0).take(count).nth(number)?;
    core::str::from_utf8(word).ok()
}

/// Returns the address and length of the program's part of the shared memory.
pub fn shared_memory() -> (usize, usize) {
    let start = word(program::SHARED).load(Ordering::Relaxed) as usize;
    (map::SHARED_ADDRESS + start, word(program::SHARED_BYTES).load(Ordering::Relaxed) as usize)
}

/// Returns the address of the memory shared by libraries of the program.
pub fn library_area() -> usize {
    map::WINDOW_ADDRESS + area() + program::LIBRARY
}

/// Waits until all ranks have called this.
///
/// # Errors
/// A core of the program has stopped, so the barrier cannot complete.
pub fn barrier() -> Result<(), chip::StoppedCore> {
    let (arrivals, round) = (word(program::ARRIVALS), word(program::ROUND));
    // PAIR bare.round: observe
    let own = round.load(Ordering::Acquire);
    // PAIR bare.arrivals: publish, observe
    if arrivals.fetch_add(1, Ordering::AcqRel) as usize + 1 == ranks() {
        arrivals.store(0, Ordering::Relaxed);
        // PAIR bare.round: publish
        round.store(own.wrapping_add(1), Ordering::Release);
        return Ok(());
    }
    // PAIR bare.round: observe
    timer::wait_for(chip::Needed::All, || (round.load(Ordering::Acquire) != own).then_some(()))
}

/// Ends this core with an exit code.
pub fn exit(code: i32) -> ! {
    machine::set_interrupts(false);
    chip::own_record(record::EXIT_CODE).store(code as u32, Ordering::Relaxed);
    // PAIR bare.state: publish
    chip::own_record(record::STATE).store(record::ENDED, Ordering::Release);
    machine::power_off(u8::from(code != 0))
}
