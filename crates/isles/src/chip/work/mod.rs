//! The source of the time of a program's own code on a modelled chip: its declarations, a measurement, or a tape.
//!
//! This file has the setting, the checks before a run and the warnings after it; `stopwatch` measures, and `tape` is
//! the file format. Invariant: a tape is refused before the run unless it is of the same program, arguments, chip and
//! settings, because it is meaningless for any other.

mod digest;
pub(crate) mod stopwatch;
pub(crate) mod tape;

use super::modelled::ModelledChip;
use crate::launch::Launch;
use crate::settings::table::Stored;
use crate::settings::{ConfigError, Flag, Setting};
use digest::digest_of_program;
use isles_transport_chip::ChipWorld;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::Duration;
use std::{fmt, io};
use stopwatch::{HostCode, Stopwatch};
use tape::{Playback, TAPE_BYTES_MAX, Tape, TapeHeader};

/// Largest ratio, in thousandths: a million.
const RATIO_MAX: u32 = 1_000_000_000;

/// Fraction and time of uncharged code from which on a run reports it.
const UNCHARGED_SHARE: f64 = 0.05;
const UNCHARGED_LEAST: Duration = Duration::from_millis(50);

/// Source of the time of a program's own code on a modelled chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CodeTime {
    /// The program's declarations by [`work`](crate::work); other code is free.
    #[default]
    Declared,
    /// Measured on this host and multiplied by this number of thousandths. The program's declarations are not charged.
    Host(u32),
    /// The tape of an earlier run, at this path.
    Tape(String),
}

impl fmt::Display for CodeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeTime::Declared => f.write_str("said"),
            CodeTime::Host(ratio) => write!(f, "host:{}", f64::from(*ratio) / 1e3),
            CodeTime::Tape(path) => write!(f, "tape:{path}"),
        }
    }
}

impl CodeTime {
    /// Reads the setting from the flag or variable `source`.
    pub(crate) fn read(source: &str, value: &str) -> Result<Setting<CodeTime>, ConfigError> {
        let work = match value.split_once(':') {
            None if value == "said" => Some(CodeTime::Declared),
            Some(("host", ratio)) => thousandths(ratio).map(CodeTime::Host),
            Some(("tape", path)) if !path.is_empty() => Some(CodeTime::Tape(path.to_owned())),
            _ => None,
        };
        let allowed = "said, host:RATIO with a ratio from 0.001 to 1000000 such as host:20, or tape:FILE";
        work.map(|work| Setting::new(source, work)).ok_or_else(|| ConfigError::new(source, value, allowed))
    }
}

fn thousandths(ratio: &str) -> Option<u32> {
    let plain = ratio.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let thousandths = ratio.parse::<f64>().ok().filter(|_| plain)? * 1e3;
    let rounded = thousandths.round();
    (1.0..=f64::from(RATIO_MAX)).contains(&rounded).then_some(rounded as u32)
}

/// Returns the arguments of this process except flags of the run, as a tape stores them.
pub(crate) fn own_arguments(flags: &[Flag<'_>]) -> Vec<Vec<u8>> {
    without_flags(std::env::args_os().skip(1), flags)
}

fn without_flags(arguments: impl Iterator<Item = OsString>, flags: &[Flag<'_>]) -> Vec<Vec<u8>> {
    let mut arguments = arguments.peekable();
    let mut own = Vec::new();
    while let Some(argument) = arguments.next() {
        let said = |flag: &Flag<'_>| argument.to_str() == Some(&format!("{}={}", flag.name, flag.value));
        let named = |flag: &&Flag<'_>| argument.to_str() == Some(flag.name);
        if flags.iter().any(said) {
            continue;
        }
        match (flags.iter().find(named), arguments.peek()) {
            (Some(flag), Some(next)) if next.to_str() == Some(flag.value) => _ = arguments.next(),
            _ => own.push(argument.as_bytes().to_vec()),
        }
    }
    own
}

/// Returns the tape header of a run of `launch` on `chip`, with a ratio of 0.
fn header(launch: &Launch, chip: ModelledChip) -> io::Result<TapeHeader> {
    let stored = launch.chip.stored_settings(chip, launch.places, Stored::by_tape);
    Ok(TapeHeader {
        program: digest_of_program()?,
        chip: chip.chip().fingerprint().to_le_bytes(),
        places: launch.places,
        ratio: 0,
        seed: launch.seed,
        settings: stored.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        arguments: launch.chip.own_arguments.clone(),
    })
}

/// Reads the tape of `launch` and checks that it can be played on `chip`; `None` if it has no tape.
///
/// # Errors
/// The tape cannot be played; the text says why.
pub(crate) fn find_tape(launch: &Launch, chip: ModelledChip) -> Result<Option<Tape>, ConfigError> {
    let Setting { value: work, source } = &launch.chip.work;
    let CodeTime::Tape(path) = work else { return Ok(None) };
    let refused = |allowed: String| ConfigError::new(source, &work.to_string(), allowed);
    let unreadable = |cause: io::Error| refused(format!("a tape that can be read ({cause})"));
    let bytes = read(path).map_err(unreadable)?;
    let tape = Tape::decode(&bytes).map_err(|fault| refused(fault.to_string()))?;
    let run = header(launch, chip).map_err(unreadable)?;
    match difference(&tape.header, &run, chip) {
        None => Ok(Some(tape)),
        Some(allowed) => Err(refused(allowed)),
    }
}

/// Reads a file, up to one byte more than a tape may have.
fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(TAPE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the first difference between a tape and this run, as a description of the tape that the run needs.
fn difference(tape: &TapeHeader, run: &TapeHeader, chip: ModelledChip) -> Option<String> {
    let words = |arguments: &[Vec<u8>]| -> String {
        let words: Vec<_> = arguments.iter().map(|word| String::from_utf8_lossy(word)).collect();
        format!("{:?}", words.join(" "))
    };
    if tape.program != run.program {
        return Some("a tape of this program (this one is of another program or another build)".to_owned());
    }
    if tape.arguments != run.arguments {
        let (theirs, ours) = (words(&tape.arguments), words(&run.arguments));
        return Some(format!("a tape of the arguments {ours} (this one is of {theirs})"));
    }
    if tape.chip != run.chip {
        return Some(format!(
            "a tape of {} (this one is of another chip, preset or power model)",
            chip.machine()
        ));
    }
    if tape.places != run.places {
        return Some(format!("a tape of {} places (this one is of {})", run.places, tape.places));
    }
    if tape.seed != run.seed {
        return Some(format!("a tape of the seed {} (this one is of {})", run.seed, tape.seed));
    }
    let (ours, theirs) = (&run.settings, &tape.settings);
    let (name, _) = ours.iter().chain(theirs).find(|(name, _)| value(ours, name) != value(theirs, name))?;
    let [ours, theirs] = [ours, theirs].map(|settings| value(settings, name).unwrap_or("that is not set"));
    Some(format!("a tape of the {name} {ours} (this one is of {theirs})"))
}

/// Returns the value of the setting `name` among `settings`.
fn value<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

/// Makes the stopwatch for a run of `launch` on the cores of `world`.
pub(crate) fn stopwatch(
    launch: &Launch,
    chip: ModelledChip,
    world: &ChipWorld,
) -> Result<Rc<Stopwatch>, ConfigError> {
    let rate = chip.chip().default_preset().clocks().core;
    let tape = find_tape(launch, chip)?;
    Ok(match (&launch.chip.work.value, tape) {
        (CodeTime::Host(ratio), _) => Stopwatch::measure(world, *ratio, rate, launch.places),
        (_, Some(tape)) => {
            Stopwatch::play(world, tape.header.ratio, rate, launch.places, Playback::new(tape))
        }
        (_, None) => Stopwatch::watch(world, rate),
    })
}

/// Encodes the tape of a run that has ended.
pub(crate) fn tape_of(
    launch: &Launch,
    chip: ModelledChip,
    measurements: &tape::Measurements,
) -> io::Result<Vec<u8>> {
    if measurements.is_full() {
        return Err(io::Error::other("more was measured than a tape holds"));
    }
    let ratio = if let CodeTime::Host(ratio) = launch.chip.work.value { ratio } else { 0 };
    let header = TapeHeader { ratio, ..header(launch, chip)? };
    Ok(Tape { header, measurements: measurements.clone() }.encode())
}

/// Returns the warning that much code of the program was not charged; `None` if little was.
pub(crate) fn warning(code: HostCode) -> Option<String> {
    let share = code.uncharged.as_secs_f64() / code.total.as_secs_f64().max(1e-9);
    (code.uncharged >= UNCHARGED_LEAST && share >= UNCHARGED_SHARE).then(|| {
        format!(
            "warning: {:.0} % of the program's code ({:.3} s on this host) ran in turns that were \
             charged nothing, so the prediction is too low: declare its cost with `work`, or measure it \
             with --work host:RATIO (ISLES_CHIP_WORK)",
            share * 100.0,
            code.uncharged.as_secs_f64()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_read_and_told_as_it_was_written() {
        for value in ["said", "host:20", "host:0.5", "host:1000000", "host:0.001", "tape:a b:c"] {
            let work = CodeTime::read("--work", value).unwrap();
            assert_eq!((work.value.to_string().as_str(), work.source.as_str()), (value, "--work"));
        }
        for value in [
            "",
            "host",
            "host:",
            "host:0",
            "host:-1",
            "host:1e3",
            "host:2000000",
            "host:NaN",
            "tape:",
            "tape",
        ] {
            let error = CodeTime::read("--work", value).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--work is {value:?}; allowed: said, host:RATIO")), "{error}");
        }
    }

    #[test]
    fn flags_of_the_run_are_no_arguments_of_the_program() {
        let flags = [
            Flag { variable: "ISLES_PLACES", name: "--places", value: "4" },
            Flag { variable: "ISLES_CHIP_WORK", name: "--work", value: "host:20" },
        ];
        let own = |line: &str| {
            let own = without_flags(line.split(' ').map(OsString::from), &flags);
            own.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(own("run bc --places 4 --graph karate --work=host:20"), "run bc --graph karate");
        assert_eq!(own("--places 5 --work --places=4"), "--places 5 --work", "those of somebody else stay");
    }

    #[test]
    fn little_uncharged_code_is_no_reason_for_a_warning() {
        let code = |total, uncharged| HostCode {
            total: Duration::from_millis(total),
            uncharged: Duration::from_millis(uncharged),
        };
        assert_eq!(warning(code(10_000, 499)), None);
        assert_eq!(warning(code(49, 49)), None);
        assert_eq!(warning(code(0, 0)), None);
        let line = warning(code(1_000, 510)).unwrap();
        assert!(line.starts_with("warning: 51 % of the program's code (0.510 s on this host)"), "{line}");
    }
}
