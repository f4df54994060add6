//! Pictures of single runs: the activity of each place, and the time over the number of places.
//!
//! The JSON of a run has the seconds at work of each place of a host; on a modelled chip the summary has time and
//! energy by category. Several runs of one application are a curve over places. Invariant: a speed-up is relative to
//! the same series at one place; without such a run the times themselves are drawn.

use super::input::{Content, InputFile, holding};
use super::{InputOrigin, Kind, PlotRequest, Resource, scale_for};
use isles_app::Failure;
use isles_app::runs::refusal;
use isles_plot::{Arrangement, Axis, BarSeries, Bars, Curve, CurvePoint, Figure, Origin, Scale, Series};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Fields of the JSON of a run that a figure uses.
#[derive(Deserialize)]
pub struct RunResults {
    run: RunHeaderFields,
}

#[derive(Deserialize)]
struct RunHeaderFields {
    app: Option<String>,
    version: String,
    machine: String,
    places: u32,
    seconds: f64,
    graph: Option<String>,
    random_seed: Option<u64>,
    #[serde(default)]
    shares: Vec<ShareFields>,
}

#[derive(Deserialize)]
struct ShareFields {
    seconds: f64,
}

impl RunResults {
    pub fn origin(&self) -> InputOrigin {
        let run = &self.run;
        let chip = run.machine.starts_with("chip:").then(|| run.machine.clone());
        InputOrigin { chip, seed: run.random_seed, measured: measured_by(&run.version) }
    }

    /// Returns the name of the computation.
    fn what(&self) -> String {
        let app = self.run.app.as_deref().unwrap_or("run");
        self.run.graph.as_ref().map_or_else(|| app.to_owned(), |graph| format!("{app}, {graph}"))
    }
}

/// Returns the version that measured it, if it is not this one.
fn measured_by(version: &str) -> Option<String> {
    (version != env!("CARGO_PKG_VERSION")).then(|| format!("run by Isles {version}"))
}

/// Fields of the summary of a run on a modelled chip that a figure uses.
#[derive(Deserialize)]
pub struct ChipSummary {
    version: String,
    chip: ChipFields,
    places: u32,
    seed: u64,
    protocol: String,
    governor: String,
    predicted_ps: u64,
    by_place: Vec<PlaceFields>,
    energy: Option<EnergyFields>,
}

#[derive(Deserialize)]
struct ChipFields {
    name: String,
}

#[derive(Deserialize)]
struct PlaceFields {
    place: u32,
    ledger_ps: BTreeMap<String, u64>,
    energy_j: Option<f64>,
}

#[derive(Deserialize)]
struct EnergyFields {
    models: Vec<ModelFields>,
}

#[derive(Deserialize)]
struct ModelFields {
    name: String,
    places_j: f64,
    cores_without_place_j: f64,
    uncore_j: f64,
    /// A part of `uncore_j`; `None` if the chip file does not give the power of the mesh.
    mesh_j: Option<f64>,
}

impl ChipSummary {
    pub fn origin(&self) -> InputOrigin {
        let chip = Some(format!("chip:{}", self.chip.name));
        InputOrigin { chip, seed: Some(self.seed), measured: measured_by(&self.version) }
    }

    fn subtitle(&self) -> String {
        let ChipSummary { places, protocol, governor, predicted_ps, .. } = self;
        let time = isles_chip::quantity::scaled(*predicted_ps as f64 / 1e12, "s");
        format!("{places} places on chip:{}, {protocol}, governor {governor}: {time}", self.chip.name)
    }
}

/// Makes the figure of the JSON of runs.
///
/// # Errors
/// The kind does not suit them, or there is nothing to show.
pub fn runs(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let runs: Vec<(&InputFile, &RunResults)> = holding(files, |content| match content {
        Content::Run(run) => Some(run),
        _ => None,
    });
    let places: Vec<u32> = runs.iter().map(|(_, run)| run.run.places).collect();
    let are_several = places.iter().any(|other| *other != places[0]);
    let default = if are_several || request.what.is_some() { Kind::Curve } else { Kind::Bars };
    match request.kind("the JSON of a run", default, &[Kind::Bars, Kind::Curve])? {
        Kind::Curve => over_places(&runs, request),
        _ => shares(&runs),
    }
}

/// Draws seconds at work by place.
fn shares(runs: &[(&InputFile, &RunResults)]) -> Result<Figure, Failure> {
    if let Some((file, _)) = runs.iter().find(|(_, run)| run.run.shares.is_empty()) {
        let allowed = "a run on threads or processes; for a run on a modelled chip, its --summary";
        return Err(file.refusal(&format!("a run without figures for each place; allowed: {allowed}")));
    }
    let places = runs.iter().map(|(_, run)| run.run.shares.len()).max().unwrap_or_default();
    let series = |(file, run): &(&InputFile, &RunResults)| {
        let values = run.run.shares.iter().map(|share| Some(share.seconds)).collect();
        BarSeries { name: file.label(), values }
    };
    let subtitle = |(_, run): &(&InputFile, &RunResults)| {
        let RunHeaderFields { places, machine, seconds, .. } = &run.run;
        format!("{places} places ({machine}), {} in all", isles_chip::quantity::scaled(*seconds, "s"))
    };
    let first = runs.first().map(|(_, run)| run.what()).unwrap_or_default();
    Ok(Figure::Bars(Bars {
        title: format!("What each place did: {first}"),
        subtitle: if let [one] = runs { subtitle(one) } else { String::new() },
        categories_label: "Place".to_owned(),
        categories: (0..places).map(|place| place.to_string()).collect(),
        value: Axis::new("Time at work", "s", Scale::Linear),
        series: runs.iter().map(series).collect(),
        arrangement: Arrangement::Grouped,
    }))
}

/// Draws time or speed-up of runs that differ in their places.
fn over_places(runs: &[(&InputFile, &RunResults)], request: &PlotRequest) -> Result<Figure, Failure> {
    if request.what == Some(Resource::Energy) {
        return Err(refusal("--what", "energy", "time for the JSON of a run; its --summary has the energy"));
    }
    let mut all: Vec<ScalingSeries> = Vec::new();
    for (_, run) in runs {
        let name = format!("{} ({})", run.what(), run.run.machine);
        ScalingSeries::add(&mut all, &name, f64::from(run.run.places), run.run.seconds);
    }
    Ok(scaling(&all, request.what))
}

/// Time or energy of one thing, by the number of places.
pub struct ScalingSeries {
    name: String,
    /// Places, and seconds or joules.
    spent: Vec<(f64, f64)>,
}

impl ScalingSeries {
    /// Adds a point to the series of that name.
    pub fn add(all: &mut Vec<ScalingSeries>, name: &str, places: f64, spent: f64) {
        let point = (places, spent);
        match all.iter_mut().find(|known| known.name == name) {
            Some(known) => known.spent.push(point),
            None => all.push(ScalingSeries { name: name.to_owned(), spent: vec![point] }),
        }
    }

    /// Returns the time or energy with one place.
    fn alone(&self) -> Option<f64> {
        let one = self.spent.iter().find(|(places, _)| *places == 1.0);
        one.map(|(_, spent)| *spent).filter(|spent| *spent > 0.0)
    }
}

/// Draws the requested curve; that of speed-ups, if nothing was requested and all were run with one place. A single
/// name is the subtitle.
pub fn scaling(all: &[ScalingSeries], what: Option<Resource>) -> Figure {
    let is_speedup = what.is_none() && all.iter().all(|of| of.alone().is_some());
    let series = |of: &ScalingSeries| {
        let base = of.alone().filter(|_| is_speedup);
        let value = |spent: f64| base.map_or(spent, |base| base / spent);
        let points = of.spent.iter().map(|(places, spent)| CurvePoint::new(*places, value(*spent))).collect();
        Series { name: of.name.clone(), origin: Origin::Ours, points }
    };
    let series: Vec<Series> = all.iter().map(series).collect();
    let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let y = match what {
        _ if is_speedup => Axis::new("Speed-up", "", Scale::Linear),
        None | Some(Resource::Time) => Axis::new("Time", "s", scale_for(values)),
        Some(Resource::Energy) => Axis::new("Energy", "J", scale_for(values)),
    };
    let places = series.iter().flat_map(|series| &series.points).map(|point| point.x);
    // A speed-up is judged against its ideal, which is a straight line if both axes have the same scale.
    let scale = if is_speedup { Scale::Linear } else { scale_for(places) };
    Figure::Curve(Curve {
        title: format!("{} by places", y.label),
        subtitle: if let [one] = all { one.name.clone() } else { String::new() },
        x: Axis::new("Places", "", scale),
        y,
        series,
        ideal: is_speedup,
    })
}

/// Makes the figure of summaries.
///
/// # Errors
/// The kind does not suit them, or there is nothing to show.
pub fn summaries(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    request.kind("the summary of a run", Kind::Bars, &[Kind::Bars])?;
    let summaries: Vec<(&InputFile, &ChipSummary)> = holding(files, |content| match content {
        Content::Summary(summary) => Some(summary),
        _ => None,
    });
    match (request.what, &summaries[..]) {
        (None | Some(Resource::Time), [(_, one)]) => Ok(time_by_place(one)),
        (None | Some(Resource::Time), all) => Ok(time_by_run(all)),
        (Some(Resource::Energy), all) => energy(all),
    }
}

/// Returns the categories of the ledger with time in them, those with the most time first.
fn categories(places: &[PlaceFields]) -> Vec<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, time) in places.iter().flat_map(|place| &place.ledger_ps) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*time);
    }
    let mut names: Vec<(&str, u64)> = sums.into_iter().filter(|(_, sum)| *sum > 0).collect();
    // Waiting is the rest, so it lies on top.
    names.sort_by_key(|(name, sum)| (*name == "waiting", std::cmp::Reverse(*sum)));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

fn seconds(place: &PlaceFields, category: &str) -> f64 {
    place.ledger_ps.get(category).map_or(0.0, |time| *time as f64 / 1e12)
}

/// Draws the time of each place of one run, by category.
fn time_by_place(summary: &ChipSummary) -> Figure {
    let series = |name: String| {
        let values = summary.by_place.iter().map(|place| Some(seconds(place, &name))).collect();
        BarSeries { name, values }
    };
    Figure::Bars(Bars {
        title: "Where the time of each place went".to_owned(),
        subtitle: summary.subtitle(),
        categories_label: "Place".to_owned(),
        categories: summary.by_place.iter().map(|place| place.place.to_string()).collect(),
        value: Axis::new("Time", "s", Scale::Linear),
        series: categories(&summary.by_place).into_iter().map(series).collect(),
        arrangement: Arrangement::Stacked,
    })
}

/// Draws the mean time of a place, run by run.
fn time_by_run(summaries: &[(&InputFile, &ChipSummary)]) -> Figure {
    let names: Vec<String> = {
        let mut names: Vec<String> = Vec::new();
        for name in summaries.iter().flat_map(|(_, summary)| categories(&summary.by_place)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort_by_key(|name| name == "waiting");
        names
    };
    let mean = |summary: &ChipSummary, name: &str| {
        let sum: f64 = summary.by_place.iter().map(|place| seconds(place, name)).sum();
        sum / summary.by_place.len().max(1) as f64
    };
    let series = |name: String| {
        let values = summaries.iter().map(|(_, summary)| Some(mean(summary, &name))).collect();
        BarSeries { name, values }
    };
    Figure::Bars(Bars {
        title: "Where the time of a place went, on the average".to_owned(),
        subtitle: String::new(),
        categories_label: String::new(),
        categories: summaries.iter().map(|(file, _)| file.label()).collect(),
        value: Axis::new("Time", "s", Scale::Linear),
        series: names.into_iter().map(series).collect(),
        arrangement: Arrangement::Stacked,
    })
}

/// A part of the energy of a run: its name, and its field.
type EnergyPart = (&'static str, fn(&ModelFields) -> f64);

/// Draws the energy: of one run by place, of several in total.
fn energy(summaries: &[(&InputFile, &ChipSummary)]) -> Result<Figure, Failure> {
    if let [(file, summary)] = summaries {
        let joules: Vec<Option<f64>> = summary.by_place.iter().map(|place| place.energy_j).collect();
        let model = summary.energy.as_ref().and_then(|energy| energy.models.first());
        let (Some(model), true) = (model, joules.iter().all(Option::is_some)) else {
            return Err(lacks_energy(file));
        };
        return Ok(Figure::Bars(Bars {
            title: "Energy of each place".to_owned(),
            subtitle: format!("{}; by {}", summary.subtitle(), model.name),
            categories_label: "Place".to_owned(),
            categories: summary.by_place.iter().map(|place| place.place.to_string()).collect(),
            value: Axis::new("Energy", "J", Scale::Linear),
            series: vec![BarSeries { name: "energy".to_owned(), values: joules }],
            arrangement: Arrangement::Grouped,
        }));
    }
    let mut models = Vec::new();
    for (file, summary) in summaries {
        let model = summary.energy.as_ref().and_then(|energy| energy.models.first());
        models.push(model.ok_or_else(|| lacks_energy(file))?);
    }
    let parts: [EnergyPart; 4] = [
        ("cores with places", |model| model.places_j),
        ("other cores", |model| model.cores_without_place_j),
        ("mesh", |model| model.mesh_j.unwrap_or_default()),
        ("the rest of the chip", |model| model.uncore_j - model.mesh_j.unwrap_or_default()),
    ];
    let series = |(name, of): EnergyPart| BarSeries {
        name: name.to_owned(),
        values: models.iter().map(|model| Some(of(model))).collect(),
    };
    let has_some = |series: &BarSeries| series.values.iter().flatten().any(|joules| *joules > 0.0);
    Ok(Figure::Bars(Bars {
        title: "Where the energy went".to_owned(),
        subtitle: format!("by {}", models.first().map(|model| model.name.as_str()).unwrap_or_default()),
        categories_label: String::new(),
        categories: summaries.iter().map(|(file, _)| file.label()).collect(),
        value: Axis::new("Energy", "J", Scale::Linear),
        series: parts.into_iter().map(series).filter(has_some).collect(),
        arrangement: Arrangement::Stacked,
    }))
}

fn lacks_energy(file: &InputFile) -> Failure {
    file.refusal("a summary without energy; allowed: one of a chip whose file has a power model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_parts_of_the_energy_are_all_of_it_and_the_mesh_counts_once() {
        let file = |mesh: Option<f64>| {
            let model = json!({
                "name": "m", "places_j": 1.0, "cores_without_place_j": 2.0, "uncore_j": 4.0, "mesh_j": mesh,
            });
            let summary = json!({
                "schema": "isles.chip-summary.1", "version": "0.1.0", "chip": {"name": "scc"}, "places": 1, "seed": 0,
                "protocol": "doorbell", "governor": "fixed", "predicted_ps": 1, "by_place": [],
                "energy": {"models": [model]},
            });
            InputFile::parse("a.json", &summary.to_string()).unwrap_or_else(|failure| panic!("{failure}"))
        };
        let request = PlotRequest { what: Some(Resource::Energy), ..PlotRequest::default() };
        let Ok(Figure::Bars(bars)) = summaries(&[file(Some(3.0)), file(None)], &request) else {
            panic!("bars")
        };
        for run in 0..2 {
            let sum: f64 = bars.series.iter().filter_map(|series| series.values[run]).sum();
            assert_eq!(sum, 7.0, "{bars:?}");
        }
        let Ok(Figure::Bars(bars)) = summaries(&[file(None), file(None)], &request) else { panic!("bars") };
        assert!(bars.series.iter().all(|series| series.name != "mesh"), "nobody knows of it");
    }

    #[test]
    fn a_speed_up_is_to_one_place_and_without_that_run_times_are_drawn() {
        let times = |spent: &[(f64, f64)]| [ScalingSeries { name: "bc".to_owned(), spent: spent.to_vec() }];
        let drawn = |spent: &[(f64, f64)], what| {
            let Figure::Curve(curve) = scaling(&times(spent), what) else { panic!("a curve") };
            let values: Vec<f64> = curve.series[0].points.iter().map(|point| point.y).collect();
            (curve.title, values, curve.ideal)
        };
        let with_one = [(1.0, 8.0), (4.0, 2.0)];
        assert_eq!(drawn(&with_one, None), ("Speed-up by places".to_owned(), vec![1.0, 4.0], true));
        assert_eq!(drawn(&with_one[1..], None), ("Time by places".to_owned(), vec![2.0], false));
        assert_eq!(
            drawn(&with_one, Some(Resource::Time)),
            ("Time by places".to_owned(), vec![8.0, 2.0], false)
        );
    }
}
