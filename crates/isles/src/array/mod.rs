//! Arrays distributed over the members of a team.
//!
//! A [`DistArray`] computes owners, exchanges halos, redistributes and transposes. Every member works on its own part
//! as on a slice. It is a library on teams, [`PlaceLocal`] and `at!`, which any program could use.
//! `docs/design/arrays.md` explains why it cannot deadlock, and how it fails.
//!
//! ```
//! use isles::array::{DistArray, Distribution, Halo};
//! use isles::prelude::*;
//!
//! /// One step of a mean of four neighbours; the sum of all cells.
//! async fn smooth() -> isles::Result<f64> {
//!     let team = Team::world();
//!     let cut = [Distribution::Block, Distribution::Whole];
//!     let cells = DistArray::<f64, 2>::with_halo(&team, [64, 32], cut, Halo::new(1)).await?;
//!     let sums = everywhere!({
//!         cells.lock().for_each(|[row, column], cell| *cell = (row * column) as f64);
//!         cells.exchange().await?;
//!         let part = cells.read();
//!         let [rows, columns] = part.extents().map(|extent| extent as isize);
//!         let mut sum = 0.0;
//!         for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
//!             let ends = part[[row - 1, column]] + part[[row + 1, column]];
//!             sum += (ends + part[[row, column - 1]] + part[[row, column + 1]]) / 4.0;
//!         }
//!         sum
//!     })
//!     .await?;
//!     Ok(sums.iter().sum())
//! }
//! ```

mod access;
mod checkpoint;
mod halo;
mod layout;
mod moves;
mod open;
mod part;
#[cfg(test)]
mod tests;

pub use isles_runtime::capture::Element;
pub use layout::{Blocks, Distribution};
pub use open::OpenArray;
pub use part::ArrayPart;

use crate::prelude::*;
use crate::{Error, ErrorKind, PlaceGuard, PlaceRef, Result};
use isles_services::ClosedWindow;
use layout::ArrayLayout;
use part::PartShape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Width of the halo: the layers of neighbours' elements around each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halo {
    width: usize,
    is_periodic: bool,
    /// A bit for each axis without a halo; the lowest is the first axis.
    without: u8,
}

impl Halo {
    /// Makes a halo of `width` elements at both ends of each axis. Beyond the ends of the array, exchanges leave it
    /// unchanged.
    pub const fn new(width: usize) -> Halo {
        Halo { width, is_periodic: false, without: 0 }
    }

    /// As [`Halo::new`], but periodic: the first index of each axis follows the last.
    pub const fn periodic(width: usize) -> Halo {
        Halo { width, is_periodic: true, without: 0 }
    }

    /// Removes the halo along `axis`, for example along the levels or the quantities of a grid.
    ///
    /// # Panics
    /// If `axis` is 3 or more.
    #[must_use]
    pub const fn without_axis(self, axis: usize) -> Halo {
        assert!(axis < 3, "an array has one to three axes");
        Halo { without: self.without | 1 << axis, ..self }
    }

    /// Returns the width along each axis.
    const fn widths<const N: usize>(self) -> [usize; N] {
        let mut widths = [self.width; N];
        let mut axis = 0;
        while axis < N {
            if self.without >> axis & 1 == 1 {
                widths[axis] = 0;
            }
            axis += 1;
        }
        widths
    }
}

/// Reason why an array or an element does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayError {
    /// An axis has extent 0 or is too long.
    Extent {
        /// Number of the axis.
        axis: usize,
        /// Its extent.
        extent: usize,
    },
    /// A block-cyclic axis has blocks of length 0.
    EmptyBlock {
        /// Number of the axis.
        axis: usize,
    },
    /// No axis is cut, but there are several members.
    NotCut {
        /// Number of members.
        members: usize,
    },
    /// The members do not form a grid with the required numbers of parts.
    Grid {
        /// Number of members.
        members: usize,
    },
    /// A cyclic axis has a halo.
    HaloOfCyclic {
        /// Number of the axis.
        axis: usize,
    },
    /// The array is larger than the memory of this host.
    TooLarge {
        /// `true` if the array has halos.
        has_halo: bool,
        /// Bytes of the array with its halos; `None` if the number exceeds 64 bits.
        bytes: Option<u64>,
        /// Bytes of memory.
        memory: u64,
    },
    /// An index is outside of the array.
    OutOfBounds {
        /// The index.
        index: Vec<usize>,
        /// Extents of the array; each index must be below its extent.
        extents: Vec<usize>,
    },
    /// Two arrays do not have the same extents, distribution or team, as the operation needs.
    ShapeMismatch {
        /// Extents of one array.
        one: Vec<usize>,
        /// Extents of the other array.
        other: Vec<usize>,
    },
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArrayError::Extent { axis, extent } => {
                write!(f, "axis {axis} has an extent of {extent}; allowed: 1 to 2^44")
            }
            ArrayError::EmptyBlock { axis } => {
                write!(f, "axis {axis} is distributed in blocks of 0; allowed: 1 or more")
            }
            ArrayError::NotCut { members } => {
                write!(
                    f,
                    "no axis is distributed over the {members} members of the team; allowed: at \
                     least one distributed axis"
                )
            }
            ArrayError::Grid { members } => {
                write!(
                    f,
                    "the product of the parts of all axes differs from the number of members; \
                     allowed: {members}"
                )
            }
            ArrayError::HaloOfCyclic { axis } => {
                write!(f, "axis {axis} is cyclic and cannot have a halo; allowed: Whole, Block and Parts")
            }
            ArrayError::TooLarge { has_halo, bytes, memory } => {
                let halos = if *has_halo { " with its halos" } else { "" };
                let bytes = bytes.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
                write!(f, "the array{halos} has {bytes} bytes, but this host has {memory} bytes of memory")
            }
            ArrayError::OutOfBounds { index, extents } => {
                write!(f, "the index {index:?} is out of bounds in an array of {extents:?}")
            }
            ArrayError::ShapeMismatch { one, other } => {
                write!(f, "arrays of {one:?} and {other:?} are distributed differently")
            }
        }
    }
}

impl std::error::Error for ArrayError {}

/// Converts the error to one of kind [`ErrorKind::Misused`].
fn misused(error: ArrayError) -> Error {
    Error::new(ErrorKind::Misused, error.to_string())
}

/// An array of one to three axes, distributed over the members of a team.
///
/// It is a handle, which can be cloned and captured by tasks at other places. Functions documented as *collective* or
/// *called by each member* are collectives of the team, as those of [`Team`]; the others can be called by any task of a
/// member.
///
/// # Errors
/// All functions that move elements return [`DeadPlace`](ErrorKind::DeadPlace) if a member is dead, and
/// [`Misused`](ErrorKind::Misused) with the text of an [`ArrayError`].
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct DistArray<T: 'static, const N: usize> {
    parts: PlaceLocal<ArrayPart<T, N>>,
    team: Team,
    layout: ArrayLayout,
    /// `true` if each member can read each part in place, because all members have mapped the window with the parts.
    is_near: bool,
}

impl<T, const N: usize> Clone for DistArray<T, N> {
    fn clone(&self) -> Self {
        let DistArray { parts, team, layout, is_near } = self;
        DistArray { parts: parts.clone(), team: team.clone(), layout: *layout, is_near: *is_near }
    }
}

// Each function repeats the bound, so that the compiler's error names what an element must be.
impl<T: 'static, const N: usize> DistArray<T, N> {
    /// Makes an array of zeros on the members of `team`; called by one of them.
    ///
    /// If several axes are cut, the members form a grid with parts of about equal extents.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused) with the text of an [`ArrayError`], before anything is allocated;
    /// [`DeadPlace`](ErrorKind::DeadPlace) if a member is dead.
    pub async fn new(
        team: &Team,
        extents: [usize; N],
        distributions: [Distribution; N],
    ) -> Result<DistArray<T, N>>
    where
        T: Element,
    {
        DistArray::with_halo(team, extents, distributions, Halo::default()).await
    }

    /// As [`DistArray::new`], with a halo around each part. Cyclic axes cannot have one.
    ///
    /// # Errors
    /// As for [`DistArray::new`].
    pub async fn with_halo(
        team: &Team,
        extents: [usize; N],
        distributions: [Distribution; N],
        halo: Halo,
    ) -> Result<DistArray<T, N>>
    where
        T: Element,
    {
        let layout = layout_of::<T, N>(team, extents, distributions, halo).map_err(misused)?;
        DistArray::of_parts(team, layout, halo, None).await
    }

    /// As [`DistArray::with_halo`], with the parts in a window, so that [`DistArray::open`] gives every member direct
    /// access to every part. If the members share memory, redistribution and transposition read the elements directly,
    /// without messages; if a place dies during that, the source array can only be dropped.
    ///
    /// Zero-sized elements, and elements with an alignment above 8 bytes, do not compile.
    ///
    /// # Errors
    /// As for [`DistArray::new`]; also [`Misused`](ErrorKind::Misused) if there is no memory for a part.
    pub async fn in_window(
        team: &Team,
        extents: [usize; N],
        distributions: [Distribution; N],
        halo: Halo,
    ) -> Result<DistArray<T, N>>
    where
        T: Element,
    {
        let layout = layout_of::<T, N>(team, extents, distributions, halo).map_err(misused)?;
        let lens: Vec<usize> =
            (0..team.size()).map(|rank| PartShape::new::<N>(&layout, rank, halo).len()).collect();
        let window = ClosedWindow::with_lens(team, &lens).await?;
        DistArray::of_parts(team, layout, halo, Some(window)).await
    }
}

impl<T: Element, const N: usize> DistArray<T, N> {
    async fn of_parts(
        team: &Team,
        layout: ArrayLayout,
        halo: Halo,
        window: Option<ClosedWindow<T>>,
    ) -> Result<DistArray<T, N>> {
        let is_near = window.as_ref().is_some_and(ClosedWindow::is_near);
        let seed = (team.clone(), layout, halo, window);
        let parts = PlaceLocal::with_on(team, seed, |(team, layout, halo, window)| {
            ArrayPart::new(layout, team.rank(), halo, window)
        });
        Ok(DistArray { parts: parts.await?, team: team.clone(), layout, is_near })
    }

    /// Returns the number of elements along each axis.
    pub fn extents(&self) -> [usize; N] {
        last(self.layout.extents())
    }

    /// Returns the team whose members have the parts.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the place that has an element.
    ///
    /// # Errors
    /// [`ArrayError::OutOfBounds`].
    pub fn owner(&self, index: [usize; N]) -> std::result::Result<Place, ArrayError> {
        Ok(self.team.place_of(self.locate(index)?.0))
    }

    /// Locks the part of this place for writing. The guard must not be held across an `await`.
    ///
    /// # Panics
    /// If the part is in use, as [`PlaceLocal::lock`], or the array is open.
    #[track_caller]
    pub fn lock(&self) -> PlaceGuard<'_, ArrayPart<T, N>> {
        let part = self.parts.lock();
        part.check_closed();
        part
    }

    /// Returns a guard to read the part of this place; several may exist at a time.
    ///
    /// # Panics
    /// If the part is locked, as [`PlaceLocal::read`], or the array is open.
    #[track_caller]
    pub fn read(&self) -> PlaceRef<'_, ArrayPart<T, N>> {
        let part = self.parts.read();
        part.check_closed();
        part
    }

    /// Sets each element of `target` at this place to `map` of the corresponding element of this array; called by each
    /// member.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the arrays have different layouts.
    pub fn map_into<U: Element>(&self, target: &DistArray<U, N>, mut map: impl FnMut(T) -> U) -> Result<()> {
        if self.layout != target.layout {
            return Err(self.shape_mismatch(target));
        }
        let part = self.read();
        let mut elements = part.owned();
        target.lock().for_each(|_, element| {
            *element = map(*elements.next().expect("both parts have as many elements"));
        });
        Ok(())
    }

    /// Merges all elements and returns the result at each member; collective. Elements are merged in the order of each
    /// part, then in the order of ranks.
    ///
    /// # Errors
    /// As [`DistArray`] says.
    pub async fn reduce(&self, merge: impl Fn(T, T) -> T) -> Result<T> {
        let own: Vec<T> = self.read().owned().copied().reduce(&merge).into_iter().collect();
        let all = self.team.all_gatherv(&own).await?.concat();
        Ok(all.into_iter().reduce(merge).expect("an array has an element"))
    }

    /// Returns the member that has an element, and the coordinates in its part.
    fn locate(&self, index: [usize; N]) -> std::result::Result<(usize, [usize; 3]), ArrayError> {
        let extents = self.extents();
        match (0..N).all(|axis| index[axis] < extents[axis]) {
            true => Ok(self.layout.locate(three(index, 0))),
            false => Err(ArrayError::OutOfBounds { index: index.to_vec(), extents: extents.to_vec() }),
        }
    }

    /// Returns `true` if the other array is on the same places.
    fn has_same_places<U>(&self, other: &DistArray<U, N>) -> bool {
        self.team.places().eq(other.team.places())
    }

    fn shape_mismatch<U: Element>(&self, other: &DistArray<U, N>) -> Error {
        misused(ArrayError::ShapeMismatch { one: self.extents().to_vec(), other: other.extents().to_vec() })
    }
}

/// Returns the layout of an array of elements of type `T` on a team.
///
/// # Errors
/// The array is invalid.
fn layout_of<T, const N: usize>(
    team: &Team,
    extents: [usize; N],
    distributions: [Distribution; N],
    halo: Halo,
) -> std::result::Result<ArrayLayout, ArrayError> {
    let layout = ArrayLayout::new(extents, distributions, team.size())?;
    let widths = halo.widths::<N>();
    let cyclic = (0..N).find(|axis| widths[*axis] > 0 && !layout.axes[3 - N + axis].is_block());
    if let Some(axis) = cyclic {
        return Err(ArrayError::HaloOfCyclic { axis });
    }
    // Each part has a halo at both ends, which makes the axis longer in memory.
    let padded = |axis: usize| {
        let halos = widths[axis].checked_mul(2)?.checked_mul(layout.axes[3 - N + axis].parts)?;
        halos.checked_add(extents[axis])
    };
    check_fits::<T>((0..N).map(padded), halo.width > 0)?;
    Ok(layout)
}

/// Checks that an array of `T` with these extents can fit into the memory of this host. [`DistArray::new`] does the
/// same; call this to fail before a run.
///
/// # Errors
/// [`ArrayError::TooLarge`].
pub fn check_memory<T>(extents: &[usize]) -> std::result::Result<(), ArrayError> {
    check_fits::<T>(extents.iter().copied().map(Some), false)
}

/// As [`check_memory`]; an extent of `None` exceeds the integer range.
fn check_fits<T>(
    extents: impl Iterator<Item = Option<usize>>,
    has_halo: bool,
) -> std::result::Result<(), ArrayError> {
    // If the system does not report its memory, the limit is the largest allocation.
    let memory = crate::memory::host_bytes().unwrap_or(isize::MAX as u64);
    let mut sizes = extents.chain([Some(size_of::<T>())]);
    let bytes = sizes.try_fold(1_u64, |bytes, size| bytes.checked_mul(size? as u64));
    match bytes {
        Some(bytes) if bytes <= memory => Ok(()),
        bytes => Err(ArrayError::TooLarge { has_halo, bytes, memory }),
    }
}

/// Returns the last `N` of three axes.
fn last<X: Copy, const N: usize>(all: [X; 3]) -> [X; N] {
    std::array::from_fn(|axis| all[3 - N + axis])
}

/// Returns three axes that end with `own`; the others are `fill`.
fn three<X: Copy, const N: usize>(own: [X; N], fill: X) -> [X; 3] {
    std::array::from_fn(|axis| if axis + N < 3 { fill } else { own[axis + N - 3] })
}
