//! A log that is cut anywhere, or has any bit flipped, is replayed with written samples only.

use super::*;
use crate::counter::CounterId;
use crate::description::RunDescription;
use crate::sample::{DeathCause, Liveness, OpenFinish, PairCount, ProgressSample, RunEnd, Sample};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

fn scratch() -> PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("isles-log-{}-{number}", std::process::id()))
}

/// A run of three places with a sample each second, in which values rise, fall and jump.
fn run(seconds: u64) -> Vec<Sample> {
    let sample = |second: u64| {
        let mut sample = Sample { time_ms: 1000 * second, model_ns: second, ..Sample::default() };
        sample.places.resize(3, Default::default());
        for (index, place) in sample.places.iter_mut().enumerate() {
            place.liveness = if second.is_multiple_of(2) { Liveness::Busy } else { Liveness::Idle };
            place.values[CounterId::Tasks.index()] = second * second * (index as u64 + 1);
            place.values[CounterId::Queue.index()] = (second * 7919) % 13;
            place.values[CounterId::MemoryBytes.index()] = if second == 5 { u64::MAX } else { 1 };
        }
        let (unit, phase) = ("steps".to_owned(), format!("phase {}", second / 4));
        sample.progress = ProgressSample { done: second, total: 200, grows: false, unit, phase };
        if second > 3 {
            sample.places[2].death = Some(DeathCause::Killed(9));
            sample.finishes = vec![OpenFinish { id: second, label: "a:1".into(), ..Default::default() }];
        }
        sample.pairs = vec![PairCount { from: 0, to: 1, messages: second, bytes: second }];
        sample
    };
    (0..seconds).map(sample).collect()
}

/// The bytes of the log file of such a run.
fn log(samples: &[Sample], end: Option<&str>) -> Vec<u8> {
    let path = scratch();
    let description = RunDescription { places: 3, program: "p".into(), ..RunDescription::default() };
    let mut writer = LogWriter::create(&path, &description).unwrap();
    assert!(LogWriter::create(&path, &description).is_err(), "a log is not written over");
    samples.iter().for_each(|sample| writer.append(sample).unwrap());
    if let Some(reason) = end {
        writer.finish(RunEnd::Failed, Some(reason)).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes
}

/// Returns `true` if `sample` was written, apart from the lists, which are written only every ten seconds.
fn is_written(sample: &Sample, written: &[Sample]) -> bool {
    written.iter().any(|other| Sample { pairs: sample.pairs.clone(), ..other.clone() } == *sample)
}

#[test]
fn samples_are_read_as_they_were_written() {
    let samples = run(130);
    let recorded = LogReader::read(log(&samples, Some("place 2 is dead"))).unwrap();
    assert_eq!(recorded.description().program, "p");
    assert_eq!(recorded.end(), Some((RunEnd::Failed, Some("place 2 is dead"))));
    assert_eq!((recorded.len(), recorded.gaps(), recorded.length_ms()), (130, 0, 129_000));
    let read = recorded.samples(0, 130);
    assert!(read.iter().zip(&samples).all(|(read, written)| is_written(read, std::slice::from_ref(written))));
    assert_eq!(read[20].pairs, samples[20].pairs, "lists are written every ten seconds");
    let index = recorded.index_at(77_500).unwrap();
    assert!(is_written(&recorded.samples(index, index + 1)[0], &samples[77..78]));
    assert_eq!((recorded.index_at(0), recorded.index_at(u64::MAX)), (Some(0), Some(129)));
}

#[test]
fn a_log_is_small() {
    let bytes = log(&run(600), Some("")).len();
    assert!(bytes < 600 * 3 * 25, "{bytes} bytes of 1,800 samples of places");
}

#[test]
fn a_log_without_an_end_says_nothing_of_it() {
    let recorded = LogReader::read(log(&run(10), None)).unwrap();
    assert_eq!((recorded.end(), recorded.len()), (None, 10));
    let empty = LogReader::read(log(&[], None)).unwrap();
    assert!(empty.is_empty() && empty.index_at(5).is_none());
}

#[test]
fn other_files_are_no_logs() {
    for bytes in [&b""[..], b"hello world", MAGIC] {
        assert!(LogReader::read(bytes.to_vec()).is_err());
    }
    assert!(LogReader::open(std::path::Path::new("/nowhere")).is_err());
}

#[test]
fn a_flipped_bit_costs_its_frame_and_those_up_to_the_next_whole_sample() {
    let samples = run(130);
    let mut bytes = log(&samples, None);
    let whole = LogReader::read(bytes.clone()).unwrap();
    let middle = bytes.len() / 4;
    bytes[middle] ^= 4;
    let recorded = LogReader::read(bytes).unwrap();
    assert_eq!(recorded.gaps(), 1);
    assert!(recorded.len() < whole.len() && recorded.len() >= 70, "{} samples", recorded.len());
    assert!(recorded.samples(0, 130).iter().all(|sample| is_written(sample, &samples)));
    assert_eq!(recorded.length_ms(), 129_000, "it goes on behind the gap");
}

proptest! {
    #[test]
    fn a_log_cut_anywhere_is_replayed_as_far_as_it_goes(cut in 0.0..1.0_f64) {
        let samples = run(70);
        let mut bytes = log(&samples, Some("x"));
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        if let Ok(recorded) = LogReader::read(bytes) {
            prop_assert!(recorded.end().is_none());
            let read = recorded.samples(0, usize::MAX);
            prop_assert_eq!(read.len(), recorded.len());
            for (read, written) in read.iter().zip(&samples) {
                prop_assert!(is_written(read, std::slice::from_ref(written)));
            }
        }
    }

    #[test]
    fn flipped_bits_give_no_sample_that_was_not_written(flips in prop::collection::vec((0.0..1.0_f64, 0..8_u8), 1..5)) {
        let samples = run(70);
        let mut bytes = log(&samples, Some("x"));
        for (at, bit) in flips {
            let at = (bytes.len() as f64 * at) as usize;
            bytes[at] ^= 1 << bit;
        }
        if let Ok(recorded) = LogReader::read(bytes) {
            for sample in recorded.samples(0, usize::MAX) {
                prop_assert!(is_written(&sample, &samples), "{:?}", sample);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        framed in any::<bool>(),
    ) {
        let mut file = MAGIC.to_vec();
        let description = RunDescription { places: 3, ..RunDescription::default() };
        file.extend(frame(FrameKind::Description, &description.encode()));
        if framed {
            file.extend(frame(FrameKind::Key, &bytes));
            file.extend(frame(FrameKind::Difference, &bytes));
            file.extend(frame(FrameKind::End, &bytes));
        } else {
            file.extend(&bytes);
        }
        let recorded = LogReader::read(file).unwrap();
        recorded.samples(0, usize::MAX);
    }
}
