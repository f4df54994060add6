//! The SCC of the chip file compared with published figures of the chip: times by hops (V1, V2, V6), caches (V4, V8),
//! interrupts (V10), voltages, and power (V16, V17).
//!
//! The published figures are here and in `chips/scc-power.csv`, which no chip file reads, so the file cannot agree with
//! itself. Figures with which it was calibrated are no evidence for the model; the leave-one-out test below is.

use isles_chip::cost::{HopCost, Mode, TimingTable};
use isles_chip::energy::{Load, OperatingPoint, PowerModel};
use isles_chip::quantity::{Microvolts, Picoseconds, Rate};
use isles_chip::{Chip, Preset};
use isles_lab::fit::{Errors, Fit, Form, Measurement, Point, fit, table};

const STANDARD: &str = "533/800/800";
const FAST: &str = "800/1600/1066";

fn scc() -> Chip {
    Chip::find("scc").unwrap_or_else(|error| panic!("{error}"))
}

fn preset<'a>(chip: &'a Chip, name: &str) -> &'a Preset {
    chip.preset(name).expect("the file has the presets of the papers")
}

fn nanoseconds(time: Option<Picoseconds>) -> f64 {
    time.expect("the file has this cost").nanoseconds()
}

/// Returns the time in cycles of the preset's core clock.
fn cycles(time: Option<Picoseconds>, preset: &Preset) -> f64 {
    nanoseconds(time) * preset.clocks().core.megahertz() / 1e3
}

fn within(ours: f64, published: f64, percent: f64, what: &str) {
    let error = (ours / published - 1.0) * 100.0;
    assert!(error.abs() <= percent, "{what}: {ours} against {published}: {error:.1} %, allowed {percent} %");
}

#[test]
fn v1_lines_of_the_message_buffer_take_what_was_measured_at_each_distance() {
    let chip = scc();
    let times = preset(&chip, STANDARD).times();
    for hops in 0..=8 {
        let far = 5.0 * f64::from(hops);
        within(nanoseconds(times.read(Mode::BufferLine, hops)), 105.0 + far, 0.01, "read");
        within(nanoseconds(times.write(Mode::BufferLine, hops)), 145.0 + far, 0.01, "write");
    }
}

/// The recovery time was fitted to V3 for the SCC; there is no measurement of the other chip.
#[test]
fn links_recover_after_a_packet_where_the_file_says_so() {
    let recovery = |chip: &Chip| chip.links().pace(chip.default_preset().clocks()).recovery;
    assert_eq!(recovery(&scc()), Picoseconds(9 * 1_250));
    let other = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recovery(&other), Picoseconds::ZERO);
}

#[test]
fn v2_bandwidths_follow_from_the_line_times() {
    let chip = scc();
    let times = preset(&chip, STANDARD).times();
    let rate = |time: Option<Picoseconds>| 32.0 / nanoseconds(time) * 1e3;
    within(rate(times.read(Mode::BufferLine, 0)), 305.0, 1.0, "local read, MB/s");
    within(rate(times.read(Mode::BufferLine, 8)), 220.0, 1.0, "read over 8 hops, MB/s");
    within(rate(times.write(Mode::BufferLine, 0)), 220.0, 1.0, "local write, MB/s");
    within(rate(times.write(Mode::BufferLine, 8)), 173.0, 1.0, "write over 8 hops, MB/s");
}

#[test]
fn v4_a_core_alone_reads_memory_and_its_first_cache_as_fast_as_measured() {
    let chip = scc();
    let times = preset(&chip, STANDARD).times();
    let cores = (0..chip.topology().cores()).map(isles_chip::topology::CoreId);
    let mean =
        cores.map(|core| nanoseconds(times.read(Mode::MemoryCached, chip.hops_to_memory(core)))).sum::<f64>()
            / f64::from(chip.topology().cores());
    within(32.0 / mean * 1e3, 160.0, 10.0, "memory, MB/s");
    let first = times.first_cache.map(|span| span.over(0));
    within(32.0 / nanoseconds(first) * 1e3, 1220.0, 10.0, "first cache, MB/s");
}

#[test]
fn v6_the_cycle_table_of_the_fast_clocks_comes_out() {
    // Mode, write overhead, gap near and far, read near and far; core cycles at 800/1600/1066.
    let table = [
        (Mode::BufferWord, 5.0, [51.0, 84.0], [58.0, 91.0]),
        (Mode::BufferLine, 29.0, [78.0, 108.0], [67.0, 97.0]),
        (Mode::MemoryWord, 11.0, [106.0, 137.0], [117.0, 145.0]),
        (Mode::MemoryThrough, 35.0, [130.0, 161.0], [123.0, 153.0]),
        (Mode::MemoryCached, 98.0, [107.0, 123.0], [150.0, 174.0]),
    ];
    let chip = scc();
    let preset = preset(&chip, FAST);
    let times = preset.times();
    for (mode, issue, gap, read) in table {
        within(cycles(times.issue(mode), preset), issue, 1.0, mode.name());
        for (end, hops) in [0, 8].into_iter().enumerate() {
            within(cycles(times.write(mode, hops), preset), gap[end], 1.0, mode.name());
            within(cycles(times.read(mode, hops), preset), read[end], 1.0, mode.name());
        }
    }
}

#[test]
fn words_of_buffers_and_memory_take_what_barrelfish_measured_at_each_distance() {
    let chip = scc();
    let preset = preset(&chip, STANDARD);
    let times = preset.times();
    // The row y = 0 of the table of word reads from tile (0,0), and memory through the four controllers.
    for (hops, published) in [(1, 63.0), (2, 69.0), (3, 72.0), (4, 78.0), (5, 84.0), (8, 102.0)] {
        within(cycles(times.read(Mode::BufferWord, hops), preset), published, 5.0, "word of a buffer");
    }
    for (hops, published) in [(0, 97.0), (5, 121.0), (2, 105.0), (7, 134.0)] {
        within(cycles(times.read(Mode::MemoryWord, hops), preset), published, 5.0, "word of memory");
    }
    for (hops, published) in [(0, 122.0), (5, 146.0), (2, 134.0), (7, 158.0)] {
        within(
            cycles(times.write(Mode::MemoryThrough, hops), preset),
            published,
            5.0,
            "line written through",
        );
    }
}

#[test]
fn v8_flushes_of_the_second_cache_take_what_was_measured() {
    let chip = scc();
    let preset = preset(&chip, FAST);
    let times = preset.times();
    let flush = |lines| cycles(times.flush(lines), preset);
    within(flush(1), 8_000.0, 10.0, "a line");
    within(flush(128), 47_100.0, 10.0, "a page");
    within(flush(8192), 582_000.0, 10.0, "the whole cache");
}

#[test]
fn v10_an_interrupt_of_all_cores_takes_three_times_that_of_one() {
    let chip = scc();
    let port = chip.interrupts().expect("the chip has an interrupt controller");
    let preset = preset(&chip, STANDARD);
    let times: TimingTable<HopCost> = preset.times();
    within(cycles(times.interrupt(1, port), preset), 2_000.0, 20.0, "one target");
    within(cycles(times.interrupt(20, port), preset), 2_000.0, 20.0, "twenty targets");
    within(cycles(times.interrupt(48, port), preset), 6_000.0, 20.0, "all targets");
}

#[test]
fn both_sides_of_the_conflict_about_a_hop_can_be_chosen() {
    let chip = scc();
    let hop = |name: &str| {
        let times = preset(&chip, name).times();
        nanoseconds(times.read(Mode::BufferLine, 1)) - nanoseconds(times.read(Mode::BufferLine, 0))
    };
    assert_eq!((hop(STANDARD), hop("533/800/800 formula")), (5.0, 10.0));
    within(hop(FAST), 4.7, 1.0, "a hop at the fast clocks");
}

#[test]
fn the_structure_is_that_of_the_chip() {
    let chip = scc();
    let topology = chip.topology();
    assert_eq!((topology.cores(), topology.tiles(), chip.controllers()), (48, 24, 4));
    assert_eq!((chip.frequency_domains(), chip.voltage_domains()), (24, 6));
    for tile in (0..24).map(isles_chip::topology::TileId) {
        let [x, y, _] = topology.coordinates(tile);
        assert_eq!(chip.voltage_domain(tile).0, x / 2 + 3 * (y / 2), "as RCCE counts");
        let nearest =
            (0..4).map(isles_chip::ControllerId).map(|id| topology.hops(tile, chip.controller_tile(id)));
        let own = topology.hops(tile, chip.controller_tile(chip.controller_of(tile)));
        assert_eq!(Some(own), nearest.min(), "the controller of the quadrant is the nearest");
    }
    let rates: Vec<u64> = chip
        .dividers()
        .map(|dividers| dividers.rates().map(|rate| rate.megahertz() as u64).collect())
        .unwrap_or_default();
    assert_eq!(rates, [800, 533, 400, 320, 266, 228, 200, 177, 160, 145, 133, 123, 114, 106, 100]);
}

#[test]
fn each_author_gives_the_voltage_of_each_rate() {
    let chip = scc();
    let source = Rate::new(1_600_000_000, 1).unwrap();
    let volts = |table: &str, divider| {
        let rate = source.divided_by(divider).unwrap();
        chip.voltage_table(table).and_then(|table| table.voltage(rate)).map(|voltage| voltage.volts())
    };
    let all = |table| [2, 3, 4, 5, 6, 7, 16].map(|divider| volts(table, divider).unwrap());
    assert_eq!(all("manyman"), [1.1625, 0.85625, 0.75625, 0.69375, 0.66875, 0.65625, 0.65625]);
    assert_eq!(all("cichowski"), [1.1, 0.8, 0.7, 0.7, 0.7, 0.7, 0.7]);
    assert_eq!(all("rcce")[..2], [1.1, 0.8]);
    assert_eq!(volts("manyman", 1), None, "1600 MHz has no voltage");
}

/// Returns the table of ManyMan: MHz, volts, load and watts of the chip.
fn manyman() -> Vec<Measurement> {
    table::read("scc-power.csv", include_str!("../../../chips/scc-power.csv"))
        .expect("the table has no fault")
}

fn point(megahertz: u64, volts: f64) -> OperatingPoint {
    let rate = Rate::new(megahertz * 1_000_000, 1).unwrap();
    OperatingPoint { rate, voltage: Microvolts((volts * 1e6).round() as u32) }
}

fn model<'a>(chip: &'a Chip, name: &str) -> &'a PowerModel {
    chip.power_model(name).expect("the file has the models of the papers")
}

/// Asserts that the errors equal the published ones, in per cent to the last given digit.
fn assert_errors(errors: Errors, mean: f64, max: f64) {
    let near = |ours: f64, published: f64| (ours * 100.0 - published).abs() <= 0.05 + 1e-9;
    assert!(near(errors.mean, mean) && near(errors.max, max), "{errors:?} instead of {mean} % and {max} %");
}

/// Asserts the relative errors of a model of the chip file on these measurements, in per cent.
fn assert_meets(name: &str, measurements: &[Measurement], mean: [f64; 2], max: [f64; 2]) {
    let chip = scc();
    let error = |measured: &Measurement| {
        let at = point(measured.rates.mean(|rate| rate) as u64, measured.volts.unwrap_or_default());
        (model(&chip, name).chip(48, measured.load, at).watts() / measured.watts - 1.0).abs() * 100.0
    };
    let errors: Vec<f64> = measurements.iter().map(error).collect();
    let (ours, worst) =
        (errors.iter().sum::<f64>() / errors.len() as f64, errors.iter().copied().fold(0.0, f64::max));
    assert!((mean[0]..mean[1]).contains(&ours), "mean {ours:.2} %");
    assert!((max[0]..max[1]).contains(&worst), "largest {worst:.2} %");
}

fn of_load(load: Load) -> Vec<Measurement> {
    manyman().into_iter().filter(|measurement| measurement.load == load).collect()
}

#[test]
fn v16_the_fitted_model_meets_the_sixteen_powers() {
    let all = manyman();
    assert_eq!(all.len(), 16);
    assert_meets("manyman", &all, [1.9, 2.1], [4.5, 4.7]);
}

#[test]
fn v16_the_cube_of_the_rate_meets_the_loaded_powers() {
    assert_meets("manyman-cubic", &of_load(Load::Compute), [1.9, 2.1], [0.0, 10.0]);
}

#[test]
fn v17_the_model_of_cichowski_gives_its_published_powers() {
    let published = [
        (800, 72.6),
        (533, 37.7),
        (400, 29.2),
        (320, 26.2),
        (267, 24.9),
        (229, 24.2),
        (200, 23.8),
        (100, 23.1),
    ];
    let chip = scc();
    let model = model(&chip, "cichowski");
    for (megahertz, watts) in published {
        let ours = model.chip(48, Load::Compute, point(megahertz, 1.0)).watts();
        assert!((ours - watts).abs() < 0.06, "{megahertz} MHz: {ours} W against {watts} W");
    }
}

#[test]
fn v18_the_mesh_draws_what_intel_measured() {
    let chip = scc();
    let mesh = chip.mesh_power().unwrap();
    let fast = Rate::new(2_000_000_000, 1).unwrap();
    let routers = f64::from(chip.topology().tiles());
    within(mesh.router_at_full_load(fast).watts() * routers, 13.2, 5.0, "24 routers");
    // A line of 32 bytes with its header is three flits: 0.43 pJ per bit and hop, a part of which is due to the clock.
    let full = mesh.router_at_full_load(fast).watts() / 2e9 / 5.0 * 1e12;
    within(full / 128.0, 0.43, 1.0, "pJ a bit and hop");
    within(mesh.flit().joules() * 1e12, 0.3 * full, 1.0, "pJ a flit and hop");
}

/// Returns the values of the coefficients.
fn values(fit: &Fit) -> Vec<f64> {
    fit.coefficients.iter().map(|coefficient| coefficient.value).collect()
}

#[test]
fn the_coefficients_in_the_file_are_those_of_the_fit() {
    let fit = fit(Form::Voltage, &manyman()).expect("the table determines the form");
    for (ours, published) in values(&fit).into_iter().zip([12.10, 20.37, 0.0603, 0.0166]) {
        within(ours, published, 0.5, "coefficient");
    }
    within(fit.factors[0].value, 0.2753, 0.1, "factor of idle cores");
    assert_errors(fit.errors, 2.0, 4.6);
}

#[test]
fn leaving_a_rate_out_predicts_it_within_a_few_per_cent() {
    let fit = fit(Form::Voltage, &manyman()).expect("the table determines the form");
    assert_errors(fit.left_out.expect("each rate can be left out"), 3.4, 12.2);
    let worst = fit.points.iter().max_by(|one, other| {
        let error = |point: &Point| (point.predicted.unwrap_or_default() / point.measured.watts - 1.0).abs();
        error(one).total_cmp(&error(other))
    });
    let worst = worst.expect("there are points").measured;
    assert_eq!(
        (worst.rates.mean(|rate| rate), worst.load),
        (800.0, Load::Sleep),
        "where it was published to be"
    );
}

/// Asserts values and standard errors, in the order of the form, as computed by another solver: NumPy's `lstsq` on the
/// same relative rows, and for the exponent a search in steps of 0.0005 around it.
fn assert_coefficients(fit: &Fit, expected: &[(f64, f64)]) {
    assert_eq!(fit.coefficients.len(), expected.len());
    for (ours, (value, error)) in fit.coefficients.iter().zip(expected) {
        within(ours.value, *value, 0.01, &ours.name);
        within(ours.error.expect("each is free"), *error, 0.1, &ours.name);
    }
}

#[test]
fn another_solver_gives_the_same_coefficients_and_standard_errors() {
    let all = fit(Form::Voltage, &manyman()).expect("the table determines the form");
    assert_coefficients(
        &all,
        &[
            (12.1047723, 1.02865398),
            (20.3667236, 5.53724503),
            (0.0603139794, 0.00676832),
            (0.0166095827, 0.00671867),
        ],
    );
    let factor = &all.factors[0];
    within(factor.value, 0.27538529, 0.001, "factor");
    within(factor.error.expect("both parts are free"), 0.08225202, 0.01, "factor");
    within(all.correlation.expect("both change"), 0.95846819, 0.001, "correlation");
}

#[test]
fn another_solver_gives_the_same_exponents() {
    let half = |load| fit(Form::Rate { exponent: None }, &of_load(load)).expect("eight powers determine it");
    let loaded = half(Load::Compute);
    let expected = [
        (1.24471366e-7, 2.247315e-7),
        (3.03687152, 0.26242530),
        (0.0103068636, 0.00807849),
        (19.7527566, 1.08703750),
    ];
    assert_coefficients(&loaded, &expected);
    assert_errors(loaded.errors, 1.08, 3.40);
    let idle = half(Load::Sleep);
    let expected = [
        (1.11860679e-12, 3.17224624e-12),
        (4.64833439, 0.41965758),
        (0.0160224925, 0.00236474),
        (16.2280909, 0.46845256),
    ];
    assert_coefficients(&idle, &expected);
    assert_errors(idle.errors, 0.74, 2.57);
}

#[test]
fn the_published_exponent_can_be_kept() {
    let form = Form::Rate { exponent: Some(3.0) };
    let fit = fit(form, &of_load(Load::Compute)).expect("eight powers determine it");
    for (ours, theirs) in values(&fit).into_iter().zip([1.60419910e-7, 3.0, 9.24476697e-3, 19.8740761]) {
        within(ours, theirs, 0.001, "as NumPy");
    }
    assert_eq!(fit.coefficients[1].error, None, "what is given has no error");
}
