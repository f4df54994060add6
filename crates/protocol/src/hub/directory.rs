//! The tasks and hubs of a program, by unique names, and the map that says where each is.
//!
//! The map is not part of the program: it consists of pairs of a name and a place, and names that it lacks are at place
//! 0. Everything is checked before anything runs, so a wrong name never stops a program in the middle.

use super::message::{HubId, TaskId};
use super::rules::{HubKind, HubRule};
use crate::PlaceId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// A task of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Its unique name.
    pub name: String,
    /// 0 to 255; 0 is the most urgent.
    pub priority: u8,
}

/// A hub of a program.
#[derive(Clone, Debug)]
pub struct HubSpec {
    /// Its unique name.
    pub name: String,
    /// Definition of the hub.
    pub entity: Entity,
}

/// Definition of a hub.
#[derive(Clone, Debug)]
pub enum Entity {
    /// A hub of one of the known kinds.
    Known(HubKind),
    /// A hub with a rule of the program.
    Own(fn() -> Box<dyn HubRule>),
}

impl Entity {
    /// Makes the rule of the hub.
    pub fn rule(&self) -> Box<dyn HubRule> {
        match self {
            Entity::Known(kind) => kind.rule(),
            Entity::Own(make) => make(),
        }
    }
}

/// All tasks and hubs, and their places; the same at each place.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    tasks: Vec<TaskSpec>,
    hubs: Vec<HubSpec>,
    /// Tasks and hubs by name.
    names: BTreeMap<String, Named>,
    task_places: Vec<PlaceId>,
    hub_places: Vec<PlaceId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Task(TaskId),
    Hub(HubId),
}

/// Reason why a directory, or a map of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryFault {
    /// Two tasks or hubs have this name.
    Repeated(String),
    /// The map gives this name two places.
    MappedTwice(String),
    /// The map has a name without a task or hub.
    Unknown {
        /// The name.
        name: String,
        /// All names of tasks and hubs.
        allowed: Vec<String>,
    },
    /// The map has a place that the run lacks.
    NoPlace {
        /// The task or hub.
        name: String,
        /// The place.
        place: u32,
        /// Number of places of the run.
        places: u32,
    },
    /// A FIFO without room.
    NoRoom(String),
}

impl fmt::Display for DirectoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryFault::Repeated(name) => {
                write!(f, "two tasks or hubs have the name {name:?}; allowed: each name once")
            }
            DirectoryFault::MappedTwice(name) => {
                write!(f, "{name:?} has two places; allowed: each name once")
            }
            DirectoryFault::Unknown { name, allowed } => {
                write!(f, "no task or hub has the name {name:?}; allowed: {}", allowed.join(", "))
            }
            DirectoryFault::NoPlace { name, place, places } => {
                write!(f, "{name:?} is at place {place}; allowed: 0 to {}", places.saturating_sub(1))
            }
            DirectoryFault::NoRoom(name) => {
                write!(f, "the FIFO {name:?} has room for 0 packets; allowed: 1 or more")
            }
        }
    }
}

impl std::error::Error for DirectoryFault {}

impl Directory {
    /// Makes an empty directory.
    pub fn new() -> Directory {
        Directory::default()
    }

    /// Adds a task at place 0.
    ///
    /// # Errors
    /// [`Repeated`](DirectoryFault::Repeated).
    pub fn add_task(&mut self, spec: TaskSpec) -> Result<TaskId, DirectoryFault> {
        let task = TaskId(self.tasks.len() as u32);
        self.name(&spec.name, Named::Task(task))?;
        self.tasks.push(spec);
        self.task_places.push(PlaceId(0));
        Ok(task)
    }

    /// Adds a hub at place 0.
    ///
    /// # Errors
    /// [`Repeated`](DirectoryFault::Repeated), [`NoRoom`](DirectoryFault::NoRoom).
    pub fn add_hub(&mut self, spec: HubSpec) -> Result<HubId, DirectoryFault> {
        if matches!(spec.entity, Entity::Known(HubKind::Fifo { capacity: 0 })) {
            return Err(DirectoryFault::NoRoom(spec.name));
        }
        let hub = HubId(self.hubs.len() as u32);
        self.name(&spec.name, Named::Hub(hub))?;
        self.hubs.push(spec);
        self.hub_places.push(PlaceId(0));
        Ok(hub)
    }

    fn name(&mut self, name: &str, named: Named) -> Result<(), DirectoryFault> {
        match self.names.entry(name.to_owned()) {
            Entry::Vacant(entry) => _ = entry.insert(named),
            Entry::Occupied(_) => return Err(DirectoryFault::Repeated(name.to_owned())),
        }
        Ok(())
    }

    /// Moves entities to the places of a map of a run of `places` places.
    ///
    /// # Errors
    /// The first wrong entry; nothing has moved.
    pub fn apply_map<'a>(
        &mut self,
        map: impl IntoIterator<Item = (&'a str, u32)>,
        places: u32,
    ) -> Result<(), DirectoryFault> {
        let mut moves = BTreeMap::new();
        for (name, place) in map {
            if !self.names.contains_key(name) {
                let allowed = self.names.keys().cloned().collect();
                return Err(DirectoryFault::Unknown { name: name.to_owned(), allowed });
            }
            if place >= places {
                return Err(DirectoryFault::NoPlace { name: name.to_owned(), place, places });
            }
            if moves.insert(name, place).is_some() {
                return Err(DirectoryFault::MappedTwice(name.to_owned()));
            }
        }
        for (name, place) in moves {
            match self.names[name] {
                Named::Task(task) => self.task_places[task.0 as usize] = PlaceId(place),
                Named::Hub(hub) => self.hub_places[hub.0 as usize] = PlaceId(place),
            }
        }
        Ok(())
    }

    /// Returns the tasks, in the order in which they were added.
    pub fn tasks(&self) -> &[TaskSpec] {
        &self.tasks
    }

    /// Returns the hubs, in the order in which they were added.
    pub fn hubs(&self) -> &[HubSpec] {
        &self.hubs
    }

    /// Returns the hub of this name.
    pub fn hub(&self, name: &str) -> Option<HubId> {
        match self.names.get(name) {
            Some(Named::Hub(hub)) => Some(*hub),
            _ => None,
        }
    }

    /// Returns the task of this name.
    pub fn task(&self, name: &str) -> Option<TaskId> {
        match self.names.get(name) {
            Some(Named::Task(task)) => Some(*task),
            _ => None,
        }
    }

    /// Returns the place of the task or hub of this name.
    pub fn place_of(&self, name: &str) -> Option<PlaceId> {
        match self.names.get(name)? {
            Named::Task(task) => self.place_of_task(*task),
            Named::Hub(hub) => self.place_of_hub(*hub),
        }
    }

    /// Returns the place of a task of this directory.
    pub(crate) fn place_of_task(&self, task: TaskId) -> Option<PlaceId> {
        self.task_places.get(task.0 as usize).copied()
    }

    /// Returns the place of a hub of this directory.
    #[inline]
    pub fn place_of_hub(&self, hub: HubId) -> Option<PlaceId> {
        self.hub_places.get(hub.0 as usize).copied()
    }
}
