//! Launches on modelled chips: settings, runs, and the report and files of a run that has ended.
//!
//! `drive` steps the places. Invariant: text that a run on a chip adds goes to standard error, so the program's own
//! output is the same as on any other machine.

use super::clocks::ChipScope;
use super::collectives::{Broadcast, CollectiveChoice, Reduce, TrialContext};
use super::drive::{all_locals, close_all, drain_messages, drive};
use super::export::{ChipRun, predicted};
use super::modelled::ModelledChip;
use super::observe::ChipObservation;
use super::work::CodeTime;
use super::{export, work};
use crate::launch::{Launch, LaunchError, Main, future_of};
use crate::machine::driver::{LaunchResult, MachineDriver, test_outcome};
use crate::machine::loopback::stalled;
use crate::machine::{Machine, check_collectives};
use crate::output;
use crate::output::{Claim, ExportRequest, WriteError};
use crate::print::{StandardStream, notice, print_text};
use crate::settings::{ConfigError, Environment, Report, Setting};
use crate::test::TestBody;
use crate::trace::Collector;
use isles_chip::governor::Policy;
use isles_chip::quantity::{Bytes, scaled};
use isles_runtime::capture::TaskOutcome;
use isles_runtime::run::MainTask;
use isles_runtime::{MeasuredRegion, Result, RunReport};
use isles_services::Collectives;
use isles_telemetry::CounterId;
use isles_transport_chip::export::RegionFacts;
use isles_transport_chip::{
    Bands, ChipWorld, IdlePolicy, Placement, Protocol, Report as ChipReport, UndeclaredRegion, WorldError,
};
use std::cmp::Reverse;
use std::rc::Rc;
use std::time::{Duration, Instant};

impl Launch {
    /// Sets the message protocol on a modelled chip; ignored on other machines.
    pub fn protocol(mut self, protocol: Protocol) -> Launch {
        self.chip.protocol = Setting::new("the protocol", Some(protocol));
        self
    }

    /// Sets the placement of places on the cores of a modelled chip; ignored on other machines. The run checks at its
    /// start that the chip has these cores, and enough of them.
    pub fn placement(mut self, placement: Placement) -> Launch {
        self.chip.placement = Setting::new("the placement", placement);
        self
    }

    /// Sets the governor of the clocks of a modelled chip; ignored on other machines.
    pub fn governor(mut self, policy: Policy) -> Launch {
        self.chip.governor = Setting::new("the governor", policy);
        self
    }

    /// Sets how waiting places idle on a modelled chip; ignored on other machines.
    pub fn rest(mut self, rest: IdlePolicy) -> Launch {
        self.chip.rest = rest;
        self
    }

    /// Sets the broadcast algorithm of teams on a modelled chip; ignored on other machines.
    pub fn broadcast(mut self, broadcast: Broadcast) -> Launch {
        self.chip.broadcast = Setting::new("the broadcast", broadcast);
        self
    }

    /// Sets the reduction algorithm of teams on a modelled chip; ignored on other machines.
    pub fn reduce(mut self, reduce: Reduce) -> Launch {
        self.chip.reduce = reduce;
        self
    }

    /// Sets the number of lines of each message buffer reserved for windows on a modelled chip; ignored on other
    /// machines.
    pub fn window_lines(mut self, lines: u32) -> Launch {
        self.chip.window_lines = Setting::new("the window-lines", lines);
        self
    }

    /// Returns the placement of the run on the cores of a modelled chip.
    pub fn chosen_placement(&self) -> &Placement {
        &self.chip.placement.value
    }

    /// Returns the governor of the clocks of a modelled chip.
    pub fn chosen_governor(&self) -> Policy {
        self.chip.governor.value
    }

    /// Returns the source of the time of the program's code on a modelled chip.
    pub fn chosen_work(&self) -> &CodeTime {
        &self.chip.work.value
    }

    /// Checks that a tape to be played matches this program, its arguments and these settings. [`Launch::run`] does
    /// this too; call it earlier to fail before long preparations.
    ///
    /// # Errors
    /// The tape cannot be read, or does not match.
    pub fn check_tape(&self) -> std::result::Result<(), ConfigError> {
        match self.machine {
            Machine::Chip(chip) => work::find_tape(self, chip).map(drop),
            _ => Ok(()),
        }
    }

    /// As [`Launch::run`], on `chip` instead of the chosen machine; returns the report of the chip instead of printing
    /// the prediction. Warnings are printed.
    ///
    /// # Errors
    /// [`LaunchError`]: the chip has too few cores, or a file cannot be written; [`LaunchError::Output`] lacks the
    /// chip's report.
    pub fn run_on_chip<M, F>(
        &self,
        chip: ModelledChip,
        main: M,
    ) -> std::result::Result<(Result<()>, RunReport, ChipReport), LaunchError>
    where
        M: FnOnce() -> F,
        F: Future + 'static,
        F::Output: TaskOutcome,
    {
        let mut unwritten = Vec::new();
        let main: Main<'_> = Box::new(|| future_of(main, TaskOutcome::into_result));
        let (result, report, modelled) = self.model(chip, main, &mut unwritten, |_, _, _, _| ())?;
        match unwritten.is_empty() {
            true => Ok((result, report, modelled)),
            false => Err(LaunchError::Output { unwritten, ended: Box::new((result, report)) }),
        }
    }

    /// Runs on a modelled chip and calls `print_prediction` with the reports and the time taken on the host. Failed
    /// outputs are added to `unwritten`.
    fn model(
        &self,
        chip: ModelledChip,
        main: Main<'_>,
        unwritten: &mut Vec<WriteError>,
        print_prediction: impl FnOnce(&ChipReport, &[RegionFacts], &RunReport, Duration),
    ) -> std::result::Result<(Result<()>, RunReport, ChipReport), LaunchError> {
        output::check(self, Machine::Chip(chip))?;
        let started = Instant::now();
        let (result, report, ended) = run(self, chip, main)?;
        let host = started.elapsed();
        let modelled = ended.report.clone();
        print_prediction(&modelled, &ended.regions, &report, host);
        if let Some(stale) = modelled.stale.as_ref().filter(|stale| stale.number > 0) {
            let reads = if stale.number == 1 { "read" } else { "reads" };
            let first = stale.first.first().map(|read| read.describe("place")).unwrap_or_default();
            notice(format_args!("warning: {} stale {reads} of shared memory: {first}", stale.number));
        }
        let of_chip = chip.chip();
        if let Some(line) = of_chip.too_fast_line(of_chip.default_preset()) {
            notice(format_args!("warning: {line}"));
        }
        if let Some(warning) = memory_warning(chip, &report) {
            notice(warning);
        }
        if let Some(warning) = modelled.undeclared_region.map(region_warning) {
            notice(warning);
        }
        if let Some(warning) = work::warning(ended.code) {
            notice(warning);
        }
        unwritten.extend(ended.write(self, chip, host));
        Ok((result, report, modelled))
    }

    /// Prints the prediction to standard error: one line, or all figures if the report `chip` is requested.
    fn print_prediction(
        &self,
        chip: ModelledChip,
        modelled: &ChipReport,
        regions: &[RegionFacts],
        report: &RunReport,
        host: Duration,
    ) {
        let mut text = heading(chip, self, modelled, host) + "\n";
        text.extend(
            report.regions().iter().zip(regions).map(|(region, facts)| region_line(region, facts, modelled)),
        );
        if self.reports.contains(&Report::Chip) {
            let speed = modelled.digest.events() as f64 / host.as_secs_f64();
            let (said, bands) = (describe_settings(chip, self), Bands::of(chip.chip(), modelled));
            text += &format!(
                "settings        {said}\n{modelled}\n{}{bands}\nspeed           {speed:.0} events a second on this \
                 host\n",
                by_place(modelled, report)
            );
        }
        let _ = print_text(StandardStream::Error, &text); // which never fails
    }
}

impl MachineDriver for ModelledChip {
    fn name(&self) -> &'static str {
        (*self).machine()
    }

    fn places_max(&self) -> (u32, String) {
        self.most_places()
    }

    fn places(&self, environment: &Environment) -> u32 {
        environment.chip.places_on(*self)
    }

    fn check(&self, environment: &Environment, places: u32) -> std::result::Result<(), ConfigError> {
        environment.chip.check(*self, places)
    }

    fn check_export(&self, launch: &Launch, wanted: &ExportRequest) -> std::result::Result<(), ConfigError> {
        export::check(*self, launch, wanted)
    }

    fn reads(&self, launch: &Launch) -> Vec<Claim> {
        launch.chip.reads(*self).collect()
    }

    /// Also prints the prediction.
    fn run(
        &self,
        launch: &Launch,
        _: Option<Collector>,
        main: Main<'_>,
        unwritten: &mut Vec<WriteError>,
    ) -> LaunchResult {
        let print_prediction = |modelled: &ChipReport, regions: &[RegionFacts], report: &RunReport, host| {
            launch.print_prediction(*self, modelled, regions, report, host);
        };
        launch.model(*self, main, unwritten, print_prediction).map(|(result, report, _)| (result, report))
    }

    /// Prints nothing and writes nothing.
    fn run_test(
        &self,
        launch: &Launch,
        _: &'static str,
        body: TestBody<'_>,
    ) -> std::result::Result<(), String> {
        test_outcome(run(launch, *self, Box::new(body)).map(|(result, report, _)| (result, report)))
    }
}

/// Runs `main` over cores of `chip`; ties in time are ordered by the launch's seed.
fn run(
    launch: &Launch,
    chip: ModelledChip,
    main: Main<'_>,
) -> std::result::Result<(Result<()>, RunReport, ChipRun), LaunchError> {
    let unable = |error| {
        let (Launch { places, .. }, protocol) = (launch, launch.chip.protocol_on(chip, launch.places));
        let machine = chip.machine();
        LaunchError::Machine(format!(
            "machine {machine} with {places} places and protocol {protocol}: {error}"
        ))
    };
    if launch.places > chip.cores() {
        return Err(unable(WorldError::Cores { cores: chip.cores() }));
    }
    let settings = &launch.chip;
    let core_map = settings.core_map(chip, launch.places)?;
    settings.notice_protocol(chip, launch.places);
    let costs = settings.costs(chip);
    let protocol = settings.protocol_on(chip, launch.places);
    let protocol_config = settings.broadcast.value.protocol_config(protocol);
    let world =
        ChipWorld::with_core_map(core_map, costs.clone(), protocol_config, launch.seed).map_err(unable)?;
    let Setting { value: policy, source } = &settings.governor;
    world
        .govern(*policy)
        .map_err(|error| ConfigError::new(source, &policy.to_string(), error.to_string()))?;
    world.rest(settings.rest);
    let stopwatch = work::stopwatch(launch, chip, &world)?;
    let draft = export::begin(launch, chip, &world)?;
    let _on_chip = ChipScope::of(&stopwatch);
    let locals = all_locals(&stopwatch, launch.places);
    let context = TrialContext { chip, costs, protocol_config, placement: settings.placement.value.clone() };
    let chosen = CollectiveChoice::new(context, settings.broadcast.value, settings.reduce, &stopwatch);
    locals
        .iter()
        .for_each(|local| isles_services::set_collectives(local, Rc::clone(&chosen) as Rc<dyn Collectives>));
    let observation = ChipObservation::begin(launch, chip, &world, &locals)?;
    let root = locals[0].enter(|| MainTask::start(&locals[0], main()));
    let driven = drive(&world, &stopwatch, &locals, observation.as_ref(), || root.take());
    if let Some(observation) = &observation {
        observation.end(&world);
    }
    let measured = stopwatch.end();
    let result = driven.unwrap_or_else(|| Err(stalled(&locals)));
    let report = RunReport { places: locals.iter().map(|local| Some(local.report())).collect() };
    let regions = report.regions();
    let ended =
        measured.map(|(code, measurements)| ChipRun::end(&world, draft, code, measurements, &regions));
    let result = result.and_then(|()| {
        if locals.iter().any(|local| isles_services::teams_may_be_apart(local)) {
            drain_messages(&world, &locals);
        }
        check_collectives(&locals)
    });
    close_all(&stopwatch, &locals);
    if let Some(observation) = observation {
        observation.finish(&result);
    }
    let tape = settings.work.value.to_string();
    let ended = ended.map_err(|(played, all)| LaunchError::Diverged { tape, played, all })?;
    Ok((result, report, ended))
}

/// Returns the warning that places held, as declared by `hold_memory`, more memory than a core has; `None` if none did.
fn memory_warning(chip: ModelledChip, report: &RunReport) -> Option<String> {
    let Bytes(own) = chip.chip().memory().per_core?;
    let held =
        report.places.iter().map(|place| place.as_ref().map_or(0, |place| place.memory_held)).enumerate();
    let beyond: Vec<(usize, u64)> = held.filter(|(_, held)| *held > own).collect();
    let (place, most) = beyond.iter().copied().max_by_key(|(place, held)| (*held, Reverse(*place)))?;
    let others = match beyond.len() - 1 {
        0 => String::new(),
        1 => ", and one other place held more as well".to_owned(),
        others => format!(", and {others} other places held more as well"),
    };
    let (machine, own, most) = (chip.machine(), Bytes(own), mebibytes(most));
    Some(format!(
        "warning: place {place} held {most} of memory, but a core of {machine} has only \
         {own}{others}"
    ))
}

/// Returns the warning that the model had to assume that steps stream through the same memory again.
fn region_warning(UndeclaredRegion { line, bytes }: UndeclaredRegion) -> String {
    format!(
        "warning: {}:{}: consecutive steps stream {bytes} bytes without a region, so the model finds all \
         of them in the cache; write streamed({bytes}).of(bytes until the same data comes again)",
        line.file(),
        line.line()
    )
}

/// Formats bytes in MiB with one decimal.
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Number of places in one line of [`by_place`].
const PLACES_IN_A_LINE: usize = 12;

/// Maximum number of places that [`by_place`] lists; for more it prints minimum and maximum.
const PLACES_LISTED_MAX: usize = 48;

/// Returns two rows of the report: the tasks that ended at each place, and the fraction of the predicted time in which
/// each was busy.
///
/// A place is busy while it works, copies and handles messages, not while it polls, waits or sleeps.
fn by_place(modelled: &ChipReport, report: &RunReport) -> String {
    let tasks = report
        .places
        .iter()
        .map(|place| place.as_ref().map_or(0.0, |place| place.count(CounterId::Tasks) as f64));
    let whole = (modelled.time.0 as f64).max(1.0);
    let busy = modelled.ledgers.iter().map(|ledger| 100.0 * ledger.busy().0 as f64 / whole);
    let row = |about: &str, unit: &str, digits: usize, values: Vec<f64>| {
        let text = |value: &f64| format!("{value:.digits$}{unit}");
        if values.len() > PLACES_LISTED_MAX {
            let [least, most] =
                [f64::min, f64::max].map(|of| values.iter().copied().reduce(of).unwrap_or(0.0));
            return format!("{about:<16}from {} to {} at a place\n", text(&least), text(&most));
        }
        let lines = values.chunks(PLACES_IN_A_LINE).enumerate();
        let line = |(number, values): (usize, &[f64])| {
            let about = if number == 0 { about } else { "" };
            format!("{about:<16}{}\n", values.iter().map(text).collect::<Vec<_>>().join(", "))
        };
        lines.map(line).collect()
    };
    row("tasks by place", "", 0, tasks.collect()) + &row("busy by place", " %", 1, busy.collect())
}

/// Returns the line with the prediction for a region.
fn region_line(region: &MeasuredRegion, facts: &RegionFacts, modelled: &ChipReport) -> String {
    let model = modelled.energy.as_ref().and_then(|energy| energy.models.first());
    let energy = facts.energy.zip(model);
    let energy =
        energy.map(|(energy, model)| format!(", {} by {}", scaled(energy.joules(), "J"), model.name));
    format!("{region}: {} predicted{}\n", predicted(facts.time), energy.unwrap_or_default())
}

/// Returns the line with the prediction for the run.
fn heading(chip: ModelledChip, launch: &Launch, report: &ChipReport, host: Duration) -> String {
    let (predicted, host) = (predicted(report.time), host.as_secs_f64());
    let (Launch { places, .. }, protocol) = (launch, launch.chip.protocol_on(chip, launch.places));
    let cores = if *places == 1 { "core" } else { "cores" };
    let machine = chip.machine();
    let energies = report.energy.iter().flat_map(|energy| &energy.models);
    let energies =
        energies.map(|model| format!(", {} by {}", scaled(model.total().joules(), "J"), model.name));
    let mut energies: String = energies.collect();
    if *places < chip.cores() && !energies.is_empty() {
        energies += &format!(" for all {} cores", chip.cores());
    }
    let settings = describe_settings(chip, launch);
    format!(
        "{machine}: {predicted} predicted on {places} {cores} with {protocol} at {settings}{energies} ({host:.3} s \
         on this host)"
    )
}

/// Returns the preset of the clocks, and the other settings of a run that are not the defaults.
fn describe_settings(chip: ModelledChip, launch: &Launch) -> String {
    let preset = chip.chip().default_preset().name().to_owned();
    let said = [
        launch.chip.constants.as_ref().map(|constants| constants.value.clone()),
        chip.chip().chosen_voltages().map(|name| format!("voltages {name}")),
        (launch.seed != 0).then(|| format!("seed {}", launch.seed)),
    ];
    let said = said.into_iter().flatten().chain(launch.chip.unusual(chip, launch.places));
    std::iter::once(preset).chain(said).collect::<Vec<_>>().join(", ")
}
