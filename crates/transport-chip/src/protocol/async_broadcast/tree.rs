//! The forwarding of one message down its tree: the times of the fetches and of the slots.
//!
//! Parents come before their children, so one pass from the root gives all times. A core whose place has died still
//! forwards, because its system does that. Invariant: a system starts a job once it is called and has finished earlier
//! jobs, and the job meets contention on links and at ports at that time.

use super::{AsyncBroadcast, SLOTS, Slot};
use crate::cores::Cores;
use crate::protocol::{FLAG_CYCLES, RECEIVE_CYCLES, SEND_CYCLES};
use crate::report::TimeCategory;
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

/// Result of fetching a message.
struct FetchResult {
    /// Time at which the whole message is in private memory.
    found: Picoseconds,
    /// Time from which this place no longer needs its parent's slot.
    done: Picoseconds,
    /// The slot with the message for its children, and the times at which they are called.
    slot: usize,
    called: Vec<Picoseconds>,
}

/// Work of a place in one message's tree.
#[derive(Clone, Copy)]
struct FetchJob {
    place: PlaceId,
    /// Place to fetch from, and the time of the call.
    parent: PlaceId,
    called: Picoseconds,
    lines: u32,
    children: u32,
}

impl AsyncBroadcast {
    /// Sends a message of `bytes` bytes from `root` to the places `to`, in the order of the tree.
    pub(crate) fn send(&mut self, cores: &mut Cores, root: PlaceId, to: &[PlaceId], bytes: usize) {
        let lines = bytes.div_ceil(self.line_bytes as usize) as u32;
        let children_of = |rank: usize, fanout: usize| {
            let first = rank * fanout + 1;
            (to.len() + 1).saturating_sub(first).min(fanout) as u32
        };
        let fanout = self.children as usize;
        let mut slots = vec![0; to.len() + 1];
        let mut called = Vec::with_capacity(to.len());
        self.found.clear();
        let (slot, calls) = self.begin(cores, root, lines, children_of(0, fanout));
        slots[0] = slot;
        called.extend(calls);
        for (index, place) in to.iter().enumerate() {
            let (rank, above) = (index + 1, index / fanout);
            let parent = if above == 0 { root } else { to[above - 1] };
            let children = children_of(rank, fanout);
            let task = FetchJob { place: *place, parent, called: called[index], lines, children };
            let step = self.fetch(cores, task);
            let slot = &mut self.place_states[parent.index()].slots[slots[above]];
            slot.free = slot.free.max(step.done);
            slots[rank] = step.slot;
            called.extend(step.called);
            self.found.insert(*place, step.found);
        }
    }

    /// Writes the message at the root: by its place if a slot is free, otherwise later by its system.
    fn begin(
        &mut self,
        cores: &mut Cores,
        root: PlaceId,
        lines: u32,
        children: u32,
    ) -> (usize, Vec<Picoseconds>) {
        cores.compute(root, SEND_CYCLES, TimeCategory::Handling);
        let (number, slot) = self.first_free(root);
        let now = cores.now(root);
        if slot.free > now {
            return self.schedule_put(cores, root, now, lines, children);
        }
        let (end, called) = self.put(cores, root, number, now, lines, children);
        cores.spend(root, end - now, TimeCategory::Copying);
        (number, called)
    }

    /// Schedules a job that puts a message from private memory into the first free slot, at `at` or later.
    fn schedule_put(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        at: Picoseconds,
        lines: u32,
        children: u32,
    ) -> (usize, Vec<Picoseconds>) {
        let (number, slot) = self.first_free(place);
        let alone = self.forward_time(cores, place, slot, lines);
        let system = &mut self.place_states[place.index()].system;
        let start = system.reserve(cores.present(), at.max(slot.free), alone);
        let (_, called) = self.put(cores, place, number, start, lines, children);
        (number, called)
    }

    /// Writes a message and its header into a slot that is free at the given time, and calls the children; returns the
    /// end.
    fn put(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        number: usize,
        mut at: Picoseconds,
        lines: u32,
        children: u32,
    ) -> (Picoseconds, Vec<Picoseconds>) {
        at += self.answers(cores, place, self.place_states[place.index()].slots[number]);
        at += cores.write_time(place, place, lines, at);
        self.announce(cores, place, number, at, children)
    }

    /// Writes the header of a slot that has its message, and calls the children; returns the end.
    fn announce(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        number: usize,
        mut at: Picoseconds,
        children: u32,
    ) -> (Picoseconds, Vec<Picoseconds>) {
        at += cores.cycles(place, SEND_CYCLES);
        at += cores.write_time(place, place, 1, at);
        let (end, called) = cores.interrupt(place, at, children);
        self.place_states[place.index()].slots[number] = Slot { free: end, children };
        (end, called)
    }

    /// Returns the time for reading and clearing the flags of all children of a slot.
    fn answers(&self, cores: &Cores, place: PlaceId, slot: Slot) -> Picoseconds {
        let flag = cores.own_read(place, 1) + cores.uncontended_write_time(place, place, 1);
        (flag + cores.cycles(place, FLAG_CYCLES)) * u64::from(slot.children)
    }

    /// Fetches the message at a place whose system is called, and forwards it now or later.
    fn fetch(&mut self, cores: &mut Cores, task: FetchJob) -> FetchResult {
        let FetchJob { place, parent, called, lines, children } = task;
        let free = self.first_free(place);
        let own = Some(free).filter(|(_, slot)| children > 0 && slot.free <= called);
        let alone = self.fetch_time(cores, task, own.map(|(_, slot)| slot));
        let mut at = self.place_states[place.index()].system.reserve(cores.present(), called, alone);
        at += cores.controller_register(place) * 2 + cores.cycles(place, RECEIVE_CYCLES);
        at += cores.read_time(place, parent, lines + 1, at);
        if let Some((_, slot)) = own {
            at += self.answers(cores, place, slot);
            at += cores.write_time(place, place, lines, at);
        }
        at += cores.write_time(place, parent, 1, at);
        let done = at;
        let Some((number, _)) = own else {
            let none = (SLOTS, Vec::new());
            let is_last = children == 0;
            let (slot, called) =
                if is_last { none } else { self.schedule_put(cores, place, done, lines, children) };
            return FetchResult { found: done, done, slot, called };
        };
        let (end, called) = self.announce(cores, place, number, at, children);
        let found = end + cores.read_time(place, place, lines, end);
        FetchResult { found, done, slot: number, called }
    }

    /// Returns the time of `fetch` without contention, with or without a slot.
    fn fetch_time(&self, cores: &Cores, task: FetchJob, own: Option<Slot>) -> Picoseconds {
        let FetchJob { place, parent, lines, .. } = task;
        let fetched = cores.controller_register(place) * 2
            + cores.cycles(place, RECEIVE_CYCLES)
            + cores.uncontended_read_time(place, parent, lines + 1)
            + cores.uncontended_write_time(place, parent, 1);
        let passed_on = |slot| self.forward_time(cores, place, slot, lines) + cores.own_read(place, lines);
        fetched + own.map_or(Picoseconds::ZERO, passed_on)
    }

    /// Returns the time for writing a message into a slot and calling the children, without contention.
    fn forward_time(&self, cores: &Cores, place: PlaceId, slot: Slot, lines: u32) -> Picoseconds {
        self.answers(cores, place, slot)
            + cores.uncontended_write_time(place, place, lines + 1)
            + cores.cycles(place, SEND_CYCLES)
            + cores.controller_register(place)
    }
}
