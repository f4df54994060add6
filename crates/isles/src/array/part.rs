//! The part of an array at one place: its own elements, row by row, with a halo around them.
//!
//! It knows the indices of its elements in the array, and nothing of messages. Invariant: elements and halo are one
//! slice, contiguous along the last axis.

use super::layout::ArrayLayout;
use super::{Halo, last, three};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_services::{ClosedWindow, OwnPart};
use std::ops::{Index, IndexMut};
use std::panic::Location;

/// A box of elements, as start and length along each axis, relative to the first element of the halo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: [usize; 3],
    pub(super) len: [usize; 3],
}

impl Region {
    pub(super) fn size(&self) -> usize {
        self.len.iter().product()
    }
}

/// Extents of a part in each axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartShape {
    /// Number of elements that its place owns along each axis.
    owned: [usize; 3],
    /// Width of the halo; 0 along axes that the array lacks.
    pad: [usize; 3],
}

impl PartShape {
    /// Returns the shape of the part of member `rank` of an array of `N` axes.
    pub(super) fn new<const N: usize>(layout: &ArrayLayout, rank: usize, halo: Halo) -> PartShape {
        PartShape { owned: layout.lengths(rank), pad: three(halo.widths::<N>(), 0) }
    }

    /// Returns the number of elements, with the halo.
    pub(super) fn len(&self) -> usize {
        (0..3).map(|axis| self.owned[axis] + 2 * self.pad[axis]).product()
    }

    /// Returns the strides of the axes.
    #[inline]
    pub(super) fn steps(&self) -> [usize; 3] {
        let line = self.owned[2] + 2 * self.pad[2];
        [line * (self.owned[1] + 2 * self.pad[1]), line, 1]
    }

    /// Returns the position of an element that the place owns.
    #[inline]
    pub(super) fn start(&self, local: &[usize; 3], steps: &[usize; 3]) -> usize {
        (0..3).map(|axis| (local[axis] + self.pad[axis]) * steps[axis]).sum()
    }
}

/// The part of a [`DistArray`](super::DistArray) at one place.
///
/// Elements are indexed by signed coordinates: `[0, 0]` is the first element that this place owns; the halo has
/// negative coordinates and those behind the last element. `part[[i, j]]` is one element; [`ArrayPart::line`] returns a
/// contiguous line, for fast loops.
#[derive(Debug)]
pub struct ArrayPart<T: 'static, const N: usize> {
    /// Empty while the array is open.
    values: OwnPart<T>,
    /// The line that opened the array, if it is open.
    pub(super) opened: Option<&'static Location<'static>>,
    pub(super) layout: ArrayLayout,
    /// Number of this part in each axis.
    parts: [usize; 3],
    shape: PartShape,
    pub(super) is_periodic: bool,
    /// Send buffers of moves; empty during a move.
    rows: Vec<Vec<T>>,
}

impl<T: NoUninit + AnyBitPattern, const N: usize> ArrayPart<T, N> {
    /// Makes the part of member `rank`, of zeros; in `window`, if given, whose slice must not have been taken yet.
    pub(super) fn new(
        layout: ArrayLayout,
        rank: usize,
        halo: Halo,
        window: Option<ClosedWindow<T>>,
    ) -> ArrayPart<T, N> {
        let shape = PartShape::new::<N>(&layout, rank, halo);
        let values = match window {
            Some(window) => window.take().expect("a part of a new window"),
            None => OwnPart::private(shape.len()),
        };
        ArrayPart {
            values,
            opened: None,
            layout,
            parts: layout.parts_of(rank),
            shape,
            is_periodic: halo.is_periodic,
            rows: Vec::new(),
        }
    }

    /// # Panics
    /// If the array is open.
    #[track_caller]
    pub(super) fn check_closed(&self) {
        if let Some(line) = self.opened {
            panic!(
                "the array is open to all members since {line}; its part here is a slice again after `close`"
            );
        }
    }

    /// Returns `true` if the part is in a window.
    pub(super) fn is_in_window(&self) -> bool {
        self.values.is_of_window()
    }

    /// Takes the elements out of the part until [`ArrayPart::put_back`].
    pub(super) fn take_values(&mut self) -> OwnPart<T> {
        std::mem::replace(&mut self.values, OwnPart::private(0))
    }

    pub(super) fn put_back(&mut self, values: OwnPart<T>) {
        (self.values, self.opened) = (values, None);
    }
}

impl<T: 'static, const N: usize> ArrayPart<T, N> {
    /// Returns the number of elements that this place owns along each axis.
    pub fn extents(&self) -> [usize; N] {
        last(self.shape.owned)
    }

    /// Returns the index in the whole array of an element that this place owns.
    pub fn global(&self, local: [usize; N]) -> [usize; N] {
        let local = three(local, 0);
        last([0, 1, 2].map(|axis| self.layout.axes[axis].global(self.parts[axis], local[axis])))
    }

    /// Returns all elements including the halo, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns all elements including the halo, mutably.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Returns the strides of the axes in [`ArrayPart::values`].
    pub fn strides(&self) -> [usize; N] {
        last(self.steps())
    }

    /// Returns the position of an element in [`ArrayPart::values`].
    ///
    /// # Panics
    /// If `at` is outside of part and halo.
    #[inline]
    #[track_caller]
    pub fn offset(&self, at: [isize; N]) -> usize {
        let (at, steps) = (three(at, 0), self.steps());
        let mut offset = 0;
        for axis in 0..3 {
            let from_edge = at[axis] + self.shape.pad[axis] as isize;
            let end = self.shape.owned[axis] + 2 * self.shape.pad[axis];
            assert!(
                (0..end as isize).contains(&from_edge),
                "coordinate {} is out of bounds in an axis with {} elements and a halo \
                 of {}",
                at[axis],
                self.shape.owned[axis],
                self.shape.pad[axis]
            );
            offset += from_edge as usize * steps[axis];
        }
        offset
    }

    /// Returns the elements from `at` to the end of its line, including the halo.
    ///
    /// # Panics
    /// As [`ArrayPart::offset`].
    #[inline]
    #[track_caller]
    pub fn line(&self, at: [isize; N]) -> &[T] {
        let offset = self.offset(at);
        &self.values[offset..self.line_end(offset)]
    }

    /// As [`ArrayPart::line`], mutably.
    ///
    /// # Panics
    /// As [`ArrayPart::offset`].
    #[inline]
    #[track_caller]
    pub fn line_mut(&mut self, at: [isize; N]) -> &mut [T] {
        let offset = self.offset(at);
        let end = self.line_end(offset);
        &mut self.values[offset..end]
    }

    /// Calls `change` with each element that this place owns and its index in the array.
    pub fn for_each(&mut self, mut change: impl FnMut([usize; N], &mut T)) {
        let (owned, steps) = (self.shape.owned, self.steps());
        for first in 0..owned[0] {
            for middle in 0..owned[1] {
                let start = self.shape.start(&[first, middle, 0], &steps);
                for last_of in 0..owned[2] {
                    let index = self.global(last([first, middle, last_of]));
                    change(index, &mut self.values[start + last_of]);
                }
            }
        }
    }

    /// Returns the elements that this place owns, row by row.
    pub fn owned(&self) -> impl Iterator<Item = &T> {
        let (owned, steps) = (self.shape.owned, self.steps());
        let lines = (0..owned[0]).flat_map(move |first| (0..owned[1]).map(move |middle| [first, middle, 0]));
        lines.flat_map(move |line| {
            let start = self.shape.start(&line, &steps);
            &self.values[start..start + owned[2]]
        })
    }

    /// Returns the strides of the three axes.
    pub(super) fn steps(&self) -> [usize; 3] {
        self.shape.steps()
    }

    fn line_end(&self, offset: usize) -> usize {
        let [_, line, _] = self.steps();
        (offset / line + 1) * line
    }

    /// Returns the region that this place owns.
    pub(super) fn whole(&self) -> Region {
        Region { start: self.shape.pad, len: self.shape.owned }
    }

    /// Returns the position of an element that this place owns, by its coordinates in three axes.
    pub(super) fn place_of(&self, local: [usize; 3]) -> usize {
        self.shape.start(&local, &self.steps())
    }

    pub(super) fn pad(&self) -> [usize; 3] {
        self.shape.pad
    }

    pub(super) fn parts(&self) -> [usize; 3] {
        self.parts
    }
}

#[cfg(feature = "ndarray")]
impl<T: 'static, const N: usize> ArrayPart<T, N> {
    /// Returns the elements that this place owns, without the halo, as a view of `ndarray`.
    pub fn view(&self) -> ndarray::ArrayViewD<'_, T> {
        let (shape, start) = self.shape();
        ndarray::ArrayViewD::from_shape(shape, &self.values[start..]).expect("a part lies in its elements")
    }

    /// As [`ArrayPart::view`], mutably.
    pub fn view_mut(&mut self) -> ndarray::ArrayViewMutD<'_, T> {
        let (shape, start) = self.shape();
        ndarray::ArrayViewMutD::from_shape(shape, &mut self.values[start..])
            .expect("a part lies in its elements")
    }

    /// Returns the shape of the own elements in terms of `ndarray`, and the position of the first.
    fn shape(&self) -> (ndarray::StrideShape<ndarray::IxDyn>, usize) {
        use ndarray::{IxDyn, ShapeBuilder};
        let shape = IxDyn(&self.extents()).strides(IxDyn(&self.strides()));
        (shape, if self.shape.owned.contains(&0) { 0 } else { self.place_of([0; 3]) })
    }
}

impl<T: Copy + 'static, const N: usize> ArrayPart<T, N> {
    /// Appends the elements of a region to `into`, row by row.
    pub(super) fn pack(&self, region: &Region, into: &mut Vec<T>) {
        for start in self.lines_of(region) {
            into.extend_from_slice(&self.values[start..start + region.len[2]]);
        }
    }

    /// Sets the elements of a region from the front of `from`; returns the rest of it.
    pub(super) fn unpack<'a>(&mut self, region: &Region, mut from: &'a [T]) -> &'a [T] {
        for start in self.lines_of(region) {
            let (line, rest) = from.split_at(region.len[2]);
            self.values[start..start + region.len[2]].copy_from_slice(line);
            from = rest;
        }
        from
    }

    /// Takes the send buffers for all members. They are kept between moves, because allocating them costs as much as a
    /// move.
    pub(super) fn take_rows(&mut self) -> Vec<Vec<T>> {
        std::mem::take(&mut self.rows)
    }

    pub(super) fn keep_rows(&mut self, rows: Vec<Vec<T>>) {
        self.rows = rows;
    }

    /// Returns the start positions of the lines of a region.
    fn lines_of(&self, region: &Region) -> impl Iterator<Item = usize> + use<T, N> {
        let (Region { start, len }, steps) = (*region, self.steps());
        (start[0]..start[0] + len[0]).flat_map(move |first| {
            let middles = start[1]..start[1] + len[1];
            middles.map(move |middle| first * steps[0] + middle * steps[1] + start[2])
        })
    }
}

impl<T: 'static, const N: usize> Index<[isize; N]> for ArrayPart<T, N> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, at: [isize; N]) -> &T {
        &self.values[self.offset(at)]
    }
}

impl<T: 'static, const N: usize> IndexMut<[isize; N]> for ArrayPart<T, N> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, at: [isize; N]) -> &mut T {
        let offset = self.offset(at);
        &mut self.values[offset]
    }
}
