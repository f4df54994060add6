//! Power tables of a chip, computed once: gears, models, the mesh, clock and voltage domains.

use isles_chip::gear::{Gears, PowerTable};
use isles_chip::quantity::{Attojoules, Microwatts};
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};

/// A power model as a table.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    /// Power of the chip besides its cores, with the mesh at the clock of the run.
    pub(crate) constant: Microwatts,
    pub(crate) table: PowerTable,
}

/// Power of the routers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routers {
    /// Idle power of all routers.
    pub(crate) at_rest: Microwatts,
    /// Energy of one flit at one router.
    pub(crate) flit: Attojoules,
}

impl Routers {
    /// Returns the power of the routers at a preset, if known.
    fn of(chip: &Chip, preset: &Preset) -> Option<Routers> {
        chip.mesh_power().map(|power| Routers {
            at_rest: Microwatts(
                power.router_at_rest(preset.clocks().mesh).0 * u64::from(chip.topology().tiles()),
            ),
            flit: power.flit(),
        })
    }
}

/// The power tables of a chip.
#[derive(Clone, Debug)]
pub(crate) struct PowerTables {
    pub(crate) gears: Gears,
    /// Power models, the chosen one first; empty if no power is published.
    pub(crate) models: Vec<Model>,
    pub(crate) routers: Option<Routers>,
    /// The voltage domain of each core.
    pub(crate) supplies: Vec<u32>,
    /// The frequency domain of each core.
    pub(crate) clocks: Vec<u32>,
    /// Assumptions of the tables, as text.
    pub(crate) assumed: Vec<String>,
}

impl PowerTables {
    /// Returns the power tables of `chip`, with model number `own` as the chosen one.
    pub(crate) fn new(chip: &Chip, own: usize) -> PowerTables {
        let gears = Gears::of(chip, chip.power_models().get(own));
        let others = chip.power_models().iter().enumerate().filter(|(number, _)| *number != own);
        let order = chip.power_models().get(own).into_iter().chain(others.map(|(_, model)| model));
        let [routers, measured] = [chip.default_preset(), chip.own_preset()].map(|at| Routers::of(chip, at));
        let at_rest = |routers: Option<Routers>| routers.map_or(0, |routers| routers.at_rest.0);
        let models = order.map(|model| Model {
            name: model.name().to_owned(),
            // The measured constant included the mesh, at the clock of the measurement.
            constant: Microwatts((model.constant().0 + at_rest(routers)).saturating_sub(at_rest(measured))),
            table: PowerTable::new(chip, model, &gears),
        });
        let tiles = |core| chip.topology().tile_of(CoreId(core));
        let cores = 0..chip.topology().cores();
        PowerTables {
            models: models.collect(),
            routers,
            supplies: cores.clone().map(|core| chip.voltage_domain(tiles(core)).0).collect(),
            clocks: cores.map(|core| chip.frequency_domain(tiles(core)).0).collect(),
            assumed: assumed(chip),
            gears,
        }
    }

    /// Returns the number of voltage domains.
    pub(crate) fn domains(&self) -> usize {
        self.supplies.iter().max().map_or(0, |last| *last as usize + 1)
    }
}

/// Returns the unpublished constants about power.
fn assumed(chip: &Chip) -> Vec<String> {
    let about_power = |path: &str| path.starts_with("power.") || path.starts_with("mesh_power.");
    let constants = chip.constants().iter();
    let assumed = constants.filter(|constant| constant.source == "assumed" && about_power(&constant.path));
    assumed.map(|constant| format!("{} = {} ({})", constant.path, constant.value, constant.error)).collect()
}
