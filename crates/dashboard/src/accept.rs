//! Accepting connections, with a limit on how many are open and on how long each may take.
//!
//! A half request, a reader that has stopped, or a thousand connections must neither fill memory nor keep others out
//! for long. Invariants: at most [`CONNECTIONS_MAX`] connections; headers come within [`HEADER_LIMIT`] or the
//! connection is closed; what a stalled reader has not taken for [`STALL_MS`] ends its connection.

use crate::routes;
use crate::server::Shared;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_nodelay, set_tcp_user_timeout};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Most connections at a time; the next is closed at once.
const CONNECTIONS_MAX: usize = 128;

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

/// Answers on `listener`, for ever.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>) -> Infallible {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without a permit the stream is dropped, which closes it.
                if let Ok(permit) = Arc::clone(&connections).try_acquire_owned() {
                    let shared = Arc::clone(&shared);
                    tokio::spawn(async move {
                        answer(stream, shared).await;
                        drop(permit);
                    });
                }
            }
            // The peer has gone, or there are no descriptors: others may still be answered.
            Err(_) => tokio::time::sleep(EXHAUSTED_PAUSE).await,
        }
    }
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, shared: Arc<Shared>) {
    // Where the system does not take an option, the connection works as well, with other bounds.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
    let _ = set_tcp_user_timeout(&stream, STALL_MS);
    let _ = set_tcp_nodelay(&stream, true);
    let service = service_fn(move |request| {
        let answer = routes::answer(&shared, &request);
        async move { Ok::<_, Infallible>(answer) }
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
