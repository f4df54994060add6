//! The group under a sequence number under loom: a reader that says it was not disturbed has seen one write.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p isles-telemetry --lib model` runs this and nothing else.

use crate::page::group;
use crate::page::sync::AtomicU64;
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
