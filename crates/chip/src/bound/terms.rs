//! The terms of a bound.

use crate::quantity::Picoseconds;
use std::ops::{Add, AddAssign};

/// A kind of time in a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The program's own work.
    Work,
    /// Instructions of the library.
    Instructions,
    /// Accesses to message buffers without contention.
    Accesses,
    /// Waiting for links that others may use.
    Links,
    /// Waiting for buffers that others may access.
    Ports,
    /// Private lines from caches and memory, including contention.
    Memory,
    /// Polls of flags between a write and the poll that sees it.
    Polling,
}

impl Term {
    /// All terms, in the order of display.
    pub const ALL: [Term; 7] = [
        Term::Work,
        Term::Instructions,
        Term::Accesses,
        Term::Links,
        Term::Ports,
        Term::Memory,
        Term::Polling,
    ];

    /// Returns the name of the term, for display.
    pub const fn name(self) -> &'static str {
        match self {
            Term::Work => "work",
            Term::Instructions => "library instructions",
            Term::Accesses => "buffer accesses alone",
            Term::Links => "waiting for links",
            Term::Ports => "waiting for buffers",
            Term::Memory => "private lines",
            Term::Polling => "polling of flags",
        }
    }
}

/// A length of time, divided into terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms([u64; Term::ALL.len()]);

impl Terms {
    /// Makes a time of one kind.
    pub fn of(term: Term, time: Picoseconds) -> Terms {
        let mut terms = Terms::default();
        terms.0[term as usize] = time.0;
        terms
    }

    /// The sum.
    pub fn total(&self) -> Picoseconds {
        Picoseconds(self.0.iter().fold(0, |sum, part| sum.saturating_add(*part)))
    }

    /// The part of one kind.
    pub fn part(&self, term: Term) -> Picoseconds {
        Picoseconds(self.0[term as usize])
    }

    /// Returns the longer one; the first, if they are equal.
    #[must_use]
    pub fn longer(self, other: Terms) -> Terms {
        if other.total() > self.total() { other } else { self }
    }

    /// Returns the terms of `count` in sequence.
    #[must_use]
    pub fn times(self, count: u64) -> Terms {
        Terms(self.0.map(|part| part.saturating_mul(count)))
    }

    /// Returns the total time as one kind.
    #[must_use]
    pub(crate) fn all_as(self, term: Term) -> Terms {
        Terms::of(term, self.total())
    }
}

impl Add for Terms {
    type Output = Terms;

    fn add(self, other: Terms) -> Terms {
        let mut sum = self;
        sum += other;
        sum
    }
}

impl AddAssign for Terms {
    fn add_assign(&mut self, other: Terms) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, part)| *sum = sum.saturating_add(part));
    }
}
