//! Pipelines that can change their number of places while they run.
//!
//! A program defines the [`Stages`] of a [`Pipeline`]; [`run`] runs them as groups of neighbouring stages, each group
//! at a place of its own. When the number of places changes ([`RunningPipeline::resize`]), groups are fused or split
//! between two items, so that no item is lost, duplicated or reordered, and only states move (J. Jahn et al.,
//! "Malleable Software Pipelines for Efficient Many-core System Utilization", MARC Symposium 2012). The grouping is
//! decided in `isles_protocol::pipeline`; the rest uses only the public interface. `docs/design/pipelines.md` explains
//! why it is right, and how it fails.
//!
//! ```
//! use isles::pipeline::{self, Options, Pipeline, Stages};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Words;
//!
//! impl Pipeline for Words {
//!     type Input = String;
//!     type Output = usize;
//!
//!     fn stages(&self) -> Stages<String, usize> {
//!         Stages::new()
//!             .map("split", |line: String| line.split_whitespace().count())
//!             .stateful("total", 0, |total: &mut usize, words| {
//!                 *total += words;
//!                 *total
//!             })
//!     }
//! }
//!
//! async fn count(lines: Vec<String>) -> isles::Result<usize> {
//!     let mut last = 0;
//!     pipeline::process(Words, Options::default(), lines, |total| last = total).await?;
//!     Ok(last)
//! }
//! ```

mod change;
mod flow;
mod group_starter;
mod links;
mod local;
mod options;
mod packet;
mod recovery;
mod report;
mod source;
mod stage;
#[cfg(test)]
mod tests;
mod worker;

pub use flow::RunningPipeline;
pub use isles_protocol::pipeline::{
    Demand, DivisionFault, Objective, Partition, StageCosts, divide, exchange, speed_ups,
};
pub use options::{Options, STATE_BYTES_MAX};
pub use report::{PipelineReport, Resize, StageReport};
pub use stage::stages::{Branches, Stages};

use crate::{Error, ErrorKind, Result};
use isles_runtime::capture::CanSend;
use isles_runtime::of_library;
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;

/// A computation in stages that process different items at the same time.
///
/// The value is sent to each place of the pipeline, which makes its stages from it.
pub trait Pipeline: Clone + CanSend {
    /// Type of the items that enter the first stage.
    type Input: CanSend;

    /// Type of the results of the last stage: one for each item, in the same order.
    type Output: CanSend;

    /// Makes the stages. Each place must make the same ones.
    ///
    /// On a modelled chip, stages declare their cost with [`work`](crate::work).
    fn stages(&self) -> Stages<Self::Input, Self::Output>;
}

/// Path prefix of the source lines of this library.
const LINES: &str = file!().split_at(file!().len() - "mod.rs".len()).0;

/// Runs `pipeline` while `body` runs, which sends items, receives results and resizes it through its
/// [`RunningPipeline`].
///
/// Returns the value of `body` and a report. Results that `body` has not received are computed and dropped.
///
/// # Errors
/// The errors of `body` and of stages; an error of a stage names the stage. [`ErrorKind::Misused`]: `options` are
/// invalid for this pipeline and these places, or a state is too large. [`ErrorKind::DeadPlace`]: a place has died.
#[track_caller]
pub fn run<P: Pipeline, R>(
    pipeline: P,
    options: Options,
    body: impl AsyncFnOnce(RunningPipeline<P>) -> Result<R>,
) -> impl Future<Output = Result<(R, PipelineReport)>> {
    let caller = Location::caller();
    async move { flow::run(pipeline, options, body).await.map_err(|error| of_library(error, LINES, caller)) }
}

/// Sends all `items` through `pipeline` and calls `each` with each result in order. The stages are regrouped by their
/// measured costs.
///
/// # Errors
/// As [`run`].
#[track_caller]
pub fn process<P: Pipeline>(
    pipeline: P,
    options: Options,
    items: impl IntoIterator<Item = P::Input>,
    mut each: impl FnMut(P::Output),
) -> impl Future<Output = Result<PipelineReport>> {
    let caller = Location::caller();
    let body = async move |flow: RunningPipeline<P>| {
        let feed = async {
            for (number, item) in (0_u64..).zip(items) {
                if flow::is_time_to_rebalance(number) {
                    flow.rebalance().await?;
                }
                flow.send(item).await?;
            }
            flow.close();
            Ok(())
        };
        let drain = async {
            while let Some(result) = flow.recv().await? {
                each(result);
            }
            Ok(())
        };
        both(feed, drain).await
    };
    async move {
        let (_, report) =
            flow::run(pipeline, options, body).await.map_err(|error| of_library(error, LINES, caller))?;
        Ok(report)
    }
}

/// Waits for both futures, or for the first error.
async fn both(one: impl Future<Output = Result<()>>, other: impl Future<Output = Result<()>>) -> Result<()> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let mut ended = [false; 2];
    std::future::poll_fn(|context| {
        if !ended[0]
            && let Poll::Ready(result) = one.as_mut().poll(context)
        {
            result?;
            ended[0] = true;
        }
        if !ended[1]
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            result?;
            ended[1] = true;
        }
        if ended == [true; 2] { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// Attributes an error to a stage.
struct StageFault {
    name: &'static str,
}

impl StageFault {
    fn in_error(&self, error: &Error) -> Error {
        let kind = match error.kind() {
            // The dead place of a stage's own error may not run a group, so it must not start a recovery.
            ErrorKind::DeadPlace(_) | ErrorKind::Several => ErrorKind::Failed,
            kind => kind.clone(),
        };
        Error::new(kind, format!("stage `{}`: {error}", self.name))
    }
}

/// Makes an error of kind [`ErrorKind::Misused`].
fn misused(text: String) -> Error {
    Error::new(ErrorKind::Misused, text)
}
