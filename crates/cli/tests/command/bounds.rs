//! `isles bound` as a user sees it: it prints the output on the page, and refuses a pattern without a bound in one
//! line.

use crate::pages::write_or_compare;
use crate::scene::{Ended, Scene};
use serde_json::Value;
use std::path::Path;

fn bound(arguments: &str) -> Ended {
    let scene = Scene::new("bound");
    let ended = scene.run(&[&["bound"], &arguments.split(' ').collect::<Vec<_>>()[..]].concat());
    scene.assert_nothing_left();
    ended
}

#[test]
fn the_page_shows_what_it_prints() {
    let ended = bound("barrier --chip scc --places 48");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/chip/bounds.md");
    let text = format!("```text\n{}```\n", ended.stdout);
    write_or_compare(&page, "<!-- isles bound -->", &text, "bounds::the_page");
}

#[test]
fn what_has_no_bound_is_said_in_a_line() {
    let refused = |arguments: &str| bound(arguments).refusal().to_owned();
    let overloaded = "error: the link East of tile 1 is overloaded by the flows 1, 2: no bound exists";
    assert_eq!(refused("flows --flow 0-4@30ns --flow 2-47@30ns"), overloaded);
    assert!(refused("mutex --lock test-and-set").contains("no bound exists"));
    assert!(refused("farm --shares on-demand").contains("no bound exists"));
    let cores = "error: --places is \"49\"; allowed: 1 to 48, the cores of scc";
    assert_eq!(refused("barrier --places 49"), cores);
    let flow = "error: --flow is \"0-48@1us\"; allowed: FROM-TO@PERIOD, such as 0-47@100ns";
    assert_eq!(refused("flows --flow 0-48@1us"), flow);
    assert_eq!(refused("flows"), "error: --flow is \"\"; allowed: FROM-TO@PERIOD, once or more");
    assert_eq!(refused("read --flow 0-4@30ns"), "error: --flow is \"0-4@30ns\"; allowed: only with flows");
    let none = "error: the chip file has no buffer; bounds need it";
    assert_eq!(refused("barrier --chip bluegene-p --runs 0 --places 8"), none);
    let large = "error: the chip has 131072 cores; allowed for bounds: at most 64";
    assert_eq!(refused("read --chip bluegene-p --runs 0 --places 8"), large);
}

#[test]
fn a_deadline_that_the_bound_misses_is_a_failure() {
    let met = bound("pipeline --places 8 --deadline 5ms --runs 1");
    assert_eq!((met.code, met.stderr.as_str()), (Some(0), ""), "{met:?}");
    assert!(met.stdout.contains("\n  slack ") && met.stdout.contains("speed-up"), "{met:?}");
    let missed = bound("pipeline --places 8 --deadline 10us --runs 0");
    assert_eq!(missed.code, Some(1), "{missed:?}");
    assert!(missed.stdout.contains("\n  too late by ") && !missed.stdout.contains("seen"), "{missed:?}");
    assert_eq!(missed.stderr, "error: the bound is later than the deadline\n");
}

#[test]
fn the_figures_are_written_as_json_and_drawn() {
    let scene = Scene::new("bound");
    let (json, svg) = (scene.path("bound.json"), scene.path("bound.svg"));
    let (json, svg) = (json.display().to_string(), svg.display().to_string());
    let words = ["bound", "message", "--places", "2", "--size", "1024", "--json", &json, "--svg", &svg];
    let ended = scene.run(&[&words[..], &["--others", "idle", "--errors"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let report: Value = serde_json::from_str(&scene.result("bound.json")).unwrap();
    let (bound, seen) = (report["bound_ns"].as_f64().unwrap(), report["seen_ns"].as_f64().unwrap());
    let terms = report["terms_ns"].as_array().unwrap().iter().filter_map(|term| term[1].as_f64());
    assert!((terms.sum::<f64>() - bound).abs() < 1e-6 && seen < bound, "{report}");
    let drawn = scene.result("bound.svg");
    assert!(drawn.starts_with("<svg") && drawn.contains("longest run seen"), "{drawn}");
}

#[test]
fn an_automaton_has_the_right_cells_within_a_deadline_that_was_told_before() {
    let ended = bound("automaton --places 8 --size 100 --items 5 --work 20000 --deadline 1ms");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("\n  cells                             right\n"), "{ended:?}");
    let control = bound("control-loop --items 1 --work 20000 --deadline 1ms --runs 3");
    assert_eq!((control.code, control.stderr.as_str()), (Some(0), ""), "{control:?}");
    let four = "error: --places is \"5\"; allowed: 4, the parts of a control loop";
    assert_eq!(bound("control-loop --places 5").refusal(), four);
    let few = "error: --size is \"7\"; allowed: 8 cells or more, one for each core";
    assert_eq!(bound("automaton --places 8 --size 7").refusal(), few);
}
