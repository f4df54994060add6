//! Tasks whose place the runtime chooses: the state behind `spawn_anywhere!`.
//!
//! The place is the decision of `isles_protocol::sharing`; here are the part of such a task that travels and the
//! message that reports its end. Invariant: a task reports its end once, however it ends.

use crate::table::service::Service;
use isles_protocol::PlaceId;
use isles_protocol::sharing::LeastBusy;
use isles_runtime::service::{Inquiry, Refused};
use isles_runtime::wire::Reader;
use isles_runtime::{Local, Place};
use isles_transport::{Class, HandlerId};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::time::Duration;

/// Number of the message that reports the end of a task whose place was chosen.
pub(crate) const PLACED: HandlerId = HandlerId(12);

/// Load of each place, as far as this place has placed tasks there; nothing before the first of them.
pub(crate) struct PlacedTasks(RefCell<Option<LeastBusy>>);

impl Service for PlacedTasks {
    const ROW: usize = 4;

    fn new(_here: PlaceId, _places: u32) -> PlacedTasks {
        PlacedTasks(RefCell::new(None))
    }

    fn place_died(&self, _local: &Local, place: PlaceId) {
        if let Some(chooser) = &mut *self.0.borrow_mut() {
            chooser.died(place);
        }
    }

    /// Nobody waits here, so there is nothing to explain.
    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        Vec::new()
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

/// Destination of a task, and the place to tell when it ends; travels with its captures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ChosenPlace {
    to: Place,
    origin: Place,
}

impl ChosenPlace {
    /// Chooses the place with the fewest of the tasks that this place has placed, and counts one more for it.
    ///
    /// If the task cannot be sent (its captures do not encode), it counts for the rest of the run: its finish ends with
    /// the error, and the place gets fewer tasks than others.
    #[track_caller]
    pub fn choose() -> ChosenPlace {
        Local::with(|local| {
            let here = local.here();
            let mut placed = PlacedTasks::of(local).0.borrow_mut();
            let chooser = placed
                .get_or_insert_with(|| LeastBusy::new(here, local.places(), |place| !local.is_dead(place)));
            ChosenPlace { to: Place::of(chooser.place_task()), origin: Place::of(here) }
        })
    }

    /// Returns the place that was chosen.
    pub fn place(self) -> Place {
        self.to
    }

    /// Returns a guard that reports the end of the task when dropped.
    pub fn begun(self) -> PlacedTask {
        PlacedTask(self.origin.id())
    }
}

/// A task that was placed and has not ended.
pub struct PlacedTask(PlaceId);

impl Drop for PlacedTask {
    fn drop(&mut self) {
        // Outside of any place, the run is over.
        let _ = Local::try_with(|local| {
            if self.0 == local.here() {
                let _ = ended(local, self.0);
            } else {
                // A place that has died chooses nothing any more.
                let _ = local.send(self.0, Class::Control, PLACED, |_| Ok(()));
            }
        });
    }
}

/// Receives the end of a task that this place has placed at `source`.
pub(crate) fn receive(local: &Local, source: PlaceId, _reader: &mut Reader<'_>) -> Result<(), Refused> {
    ended(local, source)
}

fn ended(local: &Local, place: PlaceId) -> Result<(), Refused> {
    let mut placed = PlacedTasks::of(local).0.borrow_mut();
    let ended = placed.as_mut().map(|chooser| chooser.ended(place));
    match ended {
        Some(Ok(())) => Ok(()),
        _ => Err(Refused::of_service("it ends a task that was not placed there")),
    }
}
