//! Windows: memory of each member of a team that every member reads and writes by itself.
//!
//! Here are the handle, and how windows are made. [`memory`] has words and bytes, [`number`] the operations on
//! elements, [`access`] the accesses and [`sync`] the epochs of a program, [`own`] parts that are slices of their place
//! between epochs, [`transfer`] the accesses by message, [`header`] the messages, and [`forms`] the other forms:
//! [`forms::queue`] defers everything, [`forms::check`] looks for conflicts, [`forms::served`] lies in memory of a
//! modelled chip. [`state`] is one window at one place, [`table`] all of them. `docs/design/windows.md` has the proof.

mod access;
/// Forms of a window beside the default one.
mod forms {
    pub(super) mod check;
    pub(super) mod queue;
    pub(super) mod served;
}
pub(crate) mod header;
mod memory;
mod number;
mod own;
mod state;
mod sync;
pub(crate) mod table;
mod transfer;

pub use access::Strided;
pub use forms::served::ServedMemory;
pub use number::{Combine, NumberKind, WindowNumber};
pub use own::{ClosedWindow, OpenWindow, OwnPart};
pub(crate) use table::{WindowTable, receive};

use crate::shared::MemoryRange;
use crate::table::service::Service;
use crate::team::Team;
use header::WindowId;
use isles_protocol::PlaceId;
use isles_protocol::window::{EpochFault, EpochKind};
use isles_runtime::capture::Element;
use isles_runtime::service::{
    FOREIGN, Members, PartRef, PlaceGroup, call, fold, replicate, travels_by_share,
};
use isles_runtime::{Error, ErrorKind, Local, Place, Result};
use memory::Pieces;
use serde::{Deserialize, Serialize};
use state::{Line, WindowState};
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

/// Memory of each member of a team, which every member reads and writes without the owner's help. The handle can be
/// sent to any member.
///
/// A rank names a member. Elements are plain (`bytemuck`), and zero at first. If places share memory, an access is a
/// copy; otherwise it is a message, which the target handles by itself.
///
/// ```ignore
/// let window = Window::<f64>::new(columns).await?;
/// everywhere!({
///     window.put(right, 0, &edge).await?;
///     window.fence().await?;
///     window.read(0, &mut halo)?;
/// })
/// .await?;
/// ```
///
/// **Epochs.** A place accesses parts only within an epoch: that of a [`fence`](Window::fence), in which a new window
/// starts; from [`start`](Window::start) to [`complete`](Window::complete), for which the targets
/// [`post`](Window::post) and [`wait`](Window::wait); or from [`lock`](Window::lock) to [`unlock`](Window::unlock). The
/// tasks of a place share its epochs. A `start` or a lock that fails or is given up leaves the place in its previous
/// epoch.
///
/// **Order.** The accesses of one place to one part are done in order. Between two places only epochs order accesses: a
/// place that reads what another writes in the same epoch sees a mixture of old and new, element by element of up to 8
/// bytes. [`WindowOptions::checked`] finds such programs.
///
/// # Errors
/// Of every operation:
/// - [`DeadPlace`](ErrorKind::DeadPlace): the member that it needs died.
/// - [`Misused`](ErrorKind::Misused): an index or a rank is out of range; there is no epoch for the access, or its
///   `start` or lock is not granted yet (the error names the line of the epoch that is open); the window checks
///   accesses and finds a conflict (the error names both accesses); or the handle is of another run.
pub struct Window<T: 'static> {
    // Dropped before `share`, as in `PlaceLocal`.
    value: Rc<WindowPart<T>>,
    share: PartRef,
}

travels_by_share!(Window, WindowPart<T>);

/// The part of a window at one place.
struct WindowPart<T> {
    state: Rc<WindowState>,
    element: PhantomData<T>,
}

impl<T> Drop for WindowPart<T> {
    fn drop(&mut self) {
        self.state.attachment.try_with(|local| WindowTable::of(local).remove(self.state.id));
    }
}

/// Options of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WindowOptions {
    /// Defers accesses and locks to the end of the epoch, and then sends lock, data and unlock one after the other, as
    /// RCKMPI did. For comparisons.
    pub queued: bool,
    /// Asks the owner before each access whether it conflicts with another one of the epoch. For tests of a program.
    pub checked: bool,
    /// On a modelled chip, places the parts in this memory, where a place on the other core of each member's tile
    /// serves the accesses to them. Without effect on other machines. Excludes the other options.
    pub served: Option<ServedMemory>,
}

impl WindowOptions {
    /// The default, in the queued form.
    pub fn queued() -> WindowOptions {
        WindowOptions { queued: true, ..WindowOptions::default() }
    }

    /// The default, with checks for conflicts.
    pub fn checked() -> WindowOptions {
        WindowOptions { checked: true, ..WindowOptions::default() }
    }

    /// The default, served on a modelled chip.
    pub fn served(memory: ServedMemory) -> WindowOptions {
        WindowOptions { served: Some(memory), ..WindowOptions::default() }
    }
}

/// Number of elements of each part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum PartLengths {
    Same(u64),
    Each(Vec<u64>),
}

impl PartLengths {
    #[inline]
    fn of(&self, rank: usize) -> u64 {
        match self {
            PartLengths::Same(len) => *len,
            PartLengths::Each(lens) => lens.get(rank).copied().unwrap_or_default(),
        }
    }

    fn longest(&self) -> u64 {
        match self {
            PartLengths::Same(len) => *len,
            PartLengths::Each(lens) => lens.iter().copied().max().unwrap_or_default(),
        }
    }
}

/// Description from which the parts of a window are made.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Seed {
    id: WindowId,
    team: Team,
    lens: PartLengths,
    element_bytes: usize,
    options: WindowOptions,
    /// The server of each rank; `None` if each member serves its own part.
    servers: Option<Vec<PlaceId>>,
}

// The bound is on each function, so that the compiler says what an element must be.
impl<T: 'static> Window<T> {
    /// Makes a window with `len` elements at every place; returns once all parts exist.
    ///
    /// # Errors
    /// As [`Window`] says; [`Misused`](ErrorKind::Misused): a place has no memory for its part.
    #[track_caller]
    pub fn new(len: usize) -> impl Future<Output = Result<Window<T>>>
    where
        T: Element,
    {
        let members = Members::All(Local::with(Local::places));
        let lens = PartLengths::Same(len as u64);
        let made = Window::make(Location::caller(), Ok(members), lens, WindowOptions::default());
        async move { Ok(made.await?.0) }
    }

    /// As [`Window::new`], at the members of `team`; one of them makes it.
    ///
    /// # Errors
    /// As [`Window::new`]; [`Misused`](ErrorKind::Misused): this place is no member, or the team is one of another run.
    #[track_caller]
    pub fn new_on(team: &Team, len: usize) -> impl Future<Output = Result<Window<T>>>
    where
        T: Element,
    {
        let lens = PartLengths::Same(len as u64);
        let made = Window::make(Location::caller(), team.members(), lens, WindowOptions::default());
        async move { Ok(made.await?.0) }
    }

    /// As [`Window::new_on`], with the given number of elements at each rank, which may be zero, and with `options`.
    ///
    /// # Errors
    /// As [`Window::new_on`]; [`Misused`](ErrorKind::Misused): there is not one length for each member, or no place on
    /// the tile of a member can serve its part of a served window.
    #[track_caller]
    pub fn with_lens(
        team: &Team,
        lens: &[usize],
        options: WindowOptions,
    ) -> impl Future<Output = Result<Window<T>>>
    where
        T: Element,
    {
        let made = Window::with_members(Location::caller(), team, lens, options);
        async move { Ok(made.await?.0) }
    }
}

impl<T: Element> Window<T> {
    fn with_members(
        line: Line,
        team: &Team,
        lens: &[usize],
        options: WindowOptions,
    ) -> impl Future<Output = Result<(Window<T>, bool)>> + use<T> {
        let members = team.members().and_then(|members| match members.len() == lens.len() {
            true => Ok(members),
            false => {
                let text = format!("{} lengths for a window of {} places", lens.len(), members.len());
                Err(Error::new(ErrorKind::Misused, text))
            }
        });
        let lens = PartLengths::Each(lens.iter().map(|len| *len as u64).collect());
        Window::make(line, members, lens, options)
    }

    /// Makes a window, and finds out whether each member can map each part of it.
    fn make(
        line: Line,
        members: Result<Members>,
        lens: PartLengths,
        options: WindowOptions,
    ) -> impl Future<Output = Result<(Window<T>, bool)>> {
        call::called_at(line, async move {
            let members = members?;
            let element_bytes = size_of::<T>();
            let bytes = lens.longest().checked_mul(element_bytes as u64);
            if bytes.is_none_or(|bytes| bytes > isize::MAX as u64) {
                let text = format!(
                    "{} elements of {element_bytes} bytes; allowed: what fits memory",
                    lens.longest()
                );
                return Err(Error::new(ErrorKind::Misused, text));
            }
            let servers = find_servers(&members, options)?;
            let id = Local::with(|local| WindowTable::of(local).next_id(local.here()));
            let team = Team::of_members(members.clone());
            let seed = Seed { id, team, lens, element_bytes, options, servers };
            let there = move |seed: Seed| WindowPart::<T>::new(seed);
            let value = Rc::new(WindowPart::<T>::new(seed.clone()));
            let share = replicate(line, members, &seed, Rc::clone(&value), there).await?;
            let check = |part: &WindowPart<T>| {
                part.state.check_memory()?;
                Ok(Local::with(|local| part.state.is_near(local)))
            };
            let is_near = fold::<WindowPart<T>, bool, _>(&share, check, |one, other| one && other).await?;
            if value.state.servers.is_some() {
                let range = |part: &WindowPart<T>| Ok(part.state.served_range().into_iter().collect());
                let ranges = fold::<WindowPart<T>, Vec<MemoryRange>, _>(&share, range, |one, other| {
                    one.into_iter().chain(other).collect()
                });
                value.state.begin_service(ranges.await?).await?;
            }
            Ok((Window { value, share }, is_near))
        })
    }
}

/// Returns the servers of a window with these options, if it has any.
///
/// # Errors
/// A member cannot be served, or the options exclude each other.
fn find_servers(members: &Members, options: WindowOptions) -> Result<Option<Vec<PlaceId>>> {
    if options.served.is_none() {
        return Ok(None);
    }
    if options.queued || options.checked {
        let text = "a served window that is queued or checked; allowed: one of the three";
        return Err(Error::new(ErrorKind::Misused, text));
    }
    Local::with(|local| forms::served::servers(local, members))
}

impl<T> WindowPart<T> {
    /// Makes the part of this place.
    fn new(seed: Seed) -> WindowPart<T> {
        Local::with(|local| {
            let state = Rc::new(WindowState::new(local, seed));
            WindowTable::of(local).insert(&state);
            WindowPart { state, element: PhantomData }
        })
    }
}

impl<T: 'static> Window<T> {
    #[inline]
    fn state(&self) -> &Rc<WindowState> {
        &self.value.state
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.state().members.len()
    }

    /// Returns the rank of this place, from 0.
    pub fn rank(&self) -> usize {
        self.state().rank as usize
    }

    /// Returns the member with `rank`.
    ///
    /// # Panics
    /// If there is no such rank.
    #[track_caller]
    pub fn place_of(&self, rank: usize) -> Place {
        Place::of(self.state().members.member(rank))
    }

    /// Returns the rank of `place`, or `None` if it is not a member.
    pub fn rank_of(&self, place: Place) -> Option<usize> {
        self.state().members.rank_of(place.id())
    }

    /// Returns the number of elements in the part of `rank`; 0 if there is no such rank.
    pub fn len_of(&self, rank: usize) -> usize {
        if rank < self.size() { self.state().lens.of(rank) as usize } else { 0 }
    }
}

impl<T: Element> Window<T> {
    /// Reads elements of the part here, from `at` on, in any epoch.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the range is out of bounds, or the handle is of another run.
    #[track_caller]
    pub fn read(&self, at: usize, into: &mut [T]) -> Result<()> {
        let layout = self.own_layout("a read", at, into.len())?;
        Local::with(|local| self.state().load_own(local, layout, bytemuck::cast_slice_mut(into)));
        Ok(())
    }

    /// Writes elements of the part here, from `at` on, in any epoch.
    ///
    /// # Errors
    /// As [`Window::read`].
    #[track_caller]
    pub fn write(&self, at: usize, data: &[T]) -> Result<()> {
        let layout = self.own_layout("a write", at, data.len())?;
        Local::with(|local| self.state().store_own(local, layout, bytemuck::cast_slice(data)));
        Ok(())
    }

    /// Returns the position of elements in the part here.
    #[track_caller]
    fn own_layout(&self, what: &str, at: usize, len: usize) -> Result<Pieces> {
        let (state, line) = (self.state(), Location::caller());
        let own = state.lens.of(state.rank as usize);
        let is_foreign = self.share.attachment().is_foreign();
        let text = match at.checked_add(len) {
            _ if is_foreign => FOREIGN.to_owned(),
            Some(end) if end as u64 <= own => {
                return Ok(Pieces::contiguous(at * state.element_bytes, len * state.element_bytes));
            }
            _ => format!("{what} of {len} elements from {at} on in a part that has {own}"),
        };
        access::named(line, Err(Error::new(ErrorKind::Misused, text)))
    }
}

/// Describes the epoch that is in the way of an operation.
fn describe(fault: EpochFault<Option<Line>>) -> String {
    let Some(line) = fault.since else {
        return "the open epoch is that of a new window".to_owned();
    };
    match fault.epoch {
        EpochKind::Started if fault.is_pending => format!("the start at {line} still waits for posts"),
        EpochKind::Locked if fault.is_pending => format!("the lock asked for at {line} is not granted yet"),
        EpochKind::Closed => format!("no epoch is open since {line}"),
        EpochKind::Fence => format!("the open epoch is that of the fence at {line}"),
        EpochKind::Started => format!("the open epoch is that of the start at {line}"),
        EpochKind::Locked => format!("the open epoch is that of the lock at {line}"),
    }
}
