//! Words of the command line for another program, moved to where clap passes them on.
//!
//! The command knows no argument of an application or of the lab. Invariant: words for the command itself keep their
//! order and their text.

use crate::run;
use clap::{Arg, Command};
use std::ffi::OsString;

/// The verbs after which another program reads all words.
pub const PASSED_ON: [&str; 10] =
    ["run", "bound", "calibrate", "power", "repro", "serve", "job", "cc", "rccerun", "bare"];

/// Returns `words`, the first of which is the program, in the form that `whole` can parse.
///
/// Words that `isles sweep` does not know are for the application, and go after `--`; the name of an application before
/// all of them acts as `--app`. Help for a command of another program is requested from that program: `isles help run
/// bc` becomes `isles run bc --help`.
pub fn for_clap(whole: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let Some(verb) = verb(whole, &words) else { return words };
    match words[verb].to_str() {
        Some("sweep") => application_last(whole, words, verb),
        Some("help") => forwarded_help(words, verb),
        _ => words,
    }
}

/// Returns `true` if another program reads the words after the verb of `words`.
pub fn are_forwarded(whole: &Command, words: &[OsString]) -> bool {
    verb(whole, words).and_then(|at| words[at].to_str()).is_some_and(|verb| PASSED_ON.contains(&verb))
}

/// Returns the index of the verb in `words`.
fn verb(whole: &Command, words: &[OsString]) -> Option<usize> {
    let is_verb = |word: &OsString| whole.find_subcommand(word).is_some() || word == "help";
    words.iter().skip(1).position(is_verb).map(|at| at + 1)
}

fn forwarded_help(mut words: Vec<OsString>, verb: usize) -> Vec<OsString> {
    let passed_on =
        words.get(verb + 1).and_then(|word| word.to_str()).is_some_and(|word| PASSED_ON.contains(&word));
    if passed_on {
        words.remove(verb);
        words.push("--help".into());
    }
    words
}

fn application_last(whole: &Command, words: Vec<OsString>, verb: usize) -> Vec<OsString> {
    let Some(sweep) = whole.find_subcommand("sweep") else { return words };
    let is_app = |word: &OsString| word.to_string_lossy().split('=').next() == Some("--app");
    let names_app = words.iter().take_while(|word| *word != "--").any(is_app);
    let (mut own, mut rest) = (words[..=verb].to_vec(), Vec::new());
    let mut words = words.into_iter().skip(verb + 1);
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        match flag(sweep, &text).or_else(|| flag(whole, &text)) {
            _ if text == "--" => rest.extend(words.by_ref()),
            None if rest.is_empty() && !names_app && run::app("", &text).is_ok() => {
                own.extend(["--app".into(), word]);
            }
            Some(argument) => {
                let takes_next = argument.get_action().takes_values() && !text.contains('=');
                own.push(word);
                if takes_next {
                    own.extend(words.next());
                }
            }
            None if text == "--help" || text == "-h" => own.push(word),
            None => rest.push(word),
        }
    }
    if !rest.is_empty() {
        own.push("--".into());
    }
    own.extend(rest);
    own
}

/// Returns the argument of `command` that `word` names.
fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or_default();
    command.get_arguments().find(|argument| {
        let is_long = argument.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        is_long || argument.get_short().is_some_and(|short| name == format!("-{short}"))
    })
}

#[cfg(test)]
mod tests {
    fn sorted(line: &str) -> String {
        let words = line.split(' ').map(Into::into).collect();
        let words = super::for_clap(&crate::command(), words);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_sweep_does_not_know_is_for_the_application() {
        assert_eq!(
            sorted("isles sweep --graph power --app bc --places 2,4 -q --cap=30"),
            "isles sweep --app bc --places 2,4 --cap=30 -- --graph power -q"
        );
        assert_eq!(sorted("isles sweep bc -- --rmat small"), "isles sweep --app bc -- --rmat small");
        assert_eq!(sorted("isles sweep -- bc 1"), "isles sweep -- bc 1");
        let separated = "isles sweep --app bc -- --places 3";
        assert_eq!(sorted(separated), separated, "what stands behind -- is not looked at");
        for line in ["isles sweep --app bc --help", "isles run bc --graph karate", "isles", "isles --version"]
        {
            assert_eq!(sorted(line), line);
        }
    }

    #[test]
    fn only_words_behind_a_verb_of_another_program_are_passed_on() {
        let are_forwarded = |line: &str| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            super::are_forwarded(&crate::command(), &words)
        };
        for line in ["isles run bc", "isles --color never run bc", "isles repro --list", "isles calibrate"] {
            assert!(are_forwarded(line), "{line}");
        }
        for line in
            ["isles", "isles launch -- run", "isles sweep --app bc", "isles help run bc", "isles list"]
        {
            assert!(!are_forwarded(line), "{line}");
        }
    }

    #[test]
    fn help_of_what_another_program_does_is_asked_of_that() {
        assert_eq!(sorted("isles help run pi"), "isles run pi --help");
        assert_eq!(sorted("isles help repro"), "isles repro --help");
        assert_eq!(sorted("isles help sweep"), "isles help sweep");
        assert_eq!(sorted("isles help"), "isles help");
    }
}
