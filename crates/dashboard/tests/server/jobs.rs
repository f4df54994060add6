//! Jobs on the page: what is passed on to the job server, and what is not, whoever asks.

use crate::scene::{NEVER, Reply, Run, Server};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

/// A job server that answers each request with what it was asked; those about job 9 it refuses for
/// a reason of the kind and the class that they name.
fn job_server(name: &str) -> (PathBuf, Receiver<Value>) {
    let folder = std::env::temp_dir().join(format!("isles-ui-jobs-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it need not be there
    std::fs::create_dir(&folder).unwrap();
    let listener = UnixListener::bind(folder.join("socket")).unwrap();
    let (heard, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let request: Value = serde_json::from_str(&line).unwrap();
            let asked = &request["request"];
            let answer = if asked["job"] == 9 {
                serde_json::json!({
                    "answer": "refused", "reason": "there is no job 9", "kind": asked["kind"], "class": asked["class"]
                })
            } else {
                serde_json::json!({
                    "answer": "done", "jobs": [1], "cores": [2], "kinds": [3], "policy": "p", "page_commands": true,
                    "criu": true
                })
            };
            // The other side may have gone.
            let _ = writeln!(&stream, "{answer}");
            if heard.send(request).is_err() {
                return;
            }
        }
    });
    (folder, asked)
}

fn post(server: &Server, token: &str, kind: &str, body: &str) -> Reply {
    let mut stream = server.connect();
    let (port, len) = (server.port, body.len());
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nConnection: close\r\nHost: 127.0.0.1:{port}\r\n\
         Authorization: Bearer {token}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    Reply::read(stream)
}

#[test]
fn who_may_manage_is_passed_on_and_who_may_look_is_not() {
    const JSON: &str = "application/json";
    let (folder, asked) = job_server("roles");
    let run = Run::new(2);
    let server = Server::start("live", &run, &["--keep", "--jobs", folder.to_str().unwrap()]);
    let (control, view) = (server.token.clone(), server.view_token.clone().unwrap());
    let pause = r#"{"ask":"tell","job":1,"order":"pause"}"#;
    assert_eq!(post(&server, &control, JSON, pause).status, 200);
    assert_eq!(asked.recv_timeout(NEVER).unwrap()["request"]["order"], "pause");

    for (token, kind, body, status, problem) in [
        (view.as_str(), JSON, pause, 403, "no-right-to-change-anything"),
        ("0123", JSON, pause, 401, "no-session"),
        (&control, "text/plain", pause, 415, "unsupported-body-type"),
        (&control, JSON, "{", 400, "a-bad-request"),
        (&control, JSON, &format!("[{}1]", "1,".repeat(100_000)), 413, "the-request-is-too-long"),
    ] {
        let refused = post(&server, token, kind, body);
        let expected = (status, format!("urn:isles:problem:{problem}").into());
        assert_eq!((refused.status, refused.json()["type"].clone()), expected, "{body:.80}");
    }
    assert!(asked.try_recv().is_err(), "nothing of it was passed on");

    // Whatever it is, the job server hears that a page asks, and from nobody but this server.
    for body in [r#"{"ask":"end"}"#, r#"["end"]"#, r#"{"ask":"page","request":{"ask":"end"}}"#, "1"] {
        assert_eq!(post(&server, &control, JSON, body).status, 200, "{body}");
        let wrapped =
            serde_json::json!({ "ask": "page", "request": serde_json::from_str::<Value>(body).unwrap() });
        assert_eq!(asked.recv_timeout(NEVER).unwrap(), wrapped);
    }
    for (kind, class, status) in [
        ("other", "conflict", 409),
        ("no-such-clock", "conflict", 409),
        ("bad-request", "malformed", 400),
        ("commands-not-allowed", "not-allowed", 403),
        ("too-long", "too-long", 413),
        // The class decides, not the name.
        ("too-long", "not-allowed", 403),
        ("a-kind-of-tomorrow", "malformed", 400),
    ] {
        let body = serde_json::json!({ "job": 9, "kind": kind, "class": class }).to_string();
        let refused = post(&server, &control, JSON, &body);
        let problem =
            if kind == "other" { "about:blank".to_owned() } else { format!("urn:isles:problem:{kind}") };
        assert_eq!((refused.status, refused.json()["type"].clone()), (status, problem.into()));
        assert_eq!(refused.json()["detail"], "there is no job 9");
    }
    let unread = post(&server, &control, JSON, r#"{"job":9,"kind":"other","class":"of-tomorrow"}"#);
    assert_eq!(
        (unread.status, unread.json()["title"].clone()),
        (502, "the job server does not answer".into())
    );
    let list = server.ask("GET /api/v1/jobs", &[&format!("Authorization: Bearer {view}")]);
    assert_eq!((list.status, &list.json()["policy"]), (200, &"p".into()));
    assert_eq!((&list.json()["page_commands"], &list.json()["criu"]), (&true.into(), &true.into()));
    let run_of =
        |token: &str| server.ask("GET /api/v1/run", &[&format!("Authorization: Bearer {token}")]).json();
    assert_eq!(
        (&run_of(&control)["pages_role"], &run_of(&view)["pages_role"]),
        (&"control".into(), &"view".into())
    );
    assert_eq!(server.get("/api/v1/jobs/output?job=x").status, 400);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(server.get("/api/v1/jobs").status, 502, "the job server is gone");
}

#[test]
fn a_run_without_jobs_has_none_to_tell() {
    let run = Run::new(1);
    let server = Server::live(&run);
    assert_eq!(server.get("/api/v1/jobs").status, 404);
    assert_eq!(server.get("/api/v1/run").json()["jobs"], false);
    assert_eq!(post(&server, &server.token, "application/json", "{}").status, 403, "nobody may");
}
