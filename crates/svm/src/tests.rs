//! Regions of several threads, and of two processes one of which is killed.

use crate::{PAGE_BYTES, PageRegion, PlaceAddress, RegionError};
use isles_protocol::PlaceId;
use isles_protocol::svm::Consistency;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::Ordering;

/// Elements of a page.
const PAGE: usize = PAGE_BYTES / 8;

const MODELS: [Consistency; 3] = [Consistency::Exclusive, Consistency::Strong, Consistency::Release];

/// Runs `body` at `places` threads that share a region of `len` words; drops it when all have ended.
fn with_region(
    places: u32,
    len: usize,
    model: Consistency,
    body: impl Fn(u32, &mut PageRegion<u64>, &Barrier) + Sync,
) {
    let seeds: Vec<_> =
        (0..places).map(|place| PageRegion::<u64>::prepare(len, place == 0).unwrap()).collect();
    let addresses: Vec<PlaceAddress> = seeds.iter().map(crate::RegionSeed::address).collect();
    let barrier = Barrier::new(places as usize);
    std::thread::scope(|scope| {
        for (place, seed) in (0..).zip(seeds) {
            let (addresses, barrier, body) = (&addresses, &barrier, &body);
            scope.spawn(move || {
                let mut region = PageRegion::join(seed, PlaceId(place), addresses, len, model).unwrap();
                barrier.wait();
                body(place, &mut region, barrier);
                barrier.wait();
            });
        }
    });
}

/// A barrier by which all see what all have written.
fn meet(region: &mut PageRegion<u64>, barrier: &Barrier) {
    region.release().unwrap();
    barrier.wait();
    region.acquire().unwrap();
}

#[test]
fn no_addition_of_three_places_is_lost() {
    for model in [Consistency::Exclusive, Consistency::Strong] {
        with_region(3, 4 * PAGE, model, |place, region, barrier| {
            for round in 0..300 {
                let at = (round + place as usize) % 4 * PAGE;
                region.write(at..at + 1).unwrap()[0] += 1;
            }
            barrier.wait();
            let sum: u64 = (0..4).map(|page| region.read(page * PAGE..page * PAGE + 1).unwrap()[0]).sum();
            assert_eq!(sum, 900);
            assert!(region.counts().faults > 0);
        });
    }
}

#[test]
fn every_place_sees_what_others_wrote_before_a_barrier() {
    for (model, places) in MODELS.into_iter().flat_map(|model| [2, 3, 5].map(|places| (model, places))) {
        let len = 3 * PAGE + 7;
        with_region(places, len, model, |place, region, barrier| {
            for round in 1..6_u64 {
                // Words of one page belong to different places.
                for at in (place as usize..len).step_by(places as usize * 3) {
                    region.write(at..at + 1).unwrap()[0] = round * 1_000_000 + at as u64;
                }
                meet(region, barrier);
                let all = region.read(0..len).unwrap();
                for (at, value) in all.iter().enumerate() {
                    let is_written = at % (places as usize * 3) < places as usize;
                    let expected = if is_written { round * 1_000_000 + at as u64 } else { 0 };
                    assert_eq!(*value, expected, "{model:?}, {places} places, place {place}, word {at}");
                }
                drop(all);
                meet(region, barrier);
            }
        });
    }
}

#[test]
fn a_flag_that_is_seen_shows_the_data_before_it() {
    for model in [Consistency::Exclusive, Consistency::Strong] {
        with_region(2, 2 * PAGE, model, |place, region, _| {
            for round in 1..200 {
                if place == 0 {
                    while region.read(PAGE..PAGE + 1).unwrap()[0] != 2 * (round - 1) {
                        std::thread::yield_now();
                    }
                    region.write(0..1).unwrap()[0] = round;
                    region.write(PAGE..PAGE + 1).unwrap()[0] = 2 * round - 1;
                } else {
                    while region.read(PAGE..PAGE + 1).unwrap()[0] != 2 * round - 1 {
                        std::thread::yield_now();
                    }
                    assert_eq!(region.read(0..1).unwrap()[0], round);
                    region.write(PAGE..PAGE + 1).unwrap()[0] = 2 * round;
                }
            }
        });
    }
}

#[test]
fn a_pointer_faults_pages_in_as_guards_do() {
    for model in MODELS {
        with_region(2, 2 * PAGE, model, |place, region, barrier| {
            // NEED: the pointer of a region.
            // SOUND: each place stores into its own words, and reads others after a barrier.
            let base = unsafe { region.as_ptr() };
            for at in (place as usize..2 * PAGE).step_by(2) {
                // NEED: as above.
                // SOUND: as above.
                unsafe { base.add(at).write_volatile(at as u64 + 1) };
            }
            meet(region, barrier);
            // NEED: as above.
            // SOUND: as above.
            let sum: u64 = (0..2 * PAGE).map(|at| unsafe { base.add(at).read_volatile() }).sum();
            assert_eq!(sum, (2 * PAGE * (2 * PAGE + 1) / 2) as u64, "{model:?}");
        });
    }
}

#[test]
fn what_is_no_range_of_a_region_is_refused() {
    let too_large = PageRegion::<u64>::prepare(usize::MAX, false).err().unwrap();
    assert!(too_large.to_string().ends_with("allowed: 1 byte to 2^32 - 1 pages"), "{too_large}");
    assert!(matches!(PageRegion::<u64>::prepare(0, false), Err(RegionError::Size { bytes: 0 })));
    with_region(1, 2 * PAGE, Consistency::Strong, |_, region, _| {
        let outside = region.read(5..2 * PAGE + 1).err().unwrap().to_string();
        assert_eq!(outside, "elements 5..1025 of a region; allowed: ranges of 0..1024");
        let held = region.read(PAGE..PAGE + 1).unwrap();
        let order = region.read(0..1).err().unwrap();
        assert!(matches!(order, RegionError::NotAscending { page: 0, held: 1 }), "{order}");
        // A page that is held with enough permission is no wait.
        assert_eq!(region.read(PAGE..PAGE + 2).unwrap()[..], [0, 0]);
        assert!(matches!(region.write(PAGE + 3..PAGE + 4), Err(RegionError::NotAscending { .. })));
        drop(held);
        assert_eq!(region.read(0..1).unwrap()[0], 0);
    });
}

#[test]
#[should_panic(expected = "elements 3..5 of a region have a guard on 4..9")]
fn two_guards_that_conflict_are_a_panic() {
    let seed = PageRegion::<u64>::prepare(PAGE, true).unwrap();
    let addresses = [seed.address()];
    let region = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, PAGE, Consistency::Strong).unwrap();
    let _held = region.write(4..9).unwrap();
    let _ = region.read(3..5);
}

#[test]
fn a_place_that_leaves_ends_the_waits_of_others() {
    let seeds: Vec<_> = (0..2).map(|place| PageRegion::<u64>::prepare(PAGE, place == 0).unwrap()).collect();
    let addresses: Vec<PlaceAddress> = seeds.iter().map(crate::RegionSeed::address).collect();
    let mut regions = Vec::new();
    for (place, seed) in (0..).zip(seeds) {
        regions.push(
            PageRegion::<u64>::join(seed, PlaceId(place), &addresses, PAGE, Consistency::Strong).unwrap(),
        );
    }
    assert_eq!(regions[1].write(0..1).unwrap()[0], 0);
    drop(regions.remove(0));
    let shared = regions[0].shared.clone();
    while shared.loss().is_none() {
        std::thread::yield_now();
    }
    assert!(matches!(regions[0].read(0..1), Err(RegionError::Left(PlaceId(0)))));
    assert!(matches!(regions[0].release(), Err(RegionError::Left(PlaceId(0)))));
}

/// Names the variable by which the process of a test knows that it is one; its value is the model.
const HOLDER: &str = "ISLES_TEST_SVM_HOLDER";

/// In a process of its own: place 1, which holds a page until it is killed. No test if it is run by itself.
#[test]
fn holder_of_a_page() {
    let Ok(model) = std::env::var(HOLDER) else { return };
    let model = Consistency::NAMES.into_iter().find(|(name, _)| *name == model).unwrap().1;
    let seed = PageRegion::<u64>::prepare(2 * PAGE, false).unwrap();
    println!("\naddress {}", serde_json::to_string(&seed.address()).unwrap());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let addresses: Vec<PlaceAddress> = serde_json::from_str(&line).unwrap();
    let region = PageRegion::<u64>::join(seed, PlaceId(1), &addresses, 2 * PAGE, model).unwrap();
    let mut held = region.write(PAGE..PAGE + 1).unwrap();
    held[0] = 7;
    println!("\nholds");
    // Ends when it is killed.
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_wait_for_a_page_of_a_place_that_is_killed_ends_with_dead_place() {
    for model in MODELS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::holder_of_a_page", "--nocapture"])
            .env(HOLDER, model.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| line.strip_prefix("address ").map(str::to_owned)).unwrap();
        let seed = PageRegion::<u64>::prepare(2 * PAGE, true).unwrap();
        let addresses = [seed.address(), serde_json::from_str(&address).unwrap()];
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", serde_json::to_string(&addresses).unwrap()).unwrap();
        let mut region = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, 2 * PAGE, model).unwrap();
        lines.find(|line| line == "holds").unwrap();
        let shared = region.shared.clone();
        let killer = std::thread::spawn(move || {
            // In the model release nobody is asked; there the wait is that of the difference for the guard of the home.
            let is_waiting = || match model {
                Consistency::Release => shared.counts.faults.load(Ordering::Relaxed) > 0,
                _ => shared.counts.messages.load(Ordering::Relaxed) > 0,
            };
            while !is_waiting() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let end = match model {
            Consistency::Release => {
                region.write(PAGE..PAGE + 1).map(|mut guard| guard[0] = 9).and_then(|()| region.release())
            }
            _ => region.read(PAGE..PAGE + 1).map(drop),
        };
        assert!(matches!(end, Err(RegionError::DeadPlace(PlaceId(1)))), "{model:?}: {end:?}");
        killer.join().unwrap();
        assert!(matches!(region.read(0..1), Err(RegionError::DeadPlace(PlaceId(1)))));
    }
}
