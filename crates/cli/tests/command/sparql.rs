//! `isles serve-sparql`: queries over HTTP, answered by places; it ends with the process that started it and with the
//! places.

use crate::scene::{Scene, built, is_over};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server over a few triples, with its port and its token.
struct Server {
    _scene: Scene,
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(name: &str, places: &str) -> Server {
        built("isles-dashboard");
        built("isles-rdf");
        let scene = Scene::new(name);
        scene.leave("three.ttl", &(1..=3).map(|n| format!("<urn:s{n}> <urn:p> {n} .\n")).collect::<String>());
        scene.leave("graphs.nq", "<urn:s> <urn:p> \"7\" <urn:g> .\n<urn:s> <urn:p> \"8\" <urn:h> .\n");
        let words = ["serve-sparql", "--data", "three.ttl", "graphs.nq", "--machine", "processes"];
        let mut command = scene.isles(&[&words[..], &["--places", places]].concat());
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let (port, token) = loop {
            assert_ne!(errors.read_line(&mut said).unwrap(), 0, "no address is printed: {said}");
            if let Some(found) = address_in(&said) {
                break found;
            }
        };
        std::thread::spawn(move || _ = errors.read_to_string(&mut String::new())); // somebody has to take it
        Server { _scene: scene, child, port, token }
    }

    /// Sends a request. Returns the status and the body of the answer.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.port,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Sends a request with the token.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        self.send(method, path, &format!("Authorization: Bearer {}\r\n{headers}", self.token), body)
    }

    /// Returns the processes that answer.
    fn answering(&self) -> Vec<i32> {
        let parent = format!("PPid:\t{}\n", self.child.id());
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_child = |process: &i32| {
            std::fs::read_to_string(format!("/proc/{process}/status"))
                .is_ok_and(|status| status.contains(&parent))
        };
        processes.filter(is_child).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Returns the port and the token in the output, once both are printed.
fn address_in(said: &str) -> Option<(u16, String)> {
    let (_, port) = said.split_once("http://127.0.0.1:")?;
    let (_, token) = said.split_once("Bearer ")?;
    Some((port.split('/').next()?.parse().ok()?, token.split('\'').next()?.to_owned()))
}

fn kill(process: &str) {
    assert!(Command::new("kill").args(["-9", process]).status().unwrap().success());
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const QUERY: &str = "Content-Type: application/sparql-query\r\n";

#[test]
fn queries_are_answered_in_each_way_of_the_protocol() {
    let server = Server::start("sparql", "2");
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let csv = (200, "n\r\n3\r\n".to_owned());
    let encoded = "query=SELECT%20(COUNT(*)%20AS%20?n)%20%7B%20?s%20?p%20?o%20%7D";
    let accept = "Accept: text/html;q=0.9, text/csv\r\n";
    assert_eq!(server.ask("GET", &format!("/sparql?{encoded}"), accept, ""), csv);
    assert_eq!(server.ask("POST", "/sparql", &format!("{FORM}{accept}"), encoded), csv);
    assert_eq!(server.ask("POST", "/sparql", &format!("{QUERY}{accept}"), count), csv);
    let (status, json) = server.ask("POST", "/sparql", QUERY, "ASK { <urn:s2> <urn:p> ?o FILTER(?o > 1) }");
    assert_eq!(status, 200);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["boolean"], true);
    let graph = server.ask("POST", "/sparql", QUERY, "CONSTRUCT { ?s <urn:q> ?s } { ?s <urn:p> 1 }");
    assert_eq!(graph, (200, "<urn:s1> <urn:q> <urn:s1> .\n".to_owned()));

    // A wrong request gets an error, and the next one is answered.
    for (status, method, path, headers, body) in [
        (400, "POST", "/sparql", QUERY, "ASK {"),
        (400, "GET", "/sparql?query=ASK%7B%7D&default-graph-uri=relative", "", ""),
        (400, "GET", "/sparql", "", ""),
        (400, "GET", "/sparql?query=ASK%7B%7D&named-graph-uri=", "", ""),
        (404, "GET", "/", "", ""),
        (405, "PUT", "/sparql", QUERY, "ASK {}"),
        (406, "POST", "/sparql", "Content-Type: application/sparql-query\r\nAccept: text/html\r\n", "ASK {}"),
        (415, "POST", "/sparql", "Content-Type: text/plain\r\n", "ASK {}"),
        (
            403,
            "POST",
            "/sparql",
            "Content-Type: application/sparql-query\r\nOrigin: http://a.example\r\n",
            "ASK {}",
        ),
    ] {
        let (found, body) = server.ask(method, path, headers, body);
        assert_eq!(found, status, "{method} {path} {headers}: {body}");
    }
    assert_eq!(server.send("POST", "/sparql", QUERY, "ASK {}").0, 401);
    // Several requests at the same time wait for each other.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope
                .spawn(|| assert_eq!(server.ask("POST", "/sparql", &format!("{QUERY}{accept}"), count), csv));
        }
    });
}

/// SPARQL 1.1 Protocol, section 2.1.4: the dataset of the request replaces that of the query.
#[test]
fn a_request_chooses_the_graphs_that_are_asked() {
    let server = Server::start("sparql-graphs", "2");
    let values = |parameters: &str, query: &str| {
        let headers = format!("{QUERY}Accept: text/csv\r\n");
        server.ask("POST", &format!("/sparql?{parameters}"), &headers, query)
    };
    let default = "SELECT ?o { ?s <urn:p> ?o } ORDER BY ?o";
    let named = "SELECT ?g ?o FROM <urn:h> { GRAPH ?g { ?s ?p ?o } }";
    let is = |found: (u16, String), rows: &str| assert_eq!(found, (200, rows.replace('\n', "\r\n")));
    is(values("", default), "o\n1\n2\n3\n");
    is(values("default-graph-uri=urn:g", default), "o\n7\n");
    is(values("default-graph-uri=urn:g&default-graph-uri=urn:h", default), "o\n7\n8\n");
    is(values("named-graph-uri=urn:g", default), "o\n");
    is(values("named-graph-uri=urn:g", named), "g,o\nurn:g,7\n");
    is(values("default-graph-uri=urn:h", "SELECT ?o FROM <urn:g> { ?s ?p ?o }"), "o\n8\n");
    is(values("default-graph-uri=urn:nosuch", default), "o\n");
}

#[test]
fn the_server_ends_with_the_places_and_the_places_with_the_server() {
    let mut server = Server::start("sparql-places", "2");
    let [first] = server.answering()[..] else { panic!("one process was started") };
    kill(&first.to_string());
    assert!(!server.child.wait().unwrap().success());

    let mut server = Server::start("sparql-server", "2");
    let answering = server.answering();
    kill(&server.child.id().to_string());
    server.child.wait().unwrap();
    // Only process 1 reaps a process without a parent, and it may leave it as a zombie.
    while !answering.iter().all(|process| is_over(*process)) {
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_be_served_is_one_line_and_code_2() {
    built("isles-dashboard");
    built("isles-rdf");
    let scene = Scene::new("sparql-refused");
    scene.leave("cut.ttl", "<urn:a> <urn:b>");
    for (words, said) in [
        (&["--data", "nosuch.ttl"][..], "`nosuch.ttl`: no such file"),
        (&["--data", "cut.ttl"], "cut.ttl, line 1, column "),
        (&["--port", "70000"], "--port is \"70000\"; allowed:"),
        (&["--query", "lubm:1"], "--query"),
    ] {
        let ended = scene.run(&[&["serve-sparql"], words].concat());
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{words:?}: {ended:?}");
    }
}
