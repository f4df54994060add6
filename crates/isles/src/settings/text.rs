//! Texts from the table of settings, for `--help`, the book and errors.
//!
//! The table has one Markdown text for all of them; [`plain`] converts it for a terminal. Tests compare the book with
//! the table. Invariant: nothing here knows a setting by its name.

use super::table::{MachineClass, Machines, SettingDefault, SettingRow};
use crate::machine::Machine;

impl SettingRow {
    /// Returns the text of the flag for `--help`, with the default.
    pub fn help(&self) -> String {
        let about = plain(self.about);
        match self.default {
            SettingDefault::Value(text) | SettingDefault::Words(text) => {
                format!("{about} [default: {}]", plain(text))
            }
            SettingDefault::Nothing(_) => about,
        }
    }
}

impl Machines {
    /// Returns the allowed values for an error on `machine`, which does not use the setting.
    pub(crate) fn refusal(&self, machine: Machine) -> String {
        let why = match machine {
            _ if self.on == [MachineClass::Chip] => "not a modelled chip",
            _ if self.on.contains(&MachineClass::Loopback) => "it orders events by the host's own time",
            Machine::Mpi => "its launcher decides where ranks run",
            _ => "all its places are one thread",
        };
        format!("nothing with machine {machine} ({why})")
    }
}

/// Strips Markdown from a text: a link becomes its words and code its word; a command keeps its backticks.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (number, part) in text.split('`').enumerate() {
        let is_command = number % 2 == 1 && part.contains(' ');
        let mark = if is_command { "`" } else { "" };
        plain.extend([mark, part, mark]);
    }
    let mut rest = plain.as_str();
    let mut unlinked = String::new();
    while let Some((before, (words, after))) = next_link(rest) {
        unlinked.extend([before, words]);
        rest = after;
    }
    unlinked + rest
}

/// Splits a text at its first link: the text before it, the words of the link, and the text after it.
fn next_link(text: &str) -> Option<(&str, (&str, &str))> {
    let (before, link) = text.split_once('[')?;
    let (words, target) = link.split_once("](")?;
    let (_, after) = target.split_once(')')?;
    Some((before, (words, after)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::{OnOtherMachines, SETTINGS, Stored};
    use std::fs;
    use std::path::Path;

    /// The variable with which the tests rewrite the tables of the book instead of comparing them.
    const WRITE: &str = "ISLES_TEST_WRITE_SETTINGS";

    /// The marks around a table that these tests write.
    const MARKS: [&str; 2] = ["<!-- settings -->\n", "<!-- end of settings -->\n"];

    #[test]
    fn a_terminal_shows_the_text_without_its_marks() {
        let text = "What [`a` and b](c.md#d) say: `e`, `f:G` (`isles chip list`), or [h](i)";
        assert_eq!(plain(text), "What a and b say: e, f:G (`isles chip list`), or h");
    }

    /// Compares the table between the marks of a page with `rows`, or rewrites it.
    fn check_page(page: &str, head: &str, rows: impl Iterator<Item = String>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(MARKS[0]).expect("the page has the first mark");
        let (found, after) = rest.split_once(MARKS[1]).expect("the page has the second mark");
        let wanted = format!("\n{head}\n{}\n", rows.map(|row| row + "\n").collect::<String>());
        if found == wanted {
            return;
        }
        if std::env::var_os(WRITE).is_some() {
            return fs::write(&path, [before, MARKS[0], &wanted, MARKS[1], after].concat()).unwrap();
        }
        let missing: Vec<&str> =
            wanted.lines().filter(|line| !found.lines().any(|other| other == *line)).collect();
        panic!(
            "docs/{page} is not what the table of settings says; these lines should stand there, in its order:\n{}\n\
             {WRITE}=1 cargo test -p isles --lib settings writes them",
            missing.join("\n")
        );
    }

    fn flag(row: &SettingRow) -> String {
        let Some(flag) = row.flag else { return String::new() };
        let short = flag.short.map(|short| format!("`-{short}`, ")).unwrap_or_default();
        format!("{short}`{}`", flag.name)
    }

    fn machines(machines: &Machines) -> String {
        let names = machines.on.iter().map(|class| match class {
            MachineClass::Host => "`threads`, `processes`",
            MachineClass::Ranks => "`mpi`",
            MachineClass::Loopback => "`loopback`",
            MachineClass::Chip => "chips",
        });
        let names =
            if machines.on.len() == 4 { "all".to_owned() } else { names.collect::<Vec<_>>().join(", ") };
        let elsewhere = match machines.on_other_machines {
            OnOtherMachines::Ignored => "",
            OnOtherMachines::FlagRefused => "¹",
            OnOtherMachines::Refused => "²",
        };
        names + elsewhere
    }

    #[test]
    fn the_page_of_machines_has_the_table() {
        let row = |row: &SettingRow| {
            let (SettingDefault::Value(text) | SettingDefault::Words(text) | SettingDefault::Nothing(text)) =
                row.default;
            let is_code = matches!(row.default, SettingDefault::Value(_));
            let default = if is_code { format!("`{text}`") } else { text.to_owned() };
            let (flag, machines) = (flag(row), machines(&row.machines));
            let stored = match row.stored {
                Stored::Nowhere => "",
                Stored::Summary(_) => "summary",
                Stored::OwnField | Stored::TapeAndSummary(_) => "tape, summary",
            };
            format!("| `{}` | {flag} | {} | {default} | {machines} | {stored} |", row.variable, row.about)
        };
        let head = "| Variable | Flag | Says | If not set | On | Stored by |\n|---|---|---|---|---|---|";
        check_page("machines.md", head, SETTINGS.iter().map(row));
    }
}
