//! The application `gups`: HPCC RandomAccess by its rules.
//!
//! The rules: a table of 2^k entries, 4 · 2^k updates, a look-ahead of at most 1,024, at most 1 % errors. The modes
//! are the methods of Aggarwal, Sabharwal, Garg and Heidelberger ("HPCC RandomAccess Benchmark for Next Generation
//! Supercomputers", 2009): aggregation, routing along a torus, roles for cores. Invariant: only the updates are timed,
//! as the rules require; verification applies them once more.

mod generator;
mod shared;

use crate::check_room;
use clap::{Args, ValueEnum, value_parser};
use isles::array::Blocks;
use isles::prelude::*;
use isles::{AggregatorOptions, ItemRoute, Torus, memory};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, add_done,
};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::time::Duration;

/// Updates per entry, according to the rules.
const UPDATES_PER_ENTRY: u64 = 4;

/// Start of the stream if the number of updates is not that of the rules. The first million numbers have few bits set,
/// so they go to few places; a table of the rules' size uses more of the stream.
const MIXED: u64 = 1 << 40;

/// Default number of locks of a table: the largest in the paper.
const LOCKS: u32 = 32;

/// The largest table: half of the memory of the largest published machine.
const BITS_MAX: i64 = 48;

/// Method of delivering updates to their entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each place has a bucket for each other
    #[default]
    Direct,
    /// Updates go along the dimensions of a virtual torus of places
    Routed,
    /// Updates go along a torus of nodes of several places: the first generates them, the last ones apply them
    Roles,
    /// A message for each update
    Messages,
    /// The table is a window, and each place updates its entries atomically
    Atomic,
    /// The same with a separate read and write, so that updates may be lost
    Unlocked,
    /// The same under one of `--locks` locks
    Locks,
}

impl Mode {
    /// Returns `true` if each place changes entries directly.
    fn is_shared(self) -> bool {
        matches!(self, Mode::Atomic | Mode::Unlocked | Mode::Locks)
    }
}

/// The arguments of `isles run gups`.
#[derive(Args, Clone, Debug)]
pub struct Gups {
    /// Number of entries as a power of two: 2^N of 8 bytes, N from 1 to 48
    #[arg(long, value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..=BITS_MAX))]
    bits: u32,

    /// Method that delivers updates to their entries
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,

    /// The torus, such as 4x4x2 [default: three dimensions as even as they can be]
    #[arg(long, value_name = "SHAPE")]
    shape: Option<Torus>,

    /// Places of a node that send updates along dimensions, with --mode roles [default: one for each dimension]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=15))]
    routers: Option<u32>,

    /// Places of a node that apply updates, each its own, with --mode roles [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=64))]
    appliers: Option<u32>,

    /// Locks of the table with --mode locks, 1 to 1024 [default: 32]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1024))]
    locks: Option<u32>,

    /// Pending updates that a place may hold, 1 to 1048576; the rules allow 1024
    #[arg(long, value_name = "N", default_value = "1024", value_parser = value_parser!(u64).range(1..=1 << 20))]
    lookahead: u64,

    /// Updates in a bucket, 1 to 1048576 [default: as the look-ahead allows]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 20))]
    bucket: Option<u64>,

    /// Buckets for one place that may be in flight, 1 to 1024
    #[arg(long, value_name = "N", default_value = "3", value_parser = value_parser!(u32).range(1..=1024))]
    in_flight: u32,

    /// Updates in all [default: four an entry, as the rules ask]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 50))]
    updates: Option<u64>,

    #[command(flatten)]
    costs: UpdateCosts,

    /// Skip the check of the table, which repeats all updates
    #[arg(long)]
    no_check: bool,

    /// Find the owner of an entry by a division, as the rules' own program does
    #[arg(long)]
    division: bool,
}

/// Costs of an update on a modelled core, in cycles; free elsewhere.
#[derive(Args, Clone, Copy, Debug, Serialize, Deserialize)]
pub struct UpdateCosts {
    /// Cycles of a modelled core to make an update
    #[arg(long, value_name = "N", default_value = "2", value_parser = value_parser!(u64).range(0..=1 << 20))]
    make_cycles: u64,

    /// Cycles of a modelled core to apply an update
    #[arg(long, value_name = "N", default_value = "90", value_parser = value_parser!(u64).range(0..=1 << 20))]
    apply_cycles: u64,

    /// Cycles of a modelled core to put an update into the bucket of its next place, in addition to the message: at
    /// its origin and at each intermediate place
    #[arg(long, value_name = "N", default_value = "0", value_parser = value_parser!(u64).range(0..=1 << 20))]
    route_cycles: u64,
}

/// The phases of a run.
const UPDATES: &str = "updates";
const CHECK: &str = "check";

/// The middle of the run of a part: from this tenth of its updates to that one.
const STEADY: [u64; 2] = [3, 7];

/// Updates charged to a modelled core at a time.
const CHARGED: u64 = 8;

/// The configuration of a run.
#[derive(Clone, Debug, Serialize)]
pub struct GupsInput {
    bits: u32,
    mode: Mode,
    locks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    appliers: Option<u32>,
    shape: Option<String>,
    lookahead: u64,
    bucket: Option<u64>,
    in_flight: u32,
    updates: u64,
    division: bool,
    no_check: bool,
    #[serde(flatten)]
    costs: UpdateCosts,
    #[serde(skip)]
    plan: GupsPlan,
    #[serde(skip)]
    options: AggregatorOptions,
}

/// Distribution of the work over the places.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct GupsPlan {
    blocks: Blocks,
    /// Number of places that have a part of the table.
    owners: u64,
    /// Number of consecutive places in a group: the first one generates updates, the last ones hold parts of the
    /// table.
    group: u64,
    /// Number of places of a group that hold a part.
    appliers: u64,
    updates: u64,
    /// Position of the first update in the stream.
    begin: u64,
    division: bool,
    costs: UpdateCosts,
}

/// Result of a run.
#[derive(Serialize)]
pub struct GupsFound {
    /// Number of updates.
    updates: u64,
    /// Wrong entries at the end; `None` without a check.
    errors: Option<u64>,
    /// Updates per nanosecond.
    gups: f64,
    /// Updates per nanosecond in the middle of the run, without start and end, by the clocks of the places that apply
    /// them.
    steady_gups: f64,
    /// Capacity of a bucket at the first place, in updates.
    bucket: u64,
    /// Number of updates that left their place, counted at each hop, and of the buckets that carried them.
    hops: u64,
    buckets: u64,
    #[serde(skip)]
    entries: u64,
}

impl Gups {
    fn shape(&self, nodes: u32) -> Torus {
        self.shape.clone().unwrap_or_else(|| Torus::of_nodes(nodes, 3))
    }

    /// Returns the numbers of places per group that route updates and that apply them: 0 and 1 without roles.
    fn roles(&self) -> (u32, u32) {
        let dimensions = self.shape.as_ref().map_or(3, |shape| shape.extents().len() as u32);
        match self.mode {
            Mode::Roles => (self.routers.unwrap_or(dimensions), self.appliers.unwrap_or(1)),
            _ => (0, 1),
        }
    }

    /// Returns the route of updates among `places` places.
    fn route(&self, places: u32) -> ItemRoute {
        match self.mode {
            Mode::Direct | Mode::Messages | Mode::Atomic | Mode::Unlocked | Mode::Locks => ItemRoute::Direct,
            Mode::Routed => ItemRoute::Torus(self.shape(places)),
            Mode::Roles => {
                let (routers, appliers) = self.roles();
                ItemRoute::SharedRoles { shape: self.shape(places / (routers + appliers)), routers, appliers }
            }
        }
    }
}

impl Gups {
    /// Checks the numbers of places per group.
    ///
    /// # Errors
    /// There are no roles, or more routing places than dimensions.
    fn check_roles(&self, routers: u32) -> Result<(), Failure> {
        let given = [("--routers", self.routers), ("--appliers", self.appliers)];
        let given = given.into_iter().find_map(|(flag, number)| Some((flag, number?)));
        if let (Some((flag, number)), true) = (given, self.mode != Mode::Roles) {
            return Err(Failure::Usage(format!("{flag} is {number}; allowed only with --mode roles")));
        }
        let dimensions = self.shape.as_ref().map_or(3, |shape| shape.extents().len() as u32);
        if routers > dimensions {
            let text =
                format!("--routers is {routers}; allowed: at most {dimensions}, one for each dimension");
            return Err(Failure::Usage(text));
        }
        Ok(())
    }
}

impl Application for Gups {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The table is verified in each run, except with --no-check; the rules \
         allow 1 % of errors, this check allows none.",
        ..ApplicationInfo::new(
            "gups",
            "HPCC RandomAccess: updates of random entries of a table distributed over all places",
            "updates",
        )
    };
    type Input = GupsInput;
    type Found = GupsFound;

    fn open(&self, places: u32) -> Result<GupsInput, Failure> {
        let (routers, appliers) = self.roles();
        let group = routers.saturating_add(appliers);
        self.check_roles(routers)?;
        if !places.is_multiple_of(group) {
            let text = format!("--places is {places}; allowed with --mode roles: groups of {group}");
            return Err(Failure::Usage(text));
        }
        let (nodes, owners) = (places / group, places / group * appliers);
        check_room(&format!("--bits {}", self.bits), 8 << self.bits)?;
        let blocks = Blocks::new(1 << self.bits, owners.into()).ok_or_else(|| {
            let text =
                format!("--bits is {}; allowed with {owners} owners: an entry for each, or more", self.bits);
            Failure::Usage(text)
        })?;
        let route = self.route(places);
        if let (Some(shape), false) = (&self.shape, matches!(self.mode, Mode::Routed | Mode::Roles)) {
            let text = format!("--shape is {shape}; allowed only with --mode routed and roles");
            return Err(Failure::Usage(text));
        }
        if let (Some(locks), true) = (self.locks, self.mode != Mode::Locks) {
            return Err(Failure::Usage(format!("--locks is {locks}; allowed only with --mode locks")));
        }
        let shape = match &route {
            ItemRoute::Torus(shape) | ItemRoute::Roles(shape) | ItemRoute::SharedRoles { shape, .. } => {
                if shape.nodes() != nodes {
                    let text = format!("--shape is {shape}; allowed: one of {nodes} nodes");
                    return Err(Failure::Usage(text));
                }
                Some(shape.to_string())
            }
            ItemRoute::Direct => None,
        };
        let updates = self.updates.unwrap_or(UPDATES_PER_ENTRY * blocks.size());
        let begin = if self.updates.is_some() { MIXED } else { 0 };
        let mut options = AggregatorOptions::default().route(route).lookahead(self.lookahead as usize);
        options = options.in_flight(self.in_flight).forward_work(Cycles(self.costs.route_cycles));
        if let Some(bucket) = self.bucket {
            options = options.bucket(bucket as usize);
        }
        let plan = GupsPlan {
            blocks,
            owners: u64::from(owners),
            group: u64::from(group),
            appliers: u64::from(appliers),
            updates,
            begin,
            division: self.division,
            costs: self.costs,
        };
        let &Gups { bits, mode, locks, lookahead, bucket, in_flight, division, no_check, costs, .. } = self;
        let &Gups { routers, appliers, .. } = self;
        Ok(GupsInput {
            bits,
            mode,
            locks,
            routers,
            appliers,
            shape,
            lookahead,
            bucket,
            in_flight,
            updates,
            division,
            no_check,
            costs,
            plan,
            options,
        })
    }

    fn heading(&self, input: &GupsInput) -> String {
        let shape = input.shape.as_ref().map(|shape| format!(" over {shape}")).unwrap_or_default();
        let mode = match input.mode {
            Mode::Direct => "direct".to_owned(),
            Mode::Routed => "routed".to_owned(),
            Mode::Roles => match (input.routers, input.appliers) {
                (None, None) => "roles".to_owned(),
                _ => {
                    let (routers, appliers) = self.roles();
                    format!("roles, {routers} routers and {appliers} appliers per node")
                }
            },
            Mode::Messages => "messages".to_owned(),
            Mode::Atomic => "atomic".to_owned(),
            Mode::Unlocked => "unlocked".to_owned(),
            Mode::Locks => format!("{} locks", input.locks.unwrap_or(LOCKS)),
        };
        format!("2^{} entries, {} updates, {mode}{shape}", input.bits, input.updates)
    }

    async fn compute(input: GupsInput, distributor: WorkDistributor) -> isles::Result<(GupsFound, WorkDone)> {
        let _steps = distributor.open_steps();
        let GupsInput { plan, mode, options, locks, no_check, .. } = input;
        if mode.is_shared() {
            return shared::compute(plan, mode, locks.unwrap_or(LOCKS), no_check, &distributor).await;
        }
        let table = PlaceLocal::with(plan, |plan: GupsPlan| TablePart::new(plan.part(here()))).await?;
        let updates = Aggregator::addressed(options, &table, TablePart::target, |table, numbers| {
            table.update(&numbers)
        })
        .await?;
        distributor.begin_phase(UPDATES);
        let begun = now();
        plan.update_all(&table, &updates, mode).await?;
        let seconds = (now() - begun).as_secs_f64();
        let buckets = everywhere!(updates.sent()).await?;
        let steady = everywhere!(table.lock().steady_rate()).await?;
        let errors = if no_check {
            None
        } else {
            everywhere!(table.lock().end_charging()).await?;
            distributor.begin_phase(CHECK);
            plan.update_all(&table, &updates, Mode::Direct).await?;
            Some(everywhere!(table.lock().errors()).await?.iter().sum())
        };
        let found = GupsFound {
            updates: plan.updates,
            errors,
            gups: plan.updates as f64 / seconds / 1e9,
            steady_gups: steady.iter().sum(),
            bucket: updates.bucket() as u64,
            hops: buckets.iter().map(|(items, _)| items).sum(),
            buckets: buckets.iter().map(|(_, buckets)| buckets).sum(),
            entries: plan.blocks.size(),
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for Gups {
    fn text(&self, found: &GupsFound) -> String {
        let filled = found.hops as f64 / found.buckets.max(1) as f64;
        let errors = match found.errors {
            Some(errors) => format!("{errors} of {}", found.entries),
            None => "not checked (--no-check)".to_owned(),
        };
        format!(
            "GUPS    {:.4}, in the middle of the run {:.4}\nerrors  {errors}\nbuckets {} of up to {} updates, {filled:.1} on average",
            found.gups, found.steady_gups, found.buckets, found.bucket
        )
    }

    fn speed(&self, found: &GupsFound, seconds: f64) -> String {
        format!("{:.1} million updates a second", found.updates as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &GupsFound, _: bool) -> Result<Option<Verification>, Failure> {
        let Some(errors) = found.errors else { return Ok(None) };
        let text = format!("{errors} of {} entries differ after repeating the updates", found.entries);
        // The rules allow 1 % errors, and only unlocked updates cause any.
        let allowed = if self.mode == Mode::Unlocked { found.entries / 100 } else { 0 };
        Ok(Some(Verification { holds: errors <= allowed, text }))
    }

    fn write_csv(&self, found: &GupsFound, out: &mut dyn Write) -> io::Result<()> {
        let GupsFound { updates, errors, gups, bucket, hops, buckets, .. } = found;
        writeln!(out, "bits,updates,errors,gups,bucket,hops,buckets")?;
        let errors = errors.map(|errors| errors.to_string()).unwrap_or_default();
        writeln!(out, "{},{updates},{errors},{gups:e},{bucket},{hops},{buckets}", self.bits)
    }
}

impl GupsPlan {
    /// Returns the plan of the part of `place`.
    fn part(&self, place: Place) -> PartPlan {
        let index = place.index() as u64;
        let applier = (index % self.group).checked_sub(self.group - self.appliers);
        let own = self.updates / self.owners;
        PartPlan {
            plan: *self,
            owner: applier.map(|applier| index / self.group * self.appliers + applier),
            marks: STEADY.map(|tenths| own * tenths / 10),
        }
    }

    /// Returns the place that applies the updates of entry `index`.
    #[inline]
    fn place(&self, index: u64) -> Place {
        let owner = if self.division {
            ((index + 1) * self.owners - 1) / self.blocks.size()
        } else {
            self.blocks.owner(index)
        };
        let (node, applier) = (owner / self.appliers, owner % self.appliers);
        let place = node * self.group + self.group - self.appliers + applier;
        Place::new(place as usize).expect("each owner is a place")
    }

    /// Returns the range of updates that `group` generates, in proportion to its entries.
    fn own_updates(&self, group: u64) -> std::ops::Range<u64> {
        let share = |entry: u64| {
            (u128::from(self.updates) * u128::from(entry) / u128::from(self.blocks.size())) as u64
        };
        let first = self.blocks.range(group * self.appliers);
        let last = self.blocks.range((group + 1) * self.appliers - 1);
        share(first.start)..share(last.end)
    }

    /// Runs all updates, and waits until they are applied.
    async fn update_all(
        &self,
        table: &PlaceLocal<TablePart>,
        updates: &Aggregator<u64>,
        mode: Mode,
    ) -> isles::Result<()> {
        finish(async {
            for place in places().filter(|place| (place.index() as u64).is_multiple_of(self.group)) {
                let plan = *self;
                spawn_at!(place, [plan, table, updates, mode] {
                    plan.update_own(table, updates, mode).await?;
                });
            }
        })
        .await
    }

    /// Runs the updates of this place.
    async fn update_own(
        &self,
        table: &PlaceLocal<TablePart>,
        updates: &Aggregator<u64>,
        mode: Mode,
    ) -> isles::Result<()> {
        let own = self.own_updates(here().index() as u64 / self.group);
        let mask = self.blocks.size() - 1;
        let made_cycles = self.costs.make_cycles + self.costs.route_cycles;
        let mut number = generator::start((self.begin + own.start) as i64);
        let made = own.map(|index| {
            number = generator::next(number);
            if index.is_multiple_of(CHARGED) && made_cycles > 0 {
                work(Cycles(made_cycles * CHARGED));
            }
            if index % 4096 == 4095 {
                add_done(4096);
            }
            (self.place(number & mask), number)
        });
        if mode != Mode::Messages {
            return updates.push_all(made).await;
        }
        for (place, number) in made {
            spawn_at!(place, [number, table] table.lock().update(&[number]));
        }
        Ok(())
    }
}

/// The entries of the table from `first`; each initially equals its own index.
#[derive(Clone, Debug)]
struct TablePart {
    first: u64,
    plan: GupsPlan,
    entries: Vec<u64>,
    /// Cycles per update on a modelled core.
    cost: u64,
    /// Updates so far.
    updates: u64,
    /// Numbers of updates between which the steady rate is taken.
    marks: [u64; 2],
    /// Number of updates and time when each of the marks was reached.
    mark_times: [(u64, Duration); 2],
}

/// The description from which a part is created.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PartPlan {
    /// The whole table and the owner of each part.
    plan: GupsPlan,
    /// The owner's index; `None` if this place has no part.
    owner: Option<u64>,
    /// Numbers of updates between which the steady rate is taken.
    marks: [u64; 2],
}

impl TablePart {
    /// Returns the initial part of an owner.
    fn new(PartPlan { plan, owner, marks }: PartPlan) -> TablePart {
        let range = owner.map_or(0..0, |owner| plan.blocks.range(owner));
        let mut entries = memory::vec_in_large_pages(range.clone().count());
        entries.extend(range.clone());
        TablePart {
            first: range.start,
            plan,
            entries,
            cost: plan.costs.apply_cycles,
            updates: 0,
            marks,
            mark_times: [(0, Duration::ZERO); 2],
        }
    }

    /// Returns the place of an update.
    fn target(&self, number: &u64) -> Place {
        self.plan.place(number & (self.plan.blocks.size() - 1))
    }

    /// Applies updates.
    ///
    /// # Panics
    /// If an entry does not belong to this part.
    fn update(&mut self, numbers: &[u64]) {
        let (mask, first, entries) = (self.plan.blocks.size() - 1, self.first, &mut *self.entries);
        for number in numbers {
            entries[((number & mask) - first) as usize] ^= number;
        }
        let count = numbers.len() as u64;
        if self.cost > 0 {
            work(Cycles(self.cost * count));
        }
        let before = self.updates;
        self.updates += count;
        for (mark, reached) in self.marks.iter().zip(&mut self.mark_times) {
            if (before..self.updates).contains(mark) {
                *reached = (self.updates, now());
            }
        }
    }

    /// Returns the number of entries that differ from their values before the first update.
    fn errors(&self) -> u64 {
        self.entries.iter().zip(self.first..).filter(|(entry, index)| **entry != *index).count() as u64
    }

    /// Returns the updates per nanosecond of this part in the middle of the run; 0 if it had too few.
    fn steady_rate(&self) -> f64 {
        let [(first, begin), (last, end)] = self.mark_times;
        if end > begin { (last - first) as f64 / (end - begin).as_secs_f64() / 1e9 } else { 0.0 }
    }

    /// Makes further updates free, for the verification.
    fn end_charging(&mut self) {
        self.cost = 0;
    }
}
