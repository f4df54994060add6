//! One segment: the shared memory of all places of one run on one host.
//!
//! A [`Segment`] is the same for places that are threads (mapped once, cloned) and for places that are processes
//! (mapped in each). This module creates and attaches segments, creates one [`ShmEndpoint`] for each place, and records
//! the life of each place. It starts no process ([`crate::processes`]) and moves no message ([`crate::endpoint`]).

mod file;
mod mapping;
#[cfg(test)]
mod tests;

pub use file::MappedFile;
pub use mapping::MemoryError;
pub(crate) use mapping::{Mapping, View};

use super::{parking, pinning};
use crate::endpoint::ShmEndpoint;
use crate::layout::{
    Geometry, Layout, MAGIC, PAGE_BYTES, PROCESSORS_MAX, PlaceBlock, SegmentHeader, VERSION,
};
use crate::lifecycle::{ExitCause, JOINED, Lifecycle};
use crate::parking::Fencing;
use crate::pinning::{CoreAssignment, Pinning};
use crate::words::SharedWords;
use crate::{futex, membarrier};
use isles_transport::{Class, PlaceId};
use rustix::fs;
use rustix::fs::SealFlags;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Identifies a program image; places of different images cannot run together.
pub type Image = [u8; 16];

/// Error of creating a segment, attaching to it, or taking an endpoint of it.
#[derive(Debug)]
pub enum SegmentError {
    /// No segment can have these sizes; the text is the rule that they break.
    BadGeometry(&'static str),
    /// The memory was refused.
    Memory(MemoryError),
    /// The descriptor is not a segment; the text says what is wrong with it.
    NotASegment(&'static str),
    /// The segment was created by a program with another layout.
    VersionMismatch {
        /// Our version.
        ours: u32,
        /// The segment's version.
        theirs: u32,
    },
    /// The segment was created by another program image.
    ImageMismatch {
        /// Our image.
        ours: Image,
        /// The segment's image.
        theirs: Image,
    },
    /// The place already has or had an endpoint, or is dead.
    PlaceTaken(PlaceId),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::BadGeometry(rule) => write!(f, "no segment of these sizes: {rule}"),
            SegmentError::Memory(error) => error.fmt(f),
            SegmentError::NotASegment(why) => write!(f, "not a segment: {why}"),
            SegmentError::VersionMismatch { ours, theirs } => {
                write!(f, "the segment has layout version {theirs}; this program has version {ours}")
            }
            SegmentError::ImageMismatch { ours, theirs } => {
                let (ours, theirs) = (u128::from_be_bytes(*ours), u128::from_be_bytes(*theirs));
                write!(
                    f,
                    "the segment belongs to program image {theirs:032x}; this program is image {ours:032x}"
                )
            }
            SegmentError::PlaceTaken(place) => write!(f, "{place} is already attached, or dead"),
        }
    }
}

impl std::error::Error for SegmentError {}

impl From<MemoryError> for SegmentError {
    fn from(error: MemoryError) -> Self {
        SegmentError::Memory(error)
    }
}

/// The shared memory of one run; clones are the same memory.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Attachment>);

#[derive(Debug)]
struct Attachment {
    mapping: Mapping,
    layout: Layout,
    fencing: Fencing,
    /// In the process that created the segment: the claims that keep other runs off its processors.
    homes: OnceLock<CoreAssignment>,
    /// Words in which places count, if the run is observed.
    counters: OnceLock<SharedWords>,
}

impl Segment {
    /// Creates the segment of a run of `places` places, with the usual sizes if the limits of this process permit them.
    ///
    /// Otherwise the arenas, and with them the longest message, are made smaller until the segment takes at most half
    /// of the address space (`ulimit -v`), because the program needs some too, and further if the system refuses that.
    ///
    /// # Errors
    /// As [`Segment::create`], if not even the smallest arenas fit.
    pub fn for_places(places: u32, image: Image) -> Result<Segment, SegmentError> {
        Segment::for_places_on(places, image, &pinning::allowed())
    }

    /// As [`Segment::for_places`], for places whose processes together may use `processors`: each process may have been
    /// bound to fewer by its launcher.
    ///
    /// # Errors
    /// As [`Segment::for_places`].
    pub fn for_places_on(places: u32, image: Image, processors: &[usize]) -> Result<Segment, SegmentError> {
        let mut geometry = Geometry::for_places(places);
        geometry.check().map_err(SegmentError::BadGeometry)?;
        let space = mapping::address_space_max().map_or(u64::MAX, |limit| limit / 2);
        while Layout::of(geometry).total_bytes > space
            && let Some(smaller) = geometry.with_smaller_arenas()
        {
            geometry = smaller;
        }
        loop {
            use MemoryError::{FileSizeLimit, NoAddressSpace};
            match (Segment::create_on(geometry, image, processors), geometry.with_smaller_arenas()) {
                (Err(SegmentError::Memory(FileSizeLimit { .. } | NoAddressSpace { .. })), Some(smaller)) => {
                    geometry = smaller;
                }
                (answer, _) => return answer,
            }
        }
    }

    /// Creates the segment of a run; `image` identifies the program, for processes that attach.
    ///
    /// # Errors
    /// The sizes are invalid, or the system refused a resource. Nothing is left behind.
    pub fn create(geometry: Geometry, image: Image) -> Result<Segment, SegmentError> {
        Segment::create_on(geometry, image, &pinning::allowed())
    }

    fn create_on(geometry: Geometry, image: Image, processors: &[usize]) -> Result<Segment, SegmentError> {
        geometry.check().map_err(SegmentError::BadGeometry)?;
        let layout = Layout::of(geometry);
        let mapping = Mapping::create(layout.total_bytes, layout.reserved_bytes())?;
        let fencing = choose_fencing(&geometry, processors.len());
        write_header(&mapping, &layout, image, fencing, processors);
        let segment = Segment(Arc::new(Attachment {
            mapping,
            layout,
            fencing,
            homes: OnceLock::new(),
            counters: OnceLock::new(),
        }));
        segment.reserve_rings()?;
        Ok(segment)
    }

    /// Attaches to the segment of an inherited descriptor.
    pub(crate) fn attach(file: OwnedFd, image: Image) -> Result<Segment, SegmentError> {
        let (layout, fencing, theirs) = read_header(&file)?;
        if theirs != image {
            return Err(SegmentError::ImageMismatch { ours: image, theirs });
        }
        Segment::attach_any(file, layout, fencing)
    }

    /// Attaches without a check of the image, for a place that must report that it was refused.
    pub(crate) fn attach_refused(file: OwnedFd) -> Result<Segment, SegmentError> {
        let (layout, fencing, _) = read_header(&file)?;
        Segment::attach_any(file, layout, fencing)
    }

    fn attach_any(file: OwnedFd, layout: Layout, fencing: Fencing) -> Result<Segment, SegmentError> {
        let mapping = Mapping::map(file, layout.total_bytes)?;
        if fencing == Fencing::Sleeper && !membarrier::register() {
            return Err(SegmentError::NotASegment("its creator could use membarrier; this process may not"));
        }
        Ok(Segment(Arc::new(Attachment {
            mapping,
            layout,
            fencing,
            homes: OnceLock::new(),
            counters: OnceLock::new(),
        })))
    }

    /// Creates the endpoint of `place`, once in the life of the segment.
    ///
    /// # Errors
    /// [`SegmentError::PlaceTaken`]: the place is attached already, or dead.
    pub fn endpoint(&self, place: PlaceId) -> Result<ShmEndpoint, SegmentError> {
        if !self.change_life(place, Lifecycle::Joined, |life| life == Lifecycle::Absent) {
            return Err(SegmentError::PlaceTaken(place));
        }
        Ok(ShmEndpoint::new(self.clone(), place))
    }

    /// Returns the number of places of the run.
    pub fn places(&self) -> u32 {
        self.geometry().places
    }

    /// Returns the sizes of this segment.
    pub fn geometry(&self) -> &Geometry {
        &self.layout().geometry
    }

    /// Returns the image that the segment was created for.
    pub fn image(&self) -> Image {
        self.header().image
    }

    /// Declares `place` dead, unless it has left; wakes all others, which then learn of it.
    pub fn mark_dead(&self, place: PlaceId) {
        self.change_life(place, Lifecycle::Ended(ExitCause::Unseen), |life| !life.is_over());
    }

    /// Assigns processors to the places according to `pinning`, as long as this process has the segment. The creator
    /// calls it once, before places start.
    pub fn keep_processors(&self, pinning: &Pinning) {
        let homes = self
            .0
            .homes
            .get_or_init(|| CoreAssignment::choose(pinning, self.places() as usize, &self.allowed()));
        let returns = matches!(pinning, Pinning::Processors(_));
        for (place, processor) in self.all_places().zip(&homes.processors) {
            let block = self.block(place);
            // Relaxed, both: places read them after they start or receive the segment, which comes later.
            block.home.store(*processor as u32 + 1, Ordering::Relaxed);
            block.returns.store(returns.into(), Ordering::Relaxed);
        }
    }

    /// Sets the words of the places' counters, which processes started as places from now on inherit. Must be called at
    /// most once.
    pub fn set_counters(&self, words: SharedWords) {
        assert!(self.0.counters.set(words).is_ok(), "the run has words to count in already");
    }

    /// Returns the words of the places' counters, if the run is observed.
    pub fn counters(&self) -> Option<&SharedWords> {
        self.0.counters.get()
    }

    /// Returns the processor that is assigned to `place`, if any.
    pub fn home(&self, place: PlaceId) -> Option<usize> {
        // Relaxed: written before the place was started.
        (self.block(place).home.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Moves the calling thread to the processor of `place`, if there is one; the system may move it elsewhere later.
    ///
    /// Without this, 8 places on 2 processors took a quarter longer for a hop round a ring in the first hundredths of a
    /// second.
    pub fn settle(&self, place: PlaceId) {
        self.home(place).into_iter().for_each(pinning::start_on);
    }

    /// Returns `true` if there are more places than processors for them.
    pub(crate) fn shares_processors(&self) -> bool {
        self.places() > self.processors()
    }

    /// Returns `true` if senders ring a bell, and receivers poll only that.
    pub(crate) fn has_bells(&self) -> bool {
        self.geometry().has_bells(self.processors())
    }

    /// Returns the number of processors the creator of the segment was allowed to use.
    pub(crate) fn processors(&self) -> u32 {
        self.header().processors
    }

    /// Returns the processors that the creator of the segment was allowed to use.
    pub(crate) fn allowed(&self) -> Vec<usize> {
        pinning::decode(&self.header().processor_set)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.0.mapping
    }

    pub(crate) fn fencing(&self) -> Fencing {
        self.0.fencing
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.mapping().file()
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        self.mapping().view(0)
    }

    pub(crate) fn block(&self, place: PlaceId) -> &PlaceBlock {
        self.mapping().view(self.layout().place_block(place))
    }

    /// Returns the life of `place`.
    pub(crate) fn life(&self, place: PlaceId) -> Lifecycle {
        // PAIR place.life: observe
        Lifecycle::decode(self.block(place).life.load(Ordering::Acquire))
    }

    /// Returns `true` if `place` is dead; quick for one that has joined.
    #[inline]
    pub(crate) fn is_dead(&self, place: PlaceId) -> bool {
        // PAIR place.life: observe
        let word = self.block(place).life.load(Ordering::Acquire);
        word != JOINED && Lifecycle::decode(word).is_dead()
    }

    /// Sets the state of `place` to `next` if `may` accepts the present one. Returns `true` if it did. Wakes all places
    /// if `next` is an end.
    pub(crate) fn change_life(
        &self,
        place: PlaceId,
        next: Lifecycle,
        may: impl Fn(Lifecycle) -> bool,
    ) -> bool {
        let step = |word: u64| may(Lifecycle::decode(word)).then(|| next.encode());
        // PAIR place.life: publish
        let changed = self.block(place).life.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).is_ok();
        if changed {
            self.count_change();
        }
        if changed && next.is_over() {
            self.wake_all();
        }
        changed
    }

    /// Notes that the process of `place` has ended, and thus holds no memory any more; all others learn of it.
    pub(crate) fn mark_reaped(&self, place: PlaceId, end: ExitCause) {
        // PAIR place.reaped: publish
        self.block(place).reaped.store(1, Ordering::Release);
        if !self.change_life(place, Lifecycle::Ended(end), |life| !life.is_over()) {
            self.count_change();
            self.wake_all();
        }
    }

    /// Counts a change of a life, and wakes the threads that wait for one.
    fn count_change(&self) {
        let changes = &self.header().changes.0;
        // PAIR head.changes: publish
        changes.fetch_add(1, Ordering::SeqCst);
        futex::wake(changes);
    }

    /// Wakes every place, whatever its parking word says.
    fn wake_all(&self) {
        for place in self.all_places() {
            parking::wake_parked(&self.block(place).sleeping.0);
        }
    }

    /// Returns the number of changes so far.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.header().changes()
    }

    /// Sleeps until the count of changes is no longer `seen`, or until `deadline`. Returns `false` at the deadline.
    pub(crate) fn await_change(&self, seen: u32, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left != Duration::ZERO {
            futex::sleep(&self.header().changes.0, seen, Some(left));
        }
        left != Duration::ZERO
    }

    pub(crate) fn all_places(&self) -> impl Iterator<Item = PlaceId> + use<> {
        (0..self.places()).map(PlaceId)
    }

    /// Reserves the pages that receivers poll before anything was sent.
    fn reserve_rings(&self) -> Result<(), MemoryError> {
        if !self.geometry().is_direct() {
            return Ok(());
        }
        for source in self.all_places() {
            for target in self.all_places().filter(|target| *target != source) {
                for class in [Class::Control, Class::Data] {
                    let offset = self.layout().ring(source, target, class);
                    fs::fallocate(self.file(), fs::FallocateFlags::empty(), offset, PAGE_BYTES)
                        .map_err(|cause| MemoryError::NoPages { bytes: PAGE_BYTES, cause: cause.into() })?;
                }
            }
        }
        Ok(())
    }
}

/// Chooses `Sleeper` if places seldom sleep: each has a processor, and there is no bell, which needs a fence anyway.
fn choose_fencing(geometry: &Geometry, processors: usize) -> Fencing {
    let seldom = !geometry.has_bells(processors as u32);
    if seldom && membarrier::register() { Fencing::Sleeper } else { Fencing::Both }
}

fn write_header(mapping: &Mapping, layout: &Layout, image: Image, fencing: Fencing, processors: &[usize]) {
    let header = mapping.range(0, size_of::<SegmentHeader>()).cast::<SegmentHeader>();
    let geometry = &layout.geometry;
    // NEED: the plain fields of the header are written through the mapping.
    // SOUND: nobody else has the memory yet; it is in bounds, aligned to a page, and zero is a valid `SegmentHeader`.
    let header = unsafe { &mut *header.as_ptr() };
    header.magic = MAGIC;
    header.version = VERSION;
    header.places = geometry.places;
    header.image = image;
    header.total_bytes = layout.total_bytes;
    header.control_bytes = geometry.control_bytes;
    header.data_bytes = geometry.data_bytes;
    header.arena_bytes = geometry.arena_bytes;
    header.fencing = (fencing == Fencing::Sleeper).into();
    header.processors = processors.len() as u32;
    header.processor_set = pinning::encode(processors);
}

/// Reads and checks the header of the file, before all of it is mapped.
fn read_header(file: &OwnedFd) -> Result<(Layout, Fencing, Image), SegmentError> {
    let bad = SegmentError::NotASegment;
    let seals = fs::fcntl_get_seals(file).map_err(|_| bad("the descriptor is not a sealed memory file"))?;
    if !seals.contains(SealFlags::SHRINK | SealFlags::SEAL) {
        return Err(bad("the memory file is not sealed"));
    }
    let size = fs::fstat(file).map_err(|_| bad("the descriptor has no size"))?.st_size as u64;
    if size < PAGE_BYTES {
        return Err(bad("the memory file is shorter than its header"));
    }
    let copy = rustix::io::dup(file).map_err(|cause| MemoryError::NoDescriptor(cause.into()))?;
    let first = Mapping::map(copy, PAGE_BYTES)?;
    let header = first.view::<SegmentHeader>(0);
    if header.magic != MAGIC {
        return Err(bad("the first word is different"));
    }
    if header.version != VERSION {
        return Err(SegmentError::VersionMismatch { ours: VERSION, theirs: header.version });
    }
    let SegmentHeader { places, control_bytes, data_bytes, arena_bytes, .. } = *header;
    let geometry = Geometry { places, control_bytes, data_bytes, arena_bytes };
    geometry.check().map_err(SegmentError::BadGeometry)?;
    let layout = Layout::of(geometry);
    if layout.total_bytes != size || header.total_bytes != size || header.processors as usize > PROCESSORS_MAX
    {
        return Err(bad("the sizes in the header do not match the file"));
    }
    let fencing = if header.fencing == 1 { Fencing::Sleeper } else { Fencing::Both };
    Ok((layout, fencing, header.image))
}
