//! Non-coherent shared memory in programs: a missing cache operation is reported with place and address.

use isles::prelude::*;
use isles::shared_memory::{MemoryKind, SharedMemory};
use isles::{ChipReport, Flag, Launch, Machine, ModelledChip, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// Runs `program` on two cores; returns its result and the report.
fn on_chip<F, T>(name: &str, program: impl FnOnce() -> F) -> (T, ChipReport)
where
    F: Future<Output = Result<T>> + 'static,
    T: 'static,
{
    let found = Rc::new(RefCell::new(None));
    let place = Rc::clone(&found);
    let program = program();
    let main = move || async move {
        *place.borrow_mut() = Some(program.await?);
        Ok::<_, isles::Error>(())
    };
    let launch = Launch::from_environment().unwrap().places(2);
    let (result, _, report) = launch.run_on_chip(ModelledChip::new(name).unwrap(), main).unwrap();
    result.unwrap();
    let found = found.take().unwrap();
    (found, report)
}

/// Lets the other place read the first byte, writes it here, and lets the other read it again; with the necessary cache
/// operations in between if `is_careful`.
async fn exchange(kind: MemoryKind, is_careful: bool) -> Result<Vec<u8>> {
    let Some(memory) = SharedMemory::new(100, kind) else { return Ok(Vec::new()) };
    let other = here().next();
    let look = async |is_careful: bool| {
        at!(other, {
            if is_careful {
                SharedMemory::invalidate();
                memory.flush();
            }
            let mut found = [0];
            memory.read(40, &mut found);
            found[0]
        })
        .await
    };
    let mut found = vec![look(false).await?];
    memory.write(40, &[7]);
    if is_careful {
        memory.drain();
        memory.flush();
    }
    found.push(look(is_careful).await?);
    Ok(found)
}

#[test]
fn a_program_that_forgets_its_caches_reads_what_was_and_is_told_what_it_missed() {
    for kind in [MemoryKind::Cached, MemoryKind::Through] {
        let (found, report) = on_chip("scc", || exchange(kind, false));
        assert_eq!(found, [0, 0], "{kind:?}");
        let stale = report.stale.as_ref().unwrap();
        assert_eq!((stale.number, stale.first.len()), (1, 1), "{report}");
        let read = stale.first[0];
        assert_eq!((read.core.0, read.missed.core.0, read.address, read.newest), (1, 0, 40, 7));
        assert!(read.missed.at < read.at);
        let text = report.to_string();
        assert!(
            text.contains("shared memory   1 stale reads\n  place 1 read 0 at address 0x28 at"),
            "{text}"
        );
    }
}

#[test]
fn a_careful_program_reads_what_was_written_and_pays_for_it() {
    let (careless, free) = on_chip("scc", || exchange(MemoryKind::Through, false));
    for kind in [MemoryKind::Uncached, MemoryKind::Cached, MemoryKind::Through] {
        let (found, report) = on_chip("scc", || exchange(kind, true));
        assert_eq!(found, [0, 7], "{kind:?}");
        assert_eq!(report.stale.as_ref().unwrap().number, 0, "{report}");
        if kind == MemoryKind::Cached {
            // Two flushes of four lines at 300 and 7,500 cycles: more than 30 µs at 533 MHz.
            assert!(report.time.0 > free.time.0 + 30_000_000, "{careless:?} {report} {free}");
        }
    }
}

#[test]
fn where_memory_is_not_modelled_there_is_none() {
    let (found, report) = on_chip("bluegene-p", || exchange(MemoryKind::Cached, true));
    assert_eq!((found, report.stale), (Vec::new(), None));
    let main = || async {
        SharedMemory::invalidate();
        assert_eq!(SharedMemory::new(8, MemoryKind::Uncached), None);
        Ok::<_, isles::Error>(())
    };
    Launch::from_environment().unwrap().machine(Machine::Threads).places(2).run(main).unwrap().0.unwrap();
}

#[test]
fn the_summary_of_a_run_lists_the_stale_reads() {
    let path = std::env::temp_dir().join(format!("isles-stale-{}", std::process::id()));
    let flag = |variable, name, value| Flag { variable, name, value };
    let file = path.to_str().unwrap();
    let flags = [
        flag("ISLES_MACHINE", "--machine", "chip:scc"),
        flag("ISLES_PLACES", "--places", "2"),
        flag("ISLES_CHIP_SUMMARY", "--summary", file),
    ];
    let launch = Launch::from_environment_with(Machine::Threads, &flags).unwrap();
    let main = || async {
        exchange(MemoryKind::Through, false).await?;
        Ok::<_, isles::Error>(())
    };
    launch.run(main).unwrap().0.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    for line in [r#""number": 1,"#, r#""place": 1,"#, r#""address": 40,"#, r#""cause": "not-let-go""#] {
        assert!(text.lines().any(|other| other.trim() == line), "{line} in {text}");
    }
}
