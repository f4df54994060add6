//! A pipeline of one's own: the words of a text, how often each came before, and the longest line so far, on places
//! that change while it runs.
use isles::pipeline::{self, Options, Pipeline, RunningPipeline, Stages};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const TEXT: &str = "the cat saw the dog\nthe dog saw the cat\nand the bird saw them all\nthe bird left";

/// The value that makes the stages; it travels to each place.
#[derive(Clone, Serialize, Deserialize)]
struct Words;

/// A line on its way: its words, and how many of them are new.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    words: usize,
    new: usize,
    longest: usize,
}

impl Pipeline for Words {
    type Input = String;
    type Output = Line;

    fn stages(&self) -> Stages<String, Line> {
        Stages::new()
            .map("split", |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .branch(
                "copy",
                |words| (words.clone(), words),
                |stages| {
                    // The state is all that moves when the stage does.
                    stages.stateful("seen", BTreeMap::<String, u64>::new(), |seen, words: Vec<String>| {
                        let before = seen.len();
                        words.into_iter().for_each(|word| *seen.entry(word).or_default() += 1);
                        seen.len() - before
                    })
                },
                |stages| stages.map("count", |words: Vec<String>| words.len()),
            )
            .join("line", |new, words| Line { words, new, longest: 0 })
            .stateful("longest", 0, |longest: &mut usize, line: Line| {
                *longest = line.words.max(*longest);
                Line { longest: *longest, ..line }
            })
    }
}

/// Sends the lines, and goes on with other places in between.
async fn send(flow: &RunningPipeline<Words>) -> isles::Result<()> {
    for (number, line) in TEXT.lines().enumerate() {
        flow.resize(1 + number % place_count()).await?;
        flow.send(line.to_owned()).await?;
    }
    Ok(())
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let (lines, report) = pipeline::run(Words, Options::on(1), async |flow| {
        finish(async {
            let sender = flow.clone();
            spawn(async move {
                let sent = send(&sender).await;
                sender.close();
                sent
            });
            let mut lines = Vec::new();
            while let Some(line) = flow.recv().await? {
                lines.push(line);
            }
            Ok::<_, isles::Error>(lines)
        })
        .await
    })
    .await?;
    let new: Vec<_> = lines.iter().map(|line| line.new).collect();
    println!("new words of each line: {new:?}; {} changes of groups", report.resizes.len());
    assert_eq!(new, [4, 0, 4, 1]);
    assert_eq!(lines[3], Line { words: 3, new: 1, longest: 6 });
    Ok(())
}
