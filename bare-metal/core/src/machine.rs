//! The machine below a core: ports, serial line, PCI, page tables, and special instructions.
//!
//! All unsafe operations are behind safe functions.

use bare_map as map;
use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const SERIAL: u16 = 0x3f8;
/// The QEMU device that ends the machine; the exit code is twice the value plus one.
const DEBUG_EXIT: u16 = 0xf4;
const PCI_ADDRESS: u16 = 0xcf8;
const PCI_VALUE: u16 = 0xcfc;
/// Vendor and device of ivshmem.
const SHARED_MEMORY_DEVICE: u32 = 0x1110_1af4;
/// Identifier of the PCI capability for message-signalled interrupts.
const MSI_X: u32 = 0x11;

const PRESENT_WRITABLE: u64 = 3;
const UNCACHED: u64 = 0x10;
const LARGE: u64 = 0x80;
const LARGE_BYTES: usize = 2 << 20;
const USER: u64 = 4;
const WRITABLE: u64 = 2;
const PAGE_BYTES: usize = 4096;

/// A table of 512 pages of 4 KiB.
#[repr(align(4096))]
struct PageTable([AtomicU64; 512]);

/// The first 2 MiB of addresses, with the image's text and stacks; 0 for a guard page.
static FIRST_PAGES: PageTable = PageTable([const { AtomicU64::new(0) }; 512]);

/// One table for the buffers of each tile, then one for the registers of each, for the own registers, for buffers by
/// rank.
static PAGE_TABLES: [PageTable; 2 * map::TILES + 2] =
    [const { PageTable([const { AtomicU64::new(0) }; 512]) }; 2 * map::TILES + 2];

/// Reads or writes a port of one or four bytes.
pub fn write_port(port: u16, value: u8) {
    // NEED: PC devices are accessed through ports.
    // SOUND: the ports used here belong to devices that do not access memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack)) }
}

fn read_port(port: u16) -> u8 {
    let value;
    // NEED: as above.
    // SOUND: as above.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack)) }
    value
}

fn write_port_wide(port: u16, value: u32) {
    // NEED: as above.
    // SOUND: as above.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack)) }
}

fn read_port_wide(port: u16) -> u32 {
    let value;
    // NEED: as above.
    // SOUND: as above.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack)) }
    value
}

/// Sends a byte over the serial line.
pub fn write_serial(byte: u8) {
    while read_port(SERIAL + 5) & 0x20 == 0 {}
    write_port(SERIAL, byte);
}

/// Ends the machine.
pub fn power_off(code: u8) -> ! {
    write_port(DEBUG_EXIT, code);
    loop {
        set_interrupts(false);
        sleep();
    }
}

/// Enables or disables interrupts; returns `true` if they were enabled.
pub fn set_interrupts(enabled: bool) -> bool {
    let flags: u64;
    // NEED: only instructions access the interrupt flag.
    // SOUND: handlers are installed before interrupts are enabled; the stack is unchanged.
    unsafe {
        asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags));
        if enabled {
            asm!("sti", options(nostack));
        } else {
            asm!("cli", options(nostack));
        }
    }
    flags & 0x200 != 0
}

/// Sleeps until the next interrupt.
pub fn sleep() {
    // NEED: an instruction.
    // SOUND: it has no effect on memory or registers.
    unsafe { asm!("hlt", options(nostack, nomem)) }
}

/// Returns the time-stamp counter.
pub fn cycles() -> u64 {
    // NEED: an instruction.
    // SOUND: every 64-bit processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns the address of the last page fault.
pub fn fault_address() -> u64 {
    let address;
    // NEED: a control register.
    // SOUND: reading it has no side effects.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nostack, nomem)) }
    address
}

/// Returns the 32-bit register of a device at a physical address in the last 32 MiB below 4 GiB.
pub fn device_register(address: u32) -> &'static AtomicU32 {
    assert!(address >= 0xfe00_0000 && address.is_multiple_of(4), "no register of a device: {address:#x}");
    // NEED: local interrupt controller and clock are mapped registers.
    // SOUND: these pages are identity-mapped at boot, hold only devices and stay mapped; accesses are atomic words.
    unsafe { &*(address as usize as *const AtomicU32) }
}

/// Returns the number of this core from `core=N` on the command line of the image.
pub fn core_number(start_information: u32) -> usize {
    // NEED: the start information of the boot ABI is an address.
    // SOUND: QEMU has put the structure `hvm_start_info` there, with its command line at offset 24.
    let line = unsafe { *((start_information as usize + 24) as *const u64) } as usize as *const u8;
    let mut number = 0;
    for at in 0..64 {
        // NEED: as above.
        // SOUND: the line ends with a zero byte, where the loop ends.
        let byte = unsafe { *line.add(at) };
        match byte {
            0 => break,
            b'0'..=b'9' => number = number * 10 + usize::from(byte - b'0'),
            _ => number = 0,
        }
    }
    assert!(number < map::CORES, "core {number}; allowed: 0 to {}", map::CORES - 1);
    number
}

/// Location of the doorbells of the shared-memory device.
pub struct Bells {
    /// Address of its registers.
    pub registers: u32,
    /// Address of its table of interrupts.
    pub table: u32,
    device: u32,
    capability: u32,
}

/// Finds the registers and the interrupt table of the shared-memory device, if it has them.
pub fn find_bells() -> Option<Bells> {
    let device = (0..32).find(|device| pci_read(*device, 0) == SHARED_MEMORY_DEVICE)?;
    let mut capability = pci_read(device, 0x34) & 0xfc;
    while capability != 0 {
        let header = pci_read(device, capability);
        if header & 0xff == MSI_X {
            // The table is in the second memory region of the device.
            let table = (pci_read(device, 0x14) & !0xf) + (pci_read(device, capability + 4) & !7);
            return Some(Bells { registers: pci_read(device, 0x10) & !0xf, table, device, capability });
        }
        capability = header >> 8 & 0xfc;
    }
    None
}

/// Enables the interrupts that the device writes itself.
pub fn enable_bells(of: &Bells) {
    let command = pci_read(of.device, 4);
    write_port_wide(PCI_VALUE, command | 6);
    let control = pci_read(of.device, of.capability);
    write_port_wide(PCI_VALUE, control & !(1 << 30) | 1 << 31);
}

fn pci_read(device: u32, register: u32) -> u32 {
    write_port_wide(PCI_ADDRESS, 0x8000_0000 | device << 11 | register);
    read_port_wide(PCI_VALUE)
}

/// Finds the shared-memory device on the first bus, and returns the physical address of its memory.
pub fn shared_memory() -> u64 {
    let found = (0..32).find(|device| pci_read(*device, 0) == SHARED_MEMORY_DEVICE);
    let device = found.expect("no ivshmem device on the PCI bus; start the image by `isles bare run`");
    // Enables memory accesses; then reads the second, 64-bit address.
    let command = pci_read(device, 4);
    write_port_wide(PCI_VALUE, command | 2);
    u64::from(pci_read(device, 0x18) & !0xf) | u64::from(pci_read(device, 0x1c)) << 32
}

/// Maps the window and the shared memory of the chip, all uncached, as the SCC maps non-private memory.
pub fn map_window(physical: u64) {
    for at in 0..map::WINDOW_BYTES / LARGE_BYTES {
        map_large(map::WINDOW_ADDRESS + at * LARGE_BYTES, physical + (at * LARGE_BYTES) as u64);
    }
    for at in 0..map::SHARED_BYTES / LARGE_BYTES {
        map_large(map::SHARED_ADDRESS + at * LARGE_BYTES, physical + (map::SHARED + at * LARGE_BYTES) as u64);
    }
    for tile in 0..map::TILES {
        let buffers = physical + map::buffer_of(2 * tile) as u64;
        map_small(tile, map::tile_buffer_address(tile), (0..4).map(|page| buffers + page * 4096));
        let registers = physical + map::registers_of(tile) as u64;
        map_small(map::TILES + tile, map::tile_register_address(tile), [registers]);
    }
    flush();
}

/// Maps the registers of the own tile, and the message buffers of a program by rank.
pub fn map_program(physical: u64, core: usize, cores: impl Iterator<Item = usize>) {
    let registers = physical + map::registers_of(core / 2) as u64;
    map_small(2 * map::TILES, map::OWN_TILE_ADDRESS, [registers]);
    let pages = cores.flat_map(|core| [0, 4096].map(|half| physical + (map::buffer_of(core) + half) as u64));
    map_small(2 * map::TILES + 1, map::RANK_BUFFERS_ADDRESS, pages);
    flush();
}

// NEED: the linker script defines the ends of the parts of an image.
// SOUND: only the addresses of these symbols are used.
unsafe extern "C" {
    static bare_text_end: u8;
    static bare_user_start: u8;
    static bare_user_end: u8;
}

/// Returns the address after the text of the image.
pub fn text_end() -> usize {
    &raw const bare_text_end as usize
}

/// Returns the address range of user memory.
pub fn user_memory() -> Range<usize> {
    &raw const bare_user_start as usize..&raw const bare_user_end as usize
}

/// Loads a segment table and the task segment.
pub fn load_segments(segments: &'static [AtomicU64; 7], task: u16) {
    let pointer =
        TablePointer { limit: (size_of_val(segments) - 1) as u16, address: segments.as_ptr() as u64 };
    // NEED: instructions.
    // SOUND: the table is static, and has the segments in use at the same positions as the previous one.
    unsafe { asm!("lgdt [{0}]", "ltr {1:x}", in(reg) &pointer, in(reg) task, options(nostack)) }
}

/// Maps the first 2 MiB by small pages, for supervisor mode, except for the guard page of `main`.
pub fn map_first_pages() {
    for (number, entry) in FIRST_PAGES.0.iter().enumerate() {
        entry.store((number * PAGE_BYTES) as u64 | PRESENT_WRITABLE, Ordering::Relaxed);
    }
    let entry = FIRST_PAGES.0.as_ptr() as u64 | PRESENT_WRITABLE;
    bare_boot::page_directories()[0].store(entry, Ordering::Relaxed);
    close_page(bare_boot::guard_page());
}

/// Turns a page below 2 MiB into a guard page: each access is an exception.
pub fn close_page(address: usize) {
    FIRST_PAGES.0[address / PAGE_BYTES].store(0, Ordering::Relaxed);
    flush();
}

/// Returns `true` if the address is in a guard page.
pub fn is_guarded(address: usize) -> bool {
    FIRST_PAGES.0.get(address / PAGE_BYTES).is_some_and(|entry| entry.load(Ordering::Relaxed) == 0)
}

/// Lets user mode read and execute `text`, and read and write `memory` except for pages where `is_closed` is true; all
/// addresses are below 2 MiB.
pub fn open_to_user_mode(text: Range<usize>, memory: Range<usize>, is_closed: impl Fn(usize) -> bool) {
    let has = |range: &Range<usize>, page: usize| page < range.end && page + PAGE_BYTES > range.start;
    for (number, entry) in FIRST_PAGES.0.iter().enumerate() {
        let page = number * PAGE_BYTES;
        if has(&memory, page) && !is_closed(page) {
            entry.store(page as u64 | PRESENT_WRITABLE | USER, Ordering::Relaxed);
        } else if has(&text, page) {
            entry.store(page as u64 | PRESENT_WRITABLE & !WRITABLE | USER, Ordering::Relaxed);
        }
    }
    bare_boot::page_directories()[0].fetch_or(USER, Ordering::Relaxed);
    flush();
}

/// A table's address in the processor's format.
#[repr(C, packed)]
pub struct TablePointer {
    /// Size of the table in bytes, minus one.
    pub limit: u16,
    /// Its address.
    pub address: u64,
}

fn map_large(address: usize, physical: u64) {
    let entry = physical | LARGE | UNCACHED | PRESENT_WRITABLE;
    bare_boot::page_directories()[address / LARGE_BYTES].store(entry, Ordering::Relaxed);
}

fn map_small(table: usize, address: usize, pages: impl IntoIterator<Item = u64>) {
    let table = &PAGE_TABLES[table].0;
    for (entry, page) in table.iter().zip(pages) {
        entry.store(page | UNCACHED | PRESENT_WRITABLE, Ordering::Relaxed);
    }
    let entry = table.as_ptr() as u64 | PRESENT_WRITABLE;
    bare_boot::page_directories()[address / LARGE_BYTES].store(entry, Ordering::Relaxed);
}

fn flush() {
    // NEED: changed page tables take effect when the root is reloaded.
    // SOUND: pages with code, data and stack keep their mapping; the others hold no Rust object yet.
    unsafe { asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack)) }
}

/// Returns the words at `offset` of the window.
pub fn window(offset: usize, words: usize) -> &'static [AtomicU32] {
    assert!(
        offset.is_multiple_of(4) && offset + 4 * words <= map::WINDOW_BYTES,
        "no words of the window: {offset:#x}"
    );
    // NEED: memory shared by cores belongs to a device, at a fixed address.
    // SOUND: the window is mapped before the first call, and stays; other cores also access these words as atomics.
    unsafe { core::slice::from_raw_parts((map::WINDOW_ADDRESS + offset) as *const AtomicU32, words) }
}

/// Returns the 64-bit words at `offset` of the window.
pub fn wide_window(offset: usize, words: usize) -> &'static [AtomicU64] {
    assert!(
        offset.is_multiple_of(8) && offset + 8 * words <= map::WINDOW_BYTES,
        "no words of the window: {offset:#x}"
    );
    // NEED: as above.
    // SOUND: as above; these words are never accessed as 32-bit words.
    unsafe { core::slice::from_raw_parts((map::WINDOW_ADDRESS + offset) as *const AtomicU64, words) }
}
