//! The operations of a program on its core.
//!
//! Each operation ends when the core can do the next one: a write when the line has arrived, a read when the data are
//! there. Private memory is addressed by lines, message buffers by core and line. Nothing here is coherent: writers and
//! readers of a line synchronize by flags.

use super::state::BareState;
use super::{LINE_BYTES, Line};
use crate::cache::Access;
use crate::quantity::{Picoseconds, Rate};
use crate::topology::CoreId;
use crate::{Chip, ControllerId, Preset};
use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::Poll;

/// A handle of a core; clones refer to the same core.
#[derive(Clone)]
pub struct BareCore {
    pub(super) id: CoreId,
    state: Rc<RefCell<BareState>>,
}

impl BareCore {
    pub(super) fn new(id: CoreId, state: Rc<RefCell<BareState>>) -> BareCore {
        BareCore { id, state }
    }

    #[inline]
    pub(super) fn state(&self) -> RefMut<'_, BareState> {
        self.state.borrow_mut()
    }

    /// Returns the number of the core.
    #[inline]
    pub fn id(&self) -> CoreId {
        self.id
    }

    /// Returns another core of the chip, to set its rate.
    pub fn other(&self, id: CoreId) -> BareCore {
        assert!(id.0 < self.state().cores(), "core {id} is not on the chip");
        BareCore::new(id, Rc::clone(&self.state))
    }

    /// Returns the present time.
    #[inline]
    pub fn now(&self) -> Picoseconds {
        self.state().now
    }

    /// Lines of each message buffer.
    pub fn buffer_lines(&self) -> u32 {
        self.state().buffer_lines()
    }

    /// Suspends this program until the chip resumes it.
    #[inline]
    pub(super) async fn suspended(&self) {
        let mut was = false;
        poll_fn(|_| if std::mem::replace(&mut was, true) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    #[inline]
    pub(super) async fn until(&self, time: Picoseconds) {
        let is_next = self.state().resume_or_pass(self.id, time);
        if !is_next {
            self.suspended().await;
        }
    }

    /// Computes for `cycles` cycles.
    #[inline]
    pub async fn compute(&self, cycles: u64) {
        let end = {
            let state = self.state();
            state.now + state.cycles(self.id, cycles)
        };
        self.until(end).await;
    }

    /// Reads a line of the message buffer of `of`, through the first-level cache.
    pub async fn read_line(&self, of: CoreId, line: u32) -> Line {
        let (end, gone) = {
            let mut state = self.state();
            let now = state.now;
            (state.read_end(self.id, of, now), state.private(self.id).caches.pass(of.0, line))
        };
        self.until(end).await;
        let content = self.state().line(of, line);
        self.write_back(gone).await;
        content
    }

    /// Writes a line into the message buffer of `of`.
    pub async fn write_line(&self, of: CoreId, line: u32, content: Line) {
        let end = {
            let mut state = self.state();
            let now = state.now;
            state.write_end(self.id, of, now)
        };
        self.until(end).await;
        self.state().set_line(of, line, content);
    }

    /// Polls a line of its own message buffer, with `cycles` cycles of instructions per poll, until it is `ready`;
    /// returns its content.
    pub async fn wait_line(&self, line: u32, cycles: u64, ready: impl Fn(&Line) -> bool) -> Line {
        loop {
            let content = self.read_line(self.id, line).await;
            self.compute(cycles).await;
            if ready(&content) {
                return content;
            }
            // Only a write after the poll is new; an earlier one has been seen.
            if self.state().line(self.id, line) != content {
                continue;
            }
            self.wait(line..line + 1, cycles, false).await;
        }
    }

    /// Waits until one of these lines of its own buffer is written, or an interrupt arrives.
    pub async fn wait_any(&self, lines: Range<u32>, cycles: u64) {
        self.wait(lines, cycles, true).await;
    }

    /// Waits until one of these lines of its own buffer is written, with `cycles` cycles of instructions per poll.
    /// Writes before the call are ignored.
    pub async fn wait_written(&self, lines: Range<u32>, cycles: u64) {
        self.wait(lines, cycles, false).await;
    }

    /// Waits until a line of any buffer is written or a register is released; polls once per `period`.
    pub async fn wait_anywhere(&self, period: Picoseconds) {
        self.state().watch_anywhere(self.id, period);
        self.suspended().await;
    }

    /// Accesses the test-and-set register of `of`; the caller keeps its content.
    pub async fn access_register(&self, of: CoreId) {
        let end = self.state().test_and_set_end(self.id, of);
        self.until(end).await;
    }

    /// Wakes all cores in [`wait_anywhere`](BareCore::wait_anywhere), because a register was released.
    pub fn notify_anywhere(&self) {
        self.state().notify_anywhere();
    }

    /// Waits until `time`; returns at once if that is past.
    #[inline]
    pub async fn sleep_until(&self, time: Picoseconds) {
        if time > self.now() {
            self.until(time).await;
        }
    }

    /// Halts until the core's own counter expires at `end` and interrupts it; returns with the first instruction of the
    /// handler. Returns at once if that is past.
    ///
    /// # Panics
    /// If the chip file lacks the time of such an interrupt (`counter_interrupt`).
    pub async fn wait_counter(&self, end: Picoseconds) {
        let span = self.state().counter_interrupt(self.id);
        self.sleep_until(end + span.expect("the chip file has the time of an interrupt by a core's counter"))
            .await;
    }

    /// Sets the rate of this core, with the other clocks of `preset`; ignored if the times at that rate are unknown.
    pub fn set_rate(&self, chip: &Chip, preset: &Preset, rate: Rate) {
        self.state().set_rate(self.id, chip, preset, rate);
    }

    async fn wait(&self, lines: Range<u32>, cycles: u64, interruptible: bool) {
        {
            let mut state = self.state();
            let period = state.own_read(self.id) + state.cycles(self.id, cycles);
            state.watch(self.id, lines, period, interruptible);
        }
        self.suspended().await;
    }

    /// Invalidates the lines of message buffers in the first-level cache.
    pub fn invalidate_buffers(&self) {
        self.state().private(self.id).caches.invalidate_buffers();
    }

    /// Reads a line of its private memory into its caches.
    pub async fn load(&self, line: u64) -> Line {
        let (Access { written_back, .. }, time) = {
            let mut state = self.state();
            let access = state.private(self.id).caches.read(line);
            (access, state.begin_load(self.id, access.level))
        };
        self.through(time).await;
        self.write_back(written_back).await;
        self.state().private(self.id).line(line)
    }

    /// Writes a line of its private memory, word by word, at the level that holds it, without allocating.
    pub async fn store(&self, line: u64, content: Line) {
        let time = {
            let mut state = self.state();
            let access = state.private(self.id).caches.write(line);
            state.begin_store(self.id, access.level)
        };
        self.through(time).await;
        self.state().private(self.id).set_line(line, content);
    }

    /// Reads an uncached line of the shared memory behind a controller.
    pub async fn read_shared(&self, controller: ControllerId, line: u64) -> Line {
        self.state().begin_shared_read(self.id, controller);
        self.suspended().await;
        self.state().shared_line(controller, line)
    }

    /// Writes a line of that memory, uncached.
    pub async fn write_shared(&self, controller: ControllerId, line: u64, content: Line) {
        self.state().begin_shared_write(self.id, controller);
        self.suspended().await;
        self.state().set_shared_line(controller, line, content);
    }

    /// Spends the time, or waits for the controller.
    async fn through(&self, time: Option<Picoseconds>) {
        match time {
            Some(Picoseconds::ZERO) => {}
            Some(time) => {
                let end = self.now() + time;
                self.until(end).await;
            }
            None => self.suspended().await,
        }
    }

    pub(super) async fn write_back(&self, lines: u32) {
        for _ in 0..lines {
            self.state().begin_write_back(self.id);
            self.suspended().await;
        }
    }

    /// Interrupts these cores, with the maximum number of targets in each request.
    ///
    /// # Panics
    /// If the chip has no interrupt controller.
    pub async fn interrupt(&self, targets: &[CoreId]) {
        let most = self.state().targets_max().max(1) as usize;
        for request in targets.chunks(most) {
            let end = self.state().register_end(self.id);
            self.until(end).await;
            for target in request {
                self.state().raise(self.id, *target);
            }
        }
    }

    /// Takes the first interrupt that has arrived and returns its source. It reads and writes registers of the
    /// controller, and waits for other cores that do so. Returns `None` at once if no interrupt has arrived.
    pub async fn take_interrupt(&self) -> Option<CoreId> {
        let source = self.state().take_interrupt(self.id)?;
        let wait = self.state().registers_wait();
        self.through(Some(wait)).await;
        for _ in 0..2 {
            let end = self.state().register_end(self.id);
            self.until(end).await;
        }
        Some(source)
    }

    /// Returns the content of a line of its own message buffer, in no time.
    pub(super) fn own_line(&self, line: u32) -> Line {
        self.state().line(self.id, line)
    }

    /// Sets private memory from this line on, in no time.
    pub fn set_memory(&self, line: u64, bytes: &[u8]) {
        let mut state = self.state();
        for (at, part) in (line..).zip(bytes.chunks(LINE_BYTES)) {
            let mut content = [0; LINE_BYTES];
            content[..part.len()].copy_from_slice(part);
            state.private(self.id).set_line(at, content);
        }
    }

    /// Returns `bytes` bytes of private memory from this line on, in no time.
    pub fn memory(&self, line: u64, bytes: usize) -> Vec<u8> {
        let mut state = self.state();
        let lines = (line..).take(bytes.div_ceil(LINE_BYTES));
        let mut content: Vec<u8> = lines.flat_map(|line| state.private(self.id).line(line)).collect();
        content.truncate(bytes);
        content
    }
}
