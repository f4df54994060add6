//! The destinations of results: the terminal, and files that are checked before anything runs.
//!
//! Text goes to standard output, or to standard error if standard output carries a file. Invariant: a failed write does
//! not prevent the others, and an unconfirmed result ends with exit code 1.

use super::Verification;
use crate::{Failure, console, picture};
use clap::Args;
use isles::{Claim, Destination, Launch};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Destinations of the results of an application.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct OutputArguments {
    /// File for the JSON; - is standard output [default: a file in out/, named after the run]
    #[arg(long, value_name = "FILE")]
    json: Option<String>,

    /// File for the CSV; - is standard output [default: a file in out/, named after the run]
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,

    /// Also draw, as SVG, where the time went by place, or the result itself if the application can; - is standard
    /// output
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

/// A run that the `isles` command draws.
pub(super) struct DrawnRun<'a> {
    /// The command that starts the program, as a user types it.
    pub typed: &'a str,
    /// Its JSON document, or on a modelled chip the summary of the run.
    pub document: &'a str,
}

/// The result of a run, ready to be printed and written.
pub(super) struct RunOutcome<'a> {
    pub text: &'a str,
    pub json: &'a str,
    pub csv: &'a dyn Fn(&mut dyn Write) -> io::Result<()>,
    /// The picture of `--svg`; without, it is one of the application's own.
    pub drawn: Option<DrawnRun<'a>>,
    /// Writes the picture that a flag asks for.
    pub picture: &'a dyn Fn(&str, &mut dyn Write) -> io::Result<()>,
    pub verification: Option<&'a Verification>,
    /// `true` if the run has written its own files, such as a trace.
    pub has_run_files: bool,
}

/// The arguments with which an application writes no files.
pub const NO_FILES: [&str; 4] = ["--json", "/dev/null", "--csv", "/dev/null"];

/// The files of a run, checked to be writable.
pub(super) struct Outputs {
    json: Destination,
    csv: Destination,
    svg: Option<Destination>,
    /// Pictures of the application's own, with their flags.
    pictures: Vec<(&'static str, Destination)>,
    /// Files that the run itself writes, such as a trace.
    of_run: Vec<PathBuf>,
    /// `true` if nothing else goes to standard output.
    is_free: bool,
}

impl Outputs {
    /// Checks that all files can be written, and differ from each other and from all other files of the run. If no file
    /// is named, they are `out/NAME.json` and `out/NAME.csv`.
    ///
    /// # Errors
    /// [`Failure::Usage`] if one cannot.
    pub fn check(
        name: &str,
        arguments: &OutputArguments,
        pictures: &[(&'static str, &str)],
        launch: &Launch,
    ) -> Result<Outputs, Failure> {
        let default = |ending| Path::new("out").join(format!("{}.{ending}", file_name(name)));
        let mut claims = launch.claims();
        let of_run = claims.iter().filter_map(Claim::written_file).map(Path::to_owned).collect();
        let json = Destination::check("--json", arguments.json.as_deref(), &default("json"), &claims)?;
        claims.push(Claim::written(&json, "--json"));
        let csv = Destination::check("--csv", arguments.csv.as_deref(), &default("csv"), &claims)?;
        claims.push(Claim::written(&csv, "--csv"));
        let svg = arguments.svg.as_deref();
        let svg =
            svg.map(|path| Destination::check("--svg", Some(path), Path::new(path), &claims)).transpose()?;
        claims.extend(svg.iter().map(|svg| Claim::written(svg, "--svg")));
        let mut checked = Vec::new();
        for (flag, path) in pictures {
            let picture = Destination::check(flag, Some(path), Path::new(path), &claims)?;
            claims.push(Claim::written(&picture, flag));
            checked.push((*flag, picture));
        }
        let is_free = launch.leaves_standard_output_free();
        Ok(Outputs { json, csv, svg, pictures: checked, of_run, is_free })
    }

    /// Prints the heading, on standard error if standard output carries a file. A closed pipe is reported with the
    /// result, since the run still writes its files.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print_heading(&self, line: &str) -> Result<(), Failure> {
        let printed = console::print_report(self.leaves_standard_output_free(), &format!("{line}\n"));
        printed
            .map_err(Failure::stdout)
            .or_else(|failure| if failure.is_quiet() { Ok(()) } else { Err(failure) })
    }

    fn leaves_standard_output_free(&self) -> bool {
        let pictures = self.svg.iter().chain(self.pictures.iter().map(|(_, picture)| picture));
        let mut files = [&self.json, &self.csv].into_iter().chain(pictures);
        self.is_free && !files.any(Destination::is_standard)
    }

    /// Prints the result, writes the files, and ends with the verification, if any.
    ///
    /// # Errors
    /// A file cannot be written, or the result is refuted.
    pub fn write(self, outcome: RunOutcome<'_>) -> Result<(), Failure> {
        let RunOutcome { text, json, csv, drawn, picture: own_picture, verification, has_run_files } =
            outcome;
        let is_free = self.leaves_standard_output_free();
        let printed = print_line(is_free, text);
        let checked = verification.map_or(Ok(()), |verification| match verification.holds {
            true => print_line(is_free, &format!("checked  {}", verification.text)),
            false => Err(Failure::WrongResult(verification.text.clone())),
        });
        let name = |path: &Option<PathBuf>| match path {
            Some(path) => print_line(is_free, &format!("wrote  {}", path.display())),
            None => Ok(()),
        };
        let results = [self.json.write(|out| out.write_all(json.as_bytes())), self.csv.write(csv)];
        let results = results.map(|result| result.map_err(Failure::from).and_then(|path| name(&path)));
        let mut all = self.pictures;
        let drawn = match (self.svg, drawn) {
            (Some(svg), Some(run)) => picture::draw(run.typed, run.document, svg),
            // The application draws it like its other pictures.
            (svg, _) => {
                all.splice(0..0, svg.map(|svg| ("--svg", svg)));
                Ok(())
            }
        };
        let pictures = all.iter().map(|(flag, to)| to.write(|out| own_picture(flag, out)));
        let pictures: Vec<_> =
            pictures.map(|result| result.map_err(Failure::from).and_then(|path| name(&path))).collect();
        let of_run = self.of_run.into_iter().filter(|file| has_run_files && file.is_file());
        let of_run: Vec<_> = of_run.map(|file| name(&Some(file))).collect();
        let all = [printed, checked].into_iter().chain(results).chain([drawn]).chain(pictures).chain(of_run);
        Failure::first_of(all)
    }
}

fn print_line(is_result: bool, text: &str) -> Result<(), Failure> {
    if is_result {
        return console::print(format_args!("{text}\n")).map_err(Failure::stdout);
    }
    console::notice(text);
    Ok(())
}

/// A text as part of a file's name.
fn file_name(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    text.chars().map(|character| if plain(character) { character } else { '-' }).collect()
}
