//! Answers: JSON, text, files, streams, and refusals as problem documents (RFC 9457).
//!
//! Every answer has the same policy headers. Invariant: text of a run is only ever sent as JSON or as plain text, never
//! as markup.

use crate::stream::SnapshotStream;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// Content security policy of a page: its own script and style, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types lit-html";

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The body of an answer: complete, or a stream of snapshots.
pub(crate) type AnswerBody = Either<Full<Bytes>, StreamBody<SnapshotStream>>;

/// An answer to a request.
pub(crate) type Answer = Response<AnswerBody>;

/// Returns an answer with this media type and body.
pub(crate) fn answer(status: StatusCode, kind: &'static str, body: AnswerBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !kind.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    answer
}

/// Returns a text answer of this media type.
pub(crate) fn text(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    answer(StatusCode::OK, kind, Either::Left(Full::new(body.into())))
}

/// Returns an answer in JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(bytes) => text("application/json", bytes),
        Err(fault) => {
            problem(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written", &fault.to_string())
        }
    }
}

/// A problem document (RFC 9457).
#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

/// Returns a refusal of this server; `detail` names the fault and the allowed values. The type is `urn:isles:problem:`
/// and the title with hyphens.
pub(crate) fn problem(status: StatusCode, title: &str, detail: &str) -> Answer {
    problem_of(Some(&title.replace(' ', "-")), status, title, detail)
}

/// Returns a refusal of the job server, which names the type; `other` stands for no particular type.
pub(crate) fn job_problem(status: StatusCode, kind: &str, detail: &str) -> Answer {
    problem_of(Some(kind).filter(|kind| *kind != "other"), status, "refused", detail)
}

fn problem_of(kind: Option<&str>, status: StatusCode, title: &str, detail: &str) -> Answer {
    let kind = kind.map_or_else(|| "about:blank".to_owned(), |kind| format!("urn:isles:problem:{kind}"));
    let document = Problem { kind: &kind, title, status: status.as_u16(), detail };
    let bytes = serde_json::to_vec(&document).unwrap_or_default();
    answer(status, "application/problem+json", Either::Left(Full::new(bytes.into())))
}
