//! Interrupts between the cores of a modelled chip, from inside a program.
//!
//! The SCC has a controller through which a core interrupts up to 32 others at once, by writing a mask of targets into
//! a register; a receiver reads the sources from another register. [`raise`] makes such a request, and [`handle`] sets
//! a place's handler.
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
//! A handler runs between two steps of its place; it does not interrupt a task that computes, because a step is
//! indivisible in the model. There are no interrupts on a real machine. `docs/chip/interrupts.md` has their costs.

use super::clocks::{ask, ask_for};
use crate::{Place, here};
use isles_protocol::ordered::OrderedMap;
use isles_transport::PlaceId;
use isles_transport_chip::ChipWorld;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

/// The handler of a place.
type Action = Rc<RefCell<dyn FnMut(Place)>>;

thread_local! {
    /// The handlers of the places that run in this thread.
    static HANDLERS: RefCell<OrderedMap<PlaceId, Action>> = const { RefCell::new(OrderedMap::new()) };
}

/// Guard of an interrupt handler: the place takes interrupts while it exists; see [`handle`].
#[must_use = "the place takes interrupts until this is dropped"]
pub struct InterruptHandler {
    place: PlaceId,
    /// Not `Send`: the guard belongs to its place.
    _stays: PhantomData<Rc<()>>,
}

impl InterruptHandler {
    /// Masks or unmasks interrupts. Masked interrupts wait at the controller; none is lost.
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

/// Sets `action` as the handler of this place, called with the source of each interrupt, until the returned guard is
/// dropped. Interrupts that have arrived before are handled first.
///
/// The action runs between two steps of the place and cannot wait; typically it changes a [`Monitor`](crate::Monitor)
/// on which tasks wait, or raises an interrupt itself. Returns `None` on a real machine, and on a chip without an
/// interrupt controller.
///
/// # Panics
/// Outside of a task, or if the place already has a handler.
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

/// Interrupts `targets`; returns `false`, without effect, if this machine has no interrupts. One request covers as many
/// targets as the controller's mask has bits, 32 on the SCC.
///
/// An interrupt carries only its source. Each is handled once by its target, in the order of arrival; one for a place
/// without a handler waits for a handler.
///
/// # Panics
/// On a chip, outside of a task.
pub fn raise(targets: &[Place]) -> bool {
    let targets: Vec<PlaceId> = targets.iter().map(|place| PlaceId(place.index() as u32)).collect();
    ask(false, |world, place| world.raise(place, &targets).is_ok())
}

/// Calls the handler of `place`, which is the entered place, for each interrupt that has arrived.
pub(super) fn dispatch(world: &ChipWorld, place: PlaceId) {
    let Some(action) = HANDLERS.with_borrow(|handlers| handlers.get(place).cloned()) else { return };
    while let Some(source) = world.take_interrupt(place) {
        let source = Place::new(source.index()).expect("it is a place of this run");
        (action.borrow_mut())(source);
    }
}
