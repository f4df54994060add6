//! Drawings of a chip: for the terminal and as SVG.
//!
//! Both show tiles with their core numbers, the links between them, the voltage domain and controller of each tile, and
//! the positions of controllers and interrupt port. They return text; nothing is written to files.

mod heat;
mod svg;
mod text;

pub use heat::{LinkHeat, TileHeat, check_heat, heat};
pub use svg::svg;
pub use text::{constants, drawing, powers, summary};

use crate::chip::{Chip, ControllerId};
use crate::topology::{Coordinates, TileId};
use std::fmt;

/// The drawing of a chip would be too large to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Columns, rows and levels of the chip.
    pub tiles: Coordinates,
    /// Maximum numbers of columns, rows and levels.
    pub allowed: Coordinates,
}

impl TooLarge {
    /// Checks that the chip is not larger than `allowed`.
    fn check(chip: &Chip, allowed: Coordinates) -> Result<(), Self> {
        let tiles = chip.topology().extent();
        let small = tiles.iter().zip(allowed).all(|(has, allowed)| *has <= allowed);
        if small { Ok(()) } else { Err(Self { tiles, allowed }) }
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |numbers: Coordinates| numbers.map(|number| number.to_string()).join(" x ");
        let (tiles, allowed) = (by(self.tiles), by(self.allowed));
        write!(out, "the chip has {tiles} tiles; allowed in a drawing: at most {allowed}")
    }
}

impl std::error::Error for TooLarge {}

/// Returns the numbers of a tile's cores in short form.
fn cores(chip: &Chip, tile: TileId) -> String {
    let cores: Vec<String> = chip.topology().cores_of(tile).map(|core| core.to_string()).collect();
    match cores.as_slice() {
        [first, .., last] if cores.len() > 2 => format!("{first}..{last}"),
        _ => cores.join(" "),
    }
}

/// Returns the controllers at a tile; none if every tile has one.
fn controllers_at(chip: &Chip, tile: TileId) -> Vec<ControllerId> {
    if chip.has_memory_at_each_tile() {
        return Vec::new();
    }
    let all = (0..chip.controllers()).map(ControllerId);
    all.filter(|controller| chip.controller_tile(*controller) == tile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chip(name: &str) -> Chip {
        Chip::find(name).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_drawing_shows_every_core_controller_and_domain() {
        let text = drawing(&chip("scc")).unwrap();
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let count = |word: &str| words.iter().filter(|other| **other == word).count();
        assert!((0..48).all(|core| count(&core.to_string()) >= 1), "{text}");
        assert!((0..6).all(|domain| count(&format!("V{domain}")) == 4), "{text}");
        // Six tiles that use it, and one that it is at.
        assert!((0..4).all(|controller| count(&format!("M{controller}")) == 7), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80 && line.trim_end() == line), "{text}");
    }

    #[test]
    fn the_first_core_is_at_the_lower_left_where_the_papers_have_it() {
        let text = drawing(&chip("scc")).unwrap();
        let line_of = |cores: &str| text.lines().position(|line| line.contains(cores));
        assert!(line_of("| 0 1") > line_of("| 36 37"), "{text}");
    }

    #[test]
    fn a_torus_too_large_to_draw_is_described() {
        let chip = chip("bluegene-p");
        let error = drawing(&chip).unwrap_err().to_string();
        assert!(
            error.starts_with("the chip has 32 x 32 x 32 tiles; allowed in a drawing: at most "),
            "{error}"
        );
        assert!(svg(&chip).is_err());
        assert!(summary(&chip).contains("131072 PPC450 cores, 32768 tiles in a torus of 32 x 32 x 32"));
    }

    #[test]
    fn constants_come_with_error_and_source() {
        let chip = chip("scc");
        let text = constants(&chip);
        let line = text.lines().find(|line| line.contains("105 ns of core + 5 ns/hop of mesh")).unwrap();
        assert!(
            line.trim_start().starts_with("read ") && line.contains(" 5 % ") && line.contains("[eval]"),
            "{line}"
        );
        assert!(chip.sources().all(|(name, text_of)| text.contains(&format!("[{name}] {text_of}"))));
        assert_eq!(text.matches("preset.\"533/800/800\".buffer_line\n").count(), 1);
    }

    #[test]
    fn the_power_is_said_by_each_model_and_that_there_is_none_too() {
        let text = powers(&chip("scc"));
        let line = "power by manyman, all cores at 800 MHz and 1.1625 V: 109.3 W computing, 62.0 W asleep\n";
        assert!(
            text.contains(line)
                && text.contains("power by cichowski, all cores at 800 MHz and 1.1 V: 72.6 W")
        );
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(powers(&chip("c6678")).starts_with("power: none"));
    }

    #[test]
    fn the_svg_is_well_formed_and_shows_every_core() {
        for name in ["scc", "c6678", "mesh"] {
            let chip = chip(name);
            let svg = svg(&chip).unwrap();
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
            let opened =
                svg.matches("<g").count() + svg.matches("<svg").count() + svg.matches("<text").count();
            let closed =
                svg.matches("</g>").count() + svg.matches("</svg>").count() + svg.matches("</text>").count();
            assert_eq!(opened, closed, "{name}");
            assert_eq!(svg.matches("class=\"tile\"").count(), chip.topology().tiles() as usize);
            let links = chip.topology().links().count();
            assert_eq!(svg.matches("<line").count() * 2, links, "{name}: one line for both directions");
        }
    }

    #[test]
    fn words_of_a_file_cannot_break_the_svg() {
        let (_, text) = crate::file::BUILT_IN[3];
        let text = text.replace("An invented mesh", "<script> & \\\"x\\\" 'y' \\u0000\\u001b");
        let chip = Chip::parse("mesh.toml", &text).unwrap_or_else(|faults| panic!("{faults:?}"));
        let svg = svg(&chip).unwrap();
        assert!(svg.contains("&lt;script&gt; &amp; &quot;x&quot; 'y'"), "{svg}");
        assert!(!svg.contains('\0') && !svg.contains('\u{1b}'));
    }
}
