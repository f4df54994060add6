//! `isles run bc --known-efforts FILE` as an experiment uses it: runs on a modelled chip that compute no source.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, process};

/// A folder that is gone after its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("isles-bc-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("efforts.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // what is left does not matter to anybody
    }
}

/// Runs the program with blank-separated words.
fn bc(words: &str, known: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isles-bc"));
    let is_ours = |name: &str| name.starts_with("ISLES_");
    for (name, _) in std::env::vars().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    command.args(words.split(' ')).args(["--csv", "/dev/null"]);
    command.args(known.into_iter().flat_map(|file| ["--known-efforts".as_ref(), file.as_os_str()]));
    command.output().unwrap()
}

/// Returns the JSON that a run writes to standard output.
fn json_of(words: &str, known: Option<&Path>) -> Value {
    let ended = bc(words, known);
    assert!(ended.status.success(), "{words}: {ended:?}");
    serde_json::from_slice(&ended.stdout).unwrap()
}

/// The line of a run that is refused.
fn refusal(words: &str, known: &Path) -> String {
    let ended = bc(words, Some(known));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    stderr.trim().to_owned()
}

const ON_SIX: &str = "--graph karate --balance static --machine chip:scc --places 6 --protocol rcce-x10 --json /dev/null --summary -";

#[test]
fn a_run_with_known_efforts_is_as_long_as_the_run_itself() {
    let folder = Folder::new("as-long");
    for (weights, part) in [("ignore", 0), ("unit", 50)] {
        let words = format!("{ON_SIX} --weights {weights}");
        let real = json_of(&words, None);
        // The first of them writes the file, the last ones read it.
        for _ in 0..2 {
            let known = json_of(&words, Some(&folder.file()));
            let number = |json: &Value, name: &str| json[name].as_u64().unwrap();
            assert_eq!(number(&known, "messages"), number(&real, "messages"));
            let [known_time, time] = [&known, &real].map(|json| number(json, "predicted_ps"));
            assert!(known_time.abs_diff(time) < time / 100, "{known_time} and {time}");
            let places = |json: &Value| json["by_place"].as_array().unwrap().clone();
            assert_eq!(places(&real).len(), 6);
            for (known, real) in places(&known).iter().zip(places(&real)) {
                let [known, real] =
                    [known, &real].map(|place| place["ledger_ps"]["working"].as_u64().unwrap());
                let allowed = real.checked_div(part).unwrap_or_default();
                assert!(known.abs_diff(real) <= allowed, "{known} and {real}");
            }
        }
    }
}

#[test]
fn the_scores_are_nearly_those_of_a_plain_run() {
    let folder = Folder::new("scores");
    let words = "--graph karate --machine chip:scc --places 5 --json -";
    let (real, known) = (json_of(words, None), json_of(words, Some(&folder.file())));
    assert_eq!((&known["sources"], &known["edges_traversed"]), (&real["sources"], &real["edges_traversed"]));
    let scores = |json: &Value| -> Vec<f64> {
        let all = json["betweenness"].as_array().unwrap().iter();
        all.map(|score| score.as_f64().unwrap()).collect()
    };
    assert!(scores(&real).iter().zip(scores(&known)).all(|(real, known)| (real - known).abs() < 1e-9));
}

#[test]
fn a_file_that_is_not_of_the_graph_is_refused_in_a_line() {
    let folder = Folder::new("refused");
    let file = folder.file();
    let path = file.display().to_string();
    json_of(ON_SIX, Some(&file));
    let allowed = "allowed: a file written by a run with this graph, or one that does not exist";
    let other = ON_SIX.replace("karate", "rmat:6,0.57,0.19,0.19,0.05");
    let expected = format!("error: --known-efforts is {path:?}, which is of another graph; {allowed}");
    assert_eq!(refusal(&other, &file), expected);

    let written = fs::read_to_string(&file).unwrap();
    fs::write(&file, written.replace("isles.efforts.1", "isles.efforts.0")).unwrap();
    assert!(refusal(ON_SIX, &file).contains("which has the format \"isles.efforts.0\""));
    fs::write(&file, &written[..written.len() / 2]).unwrap();
    assert!(refusal(ON_SIX, &file).contains("which has no efforts of sources ("));
    assert!(refusal(ON_SIX, &folder.0).contains("which cannot be read ("));
    let nowhere = folder.0.join("no/folder/file");
    assert!(refusal(ON_SIX, &nowhere).contains("allowed: - or a file that can be written"));
}

#[test]
fn on_the_host_nothing_is_known() {
    let folder = Folder::new("host");
    let stderr = refusal("--graph karate --machine threads --places 2 --json -", &folder.file());
    let expected = "error: --known-efforts is given, but the machine is threads; allowed: a modelled chip, because \
                    the file holds modelled times";
    assert_eq!(stderr, expected);
    assert!(!folder.file().exists());
}
