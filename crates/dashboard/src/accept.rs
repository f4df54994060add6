//! Accepting connections, with a limit on how many are open and on how long each may take.
//!
//! A half request, a reader that has stopped, or a thousand connections must neither fill memory nor keep others out
//! for long, and who has shown no token cannot keep out who has. Invariants: at most [`CONNECTIONS_MAX`] connections;
//! headers come within [`HEADER_LIMIT`] or the connection is closed; what a stalled reader has not taken for
//! [`STALL_MS`] ends its connection.

use crate::jobs;
use crate::routes::{self, Found};
use crate::server::Shared;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_nodelay, set_tcp_user_timeout};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Most connections at a time; for the next, one that has shown no token is closed.
const CONNECTIONS_MAX: usize = 256;

/// How long the headers of a request may take.
const HEADER_LIMIT: Duration = Duration::from_secs(5);

/// Most bytes of a request line with its headers, and most headers.
const HEADERS_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 64;

/// Bytes that the system keeps for a reader that does not take them.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// How long sent bytes may stay untaken, in milliseconds.
const STALL_MS: u32 = 5_000;

/// How long to wait when the system gives no more descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// The connections that are open: how many, and those that have shown no token, the oldest first.
#[derive(Default)]
struct Connections {
    open: usize,
    next: u64,
    unknown: BTreeMap<u64, AbortHandle>,
}

type SharedConnections = Arc<Mutex<Connections>>;

fn lock(connections: &SharedConnections) -> MutexGuard<'_, Connections> {
    // Each change is whole before anything can panic.
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, while it is open.
struct OpenConnection {
    number: u64,
    connections: SharedConnections,
}

impl OpenConnection {
    /// A new one. If there are too many, the oldest of those that have shown no token makes room, so that nobody who
    /// has none can keep out who has; without such there is none.
    fn enter(connections: &SharedConnections) -> Option<OpenConnection> {
        let mut all = lock(connections);
        if all.open >= CONNECTIONS_MAX {
            let (_, oldest) = all.unknown.pop_first()?;
            oldest.abort();
        }
        all.open += 1;
        all.next += 1;
        Some(OpenConnection { number: all.next, connections: Arc::clone(connections) })
    }

    /// It has shown a token, and stays.
    fn is_known(&self) {
        lock(&self.connections).unknown.remove(&self.number);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut all = lock(&self.connections);
        all.open -= 1;
        all.unknown.remove(&self.number);
    }
}

/// Answers on `listener`, for ever.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>) -> Infallible {
    let connections = SharedConnections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // One that does not enter is dropped, which closes it.
                if let Some(connection) = OpenConnection::enter(&connections) {
                    let number = connection.number;
                    let task = tokio::spawn(answer(stream, Arc::clone(&shared), connection));
                    // There is one thread, and the task has not run yet; it reads before the next one is accepted.
                    lock(&connections).unknown.insert(number, task.abort_handle());
                    tokio::task::yield_now().await;
                }
            }
            // The peer has gone, or there are no descriptors: others may still be answered.
            Err(_) => tokio::time::sleep(EXHAUSTED_PAUSE).await,
        }
    }
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, shared: Arc<Shared>, connection: OpenConnection) {
    // Where the system does not take an option, the connection works as well, with other bounds.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
    let _ = set_tcp_user_timeout(&stream, STALL_MS);
    let _ = set_tcp_nodelay(&stream, true);
    let service = service_fn(move |request: Request<Incoming>| {
        if shared.guard.is_known(request.headers()) {
            connection.is_known();
        }
        let (found, shared) = (routes::answer(&shared, &request), Arc::clone(&shared));
        async move {
            Ok::<_, Infallible>(match found {
                Found::Answer(answer) => answer,
                Found::Jobs => jobs::answer(&shared, request).await,
            })
        }
    });
    let mut connection = http1::Builder::new();
    connection
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .max_buf_size(HEADERS_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    // What a peer does wrong ends its connection; there is nobody to tell.
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}
