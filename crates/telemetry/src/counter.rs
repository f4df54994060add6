//! The table of counters: name, unit, description, group and kind of each.
//!
//! Everything that shows counters is derived from it: pages, logs, `isles counters`, snapshots and histories of `view`,
//! `/metrics`, the interface of the server with the types of the page, the view of a place in `isles top`, and the
//! report of a run. So a new counter takes a row here and a call where it is incremented. Invariant: the order of the
//! table is that of [`CounterId`], and a counter that is added, taken away or renamed changes [`names_hash`].

/// Kind of a counter: a count from zero, or a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Only grows during a run.
    Count,
    /// Rises and falls.
    Gauge,
}

impl CounterKind {
    /// Returns its name in the interface.
    pub fn name(self) -> &'static str {
        match self {
            CounterKind::Count => "count",
            CounterKind::Gauge => "gauge",
        }
    }
}

/// Group that a counter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterGroup {
    /// Any place: tasks, messages, finishes, time, memory.
    Place,
    /// The core of a modelled chip; only chips have it.
    Core,
    /// Channels.
    Channels,
    /// Messages between members of teams.
    Members,
    /// Windows.
    Windows,
    /// Aggregators.
    Aggregators,
    /// Shared objects.
    Objects,
    /// Arrays that places share page by page.
    Pages,
}

/// Description of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterInfo {
    /// Id of the counter.
    pub id: CounterId,
    /// Its name in every interface.
    pub name: &'static str,
    /// The unit of a value as it is shown.
    pub unit: &'static str,
    /// Divisor of a place's word for the shown value.
    pub divisor: u32,
    /// Group it belongs to.
    pub group: CounterGroup,
    /// Its name in `/metrics` without `isles_`; ends with its base unit.
    pub metric: &'static str,
    /// Kind of its values: a count that grows, or a level.
    pub kind: CounterKind,
    /// Description of the counted thing, in one sentence.
    pub description: &'static str,
}

impl CounterInfo {
    /// Converts a place's word to the displayed value.
    pub fn shown(&self, word: u64) -> f64 {
        word as f64 / f64::from(self.divisor)
    }

    /// Returns `true` if only a modelled chip has it.
    pub fn is_modelled(&self) -> bool {
        self.group == CounterGroup::Core
    }

    /// Returns `true` if its group is that of a service, which only some programs use.
    pub fn is_of_service(&self) -> bool {
        !matches!(self.group, CounterGroup::Place | CounterGroup::Core)
    }
}

macro_rules! counters {
    ($($group:ident { $(
        $id:ident, $name:literal, $unit:literal $(/ $divisor:literal)?, $kind:ident, $metric:literal, $about:literal;
    )* })*) => {
        /// A counter of a place.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CounterId {
            $($(#[doc = $about] $id,)*)*
        }

        /// All counters of a place, in the order of their words.
        pub const COUNTERS: &[CounterInfo] = &[
            $($(CounterInfo {
                id: CounterId::$id,
                name: $name,
                unit: $unit,
                divisor: 1 $(* $divisor)?,
                group: CounterGroup::$group,
                metric: $metric,
                kind: CounterKind::$kind,
                description: $about,
            },)*)*
        ];
    };
}

counters! {
    Place {
        Tasks, "tasks", "tasks", Count, "tasks", "Tasks that have ended at the place.";
        Queue, "queue", "tasks", Gauge, "queue_tasks", "Tasks that are ready to run.";
        Blocked, "blocked", "tasks", Gauge, "blocked_tasks", "Tasks that have begun and wait.";
        MessagesSent, "messages_sent", "messages", Count, "messages_sent",
            "Messages sent to other places, of both classes.";
        MessagesReceived, "messages_received", "messages", Count, "messages_received",
            "Messages received from other places.";
        BytesSent, "bytes_sent", "bytes", Count, "sent_bytes", "Bytes of the bodies of messages sent.";
        BytesReceived, "bytes_received", "bytes", Count, "received_bytes",
            "Bytes of the bodies of messages received.";
        ControlMessages, "control_messages", "messages", Count, "control_messages",
            "Control messages, of those sent.";
        ControlBytes, "control_bytes", "bytes", Count, "control_bytes",
            "Bytes of the bodies of control messages sent.";
        PutAside, "put_aside", "messages", Count, "put_aside",
            "Messages that had to wait for room in a queue.";
        FinishesOpen, "finishes_open", "finishes", Gauge, "open_finishes",
            "Finishes opened at the place and not released.";
        FinishesReleased, "finishes_released", "finishes", Count, "released_finishes",
            "Finishes released at the place.";
        BusyTime, "busy_ns", "ns", Count, "busy_seconds",
            "Time in which the place did not wait, by its own clock.";
        MemoryBytes, "memory_bytes", "bytes", Gauge, "memory_bytes",
            "Resident memory of the process of the place.";
    }
    Core {
        Clock, "clock_mhz", "MHz" / 1_000, Gauge, "clock_hertz", "Clock of the core.";
        Supply, "volt", "V" / 1_000_000, Gauge, "supply_volts", "Supply of the core.";
        Energy, "joule", "J" / 1_000_000_000, Count, "energy_joules", "Energy that the core has drawn, modelled.";
        EnergyTime, "energy_ns", "ns", Count, "energy_seconds",
            "Modelled time until which that energy is known.";
    }
    Channels {
        ChannelsMade, "channels_made", "channels", Count, "channels_made", "Channels made.";
        ChannelSent, "channel_sent", "values", Count, "channel_sent", "Values sent over channels.";
        ChannelReceived, "channel_received", "values", Count, "channel_received",
            "Values received from channels.";
        ChannelWaits, "channel_waits", "operations", Count, "channel_waits",
            "Sends and receives of channels that had to wait.";
        ChannelReturned, "channel_returned", "values", Count, "channel_returned",
            "Values of channels that came back unsent.";
    }
    Members {
        MemberSent, "member_sent", "messages", Count, "member_sent", "Messages to members of teams.";
        MemberUnexpected, "member_unexpected", "messages", Count, "member_unexpected",
            "Messages of members of teams that arrived before their receive.";
        MemberWaits, "member_waits", "messages", Count, "member_waits",
            "Messages to members of teams that had to wait because too many were pending there.";
        MemberRead, "member_read", "messages", Count, "member_read",
            "Long messages of members of teams that were read in place, in one copy.";
    }
    Windows {
        WindowPuts, "window_puts", "accesses", Count, "window_puts", "Puts into parts of windows.";
        WindowGets, "window_gets", "accesses", Count, "window_gets", "Gets from parts of windows.";
        WindowUpdates, "window_updates", "accesses", Count, "window_updates",
            "Accumulates, fetches and exchanges in parts of windows.";
        WindowByMessage, "window_by_message", "accesses", Count, "window_by_message",
            "Accesses of windows, of these, that could not be done at once in mapped memory.";
    }
    Aggregators {
        ItemsPushed, "items_pushed", "items", Count, "items_pushed",
            "Items of aggregators that left in a bucket, counted at each place of their route.";
        BucketsSent, "buckets_sent", "buckets", Count, "buckets_sent", "Buckets of aggregators sent.";
        ItemsApplied, "items_applied", "items", Count, "items_applied", "Items of aggregators applied.";
        ItemsLost, "items_lost", "items", Count, "items_lost",
            "Items of aggregators lost to a dead place, a cancelled finish, or a panic of their function.";
        AggregatorWaits, "aggregator_waits", "waits", Count, "aggregator_waits",
            "Times that an item had to wait for room in a bucket.";
    }
    Objects {
        ObjectReads, "object_reads", "guards", Count, "object_reads", "Guards that read a shared object.";
        ObjectWrites, "object_writes", "guards", Count, "object_writes", "Guards that write a shared object.";
        ObjectHandOvers, "object_hand_overs", "guards", Count, "object_hand_overs",
            "Guards of shared objects granted to another place.";
        ObjectFlushes, "object_flushes", "flushes", Count, "object_flushes",
            "Times that caches had to invalidate or write back a shared object.";
    }
    Pages {
        PageFaults, "page_faults", "faults", Count, "page_faults",
            "Page faults in arrays that places share page by page.";
        PagesFetched, "pages_fetched", "pages", Count, "pages_fetched",
            "Pages of shared arrays that arrived: as a permission, or as a copy.";
        PagesRevoked, "pages_revoked", "pages", Count, "pages_revoked",
            "Pages of shared arrays given up to other places, and copies that were dropped.";
        PageMessages, "page_messages", "messages", Count, "page_messages",
            "Messages about pages and locks of shared arrays to other places.";
        PageBytes, "page_bytes", "bytes", Count, "page_copied_bytes",
            "Bytes of pages and of differences of pages that were copied.";
        RegionLocks, "region_locks", "locks", Count, "region_locks", "Locks of shared arrays acquired.";
    }
}

impl CounterId {
    /// Returns its index in [`COUNTERS`], which is also that of its word in a page.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Looks up a counter by name.
    pub fn of_name(name: &str) -> Option<CounterId> {
        COUNTERS.iter().find(|counter| counter.name == name).map(|counter| counter.id)
    }
}

/// Returns a hash of the names of all counters in order (FNV-1a); a file with another hash is refused.
pub(crate) const fn names_hash() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut counter = 0;
    while counter < COUNTERS.len() {
        let name = COUNTERS[counter].name.as_bytes();
        let mut at = 0;
        while at <= name.len() {
            let byte = if at < name.len() { name[at] } else { 0 }; // ends the name
            hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        counter += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_in_the_order_of_its_ids_and_names_are_unique() {
        for (index, counter) in COUNTERS.iter().enumerate() {
            assert_eq!(counter.id.index(), index, "{}", counter.name);
            assert_eq!(CounterId::of_name(counter.name), Some(counter.id));
            assert!(counter.description.ends_with('.'), "{}", counter.name);
            assert!(counter.divisor > 0 && counter.shown(0) == 0.0, "{}", counter.name);
        }
        let metrics: BTreeSet<&str> = COUNTERS.iter().map(|counter| counter.metric).collect();
        assert_eq!(metrics.len(), COUNTERS.len());
        let names: BTreeSet<&str> = COUNTERS.iter().map(|counter| counter.name).collect();
        assert_eq!(names.len(), COUNTERS.len());
        assert_eq!(CounterId::of_name("nothing"), None);
    }
}
