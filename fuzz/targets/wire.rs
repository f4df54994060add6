//! The reader of captures and results takes any bytes, in a queue and in a block.
//!
//! The first byte says where the message starts in memory, up to the first zero each byte reads one item, and what is
//! left is the message.
#![no_main]

use isles_runtime::Error;
use isles_runtime::wire::{DecodeError, Reader};
use isles_transport::BlockMemory;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::rc::Rc;

/// A message that starts at any address.
struct Memory(Vec<u8>, usize);

impl BlockMemory for Memory {
    fn bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

fn read(item: u8, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    match item % 14 {
        1 => drop(black_box(reader.take_u32()?)),
        2 => drop(black_box(reader.take_pod::<[u16; 3]>()?)),
        3 => drop(black_box(reader.take_pod_vec::<u8>()?)),
        4 => drop(black_box(reader.take_pod_slice::<f64>()?.iter().sum::<f64>())),
        5 => drop(black_box(reader.take_pod_slice::<[u64; 2]>()?.len())),
        6 => drop(black_box(reader.take_value::<Vec<Vec<String>>>()?)),
        7 => drop(black_box(reader.take_value::<BTreeMap<u16, Option<Box<[i128]>>>>()?)),
        8 => drop(black_box(reader.take_value::<Result<char, Error>>()?.map_err(|error| error.to_string()))),
        9 => reader.align(64)?,
        10 => drop(black_box(reader.take_pod_vec::<[u8; 0]>()?.len())),
        11 => {
            drop(black_box(reader.take_value::<(bool, f32, u64, (), Option<Vec<u16>>, Vec<Box<[f64]>>)>()?))
        }
        12 => drop(black_box(reader.take_bytes(5)?)),
        _ => drop(black_box(reader.rest())),
    }
    Ok(())
}

fn read_all(items: &[u8], mut reader: Reader<'_>) -> Result<(), DecodeError> {
    items.iter().try_for_each(|item| read(*item, &mut reader))?;
    reader.finish()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&start, rest)) = bytes.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (items, message) = rest.split_at(end);
    let start = usize::from(start % 64);
    let memory: Rc<dyn BlockMemory> = Rc::new(Memory([&vec![0; start], message].concat(), start));
    let lent = read_all(items, Reader::new(memory.bytes()));
    assert_eq!(lent, read_all(items, Reader::from_block(&memory)), "both ways read the same");
});
