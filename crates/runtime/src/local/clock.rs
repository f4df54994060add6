//! Where a place gets the time from.

use std::time::{Duration, Instant};

/// The time source of a machine: the host's, or a modelled world's.
pub enum Clock {
    /// Time since the place started, by the host's monotonic clock.
    Host(Instant),
    /// Time that a driver invents; the function answers what it is now.
    Invented(Box<dyn Fn() -> Duration>),
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
            Clock::Invented(now) => now(),
        }
    }
}
