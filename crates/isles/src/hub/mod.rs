//! Hubs: tasks that interact through the services of a distributed real-time kernel, as in OpenComRTOS.
//!
//! A program has tasks, each with a priority, and hubs: ports, events, semaphores, resources, FIFOs, pools, and hubs
//! with rules of the program. All have unique names. A map outside of the program (`ISLES_MAP`) assigns them to places,
//! so moving a task or a hub changes neither the program nor its results.
//!
//! ```
//! use isles::hub::{HubDescription, HubKind, HubTask, Wait};
//! use isles::prelude::*;
//!
//! fn describe((): ()) -> HubDescription {
//!     let port = HubDescription::new().hub("readings", HubKind::Port);
//!     port.task("sensor", 10).task("logger", 200)
//! }
//!
//! async fn body(task: HubTask, (): ()) -> isles::Result<u8> {
//!     let readings = task.port("readings")?;
//!     if task.name() == "sensor" {
//!         task.put(readings, &[42], Wait::Forever).await?;
//!         return Ok(0);
//!     }
//!     Ok(task.get(readings, Wait::Forever).await?[0])
//! }
//!
//! #[isles::main]
//! async fn main() -> isles::Result<()> {
//!     let system = isles::hub::open((), describe).await?;
//!     let (values, _) = system.run((), body).await?;
//!     assert_eq!(values, [("sensor".to_owned(), 0), ("logger".to_owned(), 42)]);
//!     Ok(())
//! }
//! ```
//!
//! The source is Sputh, Lukin and Verhulst, "Transparent Programming of Many/Multi Cores with OpenComRTOS" (6th MARC
//! symposium, 2012).

mod map;

pub use isles_protocol::hub::{
    HubId, HubKind, HubOperation, HubRule, Readiness, ServiceRequest, Status, TaskId,
};
pub use isles_services::{
    HubDescription, HubMap, HubRequest, HubSystem, HubTask, KernelCosts, KernelCounts, MemoryBlock, Wait,
};
pub use map::{map_of_environment, read_map};

use isles_runtime::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Makes the tasks and hubs that `describe` returns for a copy of `argument`, at the places that `ISLES_MAP` names, or
/// all at place 0 if it is not set. On a modelled chip the kernels take no time; [`HubSystem::open`] takes a map and
/// costs.
///
/// # Errors
/// [`Misused`](ErrorKind::Misused): a name is used twice, or the map is invalid; the text names the entry and what is
/// allowed. [`DeadPlace`](ErrorKind::DeadPlace): a place is dead.
pub async fn open<A, D>(argument: A, describe: D) -> Result<HubSystem>
where
    A: Serialize + DeserializeOwned + Clone + 'static,
    D: Fn(A) -> HubDescription + Copy + 'static,
{
    let map = map_of_environment().map_err(|error| Error::new(ErrorKind::Misused, error.to_string()))?;
    HubSystem::open(argument, describe, map.unwrap_or_default(), KernelCosts::default()).await
}
