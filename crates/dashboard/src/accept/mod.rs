//! Accepting connections, with limits on their number and on the time each may take.
//!
//! An incomplete request, a stalled reader, or a thousand connections must neither fill memory nor lock others out for
//! long; `slots` decides which may be open. Invariants: headers arrive within [`HEADER_LIMIT`] or the connection is
//! closed; a reader that accepts no data for [`STALL_MS`] loses its connection.

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

/// Maximum bytes of a request line with its headers, and maximum number of headers.
const HEADERS_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 64;

/// Send buffer of a connection, in bytes.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Time for which sent bytes may stay unacknowledged, in milliseconds.
const STALL_MS: u32 = 5_000;

/// Pause when the system is out of descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A service that answers the requests of connections.
pub(crate) trait RequestService: Send + Sync + 'static {
    /// Returns the guard, which authorises requests.
    fn guard(&self) -> &Guard;

    /// Answers a request after its authorisation.
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

/// The open connections, with a handle to close each newcomer.
#[derive(Default)]
struct Connections {
    slots: Slots,
    newcomers: BTreeMap<u64, AbortHandle>,
}

type SharedConnections = Arc<Mutex<Connections>>;

fn lock(connections: &SharedConnections) -> MutexGuard<'_, Connections> {
    // Each change is complete before anything can panic.
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, while it is open.
struct OpenConnection {
    number: u64,
    connections: SharedConnections,
}

impl OpenConnection {
    /// Adds a connection; closes the oldest newcomer if necessary.
    fn admit(connections: &SharedConnections) -> OpenConnection {
        let mut all = lock(connections);
        let Admission { number, evicted } = all.slots.admit();
        let evicted = evicted.and_then(|oldest| all.newcomers.remove(&oldest));
        evicted.iter().for_each(AbortHandle::abort);
        OpenConnection { number, connections: Arc::clone(connections) }
    }

    /// Records that the connection has shown the token of `role`. Returns `true` if that role has a free slot.
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

/// Accepts connections on `listener`, for ever.
pub(crate) async fn accept(listener: TcpListener, server: Arc<impl RequestService>) -> Infallible {
    let connections = SharedConnections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = OpenConnection::admit(&connections);
                let number = connection.number;
                let task = tokio::spawn(answer(stream, Arc::clone(&server), connection));
                // There is one thread, and the task has not run yet; the yield lets it read before the next connection
                // is accepted.
                lock(&connections).newcomers.insert(number, task.abort_handle());
                tokio::task::yield_now().await;
            }
            // The peer is gone, or there are no descriptors: other connections may still work.
            Err(_) => tokio::time::sleep(EXHAUSTED_PAUSE).await,
        }
    }
}

/// Returns the answer to a connection without a free slot, which is then closed.
fn too_many() -> Answer {
    let detail = "close other pages of this server, or try again later";
    let mut answer = problem(StatusCode::SERVICE_UNAVAILABLE, "too many connections", detail);
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, server: Arc<impl RequestService>, connection: OpenConnection) {
    // If the system refuses an option, the connection still works, with other bounds.
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
    // A fault of the peer ends its connection; there is no one to report it to.
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}
