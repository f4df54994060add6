//! Cores in an order: how they are read, told, counted and found on a chip.
//!
//! It knows numbers only. Invariant: no core is there twice, no range could be joined to the one before, and one core
//! is there at least; so equal lists are told the same.

use super::Misplacement;
use isles_chip::topology::CoreId;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Cores in an order, each once: ranges of numbers, as few as can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoreList(Vec<(u32, u32)>);

impl FromStr for CoreList {
    type Err = Misplacement;

    /// Reads cores and ranges with commas.
    ///
    /// # Errors
    /// The text is no such list, or a core is there twice.
    fn from_str(text: &str) -> Result<CoreList, Misplacement> {
        let ranges = text.split(',').map(|word| range(word.trim()));
        CoreList::of(ranges.collect::<Option<Vec<_>>>().ok_or(Misplacement::Unreadable)?)
    }
}

impl CoreList {
    /// The cores of these ranges. An empty range is none.
    ///
    /// # Errors
    /// A core is there twice, or there is no core at all.
    pub fn of(ranges: impl IntoIterator<Item = RangeInclusive<u32>>) -> Result<CoreList, Misplacement> {
        let mut list: Vec<(u32, u32)> = Vec::new();
        for (first, last) in
            ranges.into_iter().filter(|range| !range.is_empty()).map(RangeInclusive::into_inner)
        {
            match list.last_mut() {
                Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
                _ => list.push((first, last)),
            }
        }
        let mut sorted = list.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[1].0 <= pair[0].1) {
            return Err(Misplacement::Twice { core: pair[1].0 });
        }
        if list.is_empty() { Err(Misplacement::Unreadable) } else { Ok(CoreList(list)) }
    }

    /// How many cores there are.
    #[expect(clippy::len_without_is_empty, reason = "one core is there at least")]
    pub fn len(&self) -> u32 {
        let lengths = self.0.iter().map(|(first, last)| u64::from(last - first) + 1);
        u32::try_from(lengths.sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// The cores in their order.
    pub fn cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last).map(CoreId)
    }

    /// A core of the list that a chip of so many cores does not have.
    pub fn missing(&self, cores: u32) -> Option<u32> {
        let (first, last) = self.0.iter().find(|(_, last)| *last >= cores)?;
        Some(if *first < cores { *last } else { *first })
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{first}")?;
            if first < last {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

/// A core, or a range from the lower to the higher.
fn range(word: &str) -> Option<RangeInclusive<u32>> {
    let number = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| plain)
    };
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(first..=last)
}
