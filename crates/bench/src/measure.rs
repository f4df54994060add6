//! What a measurement is: a question, who answers it, and what the answer must reach.
//!
//! Its own file so that [`crate::suite`] is a plain table. It runs nothing.
//! The invariant: a verdict is reached only from figures of the same run; an absent peer gives no verdict.

use crate::program::Program;
use crate::samples::Samples;
use serde::Serialize;
use std::collections::BTreeMap;

/// Programs that are run in turn, and the questions that their figures answer.
pub struct Group {
    /// What `--only` takes.
    pub name: &'static str,
    /// How many places on what machine, in words.
    pub setting: &'static str,
    /// Whether a round takes minutes: then there is one round only, and `--quick` leaves it out.
    pub slow: bool,
    /// The programs, in the order in which each round runs them.
    pub contenders: &'static [Contender],
    /// The questions.
    pub rows: &'static [Row],
}

/// One program of a group.
pub struct Contender {
    /// Its name in the table; unique in its group.
    pub label: &'static str,
    /// How it is started.
    pub program: Program,
}

/// One question.
pub struct Row {
    /// What `--only` takes; unique in the suite.
    pub name: &'static str,
    /// The question in words.
    pub question: &'static str,
    /// The unit of all its figures.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// Our figure.
    pub ours: Figure,
    /// The figures to compare with.
    pub peers: &'static [Figure],
    /// What our figure must reach; none where the row only informs.
    pub targets: &'static [Target],
}

/// One value that one contender prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// Label of the contender.
    pub contender: &'static str,
    /// The name in its `measured NAME VALUE` line.
    pub name: &'static str,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, bytes.
    Less,
    /// Rates, bandwidths.
    More,
}

/// What our figure must reach: at most (or, where more is better, at least) so much.
pub enum Target {
    /// This value in the row's unit.
    Value(f64),
    /// This multiple of the best of these peers.
    Ratio {
        /// The multiple.
        limit: f64,
        /// The contenders, by label.
        of: &'static [&'static str],
        /// Their name in a sentence.
        words: &'static str,
    },
    /// This many times faster than one peer; for rows where less is better.
    Speedup {
        /// How many times.
        limit: f64,
        /// The contender, by label.
        over: &'static str,
    },
}

/// The measured values of a group, by contender and name.
pub type Figures = BTreeMap<(&'static str, String), Samples>;

/// How a target came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The target in words.
    pub target: String,
    /// What was reached, in the target's terms; none if a figure is absent.
    pub reached: Option<f64>,
    /// Whether that is enough; none if a figure is absent.
    pub met: Option<bool>,
    /// The peer that the ratio is with, or why there is no verdict.
    pub remark: String,
}

impl Row {
    /// Our figure.
    pub fn ours<'a>(&self, figures: &'a Figures) -> Option<&'a Samples> {
        samples(figures, self.ours)
    }

    /// How every target of the row came out.
    pub fn verdicts(&self, figures: &Figures) -> Vec<Verdict> {
        self.targets.iter().map(|target| self.verdict(target, figures)).collect()
    }

    fn verdict(&self, target: &Target, figures: &Figures) -> Verdict {
        let ours = self.ours(figures);
        let words = self.words(target);
        match (ours, target) {
            (None, _) => {
                Verdict { target: words, reached: None, met: None, remark: "our figure is absent".to_owned() }
            }
            (Some(ours), Target::Value(limit)) => self.judged(words, ours.median(), *limit, String::new()),
            (Some(ours), Target::Ratio { limit, of, .. }) => match self.best(of, figures) {
                Some((peer, theirs)) => self.judged(words, ours.ratio_to(theirs), *limit, peer.to_owned()),
                None => Verdict {
                    target: words,
                    reached: None,
                    met: None,
                    remark: "no such peer here".to_owned(),
                },
            },
            (Some(ours), Target::Speedup { limit, over }) => match self.best(&[*over], figures) {
                Some((peer, theirs)) => {
                    let reached = theirs.ratio_to(ours);
                    Verdict {
                        target: words,
                        reached: Some(reached),
                        met: Some(reached >= *limit),
                        remark: peer.to_owned(),
                    }
                }
                None => {
                    Verdict { target: words, reached: None, met: None, remark: format!("{over} is absent") }
                }
            },
        }
    }

    fn judged(&self, target: String, reached: f64, limit: f64, remark: String) -> Verdict {
        let met = match self.better {
            Better::Less => reached <= limit,
            Better::More => reached >= limit,
        };
        Verdict { target, reached: Some(reached), met: Some(met), remark }
    }

    /// The target as a sentence.
    pub fn words(&self, target: &Target) -> String {
        let bound = match self.better {
            Better::Less => "at most",
            Better::More => "at least",
        };
        match target {
            Target::Value(limit) => format!("{bound} {limit} {}", self.unit),
            Target::Ratio { limit, words, .. } => format!("{bound} {limit} of {words}"),
            Target::Speedup { limit, over } => format!("at least {limit} times faster than {over}"),
        }
    }

    /// The peer with the best median among those with these labels.
    fn best<'a>(&self, labels: &[&str], figures: &'a Figures) -> Option<(&'static str, &'a Samples)> {
        let named = self.peers.iter().filter(|peer| labels.contains(&peer.contender));
        let present = named.filter_map(|peer| Some((peer.contender, samples(figures, *peer)?)));
        match self.better {
            Better::Less => present.min_by(|a, b| a.1.median().total_cmp(&b.1.median())),
            Better::More => present.max_by(|a, b| a.1.median().total_cmp(&b.1.median())),
        }
    }
}

/// The values of one figure, if it was measured.
pub fn samples(figures: &Figures, figure: Figure) -> Option<&Samples> {
    figures.get(&(figure.contender, figure.name.to_owned()))
}

#[cfg(test)]
mod tests;
