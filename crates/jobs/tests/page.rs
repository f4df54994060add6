//! Permissions of pages to create jobs: `isles serve --ui` with its real server, over raw requests.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Builds the server of the page beside the job server, if the build of the tests has not.
fn with_dashboard() {
    let jobs = Path::new(env!("CARGO_BIN_EXE_isles-jobs"));
    if jobs.with_file_name("isles-dashboard").is_file() {
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--package", "isles-dashboard", "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    if jobs.parent().is_some_and(|folder| folder.ends_with("release")) {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
}

/// A job server with its page.
struct Page {
    process: Child,
    folder: PathBuf,
    port: u16,
    control: String,
    view: String,
}

impl Page {
    fn new(name: &str, words: &[&str]) -> Page {
        with_dashboard();
        let folder = std::env::temp_dir().join(format!("isles-page-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder); // it need not be there
        fs::create_dir(&folder).unwrap();
        let mut command = serve(&folder);
        let mut process = command.args(["--places", "2"]).args(words).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        let mut output = String::new();
        while !(output.contains("watch it only at") && output.contains("jobs are managed in")) {
            assert!(lines.read_line(&mut output).unwrap() > 0, "the job server has ended: {output}");
        }
        // Who reads no more would end it by a closed pipe.
        std::thread::spawn(move || lines.lines().for_each(drop));
        let tokens: Vec<&str> =
            output.lines().filter_map(|line| Some(line.split_once("/#token=")?.1.trim())).collect();
        let port = output.split_once("127.0.0.1:").unwrap().1.split_once('/').unwrap().0.parse().unwrap();
        let [control, _, view] = tokens[..] else { panic!("{output}") };
        Page { process, folder, port, control: control.to_owned(), view: view.to_owned() }
    }

    /// The status of an answer and its body, to a request with these headers.
    fn ask(&self, line: &str, headers: &[&str], body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (port, length) = (self.port, body.len());
        let mut text = format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
        headers.iter().for_each(|header| text += &format!("{header}\r\n"));
        text += &format!("Content-Length: {length}\r\n\r\n{body}");
        // Who refuses a long request may close before it has been read.
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes); // as above
        let answer = String::from_utf8_lossy(&bytes);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn post(&self, token: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Authorization: Bearer {token}");
        self.ask("POST /api/v1/jobs", &[&bearer, "Content-Type: application/json"], &body.to_string())
    }

    /// Posts a request that is refused; returns the status and the type of the problem.
    fn refused(&self, token: &str, body: &Value) -> (u16, String) {
        let (status, problem) = self.post(token, body);
        assert!(!problem["detail"].as_str().unwrap_or_default().is_empty(), "{problem}");
        let kind = problem["type"].as_str().unwrap().strip_prefix("urn:isles:problem:");
        (status, kind.unwrap_or_else(|| panic!("{problem}")).to_owned())
    }

    fn list(&self) -> Value {
        self.ask("GET /api/v1/jobs", &[&format!("Authorization: Bearer {}", self.view)], "").1
    }

    /// Waits until a job is in a state.
    fn is(&self, number: u64, state: &str) {
        let is_there = |job: &Value| job["id"] == number && job["state"] == state;
        while !self.list()["jobs"].as_array().unwrap().iter().any(is_there) {}
    }

    /// The job of a number, once it has ended.
    fn ended(&self, number: &Value) -> Value {
        loop {
            let jobs = self.list()["jobs"].clone();
            let job = jobs.as_array().unwrap().iter().find(|job| job["id"] == *number).unwrap();
            if ["finished", "failed"].contains(&job["state"].as_str().unwrap()) {
                return job.clone();
            }
        }
    }

    /// A command that leaves a file behind.
    fn touch(&self) -> Value {
        json!(["touch", self.folder.join("done").to_str().unwrap()])
    }

    fn has_touched(&self) -> bool {
        self.folder.join("done").exists()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill(); // it may have ended
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn serve(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isles-jobs"));
    command.args(["serve", "--ui", "--state"]).arg(folder.join("jobs")).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", folder);
    command
}

fn begin(words: &Value) -> Value {
    json!({ "ask": "begin", "spec": { "name": "n", "what": { "Command": words } }, "at": null })
}

fn order_of_job(job: u64, order: Value) -> Value {
    let mut request = json!({ "ask": "tell", "job": job });
    request.as_object_mut().unwrap().extend(order.as_object().unwrap().clone());
    request
}

#[test]
fn a_page_starts_no_command_unless_it_was_allowed_however_the_request_is_written() {
    let page = Page::new("off", &["--machine", "threads"]);
    let (touch, control) = (page.touch(), page.control.as_str());
    let spec = json!(["n", { "Command": touch }]);
    for body in [
        begin(&touch),
        json!({ "ask": "create", "name": "n", "what": { "Command": touch } }),
        // serde accepts a list for a struct with known fields.
        json!({ "ask": "begin", "spec": spec, "at": 0 }),
        json!(["begin", spec, null]),
        json!(["create", "n", { "Command": touch }]),
        json!({ "ask": "create", "name": "n", "what": { "Command": touch, "Task": ["pi", []] } }),
        json!({ "ask": "page", "request": begin(&touch) }),
        json!(["page", begin(&touch)]),
        json!({ "ask": "end" }),
        json!(["end"]),
        json!({ "ask": "page", "request": { "ask": "end" } }),
        begin(&touch)["spec"].clone(),
        json!("end"),
    ] {
        let (status, kind) = page.refused(control, &body);
        let expected = [(403, "commands-not-allowed"), (403, "not-from-page"), (400, "bad-request")];
        assert!(expected.contains(&(status, kind.as_str())), "{body}: {status} {kind}");
    }
    assert_eq!(page.refused(control, &begin(&touch)), (403, "commands-not-allowed".to_owned()));
    assert_eq!(page.refused(control, &json!({ "ask": "end" })), (403, "not-from-page".to_owned()));
    let task = json!({ "ask": "create", "name": "t", "what": { "Task": ["pi", ["1000000000000"]] } });
    assert_eq!(page.post(control, &task).0, 200, "a task is no command");
    for (body, expected) in [
        (order_of_job(9, json!({ "order": "kill" })), "no-such-job"),
        (order_of_job(1, json!({ "order": "pause" })), "not-in-this-state"),
        (order_of_job(1, json!({ "order": "start", "at": 2 })), "no-such-place"),
        (json!({ "ask": "create", "name": "t", "what": { "Task": ["rm", []] } }), "no-such-task"),
        (json!({ "ask": "create", "name": "t", "what": { "Task": ["pi", ["0"]] } }), "no-such-task"),
    ] {
        assert_eq!(page.refused(control, &body), (409, expected.to_owned()), "{body}");
    }
    // A state of another program, which somebody has put there.
    assert_eq!(page.post(control, &order_of_job(1, json!({ "order": "start", "at": 0 }))).0, 200);
    page.is(1, "running");
    assert_eq!(
        page.refused(control, &order_of_job(1, json!({ "order": "move", "to": 0 }))).1,
        "no-such-place"
    );
    assert_eq!(page.post(control, &order_of_job(1, json!({ "order": "checkpoint" }))).0, 200);
    page.is(1, "checkpointed");
    let state = page.folder.join("jobs/job-1.state");
    let bytes = fs::read(&state).unwrap();
    let program = bytes.windows(10).position(|word| word == b"isles-jobs").unwrap();
    fs::write(&state, [&bytes[..program], b"other-jobs", &bytes[program + 10..]].concat()).unwrap();
    let (status, problem) = page.post(control, &order_of_job(1, json!({ "order": "start", "at": 0 })));
    assert_eq!((status, &problem["type"]), (409, &"urn:isles:problem:bad-checkpoint".into()));
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("it is a state of pi of other-jobs in format 1; allowed: of pi of isles-jobs"),
        "{detail}"
    );
    assert!(!page.has_touched());
    let list = page.list();
    assert_eq!((list["jobs"].as_array().unwrap().len(), &list["page_commands"]), (1, &false.into()));
}

#[test]
fn a_page_makes_no_copy_of_a_command_of_a_terminal_unless_commands_were_allowed() {
    let page = Page::new("copy", &["--machine", "threads"]);
    let control = page.control.as_str();
    // It can be told things, but there is no second one.
    let mut terminal = Command::new(env!("CARGO_BIN_EXE_isles-jobs"));
    terminal.args(["job", "--state"]).arg(page.folder.join("jobs")).args(["create", "--", "sleep", "1000"]);
    assert!(terminal.output().unwrap().status.success());
    for body in [
        order_of_job(1, json!({ "order": "duplicate" })),
        json!(["tell", 1, "duplicate"]),
        json!({ "ask": "page", "request": order_of_job(1, json!({ "order": "duplicate" })) }),
    ] {
        let (status, kind) = page.refused(control, &body);
        let expected = [(403, "commands-not-allowed"), (403, "not-from-page"), (400, "bad-request")];
        assert!(expected.contains(&(status, kind.as_str())), "{body}: {status} {kind}");
    }
    let copy = page.refused(control, &order_of_job(1, json!({ "order": "duplicate" })));
    assert_eq!(copy, (403, "commands-not-allowed".to_owned()));
    for order in ["start", "kill"] {
        assert_eq!(
            page.post(control, &order_of_job(1, json!({ "order": order, "at": 0 }))).0,
            200,
            "{order}"
        );
    }
    page.is(1, "stopped");
    let named = json!({ "ask": "create", "name": "\u{202e}n", "what": { "Task": ["pi", ["9"]] } });
    assert_eq!(page.refused(control, &named), (409, "bad-name".to_owned()));
    assert_eq!(page.list()["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn commands_that_were_allowed_are_words_and_for_who_manages_only() {
    let page = Page::new("on", &["--machine", "processes", "--allow-commands"]);
    let (touch, control) = (page.touch(), page.control.clone());
    assert_eq!(page.list()["page_commands"], true);
    let guessed = format!("{:064x}", 0x0123_4567);
    assert_eq!(page.refused(&page.view, &begin(&touch)), (403, "no-right-to-change-anything".to_owned()));
    assert_eq!(page.refused(&guessed, &begin(&touch)), (401, "no-session".to_owned()));
    assert_eq!(page.refused("", &begin(&touch)), (401, "no-session".to_owned()));
    // Another site, with all that a browser would send for it.
    let (bearer, json_kind) = (format!("Authorization: Bearer {control}"), "Content-Type: application/json");
    for other in ["Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"] {
        let body = begin(&touch).to_string();
        let (status, _) = page.ask("POST /api/v1/jobs", &[&bearer, json_kind, other], &body);
        assert_eq!(status, 403, "{other}");
    }
    let form = "Content-Type: text/plain";
    assert_eq!(page.ask("POST /api/v1/jobs", &[&bearer, form], &begin(&touch).to_string()).0, 415);

    let done = page.folder.join("done");
    let shell = format!("touch {0}; $(touch {0}) `touch {0}` && touch {0}", done.display());
    let many = Value::from(vec!["1"; 100_000]);
    for (words, expected) in [
        (json!([]), (409, "no-command")),
        (json!([""]), (409, "no-command")),
        (json!(["no-such-command"]), (409, "no-such-command")),
        (json!([shell]), (409, "no-such-command")),
        (json!(["touch\n", done]), (409, "no-such-command")),
        (json!([page.folder]), (409, "no-such-command")),
        (json!(["/etc/passwd"]), (409, "no-such-command")),
        (json!(["touch", format!("{}\0", done.display())]), (409, "no-such-command")),
        (json!(["touch", 1]), (400, "bad-request")),
        (json!("touch"), (400, "bad-request")),
        (many, (413, "the-request-is-too-long")),
        (Value::from(vec![""; 4097]), (413, "too-long")),
    ] {
        let refused = page.refused(&control, &begin(&words));
        assert_eq!(refused, (expected.0, expected.1.to_owned()), "{words:.80}");
    }
    assert!(page.list()["jobs"].as_array().unwrap().is_empty(), "nothing is left of what was refused");

    let words = json!(["printf", "%s|", "; rm -rf /", shell, "a\nb", "$HOME", "*", "", "\u{1b}[31m"]);
    let (status, begun) = page.post(&control, &begin(&words));
    assert_eq!(status, 200, "{begun}");
    assert_eq!(page.ended(&begun["job"]["id"])["reason"], "exit code 0");
    let written = fs::read_to_string(page.folder.join("jobs/job-1.out")).unwrap();
    let expected: Vec<&str> =
        words.as_array().unwrap()[2..].iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(written, expected.join("|") + "|");
    assert!(!page.has_touched());
    // What was told no is told yes here: the same words, by who may.
    let (_, begun) = page.post(&control, &begin(&touch));
    assert_eq!(page.ended(&begun["job"]["id"])["state"], "finished");
    let duplicate = json!({ "ask": "tell", "job": begun["job"]["id"], "order": "duplicate" });
    assert_eq!(page.post(&control, &duplicate).0, 200);
    assert!(page.has_touched());
}

#[test]
fn the_flag_is_refused_where_it_says_nothing() {
    let folder = std::env::temp_dir().join(format!("isles-page-flag-{}", std::process::id()));
    let mut chip = serve(&folder);
    let mut alone = Command::new(env!("CARGO_BIN_EXE_isles-jobs"));
    for (command, expected) in [
        (
            chip.args(["--machine", "chip:scc", "--allow-commands"]),
            "--allow-commands cannot be combined with a modelled",
        ),
        (alone.args(["serve", "--allow-commands"]), "--ui"),
    ] {
        let out = command.output().unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    let _ = fs::remove_dir_all(&folder); // it need not be there
}
