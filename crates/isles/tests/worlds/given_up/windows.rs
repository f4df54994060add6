//! Windows whose locks, starts, accesses and flushes are cancelled.

use super::{attempt, explained, interrupt, run_worlds};
use isles::prelude::*;
use isles::{Combine, ErrorKind, Random, Result, Strided, WindowOptions};
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// Places in a lock epoch, by target, each with whether its lock is exclusive.
    static INSIDE: RefCell<BTreeMap<usize, Vec<(usize, bool)>>> = RefCell::default();
    /// Amounts added to the numbers, by target.
    static ADDED: RefCell<BTreeMap<usize, [Amount; 2]>> = RefCell::default();
}

/// Bounds of the amount added to a number.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    least: u64,
    most: u64,
}

fn add(target: usize, number: usize, is_sure: bool) {
    ADDED.with_borrow_mut(|added| {
        let amount = &mut added.entry(target).or_default()[number];
        amount.least += u64::from(is_sure);
        amount.most += 1;
    });
}

fn enter(target: usize, is_alone: bool) {
    INSIDE.with_borrow_mut(|inside| {
        let places = inside.entry(target).or_default();
        places.push((here().index(), is_alone));
        assert!(places.len() == 1 || places.iter().all(|(_, is_alone)| !is_alone), "{places:?} at {target}");
    });
}

fn leave(target: usize) {
    let own = here().index();
    INSIDE.with_borrow_mut(|inside| inside.entry(target).or_default().retain(|(place, _)| *place != own));
}

/// Ends a lock epoch, however often the unlock is cancelled.
async fn unlock(window: &Window<u64>, random: &mut Random, target: usize) -> Result<bool> {
    let mut was_given_up = false;
    loop {
        match interrupt("services/window/sync unlock", random, window.unlock(target)).await {
            None => was_given_up = true,
            // The epoch had ended before the cancellation.
            Some(Err(error)) if was_given_up && *error.kind() == ErrorKind::Misused => return Ok(false),
            Some(ended) => return ended.map(|()| true),
        }
    }
}

/// Adds one to the first number of a locked part. Returns `None` if this was cancelled before the put, `Some(false)` if
/// the put may have happened.
async fn increment(window: &Window<u64>, random: &mut Random, target: usize) -> Result<Option<bool>> {
    let mut value = [0];
    let got = interrupt("services/window/access get", random, window.get(target, 0, &mut value)).await;
    if got.transpose()?.is_none() {
        return Ok(None);
    }
    let more = [value[0] + 1];
    let put = attempt("services/window/access put", random, window.put(target, 0, &more)).await?;
    if put.is_none() {
        add(target, 0, false);
    }
    Ok(Some(put.is_some()))
}

/// Accesses a locked part in a random way.
async fn access(window: &Window<u64>, random: &mut Random, target: usize, is_alone: bool) -> Result<()> {
    match random.below(6) {
        0 => {
            let fetched = window.fetch_add(target, 1, 1);
            let fetched = attempt("services/window/access fetch_add", random, fetched).await?;
            add(target, 1, fetched.is_some());
        }
        // Not beside others, of which a window that checks would tell.
        1 if is_alone => {
            let put = window.put_strided(target, 4, Strided { block: 1, stride: 2 }, &[7, 7]);
            attempt("services/window/access put_strided", random, put).await?;
        }
        2 if is_alone => {
            let mut two = [0; 2];
            let got = window.get_strided(target, 4, Strided { block: 1, stride: 2 }, &mut two);
            if attempt("services/window/access get_strided", random, got).await?.is_some() {
                assert!(two.iter().all(|value| [0, 7].contains(value)), "{two:?}");
            }
        }
        3 => {
            let operands = [1];
            let added = window.accumulate(target, 8, &operands, Combine::Max);
            attempt("services/window/access accumulate", random, added).await?;
        }
        4 => {
            let exchanged = window.compare_exchange(target, 9, 0, 1);
            attempt("services/window/access compare_exchange", random, exchanged).await?;
        }
        _ => {
            attempt("services/window/sync flush", random, window.flush(target)).await?;
        }
    }
    Ok(())
}

/// Lock epochs of random parts, with accesses of all kinds.
async fn lock_epochs(seed: u64, window: &Window<u64>, is_queued: bool) -> Result<()> {
    let mut random = Random::stream(seed, 10 + here().index() as u64);
    for _ in 0..1 + random.below(8) {
        let (target, is_alone) = (random.below(window.size() as u64) as usize, random.below(3) > 0);
        let locked = match is_alone {
            true => interrupt("services/window/sync lock", &mut random, window.lock(target)).await,
            false => {
                interrupt("services/window/sync lock_shared", &mut random, window.lock_shared(target)).await
            }
        };
        let Some(locked) = locked else { continue };
        locked?;
        // In the queued form, the first answer shows that the lock is granted.
        let (mut is_inside, mut puts) = (!is_queued || target == window.rank(), 0);
        if is_inside {
            enter(target, is_alone);
        }
        for _ in 0..random.below(4) {
            if !is_alone || random.below(3) > 0 {
                access(window, &mut random, target, is_alone).await?;
                continue;
            }
            let Some(is_put) = increment(window, &mut random, target).await? else { continue };
            if !std::mem::replace(&mut is_inside, true) {
                enter(target, is_alone);
            }
            puts += u32::from(is_put);
        }
        leave(target);
        let is_ended = unlock(window, &mut random, target).await?;
        // Puts that the queued form has not sent before its unlock is cancelled are discarded.
        (0..puts).for_each(|_| add(target, 0, is_ended || !is_queued));
    }
    Ok(())
}

/// Epochs of post and start round the ring of members.
async fn ring_epochs(seed: u64, window: &Window<u64>) -> Result<()> {
    let mut random = Random::stream(seed, 30 + here().index() as u64);
    let (size, rank) = (window.size(), window.rank());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    for step in 1..3 {
        window.post(&[left])?;
        loop {
            let group = [right];
            let started = window.start(&group);
            if let Some(started) = interrupt("services/window/sync start", &mut random, started).await {
                break started?;
            }
            let misused = window.complete().await.expect_err("nothing has started");
            assert_eq!(*misused.kind(), ErrorKind::Misused);
        }
        window.put(right, 2, &[step * 100 + rank as u64]).await?;
        let mut was_given_up = false;
        loop {
            match interrupt("services/window/sync complete", &mut random, window.complete()).await {
                None => was_given_up = true,
                Some(Err(error)) if was_given_up && *error.kind() == ErrorKind::Misused => break,
                Some(completed) => break completed?,
            }
        }
        loop {
            if let Some(waited) = interrupt("services/window/sync wait", &mut random, window.wait()).await {
                break waited?;
            }
        }
        let mut value = [0];
        window.read(2, &mut value)?;
        assert_eq!(value, [step * 100 + left as u64]);
    }
    Ok(())
}

/// Puts with a notice in a fence epoch; then a fence, which either succeeds for all, or fails from then on.
async fn fence_epochs(seed: u64, window: &Window<u64>) -> Result<()> {
    let mut random = Random::stream(seed, 50 + here().index() as u64);
    let (size, rank) = (window.size(), window.rank());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let data = [rank as u64];
    let put = window.put_notify(right, 3, &data);
    attempt("services/window/access put_notify", &mut random, put).await?;
    window.put_notify(right, 3, &data).await?;
    window.flush(right).await?;
    loop {
        let notified = window.notified(left, 1);
        if let Some(notified) = interrupt("services/window/sync notified", &mut random, notified).await {
            break notified?;
        }
    }
    for _ in 0..3 {
        // One that was given up before it had begun is the next one.
        let fenced = loop {
            if let Some(fenced) = interrupt("services/window/sync fence", &mut random, window.fence()).await {
                break fenced;
            }
        };
        if explained(fenced)?.is_none() {
            break;
        }
    }
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    INSIDE.take();
    ADDED.take();
    let mut random = Random::stream(seed, 0);
    attempt("services/window/mod new", &mut random, Window::<u64>::new(3)).await?;
    let team = Team::world();
    attempt("services/window/mod new_on", &mut random, Window::<u64>::new_on(&team, 3)).await?;
    let lens = vec![10; place_count()];
    let options = match random.below(3) {
        0 => WindowOptions::queued(),
        1 => WindowOptions::checked(),
        _ => WindowOptions::default(),
    };
    let made = Window::<u64>::with_lens(&team, &lens, options);
    let window = match interrupt("services/window/mod with_lens", &mut random, made).await {
        Some(window) => window?,
        None => Window::with_lens(&team, &lens, options).await?,
    };
    let is_queued = options.queued;
    everywhere!(lock_epochs(seed, &window, is_queued).await?).await?;
    for (target, amounts) in ADDED.take() {
        let mut values = [0; 2];
        window.lock(target).await?;
        window.get(target, 0, &mut values).await?;
        window.unlock(target).await?;
        for (value, Amount { least, most }) in values.into_iter().zip(amounts) {
            assert!((least..=most).contains(&value), "{value} of {least} to {most} at {target}");
        }
    }
    everywhere!(ring_epochs(seed, &window).await?).await?;
    let window = Window::with_lens(&team, &lens, options).await?;
    everywhere!(fence_epochs(seed, &window).await?).await.map(drop)
}

#[test]
fn locks_exclude_each_other_and_nobody_waits_for_ever() {
    run_worlds("windows", program);
}
