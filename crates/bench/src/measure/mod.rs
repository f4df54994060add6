//! Measurements: questions, the programs that answer them, and targets.
//!
//! A separate file so that [`crate::suite`] is a plain table. It runs nothing. Invariant: a verdict uses only figures
//! of the same run; a target without its peer is not judged.

use crate::program::Program;
use crate::samples::Samples;
use serde::Serialize;
use std::collections::BTreeMap;

/// Programs that are run in turn, and the questions answered by their figures.
pub struct Group {
    /// Name for `--only`.
    pub name: &'static str,
    /// Number of places and machine, in words.
    pub setting: &'static str,
    /// `true` if a round takes minutes: then there are at most [`SLOW_RUNS`], and `--quick` leaves the group out and
    /// reports it.
    pub slow: bool,
    /// The programs, in the order in which each round runs them.
    pub contenders: &'static [Contender],
    /// The questions.
    pub rows: &'static [Row],
}

/// Most rounds of a slow group.
pub const SLOW_RUNS: usize = 3;

/// One program of a group.
pub struct Contender {
    /// Its name in the table; unique in its group.
    pub label: &'static str,
    /// The program to start.
    pub program: Program,
}

/// One question.
pub struct Row {
    /// Name for `--only`, unique in the suite.
    pub name: &'static str,
    /// The question in words.
    pub question: &'static str,
    /// The unit of all its figures.
    pub unit: &'static str,
    /// Direction in which figures are better.
    pub better: Better,
    /// Our figure.
    pub ours: Figure,
    /// The figures of peers: the best one is named in the row and is the baseline.
    pub peers: &'static [Figure],
    /// Figures for comparison that are no baseline: lower bounds, and other forms of ours.
    pub beside: &'static [Figure],
    /// Targets of our figure; empty if the row only informs.
    pub targets: &'static [Target],
    /// The row that must accompany this one in a document.
    pub quoted_with: Option<&'static str>,
}

/// One value printed by one contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// Label of the contender.
    pub contender: &'static str,
    /// The name in its `measured NAME VALUE` line; its last word is the unit.
    pub name: &'static str,
}

impl Figure {
    /// Returns its name without the unit, which is the last word.
    fn words(self) -> String {
        self.name.rsplit_once('_').map_or(self.name, |(words, _)| words).replace('_', " ")
    }
}

/// Direction in which figures are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, bytes.
    Less,
    /// Rates, bandwidths.
    More,
}

/// Target of our figure: an upper limit or, if more is better, a lower one.
pub enum Target {
    /// This value in the row's unit.
    Value(f64),
    /// This multiple of the best of the row's peers in this run.
    BestPeer(f64),
    /// This multiple of the best of these.
    BestOf {
        /// The multiple.
        limit: f64,
        /// The contenders, by label.
        of: &'static [&'static str],
        /// Their name in a sentence.
        words: &'static str,
    },
    /// This many times faster than one figure of `beside`; for rows where less is better.
    Speedup {
        /// Least speedup.
        limit: f64,
        /// The contender, by label.
        over: &'static str,
    },
    /// At most this much more than one figure of `beside`, in the row's unit.
    Beyond {
        /// Largest difference.
        limit: f64,
        /// The contender, by label.
        over: &'static str,
    },
}

/// The measured values of a group, by contender and name.
pub type Figures = BTreeMap<(&'static str, String), Samples>;

/// Verdict on a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The target in words.
    pub target: String,
    /// Judgement of the target.
    pub judgement: Judgement,
    /// Value reached, in the target's terms; `None` if it is not judged.
    pub reached: Option<Samples>,
    /// The peer of the ratio, or the reason why there is no verdict.
    pub remark: String,
}

/// Judgement of a target. The median decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Met in every run.
    Met,
    /// Met by the median, but not in every run.
    MetBorderline,
    /// Met in some run, but not by the median.
    MissedBorderline,
    /// Met in no run.
    Missed,
    /// A figure that the target needs is missing.
    NotJudged,
}

/// Value to be compared with the limit, and the direction in which it is better.
struct Comparison {
    reached: Samples,
    limit: f64,
    better: Better,
    remark: String,
}

impl Row {
    /// Returns our figure.
    pub fn ours<'a>(&self, figures: &'a Figures) -> Option<&'a Samples> {
        samples(figures, self.ours)
    }

    /// Returns all its figures: ours, the peers', and those of `beside`.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        std::iter::once(self.ours).chain(self.peers.iter().copied()).chain(self.beside.iter().copied())
    }

    /// Returns the label of a figure of the row: the contender, and the name of the figure if it has several here.
    pub fn label(&self, figure: Figure) -> String {
        match self.figures().filter(|other| other.contender == figure.contender).count() {
            1 => figure.contender.to_owned(),
            _ => format!("{}, {}", figure.contender, figure.words()),
        }
    }

    /// Returns the measured peer with the best median.
    pub fn best_peer<'a>(&self, figures: &'a Figures) -> Option<(Figure, &'a Samples)> {
        self.best(self.peers, figures)
    }

    /// Returns the verdicts on all targets of the row.
    pub fn verdicts(&self, figures: &Figures) -> Vec<Verdict> {
        self.targets.iter().map(|target| self.verdict(target, figures)).collect()
    }

    fn verdict(&self, target: &Target, figures: &Figures) -> Verdict {
        let words = self.words(target);
        match self.comparison(target, figures) {
            Ok(Comparison { reached, limit, better, remark }) => Verdict {
                target: words,
                judgement: Judgement::of(&reached, limit, better),
                reached: Some(reached),
                remark,
            },
            Err(why) => {
                Verdict { target: words, judgement: Judgement::NotJudged, reached: None, remark: why }
            }
        }
    }

    /// Fails with the missing figures: the best of the installed peers need not be the best of all.
    fn comparison(&self, target: &Target, figures: &Figures) -> Result<Comparison, String> {
        let named: Vec<Figure> = match target {
            Target::Value(_) => vec![],
            Target::BestPeer(_) => self.peers.to_vec(),
            Target::BestOf { of, .. } => self.labelled(of),
            Target::Speedup { over, .. } | Target::Beyond { over, .. } => self.labelled(&[*over]),
        };
        let needed = std::iter::once(&self.ours).chain(&named);
        let missing: Vec<_> = needed.filter(|figure| samples(figures, **figure).is_none()).collect();
        if let [only] = missing[..] {
            return Err(format!("{} is not here", only.contender));
        } else if !missing.is_empty() {
            let labels: Vec<_> = missing.iter().map(|figure| figure.contender).collect();
            return Err(format!("{} are not here", labels.join(" and ")));
        }
        let ours = self.ours(figures).expect("it is not missing");
        let (limit, better) = match *target {
            Target::Speedup { limit, .. } => (limit, Better::More),
            Target::Beyond { limit, .. } => (limit, Better::Less),
            Target::Value(limit) | Target::BestPeer(limit) | Target::BestOf { limit, .. } => {
                (limit, self.better)
            }
        };
        Ok(match (target, self.best(&named, figures)) {
            (Target::Speedup { over, .. }, Some((_, theirs))) => {
                Comparison { reached: theirs.ratios_to(ours), limit, better, remark: (*over).to_owned() }
            }
            (Target::Beyond { over, .. }, Some((_, theirs))) => {
                Comparison { reached: ours.less(theirs), limit, better, remark: (*over).to_owned() }
            }
            (_, Some((peer, theirs))) => {
                let remark = peer.contender.to_owned();
                Comparison { reached: ours.ratios_to(theirs), limit, better, remark }
            }
            (_, None) => Comparison { reached: ours.clone(), limit, better, remark: String::new() },
        })
    }

    /// Returns the target as an inequality.
    pub fn words(&self, target: &Target) -> String {
        let bound = match self.better {
            Better::Less => "<=",
            Better::More => ">=",
        };
        match target {
            Target::Value(limit) => format!("{bound} {limit} {}", self.unit),
            Target::BestPeer(limit) => format!("{bound} {limit} x best peer"),
            Target::BestOf { limit, words, .. } => format!("{bound} {limit} x {words}"),
            Target::Speedup { limit, over } => format!(">= {limit} times faster than {over}"),
            Target::Beyond { limit, over } => format!("<= {limit} {} beyond {over}", self.unit),
        }
    }

    fn labelled(&self, labels: &[&str]) -> Vec<Figure> {
        let all = self.peers.iter().chain(self.beside);
        all.filter(|figure| labels.contains(&figure.contender)).copied().collect()
    }

    fn best<'a>(&self, of: &[Figure], figures: &'a Figures) -> Option<(Figure, &'a Samples)> {
        let present = of.iter().filter_map(|peer| Some((*peer, samples(figures, *peer)?)));
        match self.better {
            Better::Less => present.min_by(|a, b| a.1.median().total_cmp(&b.1.median())),
            Better::More => present.max_by(|a, b| a.1.median().total_cmp(&b.1.median())),
        }
    }
}

impl Judgement {
    fn of(reached: &Samples, limit: f64, better: Better) -> Judgement {
        let is_enough = |value: f64| match better {
            Better::Less => value <= limit,
            Better::More => value >= limit,
        };
        match (is_enough(reached.median()), is_enough(reached.min()), is_enough(reached.max())) {
            (true, true, true) => Judgement::Met,
            (true, ..) => Judgement::MetBorderline,
            (false, false, false) => Judgement::Missed,
            (false, ..) => Judgement::MissedBorderline,
        }
    }

    /// Returns the word for the judgement.
    pub fn word(self) -> &'static str {
        match self {
            Judgement::Met => "met",
            Judgement::MetBorderline => "met, borderline",
            Judgement::MissedBorderline => "missed, borderline",
            Judgement::Missed => "missed",
            Judgement::NotJudged => "not judged",
        }
    }
}

/// Returns the values of one figure, if it was measured.
pub fn samples(figures: &Figures, figure: Figure) -> Option<&Samples> {
    figures.get(&(figure.contender, figure.name.to_owned()))
}

#[cfg(test)]
mod tests;
