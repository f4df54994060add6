//! The routes: one table of paths, methods and required credentials.
//!
//! `openapi.json` describes the same table, which a test compares. Invariant: only paths of the table are answered, and
//! each row has its credentials.

use crate::answer::{Answer, answer as whole, json, problem, text};
use crate::assets::ASSETS;
use crate::guard::{Access, Role};
use crate::jobs;
use crate::metrics;
use crate::server::Shared;
use crate::stream::{ReaderSnapshot, SnapshotStream};
use http_body_util::{Either, Full, StreamBody};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use isles_view::{RunView, Series, SeriesInfo, stages_of};
use serde::Serialize;

/// The description of the interface.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

/// Maximum number of places of one history request.
const HISTORY_PLACES_MAX: usize = 1024;

/// Request of a handler: the query, the last event that the reader has received, the headers, and the role of the
/// requester.
pub(crate) struct RequestContext<'a> {
    query: &'a str,
    last: Option<u64>,
    headers: &'a HeaderMap,
    role: Role,
}

/// Handler of a route.
#[derive(Clone, Copy)]
enum Handler {
    /// This server, at once.
    Here(fn(&Shared, &RequestContext<'_>) -> Answer),
    /// The job server.
    Jobs,
}

/// Result of the routing: an answer, or the job server, which answers.
pub(crate) enum Found {
    Answer(Answer),
    Jobs,
}

/// A row of the table.
pub(crate) struct RouteRow {
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    pub(crate) access: Access,
    handler: Handler,
}

const fn get(
    path: &'static str,
    access: Access,
    handler: fn(&Shared, &RequestContext<'_>) -> Answer,
) -> RouteRow {
    RouteRow { path, method: Method::GET, access, handler: Handler::Here(handler) }
}

const fn of_jobs(path: &'static str, method: Method, access: Access) -> RouteRow {
    RouteRow { path, method, access, handler: Handler::Jobs }
}

/// The table, which is searched after the files of the page.
pub(crate) static ROUTES: [RouteRow; 14] = [
    RouteRow {
        path: "/api/v1/session",
        method: Method::POST,
        access: Access::Token,
        handler: Handler::Here(session),
    },
    get("/api/v1/run", Access::View, run),
    get("/api/v1/stream", Access::View, stream),
    get("/api/v1/history", Access::View, history),
    get("/api/v1/output", Access::View, output),
    get("/api/v1/stages", Access::View, stages),
    get("/api/v1/at", Access::View, at),
    get("/api/v1/summary", Access::View, summary),
    get("/api/v1/host", Access::View, host),
    of_jobs(jobs::LIST, Method::GET, Access::View),
    of_jobs(jobs::LIST, Method::POST, Access::Control),
    of_jobs(jobs::OUTPUT, Method::GET, Access::View),
    get("/api/v1/openapi.json", Access::View, |_, _| text("application/json", OPENAPI)),
    get("/metrics", Access::View, metrics::answer),
];

/// Finds the answer to a request, or the job server that answers it.
pub(crate) fn answer<B>(shared: &Shared, request: &Request<B>) -> Found {
    find(shared, request).unwrap_or_else(|refusal| Found::Answer(*refusal))
}

fn find<B>(shared: &Shared, request: &Request<B>) -> Result<Found, Box<Answer>> {
    let path = request.uri().path();
    let asset = ASSETS.iter().find(|asset| asset.path == path);
    let rows: Vec<&RouteRow> = ROUTES.iter().filter(|route| route.path == path).collect();
    let of_method = rows.iter().find(|route| route.method == *request.method()).or(rows.first());
    let access = asset.map(|_| Access::Public).or_else(|| Some(of_method?.access));
    shared.guard.check_origin(request, access)?;
    // A client without access learns nothing about the existing paths.
    shared.guard.check_access(request.headers(), access.unwrap_or(Access::View))?;
    if let Some(asset) = asset {
        allow(request.method(), &[Method::GET, Method::HEAD])?;
        return Ok(Found::Answer(text(asset.kind, asset.text)));
    }
    if rows.is_empty() {
        let detail = "see /api/v1/openapi.json for all addresses";
        return Err(Box::new(problem(StatusCode::NOT_FOUND, "no such address", detail)));
    }
    // HEAD is GET without the body, which the connection omits.
    let both = |route: &&RouteRow| match route.method {
        Method::GET => vec![Method::GET, Method::HEAD],
        _ => vec![route.method.clone()],
    };
    let methods: Vec<Method> = rows.iter().flat_map(both).collect();
    allow(request.method(), &methods)?;
    let asked = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let route = rows.iter().find(|route| route.method == *asked);
    let route =
        route.ok_or_else(|| Box::new(problem(StatusCode::METHOD_NOT_ALLOWED, "another method", "")))?;
    let last = request.headers().get("last-event-id").and_then(|last| last.to_str().ok()?.parse().ok());
    let role = shared.guard.role(request.headers()).unwrap_or(Role::View);
    let query = request.uri().query().unwrap_or_default();
    Ok(match route.handler {
        Handler::Here(handler) => {
            Found::Answer(handler(shared, &RequestContext { query, last, headers: request.headers(), role }))
        }
        Handler::Jobs => Found::Jobs,
    })
}

/// Refuses a method that a path does not support.
fn allow(method: &Method, allowed: &[Method]) -> Result<(), Box<Answer>> {
    if allowed.contains(method) {
        return Ok(());
    }
    let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let mut refusal = problem(StatusCode::METHOD_NOT_ALLOWED, "another method", &names.join(", "));
    if let Ok(value) = HeaderValue::from_str(&names.join(", ")) {
        refusal.headers_mut().insert(header::ALLOW, value);
    }
    Err(Box::new(refusal))
}

fn bad_parameter(name: &str, value: &str, allowed: &str) -> Answer {
    let shown: String = value.chars().take(80).collect();
    let detail = format!("{name} is {shown:?}; allowed: {allowed}");
    problem(StatusCode::BAD_REQUEST, "a bad query", &detail)
}

/// Returns the value of a parameter of a query, decoded like a form: `%2C` is a comma, `+` a space.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// Returns a number of a query, or `default` if absent.
fn number<T: std::str::FromStr>(query: &str, name: &str, default: Option<T>) -> Result<T, Box<Answer>> {
    let value = parameter(query, name);
    match (&value, default) {
        (None, Some(default)) => Ok(default),
        _ => {
            let value = value.unwrap_or_default();
            value.parse().map_err(|_| Box::new(bad_parameter(name, &value, "a whole number")))
        }
    }
}

fn session(shared: &Shared, context: &RequestContext<'_>) -> Answer {
    let mut answer = whole(StatusCode::NO_CONTENT, "", Either::Left(Full::default()));
    match HeaderValue::from_str(&shared.guard.cookie(context.headers).unwrap_or_default()) {
        Ok(cookie) => _ = answer.headers_mut().insert(header::SET_COOKIE, cookie),
        Err(fault) => return problem(StatusCode::INTERNAL_SERVER_ERROR, "no cookie", &fault.to_string()),
    }
    answer
}

/// The mesh of a chip in the interface.
#[derive(Serialize)]
struct MeshView<'a> {
    columns: u32,
    rows: u32,
    cores_per_tile: u32,
    name: &'a str,
}

/// The run in the interface.
#[derive(Serialize)]
pub(crate) struct RunAnswer<'a> {
    version: &'a str,
    program: &'a str,
    arguments: &'a [String],
    machine: &'a str,
    mode: &'static str,
    started_unix_ms: u64,
    places: u32,
    host_of: Option<&'a [String]>,
    mesh: Option<MeshView<'a>>,
    core_of: Option<&'a [u32]>,
    counters: Vec<SeriesInfo>,
    pages_role: &'static str,
    jobs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    length_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<bool>,
}

impl RunAnswer<'_> {
    /// Returns the answer about this run.
    pub(crate) fn of(view: &dyn RunView, role: Role) -> RunAnswer<'_> {
        let run = view.description();
        let length = view.length();
        RunAnswer {
            version: &run.version,
            program: &run.program,
            arguments: &run.arguments,
            machine: &run.machine,
            mode: if length.is_some() { "replay" } else { "live" },
            started_unix_ms: run.started_unix_ms,
            places: run.places,
            host_of: run.host_of.as_deref(),
            mesh: run.mesh.as_ref().map(|mesh| MeshView {
                columns: mesh.columns,
                rows: mesh.rows,
                cores_per_tile: mesh.cores_per_tile,
                name: &mesh.name,
            }),
            core_of: run.core_of.as_deref(),
            counters: Series::of_run(run),
            pages_role: role.name(),
            jobs: false,
            length_ms: length.map(|(length, _)| length),
            cut: length.map(|(_, cut)| cut),
        }
    }
}

fn run(shared: &Shared, context: &RequestContext<'_>) -> Answer {
    shared.with_view(|view| {
        json(&RunAnswer { jobs: shared.jobs.is_some(), ..RunAnswer::of(view, context.role) })
    })
}

fn stream(shared: &Shared, context: &RequestContext<'_>) -> Answer {
    match SnapshotStream::new(&shared.snapshots, &shared.readers, context.role, context.last) {
        Some(stream) => whole(StatusCode::OK, "text/event-stream", Either::Right(StreamBody::new(stream))),
        None => problem(StatusCode::SERVICE_UNAVAILABLE, "too many readers", "close other pages of this run"),
    }
}

fn history(shared: &Shared, &RequestContext { query, .. }: &RequestContext<'_>) -> Answer {
    let look = || -> Result<Answer, Box<Answer>> {
        let places = parameter(query, "places").unwrap_or_default();
        let allowed = "place numbers separated by commas, at most 1024";
        let numbers: Result<Vec<u32>, _> = places.split(',').map(str::parse).collect();
        let numbers = numbers.ok().filter(|numbers| numbers.len() <= HISTORY_PLACES_MAX);
        let numbers = numbers.ok_or_else(|| Box::new(bad_parameter("places", &places, allowed)))?;
        let counter = parameter(query, "counter").unwrap_or_default();
        let series = Series::of_name(&counter);
        let series = series
            .ok_or_else(|| Box::new(bad_parameter("counter", &counter, &Series::names().join(", "))))?;
        let (from, to) = (number(query, "from_ms", Some(0))?, number(query, "to_ms", Some(u64::MAX))?);
        Ok(shared.with_view(|view| json(&view.history(&numbers, series, from, to))))
    };
    look().unwrap_or_else(|refusal| *refusal)
}

fn output(shared: &Shared, &RequestContext { query, .. }: &RequestContext<'_>) -> Answer {
    let places = shared.with_view(|view| view.description().places);
    let look = || -> Result<Answer, Box<Answer>> {
        let place = number::<u32>(query, "place", None)?;
        if place >= places {
            let allowed = format!("0 to {}", places.saturating_sub(1));
            return Err(Box::new(bad_parameter("place", &place.to_string(), &allowed)));
        }
        let after = number(query, "after", Some(0))?;
        Ok(shared.with_view(|view| json(&view.output(place, after))))
    };
    look().unwrap_or_else(|refusal| *refusal)
}

fn stages(shared: &Shared, &RequestContext { query, .. }: &RequestContext<'_>) -> Answer {
    match number(query, "until_ms", Some(u64::MAX)) {
        Ok(until) => shared.with_view(|view| json(&stages_of(view, until))),
        Err(refusal) => *refusal,
    }
}

fn summary(shared: &Shared, _: &RequestContext<'_>) -> Answer {
    let running = "a run has a summary once it has ended and its log is written";
    let found = shared.with_view(|view| view.summary());
    found.map_or_else(|| problem(StatusCode::NOT_FOUND, "no summary", running), |summary| json(&summary))
}

fn host(shared: &Shared, _: &RequestContext<'_>) -> Answer {
    let elsewhere = "host figures exist only for a live run on the processors of the host, not for a \
         replay or a modelled chip";
    shared.host().map_or_else(|| problem(StatusCode::NOT_FOUND, "no host", elsewhere), |host| json(&host))
}

fn at(shared: &Shared, &RequestContext { query, .. }: &RequestContext<'_>) -> Answer {
    let time = match number(query, "time_ms", None) {
        Ok(time) => time,
        Err(refusal) => return *refusal,
    };
    let found = shared.with_view(|view| view.at(time));
    let live = "a live run has only its newest snapshot, in the stream";
    found.map_or_else(
        || problem(StatusCode::NOT_FOUND, "no replay", live),
        |snapshot| json(&ReaderSnapshot::from(snapshot)),
    )
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn a_parameter_is_decoded_as_that_of_a_form() {
        let query = "places=1%2c2%2C3&name=a+b%20c%2Bd%26e%3Df&caf%C3%A9=%E2%82%AC&empty=&bare&name=second";
        for (name, value) in [
            ("places", Some("1,2,3")),
            ("name", Some("a b c+d&e=f")),
            ("caf\u{e9}", Some("\u{20ac}")),
            ("empty", Some("")),
            ("bare", Some("")),
            ("plac", None),
            ("", None),
        ] {
            assert_eq!(parameter(query, name).as_deref(), value, "{name}");
        }
        assert_eq!(parameter("", "places"), None);
        // Invalid escapes are kept, and invalid UTF-8 becomes the replacement character.
        assert_eq!(parameter("a=100%&b=%zz&c=%FF", "a").as_deref(), Some("100%"));
        assert_eq!(parameter("a=100%&b=%zz&c=%FF", "b").as_deref(), Some("%zz"));
        assert_eq!(parameter("a=100%&b=%zz&c=%FF", "c").as_deref(), Some("\u{fffd}"));
    }
}
