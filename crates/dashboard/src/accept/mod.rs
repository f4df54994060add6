//! Accepting connections, with a limit on how many are open and on how long each may take.
//!
//! A half request, a reader that has stopped, or a thousand connections must neither fill memory nor keep others out
//! for long; which of them may be open is decided in `slots`. Invariants: headers come within [`HEADER_LIMIT`] or the
//! connection is closed; what a stalled reader has not taken for [`STALL_MS`] ends its connection.

mod slots;

use crate::answer::{Answer, problem};
use crate::guard::{Guard, Role};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_nodelay, set_tcp_user_timeout};
use slots::{Admission, Slots};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Time limit for the headers of a request.
const HEADER_LIMIT: Duration = Duration::from_secs(5);

/// Most bytes of a request line with its headers, and most headers.
const HEADERS_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 64;

/// Bytes that the system keeps for a reader that does not take them.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Time for which sent bytes may stay untaken, in milliseconds.
const STALL_MS: u32 = 5_000;

/// Pause when the system gives no more descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A server of the requests of connections.
pub(crate) trait RequestService: Send + Sync + 'static {
    /// Returns the guard, which decides who may ask.
    fn guard(&self) -> &Guard;

    /// Answers a request, whoever has sent it.
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

/// The connections that are open, and what ends each that has shown no token.
#[derive(Default)]
struct Connections {
    slots: Slots,
    newcomers: BTreeMap<u64, AbortHandle>,
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
    /// A new one, for which the oldest newcomer may have to give way.
    fn admit(connections: &SharedConnections) -> OpenConnection {
        let mut all = lock(connections);
        let Admission { number, evicted } = all.slots.admit();
        let evicted = evicted.and_then(|oldest| all.newcomers.remove(&oldest));
        evicted.iter().for_each(AbortHandle::abort);
        OpenConnection { number, connections: Arc::clone(connections) }
    }

    /// It has shown the token of `role`; returns whether that has a slot for it.
    fn show(&self, role: Role) -> bool {
        let mut all = lock(&self.connections);
        let stays = all.slots.show(self.number, role);
        all.newcomers.remove(&self.number);
        stays
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut all = lock(&self.connections);
        all.slots.leave(self.number);
        all.newcomers.remove(&self.number);
    }
}

/// Answers on `listener`, for ever.
pub(crate) async fn accept(listener: TcpListener, server: Arc<impl RequestService>) -> Infallible {
    let connections = SharedConnections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = OpenConnection::admit(&connections);
                let number = connection.number;
                let task = tokio::spawn(answer(stream, Arc::clone(&server), connection));
                // There is one thread, and the task has not run yet; it reads before the next one is accepted.
                lock(&connections).newcomers.insert(number, task.abort_handle());
                tokio::task::yield_now().await;
            }
            // The peer has gone, or there are no descriptors: others may still be answered.
            Err(_) => tokio::time::sleep(EXHAUSTED_PAUSE).await,
        }
    }
}

/// The answer to a connection whose role has no slot for it, which it ends.
fn too_many() -> Answer {
    let detail = "close other pages of this server, or try again later";
    let mut answer = problem(StatusCode::SERVICE_UNAVAILABLE, "too many connections", detail);
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, server: Arc<impl RequestService>, connection: OpenConnection) {
    // If the system does not take an option, the connection works as well, with other bounds.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
    let _ = set_tcp_user_timeout(&stream, STALL_MS);
    let _ = set_tcp_nodelay(&stream, true);
    let service = service_fn(move |request: Request<Incoming>| {
        let role = server.guard().role(request.headers());
        let is_let_in = role.is_none_or(|role| connection.show(role));
        let server = Arc::clone(&server);
        async move {
            Ok::<_, Infallible>(match is_let_in {
                true => server.answer(request).await,
                false => too_many(),
            })
        }
    });
    let mut connection = http1::Builder::new();
    connection
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .max_buf_size(HEADERS_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    // A fault of the peer ends its connection; there is nobody to tell.
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}
