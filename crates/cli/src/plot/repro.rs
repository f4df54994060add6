//! Pictures of reproduced experiments: all figures against published ones, or one experiment as a curve.
//!
//! The quantities of a figure come with its name, as values: `RCCE, 32 B` is the series `RCCE` at a length of 32. The
//! quantity with the most values is the axis of the curve. Ratios whose names say what is compared where (`processes,
//! BF ring, times as long`) are bars. Invariant: a figure without a published value is in no parity picture, and a
//! curve or a bar shows only our value of it.

use super::input::{Content, InputFile, holding};
use super::table::CsvTable;
use super::{InputOrigin, Kind, PlotRequest, scale_for};
use isles_app::Failure;
use isles_app::runs::refusal;
use isles_plot::{
    Arrangement, Axis, BarSeries, Bars, Curve, CurvePoint, Figure, Interval, Origin, Parity, ParityPoint,
    Scale, Series,
};
use serde::Deserialize;

/// Fields of the rows of `isles repro` that a figure uses.
#[derive(Deserialize)]
pub struct ReproResults {
    /// The modelled chip, if the file names it.
    chip: String,
    rows: Vec<ReproRow>,
}

#[derive(Clone, Deserialize)]
struct ReproRow {
    experiment: String,
    /// Description of the experiment, in a line.
    #[serde(default)]
    about: String,
    figure: String,
    /// Quantities of the horizontal axis; files of earlier builds lack them, and have no curve.
    #[serde(default)]
    over: Vec<FigureQuantity>,
    unit: String,
    published: Option<f64>,
    ours: f64,
    band: String,
    basis: String,
}

/// A quantity that a figure depends on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct FigureQuantity {
    quantity: String,
    unit: String,
    value: f64,
    /// The part of the figure's name that gives it, between commas.
    title: String,
}

impl FigureQuantity {
    /// Reads the quantity that CSV writes as `Length = 1024 B [1 KiB]`.
    fn of_csv(text: &str) -> Option<FigureQuantity> {
        let (quantity, rest) = text.split_once(" = ")?;
        let (value, title) = rest.strip_suffix(']')?.split_once(" [")?;
        let (value, unit) = value.split_once(' ').unwrap_or((value, ""));
        let [quantity, unit, title] = [quantity, unit, title].map(str::to_owned);
        Some(FigureQuantity { quantity, unit, value: value.parse().ok()?, title })
    }
}

impl ReproResults {
    /// Returns the results, if there is something to draw.
    pub fn of_json(results: ReproResults) -> Result<ReproResults, String> {
        if results.rows.is_empty() { Err("has no rows".to_owned()) } else { Ok(results) }
    }

    /// Reads the rows of a CSV, which does not name the chip.
    pub fn of_csv(table: &CsvTable) -> Result<ReproResults, String> {
        let [experiments, figures, units, bands, bases] =
            ["experiment", "figure", "unit", "band", "basis"].map(|name| table.texts(name));
        let [abouts, overs] = ["about", "over"].map(|name| table.texts(name));
        if units.is_empty() {
            return Err("has no column unit".to_owned());
        }
        let (published, ours) = (table.numbers("published")?, table.numbers("ours")?);
        let over = |number: usize| {
            let all = overs.get(number).into_iter().flat_map(|all| all.split("; "));
            all.filter(|text| !text.is_empty())
                .map(|text| {
                    FigureQuantity::of_csv(text).ok_or_else(|| format!("has {text:?} in its column over"))
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let mut over = (0..ours.len()).map(over).collect::<Result<Vec<_>, _>>()?;
        let mut row = |number: usize| {
            Some(ReproRow {
                experiment: experiments[number].to_owned(),
                about: abouts.get(number).map_or_else(String::new, |about| (*about).to_owned()),
                figure: figures[number].to_owned(),
                over: std::mem::take(&mut over[number]),
                unit: units[number].to_owned(),
                published: published[number],
                ours: ours[number]?,
                band: bands[number].to_owned(),
                basis: bases[number].to_owned(),
            })
        };
        let rows: Vec<ReproRow> = (0..ours.len()).filter_map(&mut row).collect();
        ReproResults::of_json(ReproResults { chip: String::new(), rows })
    }

    pub fn origin(&self) -> InputOrigin {
        let chip = (!self.chip.is_empty()).then(|| format!("chip:{}", self.chip));
        InputOrigin { chip, ..InputOrigin::default() }
    }
}

impl ReproRow {
    /// Returns the interval in which our value must be.
    fn allowed(&self) -> Option<Interval> {
        let published = self.published?;
        if self.band == "at most" {
            return Some(Interval { low: f64::NEG_INFINITY, high: published });
        }
        let share = self.band.parse::<f64>().ok()? / 100.0;
        let (one, other) = (published * (1.0 - share), published * (1.0 + share));
        // The band is rounded as it is printed, and includes its edge.
        let edge = published.abs() * 1e-9;
        Some(Interval { low: one.min(other) - edge, high: one.max(other) + edge })
    }
}

/// Makes the figure of the rows of `isles repro`.
///
/// # Errors
/// There is no such experiment, or the kind does not suit it.
pub fn figure(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let all: Vec<(&InputFile, &ReproResults)> = holding(files, |content| match content {
        Content::Repro(results) => Some(results),
        _ => None,
    });
    let mut known: Vec<&str> = Vec::new();
    for row in all.iter().flat_map(|(_, results)| &results.rows) {
        if !known.contains(&row.experiment.as_str()) {
            known.push(&row.experiment);
        }
    }
    if let Some(only) = request.only.as_deref().filter(|only| !known.contains(only)) {
        return Err(refusal("--only", only, &known.join(", ")));
    }
    let one = match (request.only.as_deref(), &known[..]) {
        (None, [one]) => Some(*one),
        (only, _) => only,
    };
    let is_chosen = |row: &&ReproRow| one.is_none_or(|one| row.experiment == one);
    let mut chosen: Vec<(String, Vec<ReproRow>)> = Vec::new();
    for (file, results) in &all {
        let rows: Vec<ReproRow> = results.rows.iter().filter(is_chosen).cloned().collect();
        chosen.push((if all.len() == 1 { String::new() } else { file.label() }, rows));
    }
    let curve = one.and_then(|one| curve(one, &chosen));
    let bars = one.and_then(|one| bars(one, &chosen));
    let default = match (&curve, &bars) {
        (Some(_), _) => Kind::Curve,
        (None, Some(_)) => Kind::Bars,
        (None, None) => Kind::Parity,
    };
    match (request.kind("the rows of repro", default, &[Kind::Parity, Kind::Curve, Kind::Bars])?, curve) {
        (Kind::Curve, Some(curve)) => Ok(curve),
        (Kind::Bars, _) => bars.ok_or_else(|| {
            let allowed =
                "parity here; bars need --only with an experiment of unpublished ratios, by case and place";
            refusal("--kind", "bars", allowed)
        }),
        (Kind::Curve, None) => {
            let allowed =
                "parity here; a curve needs --only with an experiment whose figures are over a number";
            Err(refusal("--kind", "curve", allowed))
        }
        _ => parity(one, &chosen),
    }
}

/// Draws the bars of one experiment, if it has ratios without published values, each named `SERIES, CATEGORY, WHAT`.
fn bars(name: &str, chosen: &[(String, Vec<ReproRow>)]) -> Option<Figure> {
    let (mut series, mut categories): (Vec<BarSeries>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut kind, mut left_out) = (None, 0_usize);
    for (file, rows) in chosen {
        for row in rows {
            let parts: Vec<&str> = row.figure.split(", ").collect();
            let (&[place, case, what], true) = (&parts[..], row.unit.is_empty() && row.published.is_none())
            else {
                left_out += 1;
                continue;
            };
            if *kind.get_or_insert(what) != what {
                return None;
            }
            let place = if file.is_empty() { place.to_owned() } else { format!("{place}, {file}") };
            let category = position(&mut categories, |known| known == case, || case.to_owned());
            let number = position(
                &mut series,
                |known| known.name == place,
                || BarSeries { name: place.clone(), values: Vec::new() },
            );
            let values = &mut series[number].values;
            values.resize(values.len().max(category + 1), None);
            values[category] = Some(row.ours);
        }
    }
    let what = kind?;
    series.iter_mut().for_each(|series| series.values.resize(categories.len(), None));
    let scale = scale_for(series.iter().flat_map(|series| &series.values).flatten().copied());
    Some(Figure::Bars(Bars {
        title: about(name, chosen),
        subtitle: format!("ratios without a published value; {left_out} more figures are of other kinds"),
        categories_label: String::new(),
        categories,
        value: Axis::new(capitalised(what), "", scale),
        series,
        arrangement: Arrangement::Grouped,
    }))
}

/// Returns the index of the first of `all` for which `is_it` holds; adds one at the end if there is none.
fn position<T>(all: &mut Vec<T>, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    all.iter().position(is_it).unwrap_or_else(|| {
        all.push(make());
        all.len() - 1
    })
}

/// Returns the description of the experiment for a title: from its rows, otherwise its name.
fn about(name: &str, chosen: &[(String, Vec<ReproRow>)]) -> String {
    let said =
        chosen.iter().flat_map(|(_, rows)| rows).find(|row| row.experiment == name && !row.about.is_empty());
    capitalised(&said.map_or(name, |row| &row.about).replace('`', ""))
}

/// Returns the text with its first letter in upper case.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn parity(one: Option<&str>, chosen: &[(String, Vec<ReproRow>)]) -> Result<Figure, Failure> {
    let (mut series, mut points): (Vec<String>, Vec<ParityPoint>) = (Vec::new(), Vec::new());
    for (file, rows) in chosen {
        for row in rows {
            let name = if file.is_empty() { row.basis.clone() } else { format!("{file}, {}", row.basis) };
            let number = series.iter().position(|other| *other == name).unwrap_or_else(|| {
                series.push(name);
                series.len() - 1
            });
            let Some(published) = row.published else { continue };
            points.push(ParityPoint {
                label: if one.is_some() {
                    row.figure.clone()
                } else {
                    format!("{}: {}", row.experiment, row.figure)
                },
                unit: row.unit.clone(),
                published,
                ours: row.ours,
                allowed: row.allowed(),
                series: number,
            });
        }
    }
    if points.is_empty() {
        let allowed = "rows with at least one published figure";
        return Err(Failure::Usage(format!("no figure of these rows was published; allowed: {allowed}")));
    }
    Ok(Figure::Parity(Parity {
        title: one.map_or_else(
            || "Published figures and those of the modelled chip".to_owned(),
            |one| about(one, chosen),
        ),
        subtitle: format!("{} published figures, each in its own unit", points.len()),
        published: Axis::new("Published", "", Scale::Log),
        ours: Axis::new("Ours", "", Scale::Log),
        ratio: "Ours / published".to_owned(),
        series,
        points,
    }))
}

/// Draws the curve of one experiment, if its figures depend on a number.
fn curve<'a>(name: &str, chosen: &'a [(String, Vec<ReproRow>)]) -> Option<Figure> {
    let rows = || chosen.iter().flat_map(|(_, rows)| rows);
    let mut values: Vec<(&str, Vec<f64>)> = Vec::new();
    for FigureQuantity { quantity, value, .. } in rows().flat_map(|row| &row.over) {
        match values.iter_mut().find(|(known, _)| known == quantity) {
            Some((_, known)) if known.contains(value) => {}
            Some((_, known)) => known.push(*value),
            None => values.push((quantity, vec![*value])),
        }
    }
    let (word, over) =
        values.into_iter().max_by_key(|(_, values)| values.len()).filter(|(_, values)| values.len() > 1)?;
    let quantity_of = |row: &'a ReproRow| row.over.iter().find(|quantity| quantity.quantity == word);
    let x_unit = rows().find_map(quantity_of).map_or("", |quantity| &quantity.unit);
    let unit = most_frequent(rows().filter(|row| quantity_of(row).is_some()).map(|row| row.unit.as_str()))?;
    let unit = unit.to_owned();
    let mut series: Vec<Series> = Vec::new();
    let mut left_out = rows().count();
    for (file, rows) in chosen {
        for row in rows.iter().filter(|row| row.unit == unit) {
            let Some(quantity) = quantity_of(row) else { continue };
            left_out -= 1;
            let parts = row.figure.split(", ").filter(|part| *part != quantity.title);
            let parts: Vec<&str> = parts.chain((!file.is_empty()).then_some(file.as_str())).collect();
            let name = if parts.is_empty() { name.to_owned() } else { parts.join(", ") };
            add(&mut series, &name, Origin::Ours, CurvePoint::new(quantity.value, row.ours));
            if let Some(published) = row.published {
                let band = row.allowed().filter(|band| band.low.is_finite());
                add(
                    &mut series,
                    &name,
                    Origin::Published,
                    CurvePoint { x: quantity.value, y: published, band },
                );
            }
        }
    }
    let ys: Vec<f64> = series.iter().flat_map(|series| &series.points).map(|point| point.y).collect();
    let origins = match series.iter().any(|series| series.origin == Origin::Published) {
        true => "rings: published, with bands; lines: Isles",
        false => "lines: Isles; nothing of it was published",
    };
    let others = match left_out {
        0 => String::new(),
        1 => "; one more figure is of another kind".to_owned(),
        more => format!("; {more} more figures are of other kinds"),
    };
    Some(Figure::Curve(Curve {
        title: about(name, chosen),
        subtitle: format!("{origins}{others}"),
        x: Axis::new(word, x_unit, scale_for(over)),
        y: Axis::new(quantity_of_unit(&unit), unit, scale_for(ys)),
        series,
        ideal: false,
    }))
}

fn add(series: &mut Vec<Series>, name: &str, origin: Origin, point: CurvePoint) {
    match series.iter_mut().find(|series| series.name == name && series.origin == origin) {
        Some(series) => series.points.push(point),
        None => series.push(Series { name: name.to_owned(), origin, points: vec![point] }),
    }
}

/// Returns the most frequent text, the first of several.
fn most_frequent<'a>(texts: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for text in texts {
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    counts.iter().rev().max_by_key(|(_, count)| *count).map(|(text, _)| *text)
}

/// Returns the quantity that is measured in a unit.
fn quantity_of_unit(unit: &str) -> &'static str {
    match unit {
        "s" | "ms" | "µs" | "ns" | "ps" => "Time",
        "W" | "mW" => "Power",
        "J" | "mJ" => "Energy",
        "" => "Ratio",
        unit if unit.ends_with("B/s") => "Throughput",
        _ => "Value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_in_csv_has_its_unit_value_and_title() {
        let quantity = |quantity: &str, unit: &str, value, title: &str| {
            let [quantity, unit, title] = [quantity, unit, title].map(str::to_owned);
            Some(FigureQuantity { quantity, unit, value, title })
        };
        let found = FigureQuantity::of_csv("Length = 1048576 B [1 MiB]");
        assert_eq!(found, quantity("Length", "B", 1_048_576.0, "1 MiB"));
        let found = FigureQuantity::of_csv("Children (k) = 7 [k = 7]");
        assert_eq!(found, quantity("Children (k)", "", 7.0, "k = 7"));
        for wrong in ["Length", "Length = 1 B", "Length = many B [1 MiB]"] {
            assert_eq!(FigureQuantity::of_csv(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rows_that_do_not_say_what_they_are_over_have_no_curve() {
        let row = |bytes: &str| {
            let text = format!(
                "{{\"experiment\": \"ping-pong\", \"figure\": \"RCCE, {bytes} B\", \"unit\": \"µs\", \"ours\": 2.0, \
                 \"published\": 2.0, \"band\": \"15\", \"basis\": \"predicted\"}}"
            );
            serde_json::from_str::<ReproRow>(&text).unwrap()
        };
        assert!(curve("ping-pong", &[(String::new(), vec![row("1"), row("32")])]).is_none());
    }

    #[test]
    fn ratios_of_several_cases_are_bars_by_place_and_times_beside_them_are_left_out() {
        let row = |figure: &str, unit: &str, ours: f64| ReproRow {
            experiment: "at-opt".to_owned(),
            about: String::new(),
            figure: figure.to_owned(),
            over: Vec::new(),
            unit: unit.to_owned(),
            published: None,
            ours,
            band: String::new(),
            basis: String::new(),
        };
        let rows = vec![
            row("processes, BF ring, minimal", "ms", 2.0),
            row("processes, BF ring, times as long", "", 3.0),
            row("processes, BF star, times as long", "", 90.0),
            row("chip, BF star, times as long", "", 5.0),
        ];
        let Some(Figure::Bars(bars)) = bars("at-opt", &[(String::new(), rows.clone())]) else {
            panic!("bars")
        };
        assert_eq!(bars.categories, ["BF ring", "BF star"]);
        let series: Vec<_> =
            bars.series.iter().map(|series| (series.name.as_str(), &series.values[..])).collect();
        let of_chip: &[Option<f64>] = &[None, Some(5.0)];
        assert_eq!(series, [("processes", &[Some(3.0), Some(90.0)][..]), ("chip", of_chip)]);
        assert_eq!((bars.value.scale, bars.value.label.as_str()), (Scale::Log, "Times as long"));
        let other = row("chip, BF star, as heavy", "", 5.0);
        assert!(super::bars("at-opt", &[(String::new(), [&rows[..], &[other]].concat())]).is_none());
        assert!(super::bars("at-opt", &[(String::new(), rows[..1].to_vec())]).is_none());
    }

    #[test]
    fn the_edge_of_a_band_is_in_it_and_a_bound_has_no_lower_end() {
        let row = |band: &str| ReproRow {
            experiment: String::new(),
            about: String::new(),
            figure: String::new(),
            over: Vec::new(),
            unit: String::new(),
            published: Some(200.0),
            ours: 0.0,
            band: band.to_owned(),
            basis: String::new(),
        };
        let allowed = row("10").allowed().unwrap();
        assert!(allowed.contains(180.0) && allowed.contains(220.0) && !allowed.contains(220.1));
        let allowed = row("at most").allowed().unwrap();
        assert!(allowed.contains(-1.0) && allowed.contains(200.0) && !allowed.contains(200.1));
        assert_eq!(row("").allowed(), None);
    }
}
