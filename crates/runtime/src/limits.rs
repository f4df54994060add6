//! Every bound of the runtime, with its derivation.

use crate::task::Pool;
use isles_protocol::finish::PAYLOAD_BYTES_MAX;
use std::time::Duration;

/// Largest number of places in a run: the largest that was tried (`isles bench twin`), on modelled chips. Machines may
/// allow fewer; the ids of finishes, teams and their steps on the wire allow twice this number.
pub const PLACES_MAX: u32 = 32_768;

/// Largest number of messages whose tasks have not begun. Beyond it a place takes no data messages from its queues, so
/// their senders wait. At 128 bytes for a small task this is 8 MiB.
pub(crate) const READY_TASKS_MAX: usize = 65_536;

/// Largest size of these messages together, in bytes.
pub const READY_BYTES_MAX: usize = 16 << 20;

/// Largest number of items in a bucket of an aggregator, and of all that a place holds for one. A bucket is allocated
/// as a whole with its first item: at 16 bytes an item this is 16 MiB.
pub const AGGREGATED_ITEMS_MAX: usize = 1 << 20;

/// Number of tasks that a worker polls before it looks for messages again.
pub(crate) const READY_BATCH: usize = 64;

/// Time, by its own clock, for which a place goes on with operations that complete at once before it looks for
/// messages: about two calls between cores of the SCC, so that a look costs a few per cent.
pub(crate) const TURN_TIME_MAX: Duration = Duration::from_micros(10);

/// Time for each operation of a long turn from which the place waits for messages at its end.
pub(crate) const AWAITED_OPERATION_MIN: Duration = Duration::from_nanos(2_500);

/// Divisor of a longer turn that gives the longest wait at its end, for the number of messages that came after the last
/// one. It bounds the cost of computing beside others.
pub(crate) const TURN_PART: u32 = 16;

/// Longest such wait: several times the time of a message and of a wake-up by the system.
pub(crate) const TURN_WAIT_MAX: Duration = Duration::from_millis(1);

/// Number of receives at the home of a channel that look at the clock after a task of another place has asked for a
/// value, or got a receiver: the next request comes within a few pieces of work.
pub const WATCHFUL_RECEIVES: u32 = 32;

/// Number of long turns without a message at their end after which fewer are waited for. Others may be late now and
/// then, and each wait in vain costs a [`TURN_PART`]th of the turn.
pub(crate) const UNAWAITED_TURNS_MAX: u32 = 4;

/// Effort after which an operation looks for messages, if turns are not measured: a look takes half as long as the
/// shortest operation, of 13 ns.
pub(crate) const LOOK_EFFORT: u32 = 8;

/// Number of operations that look at the clock, whether messages wait or not, after a long turn at whose end messages
/// waited: a few pieces of work.
pub(crate) const LONG_TURN_LOOKS: u32 = 32;

/// First guess of the room that a message needs, in bytes; the first attempt measures longer ones.
pub const ROOM_GUESS: usize = 256;

/// The same for a handle: the id of its part and the place that counts it, at most 21 bytes. With the headers of a body
/// and of the transport that is one cache line.
pub(crate) const HANDLE_ROOM: usize = 24;

/// Longest wire form of one error, in bytes; a finish carries that for each fault. Longer texts are cut.
pub const ERROR_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;

/// Longest text of one error, in bytes; a longer one loses its middle. This leaves room for a line of the program, so
/// that an error has the same text at its own place and at others.
pub(crate) const ERROR_TEXT_BYTES_MAX: usize = 896;

/// Largest number of causes of an error that are followed: a chain of causes may have no end.
pub(crate) const CAUSES_MAX: usize = 1 << 16;

/// Length below which no text of an error is cut while others are longer, in bytes.
pub(crate) const ERROR_TEXT_BYTES_MIN: usize = 64;

/// Longest sleep of a place that waits for room in a full queue before it looks at its own queues again.
pub(crate) const ROOM_WAIT: Duration = Duration::from_micros(200);

/// Largest number of receivers with messages of a class on the heap of which every one is tried at each chance; more
/// are a crowd.
pub(crate) const CROWD_MIN: usize = 256;

/// Number of refusals in a crowd after which the others wait for the next chance: they probably share a cause.
pub(crate) const CROWD_REFUSALS: u32 = 4;

/// Time the first place waits for the others' final reports before it continues without them.
pub(crate) const FINAL_REPORT_WAIT: Duration = Duration::from_secs(5);

/// Time without an event at the first place after which all places report the collectives in which they wait.
pub(crate) const COMPARE_WAIT: Duration = Duration::from_secs(1);

/// Number of times a place that was told to end polls for its last messages.
pub(crate) const FINAL_POLLS: usize = 64;

/// Time the first place waits for the others' explanations of their waits before it gives up a run.
pub(crate) const EXPLAIN_WAIT: Duration = Duration::from_millis(500);

/// Idle time after which a place asks for what its finishes held back; longer than a task needs that visits some places
/// and returns.
pub const REST: Duration = Duration::from_micros(50);

/// Quiet time, in usual gaps, after which a place sends buckets that are not full; items that come in bursts still fill
/// them.
pub const QUIET_GAPS: u32 = 4;

/// Longest gap that counts as usual, so that the last buckets of a finish leave soon.
pub const GAP_MAX: Duration = Duration::from_micros(100);

/// Number of busy steps after which a place asks without being idle.
pub(crate) const BUSY_STEPS_MAX: u32 = 256;

/// Time for which a place holds back returned handles, so that one message returns many: as long as hundreds of tasks,
/// but short for the memory of the part.
pub(crate) const RETURN_WAIT: Duration = Duration::from_millis(1);

/// Number of parts with handles to return after which a place returns them earlier.
pub(crate) const DUE_MAX: usize = 256;

/// Largest number of parts in one message that returns handles: at most 402 bytes, so it hardly ever needs a block.
pub(crate) const RETURNS_MAX: usize = 16;

/// Interval at which a busy place with timers looks at its clock: a look takes a thousandth of that.
pub(crate) const CLOCK_LOOKS_APART: Duration = Duration::from_micros(50);

/// Largest number of steps of a busy place between two looks at its clock, however short they are; timers may be late
/// by that many steps when tasks suddenly become longer.
pub(crate) const CLOCK_STEPS_MAX: u32 = 15;

/// Longest uninterrupted wait of a place. Nothing depends on it: what a place waits for ends the wait. With 256 places,
/// whose wakes take a tenth of a millisecond each, it costs 0.3 % of a processor.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Returns the largest size of messages on the heap of a place before their tasks begin, at `task_bytes` bytes a task.
///
/// A place that is not full takes everything that one turn brings: at most `turn_messages` messages of `turn_bytes`
/// bytes in all in its queues. Besides the tasks there are their captures, as long as in the messages, and the queue.
pub fn backlog_bytes_max(turn_messages: usize, turn_bytes: usize, task_bytes: usize) -> u64 {
    let tasks = READY_TASKS_MAX + turn_messages;
    // While a queue grows, it has twice the memory it needs, and the half of it that it leaves.
    let queue = 3 * tasks * size_of::<usize>();
    (Pool::bytes_for(tasks, task_bytes) + queue + READY_BYTES_MAX + turn_bytes) as u64
}

/// Largest data of one message of a window, in bytes; longer accesses take several.
pub const PIECE_BYTES_MAX: usize = 64 << 10;

const _: () = assert!(READY_BATCH < READY_TASKS_MAX);
// An error without its texts takes less than 64 bytes.
const _: () = assert!(ERROR_BYTES_MAX >= 64 + ERROR_TEXT_BYTES_MAX);
const _: () = assert!(ERROR_TEXT_BYTES_MAX > ERROR_TEXT_BYTES_MIN);

/// Number of polls for messages before a place goes to sleep, if it has its own processor and no task is ready: about a
/// microsecond. A message that arrives meanwhile costs no wait.
pub(crate) const SPIN_POLLS: u32 = 64;

/// Number of times a caller polls for its answer before it yields, under the same condition: five microseconds.
pub(crate) const REPLY_SPIN_POLLS: u32 = 512;
