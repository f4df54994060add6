//! One published figure beside the model's; and rows as text, as tables of a page, as CSV and as JSON.
//!
//! Invariants: a row without a published figure has no error and no verdict, so it can never count as reproduced; all
//! four forms contain every row, and the first three have the same digits, so the page can be compared with the output
//! of the command.

use super::ExperimentOutcome;
use super::quantity::{Quantity, Title};
use serde::Serialize;

/// The numbers of the validation deck whose rows must be in their bands.
const REQUIRED: [&str; 10] = ["V1", "V2", "V3", "V4", "V7", "V8", "V9", "V10", "V16", "V17"];

/// Relation of the model to the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The chip file or a library was fitted to it, or a choice of the model was made with it in view: no evidence.
    Calibrated,
    /// Follows from other figures.
    Predicted,
    /// The source does not print its digits; it is computed from words or a formula of the source.
    Derived,
    /// Measured in a run on this host, and changes with it.
    Measured,
}

impl Basis {
    /// Returns the word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Calibrated => "calibrated",
            Basis::Predicted => "predicted",
            Basis::Derived => "derived",
            Basis::Measured => "measured",
        }
    }
}

/// Tolerance of the model against the published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Band {
    /// Within this many per cent of the published figure.
    Within(f64),
    /// Not above it.
    AtMost,
    /// The figure is not published: ours has no counterpart.
    Unpublished,
}

/// Verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    /// In its band.
    In,
    /// Outside its band.
    Out,
    /// No published figure to compare with.
    Alone,
}

impl RowVerdict {
    /// Returns the word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            RowVerdict::In => "in",
            RowVerdict::Out => "OUT",
            RowVerdict::Alone => "-",
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number in the validation deck; empty if it has none.
    pub deck: &'static str,
    /// Title of the figure.
    pub figure: String,
    /// Quantities on which the figure depends, as values.
    pub over: Vec<Quantity>,
    /// Its unit; empty for a plain ratio.
    pub unit: &'static str,
    /// Published figure; meaningless if the band is [`Band::Unpublished`].
    pub published: f64,
    /// Figure of the model; NaN if it has none, which is out of every band.
    pub ours: f64,
    /// Tolerance of `ours` against `published`.
    pub band: Band,
    /// Relation of the model to the figure, which says whether the row is evidence.
    pub basis: Basis,
    /// Source of the published figure: the number of the paper and its line, such as `002:235`, or the name of another
    /// source; empty if the figure is not published.
    pub source: &'static str,
    /// Derivation of the published figure from words of the source, which are quoted here, or the remark that the row
    /// is an input of the model; empty if the source prints the digits of a result.
    pub reading: &'static str,
}

impl Row {
    /// Returns the published figure, if there is one.
    pub fn published(&self) -> Option<f64> {
        (self.band != Band::Unpublished).then_some(self.published)
    }

    /// Returns the error of `ours`, in per cent of the published figure, or `None` if there is none.
    pub fn error(&self) -> Option<f64> {
        self.published().map(|published| (self.ours - published) * 100.0 / published)
    }

    /// Returns the verdict of the figure against its band.
    pub fn verdict(&self) -> RowVerdict {
        let is_in = match (self.band, self.error()) {
            (Band::Unpublished, _) | (_, None) => return RowVerdict::Alone,
            (Band::Within(percent), Some(error)) => error.abs() <= percent,
            (Band::AtMost, Some(error)) => error <= 0.0,
        };
        if is_in { RowVerdict::In } else { RowVerdict::Out }
    }

    /// Returns `true` if the figure must be in its band.
    pub fn is_required(&self) -> bool {
        REQUIRED.contains(&self.deck) && self.verdict() != RowVerdict::Alone
    }

    /// Returns `true` if the figure is out of a band that it must be in.
    fn is_missed(&self) -> bool {
        self.verdict() == RowVerdict::Out && self.is_required()
    }
}

/// A family of rows that share everything except their figure; experiments make their rows with it.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// See [`Row::deck`].
    pub deck: &'static str,
    /// See [`Row::unit`].
    pub unit: &'static str,
    /// See [`Row::band`].
    pub band: Band,
    /// See [`Row::basis`].
    pub basis: Basis,
    /// See [`Row::source`].
    pub source: &'static str,
    /// See [`Row::reading`].
    pub reading: &'static str,
}

impl Family {
    /// Returns one row of the family.
    ///
    /// # Panics
    /// A figure is compared with a published one without a source, or with a derived one without a reading.
    pub fn row(&self, title: impl Into<Title>, published: f64, ours: f64) -> Row {
        let (Family { deck, unit, band, basis, source, reading }, title) = (*self, title.into());
        let is_published = band != Band::Unpublished;
        let (source, reading) = if is_published { (source, reading) } else { ("", "") };
        assert!(!is_published || is_source(source), "{}: {source:?} is no source", title.text);
        let is_read = basis != Basis::Derived || !reading.is_empty();
        assert!(!is_published || is_read, "{}: derived, and nothing says how", title.text);
        Row {
            deck,
            figure: title.text,
            over: title.over,
            unit,
            published,
            ours,
            band,
            basis,
            source,
            reading,
        }
    }

    /// Returns the family with published figures from `source`, as digits.
    pub fn at(self, source: &'static str) -> Family {
        Family { source, reading: "", ..self }
    }

    /// Returns the family with published figures that follow from words of the source.
    pub fn reading(self, reading: &'static str) -> Family {
        Family { reading, ..self }
    }
}

/// The papers of the reproduction, by number. The text of each is its first line.
const PAPERS: [(&str, &str); 5] = [
    ("000", "Chapman, Hussein, Hosking: X10 on the Single-Chip Cloud Computer, X10'11"),
    ("001", "Optimizing Remote Data Transfers in X10: Evaluation of AT-Opt for single node set-up, PACT'18"),
    ("002", "Chandramowliswaran, Vuduc: Performance Evaluation of the 48-core SCC Processor, slides"),
    ("003", "Aggarwal, Sabharwal, Garg, Heidelberger: HPCC RandomAccess for Next Generation Supercomputers"),
    ("004", "Proceedings of the 6th Many-core Applications Research Community Symposium, 2012"),
];

/// Returns `true` if `source` cites lines of a paper, as `002:235` or `004:784-786`, or names another source.
fn is_source(source: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match source.split_once(':') {
        Some((paper, lines)) if is_number(paper) => {
            PAPERS.iter().any(|(known, _)| *known == paper)
                && lines.split(", ").all(|part| part.split('-').all(is_number))
        }
        _ => source.contains([' ', '-']) && !source.starts_with(|first: char| first.is_ascii_digit()),
    }
}

/// Number of significant digits of a figure.
const DIGITS: i32 = 4;

/// Formats a figure with four significant digits, without an exponent.
fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = (DIGITS - 1 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats an error with its sign, to a tenth of a per cent; zero has no sign.
fn percent(error: f64) -> String {
    let text = format!("{error:+.1} %");
    if error.abs() < 0.05 { "0.0 %".to_owned() } else { text }
}

/// Returns the cells of a row after its title: published, ours, error, band, verdict, basis, source.
fn cells(row: &Row) -> [String; 7] {
    let dash = || "-".to_owned();
    let with_unit = |value: f64| match value.is_nan() {
        true => dash(),
        false => format!("{} {}", figure(value), row.unit).trim_end().to_owned(),
    };
    [
        row.published().map_or_else(dash, with_unit),
        with_unit(row.ours),
        row.error().filter(|error| row.band != Band::AtMost && !error.is_nan()).map_or_else(dash, percent),
        match row.band {
            Band::Within(percent) => format!("± {} %", figure(percent)),
            Band::AtMost => "at most".to_owned(),
            Band::Unpublished => dash(),
        },
        row.verdict().name().to_owned(),
        row.basis.name().to_owned(),
        row.source.to_owned(),
    ]
}

/// Returns the readings of the rows, each once, in the order of their first rows.
fn notes(rows: &[Row]) -> Vec<&'static str> {
    let mut notes = Vec::new();
    for row in rows.iter().filter(|row| !row.reading.is_empty()) {
        if !notes.contains(&row.reading) {
            notes.push(row.reading);
        }
    }
    notes
}

/// Returns the source of a row, with the number of the note that contains its reading.
fn source_with_note(row: &Row, notes: &[&str]) -> String {
    match notes.iter().position(|note| *note == row.reading) {
        Some(index) => format!("{} [{}]", row.source, index + 1),
        None => row.source.to_owned(),
    }
}

/// Returns the lines of the summary: the rows that are out of a band that they must be in, and the counts.
fn summary(outcomes: &[ExperimentOutcome]) -> Vec<String> {
    let rows = || outcomes.iter().flat_map(|outcome| &outcome.rows);
    let count = |verdict| rows().filter(|row| row.verdict() == verdict).count();
    let (inside, outside, alone) = (count(RowVerdict::In), count(RowVerdict::Out), count(RowVerdict::Alone));
    let missed: Vec<String> = rows()
        .filter(|row| row.is_missed())
        .map(|row| format!("- {} {} ({})", row.deck, row.figure, percent(row.error().unwrap_or_default())))
        .collect();
    let mut lines = vec![format!("{alone} figures have no published value.")];
    if !missed.is_empty() {
        lines.push("Out of band although they must not be:".to_owned());
    }
    let (out, musts) = (missed.len(), rows().filter(|row| row.is_required()).count());
    lines.extend(missed);
    lines.push(format!(
        "{outside} of {} published figures are OUT of their bands; of the {musts} that must be in them, {out}.",
        inside + outside
    ));
    let of_basis = |basis| {
        let of = rows().filter(|row| row.basis == basis).map(Row::verdict);
        let of: Vec<_> = of.filter(|verdict| *verdict != RowVerdict::Alone).collect();
        let out = of.iter().filter(|verdict| **verdict == RowVerdict::Out).count();
        (!of.is_empty()).then(|| format!("{} {} ({out} OUT)", of.len(), basis.name()))
    };
    let bases = [Basis::Calibrated, Basis::Derived, Basis::Predicted, Basis::Measured];
    let counted: Vec<String> = bases.into_iter().filter_map(of_basis).collect();
    lines.extend((!counted.is_empty()).then(|| format!("By basis: {}.", counted.join(", "))));
    lines
}

/// Returns the number of rows that are out of a band that they must be in.
pub fn missed(outcomes: &[ExperimentOutcome]) -> usize {
    outcomes.iter().flat_map(|outcome| &outcome.rows).filter(|row| row.is_missed()).count()
}

/// Returns the rows as text in columns, with a line on the experiments left out.
pub fn text(outcomes: &[ExperimentOutcome], left_out: Option<&str>) -> String {
    let mut text = String::new();
    for ExperimentOutcome { experiment, rows } in outcomes {
        text += &format!("{}: {}\n", experiment.name, experiment.about);
        if !experiment.instructions.is_empty() {
            text += &format!("  instructions: {}\n", experiment.instructions.replace('\n', "\n    "));
        }
        let widest = rows.iter().map(|row| row.figure.chars().count()).max().unwrap_or_default();
        for row in rows {
            let [published, ours, error, band, verdict, basis, source] = cells(row);
            let line = format!(
                "  {:<4} {:<widest$}  {published:>12} {ours:>12} {error:>9} {band:>9}  {verdict:<3}  {basis:<10}  \
                 {source}",
                row.deck, row.figure
            );
            text += line.trim_end();
            text.push('\n');
        }
        text.push('\n');
    }
    text += &left_out.map(|line| format!("{line}\n")).unwrap_or_default();
    text += "(columns: published, ours, error, band, whether in it, whether the model was made with the figure, where it \
             stands)\n";
    text + &summary(outcomes).join("\n") + "\n"
}

/// Returns the line of a page for a row with a published figure, whose unit ours has too.
fn published_row(row: &Row, notes: &[&str]) -> String {
    let [published, ours, error, band, verdict, basis, _] = cells(row);
    let ours = ours.strip_suffix(row.unit).unwrap_or(&ours).trim_end();
    let error = error.trim_end_matches(" %");
    let band = band.trim_end_matches(" %").replace("± ", "±").replace("at most", "≤");
    let source = source_with_note(row, notes);
    let figure = with_deck(row.deck, &row.figure);
    format!("| {figure} | {published} | {ours} | {error} | {band} | {verdict} | {basis} | {source} |\n")
}

/// Returns a title behind its number in the validation deck, if it has one.
fn with_deck(deck: &str, title: &str) -> String {
    format!("{deck} {title}").trim().to_owned()
}

/// Rows without a published figure that differ only in their first quantity.
struct RowSeries<'a> {
    first: &'a Row,
    /// Title of the rows without the quantity.
    title: String,
    /// Quantity of each row, empty if it has none, and its figure.
    figures: Vec<(&'a str, f64)>,
}

/// Groups rows without a published figure, in the order of the first rows.
fn series<'a>(rows: &[&'a Row]) -> Vec<RowSeries<'a>> {
    let mut all = Vec::<RowSeries>::new();
    for &row in rows {
        let quantity = row.over.first().map_or("", |quantity| quantity.title.as_str());
        let parts: Vec<&str> = row.figure.split(", ").collect();
        let others: Vec<&str> = parts.iter().copied().filter(|part| *part != quantity).collect();
        let quantity = if others.len() < parts.len() { quantity } else { "" };
        let title = others.join(", ");
        let is_same = |series: &&mut RowSeries| {
            let first = series.first;
            (first.deck, first.unit, &series.title) == (row.deck, row.unit, &title)
        };
        match all.iter_mut().find(is_same) {
            Some(series) => series.figures.push((quantity, row.ours)),
            None => all.push(RowSeries { first: row, title, figures: vec![(quantity, row.ours)] }),
        }
    }
    all
}

/// Returns the line of a page for rows without a published figure. The unit of their figures occurs once, after the
/// last one. If all quantities have the same unit, it also occurs once, after the first quantity that is not 1.
fn series_line(series: &RowSeries) -> String {
    let RowSeries { first, title, figures } = series;
    let unit_of = |quantity: &str| Some(quantity.split_once(' ')?.1.trim_end_matches('s').to_owned());
    let is_uniform = figures.windows(2).all(|pair| unit_of(pair[0].0) == unit_of(pair[1].0));
    let (mut cells, mut is_said) = (Vec::new(), false);
    for (quantity, ours) in figures {
        let ours = if ours.is_nan() { "-".to_owned() } else { figure(*ours) };
        let number = quantity.split(' ').next().unwrap_or_default();
        let label = if is_uniform && is_said { number } else { quantity };
        is_said = !["", "1"].contains(&number);
        cells.push(if label.is_empty() { ours } else { format!("{label}: {ours}") });
    }
    let figures = format!("{} {}", cells.join(", "), first.unit);
    format!("| {} | {} |\n", with_deck(first.deck, title), figures.trim_end())
}

/// Returns the rows as tables of a page. A reading that several rows share occurs once, in a note below its table.
pub fn markdown(outcomes: &[ExperimentOutcome]) -> String {
    let mut text = summary(outcomes).join("\n") + "\n";
    for ExperimentOutcome { experiment, rows } in outcomes {
        text +=
            &format!("\n### {}\n\n{}.\nSource: {}.\n", experiment.name, experiment.about, experiment.source);
        if !experiment.instructions.is_empty() {
            text += &format!("Instructions: {}.\n", experiment.instructions);
        }
        let notes = notes(rows);
        let (alone, published): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.verdict() == RowVerdict::Alone);
        if !published.is_empty() {
            text += "\n| Figure | Published | Ours | Error, % | Band, % | In it | Basis | Source |\n";
            text += "|---|---|---|---|---|---|---|---|\n";
            text.extend(published.into_iter().map(|row| published_row(row, &notes)));
        }
        for basis in [Basis::Predicted, Basis::Derived, Basis::Measured, Basis::Calibrated] {
            let alike: Vec<&Row> = alone.iter().copied().filter(|row| row.basis == basis).collect();
            if !alike.is_empty() {
                text += &format!("\n| Without a published value, {} | Ours |\n|---|---|\n", basis.name());
                text.extend(series(&alike).iter().map(series_line));
            }
        }
        if !notes.is_empty() {
            text += "\nNotes:\n\n";
        }
        for (index, note) in notes.iter().enumerate() {
            text += &format!("{}. {note}\n", index + 1);
        }
    }
    text
}

/// Returns the rows as CSV, one line for each row; figures are not rounded.
pub fn csv(outcomes: &[ExperimentOutcome]) -> String {
    let mut text =
        "experiment,deck,figure,over,unit,published,ours,error_percent,band,verdict,basis,source,reading\n"
            .to_owned();
    for record in records(outcomes) {
        let said = |value: &f64| !value.is_nan();
        let number =
            |value: Option<f64>| value.filter(said).map(|value| value.to_string()).unwrap_or_default();
        text += &format!(
            "{},{},\"{}\",\"{}\",{},{},{},{},{},{},{},\"{}\",\"{}\"\n",
            record.experiment,
            record.deck,
            record.figure,
            record.over.iter().map(Quantity::to_string).collect::<Vec<_>>().join("; "),
            record.unit,
            number(record.published),
            number(Some(record.ours)),
            number(record.error_percent),
            record.band,
            record.verdict,
            record.basis,
            record.source,
            record.reading
        );
    }
    text
}

/// Returns the rows as a JSON object; see `docs/reproduction.md`.
pub fn json(outcomes: &[ExperimentOutcome]) -> String {
    let report = ReproReport { schema: "isles.repro.1", chip: "scc", rows: records(outcomes) };
    serde_json::to_string_pretty(&report).expect("plain values become JSON") + "\n"
}

#[derive(Serialize)]
struct ReproReport {
    schema: &'static str,
    chip: &'static str,
    rows: Vec<Record>,
}

#[derive(Serialize)]
struct Record {
    experiment: &'static str,
    about: &'static str,
    deck: &'static str,
    figure: String,
    over: Vec<Quantity>,
    unit: &'static str,
    published: Option<f64>,
    ours: f64,
    error_percent: Option<f64>,
    band: String,
    verdict: &'static str,
    required: bool,
    basis: &'static str,
    source: &'static str,
    reading: &'static str,
}

fn records(outcomes: &[ExperimentOutcome]) -> Vec<Record> {
    let record = |outcome: &ExperimentOutcome, row: &Row| Record {
        experiment: outcome.experiment.name,
        about: outcome.experiment.about,
        deck: row.deck,
        figure: row.figure.clone(),
        over: row.over.clone(),
        unit: row.unit,
        published: row.published(),
        ours: row.ours,
        error_percent: row.error(),
        band: match row.band {
            Band::Within(percent) => figure(percent),
            Band::AtMost => "at most".to_owned(),
            Band::Unpublished => String::new(),
        },
        verdict: row.verdict().name(),
        required: row.is_required(),
        basis: row.basis.name(),
        source: row.source,
        reading: row.reading,
    };
    outcomes.iter().flat_map(|outcome| outcome.rows.iter().map(move |row| record(outcome, row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repro::{Experiment, RowSource};

    const FAMILY: Family = Family {
        deck: "",
        unit: "ns",
        band: Band::Unpublished,
        basis: Basis::Predicted,
        source: "000:293",
        reading: "",
    };

    fn row(band: Band, deck: &'static str, published: f64, ours: f64) -> Row {
        Family { deck, band, ..FAMILY }.row("figure", published, ours)
    }

    #[test]
    fn the_band_counts_on_both_sides_and_its_edge_is_in() {
        let verdict = |ours| row(Band::Within(10.0), "V5", 200.0, ours).verdict();
        assert_eq!([180.0, 220.0].map(verdict), [RowVerdict::In; 2]);
        assert_eq!([179.0, 221.0].map(verdict), [RowVerdict::Out; 2]);
        let verdict = |ours| row(Band::AtMost, "V5", 5.0, ours).verdict();
        assert_eq!([0.0, 5.0, 5.1].map(verdict), [RowVerdict::In, RowVerdict::In, RowVerdict::Out]);
    }

    #[test]
    fn only_a_required_row_out_of_its_band_is_missed() {
        assert!(row(Band::Within(5.0), "V1", 100.0, 106.0).is_missed());
        assert!(!row(Band::Within(5.0), "V1", 100.0, 104.0).is_missed());
        assert!(!row(Band::Within(5.0), "V5", 100.0, 106.0).is_missed());
        assert!(!row(Band::Within(5.0), "", 100.0, 106.0).is_missed());
    }

    #[test]
    fn a_figure_that_nobody_published_has_neither_error_nor_verdict() {
        let row = row(Band::Unpublished, "V10", f64::NAN, 7.0);
        assert_eq!((row.published(), row.error(), row.verdict()), (None, None, RowVerdict::Alone));
        assert!(!row.is_missed());
    }

    #[test]
    fn what_the_model_cannot_say_is_out_of_its_band() {
        for band in [Band::Within(20.0), Band::AtMost] {
            let row = row(band, "", 103.0, f64::NAN);
            assert_eq!(row.verdict(), RowVerdict::Out);
            assert_eq!(cells(&row)[..3], ["103 ns", "-", "-"]);
        }
    }

    #[test]
    fn rows_with_the_same_reading_share_a_note() {
        let printed = Family { band: Band::Within(1.0), ..FAMILY }.at("004:801");
        let [one, other] = ["1: “do not interfere”", "1: “the same”"].map(|reading| printed.reading(reading));
        let rows = [one, printed, other, one].map(|family| family.row("figure", 1.0, 1.0));
        let notes = notes(&rows);
        assert_eq!(notes, ["1: “do not interfere”", "1: “the same”"]);
        let sources = rows.map(|row| source_with_note(&row, &notes));
        assert_eq!(sources, ["004:801 [1]", "004:801", "004:801 [2]", "004:801 [1]"]);
    }

    #[test]
    fn a_page_has_errors_and_bands_as_numbers() {
        let compared = row(Band::Within(5.0), "V1", 100.0, 104.0);
        let line = "| V1 figure | 100 ns | 104 | +4.0 | ±5 | in | predicted | 000:293 |\n";
        assert_eq!(published_row(&compared, &[]), line);
    }

    #[test]
    fn rows_that_nobody_published_are_a_series_if_they_differ_in_a_quantity() {
        let row = |title: Title, ours| FAMILY.row(title, f64::NAN, ours);
        let ring = |hops| Title::from("ring").over(Quantity::hops(hops)).and("far");
        let rows =
            [row(ring(0), 1.0), row("ring, far".into(), 2.0), row(ring(3), 4.0), row("other".into(), 5.0)];
        let lines: Vec<String> = series(&rows.each_ref()).iter().map(series_line).collect();
        let expected = ["| ring, far | 0 hops: 1, 2, 3 hops: 4 ns |\n", "| other | 5 ns |\n"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn figures_that_nobody_published_have_a_table_for_each_basis() {
        const NAMELESS: Experiment = Experiment {
            name: "nameless",
            about: "figures",
            source: "nobody",
            instructions: "",
            rows: RowSource::Model(|_| Vec::new()),
        };
        let with =
            |basis, ours| Family { basis, ..FAMILY }.reading("7: “as it is”").row("figure", f64::NAN, ours);
        let bases = [Basis::Predicted, Basis::Derived, Basis::Measured, Basis::Calibrated];
        let rows = bases.into_iter().zip(1_u32..).map(|(basis, ours)| with(basis, ours.into())).collect();
        let page = markdown(&[ExperimentOutcome { experiment: &NAMELESS, rows }]);
        for (basis, ours) in bases.into_iter().zip(1_u32..) {
            let table = format!("| Without a published value, {} | Ours |\n|---|---|\n", basis.name());
            let row = page.split_once(&table).and_then(|(_, rows)| rows.lines().next());
            assert_eq!(row, Some(format!("| figure | {ours} ns |").as_str()), "{page}");
        }
    }

    #[test]
    fn a_source_cites_lines_of_a_known_paper_or_has_a_name() {
        let sources = ["002:235", "004:784-786", "000:293, 295", "tm2c-threads", "the data sheet"];
        assert!(sources.into_iter().all(is_source));
        assert!(!["", "004", "004-801", "999:1", "004:a", "801 of 004"].into_iter().any(is_source));
    }

    #[test]
    #[should_panic(expected = "derived, and nothing says how")]
    fn a_derived_figure_without_a_reading_is_refused() {
        let derived = Family { basis: Basis::Derived, band: Band::AtMost, ..FAMILY }.at("004:799");
        derived.row("figure", 1.0, 1.0);
    }

    #[test]
    fn figures_have_four_digits_and_errors_one_decimal() {
        let figures = [305.0, 304.76190, 0.5113, 12_345.6, 1.0, 0.0, 44.04, 184_164.0].map(figure);
        assert_eq!([0.04, -0.04, 0.06, -5.0].map(percent), ["0.0 %", "0.0 %", "+0.1 %", "-5.0 %"]);
        assert_eq!(figures, ["305", "304.8", "0.5113", "12346", "1", "0", "44.04", "184164"]);
    }
}
