//! Guards: typed slices of a region, whose pages no other place can revoke or change while they exist.
//!
//! A guard pins its pages in ascending order, and starts above all held pages, or in pages held with enough permission.
//! So places cannot deadlock on each other's pages of one region.

use crate::state::RegionState;
use crate::sys::PAGE_BYTES;
use crate::{PageRegion, RegionError};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_protocol::svm::{Consistency, PageAccess, PageNumber};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut, Range};

/// The existing guards of a place.
#[derive(Default)]
pub struct Borrows(RefCell<Vec<Borrow>>);

#[derive(Clone)]
struct Borrow {
    elements: Range<usize>,
    last_page: u32,
    access: PageAccess,
}

/// Pages that are pinned, until it is dropped.
struct Pins<'r> {
    shared: &'r RegionState,
    borrows: &'r Borrows,
    elements: Range<usize>,
    access: PageAccess,
    pages: Range<u32>,
}

impl<'r> Pins<'r> {
    fn new<T: AnyBitPattern + NoUninit>(
        region: &'r PageRegion<T>,
        elements: Range<usize>,
        access: PageAccess,
    ) -> Result<Pins<'r>, RegionError> {
        let (Range { start, end }, len) = (elements.clone(), region.len());
        if start > end || end > len {
            return Err(RegionError::Outside { start, end, len });
        }
        region.borrows.check(&elements, access);
        let bytes = start * size_of::<T>()..end * size_of::<T>();
        let first = (bytes.start / PAGE_BYTES) as u32;
        let wanted =
            if elements.is_empty() { first..first } else { first..bytes.end.div_ceil(PAGE_BYTES) as u32 };
        let shared = &*region.shared;
        shared.check()?;
        let held = region.borrows.check_order(shared, wanted.clone(), access)?;
        // From here on the drop unpins, also if a later page is unavailable.
        let mut pins = Pins { shared, borrows: &region.borrows, elements, access, pages: first..first };
        region.borrows.0.borrow_mut().push(Borrow {
            elements: pins.elements.clone(),
            last_page: wanted.end.saturating_sub(1),
            access,
        });
        for page in wanted {
            match (shared.model, held) {
                (Consistency::Release, _) => shared.pin_for_release(PageNumber(page), access)?,
                // Never waits, because another place may wait for held pages.
                (_, Some(held)) if page <= held => {
                    if !shared.pin_if_mapped(PageNumber(page), access) {
                        return Err(RegionError::NotAscending { page, held });
                    }
                }
                _ => shared.pin(PageNumber(page), access)?,
            }
            pins.pages.end = page + 1;
        }
        Ok(pins)
    }
}

impl Drop for Pins<'_> {
    fn drop(&mut self) {
        for page in self.pages.clone().map(PageNumber) {
            match self.shared.model {
                Consistency::Release => self.shared.unpin_for_release(page, self.access),
                Consistency::Exclusive | Consistency::Strong => self.shared.unpin(page, self.access),
            }
        }
        let mut borrows = self.borrows.0.borrow_mut();
        let own = borrows
            .iter()
            .position(|borrow| borrow.elements == self.elements && borrow.access == self.access);
        own.map(|own| borrows.swap_remove(own));
    }
}

impl Borrows {
    /// Panics if a guard conflicts with the access.
    fn check(&self, elements: &Range<usize>, access: PageAccess) {
        for held in &*self.0.borrow() {
            let is_apart = held.elements.end <= elements.start || elements.end <= held.elements.start;
            let reads_only = held.access.max(access) == PageAccess::Read;
            assert!(
                is_apart || reads_only,
                "elements {elements:?} of a region have a guard on {:?}",
                held.elements
            );
        }
    }

    /// Returns the last page that a guard holds, if one does and the model asks for an order.
    fn check_order(
        &self,
        shared: &RegionState,
        pages: Range<u32>,
        access: PageAccess,
    ) -> Result<Option<u32>, RegionError> {
        let held = self.0.borrow().iter().map(|borrow| borrow.last_page).max();
        let Some(held) = held.filter(|_| shared.model != Consistency::Release) else {
            return Ok(None); // In the model release no place waits for a guard of another while it holds one.
        };
        match pages.clone().find(|page| *page <= held && !shared.is_held_for(*page, access)) {
            Some(page) => Err(RegionError::NotAscending { page, held }),
            None => Ok(Some(held)),
        }
    }
}

/// Elements of a region that can be read.
pub struct PageReadGuard<'r, T> {
    slice: &'r [T],
    // Dropped after the last use of the slice.
    _pins: Pins<'r>,
}

impl<'r, T: AnyBitPattern + NoUninit> PageReadGuard<'r, T> {
    pub(crate) fn new(
        region: &'r PageRegion<T>,
        range: Range<usize>,
    ) -> Result<PageReadGuard<'r, T>, RegionError> {
        let pins = Pins::new(region, range.clone(), PageAccess::Read)?;
        let at = region.shared.program.at(range.start * size_of::<T>(), range.len() * size_of::<T>());
        // NEED: a slice of mapped memory.
        // SOUND: in bounds by `at`; the base is a page, so elements are aligned, and any bits are a value. The pages
        // are pinned to read: no other place writes them (models exclusive and strong), they are copies of this place,
        // or its home's and their word keeps differences away (model release). No guard of this place writes the
        // elements, by `Borrows::check`.
        let slice = unsafe { std::slice::from_raw_parts(at.cast::<T>(), range.len()) };
        Ok(PageReadGuard { slice, _pins: pins })
    }
}

impl<T> Deref for PageReadGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice
    }
}

/// Elements of a region that can be read and written.
pub struct PageWriteGuard<'r, T> {
    slice: &'r mut [T],
    // Dropped after the last use of the slice.
    _pins: Pins<'r>,
}

impl<'r, T: AnyBitPattern + NoUninit> PageWriteGuard<'r, T> {
    pub(crate) fn new(
        region: &'r PageRegion<T>,
        range: Range<usize>,
    ) -> Result<PageWriteGuard<'r, T>, RegionError> {
        let pins = Pins::new(region, range.clone(), PageAccess::Write)?;
        let at = region.shared.program.at(range.start * size_of::<T>(), range.len() * size_of::<T>());
        // NEED: a slice of mapped memory.
        // SOUND: as for `PageReadGuard`; pinned to write, no other place has the pages (or has them only as copies of
        // its own), and no guard of this place has one of the elements.
        let slice = unsafe { std::slice::from_raw_parts_mut(at.cast::<T>(), range.len()) };
        Ok(PageWriteGuard { slice, _pins: pins })
    }
}

impl<T> Deref for PageWriteGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice
    }
}

impl<T> DerefMut for PageWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.slice
    }
}
