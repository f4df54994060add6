//! Measures the time of places' code on this host, and charges it if requested.
//!
//! All places of a modelled chip take turns in one thread. The stopwatch runs during a turn except in operations of the
//! chip: the wrapped endpoint of a place stops it for each operation. It therefore measures the program, its
//! serialisation, and the tasks of Isles. Measurements are taken, or played from a tape, at the same points of a run,
//! before an operation takes effect, so their order is that of the run.
//!
//! If the program declares its costs, the stopwatch reads the host's coarse clock, which is cheap and ticks every few
//! milliseconds. Ticks hit code in proportion to its time, so sums are right although single turns are not. The clock
//! also ticks while other programs run, so times are scaled by this thread's share of the processor. Invariant: with a
//! tape, or with nothing to charge, the run does not depend on any clock of this host.

use super::tape::{Measurement, Measurements, Playback};
use isles_chip::quantity::Rate;
use isles_transport::{
    Arrival, Class, Endpoint, FileAccess, HandlerId, Inbound, Multicast, Next, PlaceId, SendError, Work,
    WorkModel,
};
use isles_transport_chip::{ChipEndpoint, ChipWorld};
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

/// Time of each turn attributed to the tasks of Isles, in nanoseconds; the rest counts as the program's. It is
/// generous; without optimisation they take ten times as long.
const ALLOWANCE_NS: u64 = if cfg!(debug_assertions) { 30_000 } else { 3_000 };

/// Number of clock readings timed before a run; the cost of a reading is subtracted from each measurement.
const READINGS: u32 = 1_000;

/// Source of the time of code.
#[derive(Debug)]
enum TimeSource {
    /// The program declares its costs; since this instant the stopwatch only checks that it does.
    Declared(HostInstant),
    /// Measured as processor time of this thread, and recorded on a tape.
    Host { reading_ns: u64, tape: Measurements },
    /// Played from a tape.
    Tape(Playback),
    /// The run is over.
    Over,
}

/// An instant on this host, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct HostInstant {
    time: u64,
    /// Processor time of this thread.
    own_time: u64,
}

impl HostInstant {
    fn now() -> HostInstant {
        let [time, own_time] = [ClockId::Monotonic, ClockId::ThreadCPUTime].map(nanoseconds);
        HostInstant { time, own_time }
    }

    /// Returns the fraction of the time since this instant in which this thread had a processor, at most 1.
    fn running_share(self) -> f64 {
        let HostInstant { time, own_time } = HostInstant::now();
        let [all, own] = [time.abs_diff(self.time), own_time.abs_diff(self.own_time)];
        (own as f64 / all.max(1) as f64).min(1.0)
    }
}

/// Time of all places' code on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCode {
    /// Total measured time.
    pub(crate) total: Duration,
    /// Time of turns in which nothing was charged, without the time of Isles itself.
    pub(crate) uncharged: Duration,
}

/// Converts host times to core cycles, carrying the remainders.
#[derive(Debug)]
struct CycleConverter {
    /// Ratio of the core's cycles to parts of a nanosecond: `cycles` cycles take `parts` parts.
    cycles: u128,
    parts: u128,
    /// Remainder of each place's last measurement, in parts.
    left: RefCell<Vec<u128>>,
}

impl CycleConverter {
    fn new(ratio: u32, rate: Rate, places: u32) -> CycleConverter {
        CycleConverter {
            cycles: u128::from(ratio) * u128::from(rate.hertz()),
            parts: 1_000 * 1_000_000_000 * u128::from(rate.divider()),
            left: RefCell::new(vec![0; places as usize]),
        }
    }

    fn cycles(&self, place: PlaceId, nanoseconds: u64) -> u64 {
        let left = &mut self.left.borrow_mut()[place.index()];
        let due = u128::from(nanoseconds).saturating_mul(self.cycles).saturating_add(*left);
        *left = due % self.parts;
        u64::try_from(due / self.parts).unwrap_or(u64::MAX)
    }
}

/// The stopwatch of all places of a run.
pub(crate) struct Stopwatch {
    world: ChipWorld,
    source: RefCell<TimeSource>,
    exchange: CycleConverter,
    /// Reading at its start, if it is running.
    since: Cell<Option<u64>>,
    /// Measured time not charged yet, in nanoseconds.
    pending: Cell<u64>,
    /// `true` if the program has declared a cost in the present turn.
    charged: Cell<bool>,
    /// Number of turns in which nothing was charged, and of all others.
    turns: Cell<[u64; 2]>,
    code: Cell<HostCode>,
    /// `true` once the run has departed from its tape.
    diverged: Cell<bool>,
    /// `true` while places only drop their values.
    closing: Cell<bool>,
}

impl Stopwatch {
    fn new(world: &ChipWorld, source: TimeSource, exchange: CycleConverter) -> Rc<Stopwatch> {
        Rc::new(Stopwatch {
            world: world.clone(),
            source: RefCell::new(source),
            exchange,
            since: Cell::default(),
            pending: Cell::default(),
            charged: Cell::default(),
            turns: Cell::default(),
            code: Cell::default(),
            diverged: Cell::default(),
            closing: Cell::default(),
        })
    }

    /// Makes a stopwatch that checks that the program declares its costs.
    pub(crate) fn watch(world: &ChipWorld, rate: Rate) -> Rc<Stopwatch> {
        Self::new(world, TimeSource::Declared(HostInstant::now()), CycleConverter::new(0, rate, 0))
    }

    /// Makes a stopwatch that does nothing, for trials.
    pub(crate) fn idle(world: &ChipWorld, rate: Rate) -> Rc<Stopwatch> {
        Self::new(world, TimeSource::Over, CycleConverter::new(0, rate, 0))
    }

    /// Makes a stopwatch that charges each of `places` places `ratio` thousandths of its time here, on a core of
    /// `rate`.
    pub(crate) fn measure(world: &ChipWorld, ratio: u32, rate: Rate, places: u32) -> Rc<Stopwatch> {
        let reading = || nanoseconds(ClockId::ThreadCPUTime);
        let readings = (0..READINGS).map(|_| reading().abs_diff(reading()));
        let source =
            TimeSource::Host { reading_ns: readings.min().unwrap_or(0), tape: Measurements::default() };
        Self::new(world, source, CycleConverter::new(ratio, rate, places))
    }

    /// As [`Stopwatch::measure`], with the measurements of a tape.
    pub(crate) fn play(
        world: &ChipWorld,
        ratio: u32,
        rate: Rate,
        places: u32,
        tape: Playback,
    ) -> Rc<Stopwatch> {
        Self::new(world, TimeSource::Tape(tape), CycleConverter::new(ratio, rate, places))
    }

    /// Returns the clock reading: of the host's coarse clock if costs are declared, of the thread's clock if they are
    /// measured.
    fn reading(&self) -> u64 {
        match &*self.source.borrow() {
            TimeSource::Declared(_) => nanoseconds(ClockId::MonotonicCoarse),
            TimeSource::Host { .. } => nanoseconds(ClockId::ThreadCPUTime),
            TimeSource::Tape(_) | TimeSource::Over => 0,
        }
    }

    fn start(&self) {
        self.since.set(Some(self.reading()));
    }

    /// Stops the stopwatch; returns `true` if it was running.
    fn stop(&self) -> bool {
        let Some(since) = self.since.take() else { return false };
        let taken = self.reading().saturating_sub(since);
        let cost =
            if let TimeSource::Host { reading_ns, .. } = &*self.source.borrow() { *reading_ns } else { 0 };
        self.pending.set(self.pending.get() + taken.saturating_sub(cost));
        true
    }

    /// Charges `place` with the pending measurement, or with the next of the tape.
    fn settle(&self, place: PlaceId) {
        let nanoseconds = match &mut *self.source.borrow_mut() {
            TimeSource::Declared(_) | TimeSource::Over => return,
            TimeSource::Host { tape, .. } => {
                let nanoseconds = self.pending.take();
                tape.push(Measurement { place: place.0, nanoseconds });
                let code = self.code.get();
                self.code.set(HostCode { total: code.total + Duration::from_nanos(nanoseconds), ..code });
                nanoseconds
            }
            TimeSource::Tape(playback) => match playback.next(place.0) {
                Some(nanoseconds) if !self.diverged.get() => nanoseconds,
                _ => return self.diverged.set(true),
            },
        };
        self.world.charge(place, self.exchange.cycles(place, nanoseconds));
    }

    /// Runs `operation` of the chip for `place` with the stopwatch stopped.
    fn during<R>(&self, place: PlaceId, operation: impl FnOnce(bool) -> R) -> R {
        let ran = self.stop();
        if ran {
            self.settle(place);
        }
        let result = operation(ran);
        if ran {
            self.start();
        }
        result
    }

    /// Runs `code` of a place within an operation, with the stopwatch running.
    fn back<R>(&self, ran: bool, code: impl FnOnce() -> R) -> R {
        if !ran {
            return code();
        }
        self.start();
        let result = code();
        self.stop();
        result
    }

    /// Starts a turn of a place.
    pub(crate) fn begin_turn(&self) {
        self.start();
    }

    /// Ends a turn of `place`, before the world does.
    pub(crate) fn end_turn(&self, place: PlaceId) {
        self.stop();
        self.settle(place);
        let charged = self.charged.take();
        if let TimeSource::Declared(_) = &*self.source.borrow() {
            let [free, paid] = self.turns.get();
            self.turns.set(if charged { [free, paid + 1] } else { [free + 1, paid] });
            let own = Duration::from_nanos(self.pending.take());
            let HostCode { total, uncharged } = self.code.get();
            let uncharged = if charged { uncharged } else { uncharged + own };
            self.code.set(HostCode { total: total + own, uncharged });
        }
    }

    /// Returns the time at `place`, including its code until now.
    pub(crate) fn now(&self, place: PlaceId) -> Duration {
        self.during(place, |_| self.world.now(place))
    }

    /// Returns the time of the code, scaled by this thread's share of a processor, without the allowance for the tasks
    /// of Isles in each turn.
    fn code_without_isles(&self, running_share: f64) -> HostCode {
        let HostCode { total, uncharged } = self.code.get();
        let [total, uncharged] = [total, uncharged].map(|time| time.mul_f64(running_share));
        let [free, paid] = self.turns.get().map(|turns| Duration::from_nanos(ALLOWANCE_NS * turns));
        let (paid, free) = ((total - uncharged).saturating_sub(paid), uncharged.saturating_sub(free));
        HostCode { total: paid + free, uncharged: free }
    }

    /// Calls `question` with the chip for `place`, with the stopwatch stopped.
    pub(crate) fn ask<R>(&self, place: PlaceId, question: impl FnOnce(&ChipWorld, PlaceId) -> R) -> R {
        self.during(place, |_| question(&self.world, place))
    }

    /// Returns `true` if the run has departed from its tape.
    pub(crate) fn has_diverged(&self) -> bool {
        self.diverged.get()
    }

    /// Discards all messages from now on. Places only drop their values, and the clocks of some are too far behind for
    /// the chip.
    pub(crate) fn close(&self) {
        self.closing.set(true);
    }

    /// Ends the measurement. Returns the time of the code and the measurements for a tape. If the run has departed from
    /// its tape, the error has the number of measurements played, and their total number.
    pub(crate) fn end(&self) -> Result<(HostCode, Measurements), (u64, u64)> {
        match self.source.replace(TimeSource::Over) {
            TimeSource::Host { tape, .. } => Ok((self.code.get(), tape)),
            TimeSource::Tape(playback) => {
                let (played, all) = playback.progress();
                let whole = played == all && !self.diverged.get();
                if whole { Ok((self.code.get(), Measurements::default())) } else { Err((played, all)) }
            }
            TimeSource::Declared(begin) => {
                Ok((self.code_without_isles(begin.running_share()), Measurements::default()))
            }
            TimeSource::Over => Ok((self.code_without_isles(1.0), Measurements::default())),
        }
    }
}

/// Returns the reading of a clock of the host, in nanoseconds.
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The endpoint of a place on a chip, which stops the stopwatch during its operations.
pub(crate) struct TimedEndpoint {
    here: PlaceId,
    endpoint: ChipEndpoint,
    stopwatch: Rc<Stopwatch>,
}

impl TimedEndpoint {
    pub(crate) fn new(place: PlaceId, stopwatch: &Rc<Stopwatch>) -> TimedEndpoint {
        TimedEndpoint {
            here: place,
            endpoint: stopwatch.world.endpoint(place),
            stopwatch: Rc::clone(stopwatch),
        }
    }

    /// Calls `send` with `fill`, which is code of the program; once the run closes, the message is discarded.
    fn sends<R>(
        &self,
        bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> R,
        send: impl FnOnce(&mut dyn FnMut(&mut [u8]) -> R) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        if self.stopwatch.closing.get() {
            fill(&mut vec![0; bytes]);
            return Ok(());
        }
        self.stopwatch
            .during(self.here, |ran| send(&mut |bytes: &mut [u8]| self.stopwatch.back(ran, || fill(bytes))))
    }
}

impl Endpoint for TimedEndpoint {
    isles_transport::forward_to!(endpoint:
        places, limits, shares_processors, is_ready, is_sending, unparker, is_dead, declare_dead, death, shared_memory,
        lending, other_hosts, wait_with, leave, span_sink
    );

    fn here(&self) -> PlaceId {
        self.here
    }

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        self.sends(room, fill, |fill| self.endpoint.send(to, class, handler, room, fill))
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        self.sends(len, fill, |fill| self.endpoint.send_block(to, class, handler, len, fill))
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        self.stopwatch.during(self.here, |ran| {
            let mut deliver = |arrival: Arrival<'_>| self.stopwatch.back(ran, || deliver(arrival));
            self.endpoint.progress(inbound, &mut deliver)
        })
    }

    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        self.stopwatch.during(self.here, |ran| {
            let mut wants = |handler, bytes: &[u8]| self.stopwatch.back(ran, || wants(handler, bytes));
            self.endpoint.take_next(from, class, &mut wants)
        })
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        Some(self)
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        self.endpoint.multicast().map(|_| self as &dyn Multicast)
    }
}

impl Multicast for TimedEndpoint {
    fn bytes(&self, class: Class) -> Range<usize> {
        self.endpoint.bytes(class)
    }

    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError> {
        if self.stopwatch.closing.get() {
            return Ok(());
        }
        self.stopwatch.during(self.here, |_| self.endpoint.send_to_all(to, class, handler, message))
    }
}

impl WorkModel for TimedEndpoint {
    /// Charges the declared work unless code is measured, which would count it twice.
    fn work(&self, work: &Work, line: &'static Location<'static>) {
        if let TimeSource::Declared(_) = &*self.stopwatch.source.borrow() {
            self.stopwatch.charged.set(self.stopwatch.charged.get() || !work.is_nothing());
            self.endpoint.work(work, line);
        }
    }

    /// Charges the access unless code is measured, which includes the access to the host's file.
    fn access_file(&self, access: &FileAccess) {
        if let TimeSource::Declared(_) = &*self.stopwatch.source.borrow() {
            self.endpoint.access_file(access);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::Chip;
    use isles_transport_chip::{Costs, TimeCategory};

    const PLACE: PlaceId = PlaceId(0);

    fn world() -> (ChipWorld, Rate) {
        let chip = Chip::find("scc").unwrap();
        let world = ChipWorld::new(2, Costs::of(&chip).unwrap(), 0).unwrap();
        (world, chip.default_preset().clocks().core)
    }

    #[test]
    fn a_turn_that_is_charged_nothing_is_noticed_and_one_that_says_its_cost_is_not() {
        let (world, rate) = world();
        let stopwatch = Stopwatch::watch(&world, rate);
        let endpoint = TimedEndpoint::new(PLACE, &stopwatch);
        for said in [0, 1, 0] {
            endpoint.work(&Work::new().cycles(said), Location::caller());
            stopwatch.pending.set(1_000_000_000);
            stopwatch.end_turn(PLACE);
        }
        let own = Duration::from_secs(1) - Duration::from_nanos(ALLOWANCE_NS);
        assert_eq!(stopwatch.code_without_isles(1.0), HostCode { total: 3 * own, uncharged: 2 * own });
        let half = Duration::from_millis(500) - Duration::from_nanos(ALLOWANCE_NS);
        let beside_another = stopwatch.code_without_isles(0.5);
        assert_eq!(beside_another, HostCode { total: 3 * half, uncharged: 2 * half });
        assert!(world.now(PLACE) > Duration::ZERO, "the cycle that was said is charged");
    }

    #[test]
    fn what_is_measured_is_charged_at_the_ratio_and_goes_on_the_tape_and_what_is_said_is_not() {
        let (world, rate) = world();
        let stopwatch = Stopwatch::measure(&world, 2_000, rate, 2);
        let endpoint = TimedEndpoint::new(PLACE, &stopwatch);
        stopwatch.begin_turn();
        endpoint.work(&Work::new().cycles(1 << 40), Location::caller());
        stopwatch.stop();
        stopwatch.pending.set(1_000_000);
        stopwatch.end_turn(PLACE);
        let (code, tape) = stopwatch.end().unwrap();
        assert_eq!((code.total, code.uncharged), (Duration::from_millis(1), Duration::ZERO));
        let report = world.report();
        let measured = report.ledgers[0].time(TimeCategory::Measured).0;
        assert!(
            (1_999_998_000..=2_000_000_000).contains(&measured),
            "two milliseconds but for a cycle: {measured}"
        );
        let mut expected = Measurements::default();
        expected.push(Measurement { place: 0, nanoseconds: 1_000_000 });
        assert_eq!(tape, expected);
    }

    #[test]
    fn a_thread_that_sleeps_has_no_processor() {
        let begin = HostInstant::now();
        assert!((0.0..=1.0).contains(&begin.running_share()));
        std::thread::park_timeout(Duration::from_millis(20));
        assert!(begin.running_share() < 0.9, "{begin:?}");
    }

    #[test]
    fn parts_of_cycles_are_not_lost() {
        let exchange = CycleConverter::new(1_500, Rate::new(1_600_000_000, 3).unwrap(), 1);
        let sum: u64 = (0..1_000_000).map(|_| exchange.cycles(PLACE, 1)).sum();
        assert_eq!(sum, 800_000, "a millisecond at 533 MHz and one and a half times as long");
    }
}
