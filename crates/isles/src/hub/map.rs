//! Reads the map of a program with hubs: the places of its tasks and hubs.
//!
//! A map is a TOML file with a table `[places]` of `name = place` and optionally `links = [[0, 1], ..]`, or a list of
//! `name=place` pairs separated by commas. The names are checked later, when the program is known. Invariant: any text
//! yields a map or an error of one line.

use crate::settings::ConfigError;
use crate::settings::table::setting;
use isles_services::HubMap;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The extension of a map file.
const ENDING: &str = ".toml";

/// The allowed values, for error texts.
const ALLOWED: &str = "a file NAME.toml, or name=place pairs separated by commas";

/// The content of a map file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MapFile {
    places: BTreeMap<String, u32>,
    #[serde(default)]
    links: Vec<(u32, u32)>,
}

/// Reads a map from `value`: pairs, or the name of a file. `source` is the flag or variable with the value.
///
/// # Errors
/// The value or the content of the file is not a map, or the file cannot be read; the text names the line.
pub fn read_map(source: &str, value: &str) -> Result<HubMap, ConfigError> {
    if value.ends_with(ENDING) {
        let text = std::fs::read_to_string(value)
            .map_err(|error| ConfigError::new(source, value, format!("a file that can be read ({error})")))?;
        return parse_file(source, value, &text);
    }
    let pair = |pair: &str| {
        let (name, place) = pair.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then_some((name.to_owned(), place.trim().parse::<u32>().ok()?))
    };
    let pairs =
        value.split(',').map(|text| pair(text).ok_or_else(|| ConfigError::new(source, text, ALLOWED)));
    let places = pairs.collect::<Result<Vec<_>, _>>()?;
    Ok(HubMap { source: source.to_owned(), places, links: Vec::new() })
}

fn parse_file(source: &str, name: &str, text: &str) -> Result<HubMap, ConfigError> {
    let MapFile { places, links } = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        let allowed = "a table [places] of name = place, and links = [[place, place], ..]";
        ConfigError::new(source, name, format!("{allowed} (line {line}: {message})"))
    })?;
    Ok(HubMap { source: format!("{source} {name}"), places: places.into_iter().collect(), links })
}

/// Reads the map of `ISLES_MAP`, if it is set.
///
/// # Errors
/// As for [`read_map`].
pub fn map_of_environment() -> Result<Option<HubMap>, ConfigError> {
    let variable = setting("map").variable;
    let said = std::env::var(variable).ok().filter(|said| !said.is_empty());
    said.map(|said| read_map(variable, &said)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_in_their_order() {
        let map = read_map("--map", "a=1, b = 0").expect("a map");
        assert_eq!(map.places, [("a".to_owned(), 1), ("b".to_owned(), 0)]);
    }

    #[test]
    fn a_file_is_read_and_refused_by_its_line() {
        let map = parse_file("--map", "m.toml", "links = [[0, 1]]\n[places]\nb = 1\na = 0\n").expect("a map");
        assert_eq!(map.places, [("a".to_owned(), 0), ("b".to_owned(), 1)]);
        assert_eq!(map.links, [(0, 1)]);
        let refused = |text| parse_file("--map", "m.toml", text).expect_err("no map").to_string();
        let twice = refused("[places]\na = 0\na = 1\n");
        assert!(twice.starts_with("--map is \"m.toml\"; allowed: a table [places]"), "{twice}");
        assert!(twice.contains("line 3: ") && !twice.contains('\n'), "{twice}");
        assert!(refused("[places]\na = -1\n").contains("line 2"));
        assert!(refused("[places]\n[more]\n").contains("unknown field"));
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for (value, refused) in [("a", "a"), ("a=1,=2", "=2"), ("a=x", "a=x")] {
            let error = read_map("ISLES_MAP", value).expect_err("no map").to_string();
            assert_eq!(error, format!("ISLES_MAP is {refused:?}; allowed: {ALLOWED}"));
        }
        assert!(read_map("--map", "nowhere.toml").is_err());
    }
}
