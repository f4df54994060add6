//! Traces of the operators of a query, and the limits of a query.
//!
//! It only decides when to abort. Invariant: the decision uses sums over all places, so all abort at the same
//! operator.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

/// Reason why a query has no answer.
#[derive(Debug)]
pub enum QueryFault {
    /// The tables of the query need more memory than is allowed.
    Memory {
        /// Allowed bytes.
        allowed: u64,
        /// Bytes of the table that was too large, over all places.
        needed: u64,
    },
    /// The query took longer than is allowed.
    Time {
        /// Time limit.
        allowed: Duration,
    },
    /// The query uses an unsupported feature, named in one line.
    Unsupported(String),
    /// The run failed.
    Run(isles::Error),
}

impl fmt::Display for QueryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryFault::Memory { allowed, needed } => {
                let mib = |bytes: &u64| bytes.div_ceil(1 << 20);
                write!(f, "a table of {} MiB; allowed by --memory: {}", mib(needed), mib(allowed))
            }
            QueryFault::Time { allowed } => {
                write!(f, "it takes longer than the {} s of --timeout", allowed.as_secs_f64())
            }
            QueryFault::Unsupported(text) => f.write_str(text),
            QueryFault::Run(error) => error.fmt(f),
        }
    }
}

impl From<isles::Error> for QueryFault {
    fn from(error: isles::Error) -> QueryFault {
        QueryFault::Run(error)
    }
}

/// Limits of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryLimits {
    /// Maximum size of a table in bytes, over all places.
    pub memory: Option<u64>,
    /// Time limit, and the start time.
    pub time: Option<(Duration, Instant)>,
}

impl QueryLimits {
    /// Returns `true` if there is no limit.
    pub fn is_free(&self) -> bool {
        self.memory.is_none() && self.time.is_none()
    }

    /// Returns `true` if `bytes`, counting this place alone, exceed the limit, or if the time limit has passed.
    pub fn is_exceeded(&self, bytes: u64) -> bool {
        self.memory.is_some_and(|allowed| bytes > allowed) || self.is_over_time()
    }

    /// Returns `true` if the time limit has passed at this place.
    pub fn is_over_time(&self) -> bool {
        self.time.is_some_and(|(allowed, begin)| begin.elapsed() > allowed)
    }

    /// Checks the sums over all places.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn check(&self, bytes: u64, is_over_time: bool) -> Result<(), QueryFault> {
        match (self.memory, self.time) {
            (Some(allowed), _) if bytes > allowed => Err(QueryFault::Memory { allowed, needed: bytes }),
            (_, Some((allowed, _))) if is_over_time => Err(QueryFault::Time { allowed }),
            _ => Ok(()),
        }
    }
}

/// Work of one operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatorTrace {
    /// Description of the operator.
    pub operator: String,
    /// Depth of the operator in the query.
    pub depth: usize,
    /// Estimated number of rows, if there is an estimate.
    pub estimate: Option<f64>,
    /// Actual number of rows, over all places.
    pub rows: u64,
    /// Bytes moved for it, over all places.
    pub bytes: u64,
    /// Seconds at the first place.
    pub seconds: f64,
}

impl OperatorTrace {
    /// Creates the trace of an operator with `rows` rows.
    pub fn new(operator: String, estimate: Option<f64>, rows: u64) -> OperatorTrace {
        OperatorTrace { operator, depth: 0, estimate, rows, bytes: 0, seconds: 0.0 }
    }
}

/// The operators of a query in the order in which they ended.
#[derive(Debug)]
pub struct Trace {
    operators: RefCell<Vec<OperatorTrace>>,
    depth: Cell<usize>,
    /// Bytes that this place had sent when the last operator ended.
    sent: Cell<u64>,
    ended: Cell<Instant>,
}

impl Trace {
    /// Creates the trace of a place that has sent `sent` bytes before.
    pub fn new(sent: u64) -> Trace {
        Trace {
            operators: RefCell::default(),
            depth: Cell::new(0),
            sent: Cell::new(sent),
            ended: Cell::new(Instant::now()),
        }
    }

    /// Records the start of a node.
    pub fn enter(&self) {
        self.depth.set(self.depth.get() + 1);
    }

    /// Records the end of the last started node.
    pub fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
    }

    /// Records an operator; this place has sent `sent` bytes so far.
    pub fn note(&self, operator: OperatorTrace, sent: u64) {
        let now = Instant::now();
        self.operators.borrow_mut().push(OperatorTrace {
            depth: self.depth.get(),
            bytes: sent - self.sent.replace(sent),
            seconds: (now - self.ended.replace(now)).as_secs_f64(),
            ..operator
        });
    }

    /// Returns the recorded operators.
    pub fn into_operators(self) -> Vec<OperatorTrace> {
        self.operators.into_inner()
    }
}
