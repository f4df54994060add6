//! Hubs: tasks that interact by the services of a distributed real-time kernel, as in OpenComRTOS.
//!
//! A program has tasks, each with a priority, and hubs: ports, events, semaphores, resources, FIFOs, pools, and those
//! with rules of its own. Both have unique names. Where each is, is in a map outside of the program (`ISLES_MAP`), so
//! moving a task or a hub to another place changes no line of it, and no result.
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
//! async fn body(task: HubTask) -> isles::Result<u64> {
//!     let readings = task.port("readings")?;
//!     if task.name() == "sensor" {
//!         task.put(readings, &[42], Wait::Forever).await?;
//!         return Ok(0);
//!     }
//!     Ok(u64::from(task.get(readings, Wait::Forever).await?[0]))
//! }
//!
//! #[isles::main]
//! async fn main() -> isles::Result<()> {
//!     let system = isles::hub::open((), describe).await?;
//!     let values = everywhere!({ system.run_here(body).await? }).await?;
//!     let all: Vec<(String, u64)> = values.into_iter().flatten().collect();
//!     assert!(all.contains(&("logger".to_owned(), 42)));
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

/// Makes what `describe` describes, of a copy of `argument`, at the places that `ISLES_MAP` names; all at place 0 if it
/// is not set. The kernels cost nothing on a modelled chip; [`HubSystem::open`] says a map and costs.
///
/// # Errors
/// [`Misused`](ErrorKind::Misused): a name is there twice, or the map is wrong; the text names the entry and what is
/// allowed. A place is dead.
pub async fn open<A, D>(argument: A, describe: D) -> Result<HubSystem>
where
    A: Serialize + DeserializeOwned + Clone + 'static,
    D: Fn(A) -> HubDescription + Copy + 'static,
{
    let map = map_of_environment().map_err(|error| Error::new(ErrorKind::Misused, error.to_string()))?;
    HubSystem::open(argument, describe, map.unwrap_or_default(), KernelCosts::default()).await
}
