//! Observation of a run on a modelled chip: readings of its cores and links.
//!
//! The thread of the chip publishes them a few times per second of host time, between two turns. Invariant: the
//! observation does not change the world, so an observed run is the same run.

use super::modelled::ModelledChip;
use crate::launch::{Launch, LaunchError};
use crate::observe::Observation;
use isles_chip::quantity::Attojoules;
use isles_chip::topology::{CoreId, LinkEnd, Shape, Topology};
use isles_runtime::{CoreReading, Local, Result};
use isles_telemetry::{EnergySample, LinkSample, MeshDescription, RunDescription};
use isles_transport::PlaceId;
use isles_transport_chip::{ChipWorld, EnergyReading, LinkLoad};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Host time between two readings.
const EVERY: Duration = Duration::from_millis(200);

/// Turns between two readings of the host's clock.
const TURNS: u32 = 256;

/// The observation of a run on a chip.
pub(crate) struct ChipObservation {
    observation: Observation,
    locals: Vec<Rc<Local>>,
    turns: Cell<u32>,
    last: Cell<Instant>,
    cores: Vec<CoreId>,
    /// Energy drawn until the last reading; `None` if the chip has no power model.
    energy: Option<RefCell<EnergyReading>>,
}

impl ChipObservation {
    /// Starts observing the run, if requested.
    ///
    /// # Errors
    /// As [`Observation::begin`].
    pub(crate) fn begin(
        launch: &Launch,
        chip: ModelledChip,
        world: &ChipWorld,
        locals: &[Rc<Local>],
    ) -> std::result::Result<Option<ChipObservation>, LaunchError> {
        let topology = chip.chip().topology();
        let cores = world.report().cores;
        let is_linear = cores.iter().zip(0..).all(|(core, place)| core.0 == place);
        let core_of = (!is_linear).then(|| cores.iter().map(|core| core.0).collect());
        let links = world.link_loads().len() as u32;
        let mesh = mesh_of(topology, chip.chip().name());
        let known = RunDescription { mesh, core_of, ..RunDescription::default() };
        let begun = Observation::begin(launch, known, links)?;
        Ok(begun.map(|observation| {
            locals.iter().for_each(|local| observation.observe(local, links));
            let observed = ChipObservation {
                observation,
                locals: locals.to_vec(),
                turns: Cell::new(0),
                last: Cell::new(Instant::now()),
                cores,
                energy: world.energy_reading().map(RefCell::new),
            };
            observed.look(world, false);
            observed
        }))
    }

    /// Called after each turn; publishes a reading if one is due.
    #[inline]
    pub(crate) fn turn(&self, world: &ChipWorld) {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() >= TURNS {
            self.turns.set(0);
            if self.last.get().elapsed() >= EVERY {
                self.look(world, false);
                self.last.set(Instant::now());
            }
        }
    }

    /// Publishes the clock, voltage and energy of each core, and the loads of the links.
    ///
    /// The published time is the present of the chip, before which no core will act any more. After the run it is the
    /// clock of the first place, and the energy extends to the latest clock, as in the report.
    fn look(&self, world: &ChipWorld, is_over: bool) {
        let reading = self.energy.as_ref().map(|reading| {
            let mut reading = reading.borrow_mut();
            world.read_energy(&mut reading, is_over);
            reading
        });
        let energy_ns = reading.as_ref().map_or(0, |reading| reading.time().0 / 1_000);
        for (local, core) in self.locals.iter().zip(&self.cores) {
            let (rate, voltage) = world.operating_point(local.here());
            local.observe_core(CoreReading {
                clock_khz: rate.hertz() / u64::from(rate.divider()) / 1000,
                microvolts: voltage.map_or(0, |voltage| u64::from(voltage.0)),
                energy_nj: reading.as_ref().map_or(0, |reading| nanojoules(reading.core(core.0 as usize))),
                energy_ns,
            });
        }
        let total = reading.as_ref().map_or(0, |reading| nanojoules(reading.total()));
        self.observation.head().energy(EnergySample { nanojoules: total, until_ns: energy_ns });
        let links: Vec<LinkSample> = world.link_loads().iter().filter_map(link_sample).collect();
        let time = if is_over { world.now(PlaceId(0)) } else { world.present() };
        self.observation.head().model(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), &links);
    }

    /// Publishes the final reading at the end of the run.
    pub(crate) fn end(&self, world: &ChipWorld) {
        self.look(world, true);
    }

    /// Ends the observation of a run with this result.
    pub(crate) fn finish(self, result: &Result<()>) {
        self.observation.finish(result);
    }
}

/// Converts an energy to whole nanojoules.
fn nanojoules(energy: Attojoules) -> u64 {
    u64::try_from(energy.0 / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Returns the mesh of the tiles, if they form a flat mesh or torus.
fn mesh_of(topology: &Topology, name: &str) -> Option<MeshDescription> {
    let [columns, rows, levels] = topology.extent();
    let is_flat = matches!(topology.shape(), Shape::Mesh | Shape::Torus) && levels == 1;
    let cores_per_tile = topology.cores_per_tile();
    is_flat.then(|| MeshDescription { columns, rows, cores_per_tile, name: name.to_owned() })
}

/// Returns the sample of a link between two tiles.
fn link_sample(load: &LinkLoad) -> Option<LinkSample> {
    match load.ends {
        (LinkEnd::Tile(from), LinkEnd::Tile(to)) => {
            Some(LinkSample { from: from.0, to: to.0, busy_ps: load.busy.0 })
        }
        _ => None,
    }
}
