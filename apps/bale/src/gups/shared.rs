//! The table in a window that every place updates: atomically, in two steps without a lock, or in two steps under a
//! lock.
//!
//! It reproduces table 2 of the paper (`isles repro gups`): the cost of locks that prevent lost updates. A lock is a
//! word of a second window, like a mutex in memory: the place that changes it from 0 holds it. Invariant: the changes
//! of a holder are complete before the next one gets the lock.

use super::{CHECK, GupsFound, GupsPlan, Mode, UPDATES, generator};
use isles::prelude::*;
use isles::{Combine, WindowOptions};
use isles_app::frame::{WorkDistributor, WorkDone, add_done};

/// Distance between the locks of a place in words: each has its own cache line.
const LOCK_WORDS: usize = 8;

/// Runs all updates in a window, and counts wrong entries if requested.
pub(super) async fn compute(
    plan: GupsPlan,
    mode: Mode,
    locks: u32,
    no_check: bool,
    distributor: &WorkDistributor,
) -> isles::Result<(GupsFound, WorkDone)> {
    let lens: Vec<usize> = (0..place_count() as u64).map(|owner| plan.blocks.range(owner).count()).collect();
    let table = Window::with_lens(&Team::world(), &lens, WindowOptions::default()).await?;
    let locks = TableLocks::new(if mode == Mode::Locks { locks } else { 0 }).await?;
    everywhere!([plan, table] {
        let own: Vec<u64> = plan.blocks.range(here().index() as u64).collect();
        table.write(0, &own)
    })
    .await?;
    distributor.begin_phase(UPDATES);
    let begun = now();
    everywhere!([plan, table, mode, locks] change_own(plan, &table, mode, &locks).await?).await?;
    let seconds = (now() - begun).as_secs_f64();
    let mut errors = None;
    if !no_check {
        distributor.begin_phase(CHECK);
        let wrong = everywhere!([plan, table, locks] {
            change_own(plan, &table, Mode::Atomic, &locks).await?;
            let range = plan.blocks.range(here().index() as u64);
            let mut own = vec![0; range.clone().count()];
            table.read(0, &mut own)?;
            own.into_iter().zip(range).filter(|(entry, index)| entry != index).count() as u64
        })
        .await?;
        errors = Some(wrong.iter().sum());
    }
    let gups = plan.updates as f64 / seconds / 1e9;
    let found = GupsFound {
        updates: plan.updates,
        errors,
        gups,
        steady_gups: gups,
        bucket: 1,
        hops: 0,
        buckets: 0,
        entries: plan.blocks.size(),
    };
    Ok((found, WorkDone { seconds, ..WorkDone::default() }))
}

/// Runs the updates of this place in the window, and waits for all places.
async fn change_own(
    plan: GupsPlan,
    table: &Window<u64>,
    mode: Mode,
    locks: &TableLocks,
) -> isles::Result<()> {
    let own = plan.own_updates(here().index() as u64);
    let mask = plan.blocks.size() - 1;
    let mut number = generator::start((plan.begin + own.start) as i64);
    for index in own {
        number = generator::next(number);
        let owner = plan.blocks.owner(number & mask);
        let (target, at) = (owner as usize, ((number & mask) - plan.blocks.first(owner)) as usize);
        match mode {
            Mode::Atomic => table.accumulate(target, at, &[number], Combine::Xor).await?,
            Mode::Locks => {
                let lock = locks.take(number & mask).await?;
                change(table, target, at, number).await?;
                // The change is complete before the next holder gets the lock.
                table.flush(target).await?;
                locks.release(lock).await?;
            }
            _ => change(table, target, at, number).await?,
        }
        if index % 4096 == 4095 {
            add_done(4096);
        }
    }
    Team::world().barrier().await?;
    table.fence().await
}

/// Changes an entry in two steps.
async fn change(table: &Window<u64>, target: usize, at: usize, number: u64) -> isles::Result<()> {
    let mut entry = [0];
    table.get(target, at, &mut entry).await?;
    table.put(target, at, &[entry[0] ^ number]).await
}

/// Locks of the table; entries are assigned to them round robin by index.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct TableLocks {
    /// 0 if the lock is free, else the rank of its holder plus 1.
    words: Window<u64>,
    count: u64,
}

/// A lock held by this place, and the position of its word.
struct HeldLock {
    target: usize,
    at: usize,
}

impl TableLocks {
    async fn new(count: u32) -> isles::Result<TableLocks> {
        let of_place = (count as usize).div_ceil(place_count());
        let words = Window::new(of_place * LOCK_WORDS).await?;
        Ok(TableLocks { words, count: u64::from(count) })
    }

    /// Acquires the lock of entry `index`.
    async fn take(&self, index: u64) -> isles::Result<HeldLock> {
        let (number, size) = ((index % self.count) as usize, self.words.size());
        let taken = HeldLock { target: number % size, at: number / size * LOCK_WORDS };
        let own = self.words.rank() as u64 + 1;
        loop {
            match self.words.compare_exchange(taken.target, taken.at, 0, own).await? {
                0 => return Ok(taken),
                // A dead holder never releases it.
                holder => self.words.flush(holder as usize - 1).await?,
            }
            yield_now().await;
        }
    }

    async fn release(&self, lock: HeldLock) -> isles::Result<()> {
        let own = self.words.rank() as u64 + 1;
        self.words.compare_exchange(lock.target, lock.at, own, 0).await.map(drop)
    }
}
