//! Pictures of measurements: each row beside its strongest peer, or rows that differ in a number as a curve.
//!
//! A ratio is the median of those within a run, as in the tables of the bench, inverted where more is better, so that
//! below one Isles needs less everywhere. Invariant: a row without a peer is in no picture of ratios, and the picture
//! gives the number of such rows.

use super::input::{Content, InputFile, fields, holding};
use super::{InputOrigin, Kind, PlotRequest, scale_for};
use isles_app::Failure;
use isles_app::runs::refusal;
use isles_plot::{
    Arrangement, Axis, BarSeries, Bars, Curve, CurvePoint, Figure, Interval, Origin, Scale, Series,
};
use serde::Deserialize;
use serde_json::Value;

/// Fields of the JSON of `isles bench` that a figure uses.
#[derive(Deserialize)]
pub struct BenchResults {
    suite: String,
    machine: MachineFields,
    runs: usize,
    groups: Vec<GroupFields>,
}

#[derive(Deserialize)]
struct MachineFields {
    cpu: String,
    cores: usize,
    commit: Option<String>,
}

#[derive(Deserialize)]
struct GroupFields {
    name: String,
    rows: Vec<BenchRow>,
}

#[derive(Deserialize)]
struct BenchRow {
    name: String,
    unit: String,
    better: Option<String>,
    isles: Option<BenchFigure>,
    peers: Vec<BenchFigure>,
}

#[derive(Deserialize)]
struct BenchFigure {
    contender: String,
    name: String,
    median: f64,
    min: f64,
    max: f64,
    values: Vec<f64>,
}

/// The format of the files that this version reads.
const FORMAT: u64 = 3;

impl BenchResults {
    /// Reads the results in a document.
    pub fn of_json(value: Value) -> Result<BenchResults, String> {
        if value["format"] != FORMAT {
            return Err(format!("has format {}; this version reads format {FORMAT}", value["format"]));
        }
        fields(value)
    }

    pub fn origin(&self) -> InputOrigin {
        let MachineFields { cpu, cores, commit } = &self.machine;
        let commit = commit.as_ref().map(|commit| format!(" at commit {commit}")).unwrap_or_default();
        let measured = Some(format!("measured{commit} on {cpu}, {cores} cores"));
        InputOrigin { measured, ..InputOrigin::default() }
    }
}

impl BenchRow {
    fn is_more_better(&self) -> bool {
        self.better.as_deref() == Some("more")
    }

    /// Returns the ratio to the strongest peer, below one if Isles needs less, and its name.
    fn ratio(&self) -> Option<(f64, &str)> {
        let ours = self.isles.as_ref()?;
        let by_median = |one: &&BenchFigure, other: &&BenchFigure| one.median.total_cmp(&other.median);
        let best = match self.is_more_better() {
            true => self.peers.iter().max_by(by_median),
            false => self.peers.iter().min_by(by_median),
        }?;
        let within: Vec<f64> =
            ours.values.iter().zip(&best.values).map(|(ours, theirs)| ours / theirs).collect();
        let in_pairs = ours.values.len() == best.values.len() && !within.is_empty();
        let ratio = if in_pairs { median(within) } else { ours.median / best.median };
        let ratio = if self.is_more_better() { 1.0 / ratio } else { ratio };
        (ratio.is_finite() && ratio > 0.0).then_some((ratio, best.contender.as_str()))
    }

    /// Returns the name without the number at its end, and the number.
    fn size(&self) -> Option<(&str, f64)> {
        let (stem, size) = self.name.rsplit_once('-')?;
        let digits = size.trim_end_matches(|character: char| character.is_ascii_lowercase());
        let factor = match &size[digits.len()..] {
            "" => 1.0,
            "k" => 1024.0,
            "m" => 1_048_576.0,
            _ => return None,
        };
        Some((stem, digits.parse::<f64>().ok()? * factor))
    }

    /// Returns `true` if its size is in bytes.
    fn is_of_bytes(&self) -> bool {
        self.name.ends_with(['k', 'm'])
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    if values.len() % 2 == 1 { values[upper] } else { (values[upper - 1] + values[upper]) / 2.0 }
}

/// Makes the figure of measurements.
///
/// # Errors
/// There is no such group or row, the kind does not suit them, or no row has a peer.
pub fn figure(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let all: Vec<(&InputFile, &BenchResults)> = holding(files, |content| match content {
        Content::Bench(results) => Some(results),
        _ => None,
    });
    let stem = |row: &'_ BenchRow| row.size().map_or_else(|| row.name.clone(), |(stem, _)| stem.to_owned());
    if let Some(only) = &request.only {
        let mut known: Vec<String> = Vec::new();
        for group in all.iter().flat_map(|(_, results)| &results.groups) {
            known.extend([group.name.clone()].into_iter().chain(group.rows.iter().map(stem)));
        }
        known.dedup();
        if !known.contains(only) {
            return Err(refusal("--only", only, &known.join(", ")));
        }
    }
    let is_wanted = |group: &GroupFields, row: &BenchRow| {
        request.only.as_ref().is_none_or(|only| group.name == *only || stem(row) == *only)
    };
    let chosen = |results: &'_ BenchResults| -> Vec<usize> {
        let rows = results.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
        rows.enumerate().filter(|(_, (group, row))| is_wanted(group, row)).map(|(number, _)| number).collect()
    };
    let rows: Vec<(&InputFile, Vec<&BenchRow>)> = all
        .iter()
        .map(|(file, results)| {
            let every: Vec<&BenchRow> = results.groups.iter().flat_map(|group| &group.rows).collect();
            (*file, chosen(results).into_iter().map(|number| every[number]).collect())
        })
        .collect();
    let runs = all.iter().map(|(_, results)| results.runs).max().unwrap_or_default();
    let suite = all.first().map(|(_, results)| results.suite.as_str()).unwrap_or_default();
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    match request.kind("the JSON of bench", Kind::Bars, &[Kind::Bars, Kind::Curve])? {
        Kind::Curve => curve(&rows),
        _ => ratios(&rows, &format!("isles bench {suite}, {runs}"), all.len() == 1),
    }
}

type RowsOfFiles<'a> = [(&'a InputFile, Vec<&'a BenchRow>)];

/// Draws each row beside its strongest peer.
fn ratios(files: &RowsOfFiles<'_>, what: &str, is_one: bool) -> Result<Figure, Failure> {
    let mut categories: Vec<(String, String)> = Vec::new();
    let mut alone = 0;
    for row in files.iter().flat_map(|(_, rows)| rows) {
        let Some((_, peer)) = row.ratio() else {
            alone += 1;
            continue;
        };
        if !categories.iter().any(|(name, _)| *name == row.name) {
            categories.push((row.name.clone(), if is_one { format!(" ({peer})") } else { String::new() }));
        }
    }
    if categories.is_empty() {
        let allowed = "a session with at least one row that has a peer, as isles bench --install makes it";
        return Err(Failure::Usage(format!("no row has a peer that was measured; allowed: {allowed}")));
    }
    let series = |(file, rows): &(&InputFile, Vec<&BenchRow>)| {
        let value = |(name, _): &(String, String)| {
            let row = rows.iter().find(|row| row.name == *name)?;
            row.ratio().map(|(ratio, _)| ratio)
        };
        BarSeries { name: file.label(), values: categories.iter().map(value).collect() }
    };
    let series: Vec<BarSeries> = files.iter().map(series).collect();
    let without = if alone == 0 { String::new() } else { format!("; {alone} without a peer") };
    Ok(Figure::Bars(Bars {
        title: "Isles beside the strongest peer of each row".to_owned(),
        subtitle: format!("{what}; below 1 Isles needs less{without}"),
        categories_label: String::new(),
        categories: categories.into_iter().map(|(name, peer)| name + &peer).collect(),
        value: Axis::new("What Isles needs / what the peer needs", "", Scale::Log),
        series,
        arrangement: Arrangement::Grouped,
    }))
}

/// Draws rows that differ in the number at the end of their names, by contender.
fn curve(files: &RowsOfFiles<'_>) -> Result<Figure, Failure> {
    let sized = || files.iter().flat_map(|(_, rows)| rows).filter(|row| row.size().is_some());
    let first = sized().next();
    let refused = || {
        let allowed =
            "bars; a curve needs --only with a row that is measured for several numbers, such as barrier";
        refusal("--kind", "curve", allowed)
    };
    let Some((first, (stem, _))) = first.and_then(|first| Some((first, first.size()?))) else {
        return Err(refused());
    };
    let is_comparable =
        |row: &&&BenchRow| row.size().is_some_and(|(other, _)| other == stem) && row.unit == first.unit;
    let mut series: Vec<Series> = Vec::new();
    for (file, rows) in files {
        for row in rows.iter().filter(is_comparable) {
            let Some((_, x)) = row.size() else { continue };
            for figure in row.isles.iter().chain(&row.peers) {
                let is_other =
                    |other: &&BenchFigure| other.contender == figure.contender && other.name != figure.name;
                let of =
                    if row.peers.iter().any(|other| is_other(&other)) { figure.name.as_str() } else { "" };
                let file = if files.len() == 1 { String::new() } else { file.label() };
                let parts = [figure.contender.as_str(), of, file.as_str()];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let name = parts.join(", ");
                let band = Some(Interval { low: figure.min, high: figure.max });
                let point = CurvePoint { x, y: figure.median, band };
                match series.iter_mut().find(|series| series.name == name) {
                    Some(series) => series.points.push(point),
                    None => series.push(Series { name, origin: Origin::Ours, points: vec![point] }),
                }
            }
        }
    }
    let points = || series.iter().flat_map(|series| &series.points);
    if series.iter().all(|series| series.points.len() < 2) {
        return Err(refused());
    }
    let (x, y) = (scale_for(points().map(|point| point.x)), scale_for(points().map(|point| point.y)));
    let is_of_bytes =
        files.iter().flat_map(|(_, rows)| rows).any(|row| is_comparable(&row) && row.is_of_bytes());
    let over = if is_of_bytes { Axis::new("Length", "B", x) } else { Axis::new("Places", "", x) };
    Ok(Figure::Curve(Curve {
        title: stem.to_owned(),
        subtitle: "medians; shaded: smallest to largest".to_owned(),
        x: over,
        y: Axis::new(if first.is_more_better() { "Rate" } else { "Time" }, first.unit.clone(), y),
        series,
        ideal: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(contender: &str, values: &[f64]) -> BenchFigure {
        let median = median(values.to_vec());
        BenchFigure {
            contender: contender.to_owned(),
            name: String::new(),
            median,
            min: median,
            max: median,
            values: values.to_vec(),
        }
    }

    fn row(better: &str, ours: &[f64], peers: &[(&str, &[f64])]) -> BenchRow {
        BenchRow {
            name: "barrier-8".to_owned(),
            unit: "µs".to_owned(),
            better: Some(better.to_owned()),
            isles: Some(figure("isles", ours)),
            peers: peers.iter().map(|(name, values)| figure(name, values)).collect(),
        }
    }

    #[test]
    fn the_ratio_is_within_runs_to_the_strongest_peer_and_below_one_if_isles_needs_less() {
        let times = row("less", &[1.0, 2.0, 30.0], &[("slow", &[9.0; 3]), ("fast", &[2.0, 4.0, 5.0])]);
        assert_eq!(times.ratio(), Some((0.5, "fast")));
        let rates = row("more", &[10.0], &[("slow", &[1.0]), ("fast", &[5.0])]);
        assert_eq!(rates.ratio(), Some((0.5, "fast")));
        assert_eq!(row("less", &[1.0], &[]).ratio(), None);
    }

    #[test]
    fn the_size_of_a_row_stands_at_the_end_of_its_name() {
        let size = |name: &str| {
            let row = BenchRow { name: name.to_owned(), ..row("less", &[1.0], &[]) };
            row.size().map(|(stem, size)| (stem.to_owned(), size))
        };
        assert_eq!(size("barrier-48"), Some(("barrier".to_owned(), 48.0)));
        assert_eq!(size("move-2m"), Some(("move".to_owned(), 2_097_152.0)));
        assert_eq!((size("at-threads"), size("spawn")), (None, None));
    }
}
