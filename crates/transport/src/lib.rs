//! How one place is attached to the others.
//!
//! The crate holds the [`Endpoint`] interface that every transport implements, and what all transports
//! share for their tests. It moves bytes between places; it knows neither tasks nor finishes.

#![forbid(unsafe_code)]

pub mod conformance;
mod endpoint;
pub mod loopback;
pub mod random;
mod reentry;
mod span;
mod work;

pub use endpoint::{
    Arrival, Block, BlockMemory, Body, Class, Death, Endpoint, HandlerId, Inbound, Limits, Message, Next,
    SendError, Unpark,
};
pub use isles_protocol::PlaceId;
pub use loopback::memory::AlignedBytes;
pub use reentry::{Reentry, Running};
pub use span::{Source, Span, SpanId};
pub use work::{TABLES_MAX, Table, Work};
