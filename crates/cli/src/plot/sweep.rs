//! Pictures of sweeps: time against energy, and the speed-up over places.
//!
//! Invariant: a setting has the same name as in the table of the sweep: its places and its clock, or its governor if
//! that chose the clocks.

use super::input::{Content, InputFile, holding};
use super::run::{ScalingSeries, scaling};
use super::table::CsvTable;
use super::{InputOrigin, Kind, PlotRequest, Resource, scale_for};
use isles_app::Failure;
use isles_plot::{Axis, Curve, CurvePoint, Figure, Origin, Plane, PlanePoint, PlaneSeries, Series};

/// A sweep: the settings tried, and the machine.
pub struct SweepResults {
    rows: Vec<SweepRow>,
    /// The program without its arguments, and the machine; `None` if the file does not have them.
    program: Option<String>,
    machine: Option<String>,
}

impl SweepResults {
    /// Reads the CSV of a sweep.
    ///
    /// # Errors
    /// A cell is not a number, in words.
    pub fn of_csv(table: &CsvTable) -> Result<SweepResults, String> {
        let first_of = |name| table.texts(name).first().filter(|text| !text.is_empty()).copied();
        let program = first_of("program").and_then(|words| words.split(' ').next()).map(str::to_owned);
        Ok(SweepResults {
            rows: SweepRow::all(table)?,
            program,
            machine: first_of("machine").map(str::to_owned),
        })
    }

    pub fn origin(&self) -> InputOrigin {
        InputOrigin { chip: self.machine.clone(), ..InputOrigin::default() }
    }

    /// Returns the program and the machine that were tried, as the end of a title.
    fn subject(&self) -> Option<String> {
        Some(format!(": {} on {}", self.program.as_ref()?, self.machine.as_ref()?))
    }
}

/// One setting and its result.
struct SweepRow {
    places: f64,
    /// The clock, or the governor.
    clock: String,
    seconds: f64,
    joules: f64,
    /// Constants of the chip, by their keys.
    constants: Vec<(String, String)>,
}

impl SweepRow {
    /// Reads the rows of the CSV of a sweep.
    ///
    /// # Errors
    /// A cell is not a number, in words.
    fn all(table: &CsvTable) -> Result<Vec<SweepRow>, String> {
        let full = |name: &str| {
            let numbers = table.numbers(name)?.into_iter().collect::<Option<Vec<f64>>>();
            numbers.ok_or_else(|| format!("has an empty cell under {name}"))
        };
        let (places, seconds, joules) = (full("places")?, full("time_s")?, full("energy_j")?);
        let megahertz =
            if table.has("clock_mhz") { table.numbers("clock_mhz")? } else { vec![None; places.len()] };
        let clocks =
            megahertz.into_iter().zip(table.texts("governor")).map(|(megahertz, governor)| match megahertz {
                Some(megahertz) => format!("{megahertz:.0} MHz"),
                None => governor.to_owned(),
            });
        let keys = table.names_after("in_time");
        let columns: Vec<Vec<&str>> = keys.iter().map(|key| table.texts(key)).collect();
        let constants = (0..places.len()).map(|row| {
            let values = columns.iter().map(|column| column[row].to_owned());
            keys.iter().cloned().zip(values).collect()
        });
        let rows = places.into_iter().zip(clocks).zip(seconds).zip(joules).zip(constants);
        let row = |((((places, clock), seconds), joules), constants)| SweepRow {
            places,
            clock,
            seconds,
            joules,
            constants,
        };
        Ok(rows.map(row).collect())
    }

    /// Returns the number at the beginning of the first constant.
    fn constant(&self) -> Option<f64> {
        let (_, value) = self.constants.first()?;
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
        value[..end].parse().ok()
    }

    /// Returns places and clock, and constants without the first ones.
    fn beside(&self, skipped: usize) -> String {
        let constants = self.constants.iter().skip(skipped);
        constants.fold(self.label_of_places(), |label, (key, value)| format!("{label}, {key}={value}"))
    }

    fn label(&self) -> String {
        self.beside(0)
    }

    fn label_of_places(&self) -> String {
        let several = if self.places == 1.0 { "place" } else { "places" };
        format!("{} {several}, {}", self.places, self.clock)
    }
}

/// Makes the figure of sweeps.
///
/// # Errors
/// The kind does not suit them.
pub fn figure(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let results: Vec<(&InputFile, &SweepResults)> = holding(files, |content| match content {
        Content::Sweep(results) => Some(results),
        _ => None,
    });
    let subject = results.first().and_then(|(_, sweep)| sweep.subject());
    let subject =
        subject.filter(|own| results.iter().all(|(_, sweep)| sweep.subject().as_ref() == Some(own)));
    let sweeps: Vec<(&InputFile, &[SweepRow])> =
        results.into_iter().map(|(file, sweep)| (file, &sweep.rows[..])).collect();
    let varies = |rows: &[SweepRow]| {
        let is_other = |of: fn(&SweepRow, &SweepRow) -> bool| rows.iter().any(|row| of(row, &rows[0]));
        (is_other(|row, first| row.places != first.places), is_other(|row, first| row.clock != first.clock))
    };
    let only_places = sweeps.iter().all(|(_, rows)| varies(rows) == (true, false));
    let constants = sweeps.iter().all(|(_, rows)| {
        rows.iter().all(|row| row.constant().is_some())
            && rows.iter().any(|row| row.constant() != rows[0].constant())
    });
    let default = if only_places || constants || request.what.is_some() { Kind::Curve } else { Kind::Plane };
    let mut figure = match request.kind("the CSV of a sweep", default, &[Kind::Plane, Kind::Curve])? {
        Kind::Curve if constants => over_constant(&sweeps, request.what),
        Kind::Curve => curve(&sweeps, request.what),
        _ => plane(&sweeps),
    };
    figure.title_mut().push_str(&subject.unwrap_or_default());
    Ok(figure)
}

fn plane(sweeps: &[(&InputFile, &[SweepRow])]) -> Figure {
    let rows = || sweeps.iter().flat_map(|(_, rows)| rows.iter());
    let point = |row: &SweepRow| PlanePoint { x: row.seconds, y: row.joules, label: row.label() };
    let series = |(file, rows): &(&InputFile, &[SweepRow])| PlaneSeries {
        name: file.label(),
        points: rows.iter().map(point).collect(),
    };
    Figure::Plane(Plane {
        title: "Time and energy".to_owned(),
        subtitle: format!("{} settings; filled: no other one is better in both", rows().count()),
        x: Axis::new("Time", "s", scale_for(rows().map(|row| row.seconds))),
        y: Axis::new("Energy", "J", scale_for(rows().map(|row| row.joules))),
        series: sweeps.iter().map(series).collect(),
    })
}

/// Draws time or energy over the first constant, with a curve for each combination of everything else.
fn over_constant(sweeps: &[(&InputFile, &[SweepRow])], what: Option<Resource>) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for (file, rows) in sweeps {
        for row in *rows {
            let own = row.beside(1);
            let name = if sweeps.len() == 1 { own } else { format!("{}, {own}", file.label()) };
            let spent = if what == Some(Resource::Energy) { row.joules } else { row.seconds };
            let point = CurvePoint::new(row.constant().unwrap_or_default(), spent);
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, origin: Origin::Ours, points: vec![point] }),
            }
        }
    }
    let points = || series.iter().flat_map(|series| &series.points);
    let (label, unit) = if what == Some(Resource::Energy) { ("Energy", "J") } else { ("Time", "s") };
    let first = sweeps.first().and_then(|(_, rows)| rows.first()).and_then(|row| row.constants.first());
    let (key, unit_of_key) = first.map_or(("", ""), |(key, value)| {
        (key.as_str(), value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim())
    });
    Figure::Curve(Curve {
        title: format!("{label} by {key}"),
        subtitle: if let [one] = &series[..] {
            format!("{}; {}", one.name, spread(one))
        } else {
            String::new()
        },
        x: Axis::new(key, unit_of_key, scale_for(points().map(|point| point.x))),
        y: Axis::new(label, unit, scale_for(points().map(|point| point.y))),
        series,
        ideal: false,
    })
}

/// Returns the spread of a series, which an axis that does not begin at zero hides.
fn spread(series: &Series) -> String {
    let values = || series.points.iter().map(|point| point.y);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    format!("the most is {:.3} times the least", most / least)
}

fn curve(sweeps: &[(&InputFile, &[SweepRow])], what: Option<Resource>) -> Figure {
    let mut all: Vec<ScalingSeries> = Vec::new();
    for (file, rows) in sweeps {
        for row in *rows {
            let name = if sweeps.len() == 1 {
                row.clock.clone()
            } else {
                format!("{}, {}", file.label(), row.clock)
            };
            let spent = if what == Some(Resource::Energy) { row.joules } else { row.seconds };
            ScalingSeries::add(&mut all, &name, row.places, spent);
        }
    }
    scaling(&all, what)
}
