//! Written words are read back, and other files are refused.

use super::*;
use crate::counter::{COUNTERS, CounterId, names_hash};
use crate::sample::{DeathCause, LinkSample, Liveness, OpenFinish, PairCount, ProgressSample, RunEnd};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words in memory, and an anonymous file for a copy of them.
struct Pages {
    words: Arc<Vec<AtomicU64>>,
    file: File,
}

impl Pages {
    fn new(layout: PageLayout) -> Pages {
        let words = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        Pages { words: Arc::new(words), file: file.into() }
    }

    fn memory(&self) -> Arc<dyn WordMemory> {
        Arc::clone(&self.words) as Arc<dyn WordMemory>
    }

    fn flush(&self) {
        let bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        self.file.write_all_at(&bytes, 0).unwrap();
    }

    fn reader(&self) -> Result<PagesReader, PageError> {
        self.flush();
        PagesReader::open(self.file.try_clone().unwrap())
    }
}

fn values(of: &[(CounterId, u64)]) -> crate::sample::CounterValues {
    let mut values = [0; COUNTERS.len()];
    of.iter().for_each(|(counter, value)| values[counter.index()] = *value);
    values
}

#[test]
fn what_places_copy_is_what_a_reader_sees() {
    let layout = PageLayout::new(3, 2);
    let pages = Pages::new(layout);
    let header = HeaderWriter::begin(pages.memory(), layout, 123);
    let mut place = PlaceWriter::new(pages.memory(), layout, 1);
    let mut reader = pages.reader().unwrap();
    assert_eq!(reader.started_unix_ms(), 123);
    assert_eq!(reader.read().unwrap().places, vec![Default::default(); 3], "nobody has said anything yet");

    let counted = [(CounterId::Tasks, 5), (CounterId::MessagesSent, 2), (CounterId::FinishesOpen, 1)];
    let finish = OpenFinish {
        id: 7,
        home: 1,
        parent: Some(0),
        since_ms: 40,
        live: 2,
        waits_for: vec![(0, 3), (2, 1)],
        label: "src/main.rs:12".to_owned(),
    };
    place.sent(2, 100);
    place.sent(2, 20);
    place.copy(Liveness::Busy, 50, &values(&counted));
    place.finishes(std::slice::from_ref(&finish));
    place.died(0, DeathCause::Killed(9));
    header.heartbeat(60);
    assert_eq!(place.alive_ms(), 60);
    place.add_total(9, "sources");
    place.add_done(3);
    header.end(RunEnd::Failed);
    let link = LinkSample { from: 4, to: 5, busy_ps: 1000 };
    header.model(70, &[link, link, link]);
    pages.flush();

    let sample = reader.read().unwrap();
    assert_eq!((sample.time_ms, sample.model_ns, sample.end), (60, 70, RunEnd::Failed));
    assert_eq!(
        sample.progress,
        ProgressSample { done: 3, total: 9, grows: false, unit: "sources".to_owned(), phase: String::new() }
    );
    assert_eq!(sample.missed, 0);
    let mut seen = sample.places[1].clone();
    let memory = std::mem::take(&mut seen.values[CounterId::MemoryBytes.index()]);
    assert!(memory > 100_000, "{memory} bytes, which the reader finds by itself");
    assert_eq!(seen.values, values(&counted));
    assert_eq!((sample.places[1].liveness, sample.places[1].at_ns), (Liveness::Busy, 50));
    assert_eq!((sample.places[1].copies, sample.places[1].process), (1, std::process::id()));
    assert_eq!(sample.places[0].death, Some(DeathCause::Killed(9)));
    assert_eq!(sample.finishes, [finish]);
    assert_eq!(sample.pairs, [PairCount { from: 1, to: 2, messages: 2, bytes: 120 }]);
    assert_eq!(sample.links, [link, link], "the file has room for two");
}

#[test]
fn messages_to_many_places_in_any_order_are_in_the_rows_with_the_next_copy() {
    let layout = PageLayout::new(4, 0);
    let pages = Pages::new(layout);
    HeaderWriter::begin(pages.memory(), layout, 0);
    let mut place = PlaceWriter::new(pages.memory(), layout, 2);
    for number in 0..300_u64 {
        place.sent([0, 0, 3, 1, 3][number as usize % 5], number);
    }
    place.copy(Liveness::Busy, 1, &values(&[(CounterId::MessagesSent, 300)]));
    let mut reader = pages.reader().unwrap();
    let pairs = reader.read().unwrap().pairs;
    assert_eq!(
        pairs.iter().map(|pair| (pair.to, pair.messages)).collect::<Vec<_>>(),
        [(0, 120), (1, 60), (3, 120)]
    );
    assert_eq!(pairs.iter().map(|pair| pair.bytes).sum::<u64>(), (0..300).sum());
}

#[test]
fn a_page_that_its_writer_left_half_written_keeps_its_old_values_and_is_counted() {
    let layout = PageLayout::new(2, 0);
    let pages = Pages::new(layout);
    HeaderWriter::begin(pages.memory(), layout, 0);
    let mut place = PlaceWriter::new(pages.memory(), layout, 0);
    place.copy(Liveness::Idle, 1, &values(&[(CounterId::Tasks, 5)]));
    let mut reader = pages.reader().unwrap();
    reader.read().unwrap();
    place.copy(Liveness::Idle, 2, &values(&[(CounterId::Tasks, 6)]));
    pages.words[layout.place_at(0) as usize].store(5, Ordering::Relaxed);
    pages.flush();
    let sample = reader.read().unwrap();
    assert_eq!((sample.missed, sample.places[0].value(CounterId::Tasks)), (1, 5));
}

#[test]
fn the_progress_of_a_run_is_that_of_all_its_places_with_the_last_name() {
    let layout = PageLayout::new(3, 0);
    let pages = Pages::new(layout);
    HeaderWriter::begin(pages.memory(), layout, 0);
    let mut reader = pages.reader().unwrap();
    let mut seen = || {
        pages.flush();
        reader.read().unwrap().progress
    };
    assert_eq!(seen(), ProgressSample::default(), "nobody has said anything yet");
    let mut places: Vec<PlaceWriter> =
        (0..3).map(|place| PlaceWriter::new(pages.memory(), layout, place)).collect();
    places[0].add_total(5, "a name that is rather long");
    places[2].add_total(7, "steps");
    places.iter().for_each(|place| place.add_done(2));
    let steps = |done, total, grows| ProgressSample {
        done,
        total,
        grows,
        unit: "steps".to_owned(),
        ..ProgressSample::default()
    };
    assert_eq!(seen(), steps(6, 12, false));
    // Neither a copy of the counters nor a wrong number harms it.
    places[1].copy(Liveness::Busy, u64::MAX, &[u64::MAX; COUNTERS.len()]);
    places[1].add_done(u64::MAX);
    places[1].add_total(0, &format!("{}\u{e4}", "x".repeat(UNIT_BYTES - 1)));
    let unit = "x".repeat(UNIT_BYTES - 1);
    assert_eq!(seen(), ProgressSample { unit, ..steps(u64::MAX, 12, false) });
}

#[test]
fn the_steps_of_a_phase_count_from_zero() {
    let layout = PageLayout::new(2, 0);
    let pages = Pages::new(layout);
    HeaderWriter::begin(pages.memory(), layout, 0);
    let mut reader = pages.reader().unwrap();
    let places: Vec<PlaceWriter> =
        (0..2).map(|place| PlaceWriter::new(pages.memory(), layout, place)).collect();
    let seen = |reader: &mut PagesReader| {
        pages.flush();
        let seen = reader.read().unwrap().progress;
        let own = places[1].progress();
        assert_eq!((own.done, own.total, own.grows), (seen.done, seen.total, seen.grows));
        seen
    };
    places[0].add_total(8, "units");
    places.iter().for_each(|place| place.add_done(3));
    places[0].expect_more();
    places[0].begin_phase("stability check, product 1");
    let begun = ProgressSample {
        unit: "units".to_owned(),
        phase: "stability check, product 1".to_owned(),
        ..ProgressSample::default()
    };
    assert_eq!(seen(&mut reader), begun);
    places[0].add_total(4, "units");
    places[1].add_done(1);
    assert_eq!(seen(&mut reader), ProgressSample { done: 1, total: 4, ..begun.clone() });
    places[0].begin_phase(&format!("{}\u{394}", "x".repeat(PHASE_BYTES - 1)));
    assert_eq!(seen(&mut reader), ProgressSample { phase: "x".repeat(PHASE_BYTES - 1), ..begun });
}

#[test]
fn long_lists_and_long_labels_are_cut() {
    let layout = PageLayout::new(1, 0);
    let pages = Pages::new(layout);
    HeaderWriter::begin(pages.memory(), layout, 0);
    let mut place = PlaceWriter::new(pages.memory(), layout, 0);
    place.copy(Liveness::Idle, 1, &values(&[(CounterId::FinishesOpen, 20)]));
    let label = format!("{}ä/end.rs:1", "x".repeat(LABEL_BYTES));
    let finish = OpenFinish { label, waits_for: vec![(1, 1); 9], ..OpenFinish::default() };
    place.finishes(&vec![finish; 20]);
    let sample = pages.reader().unwrap().read().unwrap();
    assert_eq!(sample.finishes.len(), FINISHES);
    assert_eq!(sample.finishes[0].waits_for.len(), WAITS);
    assert!(sample.finishes[0].label.ends_with("ä/end.rs:1"));
    assert!(sample.finishes[0].label.len() <= LABEL_BYTES);
}

#[test]
fn other_files_are_refused_with_what_is_wrong() {
    let layout = PageLayout::new(2, 0);
    let pages = Pages::new(layout);
    let refusal = |pages: &Pages| pages.reader().unwrap_err().to_string();
    assert!(refusal(&pages).contains("its first word is different"));
    HeaderWriter::begin(pages.memory(), layout, 0);
    pages.words[header::PLACES].store(u64::MAX, Ordering::Relaxed);
    assert!(refusal(&pages).contains("are impossible"));
    pages.words[header::PLACES].store(30_000, Ordering::Relaxed);
    assert!(refusal(&pages).contains("shorter than its header says"));
    pages.words[header::NAMES].store(0x1f, Ordering::Relaxed);
    pages.words[header::COUNTERS].store(5, Ordering::Relaxed);
    let others = refusal(&pages);
    assert!(
        others.contains("the run has 5 counters, whose names have the hash 000000000000001f;"),
        "{others}"
    );
    let ours = format!("{} counters, whose names have the hash {:016x}", COUNTERS.len(), names_hash());
    assert!(others.contains(&ours) && others.ends_with("use the program of the run's version"), "{others}");
    pages.words[header::VERSION].store(VERSION + 1, Ordering::Relaxed);
    let other = format!("the counters of the run have layout {}; allowed: {VERSION}", VERSION + 1);
    assert!(refusal(&pages).starts_with(&other), "{}", refusal(&pages));
    assert!(PagesReader::open(File::open("/dev/null").unwrap()).is_err());
}

#[test]
fn pairs_are_counted_in_runs_of_up_to_1024_places() {
    assert_eq!(PageLayout::new(1024, 0).peers(), 1024);
    let large = PageLayout::new(1025, 0);
    let pages = Pages::new(large);
    HeaderWriter::begin(pages.memory(), large, 0);
    let mut place = PlaceWriter::new(pages.memory(), large, 3);
    place.sent(4, 1);
    place.copy(Liveness::Idle, 1, &values(&[(CounterId::MessagesSent, 1)]));
    assert_eq!(pages.reader().unwrap().read().unwrap().pairs, []);
}
