//! The run of a place: load, then answer queries together with the others, or some of them alone.
//!
//! In the mode `data` a triple is stored at one place, and all places evaluate each query together. In the mode `task`
//! each place has all triples, and takes the next query when it has answered one, as in algorithm 1 of 004:423. It
//! parses no arguments and writes no output. Invariant: all places process the same queries in the same order, or each
//! query goes to one place.

use crate::answer::Answer;
use crate::load::snapshot;
use crate::load::source::{DataSource, OpenSource};
use crate::load::{self, LoadCounts, LoadFault, Loaded, Partition};
use crate::queries::NamedQuery;
use crate::query::Queries;
use crate::query::trace::{OperatorTrace, QueryFault, QueryLimits};
use crate::requests::FaultKind;
use clap::ValueEnum;
use isles::prelude::*;
use isles_app::frame::{RunMeter, add_done};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Division of the work among the places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SharingMode {
    /// Each place has a part of the triples; all answer each query together
    #[default]
    Data,
    /// Each place has all triples, and answers some of the queries
    Task,
}

/// Settings of a run, sent to its places.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Sources of the triples.
    pub sources: Vec<DataSource>,
    /// The queries.
    pub queries: Vec<NamedQuery>,
    /// Division of the work among the places.
    pub mode: SharingMode,
    /// Partition of the triples, in the mode `data`.
    pub partition: Partition,
    /// `true` if requests from standard input are answered instead of the queries.
    pub is_server: bool,
    /// Number of times that all queries are answered; the answers are those of the first time.
    pub repeat: u64,
    /// Maximum size of a table of a query, in bytes.
    pub memory: Option<u64>,
    /// `true` if a snapshot is written.
    pub saves: bool,
    /// Time limit of a query.
    pub timeout: Option<Duration>,
}

/// Outcome of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryFound {
    /// Its name.
    pub name: String,
    /// Solutions or triples of the answer.
    pub rows: u64,
    /// The best time, in seconds.
    pub seconds: f64,
    /// A hash of the answer; see [`Answer::digest`].
    pub digest: String,
    /// Reason why it has no answer, if it has none.
    pub fault: Option<String>,
    /// Kind of that fault.
    #[serde(skip)]
    pub fault_kind: Option<FaultKind>,
    /// Work of the operators, in the order in which they ended.
    pub operators: Vec<OperatorTrace>,
}

/// Outcome of a run.
#[derive(Debug, Default)]
pub struct SessionFound {
    /// Counts of the load over all places; in the mode `task` those of each place.
    pub loaded: LoadCounts,
    /// Seconds that loading took.
    pub load_seconds: f64,
    /// Seconds that all queries took together.
    pub query_seconds: f64,
    /// Outcome of each query.
    pub queries: Vec<QueryFound>,
    /// The answers, in the same order.
    pub answers: Vec<Option<Answer>>,
    /// Error in a source, if there is one.
    pub refused: Option<String>,
    /// The snapshot, if one is made.
    pub snapshot: Vec<u8>,
}

/// An answer of a place in the mode `task`, with the position of its query.
type TaskAnswer = (u64, QueryFound, Option<Answer>);

/// Returns the data that this place has loaded, or the fault of any place: if one fails, all abort the load.
async fn agreed(team: &Team, loaded: Result<Loaded, LoadFault>) -> isles::Result<Result<Loaded, LoadFault>> {
    let fault = match &loaded {
        Err(LoadFault::Source(fault)) => Some(fault.clone()),
        _ => None,
    };
    let fault = team.all_gather(fault).await?.into_iter().flatten().next();
    Ok(fault.map_or(loaded, |fault| Err(LoadFault::Source(fault))))
}

/// Lets the allocator keep freed blocks of up to 32 MiB for the tables of the next query.
///
/// The allocator of glibc maps blocks longer than any freed so far, initially 128 KiB, and returns them to the system
/// (mallopt(3), `M_MMAP_THRESHOLD`). New pages for each query took a tenth of its time.
fn keep_freed_blocks() {
    const LONGEST: usize = 32 << 20;
    const HEADER: usize = 64 << 10;
    drop(black_box(Vec::<u8>::with_capacity(LONGEST - HEADER)));
}

impl Session {
    /// Answers all queries over all places; `contents` are the opened sources.
    ///
    /// # Errors
    /// A place has died.
    pub async fn run(&self, contents: &[OpenSource], meter: &RunMeter) -> isles::Result<SessionFound> {
        let next = Counter::new();
        let mut own = None;
        finish(async {
            for place in places().skip(1) {
                let (session, next) = (self, &next);
                spawn_at!(place, {
                    session.take_part(&[], next, meter).await?;
                });
            }
            own = Some(self.take_part(contents, &next, meter).await?);
            Ok::<_, isles::Error>(())
        })
        .await?;
        let mut found = own.unwrap_or_default();
        for answer in found.answers.iter_mut().flatten() {
            answer.sort();
        }
        for (query, answer) in found.queries.iter_mut().zip(&found.answers) {
            query.digest = answer.as_ref().map(Answer::digest).unwrap_or_default();
        }
        Ok(found)
    }

    /// Runs the share of a place; returns the results at the first one.
    async fn take_part(
        &self,
        contents: &[OpenSource],
        next: &Counter,
        meter: &RunMeter,
    ) -> isles::Result<SessionFound> {
        keep_freed_blocks();
        let team = Team::world();
        let started = now();
        let loaded = match self.mode {
            SharingMode::Data => load::load(team.clone(), &self.sources, contents, self.partition).await,
            SharingMode::Task => {
                let loaded = self.load_all(&team, contents).await?;
                agreed(&team, loaded).await?
            }
        };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(LoadFault::Run(error)) => return Err(error),
            Err(LoadFault::Source(refused)) => {
                return Ok(SessionFound { refused: Some(refused), ..SessionFound::default() });
            }
        };
        let _held = isles::hold_memory(loaded.memory());
        let counts = loaded.counts().await?;
        team.barrier().await?;
        let load_seconds = (now() - started).as_secs_f64();
        let snapshot = if self.saves { self.snapshot(&team, &loaded).await? } else { Vec::new() };
        let started = now();
        let (queries, answers) = match self.mode {
            _ if self.is_server => {
                self.serve(&team, &loaded, meter).await?;
                Default::default()
            }
            SharingMode::Data => self.answer_collectively(&loaded, meter).await?,
            SharingMode::Task => self.answer_from_queue(&team, &loaded, next, meter).await?,
        };
        let query_seconds = (now() - started).as_secs_f64();
        Ok(SessionFound {
            loaded: counts,
            load_seconds,
            query_seconds,
            queries,
            answers,
            refused: None,
            snapshot,
        })
    }

    /// Returns a snapshot of the data loaded by all places, at the first one.
    async fn snapshot(&self, team: &Team, loaded: &Loaded) -> isles::Result<Vec<u8>> {
        let parts = match self.mode {
            SharingMode::Task if team.rank() == 0 => vec![snapshot::part_of(loaded)],
            SharingMode::Task => Vec::new(),
            SharingMode::Data => team.gatherv(0, &snapshot::part_of(loaded)).await?.unwrap_or_default(),
        };
        Ok(if team.rank() == 0 { snapshot::of_parts(&parts, loaded.partition) } else { Vec::new() })
    }

    /// Loads all triples at this place.
    async fn load_all(
        &self,
        team: &Team,
        contents: &[OpenSource],
    ) -> isles::Result<Result<Loaded, LoadFault>> {
        if let [DataSource::Snapshot { name, path, head }] = self.sources.as_slice()
            && head.places() == 1
        {
            return Ok(snapshot::open(None, name, path, head).await);
        }
        let mut all = Vec::new();
        for (number, source) in self.sources.iter().enumerate() {
            let DataSource::File { len, .. } = source else { continue };
            let own = contents.get(number).map(|open| open.bytes.clone());
            let mut bytes = own.unwrap_or_else(|| vec![0; *len as usize]);
            team.broadcast_slice(0, &mut bytes).await?;
            all.push(bytes);
        }
        Ok(load::load_alone(&self.sources, &all))
    }

    fn limits(&self) -> QueryLimits {
        QueryLimits { memory: self.memory, time: self.timeout.map(|allowed| (allowed, Instant::now())) }
    }

    async fn answer_collectively(
        &self,
        loaded: &Loaded,
        meter: &RunMeter,
    ) -> isles::Result<(Vec<QueryFound>, Vec<Option<Answer>>)> {
        let mut found: Vec<QueryFound> = Vec::new();
        let mut answers = Vec::new();
        for round in 0..self.repeat {
            for (position, query) in self.queries.iter().enumerate() {
                let begin = Instant::now();
                let (one, answer) = self.answer(query, loaded).await?;
                meter.add_done(begin);
                if here().index() == 0 {
                    add_done(1);
                }
                if round == 0 {
                    found.push(one);
                    answers.push(answer);
                } else {
                    found[position].seconds = found[position].seconds.min(one.seconds);
                }
            }
        }
        Ok((found, answers))
    }

    /// Takes and answers queries at this place until none is left.
    async fn answer_from_queue(
        &self,
        team: &Team,
        loaded: &Loaded,
        next: &Counter,
        meter: &RunMeter,
    ) -> isles::Result<(Vec<QueryFound>, Vec<Option<Answer>>)> {
        let queries = self.queries.len() as u64;
        let mut own: Vec<TaskAnswer> = Vec::new();
        while let Some(number) = next.take_below(queries * self.repeat).await? {
            let begin = Instant::now();
            let (found, answer) = self.answer(&self.queries[(number % queries) as usize], loaded).await?;
            meter.add_done(begin);
            add_done(1);
            own.push((number, found, answer.filter(|_| number < queries)));
            yield_now().await;
        }
        let Some(all) = team.gather(0, own).await? else { return Ok((Vec::new(), Vec::new())) };
        let mut all: Vec<TaskAnswer> = all.into_iter().flatten().collect();
        all.sort_by_key(|(number, ..)| *number);
        let mut found: Vec<QueryFound> = Vec::new();
        let mut answers = Vec::new();
        for (number, one, answer) in all {
            if number < queries {
                found.push(one);
                answers.push(answer);
            } else {
                let first = &mut found[(number % queries) as usize];
                first.seconds = first.seconds.min(one.seconds);
            }
        }
        Ok((found, answers))
    }

    /// Answers one query, and returns its outcome.
    pub(crate) async fn answer(
        &self,
        query: &NamedQuery,
        loaded: &Loaded,
    ) -> isles::Result<(QueryFound, Option<Answer>)> {
        let started = now();
        let mut found = QueryFound { name: query.name.clone(), ..QueryFound::default() };
        let answered = match query.parsed() {
            Ok(parsed) => {
                let queries = Queries { graphs: &loaded.graphs, peers: &loaded.peers };
                queries.answer(&parsed, self.limits()).await
            }
            Err(wrong) => Err(QueryFault::Unsupported(wrong)),
        };
        found.seconds = (now() - started).as_secs_f64();
        match answered {
            Ok(answered) => {
                found.operators = answered.operators;
                found.rows = answered.answer.as_ref().map_or(0, Answer::rows);
                Ok((found, answered.answer))
            }
            Err(QueryFault::Run(error)) => Err(error),
            Err(fault) => {
                found.fault_kind = Some(match &fault {
                    QueryFault::Memory { .. } | QueryFault::Time { .. } => FaultKind::Limit,
                    QueryFault::Unsupported(_) | QueryFault::Run(_) => FaultKind::Query,
                });
                found.fault = Some(fault.to_string());
                Ok((found, None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::Plan;

    #[test]
    fn a_query_that_is_wrong_and_one_beyond_a_limit_have_faults_of_their_kinds() {
        let (ended, ..) = isles::simulate(1, Plan::calm(1), || async {
            let loaded = load::load_alone(&[], &[]).expect("nothing is loaded");
            let session = |timeout| Session {
                sources: Vec::new(),
                queries: Vec::new(),
                mode: SharingMode::Task,
                partition: Partition::Subject,
                is_server: true,
                repeat: 1,
                memory: None,
                saves: false,
                timeout,
            };
            for (text, timeout, kind) in [
                ("ASK { ?s ?p ?o }", None, None),
                ("ASK { ?s ?p }", None, Some(FaultKind::Query)),
                ("ASK { ?s ?p ?o }", Some(Duration::ZERO), Some(FaultKind::Limit)),
            ] {
                let query = NamedQuery { text: text.to_owned(), ..NamedQuery::default() };
                let (found, _) = session(timeout).answer(&query, &loaded).await?;
                assert_eq!((found.fault_kind, found.fault.is_some()), (kind, kind.is_some()), "{text}");
            }
            Ok::<_, isles::Error>(())
        });
        ended.unwrap();
    }

    #[test]
    fn all_places_give_the_load_up_if_one_does() {
        let (ended, ..) = isles::simulate(3, Plan::calm(1), || async {
            let faults = everywhere!({
                let team = Team::world();
                let loaded = match team.rank() {
                    1 => Err(LoadFault::Source("cut.snap: too short".to_owned())),
                    _ => load::load_alone(&[], &[]),
                };
                agreed(&team, loaded).await?.err().map(|fault| format!("{fault:?}"))
            })
            .await?;
            assert_eq!(faults, vec![Some("Source(\"cut.snap: too short\")".to_owned()); 3]);
            Ok::<_, isles::Error>(())
        });
        ended.unwrap();
    }
}
