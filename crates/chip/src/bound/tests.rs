//! Bounds by hand, and bounds against the model: no run of a program exceeds its bound, whatever the other cores do.

use super::mutex::MutexBounds;
use super::pattern::{ParallelPattern, PatternSize};
use super::periodic::{LineFlow, line_flows};
use super::*;
use crate::Chip;
use crate::bare::rcce::{LibraryCosts, Participant};
use crate::bare::ticket_lock::TicketLock;
use crate::bare::{BareChip, BareCore};
use crate::kernel::exact::{Packet, arrivals};
use crate::quantity::Picoseconds;
use crate::topology::{CoreId, TileId};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;

/// No instructions, so that a bound covers the accesses alone.
const NO_INSTRUCTIONS: LibraryCosts = LibraryCosts { call: 0, look: 0, line: 0, tail: 0, prefetches: false };

/// Returns the SCC; its file is read once.
fn scc() -> &'static Chip {
    static SCC: LazyLock<Chip> = LazyLock::new(|| Chip::find("scc").unwrap());
    &SCC
}

fn bounds(program: &StaticProgram, library: LibraryCosts, others: Others, data: DataIn) -> ProgramBounds {
    let chip = scc();
    ProgramBounds::new(
        Platform { chip, preset: chip.default_preset(), constants: Constants::AsWritten },
        program,
        library,
        others,
        LinkOrder::Reserved,
        data,
    )
    .unwrap()
}

fn nanoseconds(text: f64) -> Picoseconds {
    Picoseconds((text * 1e3).round() as u64)
}

fn message(bytes: usize, to: u32) -> StaticProgram {
    let mut program = StaticProgram::new(to + 1);
    program.push_message(0, to, bytes, 0, 0);
    program
}

/// Returns the bound without the waits for others.
fn alone(terms: Terms) -> Picoseconds {
    let waits = terms.part(Term::Links) + terms.part(Term::Ports);
    terms.total() - waits
}

#[test]
fn a_message_by_hand() {
    // RCCE, 0 hops: put 565, three flags of 441.25, two looks of 142.5, get 525.
    let program = message(32, 1);
    let bound = bounds(&program, LibraryCosts::RCCE, Others::Idle, DataIn::FirstCache);
    let receiver = bound.ends(&program).unwrap()[1];
    let polling = receiver.part(Term::Polling);
    // Looks of the core at its own buffer wait for the other core of the tile: 2 times 4.375 ns each.
    assert_eq!(polling, nanoseconds(2.0 * (142.5 + 8.75)));
    assert_eq!(alone(receiver) - polling + nanoseconds(285.0), nanoseconds(2_698.75));
    let program = message(64 * 32, 1);
    let bound = bounds(&program, LibraryCosts::RCCE, Others::Idle, DataIn::FirstCache);
    let receiver = bound.ends(&program).unwrap()[1];
    assert_eq!(alone(receiver) - polling + nanoseconds(285.0), nanoseconds(34_041.25));
}

#[test]
fn a_barrier_of_all_cores_by_hand() {
    // Σ hops to core 0 are 192: 47 reads take 5,895 ns, 47 writes 7,775, and a member writes its own flag in 145.
    let program =
        ParallelPattern::Barrier.program(PatternSize { participants: 48, bytes: 0, work: 0, items: 1 }, 32);
    let bound = bounds(&program, NO_INSTRUCTIONS, Others::Idle, DataIn::FirstCache);
    let root = bound.ends(&program).unwrap()[0];
    assert_eq!(alone(root), nanoseconds(19_565.0 + 145.0));
}

#[test]
fn a_barrier_of_all_cores_around_another_root_by_hand() {
    // The hops to core 16 are fewer: twice their reads, and the writes.
    let chip = scc();
    let at = Platform { chip, preset: chip.default_preset(), constants: Constants::AsWritten };
    let none = Interference::none(chip).unwrap();
    let bounds = AccessBounds::new(at, none, LinkOrder::Reserved, DataIn::FirstCache).unwrap();
    let others = || (0..48).filter(|core| *core != 16).map(CoreId);
    let reads: Picoseconds = others().map(|core| bounds.read(CoreId(16), core).total()).sum();
    let writes: Picoseconds = others().map(|core| bounds.write(CoreId(16), core).total()).sum();
    assert_eq!(reads * 2 + writes, nanoseconds(18_485.0));
}

#[test]
fn a_read_of_one_core_by_all_by_hand() {
    // Core 46 reads core 0 over 8 hops, and all others read it too: 39 of them share a link with it, 47 the buffer.
    let chip = scc();
    let mut readers = Interference::none(chip).unwrap();
    (0..48).for_each(|core| readers.add_read(CoreId(core), CoreId(0)));
    let at = Platform { chip, preset: chip.default_preset(), constants: Constants::AsWritten };
    let bound = |order| {
        AccessBounds::new(at, readers.clone(), order, DataIn::FirstCache).unwrap().read(CoreId(46), CoreId(0))
    };
    let exact = bound(LinkOrder::Arrival);
    let parts = [Term::Accesses, Term::Links, Term::Ports].map(|term| exact.part(term));
    assert_eq!(parts, [145.0, 585.0, 205.625].map(nanoseconds));
    let reserved = bound(LinkOrder::Reserved);
    assert_eq!(reserved.total() - nanoseconds(145.0), (exact.total() - nanoseconds(145.0)) * 2);
}

#[test]
fn three_lines_at_once_on_a_link_by_hand() {
    let chip = scc();
    let pace = chip.links().pace(chip.default_preset().clocks());
    let packet = Packet { from: Picoseconds(0), path: vec![0], flits: 3 };
    let arrived = arrivals(1, pace, &[packet.clone(), packet.clone(), packet]);
    assert_eq!(arrived, [8.75, 23.75, 38.75].map(nanoseconds));
}

#[test]
fn a_packet_that_meets_another_on_each_of_its_links_by_hand() {
    let chip = scc();
    let pace = chip.links().pace(chip.default_preset().clocks());
    // The last packet crosses both links; another one reaches each of them at the same time.
    let packet = |from, path: &[usize]| Packet { from: Picoseconds(from), path: path.to_vec(), flits: 3 };
    let arrived = arrivals(2, pace, &[packet(0, &[0]), packet(20_000, &[1]), packet(0, &[0, 1])]);
    assert_eq!(arrived[2], nanoseconds(43.75));
}

#[test]
fn a_ring_of_blocking_sends_has_no_bound_and_says_who_waits() {
    let mut ring = StaticProgram::new(3);
    for from in 0..3 {
        ring.push(from, ProgramStep::Send { to: (from + 1) % 3, bytes: 32, line: 0 });
        ring.push(from, ProgramStep::Receive { from: (from + 2) % 3, bytes: 32, line: 1 });
    }
    let bound = bounds(&ring, LibraryCosts::RCCE, Others::Idle, DataIn::FirstCache);
    let error = bound.ends(&ring).unwrap_err();
    let text = "these participants wait for each other forever: 0 (sends to 1) 1 (sends to 2) 2 (sends to 0)";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_program_that_does_not_fit_is_refused() {
    let chip = scc();
    let refused = |program: &StaticProgram| {
        let at = Platform { chip, preset: chip.default_preset(), constants: Constants::AsWritten };
        let (others, order, data) = (Others::Idle, LinkOrder::Reserved, DataIn::FirstCache);
        let bounds = ProgramBounds::new(at, program, LibraryCosts::RCCE, others, order, data);
        bounds.unwrap_err().to_string()
    };
    assert_eq!(refused(&StaticProgram::new(49)), "49 participants; allowed: 1 to 48");
    let mut program = StaticProgram::new(2);
    program.push(1, ProgramStep::Send { to: 1, bytes: 1, line: 0 });
    assert_eq!(refused(&program), "participant 1 names 1 as its partner, but that is not a participant");
}

/// Runs a core that does not participate: accesses of random kinds, with random pauses.
async fn disturb(core: BareCore, seed: u64, stop: Rc<Cell<bool>>) {
    let mut state = seed | 1;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    while !stop.get() {
        let of = CoreId(next(48) as u32);
        match next(8) {
            0 => core.compute(next(200)).await,
            1 => _ = core.read_shared(crate::ControllerId(next(4) as u32), next(1 << 20)).await,
            2 => core.write_shared(crate::ControllerId(next(4) as u32), next(1 << 20), [1; 32]).await,
            // Lines after the flags and chunks of messages.
            3..=5 => _ = core.read_line(of, 200 + next(56) as u32).await,
            _ => core.write_line(of, 255, [3; 32]).await,
        }
    }
}

/// Returns the time a program takes on the model, from the common start until the last core ends.
fn measured(program: &StaticProgram, library: LibraryCosts, others: Option<u64>, lines: u64) -> Picoseconds {
    let chip = scc();
    let bare = BareChip::new(chip, chip.default_preset()).unwrap();
    let count = program.participants();
    bare.run((0..count).map(CoreId), |core| async move {
        for line in 0..lines {
            core.load(line).await;
        }
    })
    .unwrap();
    let (stop, left, end) =
        (Rc::new(Cell::new(false)), Rc::new(Cell::new(count)), Rc::new(Cell::new(bare.now())));
    let start = bare.now();
    let running = if others.is_some() { 48 } else { count };
    let shared = (Rc::clone(&stop), Rc::clone(&left), Rc::clone(&end), program.clone());
    bare.run((0..running).map(CoreId), move |core| {
        let (stop, left, end, program) =
            (Rc::clone(&shared.0), Rc::clone(&shared.1), Rc::clone(&shared.2), shared.3.clone());
        async move {
            if core.id().0 >= count {
                let seed = others.unwrap_or(0).wrapping_add(u64::from(core.id().0) << 32);
                return disturb(core, seed, stop).await;
            }
            let here = Participant { core: core.clone(), participants: count, library };
            here.run(&program).await;
            end.set(end.get().max(core.now()));
            left.set(left.get() - 1);
            stop.set(left.get() == 0);
        }
    })
    .unwrap();
    end.get() - start
}

/// Returns the number of random cases, which `./test --long bounds` raises.
fn cases() -> u32 {
    std::env::var("ISLES_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}

fn any_pattern() -> impl Strategy<Value = (ParallelPattern, PatternSize)> {
    let size = (1..=48_u32, 1..3_000_usize, 0..20_000_u64, 1..4_u32);
    (prop::sample::select(&ParallelPattern::ALL[..]), size).prop_map(
        |(pattern, (participants, bytes, work, items))| {
            (pattern, PatternSize { participants, bytes, work, items })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_run_takes_longer_than_its_bound(
        (pattern, size) in any_pattern(), seed in prop::option::of(any::<u64>()), is_ircce: bool, is_cold: bool
    ) {
        let library = if is_ircce { LibraryCosts::IRCCE } else { LibraryCosts::RCCE };
        let program = pattern.program(size, 32);
        let others = if seed.is_some() { Others::Anything } else { Others::Idle };
        let data = DataIn::of_bytes(scc(), if is_cold { usize::MAX } else { pattern.data_bytes(size) });
        let bound = bounds(&program, library, others, data).longest(&program).unwrap().total();
        let lines = if is_cold { 0 } else { pattern.data_bytes(size).div_ceil(32) as u64 + 4 };
        let took = measured(&program, library, seed, lines);
        prop_assert!(took <= bound, "{pattern:?} {size:?} {others:?} {data:?}: {took} > {bound}");
    }

    /// Single packets over the mesh, all at random moments, in the order of arrival and by reservation.
    #[test]
    fn no_packet_waits_longer_than_one_of_each_other_core(
        ways in prop::collection::vec((0..24_u32, 0..24_u32, 0..300_u64), 2..48)
    ) {
        let chip = scc();
        let topology = *chip.topology();
        let pace = chip.links().pace(chip.default_preset().clocks());
        let path = |from: u32, to: u32| -> Vec<usize> {
            topology.route(TileId(from), TileId(to)).map(|link| topology.link_id(link).0 as usize).collect()
        };
        let packet = |(from, to, at): (u32, u32, u64)| {
            Packet { from: Picoseconds(at * 997), path: path(from, to), flits: 3 }
        };
        let packets: Vec<Packet> = ways.iter().copied().map(packet).collect();
        let hold = 15_000;
        let shares = |one: &Packet, other: &Packet| other.path.iter().any(|link| one.path.contains(link));
        let met = |own: &Packet| packets.iter().filter(|other| shares(own, other)).count() as u64 - 1;
        let arrived = arrivals(topology.link_slots() as usize, pace, &packets);
        let mut network = crate::kernel::Network::new(topology.link_slots() as usize, pace);
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|at| packets[*at].from);
        for at in order {
            let packet = &packets[at];
            if packet.path.is_empty() {
                continue;
            }
            let alone = packet.from + pace.alone(packet.path.len(), 3);
            let wait = arrived[at] - alone;
            prop_assert!(wait.0 <= met(packet) * hold, "in order: {wait} of {}", met(packet));
            let train = crate::kernel::Train { packets: 1, flits: 3 };
            let wait = network.send(packet.from, packet.from, packet.path.iter().copied(), train);
            prop_assert!(wait.0 <= met(packet) * 2 * hold, "reserved: {wait} of {}", met(packet));
        }
    }
}

/// Returns the longest wait for a lock that each of the first cores takes a few times, with work in between.
fn longest_wait(participants: u32, hold: u64, seed: u64, others: bool) -> Picoseconds {
    let chip = scc();
    let bare = BareChip::new(chip, chip.default_preset()).unwrap();
    let (longest, left) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(participants)));
    let holders = Rc::new(Cell::new(0));
    let shared = (Rc::clone(&longest), left, holders, Rc::new(Cell::new(false)));
    let running = if others { 48 } else { participants };
    bare.run((0..running).map(CoreId), move |core| {
        let (longest, left, holders, stop) =
            (Rc::clone(&shared.0), Rc::clone(&shared.1), Rc::clone(&shared.2), Rc::clone(&shared.3));
        async move {
            let own = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(core.id().0) << 40);
            if core.id().0 >= participants {
                return disturb(core, own, stop).await;
            }
            let here = Participant { core: core.clone(), participants, library: LibraryCosts::RCCE };
            let lock = TicketLock::new(&here);
            for round in 0..3 {
                core.compute((own >> (20 + round)) % 3_000).await;
                let asked = core.now();
                lock.lock().await;
                longest.set(longest.get().max((core.now() - asked).0));
                assert_eq!(holders.replace(1), 0, "two hold the lock");
                core.compute(hold).await;
                holders.set(0);
                lock.unlock().await;
            }
            left.set(left.get() - 1);
            stop.set(left.get() == 0);
        }
    })
    .unwrap();
    Picoseconds(longest.get())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases() / 5))]

    #[test]
    fn no_core_waits_longer_for_a_lock_by_tickets_than_its_bound(
        participants in 1..49_u32, hold in 0..5_000_u64, seed: u64, others: bool
    ) {
        let chip = scc();
        let at = Platform { chip, preset: chip.default_preset(), constants: Constants::AsWritten };
        let beside = if others { Others::Anything } else { Others::Idle };
        let bounds =
            MutexBounds::new(at, participants, LibraryCosts::RCCE, beside, LinkOrder::Reserved).unwrap();
        let (bound, waited) = (bounds.wait(hold).total(), longest_wait(participants, hold, seed, others));
        prop_assert!(waited <= bound, "{participants} hold for {hold}: {waited} > {bound}");
    }

    /// Flows with any offsets, whose packets arrive at intervals of the period or more.
    #[test]
    fn no_line_of_a_periodic_flow_takes_longer_than_its_bound(
        ends in prop::collection::vec((0..48_u32, 0..48_u32, 60..900_u64, 0..900_u64), 1..12), delays: u64
    ) {
        let chip = scc();
        let topology = chip.topology();
        let flow = |(from, to, period, _): (u32, u32, u64, u64)| LineFlow {
            from: CoreId(from), to: CoreId(to), period: Picoseconds(period * 1_000),
        };
        let flows: Vec<LineFlow> = ends.iter().copied().map(flow).collect();
        let Ok(bounds) = line_flows(chip, chip.default_preset(), &flows) else { return Ok(()) };
        let pace = chip.links().pace(chip.default_preset().clocks());
        let (mut packets, mut owners) = (Vec::new(), Vec::new());
        for (number, (flow, (.., offset))) in flows.iter().zip(&ends).enumerate() {
            let path: Vec<usize> = topology
                .route(topology.tile_of(flow.from), topology.tile_of(flow.to))
                .map(|link| topology.link_id(link).0 as usize)
                .collect();
            let mut from = Picoseconds(offset * 1_000);
            for packet in 0..40 {
                packets.push(Packet { from, path: path.clone(), flits: 3 });
                owners.push(number);
                from += flow.period + Picoseconds(if delays >> packet & 1 == 1 { 7_300 } else { 0 });
            }
        }
        let arrived = arrivals(topology.link_slots() as usize, pace, &packets);
        for ((packet, end), owner) in packets.iter().zip(arrived).zip(owners) {
            let (took, bound) = (end - packet.from, bounds[owner].alone + bounds[owner].wait);
            prop_assert!(took <= bound, "flow {owner}: {took} > {bound} of {flows:?}");
        }
    }
}

#[test]
fn flows_that_ask_for_all_of_a_link_are_named() {
    let chip = scc();
    let flow =
        |from, to, period| LineFlow { from: CoreId(from), to: CoreId(to), period: Picoseconds(period) };
    let flows = [flow(0, 4, 30_000), flow(40, 46, 90_000), flow(2, 47, 30_000)];
    let error = line_flows(chip, chip.default_preset(), &flows).unwrap_err().to_string();
    assert_eq!(error, "the link East of tile 1 is overloaded by the flows 1, 3: no bound exists");
    let slower = [flow(0, 4, 31_000), flow(40, 46, 90_000), flow(2, 47, 31_000)];
    assert!(line_flows(chip, chip.default_preset(), &slower).is_ok());
}

#[test]
fn bounds_grow_with_size_participants_and_errors() {
    let chip = scc();
    let bound = |constants, others, size: PatternSize| {
        let program = ParallelPattern::Farm.program(size, 32);
        let at = Platform { chip, preset: chip.default_preset(), constants };
        let (order, data) = (LinkOrder::Reserved, DataIn::SecondCache);
        let bounds = ProgramBounds::new(at, &program, LibraryCosts::RCCE, others, order, data);
        bounds.unwrap().longest(&program).unwrap().total()
    };
    let size = PatternSize { participants: 8, bytes: 100, work: 0, items: 1 };
    let first = bound(Constants::AsWritten, Others::Idle, size);
    let larger = [
        bound(Constants::AsWritten, Others::Idle, PatternSize { bytes: 200, ..size }),
        bound(Constants::AsWritten, Others::Idle, PatternSize { participants: 9, ..size }),
        bound(Constants::AsWritten, Others::Idle, PatternSize { work: 100, ..size }),
        bound(Constants::AsWritten, Others::Anything, size),
        bound(Constants::WorstCase, Others::Idle, size),
    ];
    assert!(larger.iter().all(|bound| *bound > first), "{larger:?} and {first}");
}
