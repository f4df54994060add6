//! The reader of chip files takes any text: a chip, or faults with their lines.
#![no_main]

use isles_chip::Chip;
use isles_chip::draw;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Chip::parse("fuzz.toml", text) {
        Ok(chip) => {
            // What a chip that loaded promises: its parts fit together, and it can be drawn.
            let topology = *chip.topology();
            for tile in (0..topology.tiles().min(64)).map(isles_chip::topology::TileId) {
                let controller = chip.controller_tile(chip.controller_of(tile));
                assert_eq!(topology.route(tile, controller).count() as u32, topology.hops(tile, controller));
                assert!(chip.voltage_domain(tile).0 < chip.voltage_domains());
                assert!(chip.frequency_domain(tile).0 < chip.frequency_domains());
            }
            let times = chip.default_preset().times();
            for mode in isles_chip::cost::Mode::ALL {
                assert!(times.read(mode, topology.diameter()) >= times.read(mode, 0));
            }
            for model in chip.power_models() {
                let table = chip.voltage_table(model.voltages()).expect("a model names a table of its file");
                for step in table.steps() {
                    model.chip(topology.cores(), isles_chip::energy::Load::Compute, *step);
                }
            }
            let _ = (draw::drawing(&chip), draw::svg(&chip), draw::constants(&chip));
            let _ = (draw::summary(&chip), draw::powers(&chip));
        }
        Err(faults) => {
            let lines = text.matches('\n').count() + 1;
            assert!(!faults.is_empty() && faults.iter().all(|fault| (1..=lines).contains(&fault.line)));
        }
    }
});
