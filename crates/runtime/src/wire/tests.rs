//! Tests of the wire format: round trips through every size of memory, and garbage.

use super::*;
use proptest::prelude::*;

/// One item to write, for random messages.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Word(u64),
    Half(u32),
    Byte(u8),
    Floats(Vec<f64>),
    Bytes(Vec<u8>),
    Names(Vec<String>),
    Pair(Option<(i64, char)>),
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        any::<u64>().prop_map(Item::Word),
        any::<u32>().prop_map(Item::Half),
        any::<u8>().prop_map(Item::Byte),
        prop::collection::vec(-1e300..1e300f64, 0..700).prop_map(Item::Floats),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Item::Bytes),
        prop::collection::vec("[a-zäöü]{0,5}", 0..5).prop_map(Item::Names),
        any::<Option<(i64, char)>>().prop_map(Item::Pair),
    ]
}

fn put(writer: &mut Writer<'_>, item: &Item) {
    match item {
        Item::Word(value) => writer.put_u64(*value),
        Item::Half(value) => writer.put_u32(*value),
        Item::Byte(value) => writer.put_pod(value),
        Item::Floats(values) => writer.put_pod_slice(values),
        Item::Bytes(values) => writer.put_pod_slice(values),
        Item::Names(values) => writer.put_value(values).unwrap(),
        Item::Pair(value) => writer.put_value(value).unwrap(),
    }
}

/// Reads an item of the kind of `like`.
fn take(reader: &mut Reader<'_>, like: &Item) -> Result<Item, DecodeError> {
    Ok(match like {
        Item::Word(_) => Item::Word(reader.take_u64()?),
        Item::Half(_) => Item::Half(reader.take_u32()?),
        Item::Byte(_) => Item::Byte(reader.take_pod()?),
        Item::Floats(_) => Item::Floats(reader.take_pod_slice::<f64>()?.to_vec()),
        Item::Bytes(_) => Item::Bytes(reader.take_pod_vec()?),
        Item::Names(_) => Item::Names(reader.take_value()?),
        Item::Pair(_) => Item::Pair(reader.take_value()?),
    })
}

fn encoded(items: &[Item]) -> Vec<u8> {
    let mut counter = Writer::new(&mut []);
    items.iter().for_each(|item| put(&mut counter, item));
    let mut bytes = vec![0xAA; counter.written()];
    let mut writer = Writer::new(&mut bytes);
    items.iter().for_each(|item| put(&mut writer, item));
    assert!(!writer.overflowed());
    assert_eq!(writer.written(), writer.bytes.len());
    bytes
}

/// Memory like that of a transport: its bytes start on a multiple of 64.
struct Lines {
    lines: Vec<[u64; 8]>,
    start: usize,
    len: usize,
}

impl Lines {
    fn holding(message: &[u8]) -> Rc<dyn BlockMemory> {
        let mut lines = vec![[0; 8]; message.len() / 64 + 2];
        let address = lines.as_ptr() as usize;
        let start = address.next_multiple_of(64) - address;
        bytemuck::cast_slice_mut(&mut lines)[start..start + message.len()].copy_from_slice(message);
        Rc::new(Lines { lines, start, len: message.len() })
    }
}

impl BlockMemory for Lines {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[self.start..self.start + self.len]
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(items in prop::collection::vec(item(), 0..8)) {
        let bytes = encoded(&items);
        let block = Lines::holding(&bytes);
        for mut reader in [Reader::new(&bytes), Reader::from_block(&block)] {
            for item in &items {
                prop_assert_eq!(&take(&mut reader, item).unwrap(), item);
            }
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn any_room_counts_the_same_length(items in prop::collection::vec(item(), 0..8), room in 0usize..6000) {
        let whole = encoded(&items);
        let mut bytes = vec![0; room];
        let mut writer = Writer::new(&mut bytes);
        items.iter().for_each(|item| put(&mut writer, item));
        prop_assert_eq!(writer.written(), whole.len());
        prop_assert_eq!(writer.overflowed(), room < whole.len());
        if room >= whole.len() {
            prop_assert_eq!(&bytes[..whole.len()], &whole[..]);
        }
    }

    #[test]
    fn garbage_is_an_error_or_a_value_but_never_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kinds in prop::collection::vec(item(), 1..6),
    ) {
        let mut reader = Reader::new(&bytes);
        for kind in &kinds {
            if take(&mut reader, kind).is_err() {
                break;
            }
        }
        prop_assert!(reader.left() <= bytes.len());
    }

    #[test]
    fn a_shortened_message_is_refused(
        items in prop::collection::vec(item(), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = encoded(&items);
        let short = &bytes[..cut.index(bytes.len())];
        let mut reader = Reader::new(short);
        let read: Result<Vec<Item>, DecodeError> = items.iter().map(|item| take(&mut reader, item)).collect();
        prop_assert!(matches!(read, Err(DecodeError::Truncated { .. })), "{:?}", read);
    }
}

#[test]
fn a_slice_in_a_block_stays_in_place_and_keeps_the_block() {
    let floats: Vec<f64> = (0..2000).map(f64::from).collect();
    let bytes = encoded(&[Item::Byte(1), Item::Floats(floats.clone())]);
    let block = Lines::holding(&bytes);
    let mut reader = Reader::from_block(&block);
    reader.take_pod::<u8>().unwrap();
    let slice = reader.take_pod_slice::<f64>().unwrap();
    drop(block);
    assert!(slice.is_in_place());
    assert_eq!(*slice, floats);
    assert_eq!(slice.as_ptr() as usize % LINE_BYTES, 0);
}

#[test]
fn a_block_off_the_alignment_is_copied() {
    let bytes = encoded(&[Item::Floats(vec![1.0, 2.0])]);
    let message = [&[0][..], &bytes].concat();
    struct Shifted(Rc<dyn BlockMemory>);
    impl BlockMemory for Shifted {
        fn bytes(&self) -> &[u8] {
            &self.0.bytes()[1..]
        }
    }
    let block: Rc<dyn BlockMemory> = Rc::new(Shifted(Lines::holding(&message)));
    let slice = Reader::from_block(&block).take_pod_slice::<f64>().unwrap();
    assert!(!slice.is_in_place());
    assert_eq!(*slice, [1.0, 2.0]);
}

#[test]
fn a_length_beyond_all_memory_is_named() {
    let bytes = u64::MAX.to_le_bytes();
    assert_eq!(
        Reader::new(&bytes).take_pod_vec::<f64>().unwrap_err(),
        DecodeError::LengthOutOfRange { len: u64::MAX }
    );
    let bytes = (1u64 << 40).to_le_bytes();
    assert_eq!(
        Reader::new(&bytes).take_pod_vec::<u8>().unwrap_err(),
        DecodeError::Truncated { needed: 56, left: 0 }
    );
}

#[test]
fn elements_without_a_size_travel_as_their_number() {
    let mut bytes = [0; 8];
    Writer::new(&mut bytes).put_pod_slice(&[(), (), ()]);
    assert_eq!(Reader::new(&bytes).take_pod_vec::<()>().unwrap().len(), 3);
    let block = Lines::holding(&bytes);
    assert_eq!(Reader::from_block(&block).take_pod_slice::<()>().unwrap().len(), 3);
}

#[test]
fn padding_is_zero_whatever_lay_there_before() {
    let mut bytes = [0xFF; 40];
    let mut writer = Writer::new(&mut bytes);
    writer.put_pod(&1u8);
    writer.put_pod_slice(&[2u64]);
    assert_eq!(writer.written(), 24);
    assert_eq!(bytes[9..16], [0; 7]);
    assert_eq!(bytes[24..], [0xFF; 16]);
}

#[test]
fn what_the_format_lacks_is_refused_at_the_sender() {
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            serializer.serialize_seq(None)?.end()
        }
    }
    let refused = Writer::new(&mut [0; 64]).put_value(&Endless).unwrap_err();
    assert!(refused.to_string().contains("`#[serde(flatten)]`"), "{refused}");
}

#[test]
fn bytes_after_the_end_are_reported() {
    assert_eq!(Reader::new(&[1, 2]).finish(), Err(DecodeError::Trailing { left: 2 }));
}

#[test]
fn what_is_left_of_a_message_keeps_its_alignment() {
    let long = vec![7u64; LINE_ALIGNED_BYTES_MIN / 8];
    for before in [0, 8, 16, 56, 64] {
        let mut bytes = vec![0; LINE_ALIGNED_BYTES_MIN + 256];
        let mut writer = Writer::new(&mut bytes);
        writer.put_bytes(&vec![1; before]);
        writer.put_pod_slice(&long);
        let written = writer.written();
        let mut reader = Reader::after(before, &bytes[before..written]);
        assert_eq!(reader.take_pod_vec::<u64>().unwrap(), long, "after {before} bytes");
        reader.finish().unwrap();
    }
}

/// Each number of bytes that a number may have, and the largest and smallest number of each.
#[test]
fn numbers_of_every_length_arrive_and_cut_or_overlong_ones_are_refused() {
    let limits = (1..=64).flat_map(|bits| [u64::MAX >> (64 - bits), 1 << (bits - 1)]);
    for number in limits.chain([0]) {
        let mut bytes = [0; 16];
        let mut writer = Writer::new(&mut bytes);
        writer.put_value(&number).unwrap();
        let len = writer.written();
        assert_eq!(Reader::new(&bytes[..len]).take_value::<u64>(), Ok(number));
        assert_eq!(Reader::new(&bytes[..len]).take_value::<u128>(), Ok(u128::from(number)));
        assert_eq!(Reader::new(&bytes[..len]).take_value::<u32>().ok(), u32::try_from(number).ok());
        for cut in 0..len {
            assert!(Reader::new(&bytes[..cut]).take_value::<u64>().is_err(), "{number} in {cut} bytes");
        }
    }
    for overlong in [&[0xff; 10][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]] {
        assert!(Reader::new(overlong).take_value::<u64>().is_err(), "{overlong:x?}");
    }
}

#[test]
fn numbers_are_written_as_a_tuple_of_them() {
    for numbers in [[0, 127, 1, 5], [128, 1, 1, 0], [1 << 31, u64::MAX, 1, 300]] {
        let [a, b, c, d] = numbers;
        let mut by_value = [0; 64];
        let mut writer = Writer::new(&mut by_value);
        writer.put_value(&(a, b, c, d)).unwrap();
        let written = writer.written();
        for room in [0, 3, written, 64] {
            let mut bytes = vec![0; room];
            let mut writer = Writer::new(&mut bytes);
            writer.put_numbers(numbers);
            assert_eq!((writer.written(), writer.overflowed()), (written, room < written));
            assert!(room < written || bytes[..written] == by_value[..written]);
        }
        let mut reader = Reader::new(&by_value[..written]);
        assert_eq!((reader.take_numbers(), reader.left()), (Ok(numbers), 0));
        let cut = Reader::new(&by_value[..written - 1]).take_numbers::<4>();
        assert!(matches!(cut, Err(DecodeError::Truncated { .. })));
    }
    let too_large = Reader::new(&[0xff; 11]).take_numbers::<1>();
    assert!(matches!(too_large, Err(DecodeError::Refused(_))));
}
