//! The counters of all places at one moment, a column for each.
//!
//! The columns and their names are those of the table of counters. Invariant: a column that is shown has a value for
//! each place.

use isles_telemetry::{COUNTERS, CounterId, CounterInfo, Sample};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The words of all counters, by place.
///
/// As JSON it is one list for each counter, by its name, in the unit of the table. Counters of other machines are left
/// out, and those of services that are 0 at all places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterColumns {
    /// The words of each counter; `None` if the machine lacks it.
    columns: Vec<Option<Vec<u64>>>,
}

impl Default for CounterColumns {
    fn default() -> Self {
        CounterColumns { columns: vec![Some(Vec::new()); COUNTERS.len()] }
    }
}

impl CounterColumns {
    /// Returns the columns of a sample, without those for which `is_known` is false.
    pub fn of(sample: &Sample, is_known: impl Fn(&CounterInfo) -> bool) -> CounterColumns {
        let words = |counter: &CounterInfo| {
            sample.places.iter().map(|place| place.value(counter.id)).collect::<Vec<u64>>()
        };
        let columns = COUNTERS.iter().map(|counter| is_known(counter).then(|| words(counter)));
        CounterColumns { columns: columns.collect() }
    }

    /// Returns the words of a counter, by place; `None` if it is not known.
    pub fn words(&self, counter: CounterId) -> Option<&[u64]> {
        self.columns[counter.index()].as_deref()
    }

    /// Returns the word of a counter at a place; 0 if it is not known.
    pub fn word(&self, counter: CounterId, place: usize) -> u64 {
        self.words(counter).and_then(|words| words.get(place)).copied().unwrap_or_default()
    }

    /// Returns the displayed value of a counter at a place; `None` if it is not known.
    pub fn shown(&self, counter: CounterId, place: usize) -> Option<f64> {
        let word = self.words(counter)?.get(place)?;
        Some(COUNTERS[counter.index()].shown(*word))
    }

    /// Returns the shown counters with their words.
    pub fn iter(&self) -> impl Iterator<Item = (&'static CounterInfo, &[u64])> {
        let known = |counter: &'static CounterInfo| Some((counter, self.words(counter.id)?));
        let is_shown = |(counter, words): &(&CounterInfo, &[u64])| {
            !counter.is_of_service() || words.iter().any(|word| *word != 0)
        };
        COUNTERS.iter().filter_map(known).filter(is_shown)
    }
}

impl Serialize for CounterColumns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (counter, words) in self.iter() {
            match counter.divisor {
                1 => map.serialize_entry(counter.name, words)?,
                _ => {
                    let values: Vec<f64> = words.iter().map(|word| counter.shown(*word)).collect();
                    map.serialize_entry(counter.name, &values)?;
                }
            }
        }
        map.end()
    }
}
