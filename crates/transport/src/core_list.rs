//! Cores in an order, as a user lists them: parsed, formatted and counted.
//!
//! The notation is here because it serves all transports that put places on cores, be they processors of the host or
//! cores of a modelled chip. It does not know which cores exist. Invariant: no core occurs twice, no range could be
//! joined to the previous one, and there is at least one core; so equal lists have equal texts.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Cores in an order, each once, as the smallest number of ranges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoreList(Vec<(u32, u32)>);

/// Error of a list of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreListError {
    /// The text is not a list of cores and ranges with commas, or there is no core.
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

    /// Parses cores and ranges separated by commas.
    ///
    /// # Errors
    /// The text is not such a list, or a core occurs twice.
    fn from_str(text: &str) -> Result<CoreList, CoreListError> {
        let ranges = text.split(',').map(|word| range(word.trim()));
        CoreList::of(ranges.collect::<Option<Vec<_>>>().ok_or(CoreListError::Unreadable)?)
    }
}

impl CoreList {
    /// Creates the list of the cores of these ranges. An empty range has no cores.
    ///
    /// # Errors
    /// A core occurs twice, or there is no core.
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

    /// Returns the cores in their order.
    pub fn cores(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Returns a core of the list that is not among the first `cores`.
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

/// Parses a core, or a range from the lower to the higher core.
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
