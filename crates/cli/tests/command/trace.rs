//! Traces of runs on the host and on a modelled chip, as users make them and read them with `isles trace stats`.

use crate::scene::{Scene, busy_ns, ended, has_thread, kill, until, words};
use serde_json::Value;
use std::collections::BTreeMap;

/// A run with four places whose result is discarded.
const RUN: &str = "run bc --graph karate --places 4 --json /dev/null --csv /dev/null --top 0";

/// Runs it on `machine` with a trace, and returns the statistics of the trace.
fn stats(scene: &Scene, machine: &str) -> Value {
    let run = scene.run(&words(&format!("{RUN} --machine {machine} --trace t.perfetto-trace")));
    assert_eq!(run.code, Some(0), "{run:?}");
    let stats = scene.run(&words("trace stats t.perfetto-trace --json"));
    assert_eq!((stats.code, stats.stderr.as_str()), (Some(0), ""), "{stats:?}");
    serde_json::from_str(&stats.stdout).unwrap()
}

#[test]
fn a_run_has_the_same_names_in_its_trace_on_every_machine() {
    for machine in ["threads", "processes", "chip:scc"] {
        let scene = Scene::new("trace");
        let stats = stats(&scene, machine);
        assert!(stats["run"].as_str().unwrap().starts_with(machine), "{stats}");
        let places = stats["places"].as_array().unwrap();
        assert_eq!(places.len(), 4, "{stats}");
        // On a chip, the parts of a send are distinguished.
        let [one, other] =
            if machine.starts_with("chip") { ["handling", "copying"] } else { ["send", "receive"] };
        for place in places {
            let seconds = |name: &str| place["seconds"][name].as_f64();
            assert!(seconds(one) > Some(0.0) && seconds(other) > Some(0.0), "{stats}");
        }
        let messages = stats["messages"].as_array().unwrap();
        assert!(
            messages.iter().all(|pair| pair["source"] != pair["target"]) && !messages.is_empty(),
            "{stats}"
        );
        assert_eq!(stats["missing"], Value::Array(vec![]), "{stats}");
        let names: Vec<&str> =
            stats["calls"].as_array().unwrap().iter().map(|call| call["name"].as_str().unwrap()).collect();
        for name in ["at → place 1", "finish", "task", "the whole run"] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
        let finishes = stats["finishes"].as_array().unwrap();
        assert!(
            finishes.iter().any(|finish| finish["line"].as_str().unwrap().contains("bc/src/run.rs:")),
            "{stats}"
        );
        let text = scene.run(&words("trace stats t.perfetto-trace"));
        for title in ["Time by place", "Messages by pair of places", "Calls", "Longest finishes"] {
            assert!(text.stdout.contains(title), "{text:?}");
        }
        std::fs::remove_file(scene.path("t.perfetto-trace")).unwrap();
        scene.assert_nothing_left();
    }
}

/// The parser knows the fields of Perfetto's format that may occur, by their numbers, and fails on any other.
#[test]
fn each_flow_goes_from_one_send_to_one_later_receive_with_as_many_bytes() {
    for machine in ["threads", "processes"] {
        let scene = Scene::new("trace");
        stats(&scene, machine);
        let packets = crate::protobuf::packets(&std::fs::read(scene.path("t.perfetto-trace")).unwrap());
        let spans = crate::protobuf::spans(&packets);
        let (mut sent, mut arrived) = (BTreeMap::new(), 0);
        for span in spans.iter().filter(|span| !span.flows.is_empty()) {
            assert!(["send", "send block"].contains(&span.name.as_str()), "{span:?}");
            assert!(sent.insert(span.flows[0], span).is_none(), "{span:?}");
        }
        for span in spans.iter().filter(|span| !span.last_flows.is_empty()) {
            let from = sent.remove(&span.last_flows[0]).expect("it was sent, and has arrived once");
            assert_eq!((span.name.as_str(), span.notes["bytes"]), ("receive", from.notes["bytes"]));
            assert!(from.start <= span.end, "{from:?} {span:?}");
            arrived += 1;
        }
        // A message in transit when its target leaves the run does not arrive.
        assert!(arrived > 20 && sent.len() < 10, "{arrived} {}", sent.len());
        let working = spans.iter().filter(|span| span.name == "working");
        assert_eq!(working.map(|span| span.depth).collect::<Vec<_>>(), [0; 4]);
    }
}

#[test]
fn steals_are_spans() {
    let scene = Scene::new("trace");
    let run = scene.run(&words("run uts --depth 6 --places 3 --machine threads --json /dev/null --trace u"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let stats = scene.run(&words("trace stats u"));
    let names = ["  steal ← place ", "  lifeline ← place "];
    assert!(names.iter().all(|name| stats.stdout.contains(name)), "{stats:?}");
}

#[test]
fn a_variable_does_what_the_flag_does() {
    let scene = Scene::new("trace");
    let mut command = scene.isles(&words(&format!("{RUN} --machine processes")));
    command.env("ISLES_TRACE", "v.perfetto-trace");
    assert_eq!(ended(command).code, Some(0));
    assert_eq!(scene.run(&words("trace stats v.perfetto-trace")).code, Some(0));
}

#[test]
fn a_place_that_is_killed_is_missing_and_the_file_is_whole() {
    let scene = Scene::new("trace");
    let line =
        "run bc --graph rmat-high --machine processes --places 4 --json /dev/null --trace k.perfetto-trace";
    let running = crate::scene::Running::start(scene.isles(&words(line)));
    let mut others = Vec::new();
    until("the places have started", || {
        others = scene.places();
        others.len() == 3
    });
    let victim = others[1].pid;
    until("it has joined", || has_thread(victim, "isles-watch"));
    let joined = busy_ns(victim).expect("nobody has killed it yet");
    until("it computes", || busy_ns(victim).expect("nobody has killed it yet") > joined + 20_000_000);
    kill(victim);
    let run = running.finish();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.stderr.matches("isles: in the trace, place ").count(), 1, "{run:?}");
    let stats = scene.run(&words("trace stats k.perfetto-trace --json"));
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    let missing = stats["missing"].as_array().unwrap();
    assert_eq!((missing.len(), stats["places"].as_array().unwrap().len()), (1, 3), "{stats}");
    assert!(run.stderr.contains(&format!("in the trace, place {} is missing", missing[0])), "{run:?}");
}

#[test]
fn what_is_no_whole_trace_is_refused_in_one_line() {
    let scene = Scene::new("trace");
    stats(&scene, "threads");
    let whole = std::fs::read(scene.path("t.perfetto-trace")).unwrap();
    // Between two packets a cut cannot be seen, so the last one loses a byte.
    for (name, bytes) in [("none", &b"{}"[..]), ("empty", b""), ("cut", &whole[..whole.len() - 1])] {
        std::fs::write(scene.path(name), bytes).unwrap();
    }
    std::fs::File::create(scene.path("sparse")).and_then(|file| file.set_len(8 << 30)).unwrap();
    for (name, cause) in [
        ("none", "it is not a trace: it holds something other than Perfetto packets"),
        ("empty", "it is not a trace: it does not name its run of Isles"),
        ("sparse", "it is not a trace: "),
        ("/dev/zero", "it is not a trace: "),
        ("cut", "it is truncated after "),
        ("absent", "No such file or directory"),
    ] {
        let refused = scene.run(&["trace", "stats", name]);
        let line = format!("error: FILE is {name:?}; allowed: a complete file written by --trace ({cause}");
        assert!(refused.refusal().starts_with(&line), "{refused:?}");
    }
}

#[test]
fn machines_that_record_nothing_refuse_a_trace() {
    let scene = Scene::new("trace");
    let refused = scene.run(&words(&format!("{RUN} --machine loopback --trace t")));
    let line = "error: --trace is \"t\"; allowed: nothing with machine loopback (it records none)";
    assert_eq!(refused.refusal(), line);
}
