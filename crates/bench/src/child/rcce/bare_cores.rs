//! Programs on bare cores, run by `isles-bare`: ping-pongs of RCCE and of the device of Xipx, and the boot.
//!
//! The programs time themselves; their images are built for each run, in the checkout. A QEMU machine that loses its
//! processor makes a run a thousand times as long, so each figure is the minimum of a few.

use crate::child::timing::{Effort, print_figure};
use crate::program::available::built;
use crate::work_folder::WorkFolder;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Bytes, rounds of a batch and batches.
const LENGTHS: [(usize, &str, &str); 3] = [(32, "400", "21"), (1024, "200", "21"), (65_536, "20", "11")];
/// Bytes of messages of devices.
const DEVICE_LENGTHS: [usize; 2] = [32, 1024];
const DEVICE_ROUNDS: &str = "200";
/// Number of runs for each figure.
const RUNS: usize = 3;

/// Images of this process, in a folder that is removed with it.
struct Images {
    folder: PathBuf,
    program: PathBuf,
}

impl Drop for Images {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder); // what is left does no harm
    }
}

impl Images {
    fn new() -> Images {
        let folder = WorkFolder::open()
            .unwrap_or_else(|why| panic!("{why}"))
            .folder(&format!("bare-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let program =
            built("isles-bare").unwrap_or_else(|missing| panic!("{}: {}", missing.why, missing.remedy));
        Images { folder, program }
    }

    /// Builds an image; `words` are those of `isles bare build`.
    fn build(&self, words: &[&str]) -> PathBuf {
        let image = self.folder.join(format!("{}.img", words.join("").replace('/', "-")));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut build = Command::new(&self.program);
        succeeded(build.current_dir(root).arg("build").args(words).arg("-o").arg(&image));
        image
    }

    /// Runs an image on cores.
    fn run(&self, cores: &str, image: &Path, words: &[&str]) -> Output {
        let mut run = Command::new(&self.program);
        run.args(["run", "--times", "--limit", "120", "--cores", cores, "--"]).arg(image).args(words);
        succeeded(&mut run)
    }

    /// Returns the smallest number before `unit` in the output of an image on cores 0 and 1.
    fn least(&self, image: &Path, words: &[&str], unit: &str) -> f64 {
        let run = |_| {
            let text = String::from_utf8_lossy(&self.run("0,1", image, words).stdout).into_owned();
            number_before(&text, unit).unwrap_or_else(|| panic!("{text:?} has no {unit}"))
        };
        (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
    }
}

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start isles-bare: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn number_before(text: &str, unit: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == unit)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

/// Prints the times of a C program by length.
fn by_length(images: &Images, image: &Path, name: &str) {
    for (bytes, rounds, batches) in LENGTHS {
        let time = images.least(image, &[&bytes.to_string(), rounds, batches], "us");
        print_figure(&format!("{name}_us_{bytes}"), time);
    }
}

/// Measures RCCE.
pub fn rcce(_: Effort) {
    let images = Images::new();
    by_length(&images, &images.build(&["examples/c/pingpong.c"]), "ping_pong");
}

/// Measures iRCCE: ping-pong, and ping-ping.
pub fn ircce(_: Effort) {
    let images = Images::new();
    by_length(&images, &images.build(&["examples/c/pingpong.c", "-DIRCCE"]), "ping_pong");
    by_length(&images, &images.build(&["examples/c/pingping.c", "-DIRCCE"]), "ping_ping");
}

fn devices(threads: &str) {
    let images = Images::new();
    let image = images.build(&["bare-metal/examples", "--bin", "xipx"]);
    for (pattern, name) in [("ping-pong", "ping_pong"), ("ping-ping", "ping_ping")] {
        for bytes in DEVICE_LENGTHS {
            let words = [pattern, &bytes.to_string(), DEVICE_ROUNDS, threads, "poll"];
            print_figure(&format!("{name}_us_{bytes}"), images.least(&image, &words, "ns") / 1e3);
        }
    }
}

/// Measures devices of Xipx, between threads in supervisor mode.
pub fn xipx(_: Effort) {
    devices("kernel");
}

/// Measures devices of Xipx, between threads in user mode.
pub fn xipx_user(_: Effort) {
    devices("user");
}

/// Prints the seconds from the start of the machines to `main` of the last one, for two and for eight machines, and
/// the KiB of the largest example of C.
pub fn boot(_: Effort) {
    let images = Images::new();
    let image = images.build(&["bare-metal/examples", "--bin", "ids"]);
    for (name, cores) in [("boot_of_2_s", "0,1"), ("boot_of_8_s", "0-7")] {
        let text = String::from_utf8_lossy(&images.run(cores, &image, &[]).stderr).into_owned();
        let times = text.lines().filter_map(|line| number_before(line, "s"));
        print_figure(name, times.fold(0.0, f64::max));
    }
    let largest = images.build(&["examples/c/bt.c", "-Os"]);
    let bytes = std::fs::metadata(&largest).map_or(f64::NAN, |file| file.len() as f64);
    print_figure("image_kib", bytes / 1024.0);
}
