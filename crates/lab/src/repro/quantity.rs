//! Quantities on which figures depend, and the titles of rows, which contain them in words.
//!
//! A title has parts separated by commas, and some parts are quantities. Invariant: a reader of rows need not parse a
//! title, because each quantity is also given as a value.

use serde::Serialize;
use std::fmt;

/// One value on which a figure depends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// Name of the quantity.
    pub quantity: &'static str,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    /// Value in that unit.
    pub value: f64,
    /// The part of the title for it.
    pub title: String,
}

impl Quantity {
    /// Returns the length of a message, with a title in its largest unit.
    pub fn length(bytes: usize) -> Quantity {
        let title = match bytes {
            0..1024 => format!("{bytes} B"),
            0x10_0000.. => format!("{} MiB", bytes >> 20),
            _ => format!("{} KiB", bytes >> 10),
        };
        Quantity { quantity: "Length", unit: "B", value: bytes as f64, title }
    }

    /// Returns a distance between cores.
    pub fn hops(number: u32) -> Quantity {
        Quantity::counted("Hops", number, "hop", "hops")
    }

    /// Returns the length of a message in cache lines.
    pub fn lines(number: u32) -> Quantity {
        Quantity::counted("Lines of 32 bytes", number, "line", "lines")
    }

    /// Returns a number of cores in use.
    pub fn cores(number: u32) -> Quantity {
        Quantity::counted("Cores", number, "core", "cores")
    }

    /// Returns a number of islands of an evolution.
    pub fn islands(number: u32) -> Quantity {
        Quantity::counted("Islands", number, "island", "islands")
    }

    /// Returns a number of nodes of a machine.
    pub fn nodes(number: u32) -> Quantity {
        Quantity::counted("Nodes", number, "node", "nodes")
    }

    /// Returns a number of places that share the chip.
    pub fn places(number: u32) -> Quantity {
        Quantity::counted("Places", number, "place", "places")
    }

    /// Returns a number of cores that send at the same time.
    pub fn sources(number: u32) -> Quantity {
        Quantity::counted("Sources", number, "source", "sources")
    }

    /// Returns a number of children of a place in a tree.
    pub fn children(number: u32) -> Quantity {
        let title = format!("k = {number}");
        Quantity { quantity: "Children (k)", unit: "", value: f64::from(number), title }
    }

    /// Returns a clock frequency of the cores.
    pub fn clock(megahertz: f64) -> Quantity {
        let title = format!("{megahertz} MHz");
        Quantity { quantity: "Clock", unit: "MHz", value: megahertz, title }
    }

    fn counted(quantity: &'static str, number: u32, one: &str, many: &str) -> Quantity {
        let title = format!("{number} {}", if number == 1 { one } else { many });
        Quantity { quantity, unit: "", value: f64::from(number), title }
    }

    /// Returns the same quantity with another title.
    pub(crate) fn with_title(self, title: impl Into<String>) -> Quantity {
        Quantity { title: title.into(), ..self }
    }
}

/// Formats the quantity as in a CSV column: `Length = 1024 B (1 KiB)`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantity { quantity, unit, value, title } = self;
        let blank = if unit.is_empty() { "" } else { " " };
        write!(f, "{quantity} = {value}{blank}{unit} [{title}]")
    }
}

/// Title of a figure, with all quantities on which it depends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Title {
    /// The parts, separated by commas.
    pub text: String,
    /// The quantities among them, in their order.
    pub over: Vec<Quantity>,
}

impl Title {
    /// Returns the title with one more part, unless `part` is empty.
    pub fn and(mut self, part: impl fmt::Display) -> Title {
        let part = part.to_string();
        if !part.is_empty() {
            self.text.push_str(if self.text.is_empty() { "" } else { ", " });
            self.text.push_str(&part);
        }
        self
    }

    /// Returns the title with a quantity as one more part.
    pub fn over(mut self, quantity: Quantity) -> Title {
        self = self.and(&quantity.title);
        self.over.push(quantity);
        self
    }
}

impl From<&str> for Title {
    fn from(text: &str) -> Title {
        Title::default().and(text)
    }
}

impl From<String> for Title {
    fn from(text: String) -> Title {
        Title::default().and(text)
    }
}

impl From<Quantity> for Title {
    fn from(quantity: Quantity) -> Title {
        Title::default().over(quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_says_its_quantities_and_has_them_as_values() {
        let title = Title::from("RCCE").over(Quantity::length(64 << 10)).and("").and("far");
        assert_eq!(title.text, "RCCE, 64 KiB, far");
        assert_eq!(title.over, [Quantity::length(65_536)]);
        assert_eq!(title.over[0].to_string(), "Length = 65536 B [64 KiB]");
        assert_eq!(Title::from(Quantity::cores(1)).and("far").text, "1 core, far");
    }

    #[test]
    fn one_of_a_thing_and_several_of_it_are_said_as_people_say_them() {
        let said = [Quantity::hops(0), Quantity::lines(1), Quantity::children(7), Quantity::clock(533.0)];
        assert_eq!(said.map(|quantity| quantity.title), ["0 hops", "1 line", "k = 7", "533 MHz"]);
        let lengths = [1, 1023, 1024, 1 << 20].map(|bytes| Quantity::length(bytes).title);
        assert_eq!(lengths, ["1 B", "1023 B", "1 KiB", "1 MiB"]);
        let all = Quantity::lines(8_192).with_title("all 8,192 lines");
        assert_eq!((all.value, all.title.as_str()), (8_192.0, "all 8,192 lines"));
    }
}
