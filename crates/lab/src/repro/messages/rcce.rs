//! The same ping-pong by the C library: `isles cc` compiles the program, `isles rccerun` runs it on the chip.
//!
//! The rows supplement those of `ping-pong`, whose sends and receives are programs of bare cores. Here they are those
//! of RCCE and iRCCE, called by a C program, with the buffers and flags of the library. Nothing is fitted here.
//! Invariant: the rows have the same names as those of `ping-pong`.

use super::ping_pong::{IRCCE, MEASUREMENT, RCCE};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::Failure;
use isles_app::companion;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The ping-pong by a C program.
pub(crate) const RCCE_IN_C: Experiment = Experiment {
    name: "rcce",
    about: "half a ping-pong of a C program over RCCE and iRCCE between the cores of a tile, at 533/800/800",
    source: "iRCCE's measurement with RCCE 1.0.13 in LPD-EPFL/tm2c-threads",
    instructions: "each library's, fitted to rows of ping-pong",
    rows: RowSource::Runs(rows),
};

const PROGRAM: &str = include_str!("../../../../../examples/c/pingpong.c");

fn rows() -> Result<Vec<Row>, Failure> {
    let folder = std::env::temp_dir().join(format!("isles-repro-rcce-{}", std::process::id()));
    let unwritable = |cause| Failure::Ended(format!("cannot write to {}: {cause}", folder.display()));
    fs::create_dir_all(&folder).map_err(unwritable)?;
    let source = folder.join("pingpong.c");
    fs::write(&source, PROGRAM).map_err(unwritable)?;
    let curves = [("RCCE", None, &RCCE[..]), ("iRCCE", Some("-DIRCCE"), &IRCCE[..])];
    let rows = curves.into_iter().map(|(name, option, published)| curve(&source, name, option, published));
    let rows: Result<Vec<Vec<Row>>, Failure> = rows.collect();
    let _ = fs::remove_dir_all(&folder);
    Ok(rows?.concat())
}

fn curve(
    source: &Path,
    name: &str,
    option: Option<&str>,
    published: &[(usize, f64)],
) -> Result<Vec<Row>, Failure> {
    let program = source.with_file_name(name);
    checked_output(companion::RCCE.command()?.arg("cc").args(option).arg(source).arg("-o").arg(&program))?;
    let run = ["rccerun", "-n", "2", "--machine", "chip:scc", "--"];
    let printed = checked_output(companion::RCCE.command()?.args(run).arg(&program))?;
    let family = Family {
        deck: "",
        unit: "µs",
        band: Band::Within(15.0),
        basis: Basis::Predicted,
        source: MEASUREMENT,
        reading: "",
    };
    let row = |&(bytes, published): &(usize, f64)| {
        let half = half(&printed, bytes).ok_or_else(|| {
            Failure::Ended(format!("the ping-pong of {name} printed no time of {bytes} bytes: {printed}"))
        })?;
        let title = Title::from(name).over(Quantity::length(bytes));
        Ok(family.row(title, published, half))
    };
    published.iter().map(row).collect()
}

/// Parses the microseconds that the program printed for a length: `BYTES bytes TIME us ..`.
pub(super) fn half(printed: &str, bytes: usize) -> Option<f64> {
    let mut words = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = words.find(|words| words.len() > 3 && words[0] == bytes.to_string() && words[3] == "us")?;
    line[2].parse().ok()
}

/// Runs the command and returns its standard output; fails with its last line of standard error.
pub(super) fn checked_output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|cause| companion::spawn_failure(command, &cause))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().last().unwrap_or("no message");
    Err(Failure::Usage(line.strip_prefix("error: ").unwrap_or(line).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn the_time_of_a_length_is_read_and_of_no_other() {
        let printed =
            "  32 bytes   2.579 us   12.4 MB/s\n 128 bytes   4.109 us   31.1 MB/s\nVerification SUCCESSFUL\n";
        assert_eq!(half(printed, 128), Some(4.109));
        assert_eq!(half(printed, 3), None);
    }
}
