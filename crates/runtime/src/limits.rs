//! Every bound of the runtime, with where it comes from.

use std::time::Duration;

/// Most places of one run: what the doorbell bitmap of a place on shared memory can name.
pub const PLACES_MAX: u32 = 256;

/// Most tasks that wait in a place's ready queue before it stops taking data messages from its queues, and so
/// lets their senders wait. At 128 bytes a small task this is 8 MiB.
pub(crate) const READY_TASKS_MAX: usize = 65_536;

/// Tasks that a worker polls before it looks for messages again.
pub(crate) const READY_BATCH: usize = 64;

/// First guess of the room that a message needs, in bytes; longer ones are measured by the first attempt.
pub(crate) const ROOM_GUESS: usize = 256;

/// Longest wire form of one error, in bytes; longer texts are cut. Part of a control message, so well below the
/// smallest control queue.
pub(crate) const ERROR_BYTES_MAX: usize = 400;

/// How long a place that waits for room in a full queue sleeps at a time before it looks at its own queues again.
pub(crate) const ROOM_WAIT: Duration = Duration::from_micros(200);

/// How long the first place waits for the others to say that they have ended, before it goes without them.
pub(crate) const FAREWELL_WAIT: Duration = Duration::from_secs(5);

/// Longest uninterrupted wait of a place, so that clocks and stall reports are looked at.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(500);

const _: () = assert!(READY_BATCH < READY_TASKS_MAX);
const _: () = assert!(ERROR_BYTES_MAX < 512);
