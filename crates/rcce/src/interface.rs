//! The interface between this program and the C library: memory layouts and operations of the model.
//!
//! `c/src/port.h` is the counterpart in C; [`VERSION`] changes with either. Invariant: words that several ranks use
//! are atomic, so a shared reference to the whole is sound.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// `PORT_VERSION`.
pub const VERSION: u32 = 2;

/// Maximum number of ranks: `RCCE_MAXNP`.
pub const RANKS_MAX: usize = 48;

/// Bytes of a line, and of a message buffer.
pub const LINE_BYTES: usize = 32;
/// Bytes of a message buffer.
pub const BUFFER_BYTES: usize = 8_192;
/// Bytes of the memory that all ranks share.
pub const SHARED_BYTES: usize = 64 << 20;

const CALL_NAMES: usize = 40;
const CALL_NAME_BYTES: usize = 32;
const COLLECTIVE_CALLS: usize = 1_024;
const COMPLAINT_BYTES: usize = 252;

/// `enum operation`: requests of the library to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortOperation {
    /// Computes.
    Work,
    /// Copies private memory into a buffer.
    Put,
    /// Copies a buffer into private memory.
    Get,
    /// Copies a buffer into the rank's own one.
    Relay,
    /// Writes a flag.
    Set,
    /// Reads a flag.
    Look,
    /// Waits for a flag of the rank's own buffer.
    Wait,
    /// Waits for a flag of the rank's own buffer and clears it.
    Take,
    /// Waits for any write.
    Any,
    /// Takes a lock.
    Lock,
    /// Releases a lock.
    Unlock,
    /// Asks for the time.
    Now,
    /// Handles the incomplete last line of a message.
    Tail,
    /// Changes frequency and voltage.
    Power,
    /// Waits for a change of the voltage.
    Settled,
    /// Accesses a counter outside the chip.
    Counter,
    /// Ends the rank.
    End,
}

impl PortOperation {
    const ALL: [PortOperation; 17] = {
        use PortOperation::*;
        [
            Work, Put, Get, Relay, Set, Look, Wait, Take, Any, Lock, Unlock, Now, Tail, Power, Settled,
            Counter, End,
        ]
    };

    /// Returns the operation with this number in C.
    pub fn of(number: u32) -> Option<PortOperation> {
        Self::ALL.get(number as usize).copied()
    }
}

/// `struct request`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PortRequest {
    /// A [`PortOperation`].
    pub operation: u32,
    /// The rank whose buffer or register it accesses; or a divider.
    pub target: u32,
    /// A line of that buffer.
    pub line: u32,
    /// Number of lines; or the mask of a bit flag.
    pub count: u32,
    /// An address in the program.
    pub address: u64,
    /// See `port.h`.
    pub value: u64,
    /// Library: 0 is RCCE, 1 iRCCE.
    pub costs: u32,
    /// Unused.
    pub spare: u32,
}

/// `struct rank_state`.
#[repr(C)]
pub struct RankState {
    parked: AtomicU32,
    wakes: AtomicU32,
    spare: [u32; 14],
    stage: AtomicU32,
    call: AtomicU32,
    peer: AtomicI32,
    more_spare: [u32; 13],
}

const SLEEPS: u32 = 2;
const FINALIZED: u32 = 2;

#[repr(C)]
struct CollectiveCall {
    sequence: AtomicU64,
    call: AtomicU32,
    rank: AtomicU32,
    argument: AtomicU64,
}

/// `struct control`.
#[repr(C)]
pub struct ControlWords {
    version: u32,
    ranks: u32,
    any_parked: AtomicU32,
    any_event: AtomicU32,
    next_counter: AtomicU32,
    counters: [AtomicI32; 2 * RANKS_MAX],
    /// The test-and-set register of each rank: its holder plus 1.
    pub locks: [AtomicU32; RANKS_MAX],
    lock_waiters: [AtomicU32; RANKS_MAX],
    complaint: AtomicU32,
    complaint_text: [AtomicByte; COMPLAINT_BYTES],
    names: [[AtomicByte; CALL_NAME_BYTES]; CALL_NAMES],
    spare: [u32; 27],
    state: [RankState; RANKS_MAX],
    calls: [CollectiveCall; COLLECTIVE_CALLS],
}

type AtomicByte = std::sync::atomic::AtomicU8;

/// The current call of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentCall {
    /// Number of the rank.
    pub rank: usize,
    /// The current call of the library, or "a computation".
    pub call: String,
    /// Rank that the call waits for.
    pub peer: Option<usize>,
}

fn text(bytes: &[AtomicByte]) -> String {
    let bytes = bytes.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

impl ControlWords {
    /// Returns the reason why a rank has ended the run, if any.
    pub fn complaint(&self) -> Option<String> {
        (self.complaint.load(Ordering::SeqCst) == 1).then(|| text(&self.complaint_text))
    }

    /// Returns the current call of a rank.
    pub fn current_call(&self, rank: usize) -> CurrentCall {
        let state = &self.state[rank];
        let call = self
            .names
            .get(state.call.load(Ordering::Relaxed) as usize)
            .map_or(String::new(), |name| text(name));
        let peer = usize::try_from(state.peer.load(Ordering::Relaxed)).ok();
        CurrentCall { rank, call, peer }
    }

    /// Returns the number of wake-ups of a sleeping rank; `None` if it is awake.
    pub fn sleep(&self, rank: usize) -> Option<u32> {
        let state = &self.state[rank];
        let wakes = state.wakes.load(Ordering::SeqCst);
        (state.parked.load(Ordering::SeqCst) == SLEEPS).then_some(wakes)
    }

    /// Returns `true` if a rank has called `RCCE_finalize`.
    pub fn is_finalized(&self, rank: usize) -> bool {
        self.state[rank].stage.load(Ordering::SeqCst) == FINALIZED
    }
}

/// The function through which the library makes requests to the model.
type PortFunction = extern "C" fn(*mut c_void, *const PortRequest) -> u64;

/// `struct machine`.
#[repr(C)]
pub struct MachineDescription {
    /// [`VERSION`].
    pub version: u32,
    /// The rank that is attached.
    pub rank: u32,
    /// All ranks.
    pub ranks: u32,
    /// 1 if there is a model.
    pub modelled: u32,
    /// The control words.
    pub control: *const ControlWords,
    /// All message buffers.
    pub buffers: *mut u8,
    /// The memory that all ranks share.
    pub shared: *mut u8,
    /// Its size in bytes.
    pub shared_bytes: u64,
    /// Function that makes a request to the model.
    pub request: Option<PortFunction>,
    /// Context passed to `request`.
    pub context: *mut c_void,
    /// The reference clock, in GHz.
    pub gigahertz: f64,
    /// The core of each rank.
    pub cores: [u32; RANKS_MAX],
    /// The power domain of each rank.
    pub domains: [u32; RANKS_MAX],
}

/// `isles_rcce_attach`.
pub type Attach = unsafe extern "C" fn(*const MachineDescription) -> c_int;
/// `isles_rcce_run`.
pub type Run = unsafe extern "C" fn(c_int, *const *const c_char);

/// Returns a one-line list of waiting ranks: "rank 0 in RCCE_send for rank 1, ..".
pub fn waiting_list(waiting: &[CurrentCall]) -> String {
    const SHOWN: usize = 6;
    let one = |current: &CurrentCall| {
        let peer = current.peer.map(|peer| format!(" for rank {peer}")).unwrap_or_default();
        format!("rank {} in {}{peer}", current.rank, current.call)
    };
    let mut line = waiting.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    if waiting.len() > SHOWN {
        line.push_str(&format!(", and {} more", waiting.len() - SHOWN));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// The numbers are those that `c/src/port.c` asserts when a program is compiled.
    #[test]
    fn the_layouts_are_those_of_c() {
        assert_eq!(size_of::<PortRequest>(), 40);
        assert_eq!((size_of::<RankState>(), offset_of!(RankState, stage)), (128, 64));
        assert_eq!((size_of::<CollectiveCall>(), offset_of!(CollectiveCall, argument)), (24, 16));
        assert_eq!((offset_of!(ControlWords, locks), offset_of!(ControlWords, complaint_text)), (404, 792));
        assert_eq!((offset_of!(ControlWords, names), offset_of!(ControlWords, state)), (1_044, 2_432));
        assert_eq!((offset_of!(ControlWords, calls), size_of::<ControlWords>()), (8_576, 33_152));
        assert_eq!((offset_of!(MachineDescription, gigahertz), size_of::<MachineDescription>()), (64, 456));
    }

    /// Ranks write these while the launcher has a shared reference to them.
    #[test]
    fn the_log_of_collective_calls_is_written_through_a_shared_reference() {
        let shared = &CollectiveCall {
            sequence: AtomicU64::new(0),
            call: AtomicU32::new(0),
            rank: AtomicU32::new(0),
            argument: AtomicU64::new(0),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| shared.call.store(3, Ordering::Relaxed));
            scope.spawn(|| shared.argument.store(4, Ordering::Relaxed));
            scope.spawn(|| shared.rank.store(5, Ordering::Relaxed));
        });
        let numbers = (shared.call.load(Ordering::Relaxed), shared.rank.load(Ordering::Relaxed));
        assert_eq!((numbers, shared.argument.load(Ordering::Relaxed)), ((3, 5), 4));
    }

    #[test]
    fn a_deadlock_names_ranks_calls_and_peers() {
        let one = |rank, peer| CurrentCall { rank, call: "RCCE_send".into(), peer };
        assert_eq!(
            waiting_list(&[one(0, Some(1)), one(1, None)]),
            "rank 0 in RCCE_send for rank 1, rank 1 in RCCE_send"
        );
        let many: Vec<_> = (0..9).map(|rank| one(rank, None)).collect();
        assert!(waiting_list(&many).ends_with(", and 3 more"));
    }
}
