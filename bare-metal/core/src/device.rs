//! The device of the operating system Xipx: a channel between threads of two cores over their message buffers.
//!
//! After M. Ziwisky and D. Brylow, "BareMichael" (MARC 2012), section IV A. A core has several devices, each open on a
//! channel and with preallocated buffers. An interrupt or a polling thread moves the entries of the core's ring into
//! the buffers of the device of their channel, and signals the thread that waits there. An entry stays in the ring
//! while its channel has no open device, or the device no free buffer; so no entry is lost, and later ones wait.

use crate::interrupt::{self, Guarded, Hook};
use crate::message::{self, Channels, LONGEST, MessageError};
use crate::thread::{self, ThreadId};
use crate::{bell, chip, timer};
use bare_mpb::Header;
use core::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of devices of a core.
pub const DEVICES_MAX: usize = 4;
/// Number of messages that a device can hold in addition to those in the ring.
pub const BUFFERS: usize = 4;
/// Time for which a polling reader spins before it waits for the doorbell; longer than a sleep.
const POLL_NANOSECONDS: u64 = 1_500_000;
/// Number of ring checks between two clock reads.
const LOOKS: u32 = 50;
/// Timer ticks between two checks of a waiting reader for the end of its program.
const TICKS_TO_CHECK: u32 = 16;

/// The way in which a reader learns of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Polls the ring for some time, then waits for an interrupt.
    Poll,
    /// Waits for an interrupt for each message.
    Interrupt,
}

impl core::fmt::Display for NotOpened {
    fn fmt(&self, text: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NotOpened::TooMany => write!(text, "{DEVICES_MAX} devices are open; a core has no more"),
            NotOpened::ChannelTaken => text.write_str("another device of this core is open on the channel"),
        }
    }
}

/// An open device of this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(u8);

/// Reason why a device was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// [`DEVICES_MAX`] are open.
    TooMany,
    /// Another device of this core is open on the channel.
    ChannelTaken,
}

#[derive(Clone, Copy)]
struct Buffer {
    header: Header,
    payload: [u8; LONGEST],
}

struct Slot {
    is_open: bool,
    channel: u16,
    mode: Mode,
    /// Rank and channel to which `write` sends.
    peer: (usize, u16),
    waiting: Option<ThreadId>,
    /// Total messages put into buffers and taken out.
    put: usize,
    taken: usize,
    buffers: [Buffer; BUFFERS],
}

static SLOTS: Guarded<[Slot; DEVICES_MAX]> = Guarded::new([const { Slot::new() }; DEVICES_MAX]);
static TICKS: AtomicU32 = AtomicU32::new(0);

impl Slot {
    const fn new() -> Slot {
        let buffer = Buffer { header: message::NOTHING, payload: [0; LONGEST] };
        Slot {
            is_open: false,
            channel: 0,
            mode: Mode::Poll,
            peer: (0, 0),
            waiting: None,
            put: 0,
            taken: 0,
            buffers: [buffer; BUFFERS],
        }
    }

    /// Takes the oldest message from the buffers.
    fn take(&mut self, into: &mut [u8]) -> Option<Result<Header, MessageError>> {
        if self.put == self.taken {
            return None;
        }
        let buffer = &self.buffers[self.taken % BUFFERS];
        let bytes = buffer.header.length as usize;
        let Some(target) = into.get_mut(..bytes) else {
            return Some(Err(MessageError::TooLong { bytes, allowed: into.len() }));
        };
        target.copy_from_slice(&buffer.payload[..bytes]);
        self.taken += 1;
        Some(Ok(buffer.header))
    }
}

/// Moves entries of the ring into the buffers of their devices, and signals the threads that wait there.
fn move_messages(slots: &mut [Slot; DEVICES_MAX]) {
    let ring = message::ring(chip::core());
    while let Some(header) = ring.peek() {
        let slot = slots.iter_mut().find(|slot| slot.is_open && slot.channel == header.target_channel);
        let Some(slot) = slot.filter(|slot| slot.put - slot.taken < BUFFERS) else { return };
        let buffer = &mut slot.buffers[slot.put % BUFFERS];
        // An entry never exceeds `LONGEST`, the limit of `message::send`.
        let Ok(header) = ring.receive(&mut buffer.payload) else { return };
        buffer.header = header;
        slot.put += 1;
        slot.waiting.take().into_iter().for_each(thread::signal);
    }
}

/// Handles the interrupt of a message, or with 1 that of the timer, which covers a missing doorbell.
fn on_interrupt(is_timer: usize) -> usize {
    SLOTS.with(|slots| {
        move_messages(slots);
        if is_timer == 1 && TICKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(TICKS_TO_CHECK) {
            slots.iter_mut().filter_map(|slot| slot.waiting.take()).for_each(thread::signal);
        }
    });
    0
}

impl Device {
    /// Opens a device on `channel` of this core; it writes to `peer_channel` of the rank `peer`.
    ///
    /// # Errors
    /// No device is free, or the channel already has one.
    pub fn open(channel: u16, peer: usize, peer_channel: u16, mode: Mode) -> Result<Device, NotOpened> {
        thread::start();
        interrupt::set_hook(Hook::MoveMessages, on_interrupt);
        SLOTS.with(|slots| {
            if slots.iter().any(|slot| slot.is_open && slot.channel == channel) {
                return Err(NotOpened::ChannelTaken);
            }
            let number = slots.iter().position(|slot| !slot.is_open).ok_or(NotOpened::TooMany)?;
            let slot = &mut slots[number];
            (slot.is_open, slot.channel, slot.peer, slot.mode) = (true, channel, (peer, peer_channel), mode);
            request_bell(slots);
            Ok(Device(number as u8))
        })
    }

    /// Closes the device; messages in its buffers are dropped.
    pub fn close(self) {
        SLOTS.with(|slots| {
            let slot = &mut slots[usize::from(self.0)];
            (slot.is_open, slot.taken) = (false, slot.put);
            request_bell(slots);
        });
    }

    /// Waits for the oldest message, and returns its header; only one thread at a time may call it.
    ///
    /// # Errors
    /// The message is longer than `into`, or a core has stopped.
    pub fn read(self, into: &mut [u8]) -> Result<Header, MessageError> {
        let mut begin = None;
        loop {
            let (found, is_polling) = self.look(into);
            if let Some(message) = found {
                return message;
            }
            if !is_polling {
                self.wait()?;
                continue;
            }
            // These checks do not disable interrupts; a message that an interrupt has moved meanwhile is found
            // afterwards.
            let ring = message::ring(chip::core());
            if (0..LOOKS).any(|_| ring.peek().is_some()) {
                continue;
            }
            let now = timer::nanoseconds();
            if thread::has_others_ready() {
                thread::yield_now();
            } else if now - *begin.get_or_insert(now) > POLL_NANOSECONDS {
                self.wait()?;
            }
        }
    }

    /// Takes the oldest message, if there is one, from a buffer or directly from the ring.
    fn look(self, into: &mut [u8]) -> (Option<Result<Header, MessageError>>, bool) {
        SLOTS.with(|slots| {
            let number = usize::from(self.0);
            let is_polling = slots[number].mode == Mode::Poll;
            if let Some(message) = slots[number].take(into) {
                move_messages(slots);
                return (Some(message), is_polling);
            }
            let ring = message::ring(chip::core());
            if is_polling && ring.peek().is_some_and(|head| head.target_channel == slots[number].channel) {
                let message = ring.receive(into).map_err(|refused| message::too_long(refused, into.len()));
                return (Some(message), is_polling);
            }
            move_messages(slots);
            (slots[number].take(into), is_polling)
        })
    }

    /// Waits for a signal, unless a message has arrived meanwhile.
    fn wait(self) -> Result<(), MessageError> {
        let number = usize::from(self.0);
        if let Some(stopped) = chip::stopped_core(chip::Needed::Any) {
            // The awaited message may have arrived before the other core stopped.
            let has_message = SLOTS.with(|slots| {
                move_messages(slots);
                slots[number].put != slots[number].taken
            });
            return if has_message { Ok(()) } else { Err(MessageError::Stopped(stopped)) };
        }
        SLOTS.with(|slots| {
            slots[number].waiting = Some(thread::current());
            request_bell(slots);
            // Later writers see the request; earlier messages are moved now, with the signal.
            move_messages(slots);
        });
        thread::wait();
        SLOTS.with(request_bell);
        Ok(())
    }

    /// Sends a message to the peer, and waits while its buffer is full.
    ///
    /// # Errors
    /// The message is too long, or a core has stopped.
    pub fn write(self, payload: &[u8]) -> Result<(), MessageError> {
        let (channel, (rank, target)) = SLOTS.with(|slots| {
            let slot = &slots[usize::from(self.0)];
            (slot.channel, slot.peer)
        });
        message::send(rank, Channels { source: channel, target }, payload)
    }

    /// Returns the number of the device, which can be passed to a thread as its argument.
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Returns the open device with a number.
    pub fn of_number(number: usize) -> Option<Device> {
        let is_open = SLOTS.with(|slots| slots.get(number).is_some_and(|slot| slot.is_open));
        is_open.then_some(Device(number as u8))
    }
}

/// Requests doorbells from senders if a device is open for interrupts, or if a thread waits.
fn request_bell(slots: &mut [Slot; DEVICES_MAX]) {
    let is_needed =
        slots.iter().any(|slot| slot.is_open && (slot.mode == Mode::Interrupt || slot.waiting.is_some()));
    bell::request(is_needed);
}
