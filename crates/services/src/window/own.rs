//! A window whose parts are alternately slices of their places and open to all members.
//!
//! The types are the states. A [`ClosedWindow`] is as it was made: it can be sent, and nothing else can be done with
//! it. Each member takes its [`OwnPart`], the elements as a slice. All members open the window together, which consumes
//! the slices and returns an [`OpenWindow`]; all of them close it together, which returns the slices. Invariant: while
//! any member has its slice, no member can access the part, because between the two lies a fence that all members took
//! part in, and before it each gave up its slice, or its accesses.

use super::number::{Combine, WindowNumber};
use super::state::BorrowedWords;
use super::{Strided, Window, WindowOptions};
use crate::team::Team;
use isles_runtime::capture::Element;
use isles_runtime::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

/// A window that no member can access yet. The handle can be sent to any member.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ClosedWindow<T: 'static> {
    window: Window<T>,
    is_near: bool,
}

impl<T> Clone for ClosedWindow<T> {
    fn clone(&self) -> Self {
        ClosedWindow { window: self.window.clone(), is_near: self.is_near }
    }
}

impl<T: Element> ClosedWindow<T> {
    /// Makes a window with `lens[rank]` elements, all zero, at each rank of `team`; one member makes it.
    ///
    /// Elements lie in words of 8 bytes: a type of stricter alignment, or of size zero, does not compile.
    ///
    /// # Errors
    /// As [`Window::with_lens`].
    #[track_caller]
    pub fn with_lens(team: &Team, lens: &[usize]) -> impl Future<Output = Result<ClosedWindow<T>>> {
        const {
            assert!(
                align_of::<T>() <= align_of::<AtomicU64>(),
                "elements of a window are aligned to 8 bytes"
            );
            assert!(size_of::<T>() > 0, "elements of a window have bytes");
        }
        let made = Window::with_members(Location::caller(), team, lens, WindowOptions::default());
        async move {
            let (window, is_near) = made.await?;
            Ok(ClosedWindow { window, is_near })
        }
    }

    /// Returns `true` if each member can map each part, so that no access needs a message.
    pub fn is_near(&self) -> bool {
        self.is_near
    }

    /// Returns the part of this place; call it once at each member.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the part was taken before, or the window belongs to another run.
    pub fn take(&self) -> Result<OwnPart<T>> {
        OwnPart::lent(self.window.clone())
    }
}

/// The elements of this place as a slice: memory of its own, or its part of a window, which no other place can access
/// while this exists.
pub struct OwnPart<T: 'static> {
    values: NonNull<T>,
    len: usize,
    memory: OwnMemory<T>,
}

/// Memory of the elements.
enum OwnMemory<T: 'static> {
    /// A box of the elements.
    Private,
    /// A part of this window, and the owner of its mapping, which may outlive the run.
    Window(Window<T>, #[expect(dead_code, reason = "it is kept, not read")] Option<Rc<dyn Any>>),
}

impl<T: Element> OwnPart<T> {
    /// Makes `len` elements that belong to no window, all zero.
    pub fn private(len: usize) -> OwnPart<T> {
        let values: *mut [T] = Box::into_raw(bytemuck::zeroed_vec(len).into_boxed_slice());
        let values = NonNull::new(values.cast()).expect("a box is somewhere");
        OwnPart { values, len, memory: OwnMemory::Private }
    }

    fn lent(window: Window<T>) -> Result<OwnPart<T>> {
        let state = window.state();
        let lent = state.attachment.with(|local| state.lend(local))?;
        let taken = || Error::new(ErrorKind::Misused, "the part of this place was taken already");
        let BorrowedWords { words, hold } = lent.ok_or_else(taken)?;
        let len = state.lens.of(state.rank as usize) as usize;
        assert!(len * size_of::<T>() <= words.len() * size_of::<AtomicU64>(), "a part holds its elements");
        Ok(OwnPart { values: words.cast(), len, memory: OwnMemory::Window(window, hold) })
    }

    /// Opens the window of the part to all members; returns once all of them have called it, and so given up their
    /// slices.
    ///
    /// If it fails or is given up, no member can access the part any more.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the part belongs to no window, or to one of another run.
    /// [`DeadPlace`](ErrorKind::DeadPlace): a member died.
    #[track_caller]
    pub fn open(self) -> impl Future<Output = Result<OpenWindow<T>>> {
        let line = Location::caller();
        async move {
            let OwnMemory::Window(window, _) = &self.memory else {
                return Err(Error::new(
                    ErrorKind::Misused,
                    "a part that belongs to no window cannot be opened",
                ));
            };
            let open = OpenWindow { window: window.clone(), is_closed: false };
            drop(self);
            open.window.state().end_loan();
            open.window.fence_at(line).await?;
            Ok(open)
        }
    }
}

impl<T: 'static> OwnPart<T> {
    /// Returns `true` if it is a part of a window.
    pub fn is_of_window(&self) -> bool {
        matches!(self.memory, OwnMemory::Window(..))
    }
}

impl<T: 'static> Deref for OwnPart<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // NEED: the elements of a window lie in words, and of code that has to be fast each element is asked for.
        // SOUND: `values` begins `len` elements that live as long as this: those of a box, or of words that the window
        // or what holds their mapping keeps. They are aligned (checked where a window is made), any bits are an element
        // (`AnyBitPattern`, where they are made), and nobody else looks at them (the header of this file).
        unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T: 'static> DerefMut for OwnPart<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // NEED: as for `deref`.
        // SOUND: as for `deref`; words may be changed through the shared reference that `values` came from.
        unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T: 'static> Drop for OwnPart<T> {
    fn drop(&mut self) {
        if let OwnMemory::Private = self.memory {
            let values = std::ptr::slice_from_raw_parts_mut(self.values.as_ptr(), self.len);
            // NEED: the box was taken apart, so that both kinds of memory are reached in the same way.
            // SOUND: `values` and `len` are those of a box (`private`), which is put together once.
            drop(unsafe { Box::from_raw(values) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OwnPart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A window while every member can access each part, from [`OwnPart::open`] to [`OpenWindow::close`].
///
/// Its accesses are those of [`Window`], and fail as those do. A member that drops it loses its part, and the fences of
/// the others end with that error.
pub struct OpenWindow<T: 'static> {
    window: Window<T>,
    is_closed: bool,
}

impl<T: 'static> Drop for OpenWindow<T> {
    fn drop(&mut self) {
        if !self.is_closed {
            self.window.state().team.iter().for_each(Team::give_up);
        }
    }
}

impl<T: Element> OpenWindow<T> {
    /// Closes the window; returns the part of this place once all members have called it and all accesses are done.
    ///
    /// If it fails or is given up, no member can access the part any more.
    ///
    /// # Errors
    /// [`DeadPlace`](ErrorKind::DeadPlace): a member died.
    #[track_caller]
    pub fn close(mut self) -> impl Future<Output = Result<OwnPart<T>>> {
        let line = Location::caller();
        async move {
            self.window.fence_at(line).await?;
            self.is_closed = true;
            OwnPart::lent(self.window.clone())
        }
    }

    /// As [`Window::fence`].
    ///
    /// # Errors
    /// As [`Window::fence`].
    #[track_caller]
    pub fn fence(&self) -> impl Future<Output = Result<()>> {
        self.window.fence()
    }

    /// As [`Window::put`].
    ///
    /// # Errors
    /// As [`Window::put`].
    #[track_caller]
    pub fn put<'a>(
        &'a self,
        target: usize,
        at: usize,
        data: &'a [T],
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        self.window.put(target, at, data)
    }

    /// As [`Window::get`].
    ///
    /// # Errors
    /// As [`Window::get`].
    #[track_caller]
    pub fn get<'a>(
        &'a self,
        target: usize,
        at: usize,
        into: &'a mut [T],
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        self.window.get(target, at, into)
    }

    /// As [`Window::get_strided`].
    ///
    /// # Errors
    /// As [`Window::get_strided`].
    #[track_caller]
    pub fn get_strided(
        &self,
        target: usize,
        at: usize,
        pieces: Strided,
        into: &mut [T],
    ) -> impl Future<Output = Result<()>> {
        self.window.get_strided(target, at, pieces, into)
    }
}

impl<T: WindowNumber> OpenWindow<T> {
    /// As [`Window::accumulate`].
    ///
    /// # Errors
    /// As [`Window::accumulate`].
    #[track_caller]
    pub fn accumulate<'a>(
        &'a self,
        target: usize,
        at: usize,
        operands: &'a [T],
        how: Combine,
    ) -> impl Future<Output = Result<()>> + use<'a, T> {
        self.window.accumulate(target, at, operands, how)
    }

    /// As [`Window::fetch_add`].
    ///
    /// # Errors
    /// As [`Window::fetch_add`].
    #[track_caller]
    pub fn fetch_add(&self, target: usize, at: usize, value: T) -> impl Future<Output = Result<T>> {
        self.window.fetch_add(target, at, value)
    }
}
