//! Memory layout of one place's part of the grid: rows with a halo of 2 all around, level after level.
//!
//! Loops over rows are compiled by [`row_kernels`]. An index counts from the first element of the halo. Invariant:
//! [`HALO`] rows and columns surround the own ones.

pub use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Rows and columns around a tile.
pub const HALO: usize = 2;

/// The part of the grid of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Own rows and columns.
    pub rows: usize,
    pub columns: usize,
    /// Row and column of the first own element in the grid.
    pub first: [usize; 2],
    /// Rows and columns of the grid, which is periodic.
    pub grid: [usize; 2],
    pub levels: usize,
}

impl Tile {
    /// Returns the number of elements of a row, including its halo.
    pub fn stride(&self) -> usize {
        self.columns + 2 * HALO
    }

    /// Returns the number of elements of a level, including its halo.
    pub fn plane(&self) -> usize {
        (self.rows + 2 * HALO) * self.stride()
    }

    /// Returns the index of an element, whose coordinates may be in the halo.
    pub fn at(&self, row: isize, column: isize) -> usize {
        let offset = |coordinate: isize| (coordinate + HALO as isize) as usize;
        offset(row) * self.stride() + offset(column)
    }

    /// Returns the index range of each row of the tile and of `ring` rows around it, extended by `ring` columns on
    /// each side.
    pub fn lines(&self, ring: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        self.lines_with([ring; 4])
    }

    /// As `lines`, with separate numbers of rows and columns below, above, left and right.
    pub fn lines_with(
        &self,
        [below, above, left, right]: [usize; 4],
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let tile = *self;
        let rows = -(below as isize)..(self.rows + above) as isize;
        rows.map(move |row| {
            let start = tile.at(row, -(left as isize));
            start..start + tile.columns + left + right
        })
    }

    /// Returns an array with `value` of the row and column of the grid for each element, including the halo.
    pub fn fill(&self, value: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let [rows, columns] = self.grid;
        let wrapped =
            |first: usize, local: usize, extent: usize| (first + local + extent * HALO - HALO) % extent;
        let mut values = Vec::with_capacity(self.plane());
        for row in 0..self.rows + 2 * HALO {
            for column in 0..self.stride() {
                values
                    .push(value(wrapped(self.first[0], row, rows), wrapped(self.first[1], column, columns)));
            }
        }
        values
    }
}

/// Defines loops over rows that are compiled for several vector instruction sets; one is chosen at run time for the
/// processor at hand.
///
/// Programs are built for a baseline processor, with vectors half as long as those of most processors in use. All sets
/// give the same bits, because no operations are fused or reordered.
///
/// The slices that a function writes are separate parameters, before the semicolon, so that the compiler knows that
/// they do not overlap. All inputs are one parameter after it.
macro_rules! row_kernels {
    ($($(#[$doc:meta])* fn $name:ident($($written:ident: $w:ty),+; $read:tt: $r:ty) $body:block)+) => {$(
        $(#[$doc])*
        #[inline(never)]
        fn $name($($written: $w,)+ read: $r) {
            struct RowKernel<W, R>(W, R);

            impl $crate::scheme::tile::WithSimd for RowKernel<($($w,)+), $r> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: $crate::scheme::tile::Simd>(self, _simd: S) {
                    let RowKernel(($($written,)+), read) = self;
                    loop_over($($written,)+ read);
                }
            }

            #[inline(always)]
            fn loop_over($($written: $w,)+ $read: $r) $body

            $crate::scheme::tile::Arch::new().dispatch(RowKernel(($($written,)+), read));
        }
    )+};
}

pub(crate) use row_kernels;
