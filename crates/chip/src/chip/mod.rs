//! A chip: the checked content of its file, and the choices of a run.
//!
//! A [`Chip`] comes only from a file without errors: holding one proves that every tile has a controller, every allowed
//! rate of a core has a voltage in every table, and every reference is resolved. Choosing a preset, a power model or a
//! voltage table makes another chip. This file knows nothing of a run. Invariants: a chip is immutable; different chips
//! have different fingerprints, and choosing the present setting changes nothing.

mod parts;

pub(crate) use parts::Controllers;
pub use parts::{
    Caches, ControllerId, Dividers, Domains, FileServer, FrequencyDomainId, Interrupts, LinkTraits, Memory,
    MessageBuffer, Preset, TooFastLine, VoltageDomainId,
};

use crate::cost::Operations;
use crate::energy::{MeshPower, PowerModel, VoltageTable};
use crate::file::Constant;
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A chip, read from its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) core_kind: String,
    pub(crate) topology: Topology,
    pub(crate) caches: Caches,
    pub(crate) operations: Operations,
    pub(crate) buffer: Option<MessageBuffer>,
    pub(crate) memory: Memory,
    pub(crate) links: LinkTraits,
    pub(crate) interrupts: Option<Interrupts>,
    pub(crate) files: Option<FileServer>,
    pub(crate) dividers: Option<Dividers>,
    pub(crate) domains: Domains,
    pub(crate) presets: Vec<Preset>,
    pub(crate) default_preset: usize,
    /// The default preset of its file.
    pub(crate) own_preset: usize,
    pub(crate) voltages: Vec<VoltageTable>,
    /// The voltage table chosen for all power models, if it is not each one's own.
    pub(crate) chosen_voltages: Option<String>,
    pub(crate) power: Vec<PowerModel>,
    pub(crate) mesh_power: Option<MeshPower>,
    pub(crate) sources: BTreeMap<String, String>,
    pub(crate) constants: Vec<Constant>,
    /// Fingerprint of the text of its file and of the chosen options.
    pub(crate) fingerprint: u128,
    /// The text of its file.
    pub(crate) text: Arc<str>,
}

impl Chip {
    /// Returns the name under which the chip was requested.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description of the chip in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the kind of its cores.
    pub(crate) fn core_kind(&self) -> &str {
        &self.core_kind
    }

    /// Returns the topology.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the line size and the caches.
    pub const fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Returns the times of a core's operations by class.
    pub const fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Returns the message buffer of each core, if there are any.
    pub const fn buffer(&self) -> Option<&MessageBuffer> {
        self.buffer.as_ref()
    }

    /// Returns the memory behind the controllers.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the properties of its links.
    pub const fn links(&self) -> &LinkTraits {
        &self.links
    }

    /// Returns the file server, if there is one.
    pub const fn files(&self) -> Option<&FileServer> {
        self.files.as_ref()
    }

    /// Returns the interrupt controller, if there is one.
    pub const fn interrupts(&self) -> Option<&Interrupts> {
        self.interrupts.as_ref()
    }

    /// Returns the dividers of the cores' clock, if it can be divided.
    pub const fn dividers(&self) -> Option<&Dividers> {
        self.dividers.as_ref()
    }

    /// Returns the presets of the clocks, in the order of the file; at least one.
    pub fn presets(&self) -> &[Preset] {
        &self.presets
    }

    /// Returns the first line access that a preset makes faster than the links allow.
    pub fn too_fast_line(&self, preset: &Preset) -> Option<TooFastLine> {
        TooFastLine::of(self, preset)
    }

    /// Returns a preset by its name.
    pub fn preset(&self, name: &str) -> Option<&Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }

    /// Returns the preset that a run uses by default.
    pub fn default_preset(&self) -> &Preset {
        &self.presets[self.default_preset]
    }

    /// Returns the default preset of the chip file, regardless of the choice: power models are taken as measured with
    /// the mesh at its clock.
    pub fn own_preset(&self) -> &Preset {
        &self.presets[self.own_preset]
    }

    /// Returns the voltage tables, in the order of the file.
    pub fn voltages(&self) -> &[VoltageTable] {
        &self.voltages
    }

    /// Returns a voltage table by its name.
    pub fn voltage_table(&self, name: &str) -> Option<&VoltageTable> {
        self.voltages.iter().find(|table| table.name == name)
    }

    /// Returns the power models, in the order of the file; empty if none is published.
    pub fn power_models(&self) -> &[PowerModel] {
        &self.power
    }

    /// Returns a power model by its name.
    pub fn power_model(&self, name: &str) -> Option<&PowerModel> {
        self.power.iter().find(|model| model.name == name)
    }

    /// Returns the power of the routers, if it is published.
    pub const fn mesh_power(&self) -> Option<&MeshPower> {
        self.mesh_power.as_ref()
    }

    /// Returns every constant as written, with source and error, in the order of the file.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Returns the full form of a source's short name.
    pub fn source(&self, name: &str) -> Option<&str> {
        self.sources.get(name).map(String::as_str)
    }

    /// Returns the sources: short name and full form.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sources.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

impl Chip {
    /// Returns a digest of the file's text and the chosen options, which for all practical purposes identifies the
    /// chip.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// Returns the chip with this preset as [`Chip::default_preset`]; `None` if its file has no such preset.
    pub fn with_preset(mut self, name: &str) -> Option<Chip> {
        let chosen = self.presets.iter().position(|preset| preset.name == name)?;
        if chosen != self.default_preset {
            self.default_preset = chosen;
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// Returns the chip with this power model as the first, which determines energy and caps; `None` if its file has no
    /// such model.
    pub fn with_power_model(mut self, name: &str) -> Option<Chip> {
        let chosen = self.power.iter().position(|model| model.name == name)?;
        if chosen > 0 {
            self.power[..=chosen].rotate_right(1);
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// Returns the chip with this voltage table for all power models, instead of the one that each was fitted with;
    /// `None` if its file has no such table.
    pub fn with_voltages(mut self, name: &str) -> Option<Chip> {
        self.voltage_table(name)?;
        if self.power.iter().any(|model| model.voltages != name) {
            self.power.iter_mut().for_each(|model| name.clone_into(&mut model.voltages));
            self.chosen_voltages = Some(name.to_owned());
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// Returns the voltage table chosen for all power models, if that changed one of them.
    pub fn chosen_voltages(&self) -> Option<&str> {
        self.chosen_voltages.as_deref()
    }
}

/// Continues a 128-bit FNV-1a digest from `start`.
pub(crate) fn digest(start: u128, text: &str) -> u128 {
    let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(start, |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(prime))
}
