//! A route, and its GeoJSON form (RFC 7946).

use crate::case::Mission;
use crate::glide::{Dive, NEVER, glide, reached};
use crate::sea::{Position, Waypoint};
use crate::search::{Reached, RouteSearch};
use serde::Serialize;
use serde_json::{Value, json};

/// A waypoint of a route.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Leg {
    #[serde(skip)]
    pub waypoint: Waypoint,
    #[serde(flatten)]
    pub position: Position,
    pub longitude: f64,
    pub latitude: f64,
    /// Seconds since the start of the mission.
    pub arrival: u32,
    /// The dive profile of the edge that leads here, and the depth that it reaches, in metres.
    pub profile: u32,
    pub depth: f64,
}

/// Returns the route that a search has found; empty if there is none.
pub fn legs(plan: &Mission, search: &RouteSearch<'_>) -> Vec<Leg> {
    let leg = |(waypoint, Reached { arrival, profile, .. })| {
        let position = plan.sea.position(waypoint);
        let [longitude, latitude] = plan.sea.longitude_latitude(position);
        let depth = if waypoint == plan.start { 0.0 } else { reached(profile, plan.resolution.profiles) };
        Leg { waypoint, position, longitude, latitude, arrival, profile, depth }
    };
    search.route().into_iter().map(leg).collect()
}

/// Returns `true` if a glider on the route arrives at the stated times, and no profile is faster on any edge.
pub fn is_feasible(plan: &Mission, legs: &[Leg]) -> bool {
    let ends = legs.first().map(|leg| leg.waypoint) == Some(plan.start)
        && legs.last().map(|leg| leg.waypoint) == Some(plan.goal);
    let flown = legs.windows(2).all(|pair| {
        let arrival = |profile| {
            let dive =
                Dive { from: pair[0].waypoint, to: pair[1].waypoint, departure: pair[0].arrival, profile };
            glide(&plan.sea, &plan.resolution, dive).arrival
        };
        let fastest = (0..plan.resolution.profiles).map(arrival).min().unwrap_or(NEVER);
        arrival(pair[1].profile) == pair[1].arrival && fastest == pair[1].arrival
    });
    ends && flown
}

/// Returns the length of a route, in metres.
pub fn length(legs: &[Leg]) -> f64 {
    legs.windows(2).map(|pair| pair[0].position.distance(pair[1].position)).sum()
}

/// Returns the route as a GeoJSON collection of a line and its waypoints.
pub fn geojson(legs: &[Leg]) -> Value {
    let coordinates = |leg: &Leg| json!([leg.longitude, leg.latitude]);
    let line = json!({
        "type": "Feature",
        "geometry": {"type": "LineString", "coordinates": legs.iter().map(coordinates).collect::<Vec<_>>()},
        "properties": {"arrival_s": legs.last().map(|leg| leg.arrival), "length_m": length(legs)},
    });
    let point = |leg: &Leg| {
        json!({
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": coordinates(leg)},
            "properties": {"arrival_s": leg.arrival, "profile": leg.profile, "depth_m": leg.depth},
        })
    };
    let features: Vec<Value> = [line].into_iter().chain(legs.iter().map(point)).collect();
    json!({"type": "FeatureCollection", "features": features})
}
