//! Collectives on single values of any type that serde can carry.
//!
//! A value travels whole, in one message. A member that passes it on decodes and encodes it again, because a handle
//! inside it is counted each time it is sent. [`super::algorithms`] chooses the algorithms.

use super::Team;
use super::algorithms::{
    BroadcastAlgorithm, broadcast_tree, choose_broadcast, reduces_hierarchically, reduces_serially,
};
use super::ongoing::OngoingCollective;
use isles_protocol::team::CollectiveKind;
use isles_protocol::team::schedule::{
    RankSide, ReductionStep, ReductionTree, Shape, Tree, TreeNode, dissemination, pairwise,
};
use isles_runtime::Result;
use isles_runtime::wire::{Reader, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Team {
    /// Sends the value of member `root`, which passes `Some`, to every member; the argument of the others is ignored.
    /// It goes along the tree of short messages, because no other member knows its length: for long rows of numbers use
    /// [`Team::broadcast_slice`].
    ///
    /// # Errors
    /// As [`Team`] says; the root passed `None`.
    pub async fn broadcast<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        value: Option<T>,
    ) -> Result<T> {
        let ongoing = self.begin_at::<T>(CollectiveKind::Broadcast, root).await?;
        let of_shape = |shape| TreeNode::Flat(Tree::new(shape, ongoing.rank(), root, ongoing.size()));
        let node = match choose_broadcast(ongoing.size(), None) {
            Some(BroadcastAlgorithm::Tree { shape, .. }) => of_shape(shape),
            Some(BroadcastAlgorithm::ScatterAllGather) => of_shape(Shape::Binomial),
            None => broadcast_tree(&ongoing, root, 1),
        };
        if ongoing.rank() == root && value.is_none() {
            return Err(ongoing.misused("the root of a broadcast has no value"));
        }
        let value = broadcast_down(&ongoing, &node, 0, value).await?;
        ongoing.complete(value).await
    }

    /// Folds the values of all members, in the order of their ranks; member `root` gets the result, the others `None`.
    ///
    /// `operator` must be associative, but need not commute: its left argument comes from the lower ranks. It is
    /// applied in an order that depends only on the size of the team, and is the same for all reductions.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn reduce<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        value: T,
        operator: impl Fn(T, T) -> T,
    ) -> Result<Option<T>> {
        let ongoing = self.begin_at::<T>(CollectiveKind::Reduce, root).await?;
        let folding = ReductionTree::new(ongoing.size(), root);
        if reduces_serially(ongoing.size(), None) {
            let all = match gather_values(&ongoing, root, value).await? {
                Some(values) => folding.fold(values, operator),
                None => None,
            };
            return ongoing.complete(all).await;
        }
        let value = reduce_to_root(&ongoing, folding, value, &operator).await?;
        let is_root = ongoing.rank() == root;
        ongoing.complete(is_root.then_some(value)).await
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
        let ongoing = self.begin_of::<T>(CollectiveKind::AllReduce).await?;
        let folding = ReductionTree::new(ongoing.size(), 0);
        if reduces_hierarchically(&ongoing) {
            let value = reduce_to_root(&ongoing, folding, value, &operator).await?;
            let value = broadcast_down(&ongoing, &broadcast_tree(&ongoing, 0, 1), 1, Some(value)).await?;
            return ongoing.complete(value).await;
        }
        let mut value = value;
        for step in folding.to_all(ongoing.rank()) {
            match step {
                ReductionStep::Merge { from, side } => {
                    value = put(side, value, ongoing.receive(from, 0).await?, &operator)
                }
                ReductionStep::Send { to } => ongoing.send_value(to, 0, &value).await?,
                ReductionStep::Swap { with, side } => {
                    let other = swap_values(&ongoing, with, with, 0, &value).await?;
                    value = put(side, value, other, &operator);
                }
                ReductionStep::Receive { from } => value = ongoing.receive(from, 0).await?,
            }
        }
        ongoing.complete(value).await
    }

    /// Returns to each member the fold of the values of all members up to itself, in the order of their ranks.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn scan<T: Serialize + DeserializeOwned>(
        &self,
        value: T,
        operator: impl Fn(T, T) -> T,
    ) -> Result<T> {
        let ongoing = self.begin_of::<T>(CollectiveKind::Scan).await?;
        let value = scan(&ongoing, value, operator).await?;
        ongoing.complete(value).await
    }

    /// Returns to each member the fold of the values of all members before itself; the first one gets `None`.
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
        let ongoing = self.begin_of::<T>(CollectiveKind::ExclusiveScan).await?;
        let value = scan(&ongoing, value, operator).await?;
        if ongoing.rank() + 1 < ongoing.size() {
            ongoing.send_value(ongoing.rank() + 1, ongoing.size(), &value).await?;
        }
        let before = if ongoing.rank() > 0 {
            Some(ongoing.receive(ongoing.rank() - 1, ongoing.size()).await?)
        } else {
            None
        };
        ongoing.complete(before).await
    }

    /// Gathers the values of all members, by rank, at member `root`; the others get `None`.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn gather<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        value: T,
    ) -> Result<Option<Vec<T>>> {
        let ongoing = self.begin_at::<T>(CollectiveKind::Gather, root).await?;
        let all = gather_values(&ongoing, root, value).await?;
        ongoing.complete(all).await
    }

    /// Gathers the values of all members, by rank, at every member.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn all_gather<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<Vec<T>> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllGather).await?;
        let all = all_gather(&ongoing, value).await?;
        ongoing.complete(all).await
    }

    /// Scatters the values of member `root`, by rank, one to each member. The argument of the others is ignored.
    ///
    /// # Errors
    /// As [`Team`] says; the root passed `None`, or another number of values than members.
    pub async fn scatter<T: Serialize + DeserializeOwned>(
        &self,
        root: usize,
        values: Option<Vec<T>>,
    ) -> Result<T> {
        let ongoing = self.begin_at::<T>(CollectiveKind::Scatter, root).await?;
        if ongoing.rank() != root {
            let value = ongoing.receive(root, 0).await?;
            return ongoing.complete(value).await;
        }
        let values = values.ok_or_else(|| ongoing.misused("the root of a scatter has no values"))?;
        check_count(&ongoing, values.len())?;
        let mut own = None;
        for (rank, value) in values.into_iter().enumerate() {
            if rank == root {
                own = Some(value);
            } else {
                ongoing.send_value(rank, 0, &value).await?;
            }
        }
        let own = own.ok_or_else(|| ongoing.misused("the root of a scatter has no value for itself"))?;
        ongoing.complete(own).await
    }

    /// Sends value `i` of each member to member `i`, which gets them by rank: a matrix transposition.
    ///
    /// # Errors
    /// As [`Team`] says; there is not one value for each member.
    pub async fn all_to_all<T: Serialize + DeserializeOwned>(&self, values: Vec<T>) -> Result<Vec<T>> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllToAll).await?;
        check_count(&ongoing, values.len())?;
        let mut taken: Vec<Option<T>> = values.iter().map(|_| None).collect();
        for round in pairwise(ongoing.rank(), ongoing.size()) {
            let value = &values[round.to];
            taken[round.from] =
                Some(swap_values(&ongoing, round.to, round.from, round.distance, value).await?);
        }
        taken[ongoing.rank()] = values.into_iter().nth(ongoing.rank());
        ongoing.complete(taken.into_iter().flatten().collect()).await
    }
}

/// Combines two values in the order of the ranks.
#[inline]
fn put<T>(side: RankSide, own: T, other: T, operator: &impl Fn(T, T) -> T) -> T {
    match side {
        RankSide::Before => operator(other, own),
        RankSide::After => operator(own, other),
    }
}

/// Sends all members the value of the root of the tree in which `node` is this member.
async fn broadcast_down<T: Serialize + DeserializeOwned>(
    ongoing: &OngoingCollective<'_>,
    node: &TreeNode,
    step: usize,
    value: Option<T>,
) -> Result<T> {
    let value = match (node.parent(), value) {
        (None, Some(value)) => value,
        (Some(parent), _) => ongoing.receive(parent, step).await?,
        (None, None) => unreachable!("the root has a value"),
    };
    for child in node.children() {
        ongoing.send_value(child, step, &value).await?;
    }
    Ok(value)
}

/// Folds the values of all members at the root of the tree; the others return a partial result.
async fn reduce_to_root<T: Serialize + DeserializeOwned>(
    ongoing: &OngoingCollective<'_>,
    folding: ReductionTree,
    mut value: T,
    operator: &impl Fn(T, T) -> T,
) -> Result<T> {
    for step in folding.to_root(ongoing.rank()) {
        match step {
            ReductionStep::Merge { from, side } => {
                value = put(side, value, ongoing.receive(from, 0).await?, operator)
            }
            ReductionStep::Send { to }
            | ReductionStep::Swap { with: to, .. }
            | ReductionStep::Receive { from: to } => ongoing.send_value(to, 0, &value).await?,
        }
    }
    Ok(value)
}

/// Gathers a value of each member, by rank, at the root.
async fn gather_values<T: Serialize + DeserializeOwned>(
    ongoing: &OngoingCollective<'_>,
    root: usize,
    value: T,
) -> Result<Option<Vec<T>>> {
    if ongoing.rank() != root {
        ongoing.send_value(root, 0, &value).await?;
        return Ok(None);
    }
    let mut own = Some(value);
    let mut all = Vec::with_capacity(ongoing.size());
    for rank in 0..ongoing.size() {
        all.push(match own.take_if(|_| rank == root) {
            Some(value) => value,
            None => ongoing.receive(rank, 0).await?,
        });
    }
    Ok(Some(all))
}

/// Sends a value to one member and receives one from another.
#[inline]
async fn swap_values<T: Serialize + DeserializeOwned>(
    ongoing: &OngoingCollective<'_>,
    to: usize,
    from: usize,
    step: usize,
    value: &T,
) -> Result<T> {
    ongoing.swap(to, from, step, |writer| writer.put_value(value), |reader| reader.take_value()).await
}

/// Folds the values of the members up to this one, by doubled distances.
async fn scan<T: Serialize + DeserializeOwned>(
    ongoing: &OngoingCollective<'_>,
    value: T,
    operator: impl Fn(T, T) -> T,
) -> Result<T> {
    let mut value = value;
    for round in dissemination(ongoing.rank(), ongoing.size()) {
        if ongoing.rank() + round.distance < ongoing.size() {
            ongoing.send_value(round.to, round.distance, &value).await?;
        }
        if ongoing.rank() >= round.distance {
            value = operator(ongoing.receive(round.from, round.distance).await?, value);
        }
    }
    Ok(value)
}

/// Gathers the values of all members, by rank.
pub(super) async fn all_gather<T: Serialize + DeserializeOwned>(
    ongoing: &OngoingCollective<'_>,
    value: T,
) -> Result<Vec<T>> {
    // Counted from this member on, so that the known values always come first.
    let mut known = Vec::with_capacity(ongoing.size());
    known.push(value);
    for round in dissemination(ongoing.rank(), ongoing.size()) {
        // Sent to lower ranks, received from higher ones: their values follow the known ones.
        let wanted = round.distance.min(ongoing.size() - round.distance);
        let encode =
            |writer: &mut Writer<'_>| known[..wanted].iter().try_for_each(|value| writer.put_value(value));
        let read = |reader: &mut Reader<'_>| (0..wanted).map(|_| reader.take_value()).collect();
        let more: Vec<T> = ongoing.swap(round.from, round.to, round.distance, encode, read).await?;
        known.extend(more);
    }
    known.rotate_right(ongoing.rank());
    Ok(known)
}

/// Checks that there is one value for each member.
fn check_count(ongoing: &OngoingCollective<'_>, count: usize) -> Result<()> {
    if count == ongoing.size() {
        return Ok(());
    }
    Err(ongoing.misused(format_args!("{count} values for the {} members of the team", ongoing.size())))
}
