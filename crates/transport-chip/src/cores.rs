//! What the cores of a chip can do, and what each operation costs.
//!
//! Every operation belongs to one place, moves the clock of its core and books the time on its ledger. Operations
//! reserve the links and buffer ports that they use, so two cores that want one thing at one time wait for each
//! other. It knows neither messages nor protocols. Invariant: no clock ever goes back.

mod copy;
mod draw;
mod lines;
mod shift;
mod work;

use crate::demand::{Lines as PrivateLines, WORD_BYTES, WorkPlan};
use crate::energy::Sampler;
use crate::energy::meter::{Meters, NEVER};
use crate::energy::plan::Plan;
use crate::packets::PacketCosts;
use crate::placement::Seating;
use crate::record::Recorder;
use crate::report::{Ledger, Shifts, Spending};
use crate::rest::Rest;
use crate::shared::{MemoryCosts, MemoryPlan};
use crate::traffic::LinkLoad;
use crate::wire::Protocol;
use crate::world::Misfit;
use copy::Rounds;
use isles_chip::Chip;
use isles_chip::clock::Clock;
use isles_chip::cost::{Costs as Times, Mode, Span};
use isles_chip::gear::GearId;
use isles_chip::governor::{Governor, Policy, Terrain, Unfit};
use isles_chip::kernel::{Allotment, Network, Pace, Timeline, Train};
use isles_chip::quantity::{Cycles, Picoseconds};
use isles_chip::supply::Supplies;
use isles_chip::topology::{TileId, Topology};
use isles_transport::PlaceId;
use lines::{LineTimes, Paths, Spot};
use std::sync::Arc;

/// What the operations of a core cost, at one setting of the clocks.
#[derive(Clone, Debug)]
pub struct Costs {
    topology: Topology,
    line_bytes: u32,
    buffer_lines: u32,
    /// What a line takes a core, by its gear.
    lines: Vec<LineTimes>,
    /// All times of a core, by its gear.
    times: Vec<Times<Span>>,
    pace: Pace,
    /// Flits of a packet that carries a line, and of one that carries a word.
    line_flits: u64,
    word_flits: u64,
    /// For how long an access to one line occupies the buffer of a tile.
    port: Picoseconds,
    packets: Option<PacketCosts>,
    /// The memory that all cores share; nothing if the chip's file does not say what it costs.
    memory: Option<Arc<MemoryPlan>>,
    /// What the work of programs costs.
    work: Arc<WorkPlan>,
    plan: Arc<Plan>,
    /// Rates and voltages before anything runs; none if the chip cannot change them.
    supplies: Option<Supplies>,
}

impl Costs {
    /// The costs of `chip` at its default setting; none if its cores have no message buffers of lines and its hardware
    /// carries no packets either.
    pub fn of(chip: &Chip) -> Option<Costs> {
        let (preset, links, packets) = (chip.default_preset(), chip.links(), PacketCosts::of(chip));
        let line = preset.times().access(Mode::BufferLine).copied();
        let buffer = chip.buffer().map(|buffer| buffer.size.0).zip(line);
        if buffer.is_none() && packets.is_none() {
            return None;
        }
        let (buffer_bytes, line) = buffer.unwrap_or_default();
        let plan = Plan::new(chip, 0);
        let times: Vec<_> = plan.gears.all().map(|(_, gear)| preset.times_at(gear.rate)).collect();
        let line_in = |times: &Times<Span>| times.access(Mode::BufferLine).copied().unwrap_or_default();
        let diameter = chip.topology().diameter();
        let lines = times.iter().map(|times| LineTimes::of(&line_in(times), diameter)).collect();
        let memory = MemoryPlan::of(chip, &plan.gears).map(Arc::new);
        let work = Arc::new(WorkPlan::of(chip, &plan.gears));
        let line_bytes = chip.caches().line.0;
        Some(Costs {
            topology: *chip.topology(),
            line_bytes: line_bytes as u32,
            buffer_lines: u32::try_from(buffer_bytes / line_bytes).unwrap_or(u32::MAX),
            packets,
            memory,
            work,
            lines,
            times,
            pace: links.pace(preset.clocks()),
            line_flits: links.flits(line_bytes),
            word_flits: links.flits(WORD_BYTES),
            port: chip.buffer().map_or(Picoseconds::ZERO, |buffer| buffer.port_time(line.read.over(0))),
            supplies: Supplies::of(chip, &plan.gears),
            plan: Arc::new(plan),
        })
    }

    /// Why there are no costs of a chip: what its file would have to say.
    pub fn lack(chip: &Chip) -> String {
        let preset = chip.default_preset().name();
        match chip.buffer() {
            Some(_) => format!("preset {preset:?} has no buffer_line"),
            None => format!("it has no [buffer], and preset {preset:?} lacks send, receive or transit"),
        }
    }

    /// The same with buffers of another size.
    pub fn with_buffer_lines(self, buffer_lines: u32) -> Costs {
        Costs { buffer_lines, ..self }
    }

    /// Whether `policy` can govern the places of a seating on the chip.
    ///
    /// # Errors
    /// [`Unfit`]: it cannot.
    pub fn check_policy(&self, policy: Policy, seating: &Seating) -> Result<(), Unfit> {
        self.governor(policy, seating).map(|_| ())
    }

    /// A policy for the places of a seating, and the gear of each voltage domain to start in.
    fn governor(&self, policy: Policy, seating: &Seating) -> Result<(Governor, Vec<GearId>), Unfit> {
        let plan = &self.plan;
        if policy != Policy::Fixed && self.supplies.is_none() {
            return Err(Unfit::Clocks);
        }
        let mut cores = vec![[0, 0]; plan.domains()];
        for (core, supply) in plan.supplies.iter().enumerate() {
            cores[*supply as usize][usize::from(seating.place(core).is_none())] += 1;
        }
        let own = plan.models.first();
        let terrain = Terrain {
            gears: plan.gears.clone(),
            table: own.map(|model| model.table.clone()),
            constant: own.map(|model| model.constant).unwrap_or_default(),
            cores,
        };
        Governor::new(policy, terrain)
    }

    /// Whether the chip can carry a protocol among so many places.
    ///
    /// # Errors
    /// [`Misfit`]: it cannot.
    pub fn check_protocol(&self, protocol: Protocol, places: u32) -> Result<(), Misfit> {
        protocol.divide(places, self).map(drop)
    }

    /// The times of a core that has not changed its rate.
    pub(crate) fn times(&self) -> &Times<Span> {
        &self.times[usize::from(self.plan.gears.first().0)]
    }

    /// Where its cores are.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// How many cores there are.
    pub fn cores(&self) -> u32 {
        self.topology.cores()
    }

    /// Bytes of a line: what one access to a message buffer moves.
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    /// What packets cost, if the hardware carries any.
    pub(crate) fn packets(&self) -> Option<PacketCosts> {
        self.packets
    }

    /// How messages cross the chip if nobody says how.
    pub fn default_protocol(&self) -> Protocol {
        let is_bare = self.buffer_lines == 0 && self.packets.is_some();
        if is_bare { Protocol::Packets } else { Protocol::default() }
    }

    /// Lines of the message buffer of one core; none without message buffers.
    pub fn buffer_lines(&self) -> u32 {
        self.buffer_lines
    }
}

/// Lines that have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Written into message buffers.
    pub written: u64,
    /// Read from them.
    pub read: u64,
}

/// The core of one place.
struct PlacedCore {
    tile: TileId,
    /// The same tile, as paths and ports count those that have places.
    spot: Spot,
    clock: Clock,
    now: Picoseconds,
    ledger: Ledger,
    gear: GearId,
    /// When its rate or voltage changes next.
    next_shift: Picoseconds,
    /// What is left of a cycle that operations took, in billionths.
    nanocycles: u64,
    /// Lines of private memory that came over the mesh.
    fetched: PrivateLines,
}

impl PlacedCore {
    /// Spends `time`, unless a change lies before its end: then it gives that end.
    #[inline(always)]
    fn spend(
        &mut self,
        place: PlaceId,
        time: Picoseconds,
        spending: Spending,
        recorder: &mut Option<Box<Recorder>>,
    ) -> Option<Picoseconds> {
        let start = self.now;
        let end = Picoseconds(start.0.checked_add(time.0).expect("a core's clock is past 213 days"));
        if end >= self.next_shift {
            return Some(end);
        }
        self.now = end;
        self.ledger.add(spending, time);
        if let Some(recorder) = recorder {
            recorder.spend(place, start, end, spending);
        }
        None
    }
}

/// The cores on which places run, and what they share.
pub(crate) struct Cores {
    costs: Costs,
    /// Of each place, in the order of places.
    cores: Vec<PlacedCore>,
    /// Which cores these are.
    seating: Seating,
    paths: Paths,
    network: Network,
    /// Of the buffers of tiles that have places.
    ports: Vec<Timeline>,
    /// Memory controllers; none before somebody uses one.
    controllers: Vec<Allotment>,
    /// What copies of long messages meet in private memory.
    rounds: Rounds,
    /// The least time that anything can still ask for.
    present: Picoseconds,
    lines: Lines,
    meters: Meters,
    supplies: Option<Supplies>,
    /// Whether a place was ever asked for operations by class.
    pub(crate) by_class: bool,
    /// What places do while they wait.
    pub(crate) rest: Rest,
    /// Whether a place that waits is halted until an interrupt calls it, whatever `rest` says.
    pub(crate) is_called: bool,
    /// How long the last look of a place that halts between looks took.
    look: Picoseconds,
    /// What has changed of rates and voltages.
    pub(crate) shifts: Shifts,
    /// Power over time, if anything is known of power.
    sampler: Option<Sampler>,
    /// What writes the run down, if anything does.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Cores {
    /// Each place on its core.
    pub(crate) fn new(costs: Costs, seating: Seating) -> Cores {
        let first = costs.plan.gears.first();
        let tiles = seating.cores().iter().map(|core| costs.topology.tile_of(*core));
        let (spots, used) = lines::spots(&costs.topology, tiles);
        let core = |(tile, spot)| PlacedCore {
            tile,
            spot,
            clock: Clock::new(costs.plan.gears.gear(first).rate),
            now: Picoseconds::ZERO,
            ledger: Ledger::default(),
            gear: first,
            next_shift: NEVER,
            nanocycles: 0,
            fetched: PrivateLines::default(),
        };
        Cores {
            cores: spots.into_iter().map(core).collect(),
            // Only the protocols of message buffers go the same short ways again and again.
            paths: Paths::new(&costs.topology, if costs.buffer_lines > 0 { &used } else { &[] }),
            network: Network::new(costs.topology.link_slots() as usize, costs.pace),
            ports: vec![Timeline::default(); used.len()],
            controllers: Vec::new(),
            rounds: Rounds::new(&costs.work.caches, costs.buffer_lines),
            present: Picoseconds::ZERO,
            lines: Lines::default(),
            sampler: draw::sampler(&costs.plan),
            supplies: costs.supplies.clone(),
            shifts: Shifts::default(),
            by_class: false,
            rest: Rest::Poll,
            is_called: false,
            look: Picoseconds::ZERO,
            meters: Meters::new(Arc::clone(&costs.plan)),
            recorder: None,
            seating,
            costs,
        }
    }

    /// Bytes of a line.
    pub(crate) fn line_bytes(&self) -> u32 {
        self.costs.line_bytes
    }

    /// The time at the core of `place`.
    #[inline]
    pub(crate) fn now(&self, place: PlaceId) -> Picoseconds {
        self.cores[place.index()].now
    }

    /// Says that nothing will happen before `present` any more.
    #[inline]
    pub(crate) fn set_present(&mut self, present: Picoseconds) {
        self.present = present;
    }

    /// When the turn under way began.
    ///
    /// Credit that comes later waits for the next turn: if one look of a turn took it after another had refused, nobody
    /// would be left to wake the refused.
    #[inline]
    pub(crate) fn present(&self) -> Picoseconds {
        self.present
    }

    /// Lets `place` compute.
    #[inline]
    pub(crate) fn compute(&mut self, place: PlaceId, cycles: u64, spending: Spending) {
        let core = &mut self.cores[place.index()];
        if core.next_shift != NEVER {
            return self.compute_across(place, Cycles(cycles), spending);
        }
        let time = core.clock.advance(Cycles(cycles));
        core.spend(place, time, spending, &mut self.recorder);
    }

    /// What `cycles` cycles of its core take `place`, to the picosecond below.
    pub(crate) fn cycles(&self, place: PlaceId, cycles: u64) -> Picoseconds {
        self.cores[place.index()].clock.length(Cycles(cycles))
    }

    /// Lets `place` wait until `time`, if that is to come.
    #[inline]
    pub(crate) fn wait_until(&mut self, place: PlaceId, time: Picoseconds) {
        let now = self.now(place);
        if time > now {
            let spending = if self.is_called { Spending::Sleeping } else { Spending::Waiting };
            self.spend(place, time - now, spending);
        }
    }

    /// Books what a waiting `place` is halted of the time until `time`, if a look takes it `look`. All naps are booked
    /// before all looks.
    pub(crate) fn halt(&mut self, place: PlaceId, time: Picoseconds, look: Picoseconds) {
        let wait = Picoseconds(time.0.saturating_sub(self.now(place).0));
        self.look = look;
        let halted = self.rest.halted(wait, look);
        self.spend(place, halted, Spending::Sleeping);
    }

    /// What a place does for the most part while it waits.
    pub(crate) fn idle(&self) -> Spending {
        if self.rest == Rest::Poll && !self.is_called { Spending::Waiting } else { Spending::Sleeping }
    }

    /// All times of the core of `place` in its present gear.
    pub(crate) fn times(&self, place: PlaceId) -> &Times<Span> {
        &self.costs.times[usize::from(self.cores[place.index()].gear.0)]
    }

    /// Puts a packet of `flits` flits into the mesh; gives when all of it is there. The core goes on at once.
    pub(crate) fn carry(
        &mut self,
        place: PlaceId,
        target: PlaceId,
        transit: Span,
        flits: u64,
    ) -> Picoseconds {
        let (topology, now) = (self.costs.topology, self.now(place));
        let route = topology.route(self.tile(place), self.tile(target));
        let alone = transit.over(route.len() as u32) + self.network.pace().flit * flits;
        let links = route.map(|link| topology.link_id(link).0 as usize);
        now + alone + self.network.send(self.present, now, links, Train { packets: 1, flits })
    }

    /// What is known of the memory that all cores share.
    pub(crate) fn memory(&self) -> Option<Arc<MemoryPlan>> {
        self.costs.memory.clone()
    }

    /// What shared memory costs the core of `place` in its present gear.
    ///
    /// # Panics
    /// If that is not known.
    pub(crate) fn memory_costs(&self, place: PlaceId) -> &MemoryCosts {
        let memory = self.costs.memory.as_ref().expect("who has shared memory knows its costs");
        &memory.gears[usize::from(self.cores[place.index()].gear.0)]
    }

    /// Lets `place` reach `count` times, one after the other, for what lies behind a controller at a tile.
    pub(crate) fn reach(
        &mut self,
        place: PlaceId,
        (controller, tile): (u32, TileId),
        span: Span,
        count: u32,
    ) {
        let (topology, present, now) = (self.costs.topology, self.present, self.now(place));
        let route = topology.route(tile, self.tile(place));
        let alone = span.over(route.len() as u32) * u64::from(count);
        let links = route.map(|link| topology.link_id(link).0 as usize);
        let train = Train { packets: u64::from(count), flits: self.costs.line_flits };
        let delay = self.network.send(present, now, links, train);
        let busy = self.memory_costs(place).controller_line * u64::from(count);
        let end = self.controller(controller).take(present, now + delay, alone, busy);
        self.spend(place, end - now, Spending::Copying);
    }

    pub(crate) fn lines(&self) -> Lines {
        self.lines
    }

    pub(crate) fn flit_hops(&self) -> u64 {
        self.network.flits().sum::<u64>() + self.flit_hops_fetched()
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.costs.topology
    }

    /// Which place is on which core.
    pub(crate) fn seating(&self) -> &Seating {
        &self.seating
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

    pub(crate) fn ledger(&self, place: PlaceId) -> Ledger {
        self.cores[place.index()].ledger
    }

    /// The latest clock of a place.
    fn latest(&self) -> Picoseconds {
        self.cores.iter().map(|core| core.now).max().unwrap_or_default()
    }

    #[inline]
    fn tile(&self, place: PlaceId) -> TileId {
        self.cores[place.index()].tile
    }

    #[inline]
    fn spot(&self, place: PlaceId) -> Spot {
        self.cores[place.index()].spot
    }

    /// Lets `place` spend `time`.
    #[inline]
    pub(crate) fn spend(&mut self, place: PlaceId, time: Picoseconds, spending: Spending) {
        let core = &mut self.cores[place.index()];
        if let Some(end) = core.spend(place, time, spending, &mut self.recorder) {
            self.spend_across(place, end, spending);
        }
    }
}
