//! The plan of a simulated world, as plain values: delays, capacities, deaths and stops.
//!
//! A plan has ranges, from which the seed draws. It holds no state of a run.

use crate::random::Random;
use crate::{Class, Limits, PlaceId};
use std::ops::{Range, RangeInclusive};

/// Delivery of one class of messages between each ordered pair of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassDelivery {
    /// Number of messages that fit between sender and receiver; at least 1.
    pub capacity: usize,
    /// Steps from sending a message until it can be delivered.
    pub delay_steps: RangeInclusive<u64>,
}

/// The death of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedDeath {
    /// Place that dies.
    pub place: PlaceId,
    /// Step of the world at which it dies.
    pub step: u64,
}

/// Steps during which one place gets no turn, as a process between `SIGSTOP` and `SIGCONT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStop {
    /// Place that is stopped.
    pub place: PlaceId,
    /// Steps of the world during which it is stopped.
    pub steps: Range<u64>,
}

/// Everything that a world does of its own accord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Fixes every draw.
    pub seed: u64,
    /// The control class.
    pub control: ClassDelivery,
    /// The data class.
    pub data: ClassDelivery,
    /// True if the next deliverable message is drawn; otherwise it is the one that has been deliverable the longest.
    pub reorder: bool,
    /// Maximum number of arrivals of one call of `progress`; with `reorder` each call draws its own bound up to this.
    pub batch_max: usize,
    /// Maximum number of undropped blocks that one place may have sent; at least 1.
    pub blocks_max: usize,
    /// True if a send that finds no room may wait for it; the driver asks [`World::waits_on`](super::World::waits_on).
    pub sends_wait: bool,
    /// Limits that the endpoints report.
    pub limits: Limits,
    /// Number of places on one host, the first ones on the first; at least 1. Memory is shared within a host only.
    pub places_per_host: u32,
    /// Words of each place; 0: no memory is shared, neither words nor regions.
    pub words: u32,
    /// Places that die, and when.
    pub losses: Vec<PlannedDeath>,
    /// Places that are stopped, and when each continues.
    pub stops: Vec<PlannedStop>,
    /// Steps from a death until another place knows of it, drawn for each other place.
    pub notice_steps: RangeInclusive<u64>,
}

impl Plan {
    /// Returns a plan without delay, with ample queues and words, in which nobody dies.
    pub fn calm(seed: u64) -> Plan {
        let lane = ClassDelivery { capacity: 1_024, delay_steps: 0..=0 };
        Plan {
            seed,
            control: lane.clone(),
            data: lane,
            reorder: false,
            batch_max: 64,
            blocks_max: 64,
            sends_wait: false,
            limits: Limits { inline_bytes_max: 4_096, control_bytes_max: 1_024, block_bytes_max: 64 << 20 },
            places_per_host: u32::MAX,
            words: 16,
            losses: Vec::new(),
            stops: Vec::new(),
            notice_steps: 0..=0,
        }
    }

    /// Returns a plan with tiny queues, for which sends wait, and uneven delays, all drawn from the seed. Every second
    /// seed has no words, one in four has hosts of 2 places and one in four hosts of 3, and in every third some places
    /// stop for a while; nobody dies.
    pub fn adversarial(seed: u64) -> Plan {
        let mut random = Random::new(seed ^ 0x0070_6c61_6e00);
        let mut lane = |delay_max| ClassDelivery {
            capacity: 1 + random.index(4),
            delay_steps: 0..=random.below(delay_max),
        };
        Plan {
            control: lane(40),
            data: lane(200),
            reorder: true,
            batch_max: 1 + random.index(8),
            blocks_max: 1 + random.index(4),
            sends_wait: true,
            places_per_host: match seed % 4 {
                2 => 2,
                3 => 3,
                _ => u32::MAX,
            },
            words: if seed.is_multiple_of(2) { 16 } else { 0 },
            notice_steps: 0..=random.below(300),
            stops: match seed % 3 {
                0 => (0..STOPS).map(|_| drawn_stop(&mut random)).collect(),
                _ => Vec::new(),
            },
            ..Plan::calm(seed)
        }
    }

    /// Returns the delivery of `class`.
    pub fn lane(&self, class: Class) -> &ClassDelivery {
        match class {
            Class::Control => &self.control,
            Class::Data => &self.data,
        }
    }
}

/// Number of stops in an adversarial world that has any.
const STOPS: usize = 3;

/// Draws a stop of one of the first few places, early enough to occur in short programs.
fn drawn_stop(random: &mut Random) -> PlannedStop {
    let place = PlaceId(random.below(5) as u32);
    let start = random.below(3_000);
    PlannedStop { place, steps: start..start + 1 + random.below(3_000) }
}
