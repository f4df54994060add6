//! Hazards by hand, and random programs against a model of plain lists.

use super::*;
use crate::quantity::Bytes;
use proptest::prelude::*;

fn caches(first_lines: u64, second_lines: u64) -> Caches {
    let bytes = |lines| Some(Bytes(lines * LINE_BYTES as u64));
    Caches { line: Bytes(32), first: bytes(first_lines), instructions: None, second: bytes(second_lines) }
}

fn memory() -> SharedMemory {
    SharedMemory::new(&caches(512, 8_192), 4)
}

fn byte(memory: &mut SharedMemory, core: u32, time: u64, kind: CachePolicy, address: u64) -> u8 {
    let mut found = [0];
    memory.read(CoreId(core), Picoseconds(time), kind, address, &mut found);
    found[0]
}

#[test]
fn a_reader_with_an_old_copy_gets_the_old_byte_and_is_reported() {
    let mut memory = memory();
    for kind in [CachePolicy::Cached, CachePolicy::Through] {
        let mut memory = memory.clone();
        assert_eq!(byte(&mut memory, 1, 10, kind, 70), 0);
        memory.write(CoreId(0), Picoseconds(20), kind, 70, &[7]);
        memory.drain(CoreId(0), Picoseconds(21));
        assert_eq!(byte(&mut memory, 1, 30, kind, 70), 0, "{kind:?}");
        let [stale] = memory.stale_reads() else { panic!("{:?}", memory.stale_reads()) };
        let expected = StaleRead {
            core: CoreId(1),
            at: Picoseconds(30),
            address: 70,
            found: 0,
            newest: 7,
            missed: Write { core: CoreId(0), at: Picoseconds(20) },
            cause: StaleCause::OldCopy,
        };
        assert_eq!(*stale, expected);
        match kind {
            CachePolicy::Through => memory.invalidate(CoreId(1)),
            _ => assert_eq!(memory.flush(CoreId(1), Picoseconds(31), 70..71), AccessTraffic::default()),
        }
        assert_eq!((byte(&mut memory, 1, 40, kind, 70), memory.stale_count()), (7, 1));
    }
    memory.write(CoreId(0), Picoseconds(20), CachePolicy::Uncached, 70, &[7]);
    assert_eq!((byte(&mut memory, 1, 30, CachePolicy::Uncached, 70), memory.stale_count()), (7, 0));
}

#[test]
fn a_write_that_its_core_still_has_is_missed_until_it_lets_go() {
    let mut memory = memory();
    memory.write(CoreId(0), Picoseconds(10), CachePolicy::Through, 0, &[1; 8]);
    assert_eq!(byte(&mut memory, 1, 20, CachePolicy::Through, 0), 0);
    assert_eq!(memory.stale_reads()[0].cause, StaleCause::NotWrittenBack);
    // A write to another line drains the buffer, and so does a write to the end of a line.
    assert_eq!(memory.write(CoreId(0), Picoseconds(30), CachePolicy::Through, 64, &[2]).drained, 1);
    memory.invalidate(CoreId(1));
    assert_eq!(byte(&mut memory, 1, 40, CachePolicy::Through, 0), 1);
    assert_eq!(memory.write(CoreId(0), Picoseconds(50), CachePolicy::Through, 64, &[3; 32]).drained, 1);
    assert_eq!((byte(&mut memory, 1, 60, CachePolicy::Through, 95), memory.stale_count()), (3, 1));

    byte(&mut memory, 2, 70, CachePolicy::Cached, 200);
    assert_eq!(memory.write(CoreId(2), Picoseconds(80), CachePolicy::Cached, 200, &[9]).words_written, 0);
    assert_eq!(byte(&mut memory, 3, 90, CachePolicy::Cached, 200), 0);
    assert_eq!((memory.stale_count(), memory.stale_reads()[1].cause), (2, StaleCause::NotWrittenBack));
    assert_eq!(memory.flush(CoreId(2), Picoseconds(100), 0..1_000).written_back, 1);
    memory.flush(CoreId(3), Picoseconds(110), 200..201);
    assert_eq!((byte(&mut memory, 3, 120, CachePolicy::Cached, 200), memory.stale_count()), (9, 2));
}

#[test]
fn an_older_copy_that_is_written_back_undoes_what_another_core_wrote_beside_it() {
    let mut memory = memory();
    byte(&mut memory, 0, 10, CachePolicy::Cached, 0);
    memory.write(CoreId(0), Picoseconds(20), CachePolicy::Cached, 0, &[5]);
    memory.write(CoreId(1), Picoseconds(30), CachePolicy::Cached, 1, &[6]);
    memory.flush(CoreId(0), Picoseconds(40), 0..32);
    assert_eq!(byte(&mut memory, 2, 50, CachePolicy::Cached, 1), 0, "core 0 never saw the 6");
    assert_eq!(memory.stale_reads()[0].cause, StaleCause::Overwritten);
    assert_eq!(memory.stale_reads()[0].missed.core, CoreId(1));
    let text = memory.stale_reads()[0].describe("core");
    assert!(
        text.starts_with("core 2 read 0 at address 0x1 at 0.000 µs and missed the 6 that core 1 wrote"),
        "{text}"
    );
}

#[test]
fn a_write_is_seen_from_its_time_on_whoever_comes_first() {
    let mut memory = memory();
    memory.write(CoreId(0), Picoseconds(1_000), CachePolicy::Uncached, 0, &[1]);
    memory.write(CoreId(1), Picoseconds(500), CachePolicy::Uncached, 0, &[2]);
    let found = |memory: &mut SharedMemory, time| byte(memory, 2, time, CachePolicy::Uncached, 0);
    assert_eq!([499, 500, 999, 1_000].map(|time| found(&mut memory, time)), [0, 2, 2, 1]);
    memory.set_present(Picoseconds(2_000));
    memory.write(CoreId(1), Picoseconds(2_500), CachePolicy::Uncached, 1, &[3]);
    assert_eq!((found(&mut memory, 2_000), memory.stale_count()), (1, 0));
}

#[test]
fn an_access_that_fills_the_buffer_goes_with_all_that_it_wrote() {
    let mut memory = memory();
    memory.write(CoreId(1), Picoseconds(10), CachePolicy::Through, 33, &[1; 31]);
    assert_eq!(memory.write(CoreId(1), Picoseconds(20), CachePolicy::Through, 32, &[2; 8]).drained, 1);
    assert_eq!((byte(&mut memory, 0, 30, CachePolicy::Through, 33), memory.stale_count()), (2, 0));
}

#[test]
fn what_was_not_kept_is_counted() {
    let mut memory = memory();
    byte(&mut memory, 1, 0, CachePolicy::Through, 0);
    memory.write(CoreId(0), Picoseconds(1), CachePolicy::Uncached, 0, &[1]);
    for time in 2..500 {
        byte(&mut memory, 1, time, CachePolicy::Through, 0);
    }
    assert_eq!((memory.stale_reads().len(), memory.stale_count()), (STALE_LISTED_MAX, 498));
}

/// One access of a program.
#[derive(Clone, Debug)]
enum Step {
    Read(u32, CachePolicy, u64, usize),
    Write(u32, CachePolicy, u64, Vec<u8>),
    Invalidate(u32),
    Drain(u32),
    Flush(u32, u64, u64),
}

/// Lines of each policy; no line is accessed under two policies.
const LINES: u64 = 12;

fn kinds() -> impl Strategy<Value = (CachePolicy, u64)> {
    let kind =
        prop_oneof![Just(CachePolicy::Uncached), Just(CachePolicy::Cached), Just(CachePolicy::Through)];
    (kind, 0..LINES * 32).prop_map(|(kind, offset)| (kind, kind as u64 * LINES * 32 + offset))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u32, kinds(), 1..70_usize)
            .prop_map(|(core, (kind, address), len)| Step::Read(core, kind, address, len)),
        4 => (0..3_u32, kinds(), prop::collection::vec(1..4_u8, 1..70))
            .prop_map(|(core, (kind, address), bytes)| Step::Write(core, kind, address, bytes)),
        1 => (0..3_u32).prop_map(Step::Invalidate),
        1 => (0..3_u32).prop_map(Step::Drain),
        1 => (0..3_u32, 0..3 * LINES * 32, 1..200_u64).prop_map(|(core, from, len)| Step::Flush(core, from, len)),
    ];
    prop::collection::vec(step, 0..120)
}

/// Bytes by address, each with the number of its write.
type Contents = BTreeMap<u64, (u8, usize)>;

/// Reference model: the memory byte by byte, with unlimited caches and a list of copies for each core.
#[derive(Default)]
struct Reference {
    memory: Contents,
    newest: Contents,
    /// By core and line: the bytes of the copy, and whether it is dirty.
    copies: BTreeMap<(u32, u64), (Contents, bool)>,
    buffers: BTreeMap<u32, (u64, Contents)>,
    stale: u64,
}

impl Reference {
    fn line(&self, line: u64) -> Contents {
        (line * 32..line * 32 + 32)
            .map(|at| (at, self.memory.get(&at).copied().unwrap_or_default()))
            .collect()
    }

    fn read(&mut self, core: u32, kind: CachePolicy, address: u64, len: usize) -> Vec<u8> {
        let mut found = Vec::new();
        let mut stale_lines = std::collections::BTreeSet::new();
        for at in address..address + len as u64 {
            let seen = match kind {
                CachePolicy::Uncached => self.memory.get(&at).copied().unwrap_or_default(),
                _ => {
                    let fetched = self.line(at / 32);
                    self.copies.entry((core, at / 32)).or_insert((fetched, false)).0[&at]
                }
            };
            if seen != self.newest.get(&at).copied().unwrap_or_default() {
                stale_lines.insert(at / 32);
            }
            found.push(seen.0);
        }
        self.stale += stale_lines.len() as u64;
        found
    }

    fn write(&mut self, core: u32, kind: CachePolicy, address: u64, bytes: &[u8], number: usize) {
        let last = address + bytes.len() as u64 - 1;
        for (at, byte) in (address..).zip(bytes) {
            let value = (*byte, number);
            self.newest.insert(at, value);
            let copy = self.copies.get_mut(&(core, at / 32));
            match (kind, copy) {
                (CachePolicy::Cached, Some((copy, changed))) => {
                    copy.insert(at, value);
                    *changed = true;
                }
                (CachePolicy::Uncached | CachePolicy::Cached, _) => _ = self.memory.insert(at, value),
                (CachePolicy::Through, copy) => {
                    if let Some((copy, _)) = copy {
                        copy.insert(at, value);
                    }
                    if self.buffers.get(&core).is_some_and(|(line, _)| *line != at / 32) {
                        self.drain(core);
                    }
                    let (_, gathered) = self.buffers.entry(core).or_insert((at / 32, BTreeMap::new()));
                    gathered.insert(at, value);
                    // An access is atomic: its later bytes of the line are buffered before the line is drained.
                    if gathered.len() == 32 && (at % 32 == 31 || at == last) {
                        self.drain(core);
                    }
                }
            }
        }
    }

    fn drain(&mut self, core: u32) {
        if let Some((_, gathered)) = self.buffers.remove(&core) {
            self.memory.extend(gathered);
        }
    }

    fn invalidate(&mut self, core: u32) {
        let through = CachePolicy::Through as u64 * LINES..;
        self.copies.retain(|(of, line), _| *of != core || !through.contains(line));
    }

    fn flush(&mut self, core: u32, from: u64, len: u64) {
        for line in from / 32..=(from + len - 1) / 32 {
            if let Some((copy, true)) = self.copies.remove(&(core, line)) {
                self.memory.extend(copy);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_program_reads_what_the_reference_reads_and_is_stale_where_that_is(steps in steps()) {
        // All lines fit into any cache, so none is evicted.
        let (mut memory, mut reference) = (SharedMemory::new(&caches(64, 64), 3), Reference::default());
        for (number, step) in (1..).zip(steps) {
            let now = Picoseconds(10 * number as u64);
            match step {
                Step::Read(core, kind, address, len) => {
                    // The lines of the next policy begin where these end.
                    let len = len.min(((kind as u64 + 1) * LINES * 32 - address) as usize);
                    let mut found = vec![0; len];
                    memory.read(CoreId(core), now, kind, address, &mut found);
                    prop_assert_eq!(found, reference.read(core, kind, address, len), "step {}", number);
                }
                Step::Write(core, kind, address, mut bytes) => {
                    bytes.truncate(((kind as u64 + 1) * LINES * 32 - address) as usize);
                    memory.write(CoreId(core), now, kind, address, &bytes);
                    reference.write(core, kind, address, &bytes, number);
                }
                Step::Invalidate(core) => {
                    memory.invalidate(CoreId(core));
                    reference.invalidate(core);
                }
                Step::Drain(core) => {
                    memory.drain(CoreId(core), now);
                    reference.drain(core);
                }
                Step::Flush(core, from, len) => {
                    memory.flush(CoreId(core), now, from..from + len);
                    reference.flush(core, from, len);
                }
            }
            prop_assert_eq!(memory.stale_count(), reference.stale, "step {}", number);
            memory.set_present(now);
        }
    }

    #[test]
    fn with_small_caches_too_a_core_alone_always_reads_what_it_wrote(steps in steps()) {
        let mut memory = SharedMemory::new(&caches(4, 8), 1);
        let mut plain = vec![0; 3 * LINES as usize * 32];
        for (number, step) in (1..).zip(steps) {
            let (core, now) = (CoreId(0), Picoseconds(number));
            match step {
                Step::Read(_, CachePolicy::Through, ..)
                | Step::Write(_, CachePolicy::Through, ..)
                | Step::Invalidate(_) => {}
                Step::Read(_, kind, address, len) => {
                    let len = len.min(((kind as u64 + 1) * LINES * 32 - address) as usize);
                    let mut found = vec![0; len];
                    memory.read(core, now, kind, address, &mut found);
                    prop_assert_eq!(&found[..], &plain[address as usize..][..len]);
                }
                Step::Write(_, kind, address, mut bytes) => {
                    bytes.truncate(((kind as u64 + 1) * LINES * 32 - address) as usize);
                    memory.write(core, now, kind, address, &bytes);
                    plain[address as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                Step::Drain(_) => _ = memory.drain(core, now),
                Step::Flush(_, from, len) => _ = memory.flush(core, now, from..from + len),
            }
        }
        prop_assert_eq!(memory.stale_count(), 0);
    }
}
