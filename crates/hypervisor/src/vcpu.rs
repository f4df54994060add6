//! The virtual CPU of a guest: its initial registers, and its registers at each exit.

use crate::error::GuestError;
use crate::kernel::{self, KernelPages};
use crate::memory::GuestMemory;
use kvm_bindings::{KVM_MAX_CPUID_ENTRIES, Msrs, kvm_fpu, kvm_msr_entry, kvm_regs, kvm_segment, kvm_xcrs};
use kvm_ioctls::{Kvm, SyncReg, VcpuExit, VcpuFd};
use std::os::fd::AsRawFd;

/// Model-specific registers of system calls (Intel SDM, volume 4).
const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const FMASK: u32 = 0xc000_0084;

/// Flags that a system call clears on its way into the kernel: trap, interrupt, direction.
const CALL_CLEARS: u64 = 0x700;

/// The flag that is always one, and that of interrupts.
const FLAGS: u64 = 0x202;

/// Reason why the virtual CPU stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The guest wrote to the port.
    Port,
    /// A signal arrived for the thread of the monitor.
    Signal,
    /// The CPU cannot continue, for this reason.
    End(&'static str),
}

/// A virtual CPU.
pub struct VirtualCpu {
    cpu: VcpuFd,
}

impl VirtualCpu {
    /// Creates the CPU of `memory`'s machine with the kernel `kernel`; [`VirtualCpu::begin`] sets its first
    /// instruction.
    pub fn new(kvm: &Kvm, memory: &mut GuestMemory, kernel: &KernelPages) -> Result<VirtualCpu, GuestError> {
        let mut cpu = memory.vm().create_vcpu(0).map_err(GuestError::of_kvm("KVM_CREATE_VCPU"))?;
        let cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES);
        let cpuid = cpuid.map_err(GuestError::of_kvm("KVM_GET_SUPPORTED_CPUID"))?;
        cpu.set_cpuid2(&cpuid).map_err(GuestError::of_kvm("KVM_SET_CPUID2"))?;
        cpu.set_sync_valid_reg(SyncReg::Register);
        let root = memory.root()?;
        let mut made = VirtualCpu { cpu };
        made.set_system_registers(kernel, root)?;
        made.set_extended_state()?;
        made.set_call_entry(kernel.probe())?;
        made.set_clock();
        Ok(made)
    }

    /// Sets ring 3 of 64 bits with paging, and the tables of `kernel`.
    fn set_system_registers(&mut self, kernel: &KernelPages, root: u64) -> Result<(), GuestError> {
        const PROTECTION_MONITOR_NUMERIC_PAGING: u64 = 0x8000_0023;
        const WRITE_PROTECT: u64 = 1 << 16;
        const PHYSICAL_EXTENSION: u64 = 1 << 5;
        const SSE: u64 = 3 << 9;
        const EXTENDED_STATE: u64 = 1 << 18;
        const CALLS_LONG_MODE_NO_EXECUTE: u64 = 0xd01;
        const CODE: u8 = 11;
        const DATA: u8 = 3;
        const BUSY_TASK: u8 = 11;
        let mut registers = self.cpu.get_sregs().map_err(GuestError::of_kvm("KVM_GET_SREGS"))?;
        registers.cs = segment(kernel::USER_CODE, CODE);
        let data = segment(kernel::USER_DATA, DATA);
        (registers.ds, registers.es, registers.ss, registers.fs, registers.gs) =
            (data, data, data, data, data);
        registers.fs.base = crate::syscall::thread_pointer();
        registers.tr = kvm_segment {
            base: kernel.task(),
            limit: kernel::TSS_LIMIT,
            selector: kernel::TASK,
            type_: BUSY_TASK,
            present: 1,
            ..kvm_segment::default()
        };
        (registers.gdt.base, registers.gdt.limit) = (kernel.descriptors(), kernel::GDT_LIMIT);
        (registers.idt.base, registers.idt.limit) = (kernel.gates(), kernel::IDT_LIMIT);
        registers.cr0 = PROTECTION_MONITOR_NUMERIC_PAGING | WRITE_PROTECT;
        registers.cr3 = root;
        registers.cr4 = PHYSICAL_EXTENSION | SSE | EXTENDED_STATE;
        registers.efer = CALLS_LONG_MODE_NO_EXECUTE;
        self.cpu.set_sregs(&registers).map_err(GuestError::of_kvm("KVM_SET_SREGS"))
    }

    /// Enables the vector registers that the process may use, in their state at a function call.
    fn set_extended_state(&mut self) -> Result<(), GuestError> {
        // NEED: the register has no safe accessor.
        // SOUND: the system has enabled extended states, else there were no bits, and the instruction would raise a
        // signal; programs of 64 bits on Linux with KVM have them.
        let enabled = unsafe { std::arch::x86_64::_xgetbv(0) };
        /// All but matrix tiles, which a process has to request.
        const WITHOUT_TILES: u64 = !(3 << 17);
        let mut states = kvm_xcrs { nr_xcrs: 1, ..kvm_xcrs::default() };
        states.xcrs[0].value = enabled & WITHOUT_TILES;
        self.cpu.set_xcrs(&states).map_err(GuestError::of_kvm("KVM_SET_XCRS"))?;
        let float = kvm_fpu { fcw: 0x37f, mxcsr: 0x1f80, ..kvm_fpu::default() };
        self.cpu.set_fpu(&float).map_err(GuestError::of_kvm("KVM_SET_FPU"))
    }

    /// Sets the entry of system calls to `entry`.
    pub fn set_call_entry(&mut self, entry: u64) -> Result<(), GuestError> {
        // `sysret` derives the segments of ring 3 from the upper selector: plus 16 for code, plus 8 for data.
        let segments = (u64::from(kernel::USER_CODE - 16) << 48) | (u64::from(kernel::KERNEL_CODE) << 32);
        let entries = [(STAR, segments), (LSTAR, entry), (FMASK, CALL_CLEARS)];
        let entries = entries.map(|(index, data)| kvm_msr_entry { index, data, ..kvm_msr_entry::default() });
        let entries =
            Msrs::from_entries(&entries).map_err(|_| GuestError::Exhausted("model-specific registers"))?;
        match self.cpu.set_msrs(&entries).map_err(GuestError::of_kvm("KVM_SET_MSRS"))? {
            3 => Ok(()),
            _ => Err(GuestError::Exhausted("model-specific registers of system calls")),
        }
    }

    /// Sets the guest's time-stamp counter to the host's. If KVM cannot, the two differ by a constant, and clocks read
    /// in the guest are wrong; on such hosts the kernel's clock page is not readable either.
    fn set_clock(&mut self) {
        use kvm_bindings::{KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET, kvm_device_attr};
        let offset = 0_u64;
        let attribute = kvm_device_attr {
            group: KVM_VCPU_TSC_CTRL,
            attr: u64::from(KVM_VCPU_TSC_OFFSET),
            addr: &raw const offset as u64,
            flags: 0,
        };
        const SET_DEVICE_ATTRIBUTE: rustix::ioctl::Opcode =
            rustix::ioctl::opcode::write::<kvm_device_attr>(0xae, 0xe1);
        // NEED: the crate has this call for devices only, not for virtual CPUs.
        // SOUND: the descriptor is open as long as `self`.
        let cpu = unsafe { rustix::fd::BorrowedFd::borrow_raw(self.cpu.as_raw_fd()) };
        // NEED: as above.
        // SOUND: the call reads the attribute, and the number that it points to, before it returns.
        let _ = unsafe {
            rustix::ioctl::ioctl(cpu, rustix::ioctl::Setter::<SET_DEVICE_ATTRIBUTE, _>::new(attribute))
        };
    }

    /// Runs the guest until it stops.
    pub fn run(&mut self) -> Stop {
        match self.cpu.run() {
            Ok(VcpuExit::IoOut(kernel::PORT, _)) => Stop::Port,
            Ok(VcpuExit::Intr) => Stop::Signal,
            Ok(VcpuExit::Shutdown) => Stop::End("an exception that its kernel could not take"),
            Ok(VcpuExit::MmioRead(..) | VcpuExit::MmioWrite(..)) => Stop::End("an access outside its memory"),
            Ok(VcpuExit::Hlt) => Stop::End("a halt"),
            Ok(VcpuExit::InternalError) => Stop::End("an instruction that KVM cannot emulate"),
            Ok(VcpuExit::FailEntry(..)) => Stop::End("a state that the processor refuses"),
            Ok(_) => Stop::End("an exit that the monitor does not know"),
            Err(error) => match rustix::io::Errno::from_raw_os_error(error.errno()) {
                rustix::io::Errno::INTR | rustix::io::Errno::AGAIN => Stop::Signal,
                rustix::io::Errno::FAULT => Stop::End("an access that the system refuses its process"),
                _ => Stop::End("KVM_RUN"),
            },
        }
    }

    /// Returns the general registers at the last stop.
    pub fn registers(&self) -> kvm_regs {
        self.cpu.sync_regs().regs
    }

    /// Sets the general registers for the next run.
    pub fn set_registers(&mut self, registers: &kvm_regs) {
        self.cpu.sync_regs_mut().regs = *registers;
        self.cpu.set_sync_dirty_reg(SyncReg::Register);
    }

    /// Sets the registers for a call of the function at `entry` with `stack` and one argument.
    pub fn begin(&mut self, entry: u64, stack: u64, argument: u64) {
        let registers =
            kvm_regs { rip: entry, rsp: stack, rdi: argument, rflags: FLAGS, ..kvm_regs::default() };
        self.set_registers(&registers);
    }

    /// Returns the address of the last page fault, and the ring of the last stop.
    pub fn fault_address_and_ring(&self) -> Result<(u64, u8), GuestError> {
        let registers = self.cpu.get_sregs().map_err(GuestError::of_kvm("KVM_GET_SREGS"))?;
        Ok((registers.cr2, registers.cs.selector as u8 & 3))
    }
}

/// Returns a flat segment of ring 3.
fn segment(selector: u16, kind: u8) -> kvm_segment {
    let is_code = u8::from(selector == kernel::USER_CODE);
    kvm_segment {
        base: 0,
        limit: u32::MAX,
        selector,
        type_: kind,
        present: 1,
        dpl: 3,
        db: 1 - is_code,
        s: 1,
        l: is_code,
        g: 1,
        ..kvm_segment::default()
    }
}
