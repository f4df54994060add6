//! A hash of all that happened in a run.
//!
//! Two runs that differ here differ in an event: its time, its kind, its owner or its size. It is no protection against
//! anybody who looks for two runs of one digest.

use super::Key;
use std::fmt;

/// What the lanes begin with: digits of pi. A lane of nothing would let the first event pass unseen.
const LANES: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// What a description is mixed with, digits of pi as well; its first three bits, which a kind has, are none.
const SALT: u64 = 0x0409_3822_299f_31d0;

/// 128 bits over the keys, kinds and sizes of all events so far, and how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    lanes: [u64; 2],
    events: u64,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest { lanes: LANES, events: 0 }
    }
}

impl Digest {
    /// Takes in one event: one of seven kinds, which are not 0, and what there is to say of it in 61 bits.
    #[inline]
    pub fn record(&mut self, key: Key, kind: u32, size: u64) {
        debug_assert!((1..8).contains(&kind) && size >> 61 == 0, "{kind} or {size} would hide the other");
        let [time, rest] = [(key.bits() >> 64) as u64, key.bits() as u64];
        // Neither factor that an event brings is ever zero: the kind is not, and what is odd is not.
        self.lanes[0] = fold(self.lanes[0] ^ time, size ^ u64::from(kind) << 61 ^ SALT);
        self.lanes[1] = fold(self.lanes[1] ^ rest, self.lanes[0] | 1);
        self.events += 1;
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }
}

/// Both halves of the product, one over the other: each bit of a factor reaches all others. After wyhash's `mum`
/// (Wang Yi 2019, <https://github.com/wangyi-fudan/wyhash>).
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.lanes[0], self.lanes[1])
    }
}
