//! Attachment of one place to the others.
//!
//! The crate has the [`Endpoint`] interface that every transport implements, the shared test suite of transports, and
//! the notation for the cores on which places run. It moves bytes between places and does not know tasks or finishes.

#![forbid(unsafe_code)]

pub mod composite;
pub mod conformance;
mod core_list;
mod endpoint;
mod forward;
pub mod loopback;
mod notice;
pub mod random;
mod ranges;
mod reentry;
mod region;
mod span;
mod work;

pub use core_list::{CoreList, CoreListError};
pub use endpoint::{
    Arrival, Block, BlockMemory, Body, Class, Death, Endpoint, EndpointExt, FileAccess, HandlerId, Inbound,
    Lending, LendingError, LentSlice, Limits, MappedMemory, Message, Multicast, Next, OtherHosts, SendError,
    SpanSink, Unpark, WorkModel,
};
pub use isles_protocol::{PlaceId, ordered};
pub use loopback::memory::AlignedBytes;
pub use notice::{notice, notice_text};
pub use ranges::Ranges;
pub use reentry::{ReentryGuard, Running};
pub use region::{Region, RegionTable};
pub use span::{Source, Span, SpanId};
pub use work::{TABLES_MAX, Table, Work};
