//! Tables as CSV: any with a line of names, so that users can draw their own figures.
//!
//! The first column is the horizontal axis; a name may end in its unit, as `time (µs)`. Invariants: every line has as
//! many cells as there are names; a cell that a figure uses is a finite number or empty.

use super::input::{Content, InputFile, holding};
use super::{Kind, PlotRequest, scale_for};
use isles_app::Failure;
use isles_plot::{
    Arrangement, Axis, BarSeries, Bars, Curve, CurvePoint, Figure, Origin, Parity, ParityPoint, Plane,
    PlanePoint, PlaneSeries, Scale, Series,
};
use std::collections::{HashMap, HashSet};
use std::str::EscapeDebug;

/// Largest number of lines in a table: more than anybody can tell apart, and few enough for a browser.
const ROWS_MAX: usize = 20_000;

/// A line of names and lines of cells.
pub struct CsvTable {
    names: Vec<String>,
    /// Each with its line number in the file.
    rows: Vec<(usize, Vec<String>)>,
}

impl CsvTable {
    /// Reads a table; quoted cells may contain commas and doubled quotes, but no line feeds.
    ///
    /// # Errors
    /// A description of the first fault of the table.
    pub fn parse(text: &str) -> Result<CsvTable, String> {
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim_end()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (_, head) = lines.next().ok_or("is empty")?;
        let names = cells(head);
        if names.len() < 2 {
            return Err("has one column".to_owned());
        }
        if names.iter().any(|name| name.parse::<f64>().is_ok()) {
            let head = head.escape_debug();
            return Err(format!("begins with numbers ({head}) instead of column names"));
        }
        let row = |(number, line)| match cells(line) {
            cells if cells.len() == names.len() => Ok((number, cells)),
            cells => Err(format!("has {} of {} cells in line {number}", cells.len(), names.len())),
        };
        let rows = lines.map(row).collect::<Result<Vec<_>, _>>()?;
        if rows.len() > ROWS_MAX {
            return Err(format!("has {} lines of values; a picture shows at most {ROWS_MAX}", rows.len()));
        }
        if rows.is_empty() {
            return Err("has column names but no line of values".to_owned());
        }
        Ok(CsvTable { names, rows })
    }

    /// Returns `true` if there is a column of that name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// Returns the names of the columns after that one; empty if there is none.
    pub fn names_after(&self, name: &str) -> &[String] {
        let column = self.names.iter().position(|other| other == name);
        column.map_or(&[], |column| &self.names[column + 1..])
    }

    /// Returns the cells of the column of that name; empty if there is none.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let column = self.names.iter().position(|other| other == name);
        column.map_or_else(Vec::new, |column| self.column(column).collect())
    }

    /// Returns the numbers of the column of that name, `None` for an empty cell.
    ///
    /// # Errors
    /// A cell that is not a finite number, in words.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>, String> {
        let column = self.names.iter().position(|other| other == name);
        self.numbers_of(column.ok_or_else(|| format!("has no column {name}"))?)
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |(_, cells)| cells[column].as_str())
    }

    /// Returns the cells of the first column, each with the number of its earlier occurrences.
    fn counted_names(&self) -> Vec<(&str, usize)> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let count = |name| {
            let seen = counts.entry(name).or_default();
            *seen += 1;
            (name, *seen - 1)
        };
        self.column(0).map(count).collect()
    }

    fn numbers_of(&self, column: usize) -> Result<Vec<Option<f64>>, String> {
        let number = |(line, cells): &(usize, Vec<String>)| {
            let cell = &cells[column];
            let fault =
                || format!("has {cell:?} in line {line} under {}, not a finite number", self.shown(column));
            match cell.parse::<f64>() {
                _ if cell.is_empty() => Ok(None),
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(fault()),
            }
        };
        self.rows.iter().map(number).collect()
    }

    /// Returns all numbers of a column that may have no empty cell.
    fn full_numbers_of(&self, column: usize) -> Result<Vec<f64>, String> {
        let empty = || format!("has an empty cell under {}", self.shown(column));
        self.numbers_of(column)?.into_iter().collect::<Option<Vec<f64>>>().ok_or_else(empty)
    }

    /// Returns the name of a column for a terminal, with control characters escaped.
    fn shown(&self, column: usize) -> EscapeDebug<'_> {
        self.names[column].escape_debug()
    }

    /// Returns `true` if all cells of a column are numbers.
    fn is_numeric(&self, column: usize) -> bool {
        self.column(column).all(|cell| cell.parse::<f64>().is_ok())
    }
}

/// Splits a line into its cells.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut letters = line.chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = letters.next() {
        let cell = cells.last_mut().expect("there is always one");
        match character {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if is_quoted || cell.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            character => cell.push(character),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Splits a name from the unit in brackets at its end.
fn split_unit(name: &str) -> (String, String) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((label, unit)) = name.strip_suffix(close).and_then(|rest| rest.rsplit_once(open)) {
            return (label.trim().to_owned(), unit.trim().to_owned());
        }
    }
    (name.to_owned(), String::new())
}

/// Makes the figure of tables.
///
/// # Errors
/// The kind does not suit them, or a cell is not a number.
pub fn figure(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let tables: Vec<(&InputFile, &CsvTable)> = holding(files, |content| match content {
        Content::Table(table) => Some(table),
        _ => None,
    });
    let default = if tables.iter().all(|(_, table)| table.is_numeric(0)) { Kind::Curve } else { Kind::Bars };
    let all = [Kind::Curve, Kind::Bars, Kind::Plane, Kind::Parity];
    match request.kind("a CSV with a line of names", default, &all)? {
        Kind::Curve => curve(&tables),
        Kind::Bars => bars(&tables),
        Kind::Plane => plane(&tables),
        Kind::Parity => parity(&tables),
    }
}

type Tables<'a> = [(&'a InputFile, &'a CsvTable)];

/// Adds the file at fault to an error.
fn of<T>(file: &InputFile, result: Result<T, String>) -> Result<T, Failure> {
    result.map_err(|fault| {
        Failure::Usage(format!("{:?} {fault}; allowed: finite numbers under names", file.path))
    })
}

/// Returns the first table, which names the axes.
fn first<'a>(tables: &Tables<'a>) -> Result<&'a CsvTable, Failure> {
    tables.first().map(|(_, table)| *table).ok_or_else(|| Failure::Usage("which file?".to_owned()))
}

/// Returns the axis of all columns after the first, with the unit if all have the same one.
fn value_axis(tables: &Tables<'_>, values: impl IntoIterator<Item = f64>) -> Axis {
    let names: Vec<(String, String)> =
        tables.iter().flat_map(|(_, table)| &table.names[1..]).map(|name| split_unit(name)).collect();
    let same = |all: Vec<&String>| all.windows(2).all(|pair| pair[0] == pair[1]).then(|| all[0].clone());
    let label = same(names.iter().map(|(label, _)| label).collect()).unwrap_or_default();
    let unit = same(names.iter().map(|(_, unit)| unit).collect()).unwrap_or_default();
    Axis::new(label, unit, scale_for(values))
}

/// Returns the name of a series: its column, its file, or both.
fn series_name(tables: &Tables<'_>, file: &InputFile, table: &CsvTable, column: usize) -> String {
    let (label, _) = split_unit(&table.names[column]);
    match (tables.len(), table.names.len()) {
        (1, _) => label,
        (_, 2) => file.label(),
        _ => format!("{}, {label}", file.label()),
    }
}

fn title(tables: &Tables<'_>) -> String {
    let names: Vec<String> = tables.iter().map(|(file, _)| file.label()).collect();
    names.join(", ")
}

fn curve(tables: &Tables<'_>) -> Result<Figure, Failure> {
    let mut series = Vec::new();
    for (file, table) in tables {
        let xs = of(file, table.full_numbers_of(0))?;
        for column in 1..table.names.len() {
            let ys = of(file, table.numbers_of(column))?;
            let points = xs.iter().zip(ys).filter_map(|(x, y)| Some(CurvePoint::new(*x, y?))).collect();
            let name = series_name(tables, file, table, column);
            series.push(Series { name, origin: Origin::Ours, points });
        }
    }
    let points = || series.iter().flat_map(|series: &Series| &series.points);
    let (label, unit) = split_unit(&first(tables)?.names[0]);
    let (x, y) =
        (scale_for(points().map(|point| point.x)), value_axis(tables, points().map(|point| point.y)));
    let (title, subtitle) = (title(tables), String::new());
    Ok(Figure::Curve(Curve { title, subtitle, x: Axis::new(label, unit, x), y, series, ideal: false }))
}

fn bars(tables: &Tables<'_>) -> Result<Figure, Failure> {
    // A repeated name is another category of the same name.
    let mut seen = HashSet::new();
    let all = tables.iter().flat_map(|(_, table)| table.counted_names());
    let rows: Vec<(&str, usize)> = all.filter(|row| seen.insert(*row)).collect();
    let categories: Vec<String> = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut series = Vec::new();
    for (file, table) in tables {
        for column in 1..table.names.len() {
            let found = of(file, table.numbers_of(column))?;
            let known: HashMap<(&str, usize), Option<f64>> =
                table.counted_names().into_iter().zip(found).collect();
            let values = rows.iter().map(|row| known.get(row).copied().flatten()).collect();
            series.push(BarSeries { name: series_name(tables, file, table, column), values });
        }
    }
    let value = Axis { scale: Scale::Linear, ..value_axis(tables, []) };
    let (categories_label, _) = split_unit(&first(tables)?.names[0]);
    let (title, subtitle, arrangement) = (title(tables), String::new(), Arrangement::Grouped);
    Ok(Figure::Bars(Bars { title, subtitle, categories_label, categories, value, series, arrangement }))
}

/// Returns the label of each row: the first column that is not numeric, or nothing.
fn row_labels(table: &CsvTable) -> Vec<String> {
    let column = (0..table.names.len()).find(|column| !table.is_numeric(*column));
    match column {
        Some(column) => table.column(column).map(str::to_owned).collect(),
        None => vec![String::new(); table.rows.len()],
    }
}

/// Returns the first two columns of numbers, with their names.
fn two_columns(file: &InputFile, table: &CsvTable) -> Result<[(String, Vec<f64>); 2], Failure> {
    let numeric: Vec<usize> = (0..table.names.len()).filter(|column| table.is_numeric(*column)).collect();
    let [one, other, ..] = numeric[..] else {
        return Err(file.refusal(
            "a table with fewer than two columns of numbers; allowed: two, plotted against each other",
        ));
    };
    let column = |column: usize| {
        Ok::<_, Failure>((table.names[column].clone(), of(file, table.full_numbers_of(column))?))
    };
    Ok([column(one)?, column(other)?])
}

fn plane(tables: &Tables<'_>) -> Result<Figure, Failure> {
    let (mut series, mut names) = (Vec::new(), None);
    for (file, table) in tables {
        let [(x_name, xs), (y_name, ys)] = two_columns(file, table)?;
        names.get_or_insert((x_name, y_name));
        let labelled = xs.into_iter().zip(ys).zip(row_labels(table));
        let points = labelled.map(|((x, y), label)| PlanePoint { x, y, label }).collect();
        series.push(PlaneSeries { name: file.label(), points });
    }
    let points = || series.iter().flat_map(|series: &PlaneSeries| &series.points);
    let (x_name, y_name) = names.unwrap_or_default();
    let axis = |name: &str, scale| {
        let (label, unit) = split_unit(name);
        Axis::new(label, unit, scale)
    };
    let x = axis(&x_name, scale_for(points().map(|point| point.x)));
    let y = axis(&y_name, scale_for(points().map(|point| point.y)));
    Ok(Figure::Plane(Plane { title: title(tables), subtitle: String::new(), x, y, series }))
}

fn parity(tables: &Tables<'_>) -> Result<Figure, Failure> {
    let (mut points, mut names) = (Vec::new(), None);
    for (series, (file, table)) in tables.iter().enumerate() {
        let [(x_name, published), (y_name, ours)] = two_columns(file, table)?;
        names.get_or_insert((x_name, y_name));
        for ((published, ours), label) in published.into_iter().zip(ours).zip(row_labels(table)) {
            points.push(ParityPoint { label, unit: String::new(), published, ours, allowed: None, series });
        }
    }
    let (x_name, y_name) = names.unwrap_or_default();
    let axis = |name: &str| {
        let (label, unit) = split_unit(name);
        Axis::new(label, unit, Scale::Log)
    };
    Ok(Figure::Parity(Parity {
        title: title(tables),
        subtitle: String::new(),
        published: axis(&x_name),
        ours: axis(&y_name),
        ratio: format!("{} / {}", split_unit(&y_name).0, split_unit(&x_name).0),
        series: tables.iter().map(|(file, _)| file.label()).collect(),
        points,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_may_be_quoted() {
        assert_eq!(cells(r#"a,"b, ""c""", d ,"#), ["a", r#"b, "c""#, "d", ""]);
    }

    #[test]
    fn a_unit_stands_in_brackets_at_the_end_of_a_name() {
        assert_eq!(split_unit("time (µs)"), ("time".to_owned(), "µs".to_owned()));
        assert_eq!(split_unit("length [B]"), ("length".to_owned(), "B".to_owned()));
        assert_eq!(split_unit("places"), ("places".to_owned(), String::new()));
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said_with_its_line() {
        let fault = |text: &str| CsvTable::parse(text).err().unwrap();
        assert_eq!(fault("a"), "has one column");
        assert_eq!(fault("1,2\n3,4"), "begins with numbers (1,2) instead of column names");
        assert_eq!(fault("a,b\n1,2\n\n1,2,3"), "has 3 of 2 cells in line 4");
        assert_eq!(fault("a,b"), "has column names but no line of values");
        let table = CsvTable::parse("a,b\n1,\n2,inf").unwrap();
        assert_eq!(table.numbers("b").unwrap_err(), "has \"inf\" in line 3 under b, not a finite number");
        assert_eq!(table.numbers("a"), Ok(vec![Some(1.0), Some(2.0)]));
    }
}
