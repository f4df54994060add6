//! A random program over a window, compared with a sequential model; `windows` runs many of them.
//!
//! In each phase, every block of elements belongs either to one place, which alone puts, gets and exchanges there, or
//! to all places, which add. So a sequential model, one place after the other, has the same result as any order. The
//! seed determines the operations of each place, and every place computes the model itself.

use isles::prelude::*;
use isles::{Combine, Random, Result, Strided, WindowNumber, WindowOptions};

/// Elements of a block.
const BLOCK: usize = 4;

/// An element type of the programs.
pub trait Element: WindowNumber + PartialEq + std::fmt::Debug + 'static {
    /// An element from a small number.
    fn of(number: u64) -> Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
}

macro_rules! elements {
    ($($number:ty, $plus:expr;)*) => {$(
        impl Element for $number {
            fn of(number: u64) -> Self {
                number as $number
            }
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    )*};
}
elements! {
    u8, u8::wrapping_add;
    u16, u16::wrapping_add;
    u32, u32::wrapping_add;
    u64, u64::wrapping_add;
    f64, |one, other| one + other;
}

/// Synchronization of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Fence,
    Start,
    Lock,
    Notify,
}

/// Operation of a place on the part of `target`.
#[derive(Clone, Debug)]
struct Step {
    target: usize,
    at: usize,
    what: What,
    /// Values and what they begin with.
    first: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Put,
    /// A put of several blocks.
    PutStrided,
    Get,
    GetStrided,
    Exchange,
    Add,
    Accumulate,
}

/// The dimensions of a program.
struct Shape {
    seed: u64,
    lens: Vec<usize>,
    phases: u64,
}

impl Shape {
    fn places(&self) -> usize {
        self.lens.len()
    }

    /// From the first element of a block to that of the next of the same owner.
    fn stride(&self) -> usize {
        BLOCK * (self.places() + 1)
    }

    /// The first element of the blocks of `owner` at `target`; of all, if there is no such place.
    fn first_of(&self, phase: u64, target: usize, owner: usize) -> usize {
        (owner + target + phase as usize) % (self.places() + 1) * BLOCK
    }

    /// Returns the operations of `place` in `phase`.
    fn steps(&self, phase: u64, place: usize) -> Vec<Step> {
        let mut random = Random::stream(self.seed, (phase << 16) + place as u64 + 1);
        let count = random.below(8);
        (0..count).filter_map(|_| self.step(phase, place, &mut random)).collect()
    }

    fn step(&self, phase: u64, place: usize, random: &mut Random) -> Option<Step> {
        let target = random.below(self.places() as u64) as usize;
        let kinds = [What::Put, What::PutStrided, What::Get, What::GetStrided, What::Exchange, What::Add];
        let what = *kinds.get(random.below(7) as usize).unwrap_or(&What::Accumulate);
        let owner = if matches!(what, What::Add | What::Accumulate) { self.places() } else { place };
        let first = self.first_of(phase, target, owner);
        let blocks = self.lens[target].saturating_sub(first).div_ceil(self.stride());
        let (skip, within) = (random.below(16) as usize, random.below(BLOCK as u64) as usize);
        let (len, value) = (random.below(BLOCK as u64) as usize + 1, random.below(200));
        if blocks == 0 {
            return None;
        }
        let at = first + skip % blocks * self.stride();
        if matches!(what, What::PutStrided | What::GetStrided) {
            let whole = self.lens[target].saturating_sub(at + BLOCK - 1).div_ceil(self.stride());
            return (whole > 0).then_some(Step { target, at, what, first: value, len: whole * BLOCK });
        }
        let at = at + within;
        let len = len.min(BLOCK - within).min(self.lens[target].saturating_sub(at));
        (len > 0).then_some(Step { target, at, what, first: value, len })
    }
}

/// The values of a step.
fn values<T: Element>(step: &Step) -> Vec<T> {
    (0..step.len as u64).map(|index| T::of((step.first + index) % 251)).collect()
}

/// Does a step in the model; returns what a get or a fetch sees, if only this place knows.
fn model_step<T: Element>(shape: &Shape, step: &Step, parts: &mut [Vec<T>]) -> Option<Vec<T>> {
    let part = &mut parts[step.target];
    let stride = shape.stride();
    let strided = |index: usize| step.at + index / BLOCK * stride + index % BLOCK;
    let values = values::<T>(step);
    match step.what {
        What::Put => part[step.at..step.at + step.len].copy_from_slice(&values),
        What::PutStrided => {
            values.iter().enumerate().for_each(|(index, value)| part[strided(index)] = *value)
        }
        What::Get => return Some(part[step.at..step.at + step.len].to_vec()),
        What::GetStrided => return Some((0..step.len).map(|index| part[strided(index)]).collect()),
        What::Exchange => {
            let before = part[step.at];
            if before == T::of(step.first / 2) || step.first.is_multiple_of(3) {
                part[step.at] = values[0];
            }
            return Some(vec![before]);
        }
        What::Add => part[step.at] = part[step.at].plus(values[0]),
        What::Accumulate => {
            let elements = part[step.at..step.at + step.len].iter_mut();
            elements.zip(values).for_each(|(element, value)| *element = element.plus(value));
        }
    }
    None
}

/// Does a step at the window; returns what it sees, as [`model_step`].
async fn window_step<T: Element>(
    shape: &Shape,
    step: &Step,
    window: &Window<T>,
    expected: Option<&Vec<T>>,
    notifies: bool,
) -> Result<Option<Vec<T>>> {
    let pieces = Strided { block: BLOCK, stride: shape.stride() };
    let (target, at) = (step.target, step.at);
    let values = values::<T>(step);
    match step.what {
        What::Put if notifies => window.put_notify(target, at, &values).await?,
        What::Put => window.put(target, at, &values).await?,
        What::PutStrided => window.put_strided(target, at, pieces, &values).await?,
        What::Get | What::GetStrided => {
            let mut seen = vec![T::of(0); step.len];
            match step.what {
                What::Get => window.get(target, at, &mut seen).await?,
                _ => window.get_strided(target, at, pieces, &mut seen).await?,
            }
            return Ok(Some(seen));
        }
        What::Exchange => {
            // The present value is known, so a third of the exchanges certainly happen.
            let known = expected.map_or(T::of(0), |expected| expected[0]);
            let wanted = if step.first.is_multiple_of(3) { known } else { T::of(step.first / 2) };
            return Ok(Some(vec![window.compare_exchange(target, at, wanted, values[0]).await?]));
        }
        What::Add => _ = window.fetch_add(target, at, values[0]).await?,
        What::Accumulate => window.accumulate(target, at, &values, Combine::Sum).await?,
    }
    Ok(None)
}

/// Runs one place's share of a phase.
async fn phase<T: Element>(
    shape: &Shape,
    number: u64,
    kind: Phase,
    (window, team): (&Window<T>, &Team),
    parts: &mut [Vec<T>],
    notices: &mut [u64],
) -> Result<()> {
    let (here, all) = (window.rank(), (0..shape.places()).collect::<Vec<_>>());
    let mut steps = Vec::new();
    for (place, notices) in notices.iter_mut().enumerate() {
        for step in shape.steps(number, place) {
            let seen = model_step(shape, &step, parts);
            if kind == Phase::Notify && step.what == What::Put && step.target == here {
                *notices += 1;
            }
            if place == here {
                steps.push((step, seen));
            }
        }
    }
    if kind == Phase::Start {
        window.post(&all)?;
        window.start(&all).await?;
    }
    for (step, expected) in &steps {
        let (seed, target) = (shape.seed, step.target);
        let is_alone = step.first.is_multiple_of(2);
        match kind {
            Phase::Lock if is_alone => window.lock(target).await?,
            Phase::Lock => window.lock_shared(target).await?,
            _ => {}
        }
        let seen = window_step(shape, step, window, expected.as_ref(), kind == Phase::Notify).await?;
        assert_eq!(&seen, expected, "seed {seed}, phase {number} ({kind:?}), rank {here}: {step:?}");
        match kind {
            Phase::Lock => window.unlock(target).await?,
            _ if step.first.is_multiple_of(5) => window.flush(target).await?,
            _ => {}
        }
    }
    match kind {
        Phase::Fence | Phase::Notify => window.fence().await?,
        Phase::Start => {
            window.complete().await?;
            window.wait().await?;
        }
        Phase::Lock => team.barrier().await?,
    }
    for (from, count) in notices.iter().enumerate() {
        window.notified(from, *count).await?;
    }
    let mut own = vec![T::of(0); window.len_of(here)];
    window.read(0, &mut own)?;
    let seed = shape.seed;
    assert_eq!(own, parts[here], "seed {seed}, the part of rank {here} after phase {number} ({kind:?})");
    // Nobody writes before all have looked.
    if matches!(kind, Phase::Start | Phase::Lock) { team.barrier().await } else { window.fence().await }
}

/// Runs one place's share of a program.
async fn member<T: Element>(shape: &Shape, window: &Window<T>, team: &Team) -> Result<()> {
    let mut parts: Vec<Vec<T>> = shape.lens.iter().map(|len| vec![T::of(0); *len]).collect();
    let mut notices = vec![0; shape.places()];
    for number in 0..shape.phases {
        let kinds = [Phase::Fence, Phase::Start, Phase::Lock, Phase::Notify];
        let kind = kinds[Random::stream(shape.seed, number << 16).below(4) as usize];
        if matches!(kind, Phase::Fence | Phase::Notify) {
            window.fence().await?;
        }
        phase(shape, number, kind, (window, team), &mut parts, &mut notices).await?;
    }
    Ok(())
}

async fn program<T: Element>(seed: u64, team: &Team, options: WindowOptions) -> Result<()> {
    let mut random = Random::stream(seed, 0);
    let lens: Vec<usize> = (0..team.size())
        .map(|_| [0, 3, 40, 150][random.below(4) as usize] + random.below(5) as usize)
        .collect();
    let phases = 1 + random.below(4);
    let window = Window::<T>::with_lens(team, &lens, options).await?;
    finish(async {
        for rank in 0..team.size() {
            spawn_at!(window.place_of(rank), [lens, window, team = team.clone(), phases, seed] {
                let shape = Shape { seed, lens: lens.clone(), phases };
                member(&shape, &window, &team).await?;
            });
        }
    })
    .await
}

/// Runs the program of `seed` at all places, and compares everything that it sees with the sequential model.
pub async fn round(seed: u64) -> Result<()> {
    let options = match seed % 6 {
        1 => WindowOptions::queued(),
        2 => WindowOptions::checked(),
        _ => WindowOptions::default(),
    };
    round_on(seed, &Team::world(), options).await
}

/// As [`round`], at the members of `team`, with a window of these options.
pub async fn round_on(seed: u64, team: &Team, options: WindowOptions) -> Result<()> {
    match seed / 6 % 5 {
        0 => program::<u64>(seed, team, options).await,
        1 => program::<u16>(seed, team, options).await,
        2 => program::<f64>(seed, team, options).await,
        3 => program::<u32>(seed, team, options).await,
        _ => program::<u8>(seed, team, options).await,
    }
}
