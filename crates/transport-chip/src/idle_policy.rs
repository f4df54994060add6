//! Idle policies: what a place does while it waits for a message.
//!
//! The protocols poll, which draws almost as much power as computing. A place may also halt between polls: that draws
//! little, but arrivals wait for the next poll. The cost of halting and waking a core of the SCC is unpublished; here
//! it is zero. Invariant: a place polls at least once before its next turn.

use isles_chip::quantity::Picoseconds;
use std::fmt;
use std::str::FromStr;

/// Behaviour of a waiting place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdlePolicy {
    /// Polls continuously.
    #[default]
    Poll,
    /// Halts for this time before each poll.
    Nap(Picoseconds),
}

/// Longest nap: a second. With longer ones a run would seem to stall.
const NAP_MAX: Picoseconds = Picoseconds(1_000_000_000_000);

/// Valid idle policies, for error texts.
const RESTS: &str = "poll, or nap:TIME with a time up to a second, such as nap:100us";

impl FromStr for IdlePolicy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<IdlePolicy, &'static str> {
        if text == "poll" {
            return Ok(IdlePolicy::Poll);
        }
        let length = text.strip_prefix("nap:").and_then(|length| length.parse().ok());
        length.filter(|length| *length <= NAP_MAX).map(IdlePolicy::Nap).ok_or(RESTS)
    }
}

impl fmt::Display for IdlePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdlePolicy::Poll => f.write_str("poll"),
            // In the form that `from_str` reads.
            IdlePolicy::Nap(length) => {
                write!(f, "nap:{}", length.to_string().replace(' ', "").replace('µ', "u"))
            }
        }
    }
}

impl IdlePolicy {
    /// Returns the start of the poll that finds an arrival at `time`, for a place that has waited since `now`, if a
    /// poll takes `look`.
    pub(crate) fn first_look(self, now: Picoseconds, time: Picoseconds, look: Picoseconds) -> Picoseconds {
        let wait = time.0.saturating_sub(now.0);
        match self {
            // At least one more poll, because earlier arrivals were seen before the wait.
            IdlePolicy::Poll => now + look * wait.div_ceil(look.0).max(1),
            IdlePolicy::Nap(nap) => {
                let naps = (wait + look.0).div_ceil(nap.0 + look.0).max(1);
                now + nap * naps + look * (naps - 1)
            }
        }
    }

    /// Returns the halted part of a wait of length `wait`.
    pub(crate) fn halted(self, wait: Picoseconds, look: Picoseconds) -> Picoseconds {
        match self {
            IdlePolicy::Poll => Picoseconds::ZERO,
            IdlePolicy::Nap(nap) => {
                let (naps, rest) = (wait.0 / (nap.0 + look.0), wait.0 % (nap.0 + look.0));
                nap * naps + Picoseconds(rest.min(nap.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Picoseconds = Picoseconds(10);

    fn look(rest: IdlePolicy, time: u64) -> u64 {
        rest.first_look(Picoseconds(100), Picoseconds(time), LOOK).0
    }

    #[test]
    fn polls_are_back_to_back() {
        assert_eq!(
            [0, 100, 101, 110, 111].map(|time| look(IdlePolicy::Poll, time)),
            [110, 110, 110, 110, 120]
        );
        assert_eq!(IdlePolicy::Poll.halted(Picoseconds(1_000), LOOK), Picoseconds::ZERO);
    }

    #[test]
    fn a_nap_comes_before_each_look() {
        let nap = IdlePolicy::Nap(Picoseconds(90));
        // Polls start at 190, 290, 390 and take 10.
        assert_eq!([0, 100, 190, 191, 290, 291].map(|time| look(nap, time)), [190, 190, 190, 290, 290, 390]);
        for (wait, halted) in
            [(0, 0), (50, 50), (90, 90), (95, 90), (100, 90), (150, 140), (190, 180), (290, 270)]
        {
            assert_eq!(nap.halted(Picoseconds(wait), LOOK), Picoseconds(halted));
        }
    }

    #[test]
    fn rests_are_read_as_they_are_written() {
        for text in ["poll", "nap:100us", "nap:1.5ms", "nap:1s"] {
            assert_eq!(text.parse::<IdlePolicy>().unwrap().to_string(), text);
        }
        for text in ["", "nap", "nap:", "nap:100", "nap:2s", "nap:0us", "sleep", "nap:-1us"] {
            assert_eq!(text.parse::<IdlePolicy>(), Err(RESTS), "{text}");
        }
    }
}
