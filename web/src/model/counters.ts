// The columns of counters, made of the table in crates/telemetry/src/counter.rs, which a test compares:
// ISLES_TEST_WRITE_COUNTERS=1 cargo test -p isles-dashboard --test server counters

/** A value for each place. Of channels, windows and the like there is none where all are 0. */
export interface CounterColumns {
    /** Tasks that have ended at the place. In tasks. */
    tasks: number[];
    /** Tasks that are ready to run. In tasks. */
    queue: number[];
    /** Tasks that have begun and wait. In tasks. */
    blocked: number[];
    /** Messages sent to other places, of both classes. In messages. */
    messages_sent: number[];
    /** Messages received from other places. In messages. */
    messages_received: number[];
    /** Bytes of the bodies of messages sent. In bytes. */
    bytes_sent: number[];
    /** Bytes of the bodies of messages received. In bytes. */
    bytes_received: number[];
    /** Control messages, of those sent. In messages. */
    control_messages: number[];
    /** Bytes of the bodies of control messages sent. In bytes. */
    control_bytes: number[];
    /** Messages that had to wait for room in a queue. In messages. */
    put_aside: number[];
    /** Finishes opened at the place and not released. In finishes. */
    finishes_open: number[];
    /** Finishes released at the place. In finishes. */
    finishes_released: number[];
    /** Time in which the place did not wait, by its own clock. In ns. */
    busy_ns: number[];
    /** Resident memory of the process of the place. In bytes. */
    memory_bytes: number[];
    /** Clock of the core. In MHz. */
    clock_mhz?: number[];
    /** Supply of the core. In V. */
    volt?: number[];
    /** Energy that the core has drawn, modelled. In J. */
    joule?: number[];
    /** Modelled time until which that energy is known. In ns. */
    energy_ns?: number[];
    /** Channels made. In channels. */
    channels_made?: number[];
    /** Values sent over channels. In values. */
    channel_sent?: number[];
    /** Values received from channels. In values. */
    channel_received?: number[];
    /** Sends and receives of channels that had to wait. In operations. */
    channel_waits?: number[];
    /** Values of channels that came back unsent. In values. */
    channel_returned?: number[];
    /** Messages to members of teams. In messages. */
    member_sent?: number[];
    /** Messages of members of teams that arrived before their receive. In messages. */
    member_unexpected?: number[];
    /** Messages to members of teams that had to wait because too many were pending there. In messages. */
    member_waits?: number[];
    /** Long messages of members of teams that were read in place, in one copy. In messages. */
    member_read?: number[];
    /** Puts into parts of windows. In accesses. */
    window_puts?: number[];
    /** Gets from parts of windows. In accesses. */
    window_gets?: number[];
    /** Accumulates, fetches and exchanges in parts of windows. In accesses. */
    window_updates?: number[];
    /** Accesses of windows, of these, that could not be done at once in mapped memory. In accesses. */
    window_by_message?: number[];
    /** Items of aggregators that left in a bucket, counted at each place of their route. In items. */
    items_pushed?: number[];
    /** Buckets of aggregators sent. In buckets. */
    buckets_sent?: number[];
    /** Items of aggregators applied. In items. */
    items_applied?: number[];
    /** Items of aggregators lost to a dead place, a cancelled finish, or a panic of their function. In items. */
    items_lost?: number[];
    /** Times that an item had to wait for room in a bucket. In waits. */
    aggregator_waits?: number[];
    /** Guards that read a shared object. In guards. */
    object_reads?: number[];
    /** Guards that write a shared object. In guards. */
    object_writes?: number[];
    /** Guards of shared objects granted to another place. In guards. */
    object_hand_overs?: number[];
    /** Times that caches had to invalidate or write back a shared object. In flushes. */
    object_flushes?: number[];
    /** Page faults in arrays that places share page by page. In faults. */
    page_faults?: number[];
    /** Pages of shared arrays that arrived: as a permission, or as a copy. In pages. */
    pages_fetched?: number[];
    /** Pages of shared arrays given up to other places, and copies that were dropped. In pages. */
    pages_revoked?: number[];
    /** Messages about pages and locks of shared arrays to other places. In messages. */
    page_messages?: number[];
    /** Bytes of pages and of differences of pages that were copied. In bytes. */
    page_bytes?: number[];
    /** Locks of shared arrays acquired. In locks. */
    region_locks?: number[];
}

/** Those that each run has. */
export const COLUMNS = [
    "tasks",
    "queue",
    "blocked",
    "messages_sent",
    "messages_received",
    "bytes_sent",
    "bytes_received",
    "control_messages",
    "control_bytes",
    "put_aside",
    "finishes_open",
    "finishes_released",
    "busy_ns",
    "memory_bytes",
] as const;
