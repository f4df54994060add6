//! Open arrays: every member accesses every part by put, get and accumulate, without help of its owner.
//!
//! The parts are in a window. Opening it takes the slice of each member away and closing it returns it, so a part is
//! either a slice of its place or open to all. This file only computes positions. Invariant: a range of indices is cut
//! into pieces that are each contiguous at one owner, in order.

use super::moves::Tile;
use super::part::PartShape;
use super::{ArrayError, DistArray, Element, Halo, misused, three};
use crate::{Combine, Error, ErrorKind, Result, WindowNumber};
use isles_runtime::of_library;
use isles_services::{OpenWindow, Strided};
use std::ops::Range;
use std::panic::Location;

/// Path prefix of the source lines of this library.
const LINES: &str = file!().split_at(file!().len() - "open.rs".len()).0;

/// An array whose members can access every part directly, from [`DistArray::open`] to [`OpenArray::close`].
///
/// If members share memory, an access is a copy; otherwise it is a message that the owner's runtime handles. The
/// accesses of one member to one part take effect in order. A read that overlaps another member's write without a
/// [`fence`](OpenArray::fence) in between may see a mixture of old and new. Halos are not accessible. If an `OpenArray`
/// is dropped without `close`, the part of this place stays open.
///
/// # Errors
/// Every access returns [`DeadPlace`](ErrorKind::DeadPlace) if the owner has died, and [`Misused`](ErrorKind::Misused)
/// with the text of an [`ArrayError`] before anything is accessed.
pub struct OpenArray<'a, T: 'static, const N: usize> {
    array: &'a DistArray<T, N>,
    window: OpenWindow<T>,
    /// Shape of the part of each rank.
    shapes: Vec<PartShape>,
}

/// Elements that are contiguous in the array and at their owner.
struct Piece {
    rank: usize,
    /// Position in the part of `rank`.
    at: usize,
    /// The range of the requested elements.
    elements: Range<usize>,
}

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Opens an array that was made [in a window](DistArray::in_window) to all members; collective. Until it is closed,
    /// members can access their own parts only through the [`OpenArray`].
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the array is not in a window, or already open.
    /// [`DeadPlace`](ErrorKind::DeadPlace): a member has died; the array can then only be dropped.
    #[track_caller]
    pub fn open(&self) -> impl Future<Output = Result<OpenArray<'_, T, N>>> {
        let caller = Location::caller();
        async move {
            let (values, halo) = {
                let mut part = self.parts.lock();
                if let Some(line) = part.opened {
                    return Err(refused(format!("the array is already open since {line}"), caller));
                }
                if !part.is_in_window() {
                    let text = "the array cannot be opened: it was not made by `in_window`";
                    return Err(refused(text.to_owned(), caller));
                }
                part.opened = Some(caller);
                (part.take_values(), Halo::new(part.pad()[2]))
            };
            let window = values.open().await.map_err(|error| of_library(error, LINES, caller))?;
            let shape = |rank| PartShape::new::<N>(&self.layout, rank, halo);
            let shapes = (0..self.team.size()).map(shape).collect();
            Ok(OpenArray { array: self, window, shapes })
        }
    }
}

/// Returns the error of a call at `caller`.
fn refused(text: String, caller: &Location<'_>) -> Error {
    of_library(Error::new(ErrorKind::Misused, text), LINES, caller)
}

impl<T: Element, const N: usize> OpenArray<'_, T, N> {
    /// Writes `values` to the elements from `index` on along the last axis, at any owners. They are visible to others
    /// after the next `fence` or `close`.
    ///
    /// # Errors
    /// As [`OpenArray`] says.
    #[track_caller]
    pub fn put(&self, index: [usize; N], values: &[T]) -> impl Future<Output = Result<()>> {
        let caller = Location::caller();
        async move {
            for piece in self.pieces(index, values.len(), caller)? {
                let put = self.window.put(piece.rank, piece.at, &values[piece.elements]);
                put.await.map_err(|error| of_library(error, LINES, caller))?;
            }
            Ok(())
        }
    }

    /// Reads the elements from `index` on along the last axis into `into`, from any owners.
    ///
    /// # Errors
    /// As [`OpenArray`] says.
    #[track_caller]
    pub fn get(&self, index: [usize; N], into: &mut [T]) -> impl Future<Output = Result<()>> {
        let caller = Location::caller();
        async move {
            for piece in self.pieces(index, into.len(), caller)? {
                let got = self.window.get(piece.rank, piece.at, &mut into[piece.elements]);
                got.await.map_err(|error| of_library(error, LINES, caller))?;
            }
            Ok(())
        }
    }

    /// Waits until all earlier accesses of all members are complete; collective.
    ///
    /// # Errors
    /// [`DeadPlace`](ErrorKind::DeadPlace): a member has died.
    #[track_caller]
    pub fn fence(&self) -> impl Future<Output = Result<()>> {
        self.window.fence()
    }

    /// Closes the array once all accesses are complete; collective. Each member then has its part as a slice again.
    ///
    /// # Errors
    /// [`DeadPlace`](ErrorKind::DeadPlace): a member has died; the array can then only be dropped.
    #[track_caller]
    pub fn close(self) -> impl Future<Output = Result<()>> {
        let caller = Location::caller();
        async move {
            let values = self.window.close().await.map_err(|error| of_library(error, LINES, caller))?;
            self.array.parts.lock().put_back(values);
            Ok(())
        }
    }

    /// Returns the shape of the part of a member.
    pub(super) fn shape(&self, rank: usize) -> &PartShape {
        &self.shapes[rank]
    }

    /// Reads a tile of the part of a member.
    pub(super) async fn get_tile(&self, rank: usize, tile: &Tile, into: &mut [T]) -> Result<()> {
        let lines = Strided { block: tile.line, stride: tile.stride.max(tile.line) };
        self.window.get_strided(rank, tile.at, lines, into).await
    }

    /// Returns the pieces of the `len` elements from `index` on along the last axis.
    fn pieces(
        &self,
        index: [usize; N],
        len: usize,
        caller: &Location<'_>,
    ) -> Result<impl Iterator<Item = Piece>> {
        let (extents, layout) = (self.array.extents(), &self.array.layout);
        let is_inside = (0..N - 1).all(|axis| index[axis] < extents[axis])
            && index[N - 1].checked_add(len).is_some_and(|end| end <= extents[N - 1]);
        if !is_inside {
            let mut index = index.to_vec();
            index[N - 1] = index[N - 1].saturating_add(len.max(1) - 1);
            let error = misused(ArrayError::OutOfBounds { index, extents: extents.to_vec() });
            return Err(of_library(error, LINES, caller));
        }
        let (first, mut done) = (three(index, 0), 0);
        Ok(std::iter::from_fn(move || {
            if done == len {
                return None;
            }
            let next = [first[0], first[1], first[2] + done];
            let (rank, local) = layout.locate(next);
            let shape = &self.shapes[rank];
            let end = len.min(done + layout.axes[2].run_from(next[2]));
            let piece = Piece { rank, at: shape.start(&local, &shape.steps()), elements: done..end };
            done = end;
            Some(piece)
        }))
    }
}

impl<T: WindowNumber, const N: usize> OpenArray<'_, T, N> {
    /// Combines the elements from `index` on along the last axis with `operands`, each atomically, at any owners.
    ///
    /// # Errors
    /// As [`OpenArray`] says.
    #[track_caller]
    pub fn accumulate(
        &self,
        index: [usize; N],
        operands: &[T],
        how: Combine,
    ) -> impl Future<Output = Result<()>> {
        let caller = Location::caller();
        async move {
            for piece in self.pieces(index, operands.len(), caller)? {
                let combined = self.window.accumulate(piece.rank, piece.at, &operands[piece.elements], how);
                combined.await.map_err(|error| of_library(error, LINES, caller))?;
            }
            Ok(())
        }
    }

    /// Atomically adds `value` to the element at `index`, and returns the previous value.
    ///
    /// # Errors
    /// As [`OpenArray`] says.
    #[track_caller]
    pub fn fetch_add(&self, index: [usize; N], value: T) -> impl Future<Output = Result<T>> {
        let caller = Location::caller();
        async move {
            let piece = self.pieces(index, 1, caller)?.next().expect("one element is one piece");
            let added = self.window.fetch_add(piece.rank, piece.at, value);
            added.await.map_err(|error| of_library(error, LINES, caller))
        }
    }
}
