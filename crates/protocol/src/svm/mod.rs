//! Shared virtual memory: which place may access which page, and when changes reach others.
//!
//! Two state machines. [`PermissionNode`] is one place of the models [`Consistency::Exclusive`] and
//! [`Consistency::Strong`]: a directory at the home of each page grants a permission after it has revoked those that
//! conflict with it. [`ReleaseCache`] is one place of [`Consistency::Release`]: pages are copied from their homes,
//! changed beside a twin, and written back as differences. Neither knows how pages are mapped or moved. A
//! [`LockNode`] is one place of the locks of a region, in all models.

mod cache;
mod directory;
mod lock;
mod node;
#[cfg(test)]
mod tests;

pub use cache::{CacheAction, ReleaseCache};
pub use lock::{LockAction, LockMessage, LockNode, LockNumber};
pub use node::{PageAction, PermissionNode};

use serde::{Deserialize, Serialize};

/// The number of a page of a region: `0 .. pages`, the same at every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageNumber(pub u32);

impl PageNumber {
    /// Returns the number as an index into a table with one entry for each page.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Memory consistency model of a region: the guaranteed order of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Consistency {
    /// At any time at most one place can access a page. Sequentially consistent. (MetalSVM's strong model.)
    Exclusive,
    /// Many places can read a page, or one can write it. Sequentially consistent. (The protocol of IVY: Li and Hudak,
    /// Memory Coherence in Shared Virtual Memory Systems, 1989.)
    Strong,
    /// Changes of a place reach others at a release that precedes their acquire. Several places may change different
    /// bytes of a page between two such points. (Home-based release consistency: Zhou, Iftode and Li, OSDI 1996.)
    Release,
}

impl Consistency {
    /// All models with their names.
    pub const NAMES: [(&'static str, Consistency); 3] = [
        ("exclusive", Consistency::Exclusive),
        ("strong", Consistency::Strong),
        ("release", Consistency::Release),
    ];

    /// Returns the name of the model.
    pub fn name(self) -> &'static str {
        match self {
            Consistency::Exclusive => "exclusive",
            Consistency::Strong => "strong",
            Consistency::Release => "release",
        }
    }
}

/// Kind of access to a page; writing includes reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PageAccess {
    /// Loads only.
    Read,
    /// Loads and stores.
    Write,
}

/// Message between places of a region. Messages of one ordered pair of places must arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PageMessage {
    /// To the home: the sender needs the page.
    Request {
        /// The page.
        page: PageNumber,
        /// Access that the sender needs.
        access: PageAccess,
    },
    /// From the home: the receiver must give up the page, or its permission to write it.
    Revoke {
        /// The page.
        page: PageNumber,
        /// True if the receiver may still read it.
        keeps_read: bool,
    },
    /// To the home: the sender has carried out the revocation.
    Revoked {
        /// The page.
        page: PageNumber,
    },
    /// From the home: the receiver has the page.
    Grant {
        /// The page.
        page: PageNumber,
        /// Access that the receiver gets.
        access: PageAccess,
    },
}
