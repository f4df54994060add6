//! Ends a run with an error line if a rank makes no call for too long or fails by a signal.
//!
//! Ranks share one thread, so a rank that spins on memory blocks the rank that would write there. The thread is
//! interrupted once to find its position. A signal such as a bad access would end the process without naming the rank;
//! a handler on its own stack reports the rank and the position.

use isles_app::console;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Interval at which the running rank is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The current time slice: its number, and in the low byte the rank plus 1, or 0 while the model runs.
static SLICE: AtomicU64 = AtomicU64::new(0);

/// Address at which the thread of the ranks was interrupted.
static INTERRUPTED_AT: AtomicUsize = AtomicUsize::new(0);

/// Records that a rank is running.
#[inline]
pub fn enter(rank: usize) {
    SLICE
        .store((SLICE.load(Ordering::Relaxed) | 0xff).wrapping_add(1) | (rank as u64 + 1), Ordering::Relaxed);
}

/// Records that the model is running.
#[inline]
pub fn leave() {
    SLICE.store(SLICE.load(Ordering::Relaxed) & !0xff, Ordering::Relaxed);
}

extern "C" fn note_address(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    INTERRUPTED_AT.store(address_in(context), Ordering::SeqCst);
}

/// Returns the address at which a signal interrupted the thread; 0 if unknown on this system.
fn address_in(context: *mut libc::c_void) -> usize {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        // NEED: the address is in the saved registers of the thread that was interrupted.
        // SOUND: the system hands a `ucontext_t` to a handler with `SA_SIGINFO`.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        registers[libc::REG_RIP as usize] as usize
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    {
        let _ = context;
        0
    }
}

/// Size of the handler's stack, in bytes.
const HANDLER_STACK_BYTES: usize = 64 << 10;

/// Signals raised by faults of a program.
const FAULTS: [(i32, &str); 5] = [
    (libc::SIGSEGV, "a bad access to memory, or a stack of more than 8 MiB"),
    (libc::SIGBUS, "a bad access to memory"),
    (libc::SIGFPE, "a division by zero"),
    (libc::SIGILL, "an illegal instruction"),
    (libc::SIGABRT, "an assertion or abort"),
];

extern "C" fn name_fault(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let slice = SLICE.load(Ordering::Relaxed);
    if slice & 0xff == 0 {
        // The model itself has failed: end as without this handler.
        // NEED: only the system can run the default action.
        // SOUND: both calls may be made in a handler.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    let rank = (slice & 0xff) - 1;
    let name = FAULTS.iter().find(|fault| fault.0 == signal).map_or("", |fault| fault.1);
    let place = symbol_at(address_in(context));
    console::notice(format_args!("error: rank {rank} was ended by signal {signal}: {name}{place}"));
    // NEED: the process must not continue.
    // SOUND: it ends at once, without running other handlers.
    unsafe { libc::_exit(1) };
}

/// Installs the handler that reports faults of ranks, on its own stack, because the rank's may be exhausted.
pub fn name_faults() {
    let stack = Box::leak(vec![0_u8; HANDLER_STACK_BYTES].into_boxed_slice());
    // NEED: only a signal handler is notified of a fault.
    // SOUND: the stack is never freed; the structures are zero except for the fields set; the handler ends the
    // process, so its allocations are harmless.
    unsafe {
        let mut alternate: libc::stack_t = std::mem::zeroed();
        alternate.ss_sp = stack.as_mut_ptr().cast();
        alternate.ss_size = HANDLER_STACK_BYTES;
        libc::sigaltstack(&alternate, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = name_fault as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for (signal, _) in FAULTS {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Watches the calling thread, which runs all ranks, until the process ends.
pub fn watch(limit: Duration) {
    // NEED: only a signal handler sees the position of a thread.
    // SOUND: the handler stores one atomic; the structure is zero except for the fields set; the thread lives as long
    // as the process.
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
            thread::sleep(POLL_INTERVAL);
            let slice = SLICE.load(Ordering::Relaxed);
            for_long =
                if slice == seen && slice & 0xff != 0 { for_long + POLL_INTERVAL } else { Duration::ZERO };
            seen = slice;
            if for_long >= limit {
                give_up((slice & 0xff) as usize - 1, limit, thread);
            }
        }
    });
}

fn give_up(rank: usize, limit: Duration, thread: libc::pthread_t) -> ! {
    // NEED: the signal must go to one thread.
    // SOUND: the thread runs all ranks and so has not ended.
    unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
    thread::sleep(POLL_INTERVAL);
    let place = symbol_at(INTERRUPTED_AT.load(Ordering::SeqCst));
    console::notice(format_args!(
        "error: rank {rank} has made no call for {} s{place}; a rank must wait for memory in a call, \
         because ranks on a chip take turns; --watchdog sets the limit",
        limit.as_secs()
    ));
    std::process::exit(1);
}

/// Returns " (in FUNCTION)", or an empty text if the function is unknown.
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
