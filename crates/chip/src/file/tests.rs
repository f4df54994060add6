//! Tests of the reader: each fault that a file can have, and what the files that come with the product say.

use super::*;

#[test]
fn the_chips_that_come_with_the_product_load() {
    for (name, text) in BUILT_IN {
        let chip = Chip::parse(&format!("chips/{name}.toml"), text);
        let chip = chip.unwrap_or_else(|faults| panic!("{}", FindError::Faulty(faults)));
        assert_eq!(chip.name(), *name);
    }
}
