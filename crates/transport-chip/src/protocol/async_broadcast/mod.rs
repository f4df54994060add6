//! The asynchronous broadcast: a message to several places is forwarded down a tree of their cores' systems, by
//! interrupts.
//!
//! ```text
//! header             one line for each slot            whose message it holds
//! done               one line for each child and slot  "I have fetched it", set by that child, cleared by the owner
//! acknowledgements   two bytes for each other place    how many messages of here it has read, of control and of data
//! slots              two                               a message on its way to the children of its tree
//! ```
//!
//! A receiver is interrupted even while its place computes. Its interrupt service fetches the message into a slot, if
//! it has children and a slot is free; otherwise into private memory, from where it is put into a slot later. So no
//! place waits for a slot in order to empty another's, and any number of simultaneous broadcasts cannot deadlock. The
//! place finds the message in its memory at its next poll. This follows the asynchronous form of OC-Bcast (6th MARC
//! symposium, 2012, paper 5); `isles_chip::bare::async_broadcast` is the same on bare cores.
//!
//! All times of a message are computed when it is sent, in `tree`. The unread messages of one sender at a place are
//! bounded; an acknowledgement for half of the bound frees that room. The layout and its reasons are in
//! `docs/design/chip-protocols.md`. Invariants: a slot is written only after all children have fetched its previous
//! message; each place has at most [`UNREAD_MAX`] unread messages of one sender and class, as known to the sender, so
//! control never waits behind unread data.

mod tree;

use crate::cores::interrupt::InterruptService;
use crate::cores::{Cores, Costs};
use crate::protocol::{Outgoing, OutgoingMulticast, Wakeups};
use crate::report::TimeCategory;
use crate::world::WorldError;
use isles_chip::quantity::Picoseconds;
use isles_transport::ordered::OrderedMap;
use isles_transport::{Class, PlaceId};
use std::ops::Range;

/// Slots of a buffer.
const SLOTS: usize = 2;

/// Lines of a slot: with lines of 32 bytes, a chunk of half a kilobyte with its header.
const SLOT_LINES: u32 = 18;

/// Maximum number of unread messages of one sender and class at a place. With ten times as many, senders get so far
/// ahead that slots are mostly taken and fetched messages are copied again: 16 KiB take half as long again.
const UNREAD_MAX: u32 = 16;

const _: () = assert!(UNREAD_MAX <= u8::MAX as u32, "a byte counts them");

/// A slot as known to its owner's system.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Time at which all children have fetched its content.
    free: Picoseconds,
    /// Number of children, whose flags must be read before the slot is rewritten.
    children: u32,
}

/// State of one place and its core's system.
#[derive(Default)]
struct PlaceState {
    system: InterruptService,
    slots: [Slot; SLOTS],
    /// Number of sent messages not yet acknowledged, by receiver and class.
    unread: OrderedMap<(PlaceId, Class), u32>,
    /// Number of read messages not yet acknowledged, by sender and class.
    owed: OrderedMap<(PlaceId, Class), u32>,
    /// Acknowledgements in flight to this place.
    acknowledgements: Vec<Acknowledgement>,
    /// `true` if the place has found no room since its last poll for acknowledgements; it polls in its next turn.
    waits: bool,
    /// Start of the turn of the last poll.
    looked: Picoseconds,
}

/// The systems of all cores of a run.
pub(crate) struct AsyncBroadcast {
    /// Number of children of each node of a tree.
    children: u32,
    line_bytes: u32,
    place_states: Vec<PlaceState>,
    /// Times at which the receivers find the last message.
    found: OrderedMap<PlaceId, Picoseconds>,
}

impl AsyncBroadcast {
    /// Makes trees with `children` children per node, at least one, among the cores of `places` places.
    ///
    /// # Errors
    /// [`WorldError`]: the chip lacks something that it needs.
    pub(crate) fn new(children: u32, places: u32, costs: &Costs) -> Result<AsyncBroadcast, WorldError> {
        if costs.buffer_lines() == 0 {
            return Err(WorldError::NoBuffers);
        }
        costs.check_interrupts()?;
        Ok(AsyncBroadcast {
            children: children.clamp(1, places.saturating_sub(1).max(1)),
            line_bytes: costs.line_bytes(),
            place_states: (0..places).map(|_| PlaceState::default()).collect(),
            found: OrderedMap::new(),
        })
    }

    /// Returns the number of lines that it takes of each buffer.
    pub(crate) fn lines(&self) -> u32 {
        SLOTS as u32 * (1 + self.children + SLOT_LINES) + self.acknowledgement_lines()
    }

    /// Returns the number of lines with the acknowledgements of all others, two bytes for each.
    fn acknowledgement_lines(&self) -> u32 {
        (2 * (self.place_states.len() as u32 - 1)).div_ceil(self.line_bytes)
    }

    /// Returns the supported lengths of messages.
    pub(crate) fn message_bytes(&self) -> Range<usize> {
        1..(SLOT_LINES * self.line_bytes) as usize + 1
    }

    /// Returns the time at which `place`, a receiver of the last message, finds it.
    pub(crate) fn found(&self, place: PlaceId) -> Picoseconds {
        self.found.get(place).copied().expect("each receiver was found")
    }

    /// Returns the slot of `place` that is free first.
    fn first_free(&self, place: PlaceId) -> (usize, Slot) {
        let slots = self.place_states[place.index()].slots.into_iter().enumerate();
        slots.min_by_key(|(_, slot)| slot.free).expect("there are two")
    }
}

/// An acknowledgement of read messages.
struct Acknowledgement {
    arrival: Picoseconds,
    reader: PlaceId,
    class: Class,
    messages: u32,
}

impl AsyncBroadcast {
    /// Returns `true` if each receiver has room for another unread message. Without room, the place polls for
    /// acknowledgements now and in its next turn.
    pub(crate) fn has_room(&mut self, cores: &mut Cores, out: &OutgoingMulticast<'_>) -> bool {
        if self.is_full(out) {
            self.look(cores, out.from);
        }
        let is_full = self.is_full(out);
        self.place_states[out.from.index()].waits |= is_full;
        !is_full
    }

    /// Returns `true` if one of the receivers holds the maximum of unread messages.
    fn is_full(&self, out: &OutgoingMulticast<'_>) -> bool {
        let unread = &self.place_states[out.from.index()].unread;
        out.to.iter().any(|to| unread.get((*to, out.class)).is_some_and(|unread| *unread >= UNREAD_MAX))
    }

    /// Charges `place` for the jobs of its core's system while it was busy.
    pub(crate) fn settle(&mut self, cores: &mut Cores, place: PlaceId) {
        self.place_states[place.index()].system.settle(cores, place);
    }

    /// Polls for acknowledgements if `place` has found no room since its last poll.
    pub(crate) fn make_progress(&mut self, cores: &mut Cores, place: PlaceId) {
        if std::mem::take(&mut self.place_states[place.index()].waits) {
            self.look(cores, place);
        }
    }

    /// Returns the duration of [`AsyncBroadcast::make_progress`].
    pub(crate) fn attention(&self, cores: &Cores, place: PlaceId) -> Picoseconds {
        let waits = self.place_states[place.index()].waits;
        if waits { cores.own_read(place, self.acknowledgement_lines()) } else { Picoseconds::ZERO }
    }

    /// Takes the acknowledgements that had arrived at the start of the turn; once per turn.
    fn look(&mut self, cores: &mut Cores, place: PlaceId) {
        let (seen, acknowledgement_lines) = (cores.present(), self.acknowledgement_lines());
        let place_state = &mut self.place_states[place.index()];
        if place_state.looked == seen {
            return;
        }
        place_state.looked = seen;
        cores.read_own_lines(place, acknowledgement_lines, TimeCategory::Polling);
        for acknowledgement in
            place_state.acknowledgements.extract_if(.., |acknowledgement| acknowledgement.arrival <= seen)
        {
            if let Some(unread) = place_state.unread.get_mut((acknowledgement.reader, acknowledgement.class))
            {
                *unread -= acknowledgement.messages;
            }
        }
    }

    /// Returns the arrival time of the first acknowledgement that `place` waits for, in the past or the future.
    pub(crate) fn first_acknowledgement(&self, place: PlaceId) -> Option<Picoseconds> {
        let place_state = &self.place_states[place.index()];
        let arrivals = place_state.acknowledgements.iter().map(|acknowledgement| acknowledgement.arrival);
        if place_state.waits { arrivals.min() } else { None }
    }

    /// Records that a message waits at its receiver.
    pub(crate) fn note_sent(&mut self, out: &Outgoing) {
        *self.place_states[out.from.index()].unread.get_or_default((out.to, out.class)) += 1;
    }

    /// Records that `place` has read a message of `source`.
    pub(crate) fn note_read(&mut self, source: PlaceId, class: Class, place: PlaceId) {
        *self.place_states[place.index()].owed.get_or_default((source, class)) += 1;
    }

    /// Acknowledges messages that `place` has read to senders that may wait for it, and adds the arrivals to `wakeups`.
    pub(crate) fn write_acknowledgements(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        wakeups: &mut Wakeups,
    ) {
        let is_much = |messages: &u32| *messages >= UNREAD_MAX / 2;
        let owed = &self.place_states[place.index()].owed;
        let due: Vec<_> = owed.iter().filter(|(_, messages)| is_much(messages)).map(|(to, _)| to).collect();
        for (source, class) in due {
            let messages = self.place_states[place.index()].owed.remove((source, class)).unwrap_or_default();
            cores.write_lines(place, source, 1);
            let arrival = cores.now(place);
            self.place_states[source.index()].acknowledgements.push(Acknowledgement {
                arrival,
                reader: place,
                class,
                messages,
            });
            wakeups.push((source, arrival));
        }
    }

    /// Forgets everything that `place` keeps for `gone`, which reads nothing more. Nothing will be sent to it, so
    /// forgetting its unread messages only frees memory.
    pub(crate) fn forget(&mut self, place: PlaceId, gone: PlaceId) {
        let place_state = &mut self.place_states[place.index()];
        place_state.unread.retain(|(reader, _), _| reader != gone);
        place_state.acknowledgements.retain(|acknowledgement| acknowledgement.reader != gone);
        self.place_states[gone.index()].owed.retain(|(source, _), _| source != place);
    }
}
