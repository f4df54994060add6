//! What a run on a modelled chip is to write: which file, whether that can be, and writing it.
//!
//! The formats are those of `isles_transport_chip::export` and `isles_chip::draw`; here are their names, the check
//! before a run begins and the files after it. Invariant: the check leaves everything as it was, and a file is emptied
//! only when its new contents are there, but for a trace, which is written while the run goes on.

use crate::chip::ModelledChip;
use crate::environment::{ConfigError, Machine};
use crate::launch::{Launch, LaunchError};
use crate::work::stopwatch::HostCode;
use crate::work::tape::Measurements;
use crate::work::{self, Work};
use isles_chip::draw::{self, Heat};
use isles_chip::topology::Stop;
use isles_transport_chip::export::{self, RunFacts};
use isles_transport_chip::{Flow, LinkLoad, Report, World};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// Standard output, as a path.
const STANDARD: &str = "-";

/// One thing that can be written of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Export {
    Summary,
    Links,
    Traffic,
    Heat,
    Trace,
    Folded,
    Joules,
    Tape,
}

/// All of them, with the variable that says where each goes.
pub(crate) const EXPORTS: [(Export, &str); 8] = [
    (Export::Summary, "ISLES_CHIP_SUMMARY"),
    (Export::Links, "ISLES_CHIP_LINKS"),
    (Export::Traffic, "ISLES_CHIP_TRAFFIC"),
    (Export::Heat, "ISLES_CHIP_HEAT"),
    (Export::Trace, "ISLES_CHIP_TRACE"),
    (Export::Folded, "ISLES_CHIP_FOLDED"),
    (Export::Joules, "ISLES_CHIP_JOULES"),
    (Export::Tape, "ISLES_CHIP_TAPE"),
];

/// Something that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) export: Export,
    /// The variable or the flag that said so.
    pub(crate) source: String,
    /// The file, or `-`.
    pub(crate) path: String,
}

impl Wanted {
    fn refusal(&self, allowed: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.source, &self.path, allowed)
    }

    pub(crate) fn is_standard(&self) -> bool {
        self.path == STANDARD
    }

    fn check(&self) -> Result<(), ConfigError> {
        let binary = matches!(self.export, Export::Trace | Export::Tape);
        let standard = if binary { "" } else { "- or " };
        if self.is_standard() {
            // A program's own words would stand in the middle of it.
            return if binary { Err(self.refusal("a file that can be written")) } else { Ok(()) };
        }
        check_path(&self.path)
            .map_err(|cause| self.refusal(format!("{standard}a file that can be written ({cause})")))
    }

    fn write(&self, content: &[u8]) -> Result<(), LaunchError> {
        let written = if self.is_standard() {
            let mut out = io::stdout().lock();
            match out.write_all(content).and_then(|()| out.flush()) {
                // Who reads may stop reading.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            }
        } else {
            fs::write(&self.path, content)
        };
        written.map_err(|cause| self.unwritten(cause))
    }

    fn unwritten(&self, cause: io::Error) -> LaunchError {
        let path = if self.is_standard() { "standard output" } else { &self.path };
        LaunchError::Output { path: path.to_owned(), cause }
    }
}

/// Whether the file can be written, or made.
fn check_path(path: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => OpenOptions::new().append(true).open(path).map(drop),
        // A pipe that is opened and closed has ended for its reader, so it is not tried.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_empty() => {
            let mut beside = OsString::from(path);
            beside.push(format!(".{}", std::process::id()));
            File::create(&beside)?;
            fs::remove_file(&beside)
        }
        Err(error) => Err(error),
    }
}

/// Checks that all of `wanted` can be written, of a run on `machine` whose code takes its time from `work`, and apart
/// from each other.
pub(crate) fn check(wanted: &[Wanted], machine: Machine, work: &Work) -> Result<(), ConfigError> {
    for (index, one) in wanted.iter().enumerate() {
        let Machine::Chip(chip) = machine else {
            return Err(one.refusal(format!("nothing with the machine {machine}, which is no modelled chip")));
        };
        if one.export == Export::Joules && chip.chip().power_models().is_empty() {
            return Err(one.refusal(format!("nothing with {machine}, whose file has no power model")));
        }
        if one.export == Export::Tape && !matches!(work, Work::Host(_)) {
            return Err(one.refusal(
                "nothing without --work host:RATIO (ISLES_CHIP_WORK), because nothing is measured",
            ));
        }
        if let Some(other) = wanted[..index].iter().find(|other| other.path == one.path) {
            return Err(one.refusal(format!("another file than that of {}", other.source)));
        }
        one.check()?;
    }
    Ok(())
}

/// Begins to record what the exports of `launch` need.
pub(crate) fn begin(launch: &Launch, chip: ModelledChip, world: &World) -> Result<(), LaunchError> {
    let (Launch { places, governor, seed, .. }, protocol) = (launch, launch.protocol_on(chip));
    for one in &launch.exports {
        match one.export {
            Export::Traffic => world.record(),
            Export::Trace => {
                let file = File::create(&one.path).map_err(|cause| one.unwritten(cause))?;
                let name = chip.machine();
                let run = format!(
                    "{name}, {places} places, seed {seed}, protocol {protocol}, governor {governor}; 1 ns is 1 ps"
                );
                world.trace(&run, Box::new(BufWriter::new(file)));
            }
            Export::Summary | Export::Links | Export::Heat => {}
            Export::Folded | Export::Joules | Export::Tape => {}
        }
    }
    Ok(())
}

/// What is known of a run when it has ended.
pub(crate) struct ChipRun {
    pub(crate) report: Report,
    links: Vec<LinkLoad>,
    flows: Vec<Flow>,
    trace: io::Result<()>,
    pub(crate) code: HostCode,
    measurements: Measurements,
}

impl ChipRun {
    /// Ends the trace of `world`, and takes what else there is.
    pub(crate) fn end(world: &World, (code, measurements): (HostCode, Measurements)) -> ChipRun {
        ChipRun {
            code,
            measurements,
            report: world.report(),
            links: world.link_loads(),
            flows: world.flows(),
            trace: world.end_trace(),
        }
    }

    /// Writes all exports of `launch`; what fails keeps nothing else from being written.
    pub(crate) fn write(
        mut self,
        launch: &Launch,
        (chip, host): (ModelledChip, Duration),
    ) -> Result<(), LaunchError> {
        let mut written = Ok(());
        for one in &launch.exports {
            let result = match one.export {
                Export::Trace => {
                    std::mem::replace(&mut self.trace, Ok(())).map_err(|cause| one.unwritten(cause))
                }
                Export::Tape => {
                    let tape = work::tape_of(launch, chip, &self.measurements);
                    tape.map_err(|cause| one.unwritten(cause)).and_then(|tape| one.write(&tape))
                }
                _ => self.text(one, launch, (chip, host)).and_then(|text| one.write(text.as_bytes())),
            };
            written = written.and(result);
        }
        written
    }

    fn text(
        &self,
        one: &Wanted,
        launch: &Launch,
        (chip, host): (ModelledChip, Duration),
    ) -> Result<String, LaunchError> {
        let (model, report) = (chip.chip(), &self.report);
        Ok(match one.export {
            Export::Summary => {
                let (seed, protocol) = (launch.seed, launch.protocol_on(chip).name());
                let (governor, work) = (&launch.governor.to_string(), &launch.work.to_string());
                let HostCode { total: host_code, uncharged: host_uncharged } = self.code;
                let facts = RunFacts {
                    chip: model,
                    seed,
                    protocol,
                    governor,
                    rest: launch.rest,
                    work,
                    host,
                    host_code,
                    host_uncharged,
                };
                export::summary(&facts, report)
            }
            Export::Links => export::links(model.topology(), &self.links),
            Export::Traffic => export::traffic(&self.flows),
            Export::Folded => export::folded(chip.machine(), model.topology(), report),
            Export::Joules => {
                let own = report.energy.as_ref().and_then(|energy| energy.models.first());
                own.map(|own| export::folded_joules(chip.machine(), model.topology(), own))
                    .unwrap_or_default()
            }
            Export::Heat => self.heat(chip).map_err(|error| one.refusal(error.to_string()))?,
            Export::Trace | Export::Tape => String::new(),
        })
    }

    fn heat(&self, chip: ModelledChip) -> Result<String, draw::TooLarge> {
        let stop = |stop| match stop {
            Stop::Tile(tile) => format!("tile {tile}"),
            Stop::Switch => "the switch".to_owned(),
        };
        let heat = |load: &LinkLoad| Heat {
            link: load.link,
            share: load.utilisation,
            about: format!(
                "{} to {}: {} flits, {:.3} % of the time",
                stop(load.ends.0),
                stop(load.ends.1),
                load.flits,
                load.utilisation * 100.0
            ),
        };
        let links: Vec<Heat> = self.links.iter().map(heat).collect();
        let (milliseconds, places) = (self.report.time.0 as f64 / 1e9, self.report.ledgers.len());
        let caption = format!("{} with {places} places, {milliseconds:.3} ms predicted", chip.machine());
        draw::heat(chip.chip(), &caption, &links)
    }
}
