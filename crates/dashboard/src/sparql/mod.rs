//! SPARQL over HTTP: the query operation of the SPARQL 1.1 Protocol, for programs of the same user.
//!
//! It listens on the loopback address, behind the same guard as the page; the answers come from a program that has the
//! data (`query_process`). Invariant: a request without the token learns nothing.

mod query_process;
mod request;

use crate::accept::{RequestService, accept};
use crate::answer::{Answer, answer, problem, text};
use crate::guard::{Access, Guard};
use crate::server::ServeError;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode};
use query_process::{QueryProcess, Reply, ReplyFault};
use request::{Refusal, SparqlRequest};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Path of the endpoint for queries.
const ENDPOINT: &str = "/sparql";

/// Maximum bytes of the body of a request: a long query.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// Options of a SPARQL server: the program, its arguments, and the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparqlOptions {
    /// The program that answers: `isles-rdf`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The port; 0 for any free port.
    pub port: u16,
}

/// State that all requests share.
struct SparqlServer {
    guard: Guard,
    query_process: QueryProcess,
}

impl RequestService for SparqlServer {
    fn guard(&self) -> &Guard {
        &self.guard
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        match self.answered(request).await {
            Ok(answer) | Err(answer) => *answer,
        }
    }
}

fn refused(refusal: &Refusal) -> Box<Answer> {
    let Refusal(status, title, detail) = refusal;
    Box::new(problem(*status, title, detail))
}

impl SparqlServer {
    async fn answered(&self, request: Request<Incoming>) -> Result<Box<Answer>, Box<Answer>> {
        self.guard.check_origin(&request, Some(Access::View))?;
        if self.guard.role(request.headers()).is_none() {
            let detail =
                "send the header that was printed when the server began: Authorization: Bearer TOKEN";
            let mut refusal = problem(StatusCode::UNAUTHORIZED, "no token", detail);
            refusal.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(Box::new(refusal));
        }
        if request.uri().path() != ENDPOINT {
            let detail = format!("queries are sent to {ENDPOINT}");
            return Err(Box::new(problem(StatusCode::NOT_FOUND, "no such address", &detail)));
        }
        if ![Method::GET, Method::POST].contains(request.method()) {
            let mut refusal = problem(StatusCode::METHOD_NOT_ALLOWED, "another method", "GET, POST");
            refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST"));
            return Err(Box::new(refusal));
        }
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX as usize).collect().await.map_err(|error| {
            let is_long = error.is::<LengthLimitError>();
            let status = if is_long { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
            Box::new(problem(status, "the request cannot be read", "at most 1 MiB is allowed"))
        })?;
        let address_query = parts.uri.query().unwrap_or_default();
        let asked = SparqlRequest::read(&parts.method, address_query, &parts.headers, &body.to_bytes());
        let asked = asked.map_err(|refusal| refused(&refusal))?;
        let gone = |error: io::Error| {
            let detail = format!("the program that answers has ended: {error}");
            Box::new(problem(StatusCode::BAD_GATEWAY, "no answer", &detail))
        };
        Ok(match self.query_process.ask(&asked).await.map_err(gone)? {
            Reply::Answer(media, bytes) => Box::new(of_media(&media, bytes)),
            Reply::Fault(fault, detail) => {
                let (status, title) = match fault {
                    ReplyFault::Request | ReplyFault::Query => (StatusCode::BAD_REQUEST, "a bad query"),
                    ReplyFault::Form => (StatusCode::NOT_ACCEPTABLE, "another form"),
                    ReplyFault::Limit => (StatusCode::INTERNAL_SERVER_ERROR, "the query was given up"),
                };
                Box::new(problem(status, title, &detail))
            }
        })
    }
}

fn of_media(media: &str, bytes: Vec<u8>) -> Answer {
    match HeaderValue::from_str(media) {
        Ok(media) => {
            let mut found = text("", bytes);
            found.headers_mut().insert(header::CONTENT_TYPE, media);
            found
        }
        Err(_) => answer(StatusCode::BAD_GATEWAY, "", Either::Left(Full::default())),
    }
}

/// Starts the program and serves queries until it ends. Returns its exit status. Once it has its data and can answer,
/// `on_ready` gets the address and the token.
///
/// # Errors
/// See [`ServeError`]; nothing is served.
pub fn serve_sparql(
    options: &SparqlOptions,
    on_ready: impl FnOnce(&str, &str),
) -> Result<ExitStatus, ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|cause| ServeError::System(format!("the server cannot start: {cause}")))?;
    runtime.block_on(async {
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
        let listener = listening.map_err(|cause| ServeError::Port(options.port, cause))?;
        let port = listener.local_addr().map_err(|cause| ServeError::Port(options.port, cause))?.port();
        let guard = Guard::new(port, false, BODY_BYTES_MAX).map_err(ServeError::System)?;
        let started = QueryProcess::start(&options.program, &options.arguments);
        let (query_process, child) =
            started.map_err(|cause| ServeError::System(unstarted(&options.program, &cause)))?;
        // Answered once the data is loaded; if it fails, the program has printed the reason.
        let first = SparqlRequest { query: "ASK {}".to_owned(), ..SparqlRequest::default() };
        if query_process.ask(&first).await.is_ok() {
            let (address, token) = guard.endpoint();
            on_ready(&format!("{address}{ENDPOINT}"), token);
            tokio::spawn(accept(listener, Arc::new(SparqlServer { guard, query_process })));
        }
        ended(child).await
    })
}

fn unstarted(program: &Path, cause: &io::Error) -> String {
    format!("cannot start {}: {cause}", program.display())
}

/// Waits on a thread of its own for the program to end.
async fn ended(mut child: Child) -> Result<ExitStatus, ServeError> {
    let (sender, status) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || sender.send(child.wait()));
    let status = status.await.map_err(|_| ServeError::System("the program cannot be awaited".to_owned()))?;
    status.map_err(|cause| ServeError::System(format!("the program cannot be awaited: {cause}")))
}
