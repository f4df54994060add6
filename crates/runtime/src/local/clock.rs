//! Time source of a place.

use std::time::{Duration, Instant};

/// The time source of a machine: the host's, or that of a world in one thread.
pub enum Clock {
    /// Time since the place started, by the host's monotonic clock.
    Host(Instant),
    /// Time of a modelled core: it moves with what the place does, also within a turn.
    Modelled(Box<dyn Fn() -> Duration>),
    /// Steps of a driver: none passes within a turn of a place.
    Steps(Box<dyn Fn() -> Duration>),
}

impl Clock {
    /// The host's clock, starting now.
    pub fn host() -> Self {
        Clock::Host(Instant::now())
    }

    /// Time since the start of the run at this place.
    pub fn now(&self) -> Duration {
        match self {
            Clock::Host(start) => start.elapsed(),
            Clock::Modelled(now) | Clock::Steps(now) => now(),
        }
    }
}
