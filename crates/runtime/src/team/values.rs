//! Collectives on single values of any type that serde can carry.
//!
//! A value travels whole, in one message. It is decoded and encoded again where it is passed on, because a
//! handle inside of it is counted each time it is sent. What they promise is said at each method; how they do
//! it is chosen in [`super::choice`].

use super::Team;
use super::choice::{Spread, broadcast_shape, reduces_serially, spread};
use super::letter::Kind;
use super::schedule::{Fold, Folding, Shape, Side, Tree, dissemination, pairwise};
use super::turn::Turn;
use crate::error::Result;
use crate::wire::{Reader, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Team {
    /// Gives every member the value of member `root`, who passes `Some`; what others pass is not looked at. It goes
    /// along the tree of short messages, as nobody else knows its length: long rows of numbers are better with
    /// [`Team::broadcast_slice`].
    ///
    /// # Errors
    /// As [`Team`] says; the root passed `None`.
    pub async fn broadcast<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        value: Option<T>,
    ) -> Result<T> {
        let turn = self.begin_at::<T>(Kind::Broadcast, root).await?;
        let shape = match spread(turn.size(), None) {
            Some(Spread::Tree { shape, .. }) => shape,
            Some(Spread::ScatterAllGather) => Shape::Binomial,
            None => broadcast_shape(turn.size(), 1),
        };
        let tree = Tree::new(shape, turn.rank(), root, turn.size());
        let value = match tree.parent() {
            Some(parent) => turn.receive(parent, 0).await?,
            None => value.ok_or_else(|| turn.misused("the root of a broadcast has no value"))?,
        };
        for child in tree.children() {
            turn.give(child, 0, &value).await?;
        }
        turn.complete(value)
    }

    /// Folds the values of all members, in the order of their ranks; member `root` gets the result, the others `None`.
    ///
    /// `operator` has to be associative; it need not commute: its left argument is of the lower ranks. It is
    /// applied in an order that depends on the size of the team only, the same one for all reductions.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn reduce<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        value: T,
        operator: impl Fn(T, T) -> T,
    ) -> Result<Option<T>> {
        let turn = self.begin_at::<T>(Kind::Reduce, root).await?;
        let folding = Folding::new(turn.size(), root);
        if reduces_serially(turn.size(), None) {
            let all = match gather_values(&turn, root, value).await? {
                Some(values) => folding.fold(values, operator),
                None => None,
            };
            return turn.complete(all);
        }
        let mut value = value;
        for step in folding.to_root(turn.rank()) {
            match step {
                Fold::Merge { from, side } => {
                    value = put(side, value, turn.receive(from, 0).await?, &operator)
                }
                Fold::Give { to } | Fold::Swap { with: to, .. } | Fold::Accept { from: to } => {
                    turn.give(to, 0, &value).await?
                }
            }
        }
        let is_root = turn.rank() == root;
        turn.complete(is_root.then_some(value))
    }

    /// As [`Team::reduce`], and every member gets the result, with the same bits.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn all_reduce<T: Serialize + DeserializeOwned>(
        &self,
        value: T,
        operator: impl Fn(T, T) -> T,
    ) -> Result<T> {
        let turn = self.begin_of::<T>(Kind::AllReduce).await?;
        let mut value = value;
        for step in Folding::new(turn.size(), 0).to_all(turn.rank()) {
            match step {
                Fold::Merge { from, side } => {
                    value = put(side, value, turn.receive(from, 0).await?, &operator)
                }
                Fold::Give { to } => turn.give(to, 0, &value).await?,
                Fold::Swap { with, side } => {
                    let other = swap_values(&turn, with, with, 0, &value).await?;
                    value = put(side, value, other, &operator);
                }
                Fold::Accept { from } => value = turn.receive(from, 0).await?,
            }
        }
        turn.complete(value)
    }

    /// Gives each member the fold of the values of all members up to itself, in the order of their ranks.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn scan<T: Serialize + DeserializeOwned>(
        &self,
        value: T,
        operator: impl Fn(T, T) -> T,
    ) -> Result<T> {
        let turn = self.begin_of::<T>(Kind::Scan).await?;
        let value = scan(&turn, value, operator).await?;
        turn.complete(value)
    }

    /// Gives each member the fold of the values of all members before itself; the first one gets `None`.
    ///
    /// The result of a member has the same bits as that of [`Team::scan`] at the member before it.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn exclusive_scan<T: Serialize + DeserializeOwned>(
        &self,
        value: T,
        operator: impl Fn(T, T) -> T,
    ) -> Result<Option<T>> {
        let turn = self.begin_of::<T>(Kind::ExclusiveScan).await?;
        let value = scan(&turn, value, operator).await?;
        if turn.rank() + 1 < turn.size() {
            turn.give(turn.rank() + 1, turn.size(), &value).await?;
        }
        let before =
            if turn.rank() > 0 { Some(turn.receive(turn.rank() - 1, turn.size()).await?) } else { None };
        turn.complete(before)
    }

    /// Collects the values of all members, by rank, at member `root`; the others get `None`.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn gather<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        value: T,
    ) -> Result<Option<Vec<T>>> {
        let turn = self.begin_at::<T>(Kind::Gather, root).await?;
        let all = gather_values(&turn, root, value).await?;
        turn.complete(all)
    }

    /// Collects the values of all members, by rank, at every member.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn all_gather<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<Vec<T>> {
        let turn = self.begin_of::<T>(Kind::AllGather).await?;
        let all = all_gather(&turn, value).await?;
        turn.complete(all)
    }

    /// Deals the values of member `root` out, by rank: one for each member. What others pass is not looked at.
    ///
    /// # Errors
    /// As [`Team`] says; the root passed `None`, or not one value for each member.
    pub async fn scatter<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        values: Option<Vec<T>>,
    ) -> Result<T> {
        let turn = self.begin_at::<T>(Kind::Scatter, root).await?;
        if turn.rank() != root {
            let value = turn.receive(root, 0).await?;
            return turn.complete(value);
        }
        let values = values.ok_or_else(|| turn.misused("the root of a scatter has no values"))?;
        check_count(&turn, values.len())?;
        let mut own = None;
        for (rank, value) in values.into_iter().enumerate() {
            if rank == root {
                own = Some(value);
            } else {
                turn.give(rank, 0, &value).await?;
            }
        }
        let own = own.ok_or_else(|| turn.misused("the root of a scatter has no value for itself"))?;
        turn.complete(own)
    }

    /// Gives member `i` value `i` of every member, by rank: the transposed matrix.
    ///
    /// # Errors
    /// As [`Team`] says; not one value for each member.
    pub async fn all_to_all<T: Serialize + DeserializeOwned>(&self, values: Vec<T>) -> Result<Vec<T>> {
        let turn = self.begin_of::<T>(Kind::AllToAll).await?;
        check_count(&turn, values.len())?;
        let mut taken: Vec<Option<T>> = values.iter().map(|_| None).collect();
        for round in pairwise(turn.rank(), turn.size()) {
            let value = &values[round.to];
            taken[round.from] = Some(swap_values(&turn, round.to, round.from, round.distance, value).await?);
        }
        taken[turn.rank()] = values.into_iter().nth(turn.rank());
        turn.complete(taken.into_iter().flatten().collect())
    }
}

/// Puts two values together in the order of the ranks.
#[inline]
fn put<T>(side: Side, own: T, other: T, operator: &impl Fn(T, T) -> T) -> T {
    match side {
        Side::Before => operator(other, own),
        Side::After => operator(own, other),
    }
}

/// Collects a value of each member, by rank, at the root.
async fn gather_values<T: Serialize + DeserializeOwned>(
    turn: &Turn<'_>,
    root: usize,
    value: T,
) -> Result<Option<Vec<T>>> {
    if turn.rank() != root {
        turn.give(root, 0, &value).await?;
        return Ok(None);
    }
    let mut own = Some(value);
    let mut all = Vec::with_capacity(turn.size());
    for rank in 0..turn.size() {
        all.push(match own.take_if(|_| rank == root) {
            Some(value) => value,
            None => turn.receive(rank, 0).await?,
        });
    }
    Ok(Some(all))
}

/// Gives one member a value and takes one from another.
#[inline]
async fn swap_values<T: Serialize + DeserializeOwned>(
    turn: &Turn<'_>,
    to: usize,
    from: usize,
    step: usize,
    value: &T,
) -> Result<T> {
    turn.swap(to, from, step, |writer| writer.put_value(value), |reader| reader.take_value()).await
}

/// Folds the values of the members up to this one, by doubled distances.
async fn scan<T: Serialize + DeserializeOwned>(
    turn: &Turn<'_>,
    value: T,
    operator: impl Fn(T, T) -> T,
) -> Result<T> {
    let mut value = value;
    for round in dissemination(turn.rank(), turn.size()) {
        if turn.rank() + round.distance < turn.size() {
            turn.give(round.to, round.distance, &value).await?;
        }
        if turn.rank() >= round.distance {
            value = operator(turn.receive(round.from, round.distance).await?, value);
        }
    }
    Ok(value)
}

/// Collects the values of all members, by rank.
pub(super) async fn all_gather<T: Serialize + DeserializeOwned>(turn: &Turn<'_>, value: T) -> Result<Vec<T>> {
    // Counted from this member on: what it knows is always the first part.
    let mut known = Vec::with_capacity(turn.size());
    known.push(value);
    for round in dissemination(turn.rank(), turn.size()) {
        // Sent down, heard from above: values of higher ranks follow those that are known.
        let wanted = round.distance.min(turn.size() - round.distance);
        let encode =
            |writer: &mut Writer<'_>| known[..wanted].iter().try_for_each(|value| writer.put_value(value));
        let read = |reader: &mut Reader<'_>| (0..wanted).map(|_| reader.take_value()).collect();
        let more: Vec<T> = turn.swap(round.from, round.to, round.distance, encode, read).await?;
        known.extend(more);
    }
    known.rotate_right(turn.rank());
    Ok(known)
}

/// Checks that there is one value for each member.
fn check_count(turn: &Turn<'_>, count: usize) -> Result<()> {
    if count == turn.size() {
        return Ok(());
    }
    Err(turn.misused(format_args!("{count} values for the {} members of the team", turn.size())))
}
