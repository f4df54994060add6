//! Tests of bare cores: reads return written data, deadlocks are named, contention delays, and the SCC's library
//! delivers messages.

use super::broadcast::{Algorithm, Broadcaster};
use super::rcce::{LibraryCosts, Participant};
use super::reduce::Reducer;
use super::relay::{Plan, Relay};
use super::*;
use crate::cost::Mode;
use proptest::prelude::*;
use std::cell::Cell;

fn scc() -> BareChip {
    let chip = Chip::find("scc").unwrap();
    BareChip::new(&chip, chip.default_preset()).unwrap()
}

fn cores(count: u32) -> impl Iterator<Item = CoreId> {
    (0..count).map(CoreId)
}

fn pattern(bytes: usize, salt: u32) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(salt * 97) >> 13) as u8).collect()
}

#[test]
fn a_line_takes_what_the_chip_file_says_at_each_distance() {
    let chip = Chip::find("scc").unwrap();
    let times = chip.default_preset().times();
    for (target, hops) in [(0, 0), (1, 0), (2, 1), (47, 8)] {
        let bare = scc();
        let run = |is_read: bool| {
            bare.run(cores(1), |core| async move {
                match is_read {
                    true => _ = core.read_line(CoreId(target), 9).await,
                    false => core.write_line(CoreId(target), 9, [7; LINE_BYTES]).await,
                }
            })
        };
        assert_eq!(run(false).ok(), times.write(Mode::BufferLine, hops));
        assert_eq!(run(true).ok(), times.read(Mode::BufferLine, hops));
    }
}

#[test]
fn a_core_sees_a_flag_with_its_first_look_after_the_write() {
    let bare = scc();
    let seen = Rc::new(Cell::new(0));
    let seen_there = Rc::clone(&seen);
    bare.run(cores(2), move |core| {
        let seen = Rc::clone(&seen_there);
        async move {
            if core.id().0 == 0 {
                core.compute(1_000).await;
                core.write_line(CoreId(1), 3, [1; LINE_BYTES]).await;
            } else {
                core.wait_line(3, 20, |line| line[0] == 1).await;
                seen.set(core.now().0);
            }
        }
    })
    .unwrap();
    // A look takes 105 ns and 20 cycles; the line is written at 1,875 + 145 ns. The expected time is the end of the
    // first look that begins after the write.
    let (look, written) = (105_000 + 20 * 1_875, 1_000 * 1_875 + 145_000_u64);
    assert_eq!(seen.get(), (written.div_ceil(look) + 1) * look);
}

#[test]
fn who_waits_for_ever_is_named_with_what_for() {
    let stuck = scc().run(cores(3), |core| async move {
        match core.id().0 {
            0 => core.compute(5).await,
            1 => _ = core.wait_line(17, 20, |line| line[0] == 1).await,
            _ => core.wait_any(0..0, 20).await,
        }
    });
    let stuck = stuck.unwrap_err();
    assert_eq!(stuck.waiting, [(CoreId(1), Some(17)), (CoreId(2), None)]);
    assert_eq!(stuck.to_string(), "these cores wait forever: 1 (line 17 of its buffer) 2 (an interrupt)");
}

#[test]
fn an_interrupt_wakes_a_core_that_waits_and_says_who() {
    let bare = scc();
    let took = bare.run(cores(48), |core| async move {
        if core.id().0 == 5 {
            let others: Vec<CoreId> = cores(48).filter(|id| id.0 != 5).collect();
            core.interrupt(&others).await;
        } else {
            core.wait_any(0..0, 20).await;
            let cycles = core.now().0 / 1_875;
            assert!((1_950..2_200).contains(&cycles), "{cycles} cycles until core {} is called", core.id());
            assert_eq!(core.take_interrupt().await, Some(CoreId(5)));
            assert_eq!(core.take_interrupt().await, None);
        }
    });
    let cycles = took.unwrap().0 / 1_875;
    assert!((5_700..6_300).contains(&cycles), "{cycles} cycles to the last of 47 targets");
}

#[test]
fn the_interrupt_of_a_counter_takes_cycles_of_its_core() {
    let end = scc().run(cores(1), |core| async move { core.wait_counter(Picoseconds(1_000_000)).await });
    // A counter of 1 us, and 349 cycles of 1,875 ps.
    assert_eq!(end.unwrap().0.abs_diff(1_000_000 + 349 * 1_875), 0);
}

#[test]
fn a_line_that_comes_before_an_interrupt_wakes_first() {
    scc()
        .run(cores(2), |core| async move {
            if core.id().0 == 0 {
                core.interrupt(&[CoreId(1)]).await;
                core.write_line(CoreId(1), 3, [1; LINE_BYTES]).await;
            } else {
                core.wait_any(3..4, 20).await;
                assert_eq!(core.take_interrupt().await, None, "the interrupt takes 2,000 cycles");
                core.wait_any(3..4, 20).await;
                assert_eq!(core.take_interrupt().await, Some(CoreId(0)));
            }
        })
        .unwrap();
}

#[test]
fn many_readers_of_one_buffer_wait_for_each_other_and_few_do_not() {
    let per_line = |readers: u32| {
        let took = scc().run(cores(readers), |core| async move {
            for line in 0..200 {
                core.read_line(CoreId(20), line).await;
            }
        });
        took.unwrap().0 / 200
    };
    let (alone, few, many) = (per_line(1), per_line(12), per_line(48));
    assert!(few < alone * 11 / 10, "{few} and {alone}");
    assert!(many > alone * 3 / 2, "{many} and {alone}");
}

#[test]
fn shared_memory_holds_what_was_written_and_slows_down_beyond_its_readers() {
    let bare = scc();
    bare.run(cores(48), |core| async move {
        let controller = crate::ControllerId(core.id().0 % 4);
        core.write_shared(controller, 5 + u64::from(core.id().0), [core.id().0 as u8; LINE_BYTES]).await;
    })
    .unwrap();
    bare.run(cores(48), |core| async move {
        let other = (core.id().0 + 17) % 48;
        let line = core.read_shared(crate::ControllerId(other % 4), 5 + u64::from(other)).await;
        assert_eq!(line, [other as u8; LINE_BYTES]);
        assert_eq!(core.read_shared(crate::ControllerId(1), 1 << 40).await, [0; LINE_BYTES]);
    })
    .unwrap();
    let per_line = |readers: u32| {
        let took = scc().run(cores(readers), |core| async move {
            for line in 0..100 {
                core.read_shared(crate::ControllerId(0), line).await;
            }
        });
        took.unwrap().0 / 100
    };
    let (one, two, twelve) = (per_line(1), per_line(2), per_line(12));
    assert_eq!(one, two);
    assert_eq!(twelve, 12 * 83_375, "twelve share the controller");
}

#[test]
fn messages_of_any_length_arrive_whole_with_either_library() {
    for library in [LibraryCosts::RCCE, LibraryCosts::IRCCE] {
        for bytes in [1, 31, 32, 33, 4_096, 8_192, 20_001] {
            let bare = scc();
            let sent = pattern(bytes, 3);
            bare.core(CoreId(7)).set_memory(40, &sent);
            bare.run([CoreId(2), CoreId(7)], |core| async move {
                let participant = Participant { core, participants: 8, library };
                match participant.rank() {
                    7 => participant.send(2, 40, bytes).await,
                    _ => participant.receive(7, 90, bytes).await,
                }
            })
            .unwrap();
            assert_eq!(bare.core(CoreId(2)).memory(90, bytes), sent, "{bytes} bytes");
        }
    }
}

#[test]
fn two_that_send_to_each_other_stand_still() {
    let stuck = scc().run(cores(2), |core| async move {
        let participant = Participant { core, participants: 2, library: LibraryCosts::RCCE };
        let other = 1 - participant.rank();
        participant.send(other, 0, 64).await;
        participant.receive(other, 8, 64).await;
    });
    assert_eq!(stuck.unwrap_err().waiting, [(CoreId(0), Some(3)), (CoreId(1), Some(2))]);
}

#[test]
fn two_runs_take_the_same_time_to_the_picosecond() {
    let run = || {
        let bare = scc();
        let took = bare.run(cores(48), |core| async move {
            for line in 0..50_u64 {
                core.load(line * 3).await;
                core.write_line(CoreId((core.id().0 * 7 + 1) % 48), line as u32, [1; LINE_BYTES]).await;
                core.store(line * 5, [2; LINE_BYTES]).await;
            }
        });
        took.unwrap()
    };
    assert_eq!(run(), run());
}

fn algorithms() -> Vec<Algorithm> {
    use Algorithm::{Binomial, NaivePut, ParallelGet, ScatterAllGather, SerialSend, Tree};
    let trees = [1, 2, 7, 47].map(|fanout| Tree { fanout });
    let plain = [SerialSend, NaivePut, ParallelGet, Binomial, ScatterAllGather];
    plain.into_iter().chain(trees).collect()
}

/// Runs two broadcasts, one after the other, and checks that every participant has both messages.
fn assert_broadcasts(algorithm: Algorithm, count: u32, root: u32, bytes: [usize; 2]) {
    let bare = scc();
    let places = [0, 5_000_u64];
    let messages = [0, 1].map(|at| pattern(bytes[at], at as u32 + 1));
    for at in 0..2 {
        bare.core(CoreId(root)).set_memory(places[at], &messages[at]);
    }
    bare.run(cores(count), |core| async move {
        let here = Participant { core, participants: count, library: LibraryCosts::IRCCE };
        let broadcaster = Broadcaster::new(here, algorithm, root);
        for at in 0..2 {
            broadcaster.broadcast(places[at], bytes[at]).await;
        }
    })
    .unwrap_or_else(|deadlock| panic!("{algorithm:?} of {bytes:?} among {count}: {deadlock}"));
    for core in cores(count) {
        for at in 0..2 {
            let had = bare.core(core).memory(places[at], bytes[at]);
            assert!(had == messages[at], "{algorithm:?}: core {core} has another message {at} of {bytes:?}");
        }
    }
}

#[test]
fn every_broadcast_brings_every_byte_to_all_cores_of_the_chip() {
    for algorithm in algorithms() {
        assert_broadcasts(algorithm, 48, 17, [10_000, 33]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn broadcasts_of_any_length_from_any_root_among_any_number_arrive(
        which in 0..9_usize, count in 1..49_u32, root in 0..48_u32, bytes in [1..9_000_usize, 1..200]
    ) {
        assert_broadcasts(algorithms()[which], count, root % count, bytes);
    }

    #[test]
    fn any_number_of_relayed_broadcasts_at_once_arrives(
        count in 1..49_u32, sources in 1..9_u32, lines in 1..250_u32, times in 1..4_u32, fanout in 1..48_u32,
        signal in prop_oneof![Just(0), 1..20_000_u64]
    ) {
        assert_relays(count, Plan { sources: sources.min(count), lines, times, fanout, signal });
    }
}

fn assert_relays(count: u32, plan: Plan) -> Picoseconds {
    let bare = scc();
    let message = |source| pattern(plan.lines as usize * LINE_BYTES, source);
    let place = |source: u32| u64::from(source * plan.lines);
    for source in 0..plan.sources {
        bare.core(CoreId(source)).set_memory(place(source), &message(source));
    }
    let took = bare.run(cores(count), |core| async move {
        let here = Participant { core, participants: count, library: LibraryCosts::IRCCE };
        Relay::new(here, plan).run().await;
    });
    let took = took.unwrap_or_else(|deadlock| panic!("{plan:?} among {count}: {deadlock}"));
    for core in cores(count) {
        for source in 0..plan.sources {
            let had = bare.core(core).memory(place(source), plan.lines as usize * LINE_BYTES);
            assert!(had == message(source), "{plan:?}: core {core} has another message of {source}");
        }
    }
    took
}

#[test]
fn all_cores_of_the_chip_can_broadcast_at_once_through_any_tree() {
    for fanout in [2, 47] {
        assert_relays(48, Plan { sources: 48, lines: 30, times: 2, fanout, signal: 6_400 });
    }
}

#[test]
fn both_reductions_give_the_sum_word_by_word() {
    for is_serial in [true, false] {
        for (count, root, words) in [(48, 5, 2_000_usize), (7, 0, 1), (1, 0, 8), (33, 32, 9)] {
            let bare = scc();
            let word = |core: u32, at: usize| core.wrapping_mul(0x9e37_79b9).wrapping_add(at as u32 * 31);
            for core in cores(count) {
                let list: Vec<u8> = (0..words).flat_map(|at| word(core.0, at).to_le_bytes()).collect();
                bare.core(core).set_memory(0, &list);
            }
            bare.run(cores(count), |core| async move {
                let here = Participant { core, participants: count, library: LibraryCosts::IRCCE };
                let reducer = Reducer::new(here);
                match is_serial {
                    true => reducer.serial(root, 0, 4_096, words * 4).await,
                    false => reducer.logarithmic(root, 0, 4_096, words * 4).await,
                }
            })
            .unwrap();
            let sums: Vec<u8> = (0..words)
                .flat_map(|at| (0..count).map(|core| word(core, at)).fold(0, u32::wrapping_add).to_le_bytes())
                .collect();
            assert!(
                bare.core(CoreId(root)).memory(0, words * 4) == sums,
                "{count} cores, serial {is_serial}"
            );
        }
    }
}
