//! A guest, and the monitor that runs it.

use crate::error::GuestError;
use crate::fault::{FaultCause, dump_and_end};
use crate::kernel::{ExceptionFrame, GuestEntry, KernelPages};
use crate::memory::{GuestMemory, PAGE, Reserved};
use crate::syscall::{GuestCounts, forward};
use crate::vcpu::{Stop, VirtualCpu};
use kvm_ioctls::{Cap, Kvm};
use std::arch::{asm, naked_asm};
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes of the stack of a guest.
const STACK_BYTES: u64 = 8 << 20;

/// Hypercalls of the program, by number.
const CALL_NOTHING: u64 = 0;
const CALL_DONE: u64 = 1;

/// Successive page faults at one address, despite a mapping, after which the program is at fault.
const FAULTS_MAX: u32 = 8;

/// Checks that this process can create guests.
///
/// # Errors
/// `/dev/kvm` is absent or not accessible, or lacks what guests need.
pub fn check() -> Result<(), GuestError> {
    open_kvm().map(|_| ())
}

fn open_kvm() -> Result<Kvm, GuestError> {
    let kvm = Kvm::new().map_err(|error| GuestError::NoKvm(io::Error::from_raw_os_error(error.errno())))?;
    if kvm.get_api_version() != 12 {
        return Err(GuestError::Unsupported("version 12 of its interface"));
    }
    if !kvm.check_extension(Cap::SyncRegs) {
        return Err(GuestError::Unsupported("registers that are shared at exits (KVM_CAP_SYNC_REGS)"));
    }
    Ok(kvm)
}

/// A virtual machine with one virtual CPU that runs code of this thread.
///
/// It belongs to the thread that created it, whose thread pointer its CPU has.
pub struct Guest {
    name: String,
    cpu: VirtualCpu,
    kernel: KernelPages,
    memory: GuestMemory,
    stack: Reserved,
    counts: GuestCounts,
    /// The ring in which system calls enter the kernel, once one has.
    call_ring: Option<u8>,
    of_this_thread: PhantomData<*mut ()>,
}

impl Guest {
    /// Creates a guest; `name` identifies it in the dump of a fault.
    ///
    /// # Errors
    /// KVM is unavailable, or creating the guest failed.
    pub fn new(name: &str) -> Result<Guest, GuestError> {
        let kvm = open_kvm()?;
        let vm = kvm.create_vm().map_err(GuestError::of_kvm("KVM_CREATE_VM"))?;
        let mut memory = GuestMemory::new(vm, kvm.get_nr_memslots(), physical_bits())?;
        let kernel = KernelPages::new(&mut memory)?;
        let cpu = VirtualCpu::new(&kvm, &mut memory, &kernel)?;
        let stack = Reserved::new(STACK_BYTES)?;
        stack.guard_first_page()?;
        Ok(Guest {
            name: name.to_owned(),
            cpu,
            kernel,
            memory,
            stack,
            counts: GuestCounts::default(),
            call_ring: None,
            of_this_thread: PhantomData,
        })
    }

    /// Calls `body` in ring 3 of the guest and returns its value. A panic of `body` propagates to the caller.
    ///
    /// If the guest fails, by an exception or because its CPU stops, this writes a dump to standard error and ends the
    /// process by the signal that the fault would raise without a guest.
    pub fn run<R>(&mut self, body: impl FnOnce(&GuestCalls) -> R) -> R {
        let mut work = Work { body: Some(body), result: None };
        let entry = enter_as(&work);
        // Arguments of `guest_entry`: the function and its argument.
        let arguments = [entry as usize as u64, &raw mut work as u64];
        let top = self.stack.base() + STACK_BYTES - PAGE;
        self.cpu.begin(guest_entry as *const () as u64, top, arguments.as_ptr() as u64);
        self.monitor();
        match work.result {
            Some(Ok(value)) => value,
            Some(Err(panic)) => resume_unwind(panic),
            // The guest signals its end after it has stored a result.
            None => unreachable!("a guest that is done has no result"),
        }
    }

    /// Returns the counts of the guest's requests since its creation.
    pub fn counts(&self) -> GuestCounts {
        self.counts
    }

    /// Runs the CPU and handles its exits until the guest's code returns.
    ///
    /// From the first run to the end, this neither allocates nor locks nor uses thread-local variables: the guest,
    /// which is the same thread to its libraries, may have exited in the middle of such an operation.
    fn monitor(&mut self) {
        let mut last_fault = RepeatedFault::default();
        loop {
            match self.cpu.run() {
                Stop::Port => {}
                Stop::Signal => continue,
                Stop::End(why) => self.fail(&FaultCause::Stopped(why)),
            }
            let mut registers = self.cpu.registers();
            match self.kernel.entry_of(registers.rip) {
                GuestEntry::SystemCall => self.system_call(registers),
                GuestEntry::Exception => self.exception(registers.rsp, &mut last_fault),
                GuestEntry::Hypercall => {
                    self.counts.hypercalls += 1;
                    match registers.rax {
                        CALL_NOTHING => {}
                        CALL_DONE => return,
                        _ => {
                            registers.rax = u64::MAX;
                            self.cpu.set_registers(&registers);
                        }
                    }
                }
            }
        }
    }

    fn system_call(&mut self, mut registers: kvm_bindings::kvm_regs) {
        self.counts.system_calls += 1;
        let ring = match self.call_ring {
            Some(ring) => ring,
            None => self.detect_call_ring(),
        };
        registers.rax = forward(&registers) as u64;
        if ring != 0 {
            // The processor has left the address and the flags in these, and the kernel's `sysret` would need ring 0.
            (registers.rip, registers.rflags) = (registers.rcx, registers.r11);
        }
        self.cpu.set_registers(&registers);
    }

    /// Handles the first system call: detects the ring of the kernel, and sets the matching entry.
    fn detect_call_ring(&mut self) -> u8 {
        let learnt = self
            .cpu
            .fault_address_and_ring()
            .and_then(|(_, ring)| self.cpu.set_call_entry(self.kernel.call_entry(ring == 0)).map(|()| ring));
        match learnt {
            Ok(ring) => {
                self.call_ring = Some(ring);
                ring
            }
            Err(error) => self.fail(&FaultCause::Monitor(error)),
        }
    }

    /// Handles a page fault of the guest's tables; any other exception ends the guest.
    fn exception(&mut self, stack: u64, last_fault: &mut RepeatedFault) {
        let Some(frame) = self.kernel.frame(stack) else {
            self.fail(&FaultCause::Stopped("an exception without a frame"))
        };
        let address = match self.cpu.fault_address_and_ring() {
            Ok((address, _)) => address,
            Err(error) => self.fail(&FaultCause::Monitor(error)),
        };
        let times = if last_fault.address == address { last_fault.times + 1 } else { 1 };
        *last_fault = RepeatedFault { address, times };
        let is_new = times <= FAULTS_MAX && !self.kernel.contains(address);
        if frame.vector == ExceptionFrame::PAGE_FAULT && is_new {
            match self.memory.resolve(address, frame.error) {
                Ok(true) => {
                    self.counts.page_faults += 1;
                    return;
                }
                Ok(false) => {}
                Err(error) => self.fail(&FaultCause::Monitor(error)),
            }
        }
        self.fail(&FaultCause::Exception { frame, address })
    }

    fn fail(&self, cause: &FaultCause<'_>) -> ! {
        dump_and_end(&self.name, cause, &self.cpu.registers())
    }
}

/// Calls to the monitor for code in a guest, besides system calls. The value cannot leave the guest's thread.
#[derive(Default)]
struct RepeatedFault {
    address: u64,
    times: u32,
}

pub struct GuestCalls {
    of_the_guest: PhantomData<*mut ()>,
}

impl GuestCalls {
    /// Makes a round trip to the monitor, for measurements.
    pub fn null_hypercall(&self) {
        // NEED: the port has no other access.
        // SOUND: `self` exists in a guest only, where the port is open, and the monitor changes nothing.
        unsafe { asm!("out 0xE0, al", in("rax") CALL_NOTHING, options(nostack, preserves_flags)) }
    }
}

/// A closure and its result, on the stack of the monitor.
struct Work<B, R> {
    body: Option<B>,
    result: Option<std::thread::Result<R>>,
}

/// Returns the instance of [`enter`] for the type of `_work`.
fn enter_as<B: FnOnce(&GuestCalls) -> R, R>(_work: &Work<B, R>) -> extern "C" fn(*mut Work<B, R>) {
    enter::<B, R>
}

/// First function in a guest: runs the closure and catches its panic.
extern "C" fn enter<B: FnOnce(&GuestCalls) -> R, R>(work: *mut Work<B, R>) {
    // NEED: the work comes through registers of the guest.
    // SOUND: it is on the stack of `Guest::run`, which waits in the monitor and uses it after this function only.
    let work = unsafe { &mut *work };
    if let Some(body) = work.body.take() {
        let calls = GuestCalls { of_the_guest: PhantomData };
        work.result = Some(catch_unwind(AssertUnwindSafe(|| body(&calls))));
    }
}

/// First instructions of a guest: calls `arguments[0]` with `arguments[1]`, then signals its end to the monitor.
#[unsafe(naked)]
extern "C" fn guest_entry(arguments: *const [u64; 2]) {
    naked_asm!(
        "xor ebp, ebp",
        "mov rax, [rdi]",
        "mov rdi, [rdi + 8]",
        "call rax",
        "mov eax, 1",
        "out 0xE0, al",
        "ud2",
    )
}

/// Bits of a physical address of a guest (CPUID, leaf 0x8000_0008).
fn physical_bits() -> u32 {
    std::arch::x86_64::__cpuid(0x8000_0008).eax & 0xff
}
