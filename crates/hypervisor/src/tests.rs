//! Tests without a virtual machine: the reader of mappings, and the kernel's pages.

use crate::memory::{MapsParser, ProcessMapping};

fn mappings(text: &str) -> Vec<ProcessMapping> {
    let mut parser = MapsParser::default();
    text.bytes().filter_map(|byte| parser.take(byte)).collect()
}

#[test]
fn mappings_are_read_with_their_rights() {
    let text = "55d0-55d8 r-xp 00001000 fe:00 123   /usr/bin/a-b c\n7f00-7f10 ---p 00000000 00:00 0 \n\
                ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
    let of = |range, read, write, execute| ProcessMapping { range, read, write, execute };
    let expected = [
        of(0x55d0..0x55d8, true, false, true),
        of(0x7f00..0x7f10, false, false, false),
        of(0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000, false, false, true),
    ];
    assert_eq!(mappings(text), expected);
}

#[test]
fn the_mappings_of_this_process_have_its_code_and_its_stack() {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    let here = the_mappings_of_this_process_have_its_code_and_its_stack as *const () as u64;
    let local = 0_u8;
    let stack = &raw const local as u64;
    let found = mappings(&text);
    assert_eq!(found.len(), text.lines().count());
    assert!(found.iter().any(|mapping| mapping.range.contains(&here) && mapping.execute && !mapping.write));
    assert!(found.iter().any(|mapping| mapping.range.contains(&stack) && mapping.write && !mapping.execute));
}
