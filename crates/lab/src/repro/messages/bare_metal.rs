//! Measurements of the paper on BareMichael and Xipx, repeated by programs on bare cores that QEMU runs.
//!
//! `isles bare` builds and runs the images; `isles rccerun` runs the same C programs as processes for comparison. All
//! figures depend on this host: an emulator runs the bare cores, so only ratios are compared with the paper. A time is
//! the smallest of a few runs, each the median of its batches, because a virtual machine that loses its processor takes
//! up to a thousand times as long.

use super::rcce::{checked_output, half};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::Failure;
use isles_app::companion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Sections III and IV of the paper, sentence by sentence.
pub(crate) const BARE_METAL: Experiment = Experiment {
    name: "bare",
    about: "programs on bare cores under QEMU: RCCE bare and hosted, the device of Xipx, threads, interrupts",
    source: "Ziwisky and Brylow, BareMichael, MARC 2012",
    instructions: "",
    rows: RowSource::Runs(rows),
};

const RUNS: usize = 5;
/// Seconds after which a run counts as never ending.
const NEVER: &str = "5";
const QEMU: &str = "qemu-system-x86_64";
/// Lengths, rounds of a batch, and batches of the comparison with hosted programs.
const HOSTED: [(usize, &str, &str); 3] = [(32, "400", "21"), (1024, "200", "21"), (65_536, "20", "11")];
/// Lengths of Xipx messages.
const LENGTHS: [usize; 4] = [32, 256, 1024, 2048];
const ROUNDS: &str = "200";
/// Rounds of a batch where each message is an interrupt.
const INTERRUPT_ROUNDS: &str = "20";

/// Family of ratios; only ratios are compared with the paper.
const RATIO: Family = Family {
    deck: "",
    unit: "",
    band: Band::Within(10.0),
    basis: Basis::Measured,
    source: "004:2564",
    reading: "",
};
const OURS: Family = Family { band: Band::Unpublished, source: "", ..RATIO };
/// A time relative to one whose bandwidth in the paper is 70 % as high: it may be 1.43 times as long.
const SEVENTY: Family = Family {
    band: Band::AtMost,
    source: "004:2595",
    reading: "≤ 1 / 0.7: “about 70% of the bandwidth of RCCE and iRCCE”",
    ..RATIO
};
const AT_MOST: f64 = 1.0 / 0.7;

/// The images and programs of all rows, in a folder that is deleted with this value.
struct Programs {
    folder: PathBuf,
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder); // what is left does no harm
    }
}

fn rows() -> Result<Vec<Row>, Failure> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder.join(QEMU).is_file()) {
        return Err(Failure::Usage(format!(
            "{QEMU}, needed to run bare cores, is not on PATH; on Debian: apt-get install qemu-system-x86"
        )));
    }
    let programs = Programs::build()?;
    let mut rows = hosted(&programs)?;
    rows.extend(devices(&programs)?);
    rows.extend(threads(&programs)?);
    rows.extend(two_to_one(&programs)?);
    rows.extend(counted(&programs)?);
    Ok(rows)
}

impl Programs {
    fn build() -> Result<Programs, Failure> {
        let folder = std::env::temp_dir().join(format!("isles-repro-bare-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .map_err(|cause| Failure::Ended(format!("cannot write to {}: {cause}", folder.display())))?;
        let programs = Programs { folder };
        let (ping_pong, ping_ping) = ("examples/c/pingpong.c", "examples/c/pingping.c");
        for (name, words) in [
            ("rcce", &[ping_pong][..]),
            ("ircce", &[ping_pong, "-DIRCCE"]),
            ("pingping-rcce", &[ping_ping]),
            ("pingping", &[ping_ping, "-DIRCCE"]),
            ("figure2", &["bare-metal/examples/c/figure2.c"]),
            ("xipx", &["bare-metal/examples", "--bin", "xipx"]),
            ("ids", &["bare-metal/examples", "--bin", "ids"]),
        ] {
            let mut build = companion::BARE.command()?;
            build.current_dir(checkout()?).arg("build").args(words).arg("-o").arg(programs.image(name));
            checked_output(&mut build)?;
        }
        for (name, option) in [("rcce", None), ("ircce", Some("-DIRCCE"))] {
            let mut compile = companion::RCCE.command()?;
            compile.current_dir(checkout()?).arg("cc").args(option).arg(ping_pong);
            checked_output(compile.arg("-o").arg(programs.folder.join(name)))?;
        }
        Ok(programs)
    }

    fn image(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("img")
    }

    /// Returns the command that runs an image on cores.
    fn run(&self, cores: &str, image: &str, words: &[&str]) -> Result<Command, Failure> {
        let mut run = companion::BARE.command()?;
        run.args(["run", "--limit", "120", "--cores", cores, "--"]).arg(self.image(image)).args(words);
        Ok(run)
    }

    /// Returns the least time in µs that a C program prints for a length, on bare cores.
    fn bare(&self, image: &str, bytes: usize, words: [&str; 2]) -> Result<f64, Failure> {
        let length = bytes.to_string();
        least(|| {
            let printed = checked_output(&mut self.run("0,1", image, &[&length, words[0], words[1]])?)?;
            half(&printed.replace("[00]:", ""), bytes).ok_or_else(|| no_time(image, &printed))
        })
    }

    /// Returns the least time in µs that a C program prints for a length, as processes.
    fn hosted(&self, name: &str, bytes: usize, words: [&str; 2]) -> Result<f64, Failure> {
        let length = bytes.to_string();
        least(|| {
            let mut run = companion::RCCE.command()?;
            run.args(["rccerun", "-n", "2", "--"]).arg(self.folder.join(name));
            let printed = checked_output(run.args([&length, words[0], words[1]]))?;
            half(&printed, bytes).ok_or_else(|| no_time(name, &printed))
        })
    }

    /// Returns the smallest time of half a round in µs, and the bandwidth of that run in MB/s, for an exchange by
    /// devices.
    fn xipx(&self, cores: &str, words: [&str; 5]) -> Result<(f64, f64), Failure> {
        let mut best = (f64::INFINITY, 0.0);
        for _ in 0..RUNS {
            let printed = checked_output(&mut self.run(cores, "xipx", &words)?)?;
            let (nanoseconds, megabytes) = exchange(&printed).ok_or_else(|| no_time("xipx", &printed))?;
            if nanoseconds / 1e3 < best.0 {
                best = (nanoseconds / 1e3, megabytes);
            }
        }
        Ok(best)
    }
}

/// Returns the folder of the sources, which contains the programs.
fn checkout() -> Result<PathBuf, Failure> {
    let starts = [std::env::current_dir(), std::env::current_exe()];
    let mut folders = starts.iter().flatten().flat_map(|start| start.ancestors());
    let found = folders.find(|folder| folder.join("bare-metal/link.x").is_file()).map(Path::to_path_buf);
    found.ok_or_else(|| Failure::Usage("images are built inside the Isles sources; run this there".into()))
}

fn no_time(program: &str, printed: &str) -> Failure {
    Failure::Ended(format!("{program} printed no time: {printed}"))
}

fn least(mut time: impl FnMut() -> Result<f64, Failure>) -> Result<f64, Failure> {
    (0..RUNS).try_fold(f64::INFINITY, |least, _| Ok(time()?.min(least)))
}

/// Parses the nanoseconds and MB/s that the device program prints: `.. bytes N ns N MB/s`.
fn exchange(printed: &str) -> Option<(f64, f64)> {
    let words: Vec<&str> = printed.split_whitespace().collect();
    let before =
        |unit: &str| words.iter().position(|word| *word == unit).and_then(|at| words[at - 1].parse().ok());
    Some((before("ns")?, before("MB/s")?))
}

/// Returns the rows of RCCE and iRCCE on bare cores, compared with the same programs as processes.
fn hosted(programs: &Programs) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let like_rcce = RATIO.reading("1: “the benchmark exhibits nearly identical performance”");
    let like_ircce = RATIO.at("004:2569").reading("1: “The same is seen when running the benchmark”");
    for (name, program, ratio) in [("RCCE", "rcce", like_rcce), ("iRCCE", "ircce", like_ircce)] {
        for (bytes, rounds, batches) in HOSTED {
            let title =
                |what: &str| Title::from(format!("{name}'s ping-pong, {what}")).over(Quantity::length(bytes));
            let bare = programs.bare(program, bytes, [rounds, batches])?;
            let hosted = programs.hosted(program, bytes, [rounds, batches])?;
            let time = Family { unit: "µs", ..OURS };
            rows.push(time.row(title("bare"), f64::NAN, bare));
            rows.push(time.row(title("hosted"), f64::NAN, hosted));
            rows.push(ratio.row(title("bare / hosted"), 1.0, bare / hosted));
        }
    }
    Ok(rows)
}

/// Returns the rows of the Xipx device, compared with RCCE and iRCCE.
fn devices(programs: &Programs) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (pattern, library, image) in [("ping-pong", "RCCE", "rcce"), ("ping-ping", "iRCCE", "pingping")] {
        for bytes in LENGTHS {
            let length = bytes.to_string();
            let (ours, _) = programs.xipx("0,1", [pattern, &length, ROUNDS, "kernel", "poll"])?;
            let theirs = programs.bare(image, bytes, [ROUNDS, "21"])?;
            let title = Title::from(format!("Xipx's {pattern} / {library}'s")).over(Quantity::length(bytes));
            rows.push(SEVENTY.row(title, AT_MOST, ours / theirs));
        }
    }
    Ok(rows)
}

/// Returns the rows of threads in supervisor and in user mode, by polling and by interrupt.
fn threads(programs: &Programs) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let faster = SEVENTY.reading("≤ 1: “Xipx kernel threads slightly outperform user threads”");
    for (mode, rounds, lengths) in
        [("poll", ROUNDS, &LENGTHS[..]), ("interrupt", INTERRUPT_ROUNDS, &[32, 1024])]
    {
        for bytes in lengths {
            let length = bytes.to_string();
            let time = |threads| programs.xipx("0,1", ["ping-pong", &length, rounds, threads, mode]);
            let (kernel, user) = (time("kernel")?.0, time("user")?.0);
            let title = |what: &str| {
                Title::from(format!("Xipx's ping-pong by {mode}, {what}")).over(Quantity::length(*bytes))
            };
            rows.push(Family { unit: "µs", ..OURS }.row(title("kernel threads"), f64::NAN, kernel));
            rows.push(faster.row(title("kernel / user threads"), 1.0, kernel / user));
        }
    }
    Ok(rows)
}

/// Returns the rows of one core that exchanges with two others at the same time, with a thread and a device for each.
fn two_to_one(programs: &Programs) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for pattern in ["ping-pong", "ping-ping"] {
        for bytes in [1024, 2048_usize] {
            let length = bytes.to_string();
            let (_, megabytes) = programs.xipx("0,1,2", [pattern, &length, "100", "kernel", "poll"])?;
            let title = Title::from(format!("Xipx's {pattern}, two to one, in and out of the shared core"));
            let title = title.over(Quantity::length(bytes));
            rows.push(Family { unit: "MB/s", ..OURS }.row(title, f64::NAN, megabytes));
        }
    }
    Ok(rows)
}

/// Returns the rows on events that either occur or do not; times do not matter here.
fn counted(programs: &Programs) -> Result<Vec<Row>, Failure> {
    let exact = Family { band: Band::Within(0.0), ..RATIO }.at("004:2593-2595");
    let at_once = exact.reading("2: “one core runs two simultaneous ping-X benchmarks”");
    let not_two = exact.reading("both libraries: “prohibit their use in two concurrent programs”");
    let no_ping_ping = exact.reading("both cores: “incapable of implementing that communication pattern”");
    let figure_2 = exact.at("004:2515-2527").reading("2: “I've been interrupted!”, “Another interruption!”");
    let printed =
        checked_output(&mut programs.run("0,1,2", "xipx", &["ping-ping", "32", "50", "user", "poll"])?)?;
    let partners = if printed.contains(", 2 to one: ") { 2.0 } else { 0.0 };
    let mut refused = 0.0;
    for image in ["rcce", "ircce"] {
        let table = programs.folder.join("table");
        let image = programs.image(image).display().to_string();
        fs::write(&table, format!("0,1 {image}\n0,2 {image}\n"))
            .map_err(|cause| Failure::Ended(format!("cannot write {}: {cause}", table.display())))?;
        let output =
            output(companion::BARE.command()?.args(["run", "--limit", NEVER, "--table"]).arg(&table))?;
        refused += f64::from(u8::from(output.status.code() == Some(2)));
    }
    let mut endless = companion::BARE.command()?;
    endless.args(["run", "--limit", NEVER, "--cores", "0,1", "--"]).arg(programs.image("pingping-rcce"));
    let said = String::from_utf8_lossy(&output(&mut endless)?.stderr).into_owned();
    let figure2 = checked_output(&mut programs.run("0,1,5,24,47", "figure2", &["100"])?)?;
    let handled = figure2.lines().filter(|line| line.starts_with("[47]: (SCC has been booted for ")).count();
    let met = checked_output(&mut programs.run("0-7", "ids", &[])?)?;
    let met = met.lines().filter(|line| line.contains(" 101 barriers, ")).count();
    Ok(vec![
        at_once.row("exchanges that threads of one core run at once by devices", 2.0, partners),
        not_two.row("two programs on one core, of RCCE and of iRCCE, refused", 2.0, refused),
        no_ping_ping.row(
            "cores in a ping-ping of RCCE that wait for ever",
            2.0,
            said.matches("was ended by --limit").count() as f64,
        ),
        figure_2.row("interrupts of figure 2 that core 47 handles", 2.0, handled as f64),
        OURS.row("cores of 8 that boot and meet at 101 barriers", f64::NAN, met as f64),
    ])
}

fn output(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|cause| companion::spawn_failure(command, &cause))
}

#[cfg(test)]
mod tests {
    use super::exchange;

    #[test]
    fn time_and_bandwidth_of_an_exchange_are_read() {
        let printed = "[00]: ping-pong, user threads, poll, 2 to one: 32 bytes 1284 ns 24 MB/s\n";
        assert_eq!(exchange(printed), Some((1284.0, 24.0)));
        assert_eq!(exchange("[00]: xipx: core 1 does not answer\n"), None);
    }
}
