//! Tests of the reader: it reports every fault of a file, each in one line with its position.

use super::*;
use crate::cost::{NANOCYCLES, Operation};
use crate::quantity::Picoseconds;
use proptest::prelude::*;

const MESH: &str = include_str!("../../../../chips/mesh.toml");

#[test]
fn the_chips_that_come_with_the_product_load() {
    for (name, text) in BUILT_IN {
        let chip = Chip::parse(&format!("chips/{name}.toml"), text);
        let chip = chip.unwrap_or_else(|faults| panic!("{}", FindError::Faulty(faults)));
        assert_eq!(chip.name(), *name);
        assert!(chip.constants().iter().all(|constant| chip.source(&constant.source).is_some()));
    }
}

/// Returns the faults of the example mesh with `piece` replaced, and the line of `piece`.
fn broken(piece: &str, by: &str) -> (Vec<Fault>, usize) {
    assert_eq!(MESH.matches(piece).count(), 1, "{piece:?} stands once in the file");
    let at = MESH.find(piece).unwrap_or_default();
    let line = MESH[..at].matches('\n').count() + 1;
    let result = Chip::parse("my.toml", &MESH.replace(piece, by));
    (result.err().unwrap_or_default(), line)
}

/// Asserts that the only fault is on the line of the change and contains `text`.
fn one_fault(piece: &str, by: &str, text: &str) {
    let (faults, line) = broken(piece, by);
    let [fault] = faults.as_slice() else { panic!("{by:?}: {}", FindError::Faulty(faults)) };
    let said = fault.to_string();
    assert_eq!(fault.line, line, "{said}");
    assert!(
        said.starts_with(&format!("my.toml:{line}: ")) && said.contains(text),
        "{said}\ninstead of {text}"
    );
    assert!(said.contains("; allowed: "), "{said} does not say what is allowed");
}

#[test]
fn an_unknown_key_is_named_with_the_known_ones() {
    let (piece, by) = ("per_core = \"16 KiB\"", "colour = \"red\"\nper_core = \"16 KiB\"");
    one_fault(
        piece,
        by,
        "buffer.colour is not a known key; allowed: error, note, per_core, readers_free, source, \
         test_and_set",
    );
}

#[test]
fn a_key_with_a_slip_is_an_unknown_and_a_missing_one() {
    let (faults, line) = broken("cores_per_tile = 1", "core_per_tile = 1");
    let said: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert!(said.iter().any(|said| said.contains("topology.cores_per_tile is missing")), "{said:?}");
    let unknown = format!(
        "my.toml:{line}: topology.core_per_tile is not a known key; allowed: cores_per_tile, \
             error"
    );
    assert!(said.iter().any(|said| said.starts_with(&unknown)), "{said:?}");
}

#[test]
fn a_number_without_its_unit_is_refused() {
    let text = "preset.\"1000/1000/800\".first_cache is \"3\"; it has no unit";
    one_fault("first_cache = \"3 cycles of core\"", "first_cache = \"3\"", text);
    let text = "preset.\"1000/1000/800\".first_cache is 3; it has no unit";
    one_fault("first_cache = \"3 cycles of core\"", "first_cache = 3", text);
    one_fault("per_core = \"16 KiB\"", "per_core = 16384", "buffer.per_core is 16384; it has no unit");
}

#[test]
fn a_unit_of_another_kind_is_refused() {
    one_fault("per_core = \"16 KiB\"", "per_core = \"16 ns\"", "\"16 ns\"; ns measures a time");
    one_fault("voltage_change = \"100 us\"", "voltage_change = \"100 V\"", "V measures a voltage");
    one_fault("constant = \"2 W\"", "constant = \"2 MHz\"", "power.invented.constant is \"2 MHz\"");
    one_fault("mesh = \"1000 MHz\"", "mesh = \"1000 ns\"", "ns measures a time");
}

#[test]
fn a_unit_that_is_none_is_refused() {
    one_fault("voltage_change = \"100 us\"", "voltage_change = \"100 blinks\"", "unknown unit \"blinks\"");
}

#[test]
fn a_negative_latency_is_refused() {
    one_fault(
        "voltage_change = \"100 us\"",
        "voltage_change = \"-100 us\"",
        "is \"-100 us\"; it is negative, not zero or more; allowed: ",
    );
    one_fault(
        "test_and_set_per_core = 1",
        "test_and_set_per_core = -1",
        "buffer.test_and_set_per_core is -1",
    );
    one_fault("leakage = \"0.05 W/V^3\"", "leakage = \"-0.05 W/V^3\"", "it is negative");
}

#[test]
fn an_operation_takes_cycles_of_its_core_above_zero() {
    let of = |value: &str| format!("float = {value:?}");
    let printed = |value: &str, text: &str| {
        let text = format!("core.operation.float is {value:?}; {text}; allowed: cycles of core above zero");
        one_fault(&of("4 cycles of core"), &of(value), &text);
    };
    printed("4 ns", "it is more than cycles of core");
    printed("4 cycles of mesh", "it is more than cycles of core");
    printed("4 cycles of core + 1 cycle/hop of mesh", "it is more than cycles of core");
    printed("4 cycles", "it does not name the clock of the cycles");
    printed("0 cycles of core", "it is zero");
    printed("-4 cycles of core", "it is negative, not zero or more");
    printed("4 ns of core", "a time in clock cycles is meaningful only inside a preset");
    let text = "core.operation.colour is not a known key; allowed: branch, division, error, float, \
         integer";
    one_fault(&of("4 cycles of core"), &format!("colour = 1\n{}", of("4 cycles of core")), text);
}

#[test]
fn operations_that_a_file_leaves_out_take_a_cycle() {
    let chip = |text: &str| Chip::parse("my.toml", text).unwrap();
    let costs = |chip: &Chip| Operation::ALL.map(|operation| chip.operations().nanocycles(operation, 2));
    assert_eq!(costs(&chip(MESH)), [2, 8, 48, 3].map(|cycles| cycles * NANOCYCLES));
    let some = MESH.replace("division = \"24 cycles of core\"", "");
    assert_eq!(costs(&chip(&some)), [2, 8, 2, 3].map(|cycles| cycles * NANOCYCLES));
    assert_eq!(costs(&Chip::find("bluegene-p").unwrap()), [2 * NANOCYCLES; 4]);
}

#[test]
fn a_tile_outside_of_the_mesh_is_refused() {
    one_fault(
        "serves_to = [3, 1]",
        "serves_to = [4, 1]",
        "memory.controller.serves_to is [4, 1]; it is outside",
    );
    one_fault("at = [3, 3]", "at = [4, 3]", "memory.controller.at is [4, 3]; it is outside the tiles");
}

#[test]
fn tiles_have_one_controller_each() {
    let (faults, _) = broken("serves_to = [3, 1]", "serves_to = [2, 1]");
    assert_eq!(faults.len(), 1);
    assert!(faults[0].text.contains("2 tiles have no memory controller"), "{}", faults[0]);
    let (faults, _) = broken("serves_to = [3, 1]", "serves_to = [3, 2]");
    assert_eq!(faults.len(), 1);
    assert!(faults[0].text.contains("the tile at [0, 2, 0] already has a controller"), "{}", faults[0]);
    let (faults, _) = broken("# each_tile = true ", "each_tile = true ");
    assert!(faults[0].text.contains("allowed: one of the two"), "{}", faults[0]);
}

#[test]
fn a_frequency_that_no_voltage_allows_is_refused() {
    let (faults, _) = broken("[\"1000 MHz\", \"1 V\"]", "[\"900 MHz\", \"1 V\"]");
    let [fault] = faults.as_slice() else { panic!("{}", FindError::Faulty(faults)) };
    let text =
        "no voltage of table \"invented\" allows 1000 MHz, the smallest divider; allowed: at most 900 MHz";
    assert_eq!(fault.text, text);
    let fixed = MESH.replace("divided = \"2000 MHz\"", "").replace("dividers = [2, 16]", "");
    let faults = Chip::parse("my.toml", &fixed.replace("core = \"2000 MHz / 2\"", "core = \"1200 MHz\""));
    let faults = faults.expect_err("1200 MHz have no voltage");
    let text = "no voltage of table \"invented\" allows 1200 MHz, the core of preset \"1000/1000/800\"; allowed: at \
         most 1000 MHz";
    assert_eq!(faults.iter().map(|fault| fault.text.as_str()).collect::<Vec<_>>(), [text]);
}

#[test]
fn a_frequency_that_no_divider_gives_is_refused() {
    let (faults, _) = broken("core = \"2000 MHz / 2\"", "core = \"700 MHz\"");
    let [fault] = faults.as_slice() else { panic!("{}", FindError::Faulty(faults)) };
    assert!(fault.text.ends_with("is at 700 MHz; allowed: 2000 MHz divided by 2 to 16"), "{fault}");
}

#[test]
fn what_is_divided_may_be_a_fraction_itself() {
    let text = MESH.replace("divided = \"2000 MHz\"", "divided = \"6000 MHz / 3\"");
    let chip = Chip::parse("my.toml", &text).unwrap_or_else(|faults| panic!("{}", FindError::Faulty(faults)));
    let dividers = chip.dividers().unwrap();
    for (divider, rate) in (2..).zip(dividers.rates()) {
        assert_eq!(dividers.divider(rate), Some(divider));
    }
    assert_eq!(dividers.divider(dividers.source), None);
    assert_eq!(dividers.rates().count(), 15);
}

#[test]
fn a_constant_without_source_does_not_load() {
    let (faults, _) = broken("source = \"invented\"\nper_core", "per_core");
    let said: Vec<&str> = faults.iter().map(|fault| fault.text.as_str()).collect();
    let text = |key| format!("buffer.{key} has no source; allowed: one of [sources]: invented");
    assert_eq!(said, [text("per_core"), text("test_and_set_per_core"), text("readers_free")]);
}

#[test]
fn a_source_that_is_not_listed_is_refused() {
    let piece = "readers_free = { value = 4, error = \"unknown\" }";
    let by = "readers_free = { value = 4, error = \"unknown\", source = \"me\" }";
    one_fault(piece, by, "memory.readers_free.source is \"me\"; allowed: one of [sources]: invented");
    let (faults, _) = broken("[links]\nsource = \"invented\"", "[links]\nsource = \"me\"");
    let said: Vec<&str> = faults.iter().map(|fault| fault.text.as_str()).collect();
    assert_eq!(said, ["links.source is \"me\"; allowed: one of [sources]: invented"], "once for all in it");
    one_fault(
        "invented = \"Invented as",
        "empty = \" \"\ninvented = \"Invented as",
        "sources.empty is \" \"",
    );
}

#[test]
fn a_measured_constant_without_error_does_not_load() {
    let piece = "readers_free = { value = 4, error = \"unknown\" }";
    one_fault(piece, "readers_free = 4", "memory.readers_free has no error");
}

#[test]
fn an_error_of_another_kind_than_its_value_is_refused() {
    let by = "voltage_change = { value = \"100 us\", error = \"5 V\" }";
    one_fault(
        "voltage_change = \"100 us\"",
        by,
        "the error of preset.\"1000/1000/800\".voltage_change is \"5 V\"",
    );
}

#[test]
fn what_is_counted_is_exact_inside_of_a_measured_section_unless_it_says_otherwise() {
    let text = MESH.replace("mesh = \"1000 MHz\"", "mesh = { value = \"1000 MHz\", error = \"1 %\" }");
    let chip = Chip::parse("my.toml", &text).unwrap_or_else(|faults| panic!("{}", FindError::Faulty(faults)));
    let band = |key: &str| {
        let path = format!("preset.\"1000/1000/800\".{key}");
        chip.constants().iter().find(|constant| constant.path == path).map(|constant| constant.band)
    };
    assert_eq!(band("core"), Some(Band::Exact));
    assert_eq!(band("mesh"), Some(Band::Percent(1.0)));
    assert_eq!(band("first_cache"), Some(Band::Unknown));
}

#[test]
fn a_constant_without_value_is_refused() {
    let by = "voltage_change = { error = \"5 us\" }";
    one_fault("voltage_change = \"100 us\"", by, "voltage_change.value is missing");
}

#[test]
fn a_cost_of_registers_that_no_core_has_is_refused() {
    for by in ["test_and_set_per_core = 0", "# none"] {
        let (faults, _) = broken("test_and_set_per_core = 1", by);
        let said: Vec<&str> = faults.iter().map(|fault| fault.text.as_str()).collect();
        let text = "preset.\"1000/1000/800\".test_and_set is the cost of a register; allowed: none while \
                    buffer.test_and_set_per_core is 0 or left out";
        assert_eq!(said, [text], "{by}");
    }
}

#[test]
fn names_that_lead_nowhere_are_refused() {
    one_fault(
        "default = \"1000/1000/800\"",
        "default = \"fast\"",
        "clocks.default is \"fast\"; allowed: a preset: 1000",
    );
    one_fault("voltages = \"invented\"", "voltages = \"mine\"", "power.invented.voltages is \"mine\"");
    let (before, rest) = MESH.split_once("[voltages.invented]").unwrap();
    let (_, rest) = rest.split_once("\n[power").unwrap();
    let faults = Chip::parse("my.toml", &format!("{before}[power{rest}")).unwrap_err();
    let says = "voltages is \"invented\"; allowed: a [voltages.NAME] section; the file has none";
    assert!(faults.iter().any(|fault| fault.text.ends_with(says)), "{faults:?}");
}

#[test]
fn blocks_that_do_not_fill_the_chip_are_refused() {
    one_fault("voltage = [2, 2]", "voltage = [3, 2]", "domains.voltage is [3, 2]; such blocks do not fill");
}

#[test]
fn a_chip_of_too_many_or_no_cores_is_refused() {
    let (faults, _) = broken("tiles = [4, 4]", "tiles = [4000, 4000]");
    assert!(faults.iter().any(|fault| {
        fault
            .text
            .starts_with("topology.tiles is [4000, 4000, 1] with 1 cores_per_tile; allowed: at most 1048576")
    }));
    let (faults, line) = broken("tiles = [4, 4]", "tiles = [0, 4]");
    assert!(
        faults.iter().any(|fault| fault.line == line && fault.text.starts_with("topology.tiles is [0, 4]"))
    );
}

#[test]
fn a_shape_that_nobody_knows_is_refused() {
    let (faults, line) = broken("shape = \"mesh\" ", "shape = \"ring\" ");
    let text = "topology.shape is \"ring\"; allowed: \"mesh\", \"torus\" or \"crossbar\"";
    assert_eq!(faults.iter().filter(|fault| fault.line == line && fault.text == text).count(), 1);
}

#[test]
fn voltages_that_do_not_rise_are_refused() {
    let piece = "[[\"500 MHz\", \"0.8 V\"], [\"1000 MHz\", \"1 V\"]]";
    one_fault(piece, "[[\"1000 MHz\", \"1 V\"], [\"1000 MHz\", \"1 V\"]]", "it is not ascending");
    one_fault(piece, "[[\"1000 MHz\", \"0.9 V\"], [\"1000 MHz\", \"1 V\"]]", "it is not ascending");
    one_fault(piece, "[[\"900 MHz\", \"1 V\"], [\"1000 MHz\", \"1 V\"]]", "it is not ascending");
    one_fault(piece, "[]", "voltages.invented.steps is []");
    one_fault(piece, "[[\"1000 MHz\"]]", "allowed: a list of pairs");
}

#[test]
fn a_power_model_has_one_of_two_forms() {
    let (faults, _) = broken("leakage = \"0.05 W/V^3\"", "cubic = \"1e-9 W/MHz^3\"");
    assert!(
        faults[0].text.contains("power.invented has no form; allowed: cubic and linear"),
        "{}",
        faults[0]
    );
}

#[test]
fn cycles_say_of_which_clock_they_are() {
    one_fault("interrupt = \"500 cycles of core\"", "interrupt = \"500 cycles\"", "the clock of the cycles");
    one_fault("head = \"3 cycles of mesh\"", "head = \"3 ns of mesh\"", "only inside a preset");
}

#[test]
fn dividers_come_with_what_they_divide() {
    let (faults, _) = broken("dividers = [2, 16]", "");
    assert!(faults[0].text.contains("clocks has only one of divided and dividers"), "{}", faults[0]);
    one_fault("dividers = [2, 16]", "dividers = [16, 2]", "clocks.dividers is [16, 2]");
}

#[test]
fn what_is_no_toml_is_said_with_its_line() {
    let (faults, line) = broken("shape = \"mesh\" ", "shape = mesh ");
    assert!(faults.len() == 1 && faults[0].line == line, "{faults:?}");
    assert!(faults[0].text.starts_with("this is not TOML: "), "{faults:?}");
    let prose = "Not a chip at all.\n".repeat(40);
    let faults = Chip::parse("prose.toml", &prose).unwrap_err();
    assert!(faults.len() == 1 && faults[0].line == 1, "a line for each line: {faults:?}");
}

/// Parses the SCC's file with `head` in place of the heading and first line of a preset that is like another.
fn with_preset(head: &str) -> Result<Chip, Vec<Fault>> {
    let scc = include_str!("../../../../chips/scc.toml");
    let before = "[preset.\"533/800/800 quadrant\"]\nlike = \"533/800/800\"\n";
    assert!(scc.contains(before));
    Chip::parse("scc.toml", &scc.replace(before, head))
}

#[test]
fn a_preset_that_is_like_another_differs_in_what_it_says() {
    let chip = Chip::find("scc").unwrap();
    let [same, other] = ["533/800/800", "533/800/800 quadrant"].map(|name| chip.preset(name).unwrap());
    assert_eq!(same.clocks(), other.clocks());
    let nanoseconds = |preset: &crate::Preset| preset.times().controller_line.unwrap().over(0).nanoseconds();
    assert_eq!((nanoseconds(same), nanoseconds(other)), (83.375, 20.5));
    for mode in crate::cost::Mode::ALL {
        assert_eq!(
            same.times().access(mode).map(|access| access.read),
            other.times().access(mode).map(|access| access.read)
        );
    }
    let of_read = |name: &str| {
        let path = format!("preset.{name:?}.memory_cached.read");
        chip.constants().iter().find(|constant| constant.path == path).unwrap().clone()
    };
    let [same, other] = ["533/800/800", "533/800/800 quadrant"].map(of_read);
    assert_eq!((same.value, same.source, same.error), (other.value, other.source, other.error));
}

#[test]
fn a_preset_is_like_one_that_is_whole() {
    for (like, name) in
        [("533/800/801", "\"533/800/801\""), ("533/800/800 quadrant", "\"533/800/800 quadrant\"")]
    {
        let faults =
            with_preset(&format!("[preset.\"533/800/800 quadrant\"]\nlike = \"{like}\"\n")).unwrap_err();
        let text = format!(
            "preset.\"533/800/800 quadrant\".like is {name}; allowed: a preset that is like no other: "
        );
        assert!(faults[0].text.starts_with(&text), "{faults:?}");
    }
}

#[test]
fn all_faults_of_a_file_come_at_once_in_the_order_of_their_lines() {
    let text = MESH
        .replace("per_core = \"16 KiB\"", "per_core = \"16 ns\"")
        .replace("at = [3, 3]", "at = [9, 9]")
        .replace("first_cache = \"3 cycles of core\"", "first_cache = \"3\"")
        .replace("sleep = 0.1", "sleep = 11.0");
    let faults = Chip::parse("my.toml", &text).expect_err("it has four faults");
    assert_eq!(faults.len(), 4, "{}", FindError::Faulty(faults));
    assert!(faults.is_sorted_by_key(|fault| fault.line));
}

#[test]
fn an_empty_file_says_all_that_it_lacks() {
    let faults = Chip::parse("my.toml", "").expect_err("an empty file is no chip");
    for part in ["title", "sources", "topology", "core", "memory", "links", "clocks", "preset"] {
        let start = format!("{part} is missing; allowed: ");
        assert!(faults.iter().any(|fault| fault.text.starts_with(&start)), "{part}");
    }
}

#[test]
fn a_text_that_is_too_long_is_not_read() {
    let faults = Chip::parse("my.toml", &"#".repeat(TEXT_BYTES_MAX + 1)).expect_err("it is too long");
    assert_eq!(faults.len(), 1);
}

#[test]
fn names_and_paths_are_told_apart() {
    assert!(matches!(Chip::find("moon"), Err(FindError::NoSuchChip(_))));
    assert!(matches!(Chip::find("moon.toml"), Err(FindError::Unreadable(..))));
    assert_eq!(Chip::find("moon").map(|_| ()).unwrap_err().to_string().lines().count(), 1);
}

/// Chip files with a random piece replaced.
fn mutated() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("\"".to_owned()),
        Just("[[memory.controller]]\n".to_owned()),
        Just("[preset.x]\n".to_owned()),
        Just(" = { value = 1 }\n".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("-".to_owned()),
        Just("+ 5 ns/hop of core".to_owned()),
        Just("\u{1f30a}\u{0}".to_owned()),
        any::<String>(),
    ];
    (0..BUILT_IN.len(), any::<prop::sample::Index>(), 0..40_usize, pieces).prop_map(
        |(chip, at, cut, piece)| {
            let characters: Vec<char> = BUILT_IN[chip].1.chars().collect();
            let start = at.index(characters.len());
            let end = (start + cut).min(characters.len());
            characters[..start]
                .iter()
                .copied()
                .chain(piece.chars())
                .chain(characters[end..].iter().copied())
                .collect()
        },
    )
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let faults = Chip::parse("my.toml", &text).expect_err("no random text is a chip");
        prop_assert!(!faults.is_empty());
    }

    #[test]
    fn a_mutated_chip_loads_or_says_why_in_lines_of_its_own(text in mutated()) {
        let lines = text.matches('\n').count() + 1;
        match Chip::parse("my.toml", &text) {
            Ok(chip) => prop_assert!(chip.topology().cores() > 0 && !chip.presets().is_empty()),
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                for fault in faults {
                    prop_assert!((1..=lines).contains(&fault.line), "{fault}");
                    prop_assert!(!fault.to_string().contains('\n'));
                }
            }
        }
    }
}

#[test]
fn the_power_of_a_mesh_is_checked() {
    one_fault("moving = 0.3", "moving = 1.3", "mesh_power.moving is 1.3; allowed: a number from 0 to 1");
    one_fault("router = \"20 mW\"", "router = \"20 mV\"", "mesh_power.router is");
    one_fault("supply = \"1 V\"", "supply = \"0 V\"", "mesh_power.supply is \"0 V\"; it is zero");
    let chip = Chip::parse("mesh.toml", MESH).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert!(chip.mesh_power().is_some());
    let without = MESH.split("[mesh_power]").next().unwrap_or_default();
    assert_eq!(
        Chip::parse("mesh.toml", without).unwrap_or_else(|faults| panic!("{faults:?}")).mesh_power(),
        None
    );
}

#[test]
fn a_preset_and_a_power_model_can_be_chosen_of_those_of_the_file() {
    let chip = Chip::find("scc").unwrap();
    let fast = chip.clone().with_preset("800/1600/1066").unwrap();
    assert_eq!(fast.default_preset().name(), "800/1600/1066");
    assert_ne!(fast.fingerprint(), chip.fingerprint());
    assert_eq!(chip.clone().with_preset(chip.default_preset().name()), Some(chip.clone()));
    assert_eq!(chip.clone().with_preset("533"), None);

    let names =
        |chip: &Chip| chip.power_models().iter().map(|model| model.name().to_owned()).collect::<Vec<_>>();
    let other = chip.clone().with_power_model("manyman-cubic").unwrap();
    assert_eq!(
        (names(&chip), names(&other)),
        (
            ["manyman", "cichowski", "manyman-cubic"].map(str::to_owned).to_vec(),
            ["manyman-cubic", "manyman", "cichowski"].map(str::to_owned).to_vec(),
        )
    );
    assert_ne!(other.fingerprint(), chip.fingerprint());
    assert_eq!(chip.with_power_model("moon"), None);
}

#[test]
fn a_buffer_is_busy_for_a_part_of_a_read_and_never_if_nobody_says_how_many_may_read() {
    let piece = "readers_free = { value = 24, error = \"unknown\" }";
    let port_time = |text: &str| {
        let chip = Chip::parse("my.toml", &MESH.replace(piece, text)).expect("it is a chip");
        chip.buffer().expect("it has buffers").port_time(Picoseconds(48_000))
    };
    assert_eq!([port_time(piece), port_time("")], [Picoseconds(2_000), Picoseconds::ZERO]);
    one_fault(
        piece,
        "readers_free = { value = 0, error = \"unknown\" }",
        "buffer.readers_free is 0; allowed: ",
    );
}
