//! Refusals of a job server: one table of their kinds.
//!
//! A server that forwards replies, such as that of the page over HTTP, needs the class of a refusal without knowing the
//! kinds or parsing their names. So a reply has both. Invariant: only this table assigns classes to kinds.

use serde::{Deserialize, Serialize};

/// The class of a refusal, by its remedy. Each maps to an HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalClass {
    /// The request is invalid.
    Malformed,
    /// The client lacks the permission.
    NotAllowed,
    /// The request is longer than a job server accepts.
    TooLong,
    /// The state of the jobs or the chip does not permit it.
    Conflict,
}

/// Declares the kinds of refusals: variant, name on the wire, class.
macro_rules! refusal_kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $class:ident;)*) => {
        /// Kinds of refusals that a program may want to distinguish.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum RefusalKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl RefusalKind {
            /// All kinds, in the order of the table.
            pub const ALL: &[RefusalKind] = &[$(RefusalKind::$kind),*];

            /// Returns the name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(RefusalKind::$kind => $name,)*
                }
            }

            /// Returns the class of all refusals of this kind.
            pub fn class(self) -> RefusalClass {
                match self {
                    $(RefusalKind::$kind => RefusalClass::$class,)*
                }
            }
        }
    };
}

refusal_kinds! {
    /// Any other reason.
    Other "other" Conflict;
    /// The clocks cannot be divided.
    ClocksFixed "clocks-fixed" Conflict;
    /// The chip does not have that clock.
    NoSuchClock "no-such-clock" Conflict;
    /// The chip does not have that voltage.
    NoSuchVoltage "no-such-voltage" Conflict;
    /// The voltage is too low for the clock.
    VoltageTooLow "voltage-too-low" Conflict;
    /// A change is in progress; retry.
    ChangeUnderWay "change-under-way" Conflict;
    /// There is no such governor, or it is not for this run.
    NoSuchGovernor "no-such-governor" Conflict;
    /// A governor controls the clocks.
    Governed "governed" Conflict;
    /// The message is not a request.
    BadRequest "bad-request" Malformed;
    /// The request is not permitted from a page.
    NotFromPage "not-from-page" NotAllowed;
    /// Command jobs are not permitted: from a page, or on a chip.
    CommandsNotAllowed "commands-not-allowed" NotAllowed;
    /// There is no job of that number.
    NoSuchJob "no-such-job" Conflict;
    /// The state of the job does not permit the order.
    NotInThisState "not-in-this-state" Conflict;
    /// A command does not support the order.
    NotForCommands "not-for-commands" Conflict;
    /// The state of the job cannot be read, or is that of another program or kind.
    BadCheckpoint "bad-checkpoint" Conflict;
    /// The table or a state cannot be written, so nothing was started or created.
    NotKept "not-kept" Conflict;
    /// The place does not exist, is dead, or is the job's own.
    NoSuchPlace "no-such-place" Conflict;
    /// The job stays, because no other core is better.
    NoBetterCore "no-better-core" Conflict;
    /// There is no such kind of jobs, or it does not accept these words.
    NoSuchTask "no-such-task" Conflict;
    /// No command is named.
    NoCommand "no-command" Conflict;
    /// There is no command of that name, or its words are invalid.
    NoSuchCommand "no-such-command" Conflict;
    /// The name has a control or formatting character.
    BadName "bad-name" Conflict;
    /// A name, the words, or the whole request are longer than a job server accepts.
    TooLong "too-long" TooLong;
}

/// Refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Its kind, for programs.
    pub kind: RefusalKind,
    /// The class of that kind, for programs that do not know all kinds.
    pub class: RefusalClass,
    /// The reason and the allowed values, as text.
    pub reason: String,
}

impl Refusal {
    /// Returns a refusal of that kind.
    pub(crate) fn of(kind: RefusalKind, reason: impl Into<String>) -> Refusal {
        Refusal { kind, class: kind.class(), reason: reason.into() }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal::of(RefusalKind::Other, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, RefusalKind};
    use std::fs;
    use std::path::Path;

    /// Returns the text of a file of the repository.
    fn file(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::read_to_string(root.join(path)).unwrap()
    }

    #[test]
    fn an_answer_carries_the_name_of_a_kind_and_its_class() {
        for &kind in RefusalKind::ALL {
            let refusal = serde_json::to_value(Refusal::of(kind, "why")).unwrap();
            let class = serde_json::to_value(kind.class()).unwrap();
            let expected = serde_json::json!({ "kind": kind.name(), "class": class, "reason": "why" });
            assert_eq!(refusal, expected);
        }
    }

    #[test]
    fn the_interface_and_the_book_name_the_kinds_of_the_table() {
        let named: Vec<&str> = RefusalKind::ALL
            .iter()
            .filter(|kind| **kind != RefusalKind::Other)
            .map(|kind| kind.name())
            .collect();
        let list = format!("of a refusal of the job server one of {}, or about:blank", named.join(", "));
        assert!(file("crates/dashboard/src/openapi.json").contains(&list), "openapi.json lacks: {list}");
        let page = file("docs/jobs.md");
        for name in named {
            assert!(page.contains(&format!("`{name}`")), "docs/jobs.md does not name {name}");
        }
    }
}
