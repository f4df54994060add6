//! `isles plot`: pictures of what Isles writes, as SVG; and `--svg` of the commands that have results.
//!
//! Files are read into one of a few shapes ([`input`]), each shape makes a figure (one source file for each), and the
//! crate `isles-plot` draws it. A command with `--svg` passes the text of its own JSON or CSV to the same functions, so
//! a picture is the same whether it is drawn with the run or after it. Invariant: nothing is written unless all files
//! were read and gave a figure.

mod bench;
mod input;
mod repro;
mod run;
mod sweep;
mod table;

use clap::{Args, ValueEnum};
use input::{Content, InputFile};
use isles::{Claim, Destination};
use isles_app::Failure;
use isles_app::console;
use isles_app::picture::command_line;
use isles_app::runs::refusal;
use isles_plot::{Drawing, Figure, Provenance, Scale};
use std::path::Path;

/// The arguments of `isles plot`.
#[derive(Args)]
pub struct Arguments {
    /// Files written by Isles: JSON of run, repro, bench or --summary, CSV of sweep or repro; or any CSV with a line of
    /// names, whose first column is the horizontal axis. Several of one shape are compared
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// File for the picture, as SVG; - is standard output
    #[arg(long, value_name = "FILE")]
    out: String,

    #[command(flatten)]
    request: PlotRequest,

    /// Title of the picture [default: one that suits the figures]
    #[arg(long)]
    title: Option<String>,

    /// The command that the picture names as its own, where another program draws by this one
    #[arg(long, hide = true)]
    said: Option<String>,
}

/// Options of a figure.
#[derive(Args, Clone, Debug, Default)]
pub struct PlotRequest {
    /// Kind of picture [default: one that suits the figures]
    #[arg(long)]
    kind: Option<Kind>,

    /// Of repro, one experiment; of bench, one group or a row without its number, such as `barrier`
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Of a summary, where that went [default: time]; of runs and sweeps, that over places instead of the speed-up
    #[arg(long)]
    what: Option<Resource>,
}

/// The kinds of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Lines over a number: places, lengths, clocks.
    Curve,
    /// Amounts by place or by category.
    Bars,
    /// Published figures against ours.
    Parity,
    /// Time against energy.
    Plane,
}

/// Resource that a run spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Resource {
    /// Seconds.
    Time,
    /// Joules.
    Energy,
}

impl PlotRequest {
    /// Returns the requested kind, or the default; fails unless it is one of `kinds`, which `what` can be shown as.
    fn kind(&self, what: &str, default: Kind, kinds: &[Kind]) -> Result<Kind, Failure> {
        let name = |kind: &Kind| {
            kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
        };
        match self.kind {
            Some(kind) if !kinds.contains(&kind) => {
                let names: Vec<String> = kinds.iter().map(name).collect();
                Err(refusal("--kind", &name(&kind), &format!("{} for {what}", names.join(", "))))
            }
            kind => Ok(kind.unwrap_or(default)),
        }
    }

    /// Refuses options of other shapes.
    fn check(&self, content: &Content) -> Result<(), Failure> {
        if let (Some(only), false) = (&self.only, matches!(content, Content::Repro(_) | Content::Bench(_))) {
            return Err(refusal(
                "--only",
                only,
                &format!("nothing for {}, only for repro and bench", content.shape()),
            ));
        }
        let is_of_runs = matches!(content, Content::Summary(_) | Content::Sweep(_) | Content::Run(_));
        if let (Some(what), false) = (self.what, is_of_runs) {
            let what = what.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
            return Err(refusal(
                "--what",
                &what,
                &format!("nothing for {}, only for summaries, runs and sweeps", content.shape()),
            ));
        }
        Ok(())
    }
}

/// Executes the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let reads: Vec<Claim> = arguments.files.iter().map(|path| Claim::read(path, "the results")).collect();
    let out = Destination::check("--out", Some(&arguments.out), Path::new(&arguments.out), &reads)?;
    let files = arguments.files.iter().map(|path| InputFile::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut picture = Picture::of(&files, &arguments.request)?;
    if let Some(title) = &arguments.title {
        title.clone_into(picture.figure.title_mut());
    }
    let drawing = Drawing::of(&picture.figure);
    if drawing.drawn() == 0 {
        let why = drawing.left_out().unwrap_or("all cells of values are empty");
        let allowed = "figures that can be drawn";
        return Err(Failure::Usage(format!(
            "{:?} gives an empty picture ({why}); allowed: {allowed}",
            files[0].path
        )));
    }
    picture.write_as(out, arguments.said.as_deref())
}

/// A figure with the origin of its values.
pub struct Picture {
    figure: Figure,
    origin: InputOrigin,
}

/// Origin of a file's figures, as far as the file states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct InputOrigin {
    chip: Option<String>,
    seed: Option<u64>,
    measured: Option<String>,
}

impl InputOrigin {
    /// Returns the parts on which all origins agree.
    fn common(origins: &[InputOrigin]) -> InputOrigin {
        let mut common = origins.first().cloned().unwrap_or_default();
        for other in origins {
            common.chip = common.chip.filter(|chip| other.chip.as_ref() == Some(chip));
            common.seed = common.seed.filter(|seed| other.seed == Some(*seed));
            common.measured = common.measured.filter(|measured| other.measured.as_ref() == Some(measured));
        }
        common
    }
}

impl Picture {
    /// Makes the picture of `files`, which must not be empty.
    ///
    /// # Errors
    /// The files are of several shapes, the request does not suit them, or there is nothing to draw.
    fn of(files: &[InputFile], request: &PlotRequest) -> Result<Picture, Failure> {
        let first = files.first().ok_or_else(|| Failure::Usage("which file?".to_owned()))?;
        let shape = first.content.shape();
        if let Some(other) = files.iter().find(|file| file.content.shape() != shape) {
            let allowed = format!(
                "{shape}, like {:?}, because all figures of a picture have the same shape",
                first.path
            );
            return Err(other.refusal(&format!("{}; allowed: {allowed}", other.content.shape())));
        }
        request.check(&first.content)?;
        let figure = match first.content {
            Content::Run(_) => run::runs(files, request),
            Content::Summary(_) => run::summaries(files, request),
            Content::Sweep(_) => sweep::figure(files, request),
            Content::Repro(_) => repro::figure(files, request),
            Content::Bench(_) => bench::figure(files, request),
            Content::Table(_) => table::figure(files, request),
        };
        let origins: Vec<InputOrigin> = files.iter().map(|file| file.content.origin()).collect();
        Ok(Picture { figure: figure?, origin: InputOrigin::common(&origins) })
    }

    /// Makes the picture of this command's own JSON or CSV; `name` stands for the file.
    ///
    /// # Errors
    /// As [`Picture::of`].
    pub fn of_text(name: &str, text: &str) -> Result<Picture, Failure> {
        Picture::of(&[InputFile::parse(name, text)?], &PlotRequest::default())
    }

    /// Writes the picture, with the words of this command as its provenance.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, out: Destination) -> Result<(), Failure> {
        self.write_as(out, None)
    }

    /// Writes the picture; `said` is the command that made it, if that is not this one.
    fn write_as(&self, out: Destination, said: Option<&str>) -> Result<(), Failure> {
        let InputOrigin { chip, seed, measured } = self.origin.clone();
        let (version, commit) = match crate::VERSION.split_once(" (") {
            Some((version, commit)) => (version, Some(commit.trim_end_matches(')').to_owned())),
            None => (crate::VERSION, None),
        };
        let version = version.to_owned();
        let provenance = Provenance {
            version,
            commit,
            command: said.map_or_else(|| command_line("isles"), str::to_owned),
            chip,
            seed,
            measured,
        };
        let drawing = Drawing::of(&self.figure);
        if let Some(why) = drawing.left_out() {
            console::notice(format_args!("the picture does not show all: {why}"));
        }
        out.write(|out| drawing.write(&provenance, out))?;
        Ok(())
    }
}

/// Least ratio of the largest value to the smallest for a logarithmic axis, if all are above zero.
const LOG_FROM: f64 = 30.0;

/// Returns the scale that suits the values.
fn scale_for(values: impl IntoIterator<Item = f64>) -> Scale {
    let values = values.into_iter().filter(|value| value.is_finite());
    let (least, most) =
        values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    if least > 0.0 && most >= least * LOG_FROM && least.is_finite() { Scale::Log } else { Scale::Linear }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_logarithmic_only_for_positive_values_over_a_wide_range() {
        assert_eq!(scale_for([1.0, 30.0]), Scale::Log);
        assert_eq!(scale_for([1.0, 29.0]), Scale::Linear);
        assert_eq!(scale_for([0.0, 1000.0]), Scale::Linear);
        assert_eq!(scale_for([-1.0, 1000.0]), Scale::Linear);
        assert_eq!(scale_for([]), Scale::Linear);
    }

    #[test]
    fn only_what_all_files_say_alike_is_said_of_the_picture() {
        let one = InputOrigin { chip: Some("chip:scc".to_owned()), seed: Some(1), measured: None };
        let other = InputOrigin { seed: Some(2), ..one.clone() };
        let expected = InputOrigin { seed: None, ..one.clone() };
        assert_eq!(InputOrigin::common(&[one.clone(), other]), expected);
        assert_eq!(InputOrigin::common(&[one.clone(), one.clone()]), one);
    }
}
