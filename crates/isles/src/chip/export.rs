//! The output files of a run on a modelled chip: checked before the run, written after it.
//!
//! The formats are in `isles_transport_chip::export` and `isles_chip::draw`. Invariant: a file gets its name only when
//! it is complete, even a trace, which is written during the run.

use super::modelled::ModelledChip;
use super::settings::ChipSettings;
use super::work;
use super::work::CodeTime;
use crate::chip::work::stopwatch::HostCode;
use crate::chip::work::tape::Measurements;
use crate::launch::{Launch, LaunchError};
use crate::output::{AtomicFile, Export, ExportRequest, WriteError};
use crate::settings::ConfigError;
use crate::settings::table::Stored;
use isles_chip::draw;
use isles_chip::draw::{LinkHeat, TileHeat};
use isles_chip::quantity::{PICOSECONDS_PER_SECOND, Picoseconds};
use isles_chip::topology::{LinkEnd, TileId};
use isles_runtime::MeasuredRegion;
use isles_transport_chip::export::{RegionFacts, RunFacts};
use isles_transport_chip::{ChipWorld, Flow, LinkLoad, Report, export};
use std::io;
use std::io::BufWriter;
use std::time::Duration;

/// Maximum number of places of a traced run, because a trace keeps the messages in flight for each pair of places.
const TRACED_PLACES_MAX: u32 = 1_024;

/// Checks that a run of `launch` on `chip` can produce the output `one`.
pub(super) fn check(chip: ModelledChip, launch: &Launch, one: &ExportRequest) -> Result<(), ConfigError> {
    let (machine, has_power) = (chip.machine(), !chip.chip().power_models().is_empty());
    let allowed = match one.export {
        Export::Trace if launch.places > TRACED_PLACES_MAX => {
            format!("nothing with more than {TRACED_PLACES_MAX} places")
        }
        Export::Joules if !has_power => format!(
            "nothing with {machine}, because its file has no power \
             model"
        ),
        Export::Tape if !matches!(launch.chip.work.value, CodeTime::Host(_)) => {
            "nothing without --work host:RATIO (ISLES_CHIP_WORK), because nothing is measured".to_owned()
        }
        Export::Heat => match draw::check_heat(chip.chip()) {
            Ok(()) => return Ok(()),
            Err(too_large) => format!("nothing with {machine}: {too_large}"),
        },
        _ => return Ok(()),
    };
    Err(one.refusal(allowed))
}

/// Starts the recording that the outputs of `launch` need; returns the draft of a trace.
pub(crate) fn begin(
    launch: &Launch,
    chip: ModelledChip,
    world: &ChipWorld,
) -> Result<Option<AtomicFile>, LaunchError> {
    let mut begun = None;
    let Launch { places, seed, chip: settings, .. } = launch;
    let ChipSettings { placement, governor, .. } = settings;
    let (placement, governor, protocol) =
        (&placement.value, governor.value, settings.protocol_on(chip, *places));
    for one in &launch.exports {
        match one.export {
            Export::Traffic => world.record(),
            Export::Trace => {
                let destination = one.destination();
                let (file, draft) = destination
                    .draft()
                    .map_err(|cause| LaunchError::Machine(destination.unwritten(cause).to_string()))?;
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

/// Results of a run that has ended.
pub(crate) struct ChipRun {
    pub(crate) report: Report,
    pub(crate) regions: Vec<RegionFacts>,
    links: Vec<LinkLoad>,
    flows: Vec<Flow>,
    trace: io::Result<()>,
    pub(crate) code: HostCode,
    measurements: Measurements,
}

impl ChipRun {
    /// Ends the trace of `world`, gives its file `draft` the final name, and collects the other results.
    pub(crate) fn end(
        world: &ChipWorld,
        draft: Option<AtomicFile>,
        code: HostCode,
        measurements: Measurements,
        regions: &[MeasuredRegion],
    ) -> ChipRun {
        let report = world.report();
        ChipRun {
            code,
            measurements,
            regions: regions.iter().map(|region| facts_of(region, &report)).collect(),
            report,
            links: world.link_loads(),
            flows: world.flows(),
            trace: world.end_trace().and_then(|()| draft.map_or(Ok(()), AtomicFile::finish)),
        }
    }

    /// Writes all outputs of `launch`, and returns the errors of those that failed.
    pub(crate) fn write(mut self, launch: &Launch, chip: ModelledChip, host: Duration) -> Vec<WriteError> {
        if let Some(kept) = &launch.summary {
            // A second run does not replace the summary of the first.
            let _ = kept.set(self.summary(launch, chip, host));
        }
        let mut unwritten = Vec::new();
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
                    .text(one, launch, chip, host)
                    .and_then(|text| one.destination().write(|out| out.write_all(text.as_bytes())).map(drop)),
            };
            unwritten.extend(result.err());
        }
        unwritten
    }

    fn text(
        &self,
        one: &ExportRequest,
        launch: &Launch,
        chip: ModelledChip,
        host: Duration,
    ) -> Result<String, WriteError> {
        let (model, report) = (chip.chip(), &self.report);
        Ok(match one.export {
            Export::Summary => self.summary(launch, chip, host),
            Export::Links => export::links(model.topology(), &self.links),
            Export::Traffic => export::traffic(&self.flows),
            Export::Folded => export::folded(chip.machine(), model.topology(), report),
            Export::Joules => {
                let own = report.energy.as_ref().and_then(|energy| energy.models.first());
                own.map(|own| export::folded_joules(chip.machine(), model.topology(), own))
                    .unwrap_or_default()
            }
            Export::Heat => {
                let heat = self.heat(chip);
                heat.map_err(|error| one.destination().unwritten(io::Error::other(error.to_string())))?
            }
            Export::Trace | Export::Tape => String::new(),
        })
    }

    fn summary(&self, launch: &Launch, chip: ModelledChip, host: Duration) -> String {
        let HostCode { total: host_code, uncharged: host_uncharged } = self.code;
        let facts = RunFacts {
            chip: chip.chip(),
            seed: launch.seed,
            settings: &launch.chip.stored_settings(chip, launch.places, Stored::by_summary),
            host,
            host_code,
            host_uncharged,
            regions: &self.regions,
        };
        export::summary(&facts, &self.report)
    }

    fn heat(&self, chip: ModelledChip) -> Result<String, draw::TooLarge> {
        let stop = |stop| match stop {
            LinkEnd::Tile(tile) => format!("tile {tile}"),
            LinkEnd::Switch => "the switch".to_owned(),
        };
        let link = |load: &LinkLoad| LinkHeat {
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
        let links: Vec<LinkHeat> = self.links.iter().map(link).collect();
        let tiles: Vec<TileHeat> =
            (0..chip.chip().topology().tiles()).map(|tile| self.tile_heat(chip, TileId(tile))).collect();
        let (predicted, places) = (predicted(self.report.time), self.report.ledgers.len());
        let caption = format!("{} with {places} places, {predicted} predicted", chip.machine());
        draw::heat(chip.chip(), &caption, &links, &tiles)
    }

    /// Returns the fraction of the run in which the cores of `tile` were busy; a core without a place counts as idle.
    fn tile_heat(&self, chip: ModelledChip, tile: TileId) -> TileHeat {
        let (topology, report) = (chip.chip().topology(), &self.report);
        let whole = (report.time.0 as f64).max(1.0);
        let places = report.cores.iter().zip(&report.ledgers).enumerate();
        let here = places.filter(|(_, (core, _))| topology.tile_of(**core) == tile);
        let shares: Vec<(String, f64)> = here
            .map(|(place, (core, ledger))| {
                let share = (ledger.busy().0 as f64 / whole).min(1.0);
                (format!("core {core}, place {place}: {:.1} % busy", share * 100.0), share)
            })
            .collect();
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        let about: Vec<String> = shares.into_iter().map(|(about, _)| about).collect();
        let share = (!about.is_empty()).then(|| sum / f64::from(topology.cores_per_tile()));
        let about = if about.is_empty() { "no place".to_owned() } else { about.join("; ") };
        let busy = (0..).map(isles_chip::ControllerId).zip(&report.controllers);
        let mut of_tile = busy.filter(|(controller, _)| chip.chip().controller_tile(*controller) == tile);
        let controller = of_tile.next().map(|(_, busy)| (busy.0 as f64 / whole).min(1.0));
        TileHeat { tile, share, about: format!("tile {tile}: {about}"), controller }
    }
}

/// Returns the time and energy of the run while a place was in a region.
fn facts_of(region: &MeasuredRegion, report: &Report) -> RegionFacts {
    let time = |time: Duration| {
        Picoseconds(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000))
    };
    let spans = || region.spans.iter().map(|(begin, end)| (time(*begin), time(*end)));
    RegionFacts {
        name: region.name.clone(),
        entries: region.entries,
        places: region.places,
        time: time(region.time()),
        energy: report
            .energy
            .as_ref()
            .map(|energy| spans().map(|(begin, end)| energy.profile.drawn(begin, end)).sum()),
    }
}

/// Formats a predicted time in milliseconds, which makes runs easy to compare; from ten seconds on in seconds.
pub(super) fn predicted(time: Picoseconds) -> String {
    let seconds = time.0 as f64 / PICOSECONDS_PER_SECOND as f64;
    if seconds < 10.0 { format!("{:.3} ms", seconds * 1e3) } else { format!("{seconds:.3} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_said_in_milliseconds_until_they_are_too_many() {
        let said =
            [615_991_875, 9_999_999_000_000, 154_510_346_000_000].map(|time| predicted(Picoseconds(time)));
        assert_eq!(said, ["0.616 ms", "9999.999 ms", "154.510 s"]);
    }
}
