//! Places of one host over one mapped segment.
//!
//! The crate moves messages between places that are threads of one process and places that are processes of
//! one host, with the same code and the same memory layout (`docs/design/shm-layout.md`). It is a crate of its own
//! because it needs unsafe code: mapped memory, rings in it, processes. It knows neither tasks nor finishes, and
//! no other transport.
//!
//! [`Segment`] is the memory, [`ShmEndpoint`] one place's attachment; [`processes`] starts and watches places that are
//! processes. Of the private modules, `ring` (the protocol of one queue) and `parking` (sleep and wake-up) are
//! model-checked; `layout` derives all offsets.
//!
//! ```
//! use isles_transport::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId};
//! use isles_transport_shm::{Geometry, Segment};
//!
//! let segment = Segment::create(Geometry::for_places(2), [0; 16])?;
//! let here = segment.endpoint(PlaceId(0))?;
//! let there = segment.endpoint(PlaceId(1))?;
//! let mut write = |room: &mut [u8]| {
//!     room.copy_from_slice(b"hello");
//!     Some(room.len())
//! };
//! here.send(PlaceId(1), Class::Data, HandlerId(7), 5, &mut write)?;
//! let mut heard = Vec::new();
//! there.progress(Inbound::All, &mut |arrival| {
//!     if let Arrival::Message(message) = arrival {
//!         heard.extend_from_slice(message.body.bytes());
//!     }
//! });
//! assert_eq!(heard, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(loom, allow(dead_code, reason = "under loom only the modelled half of the crate is built"))]

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod endpoint;
mod futex;
#[cfg(all(any(test, fuzzing), not(loom)))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod lifecycle;
mod membarrier;
#[cfg(all(test, loom))]
mod model;
mod parking;
#[cfg(not(loom))]
mod pinning;
#[cfg(not(loom))]
pub mod processes;
#[cfg(not(loom))]
mod regions;
mod ring;
#[cfg(not(loom))]
mod segment;
mod sync;
#[cfg(not(loom))]
mod words;

#[cfg(not(loom))]
pub use endpoint::{ShmEndpoint, let_siblings_read, polling_time, reads_others};
#[cfg(not(loom))]
pub use layout::{BatchLimits, Geometry, PROCESSORS_MAX};
pub use parking::PLACES_MAX;
#[cfg(not(loom))]
pub use pinning::{Pinning, allowed as processors};
#[cfg(not(loom))]
pub use segment::{Image, MappedFile, MemoryError, Segment, SegmentError};
#[cfg(not(loom))]
pub use words::SharedWords;
