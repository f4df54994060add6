//! Every bound of the runtime, with where it comes from.

use crate::task::Pool;
use isles_protocol::finish::PAYLOAD_BYTES_MAX;
use std::time::Duration;

/// Most places of one run: as many as was tried (`isles bench twin`), on modelled chips. Machines may have fewer; the
/// names of finishes, teams and their steps on the wire would do for twice as many.
pub const PLACES_MAX: u32 = 32_768;

/// Most messages taken in whose tasks have not begun, before a place stops taking data messages from its queues,
/// and so lets their senders wait. At 128 bytes a small task this is 8 MiB.
pub(crate) const READY_TASKS_MAX: usize = 65_536;

/// Most bytes of such messages.
pub const READY_BYTES_MAX: usize = 16 << 20;

/// Most items of a bucket of an aggregator, and of all that a place holds of one. A bucket is allocated as a whole when
/// its first item comes: at 16 bytes an item this is 16 MiB.
pub const AGGREGATED_ITEMS_MAX: usize = 1 << 20;

/// Tasks that a worker polls before it looks for messages again.
pub(crate) const READY_BATCH: usize = 64;

/// Time, by its own clock, for which a place continues with operations that end at once before it looks at its
/// messages: about two calls between cores of the SCC, so that a look costs a few per cent.
pub(crate) const TURN_TIME_MAX: Duration = Duration::from_micros(10);

/// The pace of a long turn, as time for each of its operations, from which on messages are waited for at its end.
pub(crate) const AWAITED_OPERATION_MIN: Duration = Duration::from_nanos(2_500);

/// After a longer turn a place waits for at most this part of it, if as many messages as after the last one have not
/// come. That is what computing beside others may cost, at worst.
pub(crate) const TURN_PART: u32 = 16;

/// Longest such wait: several times the time of a message and of a wake-up by the system.
pub(crate) const TURN_WAIT_MAX: Duration = Duration::from_millis(1);

/// Number of receives at the home of a channel that look at the clock after a task of another place has asked for a
/// value, or has got a receiver: the next one comes within a few pieces of work.
pub const WATCHFUL_RECEIVES: u32 = 32;

/// Number of long turns without a message for their end, after which fewer are waited for: others may be late now and
/// then, and waiting in vain costs a [`TURN_PART`]th of each.
pub(crate) const UNAWAITED_TURNS_MAX: u32 = 4;

/// After so much effort an operation looks whether messages wait, where turns are not measured: a look takes as long as
/// half of the shortest operation, of 13 ns.
pub(crate) const LOOK_EFFORT: u32 = 8;

/// Number of operations of a place that look at the clock, whether messages wait or not, after a long turn for whose
/// end messages waited: a few pieces of work.
pub(crate) const LONG_TURN_LOOKS: u32 = 32;

/// First guess of the room that a message needs, in bytes; longer ones are measured by the first attempt.
pub const ROOM_GUESS: usize = 256;

/// The same for a handle: the name of its part and who counts it, at most 21 bytes. With the heads of a body and of the
/// transport that is one cache line.
pub(crate) const HANDLE_ROOM: usize = 24;

/// Longest wire form of one error, in bytes; longer texts are cut. What a finish carries of each fault.
pub const ERROR_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;

/// Longest text of one error, in bytes; of a longer one the middle is left out. Beside it there is room for a line of
/// the program, so that an error has the same text at its own place and at others.
pub(crate) const ERROR_TEXT_BYTES_MAX: usize = 896;

/// Most causes of an error that are looked at: a chain of them may have no end.
pub(crate) const CAUSES_MAX: usize = 1 << 16;

/// Texts of an error that are never cut below this many bytes, as long as anything else can go.
pub(crate) const ERROR_TEXT_BYTES_MIN: usize = 64;

/// Longest sleep of a place that waits for room in a full queue, before it looks at its own queues again.
pub(crate) const ROOM_WAIT: Duration = Duration::from_micros(200);

/// Most receivers for whom messages of a class wait on the heap and who are all tried at each chance; more are a crowd.
pub(crate) const CROWD_MIN: usize = 256;

/// Number of refusals in a crowd after which the others wait for the next chance: they probably have one reason.
pub(crate) const CROWD_REFUSALS: u32 = 4;

/// Time the first place waits for the others to say that they have ended, before it continues without them.
pub(crate) const FINAL_REPORT_WAIT: Duration = Duration::from_secs(5);

/// Time without an event at the first place before all places tell each other in which collectives they wait.
pub(crate) const COMPARE_WAIT: Duration = Duration::from_secs(1);

/// Number of last looks at its messages by a place that is told to end.
pub(crate) const FINAL_POLLS: usize = 64;

/// Time the first place waits for the others to explain what they wait for, before it gives a run up.
pub(crate) const EXPLAIN_WAIT: Duration = Duration::from_millis(500);

/// Idle time after which a place asks what its finishes held back; longer than a task that visits some places takes to
/// return.
pub const REST: Duration = Duration::from_micros(50);

/// Quiet time, in usual gaps, after which the buckets of a place leave that are not full: what comes in bursts still
/// fills them.
pub const QUIET_GAPS: u32 = 4;

/// Longest gap that counts as usual, so that the last buckets of a finish leave soon.
pub const GAP_MAX: Duration = Duration::from_micros(100);

/// Number of steps in which something happened, after which it asks all the same.
pub(crate) const BUSY_STEPS_MAX: u32 = 256;

/// Time for which a place holds back returns of handles that are gone, so that one message returns many: as long as
/// hundreds of tasks, and still short for what the part holds.
pub(crate) const RETURN_WAIT: Duration = Duration::from_millis(1);

/// Number of parts after which it gives back all the same.
pub(crate) const DUE_MAX: usize = 256;

/// Most parts in one message that gives handles back: at most 402 bytes, so it hardly ever needs a block.
pub(crate) const RETURNS_MAX: usize = 16;

/// Interval at which a busy place with timers looks at its clock: a look takes a thousandth of that.
pub(crate) const CLOCK_LOOKS_APART: Duration = Duration::from_micros(50);

/// Most steps of a busy place between two looks at its clock, however short they are: what they may be late when tasks
/// become longer all at once.
pub(crate) const CLOCK_STEPS_MAX: u32 = 15;

/// Longest uninterrupted wait of a place. Nothing depends on it: each wait is ended by what it is for. Of 256 places,
/// whose wakes take a tenth of a millisecond each, it takes 0.3 % of a processor.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

/// Most bytes of the heap that messages take at a place before their tasks begin, at `task_bytes` bytes a task.
///
/// A place that is not full takes in all that one turn gives: at most `turn_messages` messages of together `turn_bytes`
/// bytes in its queues. Beside the tasks there are their captures, as long as they were on the way, and the queue.
pub fn backlog_bytes_max(turn_messages: usize, turn_bytes: usize, task_bytes: usize) -> u64 {
    let tasks = READY_TASKS_MAX + turn_messages;
    // A queue that grows has twice the memory it needs, and the half of it that it leaves.
    let queue = 3 * tasks * size_of::<usize>();
    (Pool::bytes_for(tasks, task_bytes) + queue + READY_BYTES_MAX + turn_bytes) as u64
}

/// Most bytes of data in one message of a window; longer accesses go in several.
pub const PIECE_BYTES_MAX: usize = 64 << 10;

const _: () = assert!(READY_BATCH < READY_TASKS_MAX);
// Everything of an error but its texts takes less than 64 bytes.
const _: () = assert!(ERROR_BYTES_MAX >= 64 + ERROR_TEXT_BYTES_MAX);
const _: () = assert!(ERROR_TEXT_BYTES_MAX > ERROR_TEXT_BYTES_MIN);

/// Number of looks for messages before a place rests, if it has a processor of its own and no task is ready: about a
/// microsecond. What arrives meanwhile is taken in at once, without the way through a wait.
pub(crate) const SPIN_POLLS: u32 = 64;

/// Number of times a caller looks for its answer itself before it gives way, under the same condition: five
/// microseconds.
pub(crate) const REPLY_SPIN_POLLS: u32 = 512;
