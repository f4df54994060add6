//! Observers of a run on a modelled chip: what only the chip knows of its cores and links.
//!
//! The thread of the chip fills it in a few times a second of the host, between two turns. Invariant: it asks the world
//! and changes nothing of it, so a run that is observed is the same run.

use super::modelled::ModelledChip;
use crate::launch::{Launch, LaunchError};
use crate::observe::Observation;
use isles_chip::topology::{Shape, Stop, Topology};
use isles_runtime::{Local, Result};
use isles_telemetry::{LinkSample, MeshDescription};
use isles_transport::PlaceId;
use isles_transport_chip::{ChipWorld, LinkLoad};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Time of the host between two looks.
const EVERY: Duration = Duration::from_millis(200);

/// Turns between two looks at the clock of the host.
const TURNS: u32 = 256;

/// Who observes a run on a chip.
pub(crate) struct ChipObservation {
    observation: Observation,
    locals: Vec<Rc<Local>>,
    turns: Cell<u32>,
    last: Cell<Instant>,
    /// Of each place: the time of the chip and the energy of its core at the last look, in attojoules.
    drawn: RefCell<Vec<(u64, u128)>>,
}

impl ChipObservation {
    /// Begins to observe the run, if that was asked for.
    ///
    /// # Errors
    /// As [`Observation::begin`].
    pub(crate) fn begin(
        launch: &Launch,
        chip: ModelledChip,
        (world, locals): (&ChipWorld, &[Rc<Local>]),
    ) -> std::result::Result<Option<ChipObservation>, LaunchError> {
        let topology = chip.chip().topology();
        let cores = world.report().cores;
        let is_linear = cores.iter().zip(0..).all(|(core, place)| core.0 == place);
        let core_of = (!is_linear).then(|| cores.iter().map(|core| core.0).collect());
        let links = world.link_loads().len() as u32;
        let mesh = mesh_of(topology, chip.chip().name());
        let begun = Observation::begin(launch, (mesh, links), core_of)?;
        Ok(begun.map(|observation| {
            locals.iter().for_each(|local| observation.observe(local, links));
            let observed = ChipObservation {
                observation,
                locals: locals.to_vec(),
                turns: Cell::new(0),
                last: Cell::new(Instant::now()),
                drawn: RefCell::new(vec![(0, 0); locals.len()]),
            };
            observed.look(world);
            observed
        }))
    }

    /// A turn has ended.
    #[inline]
    pub(crate) fn turn(&self, world: &ChipWorld) {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() >= TURNS {
            self.turns.set(0);
            if self.last.get().elapsed() >= EVERY {
                self.look(world);
                self.last.set(Instant::now());
            }
        }
    }

    /// Tells the clock, voltage and power of each core, and the loads of the links.
    fn look(&self, world: &ChipWorld) {
        let report = world.report();
        let model = report.energy.as_ref().and_then(|energy| energy.models.first());
        for (local, (time, energy)) in self.locals.iter().zip(self.drawn.borrow_mut().iter_mut()) {
            let place = local.here();
            let (rate, voltage) = world.operating_point(place);
            let khz = rate.hertz() / u64::from(rate.divider()) / 1000;
            let core = report.cores[place.index()].0 as usize;
            let total = model.map_or(0, |model| model.core(core).0);
            let now = u64::try_from(world.now(place).as_nanos()).unwrap_or(u64::MAX);
            // Attojoules in a nanosecond are nanowatts.
            let nanowatts = total.saturating_sub(*energy) / u128::from(now.saturating_sub(*time).max(1));
            let microwatts = if now > *time { (nanowatts / 1000) as u64 } else { 0 };
            (*time, *energy) = (now, total);
            local.observe_core(khz, voltage.map_or(0, |voltage| u64::from(voltage.0)), microwatts);
        }
        let links: Vec<LinkSample> = world.link_loads().iter().filter_map(link_sample).collect();
        let time = u64::try_from(world.now(PlaceId(0)).as_nanos()).unwrap_or(u64::MAX);
        self.observation.head().model(time, &links);
    }

    /// Ends the observation of a run that ended so.
    pub(crate) fn finish(self, world: &ChipWorld, result: &Result<()>) {
        self.look(world);
        self.observation.finish(result);
    }
}

/// How the tiles lie, if they lie in rows.
fn mesh_of(topology: &Topology, name: &str) -> Option<MeshDescription> {
    let [columns, rows, levels] = topology.extent();
    let is_flat = matches!(topology.shape(), Shape::Mesh | Shape::Torus) && levels == 1;
    let cores_per_tile = topology.cores_per_tile();
    is_flat.then(|| MeshDescription { columns, rows, cores_per_tile, name: name.to_owned() })
}

/// What is told of a link between two tiles.
fn link_sample(load: &LinkLoad) -> Option<LinkSample> {
    match load.ends {
        (Stop::Tile(from), Stop::Tile(to)) => {
            Some(LinkSample { from: from.0, to: to.0, busy_ps: load.busy.0 })
        }
        _ => None,
    }
}
