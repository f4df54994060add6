//! A token bucket that chooses the messages which leave at once; the others wait to share a frame.
//!
//! A call of the library costs its sender as much as writing hundreds of messages into a frame, so messages share
//! frames. But a message that waits while its place computes is delayed by that computation. So a few messages may
//! leave at once, and more as time goes by: a token bucket (Turner, 1986). It knows neither frames nor clocks.
//! Invariant: in a time `t` at most `TOKENS` + `t` / `REFILL` + 1 messages leave at once.

use std::time::Duration;

/// Number of messages that may leave at once after a silence.
const TOKENS: u32 = 4;

/// Time after which one more may leave: several times the cost of a call to its sender.
const REFILL: Duration = Duration::from_micros(25);

/// The bucket of one sender.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    tokens: u32,
    /// Time of the last token, since some start.
    refilled: Duration,
}

impl Default for TokenBucket {
    fn default() -> TokenBucket {
        TokenBucket { tokens: TOKENS, refilled: Duration::ZERO }
    }
}

impl TokenBucket {
    /// Returns `true`, and uses up a token, if a message may leave at once at `now`, which must not go back.
    pub fn take(&mut self, now: Duration) -> bool {
        // 64 bits, enough for centuries: a division of longer numbers is a function call.
        let passed = now.saturating_sub(self.refilled).as_nanos() as u64;
        let came = (passed / REFILL.as_nanos() as u64).min(u64::from(TOKENS)) as u32;
        if self.tokens + came >= TOKENS {
            (self.tokens, self.refilled) = (TOKENS, now);
        } else if came > 0 {
            self.tokens += came;
            self.refilled += REFILL * came;
        }
        let may = self.tokens > 0;
        self.tokens -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_few_leave_at_once_and_then_one_in_a_while() {
        let mut bucket = TokenBucket::default();
        let at = |micros| Duration::from_micros(micros);
        assert_eq!((0..6).filter(|_| bucket.take(at(1_000))).count(), 4);
        assert!(!bucket.take(at(1_024)));
        assert!(bucket.take(at(1_025)));
        assert!(!bucket.take(at(1_026)));
        assert_eq!((0..6).filter(|_| bucket.take(at(9_000))).count(), 4);
    }

    proptest! {
        #[test]
        fn no_more_leave_than_the_bound_and_none_is_kept_that_may(gaps in prop::collection::vec(0..90_u64, 1..200)) {
            let (mut bucket, mut now, mut left) = (TokenBucket::default(), Duration::ZERO, Vec::new());
            for gap in gaps {
                now += Duration::from_micros(gap);
                let last = left.last().copied();
                if bucket.take(now) {
                    left.push(now);
                } else {
                    // A message that waits has one before it that left not long ago.
                    prop_assert!(last.is_some_and(|last| now - last < REFILL));
                }
            }
            for (begin, first) in left.iter().enumerate() {
                for (end, last) in left.iter().enumerate().skip(begin) {
                    let bound = u128::from(TOKENS) + (*last - *first).as_nanos() / REFILL.as_nanos();
                    prop_assert!((end - begin + 1) as u128 <= bound + 1);
                }
            }
        }
    }
}
