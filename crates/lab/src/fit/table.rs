//! Measured powers as a table: CSV with a header whose names carry the units.
//!
//! A line that begins with `#` is a comment; the columns may be in any order; a word may be in quotes. It maps a text
//! to measurements or faults and has no side effects. Invariant: every fault is one line with its position, its value
//! and the allowed values, and a text with a fault gives no measurement at all.

use super::{DOMAINS_MAX, MEASUREMENTS_MAX, Measurement, Rates};
use isles_chip::energy::Load;
use isles_chip::file::Fault;

/// The longest text that is read, in bytes: a hundred times the size that the allowed measurements need.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Number of faults after which reading stops.
const FAULTS_MAX: usize = 20;

/// The longest value that is shown in full, in characters.
const SHOWN_MAX: usize = 40;

/// Quantity in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Frequency,
    Voltage,
    Load,
    Power,
}

/// Each allowed column name, its quantity, and the factor of its numbers.
const COLUMNS: [(&str, Quantity, f64); 8] = [
    ("frequency_mhz", Quantity::Frequency, 1.0),
    ("frequency_hz", Quantity::Frequency, 1e-6),
    ("frequency_ghz", Quantity::Frequency, 1e3),
    ("voltage_v", Quantity::Voltage, 1.0),
    ("voltage_mv", Quantity::Voltage, 1e-3),
    ("load", Quantity::Load, 1.0),
    ("power_w", Quantity::Power, 1.0),
    ("power_mw", Quantity::Power, 1e-3),
];

const ALLOWED: &str = "allowed: frequency_mhz, frequency_hz or frequency_ghz, or one for each domain as \
                       frequency1_mhz; voltage_v or voltage_mv; load; power_w or power_mw";

/// The words of the column `load`: those of chip files, and those of the papers.
const LOADS: [(&str, Load); 6] = [
    ("loaded", Load::Compute),
    ("idle", Load::Sleep),
    ("compute", Load::Compute),
    ("copy", Load::Copy),
    ("poll", Load::Poll),
    ("sleep", Load::Sleep),
];

/// A column of the table.
#[derive(Clone, Copy, Debug)]
struct Column {
    name: &'static str,
    /// Index of the domain, from 0; also 0 for a column of all cores.
    domain: usize,
    quantity: Quantity,
    scale: f64,
}

/// Parses a column name. Returns the name without its domain number, the number from 1 if it has one, the quantity and
/// the scale.
fn column(name: &str) -> Option<(&'static str, Option<usize>, Quantity, f64)> {
    let known = |name: &str| COLUMNS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).copied();
    if let Some((name, quantity, scale)) = known(name) {
        return Some((name, None, quantity, scale));
    }
    let (word, unit) = name.split_once('_')?;
    let digit = word.len().checked_sub(1).filter(|at| word.is_char_boundary(*at))?;
    let (word, domain) = (&word[..digit], word[digit..].parse().ok()?);
    let (name, quantity, scale) = known(&format!("{word}_{unit}"))?;
    let is_one = quantity == Quantity::Frequency && (1..=DOMAINS_MAX).contains(&domain);
    is_one.then_some((name, Some(domain), quantity, scale))
}

/// Reads the measurements of a text. Faults use `name` as the file name.
///
/// # Errors
/// The faults of the text in the order of their lines; at least one and at most twenty.
pub fn read(name: &str, text: &str) -> Result<Vec<Measurement>, Vec<Fault>> {
    let mut reader = TableReader { file: name, columns: Vec::new(), faults: Vec::new(), found: Vec::new() };
    if text.len() > TEXT_BYTES_MAX {
        reader.fault(1, format!("the file is too long; allowed: at most {TEXT_BYTES_MAX} bytes"));
        return Err(reader.faults);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // spreadsheets put it there
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((line, names)) => reader.header(line, names),
        None => reader.fault(1, format!("the file has no line with the names of its columns; {ALLOWED}")),
    }
    if reader.faults.is_empty() {
        lines.take_while(|(line, values)| reader.measurement(*line, values)).for_each(drop);
        if reader.found.is_empty() && reader.faults.is_empty() {
            let last = text.lines().count();
            reader.fault(last, "no measurement follows the column names; allowed: one per line".to_owned());
        }
    }
    if reader.faults.is_empty() { Ok(reader.found) } else { Err(reader.faults) }
}

struct TableReader<'a> {
    file: &'a str,
    columns: Vec<Column>,
    faults: Vec<Fault>,
    found: Vec<Measurement>,
}

impl TableReader<'_> {
    fn fault(&mut self, line: usize, text: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault { file: self.file.to_owned(), line, text });
        }
    }

    /// Reads the header, which has the names of the columns.
    fn header(&mut self, line: usize, names: &str) {
        for name in fields(names) {
            let Some((name, domain, quantity, scale)) = column(name) else {
                let bare = COLUMNS.iter().any(|(known, ..)| known.split('_').next() == Some(name));
                let what = if bare { "has no unit" } else { "is not a column" };
                self.fault(line, format!("{} {what}; {ALLOWED}", shown(name)));
                continue;
            };
            // The columns of domains must be in order, so the next one is of the next domain.
            let others = self.columns.iter().filter(|column| column.quantity == quantity);
            let (first, number) = (others.clone().next().map(|first| first.name), others.count());
            match (domain, first) {
                (Some(domain), _) if domain == number + 1 => {}
                (Some(domain), _) => self.fault(
                    line,
                    format!("the frequency of domain {domain} is in column {}; allowed: those of the domains from 1 on", number + 1),
                ),
                (None, Some(first)) => self
                    .fault(line, format!("\"{name}\" has the same meaning as \"{first}\"; allowed: one \
                         of the two")),
                (None, None) => {}
            }
            self.columns.push(Column { name, domain: number, quantity, scale });
        }
        let of = |quantity| self.columns.iter().filter(|column| column.quantity == quantity).count();
        if of(Quantity::Frequency) > 1 && of(Quantity::Voltage) > 0 {
            self.fault(
                line,
                "one voltage for several frequencies; allowed: no voltage column with frequencies of \
                 several domains"
                    .to_owned(),
            );
        }
        for (wanted, name) in [(Quantity::Frequency, "frequency_mhz"), (Quantity::Power, "power_w")] {
            if self.faults.is_empty() && !self.columns.iter().any(|column| column.quantity == wanted) {
                self.fault(line, format!("the column {name} is missing from {}; {ALLOWED}", shown(names)));
            }
        }
    }

    /// Reads a line of values. Returns `true` if reading can continue.
    fn measurement(&mut self, line: usize, values: &str) -> bool {
        if self.found.len() == MEASUREMENTS_MAX {
            let allowed =
                format!("allowed: {MEASUREMENTS_MAX} measurements at most; average those that repeat");
            self.fault(line, format!("{} is one measurement more; {allowed}", shown(values)));
            return false;
        }
        let count = fields(values).count();
        if count != self.columns.len() {
            let columns = self.columns.len();
            self.fault(
                line,
                format!("{} has {count} values; allowed: {columns}, one per column", shown(values)),
            );
            return self.faults.len() < FAULTS_MAX;
        }
        let mut measurement =
            Measurement { line, rates: Rates::all(0.0), volts: None, load: Load::Compute, watts: 0.0 };
        for (column, value) in self.columns.clone().into_iter().zip(fields(values)) {
            if let Err(allowed) = set(&mut measurement, column, value) {
                self.fault(line, format!("{} is {}; allowed: {allowed}", column.name, shown(value)));
            }
        }
        self.found.push(measurement);
        self.faults.len() < FAULTS_MAX
    }
}

/// Sets the value of a column in `measurement`. If the value is not allowed, returns a description of the allowed ones.
fn set(measurement: &mut Measurement, column: Column, value: &str) -> Result<(), String> {
    let number = |low: f64, high: f64, unit: &str| {
        let read = value.parse().map(|number: f64| number * column.scale).ok();
        let allowed = || format!("a number from {low} to {high} {unit}");
        read.filter(|number| (low..=high).contains(number)).ok_or_else(allowed)
    };
    match column.quantity {
        Quantity::Frequency => {
            let mut rates = measurement.rates.megahertz().to_vec();
            rates.resize(column.domain + 1, 0.0);
            rates[column.domain] = number(0.001, 1e6, "MHz")?;
            measurement.rates = Rates::of(&rates);
        }
        Quantity::Voltage => measurement.volts = Some(number(0.01, 100.0, "V")?),
        Quantity::Power => measurement.watts = number(1e-6, 1e9, "W")?,
        Quantity::Load => {
            let known = LOADS.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
            let allowed = || "loaded (= compute), idle (= sleep), copy, poll".to_owned();
            measurement.load = known.ok_or_else(allowed)?.1;
        }
    }
    Ok(())
}

/// Returns the values of a line, without the quotes that some programs put around words.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| {
        let field = field.trim();
        field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
    })
}

/// Returns a value in quotes, cut if it is too long for a line.
fn shown(value: &str) -> String {
    let short: String = value.chars().take(SHOWN_MAX).collect();
    if short.len() < value.len() { format!("{short:?} and more") } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the faults of a text, each as a line.
    fn faults(text: &str) -> Vec<String> {
        read("p.csv", text).unwrap_err().iter().map(Fault::to_string).collect()
    }

    /// Returns the only fault of a text.
    fn fault(text: &str) -> String {
        let faults = faults(text);
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].clone()
    }

    #[test]
    fn columns_may_stand_in_any_order_and_have_other_units() {
        let text = "\u{feff}# here\r\n\"Power_mW\", load ,voltage_mv,frequency_ghz\r\n\r\n\
                    35000,\"Idle\",750,0.4\r\n# end\n";
        let found = read("p.csv", text).unwrap();
        let expected = Measurement {
            line: 4,
            rates: Rates::all(400.0),
            volts: Some(0.75),
            load: Load::Sleep,
            watts: 35.0,
        };
        assert_eq!(found, [expected]);
        let bare = read("p.csv", "frequency_hz,power_w\n400000000,35").unwrap();
        assert_eq!(bare[0], Measurement { line: 2, volts: None, load: Load::Compute, ..expected });
    }

    #[test]
    fn frequencies_of_domains_stand_in_their_order_and_have_no_voltage() {
        let found = read("p.csv", "frequency1_mhz,Frequency2_GHz,power_w\n800,0.1,40\n").unwrap();
        assert_eq!(found[0].rates, Rates::of(&[800.0, 100.0]));
        for (header, says) in [
            (
                "frequency2_mhz,power_w",
                "the frequency of domain 2 is in column 1; allowed: those of the domains from 1 on",
            ),
            (
                "frequency1_mhz,frequency2_mhz,voltage_v,power_w",
                "one voltage for several frequencies; allowed: no voltage column with frequencies of \
                 several domains",
            ),
        ] {
            assert_eq!(faults(&format!("{header}\n1,2,3,4"))[0], format!("p.csv:1: {says}"));
        }
        assert!(fault("frequency9_mhz,power_w\n").contains("\"frequency9_mhz\" is not a column"));
    }

    #[test]
    fn a_column_that_is_unknown_doubled_or_missing_is_named() {
        let known = ALLOWED;
        for (header, says) in [
            ("frequency_mhz,watts", format!("\"watts\" is not a column; {known}")),
            ("frequency,power_w", format!("\"frequency\" has no unit; {known}")),
            (
                "frequency_mhz,power_w,power_mw",
                "\"power_mw\" has the same meaning as \"power_w\"; allowed: one of the two".to_owned(),
            ),
            (
                "frequency_mhz,load",
                format!("the column power_w is missing from \"frequency_mhz,load\"; {known}"),
            ),
            ("frequency_mhz;power_w", format!("\"frequency_mhz;power_w\" is not a column; {known}")),
        ] {
            assert_eq!(fault(&format!("\n{header}\n1,2,3")), format!("p.csv:2: {says}"));
        }
        assert_eq!(faults("volts,power\n").len(), 2, "all faults of a header");
    }

    #[test]
    fn a_value_that_cannot_be_is_named_with_its_line_and_what_is_allowed() {
        for (line, says) in [
            ("fast,1,idle,5", "frequency_mhz is \"fast\"; allowed: a number from 0.001 to 1000000 MHz"),
            ("0,1,idle,5", "frequency_mhz is \"0\"; allowed: a number from 0.001 to 1000000 MHz"),
            ("NaN,1,idle,5", "frequency_mhz is \"NaN\"; allowed: a number from 0.001 to 1000000 MHz"),
            ("1,-1,idle,5", "voltage_v is \"-1\"; allowed: a number from 0.01 to 100 V"),
            ("1,inf,idle,5", "voltage_v is \"inf\"; allowed: a number from 0.01 to 100 V"),
            ("1,1,busy,5", "load is \"busy\"; allowed: loaded (= compute), idle (= sleep), copy, poll"),
            ("1,1,idle,", "power_w is \"\"; allowed: a number from 0.000001 to 1000000000 W"),
            ("1,1,idle,1e400", "power_w is \"1e400\"; allowed: a number from 0.000001 to 1000000000 W"),
            ("1,1,idle", "\"1,1,idle\" has 3 values; allowed: 4, one per column"),
            ("1,1,idle,5,", "\"1,1,idle,5,\" has 5 values; allowed: 4, one per column"),
        ] {
            let text = format!("frequency_mhz,voltage_v,load,power_w\n1,1,idle,5\n{line}\n");
            assert_eq!(fault(&text), format!("p.csv:3: {says}"));
        }
    }

    #[test]
    fn every_fault_is_told_up_to_twenty() {
        let broken = |count| format!("frequency_mhz,power_w\n{}", "a,b\n".repeat(count));
        assert_eq!(faults(&broken(3)).len(), 6);
        let all = faults(&broken(100));
        assert_eq!(all.len(), 20);
        assert!(all[19].starts_with("p.csv:11: "), "{all:?}");
    }

    #[test]
    fn a_text_without_measurements_is_a_fault() {
        assert!(
            fault("").starts_with("p.csv:1: the file has no line with the names of its columns; allowed: ")
        );
        assert!(fault("# only\n").starts_with("p.csv:1: the file has no line with"));
        let lone = "p.csv:2: no measurement follows the column names; allowed: one per line";
        assert_eq!(fault("# of\nfrequency_mhz,power_w"), lone);
    }

    #[test]
    fn too_many_measurements_and_too_long_a_text_are_faults() {
        let text = |count| format!("frequency_mhz,power_w\n{}", "1,2\n".repeat(count));
        assert_eq!(read("p.csv", &text(MEASUREMENTS_MAX)).unwrap().len(), MEASUREMENTS_MAX);
        let more = fault(&text(MEASUREMENTS_MAX + 9));
        let says = "p.csv:502: \"1,2\" is one measurement more; allowed: 500 measurements at most; average those \
                    that repeat";
        assert_eq!(more, says);
        let long = fault(&"#".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(long, "p.csv:1: the file is too long; allowed: at most 1048576 bytes");
    }

    #[test]
    fn a_fault_is_one_short_line_whatever_stands_in_the_file() {
        let text = format!("frequency_mhz,power_w\n{}\u{1b}[2J,5\n", "x".repeat(1000));
        let short = fault(&text);
        assert!(short.len() < 200 && short.contains("\" and more; allowed"), "{short}");
        let escape = fault("frequency_mhz,power_w\n\u{1b}[2J,5\n");
        assert!(!escape.contains('\u{1b}'), "{escape}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_measurements_or_faults_of_its_lines(
            text in "(?s)(frequency_mhz,power_w\n)?([0-9a-z,.\"#\\-\u{e9}]|\n|.){0,80}",
        ) {
            match read("p.csv", &text) {
                Ok(found) => assert!(!found.is_empty()),
                Err(faults) => {
                    let lines = text.lines().count().max(1);
                    assert!(!faults.is_empty() && faults.iter().all(|fault| (1..=lines).contains(&fault.line)));
                }
            }
        }
    }
}
