//! Halo exchange of the first and the last row of a strip with its neighbours: one-sided, two-sided, queued or served.
//!
//! Rows are sent before the inner ones are computed, and received afterwards. In the one-sided and queued methods a
//! place writes into its neighbour's window, which has room for two steps: a neighbour that is one step ahead has
//! received this place's rows, so it is never two steps ahead. The queued method imitates a put of RCKMPI: lock, data
//! and unlock, each awaited. In the served methods every second place has a strip, and the place after it performs the
//! puts of its neighbours.

use crate::strip::Strip;
use clap::ValueEnum;
use isles::prelude::*;
use isles::{Result, ServedMemory, WindowOptions};
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Halo exchange method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Each place puts its edges into windows of its neighbours
    OneSided,
    /// Each place sends its edges, and receives theirs
    TwoSided,
    /// Each place puts its edges, but puts are queued until lock, data and unlock go out, as in RCKMPI
    Queued,
    /// As one-sided, but every second place only serves the window of the one before it, in shared memory of a chip
    Served,
    /// The same with the window in the message buffer
    ServedBuffers,
}

impl Exchange {
    /// Returns the name of the method on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Exchange::OneSided => "one-sided",
            Exchange::TwoSided => "two-sided",
            Exchange::Queued => "queued",
            Exchange::Served => "served",
            Exchange::ServedBuffers => "served-buffers",
        }
    }

    /// Returns the places that have strips.
    pub fn team(self) -> Result<Team> {
        match self {
            Exchange::OneSided | Exchange::TwoSided | Exchange::Queued => Ok(Team::world()),
            Exchange::Served | Exchange::ServedBuffers => {
                Team::from_places(&places().step_by(2).collect::<Vec<_>>())
            }
        }
    }
}

/// Links to the neighbours, sent to all places.
#[derive(Clone, Serialize, Deserialize)]
pub struct Links {
    exchange: Exchange,
    team: Team,
    columns: usize,
    /// Window of each place: a row from above and one from below, for even and for odd steps.
    window: Option<Window<u8>>,
}

/// Tags of rows sent up, and of rows sent down.
const UP: u32 = 0;
const DOWN: u32 = 1;

/// A send or a receive in progress.
type Transfer<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

impl Links {
    /// Creates the links of the members of `team`; called by one of them.
    pub async fn new(team: &Team, exchange: Exchange, columns: usize) -> Result<Links> {
        let options = match exchange {
            Exchange::Queued => WindowOptions::queued(),
            Exchange::OneSided | Exchange::TwoSided => WindowOptions::default(),
            Exchange::Served => WindowOptions::served(ServedMemory::Shared),
            Exchange::ServedBuffers => WindowOptions::served(ServedMemory::Buffer),
        };
        let lens = vec![4 * columns; team.size()];
        let window = match exchange {
            Exchange::TwoSided => None,
            _ => Some(Window::with_lens(team, &lens, options).await?),
        };
        Ok(Links { exchange, team: team.clone(), columns, window })
    }

    /// Returns the places that have strips.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Runs step `step` of the strip of this place; `compute` computes the rows between its edges.
    pub async fn step(
        &self,
        step: u64,
        strip: &mut Strip,
        compute: impl FnOnce(&mut crate::strip::Inner<'_>),
    ) -> Result<()> {
        let (here, size) = (self.team.rank(), self.team.size());
        let (above, below) = ((here + size - 1) % size, (here + 1) % size);
        match &self.window {
            Some(window) => self.put(window, above, below, step, strip, compute).await?,
            None => self.send(above, below, strip, compute).await?,
        }
        // A neighbour that received only part of an edge would wait until the end of the next step.
        isles::flush_sends().await;
        strip.finish();
        Ok(())
    }

    /// Returns the offsets in a window of the row from above and of the row from below.
    fn slots(&self, step: u64) -> [usize; 2] {
        let first = 2 * (step % 2) as usize * self.columns;
        [first, first + self.columns]
    }

    async fn put(
        &self,
        window: &Window<u8>,
        above: usize,
        below: usize,
        step: u64,
        strip: &mut Strip,
        compute: impl FnOnce(&mut crate::strip::Inner<'_>),
    ) -> Result<()> {
        let [from_above, from_below] = self.slots(step);
        let (first, last, mut inner) = strip.split();
        for (target, slot, row) in [(above, from_below, first), (below, from_above, last)] {
            if self.exchange == Exchange::Queued {
                window.lock(target).await?;
                window.put_notify(target, slot, row).await?;
                window.unlock(target).await?;
            } else {
                window.put_notify(target, slot, row).await?;
            }
        }
        compute(&mut inner);
        // A single neighbour on both sides puts two rows per step.
        let rows = (step + 1) * if above == below { 2 } else { 1 };
        window.notified(above, rows).await?;
        window.notified(below, rows).await?;
        window.read(from_above, strip.row_mut(0))?;
        let row = strip.rows() + 1;
        window.read(from_below, strip.row_mut(row))
    }

    async fn send(
        &self,
        above: usize,
        below: usize,
        strip: &mut Strip,
        compute: impl FnOnce(&mut crate::strip::Inner<'_>),
    ) -> Result<()> {
        let (up, down) = (self.team.tagged(UP), self.team.tagged(DOWN));
        let (mut from_above, mut from_below) = (vec![0; self.columns], vec![0; self.columns]);
        {
            let (first, last, mut inner) = strip.split();
            let mut transfers: Vec<Transfer<'_>> = vec![
                Box::pin(down.recv_slice(above, &mut from_above)),
                Box::pin(up.recv_slice(below, &mut from_below)),
                Box::pin(up.send_slice(above, first)),
                Box::pin(down.send_slice(below, last)),
            ];
            begin(&mut transfers).await?;
            compute(&mut inner);
            poll_fn(|context| poll_all(&mut transfers, context)).await?;
        }
        strip.row_mut(0).copy_from_slice(&from_above);
        let row = strip.rows() + 1;
        strip.row_mut(row).copy_from_slice(&from_below);
        Ok(())
    }
}

/// Starts the transfers without waiting for them.
async fn begin(transfers: &mut Vec<Transfer<'_>>) -> Result<()> {
    poll_fn(|context| match poll_all(transfers, context) {
        Poll::Ready(result) => Poll::Ready(result),
        Poll::Pending => Poll::Ready(Ok(())),
    })
    .await
}

/// Polls all transfers; ready when all have ended.
fn poll_all(transfers: &mut Vec<Transfer<'_>>, context: &mut Context<'_>) -> Poll<Result<()>> {
    let mut failed = Ok(());
    transfers.retain_mut(|transfer| match transfer.as_mut().poll(context) {
        Poll::Pending => true,
        Poll::Ready(result) => {
            failed = std::mem::replace(&mut failed, Ok(())).and(result);
            false
        }
    });
    match failed {
        Err(error) => Poll::Ready(Err(error)),
        Ok(()) if transfers.is_empty() => Poll::Ready(Ok(())),
        Ok(()) => Poll::Pending,
    }
}
