//! The words of the command line.
//!
//! A separate file so that every refusal is in one place. It knows only the names of measurements that
//! [`crate::suite`] lists. Invariant: an unknown word is refused, never ignored.

use crate::child::timing::Effort;
use crate::measure::{Group, Row, SLOW_RUNS};
use crate::suite::Suite;
use std::path::PathBuf;
use std::time::Duration;

/// Text of `--help`; `isles bench --help` prints it too, without this program.
pub const USAGE: &str = include_str!("usage.txt");

/// Options of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Suite to measure.
    pub suite: Suite,
    /// Names of groups or rows; empty for all.
    pub only: Vec<String>,
    /// Number of times that each contender's program is started, 1 to 1,000.
    pub runs: usize,
    /// Work of each program inside one run.
    pub effort: Effort,
    /// `true` for a quick first look.
    pub quick: bool,
    /// `true` if missing peers are installed first.
    pub install: bool,
    /// Path of the JSON file.
    pub json: Option<PathBuf>,
    /// The documents whose tables are filled.
    pub documents: Vec<PathBuf>,
}

/// Request of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Print the usage.
    Help,
    /// Print the available measurements.
    List(Suite),
    /// Measure.
    Measure(Options),
    /// Show earlier measurements.
    Table {
        /// Files that `--json` wrote, of one suite and one commit.
        files: Vec<PathBuf>,
        /// The documents whose tables are filled.
        documents: Vec<PathBuf>,
    },
}

const RUNS: usize = 9;
const RUNS_MAX: usize = 1000;
const FULL: Effort = Effort { batch: Duration::from_millis(20), repetitions: 11 };
const QUICK: Effort = Effort { batch: Duration::from_millis(5), repetitions: 3 };

impl Options {
    /// Reads the words after the program's name. The first may be the name of a suite; the default is `core`.
    ///
    /// # Errors
    /// One line with the word and the allowed values.
    pub fn read(words: &[String]) -> Result<Request, String> {
        if let Some((first, words)) = words.split_first()
            && first == "table"
        {
            return table(words);
        }
        let suite =
            words.first().and_then(|word| Suite::ALL.into_iter().find(|suite| suite.name() == word.as_str()));
        let mut options = Options::of(suite.unwrap_or(Suite::Core));
        let mut runs = None;
        let mut list = false;
        let mut words = words.iter().skip(usize::from(suite.is_some()));
        while let Some(word) = words.next() {
            let mut value = || words.next().map(String::as_str).ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(Request::Help),
                "--list" => list = true,
                "--quick" => options.quick = true,
                "--install" => options.install = true,
                "--only" => options.only.push(known_name(options.suite, value()?)?),
                "--runs" => runs = Some(run_count(value()?)?),
                "--json" => options.json = Some(writable(word, value()?)?),
                "--markdown" => options.documents.push(writable(word, value()?)?),
                _ => return Err(format!("unknown word {word:?}; --help shows what is allowed")),
            }
        }
        if options.quick {
            if !options.documents.is_empty() {
                return Err("--markdown: the tables of a document are of full runs; leave --quick out".into());
            }
            options.effort = QUICK;
            options.runs = 1;
        }
        options.runs = runs.unwrap_or(options.runs);
        Ok(if list { Request::List(options.suite) } else { Request::Measure(options) })
    }

    fn of(suite: Suite) -> Options {
        Options {
            suite,
            only: Vec::new(),
            runs: RUNS,
            effort: FULL,
            quick: false,
            install: false,
            json: None,
            documents: Vec::new(),
        }
    }

    /// Returns `true` if this row of this group was requested; by default all, except slow groups with `--quick`.
    pub fn selects(&self, group: &Group, row: &Row) -> bool {
        let by_default = self.only.is_empty() && !(self.quick && group.slow);
        by_default || self.only.iter().any(|name| name == group.name || name == row.name)
    }

    /// Returns the number of rounds of this group.
    pub fn rounds(&self, group: &Group) -> usize {
        if group.slow { self.runs.min(SLOW_RUNS) } else { self.runs }
    }
}

fn known_name(suite: Suite, name: &str) -> Result<String, String> {
    let mut groups = suite.groups().iter();
    let known = groups.any(|group| group.name == name || group.rows.iter().any(|row| row.name == name));
    if known {
        Ok(name.to_owned())
    } else {
        Err(format!("--only {name}: no such group or row; isles bench {} --list shows them", suite.name()))
    }
}

/// Reads the words after `table`.
fn table(words: &[String]) -> Result<Request, String> {
    let (mut files, mut documents) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Request::Help),
            "--markdown" => {
                let name = words.next().ok_or(format!("{word} needs a value"))?;
                documents.push(writable(word, name)?);
            }
            _ if word.starts_with('-') => {
                return Err(format!("unknown word {word:?}; --help shows what is allowed"));
            }
            name => files.push(PathBuf::from(name)),
        }
    }
    if files.is_empty() {
        return Err("table needs a file written by --json".to_owned());
    }
    Ok(Request::Table { files, documents })
}

/// Returns the path if its folder exists; checked before minutes are spent on measuring.
fn writable(word: &str, name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => Err(format!("{word} {name}: no such folder")),
        _ if path.is_dir() => Err(format!("{word} {name}: is a folder")),
        _ => Ok(path),
    }
}

fn run_count(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(runs) if (1..=RUNS_MAX).contains(&runs) => Ok(runs),
        _ => Err(format!("--runs is {word}; allowed: a whole number from 1 to {RUNS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, String> {
        Options::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn wanted(options: &Options) -> Vec<&'static str> {
        let all =
            options.suite.groups().iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
        all.filter(|(group, row)| options.selects(group, row)).map(|(_, row)| row.name).collect()
    }

    #[test]
    fn quick_leaves_slow_groups_out_unless_they_are_named() {
        let Ok(Request::Measure(quick)) = read("--quick") else { panic!() };
        assert!(!wanted(&quick).contains(&"cold-run"));
        let Ok(Request::Measure(named)) = read("--quick --only cold-run") else { panic!() };
        assert_eq!(wanted(&named), ["cold-run"]);
    }

    #[test]
    fn bad_words_are_refused_by_name() {
        for (line, part) in [
            ("--runs 0", "--runs is 0"),
            ("--runs 1001", "1 to 1000"),
            ("--runs many", "--runs is many"),
            ("--runs", "--runs needs a value"),
            ("--only nothing", "no such group or row"),
            ("--json /no/such/folder/x", "no such folder"),
            ("--json /", "is a folder"),
            ("--markdown /no/such/folder/x", "no such folder"),
            ("--quick --markdown x.md", "leave --quick out"),
            ("table", "needs a file"),
            ("table a.json --runs", "\"--runs\""),
            ("--fast", "\"--fast\""),
            ("--quick core", "\"core\""),
        ] {
            let refusal = read(line).unwrap_err();
            assert!(refusal.contains(part), "{line}: {refusal}");
            assert!(!refusal.contains('\n'), "{line}: {refusal}");
        }
    }

    #[test]
    fn quick_means_one_run_unless_runs_are_given() {
        let Ok(Request::Measure(one)) = read("core --quick") else { panic!() };
        assert_eq!((one.runs, one.effort), (1, QUICK));
        let Ok(Request::Measure(three)) = read("--runs 3 --quick") else { panic!() };
        assert_eq!((three.runs, three.effort), (3, QUICK));
    }

    #[test]
    fn a_slow_group_is_run_three_times_at_most() {
        let Ok(Request::Measure(options)) = read("--runs 5") else { panic!() };
        let rounds: Vec<_> = options.suite.groups().iter().map(|group| options.rounds(group)).collect();
        assert!(rounds.contains(&5) && rounds.contains(&3), "{rounds:?}");
    }

    #[test]
    fn a_table_is_made_of_files_for_documents() {
        let request = read("table a.json --markdown x.md b.json").unwrap();
        let (files, documents) = (vec!["a.json".into(), "b.json".into()], vec!["x.md".into()]);
        assert_eq!(request, Request::Table { files, documents });
    }

    #[test]
    fn the_first_word_chooses_the_suite_and_its_names() {
        let Ok(Request::Measure(options)) = read("twin --only mesh") else { panic!() };
        assert_eq!((options.suite, wanted(&options)), (Suite::Twin, vec!["mesh-messages"]));
        assert_eq!(read("twin --list").unwrap(), Request::List(Suite::Twin));
        assert_eq!(read("--list").unwrap(), Request::List(Suite::Core));
        assert!(read("twin --only barrier").unwrap_err().contains("isles bench twin --list"));
    }

    #[test]
    fn only_takes_groups_and_rows() {
        let Ok(Request::Measure(options)) = read("--only local --only barrier") else { panic!() };
        assert_eq!(wanted(&options), ["spawn", "barrier"]);
    }
}
