//! Serves the requests of the library on the modelled chip and counts them; accesses are in `access`.
//!
//! The library moves the bytes itself after the answer, which comes at the end of the access. So flags are read from
//! the shared memory. Invariant: every write that another rank may wait for is announced to the bare cores before the
//! answer.

use super::energy::EnergyAccounts;
use super::pages::Pages;
use crate::interface::{PortOperation, PortRequest};
use crate::segment::RankMemory;
use isles_chip::bare::BareCore;
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::energy::Load;
use isles_chip::gear::Gears;
use isles_chip::quantity::Picoseconds;
use isles_chip::supply::{Supplies, SupplyChange};
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

/// Number of successive read-only requests after which a rank counts as being in an endless loop.
const IDLE_MAX: u64 = 20_000_000;

/// Minimum time of a poll by a rank that waits for any write.
pub(super) const SWEEP: Picoseconds = Picoseconds(150_000);

/// The state that all ranks share.
pub struct RankModel {
    /// The shared memory.
    pub segment: RankMemory,
    pub(super) ranks: u32,
    chip: Chip,
    preset: Preset,
    gears: Gears,
    supplies: RefCell<Option<Supplies>>,
    /// Changes of gears and voltages that are not due yet.
    pending: RefCell<Vec<SupplyChange>>,
    pub(super) pages: RefCell<Vec<Pages>>,
    /// Time that each rank must still spend before its next request, for instructions without visible effect.
    leads: Vec<Cell<Picoseconds>>,
    /// The power of the cores.
    pub accounts: RefCell<EnergyAccounts>,
    pub(super) writes: Cell<u64>,
    requests: Cell<u64>,
    idle: Cell<u64>,
    /// Reason why the run is over, if it is.
    failure: RefCell<Option<String>>,
    /// End time of the last ended rank.
    end: Cell<Picoseconds>,
}

impl RankModel {
    /// Creates the model of a run.
    pub fn new(segment: RankMemory, ranks: u32, chip: &Chip, preset: &Preset) -> RankModel {
        let gears = Gears::of(chip, chip.power_models().first());
        let accounts = EnergyAccounts::new(chip, preset, &gears);
        RankModel {
            segment,
            ranks,
            supplies: RefCell::new(Supplies::of(chip, &gears)),
            chip: chip.clone(),
            preset: preset.clone(),
            gears,
            pending: RefCell::default(),
            leads: vec![Cell::default(); ranks as usize],
            pages: RefCell::new((0..ranks).map(|_| Pages::default()).collect()),
            accounts: RefCell::new(accounts),
            writes: Cell::new(0),
            requests: Cell::new(0),
            idle: Cell::new(0),
            failure: RefCell::new(None),
            end: Cell::new(Picoseconds::ZERO),
        }
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Returns the end of the last rank.
    pub fn end(&self) -> Picoseconds {
        self.end.get()
    }

    /// Returns the reason why the run is over, if a rank has failed.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Returns `true` if a rank has failed.
    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Ends the run: no rank continues.
    pub fn fail(&self, why: String) {
        self.failure.borrow_mut().get_or_insert(why);
    }

    /// Records the end of a rank.
    pub fn end_rank(&self, rank: usize, code: u64, now: Picoseconds) {
        self.end.set(self.end.get().max(now));
        self.changed();
        if code != 0 {
            let complaint = self.segment.control().complaint();
            self.fail(
                complaint.unwrap_or_else(|| format!("rank {rank} has ended with exit code {}", code as u8)),
            );
        }
    }

    /// Charges `time` as computing.
    pub async fn spend(&self, core: &BareCore, time: Picoseconds) {
        core.sleep_until(core.now() + self.leads[core.id().0 as usize].take() + time).await;
        self.book(core, Load::Compute, time);
    }

    /// Returns the time of a rank, including the time it must still spend.
    pub fn now(&self, core: &BareCore) -> Picoseconds {
        core.now() + self.leads[core.id().0 as usize].get()
    }

    /// Makes a rank spend `time` before its next request.
    pub(super) fn defer(&self, core: &BareCore, time: Picoseconds) {
        self.leads[core.id().0 as usize].set(time);
    }

    fn book(&self, core: &BareCore, load: Load, time: Picoseconds) {
        self.accounts.borrow_mut().book(core.id().0 as usize, load, time);
    }

    fn changed(&self) {
        self.idle.set(0);
    }

    pub(super) fn wrote(&self) {
        self.writes.set(self.writes.get() + 1);
        self.changed();
    }

    /// Executes `request` and charges its time.
    pub async fn perform(&self, core: &BareCore, request: &PortRequest) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.idle.set(self.idle.get() + 1);
        let rank = core.id().0 as usize;
        if self.idle.get() > IDLE_MAX {
            let place = self.segment.control().current_call(rank);
            self.fail(format!(
                "no rank makes progress: rank {rank} in {} polls for something that never arrives",
                place.call
            ));
            return 0;
        }
        self.apply_due(core);
        let Some(operation) = PortOperation::of(request.operation) else {
            self.fail(format!("rank {rank} requests operation {}, but it does not exist", request.operation));
            return 0;
        };
        if operation == PortOperation::Take {
            self.timed(core, PortOperation::Wait, request).await;
            return self.timed(core, PortOperation::Set, request).await;
        }
        self.timed(core, operation, request).await
    }

    /// Executes an operation and books its time.
    async fn timed(&self, core: &BareCore, operation: PortOperation, request: &PortRequest) -> u64 {
        let (begin, lead) = (core.now(), &self.leads[core.id().0 as usize]);
        let before = lead.take();
        let (load, answer) = self.execute(core, operation, request, before).await;
        self.book(core, load, core.now() + lead.get() - (begin + before));
        answer
    }

    /// Executes an operation after `lead`. Unspent time stays in `leads`.
    async fn execute(
        &self,
        core: &BareCore,
        operation: PortOperation,
        request: &PortRequest,
        lead: Picoseconds,
    ) -> (Load, u64) {
        let library = if request.costs == 1 { &LibraryCosts::IRCCE } else { &LibraryCosts::RCCE };
        let target = CoreId(request.target.min(self.ranks - 1));
        match operation {
            PortOperation::Put => self.put(core, library, request, lead).await,
            PortOperation::Get => self.get(core, library, request, lead).await,
            PortOperation::Relay => self.relay(core, library, request, lead).await,
            PortOperation::Set => self.set(core, library, request, lead).await,
            PortOperation::Look => self.look(core, library, request, lead).await,
            PortOperation::Wait => return (Load::Poll, self.wait(core, library, request, lead).await),
            PortOperation::Now => {
                self.defer(core, lead);
                return (Load::Compute, (core.now() + lead).0);
            }
            PortOperation::Tail => {
                self.defer(core, lead + core.duration(library.tail));
                return (Load::Compute, 0);
            }
            _ => {
                core.sleep_until(core.now() + lead).await;
                return self.execute_immediately(core, library, operation, request, target).await;
            }
        }
        (if operation == PortOperation::Look { Load::Poll } else { Load::Copy }, 0)
    }

    /// Executes an operation that does not access a message buffer.
    async fn execute_immediately(
        &self,
        core: &BareCore,
        library: &LibraryCosts,
        operation: PortOperation,
        request: &PortRequest,
        target: CoreId,
    ) -> (Load, u64) {
        match operation {
            PortOperation::Work => {
                core.compute(request.value).await;
                if request.value > 10_000 {
                    self.changed();
                }
                (Load::Compute, 0)
            }
            PortOperation::Any => (Load::Poll, self.wait_anywhere(core, request.value).await),
            PortOperation::Lock | PortOperation::Unlock => {
                self.lock(core, library, target, operation == PortOperation::Lock).await;
                (Load::Poll, 0)
            }
            PortOperation::Power => {
                (Load::Compute, u64::from(self.power(core, request.target, request.value == 1)))
            }
            PortOperation::Settled => (Load::Poll, self.settle(core).await),
            PortOperation::Counter => {
                core.access_register(CoreId(0)).await;
                self.changed();
                (Load::Poll, 0)
            }
            _ => (Load::Sleep, 0), // the others are no work of a core, or done
        }
    }

    async fn lock(&self, core: &BareCore, library: &LibraryCosts, target: CoreId, take: bool) {
        let word = &self.segment.control().locks[target.0 as usize];
        core.compute(library.look).await;
        loop {
            core.access_register(target).await;
            if !take {
                word.store(0, Ordering::Relaxed);
                self.wrote();
                core.notify_anywhere();
                return;
            }
            if word.load(Ordering::Relaxed) == 0 {
                word.store(core.id().0 + 1, Ordering::Relaxed);
                self.changed();
                return;
            }
            core.wait_anywhere(SWEEP).await;
        }
    }

    /// Requests a clock divider, with the voltage that it needs or at the current one; returns `true` if the chip
    /// supports it.
    fn power(&self, core: &BareCore, divider: u32, with_voltage: bool) -> bool {
        let tile = self.chip.topology().tile_of(core.id());
        let supply = self.chip.voltage_domain(tile);
        let mut supplies = self.supplies.borrow_mut();
        let (Some(supplies), Some(gear)) = (supplies.as_mut(), self.gears.divided_by(divider)) else {
            return false;
        };
        let changes = if with_voltage {
            supplies.shift(core.now(), supply, gear).map(|response| response.changes)
        } else {
            let clocks = supplies.clocks(supply).to_vec();
            let divided = clocks.into_iter().map(|clock| supplies.divide(core.now(), clock, gear));
            divided
                .map(|response| response.map(|response| response.changes))
                .collect::<Result<Vec<_>, _>>()
                .map(|all| all.concat())
        };
        let Ok(changes) = changes else { return false };
        self.pending.borrow_mut().extend(changes);
        self.apply_due(core);
        true
    }

    /// Waits until the voltage of the core's domain has settled.
    async fn settle(&self, core: &BareCore) -> u64 {
        let supply = self.chip.voltage_domain(self.chip.topology().tile_of(core.id()));
        let settled = self.supplies.borrow().as_ref().map(|supplies| supplies.settled(supply));
        core.sleep_until(settled.unwrap_or_default()).await;
        self.apply_due(core);
        self.changed();
        1
    }

    /// Applies the changes of gears and voltages that have become due.
    fn apply_due(&self, core: &BareCore) {
        if self.pending.borrow().is_empty() {
            return;
        }
        let now = core.now();
        let due = |change: &mut SupplyChange| match change {
            SupplyChange::Rate { time, .. } | SupplyChange::Voltage { time, .. } => *time <= now,
        };
        let changes: Vec<SupplyChange> = self.pending.borrow_mut().extract_if(.., due).collect();
        let topology = self.chip.topology();
        for change in changes {
            for id in (0..topology.cores()).map(CoreId) {
                let tile = topology.tile_of(id);
                let mut accounts = self.accounts.borrow_mut();
                match change {
                    SupplyChange::Rate { clock, gear, .. } if self.chip.frequency_domain(tile) == clock => {
                        accounts.change(id.0 as usize, Some(gear), None);
                        core.other(id).set_rate(&self.chip, &self.preset, self.gears.gear(gear).rate);
                    }
                    SupplyChange::Voltage { supply, step, .. }
                        if self.chip.voltage_domain(tile) == supply =>
                    {
                        accounts.change(id.0 as usize, None, Some(step));
                    }
                    _ => {}
                }
            }
        }
    }
}
