//! Overrides of a chip's constants, given as `KEY=VALUE; KEY=VALUE`.
//!
//! Keys are those of `isles chip show`; a key of a preset may omit its name, and then applies to the given preset. The
//! value is put into the text of the file, which is read again, so a changed chip is checked as any other. The clocks
//! of mesh and memory are set after that: a time measured at the file's clock keeps its number of cycles. Invariant: an
//! error names the constant, the requested value and what is allowed.

use super::{Constant, unit};
use crate::chip::{Chip, Preset, digest};
use crate::cost::Clocks;
use crate::quantity::Rate;

/// Key that replaces a line's time at a controller in presets that lack it.
const MEMORY_READERS: &str = "memory.readers_free";

/// An invalid change of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeError {
    /// The requested change: a key with its value, or a text without one.
    pub asked: String,
    /// Allowed values.
    pub allowed: String,
}

impl Chip {
    /// Returns the chip with other constants; keys without a preset apply to `preset`, or to the default one.
    ///
    /// # Errors
    /// A constant does not exist, has an invalid value or is set twice; or a text that is not empty sets none.
    pub fn with_constants(&self, changes: &str, preset: Option<&str>) -> Result<Chip, ChangeError> {
        let preset = preset.unwrap_or_else(|| self.default_preset().name());
        let mut chip = self.clone();
        let (mut clocks, mut named) = (Vec::new(), Vec::new());
        let mut each = changes.split(';').map(str::trim).filter(|change| !change.is_empty()).peekable();
        if each.peek().is_none() && !changes.is_empty() {
            let allowed = "KEY=VALUE, several separated by semicolons".to_owned();
            return Err(ChangeError { asked: changes.to_owned(), allowed });
        }
        for change in each {
            let refused = |allowed| ChangeError { asked: change.to_owned(), allowed };
            let (key, value) = change.split_once('=').ok_or_else(|| refused("KEY=VALUE".to_owned()))?;
            let (key, value) = (key.trim(), value.trim());
            let path = self.constant(key, preset).map(|constant| &constant.path);
            if path.is_some_and(|path| named.contains(&path)) {
                return Err(refused(format!("each constant once; {key} is repeated")));
            }
            named.extend(path);
            match chip.clock(key, value, preset) {
                Some(clock) => clocks.push((change, clock.map_err(refused)?)),
                None => chip = chip.with_constant(key, value, preset).map_err(refused)?,
            }
        }
        for (change, (preset, clock, rate)) in clocks {
            let Clocks { mesh, memory, .. } = &mut chip.presets[preset].clocks;
            *if clock == "mesh" { mesh } else { memory } = rate;
            chip.fingerprint = digest(chip.fingerprint, change);
        }
        Ok(chip)
    }

    /// Returns the mesh or memory clock that a key names, with its preset and its rate or error; `None` if the key
    /// names another constant.
    fn clock(
        &self,
        key: &str,
        value: &str,
        preset: &str,
    ) -> Option<Result<(usize, &'static str, Rate), String>> {
        let path = &self.constant(key, preset)?.path;
        let is_meant = |(number, name): (usize, &str)| {
            let clock = |clock: &'static str| {
                let quoted = format!("preset.{name:?}.{clock}");
                (*path == quoted || *path == format!("preset.{name}.{clock}")).then_some((number, clock))
            };
            clock("mesh").or_else(|| clock("memory"))
        };
        let (number, clock) = self.presets.iter().map(Preset::name).enumerate().find_map(is_meant)?;
        Some(unit::rate(value).map(|rate| (number, clock, rate)).map_err(|reason| {
            match reason.split_once("allowed: ") {
                Some((_, allowed)) => allowed.to_owned(),
                None => reason,
            }
        }))
    }

    /// Returns the chip with one constant changed; otherwise the error is the text of the allowed values.
    fn with_constant(&self, key: &str, value: &str, preset: &str) -> Result<Chip, String> {
        let constant = self.constant(key, preset).ok_or_else(|| self.similar_keys(key))?;
        let has_line = |preset: &Preset| preset.times().controller_line.is_some();
        if constant.path == MEMORY_READERS && self.preset(preset).is_some_and(has_line) {
            return Err(format!(
                "controller_line, because it sets how long a line keeps its controller busy in the \
                 preset {preset}; the number of readers counts only without it"
            ));
        }
        let before = &self.text[constant.at.clone()];
        let is_text = before.starts_with(['"', '\'']);
        let whole = whole_value(&constant.value, value);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-._,[] ".contains(c);
        let after = match is_text {
            true if !whole.contains(['"', '\\']) && !whole.contains(char::is_control) => {
                format!("\"{whole}\"")
            }
            false if whole.chars().all(is_plain) => whole,
            _ => return Err(format!("a value like that of the file, {}", constant.value)),
        };
        let mut text = self.text.to_string();
        text.replace_range(constant.at.clone(), &after);
        Chip::parse(&self.name, &text).map_err(|faults| {
            let fault = faults.first().map(|fault| fault.text.as_str()).unwrap_or_default();
            let allowed = fault.split_once("; allowed: ").map_or(fault, |(_, allowed)| allowed);
            format!("{allowed}; the file has {}", constant.value)
        })
    }

    /// Returns a constant by its full name, or by its name within a preset.
    fn constant(&self, key: &str, preset: &str) -> Option<&Constant> {
        let find = |path: &str| self.constants.iter().find(|constant| constant.path == path);
        find(key)
            .or_else(|| find(&format!("preset.{preset:?}.{key}")))
            .or_else(|| find(&format!("preset.{preset}.{key}")))
    }

    /// Returns the constants that an unknown key may mean.
    fn similar_keys(&self, key: &str) -> String {
        const SHOWN_MAX: usize = 12;
        let short = |path: &str| {
            let own = path.strip_prefix("preset.").map(|rest| match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once("\".").map_or(rest, |(_, key)| key),
                None => rest.split_once('.').map_or(rest, |(_, key)| key),
            });
            own.unwrap_or(path).to_owned()
        };
        let mut all: Vec<String> = self.constants.iter().map(|constant| short(&constant.path)).collect();
        all.sort();
        all.dedup();
        let (table, last) = (key.split('.').next().unwrap_or(key), key.rsplit('.').next().unwrap_or(key));
        let is_near = |path: &&String| path.split('.').any(|part| part == table || part == last);
        let near: Vec<&str> = all.iter().filter(is_near).map(String::as_str).collect();
        if near.is_empty() {
            let mut tables: Vec<&str> = all.iter().filter_map(|path| path.split('.').next()).collect();
            tables.dedup();
            return format!(
                "a constant of `isles chip show {}`; they begin with {}",
                self.name,
                tables.join(", ")
            );
        }
        let more = if near.len() > SHOWN_MAX { ", ..." } else { "" };
        format!("one of {}{more}", near[..near.len().min(SHOWN_MAX)].join(", "))
    }
}

/// Completes a bare number with the unit of the present value.
fn whole_value(before: &str, value: &str) -> String {
    let unit = before.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_number = value.parse::<f64>().is_ok();
    if is_number && unit.len() < before.len() && unit.starts_with(' ') && !unit.contains(['+', '/']) {
        format!("{value}{unit}")
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Mode;

    fn scc() -> Chip {
        Chip::find("scc").unwrap()
    }

    fn refused(changes: &str) -> String {
        let ChangeError { asked, allowed } = scc().with_constants(changes, None).unwrap_err();
        format!("{asked}: {allowed}")
    }

    #[test]
    fn any_constant_can_be_another_with_its_unit_or_that_of_the_file() {
        let line = |chip: &Chip| chip.default_preset().times().controller_line.unwrap().over(0).nanoseconds();
        for changes in
            ["controller_line=16.4", "controller_line = 16.4 cycles of memory", "controller_line=20.5 ns"]
        {
            assert_eq!(line(&scc().with_constants(changes, None).unwrap()), 20.5, "{changes}");
        }
        let read =
            |chip: &Chip| chip.default_preset().times().access(Mode::BufferLine).unwrap().read.over(8).0;
        let chip =
            scc().with_constants("buffer_line.read=100 ns of core + 1 ns/hop of mesh; mesh=1600 MHz", None);
        let chip = chip.unwrap();
        // A nanosecond per hop at the 800 MHz of the file is half a nanosecond at twice that.
        assert_eq!((read(&chip), chip.default_preset().clocks().mesh.megahertz()), (104_000, 1_600.0));
        assert_ne!(chip.fingerprint(), scc().fingerprint());
        assert_eq!(scc().with_constants("", None).unwrap().fingerprint(), scc().fingerprint());
    }

    #[test]
    fn a_key_of_a_preset_is_of_the_one_in_question() {
        let fast = "800/1600/1066";
        let chip = scc().with_constants("controller_line=100", Some(fast)).unwrap();
        assert_eq!(chip.default_preset().times(), scc().default_preset().times());
        assert_ne!(chip.preset(fast).unwrap().times(), scc().preset(fast).unwrap().times());
        let whole = scc().with_constants("preset.\"800/1600/1066\".controller_line=100", None).unwrap();
        assert_eq!(whole.fingerprint(), chip.fingerprint());
        let chip = scc().with_constants("buffer.readers_free=4", None).unwrap();
        assert_eq!(chip.buffer().unwrap().readers_free, Some(4));
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        assert_eq!(
            refused("links.flt_time=2"),
            "links.flt_time=2: one of links.flit, links.flit_time, links.head, \
             links.overhead, links.payload_max, links.recovery"
        );
        assert!(
            refused("colour=red")
                .starts_with("colour=red: a constant of `isles chip show scc`; they begin with ")
        );
        assert_eq!(refused("links.flit_time"), "links.flit_time: KEY=VALUE");
        for nothing in [";;;", " ", "; ;"] {
            assert_eq!(refused(nothing), format!("{nothing}: KEY=VALUE, several separated by semicolons"));
        }
        assert_eq!(
            refused("links.flit_time=2; mesh=1600 MHz; links.flit_time = 3"),
            "links.flit_time = 3: each constant once; links.flit_time is repeated"
        );
        // A constant of a preset has two names.
        let twice = refused("controller_line=100; preset.\"533/800/800\".controller_line=100");
        assert!(twice.contains("each constant once"), "{twice}");
        let unit = refused("links.flit_time=2 apples");
        assert!(
            unit.starts_with("links.flit_time=2 apples: ")
                && unit.ends_with("; the file has 1 cycle of mesh"),
            "{unit}"
        );
        assert!(refused("mesh=fast").starts_with("mesh=fast: "), "{}", refused("mesh=fast"));
        assert!(refused("buffer.readers_free=\"4\"").ends_with("a value like that of the file, 24"));
        assert!(
            refused("memory.readers_free=4")
                .starts_with("memory.readers_free=4: controller_line, because it sets how long a line")
        );
    }
}
