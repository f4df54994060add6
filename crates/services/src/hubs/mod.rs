//! Hubs: tasks of several places that interact by the services of a distributed real-time kernel (OpenComRTOS).
//!
//! The decisions are `isles_protocol::hub`, a pure machine. [`kernel`] is that machine at a place, with its inbox and
//! outbox; [`table`] carries its packets, [`worker`] runs its tasks by priority, [`task`] and [`request`] are what a
//! task sees. This file is the handle. Invariant: every place has the same directory, so a hub's number means the same
//! hub everywhere.

mod description;
mod kernel;
mod request;
mod table;
mod task;
mod worker;

pub use description::{HubDescription, HubMap, KernelCosts};
pub use kernel::KernelCounts;
pub use request::{HubRequest, Wait};
pub(crate) use table::{HUB, HubTable, receive};
pub use task::{HubTask, MemoryBlock};

use crate::table::service::Service;
use isles_runtime::capture::Handle;
use isles_runtime::service::{Members, PartRef, call, replicate};
use isles_runtime::{Local, Place, Result};
use kernel::HubKernel;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::panic::Location;
use std::rc::Rc;
use table::SystemId;

/// Tasks and hubs on all places of a run, as one virtual processor.
///
/// A program describes them by unique names; a [`HubMap`], which is no part of the program, says where each of them is.
/// Another map changes the latency but no result. [`run`](HubSystem::run) runs all tasks. The handle can be sent to
/// other places, and [`run_here`](HubSystem::run_here) runs the tasks of the place that calls it.
#[derive(Clone)]
pub struct HubSystem {
    kernel: Rc<HubKernel>,
    share: PartRef,
}

/// Description from which the kernels of all places are made.
#[derive(Clone, Serialize, Deserialize)]
struct Seed<A> {
    id: SystemId,
    map: HubMap,
    costs: KernelCosts,
    argument: A,
}

impl HubSystem {
    /// Makes the tasks and hubs that `describe` returns for a copy of `argument`, at the places of `map`.
    ///
    /// `describe` runs at each place, so it captures nothing. The routes between places are computed here, before
    /// anything runs. `costs` are those of the kernels on a modelled chip.
    ///
    /// # Errors
    /// [`Misused`](isles_runtime::ErrorKind::Misused): a name is there twice, or the map is wrong; the text
    /// names the entry and what is allowed. A place is dead.
    #[track_caller]
    pub fn open<A, D>(
        argument: A,
        describe: D,
        map: HubMap,
        costs: KernelCosts,
    ) -> impl Future<Output = Result<HubSystem>>
    where
        A: Serialize + DeserializeOwned + Clone + 'static,
        D: Fn(A) -> HubDescription + Copy + 'static,
    {
        const {
            assert!(
                size_of::<D>() == 0,
                "a description is made at each place: its function captures nothing"
            );
        }
        let caller = Location::caller();
        call::called_at(caller, async move {
            let (here, places) = Local::with(|local| (local.here(), local.places()));
            let id = Local::with(|local| HubTable::of(local).next_id(here));
            let seed = Seed { id, map, costs, argument };
            let part = HubPart { kernel: make(seed.clone(), describe)? };
            let kernel = Rc::clone(&part.kernel);
            let there = move |seed| {
                let made = make(seed, describe);
                HubPart {
                    kernel: made.expect("the opener has tried the map, which is the same at each place"),
                }
            };
            let share = replicate(caller, Members::All(places), &seed, Rc::new(part), there).await?;
            Ok(HubSystem { kernel, share })
        })
    }

    /// Returns the place of a task or hub.
    pub fn place_of(&self, name: &str) -> Option<Place> {
        self.kernel.read(|node| node.directory().place_of(name)).map(Place::of)
    }

    /// Returns the counters of this place's kernel.
    pub fn counts(&self) -> KernelCounts {
        self.kernel.counts()
    }
}

/// The part of a system at one place.
struct HubPart {
    kernel: Rc<HubKernel>,
}

/// Makes the kernel of this place.
fn make<A>(seed: Seed<A>, describe: impl Fn(A) -> HubDescription) -> Result<Rc<HubKernel>> {
    let Seed { id, map, costs, argument } = seed;
    Local::with(|local| {
        let (here, places) = (local.here(), local.places());
        let description = describe(argument);
        let packet_bytes = description.packet_bytes_max();
        let directory = description.mapped(&map, places)?;
        let routes = map.routes(here, places)?;
        let kernel = Rc::new(HubKernel::new(id, here, directory, routes).with_bounds(packet_bytes, costs));
        HubTable::of(local).add(&kernel);
        Ok(kernel)
    })
}

impl Serialize for HubSystem {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.share.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HubSystem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let (share, value) = PartRef::with_value(deserializer)?;
        let part = value.and_then(|value| value.downcast::<HubPart>().ok());
        let part = part.ok_or_else(|| serde::de::Error::custom(isles_runtime::service::NO_VALUE))?;
        Ok(HubSystem { kernel: Rc::clone(&part.kernel), share })
    }
}

impl Handle for HubSystem {}
