//! `ISLES_COLOR`: colours in the lines that Isles itself prints.
//!
//! This module reads the setting, keeps it for the process, and adds escape codes to words and headlines; `notice`
//! writes them. Invariants: a pipe or a file gets no escape codes unless the setting is `always`; without them the text
//! is unchanged.

use crate::machine::launcher::Launcher;
use crate::print::StandardStream;
use crate::settings::ConfigError;
use crate::settings::table::{SettingRow, setting};
use std::env;
use std::io::{self, IsTerminal};
use std::sync::Mutex;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    /// On a terminal that shows them, unless `NO_COLOR` is set. Not at a rank of MPI, whose launcher may give it a
    /// terminal that nobody looks at.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Reads the setting.
pub(crate) fn read(source: &str, value: &str) -> Result<ColorChoice, ConfigError> {
    match value {
        "auto" => Ok(ColorChoice::Auto),
        "always" => Ok(ColorChoice::Always),
        "never" => Ok(ColorChoice::Never),
        _ => Err(ConfigError::new(source, value, "auto, always, never")),
    }
}

/// Last choice in this process; `None` before settings are read.
static CHOSEN: Mutex<Option<ColorChoice>> = Mutex::new(None);

/// Sets the choice of this process, if one was made.
pub(crate) fn choose(choice: Option<ColorChoice>) {
    if choice.is_some() {
        *CHOSEN.lock().unwrap_or_else(|poison| poison.into_inner()) = choice;
    }
}

/// Returns the choice of this process. Before settings are read it is that of the variable, so that errors in settings
/// are coloured too.
fn chosen() -> ColorChoice {
    const COLOR: &SettingRow = setting("color");
    let chosen = *CHOSEN.lock().unwrap_or_else(|poison| poison.into_inner());
    let said = || read(COLOR.variable, &env::var(COLOR.variable).ok()?).ok();
    chosen.or_else(said).unwrap_or(ColorChoice::Auto)
}

/// Returns `true` if output to `stream` has colours.
pub(crate) fn is_wanted(stream: StandardStream) -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_terminal = || match stream {
        StandardStream::Output => io::stdout().is_terminal(),
        StandardStream::Error => io::stderr().is_terminal(),
    };
    match chosen() {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_dumb = env::var_os("TERM").is_some_and(|name| name == "dumb");
            !is_set("NO_COLOR") && !is_dumb && Launcher::of_environment().is_none() && is_terminal()
        }
    }
}

/// Escape codes of ECMA-48 (select graphic rendition).
const BOLD: &str = "\x1b[1m";
const BOLD_RED: &str = "\x1b[1;31m";
const BOLD_YELLOW: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";

/// Colours the first word of an error or a warning.
pub(crate) fn mark_word(line: &str) -> String {
    for (word, mark) in [("error", BOLD_RED), ("warning", BOLD_YELLOW)] {
        if let Some(rest) = line.strip_prefix(word).filter(|rest| rest.starts_with(':')) {
            return format!("{mark}{word}{PLAIN}{rest}");
        }
    }
    line.to_owned()
}

/// Sets the first line of a text, its headline, in bold.
pub(crate) fn mark_head(text: &str) -> String {
    match text.split_once('\n') {
        Some((head, rest)) if !head.is_empty() => format!("{BOLD}{head}{PLAIN}\n{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_warnings_have_a_coloured_word_and_other_lines_none() {
        assert_eq!(mark_word("error: no"), "\x1b[1;31merror\x1b[0m: no");
        assert_eq!(mark_word("warning: error: no"), "\x1b[1;33mwarning\x1b[0m: error: no");
        for plain in ["", "error", "errors: 3", "isles: error: no"] {
            assert_eq!(mark_word(plain), plain);
        }
    }

    #[test]
    fn a_head_is_the_first_line_alone() {
        assert_eq!(mark_head("a  b\n1  2\n"), "\x1b[1ma  b\x1b[0m\n1  2\n");
        for plain in ["", "\nno head\n", "no line"] {
            assert_eq!(mark_head(plain), plain);
        }
    }

    #[test]
    fn three_words_are_allowed() {
        assert_eq!(read("--color", "never"), Ok(ColorChoice::Never));
        let line = read("--color", "Always").unwrap_err().to_string();
        assert_eq!(line, r#"--color is "Always"; allowed: auto, always, never"#);
    }
}
