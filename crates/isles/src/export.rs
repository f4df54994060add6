//! What a run on a modelled chip is to write: which file, whether that can be, and writing it.
//!
//! The formats are those of `isles_transport_chip::export` and `isles_chip::draw`; here are their names, the check
//! before a run begins and the files after it. Invariant: the check leaves everything as it was, and a file has its
//! name only when all of it is there, also a trace, which is written while the run goes on.

use crate::chip::{self, ModelledChip};
use crate::claim::Claim;
use crate::destination::{Destination, Draft};
use crate::environment::{ConfigError, Machine};
use crate::launch::{Launch, LaunchError};
use crate::work::stopwatch::HostCode;
use crate::work::tape::Measurements;
use crate::work::{self, CodeTime};
use isles_chip::draw::{self, Heat};
use isles_chip::topology::Stop;
use isles_transport_chip::export::{self, RunFacts};
use isles_transport_chip::{Flow, LinkLoad, Report, World};
use std::io::{self, BufWriter};
use std::time::Duration;

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

    pub(crate) fn destination(&self) -> Destination {
        Destination::at(&self.path)
    }

    fn check(&self, claims: &[Claim]) -> Result<(), ConfigError> {
        let binary = matches!(self.export, Export::Trace | Export::Tape);
        let destination = self.destination();
        // A program's own words would stand in the middle of it.
        if binary && destination.is_standard() {
            return Err(self.refusal("a file; not -, it is binary"));
        }
        if let Some(allowed) = claims.iter().find_map(|claim| claim.refusal(&destination)) {
            return Err(self.refusal(allowed));
        }
        let standard = if binary { "" } else { "- or " };
        let allowed = |cause| format!("{standard}a file that can be written ({cause})");
        destination.try_out().map_err(|cause| self.refusal(allowed(cause)))
    }
}

/// Checks that all that `launch` is to write can be written, of a run on `machine`, apart from each other and from what
/// is read.
pub(crate) fn check(launch: &Launch, machine: Machine) -> Result<(), ConfigError> {
    let mut claims = launch.read_on(machine);
    for one in &launch.exports {
        let Machine::Chip(chip) = machine else {
            return Err(one.refusal(format!("nothing with the machine {machine}, which is no modelled chip")));
        };
        if one.export == Export::Joules && chip.chip().power_models().is_empty() {
            return Err(one.refusal(format!("nothing with {machine}, whose file has no power model")));
        }
        if one.export == Export::Tape && !matches!(launch.work, CodeTime::Host(_)) {
            return Err(one.refusal(
                "nothing without --work host:RATIO (ISLES_CHIP_WORK), because nothing is measured",
            ));
        }
        if one.export == Export::Heat
            && let Err(too_large) = draw::check_heat(chip.chip())
        {
            return Err(one.refusal(format!("nothing with {machine}: {too_large}")));
        }
        one.check(&claims)?;
        claims.push(Claim::written(&one.destination(), &one.source));
    }
    Ok(())
}

/// Most places of a traced run: what is on its way is known for each pair of places.
const TRACED_PLACES_MAX: u32 = 1_024;

/// Checks that all of `wanted` can be had of so many places.
pub(crate) fn check_places(wanted: &[Wanted], places: u32) -> Result<(), ConfigError> {
    let trace = wanted.iter().find(|one| one.export == Export::Trace && places > TRACED_PLACES_MAX);
    let allowed = || format!("nothing with more than {TRACED_PLACES_MAX} places");
    trace.map_or(Ok(()), |trace| Err(trace.refusal(allowed())))
}

/// Begins to record what the exports of `launch` need; gives the trace that is begun.
pub(crate) fn begin(
    launch: &Launch,
    chip: ModelledChip,
    world: &World,
) -> Result<Option<Draft>, LaunchError> {
    let mut begun = None;
    let (Launch { places, placement, governor, seed, .. }, protocol) = (launch, launch.protocol_on(chip));
    for one in &launch.exports {
        match one.export {
            Export::Traffic => world.record(),
            Export::Trace => {
                let destination = one.destination();
                let (file, draft) = destination.draft().map_err(|cause| destination.unwritten(cause))?;
                begun = Some(draft);
                let name = chip.machine();
                let run = format!(
                    "{name}, {places} places, placement {placement}, seed {seed}, protocol {protocol}, governor \
                     {governor}; 1 ns is 1 ps"
                );
                world.trace(&run, Box::new(BufWriter::new(file))).map_err(|error| {
                    LaunchError::Machine(format!(
                        "machine {name}: the thread that writes its trace could not be started: {error}"
                    ))
                })?;
            }
            Export::Summary | Export::Links | Export::Heat => {}
            Export::Folded | Export::Joules | Export::Tape => {}
        }
    }
    Ok(begun)
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
    /// Ends the trace of `world`, which `draft` makes whole, and takes what else there is.
    pub(crate) fn end(
        world: &World,
        draft: Option<Draft>,
        (code, measurements): (HostCode, Measurements),
    ) -> ChipRun {
        ChipRun {
            code,
            measurements,
            report: world.report(),
            links: world.link_loads(),
            flows: world.flows(),
            trace: world.end_trace().and_then(|()| draft.map_or(Ok(()), Draft::finish)),
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
                    let written = std::mem::replace(&mut self.trace, Ok(()));
                    written.map_err(|cause| one.destination().unwritten(cause))
                }
                Export::Tape => {
                    let tape = work::tape_of(launch, chip, &self.measurements);
                    let destination = one.destination();
                    tape.map_err(|cause| destination.unwritten(cause))
                        .and_then(|tape| destination.write(|out| out.write_all(&tape)).map(drop))
                }
                _ => self
                    .text(one, launch, (chip, host))
                    .and_then(|text| one.destination().write(|out| out.write_all(text.as_bytes())).map(drop)),
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
                let placement = &launch.placement.to_string();
                let (broadcast, reduce) = (&launch.broadcast.to_string(), &launch.reduce.to_string());
                let HostCode { total: host_code, uncharged: host_uncharged } = self.code;
                let facts = RunFacts {
                    chip: model,
                    seed,
                    protocol,
                    placement,
                    governor,
                    rest: launch.rest,
                    collectives: [broadcast, reduce],
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
        let (predicted, places) = (chip::predicted(self.report.time), self.report.ledgers.len());
        let caption = format!("{} with {places} places, {predicted} predicted", chip.machine());
        draw::heat(chip.chip(), &caption, &links)
    }
}
