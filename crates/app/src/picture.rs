//! Pictures of results, drawn by the `isles` command, so that applications need no SVG.

use crate::Failure;
use crate::companion::{ISLES, spawn_failure};
use isles::Destination;
use std::io::Write;
use std::process::Stdio;

/// Draws the JSON or CSV of a result; `program` is the command that produced it.
///
/// # Errors
/// The text cannot be drawn, or the picture cannot be written.
pub fn draw(program: &str, text: &str, out: Destination) -> Result<(), Failure> {
    let mut command = ISLES.command()?;
    command.args(["plot", "-", "--out", "-", "--said", &command_line(program)]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| spawn_failure(&command, &cause))?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes()); // one that ends early says why
    }
    let ended = child.wait_with_output().map_err(|cause| spawn_failure(&command, &cause))?;
    if !ended.status.success() {
        let stderr = String::from_utf8_lossy(&ended.stderr);
        let line =
            stderr.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or("nothing was drawn");
        return Err(Failure::Usage(line.to_owned()));
    }
    out.write(|out| out.write_all(&ended.stdout)).map(drop).map_err(Failure::from)
}

/// Returns the words of this command, quoted for a shell.
pub fn command_line(program: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./,:=+@%".contains(character);
    let word = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        match !word.is_empty() && word.chars().all(plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(word).collect();
    format!("{program} {}", words.join(" "))
}
