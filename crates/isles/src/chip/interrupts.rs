//! Interrupts between the cores of a modelled chip, from inside a program.
//!
//! The SCC has a controller through which a core interrupts up to 32 others by one instruction: it writes a mask of
//! targets into a register. A receiver reads from another who has called it. [`raise`] is that request, and [`handle`]
//! says what a place does when it is called.
//!
//! ```
//! use isles::prelude::*;
//! use isles::interrupts;
//! use std::rc::Rc;
//!
//! /// Each place calls all others and waits until all others have called it.
//! async fn all_call_all() -> isles::Result<()> {
//!     let calls = Rc::new(Monitor::new(Vec::new()));
//!     let note = Rc::clone(&calls);
//!     // None on a machine that has no interrupts: use messages there.
//!     let handler = interrupts::handle(move |source| note.atomic(|calls| calls.push(source)));
//!     let Some(_handler) = handler else { return Team::world().barrier().await };
//!     let others: Vec<Place> = places().filter(|place| *place != here()).collect();
//!     interrupts::raise(&others);
//!     calls.when(|calls| calls.len() == others.len(), |_| ()).await;
//!     Ok(())
//! }
//! ```
//!
//! A handler is run between two steps of its place. A task that computes is not broken off: the model counts a step as
//! one piece. There are no interrupts on a real machine. What they cost: `docs/chip/interrupts.md`.

use super::clocks::{ask, ask_for};
use crate::{Place, here};
use isles_protocol::ordered::OrderedMap;
use isles_transport::PlaceId;
use isles_transport_chip::ChipWorld;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

/// Action of a place when it is interrupted.
type Action = Rc<RefCell<dyn FnMut(Place)>>;

thread_local! {
    /// The handlers of the places that run in this thread.
    static HANDLERS: RefCell<OrderedMap<PlaceId, Action>> = const { RefCell::new(OrderedMap::new()) };
}

/// A place takes interrupts while this lives; see [`handle`].
#[must_use = "the place takes interrupts until this is dropped"]
pub struct InterruptHandler {
    place: PlaceId,
    /// It belongs to its place.
    _stays: PhantomData<Rc<()>>,
}

impl InterruptHandler {
    /// Sets whether interrupts wait at the controller instead of calling the handler. None is lost.
    ///
    /// # Panics
    /// Outside of a task.
    pub fn mask(&self, masked: bool) {
        ask((), |world, place| set_taken(world, place, !masked));
    }
}

fn set_taken(world: &ChipWorld, place: PlaceId, taken: bool) {
    world.take_interrupts(place, taken).expect("a place with a handler is on a chip with interrupts");
}

impl Drop for InterruptHandler {
    fn drop(&mut self) {
        HANDLERS.with_borrow_mut(|handlers| handlers.remove(self.place));
        ask_for((), || self.place, |world, place| set_taken(world, place, false));
    }
}

/// Lets `action` be called with the source of each interrupt of this place, until what is returned is dropped. What has
/// arrived before is handled first.
///
/// The action runs between two steps of the place and cannot wait: it changes a [`Monitor`](crate::Monitor), on which
/// tasks wait, or raises an interrupt itself. `None` on a real machine, and on a chip without an interrupt controller.
///
/// # Panics
/// Outside of a task, and if the place has a handler.
#[track_caller]
pub fn handle(action: impl FnMut(Place) + 'static) -> Option<InterruptHandler> {
    let place = ask(None, |world, place| {
        world.take_interrupts(place, true).ok()?;
        Some(place)
    })?;
    let before = HANDLERS.with_borrow_mut(|handlers| handlers.insert(place, Rc::new(RefCell::new(action))));
    assert!(before.is_none(), "{} already has an interrupt handler", here());
    Some(InterruptHandler { place, _stays: PhantomData })
}

/// Interrupts these places; returns whether this machine has interrupts. One request names as many of them as the
/// controller's mask has bits, 32 on the SCC.
///
/// An interrupt says who raised it and nothing else. Each is taken once by its target, in the order of their arrival;
/// one for a place without a handler waits for it.
///
/// # Panics
/// On a chip, outside of a task.
pub fn raise(targets: &[Place]) -> bool {
    let targets: Vec<PlaceId> = targets.iter().map(|place| PlaceId(place.index() as u32)).collect();
    ask(false, |world, place| world.raise(place, &targets).is_ok())
}

/// Calls the handler of `place`, which is entered, for all interrupts that have arrived; one after the other.
pub(super) fn dispatch(world: &ChipWorld, place: PlaceId) {
    let Some(action) = HANDLERS.with_borrow(|handlers| handlers.get(place).cloned()) else { return };
    while let Some(source) = world.take_interrupt(place) {
        let source = Place::new(source.index()).expect("it is a place of this run");
        (action.borrow_mut())(source);
    }
}
