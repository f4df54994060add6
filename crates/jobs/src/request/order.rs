//! The orders to jobs: one table, from which the server, the command line, the page and the documents are derived.
//!
//! The permitted states are those of the state machine of `isles_protocol::job`, to which a row refers by its verb.
//! Invariant: each [`JobOrder`] has one row, and the name of the row is its name on the wire.

use isles_protocol::job::{JobState, JobVerb};
use serde::{Deserialize, Serialize};

/// Order to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum JobOrder {
    /// Start, at a place or at the best one.
    Start {
        /// The place.
        at: Option<usize>,
    },
    /// Pause.
    Pause,
    /// Continue.
    Resume,
    /// Write the state, and free the place.
    Checkpoint,
    /// Move to another place, or to the best one.
    Move {
        /// The place.
        to: Option<usize>,
    },
    /// Create a copy of the job.
    Duplicate,
    /// End.
    Kill,
    /// Remove from the table.
    Remove,
}

impl JobOrder {
    /// Returns the order with `place`; an order without a place is unchanged.
    #[must_use]
    pub fn with_place(self, place: Option<usize>) -> JobOrder {
        match self {
            JobOrder::Start { .. } => JobOrder::Start { at: place },
            JobOrder::Move { .. } => JobOrder::Move { to: place },
            other => other,
        }
    }

    /// Returns the transition of the job's state; `None` if the state does not change.
    pub(crate) fn verb(self) -> Option<JobVerb> {
        ORDERS.iter().find(|row| row.order == self.with_place(None))?.verb
    }
}

/// A row of the table of orders.
#[derive(Clone, Copy, Debug)]
pub struct OrderInfo {
    /// The order, without a place.
    pub order: JobOrder,
    /// Its name, on the wire and on the command line.
    pub name: &'static str,
    /// Description of the order, for help.
    pub about: &'static str,
    /// The transition of the job's state; `None` if the state does not change.
    pub verb: Option<JobVerb>,
    /// The flag for its place and the help of the flag; `None` if it has no place.
    pub place: Option<(&'static str, &'static str)>,
    /// `true` if the order applies to a command only with CRIU.
    pub needs_criu: bool,
    /// `true` if the order loses something, so that a page asks for confirmation.
    pub loses: bool,
}

impl OrderInfo {
    /// Returns the row of an order that is a transition of the job's state.
    const fn step(order: JobOrder, verb: JobVerb, about: &'static str) -> OrderInfo {
        let (verb, name) = (Some(verb), verb.name());
        OrderInfo { order, name, about, verb, place: None, needs_criu: false, loses: false }
    }

    /// Returns the row of this name.
    pub fn of_name(name: &str) -> Option<&'static OrderInfo> {
        ORDERS.iter().find(|order| order.name == name)
    }

    /// Returns the row of the order with this transition.
    pub(crate) fn of_verb(verb: JobVerb) -> Option<&'static OrderInfo> {
        ORDERS.iter().find(|order| order.verb == Some(verb))
    }

    /// Returns the states in which the order is permitted.
    pub fn states(&self) -> Vec<JobState> {
        self.verb.map_or_else(|| JobState::ALL.to_vec(), |verb| verb.allowed().collect())
    }
}

/// All orders to jobs, in the order of the buttons of the page.
pub const ORDERS: [OrderInfo; 8] = [
    OrderInfo {
        place: Some(("at", "Place [default: the best one]")),
        ..OrderInfo::step(
            JobOrder::Start { at: None },
            JobVerb::Start,
            "Starts a job, or creates one and starts it",
        )
    },
    OrderInfo::step(JobOrder::Pause, JobVerb::Pause, "Pauses a job; its memory stays resident"),
    OrderInfo::step(JobOrder::Resume, JobVerb::Resume, "Resumes a job"),
    OrderInfo {
        needs_criu: true,
        ..OrderInfo::step(JobOrder::Checkpoint, JobVerb::Checkpoint, "Checkpoints a job, and frees its place")
    },
    OrderInfo {
        place: Some(("to", "Place [default: the best one, if one is better]")),
        needs_criu: true,
        ..OrderInfo::step(JobOrder::Move { to: None }, JobVerb::Move, "Moves a job to another place")
    },
    OrderInfo {
        order: JobOrder::Duplicate,
        name: "duplicate",
        about: "Duplicates a job",
        verb: None,
        place: None,
        needs_criu: false,
        loses: false,
    },
    OrderInfo { loses: true, ..OrderInfo::step(JobOrder::Kill, JobVerb::Kill, "Ends a job") },
    OrderInfo {
        loses: true,
        ..OrderInfo::step(JobOrder::Remove, JobVerb::Remove, "Forgets a job and its output")
    },
];

#[cfg(test)]
mod tests {
    use super::{ORDERS, OrderInfo};
    use isles_protocol::job::{JobState, JobStep, JobVerb};
    use std::fmt::Write;
    use std::fs;
    use std::path::{Path, PathBuf};

    const HOW: &str = "ISLES_TEST_WRITE_ORDERS=1 cargo test -p isles-jobs --lib orders";

    fn path(file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
    }

    fn names(states: &[JobState]) -> Vec<&'static str> {
        states.iter().map(|state| state.name()).collect()
    }

    /// Returns the orders and states as source text of the page.
    fn page_types() -> String {
        let quoted = |states: &[JobState]| format!("[\"{}\"]", names(states).join("\", \""));
        let mut text = format!(
            "// Orders to jobs and the states that permit them, made of the tables in crates/jobs/src/request/order.rs and\n\
             // crates/protocol/src/job/mod.rs, which a test compares:\n// {HOW}\n\n\
             /** An order to a job. */\nexport interface Order {{\n    name: string;\n    \
             /** The states that permit it; the job server has the last word. */\n    states: string[];\n    \
             /** Whether something is lost, so that the page asks first. */\n    asks: boolean;\n    \
             /** Whether it applies to commands only with CRIU. */\n    needsCriu: boolean;\n}}\n\n\
             export const ORDERS: Record<string, Order> = {{\n"
        );
        for order in &ORDERS {
            let label = order.name[..1].to_uppercase() + &order.name[1..];
            let OrderInfo { name, needs_criu, loses, .. } = order;
            write!(
                text,
                "    {name}: {{\n        name: \"{label}\", asks: {loses}, needsCriu: {needs_criu},\n        \
                 states: {},\n    }},\n",
                // Eleven states are longer than a line.
                quoted(&order.states()).replace("\"moving\", ", "\"moving\",\n            ")
            )
            .unwrap();
        }
        let active: Vec<JobState> = JobState::ALL.into_iter().filter(|state| state.is_active()).collect();
        let active = quoted(&active);
        text + &format!(
            "}};\n\n/** The states of a job that is at a place, or on its way to one or from one. */\n\
             export const ACTIVE_STATES = {active};\n"
        )
    }

    /// Returns the table of the user's page.
    fn orders_table() -> String {
        let mut text = "| Order | When the job is | What it does |\n|---|---|---|\n".to_owned();
        for order in &ORDERS {
            let states = match order.verb {
                Some(_) => names(&order.states()).join(", "),
                None => "in any state".to_owned(),
            };
            let commands = if order.needs_criu { "; commands only with CRIU" } else { "" };
            writeln!(text, "| `{}` | {states}{commands} | {} |", order.name, order.about).unwrap();
        }
        text
    }

    /// Returns the table of the design page: states with equal transitions share a line.
    fn states_table() -> String {
        let verbs = JobVerb::ALL.map(JobVerb::name);
        let mut text = format!("| State | {} |\n|---|{}\n", verbs.join(" | "), "---|".repeat(verbs.len()));
        let cells = |state: JobState| {
            JobVerb::ALL.map(|verb| match state.after(JobStep::Commanded(verb)) {
                Ok(_) if verb == JobVerb::Remove => "gone",
                Ok(after) => after.name(),
                Err(_) => "",
            })
        };
        let mut lines: Vec<(Vec<JobState>, [&str; 7])> = Vec::new();
        for state in JobState::ALL {
            match lines.iter_mut().find(|(_, known)| *known == cells(state)) {
                Some((states, _)) => states.push(state),
                None => lines.push((vec![state], cells(state))),
            }
        }
        for (states, cells) in lines {
            let cells: String = cells
                .iter()
                .map(|cell| if cell.is_empty() { " |".to_owned() } else { format!(" {} |", cell) })
                .collect();
            writeln!(text, "| {} |{cells}", names(&states).join(", ")).unwrap();
        }
        text
    }

    /// Compares the table that begins with `head` in `file` with `table`, or updates the file.
    fn compare_table(file: &str, table: &str) {
        let head = table.lines().next().unwrap();
        let page = fs::read_to_string(path(file)).unwrap();
        let begin = page.find(head).unwrap_or_else(|| panic!("{file} has no table {head}; {HOW}"));
        let end = page[begin..].find("\n\n").map_or(page.len(), |len| begin + len + 1);
        if std::env::var_os("ISLES_TEST_WRITE_ORDERS").is_some() {
            fs::write(path(file), format!("{}{table}{}", &page[..begin], &page[end..])).unwrap();
            return;
        }
        assert_eq!(&page[begin..end], table, "{HOW}");
    }

    #[test]
    fn the_page_and_the_documents_have_the_orders_and_states_of_the_tables() {
        compare_table("docs/jobs.md", &orders_table());
        compare_table("docs/design/jobs.md", &states_table());
        let page = path("web/src/model/orders.ts");
        if std::env::var_os("ISLES_TEST_WRITE_ORDERS").is_some() {
            fs::write(page, page_types()).unwrap();
            return;
        }
        assert_eq!(fs::read_to_string(page).unwrap(), page_types(), "{HOW}");
    }

    #[test]
    fn each_of_the_orders_has_a_row_by_its_name_on_the_wire() {
        for row in &ORDERS {
            for place in [None, Some(3)] {
                let wire = serde_json::to_value(row.order.with_place(place)).unwrap();
                assert_eq!(wire["order"], row.name);
                let named = row.place.map(|(flag, _)| wire[flag].as_u64());
                assert_eq!(named, row.place.map(|_| place.map(|place| place as u64)), "{}", row.name);
            }
        }
        for verb in JobVerb::ALL {
            assert_eq!(OrderInfo::of_verb(verb).map(|order| order.name), Some(verb.name()));
        }
    }
}
