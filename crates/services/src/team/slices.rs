//! Collectives on slices of plain elements that every member has: broadcast, reductions, scans.
//!
//! Elements travel as they lie in memory, in chunks, which the sender writes where the receiver reads them; the sender
//! writes the next chunk meanwhile. Operators work element by element, straight from the arrived memory. Slices that
//! are scattered or gathered are in [`super::rows`].
//!
//! Invariant: all members pass slices of the same length. Each message carries the length, so a difference is an error.

use super::Team;
use super::algorithms::{
    BroadcastAlgorithm, SWAP_BYTES_MAX, broadcast_tree, choose_broadcast, chunk_len, reduces_hierarchically,
    reduces_serially,
};
use super::ongoing::OngoingCollective;
use super::rows;
use isles_protocol::team::CollectiveKind;
use isles_protocol::team::schedule::{
    Chunks, HalvingRound, RankSide, ReductionStep, ReductionTree, Tree, TreeNode, dissemination,
};
use isles_runtime::Result;
use isles_runtime::capture::Element;
use std::ops::Range;

impl Team {
    /// Copies the slice of member `root` into those of all others.
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length.
    pub async fn broadcast_slice<T: Element>(&self, root: usize, slice: &mut [T]) -> Result<()> {
        let ongoing = self.begin_at::<T>(CollectiveKind::BroadcastSlice, root).await?;
        let (bytes, mut chunks) = byte_chunks(slice);
        let node = match choose_broadcast(ongoing.size(), Some(bytes)) {
            Some(BroadcastAlgorithm::Tree { shape, chunk_bytes }) => {
                chunks = Chunks::new(slice.len(), (chunk_bytes / size_of::<T>().max(1)).max(1));
                TreeNode::Flat(Tree::new(shape, ongoing.rank(), root, ongoing.size()))
            }
            Some(BroadcastAlgorithm::ScatterAllGather) => {
                rows::scatter_all_gather(&ongoing, root, slice).await?;
                return ongoing.complete(()).await;
            }
            None => broadcast_tree(&ongoing, root, chunks.count()),
        };
        broadcast_down(&ongoing, &node, 0, slice, chunks).await?;
        ongoing.complete(()).await
    }

    /// Folds the slices of all members, element by element, into that of member `root`; the other slices do not change.
    ///
    /// For the operator and the order see [`Team::reduce`].
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length.
    pub async fn reduce_slice<T: Element>(
        &self,
        root: usize,
        slice: &mut [T],
        operator: impl Fn(T, T) -> T,
    ) -> Result<()> {
        let ongoing = self.begin_at::<T>(CollectiveKind::ReduceSlice, root).await?;
        let folding = ReductionTree::new(ongoing.size(), root);
        let chunks = byte_chunks(slice).1;
        if reduces_serially(ongoing.size(), Some(size_of_val(slice))) {
            serially(&ongoing, root, folding, slice, chunks, &operator).await?;
            return ongoing.complete(()).await;
        }
        let merges = folding.to_root(ongoing.rank()).any(|step| matches!(step, ReductionStep::Merge { .. }));
        let is_copied = merges && ongoing.rank() != root;
        let mut copy = Vec::new();
        for index in 0..chunks.count() {
            let own = &mut slice[chunks.range(index)];
            let own = if is_copied {
                copy.clear();
                copy.extend_from_slice(own);
                &mut copy
            } else {
                own
            };
            for step in folding.to_root(ongoing.rank()) {
                fold_chunk(&ongoing, step, chunks, index, own, &operator).await?;
            }
        }
        settle::<T>(&ongoing, folding.to_root(ongoing.rank()), chunks).await?;
        ongoing.complete(()).await
    }

    /// As [`Team::reduce_slice`], and every member gets the result, with the same bits.
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length.
    pub async fn all_reduce_slice<T: Element>(
        &self,
        slice: &mut [T],
        operator: impl Fn(T, T) -> T,
    ) -> Result<()> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllReduceSlice).await?;
        let folding = ReductionTree::new(ongoing.size(), 0);
        if size_of_val(slice) <= SWAP_BYTES_MAX {
            let chunks = Chunks::new(slice.len(), slice.len().max(1));
            if reduces_hierarchically(&ongoing) {
                for step in folding.to_root(ongoing.rank()) {
                    fold_chunk(&ongoing, step, chunks, 0, slice, &operator).await?;
                }
                broadcast_down(&ongoing, &broadcast_tree(&ongoing, 0, 1), 1, slice, chunks).await?;
                return ongoing.complete(()).await;
            }
            for step in folding.to_all(ongoing.rank()) {
                fold_chunk(&ongoing, step, chunks, 0, slice, &operator).await?;
            }
            return ongoing.complete(()).await;
        }
        transfer(&ongoing, folding.pair(ongoing.rank()), slice, &operator).await?;
        if folding.stays(ongoing.rank()) {
            recursive_halving(&ongoing, folding.halving(ongoing.rank(), slice.len()), slice, &operator)
                .await?;
        }
        transfer(&ongoing, folding.unpair(ongoing.rank()), slice, &operator).await?;
        ongoing.complete(()).await
    }

    /// Folds the slices of all members before it into the slice of each member, element by element.
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length.
    pub async fn scan_slice<T: Element>(&self, slice: &mut [T], operator: impl Fn(T, T) -> T) -> Result<()> {
        let ongoing = self.begin_of::<T>(CollectiveKind::ScanSlice).await?;
        scan(&ongoing, slice, &operator).await?;
        ongoing.complete(()).await
    }

    /// Replaces the slice of each member by the fold of those of all members before it, element by element.
    ///
    /// The slice of the first member does not change.
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length.
    pub async fn exclusive_scan_slice<T: Element>(
        &self,
        slice: &mut [T],
        operator: impl Fn(T, T) -> T,
    ) -> Result<()> {
        let ongoing = self.begin_of::<T>(CollectiveKind::ExclusiveScanSlice).await?;
        let mut up_to_here = slice.to_vec();
        scan(&ongoing, &mut up_to_here, &operator).await?;
        let (bytes, chunks) = byte_chunks(slice);
        let next = (ongoing.rank() + 1 < ongoing.size()).then_some(ongoing.rank() + 1);
        for index in 0..chunks.count() {
            let range = chunks.range(index);
            if let Some(next) = next {
                ongoing.push(next, index, bytes, bytemuck::cast_slice(&up_to_here[range.clone()])).await?;
            }
            if ongoing.rank() > 0 {
                let arrival = ongoing
                    .pull(ongoing.rank() - 1, index, bytes, size_of_val(&slice[range.clone()]))
                    .await?;
                bytemuck::cast_slice_mut(&mut slice[range]).copy_from_slice(arrival.chunk());
                ongoing.release_chunk(ongoing.rank() - 1, arrival, bytes)?;
            }
        }
        if let Some(next) = next {
            ongoing.settle(next, bytes, chunks).await?;
        }
        ongoing.complete(()).await
    }
}

/// Returns the length in bytes of a slice that all members pass, and its chunks.
fn byte_chunks<T>(slice: &[T]) -> (usize, Chunks) {
    (size_of_val(slice), Chunks::new(slice.len(), chunk_len(slice.len(), size_of::<T>())))
}

/// Sends all members the slice of the root of the tree in which `node` is this member; steps are counted from `first`.
#[inline]
async fn broadcast_down<T: Element>(
    ongoing: &OngoingCollective<'_>,
    node: &TreeNode,
    first: usize,
    slice: &mut [T],
    chunks: Chunks,
) -> Result<()> {
    let bytes = size_of_val(slice);
    for index in 0..chunks.count() {
        let chunk = &mut slice[chunks.range(index)];
        if let Some(parent) = node.parent() {
            ongoing.pull_into(parent, first + index, bytes, bytemuck::cast_slice_mut(chunk)).await?;
        }
        ongoing.push_to_all(node.children(), first + index, bytes, bytemuck::cast_slice(chunk)).await?;
    }
    for child in node.children() {
        ongoing.settle(child, bytes, chunks).await?;
    }
    Ok(())
}

/// Does one step of a reduction with one chunk.
#[inline]
async fn fold_chunk<T: Element>(
    ongoing: &OngoingCollective<'_>,
    step: ReductionStep,
    chunks: Chunks,
    index: usize,
    own: &mut [T],
    operator: &impl Fn(T, T) -> T,
) -> Result<()> {
    let bytes = chunks.elements() * size_of::<T>();
    match step {
        ReductionStep::Send { to } => ongoing.push(to, index, bytes, bytemuck::cast_slice(own)).await,
        ReductionStep::Merge { from, side } => {
            let arrival = ongoing.pull(from, index, bytes, size_of_val(own)).await?;
            merge(side, own, arrival.chunk(), operator);
            ongoing.release_chunk(from, arrival, bytes)
        }
        ReductionStep::Swap { with, side } => {
            ongoing.send_chunk(with, index, bytes, bytemuck::cast_slice(own))?;
            let arrival = ongoing.pull(with, index, bytes, size_of_val(own)).await?;
            merge(side, own, arrival.chunk(), operator);
            Ok(())
        }
        ReductionStep::Receive { from } => {
            ongoing.pull_into(from, index, bytes, bytemuck::cast_slice_mut(own)).await
        }
    }
}

/// Folds the slices of all members at the root alone, along the same tree as otherwise.
async fn serially<T: Element>(
    ongoing: &OngoingCollective<'_>,
    root: usize,
    folding: ReductionTree,
    slice: &mut [T],
    chunks: Chunks,
    operator: &impl Fn(T, T) -> T,
) -> Result<()> {
    let bytes = size_of_val(slice);
    for index in 0..chunks.count() {
        let own = &mut slice[chunks.range(index)];
        if ongoing.rank() != root {
            ongoing.push(root, index, bytes, bytemuck::cast_slice(own)).await?;
            continue;
        }
        let mut all: Vec<Vec<T>> = Vec::with_capacity(ongoing.size());
        for from in 0..ongoing.size() {
            let mut part = own.to_vec();
            if from != root {
                ongoing.pull_into(from, index, bytes, bytemuck::cast_slice_mut(&mut part)).await?;
            }
            all.push(part);
        }
        let fold = |mut left: Vec<T>, right: Vec<T>| {
            left.iter_mut().zip(right).for_each(|(left, right)| *left = operator(*left, right));
            left
        };
        if let Some(result) = folding.fold(all, fold) {
            own.copy_from_slice(&result);
        }
    }
    if ongoing.rank() != root {
        ongoing.settle(root, bytes, chunks).await?;
    }
    Ok(())
}

/// Does one step of a reduction with all chunks of a slice.
async fn transfer<T: Element>(
    ongoing: &OngoingCollective<'_>,
    step: Option<ReductionStep>,
    slice: &mut [T],
    operator: &impl Fn(T, T) -> T,
) -> Result<()> {
    let Some(step) = step else { return Ok(()) };
    let chunks = byte_chunks(slice).1;
    for index in 0..chunks.count() {
        fold_chunk(ongoing, step, chunks, index, &mut slice[chunks.range(index)], operator).await?;
    }
    settle::<T>(ongoing, std::iter::once(step), chunks).await
}

/// Waits until everything that was sent in `steps` is received.
async fn settle<T>(
    ongoing: &OngoingCollective<'_>,
    steps: impl Iterator<Item = ReductionStep>,
    chunks: Chunks,
) -> Result<()> {
    for step in steps {
        if let ReductionStep::Send { to } = step {
            ongoing.settle(to, chunks.elements() * size_of::<T>(), chunks).await?;
        }
    }
    Ok(())
}

/// Reduces a vector to all members: each round halves the range that a member is responsible for; then the way back.
async fn recursive_halving<T: Element>(
    ongoing: &OngoingCollective<'_>,
    rounds: impl DoubleEndedIterator<Item = HalvingRound>,
    slice: &mut [T],
    operator: &impl Fn(T, T) -> T,
) -> Result<()> {
    let rounds: Vec<HalvingRound> = rounds.collect();
    for HalvingRound { with, side, kept, given } in rounds.iter().cloned() {
        let fold = |own: &mut [T], other: &[u8]| merge(side, own, other, operator);
        swap(ongoing, with, slice, given, kept, fold).await?;
    }
    for HalvingRound { with, kept, given, .. } in rounds.into_iter().rev() {
        let copy = |own: &mut [T], other: &[u8]| bytemuck::cast_slice_mut(own).copy_from_slice(other);
        swap(ongoing, with, slice, kept, given, copy).await?;
    }
    Ok(())
}

/// Sends one range of a slice to another member and receives another range from it, chunk by chunk.
async fn swap<T: Element>(
    ongoing: &OngoingCollective<'_>,
    with: usize,
    slice: &mut [T],
    given: Range<usize>,
    wanted: Range<usize>,
    take: impl Fn(&mut [T], &[u8]),
) -> Result<()> {
    let bytes = size_of_val(slice);
    let (out, into) = (&byte_chunks(&slice[given.clone()]).1, &byte_chunks(&slice[wanted.clone()]).1);
    for index in 0..out.count().max(into.count()) {
        if index < out.count() {
            let chunk = &slice[given.clone()][out.range(index)];
            ongoing.send_chunk(with, index, bytes, bytemuck::cast_slice(chunk))?;
        }
        if index < into.count() {
            let own = &mut slice[wanted.clone()][into.range(index)];
            let arrival = ongoing.pull(with, index, bytes, size_of_val(own)).await?;
            take(own, arrival.chunk());
        }
    }
    Ok(())
}

/// Folds the slices of the members up to this one into its own, by doubled distances.
async fn scan<T: Element>(
    ongoing: &OngoingCollective<'_>,
    slice: &mut [T],
    operator: &impl Fn(T, T) -> T,
) -> Result<()> {
    let (bytes, chunks) = byte_chunks(slice);
    let above = |distance: usize| ongoing.rank() + distance < ongoing.size();
    for index in 0..chunks.count() {
        let own = &mut slice[chunks.range(index)];
        for round in dissemination(ongoing.rank(), ongoing.size()) {
            if above(round.distance) {
                ongoing.push(round.to, index, bytes, bytemuck::cast_slice(own)).await?;
            }
            if ongoing.rank() >= round.distance {
                let arrival = ongoing.pull(round.from, index, bytes, size_of_val(own)).await?;
                merge(RankSide::Before, own, arrival.chunk(), operator);
                ongoing.release_chunk(round.from, arrival, bytes)?;
            }
        }
    }
    for round in dissemination(ongoing.rank(), ongoing.size()).filter(|round| above(round.distance)) {
        ongoing.settle(round.to, bytes, chunks).await?;
    }
    Ok(())
}

/// Folds each element of `other` into the one of `own` at the same index.
#[inline]
fn merge<T: Element>(side: RankSide, own: &mut [T], other: &[u8], operator: &impl Fn(T, T) -> T) {
    match bytemuck::try_cast_slice(other) {
        Ok(other) => merge_elements(side, own, other.iter().copied(), operator),
        // A short message need not be aligned.
        Err(_) => {
            let other = other.chunks_exact(size_of::<T>().max(1)).map(bytemuck::pod_read_unaligned);
            merge_elements(side, own, other, operator);
        }
    }
}

#[inline]
fn merge_elements<T: Copy>(
    side: RankSide,
    own: &mut [T],
    other: impl Iterator<Item = T>,
    operator: &impl Fn(T, T) -> T,
) {
    match side {
        RankSide::Before => own.iter_mut().zip(other).for_each(|(own, other)| *own = operator(other, *own)),
        RankSide::After => own.iter_mut().zip(other).for_each(|(own, other)| *own = operator(*own, other)),
    }
}
