//! Pictures of single runs: what each place did, and how the time falls with more places.
//!
//! The JSON of a run has the seconds at work of each place of a host; on a modelled chip the summary has where time and
//! energy went. Several runs of one application are a curve over places. Invariant: a speed-up is to the same series at
//! one place; without such a run the times themselves are drawn.

use super::input::{Content, InputFile};
use super::{InputOrigin, Kind, PlotRequest, Spent, scale_for};
use isles_apps::registry::Failure;
use isles_plot::{Arrangement, Axis, BarSeries, Bars, Curve, CurvePoint, Figure, Origin, Scale, Series};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a figure takes of the JSON of a run.
#[derive(Deserialize)]
pub struct RunResults {
    run: RunHeadFields,
}

#[derive(Deserialize)]
struct RunHeadFields {
    app: Option<String>,
    version: String,
    machine: String,
    places: u32,
    seconds: f64,
    graph: Option<String>,
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
        InputOrigin { chip, seed: None, measured: measured_by(&run.version) }
    }

    /// What was computed.
    fn what(&self) -> String {
        let app = self.run.app.as_deref().unwrap_or("run");
        self.run.graph.as_ref().map_or_else(|| app.to_owned(), |graph| format!("{app}, {graph}"))
    }
}

/// Who measured it, if it was another version than this one.
fn measured_by(version: &str) -> Option<String> {
    (version != env!("CARGO_PKG_VERSION")).then(|| format!("run by Isles {version}"))
}

/// What a figure takes of the summary of a run on a modelled chip.
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
    mesh_j: f64,
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

/// The figure of the JSON of runs.
///
/// # Errors
/// The kind does not suit them, or there is nothing to show.
pub fn runs(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    let runs: Vec<(&InputFile, &RunResults)> = files
        .iter()
        .filter_map(|file| match &file.content {
            Content::Run(run) => Some((file, run)),
            _ => None,
        })
        .collect();
    let places: Vec<u32> = runs.iter().map(|(_, run)| run.run.places).collect();
    let default = if places.iter().any(|other| *other != places[0]) { Kind::Curve } else { Kind::Bars };
    match request.kind("the JSON of a run", default, &[Kind::Bars, Kind::Curve])? {
        Kind::Curve => Ok(over_places(&runs)),
        _ => shares(&runs),
    }
}

/// Seconds at work by place.
fn shares(runs: &[(&InputFile, &RunResults)]) -> Result<Figure, Failure> {
    if let Some((file, _)) = runs.iter().find(|(_, run)| run.run.shares.is_empty()) {
        let allowed = "one on threads or processes; of a run on a modelled chip, its --summary";
        return Err(file.refusal(&format!("a run that does not say what each place did; allowed: {allowed}")));
    }
    let places = runs.iter().map(|(_, run)| run.run.shares.len()).max().unwrap_or_default();
    let series = |(file, run): &(&InputFile, &RunResults)| {
        let values = run.run.shares.iter().map(|share| Some(share.seconds)).collect();
        BarSeries { name: file.label(), values }
    };
    let subtitle = |(_, run): &(&InputFile, &RunResults)| {
        let RunHeadFields { places, machine, seconds, .. } = &run.run;
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

/// Time or speed-up of runs that differ in their places.
fn over_places(runs: &[(&InputFile, &RunResults)]) -> Figure {
    let mut times: Vec<TimesByPlaces> = Vec::new();
    for (_, run) in runs {
        let name = format!("{} ({})", run.what(), run.run.machine);
        let point = (f64::from(run.run.places), run.run.seconds);
        match times.iter_mut().find(|known| known.name == name) {
            Some(known) => known.times.push(point),
            None => times.push(TimesByPlaces { name, times: vec![point] }),
        }
    }
    scaling(&times)
}

/// How long one thing takes, by the number of places.
pub struct TimesByPlaces {
    pub name: String,
    /// Places and seconds.
    pub times: Vec<(f64, f64)>,
}

/// The curve of speed-ups, if all were run with one place; of times if not. A single name is the subtitle.
pub fn scaling(times: &[TimesByPlaces]) -> Figure {
    let alone =
        |of: &TimesByPlaces| of.times.iter().find(|(places, _)| *places == 1.0).map(|(_, time)| *time);
    let is_speedup = times.iter().all(|of| alone(of).is_some_and(|time| time > 0.0));
    let series = |of: &TimesByPlaces| {
        let base = alone(of).filter(|_| is_speedup);
        let value = |time: f64| base.map_or(time, |base| base / time);
        let points = of.times.iter().map(|(places, time)| CurvePoint::new(*places, value(*time))).collect();
        Series { name: of.name.clone(), origin: Origin::Ours, points }
    };
    let series: Vec<Series> = times.iter().map(series).collect();
    let y = match is_speedup {
        true => Axis::new("Speed-up", "", Scale::Linear),
        false => {
            let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
            Axis::new("Time", "s", scale_for(values))
        }
    };
    let places = series.iter().flat_map(|series| &series.points).map(|point| point.x);
    // A speed-up is judged against its ideal, which is straight where both axes have one scale.
    let scale = if is_speedup { Scale::Linear } else { scale_for(places) };
    Figure::Curve(Curve {
        title: if is_speedup { "Speed-up by places" } else { "Time by places" }.to_owned(),
        subtitle: if let [one] = times { one.name.clone() } else { String::new() },
        x: Axis::new("Places", "", scale),
        y,
        series,
        ideal: is_speedup,
    })
}

/// The figure of summaries.
///
/// # Errors
/// The kind does not suit them, or there is nothing to show.
pub fn summaries(files: &[InputFile], request: &PlotRequest) -> Result<Figure, Failure> {
    request.kind("the summary of a run", Kind::Bars, &[Kind::Bars])?;
    let summaries: Vec<(&InputFile, &ChipSummary)> = files
        .iter()
        .filter_map(|file| match &file.content {
            Content::Summary(summary) => Some((file, summary)),
            _ => None,
        })
        .collect();
    match (request.what, &summaries[..]) {
        (None | Some(Spent::Time), [(_, one)]) => Ok(time_by_place(one)),
        (None | Some(Spent::Time), all) => Ok(time_by_run(all)),
        (Some(Spent::Energy), all) => energy(all),
    }
}

/// The categories of the ledger, those with the most time first, without those that have none.
fn categories(places: &[PlaceFields]) -> Vec<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, time) in places.iter().flat_map(|place| &place.ledger_ps) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*time);
    }
    let mut names: Vec<(&str, u64)> = sums.into_iter().filter(|(_, sum)| *sum > 0).collect();
    // Waiting is what is left, so it lies on top.
    names.sort_by_key(|(name, sum)| (*name == "waiting", std::cmp::Reverse(*sum)));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

fn seconds(place: &PlaceFields, category: &str) -> f64 {
    place.ledger_ps.get(category).map_or(0.0, |time| *time as f64 / 1e12)
}

/// Where the time of each place of one run went.
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

/// Where the time of a place went on the average, run by run.
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

/// A part of the energy of a run: its name, and where it stands.
type EnergyPart = (&'static str, fn(&ModelFields) -> f64);

/// Where the energy went: of one run by place, of several in all.
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
        ("mesh", |model| model.mesh_j),
        ("the rest of the chip", |model| model.uncore_j),
    ];
    let series = |(name, of): EnergyPart| BarSeries {
        name: name.to_owned(),
        values: models.iter().map(|model| Some(of(model))).collect(),
    };
    Ok(Figure::Bars(Bars {
        title: "Where the energy went".to_owned(),
        subtitle: format!("by {}", models.first().map(|model| model.name.as_str()).unwrap_or_default()),
        categories_label: String::new(),
        categories: summaries.iter().map(|(file, _)| file.label()).collect(),
        value: Axis::new("Energy", "J", Scale::Linear),
        series: parts.into_iter().map(series).collect(),
        arrangement: Arrangement::Stacked,
    }))
}

fn lacks_energy(file: &InputFile) -> Failure {
    file.refusal("a summary without energy; allowed: one of a chip whose file has a power model")
}
