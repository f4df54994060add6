//! Requests of a task of a hub system, by the kinds of hubs.

use super::kernel::HubKernel;
use super::request::{HubRequest, Wait};
use super::table::HubTable;
use crate::table::service::Service;
use isles_protocol::hub::{Entity, HubId, HubKind, HubOperation, Status, TaskId};
use isles_runtime::{Error, ErrorKind, Local, Result};
use std::rc::Rc;

/// A task of a hub system, as its body sees it.
///
/// Each request names a hub; the call is the same wherever the hub is. Awaiting a request lets a more urgent task of
/// the place run first, if one is ready; a task that computes without requests is not interrupted.
pub struct HubTask {
    kernel: Rc<HubKernel>,
    task: TaskId,
    name: String,
}

/// A block of a memory pool. Dropping it gives it back.
pub struct MemoryBlock {
    kernel: Rc<HubKernel>,
    task: TaskId,
    hub: HubId,
    number: u32,
    bytes: Vec<u8>,
}

/// Methods that find a hub of one kind by its name.
macro_rules! kinds {
    ($( $(#[$doc:meta])* $method:ident: $kind:pat, $allowed:literal; )+) => {
        impl HubTask {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`Misused`](ErrorKind::Misused): no hub of this kind has the name.
                pub fn $method(&self, name: &str) -> Result<HubId> {
                    let is_it = |kind: &HubKind| matches!(kind, $kind);
                    self.find(name, is_it, $allowed)
                }
            )+
        }
    };
}

kinds! {
    /// Returns the port of this name.
    port: HubKind::Port, "port";
    /// Returns the event of this name.
    event: HubKind::Event, "event";
    /// Returns the semaphore of this name.
    semaphore: HubKind::Semaphore { .. }, "semaphore";
    /// Returns the resource of this name.
    resource: HubKind::Resource { .. }, "resource";
    /// Returns the FIFO of this name.
    fifo: HubKind::Fifo { .. }, "FIFO";
    /// Returns the memory pool of this name.
    memory_pool: HubKind::MemoryPool { .. }, "memory pool";
    /// Returns the packet pool of this name.
    packet_pool: HubKind::PacketPool { .. }, "packet pool";
    /// Returns the data event of this name.
    data_event: HubKind::DataEvent, "data event";
    /// Returns the black board of this name.
    black_board: HubKind::BlackBoard, "black board";
}

impl HubTask {
    pub(super) fn new(kernel: Rc<HubKernel>, task: TaskId) -> HubTask {
        let name = super::table::name_of(&kernel, task);
        HubTask { kernel, task, name }
    }

    /// Returns the unique name of the task.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the priority that schedules the task now: its own, or an inherited one.
    pub fn priority(&self) -> u8 {
        self.kernel.read(|node| node.priority(self.task)).unwrap_or(u8::MAX)
    }

    /// Returns the hub of this name, of whatever kind.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): no hub has the name.
    pub fn hub(&self, name: &str) -> Result<HubId> {
        let found = self.kernel.read(|node| node.directory().hub(name));
        found.ok_or_else(|| Error::new(ErrorKind::Misused, format!("no hub has the name {name:?}")))
    }

    fn find(&self, name: &str, is_it: fn(&HubKind) -> bool, kind: &str) -> Result<HubId> {
        let hub = self.hub(name)?;
        let is_one = self.kernel.read(|node| match &node.directory().hubs()[hub.0 as usize].entity {
            Entity::Known(kind) => is_it(kind),
            Entity::Own(_) => false,
        });
        let text = || Error::new(ErrorKind::Misused, format!("the hub {name:?} is no {kind}"));
        if is_one { Ok(hub) } else { Err(text()) }
    }

    /// Makes a request to a hub; returns the data that it gets. All other calls use this one, which also serves hubs
    /// with a rule of the program.
    ///
    /// # Errors
    /// The [`Status`] of the request, if it is not done; [`Status::TooLong`]: the data is longer than a packet's.
    #[inline]
    pub fn request(&self, hub: HubId, operation: HubOperation, payload: Vec<u8>, wait: Wait) -> HubRequest {
        HubRequest::new(Rc::clone(&self.kernel), self.task, hub, operation, payload, wait)
    }

    /// Signals a semaphore, raises an event, or unlocks a resource: the put side of a hub without data.
    ///
    /// # Errors
    /// The [`Status`] of the request; [`Status::NotOwner`]: the task has not locked the resource.
    #[inline]
    pub fn signal(&self, hub: HubId, wait: Wait) -> HubRequest {
        self.request(hub, HubOperation::Put, Vec::new(), wait)
    }

    /// Tests a semaphore or an event, or locks a resource: the get side of a hub without data.
    ///
    /// # Errors
    /// The [`Status`] of the request; [`Status::CeilingViolated`] of a resource whose ceiling is less urgent than the
    /// task.
    #[inline]
    pub fn test(&self, hub: HubId, wait: Wait) -> HubRequest {
        self.request(hub, HubOperation::Get, Vec::new(), wait)
    }

    /// Puts a packet's data into a port, a FIFO, a data event or a black board.
    ///
    /// # Errors
    /// The [`Status`] of the request.
    #[inline]
    pub fn put(&self, hub: HubId, data: &[u8], wait: Wait) -> HubRequest {
        self.request(hub, HubOperation::Put, data.to_vec(), wait)
    }

    /// Gets a packet's data from a port, a FIFO, a data event or a black board. The data of a black board begins with
    /// the number of the last write: 8 bytes, little-endian.
    ///
    /// # Errors
    /// The [`Status`] of the request.
    #[inline]
    pub fn get(&self, hub: HubId, wait: Wait) -> HubRequest {
        self.request(hub, HubOperation::Get, Vec::new(), wait)
    }

    /// Gets a block of at least `bytes` bytes, all zero, from a memory pool of this place.
    ///
    /// # Errors
    /// The [`Status`] of the request; [`Status::NotLocal`]: the pool is at another place; [`Status::TooLong`]: its
    /// blocks are shorter; [`Status::Invalid`]: the hub is no memory pool.
    pub async fn allocate(
        &self,
        pool: HubId,
        bytes: u32,
        wait: Wait,
    ) -> std::result::Result<MemoryBlock, Status> {
        let is_pool = self.kernel.read(|node| {
            let spec = node.directory().hubs().get(pool.0 as usize);
            spec.is_some_and(|spec| matches!(spec.entity, Entity::Known(HubKind::MemoryPool { .. })))
        });
        if !is_pool {
            return Err(Status::Invalid);
        }
        let request = self.request(pool, HubOperation::Get, bytes.to_le_bytes().to_vec(), wait);
        let payload = request.await?;
        let number = payload.first_chunk().map(|number| u32::from_le_bytes(*number));
        let number = number.ok_or(Status::Invalid)?;
        let (kernel, task) = (Rc::clone(&self.kernel), self.task);
        Ok(MemoryBlock { kernel, task, hub: pool, number, bytes: vec![0; bytes as usize] })
    }

    /// Lets tasks of the place with the same or a more urgent priority run, and messages arrive.
    pub async fn yield_now(&self) {
        isles_runtime::yield_now().await;
    }
}

impl std::ops::Deref for MemoryBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::ops::DerefMut for MemoryBlock {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        // The place may be gone.
        Local::try_with(|local| {
            self.kernel.deallocate(self.task, self.hub, self.number);
            HubTable::of(local).note_busy();
        });
    }
}
