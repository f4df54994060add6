//! Slices that processes of a run read from each other's own memory: `process_vm_readv`.
//!
//! The only file that makes this call. A borrower cannot check the numbers that identify a loan, so each call also
//! reads the guard of the loan, before and after the slice: the guard holds the token of the loan as long as its owner
//! lends the slice. If both copies equal the token, the process is the right one, and the slice was lent during the
//! whole read. The kernel copies in the order of the list, and pins the pages of each entry by operations that are
//! fully ordered. Invariant: the memory of a guard is never freed while its endpoint exists.

use isles_transport::{LendingError, LentSlice};
use rustix::process::{PTracer, Pid, geteuid, getpid, getppid, set_ptracer};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Maximum number of slices that a place lends at one time.
const LOANS_MAX: usize = 64;

/// The loans of one place, and its state for reading those of others.
pub(crate) struct Loans {
    /// Each holds the token of a loan, or zero.
    guards: Box<[AtomicU64; LOANS_MAX]>,
    next_token: Cell<u64>,
    /// Id of this process.
    process: Pid,
    /// True if the system has refused a read.
    is_refused: Cell<bool>,
}

impl Loans {
    pub fn new() -> Loans {
        // Tokens of two processes must differ: each process counts from a random number.
        let process = getpid();
        let first = RandomState::new().hash_one(process);
        Loans {
            guards: Box::new([const { AtomicU64::new(0) }; LOANS_MAX]),
            next_token: Cell::new(first),
            process,
            is_refused: Cell::new(false),
        }
    }

    fn new_token(&self) -> u64 {
        let token = self.next_token.get().max(1);
        self.next_token.set(token.wrapping_add(1));
        token
    }

    /// As [`isles_transport::Lending::lend`].
    pub fn lend(&self, bytes: &[u8]) -> Option<LentSlice> {
        // Relaxed: only this place stores to its guards.
        let guard = self.guards.iter().find(|guard| guard.load(Ordering::Relaxed) == 0)?;
        let token = self.new_token();
        // Relaxed: the borrower learns of the loan by a message, which orders this store.
        guard.store(token, Ordering::Relaxed);
        Some(LentSlice {
            process: u64::from(self.process.as_raw_nonzero().get().unsigned_abs()),
            address: bytes.as_ptr().addr() as u64,
            guard: std::ptr::from_ref(guard).addr() as u64,
            token,
        })
    }

    /// As [`isles_transport::Lending::end`].
    pub fn end(&self, loan: &LentSlice) {
        // Relaxed, both: only this place stores to its guards.
        if let Some(guard) = self.guards.iter().find(|guard| guard.load(Ordering::Relaxed) == loan.token) {
            guard.store(0, Ordering::Relaxed);
        }
        // A reader that still sees the token does not see later writes to the slice.
        fence(Ordering::SeqCst);
    }

    /// As [`isles_transport::Lending::read`].
    pub fn read(&self, loan: &LentSlice, offset: u64, into: &mut [u8]) -> Result<(), LendingError> {
        if self.is_refused.get() {
            return Err(LendingError::NotAllowed);
        }
        let (mut before, mut after) = ([0; 8], [0; 8]);
        let bytes = into.len() + before.len() + after.len();
        let own = |bytes: &mut [u8]| entry(bytes.as_mut_ptr().cast(), bytes.len());
        let other = |address: u64, len| entry(std::ptr::without_provenance_mut(address as usize), len);
        let into = [own(&mut before), own(into), own(&mut after)];
        let from = [
            other(loan.guard, before.len()),
            other(loan.address.wrapping_add(offset), into[1].iov_len),
            other(loan.guard, after.len()),
        ];
        let process = libc::pid_t::try_from(loan.process).map_err(|_| LendingError::Ended)?;
        // NEED: there is no safe function that reads the memory of another process.
        // SOUND: the kernel writes to the three entries of `into` only, which are exclusive borrows of bytes that live
        // here, and checks the addresses of `from` itself. Any bytes are valid there.
        let read = unsafe { libc::process_vm_readv(process, into.as_ptr(), 3, from.as_ptr(), 3, 0) };
        match usize::try_from(read) {
            Ok(read) if read == bytes => match [before, after].map(u64::from_ne_bytes) {
                [first, last] if first == loan.token && last == loan.token => Ok(()),
                _ => Err(LendingError::Ended),
            },
            Ok(_) => Err(LendingError::Ended),
            Err(_) => Err(self.refusal(&io::Error::last_os_error())),
        }
    }

    /// Distinguishes a system that refuses every read from a loan whose memory or process is gone.
    #[cold]
    fn refusal(&self, error: &io::Error) -> LendingError {
        match error.raw_os_error() {
            Some(libc::EFAULT | libc::ESRCH) => LendingError::Ended,
            _ => {
                self.is_refused.set(true);
                LendingError::NotAllowed
            }
        }
    }
}

/// Returns `true` if processes of a run can probably read each other's memory on this host: this one reads its own
/// memory by the call, and checks the scope of Yama.
pub fn reads_others() -> bool {
    let (loans, bytes) = (Loans::new(), [0; 8]);
    let tried = loans.lend(&bytes).is_some_and(|loan| loans.read(&loan, 0, &mut [0; 8]).is_ok());
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    // With scope 1 the processes of a run permit each other; a higher scope requires an administrator.
    tried && (matches!(scope.trim(), "" | "0" | "1") || geteuid().is_root() && scope.trim() == "2")
}

fn entry(base: *mut libc::c_void, len: usize) -> libc::iovec {
    libc::iovec { iov_base: base, iov_len: len }
}

/// Permits the processes that this one starts to read its memory, if the kernel requires that (Yama).
pub(crate) fn let_children_read() {
    let_read(Some(getpid()));
}

/// Permits the processes with the same parent to read the memory of this one, if the kernel requires that.
pub fn let_siblings_read() {
    let_read(getppid());
}

fn let_read(ancestor: Option<Pid>) {
    // A kernel without Yama does not know the call; if it is forbidden, the first read fails.
    let _ = ancestor.map(|ancestor| set_ptracer(PTracer::ProcessID(ancestor)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_read_and_what_is_lent_no_more_is_refused() {
        let loans = Loans::new();
        let bytes: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
        let loan = loans.lend(&bytes).expect("there is room");
        let mut into = vec![0; 60_000];
        assert_eq!(loans.read(&loan, 40_000, &mut into), Ok(()));
        assert_eq!(into, bytes[40_000..]);
        loans.end(&loan);
        assert_eq!(loans.read(&loan, 0, &mut into), Err(LendingError::Ended));
        let again = loans.lend(&bytes).expect("there is room");
        assert_eq!(again.guard, loan.guard, "the memory of a guard is used again");
        assert_eq!(loans.read(&loan, 0, &mut into), Err(LendingError::Ended), "and the old loan stays ended");
    }

    #[test]
    fn invented_loans_are_refused() {
        let loans = Loans::new();
        let bytes = [7; 4096];
        let loan = loans.lend(&bytes).expect("there is room");
        let mut into = [0; 4096];
        let nobody = LentSlice { process: u64::from(u32::MAX), ..loan };
        let nowhere = LentSlice { address: 8, ..loan };
        let unguarded = LentSlice { guard: 8, ..loan };
        let mistaken = LentSlice { token: loan.token ^ 1, ..loan };
        for invented in [nobody, nowhere, unguarded, mistaken] {
            assert_eq!(loans.read(&invented, 0, &mut into), Err(LendingError::Ended), "{invented:?}");
        }
        assert_eq!(loans.read(&loan, 0, &mut into), Ok(()));
    }

    #[test]
    fn a_place_lends_a_bounded_number_of_slices() {
        let loans = Loans::new();
        let lent: Vec<LentSlice> =
            (0..LOANS_MAX).map(|_| loans.lend(&[0; 8]).expect("there is room")).collect();
        assert_eq!(loans.lend(&[0; 8]), None);
        loans.end(&lent[3]);
        assert!(loans.lend(&[0; 8]).is_some());
    }

    /// The filter holds for the thread that sets it, and for no other test.
    #[test]
    fn a_system_that_forbids_reading_is_asked_once() {
        const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        const SKIP_UNLESS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        let reader = std::thread::spawn(|| {
            let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
            let mut steps = [
                step(LOAD, 0, 0, 0),
                step(SKIP_UNLESS, 0, 1, libc::SYS_process_vm_readv as u32),
                step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
                step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
            rustix::thread::set_no_new_privs(true).expect("any thread may give up privileges");
            // NEED: there is no safe function that sets a filter.
            // SOUND: the kernel copies the program, which lives until the call returns.
            let set = unsafe {
                libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    std::ptr::from_ref(&program).addr(),
                )
            };
            assert_eq!(set, 0, "{}", io::Error::last_os_error());
            let (loans, bytes) = (Loans::new(), [1; 64]);
            let loan = loans.lend(&bytes).expect("lending asks nobody");
            let outcomes = [0, 0].map(|offset| loans.read(&loan, offset, &mut [0; 64]));
            (outcomes, loans.is_refused.get())
        });
        assert_eq!(reader.join().ok(), Some(([Err(LendingError::NotAllowed); 2], true)));
    }
}
