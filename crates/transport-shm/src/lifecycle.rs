//! The life of a place as one word of shared memory.
//!
//! One word, so that state and cause change together. The low byte is the state. For a place that broke the format the
//! other bytes say how, where, and which place saw it; see [`Lifecycle::encode`]. This module does not watch processes.

use crate::ring::RingFault;
use isles_transport::{Class, Death, PlaceId};

/// Stage of a place in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// Nobody has joined as this place yet.
    Absent,
    /// An endpoint is attached, or is about to be.
    Joined,
    /// The place left the run; not a death.
    Left,
    /// Its process ended, or its endpoint was dropped without leaving.
    Ended(ExitCause),
    /// Its process was refused, because it runs another program image.
    Refused,
    /// It broke the format.
    Corrupt(CorruptionReport),
}

/// Cause of the end of a place's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCause {
    /// The cause is unknown, or the place is a thread.
    Unseen,
    /// The process ended by itself, with this code.
    Code(i32),
    /// The process was ended by this signal.
    Signal(i32),
}

/// Report of a place about another that broke the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptionReport {
    /// Violation of the format.
    pub fault: RingFault,
    /// The class of the ring.
    pub class: Class,
    /// Place that detected it, at the other end of the ring.
    pub witness: PlaceId,
    /// Offset in the ring, in bytes.
    pub offset: u32,
}

/// The word of a place that has joined.
pub(crate) const JOINED: u64 = 1;

impl Lifecycle {
    /// Returns the word: the state in bits 0 to 7. For a corrupt place: fault in 8 to 14, class in 15, witness in 16 to
    /// 31, offset in 32 to 63. For an ended one: kind of cause in 8 to 15, code or signal in 32 to 63.
    pub fn encode(self) -> u64 {
        match self {
            Lifecycle::Absent => 0,
            Lifecycle::Joined => JOINED,
            Lifecycle::Left => 2,
            Lifecycle::Ended(ExitCause::Unseen) => 3,
            Lifecycle::Ended(ExitCause::Code(code)) => 3 | 1 << 8 | u64::from(code as u32) << 32,
            Lifecycle::Ended(ExitCause::Signal(signal)) => 3 | 2 << 8 | u64::from(signal as u32) << 32,
            Lifecycle::Refused => 4,
            Lifecycle::Corrupt(CorruptionReport { fault, class, witness, offset }) => {
                5 | fault_number(fault) << 8
                    | u64::from(class == Class::Data) << 15
                    | u64::from(witness.0 as u16) << 16
                    | u64::from(offset) << 32
            }
        }
    }

    /// Decodes a word; an invalid word counts as the end of its place.
    pub fn decode(word: u64) -> Lifecycle {
        match word & 0xFF {
            0 => Lifecycle::Absent,
            JOINED => Lifecycle::Joined,
            2 => Lifecycle::Left,
            4 => Lifecycle::Refused,
            5 => Lifecycle::Corrupt(CorruptionReport {
                fault: numbered_fault(word >> 8 & 0x7F),
                class: if word >> 15 & 1 == 0 { Class::Control } else { Class::Data },
                witness: PlaceId((word >> 16 & 0xFFFF) as u32),
                offset: (word >> 32) as u32,
            }),
            3 if word >> 8 & 0xFF == 1 => Lifecycle::Ended(ExitCause::Code((word >> 32) as i32)),
            3 if word >> 8 & 0xFF == 2 => Lifecycle::Ended(ExitCause::Signal((word >> 32) as i32)),
            _ => Lifecycle::Ended(ExitCause::Unseen),
        }
    }

    /// Returns `true` if the place will never receive or send a message again, and did not leave the run.
    pub fn is_dead(self) -> bool {
        matches!(self, Lifecycle::Ended(_) | Lifecycle::Refused | Lifecycle::Corrupt(_))
    }

    /// Returns the cause of death of the place, if it is dead.
    pub fn death(self, place: PlaceId) -> Option<Death> {
        match self {
            Lifecycle::Absent | Lifecycle::Joined | Lifecycle::Left => None,
            Lifecycle::Ended(ExitCause::Unseen) | Lifecycle::Refused => Some(Death::Ended),
            Lifecycle::Ended(ExitCause::Code(code)) => Some(Death::Exited(code)),
            Lifecycle::Ended(ExitCause::Signal(signal)) => Some(Death::Killed(signal)),
            Lifecycle::Corrupt(evidence) => Some(Death::Corrupt(evidence.text(place))),
        }
    }

    /// Returns `true` if messages to the place are lost.
    pub fn is_over(self) -> bool {
        !matches!(self, Lifecycle::Absent | Lifecycle::Joined)
    }
}

impl CorruptionReport {
    /// Describes the violation in one line: fault, ring, offset and witness.
    fn text(&self, place: PlaceId) -> String {
        let what = match self.fault {
            RingFault::Mark => "a header without its mark",
            RingFault::RecordKind => "a header of unknown kind",
            RingFault::Length => "a record that leaves the ring",
            RingFault::Head => "a head outside what was sent",
            RingFault::Block => "a block outside the arena of its sender",
            RingFault::Message => "a message that no sound place sends",
        };
        let class = match self.class {
            Class::Control => "control",
            Class::Data => "data",
        };
        let (offset, witness) = (self.offset, self.witness);
        match self.fault {
            RingFault::Head => {
                format!("{what}, in the {class} ring from {witness} to {place}, seen by {witness}")
            }
            RingFault::Message => format!("{what}, from {place} to {witness}, seen by {witness}"),
            _ => format!(
                "{what}, in the {class} ring from {place} to {witness} at byte {offset}, seen by {witness}"
            ),
        }
    }
}

fn fault_number(fault: RingFault) -> u64 {
    match fault {
        RingFault::Mark => 0,
        RingFault::RecordKind => 1,
        RingFault::Length => 2,
        RingFault::Head => 3,
        RingFault::Block => 4,
        RingFault::Message => 5,
    }
}

fn numbered_fault(number: u64) -> RingFault {
    match number {
        1 => RingFault::RecordKind,
        2 => RingFault::Length,
        3 => RingFault::Head,
        4 => RingFault::Block,
        5 => RingFault::Message,
        _ => RingFault::Mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_life_comes_back_from_its_word() {
        let mut lives = vec![Lifecycle::Absent, Lifecycle::Joined, Lifecycle::Left, Lifecycle::Refused];
        lives.extend(
            [
                ExitCause::Unseen,
                ExitCause::Code(0),
                ExitCause::Code(-1),
                ExitCause::Code(255),
                ExitCause::Signal(9),
            ]
            .map(Lifecycle::Ended),
        );
        for fault in [
            RingFault::Mark,
            RingFault::RecordKind,
            RingFault::Length,
            RingFault::Head,
            RingFault::Block,
            RingFault::Message,
        ] {
            for class in [Class::Control, Class::Data] {
                lives.push(Lifecycle::Corrupt(CorruptionReport {
                    fault,
                    class,
                    witness: PlaceId(255),
                    offset: 131_008,
                }));
            }
        }
        for life in lives {
            assert_eq!(Lifecycle::decode(life.encode()), life);
            assert_eq!(life.is_dead(), life.death(PlaceId(1)).is_some());
        }
    }
}
