//! `isles power fit` as a user sees it: it reproduces the published table of the SCC, and refuses a faulty file in one
//! line.
//!
//! The mathematics has its tests in `isles-lab`.

use crate::scene::{Ended, Scene, ended};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// The powers that were measured on an SCC.
const SCC: &str = include_str!("../../../../chips/scc-power.csv");

const HEADER: &str = "frequency_mhz,voltage_v,load,power_w\n";

/// Fits a file with this text. Returns the output, and the name of the file.
fn fit(text: impl AsRef<[u8]>, more: &[&str]) -> (Ended, String) {
    let scene = Scene::new("power");
    let file = scene.file("p.csv", text).display().to_string();
    let ended = scene.run(&[&["power", "fit", &file], more].concat());
    scene.assert_nothing_left();
    (ended, file)
}

/// Returns the line of a refusal, without the name of the file.
fn refused(text: impl AsRef<[u8]>, more: &[&str]) -> String {
    let (ended, file) = fit(text, more);
    ended.refusal().replace(&file, "p.csv")
}

/// Returns the lines of a successful command that begin with `start`, with single spaces.
fn lines(ended: &Ended, start: &str) -> Vec<String> {
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    ended.stdout.lines().map(words).filter(|line| line.starts_with(start)).collect()
}

#[test]
fn the_measurements_of_the_scc_are_part_of_the_command() {
    let scene = Scene::new("power");
    let named = scene.run(&["power", "fit", "scc-power", "--form", "voltage"]);
    let (of_file, file) = fit(SCC, &["--form", "voltage"]);
    assert_eq!(lines(&named, "").len(), lines(&of_file, "").len());
    assert_eq!(named.stdout, of_file.stdout.replace(&file, "scc-power"));
    let missing = scene.run(&["power", "fit", "chips/scc-power.csv"]);
    let expected = "error: cannot read chips/scc-power.csv: No such file or directory (os error 2); `scc-power` names \
                    the measurements that are part of isles";
    assert_eq!(missing.refusal(), expected);
}

#[test]
fn the_published_figures_of_the_scc_come_out() {
    let (ended, _) = fit(SCC, &["--form", "voltage"]);
    let line = |start| lines(&ended, start).concat();
    assert_eq!(line("constant 12"), "constant 12.105 1.0287 W");
    assert_eq!(line("leakage"), "leakage 20.367 5.5372 W/V^3");
    assert_eq!(line("dynamic compute"), "dynamic compute 0.060314 6.7683e-3 W/(V^2*MHz)");
    assert_eq!(line("factor sleep"), "factor sleep 0.27539 0.082252");
    assert_eq!(line("on the 16"), "on the 16 measurements: mean 2.03 %, largest 4.60 %");
    assert_eq!(line("each operating"), "each operating point left out in turn: mean 3.36 %, largest 12.16 %");
    assert!(line("warning: frequency and voltage rise together (correlation 0.958)").contains("mean little"));
    // Each measurement has its line number, even if the text has a comment above.
    assert_eq!(lines(&ended, "6 800").concat(), "6 800.00 1.1625 sleep 64.00 62.06 -3.03 % 56.22 -12.16 %");
}

#[test]
fn every_form_that_the_columns_allow_is_fitted() {
    let titles = |text: &str, more: &[&str]| {
        let (ended, _) = fit(text, more);
        lines(&ended, "").into_iter().filter(|line| line.contains("·f")).count()
    };
    assert_eq!(titles(SCC, &[]), 3, "both loads by rate, and all by voltage");
    assert_eq!(titles(SCC, &["--form", "rate"]), 2);
    let bare = "frequency_mhz,power_w\n100,21\n200,23\n320,28\n400,35\n533,48\n800,110\n";
    assert_eq!(titles(bare, &[]), 1);
    let kept = fit(bare, &["--exponent", "3"]).0;
    assert_eq!(lines(&kept, "exponent"), ["exponent 3.0000 -"]);
}

#[test]
fn standard_input_and_standard_output_can_be_used() {
    let scene = Scene::new("power");
    let mut command = scene.isles(&["power", "fit", "-", "--json", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(SCC.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["file"], "standard input");
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.starts_with("standard input: 16 measurements; "), "people read the other one: {printed}");
    scene.assert_nothing_left();
}

#[test]
fn the_json_holds_every_figure_under_names_that_stay() {
    let scene = Scene::new("power");
    let file = scene.file("p.csv", SCC).display().to_string();
    let ended = scene.run(&["power", "fit", &file, "--json", "fit.json"]);
    assert_eq!(lines(&ended, "on the ").len(), 3);
    let document: Value = serde_json::from_str(&scene.result("fit.json")).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(document["schema"], "isles.power-fit.1");
    assert_eq!(keys(&document), "file fits schema");
    let fits = document["fits"].as_array().unwrap();
    let of = |fit: &Value| (fit["form"].clone(), fit["load"].clone());
    let expected = [("rate", "compute".into()), ("rate", "sleep".into()), ("voltage", Value::Null)];
    assert_eq!(fits.iter().map(of).collect::<Vec<_>>(), expected.map(|(form, load)| (form.into(), load)));
    let voltage = &fits[2];
    let all = "coefficients correlation errors factors form left_out load points refused warnings";
    assert_eq!(keys(voltage), all);
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-4, "{value} instead of {expected}");
    };
    assert_eq!(keys(&voltage["coefficients"][1]), "error name unit value");
    assert_eq!(voltage["coefficients"][1]["name"], "leakage");
    near(&voltage["coefficients"][1]["value"], 20.36672);
    near(&voltage["coefficients"][1]["error"], 5.537245);
    near(&voltage["factors"][0]["value"], 0.275385);
    near(&voltage["errors"]["mean"], 0.0203205);
    near(&voltage["left_out"]["max"], 0.1215714);
    near(&voltage["correlation"], 0.958468);
    assert_eq!((voltage["refused"].is_null(), voltage["warnings"].as_array().unwrap().len()), (true, 1));
    let point = &voltage["points"][1];
    assert_eq!(keys(point), "domains_mhz fitted_w frequency_mhz left_out_w line load power_w voltage_v");
    assert_eq!((point["line"].as_u64(), point["load"].as_str()), (Some(6), Some("sleep")));
    assert_eq!((point["frequency_mhz"].as_f64(), point["power_w"].as_f64()), (Some(800.0), Some(64.0)));
    assert_eq!(voltage["points"].as_array().unwrap().len(), 16);
}

#[test]
fn a_form_that_cannot_be_fitted_is_said_beside_those_that_can() {
    let text = format!(
        "{HEADER}100,0.9,loaded,21\n200,0.9,loaded,23\n400,0.9,loaded,35\n533,0.9,loaded,48\n800,0.9,loaded,110\n800,0.9,idle,64\n"
    );
    let scene = Scene::new("power");
    let file = scene.file("p.csv", &text).display().to_string();
    let ended = scene.run(&["power", "fit", &file, "--json", "fit.json"]);
    let not = lines(&ended, "not fitted: ");
    let few = "not fitted: 1 measurement; allowed: 5 or more";
    let mixed = "not fitted: the measurements do not determine constant, leakage separately; allowed: \
                 measurements at more frequencies and voltages";
    assert_eq!(not, [few, mixed], "{ended:?}");
    let document: Value = serde_json::from_str(&scene.result("fit.json")).unwrap();
    let reasons: Vec<bool> = (0..3).map(|at| document["fits"][at]["refused"].is_string()).collect();
    assert_eq!(reasons, [false, true, true]);
    let line = refused(&text, &["--form", "voltage"]);
    assert!(line.starts_with(
        "error: p.csv: form voltage: the measurements do not determine constant, leakage separately; "
    ));
}

#[test]
fn a_table_that_allows_no_fit_is_one_line_and_leaves_no_file() {
    let scene = Scene::new("power");
    let file = scene.file("p.csv", format!("{HEADER}100,0.9,loaded,21\n")).display().to_string();
    let ended = scene.run(&["power", "fit", &file, "--json", "fit.json"]);
    let says = "form rate of cores loaded (compute): 1 measurement; allowed: 5 or more; form voltage: 1 measurement; \
                allowed: 4 or more";
    assert_eq!(ended.refusal(), format!("error: {file}: {says}"));
    assert!(!scene.path("fit.json").exists());
    let no_voltage = "frequency_mhz,power_w\n1,2\n";
    let line = "error: p.csv: form voltage: no voltages; allowed: a column voltage_v";
    assert_eq!(refused(no_voltage, &["--form", "voltage"]), line);
}

#[test]
fn each_fault_of_a_file_is_a_line_with_its_place() {
    let broken =
        SCC.replace("533,0.85625,loaded,48", "533,0.85625,busy,-48").replace("100,0.65625,idle,18", "100,18");
    let (ended, file) = fit(&broken, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    let expected = [
        format!("{file}:7: load is \"busy\"; allowed: loaded (= compute), idle (= sleep), copy, poll"),
        format!("{file}:7: power_w is \"-48\"; allowed: a number from 0.000001 to 1000000000 W"),
        format!("{file}:20: \"100,18\" has 2 values; allowed: 4, one per column"),
        format!("error: {file} has 3 faults; nothing was fitted"),
    ];
    assert_eq!(ended.stderr.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn files_that_cannot_be_read_are_one_line() {
    let scene = Scene::new("power");
    assert!(
        scene
            .run(&["power", "fit", "gone.csv"])
            .refusal()
            .starts_with("error: cannot read gone.csv: No such")
    );
    assert!(scene.run(&["power", "fit", "/"]).refusal().starts_with("error: cannot read /: Is a directory"));
    assert!(refused(b"\xff\xfe", &[]).starts_with("error: cannot read p.csv: "));
    let closed = ended(scene.isles(&["power", "fit", "-"]));
    let last = "error: standard input has 1 fault; nothing was fitted";
    assert_eq!((closed.code, closed.stderr.lines().last()), (Some(2), Some(last)), "{closed:?}");
    scene.assert_nothing_left();
}

#[test]
fn arguments_that_cannot_be_are_named_with_what_is_allowed() {
    for value in ["1", "6", "-3", "cube", "NaN", ""] {
        let line = format!("error: --exponent is {value:?}; allowed: a number from 1.5 to 5");
        assert_eq!(refused(SCC, &["--exponent", value]), line);
    }
    let without = refused(SCC, &["--form", "voltage", "--exponent", "3"]);
    let allowed = "nothing with --form voltage, because it has no exponent";
    assert_eq!(without, format!("error: --exponent is \"3\"; allowed: {allowed}"));
    assert_eq!(refused(SCC, &["--form", "cubic"]), "error: --form is \"cubic\"; allowed: rate, voltage");
    let missing = refused(SCC, &["--json", "missing/fit.json"]);
    assert!(missing.starts_with("error: --json is \"missing/fit.json\"; allowed: - or a file"), "{missing}");
    let scene = Scene::new("power");
    assert!(scene.run(&["power", "fit"]).refusal().contains("FILE"));
    let same = scene.run(&["power", "fit", "p.csv", "--json", "./p.csv"]);
    assert!(same.refusal().starts_with("error: cannot read p.csv"), "no file is no measurements: {same:?}");
    scene.leave("p.csv", SCC);
    let same = scene.run(&["power", "fit", "p.csv", "--json", "./p.csv"]);
    assert_eq!(
        same.refusal(),
        "error: --json is \"./p.csv\"; allowed: a file other than the file to fit, because that is read"
    );
    assert_eq!(scene.result("p.csv"), SCC);
}
