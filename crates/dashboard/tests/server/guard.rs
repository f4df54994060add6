//! Access to the server: each row of the guard, and each route without a token.

use crate::scene::{Run, Server};

#[test]
fn hosts_origins_and_sites_are_refused_unless_they_are_our_own() {
    let run = Run::new(2);
    let server = Server::live(&run);
    let (port, bearer) = (server.port, server.bearer());
    let own = format!("127.0.0.1:{port}");
    let ask = |host: &str, more: &[&str]| {
        let host = format!("Host: {host}");
        server.ask_bare("GET /api/v1/run", &[&[host.as_str(), bearer.as_str()], more].concat()).status
    };
    for host in
        [own.clone(), format!("localhost:{port}"), format!("[::1]:{port}"), format!("{}:{port}", server.name)]
    {
        assert_eq!(ask(&host, &[]), 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "evil.example:80@127.0.0.1"] {
        assert_eq!(ask(host, &[]), 421, "{host}");
    }
    assert_eq!(ask(&format!("evil.example:{port}"), &[]), 421);
    assert_eq!(ask(&own, &["Host: evil.example"]), 421, "two hosts");
    assert_eq!(server.ask_bare("GET /api/v1/run", &[&bearer]).status, 421, "no host");

    assert_eq!(ask(&own, &[&format!("Origin: http://{own}")]), 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", ""] {
        assert_eq!(ask(&own, &[&format!("Origin: {origin}")]), 403, "{origin}");
    }
    assert_eq!(ask(&own, &[&format!("Origin: http://localhost:{port}")]), 403, "another name of ours");
    assert_eq!(ask(&own, &["Sec-Fetch-Site: same-origin"]), 200);
    for site in ["same-site", "cross-site", "none", "what"] {
        assert_eq!(ask(&own, &[&format!("Sec-Fetch-Site: {site}")]), 403, "{site}");
    }
    assert_eq!(server.ask("GET /", &["Sec-Fetch-Site: none"]).status, 200, "an address that somebody typed");
    assert_eq!(server.ask("GET /", &["Sec-Fetch-Site: cross-site"]).status, 403);
}

#[test]
fn an_address_that_is_followed_from_another_page_is_shown_as_a_page_and_as_nothing_else() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let ask = |line: &str, site: &str, mode: &str, dest: &str| {
        let headers = [("Site", site), ("Mode", mode), ("Dest", dest)];
        let headers = headers.map(|(name, value)| format!("Sec-Fetch-{name}: {value}"));
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        server.ask(line, &[&headers[..], &[&server.bearer()]].concat()).status
    };
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(ask("GET /", site, "navigate", "document"), 200, "{site}");
    }
    for (line, mode, dest) in [
        ("GET /", "navigate", "iframe"),
        ("GET /", "navigate", "embed"),
        ("GET /", "no-cors", "document"),
        ("GET /", "no-cors", "image"),
        ("GET /", "cors", "empty"),
        ("POST /", "navigate", "document"),
        ("GET /app.js", "navigate", "document"),
        ("GET /api/v1/run", "navigate", "document"),
        ("POST /api/v1/session", "navigate", "document"),
    ] {
        assert_eq!(ask(line, "cross-site", mode, dest), 403, "{line} {mode} {dest}");
    }
    let another = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    let origin = "Origin: http://evil.example";
    assert_eq!(server.ask("GET /", &[&another[..], &[origin]].concat()).status, 403);
    let page = server.ask("GET /", &another);
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
}

#[test]
fn the_name_of_the_scheme_of_a_token_has_no_case_and_one_space_or_more_behind_it() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let token = &server.token;
    let ask = |value: &str| server.ask("GET /metrics", &[&format!("Authorization: {value}")]).status;
    for value in ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer ", "bearer   "] {
        assert_eq!(ask(&format!("{value} {token}")), 200, "{value:?}");
    }
    let other = "0".repeat(token.len());
    for value in [
        format!("Bearer{token}"),
        format!("Basic {token}"),
        format!("Bearers {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {token} {token}"),
        format!("bearer {other}"),
        token.clone(),
        "bearer".to_owned(),
        "bearer ".to_owned(),
    ] {
        assert_eq!(ask(&value), 401, "{value:?}");
    }
}

#[test]
fn head_is_get_without_a_body_for_each_address() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let bearer = server.bearer();
    let public = ["/", "/app.js", "/app.css", "/favicon.svg"];
    let private =
        ["/metrics", "/api/v1/run", "/api/v1/openapi.json", "/api/v1/history?places=0&counter=busy"];
    for path in public.iter().chain(&private) {
        let head = server.ask(&format!("HEAD {path}"), &[&bearer]);
        let get = server.get(path);
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        for name in ["content-type", "content-security-policy"] {
            assert_eq!(head.header(name), get.header(name), "{path}");
        }
        assert!(head.header("content-length").is_some(), "{path}: {}", head.headers);
        assert_eq!(
            server.ask(&format!("HEAD {path}"), &["Sec-Fetch-Site: cross-site"]).status,
            403,
            "{path}"
        );
    }
    for path in private {
        assert_eq!(server.ask(&format!("HEAD {path}"), &[]).status, 401, "{path}");
    }
    assert_eq!(server.ask("HEAD /api/v1/session", &[&bearer]).status, 405);
    assert_eq!(server.ask("POST /metrics", &[&bearer]).header("allow"), Some("get, head"));
    // A stream that nobody reads is let go.
    for _ in 0..70 {
        assert_eq!(server.ask("HEAD /api/v1/stream", &[&bearer]).status, 200);
    }
}

#[test]
fn nothing_but_the_files_of_the_page_is_answered_without_a_token() {
    let run = Run::new(1);
    let server = Server::live(&run);
    for path in ["/", "/app.js", "/app.css", "/favicon.svg"] {
        assert_eq!(server.ask(&format!("GET {path}"), &[]).status, 200, "{path}");
        assert_eq!(server.ask(&format!("POST {path}"), &[]).status, 405, "{path}");
    }
    let document: serde_json::Value = serde_json::from_str(&server.get("/api/v1/openapi.json").body).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let line = format!("{} {path}", method.to_uppercase());
            let refused = server.ask(&line, &[]);
            assert_eq!(refused.status, 401, "{line}");
            assert!(
                refused.json()["detail"].as_str().unwrap().contains("ui-address"),
                "how to find the address"
            );
        }
        let line = format!("DELETE {path}");
        assert_eq!(server.ask(&line, &[&server.bearer()]).status, 405, "{line}");
    }
    for path in ["/nothing", "/api/v1/", "/app.js/", "/../etc/passwd", "//"] {
        assert_eq!(server.ask(&format!("GET {path}"), &[]).status, 401, "{path}: no word on what there is");
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let query = format!("GET /api/v1/run?token={}", server.token);
    assert_eq!(server.ask(&query, &[]).status, 401, "a token in an address is none");
}

#[test]
fn a_token_is_changed_for_a_session_that_only_the_page_can_use() {
    let run = Run::new(1);
    let server = Server::live(&run);
    let answer = server.ask("POST /api/v1/session", &[&server.bearer(), "Content-Length: 0"]);
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with(&format!("isles-{}=", server.port)), "{cookie}");
    for part in ["; httponly", "; samesite=strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(&server.token), "the session is another secret");
    let cookie = format!("Cookie: other=1; {}", cookie.split(';').next().unwrap());
    assert_eq!(server.ask("GET /api/v1/run", &[&cookie, "Sec-Fetch-Site: same-origin"]).status, 200);
    assert_eq!(
        server.ask("GET /api/v1/run", &[&cookie]).status,
        401,
        "a client that is no browser must send the token"
    );
    assert_eq!(server.ask("GET /api/v1/run", &[&cookie, "Sec-Fetch-Site: same-site"]).status, 403);
    assert_eq!(server.ask("POST /api/v1/session", &[&cookie, "Sec-Fetch-Site: same-origin"]).status, 401);
    let other = format!("Cookie: isles-{}={}", server.port, server.token);
    assert_eq!(server.ask("GET /api/v1/run", &[&other, "Sec-Fetch-Site: same-origin"]).status, 401);
}

#[test]
fn a_token_that_is_guessed_ten_thousand_times_is_not_found() {
    use std::io::{BufRead, BufReader, Read, Write};
    let run = Run::new(1);
    let server = Server::live(&run);
    let mut stream = BufReader::new(server.connect());
    for guess in 0..10_000_u32 {
        let mut token = server.token.clone();
        token.replace_range(60.., &format!("{:04x}", guess + 1));
        if token == server.token {
            continue;
        }
        let (port, request) = (server.port, "GET /api/v1/run HTTP/1.1\r\n");
        let text = format!("{request}Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        let (mut line, mut len) = (String::new(), 0);
        stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 401"), "{line}");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                len = text.trim().parse().unwrap();
            }
        }
        stream.read_exact(&mut vec![0; len]).unwrap();
    }
    assert_eq!(server.get("/api/v1/run").status, 200);
}

#[test]
fn every_answer_has_the_policy_and_no_word_of_other_origins() {
    let run = Run::new(1);
    let server = Server::live(&run);
    for answer in [server.ask("GET /", &[]), server.get("/api/v1/run"), server.ask("GET /nothing", &[])] {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains('*'));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(!answer.headers.contains("access-control"), "{}", answer.headers);
    }
}
