//! Tests of the choice of forms: how each variable is decoded.

use super::*;
use crate::wire::{Reader, Writer};
use serde::Deserialize;

/// Sends `capture` through bytes; returns the decoded capture and the number of bytes.
fn through_bytes<C: Travel>(capture: &C) -> (C::Decoded, usize) {
    let mut counter = Writer::new(&mut []);
    capture.encode(&mut counter).unwrap();
    let mut bytes = vec![0; counter.written()];
    capture.encode(&mut Writer::new(&mut bytes)).unwrap();
    let mut reader = Reader::new(&bytes);
    let decoded = C::decode(&mut reader).unwrap();
    reader.finish().unwrap();
    (decoded, bytes.len())
}

/// Asserts that `$source` arrives as a value of the same type that equals it, and took `$bytes` bytes.
macro_rules! check {
    ($source:expr, $bytes:expr) => {{
        let source = $source;
        let (mut decoded, bytes) = through_bytes(&tag(&source).__isles_capture());
        assert_eq!(same_type(&source, &decoded.bind()), Ok(()));
        assert_eq!(bytes, $bytes);
    }};
}

/// Compares two values of one type, and shows them if they differ.
fn same_type<T: PartialEq + std::fmt::Debug>(left: &T, right: &T) -> Result<(), String> {
    if left == right { Ok(()) } else { Err(format!("{left:?} != {right:?}")) }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Town {
    name: String,
    people: u32,
}

fn town() -> Town {
    Town { name: "Rye".to_owned(), people: 4 }
}

#[test]
fn plain_values_travel_as_their_bytes() {
    check!(7u64, 8);
    check!([1.5f64; 40], 320);
    check!(-1, 4);
    check!((), 0);
}

#[test]
fn references_are_decoded_as_references() {
    let floats = vec![1.0f64, 2.0];
    let names = vec!["a".to_owned(), "b".to_owned()];
    check!(&floats, 24);
    check!(&floats[..], 24);
    check!(&7u8, 1);
    check!(&[1u16; 3], 6);
    check!("text", 5);
    check!(&names, 5);
    check!(&names[..], 5);
    check!(&town(), 6);
}

#[test]
fn values_are_decoded_as_values() {
    check!(vec![1u32, 2, 3], 20);
    check!(vec![Some(1u32)], 3);
    check!("text".to_owned(), 5);
    check!(town(), 6);
    check!(Some(town()), 7);
    check!((1u8, 'x', true), 3);
    check!(Box::new(town()), 6);
}

#[test]
fn large_plain_vectors_take_their_memory_and_little_else() {
    check!(vec![1u8; 1 << 20], (1 << 20) + 64);
}

#[test]
fn a_generic_function_can_capture_by_serde() {
    fn through<T>(value: T, bytes: usize, list_bytes: usize)
    where
        T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let list = vec![value];
        check!(&list[0], bytes);
        check!(&list, list_bytes);
        check!(&list[..], list_bytes);
        check!(list, list_bytes);
    }
    through(town(), 6, 7);
    // Numbers in a list go as their memory, after the length and their kind.
    through(300u64, 2, 10);
    through(vec![1.5f64; 1024], 3 + 8192, 1 + 3 + 8192);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Ticket(u8);

impl Handle for Ticket {}

/// Neither serialisable nor a handle.
struct Rooted;

#[test]
fn a_handle_travels_instead_of_its_fields() {
    let ticket = Ticket(3);
    let rooted = Rooted;
    let capture = prefix(&ticket).__isles_choose(|| tag(&rooted).__isles_capture());
    let (mut decoded, _) = through_bytes(&capture);
    assert_eq!(decoded.bind(), Ticket(3));
    let reference = &ticket;
    let capture = prefix(&reference).__isles_choose(|| tag(&rooted).__isles_capture());
    let (mut decoded, _) = through_bytes(&capture);
    assert_eq!(decoded.bind(), &Ticket(3));
}

#[test]
fn what_is_no_handle_gives_its_fields() {
    let town = town();
    let capture = prefix(&town).__isles_choose(|| tag(&town.people).__isles_capture());
    assert_eq!(through_bytes(&capture).0.bind(), 4u32);
}

/// Sends `value` back through bytes and returns the number of bytes.
macro_rules! returned {
    ($value:expr) => {{
        let value = $value;
        let copy = value.clone();
        let shipment = ship_tag(&value).__isles_ship(value);
        let mut bytes = vec![0; 1 << 16];
        let mut writer = Writer::new(&mut bytes);
        shipment.encode(&mut writer).unwrap();
        let written = writer.written();
        assert_eq!(decoded(&shipment, &bytes[..written]), copy);
        written
    }};
}

fn decoded<S: Ship>(_: &S, bytes: &[u8]) -> S::Value {
    let mut reader = Reader::new(bytes);
    let value = S::decode(&mut reader).unwrap();
    reader.finish().unwrap();
    value
}

#[test]
fn values_come_back_in_the_shortest_way() {
    assert_eq!(returned!(()), 0);
    assert_eq!(returned!(1u64 << 40), 8);
    assert_eq!(returned!(vec![1.0f64; 1000]), 8064);
    assert_eq!(returned!(vec![Some(1u8)]), 3);
    assert_eq!(returned!(Ok::<u8, String>(1)), 3);
    assert_eq!(returned!(town()), 6);
}

#[test]
fn pairs_travel_in_order() {
    let (a, b) = (1u8, "two");
    let captures = (tag(&a).__isles_capture(), (tag(&b).__isles_capture(), ()));
    let (mut decoded, bytes) = through_bytes(&captures);
    assert_eq!(decoded.bind(), (1, ("two", ())));
    assert_eq!(bytes, 5);
}

#[test]
fn only_success_and_failure_end_a_task() {
    assert!(().into_result().is_ok());
    assert!(Ok::<u8, std::fmt::Error>(1).into_result().is_ok());
    assert!(Err::<(), _>(std::fmt::Error).into_result().is_err());
}
