//! One place of a region whose pages move by permission: what it holds, and the directories of the pages whose home it
//! is.
//!
//! A fault asks the home of its page, which is the place `page mod places`. The home revokes and grants. Messages of a
//! place to itself are not sent. Messages of a transaction without those: a read of a page without a writer 2, of a
//! page with a writer at a third place 4, a write with *s* other holders 2 + 2*s*.
//!
//! The caller executes the actions in order. Invariant: between a `Map` and the call of [`PermissionNode::revoked`] for
//! the page, no other place has a permission that conflicts with this place's.

use super::directory::{HomeAction, PageDirectory};
use super::{Consistency, PageAccess, PageMessage, PageNumber};
use crate::PlaceId;
use std::collections::VecDeque;

/// Action that the caller of a [`PermissionNode`] must perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageAction {
    /// Send `message` to another place.
    Send {
        /// The receiver.
        to: PlaceId,
        /// Message to send.
        message: PageMessage,
    },
    /// Allow the program the access to the page, and wake what waits for it.
    Map {
        /// The page.
        page: PageNumber,
        /// Access that the program gets.
        access: PageAccess,
    },
    /// Withdraw the page, or the permission to write it, from the program as soon as no guard needs it; then call
    /// [`PermissionNode::revoked`].
    Revoke {
        /// The page.
        page: PageNumber,
        /// True if the program may still read it.
        keeps_read: bool,
    },
}

/// State of one page at a place: the access held, the access requested, and a pending revocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct PageState {
    held: Option<PageAccess>,
    asked: Option<PageAccess>,
    /// A requested revocation that is not reported yet; the value is `keeps_read`.
    revoking: Option<bool>,
}

/// One place of a region of the model [`Consistency::Exclusive`] or [`Consistency::Strong`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermissionNode {
    here: PlaceId,
    places: u32,
    model: Consistency,
    holdings: Vec<PageState>,
    /// Directories of the pages whose home is this place: that of page `here + i * places` at `i`.
    directories: Vec<PageDirectory>,
    dead: Option<PlaceId>,
}

impl PermissionNode {
    /// Makes a place of a new region of `pages` pages, which no place holds.
    ///
    /// # Panics
    /// If `here` is not one of `places`, or the model is `Release`.
    pub fn new(here: PlaceId, places: u32, pages: u32, model: Consistency) -> PermissionNode {
        assert!(here.0 < places, "{here} is not one of {places} places");
        assert!(model != Consistency::Release, "pages of the model release have no permissions");
        let homes = (here.0..pages).step_by(places as usize).count();
        PermissionNode {
            here,
            places,
            model,
            holdings: vec![PageState::default(); pages as usize],
            directories: vec![PageDirectory::default(); homes],
            dead: None,
        }
    }

    /// Returns the home of a page.
    pub fn home(&self, page: PageNumber) -> PlaceId {
        PlaceId(page.0 % self.places)
    }

    /// Returns what the program may do with a page.
    pub fn held(&self, page: PageNumber) -> Option<PageAccess> {
        self.holdings.get(page.index())?.held
    }

    /// Handles an access to a page that was not mapped for it. After a death the page is mapped as it is.
    pub fn fault(&mut self, page: PageNumber, access: PageAccess, out: &mut Vec<PageAction>) {
        let access = if self.model == Consistency::Exclusive { PageAccess::Write } else { access };
        let Some(holding) = self.holdings.get_mut(page.index()) else { return };
        if self.dead.is_some() {
            out.push(PageAction::Map { page, access: PageAccess::Write });
        } else if holding.held >= Some(access) {
            // The system dropped the mapping, or two accesses to one page came together.
            out.push(PageAction::Map { page, access: holding.held.unwrap_or(access) });
        } else if holding.asked.is_none() {
            holding.asked = Some(access);
            let home = self.home(page);
            self.send(home, PageMessage::Request { page, access }, out);
        }
    }

    /// Handles the end of the revocation requested by [`PageAction::Revoke`].
    pub fn revoked(&mut self, page: PageNumber, out: &mut Vec<PageAction>) {
        let Some(holding) = self.holdings.get_mut(page.index()) else { return };
        let Some(keeps_read) = holding.revoking.take() else { return };
        holding.held = holding.held.filter(|_| keeps_read).map(|_| PageAccess::Read);
        if self.dead.is_none() {
            let home = self.home(page);
            self.send(home, PageMessage::Revoked { page }, out);
        }
    }

    /// Handles a message. Messages that no valid place sends are ignored.
    pub fn receive(&mut self, from: PlaceId, message: PageMessage, out: &mut Vec<PageAction>) {
        let mut inbox = VecDeque::from([(from, message)]);
        while let Some((from, message)) = inbox.pop_front() {
            self.take(from, message, &mut inbox, out);
        }
    }

    /// Handles the death of a place: the region is lost, so whatever waits for a page gets it as it is, and must check
    /// [`PermissionNode::dead`]. Later deaths change nothing.
    pub fn place_died(&mut self, place: PlaceId, out: &mut Vec<PageAction>) {
        if self.dead.is_some() || place.0 >= self.places || place == self.here {
            return;
        }
        self.dead = Some(place);
        for (page, holding) in self.holdings.iter_mut().enumerate() {
            if holding.asked.take().is_some() {
                holding.held = Some(PageAccess::Write);
                out.push(PageAction::Map { page: PageNumber(page as u32), access: PageAccess::Write });
            }
        }
    }

    /// Returns the first place of the region that died.
    pub fn dead(&self) -> Option<PlaceId> {
        self.dead
    }

    fn send(&mut self, to: PlaceId, message: PageMessage, out: &mut Vec<PageAction>) {
        if to == self.here {
            self.receive(to, message, out);
        } else {
            out.push(PageAction::Send { to, message });
        }
    }

    fn take(
        &mut self,
        from: PlaceId,
        message: PageMessage,
        inbox: &mut VecDeque<(PlaceId, PageMessage)>,
        out: &mut Vec<PageAction>,
    ) {
        if self.dead.is_some() {
            return;
        }
        match message {
            PageMessage::Request { page, access } => {
                self.at_home(page, inbox, out, |directory, actions| directory.request(from, access, actions));
            }
            PageMessage::Revoked { page } => {
                self.at_home(page, inbox, out, |directory, actions| directory.revoked(from, actions));
            }
            PageMessage::Revoke { page, keeps_read } if from == self.home(page) => {
                let Some(holding) = self.holdings.get_mut(page.index()) else { return };
                if holding.held.is_some() && holding.revoking.is_none() {
                    holding.revoking = Some(keeps_read);
                    out.push(PageAction::Revoke { page, keeps_read });
                }
            }
            PageMessage::Grant { page, access } if from == self.home(page) => {
                let Some(holding) = self.holdings.get_mut(page.index()) else { return };
                if holding.asked.take().is_some() {
                    holding.held = Some(access);
                    out.push(PageAction::Map { page, access });
                }
            }
            PageMessage::Revoke { .. } | PageMessage::Grant { .. } => {}
        }
    }

    /// Calls `decide` with the directory of a page, if this place is its home, and sends the resulting messages.
    fn at_home(
        &mut self,
        page: PageNumber,
        inbox: &mut VecDeque<(PlaceId, PageMessage)>,
        out: &mut Vec<PageAction>,
        decide: impl FnOnce(&mut PageDirectory, &mut Vec<HomeAction>),
    ) {
        if self.home(page) != self.here {
            return;
        }
        let Some(directory) = self.directories.get_mut((page.0 / self.places) as usize) else { return };
        let mut actions = Vec::new();
        decide(directory, &mut actions);
        for action in actions {
            let (to, message) = match action {
                HomeAction::Revoke { from, keeps_read } => (from, PageMessage::Revoke { page, keeps_read }),
                HomeAction::Grant { to, access } => (to, PageMessage::Grant { page, access }),
            };
            if to == self.here {
                inbox.push_back((to, message));
            } else {
                out.push(PageAction::Send { to, message });
            }
        }
    }
}
