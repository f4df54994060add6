//! Energies of runs: exact sums of the ledgers, the powers of published models, and no figures without a model.

use isles_chip::Chip;
use isles_chip::energy::Load;
use isles_chip::governor::Policy;
use isles_chip::quantity::{Attojoules, Microwatts, Picoseconds, scaled};
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, Work, WorkModel};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, Costs, Energy, IdlePolicy, Report, TimeCategory, TurnOutcome,
};
use std::panic::Location;

const PLACES: u32 = 4;

fn scc() -> Chip {
    Chip::find("scc").unwrap()
}

fn place(chip: &Chip, places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    let world = ChipWorld::new(places, Costs::of(chip).unwrap(), 0).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

/// Lets each place work `cycles` cycles `times` times.
fn work(chip: &Chip, places: u32, cycles: u64, times: u32) -> Report {
    let (world, endpoints) = place(chip, places);
    drive(&world, &endpoints, (cycles, times))
}

/// As [`work`], for existing places.
fn drive(world: &ChipWorld, endpoints: &[ChipEndpoint], (cycles, times): (u64, u32)) -> Report {
    let mut left = vec![times; endpoints.len()];
    while let Some(place) = world.next() {
        let left = &mut left[place.index()];
        let turn = if *left > 0 { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } };
        if *left > 0 {
            endpoints[place.index()].work(&Work::new().cycles(cycles), Location::caller());
            *left -= 1;
        }
        world.end_turn(place, turn);
    }
    world.report()
}

fn model<'a>(energy: &'a Energy, name: &str) -> &'a isles_transport_chip::ModelEnergy {
    energy.models.iter().find(|model| model.name == name).unwrap()
}

#[test]
fn forty_eight_cores_at_work_draw_what_the_model_says_of_a_loaded_chip() {
    let report = work(&scc(), 48, 533_333, 100);
    let energy = report.energy.unwrap();
    let mean = |name| energy.mean(model(&energy, name)).watts();
    assert!((mean("manyman") - 48.5).abs() < 0.1, "{}", mean("manyman"));
    assert!((mean("cichowski") - 37.7).abs() < 0.1, "{}", mean("cichowski"));
    assert_eq!(energy.models[0].name, "manyman", "the first of the file");
    let disagreement = energy.disagreement().unwrap();
    assert!((disagreement - (48.5 / 37.7 - 1.0)).abs() < 0.05, "{disagreement}");
    let peak = energy.profile.peak().power.watts();
    assert!((peak - 48.5).abs() < 0.1, "{peak}");
    let product = model(&energy, "manyman").total().joules() * report.time.0 as f64 / 1e12;
    assert!((energy.energy_delay(&energy.models[0]) - product).abs() < 1e-9 * product);
}

#[test]
fn cores_without_a_place_are_halted_and_those_that_wait_poll() {
    let report = work(&scc(), 1, 533_333_333, 1);
    let energy = report.energy.unwrap();
    let (own, chip) = (model(&energy, "manyman"), scc());
    let power = chip.power_model("manyman").unwrap();
    let point =
        chip.voltage_table("manyman").unwrap().operating_point(chip.default_preset().clocks().core).unwrap();
    let span = energy.span;
    assert_eq!(own.core(0), power.core(Load::Compute, point).over(span));
    for core in 1..48 {
        assert_eq!(own.core(core), power.core(Load::Sleep, point).over(span));
    }
    assert_eq!(own.constant, power.constant().over(span));
    let mesh = chip.mesh_power().unwrap().router_at_rest(chip.default_preset().clocks().mesh);
    assert_eq!(own.mesh_at_rest, Some(Attojoules(mesh.over(span).0 * 24)));
}

#[test]
fn a_faster_mesh_draws_more_at_rest() {
    let slow = scc();
    let fast = slow.clone().with_preset("800/1600/1066").unwrap();
    let mesh_at =
        |chip: &Chip| chip.mesh_power().unwrap().router_at_rest(chip.default_preset().clocks().mesh);
    let more = Microwatts(24 * (mesh_at(&fast).0 - mesh_at(&slow).0));
    assert!(more > Microwatts(3_000_000), "{more}");
    let energy = work(&fast, 1, 800_000_000, 1).energy.unwrap();
    let constant = slow.power_model("manyman").unwrap().constant() + more;
    assert_eq!(model(&energy, "manyman").constant, constant.over(energy.span));
}

/// Runs places that exchange messages, so that all categories of time occur.
fn talk(chip: &Chip) -> Report {
    let (world, endpoints) = place(chip, PLACES);
    let mut left = [40; PLACES as usize];
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        let took = endpoint.progress(Inbound::All, &mut |_| ());
        let (left, to) = (&mut left[place.index()], PlaceId((place.0 + 1) % PLACES));
        let mut sent = false;
        if *left > 0 {
            endpoint.work(&Work::new().cycles(10_000 * u64::from(place.0)), Location::caller());
            sent = endpoint.send(to, Class::Data, HandlerId(1), 200, &mut |_| Some(200)).is_ok();
            *left -= i32::from(sent);
        }
        world.end_turn(
            place,
            if took > 0 || sent { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } },
        );
    }
    world.report()
}

#[test]
fn the_energy_of_a_core_is_its_ledger_times_its_powers_to_the_last_attojoule() {
    let (chip, report) = (scc(), talk(&scc()));
    let energy = report.energy.as_ref().unwrap();
    assert_eq!(energy.span, report.ledgers.iter().map(|ledger| ledger.total()).max().unwrap());
    for name in ["manyman", "cichowski"] {
        let power = chip.power_model(name).unwrap();
        let table = chip.voltage_table(power.voltages()).unwrap();
        let point = table.operating_point(chip.default_preset().clocks().core).unwrap();
        for (core, ledger) in report.ledgers.iter().enumerate() {
            let of = |load, time: Picoseconds| power.core(load, point).over(time);
            let behind = Picoseconds(energy.span.0 - ledger.total().0);
            let expected = of(Load::Compute, ledger.time(TimeCategory::Working))
                + of(Load::Compute, ledger.time(TimeCategory::Handling))
                + of(Load::Copy, ledger.time(TimeCategory::Copying))
                + of(Load::Poll, ledger.time(TimeCategory::Polling))
                + of(Load::Poll, ledger.time(TimeCategory::Waiting) + behind);
            assert_eq!(model(energy, name).core(core), expected, "{name}, core {core}");
        }
    }
}

/// Watts of a core of [`distinct`] by load, computed by hand: with 1600 / 3 MHz the file has 0.85625 V, so leakage is
/// 0.424375 · 0.85625³ = 0.266411 W, and cycles are 1.25625e-3 · 0.85625² · 1600 / 3 = 0.491220 W, times 1 for
/// computing, 0.5 for copying, 0.3 for polling and 0.1 for sleeping.
const WATTS: [(f64, &[TimeCategory]); 4] = [
    (0.757631, &[TimeCategory::Working, TimeCategory::Handling, TimeCategory::Measured]),
    (0.512021, &[TimeCategory::Copying, TimeCategory::Fetching]),
    (0.413777, &[TimeCategory::Polling, TimeCategory::Waiting]),
    (0.315533, &[TimeCategory::Sleeping]),
];

/// Returns the SCC with a different factor for each load in its first model, as in no published model.
fn distinct() -> Chip {
    let text = include_str!("../../../../chips/scc.toml");
    let start = text.find("[power.manyman.load]").unwrap();
    let end = start + text[start..].find("# 23 W").unwrap();
    let load = "[power.manyman.load]\ncompute = 1.0\ncopy = 0.5\npoll = 0.3\nsleep = 0.1\n\n";
    Chip::parse("scc.toml", &format!("{}{load}{}", &text[..start], &text[end..])).unwrap()
}

/// Runs two places: the second one naps until a message of the first arrives, receives it, computes and reads memory,
/// and ends last.
fn all_that_is_spent(chip: &Chip) -> Report {
    let (world, endpoints) = place(chip, 2);
    world.rest(IdlePolicy::Nap(Picoseconds(100_000_000)));
    let mut sent = false;
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        if endpoint.progress(Inbound::All, &mut |_| ()) > 0 {
            endpoint.work(&Work::new().cycles(1_000_000).streamed(1 << 20), Location::caller());
            world.charge(place, 500_000);
        } else if place == PlaceId(0) && !sent {
            endpoint.work(&Work::new().cycles(5_333_333), Location::caller());
            endpoint.send(PlaceId(1), Class::Data, HandlerId(1), 200, &mut |_| Some(200)).unwrap();
            sent = true;
        }
        world.end_turn(place, TurnOutcome::Idle { due: None });
    }
    world.report()
}

#[test]
fn each_spending_draws_what_its_load_does_by_hand() {
    let report = all_that_is_spent(&distinct());
    let (energy, ledger) = (report.energy.as_ref().unwrap(), report.ledgers[1]);
    assert_eq!(ledger.total(), energy.span, "the second place is the last to end");
    let (mut joules, mut known) = (0.0, 0);
    for (watts, categories) in WATTS {
        for category in categories {
            let time = ledger.time(*category).0;
            assert!(time > 0, "nothing was spent on {category:?}");
            joules += watts * time as f64 / 1e12;
            known += time;
        }
    }
    assert_eq!(known, ledger.total().0, "the table above lacks a spending");
    let drawn = model(energy, "manyman").core(1).joules();
    assert!((drawn / joules - 1.0).abs() < 2e-6, "{drawn} J, by hand {joules} J");
}

#[test]
fn parts_domains_and_windows_add_up_to_the_whole() {
    let report = talk(&scc());
    let energy = report.energy.unwrap();
    for own in &energy.models {
        let domains: Attojoules = energy.by_domain(own).into_iter().sum();
        assert_eq!(domains, own.all_cores());
        assert_eq!(own.total(), domains + own.uncore());
        assert_eq!(own.flits.0 % u128::from(report.flit_hops), 0);
        assert!(own.flits > Attojoules::ZERO && own.mesh().unwrap() < own.uncore());
    }
    assert_eq!(energy.by_domain(&energy.models[0]).len(), 6);
    let windows: Attojoules = energy.profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum();
    assert_eq!(windows, energy.models[0].total());
    let lengths: u64 = energy.profile.windows().map(|(_, length, _)| length.0).sum();
    assert_eq!(lengths, energy.span.0);
    assert!(energy.profile.peak().power >= energy.mean(&energy.models[0]));
}

#[test]
fn a_chip_without_a_power_model_says_so_in_a_line() {
    let text = include_str!("../../../../chips/mesh.toml");
    let (before, _) = text.split_once("# Either leakage and dynamic").unwrap();
    let chip = Chip::parse("mesh.toml", before).unwrap_or_else(|faults| panic!("{faults:?}"));
    let report = work(&chip, 2, 1_000, 3);
    assert_eq!(report.energy, None);
    let last = report.to_string().lines().last().unwrap().to_owned();
    assert_eq!(last, "energy          unknown: the chip's file has no power model");
}

#[test]
fn the_report_tells_all_of_it() {
    let text = talk(&scc()).to_string();
    for line in [
        "energy ",
        "  another model ",
        "  caveat ",
        "  peak ",
        "  parts ",
        "  by domain ",
        "  by place ",
        "  assumed ",
    ] {
        assert!(text.lines().any(|other| other.starts_with(line)), "{line:?} in {text}");
    }
    assert!(
        text.contains("the models differ by ") && text.contains("mesh_power.moving = 0.3 (factor 2)"),
        "{text}"
    );
}

#[test]
fn the_report_tells_the_figures_of_its_run_product_peak_and_parts() {
    let report = talk(&scc());
    let (text, energy) = (report.to_string(), report.energy.unwrap());
    let own = &energy.models[0];
    let tells = |line: String| assert!(text.contains(&line), "{line:?} in {text}");
    let (joules, seconds) = (own.total().joules(), energy.span.0 as f64 / 1e12);
    let [once, twice] = [scaled(joules * seconds, "J s"), scaled(joules * seconds * seconds, "J s^2")];
    tells(format!("; energy-delay {once}, delay squared {twice}\n"));
    let totals = || energy.models.iter().map(|model| model.total().joules());
    let (least, most) = (totals().reduce(f64::min).unwrap(), totals().reduce(f64::max).unwrap());
    tells(format!("differ by {:.1} %:", 100.0 * (most - least) / least));
    let start = energy.profile.peak().start.0 / 1_000_000;
    tells(format!(" over {} from {}.{:03} ms\n", energy.profile.window, start / 1_000, start % 1_000));
    let of = |cores: std::ops::Range<usize>| cores.map(|core| own.core(core)).sum::<Attojoules>().joules();
    let [places, idle] = [of(0..PLACES as usize), of(PLACES as usize..48)].map(|part| scaled(part, "J"));
    let uncore = scaled(own.uncore().joules(), "J");
    tells(format!("places {places}, cores without a place {idle}, uncore {uncore} "));
}

#[test]
fn what_is_assumed_of_power_is_told_and_what_is_published_or_of_time_is_not() {
    let energy = work(&scc(), 1, 1_000, 1).energy.unwrap();
    let names: Vec<&str> = energy.assumed.iter().map(|line| line.split(" = ").next().unwrap()).collect();
    assert!(names.contains(&"power.manyman.load.poll") && names.contains(&"mesh_power.moving"), "{names:?}");
    let about = |name: &&str| name.starts_with("power.") || name.starts_with("mesh_power.");
    assert!(names.iter().all(about) && !names.contains(&"power.manyman.leakage"), "{names:?}");
}

#[test]
fn one_model_disagrees_with_nobody() {
    let mut report = work(&scc(), 1, 1_000, 1);
    report.energy.iter_mut().for_each(|energy| energy.models.truncate(1));
    assert_eq!(report.energy.as_ref().unwrap().disagreement(), None);
    assert!(!report.to_string().contains("caveat"), "{report}");
}

#[test]
fn each_voltage_domain_has_the_energy_of_its_own_cores() {
    let energy = talk(&scc()).energy.unwrap();
    let own = &energy.models[0];
    // The tiles (0, 0), (1, 0), (0, 1) and (1, 1).
    let cores: Attojoules = (0..4).chain(12..16).map(|core| own.core(core)).sum();
    assert_eq!(energy.by_domain(own)[0], cores);
    assert!(energy.by_domain(own)[1..].iter().all(|domain| *domain < cores), "all places are in the first");
}

#[test]
fn places_are_told_eight_in_a_line() {
    let text = work(&scc(), 9, 1_000, 1).to_string();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("  by place "));
    assert_eq!(
        [lines.next(), lines.next()].map(|line| line.unwrap().matches(" µJ").count()),
        [8, 1],
        "{text}"
    );
}

#[test]
fn what_is_told_by_category_is_what_places_have_drawn() {
    let report = talk(&scc());
    let text = report.to_string();
    let categories = text.lines().find_map(|line| line.strip_prefix("  by category   ")).unwrap();
    let parts: Vec<Vec<&str>> = categories.split(", ").map(|part| part.split(' ').collect()).collect();
    let names: Vec<&str> = parts.iter().map(|part| part[0]).collect();
    assert_eq!(names, ["working", "handling", "copying", "polling", "waiting"]);
    let unit = |name| if name == "mJ" { 1e-3 } else { 1e-6 };
    let printed: f64 = parts.iter().map(|part| part[1].parse::<f64>().unwrap() * unit(part[2])).sum();
    let own = &report.energy.as_ref().unwrap().models[0];
    let drawn = (0..PLACES as usize).map(|core| own.core(core)).sum::<Attojoules>().joules();
    assert!((printed / drawn - 1.0).abs() < 1e-3, "{printed} of {drawn} J in {text}");
}

/// Runs four places: the second one waits ten milliseconds for a message of the first; the others are idle. Also
/// returns the time of the receipt.
fn wait(rest: IdlePolicy) -> (Report, Picoseconds) {
    let (world, endpoints) = place(&scc(), 4);
    world.rest(rest);
    let (mut sent, mut taken) = (false, Picoseconds::ZERO);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        if place == PlaceId(0) && !sent {
            endpoint.work(&Work::new().cycles(5_333_333), Location::caller());
            endpoint.send(PlaceId(1), Class::Data, HandlerId(1), 16, &mut |_| Some(16)).unwrap();
            sent = true;
        }
        if endpoint.progress(Inbound::All, &mut |_| ()) > 0 {
            taken = world.report().ledgers[place.index()].total();
        }
        world.end_turn(place, TurnOutcome::Idle { due: None });
    }
    (world.report(), taken)
}

#[test]
fn a_place_that_naps_draws_less_and_learns_later_by_a_nap_at_most() {
    let nap = Picoseconds(100_000_000);
    let ((polled, early), (napped, late)) = (wait(IdlePolicy::Poll), wait(IdlePolicy::Nap(nap)));
    assert!(early < late && late.0 - early.0 < nap.0 + 2_000_000, "{early} {late}");
    let joules = |report: &Report| report.energy.as_ref().unwrap().models[0].core(1).joules();
    assert!(joules(&napped) < 0.7 * joules(&polled), "{} {}", joules(&napped), joules(&polled));
    let ledger = &napped.ledgers[1];
    let slept = ledger.time(TimeCategory::Sleeping);
    assert_eq!((slept.0 % nap.0, polled.ledgers[1].time(TimeCategory::Sleeping)), (0, Picoseconds::ZERO));
    assert!(slept.0 >= 9_900_000_000 && ledger.time(TimeCategory::Waiting).0 < 100_000_000, "{napped}");
    assert_ne!(polled.digest, napped.digest);
    let windows = |report: &Report| -> Attojoules {
        report.energy.as_ref().unwrap().profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum()
    };
    let total = napped.energy.as_ref().unwrap().models[0].total();
    assert!((windows(&napped).joules() / total.joules() - 1.0).abs() < 1e-6);
    let powers = napped.energy.as_ref().unwrap().profile.windows();
    let busiest = powers.map(|(_, length, sums)| sums[0].mean_over(length).watts()).reduce(f64::max).unwrap();
    let (chip, name) = (scc(), "manyman");
    let point =
        chip.voltage_table(name).unwrap().operating_point(chip.default_preset().clocks().core).unwrap();
    let power = |load| chip.power_model(name).unwrap().core(load, point).watts();
    // Of the eight cores, one computes, three nap and four are halted; polls add a little.
    assert!(busiest < power(Load::Compute) + 7.0 * power(Load::Sleep) + 0.1, "{busiest}");
}

/// Returns the work of a pass over a strip of a grid: 983,040 cells of forty operations of each kind among all places.
fn strip(places: u32, is_memory: bool) -> Work {
    let cells = 983_040 / u64::from(places);
    let work = Work::new().integers(40 * cells).floats(40 * cells);
    if is_memory { work.streamed(40 * cells) } else { work }
}

/// Remaining actions of a place of the ring in a step, and the number of the step.
#[derive(Clone, Copy, Default)]
struct Member {
    passes: u32,
    pieces: u32,
    steps: u32,
    taken: u32,
}

/// Runs a ring of places with a divider. Each makes eight passes, one per turn, sends its border of 15,360 bytes to the
/// next place, and continues when it has received that of the previous place.
fn ring(places: u32, divider: u32, pass: Work) -> Report {
    const STEPS: u32 = 2;
    const PASSES: u32 = 8;
    const PIECES: u32 = 30;
    let (world, endpoints) = place(&scc(), places);
    world.govern(Policy::FixedAt(divider)).unwrap();
    let mut members = vec![Member::default(); places as usize];
    while let Some(place) = world.next() {
        let (me, endpoint) = (&mut members[place.index()], &endpoints[place.index()]);
        me.taken += endpoint.progress(Inbound::All, &mut |_| ()) as u32;
        let is_free = me.passes == 0 && me.pieces == 0;
        if is_free && me.steps < STEPS && me.taken >= me.steps * PIECES {
            *me = Member { passes: PASSES, pieces: PIECES, steps: me.steps + 1, ..*me };
        }
        let mut turn = TurnOutcome::Idle { due: None };
        if me.passes > 0 {
            endpoint.work(&pass, Location::caller());
            me.passes -= 1;
            turn = TurnOutcome::Busy;
        } else {
            let next = PlaceId((place.0 + 1) % places);
            let send = || endpoint.send(next, Class::Data, HandlerId(1), 512, &mut |_| Some(512)).is_ok();
            while me.pieces > 0 && send() {
                (me.pieces, turn) = (me.pieces - 1, TurnOutcome::Busy);
            }
        }
        world.end_turn(place, turn);
    }
    assert!(members.iter().all(|member| member.taken == STEPS * PIECES), "each has all of the one before");
    world.report()
}

/// Returns seconds, joules and watts by the first power model.
fn came(report: &Report) -> (f64, f64, f64) {
    let energy = report.energy.as_ref().unwrap();
    let own = &energy.models[0];
    (energy.span.0 as f64 / 1e12, own.total().joules(), energy.mean(own).watts())
}

#[test]
fn v21_all_cores_at_half_the_rate_are_about_as_fast_as_half_the_cores_at_full_rate_and_draw_less() {
    let (wide, narrow) = (ring(48, 4, strip(48, false)), ring(24, 2, strip(24, false)));
    assert!(wide.messages > narrow.messages && narrow.messages >= 24 * 2 * 30);
    let (wide, narrow) = (came(&wide), came(&narrow));
    // A core has half the cells at half the rate, and a border of the same length at half the rate.
    let ratio = wide.0 / narrow.0;
    assert!(ratio > 1.0001 && ratio < 1.15, "{ratio}: {wide:?} {narrow:?}");
    assert!(wide.1 < narrow.1 && wide.2 < 0.8 * narrow.2, "{wide:?} {narrow:?}");
}

/// Returns the seconds in which the places together read 384 MiB, a mebibyte at a time, with a divider.
fn walk(places: u32, divider: u32) -> f64 {
    let (world, endpoints) = place(&scc(), places);
    world.govern(Policy::FixedAt(divider)).unwrap();
    let mut left = vec![384 / places; places as usize];
    while let Some(place) = world.next() {
        let left = &mut left[place.index()];
        let turn = if *left > 0 { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } };
        if *left > 0 {
            endpoints[place.index()].work(&Work::new().streamed(1 << 20), Location::caller());
            *left -= 1;
        }
        world.end_turn(place, turn);
    }
    came(&world.report()).0
}

#[test]
fn half_the_cores_have_half_the_controllers_because_the_first_cores_are_taken() {
    let ratio = walk(48, 4) / walk(24, 2);
    assert!((0.45..0.55).contains(&ratio), "{ratio}");
}

/// Returns the divider with the least energy on all cores, and the energies of all dividers.
fn thriftiest(is_memory: bool) -> (u32, Vec<f64>) {
    let joules: Vec<f64> = (2..=16).map(|divider| came(&ring(48, divider, strip(48, is_memory))).1).collect();
    let least = joules.iter().copied().reduce(f64::min).unwrap();
    (2 + joules.iter().position(|joules| *joules == least).unwrap() as u32, joules)
}

#[test]
fn v22_the_rate_of_least_energy_lies_between_the_ends_and_is_lower_where_memory_is_the_limit() {
    // As Gschwandtner et al. measured; ManyMan found the most operations per joule at 320 to 400 MHz.
    let (computing, joules) = thriftiest(false);
    assert!((4..=5).contains(&computing), "divider {computing} of {joules:?}");
    let (streaming, joules) = thriftiest(true);
    assert!(streaming > computing && streaming < 16, "divider {streaming} of {joules:?}");
    let least = joules[streaming as usize - 2];
    assert!(least < 0.7 * joules[0] && least < 0.9 * joules[14], "divider {streaming} of {joules:?}");
}

#[test]
fn a_run_of_which_only_the_time_is_wanted_takes_as_long_and_has_no_energy() {
    let run = |forgoes: bool| {
        let (world, endpoints) = place(&scc(), PLACES);
        if forgoes {
            world.disable_energy();
        }
        drive(&world, &endpoints, (1_000_000, 3))
    };
    let (with, without) = (run(false), run(true));
    assert_eq!((with.time, with.digest), (without.time, without.digest));
    assert!(with.energy.is_some() && without.energy.is_none());
}

#[test]
fn of_many_places_the_least_and_the_most_is_told() {
    let by_place = |places| {
        let text = work(&Chip::find("bluegene-p").unwrap(), places, 100, 1).energy.unwrap().to_string();
        let lines = text.lines().skip_while(|line| !line.starts_with("  by place"));
        lines.take_while(|line| !line.starts_with("  assumed")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(by_place(64).len(), 8, "{:?}", by_place(64));
    let many = by_place(65);
    assert!(many.len() == 1 && many[0].contains(" to ") && many[0].contains("summary"), "{many:?}");
}
