//! Jobs on the page: forwards requests to the socket of the job server, and returns the replies.
//!
//! It forwards lines of JSON, marked as coming from a page. Invariants: read-only clients can only list; the job server
//! alone parses requests and decides what a page may do.

use crate::answer::{Answer, job_problem, json, problem};
use crate::routes::parameter;
use crate::server::Shared;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json as object};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Path at which jobs are listed and controlled.
pub(crate) const LIST: &str = "/api/v1/jobs";

/// Path of the last lines of a job.
pub(crate) const OUTPUT: &str = "/api/v1/jobs/output";

/// Time limit for an answer of the job server.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// Maximum bytes of a request, and of an answer.
const REQUEST_BYTES_MAX: usize = 16 << 10;
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of lines of a job's output that are shown.
const LINES_MAX: u64 = 10_000;

/// Answers an authorised request.
pub(crate) async fn answer(shared: &Shared, request: Request<Incoming>) -> Answer {
    let Some(directory) = &shared.jobs else {
        return problem(StatusCode::NOT_FOUND, "no jobs", "this run manages none; isles serve --ui does");
    };
    let socket = directory.join("socket");
    let done = match (request.uri().path(), request.method()) {
        (OUTPUT, _) => output(&socket, request.uri().query().unwrap_or_default()).await,
        (_, &Method::POST) => forward_control(&socket, request).await,
        _ => list(&socket).await,
    };
    done.unwrap_or_else(|refusal| *refusal)
}

async fn list(socket: &Path) -> Result<Answer, Box<Answer>> {
    let jobs = ask(socket, &object!({ "ask": "list" })).await?;
    let cores = ask(socket, &object!({ "ask": "cores" })).await?;
    let (list, kinds, policy) = (&jobs["jobs"], &jobs["kinds"], &cores["policy"]);
    let (governor, page_commands, criu) = (&cores["governor"], &jobs["page_commands"], &jobs["criu"]);
    let cores = &cores["cores"];
    Ok(json(&object!({
        "jobs": list, "kinds": kinds, "cores": cores, "policy": policy, "governor": governor,
        "page_commands": page_commands, "criu": criu
    })))
}

async fn output(socket: &Path, query: &str) -> Result<Answer, Box<Answer>> {
    let number = |name: &str, default: Option<u64>| {
        let value = parameter(query, name);
        let number = value.as_deref().map_or(default, |value| value.parse().ok());
        let detail = || format!("{name} is {:?}; allowed: a whole number", value.unwrap_or_default());
        number.ok_or_else(|| Box::new(problem(StatusCode::BAD_REQUEST, "a bad query", &detail())))
    };
    let (job, lines) = (number("job", None)?, number("lines", Some(100))?.min(LINES_MAX));
    let answer = ask(socket, &object!({ "ask": "output", "job": job, "lines": lines })).await?;
    Ok(json(&answer))
}

/// Passes a control request on to a job.
async fn forward_control(socket: &Path, request: Request<Incoming>) -> Result<Answer, Box<Answer>> {
    let bad = |detail: &str| Box::new(problem(StatusCode::BAD_REQUEST, "a bad request", detail));
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // A form of another site can send text, but not this media type.
    if kind != Some("application/json") {
        return Err(Box::new(problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported body type",
            "allowed: application/json",
        )));
    }
    let body = Limited::new(request.into_body(), REQUEST_BYTES_MAX).collect().await;
    let body = body.map_err(|fault| match fault.is::<LengthLimitError>() {
        true => Box::new(problem(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is too long",
            "at most 16 KiB are allowed",
        )),
        false => bad(&fault.to_string()),
    })?;
    let asked: Value = serde_json::from_slice(&body.to_bytes()).map_err(|fault| bad(&fault.to_string()))?;
    Ok(json(&ask(socket, &object!({ "ask": "page", "request": asked })).await?))
}

/// Sends a request to the job server.
///
/// # Errors
/// The problem document, if the job server refuses or does not answer.
async fn ask(socket: &Path, asked: &Value) -> Result<Value, Box<Answer>> {
    let exchange = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(format!("{asked}\n").as_bytes()).await?;
        let mut line = Vec::new();
        BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut line).await?;
        serde_json::from_slice::<Value>(&line).map_err(io::Error::from)
    };
    let gone =
        |detail: &str| Box::new(problem(StatusCode::BAD_GATEWAY, "the job server does not answer", detail));
    match timeout(ANSWER_WAIT, exchange).await {
        Err(_) => Err(gone("it takes too long")),
        Ok(Err(cause)) => Err(gone(&cause.to_string())),
        Ok(Ok(answer)) if answer["answer"] == "refused" => Err(match RefusedAnswer::deserialize(&answer) {
            Ok(RefusedAnswer { kind, class, reason }) => {
                Box::new(job_problem(class.status(), &kind, &reason))
            }
            Err(fault) => gone(&format!("its refusal cannot be read: {fault}")),
        }),
        Ok(Ok(answer)) => Ok(answer),
    }
}

/// A refusal of the job server, with its class.
#[derive(Deserialize)]
struct RefusedAnswer {
    kind: String,
    class: RefusedClass,
    reason: String,
}

/// The classes of refusals, as `RefusalClass` of `isles-jobs` names them.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RefusedClass {
    Malformed,
    NotAllowed,
    TooLong,
    Conflict,
}

impl RefusedClass {
    fn status(self) -> StatusCode {
        match self {
            RefusedClass::Malformed => StatusCode::BAD_REQUEST,
            RefusedClass::NotAllowed => StatusCode::FORBIDDEN,
            RefusedClass::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            RefusedClass::Conflict => StatusCode::CONFLICT,
        }
    }
}
