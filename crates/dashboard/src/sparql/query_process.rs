//! The program that answers queries, connected by a socket as its standard input.
//!
//! A request is a line of JSON; the reply a line of JSON and the bytes that it announces (`apps/rdf/src/requests.rs`).
//! One request is processed at a time, because all places answer together. Invariant: a cancelled request leaves no
//! part of its reply to the next.

use super::request::SparqlRequest;
use serde::Deserialize;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as SystemStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// Maximum bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4 << 30;

/// The first line of a reply.
#[derive(Debug, Deserialize)]
struct ReplyHeader {
    media: Option<String>,
    fault: Option<ReplyFault>,
    bytes: u64,
}

/// Class of an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReplyFault {
    Request,
    Query,
    Limit,
    Form,
}

/// An answer with its media type, or a fault.
#[derive(Debug)]
pub(crate) enum Reply {
    Answer(String, Vec<u8>),
    Fault(ReplyFault, String),
}

/// The connection to the answering program.
#[derive(Clone, Debug)]
pub(crate) struct QueryProcess(Arc<Mutex<BufReader<UnixStream>>>);

impl QueryProcess {
    /// Starts the program with these arguments; it ends when this process does.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn start(program: &Path, arguments: &[String]) -> io::Result<(QueryProcess, Child)> {
        let (ours, theirs) = SystemStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--serve").args(["--json", "/dev/null", "--csv", "/dev/null"]);
        let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).spawn()?;
        Ok((QueryProcess(Arc::new(Mutex::new(BufReader::new(stream)))), child))
    }

    /// Sends a request after the previous one is answered.
    ///
    /// # Errors
    /// The program has gone.
    pub(crate) async fn ask(&self, request: &SparqlRequest) -> io::Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let stream = Arc::clone(&self.0);
        // A separate task continues when the client is gone.
        let exchange = tokio::spawn(async move {
            let mut stream = stream.lock().await;
            stream.get_mut().write_all(&line).await?;
            read(&mut stream).await
        });
        exchange.await.map_err(io::Error::other)?
    }
}

async fn read(stream: &mut BufReader<UnixStream>) -> io::Result<Reply> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).await?;
    let header: ReplyHeader = serde_json::from_slice(&line)?;
    if header.bytes > ANSWER_BYTES_MAX {
        return Err(io::Error::other("an answer of more than 4 GiB"));
    }
    let mut bytes = vec![0; header.bytes as usize];
    stream.read_exact(&mut bytes).await?;
    Ok(match (header.media, header.fault) {
        (Some(media), _) => Reply::Answer(media, bytes),
        (None, fault) => {
            Reply::Fault(fault.unwrap_or(ReplyFault::Request), String::from_utf8_lossy(&bytes).into_owned())
        }
    })
}
