//! The answers of the server: the run, its snapshots, its end, its past, its metrics; and that the document says so.

use crate::scene::{NEVER, Run, Server, next};
use isles_telemetry::{
    COUNTERS, CounterGroup, CounterInfo, CounterKind, DeathCause, LogWriter, OutputLine, OutputStream,
    RunDescription, RunDirectory, RunEnd, Sample,
};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Checks a value against a schema of the document, as far as the document uses the language of schemas.
fn check(document: &Value, schema: &Value, value: &Value, path: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return check(document, &document["components"]["schemas"][name], value, path);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |schema: &&Value| (schema["type"] == "null") == value.is_null();
        let schema = any.iter().find(fits).unwrap_or_else(|| panic!("{path}: {value}"));
        return check(document, schema, value, path);
    }
    if let Some(names) = schema["enum"].as_array() {
        assert!(names.contains(value), "{path}: {value}");
        return;
    }
    match schema["type"].as_str() {
        Some("object") => {
            let object = value.as_object().unwrap_or_else(|| panic!("{path}: {value}"));
            let none = serde_json::Map::new();
            let known = schema["properties"].as_object().unwrap_or(&none);
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(object.contains_key(name.as_str().unwrap()), "{path} lacks {name}");
            }
            for (name, value) in object {
                let more = Some(&schema["additionalProperties"]).filter(|more| more.is_object());
                let schema = known.get(name).or(more);
                let is_free = schema.is_none() && known.is_empty();
                assert!(schema.is_some() || is_free, "{path}: the document does not know {name}");
                schema
                    .into_iter()
                    .for_each(|schema| check(document, schema, value, &format!("{path}.{name}")));
            }
        }
        Some("array") => {
            let items = value.as_array().unwrap_or_else(|| panic!("{path}: {value}"));
            items.iter().for_each(|item| check(document, &schema["items"], item, &format!("{path}[]")));
        }
        Some("integer") => assert!(value.is_u64(), "{path}: {value}"),
        Some("number") => assert!(value.is_number(), "{path}: {value}"),
        Some("string") => assert!(value.is_string(), "{path}: {value}"),
        Some("boolean") => assert!(value.is_boolean(), "{path}: {value}"),
        Some("null") => assert!(value.is_null(), "{path}: {value}"),
        other => panic!("{path}: the schema has type {other:?}"),
    }
}

#[test]
fn what_is_answered_is_what_the_document_says() {
    let run = Run::new(3);
    run.places.lock().unwrap()[1].add_total(5, "sources");
    run.places.lock().unwrap()[0].add_done(2);
    run.places.lock().unwrap()[0].print(OutputStream::Error, "a \u{1b}[31mred\nline\n");
    run.places.lock().unwrap()[1].print(OutputStream::Stages, "0\t1\t3\t2.5\t1\t4\tmatch 1\n");
    run.head.died(2, DeathCause::Killed(9));
    run.copy(7);
    let server = Server::live(&run);
    let document = server.get("/api/v1/openapi.json").json();
    let schema = |path: &str| {
        &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    };
    for (path, query) in [
        ("/api/v1/run", ""),
        ("/api/v1/history", "?places=0,2&counter=busy&from_ms=0&to_ms=99999"),
        ("/api/v1/history", "?places=1%2C2&counter=tasks"),
        ("/api/v1/output", "?place=0&after=0"),
        ("/api/v1/stages", ""),
        ("/api/v1/stages", "?until_ms=0"),
    ] {
        let answer = server.get(&format!("{path}{query}"));
        assert_eq!(answer.status, 200, "{path}{query}: {}", answer.body);
        check(&document, schema(path), &answer.json(), path);
    }
    let stages = server.get("/api/v1/stages").json();
    let stage = (&stages["stages"][0]["name"], &stages["stages"][0]["place"], &stages["reported"]);
    assert_eq!(stage, (&"match 1".into(), &1.into(), &true.into()));
    let snapshot = next(&mut server.stream());
    check(&document, &document["components"]["schemas"]["Snapshot"], &snapshot, "snapshot");
    assert_eq!(snapshot["places"]["state"], serde_json::json!(["idle", "idle", "dead"]));
    assert_eq!(snapshot["places"]["cause"][2], "its process was ended by signal 9");
    assert_eq!(snapshot["places"]["tasks"][1], 7);
    assert_eq!(
        snapshot["progress"],
        serde_json::json!({"phase": "", "label": "sources", "done": 2, "total": 5, "grows": false})
    );
    let problem = server.get("/nothing");
    assert_eq!(problem.header("content-type"), Some("application/problem+json"));
    check(&document, &document["components"]["schemas"]["Problem"], &problem.json(), "problem");
}

#[test]
fn each_counter_that_a_run_tells_of_has_a_history_and_a_column() {
    for (machine, is_modelled) in [("processes", false), ("chip:scc", true)] {
        let description = RunDescription { machine: machine.into(), places: 2, ..RunDescription::default() };
        let run = Run::described(description);
        let server = Server::live(&run);
        let snapshot = next(&mut server.stream());
        let printed = server.get("/api/v1/run").json();
        let names: Vec<&str> =
            printed["counters"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"busy"), "{names:?}");
        assert_eq!(names.contains(&"watt"), is_modelled, "{names:?}");
        for name in names {
            let history = server.get(&format!("/api/v1/history?places=0,1&counter={name}"));
            assert_eq!(history.status, 200, "{name}: {}", history.body);
            assert!(history.json()["series"]["1"][0].is_number(), "{name}: {}", history.body);
            let column = snapshot["places"][name].as_array().map(Vec::len);
            let is_unused = COUNTERS.iter().any(|counter| counter.name == name && counter.is_of_service());
            assert_eq!(column, (!is_unused).then_some(2), "{name}");
        }
    }
}

#[test]
fn bad_queries_are_refused_with_what_is_allowed() {
    let run = Run::new(2);
    let server = Server::live(&run);
    for (path, printed) in [
        ("history?counter=busy", "places is \"\"; allowed: place numbers"),
        ("history?places=0,x&counter=busy", "places is \"0,x\""),
        ("history?places=0&counter=what", "counter is \"what\"; allowed: busy, tasks"),
        ("history?places=0&counter=busy&from_ms=-1", "from_ms is \"-1\"; allowed: a whole number"),
        ("stages?until_ms=now", "until_ms is \"now\"; allowed: a whole number"),
        ("output?place=2", "place is \"2\"; allowed: 0 to 1"),
        ("output", "place is \"\""),
        ("at?time_ms=x", "time_ms is \"x\""),
    ] {
        let answer = server.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 400, "{path}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(printed), "{path}: {detail}");
    }
    let long = format!("history?counter=busy&places={}", vec!["1"; 1025].join(","));
    assert_eq!(server.get(&format!("/api/v1/{long}")).status, 400);
    assert_eq!(server.get("/api/v1/at?time_ms=1").status, 404, "a run that runs is no replay");
}

#[test]
fn what_a_place_has_printed_is_answered_line_by_line() {
    let run = Run::new(2);
    run.places.lock().unwrap()[1].print(OutputStream::Standard, "one\n\u{1b}[31mtwo\nnot a line yet");
    run.copy(0);
    let server = Server::live(&run);
    let ask = |query: &str| server.get(&format!("/api/v1/output?{query}")).json();
    let printed = ask("place=1");
    assert_eq!((&printed["recorded"], &printed["dropped"]), (&true.into(), &0.into()));
    let lines = printed["lines"].as_array().unwrap();
    assert_eq!((&lines[0]["text"], &lines[1]["text"]), (&"one".into(), &"\u{1b}[31mtwo".into()));
    assert_eq!((&lines[1]["seq"], &lines[1]["stream"], lines.len()), (&2.into(), &"stdout".into(), 2));
    assert_eq!(ask("place=1&after=1")["lines"].as_array().unwrap(), &lines[1..]);
    assert_eq!(ask("place=0")["lines"], serde_json::json!([]));
    // More than a ring holds: the oldest are gone, and counted.
    run.places.lock().unwrap()[1].print(OutputStream::Standard, &"\nx".repeat(10_000));
    run.copy(1);
    let printed = ask("place=1&after=2");
    let kept = printed["lines"].as_array().unwrap().len() as u64;
    assert_eq!(printed["dropped"].as_u64().unwrap() + kept, 10_000);
    assert!((500..1000).contains(&kept), "{kept}");
    assert_eq!(Server::live(&Run::new(1025)).get("/api/v1/output?place=0").json()["recorded"], false);
}

#[test]
fn a_hostile_name_is_data_and_nothing_else() {
    let hostile = "</script><script>alert(1)</script>\u{1b}[2J\"\u{202e}";
    let description = RunDescription { machine: hostile.into(), places: 1, ..RunDescription::default() };
    let run = Run::described(description.with_command([hostile.to_owned(), hostile.to_owned()]));
    let server = Server::live(&run);
    let answer = server.get("/api/v1/run");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["program"], hostile);
    let metrics = server.get("/metrics").body;
    assert!(metrics.ends_with("# EOF\n") && metrics.contains("machine=\"</script>"), "{metrics}");

    let log = RunDirectory::log_path(&run.directory);
    let description = RunDescription { machine: "threads".into(), places: 1, ..RunDescription::default() };
    let mut writer = LogWriter::create(&log, &description.with_command([hostile.to_owned()])).unwrap();
    writer.append(&Sample { places: vec![Default::default()], ..Sample::default() }).unwrap();
    let (seq, time_ms, stream, text) = (1, 0, OutputStream::Error, hostile.to_owned());
    writer.append_output(0, &[OutputLine { seq, time_ms, stream, text }], false).unwrap();
    drop(writer);
    let output = Command::new(env!("CARGO_BIN_EXE_isles-dashboard"))
        .args(["report".as_ref(), run.directory.as_os_str()])
        .output()
        .unwrap();
    let html = String::from_utf8(output.stdout).unwrap();
    assert!(!html.contains("<script>alert"), "the data cannot end its element");
    assert_eq!(html.matches("</script").count(), 2, "the data and the script");
    assert!(html.contains("\\u003c/script>"));
    let output = r#""outputs":{"0":{"lines":[{"seq":1,"time_ms":0,"stream":"stderr","text":"\u003c/script>"#;
    assert!(html.contains(output), "what places have printed is in the report");
}

#[test]
fn the_end_of_a_run_is_shown_and_the_server_ends_unless_it_is_kept() {
    let run = Run::new(1);
    let mut server = Server::start("live", &run, &[]);
    let mut stream = server.stream();
    assert_eq!(next(&mut stream)["state"], "running");
    run.end();
    while next(&mut stream)["state"] != "ended" {}
    assert!(server.child.wait().unwrap().success());

    let mut run = Run::new(1);
    let server = Server::live(&run);
    let mut stream = server.stream();
    run.vanish();
    let begun = Instant::now();
    let last = loop {
        let snapshot = next(&mut stream);
        if snapshot["state"] != "running" {
            break snapshot;
        }
        assert!(begun.elapsed() < NEVER);
    };
    assert_eq!((&last["state"], &last["places"]["state"][0]), (&"unknown".into(), &"silent".into()));
    assert!(last["reason"].as_str().unwrap().contains("the first process of the run is gone"));
    assert_eq!(server.get("/api/v1/run").status, 200, "it is kept");
}

#[test]
fn a_replay_shows_any_time_and_what_cannot_be_shown_is_one_line() {
    let run = Run::new(1);
    let path = RunDirectory::log_path(&run.directory);
    let program = env!("CARGO_BIN_EXE_isles-dashboard");
    let refusal = |arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        printed
    };
    let directory = run.directory.to_str().unwrap();
    assert!(refusal(&["replay", directory]).contains("cannot be replayed"));
    assert!(refusal(&["live", "/nowhere"]).contains("/nowhere is not a run directory"));
    let description = RunDescription { places: 1, machine: "threads".into(), ..RunDescription::default() };
    let mut writer = LogWriter::create(&path, &description).unwrap();
    for second in 0..10 {
        let places = vec![Default::default()];
        writer.append(&Sample { time_ms: 1000 * second, places, ..Sample::default() }).unwrap();
    }
    writer.finish(RunEnd::Ended, None).unwrap();
    cut_log_is_told_of(&run, &path);
    let server = Server::start("replay", &run, &[]);
    let printed = server.get("/api/v1/run").json();
    assert_eq!(
        (&printed["mode"], &printed["length_ms"], &printed["cut"]),
        (&"replay".into(), &9000.into(), &false.into())
    );
    assert_eq!(server.get("/api/v1/at?time_ms=4500").json()["time_ms"], 4000);
    let document = server.get("/api/v1/openapi.json").json();
    let summary = server.get("/api/v1/summary").json();
    check(&document, &document["components"]["schemas"]["Summary"], &summary, "summary");
    assert_eq!(summary["time_ms"], 9000);
    assert_eq!(Server::live(&Run::new(1)).get("/api/v1/summary").status, 404, "of a run that runs");
    let port = server.port.to_string();
    let printed = refusal(&["replay", directory, "--port", &port]);
    assert!(printed.contains(&format!("--port is \"{port}\"; allowed: a free port")), "{printed}");
}

/// A log without its second half is shown as far as it goes, and one line says so.
fn cut_log_is_told_of(run: &Run, path: &Path) {
    let whole = std::fs::read(path).unwrap();
    std::fs::write(path, &whole[..whole.len() / 2]).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_isles-dashboard"))
        .args(["report".as_ref(), run.directory.as_os_str()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    let is_right =
        printed.starts_with("the log ends at ") && printed.ends_with("what came after is unknown\n");
    assert!(is_right && printed.lines().count() == 1, "{printed}");
    std::fs::write(path, whole).unwrap();
}

#[test]
fn the_dashboard_for_grafana_asks_for_metrics_that_there_are() {
    let document: Value = serde_json::from_str(include_str!("../../../../docs/grafana.json")).unwrap();
    let description = RunDescription { machine: "chip:scc".into(), places: 1, ..RunDescription::default() };
    let run = Run::described(description);
    let metrics = Server::live(&run).get("/metrics").body;
    let panels = document["panels"].as_array().unwrap();
    assert!(!panels.is_empty());
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        let expression = target["expr"].as_str().unwrap();
        let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let name = expression
            .split(|character| !is_name(character))
            .find(|word| word.starts_with("isles_"))
            .unwrap();
        assert!(metrics.lines().any(|line| line.starts_with(name)), "there is no {name}");
    }
}

/// The files of the sources that say which columns there are, beside the table of counters.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi.json");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/model/counters.ts");

/// A schema of places without the columns of counters, and the lines for those.
fn column_schemas() -> String {
    let column = |counter: &CounterInfo| {
        let items = match counter.divisor {
            1 => "\"type\": \"integer\",\n       \"minimum\": 0",
            _ => "\"type\": \"number\"",
        };
        format!(
            "     \"{}\": {{\n      \"description\": \"{}\",\n      \"type\": \"array\",\n      \"items\": {{\n       \
             {items}\n      }}\n     }},\n",
            counter.name, counter.description
        )
    };
    COUNTERS.iter().map(column).collect()
}

/// The columns of counters, as the page knows them.
fn page_types() -> String {
    let column = |counter: &CounterInfo| {
        let is_always_there = counter.group == CounterGroup::Place;
        let mark = if is_always_there { "" } else { "?" };
        format!(
            "    /** {} In {}. */\n    {}{mark}: number[];\n",
            counter.description, counter.unit, counter.name
        )
    };
    let columns: String = COUNTERS.iter().map(column).collect();
    let always = COUNTERS.iter().filter(|counter| counter.group == CounterGroup::Place);
    let always: String = always.map(|counter| format!("    \"{}\",\n", counter.name)).collect();
    format!(
        "// The columns of counters, made of the table in crates/telemetry/src/counter.rs, which a test compares:\n\
         // ISLES_TEST_WRITE_COUNTERS=1 cargo test -p isles-dashboard --test server counters\n\n\
         /** A value for each place. Of channels, windows and the like there is none where all are 0. */\n\
         export interface CounterColumns {{\n{columns}}}\n\n\
         /** Those that each run has. */\n\
         export const COLUMNS = [\n{always}] as const;\n"
    )
}

#[test]
fn the_document_and_the_page_have_the_columns_of_the_table_of_counters() {
    let (document, page) = (std::fs::read_to_string(DOCUMENT).unwrap(), std::fs::read_to_string(PAGE));
    let places = document.find("   \"Places\": {").unwrap();
    let (first, last) = ("       \"maximum\": 1\n      }\n     },\n", "     \"watt\": {");
    let begin = places + document[places..].find(first).unwrap() + first.len();
    let end = begin + document[begin..].find(last).unwrap();
    if std::env::var_os("ISLES_TEST_WRITE_COUNTERS").is_some() {
        let written = format!("{}{}{}", &document[..begin], column_schemas(), &document[end..]);
        std::fs::write(DOCUMENT, written).unwrap();
        std::fs::write(PAGE, page_types()).unwrap();
        return;
    }
    let how = "ISLES_TEST_WRITE_COUNTERS=1 cargo test -p isles-dashboard --test server counters";
    assert_eq!(document[begin..end], column_schemas(), "{how}");
    assert_eq!(page.unwrap(), page_types(), "{how}");
}

#[test]
fn each_counter_is_in_the_snapshot_the_history_and_the_metrics() {
    let description = RunDescription { machine: "chip:scc".into(), places: 2, ..RunDescription::default() };
    let run = Run::described(description);
    let word = |index: usize| 3_000_000_000 + index as u64;
    run.copy_values(std::array::from_fn(word));
    let server = Server::live(&run);
    let snapshot = next(&mut server.stream());
    let metrics = server.get("/metrics").body;
    let printed = server.get("/api/v1/run").json();
    for (index, counter) in COUNTERS.iter().enumerate() {
        let (name, value) = (counter.name, counter.shown(word(index)));
        let is_of_process = name == "memory_bytes"; // what the process of the place really has
        let shown = snapshot["places"][name][1].as_f64().unwrap_or_else(|| panic!("{name} in {snapshot}"));
        assert!(is_of_process || shown == value, "{name}: {shown}, not {value}");
        let series = printed["counters"].as_array().unwrap().iter().find(|series| series["name"] == name);
        let series = series.unwrap_or_else(|| panic!("{name} in {printed}"));
        assert_eq!(
            (&series["unit"], &series["description"]),
            (&counter.unit.into(), &counter.description.into())
        );
        let history = server.get(&format!("/api/v1/history?places=1&counter={name}")).json();
        assert!(is_of_process || history["series"]["1"][0].as_f64() == Some(value), "{name}: {history}");
        let family = format!("isles_{}", counter.metric);
        let suffix = if counter.kind == CounterKind::Count { "_total" } else { "" };
        let line = format!("\n{family}{suffix}{{place=\"1\"}} ");
        let help = format!("\n# HELP {family} {}\n", counter.description);
        assert!(metrics.contains(&line) && metrics.contains(&help), "{line} in {metrics}");
    }
}
