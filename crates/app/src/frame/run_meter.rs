//! The work of each place of a run, recorded at that place.
//!
//! It does not depend on the distribution: a kernel may assign the work itself, or use `work_units`. Invariant: the
//! work of each place is not part of the answer.

use super::work_units::{PlaceWork, WorkDone};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Counts the steps of each place and the time that they take. Bodies that travel capture it.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunMeter {
    shares: PlaceLocal<PlaceWork>,
    reports_shares: bool,
}

impl RunMeter {
    /// If it `reports_shares`, [`RunMeter::done`] returns the work of each place.
    pub(super) async fn new(reports_shares: bool) -> isles::Result<RunMeter> {
        Ok(RunMeter { shares: PlaceLocal::new(PlaceWork::default).await?, reports_shares })
    }

    /// Returns the work of each place so far.
    pub(super) fn shares(&self) -> &PlaceLocal<PlaceWork> {
        &self.shares
    }

    /// Returns `true` if a run reports the work of each place.
    pub(super) fn reports_shares(&self) -> bool {
        self.reports_shares
    }

    /// Counts a step of this place from `started` until now.
    pub fn add_done(&self, started: Instant) {
        self.shares.lock().add_part(started, true);
    }

    /// Returns the work of the places since `started`, a time of [`now`].
    ///
    /// # Errors
    /// A place has died.
    pub async fn done(&self, started: Duration) -> isles::Result<WorkDone> {
        let seconds = (now() - started).as_secs_f64();
        let mut shares = Vec::new();
        for place in places().filter(|_| self.reports_shares) {
            shares.push(at!(place, *self.shares.lock()).await?);
        }
        Ok(WorkDone { seconds, shares, balance: None })
    }
}
