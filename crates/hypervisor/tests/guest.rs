//! Guests on KVM: the abilities of their code, and their failures.
//!
//! If `/dev/kvm` cannot be opened, each test prints that it is skipped, and why. A guest that fails ends its process,
//! so tests of failures run one of the functions below, `as_a_guest_that_..`, in a separate process.

#![cfg(all(feature = "guests", target_arch = "x86_64", target_os = "linux"))]

#[path = "../../cli/tests/command/page_block.rs"]
mod page_block;

use isles_hypervisor::{Guest, check};
use page_block::assert_shown;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::cell::Cell;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Set in a process that must fail.
const FAILS: &str = "ISLES_TEST_GUEST_FAILS";

/// Returns a guest; without KVM, prints a line that names the test, and returns `None`.
fn guest(test: &str) -> Option<Guest> {
    match check() {
        Ok(()) => Some(Guest::new("place 7").unwrap()),
        Err(why) => {
            println!("skipped: {test}: {why}");
            None
        }
    }
}

#[test]
fn a_guest_returns_the_value_of_its_body_and_shares_memory_with_its_process() {
    let Some(mut guest) = guest("a_guest_returns_the_value_of_its_body_and_shares_memory_with_its_process")
    else {
        return;
    };
    let shared = AtomicU64::new(1);
    let own = vec![3_u64; 100_000];
    let sum = guest.run(|_| {
        shared.fetch_add(1, Ordering::SeqCst);
        own.iter().sum::<u64>()
    });
    assert_eq!((sum, shared.load(Ordering::SeqCst)), (300_000, 2));
    assert_eq!(guest.run(|_| shared.load(Ordering::SeqCst)), 2, "a second body in the same guest");
}

#[test]
fn memory_that_a_guest_allocates_stays_its_processs() {
    let Some(mut guest) = guest("memory_that_a_guest_allocates_stays_its_processs") else { return };
    let words: Vec<u64> = guest.run(|_| (0..5_000_000).collect());
    assert_eq!(words.iter().sum::<u64>(), 12_499_997_500_000);
    let mapped = guest.counts().page_faults;
    assert!(mapped > 0, "a guest's tables are filled by page faults");
    // The process maps this memory while the guest does not run.
    let more = vec![5_u8; 200 << 20];
    let seen = guest.run(|_| more.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>());
    assert_eq!(seen, 5 * (200 << 20) / 4096);
}

#[test]
fn a_guest_reaches_the_last_page_of_its_process() {
    let Some(mut guest) = guest("a_guest_reaches_the_last_page_of_its_process") else { return };
    let page = ((1_usize << 47) - 2 * 4096) as *mut std::ffi::c_void;
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // NEED: a page at this very address.
    // SOUND: the system maps it only if nothing is there.
    let mapped = unsafe { mmap_anonymous(page, 4096, rights, MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE) };
    if mapped.is_err() {
        println!("the stack of this process has the last page; the other tests use it");
        return;
    }
    // NEED: as above.
    // SOUND: the page is mapped, aligned and used by nothing else; zeros are an integer.
    let word = unsafe { &*page.cast::<AtomicU64>() };
    guest.run(|_| word.fetch_add(42, Ordering::SeqCst));
    assert_eq!(word.load(Ordering::SeqCst), 42);
}

#[test]
fn system_calls_are_made_by_the_monitor_and_getpid_is_answered_inside() {
    let Some(mut guest) = guest("system_calls_are_made_by_the_monitor_and_getpid_is_answered_inside") else {
        return;
    };
    let parent = guest.run(|_| std::os::unix::process::parent_id());
    assert_eq!(parent, std::os::unix::process::parent_id());
    let before = guest.counts();
    let own = guest.run(|_| (0..100).map(|_| black_box(std::process::id())).max());
    assert_eq!(own, Some(std::process::id()));
    assert_eq!(guest.counts().system_calls, before.system_calls, "getpid went to the monitor");
    guest.run(|calls| (0..10).for_each(|_| calls.null_hypercall()));
    assert_eq!(guest.counts().hypercalls, before.hypercalls + 1 + 10 + 1, "ten, and the ends of two bodies");
}

#[test]
fn flags_and_registers_outlive_a_system_call() {
    let Some(mut guest) = guest("flags_and_registers_outlive_a_system_call") else { return };
    // The sums stay in vector registers across the calls; a lost register would give a wrong sum.
    let found = guest.run(|_| {
        let mut sums = [0.0_f64; 8];
        for round in 0..50_u32 {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += f64::from(round) * lane as f64;
            }
            black_box(std::os::unix::process::parent_id());
            black_box(std::process::id());
        }
        sums
    });
    for (lane, sum) in found.iter().enumerate() {
        assert_eq!(*sum, 1225.0 * lane as f64);
    }
}

#[test]
fn the_clock_of_a_guest_is_its_processs() {
    let Some(mut guest) = guest("the_clock_of_a_guest_is_its_processs") else { return };
    let before = SystemTime::now();
    let inside = guest.run(|_| SystemTime::now());
    let after = SystemTime::now();
    let slack = Duration::from_millis(100);
    assert!(before <= inside + slack && inside <= after + slack, "{before:?} {inside:?} {after:?}");
}

#[test]
fn a_panic_of_a_guest_goes_on_in_its_caller() {
    let Some(mut guest) = guest("a_panic_of_a_guest_goes_on_in_its_caller") else { return };
    let caught =
        catch_unwind(AssertUnwindSafe(|| guest.run(|_| -> u32 { std::panic::panic_any("the roof is off") })));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the roof is off"));
    assert_eq!(guest.run(|_| 4), 4, "the guest is whole after a panic");
}

#[test]
fn threads_and_processes_that_a_guest_starts_run_outside() {
    let Some(mut guest) = guest("threads_and_processes_that_a_guest_starts_run_outside") else { return };
    thread_local!(static OWN: Cell<u64> = const { Cell::new(5) });
    let doubled = guest.run(|_| {
        OWN.set(6);
        let threads: Vec<_> =
            (0..4_u64).map(|number| std::thread::spawn(move || (OWN.get(), 2 * number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(doubled, [(5, 0), (5, 2), (5, 4), (5, 6)]);
    assert_eq!(OWN.get(), 6, "a guest has the variables of its thread");
    let output = guest.run(|_| Command::new("echo").arg("outside").output().unwrap());
    assert_eq!(output.stdout, b"outside\n");
}

#[test]
fn two_guests_of_one_process_have_memory_in_common() {
    let Some(_) = guest("two_guests_of_one_process_have_memory_in_common") else { return };
    let turn = AtomicU64::new(0);
    let rounds = 200;
    std::thread::scope(|scope| {
        for own in 0..2 {
            let turn = &turn;
            scope.spawn(move || {
                Guest::new("place").unwrap().run(|_| {
                    for round in 0..rounds {
                        while turn.load(Ordering::Acquire) != 2 * round + own {
                            std::thread::yield_now();
                        }
                        turn.fetch_add(1, Ordering::Release);
                    }
                });
            });
        }
    });
    assert_eq!(turn.load(Ordering::Acquire), 2 * rounds);
}

/// Runs the function `name` of this file in a separate process.
fn failing(name: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(FAILS, "1").output().unwrap()
}

/// Returns the failing guest if this process must fail.
fn guest_that_fails() -> Option<Guest> {
    std::env::var_os(FAILS).map(|_| Guest::new("place 7").unwrap())
}

/// Checks that the process of `name` ended by `signal`, and that its dump begins with `first`.
#[track_caller]
fn ends_with_a_dump(test: &str, name: &str, signal: i32, first: &[&str]) {
    if guest(test).is_none() {
        return;
    }
    let Output { status, stderr, .. } = failing(name);
    let stderr = String::from_utf8_lossy(&stderr);
    assert_eq!(status.signal(), Some(signal), "{stderr}");
    let dump = stderr.lines().skip_while(|line| !line.starts_with("place 7: the guest failed: "));
    let dump = dump.collect::<Vec<_>>();
    assert!(first.iter().all(|part| dump[0].contains(part)), "{stderr}");
    assert!(dump[1].contains("rip 0000") && dump.len() >= 6, "{stderr}");
    if first[0].starts_with("page fault") && name.ends_with("to_null") {
        assert_shown("guests.md", "crates/hypervisor/tests/guest.rs", &dump.join("\n"));
    }
}

#[test]
fn as_a_guest_that_writes_to_null() {
    let Some(mut guest) = guest_that_fails() else { return };
    // NEED: the fault that is tested.
    // SOUND: it is not, which is the point: the guest is stopped by it.
    guest.run(|_| unsafe { std::ptr::write_volatile(black_box(24) as *mut u32, 1) });
}

#[test]
fn a_write_to_null_ends_the_guest_with_a_dump() {
    let test = "a_write_to_null_ends_the_guest_with_a_dump";
    ends_with_a_dump(
        test,
        "as_a_guest_that_writes_to_null",
        11,
        &["page fault (vector 14,", "writing 0x18, at 0x"],
    );
}

#[test]
fn as_a_guest_that_writes_to_its_code() {
    let Some(mut guest) = guest_that_fails() else { return };
    let code = as_a_guest_that_writes_to_its_code as *mut u8;
    // NEED: as above.
    // SOUND: as above.
    guest.run(|_| unsafe { std::ptr::write_volatile(code, 1) });
}

#[test]
fn a_write_to_code_ends_the_guest_with_a_dump() {
    let test = "a_write_to_code_ends_the_guest_with_a_dump";
    ends_with_a_dump(
        test,
        "as_a_guest_that_writes_to_its_code",
        11,
        &["page fault (vector 14,", "writing 0x"],
    );
}

#[test]
fn as_a_guest_that_has_an_illegal_instruction() {
    let Some(mut guest) = guest_that_fails() else { return };
    // NEED: as above.
    // SOUND: as above.
    guest.run(|_| unsafe { std::arch::asm!("ud2") });
}

#[test]
fn an_illegal_instruction_ends_the_guest_with_a_dump() {
    let test = "an_illegal_instruction_ends_the_guest_with_a_dump";
    ends_with_a_dump(
        test,
        "as_a_guest_that_has_an_illegal_instruction",
        4,
        &["illegal instruction (vector 6,"],
    );
}

#[test]
fn as_a_guest_that_uses_another_port() {
    let Some(mut guest) = guest_that_fails() else { return };
    // NEED: as above.
    // SOUND: as above.
    guest.run(|_| unsafe { std::arch::asm!("out 0x80, al") });
}

#[test]
fn another_port_than_the_monitors_ends_the_guest_with_a_dump() {
    let test = "another_port_than_the_monitors_ends_the_guest_with_a_dump";
    ends_with_a_dump(
        test,
        "as_a_guest_that_uses_another_port",
        11,
        &["general protection fault (vector 13,"],
    );
}

#[test]
fn as_a_guest_that_recurses_without_end() {
    let Some(mut guest) = guest_that_fails() else { return };
    fn deeper(depth: u64) -> u64 {
        let frame = black_box([depth; 100]);
        if depth == u64::MAX { 0 } else { deeper(depth + 1) + frame[7] }
    }
    guest.run(|_| deeper(black_box(0)));
}

#[test]
fn a_stack_that_overflows_ends_the_guest_with_a_dump() {
    let test = "a_stack_that_overflows_ends_the_guest_with_a_dump";
    ends_with_a_dump(
        test,
        "as_a_guest_that_recurses_without_end",
        11,
        &["page fault (vector 14,", "writing 0x"],
    );
}
