//! Pictures of sweeps: time against energy, and the speed-up over places.
//!
//! Invariant: a setting is named as the table of the sweep names it, by its places and its clock, or by its governor if
//! that chose the clocks.

use super::input::{Content, InputFile, holding};
use super::run::{SpentByPlaces, scaling};
use super::table::CsvTable;
use super::{Kind, PlotRequest, Spent, scale_for};
use isles_app::Failure;
use isles_plot::{Axis, Figure, Plane, PlanePoint, PlaneSeries};

/// One setting and what it came to.
pub struct SweepRow {
    places: f64,
    /// The clock, or the governor.
    clock: String,
    seconds: f64,
    joules: f64,
}

impl SweepRow {
    /// The rows of the CSV of a sweep.
    ///
    /// # Errors
    /// A cell is no number, in words.
    pub fn all(table: &CsvTable) -> Result<Vec<SweepRow>, String> {
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
        let rows = places.into_iter().zip(clocks).zip(seconds).zip(joules);
        Ok(rows
            .map(|(((places, clock), seconds), joules)| SweepRow { places, clock, seconds, joules })
            .collect())
    }

    fn label(&self) -> String {
        let several = if self.places == 1.0 { "place" } else { "places" };
        format!("{} {several}, {}", self.places, self.clock)
    }
}

/// The figure of sweeps.
///
/// # Errors
/// The kind does not suit them.
pub fn figure(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let sweeps: Vec<(&InputFile, &Vec<SweepRow>)> = holding(files, |content| match content {
        Content::Sweep(rows) => Some(rows),
        _ => None,
    });
    let varies = |rows: &[SweepRow]| {
        let is_other = |of: fn(&SweepRow, &SweepRow) -> bool| rows.iter().any(|row| of(row, &rows[0]));
        (is_other(|row, first| row.places != first.places), is_other(|row, first| row.clock != first.clock))
    };
    let only_places = sweeps.iter().all(|(_, rows)| varies(rows) == (true, false));
    let default = if only_places || request.what.is_some() { Kind::Curve } else { Kind::Plane };
    match request.kind("the CSV of a sweep", default, &[Kind::Plane, Kind::Curve])? {
        Kind::Curve => Ok(curve(&sweeps, request.what)),
        _ => Ok(plane(&sweeps)),
    }
}

fn plane(sweeps: &[(&InputFile, &Vec<SweepRow>)]) -> Figure {
    let rows = || sweeps.iter().flat_map(|(_, rows)| rows.iter());
    let point = |row: &SweepRow| PlanePoint { x: row.seconds, y: row.joules, label: row.label() };
    let series = |(file, rows): &(&InputFile, &Vec<SweepRow>)| PlaneSeries {
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

fn curve(sweeps: &[(&InputFile, &Vec<SweepRow>)], what: Option<Spent>) -> Figure {
    let mut all: Vec<SpentByPlaces> = Vec::new();
    for (file, rows) in sweeps {
        for row in *rows {
            let name = if sweeps.len() == 1 {
                row.clock.clone()
            } else {
                format!("{}, {}", file.label(), row.clock)
            };
            let spent = if what == Some(Spent::Energy) { row.joules } else { row.seconds };
            SpentByPlaces::add(&mut all, &name, (row.places, spent));
        }
    }
    scaling(&all, what)
}
