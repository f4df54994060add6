//! Requests of the SPARQL 1.1 Protocol, section 2.1: the query, its dataset, and the media types that are accepted.
//!
//! Pure: it only parses. Invariant: a refusal names the allowed values.

use hyper::header::{self, HeaderMap};
use hyper::{Method, StatusCode};
use serde::Serialize;

/// A query, the dataset that the request names for it (section 2.1.4), and the media types in which its answer may be
/// written, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SparqlRequest {
    pub(crate) query: String,
    pub(crate) accept: Vec<String>,
    pub(crate) default_graphs: Vec<String>,
    pub(crate) named_graphs: Vec<String>,
}

/// Refusal of a request: the status, a title, and the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) &'static str, pub(crate) String);

/// The media type of a query by itself.
const QUERY: &str = "application/sparql-query";

/// The media type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

impl SparqlRequest {
    /// Reads a request: by GET, by POST of a form, or by POST of a query.
    ///
    /// # Errors
    /// The request is none of these.
    pub(crate) fn read(
        method: &Method,
        address_query: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<SparqlRequest, Refusal> {
        let bad = |detail: String| Refusal(StatusCode::BAD_REQUEST, "a bad request", detail);
        let text = || String::from_utf8(body.to_vec()).map_err(|_| bad("the body is not UTF-8".to_owned()));
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (parameters, own) = match (method, kind.as_str()) {
            (&Method::POST, FORM) => (text()?, None),
            (&Method::POST, QUERY) => (address_query.to_owned(), Some(text()?)),
            (&Method::POST, other) => {
                let detail = format!("Content-Type is {other:?}; allowed: {FORM}, {QUERY}");
                return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported body type", detail));
            }
            _ => (address_query.to_owned(), None),
        };
        let mut queries: Vec<String> = own.into_iter().collect();
        let mut request = SparqlRequest { accept: accepted(headers), ..SparqlRequest::default() };
        for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
            match name.as_ref() {
                "query" => queries.push(value.into_owned()),
                "default-graph-uri" => request.default_graphs.push(value.into_owned()),
                "named-graph-uri" => request.named_graphs.push(value.into_owned()),
                "update" => return Err(bad("update: the data cannot be changed; allowed: query".to_owned())),
                _ => {} // clients say more than the protocol has
            }
        }
        match <[String; 1]>::try_from(queries) {
            Ok([query]) => Ok(SparqlRequest { query, ..request }),
            Err(queries) => {
                Err(bad(format!("the parameter query appears {} times; allowed: once", queries.len())))
            }
        }
    }
}

/// Returns the media types that a client accepts, the best first; empty if it accepts all (RFC 9110, section 12.5.1).
fn accepted(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut all: Vec<(f32, String)> = Vec::new();
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        if !media.is_empty() && weight > 0.0 {
            all.push((weight, media));
        }
    }
    all.sort_by(|one, other| other.0.total_cmp(&one.0)); // equals stay in their order
    all.into_iter().map(|(_, media)| media).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        all.iter().for_each(|(name, value)| _ = headers.append(name, HeaderValue::from_static(value)));
        headers
    }

    #[test]
    fn a_query_comes_in_the_address_in_a_form_or_as_the_body() {
        let query = |method: &Method, address: &str, kind: &'static str, body: &str| {
            let headers = headers(&[(header::CONTENT_TYPE, kind)]);
            SparqlRequest::read(method, address, &headers, body.as_bytes()).map(|request| request.query)
        };
        let form = "Application/X-www-form-urlencoded; charset=UTF-8";
        assert_eq!(query(&Method::GET, "query=ASK+%7B%7D&format=json", "", ""), Ok("ASK {}".to_owned()));
        assert_eq!(query(&Method::POST, "", form, "query=ASK%20%7B%7D"), Ok("ASK {}".to_owned()));
        assert_eq!(query(&Method::POST, "", QUERY, "ASK {}"), Ok("ASK {}".to_owned()));
        let status =
            |method, address, kind, body| query(method, address, kind, body).map_err(|wrong| wrong.0);
        assert_eq!(status(&Method::GET, "", "", ""), Err(StatusCode::BAD_REQUEST));
        assert_eq!(status(&Method::GET, "query=a&query=b", "", ""), Err(StatusCode::BAD_REQUEST));
        assert_eq!(status(&Method::POST, "query=a", QUERY, "b"), Err(StatusCode::BAD_REQUEST));
        assert_eq!(status(&Method::POST, "", form, "update=a"), Err(StatusCode::BAD_REQUEST));
        assert_eq!(
            status(&Method::POST, "query=a", "text/plain", "a"),
            Err(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        let broken = headers(&[(header::CONTENT_TYPE, QUERY)]);
        assert!(SparqlRequest::read(&Method::POST, "", &broken, b"\xff").is_err());
    }

    #[test]
    fn a_request_names_the_graphs_of_its_dataset_in_the_address_or_in_the_form() {
        let graphs = "default-graph-uri=urn:a&named-graph-uri=urn:b&default-graph-uri=http%3A%2F%2Fc%2F%3Fd";
        let with_query = format!("query=a&{graphs}");
        for (method, address, kind, body) in [
            (Method::GET, with_query.as_str(), "", ""),
            (Method::POST, "", FORM, with_query.as_str()),
            (Method::POST, graphs, QUERY, "a"),
        ] {
            let headers = headers(&[(header::CONTENT_TYPE, kind)]);
            let request = SparqlRequest::read(&method, address, &headers, body.as_bytes()).unwrap();
            assert_eq!(request.query, "a", "{method} {address}");
            assert_eq!(request.default_graphs, ["urn:a", "http://c/?d"], "{method} {address}");
            assert_eq!(request.named_graphs, ["urn:b"], "{method} {address}");
        }
    }

    #[test]
    fn media_types_come_by_weight_and_then_as_they_stand() {
        let of = |all: &[(HeaderName, &'static str)]| accepted(&headers(all));
        assert!(of(&[]).is_empty());
        let browser = of(&[(header::ACCEPT, "text/html, text/csv;q=0.5, */*;q=0.1, text/x;q=0")]);
        assert_eq!(browser, ["text/html", "text/csv", "*/*"]);
        let two = of(&[(header::ACCEPT, "a/b;q=0.3"), (header::ACCEPT, "C/D ; q=0.3,e/f;q=1")]);
        assert_eq!(two, ["e/f", "a/b", "c/d"]);
    }
}
