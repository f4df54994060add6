//! Moves of whole arrays: redistribution, transposition, and gathering at one place.
//!
//! Elements move by `all_to_allv_with` of the team, or are read directly from a window by their new owner. Both layouts
//! determine the overlap of source and target members, which is moved in the order of the target. Invariant: each
//! element of the target is written once.

use super::layout::{ArrayLayout, Run};
use super::part::{ArrayPart, PartShape};
use super::{DistArray, Distribution, Element, Halo};
use crate::prelude::*;
use crate::{Error, ErrorKind, Result};

/// Rows and columns of a tile of the transposition: two tiles of doubles fit into a first-level cache.
const TILE: usize = 32;

/// Indices that two members share along an axis: positions in the parts of source and target, and length.
type Shared = Vec<(usize, usize, usize)>;

/// Returns the intersection of the runs of `source` and `target`.
fn shared(source: &[Run], target: &[Run]) -> Shared {
    let (mut one, mut other) = (source.iter().peekable(), target.iter().peekable());
    let mut pieces = Vec::new();
    while let (Some(from), Some(to)) = (one.peek(), other.peek()) {
        let start = from.global.max(to.global);
        let ends = (from.global + from.len, to.global + to.len);
        let end = ends.0.min(ends.1);
        if start < end {
            pieces.push((from.local + start - from.global, to.local + start - to.global, end - start));
        }
        if ends.0 <= ends.1 {
            one.next()
        } else {
            other.next()
        };
    }
    pieces
}

/// Elements that a member has and another needs, by the axes of the target, with the source axis of each.
struct Overlap {
    along: [Shared; 3],
    axes: [usize; 3],
}

impl Overlap {
    fn new(source: &ArrayLayout, from: usize, target: &ArrayLayout, to: usize, axes: [usize; 3]) -> Overlap {
        let (has, wants) = (source.runs(from), target.runs(to));
        Overlap { along: [0, 1, 2].map(|axis| shared(&has[axes[axis]], &wants[axis])), axes }
    }

    fn size(&self) -> usize {
        self.along.iter().map(|pieces| pieces.iter().map(|piece| piece.2).sum::<usize>()).product()
    }

    /// Calls `visit` for each box, with its first coordinates in the source (by the source's axes) and in the target,
    /// and its lengths.
    fn boxes(&self, mut visit: impl FnMut([usize; 3], [usize; 3], [usize; 3])) {
        for first in &self.along[0] {
            for middle in &self.along[1] {
                for last in &self.along[2] {
                    let mut from = [0; 3];
                    for (axis, piece) in self.axes.into_iter().zip([first, middle, last]) {
                        from[axis] = piece.0;
                    }
                    visit(from, [first.1, middle.1, last.1], [first.2, middle.2, last.2]);
                }
            }
        }
    }
}

/// A part of a box that is read at once, as equidistant lines of the owner's memory.
pub(super) struct Tile {
    /// Position of the first line in the part of its owner.
    pub(super) at: usize,
    /// Distance from one line to the next.
    pub(super) stride: usize,
    /// Length of a line, and number of lines.
    pub(super) line: usize,
    pub(super) lines: usize,
    /// Coordinates of its first element in the target.
    to: [usize; 3],
    /// `true` if a line runs along the last axis of the target, otherwise along the axis before it.
    is_along: bool,
}

impl Tile {
    fn size(&self) -> usize {
        self.line * self.lines
    }
}

/// Maximum number of elements of a tile, so that it is transposed in a first-level cache.
const TILE_SIZE: usize = TILE * TILE;

impl Overlap {
    /// Cuts the boxes into tiles; `shape` is that of the source member's part.
    fn tiles(&self, shape: &PartShape) -> Vec<Tile> {
        let steps = self.axes.map(|axis| shape.steps()[axis]);
        let mut tiles = Vec::new();
        self.boxes(|from, to, len| {
            let start = shape.start(&from, &shape.steps());
            let is_along = steps[2] == 1;
            // Lines run along one of the last two axes of the target, and are stacked along the other.
            let (line, beside) = if is_along { (2, 1) } else { (1, 2) };
            let width = if is_along { len[2].min(TILE_SIZE) } else { len[1].min(TILE) };
            let height = (TILE_SIZE / width.max(1)).clamp(1, len[beside].max(1));
            for first in 0..len[0] {
                for across in (0..len[beside]).step_by(height) {
                    for along in (0..len[line]).step_by(width.max(1)) {
                        let mut to = [to[0] + first, to[1], to[2]];
                        to[line] += along;
                        to[beside] += across;
                        let at = start + first * steps[0] + along * steps[line] + across * steps[beside];
                        tiles.push(Tile {
                            at,
                            stride: steps[beside],
                            line: width.min(len[line] - along),
                            lines: height.min(len[beside] - across),
                            to,
                            is_along,
                        });
                    }
                }
            }
        });
        tiles
    }
}

impl<T: Copy + 'static, const N: usize> ArrayPart<T, N> {
    /// Merges the elements read of a tile, line by line, into this part.
    fn merge_tile(&mut self, tile: &Tile, read: &[T], merge: &impl Fn(&mut T, T)) {
        let (start, [_, step, _]) = (self.place_of(tile.to), self.steps());
        if tile.is_along {
            for (number, line) in read.chunks_exact(tile.line).enumerate() {
                let own = &mut self.values_mut()[start + number * step..][..tile.line];
                own.iter_mut().zip(line).for_each(|(old, new)| merge(old, *new));
            }
            return;
        }
        for row in 0..tile.line {
            let own = &mut self.values_mut()[start + row * step..][..tile.lines];
            let column = read[row..].iter().step_by(tile.line);
            own.iter_mut().zip(column).for_each(|(old, new)| merge(old, *new));
        }
    }
}

/// Packs a box into `into` in the order of the target; `steps` are the strides in the source along the axes of the
/// target.
fn pack<T: Copy>(values: &[T], start: usize, steps: [usize; 3], len: [usize; 3], into: &mut [T]) {
    if steps[2] == 1 {
        for (line, packed) in into.chunks_exact_mut(len[2]).enumerate() {
            let from = start + line / len[1] * steps[0] + line % len[1] * steps[1];
            packed.copy_from_slice(&values[from..from + len[2]]);
        }
        return;
    }
    for first in 0..len[0] {
        let (start, into) = (start + first * steps[0], &mut into[first * len[1] * len[2]..]);
        for row in (0..len[1]).step_by(TILE) {
            for column in (0..len[2]).step_by(TILE) {
                for row in row..len[1].min(row + TILE) {
                    let from = start + row * steps[1];
                    let end = len[2].min(column + TILE);
                    let packed = &mut into[row * len[2] + column..row * len[2] + end];
                    for (column, element) in (column..end).zip(packed) {
                        *element = values[from + column * steps[2]];
                    }
                }
            }
        }
    }
}

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Copies all elements to an array of the same extents and team with any distribution; collective.
    ///
    /// # Errors
    /// As [`DistArray`] says; also if the arrays differ in extents or team.
    pub async fn copy_into(&self, target: &DistArray<T, N>) -> Result<()> {
        if self.extents() != target.extents() || !self.has_same_places(target) {
            return Err(self.shape_mismatch(target));
        }
        self.move_into(target, [0, 1, 2], |old, new| *old = new).await
    }

    /// Returns a copy of the array with another distribution and no halo; called by one member.
    ///
    /// # Errors
    /// As for [`DistArray::new`].
    pub async fn redistribute(&self, distributions: [Distribution; N]) -> Result<DistArray<T, N>> {
        let target = DistArray::with_halo(&self.team, self.extents(), distributions, Halo::default()).await?;
        let source = self;
        finish(async {
            for place in self.team.places() {
                spawn_at!(place, source.copy_into(&target).await?);
            }
        })
        .await?;
        Ok(target)
    }

    /// Returns all elements row by row at the member `root`, and `None` at the others; collective.
    ///
    /// # Errors
    /// As [`DistArray`] says.
    pub async fn gather(&self, root: usize) -> Result<Option<Vec<T>>> {
        let own: Vec<T> = self.read().owned().copied().collect();
        let Some(rows) = self.team.gatherv(root, &own).await? else { return Ok(None) };
        let extents = self.layout.extents();
        let mut all: Vec<T> = bytemuck::zeroed_vec(extents.iter().product());
        for (rank, row) in rows.iter().enumerate() {
            let mut row = row.as_slice();
            for_lines(&self.layout, rank, |start, len| {
                let (line, rest) = row.split_at(len);
                all[start..start + len].copy_from_slice(line);
                row = rest;
            });
        }
        Ok(Some(all))
    }

    /// Moves all elements; `axes[i]` is the axis of this array that becomes axis `i` of the target.
    async fn move_into(
        &self,
        target: &DistArray<T, N>,
        axes: [usize; 3],
        merge: impl Fn(&mut T, T),
    ) -> Result<()> {
        match self.is_near {
            true => self.fetch_into(target, axes, merge).await,
            false => self.send_into(target, axes, merge).await,
        }
    }

    /// As [`DistArray::move_into`], through a window: each member reads its new elements from their owners.
    async fn fetch_into(
        &self,
        target: &DistArray<T, N>,
        axes: [usize; 3],
        merge: impl Fn(&mut T, T),
    ) -> Result<()> {
        let (me, size) = (self.team.rank(), self.team.size());
        let open = self.open().await?;
        let mut tile = Vec::new();
        // Each member starts with a different owner.
        for from in (me..size).chain(0..me) {
            let overlap = Overlap::new(&self.layout, from, &target.layout, me, axes);
            for tiles in overlap.tiles(open.shape(from)) {
                tile.resize(tiles.size(), bytemuck::Zeroable::zeroed());
                open.get_tile(from, &tiles, &mut tile).await?;
                target.lock().merge_tile(&tiles, &tile, &merge);
            }
        }
        open.close().await
    }

    /// As [`DistArray::move_into`], by messages. Received elements are merged into the target straight from the
    /// message.
    async fn send_into(
        &self,
        target: &DistArray<T, N>,
        axes: [usize; 3],
        merge: impl Fn(&mut T, T),
    ) -> Result<()> {
        let (me, size) = (self.team.rank(), self.team.size());
        let overlap = |from, to| Overlap::new(&self.layout, from, &target.layout, to, axes);
        let mut rows = self.lock().take_rows();
        rows.resize_with(size, Vec::new);
        for (to, row) in rows.iter_mut().enumerate() {
            self.pack_row(&overlap(me, to), row);
        }
        let mut places: Vec<Lines> = (0..size).map(|from| target.lines_of(&overlap(from, me))).collect();
        let moved = self.team.all_to_allv_with(&rows, |from, piece| {
            places[from].put(target.lock().values_mut(), piece, &merge);
        });
        moved.await?;
        self.lock().keep_rows(rows);
        Ok(())
    }

    /// Packs the elements of this member's part that another needs, in the order of the target.
    fn pack_row(&self, overlap: &Overlap, row: &mut Vec<T>) {
        row.resize(overlap.size(), bytemuck::Zeroable::zeroed());
        let (part, mut rest) = (self.read(), row.as_mut_slice());
        let steps = overlap.axes.map(|axis| part.steps()[axis]);
        overlap.boxes(|from, _, len| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(len.iter().product());
            pack(part.values(), part.place_of(from), steps, len, own);
            rest = others;
        });
    }

    /// Returns the lines of this member's part that receive elements of another member.
    fn lines_of(&self, overlap: &Overlap) -> Lines {
        let part = self.read();
        let mut lines = Vec::new();
        overlap.boxes(|_, to, len| {
            let rows = (0..len[0]).flat_map(|first| (0..len[1]).map(move |middle| [first, middle]));
            lines.extend(rows.map(|[first, middle]| {
                let start = part.place_of([to[0] + first, to[1] + middle, to[2]]);
                (start, len[2])
            }));
        });
        Lines { lines, line: 0, done: 0 }
    }
}

/// Lines of a part that received elements fill one after the other.
struct Lines {
    /// Start and length of each.
    lines: Vec<(usize, usize)>,
    /// The current line, and the number of its elements that are filled.
    line: usize,
    done: usize,
}

impl Lines {
    /// Merges the next received piece.
    fn put<T: Copy>(&mut self, values: &mut [T], mut piece: &[T], merge: &impl Fn(&mut T, T)) {
        while !piece.is_empty() {
            let (start, len) = self.lines[self.line];
            let (now, later) = piece.split_at(piece.len().min(len - self.done));
            let own = &mut values[start + self.done..][..now.len()];
            own.iter_mut().zip(now).for_each(|(old, new)| merge(old, *new));
            (self.done, piece) = (self.done + now.len(), later);
            if self.done == len {
                (self.line, self.done) = (self.line + 1, 0);
            }
        }
    }
}

impl<T: Element> DistArray<T, 2> {
    /// Sets `target`, of the same team and any distribution, to the transpose of this array; collective.
    ///
    /// # Errors
    /// As [`DistArray`] says; also if the extents of the target are not those of this array in reverse.
    pub async fn transpose_into(&self, target: &DistArray<T, 2>) -> Result<()> {
        self.transpose_with(target, |old, new| *old = new).await
    }

    /// As [`DistArray::transpose_into`], with `merge` updating each element of the target by the received one.
    ///
    /// # Errors
    /// As for [`DistArray::transpose_into`].
    pub async fn transpose_with(&self, target: &DistArray<T, 2>, merge: impl Fn(&mut T, T)) -> Result<()> {
        let [rows, columns] = self.extents();
        if [columns, rows] != target.extents() || !self.has_same_places(target) {
            return Err(self.shape_mismatch(target));
        }
        self.move_into(target, [0, 2, 1], merge).await
    }
}

/// Calls `visit` for each line of a member, in the order of its part, with its row-major position in the whole array
/// and its length.
pub(super) fn for_lines(layout: &ArrayLayout, rank: usize, mut visit: impl FnMut(usize, usize)) {
    let ([first, middle, last], extents) = (layout.runs(rank), layout.extents());
    let each =
        |runs: &[Run]| runs.iter().flat_map(|run| run.global..run.global + run.len).collect::<Vec<_>>();
    for row in each(&first) {
        for column in each(&middle) {
            for run in &last {
                visit((row * extents[1] + column) * extents[2] + run.global, run.len);
            }
        }
    }
}

/// Makes an error of kind [`ErrorKind::Failed`].
pub(super) fn failed(text: String) -> Error {
    Error::new(ErrorKind::Failed, text)
}
