//! Time source of a place.

use std::time::{Duration, Instant};

/// The time source of a place: the host's clock, or that of a world in one thread.
pub enum Clock {
    /// Time since the place started, by the host's monotonic clock.
    Host(Instant),
    /// Time of a modelled core: it advances with the place's operations, even within a turn.
    Modelled(Box<dyn Fn() -> Duration>),
    /// Steps of a driver: time does not advance within a turn of a place.
    Steps(Box<dyn Fn() -> Duration>),
}

impl Clock {
    /// Returns the host's clock, starting now.
    pub fn host() -> Self {
        Clock::Host(Instant::now())
    }

    /// Returns the time since the start of the run at this place.
    pub fn now(&self) -> Duration {
        match self {
            Clock::Host(start) => start.elapsed(),
            Clock::Modelled(now) | Clock::Steps(now) => now(),
        }
    }
}
