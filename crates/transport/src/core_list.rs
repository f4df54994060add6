//! Cores in an order, as a user lists them: how they are read, told and counted.
//!
//! Here because transports put places on cores of their own kind, processors of the host or cores of a modelled chip,
//! and one notation serves them all. It knows numbers only, and not which cores there are. Invariant: no core is there
//! twice, no range could be joined to the one before, and one core is there at least; so equal lists are told the same.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Cores in an order, each once: ranges of numbers, as few as can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoreList(Vec<(u32, u32)>);

/// Reason why something is no list of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreListError {
    /// It is not cores and ranges with commas, or there is no core at all.
    Unreadable,
    /// A core is listed more than once.
    Duplicate {
        /// Number of the core.
        core: u32,
    },
}

impl fmt::Display for CoreListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoreListError::Unreadable => {
                f.write_str("cores and ranges of cores separated by commas, such as 0,2,10-13")
            }
            CoreListError::Duplicate { core } => write!(f, "each core once ({core} is repeated)"),
        }
    }
}

impl std::error::Error for CoreListError {}

impl FromStr for CoreList {
    type Err = CoreListError;

    /// Reads cores and ranges with commas.
    ///
    /// # Errors
    /// The text is no such list, or a core is there twice.
    fn from_str(text: &str) -> Result<CoreList, CoreListError> {
        let ranges = text.split(',').map(|word| range(word.trim()));
        CoreList::of(ranges.collect::<Option<Vec<_>>>().ok_or(CoreListError::Unreadable)?)
    }
}

impl CoreList {
    /// The cores of these ranges. An empty range is none.
    ///
    /// # Errors
    /// A core is there twice, or there is no core at all.
    pub fn of(ranges: impl IntoIterator<Item = RangeInclusive<u32>>) -> Result<CoreList, CoreListError> {
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
            return Err(CoreListError::Duplicate { core: pair[1].0 });
        }
        if list.is_empty() { Err(CoreListError::Unreadable) } else { Ok(CoreList(list)) }
    }

    /// Returns the number of cores.
    #[expect(clippy::len_without_is_empty, reason = "one core is there at least")]
    pub fn len(&self) -> u32 {
        let lengths = self.0.iter().map(|(first, last)| u64::from(last - first) + 1);
        u32::try_from(lengths.sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// The cores in their order.
    pub fn cores(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// A core of the list that is none of the first `cores`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_told_the_same_and_read_as_they_are_told() {
        for (text, printed) in
            [("0,2,10-13", "0,2,10-13"), (" 4 , 5-6", "4-6"), ("4-4,5-5,6", "4-6"), ("2,1", "2,1")]
        {
            let list: CoreList = text.parse().unwrap();
            assert_eq!((list.to_string().as_str(), Ok(list)), (printed, printed.parse()));
        }
        assert_eq!(CoreList::of([0..=0, 2..=3]).unwrap().cores().collect::<Vec<_>>(), [0, 2, 3]);
    }

    #[test]
    fn what_is_no_list_is_refused_and_what_is_not_there_is_found() {
        for text in ["", "0,", "-1", "3-1", "+1", "4294967296"] {
            assert_eq!(text.parse::<CoreList>(), Err(CoreListError::Unreadable), "{text}");
        }
        assert_eq!("3,0-5".parse::<CoreList>(), Err(CoreListError::Duplicate { core: 3 }));
        let list: CoreList = "0-4294967295".parse().unwrap();
        assert_eq!((list.len(), list.missing(8)), (u32::MAX, Some(u32::MAX)));
    }
}
