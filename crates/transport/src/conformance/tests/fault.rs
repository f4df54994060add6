//! An endpoint with one fault that wraps a correct one.
//!
//! It shows that the suite can fail; each fault is one that a real transport may have.

use crate::loopback::LoopbackEndpoint;
use crate::loopback::memory::AlignedBytes;
use crate::{
    Arrival, Block, BlockMemory, Body, Class, Endpoint, HandlerId, Inbound, MappedMemory, Message, Multicast,
    Next, PlaceId, Region, SendError,
};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    Miscounts,
    Reorders,
    Loses,
    LosesLast,
    Duplicates,
    DuplicatesLast,
    CutsLengths,
    Flips,
    FlipsRarely,
    Misaligns,
    AcceptsLong,
    SendsAbandoned,
    LeaksAbandoned,
    SharesRoom,
    IgnoresInbound,
    StaysFull,
    NeverFull,
    FlipsBlocks,
    ReusesBlocks,
    ExhaustsBlocks,
    HoardsBlocks,
    BlocksFirst,
    LosesReplies,
    SendsToItself,
    FillsBeforehand,
    DiesTwice,
    DiesEarly,
    HidesDeath,
    SendsToTheDead,
    ForgetsLeave,
    KeepsTaken,
    /// Never reports that it is ready.
    NeverReady,
    PrivateWords,
    PrivateRegions,
    DirtyRegions,
    NeverWakes,
    /// The last of several receivers of a message gets none.
    ForgetsOne,
    MasksPlaces,
}

/// A small message removed from its queue.
struct Held(PlaceId, Class, HandlerId, AlignedBytes);

pub(super) struct Broken {
    inner: LoopbackEndpoint,
    fault: Fault,
    /// Number of delivered or abandoned messages, or of sent blocks, as the fault needs.
    count: Cell<u64>,
    held: RefCell<Vec<Held>>,
    full: RefCell<BTreeSet<PlaceId>>,
    delivering: Cell<bool>,
    private: Vec<AtomicU64>,
}

/// A block whose content has changed at the second look.
struct Reused(Block, Cell<bool>);

impl BlockMemory for Reused {
    fn bytes(&self) -> &[u8] {
        let seen = self.1.replace(true);
        if seen { &[0; 1 << 15][..self.0.bytes().len()] } else { self.0.bytes() }
    }
}

struct Copied(AlignedBytes);

impl BlockMemory for Copied {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Broken {
    pub(super) fn boxed(inner: LoopbackEndpoint, fault: Fault) -> Box<dyn Endpoint> {
        let private = (0..64 * 2).map(|_| AtomicU64::new(0)).collect();
        let (count, held, full) = (Cell::new(0), RefCell::default(), RefCell::default());
        Box::new(Broken { inner, fault, count, held, full, delivering: Cell::new(false), private })
    }

    /// Returns `true` at every `period`-th call.
    fn every(&self, period: u64) -> bool {
        self.count.set(self.count.get() + 1);
        self.count.get().is_multiple_of(period)
    }

    fn alter(&self, message: Message<'_>, deliver: &mut dyn FnMut(Arrival<'_>)) {
        let Message { source, class, handler, body } = message;
        let mut give = |body: Body<'_>| deliver(Arrival::Message(Message { source, class, handler, body }));
        let hold = |bytes: &[u8]| {
            self.held.borrow_mut().push(Held(source, class, handler, AlignedBytes::copy_of(bytes)))
        };
        match (self.fault, body) {
            (Fault::Loses, _) if self.every(20) => {}
            (Fault::LosesLast, _) if handler == HandlerId(499) => {}
            (Fault::Duplicates, Body::Inline(bytes)) if self.every(20) => {
                give(Body::Inline(bytes));
                give(Body::Inline(bytes));
            }
            (Fault::DuplicatesLast, Body::Inline(bytes)) if handler == HandlerId(2) => {
                give(Body::Inline(bytes));
                hold(bytes);
            }
            (Fault::Reorders, Body::Inline(bytes)) if self.every(20) => hold(bytes),
            (Fault::BlocksFirst, Body::Inline(bytes)) => hold(bytes),
            (Fault::DiesEarly, Body::Inline(bytes)) if self.inner.is_dead(source) => hold(bytes),
            (Fault::CutsLengths, Body::Inline(bytes)) => give(Body::Inline(&bytes[..bytes.len() % 256])),
            (Fault::Misaligns, Body::Inline(bytes)) => {
                let mut copy = AlignedBytes::new(bytes.len() + 1);
                copy.bytes_mut()[1..].copy_from_slice(bytes);
                give(Body::Inline(&copy.bytes()[1..]));
            }
            (Fault::Flips, Body::Inline(bytes)) if self.every(20) => {
                give(Body::Inline(flipped(bytes).bytes()))
            }
            (Fault::FlipsRarely, Body::Inline(bytes)) if !bytes.is_empty() && self.every(1_000) => {
                give(Body::Inline(flipped(bytes).bytes()));
            }
            (Fault::FlipsBlocks, Body::Block(block)) => {
                give(Body::Block(Box::new(Copied(flipped(block.bytes())))))
            }
            (Fault::ReusesBlocks, Body::Block(block)) => {
                give(Body::Block(Box::new(Reused(block, Cell::new(false)))))
            }
            (Fault::HoardsBlocks, Body::Block(block)) => {
                give(Body::Block(Box::new(Copied(AlignedBytes::copy_of(block.bytes())))));
                std::mem::forget(block);
            }
            (_, body) => give(body),
        }
    }

    fn give_held(&self, deliver: &mut dyn FnMut(Arrival<'_>)) {
        for Held(source, class, handler, bytes) in self.held.take() {
            deliver(Arrival::Message(Message { source, class, handler, body: Body::Inline(bytes.bytes()) }));
        }
    }
}

/// Returns the same bytes with the last bit flipped.
fn flipped(bytes: &[u8]) -> AlignedBytes {
    let mut copy = AlignedBytes::copy_of(bytes);
    if let Some(last) = copy.bytes_mut().last_mut() {
        *last ^= 1;
    }
    copy
}

impl Endpoint for Broken {
    crate::forward_to!(inner: here, limits, shares_processors, wait_with, unparker, is_dead, declare_dead, other_hosts);
    crate::forward_to!(inner: is_sending, death, lending, work_model, span_sink);

    fn places(&self) -> u32 {
        self.inner.places() + u32::from(self.fault == Fault::Miscounts)
    }

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        let marked = self.full.borrow().contains(&to);
        match self.fault {
            Fault::SendsToItself if to == self.here() => return Ok(()),
            Fault::LosesReplies if self.delivering.get() => return Ok(()),
            Fault::SharesRoom if class == Class::Control && marked => return Err(SendError::Full),
            Fault::StaysFull if class == Class::Data && marked => return Err(SendError::Full),
            Fault::LeaksAbandoned if self.count.get() > 500 => return Err(SendError::Full),
            _ => {}
        }
        let target = if self.fault == Fault::MasksPlaces && to.0 == 40 { PlaceId(8) } else { to };
        if target == self.here() && to != target {
            return Ok(());
        }
        let answer = if self.fault == Fault::FillsBeforehand {
            let mut copy = vec![0; room];
            let len = fill(&mut copy).ok_or(SendError::Abandoned)?;
            self.inner.send(target, class, handler, len, &mut |bytes| {
                bytes.copy_from_slice(&copy[..len]);
                Some(len)
            })
        } else {
            self.inner.send(target, class, handler, room, fill)
        };
        match (self.fault, &answer) {
            (Fault::SharesRoom | Fault::StaysFull, Err(SendError::Full)) if class == Class::Data => {
                self.full.borrow_mut().insert(to);
            }
            (Fault::SharesRoom, Ok(())) if class == Class::Data => {
                self.full.borrow_mut().remove(&to);
            }
            (Fault::NeverFull, Err(SendError::Full)) => return Ok(()),
            (Fault::AcceptsLong, Err(SendError::TooLong { .. })) => return Ok(()),
            (Fault::SendsToTheDead, Err(SendError::DeadPlace(_))) => return Ok(()),
            (Fault::LeaksAbandoned, Err(SendError::Abandoned)) => self.count.set(self.count.get() + 1),
            (Fault::SendsAbandoned, Err(SendError::Abandoned)) => {
                let _ = self.inner.send(to, class, handler, 0, &mut |_| Some(0));
            }
            _ => {}
        }
        answer
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        if self.fault == Fault::ExhaustsBlocks && self.count.get() >= 400 {
            return Err(SendError::Full);
        }
        let answer = self.inner.send_block(to, class, handler, len, fill);
        if answer.is_ok() && self.fault == Fault::ExhaustsBlocks {
            self.count.set(self.count.get() + 1);
        }
        answer
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let inbound = if self.fault == Fault::IgnoresInbound { Inbound::All } else { inbound };
        self.delivering.set(true);
        if self.fault == Fault::DuplicatesLast {
            self.give_held(deliver);
        }
        let count = self.inner.progress(inbound, &mut |arrival| match arrival {
            Arrival::Message(message) => {
                let held_before = self.held.borrow().len();
                self.alter(message, deliver);
                if self.fault == Fault::Reorders && held_before > 0 {
                    self.give_held(deliver);
                }
            }
            Arrival::Died { .. } if self.fault == Fault::HidesDeath => {}
            Arrival::Died { place, cause } => {
                if self.fault == Fault::DiesTwice {
                    deliver(Arrival::Died { place, cause: cause.clone() });
                }
                deliver(Arrival::Died { place, cause });
                if self.fault == Fault::DiesEarly {
                    self.give_held(deliver);
                }
            }
        });
        if self.fault == Fault::BlocksFirst {
            self.give_held(deliver);
        }
        self.delivering.set(false);
        count
    }

    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        let mut wanted = false;
        let next = self.inner.take_next(from, class, &mut |handler, bytes| {
            wanted = wants(handler, bytes);
            wanted && self.fault != Fault::KeepsTaken
        });
        if wanted { Next::Taken } else { next }
    }

    fn is_ready(&self) -> bool {
        self.fault != Fault::NeverReady && self.inner.is_ready()
    }

    fn leave(&self) {
        if self.fault != Fault::ForgetsLeave {
            self.inner.leave();
        }
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        self.inner.multicast().map(|_| self as &dyn Multicast)
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        match self.fault {
            Fault::PrivateWords | Fault::PrivateRegions | Fault::DirtyRegions | Fault::NeverWakes => {
                Some(self)
            }
            _ => self.inner.shared_memory(),
        }
    }
}

impl Broken {
    /// Returns the memory of the endpoint behind this one.
    fn memory(&self) -> &dyn MappedMemory {
        self.inner.shared_memory().expect("worlds with a fault have it")
    }
}

impl MappedMemory for Broken {
    fn word(&self, place: PlaceId, index: u32) -> Option<&AtomicU64> {
        match self.fault {
            Fault::PrivateWords => self.private.get((place.0 * 2 + index) as usize),
            _ => self.memory().word(place, index),
        }
    }

    fn words(&self) -> u32 {
        self.memory().words()
    }

    fn allocate(&self, words: u64) -> Option<Region> {
        let region = self.memory().allocate(words)?;
        if self.fault == Fault::DirtyRegions && self.every(20) {
            self.memory().view(region)?[0].store(1, Ordering::Relaxed);
        }
        Some(region)
    }

    fn view(&self, region: Region) -> Option<&[AtomicU64]> {
        match self.fault {
            Fault::PrivateRegions => self.memory().view(Region { place: self.here(), ..region }),
            _ => self.memory().view(region),
        }
    }

    fn hold(&self) -> Rc<dyn Any> {
        self.memory().hold()
    }

    fn free(&self, region: Region) {
        self.memory().free(region);
    }

    fn wake(&self, place: PlaceId) -> bool {
        self.fault == Fault::NeverWakes || self.memory().wake(place)
    }
}

impl Multicast for Broken {
    fn bytes(&self, class: Class) -> Range<usize> {
        Multicast::bytes(&self.inner, class)
    }

    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let heard = to.len() - usize::from(self.fault == Fault::ForgetsOne);
        self.inner.send_to_all(&to[..heard], class, handler, message)
    }
}
