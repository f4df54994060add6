//! The work of programs: cycles, and lines of private memory from a shared controller.
//!
//! The end of a step must be known at once, although others may use the same controller later. The clock therefore
//! advances to the end known so far ([`MaxMinServer`]), and [`Cores::catch_up`] advances it further before the next
//! turn of the place, and before its next use of a controller. Lines cross the mesh without reserving links, because
//! even twelve cores that only read use a link at their controller for a twentieth of the time; their flits are
//! counted. Invariants: a step takes at least its uncontended time; a place has no turn before the end of its step is
//! final.

use super::Cores;
use crate::demand::{Demand, LineCosts};
use crate::report::TimeCategory;
use crate::shared::MemoryCosts;
use isles_chip::cost::HopCost;
use isles_chip::kernel::{JobTime, MaxMinServer};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::Route;
use isles_transport::{PlaceId, Work};

/// Wait of a place for a memory controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryWait {
    controller: u32,
    /// The end to which the clock has advanced.
    end: Picoseconds,
    /// Category of the time spent waiting.
    category: TimeCategory,
    /// `true` for work of the program, `false` for a copy of a message.
    is_work: bool,
}

impl Cores {
    /// Returns the demand of `work` on any core of the chip.
    #[inline]
    pub(crate) fn demand(&self, work: &Work) -> Demand {
        self.costs.work.demand(work)
    }

    /// Performs work of the program at `place`.
    #[inline]
    pub(crate) fn work(&mut self, place: PlaceId, demand: &Demand) {
        let core = &mut self.cores[place.index()];
        let (start, cycles) = (core.now, demand.cycles(&mut core.nanocycles));
        self.by_class |= demand.counts_operations();
        self.compute(place, cycles, TimeCategory::Working);
        if !demand.is_computing() {
            self.fetch(place, start, demand);
        }
    }

    /// Makes `place`, which has computed since `start`, wait for the lines of that work.
    fn fetch(&mut self, place: PlaceId, start: Picoseconds, demand: &Demand) {
        self.cores[place.index()].fetched.add(demand.far);
        let Some(costs) = self.line_costs(place) else { return };
        let one = costs.far.over(self.way_to_memory(place).len() as u32);
        let [near, far] = [demand.near.times(costs.near), demand.far.times(one)];
        let alone = near.saturating_add(far).saturating_add(self.now(place) - start);
        let length = JobTime { alone, served: demand.far.times(costs.served) };
        self.share_controller(place, start, length, TimeCategory::Fetching);
        if let Some(wait) = &mut self.cores[place.index()].memory_wait {
            wait.is_work = true;
        }
    }

    /// Returns the costs of private memory's lines for the core of `place` in its present gear, if known.
    pub(super) fn line_costs(&self, place: PlaceId) -> Option<LineCosts> {
        self.costs.work.lines(usize::from(self.cores[place.index()].gear.0)).copied()
    }

    /// Makes `place` wait for its controller, at which its accesses begin at `start`.
    pub(super) fn share_controller(
        &mut self,
        place: PlaceId,
        start: Picoseconds,
        length: JobTime,
        category: TimeCategory,
    ) {
        let own = self.costs.work.own[self.tile(place).0 as usize];
        self.wait_for_memory(place, own, start, length, category);
    }

    /// As [`Cores::share_controller`], for any controller.
    pub(super) fn wait_for_memory(
        &mut self,
        place: PlaceId,
        controller: u32,
        mut start: Picoseconds,
        length: JobTime,
        category: TimeCategory,
    ) {
        let before = self.now(place);
        self.catch_up(place);
        start += self.now(place) - before;
        let present = self.present;
        let now = self.now(place);
        let end = self.controller(controller).take(present, place.0, start, length).max(now);
        self.cores[place.index()].memory_wait =
            Some(MemoryWait { controller, end, category, is_work: false });
        self.spend(place, end - now, category);
    }

    /// Writes `lines` uncached lines to the memory behind the controller of `owner`.
    pub(crate) fn write_memory_lines(&mut self, place: PlaceId, owner: PlaceId, lines: u32) {
        self.pass_memory_lines(place, owner, lines, |costs| costs.through.gap);
    }

    /// Reads `lines` uncached lines from the memory behind the controller of `place`.
    pub(crate) fn read_memory_lines(&mut self, place: PlaceId, lines: u32) {
        self.pass_memory_lines(place, place, lines, |costs| costs.through.read);
    }

    fn pass_memory_lines(
        &mut self,
        place: PlaceId,
        owner: PlaceId,
        lines: u32,
        cost: fn(&MemoryCosts) -> HopCost,
    ) {
        let (controllers, tile) = (&self.costs.work.controllers, self.tile(place));
        let own = self.costs.work.own[self.tile(owner).0 as usize];
        let hops = self.costs.topology.hops(controllers[own as usize], tile);
        let costs = self.memory_costs(place);
        let alone = cost(costs).over(hops) * u64::from(lines);
        let served = costs.controller_line * u64::from(lines);
        self.wait_for_memory(place, own, self.now(place), JobTime { alone, served }, TimeCategory::Copying);
    }

    /// Advances the clock of `place` if its last step at a memory controller takes longer than known before.
    pub(crate) fn catch_up(&mut self, place: PlaceId) {
        let Some(MemoryWait { controller, end, category, is_work }) = self.cores[place.index()].memory_wait
        else {
            return;
        };
        let present = self.present;
        let known = self.controller(controller).end_of(present, place.0).unwrap_or(end);
        let is_over = known <= present;
        let known = known.max(end);
        self.cores[place.index()].memory_wait =
            (!is_over).then_some(MemoryWait { controller, end: known, category, is_work });
        if known > end {
            self.spend(place, known - end, category);
        }
    }

    /// Returns the remaining time of the work of `place` at a memory controller, if its end may still move.
    #[inline]
    pub(crate) fn open_step(&self, place: PlaceId) -> Option<Picoseconds> {
        let wait = self.cores[place.index()].memory_wait.filter(|wait| wait.is_work)?;
        Some(Picoseconds(wait.end.0.saturating_sub(self.present.0)))
    }

    /// Returns a memory controller by number.
    fn controller(&mut self, number: u32) -> &mut MaxMinServer {
        if self.controllers.is_empty() {
            self.controllers.resize(self.costs.work.controllers.len(), MaxMinServer::default());
        }
        &mut self.controllers[number as usize]
    }

    /// Returns the route from the controller of `place` to its core.
    pub(super) fn way_to_memory(&self, place: PlaceId) -> Route {
        let (work, tile) = (&self.costs.work, self.tile(place));
        let controller = work.controllers[work.own[tile.0 as usize] as usize];
        self.costs.topology.route(controller, tile)
    }

    /// Returns the number of lines of private memory fetched from controllers.
    pub(crate) fn lines_fetched(&self) -> u64 {
        self.cores.iter().map(|core| core.fetched.whole()).sum()
    }

    /// Returns the busy time of each memory controller; empty if none was ever busy.
    pub(crate) fn controllers_busy(&self) -> Vec<Picoseconds> {
        self.controllers.iter().map(MaxMinServer::served).collect()
    }

    /// Returns `true` if a memory controller was ever saturated.
    pub(crate) fn is_memory_crowded(&self) -> bool {
        self.controllers.iter().any(MaxMinServer::has_saturated)
    }

    /// Returns the flits of fetched lines, counted once for each link that they have crossed.
    pub(super) fn flit_hops_fetched(&self) -> u64 {
        self.flits_fetched().map(|(place, flits)| flits * self.way_to_memory(place).len() as u64).sum()
    }

    /// Returns the flits of fetched lines by link.
    pub(super) fn flits_fetched_by_link(&self) -> Vec<u64> {
        let mut sums = vec![0; self.costs.topology.link_slots() as usize];
        for (place, flits) in self.flits_fetched() {
            for link in self.way_to_memory(place) {
                sums[self.costs.topology.link_id(link).0 as usize] += flits;
            }
        }
        sums
    }

    /// Returns the places that have fetched lines, with the flits of these lines.
    fn flits_fetched(&self) -> impl Iterator<Item = (PlaceId, u64)> + '_ {
        let flits = self.cores.iter().map(|core| core.fetched.whole() * self.costs.line_flits);
        (0..).map(PlaceId).zip(flits).filter(|(_, flits)| *flits > 0)
    }
}
