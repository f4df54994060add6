//! Arrays that lie on the members of a team, each with a part.
//!
//! A [`DistArray`] says who has which element, moves edges, redistributes and transposes, so that no program writes its
//! distribution by hand. Every member works on its own part as on a slice. It is a library: it uses teams, instances of
//! places and `at!` as any program can. Why it cannot deadlock, and how it fails: `docs/design/arrays.md`.
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

/// Widths of the halo: number of elements of others that each part has around its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halo {
    width: usize,
    is_periodic: bool,
    /// A bit for each axis without a halo, the first axis lowest.
    without: u8,
}

impl Halo {
    /// A halo of `width` elements at each end of each axis. Beyond the ends of the array it stays as it is.
    pub const fn new(width: usize) -> Halo {
        Halo { width, is_periodic: false, without: 0 }
    }

    /// As [`Halo::new`], where the first index of each axis follows the last.
    pub const fn periodic(width: usize) -> Halo {
        Halo { width, is_periodic: true, without: 0 }
    }

    /// The same without a halo along `axis`, such as that of the levels or of the quantities of a grid.
    ///
    /// # Panics
    /// There are at most three axes.
    #[must_use]
    pub const fn without_axis(self, axis: usize) -> Halo {
        assert!(axis < 3, "an array has one to three axes");
        Halo { without: self.without | 1 << axis, ..self }
    }

    /// The width along each axis.
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

/// Reason why there is no such array, or no such element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayError {
    /// An axis has no index, or too many to count.
    Extent {
        /// Number of the axis.
        axis: usize,
        /// Its extent.
        extent: usize,
    },
    /// Blocks of no index are to be dealt out.
    EmptyBlock {
        /// Number of the axis.
        axis: usize,
    },
    /// No axis is cut, and there are several members.
    NotCut {
        /// Number of members.
        members: usize,
    },
    /// The members form no grid with as many parts of an axis as were said.
    Grid {
        /// Number of members.
        members: usize,
    },
    /// A halo is asked for along an axis that is dealt out.
    HaloOfCyclic {
        /// Number of the axis.
        axis: usize,
    },
    /// The array has more bytes than the memory of this host, if that can be counted at all.
    TooLarge {
        /// `true` if the array has halos.
        has_halo: bool,
        /// Bytes of the array with its halos; nothing if they are more than can be counted.
        bytes: Option<u64>,
        /// Bytes of memory.
        memory: u64,
    },
    /// There is no such element.
    OutOfBounds {
        /// Its index.
        index: Vec<usize>,
        /// Extents of the array; each index must be below its extent.
        extents: Vec<usize>,
    },
    /// Two arrays are to have the same extents or the same distribution, and have not.
    ShapeMismatch {
        /// The extents of one.
        one: Vec<usize>,
        /// The extents of the other.
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

/// Returns the error of a task that misuses an array.
fn misused(error: ArrayError) -> Error {
    Error::new(ErrorKind::Misused, error.to_string())
}

/// An array of one to three axes, whose elements lie on the members of a team.
///
/// It is a handle: it can be copied and travels. Functions that are called *by each member* are collectives of the
/// team, as those of [`Team`] are; the others can be called by any task of a member.
///
/// # Errors
/// Of all functions that move elements: [`DeadPlace`](ErrorKind::DeadPlace) if a member is dead,
/// [`Misused`](ErrorKind::Misused) with the text of an [`ArrayError`].
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct DistArray<T: 'static, const N: usize> {
    parts: PlaceLocal<ArrayPart<T, N>>,
    team: Team,
    layout: ArrayLayout,
    /// `true` if each member can read each part in place, because all are parts of a window that all have mapped.
    is_near: bool,
}

impl<T, const N: usize> Clone for DistArray<T, N> {
    fn clone(&self) -> Self {
        let DistArray { parts, team, layout, is_near } = self;
        DistArray { parts: parts.clone(), team: team.clone(), layout: *layout, is_near: *is_near }
    }
}

// The bound stands at each function, so that the compiler says what an element must be.
impl<T: 'static, const N: usize> DistArray<T, N> {
    /// An array of zeros on the members of `team`; called by one of them.
    ///
    /// If several axes are cut, the members form a grid whose parts are about as long as wide.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused) with the text of an [`ArrayError`], before anything is allocated; a member is
    /// dead.
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

    /// As [`DistArray::new`], with a halo around each part. Axes that are dealt out have none.
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

    /// As [`DistArray::with_halo`], in a window: [`DistArray::open`] lets every member access every part directly.
    /// If members share memory, whole arrays are moved out of it by those who need them, without a message; if a
    /// place dies then, the array that is moved can only be dropped.
    ///
    /// Elements that have no bytes, or need a coarser alignment than 8 bytes, do not compile.
    ///
    /// # Errors
    /// As for [`DistArray::new`]; [`Misused`](ErrorKind::Misused): there is no memory for a part.
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

    /// Returns how many elements the array has in each axis.
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

    /// The part of this place, for changes. The guard must not be held across an `await`.
    ///
    /// # Panics
    /// If it is in use, as [`PlaceLocal::lock`], or open to all members.
    #[track_caller]
    pub fn lock(&self) -> PlaceGuard<'_, ArrayPart<T, N>> {
        let part = self.parts.lock();
        part.check_closed();
        part
    }

    /// The part of this place, to look at; there may be several at a time.
    ///
    /// # Panics
    /// If it is locked, as [`PlaceLocal::read`], or open to all members.
    #[track_caller]
    pub fn read(&self) -> PlaceRef<'_, ArrayPart<T, N>> {
        let part = self.parts.read();
        part.check_closed();
        part
    }

    /// Sets each element of `target` at this place to what `map` makes of the one of this array; called by each member.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the arrays do not lie alike.
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

    /// Merges all elements, for each member; called by each member. They are merged in the order of each part, then in
    /// the order of ranks.
    ///
    /// # Errors
    /// As [`DistArray`] says.
    pub async fn reduce(&self, merge: impl Fn(T, T) -> T) -> Result<T> {
        let own: Vec<T> = self.read().owned().copied().reduce(&merge).into_iter().collect();
        let all = self.team.all_gatherv(&own).await?.concat();
        Ok(all.into_iter().reduce(merge).expect("an array has an element"))
    }

    /// The member that has an element, and where in its part.
    fn locate(&self, index: [usize; N]) -> std::result::Result<(usize, [usize; 3]), ArrayError> {
        let extents = self.extents();
        match (0..N).all(|axis| index[axis] < extents[axis]) {
            true => Ok(self.layout.locate(three(index, 0))),
            false => Err(ArrayError::OutOfBounds { index: index.to_vec(), extents: extents.to_vec() }),
        }
    }

    /// Returns `true` if another array is on the same places.
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
/// There is no such array.
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
    // Each part has a halo at both of its ends, so an axis is that much longer in memory.
    let padded = |axis: usize| {
        let halos = widths[axis].checked_mul(2)?.checked_mul(layout.axes[3 - N + axis].parts)?;
        halos.checked_add(extents[axis])
    };
    check_fits::<T>((0..N).map(padded), halo.width > 0)?;
    Ok(layout)
}

/// Checks that an array with these extents of elements of type `T` may fit into the memory of this host, as
/// [`DistArray::new`] does: for programs that need to know it before a run.
///
/// # Errors
/// [`ArrayError::TooLarge`].
pub fn check_memory<T>(extents: &[usize]) -> std::result::Result<(), ArrayError> {
    check_fits::<T>(extents.iter().copied().map(Some), false)
}

/// As [`check_memory`]; an extent of `None` is more than can be counted.
fn check_fits<T>(
    extents: impl Iterator<Item = Option<usize>>,
    has_halo: bool,
) -> std::result::Result<(), ArrayError> {
    // More than that no allocation may have, also where the system does not say what the host has.
    let memory = crate::memory::host_bytes().unwrap_or(isize::MAX as u64);
    let mut sizes = extents.chain([Some(size_of::<T>())]);
    let bytes = sizes.try_fold(1_u64, |bytes, size| bytes.checked_mul(size? as u64));
    match bytes {
        Some(bytes) if bytes <= memory => Ok(()),
        bytes => Err(ArrayError::TooLarge { has_halo, bytes, memory }),
    }
}

/// The last axes of three.
fn last<X: Copy, const N: usize>(all: [X; 3]) -> [X; N] {
    std::array::from_fn(|axis| all[3 - N + axis])
}

/// Three axes of which these are the last.
fn three<X: Copy, const N: usize>(own: [X; N], fill: X) -> [X; 3] {
    std::array::from_fn(|axis| if axis + N < 3 { fill } else { own[axis + N - 3] })
}
