//! Limits: connections, incomplete requests, sizes, readers that are many, slow or gone, and a killed server.

use crate::scene::{NEVER, Reply, Run, Server, next};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Returns `true` if the other end has closed the connection; waits for it.
fn is_closed(mut stream: &TcpStream) -> bool {
    let mut bytes = [0; 512];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn half_requests_are_closed_and_others_are_answered_meanwhile_or_soon() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let half = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX: ", server.port);
    let mut streams = Vec::new();
    for _ in 0..500 {
        let mut stream = server.connect();
        // One that is turned away may be closed already.
        let _ = stream.write_all(half.as_bytes());
        streams.push(stream);
    }
    let begun = Instant::now();
    assert!(streams.iter().all(is_closed), "a half request stays open");
    assert!(begun.elapsed() < NEVER);
    assert_eq!(server.get("/api/v1/run").status, 200);
}

#[test]
fn who_has_no_token_cannot_keep_out_who_has_however_many_connections_he_renews() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let mut reader = server.stream();
    let is_over = AtomicBool::new(false);
    let renewed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut streams: VecDeque<TcpStream> = (0..100).map(|_| server.connect()).collect();
                // The oldest of a hundred is closed by the server or given up, and another one takes its place.
                while !is_over.load(Ordering::Relaxed) {
                    streams.pop_front();
                    streams.push_back(server.connect());
                    renewed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while renewed.load(Ordering::Relaxed) < 300 {
            std::thread::yield_now();
        }
        let answers: Vec<u16> = (0..100).map(|_| server.get("/api/v1/run").status).collect();
        let news = next(&mut reader)["seq"].is_u64();
        is_over.store(true, Ordering::Relaxed);
        // One may be closed before it has said anything, if its thread had no processor meanwhile; it asks again.
        let answered = answers.iter().filter(|status| **status == 200).count();
        assert!(answered >= 80, "{answers:?}");
        assert!(news, "who reads goes on");
    });
}

#[test]
fn idle_connections_without_a_token_keep_nobody_out() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let idle: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let answers: Vec<u16> = (0..20).map(|_| server.get("/api/v1/run").status).collect();
    assert_eq!(answers, [200; 20]);
    drop(idle);
}

#[test]
fn requests_that_are_too_long_are_refused() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let bearer = server.bearer();
    assert_eq!(server.get(&format!("/api/v1/run?{}", "x".repeat(5_000))).status, 414);
    // The answer may be lost if the server closes while the request is still written.
    let long = server.get(&format!("/{}", "x".repeat(200_000))).status;
    assert!([414, 431, 0].contains(&long), "{long}");
    let many: Vec<String> = (0..100).map(|number| format!("X-{number}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(server.ask("GET /api/v1/run", &many).status, 431);
    let body = server.ask("POST /api/v1/session", &[&bearer, "Content-Length: 10000000"]);
    assert_eq!(body.status, 413);

    let mut stream = server.connect();
    let head = format!("POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{bearer}\r\n", server.port);
    stream.write_all(format!("{head}Content-Length: 10000000\r\n\r\n").as_bytes()).unwrap();
    // Ten megabytes: refused before they are there, or a broken pipe.
    let piece = vec![b'x'; 1 << 16];
    let _ = (0..160).try_for_each(|_| stream.write_all(&piece));
    assert!([413, 0].contains(&Reply::read(stream).status));

    for garbage in [&b"\x16\x03\x01\x02\x00\x01"[..], b"GET\r\n\r\n", b"\r\n\r\n\r\n", &[0xff; 4096]] {
        let mut stream = server.connect();
        let _ = stream.write_all(garbage);
        assert!(is_closed(&stream), "{garbage:?}");
    }
    assert_eq!(server.get("/api/v1/run").status, 200);
}

#[test]
fn sixty_four_may_read_at_a_time_and_who_leaves_makes_room() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let mut streams: Vec<_> = (0..64).map(|_| server.stream()).collect();
    for stream in &mut streams {
        assert_eq!(next(stream)["places"]["state"][0], "idle");
    }
    let refused = server.get("/api/v1/stream");
    assert_eq!((refused.status, refused.json()["title"].as_str()), (503, Some("too many readers")));
    streams.truncate(10);
    let begun = Instant::now();
    // The server notices with the next snapshot.
    while server.get("/api/v1/run").status != 200 || streams.len() < 11 {
        let mut stream = server.connect();
        let (port, bearer) = (server.port, server.bearer());
        let request = format!("GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{bearer}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        if status.ends_with(b"200") {
            break;
        }
        assert!(begun.elapsed() < NEVER, "no room after 54 readers have left");
    }
}

/// Resident bytes of a process.
fn resident(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn stalled_readers_cost_no_memory_and_others_go_on_reading() {
    // Snapshots of 1,024 places are long, so that stalled ones fill what the system keeps for them.
    let run = Run::new(1024);
    let server = Server::live(&run);
    let stalled: Vec<_> = (0..20).map(|_| server.stream()).collect();
    let before = resident(server.child.id());
    // Between two snapshots this reader does nothing else: to copy the counters of 1,024 places would make it the slow
    // one. So it finds each snapshot when it comes, and the system keeps some of those that come while it has no
    // processor. On a busy host that may be for longer, but not each time.
    let read_whole = |_| {
        let mut reader = server.stream();
        let first = next(&mut reader)["seq"].as_u64().unwrap();
        let last = (1..20).map(|_| next(&mut reader)).last().unwrap();
        (last["seq"] == first + 19 && last["missed"] == 0).then_some(reader)
    };
    let whole = (0..5).find_map(read_whole);
    let mut reader = whole.expect("a reader that reads misses nothing, whoever else stalls");
    let grown = resident(server.child.id()).saturating_sub(before);
    assert!(grown < 20 << 20, "{grown} bytes more with 20 stalled readers");
    std::thread::scope(|scope| {
        scope.spawn(|| run.copy(7));
        let begun = Instant::now();
        while next(&mut reader)["places"]["tasks"][1023] != 7 {
            assert!(begun.elapsed() < NEVER, "what is new does not reach it");
        }
    });
    drop(stalled);
}

#[test]
fn a_killed_server_leaves_the_run_as_it_is() {
    let run = Run::new(2);
    let mut server = Server::live(&run);
    let mut stream = server.stream();
    next(&mut stream);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    run.copy(5);
    let again = Server::live(&run);
    let run_is_seen = again.get("/metrics").body;
    assert!(run_is_seen.contains("isles_tasks_total{place=\"1\"} 5"), "{run_is_seen}");
}

#[test]
fn who_manages_is_answered_beside_readers_and_half_requests_that_have_all_slots() {
    let run = Run::new(1);
    let folder = run.directory.join("jobs");
    let server = Server::start("live", &run, &["--keep", "--jobs", folder.to_str().unwrap()]);
    let host = format!("Host: 127.0.0.1:{}", server.port);
    let ask = |path: &str, token: &str| {
        let mut stream = server.connect();
        let request = format!("GET {path} HTTP/1.1\r\n{host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (stream, String::from_utf8_lossy(&status[9..]).into_owned())
    };
    let view = server.view_token.clone().unwrap();
    let streams: Vec<_> = (0..65).map(|_| ask("/api/v1/stream", &view)).collect();
    let readers: Vec<_> = (0..200).map(|_| ask("/api/v1/openapi.json", &view)).collect();
    let refused = |all: &[(TcpStream, String)]| all.iter().filter(|(_, status)| status == "503").count();
    assert_eq!(refused(&streams), 1);
    // Those that have said nothing more for five seconds are closed, so on a busy host there may be room.
    assert!(refused(&readers) <= 9);
    let half: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let answers: Vec<String> = (0..20).map(|_| ask("/api/v1/run", &server.token).1).collect();
    assert!(answers.iter().all(|status| status == "200"), "{answers:?}");
    assert_eq!(ask("/api/v1/stream", &server.token).1, "200");
    drop((streams, readers, half));
}
