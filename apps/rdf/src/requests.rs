//! Queries from a client program, over the socket at standard input, one at a time.
//!
//! A request is a line of JSON; a reply is a line of JSON, followed by the number of bytes stated there. A separate
//! thread reads and writes; a place only takes the next request and hands over its reply. Invariants: each request is
//! answered before the next is read; the end of the socket ends the requests.

use crate::queries::NamedDataset;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

/// Maximum size of a request in bytes: the 1 MiB that a client may send, which JSON may expand sixfold, and the media
/// types beside it.
const REQUEST_BYTES_MAX: u64 = 8 << 20;

/// A query, its dataset, and the accepted media types of its answer, in order of preference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryRequest {
    /// The text of the query.
    pub query: String,
    /// Media types, which may end in `/*`.
    #[serde(default)]
    pub accept: Vec<String>,
    /// The graphs that the request names as the dataset.
    #[serde(flatten)]
    pub dataset: NamedDataset,
}

/// Reason why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The request is not a valid line of JSON.
    Request,
    /// The query cannot be parsed, or asks for an unsupported feature.
    Query,
    /// The query exceeds a limit.
    Limit,
    /// The answer has no accepted form.
    Form,
}

/// Reply to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer: its media type, and its bytes.
    Answer(&'static str, Vec<u8>),
    /// No answer; the text describes the fault.
    Fault(FaultKind, String),
}

/// The first line of a reply.
#[derive(Serialize)]
struct ReplyHeader<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    media: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<FaultKind>,
    /// Number of bytes that follow: the answer, or the description of the fault.
    bytes: usize,
}

impl Reply {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (media, fault, bytes) = match self {
            Reply::Answer(media, bytes) => (Some(*media), None, bytes.as_slice()),
            Reply::Fault(kind, text) => (None, Some(*kind), text.as_bytes()),
        };
        let head = serde_json::to_string(&ReplyHeader { media, fault, bytes: bytes.len() })?;
        out.write_all(format!("{head}\n").as_bytes())?;
        out.write_all(bytes)
    }
}

#[derive(Debug, Default)]
struct RequestInboxState {
    /// The waiting request, and the channel for its reply.
    waiting: Option<(QueryRequest, Sender<Reply>)>,
    waker: Option<Waker>,
    is_closed: bool,
}

/// Queue from the thread that reads requests.
#[derive(Debug, Default)]
struct RequestInbox(Mutex<RequestInboxState>);

impl RequestInbox {
    fn lock(&self) -> MutexGuard<'_, RequestInboxState> {
        // Each change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut RequestInboxState)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The requests arriving on standard input.
#[derive(Debug)]
pub struct Requests(Arc<RequestInbox>);

impl Requests {
    /// Reads requests from standard input, which is a socket, and writes replies to it.
    ///
    /// # Errors
    /// Standard input is not a socket.
    pub fn of_standard_input() -> io::Result<Requests> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.local_addr()?; // refused by all that is no socket
        let inbox = Arc::<RequestInbox>::default();
        let theirs = Arc::clone(&inbox);
        thread::Builder::new().name("isles requests".to_owned()).spawn(move || {
            let _ = converse(&stream, &theirs); // one that cannot be read or written has ended
            theirs.change(|state| state.is_closed = true);
        })?;
        Ok(Requests(inbox))
    }

    /// Returns the next request and the channel for its reply; `None` at the end.
    pub async fn next(&self) -> Option<(QueryRequest, Sender<Reply>)> {
        poll_fn(|context| {
            let mut state = self.0.lock();
            match state.waiting.take() {
                Some(next) => Poll::Ready(Some(next)),
                None if state.is_closed => Poll::Ready(None),
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Reads requests until the end, and sends the reply to each.
fn converse(stream: &UnixStream, inbox: &RequestInbox) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(read) = read(&mut reader)? {
        let reply = match read {
            Ok(request) => {
                let (sender, reply) = channel();
                inbox.change(|state| state.waiting = Some((request, sender)));
                let Ok(reply) = reply.recv() else { return Ok(()) }; // the run has ended
                reply
            }
            Err(fault) => fault,
        };
        reply.write(&mut writer)?;
    }
    Ok(())
}

/// Reads the next request, or describes its fault; returns `None` at the end.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Result<QueryRequest, Reply>>> {
    let mut line = Vec::new();
    reader.take(REQUEST_BYTES_MAX + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let fault = |text| Err(Reply::Fault(FaultKind::Request, text));
    if line.len() as u64 > REQUEST_BYTES_MAX {
        let text = format!("a request is longer than {REQUEST_BYTES_MAX} bytes");
        return Err(io::Error::other(text)); // where the next one begins is not known
    }
    Ok(Some(serde_json::from_slice(&line).or_else(|error| fault(format!("the request: {error}")))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_line_of_json_with_a_query() {
        let query = |text: &str| read(&mut text.as_bytes()).unwrap();
        let mut request = QueryRequest { query: "ASK {}".to_owned(), ..QueryRequest::default() };
        request.accept.push("text/csv".to_owned());
        request.dataset.named_graphs.push("urn:g".to_owned());
        let graphs = "\"default_graphs\":[],\"named_graphs\":[\"urn:g\"]";
        let text = format!("{{\"query\":\"ASK {{}}\",\"accept\":[\"text/csv\"],{graphs}}}\nmore");
        assert_eq!(query(&text), Some(Ok(request)));
        assert_eq!(query("{\"query\":\"\"}\n"), Some(Ok(QueryRequest::default())));
        assert_eq!(query(""), None);
        for wrong in ["\n", "{}", "{\"query\":1}", "ASK {}\n"] {
            assert!(matches!(query(wrong), Some(Err(Reply::Fault(FaultKind::Request, _)))), "{wrong}");
        }
        // The maximum number of bytes from a client, each written as six.
        let long = format!("{{\"query\":\"{}\"}}\n", "\\u0001".repeat(1 << 20));
        assert!(matches!(query(&long), Some(Ok(request)) if request.query.len() == 1 << 20));
        assert!(read(&mut vec![b' '; REQUEST_BYTES_MAX as usize + 2].as_slice()).is_err());
    }

    #[test]
    fn a_reply_says_its_kind_and_how_many_bytes_follow() {
        let written = |reply: Reply| {
            let mut out = Vec::new();
            reply.write(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let answer = written(Reply::Answer("text/csv", b"n\r\n1\r\n".to_vec()));
        assert_eq!(answer, "{\"media\":\"text/csv\",\"bytes\":6}\nn\r\n1\r\n");
        let fault = written(Reply::Fault(FaultKind::Limit, "too long".to_owned()));
        assert_eq!(fault, "{\"fault\":\"limit\",\"bytes\":8}\ntoo long");
    }
}
