//! Collectives that scatter or gather slices of plain elements: gather, scatter, all-gather, all-to-all.
//!
//! The elements of one member are a *row*. The forms without `v` take rows of the same length at all members, and
//! return one vector; those with `v`, after MPI's, take rows of any length, and return one vector for each row. Each
//! message carries the length of its row.

use super::Team;
use super::algorithms::{BRUCK_BYTES_MAX, chunk_len};
use super::header::Arrival;
use super::ongoing::OngoingCollective;
use super::values;
use bytemuck::NoUninit;
use isles_protocol::team::CollectiveKind;
use isles_protocol::team::schedule::{Chunks, Shape, Tree, dissemination, pairwise};
use isles_runtime::Result;
use isles_runtime::capture::Element;
use std::ops::Range;

impl Team {
    /// Gathers the slices of all members, by rank, at member `root`; the others get `None`.
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length (see [`Team::gatherv`]).
    pub async fn gather_slice<T: Element>(&self, root: usize, slice: &[T]) -> Result<Option<Vec<T>>> {
        let is_root = self.state.rank() == Some(root);
        let mut all = is_root.then(|| bytemuck::zeroed_vec(self.size() * slice.len()));
        self.gather_slice_into(root, slice, all.as_deref_mut()).await?;
        Ok(all)
    }

    /// As [`Team::gather_slice`], into memory of the root; `into` is ignored at other members.
    ///
    /// # Errors
    /// As [`Team::gather_slice`]; the root passed `None`, or memory of another length than all slices together.
    pub async fn gather_slice_into<T: Element>(
        &self,
        root: usize,
        slice: &[T],
        into: Option<&mut [T]>,
    ) -> Result<()> {
        let ongoing = self.begin_at::<T>(CollectiveKind::GatherSlice, root).await?;
        if ongoing.rank() != root {
            push_row(&ongoing, root, slice).await?;
            return ongoing.complete(()).await;
        }
        let into = into.ok_or_else(|| ongoing.misused("the root of a gather has no memory"))?;
        check_room(&ongoing, into.len(), ongoing.size() * slice.len())?;
        for rank in 0..ongoing.size() {
            let row = &mut into[rank * slice.len()..(rank + 1) * slice.len()];
            if rank == root {
                row.copy_from_slice(slice);
            } else {
                pull_row_into(&ongoing, rank, row).await?;
            }
        }
        ongoing.complete(()).await
    }

    /// Gathers the slices of all members, of any lengths, by rank, at member `root`; the others get `None`.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn gatherv<T: Element>(&self, root: usize, slice: &[T]) -> Result<Option<Vec<Vec<T>>>> {
        let ongoing = self.begin_at::<T>(CollectiveKind::Gatherv, root).await?;
        if ongoing.rank() != root {
            push_row(&ongoing, root, slice).await?;
            return ongoing.complete(None).await;
        }
        let mut all = Vec::with_capacity(ongoing.size());
        for rank in 0..ongoing.size() {
            let mut row = Vec::new();
            if rank == root {
                row.extend_from_slice(slice);
            } else {
                pull_row(&ongoing, rank, None, &mut row).await?;
            }
            all.push(row);
        }
        ongoing.complete(Some(all)).await
    }

    /// Scatters the slice of member `root` in equal parts, by rank. The argument of other members is ignored.
    ///
    /// # Errors
    /// As [`Team`] says; the root passed `None`, or a length that is not a multiple of the team's size.
    pub async fn scatter_slice<T: Element>(&self, root: usize, slice: Option<&[T]>) -> Result<Vec<T>> {
        let ongoing = self.begin_at::<T>(CollectiveKind::ScatterSlice, root).await?;
        let part = if ongoing.rank() == root {
            let slice = slice.ok_or_else(|| ongoing.misused("the root of a scatter has no slice"))?;
            let rows = equal_rows(&ongoing, slice)?;
            push_rows(&ongoing, &rows).await?;
            rows[root].to_vec()
        } else {
            pull_one(&ongoing, root).await?
        };
        ongoing.complete(part).await
    }

    /// As [`Team::scatter_slice`], into memory of each member, which has the length of one part.
    ///
    /// # Errors
    /// As [`Team::scatter_slice`]; `into` has another length.
    pub async fn scatter_slice_into<T: Element>(
        &self,
        root: usize,
        slice: Option<&[T]>,
        into: &mut [T],
    ) -> Result<()> {
        let ongoing = self.begin_at::<T>(CollectiveKind::ScatterSlice, root).await?;
        if ongoing.rank() == root {
            let slice = slice.ok_or_else(|| ongoing.misused("the root of a scatter has no slice"))?;
            let rows = equal_rows(&ongoing, slice)?;
            check_room(&ongoing, into.len(), rows[root].len())?;
            push_rows(&ongoing, &rows).await?;
            into.copy_from_slice(rows[root]);
        } else {
            pull_row_into(&ongoing, root, into).await?;
        }
        ongoing.complete(()).await
    }

    /// Scatters the rows of member `root`, one to each member. The argument of other members is ignored.
    ///
    /// # Errors
    /// As [`Team`] says; the root passed `None`, or not one row for each member.
    pub async fn scatterv<T: Element>(&self, root: usize, rows: Option<&[Vec<T>]>) -> Result<Vec<T>> {
        let ongoing = self.begin_at::<T>(CollectiveKind::Scatterv, root).await?;
        let part = if ongoing.rank() == root {
            let rows = rows.ok_or_else(|| ongoing.misused("the root of a scatter has no rows"))?;
            let rows = row_for_each(&ongoing, rows)?;
            push_rows(&ongoing, &rows).await?;
            rows[root].to_vec()
        } else {
            pull_one(&ongoing, root).await?
        };
        ongoing.complete(part).await
    }

    /// Gathers the slices of all members, by rank, at every member.
    ///
    /// # Errors
    /// As [`Team`] says; the slices differ in length (see [`Team::all_gatherv`]).
    pub async fn all_gather_slice<T: Element>(&self, slice: &[T]) -> Result<Vec<T>> {
        let mut all = bytemuck::zeroed_vec(self.size() * slice.len());
        self.all_gather_slice_into(slice, &mut all).await?;
        Ok(all)
    }

    /// As [`Team::all_gather_slice`], into memory of each member.
    ///
    /// # Errors
    /// As [`Team::all_gather_slice`]; `into` has another length than all slices together.
    pub async fn all_gather_slice_into<T: Element>(&self, slice: &[T], into: &mut [T]) -> Result<()> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllGatherSlice).await?;
        let rows = Rows::equal(ongoing.size(), slice.len());
        check_room(&ongoing, into.len(), rows.end())?;
        into[rows.range(ongoing.rank())].copy_from_slice(slice);
        collect(&ongoing, &rows, into).await?;
        ongoing.complete(()).await
    }

    /// Gathers the slices of all members, of any lengths, by rank, at every member.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn all_gatherv<T: Element>(&self, slice: &[T]) -> Result<Vec<Vec<T>>> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllGatherv).await?;
        let lens = values::all_gather(&ongoing, slice.len() as u64).await?;
        let rows = Rows::of(lens.into_iter().map(|len| len as usize));
        let mut all = bytemuck::zeroed_vec(rows.end());
        all[rows.range(ongoing.rank())].copy_from_slice(slice);
        collect(&ongoing, &rows, &mut all).await?;
        ongoing.complete((0..rows.ends.len()).map(|rank| all[rows.range(rank)].to_vec()).collect()).await
    }

    /// Sends part `i` of each member's slice to member `i`, which gets them by rank; all parts have the same length.
    ///
    /// # Errors
    /// As [`Team`] says; a length is not a multiple of the team's size, or differs between members.
    pub async fn all_to_all_slice<T: Element>(&self, slice: &[T]) -> Result<Vec<T>> {
        let mut all = bytemuck::zeroed_vec::<T>(slice.len());
        self.all_to_all_slice_into(slice, &mut all).await?;
        Ok(all)
    }

    /// As [`Team::all_to_all_slice`], into memory of each member.
    ///
    /// # Errors
    /// As [`Team::all_to_all_slice`]; `into` and `slice` differ in length.
    pub async fn all_to_all_slice_into<T: Element>(&self, slice: &[T], into: &mut [T]) -> Result<()> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllToAllSlice).await?;
        let rows = equal_rows(&ongoing, slice)?;
        check_room(&ongoing, into.len(), slice.len())?;
        let part = slice.len() / ongoing.size();
        let place = |rank: usize| rank * part..(rank + 1) * part;
        into[place(ongoing.rank())].copy_from_slice(rows[ongoing.rank()]);
        for round in pairwise(ongoing.rank(), ongoing.size()) {
            let target = &mut into[place(round.from)];
            exchange_rows(&ongoing, round.to, rows[round.to], round.from, Some(part), |range, chunk| {
                bytemuck::cast_slice_mut(&mut target[range]).copy_from_slice(chunk);
            })
            .await?;
        }
        ongoing.complete(()).await
    }

    /// Sends row `i` of each member to member `i`, which gets them by rank; rows have any lengths.
    ///
    /// # Errors
    /// As [`Team`] says; there is not one row for each member.
    pub async fn all_to_allv<T: Element>(&self, rows: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        let mut all: Vec<Vec<T>> = vec![Vec::new(); self.size()];
        self.all_to_allv_with(rows, |from, piece| all[from].extend_from_slice(piece)).await?;
        Ok(all)
    }

    /// As [`Team::all_to_allv`], but passes the received elements to `take` piece by piece, with the rank of their
    /// sender, in the memory in which they arrived: for callers that store them elsewhere. The pieces of a row come in
    /// order, one member's row after another's.
    ///
    /// # Errors
    /// As for [`Team::all_to_allv`]; `take` may have got some pieces by then.
    pub async fn all_to_allv_with<T: Element>(
        &self,
        rows: &[Vec<T>],
        mut take: impl FnMut(usize, &[T]),
    ) -> Result<()> {
        let ongoing = self.begin_of::<T>(CollectiveKind::AllToAllv).await?;
        let rows = row_for_each(&ongoing, rows)?;
        take(ongoing.rank(), rows[ongoing.rank()]);
        for round in pairwise(ongoing.rank(), ongoing.size()) {
            let give = |_, chunk: &[u8]| with_elements(chunk, |piece| take(round.from, piece));
            exchange_rows(&ongoing, round.to, rows[round.to], round.from, None, give).await?;
        }
        ongoing.complete(()).await
    }
}

/// Positions of the rows of all members in one vector.
struct Rows {
    /// End of each row.
    ends: Vec<usize>,
    /// True if all members know them in advance.
    are_equal: bool,
}

impl Rows {
    fn equal(size: usize, len: usize) -> Rows {
        Rows { ends: (1..=size).map(|count| count * len).collect(), are_equal: true }
    }

    /// Cuts `len` elements into one row for each member, all of one length; the last rows are shorter, or empty.
    fn even(size: usize, len: usize) -> Rows {
        let part = len.div_ceil(size);
        Rows { ends: (1..=size).map(|count| (count * part).min(len)).collect(), are_equal: true }
    }

    fn of(lens: impl Iterator<Item = usize>) -> Rows {
        let ends = lens.scan(0_usize, |end, len| {
            *end = end.saturating_add(len);
            Some(*end)
        });
        Rows { ends: ends.collect(), are_equal: false }
    }

    /// Returns the number of elements of all rows.
    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the range of the row of `rank`.
    fn range(&self, rank: usize) -> Range<usize> {
        let start = if rank == 0 { 0 } else { self.ends[rank - 1] };
        start..self.ends[rank]
    }

    /// Returns the rows of `count` members from `rank` on, in two ranges: up to the last member, and from the first on.
    fn ranges(&self, rank: usize, count: usize) -> [Range<usize>; 2] {
        let size = self.ends.len();
        let first = self.range(rank).start..self.ends[(rank + count).min(size) - 1];
        let around = (rank + count).saturating_sub(size);
        [first, 0..if around == 0 { 0 } else { self.ends[around - 1] }]
    }
}

fn chunks_of<T>(len: usize) -> Chunks {
    Chunks::new(len, chunk_len(len, size_of::<T>()))
}

fn append<T: Element>(row: &mut Vec<T>, chunk: &[u8]) {
    with_elements(chunk, |elements| row.extend_from_slice(elements));
}

/// Calls `take` with the elements of a chunk.
fn with_elements<T: Element>(chunk: &[u8], take: impl FnOnce(&[T])) {
    match bytemuck::try_cast_slice(chunk) {
        Ok(elements) => take(elements),
        // A short message need not be aligned.
        Err(_) => {
            let elements = chunk.chunks_exact(size_of::<T>().max(1)).map(bytemuck::pod_read_unaligned::<T>);
            take(&elements.collect::<Vec<T>>());
        }
    }
}

/// Cuts a slice into equal parts, one for each member.
fn equal_rows<'s, T>(ongoing: &OngoingCollective<'_>, slice: &'s [T]) -> Result<Vec<&'s [T]>> {
    if !slice.len().is_multiple_of(ongoing.size()) {
        let text =
            format!("{} elements cannot be divided equally among {} members", slice.len(), ongoing.size());
        return Err(ongoing.misused(text));
    }
    let part = slice.len() / ongoing.size();
    Ok((0..ongoing.size()).map(|rank| &slice[rank * part..(rank + 1) * part]).collect())
}

/// Returns the rows as slices, if there is one for each member.
fn row_for_each<'s, T>(ongoing: &OngoingCollective<'_>, rows: &'s [Vec<T>]) -> Result<Vec<&'s [T]>> {
    if rows.len() == ongoing.size() {
        return Ok(rows.iter().map(Vec::as_slice).collect());
    }
    Err(ongoing.misused(format_args!("{} rows for the {} members of the team", rows.len(), ongoing.size())))
}

/// Sends a row to a member.
async fn push_row<T: NoUninit>(ongoing: &OngoingCollective<'_>, to: usize, row: &[T]) -> Result<()> {
    let chunks = chunks_of::<T>(row.len());
    for index in 0..chunks.count() {
        ongoing.push(to, index, size_of_val(row), bytemuck::cast_slice(&row[chunks.range(index)])).await?;
    }
    ongoing.settle(to, size_of_val(row), chunks).await
}

/// Sends each other member its row, all concurrently.
async fn push_rows<T: Element>(ongoing: &OngoingCollective<'_>, rows: &[&[T]]) -> Result<()> {
    let others = || rows.iter().enumerate().filter(|(rank, _)| *rank != ongoing.rank());
    let most = others().map(|(_, row)| chunks_of::<T>(row.len()).count()).max().unwrap_or(0);
    for index in 0..most {
        for (rank, row) in others() {
            let chunks = chunks_of::<T>(row.len());
            if index < chunks.count() {
                let chunk = bytemuck::cast_slice(&row[chunks.range(index)]);
                ongoing.push(rank, index, size_of_val(*row), chunk).await?;
            }
        }
    }
    for (rank, row) in others() {
        ongoing.settle(rank, size_of_val(*row), chunks_of::<T>(row.len())).await?;
    }
    Ok(())
}

/// Returns an error if memory has another length than what it receives.
fn check_room(ongoing: &OngoingCollective<'_>, len: usize, wanted: usize) -> Result<()> {
    match len == wanted {
        true => Ok(()),
        false => Err(ongoing.misused(format_args!("memory of {len} elements for {wanted}"))),
    }
}

/// Receives a row of the length of `row` into it.
async fn pull_row_into<T: Element>(
    ongoing: &OngoingCollective<'_>,
    from: usize,
    row: &mut [T],
) -> Result<()> {
    let (bytes, chunks) = (size_of_val(row), chunks_of::<T>(row.len()));
    for index in 0..chunks.count() {
        let chunk = bytemuck::cast_slice_mut(&mut row[chunks.range(index)]);
        ongoing.pull_into(from, index, bytes, chunk).await?;
    }
    Ok(())
}

/// Receives a row of `len` elements, or of any length, and appends it to `row`.
async fn pull_row<T: Element>(
    ongoing: &OngoingCollective<'_>,
    from: usize,
    len: Option<usize>,
    row: &mut Vec<T>,
) -> Result<()> {
    let first = ongoing.take_chunk(from, 0).await?;
    let len = row_len::<T>(ongoing, from, &first, len)?;
    let (bytes, chunks) = (len * size_of::<T>(), chunks_of::<T>(len));
    ongoing.check_bytes(from, &first, bytes, chunks.range(0).len() * size_of::<T>())?;
    row.reserve(len);
    append(row, first.chunk());
    ongoing.release_chunk(from, first, bytes)?;
    for index in 1..chunks.count() {
        let len = chunks.range(index).len() * size_of::<T>();
        let arrival = ongoing.pull(from, index, bytes, len).await?;
        append(row, arrival.chunk());
        ongoing.release_chunk(from, arrival, bytes)?;
    }
    Ok(())
}

async fn pull_one<T: Element>(ongoing: &OngoingCollective<'_>, from: usize) -> Result<Vec<T>> {
    let mut row = Vec::new();
    pull_row(ongoing, from, None, &mut row).await?;
    Ok(row)
}

/// Returns the number of elements of the row that starts with `first`; checks that it is `wanted`, or whole.
fn row_len<T>(
    ongoing: &OngoingCollective<'_>,
    from: usize,
    first: &Arrival,
    wanted: Option<usize>,
) -> Result<usize> {
    let element = size_of::<T>().max(1);
    let len = first.header.bytes as usize / element;
    let fits = first.header.bytes.is_multiple_of(element as u64) && wanted.is_none_or(|wanted| wanted == len);
    if fits { Ok(len) } else { Err(ongoing.odd_length(from, first, wanted.unwrap_or(len) * element)) }
}

/// Sends a row to one member and receives one from another, chunk by chunk; `take` gets each chunk with its position.
async fn exchange_rows<T: NoUninit>(
    ongoing: &OngoingCollective<'_>,
    to: usize,
    row: &[T],
    from: usize,
    len: Option<usize>,
    mut take: impl FnMut(Range<usize>, &[u8]),
) -> Result<()> {
    let out = chunks_of::<T>(row.len());
    let mut into: Option<Chunks> = None;
    let mut index = 0;
    while index < out.count() || into.is_none_or(|into| index < into.count()) {
        if index < out.count() {
            ongoing.send_chunk(to, index, size_of_val(row), bytemuck::cast_slice(&row[out.range(index)]))?;
        }
        if into.is_none_or(|into| index < into.count()) {
            let arrival = ongoing.take_chunk(from, index).await?;
            let len = row_len::<T>(ongoing, from, &arrival, len.or(into.map(|into| into.elements())))?;
            let into = *into.insert(chunks_of::<T>(len));
            let bytes = into.range(index).len() * size_of::<T>();
            ongoing.check_bytes(from, &arrival, len * size_of::<T>(), bytes)?;
            take(into.range(index), arrival.chunk());
        }
        index += 1;
    }
    Ok(())
}

/// Copies the slice of member `root` into those of all others: its parts go down a binomial tree, one to each member,
/// and then to all.
pub(super) async fn scatter_all_gather<T: Element>(
    ongoing: &OngoingCollective<'_>,
    root: usize,
    slice: &mut [T],
) -> Result<()> {
    let (rank, size, bytes) = (ongoing.rank(), ongoing.size(), size_of_val(slice));
    let rows = Rows::even(size, slice.len());
    let tree = |rank| Tree::new(Shape::Binomial, rank, root, size);
    let below = |rank| rows.ranges(rank, tree(rank).members());
    if let Some(parent) = tree(rank).parent() {
        pull_ranges(ongoing, parent, 0, bytes, slice, below(rank)).await?;
    }
    for child in tree(rank).children() {
        ongoing.send_parts(child, 0, bytes, below(child).map(|range| bytemuck::cast_slice(&slice[range])))?;
    }
    collect(ongoing, &rows, slice).await
}

/// Receives the message of a member in `step` with two ranges of a slice of `bytes` into that slice.
async fn pull_ranges<T: Element>(
    ongoing: &OngoingCollective<'_>,
    from: usize,
    step: usize,
    bytes: usize,
    slice: &mut [T],
    ranges: [Range<usize>; 2],
) -> Result<()> {
    let wanted = ranges.iter().map(|range| range.len() * size_of::<T>()).sum();
    let arrival = ongoing.pull(from, step, bytes, wanted).await?;
    let mut payload = arrival.chunk();
    for range in ranges {
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut slice[range]);
        let (part, rest) = payload.split_at(target.len());
        target.copy_from_slice(part);
        payload = rest;
    }
    Ok(())
}

/// Completes `all` at every member, where each has stored its own row.
async fn collect<T: Element>(ongoing: &OngoingCollective<'_>, rows: &Rows, all: &mut [T]) -> Result<()> {
    if size_of_val(all) <= BRUCK_BYTES_MAX {
        collect_short(ongoing, rows, all).await
    } else {
        collect_long(ongoing, rows, all).await
    }
}

/// Returns the length that a message about rows states, so that different lengths are noticed.
fn stated_bytes<T>(rows: &Rows, all: &[T]) -> usize {
    if rows.are_equal { size_of_val(all) } else { 0 }
}

/// Gathers by doubled distances: a member always has the rows from its own on.
async fn collect_short<T: Element>(
    ongoing: &OngoingCollective<'_>,
    rows: &Rows,
    all: &mut [T],
) -> Result<()> {
    let bytes = stated_bytes(rows, all);
    for round in dissemination(ongoing.rank(), ongoing.size()) {
        let count = round.distance.min(ongoing.size() - round.distance);
        let known = rows.ranges(ongoing.rank(), count).map(|range| bytemuck::cast_slice(&all[range]));
        ongoing.send_parts(round.from, round.distance, bytes, known)?;
        pull_ranges(ongoing, round.to, round.distance, bytes, all, rows.ranges(round.to, count)).await?;
    }
    Ok(())
}

/// Gathers along a ring: each member passes on the row that it received last.
async fn collect_long<T: Element>(ongoing: &OngoingCollective<'_>, rows: &Rows, all: &mut [T]) -> Result<()> {
    let bytes = stated_bytes(rows, all);
    let (size, rank) = (ongoing.size(), ongoing.rank());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    for round in 0..size - 1 {
        let given = rows.range((rank + size - round) % size);
        let wanted = rows.range((previous + size - round) % size);
        let (out, into) = (chunks_of::<T>(given.len()), chunks_of::<T>(wanted.len()));
        for index in 0..out.count().max(into.count()) {
            if index < out.count() {
                let chunk = &all[given.clone()][out.range(index)];
                ongoing.send_chunk(next, index, bytes, bytemuck::cast_slice(chunk))?;
            }
            if index < into.count() {
                let target = &mut all[wanted.clone()][into.range(index)];
                let arrival = ongoing.pull(previous, index, bytes, size_of_val(target)).await?;
                bytemuck::cast_slice_mut(target).copy_from_slice(arrival.chunk());
            }
        }
    }
    Ok(())
}
