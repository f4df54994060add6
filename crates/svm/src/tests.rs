//! Regions of several threads, and of two processes one of which is killed.

use crate::{PAGE_BYTES, PageRegion, PlaceAddress, RegionError, RegionSeed};
use isles_protocol::PlaceId;
use isles_protocol::svm::Consistency;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Elements of a page.
const PAGE: usize = PAGE_BYTES / 8;

const MODELS: [Consistency; 3] = [Consistency::Exclusive, Consistency::Strong, Consistency::Release];

/// The seed of a place of a region of `len` words, which listens if pages are to travel over sockets.
fn seed_of(len: usize, place: u32, by_sockets: bool) -> RegionSeed {
    let mut seed = PageRegion::<u64>::prepare(len, place == 0).unwrap();
    if by_sockets {
        seed.listen().unwrap();
    }
    seed
}

/// Wakes a thread that waits for a future.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs `body` at `places` threads that share a region of `len` words, first by shared memory and then over sockets;
/// drops it when all have ended.
fn with_region(
    places: u32,
    len: usize,
    model: Consistency,
    body: impl Fn(u32, &mut PageRegion<u64>, &Barrier) + Sync,
) {
    for by_sockets in [false, true] {
        with_region_of(by_sockets, places, len, model, &body);
    }
}

fn with_region_of(
    by_sockets: bool,
    places: u32,
    len: usize,
    model: Consistency,
    body: &(impl Fn(u32, &mut PageRegion<u64>, &Barrier) + Sync),
) {
    let seeds: Vec<_> = (0..places).map(|place| seed_of(len, place, by_sockets)).collect();
    let addresses: Vec<PlaceAddress> = seeds.iter().map(RegionSeed::address).collect();
    let barrier = Barrier::new(places as usize);
    std::thread::scope(|scope| {
        for (place, seed) in (0..).zip(seeds) {
            let (addresses, barrier) = (&addresses, &barrier);
            scope.spawn(move || {
                let mut region = PageRegion::join(seed, PlaceId(place), addresses, len, model).unwrap();
                barrier.wait();
                body(place, &mut region, barrier);
                barrier.wait();
            });
        }
    });
}

/// A barrier after which all writes are visible to all.
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

/// Threads count errors and continue: the others would wait at a barrier for one that panics.
#[test]
fn a_guard_to_read_does_not_keep_other_readers_waiting() {
    let (is_read, wrong) = (AtomicBool::new(false), AtomicU64::new(0));
    with_region(2, PAGE, Consistency::Strong, |place, region, barrier| {
        if place == 0 {
            is_read.store(false, Ordering::SeqCst);
            region.write(0..1).unwrap()[0] = 7;
            let _own = region.read(0..1).unwrap();
            barrier.wait();
            let limit = Instant::now() + Duration::from_secs(60);
            while !is_read.load(Ordering::SeqCst) && Instant::now() < limit {
                std::thread::yield_now();
            }
            wrong.fetch_add(u64::from(!is_read.load(Ordering::SeqCst)), Ordering::SeqCst);
        } else {
            barrier.wait();
            wrong.fetch_add(u64::from(region.read(0..1).unwrap()[0] != 7), Ordering::SeqCst);
            is_read.store(true, Ordering::SeqCst);
        }
    });
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn no_place_sees_half_of_what_a_guard_writes() {
    let wrong = AtomicU64::new(0);
    for model in [Consistency::Exclusive, Consistency::Strong] {
        with_region(3, PAGE, model, |place, region, barrier| {
            let mut written = 0;
            for round in 0..2000 {
                if round % 3 != place as usize {
                    let pair = region.read(5..7).unwrap();
                    let first = std::hint::black_box(&*pair)[0];
                    std::thread::yield_now();
                    wrong.fetch_add(u64::from(first != std::hint::black_box(&*pair)[1]), Ordering::SeqCst);
                    continue;
                }
                // While a guard reads the page, another writes it if its permission is still there.
                let read = (round % 2 == 0).then(|| region.read(0..1).unwrap());
                match region.write(5..7) {
                    Ok(mut pair) => {
                        pair[0] += 1;
                        std::hint::black_box(&mut *pair);
                        std::thread::yield_now();
                        pair[1] += 1;
                        written += 1;
                    }
                    Err(RegionError::NotAscending { .. }) if read.is_some() => {}
                    // Others would wait at the barrier for a place that panics.
                    Err(_) => _ = wrong.fetch_add(1, Ordering::SeqCst),
                }
            }
            let own = 10 + place as usize;
            region.write(own..own + 1).unwrap()[0] = written;
            barrier.wait();
            let sum: u64 = region.read(10..13).unwrap().iter().sum();
            let is_whole = sum > 0 && *region.read(5..7).unwrap() == [sum, sum];
            wrong.fetch_add(u64::from(!is_whole), Ordering::SeqCst);
        });
    }
    assert_eq!(wrong.into_inner(), 0);
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
fn the_next_holder_of_a_lock_sees_what_was_stored_under_it() {
    for (model, places) in MODELS.into_iter().flat_map(|model| [2, 4].map(|places| (model, places))) {
        with_region(places, 3 * PAGE, model, |place, region, barrier| {
            for round in 0..60 {
                // Two locks, whose data share pages of other homes: words 0 and 1 of pages 0 and 2.
                let number = (round + place) % 2;
                let at = number as usize;
                let held = block_on(region.lock(number)).unwrap();
                let first = held.read(at..at + 1).unwrap()[0];
                let mut second = held.write(2 * PAGE + at..2 * PAGE + at + 1).unwrap();
                assert_eq!(second[0], first, "{model:?}, place {place}, round {round}");
                second[0] += 1;
                drop(second);
                held.write(at..at + 1).unwrap()[0] += 1;
                held.unlock().unwrap();
            }
            assert_eq!(region.counts().locks, 60);
            meet(region, barrier);
            let sum: u64 = region.read(0..2).unwrap().iter().sum();
            assert_eq!(sum, 60 * u64::from(places), "{model:?}");
        });
    }
}

#[test]
fn a_wait_for_a_lock_that_is_given_up_takes_it_from_nobody() {
    with_region(2, PAGE, Consistency::Strong, |place, region, barrier| {
        for _ in 0..50 {
            if place == 0 {
                let held = block_on(region.lock(7)).unwrap();
                barrier.wait();
                barrier.wait();
                drop(held);
            } else {
                barrier.wait();
                // The home has the request when it is cancelled, or gets both at once.
                let mut waiting = Box::pin(region.lock(7));
                assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                drop(waiting);
                barrier.wait();
            }
            block_on(region.lock(7)).unwrap().write(0..1).unwrap()[0] += 1;
            barrier.wait();
        }
        assert_eq!(region.read(0..1).unwrap()[0], 100);
    });
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
        // A page held with enough permission causes no wait.
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

/// A lock whose home is place 0.
const LOCK: u32 = 4;

/// Names the variable that marks a process as one of a test; its value is the model, whether pages travel over sockets,
/// and what the process holds: a page or a lock.
const HOLDER: &str = "ISLES_TEST_SVM_HOLDER";

/// In a process of its own: place 1, which holds a page until it is killed. No test if it is run by itself.
#[test]
fn holder_of_a_page() {
    let Ok(words) = std::env::var(HOLDER) else { return };
    let words: Vec<&str> = words.split(' ').collect();
    let [model, by_sockets, holds] = words[..] else { panic!("{words:?}") };
    let model = Consistency::NAMES.into_iter().find(|(name, _)| *name == model).unwrap().1;
    let seed = seed_of(2 * PAGE, 1, by_sockets == "true");
    println!("\naddress {}", serde_json::to_string(&seed.address()).unwrap());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let addresses: Vec<PlaceAddress> = serde_json::from_str(&line).unwrap();
    let mut region = PageRegion::<u64>::join(seed, PlaceId(1), &addresses, 2 * PAGE, model).unwrap();
    if holds == "lock" {
        let held = block_on(region.lock(LOCK)).unwrap();
        held.write(PAGE..PAGE + 1).unwrap()[0] = 7;
        println!("\nholds");
        std::io::stdin().read_line(&mut line).unwrap();
        held.unlock().unwrap();
    } else {
        region.write(PAGE..PAGE + 1).unwrap()[0] = 6;
        let mut held = region.write(PAGE..PAGE + 1).unwrap();
        held[0] = 7;
        println!("\nholds");
        // Runs until it is killed.
        std::io::stdin().read_line(&mut line).unwrap();
    }
    // Until the other place has seen it.
    std::io::stdin().read_line(&mut line).unwrap();
}

/// Starts a process that holds a page or a lock, and joins a region with it as place 0.
fn region_with_holder(
    model: Consistency,
    by_sockets: bool,
    holds: &str,
) -> (PageRegion<u64>, Child, ChildStdin) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::holder_of_a_page", "--nocapture"])
        .env(HOLDER, format!("{} {by_sockets} {holds}", model.name()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| line.strip_prefix("address ").map(str::to_owned)).unwrap();
    let seed = seed_of(2 * PAGE, 0, by_sockets);
    let addresses = [seed.address(), serde_json::from_str(&address).unwrap()];
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", serde_json::to_string(&addresses).unwrap()).unwrap();
    let region = PageRegion::<u64>::join(seed, PlaceId(0), &addresses, 2 * PAGE, model).unwrap();
    lines.find(|line| line == "holds").unwrap();
    // Its final output is read by no other code.
    std::thread::spawn(move || lines.for_each(drop));
    (region, child, input)
}

/// The three models, each by shared memory and over sockets.
fn kinds() -> impl Iterator<Item = (Consistency, bool)> {
    MODELS.into_iter().flat_map(|model| [(model, false), (model, true)])
}

/// Kills a process when `is_waiting`.
fn kill_when(
    mut child: Child,
    is_waiting: impl Fn() -> bool + Send + 'static,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !is_waiting() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    })
}

#[test]
fn a_wait_for_a_page_of_a_place_that_is_killed_ends_with_dead_place() {
    for (model, by_sockets) in kinds() {
        let (mut region, child, _input) = region_with_holder(model, by_sockets, "page");
        let shared = region.shared.clone();
        // In the model release on one host nobody is asked; there the wait is that of the difference for the guard of
        // the home. Over sockets it is that for the home's answer to the difference, the second message.
        let killer = kill_when(child, move || match (model, by_sockets) {
            (Consistency::Release, false) => shared.counts.faults.load(Ordering::Relaxed) > 0,
            (Consistency::Release, true) => shared.counts.messages.load(Ordering::Relaxed) > 1,
            _ => shared.counts.messages.load(Ordering::Relaxed) > 0,
        });
        let end = match model {
            Consistency::Release => {
                region.write(PAGE..PAGE + 1).map(|mut guard| guard[0] = 9).and_then(|()| region.release())
            }
            _ => region.read(PAGE..PAGE + 1).map(drop),
        };
        assert!(matches!(end, Err(RegionError::DeadPlace(PlaceId(1)))), "{model:?}, {by_sockets}: {end:?}");
        killer.join().unwrap();
        assert!(matches!(region.read(0..1), Err(RegionError::DeadPlace(PlaceId(1)))));
    }
}

#[test]
fn a_wait_for_a_lock_of_a_place_that_is_killed_ends_with_dead_place() {
    for (model, by_sockets) in kinds() {
        let (mut region, child, _input) = region_with_holder(model, by_sockets, "lock");
        let mut waiting = Box::pin(region.lock(LOCK));
        // The request is made before the process is killed.
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let killer = kill_when(child, || true);
        let end = block_on(waiting).map(drop);
        assert!(matches!(end, Err(RegionError::DeadPlace(PlaceId(1)))), "{model:?}, {by_sockets}: {end:?}");
        killer.join().unwrap();
        assert!(matches!(block_on(region.lock(3)).map(drop), Err(RegionError::DeadPlace(PlaceId(1)))));
    }
}

#[test]
fn a_lock_of_another_process_shows_what_that_has_stored() {
    for (model, by_sockets) in kinds() {
        let (mut region, mut child, mut input) = region_with_holder(model, by_sockets, "lock");
        let mut waiting = Box::pin(region.lock(LOCK));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        writeln!(input).unwrap();
        let held = block_on(waiting).unwrap();
        assert_eq!(held.read(PAGE..PAGE + 1).unwrap()[0], 7, "{model:?}, {by_sockets}");
        drop(held);
        writeln!(input).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_stranger_that_does_not_know_the_token_is_turned_away() {
    let seeds = [0, 1].map(|place| seed_of(PAGE, place, true));
    let addresses = seeds.each_ref().map(RegionSeed::address);
    let text = serde_json::to_value(&addresses[0]).unwrap();
    let address = text["socket"]["address"].as_str().unwrap().to_owned();
    // It calls first, and so is accepted first.
    let mut stranger = std::net::TcpStream::connect(address).unwrap();
    stranger.write_all(&[0; 20]).unwrap();
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for (place, seed) in (0..).zip(seeds) {
            let (addresses, barrier) = (&addresses, &barrier);
            scope.spawn(move || {
                let region =
                    PageRegion::<u64>::join(seed, PlaceId(place), addresses, PAGE, Consistency::Strong)
                        .unwrap();
                barrier.wait();
                region.write(0..1).unwrap()[0] += 1;
                barrier.wait();
                assert_eq!(region.read(0..1).unwrap()[0], 2);
                barrier.wait();
            });
        }
    });
}
