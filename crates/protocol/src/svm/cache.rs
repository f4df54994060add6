//! The copies at one place of pages whose home is another place, for release consistency.
//!
//! A page is invalid, clean (a copy that the program only reads) or dirty (a copy that it changes, beside a twin of the
//! home's content). A release writes the difference of each dirty page to its home. An acquire drops every copy, so the
//! next access fetches what homes have by then: like MetalSVM, which invalidates the caches at an acquire, and unlike
//! TreadMarks, which sends write notices. Pages at their own home need no copy.
//!
//! Programs must be free of data races: two accesses of one byte, one of them a store, must be ordered by a release and
//! an acquire. Invariant: a page is dropped only when its changes are at its home.

use super::{PageAccess, PageNumber};

/// Actions that the caller of a [`ReleaseCache`] must perform after a fault, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheAction {
    /// Copy the page from its home first.
    pub fetches: bool,
    /// Make a twin of the copy.
    pub twins: bool,
    /// Then allow the program this access.
    pub access: PageAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CopyState {
    Invalid,
    Clean,
    Dirty,
}

/// The copies of one place of a region of the model [`Consistency::Release`](super::Consistency::Release).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseCache {
    states: Vec<CopyState>,
    /// Pages that are not invalid, in the order of their fetches.
    copied: Vec<PageNumber>,
}

impl ReleaseCache {
    /// Makes the cache of a place in a new region of `pages` pages.
    pub fn new(pages: u32) -> ReleaseCache {
        ReleaseCache { states: vec![CopyState::Invalid; pages as usize], copied: Vec::new() }
    }

    /// Handles an access to a page that was not mapped for it. `None` if the region has no such page.
    pub fn fault(&mut self, page: PageNumber, access: PageAccess) -> Option<CacheAction> {
        let state = self.states.get_mut(page.index())?;
        let before = *state;
        if before == CopyState::Invalid {
            self.copied.push(page);
        }
        *state = match (before, access) {
            (CopyState::Dirty, _) | (_, PageAccess::Write) => CopyState::Dirty,
            _ => CopyState::Clean,
        };
        let is_dirty = *state == CopyState::Dirty;
        Some(CacheAction {
            fetches: before == CopyState::Invalid,
            twins: is_dirty && before != CopyState::Dirty,
            access: if is_dirty { PageAccess::Write } else { PageAccess::Read },
        })
    }

    /// Begins a release: returns the dirty pages, which become clean. The caller protects them from stores, writes the
    /// differences from their twins to their homes, and only then notifies others.
    pub fn release(&mut self) -> Vec<PageNumber> {
        let dirty: Vec<PageNumber> = self
            .copied
            .iter()
            .copied()
            .filter(|page| self.states[page.index()] == CopyState::Dirty)
            .collect();
        for page in &dirty {
            self.states[page.index()] = CopyState::Clean;
        }
        dirty
    }

    /// Does an acquire: returns the pages whose copies the caller drops. Dirty pages stay, so release first.
    pub fn acquire(&mut self) -> Vec<PageNumber> {
        let states = &mut self.states;
        let (dropped, kept) = self.copied.iter().partition(|page| states[page.index()] == CopyState::Clean);
        self.copied = kept;
        for page in &dropped {
            let page: &PageNumber = page;
            states[page.index()] = CopyState::Invalid;
        }
        dropped
    }
}
