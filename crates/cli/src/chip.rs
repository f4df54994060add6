//! `isles chip`: the chips that Isles knows, drawings of them, and the check of a chip file.

use clap::Subcommand;
use isles::{Claim, Destination, ModelledChip, ProtocolRoom};
use isles_app::Failure;
use isles_app::console;
use isles_app::runs::refusal;
use isles_chip::Chip;
use isles_chip::draw;
use isles_chip::file::{BUILT_IN, ChangeError, FindError, is_path};
use std::path::Path;

/// Commands for chips.
#[derive(Subcommand)]
pub enum Verb {
    /// Lists the chips that are available by name
    List,
    /// Draws a chip and prints its constants, each with its error and source
    Show {
        /// The name of a chip, or the path of a chip file (with a `/`, or ending in .toml)
        name: String,
        /// Write the drawing to this file, as SVG, and print nothing else; - is standard output
        #[arg(long, value_name = "FILE")]
        svg: Option<String>,
        /// Override a constant of the chip file, such as links.flit_time=2; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Checks chip files: prints each fault on its own line, and how many places can run; exits with 2 if there is
    /// a fault
    Check {
        /// Paths of chip files, or names of chips
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
    },
}

/// Executes the command.
pub fn execute(verb: &Verb) -> Result<(), Failure> {
    let text = match verb {
        Verb::List => list()?,
        Verb::Show { name, svg: None, set } => show(&changed(name, set)?),
        Verb::Show { name, svg: Some(file), set } => return write_svg(name, set, file),
        Verb::Check { files } => return check_all(files),
    };
    console::print_report(true, &text).map_err(Failure::stdout)
}

/// Returns the file that is read for the chip `name`; `None` for a built-in chip.
pub fn read(name: &str) -> Option<Claim> {
    is_path(name).then(|| Claim::read(name, "the chip file"))
}

/// Returns the chip; otherwise prints every fault of its file on a line and returns their number as the error.
fn find(name: &str) -> Result<Chip, Failure> {
    Chip::find(name).map_err(|error| match error {
        FindError::Faulty(faults) => {
            faults.iter().for_each(console::notice);
            let count = faults.len();
            let plural = if count == 1 { "fault" } else { "faults" };
            Failure::Usage(format!("the chip file {name} has {count} {plural}"))
        }
        error => Failure::Usage(error.to_string()),
    })
}

/// Returns the chip with other constants.
fn changed(name: &str, set: &[String]) -> Result<Chip, Failure> {
    let refused = |ChangeError { asked, allowed }| refusal("--set", &asked, &allowed);
    find(name)?.with_constants(&set.join(";"), None).map_err(refused)
}

fn list() -> Result<String, Failure> {
    let mut text =
        format!("{:<12} {:>7} {:>7} {:>7} {:>8}  about\n", "name", "cores", "places", "tiles", "presets");
    for (name, _) in BUILT_IN {
        let chip = find(name)?;
        let (cores, tiles) = (chip.topology().cores(), chip.topology().tiles());
        let (presets, title) = (chip.presets().len(), chip.title());
        let places = ModelledChip::room(&chip).map_or("none".to_owned(), |(places, _)| places.to_string());
        text += &format!("{name:<12} {cores:>7} {places:>7} {tiles:>7} {presets:>8}  {title}\n");
    }
    Ok(text)
}

fn show(chip: &Chip) -> String {
    let drawing = draw::drawing(chip).unwrap_or_else(|error| format!("(no drawing: {error})\n"));
    format!("{}{}\n{drawing}\n{}", draw::summary(chip), draw::powers(chip), draw::constants(chip))
}

fn write_svg(name: &str, set: &[String], file: &str) -> Result<(), Failure> {
    let reads: Vec<Claim> = read(name).into_iter().collect();
    let destination = Destination::check("--svg", Some(file), Path::new(file), &reads)?;
    let svg = draw::svg(&changed(name, set)?).map_err(|error| Failure::Usage(error.to_string()))?;
    destination.write(|out| out.write_all(svg.as_bytes()))?;
    Ok(())
}

/// Checks each file; a fault of one does not stop the check of the others.
fn check_all(files: &[String]) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for file in files {
        match check(file) {
            Ok(text) => console::print(text).map_err(Failure::stdout)?,
            Err(failure) => failures.push(failure),
        }
    }
    match (failures.pop(), files.len()) {
        (None, _) => Ok(()),
        (Some(failure), 1) => Err(failure),
        (Some(last), all) => {
            failures.push(last);
            failures.iter().for_each(console::notice);
            Err(Failure::Usage(format!("{} of {all} chips have faults or cannot be read", failures.len())))
        }
    }
}

fn check(file: &str) -> Result<String, Failure> {
    // A file may have any name; a name that the product knows is that chip, as in `show`.
    let is_known = BUILT_IN.iter().any(|(name, _)| *name == file);
    let is_bare = !is_known && !is_path(file) && Path::new(file).exists();
    let chip = find(&if is_bare { format!("./{file}") } else { file.to_owned() })?;
    let (constants, sources) = (chip.constants().len(), chip.sources().count());
    let places = match ModelledChip::room(&chip) {
        Ok((places, protocol)) => format!("up to {places} by {protocol}{}", by_protocol(&chip)),
        Err(lack) => format!("none, because {lack}"),
    };
    let cores = chip.topology().cores();
    let sources = if sources == 1 { "1 source".to_owned() } else { format!("{sources} sources") };
    let warnings: String = chip
        .presets()
        .iter()
        .filter_map(|preset| chip.too_fast_line(preset))
        .map(|line| format!("warning: {line}\n"))
        .collect();
    Ok(format!(
        "{file}: no fault; {cores} cores, {constants} constants, {sources}\n{warnings}places: {places}\n"
    ))
}

/// Returns the largest number of places for each protocol that the chip can carry, and its reason; then the protocols
/// that it cannot carry.
fn by_protocol(chip: &Chip) -> String {
    let rooms = ModelledChip::rooms(chip).unwrap_or_default();
    let cores = chip.topology().cores();
    let line = |room: &ProtocolRoom| {
        let places = if room.places == 0 { "none".to_owned() } else { format!("{} of {cores}", room.places) };
        let limit = room.limit.as_ref().map_or(String::new(), |limit| format!("  ({limit})"));
        format!("\n  {:<20} {places:>14}{limit}", room.protocol.name())
    };
    rooms.iter().map(line).collect()
}
