//! The directory of one page at its home: its holders, the transaction in progress, and the waiting requests.
//!
//! Invariants: one place holds the page to write and no other holds it, or any number hold it to read; a grant is sent
//! only after every conflicting permission was revoked; one transaction at a time, others queue in order of arrival.

use super::PageAccess;
use crate::PlaceId;
use std::collections::VecDeque;

/// Message that the home must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HomeAction {
    Revoke { from: PlaceId, keeps_read: bool },
    Grant { to: PlaceId, access: PageAccess },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PageRequest {
    from: PlaceId,
    access: PageAccess,
}

/// The state of one page at its home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PageDirectory {
    /// Ascending.
    readers: Vec<PlaceId>,
    writer: Option<PlaceId>,
    current: Option<PageRequest>,
    /// Places whose `Revoked` is outstanding in the current transaction. Ascending.
    awaited: Vec<PlaceId>,
    queue: VecDeque<PageRequest>,
}

impl PageDirectory {
    /// Handles a request; a second one of the same place before its grant is a fault of that place, and ignored.
    pub(super) fn request(&mut self, from: PlaceId, access: PageAccess, out: &mut Vec<HomeAction>) {
        let is_double = self.current.iter().chain(&self.queue).any(|request| request.from == from);
        if !is_double {
            self.queue.push_back(PageRequest { from, access });
            self.advance(out);
        }
    }

    /// Handles the answer to a `Revoke`; ignored if it was not outstanding.
    pub(super) fn revoked(&mut self, by: PlaceId, out: &mut Vec<HomeAction>) {
        if let Ok(position) = self.awaited.binary_search(&by) {
            self.awaited.remove(position);
            self.finish_if_free(out);
        }
    }

    fn advance(&mut self, out: &mut Vec<HomeAction>) {
        while self.current.is_none() {
            let Some(request) = self.queue.pop_front() else { return };
            self.current = Some(request);
            let keeps_read = request.access == PageAccess::Read;
            let conflicts = self.writer.iter().chain(self.readers.iter().filter(|_| !keeps_read));
            self.awaited = conflicts.copied().filter(|holder| *holder != request.from).collect();
            self.awaited.sort_unstable();
            out.extend(self.awaited.iter().map(|from| HomeAction::Revoke { from: *from, keeps_read }));
            self.finish_if_free(out);
        }
    }

    /// Grants the current request if nothing conflicts with it any more, and begins the next one.
    fn finish_if_free(&mut self, out: &mut Vec<HomeAction>) {
        if !self.awaited.is_empty() {
            return;
        }
        let Some(PageRequest { from, access }) = self.current.take() else { return };
        match access {
            PageAccess::Write => {
                self.readers.clear();
                self.writer = Some(from);
            }
            PageAccess::Read => {
                let kept = self.writer.take().into_iter().chain([from]);
                self.readers.extend(kept);
                self.readers.sort_unstable();
                self.readers.dedup();
            }
        }
        out.push(HomeAction::Grant { to: from, access });
        self.advance(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_due_is_ignored_and_requests_keep_their_order() {
        let [first, second, third] = [1, 2, 3].map(PlaceId);
        let (mut directory, mut actions) = (PageDirectory::default(), Vec::new());
        directory.revoked(first, &mut actions);
        directory.request(first, PageAccess::Write, &mut actions);
        assert_eq!(actions, [HomeAction::Grant { to: first, access: PageAccess::Write }]);
        actions.clear();
        for place in [second, second, third] {
            directory.request(place, PageAccess::Write, &mut actions);
        }
        directory.revoked(third, &mut actions);
        assert_eq!(actions, [HomeAction::Revoke { from: first, keeps_read: false }]);
        actions.clear();
        directory.revoked(first, &mut actions);
        let granted = HomeAction::Grant { to: second, access: PageAccess::Write };
        assert_eq!(actions, [granted, HomeAction::Revoke { from: second, keeps_read: false }]);
    }
}
