//! Ends a run in which a rank computes for too long without a call: it waits for memory that only a call can change.
//!
//! Ranks share one thread, so a rank that spins on memory keeps the one from running that would write there. The thread
//! is interrupted once, to learn where it is.

use isles_app::console;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How often the rank that runs is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The slice of a rank that runs: its number, and the rank plus 1 in the low byte; 0 in the low byte: the model runs.
static SLICE: AtomicU64 = AtomicU64::new(0);

/// Where the thread of the ranks was interrupted.
static INTERRUPTED_AT: AtomicUsize = AtomicUsize::new(0);

/// Says that a rank runs from now on.
#[inline]
pub fn enter(rank: usize) {
    SLICE
        .store((SLICE.load(Ordering::Relaxed) | 0xff).wrapping_add(1) | (rank as u64 + 1), Ordering::Relaxed);
}

/// Says that the model runs.
#[inline]
pub fn leave() {
    SLICE.store(SLICE.load(Ordering::Relaxed) & !0xff, Ordering::Relaxed);
}

extern "C" fn note_address(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        // NEED: the address is in the saved registers of the thread that was interrupted.
        // SOUND: the system hands a `ucontext_t` to a handler with `SA_SIGINFO`.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        INTERRUPTED_AT.store(registers[libc::REG_RIP as usize] as usize, Ordering::SeqCst);
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    let _ = context;
}

/// Watches the calling thread, which runs all ranks, until the process ends.
pub fn watch(limit: Duration) {
    // NEED: only a handler sees where a thread is.
    // SOUND: the handler stores one atomic; the structure is zero but for what is set; the thread lives as long as the
    // process.
    let thread = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note_address as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut());
        libc::pthread_self()
    };
    thread::spawn(move || {
        let (mut seen, mut for_long) = (0, Duration::ZERO);
        loop {
            thread::sleep(LOOK);
            let slice = SLICE.load(Ordering::Relaxed);
            for_long = if slice == seen && slice & 0xff != 0 { for_long + LOOK } else { Duration::ZERO };
            seen = slice;
            if for_long >= limit {
                give_up((slice & 0xff) as usize - 1, limit, thread);
            }
        }
    });
}

fn give_up(rank: usize, limit: Duration, thread: libc::pthread_t) -> ! {
    // NEED: a signal to one thread.
    // SOUND: the thread runs all ranks and so has not ended.
    unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
    thread::sleep(LOOK);
    let place = symbol_at(INTERRUPTED_AT.load(Ordering::SeqCst));
    console::notice(format_args!(
        "error: rank {rank} has made no call for {} s{place}; a rank that waits for memory must do so in a call, \
         because ranks on a chip take turns; --watchdog sets the limit",
        limit.as_secs()
    ));
    std::process::exit(1);
}

/// " (in FUNCTION)", if it is known.
fn symbol_at(address: usize) -> String {
    // NEED: only the loader knows the symbols of loaded programs.
    // SOUND: `info` is written before it is read; the name is a string of a program that stays loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if address == 0
            || libc::dladdr(address as *const libc::c_void, &mut info) == 0
            || info.dli_sname.is_null()
        {
            return String::new();
        }
        format!(" (it is in {})", std::ffi::CStr::from_ptr(info.dli_sname).to_string_lossy())
    }
}
