//! Tests of the division of buffers by the protocols that move one chunk at a time.

use super::{Handshake, RcceX10, SectionChannel, Sections};
use isles_transport::Class;

fn lines(handshake: &impl Handshake) -> [u32; 2] {
    lines_of(handshake, 0)
}

/// Returns the lines of a chunk of a message of `bytes` bytes.
fn lines_of(handshake: &impl Handshake, bytes: usize) -> [u32; 2] {
    [Class::Control, Class::Data].map(|class| handshake.chunk_lines(class, bytes))
}

#[test]
fn the_chunk_of_rcce_x10_is_8192_bytes_less_64_for_each_place() {
    for places in 1..=48 {
        let layout = RcceX10::new(places, 256, 32).unwrap();
        let bytes: u32 = lines(&layout).iter().sum::<u32>() * 32;
        assert_eq!(bytes, 8_192 - 64 * places);
    }
    let layout = RcceX10::new(48, 256, 32).unwrap();
    assert_eq!(lines(&layout), [20, 140]);
    assert_eq!([Class::Control, Class::Data].map(|class| layout.message_bytes_max(class)), [640, 4_480]);
    assert_eq!(RcceX10::new(48, 99, 32), Err(100));
    assert_eq!(lines(&RcceX10::new(48, 100, 32).unwrap()), [2, 2]);
}

#[test]
fn a_section_of_48_has_160_bytes_of_which_a_line_is_its_header() {
    let layout = Sections::new(48, 256, 32).unwrap();
    assert_eq!(lines(&layout), [1, 3]);
    assert_eq!((1 + lines(&layout).iter().sum::<u32>()) * 32, 160);
    assert_eq!(lines(&Sections::new(2, 256, 32).unwrap()), [31, 96]);
    assert_eq!(Sections::new(48, 143, 32), Err(144));
    assert_eq!(lines(&Sections::new(48, 144, 32).unwrap()), [1, 1]);
}

#[test]
fn a_mixed_channel_goes_to_memory_with_what_is_longer_than_a_chunk_of_the_buffer() {
    let mixed = Sections::new(48, 256, 32).unwrap().over(SectionChannel::Mixed);
    assert_eq!([lines_of(&mixed, 32), lines_of(&mixed, 33)], [[1, 3], [64, 3]]);
    assert_eq!([lines_of(&mixed, 96), lines_of(&mixed, 97)], [[64, 3], [64, 192]]);
    let memory = Sections::new(48, 256, 32).unwrap().over(SectionChannel::Memory);
    assert_eq!(lines(&memory), [64, 192]);
}
