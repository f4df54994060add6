//! From the PVH entry of an image to 64-bit Rust: page tables, descriptors, FPU, stack.
//!
//! QEMU enters an image through its note of type 18 (Xen's PVH boot ABI: 32-bit protected mode, no paging, EBX =
//! address of the start information). The entry identity-maps the first 4 GiB by pages of 2 MiB, the upper half of
//! them uncached, for supervisor mode only, enables SSE, and calls `bare_start` with the address of the start
//! information. QEMU has cleared the bss section.

#![no_std]

use core::arch::global_asm;
use core::sync::atomic::AtomicU64;

global_asm!(
    r#"
    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad bare_entry

    .section .boot, "ax"
    .code32
    .global bare_entry
bare_entry:
    cli
    cld
    movl $bare_stack_top, %esp
    movl $bare_page_pointers + 7, bare_page_root
    movl $bare_page_directories + 7, %eax
    xorl %ecx, %ecx
1:  movl %eax, bare_page_pointers(,%ecx,8)
    addl $0x1000, %eax
    incl %ecx
    cmpl $4, %ecx
    jne 1b
    xorl %ecx, %ecx
    movl $0x83, %eax
2:  movl %eax, bare_page_directories(,%ecx,8)
    addl $0x200000, %eax
    incl %ecx
    cmpl $1024, %ecx
    jne 3f
    orl $0x10, %eax
3:  cmpl $2048, %ecx
    jne 2b
    movl %cr4, %eax
    orl $0x620, %eax
    movl %eax, %cr4
    movl $bare_page_root, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    andl $0xfffffffb, %eax
    orl $0x80000003, %eax
    movl %eax, %cr0
    lgdt bare_descriptor_pointer
    ljmp $8, $4f
    .code64
4:  movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw %ax, %fs
    movw %ax, %gs
    movq $bare_stack_top, %rsp
    fninit
    movl %ebx, %edi
    xorl %ebp, %ebp
    call bare_start
5:  cli
    hlt
    jmp 5b

    .section .rodata
    .balign 8
bare_descriptors:
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
bare_descriptor_pointer:
    .word 23
    .quad bare_descriptors

    .section .bss
    .balign 4096
bare_page_root:
    .skip 4096
bare_page_pointers:
    .skip 4096
    .global bare_page_directories
bare_page_directories:
    .skip 16384

    .section .bss.stacks, "aw", @nobits
    .balign 4096
    .global bare_guard_page
bare_guard_page:
    .skip 4096
    .skip 262144
bare_stack_top:
    "#,
    options(att_syntax)
);

// NEED: the tables and the guard page are symbols of the assembly above.
// SOUND: they have this size and alignment; only the address of the page is used.
unsafe extern "C" {
    #[link_name = "bare_page_directories"]
    static PAGE_DIRECTORIES: [AtomicU64; 2048];
    #[link_name = "bare_guard_page"]
    static GUARD_PAGE: u8;
}

/// Returns the address of the page below the boot stack, on which `main` runs. It is mapped.
pub fn guard_page() -> usize {
    &raw const GUARD_PAGE as usize
}

/// Returns the entries for the first 4 GiB of addresses, one for each 2 MiB.
pub fn page_directories() -> &'static [AtomicU64; 2048] {
    // NEED: the tables are a symbol of the assembly above, which has built them before any Rust code runs.
    // SOUND: they have this size and live as long as the image; all accesses are atomic.
    unsafe { &PAGE_DIRECTORIES }
}
