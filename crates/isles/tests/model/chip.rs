//! Programs on the cores of a modelled chip: the same results as on any machine, and reproducible times.

use isles::clocks;
use isles::prelude::*;
use isles::{
    Broadcast, ChipReport, ErrorKind, Flag, Launch, LaunchError, Machine, ModelledChip, Protocol, Reduce,
    Result, Shape,
};
use std::cell::RefCell;
use std::future::pending;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

fn scc() -> ModelledChip {
    ModelledChip::new("scc").unwrap()
}

fn launch(places: u32) -> Launch {
    Launch::from_environment().unwrap().places(places)
}

/// Runs `program` on a chip; returns its result and the report.
fn on_chip<F, T>(launch: &Launch, program: impl FnOnce() -> F) -> (Result<T>, ChipReport)
where
    F: Future<Output = Result<T>> + 'static,
    T: 'static,
{
    let (found, program) = (Rc::new(RefCell::new(None)), program());
    let place = Rc::clone(&found);
    let main = move || async move {
        *place.borrow_mut() = Some(program.await?);
        Ok::<_, isles::Error>(())
    };
    let (result, _, report) = launch.run_on_chip(scc(), main).unwrap();
    (result.map(|()| found.take().unwrap()), report)
}

/// Uses tasks, calls, long captures and results, handles and collectives. Returns one number.
async fn medley() -> Result<u64> {
    let table: Vec<u64> = (0..40_000).map(|number| number * number).collect();
    let table = Replicated::new(table).await?;
    let sums = PlaceLocal::new(|| 0_u64).await?;
    let next = Counter::new();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                while let Some(row) = next.take_below(200_u64).await? {
                    *sums.lock() += table[200 * row as usize..][..200].iter().sum::<u64>();
                    work(Cycles(1_000));
                }
            });
        }
    })
    .await?;
    let mut total = sums.reduce(|a, b| a + b).await?;
    for place in places() {
        let long: Vec<u8> = vec![place.index() as u8; 5_000];
        let doubled = at!(place, long.iter().map(|byte| byte.wrapping_mul(2)).collect::<Vec<u8>>()).await?;
        total = total.wrapping_mul(31)
            + doubled.iter().map(|byte| u64::from(*byte)).sum::<u64>() / doubled.len() as u64;
    }
    Ok(total)
}

/// Returns the expected result of `medley`: the sum of the squares below 40,000, then the places.
fn expected(places: u64) -> u64 {
    let squares: u64 = (0..40_000_u64).map(|number| number * number).sum();
    (0..places).fold(squares, |total, place| total.wrapping_mul(31) + 2 * place)
}

#[test]
fn a_program_gives_its_answer_on_any_number_of_cores() {
    for places in [1, 2, 8, 48] {
        let (answer, report) = on_chip(&launch(places), medley);
        assert_eq!(answer.unwrap(), expected(u64::from(places)), "{places} places");
        assert_eq!(report.ledgers.len(), places as usize);
        assert!(places == 1 || report.lines.written > 0, "{report}");
    }
}

#[test]
fn a_program_gives_its_answer_on_any_cores_and_a_list_of_the_first_is_the_run_of_linear() {
    let run = |placement: &str| {
        let launch = launch(8).placement(placement.parse().unwrap());
        assert_eq!(launch.chosen_placement().to_string(), placement);
        let (answer, report) = on_chip(&launch, medley);
        assert_eq!(answer.unwrap(), expected(8), "{placement}");
        report
    };
    let [linear, listed, spread] = ["linear", "0-7", "spread"].map(run);
    assert_eq!(listed, linear);
    assert_eq!(spread.cores.iter().map(|core| core.0).collect::<Vec<_>>(), [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_ne!(spread.digest, linear.digest);
    let refused =
        launch(8).placement("0-6".parse().unwrap()).run_on_chip(scc(), || async { panic!("it started") });
    let Err(LaunchError::Config(error)) = refused else { panic!("it ran") };
    assert_eq!(
        error.to_string(),
        r#"the placement is "0-6"; allowed: at least 8 cores, one for each place (this list has 7)"#
    );
}

#[test]
fn threads_give_the_same_answer() {
    let main = || async {
        assert_eq!(medley().await?, expected(3));
        Ok::<_, isles::Error>(())
    };
    launch(3).machine(Machine::Threads).run(main).unwrap().0.unwrap();
}

#[test]
fn the_same_seed_is_the_same_run_to_the_last_event() {
    let run = || on_chip(&launch(24), medley).1;
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    assert!(first.digest.events() > 1_000, "{first}");
}

#[test]
fn work_takes_the_time_of_its_cycles_at_its_own_core() {
    let program = || async {
        let before = now();
        work(Cycles(533_333_333));
        let seconds = now() - before;
        assert!(seconds.abs_diff(Duration::from_secs(1)) < Duration::from_micros(1), "{seconds:?}");
        finish(async {
            for place in places() {
                spawn_at!(place, work(Cycles(533_333_333)));
            }
        })
        .await
    };
    let (result, report) = on_chip(&launch(8), program);
    result.unwrap();
    let milliseconds = report.time.0 / 1_000_000_000;
    assert!((2_000..2_005).contains(&milliseconds), "eight cores work at once: {report}");
    let worked: Vec<u64> = report
        .ledgers
        .iter()
        .map(|ledger| ledger.time(isles::TimeCategory::Working).0 / 1_000_000_000)
        .collect();
    assert_eq!(worked, [1_999, 999, 999, 999, 999, 999, 999, 999]);
}

#[test]
fn a_sleep_takes_the_time_of_the_chip_and_a_deadline_passes_there_on_a_busy_core() {
    let program = || async {
        let before = now();
        isles::sleep(Duration::from_secs(1)).await;
        let slept = now() - before;
        assert!(slept >= Duration::from_secs(1) && slept < Duration::from_millis(1_001), "{slept:?}");
        spawn_detached(async {
            loop {
                work(Cycles(1_000));
                isles::yield_now().await;
            }
        });
        let waits = finish(async { spawn_at!(here().next(), std::future::pending::<()>().await) });
        let error = waits.deadline(Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(*error.kind(), isles::ErrorKind::DeadlinePassed);
        Ok(())
    };
    on_chip(&launch(2), program).0.unwrap();
}

#[test]
fn operations_by_class_are_said_with_what_the_prelude_has() {
    let program = || async {
        let before = now();
        work(Work::new().integers(100).branches(50)); // a cycle each, and two: 200 of 1.875 ns
        Ok(now() - before)
    };
    let (taken, _) = on_chip(&launch(1), program);
    assert_eq!(taken.unwrap(), Duration::from_nanos(375));
}

#[test]
fn a_place_that_gives_way_answers_others_between_its_steps() {
    let program = || async {
        let next = Counter::new();
        let other = here().next();
        finish(async {
            spawn_at!(other, {
                for _ in 0..10 {
                    next.add(1).await?;
                }
            });
            for _ in 0..100 {
                work(Cycles(1_000_000));
                isles::yield_now().await;
            }
            Ok::<_, isles::Error>(())
        })
        .await?;
        Ok(now())
    };
    let (time, _) = on_chip(&launch(2), program);
    // 100 steps of 1.875 ms, and ten answers, each after at most one step.
    assert!(time.unwrap() < Duration::from_millis(190), "each answer waited for a batch of steps");
}

#[test]
fn a_deadline_passes_in_the_time_of_the_chip() {
    let program = || async {
        let other = here().next();
        let search = finish(async { spawn_at!(other, std::future::pending::<()>().await) });
        let ended = search.deadline(Duration::from_secs(3_600)).await;
        Ok((ended.is_err(), now()))
    };
    let (outcome, _) = on_chip(&launch(2), program);
    let (failed, time) = outcome.unwrap();
    assert!(failed && time >= Duration::from_secs(3_600) && time < Duration::from_secs(3_601), "{time:?}");
}

#[test]
fn a_run_that_stands_still_says_for_what_it_waits() {
    let program = || async {
        let other = here().next();
        at!(other, std::future::pending::<()>().await).await
    };
    let (result, _) = on_chip(&launch(2), program);
    let error = result.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misused), "{error}");
    assert!(error.to_string().contains("the run is stalled"), "{error}");
}

#[test]
fn a_chip_without_so_many_cores_is_refused_before_anything_starts() {
    let refused = launch(49).run_on_chip(scc(), || async { panic!("it started") });
    let Err(LaunchError::Machine(text)) = refused.map(|_| ()) else { panic!("it was accepted") };
    assert_eq!(text, "machine chip:scc with 49 places and protocol doorbell: the chip has 48 cores");
    let error = ModelledChip::new("scd").unwrap_err().to_string();
    assert!(error.contains("scd") && error.contains("chip:scc"), "{error}");
}

#[test]
fn a_program_runs_on_a_torus_that_carries_packets_and_not_with_a_protocol_of_buffers() {
    let chip = ModelledChip::new("bluegene-p").unwrap();
    let run = |launch: &Launch| {
        let main = || async {
            assert_eq!(medley().await?, expected(40));
            Ok::<_, isles::Error>(())
        };
        launch.run_on_chip(chip, main)
    };
    let (result, _, report) = run(&launch(40)).unwrap();
    result.unwrap();
    assert!(report.flit_hops > 0 && report.lines.written == 0, "{report}");
    assert_eq!(run(&launch(40)).unwrap().2.digest, report.digest);
    let refused = run(&launch(40).protocol(isles::Protocol::RcceX10));
    let Err(LaunchError::Machine(text)) = refused.map(|_| ()) else { panic!("it was accepted") };
    let expected = "with 40 places and protocol rcce-x10: the cores have no message buffers";
    assert_eq!(text, format!("machine chip:bluegene-p {expected}"));
}

/// Sends messages of many lengths to all places and back, and tasks.
async fn letters() -> Result<()> {
    for place in places() {
        for length in [0, 30, 100, 200, 300, 2_000] {
            let sent = vec![7_u8; length];
            assert_eq!(at!(place, sent.len()).await?, length);
            assert_eq!(at!(place, vec![8_u8; length]).await?.len(), length);
        }
    }
    finish(async {
        for place in places() {
            spawn_at!(place, work(Cycles(100)));
        }
    })
    .await
}

#[test]
fn a_program_runs_with_every_size_of_line_and_buffer_that_a_protocol_takes() {
    let folder = std::env::temp_dir().join(format!("isles-chips-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut runs = 0;
    for (line, buffer) in [8, 12, 32, 48].into_iter().flat_map(|line| [1, 2, 3, 64].map(|kib| (line, kib))) {
        let text = include_str!("../../../../chips/scc.toml");
        let text = text.replace("line = \"32 B\"", &format!("line = \"{line} B\""));
        let text = text.replace("per_core = \"8 KiB\"", &format!("per_core = \"{buffer} KiB\""));
        let path = folder.join(format!("{line}-{buffer}.toml"));
        std::fs::write(&path, text).unwrap();
        let Ok(chip) = ModelledChip::new(path.to_str().unwrap()) else { continue };
        for (places, protocol) in
            [2, 5].into_iter().flat_map(|places| Protocol::ALL.map(|protocol| (places, protocol)))
        {
            let Ok((result, ..)) = launch(places).protocol(protocol).run_on_chip(chip, letters) else {
                continue;
            };
            let setting = format!("{line} B a line, {buffer} KiB, {places} places, {protocol}");
            result.unwrap_or_else(|error| panic!("{setting}: {error}"));
            runs += 1;
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(runs > 100, "only {runs} settings fit");
}

#[test]
fn a_program_changes_the_rate_of_its_cores_and_not_its_answer() {
    let program = |slow: bool| {
        move || async move {
            finish(async {
                for place in places().filter(|_| slow) {
                    spawn_at!(place, _ = clocks::set_supply_divider(8)?);
                }
            })
            .await?;
            let mut dividers = Vec::new();
            for place in places() {
                dividers.push(at!(place, clocks::divider().map_or(0, u64::from)).await?);
            }
            Ok((dividers, medley().await?))
        }
    };
    let (fast, slow) = (on_chip(&launch(6), program(false)), on_chip(&launch(6), program(true)));
    let ((before, answer), (after, same)) = (fast.0.unwrap(), slow.0.unwrap());
    assert_eq!((answer, same), (expected(6), expected(6)));
    assert_eq!((before, after), (vec![3; 6], vec![8; 6]));
    assert!(slow.1.time.0 > 2 * fast.1.time.0, "{} {}", slow.1, fast.1);
    let watts = |report: &ChipReport| {
        let energy = report.energy.as_ref().unwrap();
        energy.mean(&energy.models[0]).watts()
    };
    assert!(watts(&slow.1) < watts(&fast.1), "{} {}", slow.1, fast.1);
}

#[test]
fn a_refused_change_is_an_error_of_the_program() {
    let program = || async {
        let refused = at!(here(), clocks::set_tile_divider(2).is_err()).await?;
        let known = clocks::set_supply_divider(17).unwrap_err().to_string();
        clocks::wait_for_supply();
        Ok((refused, known))
    };
    let (answer, _) = on_chip(&launch(1), program);
    assert_eq!(answer.unwrap(), (true, "the divider is 17; allowed: a whole number from 2 to 16".to_owned()));
}

#[test]
fn collectives_of_teams_have_the_same_results_however_they_go_and_other_times() {
    async fn member() -> Result<Vec<u64>> {
        let (team, mut bits) = (Team::world(), Vec::new());
        let own = 1.0 / (1 + team.rank()) as f64;
        for root in [0, team.size() - 1] {
            let total = team.reduce(root, own, |one, other| one + other).await?;
            bits.push(team.broadcast(root, total).await?.to_bits());
            let mut slice: Vec<f64> = (0..700).map(|number| own * f64::from(number)).collect();
            team.reduce_slice(root, &mut slice, |one, other| one + other).await?;
            team.broadcast_slice(root, &mut slice).await?;
            bits.extend(slice.iter().map(|number| number.to_bits()));
        }
        Ok(bits)
    }
    let program = || async {
        let all = PlaceLocal::new(Vec::new).await?;
        finish(async {
            for place in places() {
                spawn_at!(place, *all.lock() = vec![member().await?]);
            }
        })
        .await?;
        all.reduce(|one: Vec<Vec<u64>>, other| [one, other].concat()).await
    };
    let run = |broadcast, reduce| {
        let (bits, report) = on_chip(&launch(11).broadcast(broadcast).reduce(reduce), program);
        let bits = bits.unwrap();
        assert!(bits.len() == 11 && bits.iter().all(|other| *other == bits[0]), "{broadcast} {reduce}");
        (bits, report.time)
    };
    let (expected, best) = run(Broadcast::Auto, Reduce::Auto);
    let mut times = Vec::new();
    let trees = [Shape::Flat, Shape::Binomial, Shape::Chain, Shape::Fan(2), Shape::Fan(7)].map(Broadcast::By);
    for broadcast in trees.into_iter().chain([Broadcast::ScatterAllGather, Broadcast::Asynchronous(3)]) {
        for reduce in [Reduce::Serial, Reduce::Logarithmic] {
            let (bits, time) = run(broadcast, reduce);
            assert_eq!(bits, expected, "{broadcast} {reduce}");
            times.push(time);
        }
    }
    // Each collective was chosen in isolation; in the program they overlap, and another choice may be slightly faster.
    assert!(times.iter().all(|time| best.0 <= time.0 + time.0 / 100), "chosen {best}: {times:?}");
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), 14, "each way takes its own time, or is not used: {times:?}");
    assert_eq!(run(Broadcast::Auto, Reduce::Auto), (expected, best));
}

#[test]
fn an_asynchronous_broadcast_passes_a_member_that_computes_and_a_chain_waits_for_it() {
    const BUSY: u64 = 3_000_000; // cycles: 5.6 ms
    let program = || async {
        let took = PlaceLocal::new(|| 0).await?;
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let (team, mut slice) = (Team::world(), [here().index() as u64; 200]);
                    team.barrier().await?;
                    let began = now();
                    work(Cycles(if team.rank() == 1 { BUSY } else { 0 }));
                    team.broadcast_slice(0, &mut slice).await?;
                    *took.lock() = (now() - began).as_micros();
                    assert_eq!(slice, [0; 200]);
                });
            }
        })
        .await?;
        at!(Place::new(5).unwrap(), *took.lock()).await
    };
    let last = |broadcast| on_chip(&launch(6).broadcast(broadcast), program).0.unwrap();
    let [asynchronous, chain] = [Broadcast::Asynchronous(1), Broadcast::By(Shape::Chain)].map(last);
    assert!(asynchronous < 200 && chain > 5_000, "{asynchronous} us, {chain} us");
}

#[test]
fn a_halted_core_sleeps_and_finds_a_message_afterwards() {
    let halted = |limit: u64| {
        let program = move || async move {
            let other = Place::new(1).unwrap();
            at!(other, clocks::halt(Duration::from_micros(limit))).await
        };
        on_chip(&launch(2), program)
    };
    let [(short, at_once), (long, late)] = [0, 3_000].map(halted);
    assert!(short.unwrap() && long.unwrap());
    let sleeping = |report: &ChipReport| report.ledgers[1].time(isles::TimeCategory::Sleeping).0;
    assert_eq!((sleeping(&at_once), sleeping(&late)), (0, 3_000_000_000));
    // Except for the other work that the place would have done meanwhile.
    let later = late.time.0 - at_once.time.0;
    assert!(later.abs_diff(3_000_000_000) < 30_000_000, "the answer comes after the halt: {later} ps");
}

#[test]
fn on_a_real_machine_clocks_stay_as_they_are() {
    let main = || async {
        assert_eq!(clocks::set_supply_divider(1_000), Ok(None));
        assert_eq!((clocks::set_tile_divider(0), clocks::divider()), (Ok(None), None));
        clocks::wait_for_supply();
        assert!(!clocks::halt(Duration::from_secs(3_600)));
        Ok::<_, isles::Error>(())
    };
    launch(2).machine(Machine::Threads).run(main).unwrap().0.unwrap();
}

#[test]
fn a_program_that_does_not_do_the_same_twice_leaves_its_tape_and_is_told_so() {
    let tape = std::env::temp_dir().join(format!("isles-tape-{}", std::process::id()));
    let path = tape.to_str().unwrap().to_owned();
    let flags = |work: &'static str, tape: &str| [("ISLES_CHIP_WORK", work.replace('@', tape))];
    let launch = |work: &'static str, writes: bool| {
        let said = flags(work, &path);
        let mut flags: Vec<Flag> =
            said.iter().map(|(variable, value)| Flag { variable, name: "--work", value }).collect();
        flags.extend(writes.then_some(Flag { variable: "ISLES_CHIP_TAPE", name: "--tape", value: &path }));
        flags.push(Flag { variable: "ISLES_MACHINE", name: "--machine", value: "chip:scc" });
        flags.push(Flag { variable: "ISLES_PLACES", name: "--places", value: "3" });
        Launch::from_environment_with(Machine::Threads, &flags).unwrap()
    };
    let program = |calls: u32| {
        move || async move {
            for call in 0..calls {
                at!(here().next(), _ = call).await?;
            }
            Ok::<_, isles::Error>(())
        }
    };
    let run = |launch: &Launch, calls| launch.run_on_chip(scc(), program(calls));
    let (_, _, first) = run(&launch("host:10", true), 5).unwrap();
    let (_, _, again) = run(&launch("tape:@", false), 5).unwrap();
    assert_eq!(first, again);
    for calls in [4, 6] {
        let Err(error) = run(&launch("tape:@", false), calls) else { panic!("{calls} calls went unnoticed") };
        assert!(matches!(error, LaunchError::Diverged { .. }), "{error}");
        assert!(error.to_string().contains("the run differs from tape"), "{error}");
    }
    std::fs::remove_file(tape).unwrap();
}

#[test]
#[ignore = "stands still on purpose"]
fn stands_still_on_a_chip() {
    let main = || async { finish(async { spawn_at!(here().next(), pending::<()>().await) }).await };
    let launch = Launch::from_environment().unwrap();
    let error = launch.run(main).unwrap().0.unwrap_err();
    eprintln!("{error}");
}

#[test]
fn what_a_run_on_a_chip_drops_when_it_has_ended_asks_nothing_of_the_chip() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["chip::stands_still_on_a_chip", "--exact", "--ignored", "--nocapture"]);
    let output = command.env("ISLES_MACHINE", "chip:scc").env("ISLES_PLACES", "4").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("place 0: the finish at"), "{text}");
    // The abandoned finish notifies its task, from a place whose clock is behind that of the other.
    assert!(!text.contains("panicked at"), "{text}");
}

/// Returns the seconds that a core needs to pass a value through a channel of its own place, which has `capacity`
/// values and is filled.
async fn seconds_of_a_value(capacity: usize) -> Result<f64> {
    const VALUES: usize = 1 << 16;
    let (sender, receiver) = channel::<[u64; 8]>(capacity);
    let start = now();
    for _ in 0..VALUES / capacity {
        for number in 0..capacity {
            sender.send([number as u64; 8]).await?;
        }
        for number in 0..capacity {
            assert_eq!(receiver.recv().await?[7], number as u64);
        }
    }
    Ok((now() - start).as_secs_f64() / VALUES as f64)
}

#[test]
fn a_channel_costs_its_core_what_it_touches_of_the_buffer() {
    let main = || async { Ok((seconds_of_a_value(4).await?, seconds_of_a_value(1 << 14).await?)) };
    let (small, large) = on_chip(&launch(1), main).0.unwrap();
    // A send and a receive touch 4 lines and a value of 2 lines each, at 533 MHz; 1 MiB fits no cache of the SCC.
    assert!((20e-9..2e-6).contains(&small), "{small}");
    assert!(large > 1.3 * small, "{small} {large}");
}
