//! Memory that places share page by page, by page faults: of one host, or of several over sockets.
//!
//! A [`PageRegion`] is this place's view of memory that all places of a region have. A touch of a page that this place
//! may not access stops the thread; the kernel tells the service thread of the region by userfaultfd, which gets the
//! page by the protocol of `isles_protocol::svm` and maps it. The service thread also answers other places, so one that
//! computes or waits serves its pages all the same. Places, teams and messages of tasks are known to the façade only.
//!
//! `sys` has the system calls, `peers` the rendezvous of places, `socket` the connections between hosts, `service` the
//! thread, `release` the copies of the model release, `region`, `guard` and `lock` the interface for programs.

mod error;
mod guard;
mod lock;
mod peers;
mod polling;
mod region;
mod release;
mod service;
mod socket;
mod state;
mod sys;
#[cfg(test)]
mod tests;

pub use error::RegionError;
pub use guard::{PageReadGuard, PageWriteGuard};
pub use lock::RegionLock;
pub use peers::{PlaceAddress, RegionSeed};
pub use region::PageRegion;
pub use state::RegionCounts;
pub use sys::PAGE_BYTES;
