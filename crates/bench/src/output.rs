//! The lines of one run of a contender.
//!
//! It does not know which figures are wanted. Invariant: a run that failed, took too long, or printed a malformed line
//! yields no figures at all.
//!
//! The format: `measured NAME VALUE` for each figure, `version TEXT` at most once; other lines are ignored. A program
//! of an application writes its JSON document instead, a line that begins with `{`: its figures are [`SECONDS`],
//! [`BYTES`] and each number of its result, by name. Each run also has the figures [`ELAPSED`], its time from start to
//! end, and [`PROCESSORS`], the processor time of it and its children.

use serde_json::Value;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Output of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Name and value of each figure.
    pub figures: Vec<(String, f64)>,
    /// Version that the program prints.
    pub version: Option<String>,
}

/// Seconds that an application reports for its computation, excluding the start of places and reading.
pub const SECONDS: &str = "seconds";

/// Bytes that an application moved between its places.
pub const BYTES: &str = "bytes";

/// Rate of the units that an application counts, in millions per second.
pub const RATE: &str = "rate";

/// Seconds from the start of the program to its end.
pub const ELAPSED: &str = "elapsed_s";

/// Processor seconds of the program and its children, as accounted by the system, in hundredths.
pub const PROCESSORS: &str = "processors_s";

/// Grace period between the termination request and the kill.
const GRACE: Duration = Duration::from_secs(5);

impl Output {
    /// Runs the command and reads its lines.
    ///
    /// # Errors
    /// One line: it could not be started, ran longer than `limit`, failed, or printed nonsense.
    pub fn of(command: &mut Command, limit: Duration) -> Result<Output, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (started, used) = (Instant::now(), used_by_children());
        let mut child = command.spawn().map_err(|error| format!("cannot start: {error}"))?;
        let (done, ended) = channel();
        let out = reader(child.stdout.take().expect("stdout is piped"), done.clone());
        let err = reader(child.stderr.take().expect("stderr is piped"), done);
        let in_time = both_ended(&ended, limit);
        if !in_time {
            end(&mut child, &ended);
        }
        let status = child.wait().map_err(|error| format!("cannot wait: {error}"))?;
        if !in_time {
            // The readers are not joined: a grandchild may hold the pipes forever.
            return Err(format!("took longer than {} s and was stopped", limit.as_secs()));
        }
        let text = out.join().expect("a reader does not panic");
        let complaint = err.join().expect("a reader does not panic");
        if !status.success() {
            let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
            return Err(format!("{status}: {last}"));
        }
        let elapsed = started.elapsed();
        let mut output = Output::read(&text)?;
        output.figures.push((ELAPSED.to_owned(), elapsed.as_secs_f64()));
        let used = used_by_children().zip(used).map(|(after, before)| after - before);
        output.figures.extend(used.map(|used| (PROCESSORS.to_owned(), used)));
        Ok(output)
    }

    /// Returns the output with the rate of the figure `counted`, if given.
    ///
    /// # Errors
    /// The run has no such figure, or took no time.
    pub fn rated(mut self, counted: Option<&str>) -> Result<Output, String> {
        let Some(counted) = counted else { return Ok(self) };
        let rate = self.figure(counted)? / self.figure(SECONDS)? / 1e6;
        if !rate.is_finite() {
            return Err("took no time".to_owned());
        }
        self.figures.push((RATE.to_owned(), rate));
        Ok(self)
    }

    /// Returns the figure with that name.
    ///
    /// # Errors
    /// There is none.
    pub fn figure(&self, name: &str) -> Result<f64, String> {
        let figure = self.figures.iter().find(|(known, _)| known == name);
        figure.map(|(_, value)| *value).ok_or_else(|| format!("printed no figure {name}"))
    }

    /// Reads the lines.
    ///
    /// # Errors
    /// A line is malformed, or there is no figure.
    pub fn read(text: &str) -> Result<Output, String> {
        let mut output = Output { figures: Vec::new(), version: None };
        for line in text.lines() {
            if let Some(version) = line.strip_prefix("version ") {
                output.version = Some(version.trim().to_owned());
            } else if let Some(figure) = line.strip_prefix("measured ") {
                let (name, value) = figure.split_once(' ').ok_or_else(|| format!("odd line {line:?}"))?;
                let value: f64 = value.trim().parse().map_err(|_| format!("odd line {line:?}"))?;
                if !value.is_finite() {
                    return Err(format!("odd line {line:?}"));
                }
                output.figures.push((name.to_owned(), value));
            } else if line.starts_with('{') {
                output.figures.extend(figures_of_document(line)?);
            }
        }
        if output.figures.is_empty() { Err("printed no figure".to_owned()) } else { Ok(output) }
    }
}

/// Returns the figures of an application's JSON document.
fn figures_of_document(line: &str) -> Result<Vec<(String, f64)>, String> {
    let odd = || format!("odd document {:?}", line.chars().take(60).collect::<String>());
    let document: Value = serde_json::from_str(line).map_err(|_| odd())?;
    let number = |name: &str| document["run"][name].as_f64().ok_or_else(odd);
    let own = [(SECONDS, number("seconds")?), (BYTES, number("bytes_moved")?)];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let found = document.as_object().into_iter().flatten();
    let found = found.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    Ok(own.into_iter().chain(found).collect())
}

/// Returns the processor seconds of all awaited children of this process; `None` if the system does not report them.
fn used_by_children() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields 16 and 17 of proc_pid_stat(5), in ticks; the third field is the first behind the name.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(13).take(2);
    let ticks = fields.map(|ticks| ticks.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Reads a pipe to its end, then signals it.
fn reader(mut pipe: impl Read + Send + 'static, done: Sender<()>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes); // a broken pipe ends the text like its end does
        let _ = done.send(()); // nobody listens any more once the limit has passed
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn both_ended(ended: &Receiver<()>, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    (0..2).all(|_| {
        let left = deadline.saturating_duration_since(Instant::now());
        ended.recv_timeout(left) != Err(RecvTimeoutError::Timeout)
    })
}

/// Asks the child to end, so that a launcher ends its own children; kills it if it does not.
fn end(child: &mut Child, ended: &Receiver<()>) {
    let pid = rustix::process::Pid::from_child(child);
    // Both calls can fail only because the child has already ended.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    both_ended(ended, GRACE);
    let _ = child.kill();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Output, String> {
        Output::of(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn figures_and_version_are_read_and_other_lines_are_not() {
        let output = Output::read("hello\nversion Open MPI v4\nmeasured a_us 1.5\nmeasured b 2e3\n").unwrap();
        assert_eq!(output.figures, [("a_us".to_owned(), 1.5), ("b".to_owned(), 2000.0)]);
        assert_eq!(output.version.as_deref(), Some("Open MPI v4"));
    }

    #[test]
    fn the_document_of_an_application_has_its_figures() {
        let text = "{\"run\":{\"app\":\"uts\",\"seconds\":0.5,\"bytes_moved\":70},\"nodes\":4000000,\"tree\":\"T1\"}\n";
        let output = Output::read(text).unwrap().rated(Some("nodes")).unwrap();
        let expected = [("seconds", 0.5), ("bytes", 70.0), ("nodes", 4e6), ("rate", 8.0)];
        assert_eq!(output.figures, expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(Output::read(text).unwrap().rated(Some("leaves")).is_err());
        assert!(Output::read(&text.replace("0.5", "0")).unwrap().rated(Some("nodes")).is_err());
        assert!(Output::read("{\"run\":{}}").is_err());
    }

    #[test]
    fn nonsense_gives_no_figures() {
        for text in ["", "measured a", "measured a x", "measured a nan", "measured a 1\nmeasured b inf"] {
            assert!(Output::read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_run_that_fails_reports_its_last_words_and_no_figures() {
        let error =
            shell("echo measured a 1; echo first >&2; echo last >&2; exit 3", Duration::from_secs(60))
                .unwrap_err();
        assert!(error.contains("last") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_run_past_its_limit_is_stopped() {
        let start = Instant::now();
        let error = shell("echo measured a 1; exec sleep 1000", Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("longer"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(500));
    }
}
