//! Credit of a sender: the number of units that one receiver has not yet acknowledged.
//!
//! All bounds on what waits at a receiver use the same terms: a sender *takes* credit for each unit, gives it *back* if
//! the unit is not sent, and the receiver *acknowledges* units that it has handed on. Messages of teams and buckets of
//! aggregation are counted so. Slots of channels differ, because they are lent from one buffer and can be recalled; so
//! does the credit between ranks, which counts bytes and blocks. Invariant: never more units than the bound are
//! unacknowledged.

/// The credit of a sender towards one receiver, in units that are not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCredit {
    unacknowledged: u32,
}

impl SendCredit {
    /// Returns `true` if there is credit for one unit, of at most `max`.
    #[inline]
    pub fn has_room(self, max: u32) -> bool {
        self.unacknowledged < max
    }

    /// Takes the credit for one unit, of at most `max`; returns whether there was any.
    #[inline]
    pub fn take(&mut self, max: u32) -> bool {
        let has_room = self.has_room(max);
        self.unacknowledged += u32::from(has_room);
        has_room
    }

    /// Gives back the credit for one unit that was not sent.
    pub fn give_back(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    /// Handles the acknowledgement of `count` units.
    ///
    /// # Errors
    /// More than were sent: the receiver breaks the protocol. Nothing changes.
    #[inline]
    pub fn acknowledge(&mut self, count: u32) -> Result<(), TooMany> {
        self.unacknowledged = self.unacknowledged.checked_sub(count).ok_or(TooMany)?;
        Ok(())
    }

    /// Drops all units, because the receiver is dead and acknowledges nothing more.
    pub fn forget(&mut self) {
        self.unacknowledged = 0;
    }
}

/// More units are acknowledged than were sent, or more have arrived than may wait here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In any order of events, the unacknowledged units are those taken and neither given back nor acknowledged,
        /// and never more than the bound.
        #[test]
        fn credit_is_what_was_taken_and_is_not_back(
            max in 1..20_u32,
            steps in prop::collection::vec((0..4_u8, 0..5_u32), 0..100),
        ) {
            let (mut credit, mut out) = (SendCredit::default(), 0);
            for (step, count) in steps {
                match step {
                    0 => {
                        prop_assert_eq!(credit.take(max), out < max);
                        out = max.min(out + 1);
                    }
                    1 if out > 0 => {
                        credit.give_back();
                        out -= 1;
                    }
                    2 => {
                        let expected = if count <= out { Ok(()) } else { Err(TooMany) };
                        prop_assert_eq!(credit.acknowledge(count), expected);
                        out -= if count <= out { count } else { 0 };
                    }
                    3 if count == 0 => {
                        credit.forget();
                        out = 0;
                    }
                    _ => {}
                }
                prop_assert_eq!(credit.has_room(max), out < max);
            }
        }
    }
}
