//! The hub systems of one place, as one of its services.
//!
//! A packet goes to the inbox of its system, which is served once the worker has taken in all messages that came with
//! it. Invariant: `is_busy` is set whenever a kernel may have something to do.

use super::kernel::HubKernel;
use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::hub::{HubPacket, PacketBody, Status, TaskId};
use isles_runtime::Local;
use isles_runtime::service::{Inquiry, Refused};
use isles_runtime::wire::Reader;
use isles_transport::{Class, HandlerId};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Number of the message that carries a packet.
pub(crate) const HUB: HandlerId = HandlerId(15);

/// Length of a packet's header within a message, whose own header accounts for the other 8 bytes.
const HEADER_BYTES: usize = HubPacket::HEADER_BYTES - 8;

/// The id of a system in the whole run: the place that opened it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SystemId {
    pub(super) home: PlaceId,
    pub(super) serial: u64,
}

/// The systems of a place.
#[derive(Default)]
pub(crate) struct HubTable {
    systems: RefCell<BTreeMap<SystemId, Weak<HubKernel>>>,
    serial: Cell<u64>,
    /// True if some kernel may have something to do.
    is_busy: Cell<bool>,
}

impl HubTable {
    /// Returns the id of a new system.
    pub(super) fn next_id(&self, home: PlaceId) -> SystemId {
        let serial = self.serial.get();
        self.serial.set(serial + 1);
        SystemId { home, serial }
    }

    pub(super) fn add(&self, kernel: &Rc<HubKernel>) {
        let mut systems = self.systems.borrow_mut();
        systems.retain(|_, kernel| kernel.strong_count() > 0);
        systems.insert(kernel.id, Rc::downgrade(kernel));
    }

    fn find(&self, id: SystemId) -> Option<Rc<HubKernel>> {
        self.systems.borrow().get(&id)?.upgrade()
    }

    fn all(&self) -> Vec<Rc<HubKernel>> {
        self.systems.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Makes the worker run the kernels at the end of its step.
    pub(super) fn note_busy(&self) {
        self.is_busy.set(true);
    }
}

impl Service for HubTable {
    const ROW: usize = 8;

    fn new(_here: PlaceId, _places: u32) -> HubTable {
        HubTable::default()
    }

    fn place_died(&self, _local: &Local, place: PlaceId) {
        self.all().iter().for_each(|kernel| kernel.place_died(place));
        self.note_busy();
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        self.all().iter().flat_map(|kernel| kernel.explain()).collect()
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, local: &Local) -> bool {
        if !self.is_busy.take() {
            return false;
        }
        let mut was_due = false;
        for kernel in self.all() {
            if kernel.has_work() {
                kernel.progress(local);
                was_due = true;
            }
        }
        was_due
    }
}

/// Sends a packet to the next place on its route. A packet that cannot be sent is lost with that place, whose death the
/// kernel learns of by itself.
pub(super) fn send(local: &Local, system: SystemId, hop: PlaceId, packet: &HubPacket) {
    let guess = packet.payload().len() + HubPacket::HEADER_BYTES;
    let _ = local.send_with_size_hint(hop, Class::Data, HUB, guess, |writer| {
        let before = writer.written();
        writer.put_serde(&system)?;
        writer.put_serde(packet)?;
        // Padded, so that the length of a header does not depend on its content.
        let header = writer.written() - before - packet.payload().len();
        writer.put_bytes(&[0; HEADER_BYTES][header.min(HEADER_BYTES)..]);
        Ok(())
    });
}

/// Receives a packet.
pub(crate) fn receive(local: &Local, _source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let system: SystemId = reader.take_serde()?;
    let packet: HubPacket = reader.take_serde()?;
    let asker = if let PacketBody::Request(request) = &packet.body { request.id.place } else { packet.from };
    if [packet.to, packet.from, asker].iter().any(|place| place.0 >= local.places()) {
        return Err(Refused::of_service("a packet of hubs is for a place that does not exist"));
    }
    let table = HubTable::of(local);
    // A system that is closed here has no waiting tasks.
    if let Some(kernel) = table.find(system) {
        kernel.arrive(packet);
        table.note_busy();
    }
    Ok(())
}

/// Returns the name of a task.
pub(super) fn name_of(kernel: &HubKernel, task: TaskId) -> String {
    kernel.read(|node| node.directory().tasks()[task.0 as usize].name.clone())
}

/// Returns `Ok` if the status says that the request has synchronised.
pub(super) fn done(status: Status) -> Result<(), Status> {
    if status == Status::Done { Ok(()) } else { Err(status) }
}
