//! The life of a place as one word of shared memory.
//!
//! A word, so that state and cause change together. Low byte: the state. For a place that broke the format the
//! other bytes say how, where and who saw it; see [`Life::encode`]. It does not watch processes.

use crate::ring::Fault;
use isles_transport::{Class, Death, PlaceId};

/// Where a place is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Nobody has joined as this place yet.
    Absent,
    /// An endpoint is attached, or is about to be.
    Joined,
    /// It said that it is done; not a death.
    Left,
    /// Its process ended, or its endpoint was dropped without a word.
    Ended(End),
    /// Its process was refused: another program image.
    Refused,
    /// It broke the format.
    Corrupt(Evidence),
}

/// How the process of a place ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nobody saw it, or it is a thread.
    Unseen,
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What a place saw when another broke the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// What was broken.
    pub fault: Fault,
    /// The class of the ring.
    pub class: Class,
    /// Who saw it, at the other end of the ring.
    pub witness: PlaceId,
    /// Offset in the ring, in bytes.
    pub offset: u32,
}

impl Life {
    /// The word: state in bits 0 to 7. Of a corrupt place: fault in 8 to 14, class in 15, witness in 16 to 31, offset
    /// in 32 to 63. Of one that ended: how in 8 to 15, the code or signal in 32 to 63.
    pub fn encode(self) -> u64 {
        match self {
            Life::Absent => 0,
            Life::Joined => 1,
            Life::Left => 2,
            Life::Ended(End::Unseen) => 3,
            Life::Ended(End::Code(code)) => 3 | 1 << 8 | u64::from(code as u32) << 32,
            Life::Ended(End::Signal(signal)) => 3 | 2 << 8 | u64::from(signal as u32) << 32,
            Life::Refused => 4,
            Life::Corrupt(Evidence { fault, class, witness, offset }) => {
                5 | fault_number(fault) << 8
                    | u64::from(class == Class::Data) << 15
                    | u64::from(witness.0 as u16) << 16
                    | u64::from(offset) << 32
            }
        }
    }

    /// The life behind a word; a word that cannot be is the end of the place that owns it.
    pub fn decode(word: u64) -> Life {
        match word & 0xFF {
            0 => Life::Absent,
            1 => Life::Joined,
            2 => Life::Left,
            4 => Life::Refused,
            5 => Life::Corrupt(Evidence {
                fault: numbered_fault(word >> 8 & 0x7F),
                class: if word >> 15 & 1 == 0 { Class::Control } else { Class::Data },
                witness: PlaceId((word >> 16 & 0xFFFF) as u32),
                offset: (word >> 32) as u32,
            }),
            3 if word >> 8 & 0xFF == 1 => Life::Ended(End::Code((word >> 32) as i32)),
            3 if word >> 8 & 0xFF == 2 => Life::Ended(End::Signal((word >> 32) as i32)),
            _ => Life::Ended(End::Unseen),
        }
    }

    /// Whether the place will never take or send a message again without having said so.
    pub fn is_dead(self) -> bool {
        matches!(self, Life::Ended(_) | Life::Refused | Life::Corrupt(_))
    }

    /// Why the place is dead, if it is.
    pub fn death(self, place: PlaceId) -> Option<Death> {
        match self {
            Life::Absent | Life::Joined | Life::Left => None,
            Life::Ended(End::Unseen) | Life::Refused => Some(Death::Ended),
            Life::Ended(End::Code(code)) => Some(Death::Exited(code)),
            Life::Ended(End::Signal(signal)) => Some(Death::Killed(signal)),
            Life::Corrupt(evidence) => Some(Death::Corrupt(evidence.text(place))),
        }
    }

    /// Whether messages to the place are lost.
    pub fn is_over(self) -> bool {
        !matches!(self, Life::Absent | Life::Joined)
    }
}

impl Evidence {
    /// One line that names what, which ring, where, and who saw it.
    fn text(&self, place: PlaceId) -> String {
        let what = match self.fault {
            Fault::Mark => "a header without its mark",
            Fault::Kind => "a header of unknown kind",
            Fault::Length => "a record that leaves the ring",
            Fault::Head => "a head outside what was sent",
            Fault::Block => "a block outside the arena of its sender",
            Fault::Message => "a message that no sound place sends",
        };
        let class = match self.class {
            Class::Control => "control",
            Class::Data => "data",
        };
        let (offset, witness) = (self.offset, self.witness);
        match self.fault {
            Fault::Head => {
                format!("{what}, in the {class} ring from {witness} to {place}, seen by {witness}")
            }
            Fault::Message => format!("{what}, from {place} to {witness}, seen by {witness}"),
            _ => format!(
                "{what}, in the {class} ring from {place} to {witness} at byte {offset}, seen by {witness}"
            ),
        }
    }
}

fn fault_number(fault: Fault) -> u64 {
    match fault {
        Fault::Mark => 0,
        Fault::Kind => 1,
        Fault::Length => 2,
        Fault::Head => 3,
        Fault::Block => 4,
        Fault::Message => 5,
    }
}

fn numbered_fault(number: u64) -> Fault {
    match number {
        1 => Fault::Kind,
        2 => Fault::Length,
        3 => Fault::Head,
        4 => Fault::Block,
        5 => Fault::Message,
        _ => Fault::Mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_life_comes_back_from_its_word() {
        let mut lives = vec![Life::Absent, Life::Joined, Life::Left, Life::Refused];
        lives.extend(
            [End::Unseen, End::Code(0), End::Code(-1), End::Code(255), End::Signal(9)].map(Life::Ended),
        );
        for fault in [Fault::Mark, Fault::Kind, Fault::Length, Fault::Head, Fault::Block, Fault::Message] {
            for class in [Class::Control, Class::Data] {
                lives.push(Life::Corrupt(Evidence { fault, class, witness: PlaceId(255), offset: 131_008 }));
            }
        }
        for life in lives {
            assert_eq!(Life::decode(life.encode()), life);
            assert_eq!(life.is_dead(), life.death(PlaceId(1)).is_some());
        }
    }
}
