//! Shipment of a `spawn_at!` or an `at!` to another place, for any type of body.
//!
//! A program has one type of body for each site; only the writing of captures differs between them, so only that is
//! generic. Invariant: what the enclosing finish counted for a body that was not sent is undone, and the finish or the
//! caller gets the error.

use super::CallId;
use super::image::Descriptor;
use super::pending::ReplyFuture;
use super::site::{Site, SiteCell};
use crate::error::{Error, ErrorKind, Result};
use crate::finish::Scope;
use crate::local::{Encode, Local};
use crate::message::{BodyHeader, Handler};
use crate::service::RefusedBody;
use crate::wire::Writer;
use isles_protocol::PlaceId;
use isles_protocol::finish::{Key, TaskRefusal};
use isles_transport::Class;

/// A body and its captures, to be sent to another place.
pub(super) struct Shipment<'a> {
    to: PlaceId,
    descriptor: &'static Descriptor,
    site: &'static SiteCell,
    /// Estimated size of the captures, in bytes.
    room: usize,
    encode: &'a Encode<'a>,
}

impl<'a> Shipment<'a> {
    /// Returns the body of `descriptor` from the site `S`; `encode` writes its captures, of probably `room` bytes.
    pub(super) fn from_site<S: Site>(
        to: PlaceId,
        descriptor: &'static Descriptor,
        room: usize,
        encode: &'a Encode<'a>,
    ) -> Self {
        Shipment { to, descriptor, site: S::cell(), room, encode }
    }

    /// Sends a body that the enclosing finish counts; `checked` is the result of the round-trip check. Returns whether
    /// it was sent; if not, the finish has the error with what `explain` adds to it.
    pub(super) fn depart(
        &self,
        local: &Local,
        checked: Result<()>,
        explain: &dyn Fn(Error) -> Error,
    ) -> bool {
        let key = local.counting_key(local.scope());
        if let Err(error) = checked {
            return self.fail(local, key, explain(error));
        }
        let finish = match key.map(|key| local.finishes.depart(key, self.to)).transpose() {
            Ok(finish) => finish,
            Err(TaskRefusal::Cancelled) => return false,
            Err(refusal) => return self.fail(local, key, explain(refused(refusal))),
        };
        let head = BodyHeader { entry: self.descriptor.entry(), finish };
        let guess = BodyHeader::BYTES + self.room;
        let sent = local.send_with_size_hint(self.to, Class::Data, Handler::Spawn.id(), guess, |writer| {
            head.encode(writer);
            (self.encode)(writer)
        });
        let body = RefusedBody { to: self.to, head, encode: self.encode };
        let sent = sent.or_else(|unsent| local.services().send_refused(local, &body, unsent.into()));
        match sent {
            Ok(sent) => {
                local.calls.site_counts.borrow_mut().add(self.site, sent.bytes);
                true
            }
            Err(error) => {
                if let Some(key) = key {
                    local.finishes.undo_depart(key, self.to);
                }
                self.fail(local, key, explain(error))
            }
        }
    }

    /// Adds the error of a body that could not be sent to the enclosing finish. Returns `false`.
    #[cold]
    fn fail(&self, local: &Local, key: Option<Key>, error: Error) -> bool {
        let error = error.at(local.here(), Some(self.site.location()));
        let scope = key.map_or(Scope::DETACHED, Scope::counted);
        if let Some(key) = key {
            local.finishes.begin(key);
        }
        local.finish_task(scope, Err(error));
        false
    }

    /// Sends a body whose answer is awaited; `checked` is the result of the round-trip check.
    pub(super) fn request(&self, local: &Local, checked: Result<()>) -> Result<ReplyFuture> {
        let scope = local.scope();
        let key = local.visiting_key(scope);
        let located = |error: Error| error.at(self.to, Some(self.site.location()));
        checked.map_err(|error| error.at(local.here(), Some(self.site.location())))?;
        let finish = key.map(|key| local.finishes.request(key, self.to)).transpose();
        let finish = finish.map_err(|refusal| located(refused(refusal)))?;
        let slot = local.calls.pending.borrow_mut().open(self.to, scope, key, self.site);
        let head = BodyHeader { entry: self.descriptor.entry(), finish };
        let guess = BodyHeader::BYTES + size_of::<CallId>() + self.room;
        let sent = local.send_with_size_hint(
            self.to,
            Class::Data,
            Handler::Call.id(),
            guess,
            |writer: &mut Writer<'_>| {
                head.encode(writer);
                slot.encode(writer);
                (self.encode)(writer)
            },
        );
        match sent {
            Ok(sent) => {
                local.calls.site_counts.borrow_mut().add(self.site, sent.bytes);
                Ok(ReplyFuture::new(local, slot))
            }
            Err(error) => {
                local.calls.pending.borrow_mut().forget(slot);
                if let Some(key) = key {
                    local.finishes.settle(local, key, self.to, false);
                }
                Err(located(local.services().refused_call(local, error.into())))
            }
        }
    }
}

fn refused(refusal: TaskRefusal) -> Error {
    match refusal {
        TaskRefusal::DeadPlace(place) => Error::dead(place),
        TaskRefusal::Cancelled => Error::new(ErrorKind::Cancelled, refusal.to_string()),
        TaskRefusal::UnknownFinish | TaskRefusal::UnknownPlace(_) => {
            Error::new(ErrorKind::Misused, refusal.to_string())
        }
    }
}
