//! Packets on the mesh that go past the message buffers: those of the hardware, and lines of memory.
//!
//! Lines of message buffers are in `lines`; which private lines have crossed is counted in `work`. Invariant: the links
//! of a route, and the controller at its end, are reserved before the time of what uses them is known.

use super::Cores;
use crate::report::TimeCategory;
use crate::traffic::LinkLoad;
use isles_chip::cost::HopCost;
use isles_chip::kernel::Train;
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::TileId;
use isles_transport::PlaceId;

impl Cores {
    /// Puts a packet of `flits` flits into the mesh; gives when all of it is there. The core goes on at once.
    #[inline]
    pub(crate) fn carry(
        &mut self,
        place: PlaceId,
        target: PlaceId,
        transit: HopCost,
        flits: u64,
    ) -> Picoseconds {
        let (now, train) = (self.now(place), Train { packets: 1, flits });
        let (hops, delay) = if self.paths.is_empty() {
            self.route(train, (self.tile(place), self.tile(target)), now)
        } else {
            self.cross(train, (self.spot(place), self.spot(target)), now)
        };
        now + transit.over(hops as u32) + self.network.pace().flit * flits + delay
    }

    /// As `cross`, where paths are too many to be kept.
    fn route(&mut self, train: Train, (from, to): (TileId, TileId), at: Picoseconds) -> (usize, Picoseconds) {
        let topology = self.costs.topology;
        let route = topology.route(from, to);
        let hops = route.len();
        let links = route.map(|link| topology.link_id(link).0 as usize);
        (hops, self.network.send(self.present, at, links, train))
    }

    /// Lets `place` reach `count` times, one after the other, for what lies behind a controller at a tile.
    pub(crate) fn reach(
        &mut self,
        place: PlaceId,
        (controller, tile): (u32, TileId),
        span: HopCost,
        count: u32,
    ) {
        let (present, now) = (self.present, self.now(place));
        let train = Train { packets: u64::from(count), flits: self.costs.line_flits };
        let (hops, delay) = self.route(train, (tile, self.tile(place)), now);
        let alone = span.over(hops as u32) * u64::from(count);
        let busy = self.memory_costs(place).controller_line * u64::from(count);
        let end = self.controller(controller).take(present, now + delay, alone, busy);
        self.spend(place, end - now, TimeCategory::Copying);
    }

    pub(crate) fn flit_hops(&self) -> u64 {
        self.network.flits().sum::<u64>() + self.flit_hops_fetched()
    }

    /// What each link has carried, in the order of their numbers.
    pub(crate) fn link_loads(&self) -> Vec<LinkLoad> {
        let topology = self.topology();
        let (latest, fetched) = (self.latest().0, self.flits_fetched_by_link());
        let load = |link| {
            let number = topology.link_id(link).0 as usize;
            let flits = self.network.flits_of(number) + fetched[number];
            let busy = self.network.pace().flit * flits;
            let utilisation = busy.0 as f64 / latest.max(1) as f64;
            topology.ends(link).map(|ends| LinkLoad { link, ends, flits, busy, utilisation })
        };
        topology.links().filter_map(load).collect()
    }
}
