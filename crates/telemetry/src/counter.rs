//! The table of counters: name, unit, description, and whether a value grows or is a level.
//!
//! Pages, logs, `isles counters` and the series of a history take names from here. What looks at places in columns
//! repeats them by hand: `view`, the interface of the server with the page in a browser, `isles top`; and `/metrics`,
//! with names in base units and texts of its own. So a new counter is a row here and a line in each of these.
//! Invariant: the order of the table is that of [`CounterId`], and a counter that is added, taken away or renamed
//! changes [`names_hash`].

/// Whether a counter counts from zero or is a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// It only grows during a run.
    Count,
    /// It goes up and down.
    Gauge,
}

impl CounterKind {
    /// The word for it in the interface.
    pub fn name(self) -> &'static str {
        match self {
            CounterKind::Count => "count",
            CounterKind::Gauge => "gauge",
        }
    }
}

/// What there is to know of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterInfo {
    /// Which one it is.
    pub id: CounterId,
    /// Its name in every interface.
    pub name: &'static str,
    /// The unit of a value.
    pub unit: &'static str,
    /// Whether it grows or is a level.
    pub kind: CounterKind,
    /// What it counts, in one sentence.
    pub description: &'static str,
}

macro_rules! counters {
    ($($id:ident, $name:literal, $unit:literal, $kind:ident, $description:literal;)*) => {
        /// A counter of a place.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CounterId {
            $(#[doc = $description] $id,)*
        }

        /// All counters of a place, in the order of their words.
        pub const COUNTERS: &[CounterInfo] = &[
            $(CounterInfo {
                id: CounterId::$id,
                name: $name,
                unit: $unit,
                kind: CounterKind::$kind,
                description: $description,
            },)*
        ];
    };
}

counters! {
    Tasks, "tasks", "tasks", Count, "Tasks that have ended at the place.";
    Queue, "queue", "tasks", Gauge, "Tasks that are ready to run.";
    Blocked, "blocked", "tasks", Gauge, "Tasks that have begun and wait.";
    MessagesSent, "messages_sent", "messages", Count, "Messages sent to other places, of both classes.";
    MessagesReceived, "messages_received", "messages", Count, "Messages received from other places.";
    BytesSent, "bytes_sent", "bytes", Count, "Bytes of the bodies of messages sent.";
    BytesReceived, "bytes_received", "bytes", Count, "Bytes of the bodies of messages received.";
    ControlMessages, "control_messages", "messages", Count, "Control messages, of those sent.";
    PutAside, "put_aside", "messages", Count, "Messages that had to wait for room in a queue.";
    FinishesOpen, "finishes_open", "finishes", Gauge, "Finishes opened at the place and not released.";
    FinishesReleased, "finishes_released", "finishes", Count, "Finishes released at the place.";
    BusyTime, "busy_ns", "ns", Count, "Time in which the place did not wait, by its own clock.";
    MemoryBytes, "memory_bytes", "bytes", Gauge, "Resident memory of the process of the place.";
    ClockKilohertz, "clock_khz", "kHz", Gauge, "Clock of the core; on a modelled chip only.";
    Microvolts, "microvolts", "uV", Gauge, "Supply of the core; on a modelled chip only.";
    Energy, "energy_nj", "nJ", Count, "Energy that the core has drawn, modelled; on a modelled chip only.";
    EnergyTime, "energy_ns", "ns", Count, "Modelled time until which that energy is known.";
}

impl CounterId {
    /// Its index in [`COUNTERS`], and of its word in a page.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The counter of a name.
    pub fn of_name(name: &str) -> Option<CounterId> {
        COUNTERS.iter().find(|counter| counter.name == name).map(|counter| counter.id)
    }
}

/// A hash of the names of all counters in their order (FNV-1a): files of another table are refused by it.
pub fn names_hash() -> u64 {
    let bytes = COUNTERS.iter().flat_map(|counter| counter.name.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
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
        }
        let names: BTreeSet<&str> = COUNTERS.iter().map(|counter| counter.name).collect();
        assert_eq!(names.len(), COUNTERS.len());
        assert_eq!(CounterId::of_name("nothing"), None);
    }
}
