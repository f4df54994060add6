//! Reports of groups of stages of a pipeline: lines that a place writes and views read.
//!
//! The lines are recorded like printed lines ([`OutputStream::Stages`](crate::OutputStream)), so they cost nothing
//! unless the run is observed, and the log keeps them.

/// Report of a group of stages at its place.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSample {
    /// Start of the pipeline in nanoseconds, which identifies it in the run.
    pub pipeline: u64,
    /// Number of earlier changes of groups.
    pub epoch: u64,
    /// Number of the first stage, from 0.
    pub first: u32,
    /// Items that left the group in each second since its last report.
    pub items_per_s: f64,
    /// Items that wait in the queue before the group.
    pub waiting: u64,
    /// Items that the queue before the group can hold.
    pub queue: u64,
    /// Names of the stages in order; none if the group has ended.
    pub names: Vec<String>,
}

impl StageSample {
    /// Writes the report as a line: fields separated by tabs, in the order of the declaration. Tabs and line feeds in
    /// names become spaces.
    pub fn to_line(&self) -> String {
        let StageSample { pipeline, epoch, first, items_per_s, waiting, queue, names } = self;
        let mut line = format!("{pipeline}\t{epoch}\t{first}\t{items_per_s}\t{waiting}\t{queue}");
        for name in names {
            line.push('\t');
            line.push_str(&name.replace(['\t', '\n', '\r'], " "));
        }
        line
    }

    /// Reads a line; `None` if it is not in the format of [`StageSample::to_line`].
    pub fn of_line(line: &str) -> Option<StageSample> {
        let mut fields = line.split('\t');
        Some(StageSample {
            pipeline: fields.next()?.parse().ok()?,
            epoch: fields.next()?.parse().ok()?,
            first: fields.next()?.parse().ok()?,
            items_per_s: fields.next()?.parse().ok().filter(|rate: &f64| rate.is_finite())?,
            waiting: fields.next()?.parse().ok()?,
            queue: fields.next()?.parse().ok()?,
            names: fields.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_others_are_refused() {
        let names = vec!["match 1".to_owned(), "a\tb".to_owned()];
        let sample =
            StageSample { pipeline: 1, epoch: 3, first: 6, items_per_s: 2.5, waiting: 3, queue: 4, names };
        let line = sample.to_line();
        assert_eq!(line, "1\t3\t6\t2.5\t3\t4\tmatch 1\ta b");
        let names = vec!["match 1".to_owned(), "a b".to_owned()];
        assert_eq!(StageSample::of_line(&line), Some(StageSample { names, ..sample.clone() }));
        let ended = StageSample { names: Vec::new(), ..sample };
        assert_eq!(StageSample::of_line(&ended.to_line()), Some(ended));
        for line in ["", "1\t3\t6\t2.5\t3", "1\t3\t6\tinf\t3\t4\tname", "1\t3\t-6\t2\t3\t4\tname"] {
            assert_eq!(StageSample::of_line(line), None, "{line}");
        }
    }
}
