//! Records of a run: a readable trace, counts that add up, and no effect of recording on the run.

use crate::protobuf::{Packet, Span, packets, spans};
use isles_chip::Chip;
use isles_chip::quantity::scaled;
use isles_transport::Span as Labelled;
use isles_transport::random::Random;
use isles_transport::{
    Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId, Source, SpanSink, Work, WorkModel,
};
use isles_transport_chip::export::{self, RunFacts};
use isles_transport_chip::{
    Bands, ChipEndpoint, ChipWorld, Costs, GearChanges, Placement, Protocol, Report, Stale, TimeCategory,
    TurnOutcome,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PLACES: u32 = 6;

fn scc() -> Chip {
    Chip::find("scc").unwrap()
}

/// Sink that keeps all writes and fails from a given byte on.
#[derive(Clone)]
struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    most: usize,
}

impl Sink {
    fn new(most: usize) -> Sink {
        Sink { bytes: Arc::default(), most }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap();
        if all.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::StorageFull.into());
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets each place send 30 messages of both classes and one block at random, with work in between.
fn gossip(world: &ChipWorld) -> Report {
    let endpoints: Vec<ChipEndpoint> = (0..PLACES).map(|place| world.endpoint(PlaceId(place))).collect();
    let mut left = [31; PLACES as usize];
    let mut random: Vec<Random> = (0..u64::from(PLACES)).map(Random::new).collect();
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        let took = endpoint.progress(Inbound::All, &mut |arrival| {
            assert!(matches!(arrival, Arrival::Message(_)), "nobody dies");
        });
        let (random, left) = (&mut random[place.index()], &mut left[place.index()]);
        let mut sent = false;
        if *left > 0 {
            let to = PlaceId((place.0 + 1 + random.below(u64::from(PLACES) - 1) as u32) % PLACES);
            let class = if random.below(2) == 0 { Class::Control } else { Class::Data };
            endpoint.work(&Work::new().cycles(random.below(500)), Location::caller());
            let (len, handler) = (random.index(300), HandlerId(1));
            sent = if *left == 1 {
                endpoint.send_block(to, class, handler, 9_000, &mut |bytes| bytes.fill(1)).is_ok()
            } else {
                endpoint.send(to, class, handler, len, &mut |_| Some(len)).is_ok()
            };
            *left -= i32::from(sent);
        }
        world.end_turn(
            place,
            if took > 0 || sent { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } },
        );
    }
    world.report()
}

fn world() -> ChipWorld {
    ChipWorld::new(PLACES, Costs::of(&scc()).unwrap(), 3).unwrap()
}

/// Returns the report and the trace of a run.
fn traced() -> (Report, Vec<Packet>) {
    let (world, sink) = (world(), Sink::new(usize::MAX));
    world.trace("a run", Box::new(sink.clone())).unwrap();
    let report = gossip(&world);
    world.end_trace().unwrap();
    let bytes = sink.bytes.lock().unwrap();
    (report, packets(&bytes))
}

#[test]
fn a_traced_run_is_the_run_that_it_would_have_been() {
    let plain = gossip(&world());
    let counted = world();
    counted.record();
    assert_eq!(plain, gossip(&counted));
    assert_eq!(plain, traced().0);
}

#[test]
fn every_track_is_described_before_it_is_used_and_belongs_to_its_tile() {
    let (_, packets) = traced();
    let (mut known, mut threads, mut processes) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for packet in &packets {
        if let Some(track) = &packet.track {
            assert!(known.insert(track.uuid) && track.uuid != 0, "{track:?}");
            assert!(track.parent.is_none_or(|parent| known.contains(&parent)), "{track:?}");
            if let Some((pid, name)) = &track.process {
                assert!(name.contains("1 ns is 1 ps"), "{name}");
                processes.insert(*pid, track.uuid);
            }
            if let Some((pid, tid, name)) = &track.thread {
                assert!(processes.contains_key(pid), "{track:?}");
                assert!(
                    *tid != 0 && !processes.contains_key(tid) && threads.insert(*tid, name.clone()).is_none()
                );
            }
        }
        assert!(packet.event.as_ref().is_none_or(|event| known.contains(&event.track)), "{packet:?}");
    }
    assert_eq!(processes.len(), 3, "two cores a tile");
    let names: Vec<&String> = threads.values().collect();
    assert_eq!(names.len(), PLACES as usize);
    assert_eq!((names[0].as_str(), names[5].as_str()), ("core 0, place 0", "core 5, place 5"));
}

#[test]
fn spans_are_balanced_and_add_up_to_the_ledgers() {
    let (report, packets) = traced();
    let spans = spans(&packets);
    assert!(spans.iter().all(|span| span.start < span.end && span.depth < 2), "{spans:?}");
    let tracks: BTreeSet<u64> = spans.iter().map(|span| span.track).collect();
    assert_eq!(tracks.len(), PLACES as usize);
    let categories = [
        (TimeCategory::Working, "working"),
        (TimeCategory::Handling, "handling"),
        (TimeCategory::Copying, "copying"),
        (TimeCategory::Polling, "polling"),
        (TimeCategory::Waiting, "waiting"),
    ];
    for (track, ledger) in tracks.into_iter().zip(&report.ledgers) {
        for (category, name) in categories {
            let own = spans.iter().filter(|span| span.track == track && span.name == name);
            let sum: u64 = own.map(|span| span.end - span.start).sum();
            assert_eq!(sum, ledger.time(category).0, "{name} on track {track}");
        }
    }
}

#[test]
fn counters_of_power_hold_all_that_was_drawn() {
    let (report, packets) = traced();
    let energy = report.energy.unwrap();
    let counters = packets
        .iter()
        .filter_map(|packet| packet.track.as_ref())
        .filter(|track| track.name.starts_with("power of"));
    let counters: Vec<(u64, &str)> = counters.map(|track| (track.uuid, track.name.as_str())).collect();
    let names: Vec<&str> = counters.iter().map(|(_, name)| name.split(" by ").next().unwrap()).collect();
    let domains = (0..6).map(|domain| format!("power of voltage domain {domain}"));
    let expected: Vec<String> = ["power of the chip".to_owned()]
        .into_iter()
        .chain(domains)
        .chain(["power of uncore".to_owned()])
        .collect();
    assert_eq!(names, expected);
    assert!(counters.iter().all(|(_, name)| name.contains("by manyman") && name.contains("1 ns is 1 ps")));
    let joules = |counter: u64| -> f64 {
        let values = packets.iter().filter_map(|packet| Some((packet.time?, packet.event.as_ref()?)));
        let values: Vec<(u64, f64)> = values
            .filter(|(_, event)| event.track == counter)
            .map(|(time, event)| {
                assert_eq!(event.kind, 4, "a counter");
                (time, event.value.unwrap())
            })
            .collect();
        assert!(values.windows(2).all(|pair| pair[0].0 < pair[1].0), "{values:?}");
        let ends = values.iter().skip(1).map(|(time, _)| *time).chain([energy.span.0]);
        values.iter().zip(ends).map(|((start, watts), end)| watts * (end - start) as f64 / 1e12).sum()
    };
    let own = &energy.models[0];
    let close = |ours: f64, theirs: f64| assert!((ours - theirs).abs() < 1e-4 * theirs, "{ours}, {theirs}");
    close(joules(counters[0].0), own.total().joules());
    close(joules(counters[7].0), own.uncore().joules());
    for (domain, drawn) in energy.by_domain(own).into_iter().enumerate() {
        close(joules(counters[1 + domain].0), drawn.joules());
    }
}

#[test]
fn looks_one_after_the_other_that_find_nothing_are_one_span() {
    let (world, sink) = (world(), Sink::new(usize::MAX));
    world.trace("a run", Box::new(sink.clone())).unwrap();
    let place = world.next().unwrap();
    let endpoint = world.endpoint(place);
    for _ in 0..5 {
        assert_eq!(endpoint.progress(Inbound::All, &mut |_| ()), 0);
    }
    world.end_trace().unwrap();
    let spans = spans(&packets(&sink.bytes.lock().unwrap()));
    let polled = world.report().ledgers[place.index()].time(TimeCategory::Polling).0;
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!((spans[0].name.as_str(), spans[0].end - spans[0].start), ("polling", polled));
}

#[test]
fn a_trace_that_begins_in_a_run_begins_at_the_clocks_of_its_cores() {
    let (world, sink) = (world(), Sink::new(usize::MAX));
    let place = world.next().unwrap();
    let endpoint = world.endpoint(place);
    let clock = || world.report().ledgers[place.index()].total().0;
    endpoint.work(&Work::new().cycles(1_000), Location::caller());
    world.trace("a run", Box::new(sink.clone())).unwrap();
    let begun = clock();
    endpoint.work(&Work::new().cycles(500), Location::caller());
    world.end_trace().unwrap();
    let spans = spans(&packets(&sink.bytes.lock().unwrap()));
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!((spans[0].start, spans[0].end), (begun, clock()));
    assert!(begun > 0);
}

#[test]
fn tracks_of_calls_stand_under_the_tile_of_the_core() {
    let chip = scc();
    let core_map = "40,41".parse::<Placement>().unwrap().core_map(chip.topology(), 2).unwrap();
    let world = ChipWorld::with_core_map(core_map, Costs::of(&chip).unwrap(), Protocol::Doorbell, 0).unwrap();
    let (endpoint, sink) = (world.endpoint(PlaceId(1)), Sink::new(usize::MAX));
    world.trace("a run", Box::new(sink.clone())).unwrap();
    let span = endpoint.begin_span(&Labelled { name: "call", other: None, source: None });
    endpoint.work(&Work::new().cycles(533), Location::caller());
    endpoint.end_span(span);
    world.end_trace().unwrap();
    let packets = packets(&sink.bytes.lock().unwrap());
    let tracks: Vec<_> = packets.iter().filter_map(|packet| packet.track.as_ref()).collect();
    let lane = tracks.iter().find(|track| track.name.starts_with("calls of place 1")).unwrap();
    let tile = tracks.iter().find(|track| Some(track.uuid) == lane.parent).unwrap();
    let (_, name) = tile.process.as_ref().unwrap();
    assert!(name.starts_with("tile 20 at"), "{name}");
}

#[test]
fn spans_of_a_place_are_on_tracks_of_its_own_and_end_with_the_trace() {
    const SOURCE: Source = Source { file: "a.rs", line: 7 };
    let (world, sink) = (world(), Sink::new(usize::MAX));
    let endpoint = world.endpoint(PlaceId(3));
    let call = Labelled { name: "call", other: Some(PlaceId(5)), source: Some(SOURCE) };
    let run = Labelled { name: "run", other: None, source: None };
    assert!(endpoint.span_sink().is_none());
    let stray = endpoint.begin_span(&run);
    world.trace("a run", Box::new(sink.clone())).unwrap();
    assert!(endpoint.span_sink().is_some());
    endpoint.end_span(stray);
    let step = || endpoint.work(&Work::new().cycles(533), Location::caller());
    let all = endpoint.begin_span(&run);
    step();
    let first = endpoint.begin_span(&call);
    step();
    let second = endpoint.begin_span(&call);
    step();
    endpoint.end_span(first);
    step();
    endpoint.end_span(second);
    let third = endpoint.begin_span(&call);
    step();
    world.end_trace().unwrap();
    for span in [third, all] {
        endpoint.end_span(span); // nobody draws it any more
    }

    let packets = packets(&sink.bytes.lock().unwrap());
    let process = |name: &str| {
        let mut tracks = packets.iter().filter_map(|packet| packet.track.as_ref());
        let of_tile = |(_, text): &(u64, String)| text.starts_with(name);
        tracks.find(|track| track.process.as_ref().is_some_and(of_tile)).map(|track| track.uuid)
    };
    let tracks = packets.iter().filter_map(|packet| packet.track.as_ref());
    let lanes: Vec<_> = tracks.filter(|track| track.name.starts_with("calls of")).collect();
    assert!(lanes.iter().all(|lane| lane.name == "calls of place 3, 1 ns is 1 ps"), "{lanes:?}");
    assert!(lanes.iter().all(|lane| lane.parent == process("tile 1 at")) && process("tile 1 at").is_some());
    let lane = |span: &Span| lanes.iter().position(|lane| lane.uuid == span.track);
    let found = spans(&packets);
    let mut found: Vec<_> = found.iter().filter_map(|span| Some((lane(span)?, span))).collect();
    found.sort_by_key(|(lane, span)| (*lane, span.start));
    let found: Vec<_> = found
        .into_iter()
        .map(|(lane, span)| {
            assert_eq!(span.depth, 0, "{span:?}");
            let steps = |time: u64| (time as f64 / 1e6).round() as u64;
            (lane, span.name.as_str(), steps(span.start), steps(span.end), span.source.clone())
        })
        .collect();
    let source = Some(("a.rs".to_owned(), 7));
    let expected = [
        (0, "run", 0, 5, None),
        (1, "call place 5", 1, 3, source.clone()),
        (1, "call place 5", 4, 5, source.clone()),
        (2, "call place 5", 2, 4, source),
    ];
    assert_eq!(found, expected);
}

#[test]
fn each_message_is_a_flow_from_its_send_to_its_receipt() {
    let (report, packets) = traced();
    let spans = spans(&packets);
    let (mut sources, mut targets) = (BTreeMap::new(), BTreeMap::new());
    for span in &spans {
        span.flows.iter().for_each(|flow| assert!(sources.insert(*flow, span).is_none()));
        span.last_flows.iter().for_each(|flow| assert!(targets.insert(*flow, span).is_none()));
    }
    assert_eq!((sources.len() as u64, targets.len() as u64), (report.messages, report.messages));
    assert_eq!(report.messages, u64::from(PLACES) * 31);
    let cores: BTreeSet<u64> = spans.iter().map(|span| span.track).collect();
    let place = |span: &Span| cores.iter().position(|track| *track == span.track).unwrap() as u64;
    for (flow, source) in sources {
        let target = targets[&flow];
        assert!(source.end <= target.start || source.name == "send block", "{source:?}, {target:?}");
        assert!(source.start < target.start, "{source:?}, {target:?}");
        assert_eq!(source.notes["bytes"], target.notes["bytes"]);
        assert_eq!((source.notes["target"], target.notes["source"]), (place(target), place(source)));
    }
    let blocks = spans.iter().filter(|span| span.name == "send block").count();
    assert_eq!(blocks, PLACES as usize);
    assert!(spans.iter().any(|span| span.name == "receive piece"));
}

#[test]
fn a_sink_that_is_full_ends_the_trace_and_not_the_run() {
    let world = world();
    world.trace("a run", Box::new(Sink::new(1_000))).unwrap();
    assert_eq!(gossip(&world), gossip(&self::world()));
    assert_eq!(world.end_trace().map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    assert!(world.end_trace().is_ok(), "it is told once");
}

#[test]
fn the_tables_add_up_to_the_report() {
    let world = world();
    world.record();
    let report = gossip(&world);
    let table = export::traffic(&world.flows());
    let rows = |table: &str| -> Vec<Vec<String>> {
        table.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let sum = |table: &str, column: usize| -> u64 {
        rows(table).iter().map(|row| row[column].parse::<u64>().unwrap()).sum()
    };
    assert_eq!((sum(&table, 2), sum(&table, 3)), (report.messages, report.bytes));
    assert!(rows(&table).iter().all(|row| row[0] != row[1] && row[2] != "0"), "{table}");

    let chip = scc();
    let links = export::links(chip.topology(), &world.link_loads());
    assert_eq!(rows(&links).len(), chip.topology().links().count());
    assert_eq!(sum(&links, 8), report.flit_hops);
    // A flit takes 1,250 ps to pass a link, and no link is busy for more than the whole time.
    assert_eq!(sum(&links, 9), report.flit_hops * 1_250);
    let shares: Vec<f64> = rows(&links).iter().map(|row| row[10].parse().unwrap()).collect();
    assert!(
        shares.iter().all(|share| (0.0..=1.0).contains(share)) && shares.iter().any(|share| *share > 0.0)
    );
    // Tiles 0 to 2 are the first of the lowest row.
    let rows = rows(&links);
    let mut used = rows.iter().filter(|row| row[8] != "0");
    assert!(used.all(|row| row[2] == "0" && row[6] == "0"), "{links}");
}

/// Returns the mean of the categories' factors of error, weighted by the time spent in each.
fn weighted(report: &Report, shares: &[(TimeCategory, [f64; 2])]) -> [f64; 2] {
    let spent = |category| report.ledgers.iter().map(|ledger| ledger.time(category).0 as f64).sum::<f64>();
    let all: f64 = shares.iter().map(|(category, _)| spent(*category)).sum();
    [0, 1]
        .map(|side| shares.iter().map(|(category, share)| spent(*category) * share[side]).sum::<f64>() / all)
}

#[track_caller]
fn assert_close(ours: [f64; 2], theirs: [f64; 2]) {
    let near = |(ours, theirs): (f64, f64)| (ours / theirs - 1.0).abs() < 1e-9;
    assert!(ours.into_iter().zip(theirs).all(near), "{ours:?}, {theirs:?}");
}

#[test]
fn bands_are_those_of_what_a_run_has_used() {
    let report = gossip(&world());
    let bands = Bands::of(&scc(), &report);
    let protocol = [0.5, 2.0];
    let shares = [
        (TimeCategory::Working, [1.0, 1.0]),
        (TimeCategory::Handling, protocol),
        (TimeCategory::Polling, protocol),
        (TimeCategory::Copying, [0.75, 1.25]),
        (TimeCategory::Fetching, [0.5, 2.0]),
    ];
    let [least, most] = weighted(&report, &shares);
    assert!(least < 0.9 && most > 1.2, "{least}, {most}");
    assert_close(
        bands.time.map(|time| time.0 as f64),
        [least, most].map(|share| (share * report.time.0 as f64).floor()),
    );
    let energy = report.energy.as_ref().unwrap();
    let drawn = |name: &str| {
        let model = energy.models.iter().find(|model| model.name == name).unwrap();
        (energy.mean(model).watts(), model.total().joules())
    };
    // The coefficients of `manyman` are exact to 5 %, those of `cichowski`, which matter more in such a short run, to
    // 25 %.
    let [ours, theirs] = [drawn("manyman"), drawn("cichowski")];
    let found = bands.energy.unwrap();
    assert_close(found.watts, [(ours.0 * 0.95).min(theirs.0 * 0.75), (ours.0 * 1.05).max(theirs.0 * 1.25)]);
    let joules = [found.watts[0] / ours.0 * ours.1 * least, found.watts[1] / ours.0 * ours.1 * most];
    assert!(
        (found.joules[0] / joules[0] - 1.0).abs() < 1e-5 && (found.joules[1] / joules[1] - 1.0).abs() < 1e-5
    );
    let besides = [
        "the work that the program declares",
        "code that is charged nothing",
        "contention",
        "assumed powers",
    ];
    assert_eq!(bands.besides, besides);
}

#[test]
fn operations_and_lines_of_memory_have_the_errors_of_the_file_and_what_has_none_is_named() {
    let world = world();
    let place = world.next().unwrap();
    let endpoint = world.endpoint(place);
    endpoint.work(&Work::new().integers(90_000).streamed(1 << 20), Location::caller());
    let report = world.report();
    let bands = Bands::of(&scc(), &report);
    let shares = [(TimeCategory::Working, [0.5, 2.0]), (TimeCategory::Fetching, [0.5, 2.0])];
    let [least, most] = weighted(&report, &shares);
    assert_close(
        bands.time.map(|time| time.0 as f64),
        [least, most].map(|share| (share * report.time.0 as f64).floor()),
    );
    assert_eq!(bands.unknown, ["second_cache"]);
    assert!(!bands.besides.contains(&"voltage changes".to_owned()), "{bands:?}");
    let text = bands.to_string();
    assert!(
        text.contains(" by the errors stated in the chip's file; ") && text.lines().count() == 3,
        "{text}"
    );
    assert!(text.contains("\n  error unknown second_cache; counted as a factor of 2\n"), "{text}");
    assert!(text.ends_with("; see docs/chip/validation.md#how-far-off-a-prediction-is"), "{text}");
}

#[test]
fn a_run_that_has_done_nothing_is_not_off_and_a_chip_without_powers_has_a_band_of_time_only() {
    let bands = Bands::of(&scc(), &world().report());
    assert_eq!(bands.time.map(|time| time.0), [0, 0]);
    assert_eq!(bands.besides, ["code that is charged nothing", "assumed powers"]);
    let world = world();
    let place = world.next().unwrap();
    world.endpoint(place).work(&Work::new().cycles(1_000), Location::caller());
    let report = Report { energy: None, ..world.report() };
    let bands = Bands::of(&scc(), &report);
    assert_eq!((bands.time, bands.energy), ([report.time; 2], None));
    assert!(!bands.to_string().contains('W'), "{bands}");
}

#[test]
fn a_band_is_told_with_its_ends_and_names_changes_of_voltage_if_there_were_any() {
    let report = Report { shifts: GearChanges { rates: 4, voltages: 1 }, ..gossip(&world()) };
    let bands = Bands::of(&scc(), &report);
    assert!(bands.besides.contains(&"voltage changes".to_owned()), "{bands:?}");
    let drawn = bands.energy.unwrap();
    let printed =
        |[least, most]: [f64; 2], unit| format!("{} to {}", scaled(least, unit), scaled(most, unit));
    let (time, joules) =
        (printed(bands.time.map(|time| time.0 as f64 / 1e12), "s"), printed(drawn.joules, "J"));
    let text = bands.to_string();
    assert!(text.starts_with(&format!("how far off     {time} by ")), "{text}");
    assert!(text.contains(&format!("; {joules}, {}, by any", printed(drawn.watts, "W"))), "{text}");
}

#[test]
fn on_shared_memory_copying_has_the_errors_of_memory_too_and_each_that_is_unknown_is_named_once() {
    let text = include_str!("../../../../chips/scc.toml");
    let through = r#"value = "88.5 cycles of core + 46 cycles of memory + 7.5 cycles/hop of mesh", error = "#;
    let cached = r#"value = "127.5 ns of core + 46 cycles of memory + 8 cycles/hop of mesh", error = "#;
    let text = text.replacen(&format!("{through}\"25 %\""), &format!("{through}\"factor 3\""), 1);
    let text = text.replacen(&format!("{cached}\"10 %\""), &format!("{cached}\"unknown\""), 1);
    let chip = Chip::parse("scc.toml", &text).unwrap_or_else(|faults| panic!("{faults:?}"));
    let world = world();
    world.endpoint(PlaceId(0)).work(&Work::new().streamed(1 << 20), Location::caller());
    let apart = gossip(&world);
    let shared = Report { stale: Some(Stale { number: 0, first: Vec::new() }), ..apart.clone() };
    let protocol = [0.5, 2.0];
    for (report, copying) in [(apart, [0.75, 1.25]), (shared, [1.0 / 3.0, 3.0])] {
        let bands = Bands::of(&chip, &report);
        let shares = [
            (TimeCategory::Working, [1.0, 1.0]),
            (TimeCategory::Fetching, [0.5, 2.0]),
            (TimeCategory::Handling, protocol),
            (TimeCategory::Polling, protocol),
            (TimeCategory::Copying, copying),
        ];
        let expected = weighted(&report, &shares).map(|share| (share * report.time.0 as f64).floor());
        assert_close(bands.time.map(|time| time.0 as f64), expected);
        let named = bands.unknown.iter().filter(|name| *name == "memory_cached.read").count();
        assert_eq!(named, 1, "{bands:?}");
    }
}

#[test]
fn a_prediction_is_off_by_the_error_of_each_constant_that_it_rests_on() {
    let text = include_str!("../../../../chips/scc.toml");
    let world = world();
    world.endpoint(PlaceId(0)).work(&Work::new().streamed(1 << 20), Location::caller());
    let apart = gossip(&world);
    let shared = Report { stale: Some(Stale { number: 0, first: Vec::new() }), ..apart.clone() };
    let crowd = Report { is_memory_crowded: true, ..apart.clone() };
    let most = |text: &str, report: &Report| {
        let chip = Chip::parse("scc.toml", text).unwrap_or_else(|faults| panic!("{faults:?}"));
        Bands::of(&chip, report).time[1]
    };
    for (constant, error, report) in [
        ("5 cycles of core", "25 %", &apart),          // buffer_word
        ("98 cycles of core", "25 %", &apart),         // memory_cached
        ("66.7 cycles of memory", "factor 5", &crowd), // controller_line
        ("11 cycles of core", "25 %", &shared),        // memory_word
        ("7500 cycles of core", "10 %", &shared),      // flush_start
        ("300 cycles of core", "10 %", &shared),       // flush_line
        ("582000 cycles of core", "10 %", &shared),    // flush_all
    ] {
        let said = format!("\"{constant}\", error = \"{error}\"");
        let worse = text.replacen(&said, &format!("\"{constant}\", error = \"factor 9\""), 1);
        assert!(worse != text && most(&worse, report) > most(text, report), "{constant}");
    }
}

#[test]
fn nothing_is_counted_that_nobody_wants() {
    let world = world();
    gossip(&world);
    assert!(world.flows().is_empty());
    assert!(world.end_trace().is_ok());
}

#[test]
fn the_summary_says_what_the_report_says() {
    let (chip, world) = (scc(), world());
    let report = gossip(&world);
    let facts = RunFacts {
        chip: &chip,
        seed: 3,
        settings: &[("protocol", "a \"b\"\n".to_owned()), ("work", "said".to_owned())],
        host: Duration::from_millis(500),
        host_code: Duration::from_millis(250),
        host_uncharged: Duration::ZERO,
        regions: &[],
    };
    let text = export::summary(&facts, &report);
    let has = |line: String| assert!(text.lines().any(|other| other.trim() == line), "{line} in {text}");
    has(r#""schema": "isles.chip-summary.1","#.to_owned());
    has(r#""protocol": "a \"b\"\u000a","#.to_owned());
    has(format!(r#""predicted_ps": {},"#, report.time.0));
    has(format!(r#""digest": "{}","#, report.digest));
    has(format!(r#""flit_hops": {},"#, report.flit_hops));
    has(r#""work": "said","#.to_owned());
    has(r#""code_seconds": 0.25,"#.to_owned());
    has(format!(r#""events_per_second": {}"#, report.digest.events() * 2));
    let waited: u64 = report.ledgers.iter().map(|ledger| ledger.time(TimeCategory::Waiting).0).sum();
    has(format!(r#""waiting": {waited},"#));
    assert_eq!(text.matches("\"tile\": 2,").count(), 2);
    let busy: Vec<String> = report.controllers.iter().map(|busy| busy.0.to_string()).collect();
    let listed = text.split("\"controllers_busy_ps\": [").nth(1).unwrap().split(']').next().unwrap();
    assert_eq!(listed.split(',').map(str::trim).collect::<Vec<_>>().join(","), busy.join(","));
    assert_eq!(text.matches('{').count(), text.matches('}').count());
}

#[test]
fn the_summary_says_what_was_drawn_by_each_model() {
    let (chip, world) = (scc(), world());
    let report = gossip(&world);
    let facts = RunFacts {
        chip: &chip,
        seed: 3,
        settings: &[],
        host: Duration::from_millis(500),
        host_code: Duration::from_millis(250),
        host_uncharged: Duration::ZERO,
        regions: &[],
    };
    let text = export::summary(&facts, &report);
    let has = |line: String| assert!(text.lines().any(|other| other.trim() == line), "{line} in {text}");
    let energy = report.energy.as_ref().unwrap();
    for name in ["manyman", "cichowski", "manyman-cubic"] {
        let model = energy.models.iter().find(|model| model.name == name).unwrap();
        has(format!(r#""name": "{name}","#));
        has(format!(r#""total_j": {},"#, model.total().joules()));
        has(format!(r#""mean_w": {},"#, energy.mean(model).watts()));
        has(format!(r#""energy_delay_js": {},"#, energy.energy_delay(model)));
    }
    has(format!(r#""disagreement": {},"#, energy.disagreement().unwrap()));
    has(format!(r#""peak_w": {},"#, energy.profile.peak().power.watts()));
    let bands = Bands::of(&chip, &report);
    let (time, drawn) = (bands.time, bands.energy.unwrap());
    has(format!(r#""time_least_ps": {},"#, time[0].0));
    has(format!(r#""time_most_ps": {},"#, time[1].0));
    has(format!(r#""energy_least_j": {},"#, drawn.joules[0]));
    has(format!(r#""energy_most_j": {},"#, drawn.joules[1]));
    has(format!(r#""mean_least_w": {},"#, drawn.watts[0]));
    has(format!(r#""mean_most_w": {},"#, drawn.watts[1]));
    has(r#""code that is charged nothing","#.to_owned());
    has(r#""page": "docs/chip/validation.md#how-far-off-a-prediction-is""#.to_owned());
    assert_eq!(text.matches("\"energy_j\": ").count(), PLACES as usize);
    assert!(text.contains("power.manyman.load.poll = 0.7 (20 %)"), "{text}");
    let without = export::summary(&facts, &Report { energy: None, ..report });
    assert!(without.contains("\"mean_most_w\": null,"), "{without}");
    assert!(without.contains("\"energy\": null,") && !without.contains("energy_j"), "{without}");
}

#[test]
fn folded_stacks_of_joules_hold_all_that_was_drawn() {
    let report = gossip(&world());
    let energy = report.energy.unwrap();
    let own = &energy.models[0];
    let text = export::folded_joules("chip:a;b", scc().topology(), own);
    let sum: f64 = text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    let lost = own.total().joules() * 1e9 - sum;
    assert!((0.0..text.lines().count() as f64).contains(&lost), "{lost} nJ are lost in {text}");
    assert!(text.lines().all(|line| line.starts_with("chip:a_b;")), "{text}");
    assert!(
        text.contains("chip:a_b;tile 3;core 6;sleeping ") && text.contains("chip:a_b;uncore;mesh, flits ")
    );
}

#[test]
fn folded_stacks_hold_all_the_time_there_is() {
    let report = gossip(&world());
    let text = export::folded("chip:a;b", scc().topology(), &report);
    let sum: u64 = text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, report.ledgers.iter().map(|ledger| ledger.total().0).sum::<u64>());
    assert!(
        text.lines().all(|line| line.starts_with("chip:a_b;tile ") && line.matches(';').count() == 3),
        "{text}"
    );
}
