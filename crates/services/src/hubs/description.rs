//! Description of a program over hubs: tasks and hubs, by unique names, and the map of a run.

use isles_protocol::PlaceId;
use isles_protocol::hub::{Directory, DirectoryFault, Entity, HubKind, HubRule, HubSpec, Routes, TaskSpec};
use isles_runtime::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Default length of a packet's data, in bytes.
const PACKET_BYTES: u32 = 4096;

/// The tasks and hubs of a program; a [`HubMap`] says where they are.
///
/// Each place makes the same description, so the function that makes it captures nothing.
#[derive(Clone, Debug)]
pub struct HubDescription {
    directory: Directory,
    packet_bytes: u32,
    fault: Option<DirectoryFault>,
}

impl Default for HubDescription {
    fn default() -> Self {
        HubDescription::new()
    }
}

impl HubDescription {
    /// Returns an empty description.
    pub fn new() -> HubDescription {
        HubDescription { directory: Directory::new(), packet_bytes: PACKET_BYTES, fault: None }
    }

    /// Adds a task. Priority 0 is the most urgent, 255 the least.
    #[must_use]
    pub fn task(mut self, name: impl Into<String>, priority: u8) -> HubDescription {
        let added = self.directory.add_task(TaskSpec { name: name.into(), priority });
        self.note(added.map(drop))
    }

    /// Adds a hub of a kind.
    #[must_use]
    pub fn hub(self, name: impl Into<String>, kind: HubKind) -> HubDescription {
        self.add(name.into(), Entity::Known(kind))
    }

    /// Adds a hub with a rule of the program: a predicate and an action.
    #[must_use]
    pub fn own_hub(self, name: impl Into<String>, rule: fn() -> Box<dyn HubRule>) -> HubDescription {
        self.add(name.into(), Entity::Own(rule))
    }

    fn add(mut self, name: String, entity: Entity) -> HubDescription {
        let added = self.directory.add_hub(HubSpec { name, entity });
        self.note(added.map(drop))
    }

    /// Sets the length of a packet's data, the same for all packets, in bytes; 4096 by default.
    #[must_use]
    pub fn packet_bytes(mut self, bytes: u32) -> HubDescription {
        self.packet_bytes = bytes;
        self
    }

    fn note(mut self, added: std::result::Result<(), DirectoryFault>) -> HubDescription {
        if let (Err(fault), None) = (added, &self.fault) {
            self.fault = Some(fault);
        }
        self
    }

    pub(super) fn packet_bytes_max(&self) -> usize {
        self.packet_bytes as usize
    }

    /// Returns the directory with the places of `map`, in a run of `places` places.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): a name, or an entry or a link of the map, is wrong; the text says which and
    /// what is allowed.
    pub fn mapped(mut self, map: &HubMap, places: u32) -> Result<Directory> {
        let applied = match self.fault {
            Some(fault) => Err(fault),
            None => {
                let pairs = map.places.iter().map(|(name, place)| (name.as_str(), *place));
                self.directory.apply_map(pairs, places)
            }
        };
        applied.map_err(|fault| map.refused(&fault))?;
        map.routes(PlaceId(0), places)?;
        Ok(self.directory)
    }
}

/// Placement of a program's tasks and hubs: pairs of a name and the number of a place. Names that are missing are at
/// place 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubMap {
    /// Source of the map, for errors; empty if the program made it.
    pub source: String,
    /// Name of each task or hub, with the number of its place.
    pub places: Vec<(String, u32)>,
    /// Pairs of places that packets may go between directly; if empty, every two places are linked.
    pub links: Vec<(u32, u32)>,
}

impl HubMap {
    /// Makes a map of these pairs.
    pub fn of<N: Into<String>>(pairs: impl IntoIterator<Item = (N, u32)>) -> HubMap {
        let places = pairs.into_iter().map(|(name, place)| (name.into(), place)).collect();
        HubMap { places, ..HubMap::default() }
    }

    /// Returns the routes of packets from place `here`.
    pub(super) fn routes(&self, here: PlaceId, places: u32) -> Result<Routes> {
        if self.links.is_empty() {
            return Ok(Routes::direct(here, places));
        }
        let link = |(one, other): &(u32, u32)| (PlaceId(*one), PlaceId(*other));
        let links: Vec<(PlaceId, PlaceId)> = self.links.iter().map(link).collect();
        Routes::over_links(here, places, &links).map_err(|fault| self.refused(&fault))
    }

    fn refused(&self, fault: &dyn fmt::Display) -> Error {
        let text = match self.source.as_str() {
            "" => fault.to_string(),
            source => format!("{source}: {fault}"),
        };
        Error::new(ErrorKind::Misused, text)
    }
}

/// Costs of the kernel of a place on a modelled core, in cycles. Real machines ignore them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCosts {
    /// A switch from a task to the kernel, or back.
    pub switch: u64,
    /// A packet that the kernel serves: a request, a reply, a change of priority.
    pub packet: u64,
    /// Extra cost of a packet that leaves for or comes from another place: the link driver, in addition to what the
    /// chip charges for the message.
    pub link: u64,
    /// A thousand bytes of data that a hub copies from one packet of its place to another.
    pub copy_kilobyte: u64,
    /// A thousand bytes of data that have come from another place.
    pub arrived_kilobyte: u64,
}
