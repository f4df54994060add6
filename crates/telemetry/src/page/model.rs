//! Model tests under loom: a reader of a group that reports success has seen one write, and a line read from the ring
//! of output was printed.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p isles-telemetry --lib model` runs this and nothing else.

use crate::page::group;
use crate::page::output::{self, RING_HEADER, RingWriter};
use crate::page::sync::AtomicU64;
use crate::sample::OutputStream;
use loom::sync::Arc;
use loom::thread;

#[test]
fn a_reader_sees_the_words_of_one_write_or_says_that_it_did_not() {
    loom::model(|| {
        let group: Arc<Vec<AtomicU64>> = Arc::new((0..3).map(|_| AtomicU64::new(0)).collect());
        let shared = Arc::clone(&group);
        let writer = thread::spawn(move || {
            group::write(&shared, &[1, 1]);
            group::write(&shared, &[2, 2]);
        });
        let mut values = [9, 9];
        if group::read(&group, &mut values) {
            assert_eq!(values[0], values[1], "words of two writes");
        }
        writer.join().unwrap();
        assert!(group::read(&group, &mut values));
        assert_eq!(values, [2, 2]);
    });
}

#[test]
fn what_was_read_undisturbed_never_goes_back() {
    loom::model(|| {
        let group: Arc<Vec<AtomicU64>> = Arc::new((0..2).map(|_| AtomicU64::new(0)).collect());
        let shared = Arc::clone(&group);
        let writer = thread::spawn(move || (1..=2).for_each(|value| group::write(&shared, &[value])));
        let (mut first, mut second) = ([0], [0]);
        if group::read(&group, &mut first) && group::read(&group, &mut second) {
            assert!(first <= second, "{first:?} then {second:?}");
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_line_that_is_read_while_others_take_its_place_is_one_that_was_printed() {
    loom::model(|| {
        // Room for one record, so that the second line takes the place of the first.
        let ring: Arc<Vec<AtomicU64>> = Arc::new((0..RING_HEADER + 3).map(|_| AtomicU64::new(0)).collect());
        let shared = Arc::clone(&ring);
        let writer = thread::spawn(move || {
            let mut writer = RingWriter::default();
            writer.print(&shared, 1, OutputStream::Standard, "1\n");
            writer.print(&shared, 2, OutputStream::Error, "2\n");
        });
        for line in output::read(&ring) {
            assert_eq!((line.text, line.time_ms), (line.seq.to_string(), line.seq), "a mixture");
        }
        writer.join().unwrap();
        assert_eq!(output::read(&ring).len(), 1);
    });
}
