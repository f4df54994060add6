//! The state of one place, and the way to it from the tasks that run there.
//!
//! A place has one worker: one thread runs its tasks and handles its messages. So everything here is single-threaded;
//! other threads reach a place only through its [`Injector`]. Under the seeded loopback several places share a thread
//! and are entered in turn.
//!
//! It does not know which transport carries the messages, nor what a program computes.

mod backlog;
mod clock;
mod death;
mod outbox;
pub mod output;
mod probe;
mod queue;
mod send;
mod turn;
mod unsent;
mod worker;

pub use clock::Clock;
pub use send::{Encode, Sent};
pub use unsent::Unsent;
pub use worker::Step;

use crate::attachment::Attachment;
use crate::call::CallTable;
use crate::call::site::SiteCell;
use crate::error::entered;
use crate::finish::{FinishTable, Scope};
use crate::handle::words::WordTable;
use crate::part::PartTable;
use crate::run::process;
use crate::run::region::MeasuredRegion;
use crate::run::report::{RunState, StatedMemory, Totals};
use crate::service::{ServiceTable, Services};
use crate::task::{Injector, Pool, Priority, TaskMemory, TaskRef};
use crate::time::Timers;
use backlog::Backlog;
use isles_protocol::PlaceId;
use isles_transport::{Class, Endpoint, Limits};
use outbox::Outbox;
pub use probe::CoreReading;
use probe::Probe;
use queue::{ReadyQueue, SuspendedTasks};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use turn::Turn;

/// The state of one place.
pub struct Local {
    here: PlaceId,
    attachment: Attachment,
    places: u32,
    endpoint: Box<dyn Endpoint>,
    /// The limits of the endpoint.
    limits: Limits,
    /// True if places share processors: a waiting place then yields at once.
    pub(crate) shares_processors: bool,
    /// True if some places are on other hosts.
    pub(crate) has_remote_hosts: bool,
    /// True if the machine draws spans.
    pub(crate) draws_spans: bool,
    /// True if the machine can send one message to several places at once.
    pub(crate) offers_multicast: bool,
    clock: Clock,
    ready: RefCell<ReadyQueue>,
    /// Messages whose tasks have not begun.
    pub(crate) backlog: Backlog,
    suspended: RefCell<SuspendedTasks>,
    /// The scope of the running task; that of the root if none runs.
    scope: Cell<Scope>,
    /// True while messages are delivered, when nothing may wait for room.
    delivering: Cell<bool>,
    /// Receiver of the message being written, if any; meanwhile only the outbox may send.
    writing: Cell<Option<PlaceId>>,
    /// True if the message being written, or the last one, contains something that may not travel alone.
    pub(crate) has_refused: Cell<bool>,
    outbox: RefCell<Outbox>,
    /// Number of messages in the outbox; lets a send check without a borrow.
    outbox_len: Cell<usize>,
    /// The tasks that wait until everything is sent, and whether there are any.
    sent_waits: RefCell<Vec<Waker>>,
    has_sent_waits: Cell<bool>,
    pub(crate) finishes: FinishTable,
    pub(crate) calls: CallTable,
    pub(crate) words: RefCell<WordTable>,
    pub(crate) parts: RefCell<PartTable>,
    pub(crate) services: Services,
    /// True if services take in values that come without a message.
    pub(crate) is_watching: Cell<bool>,
    pub(crate) timers: Timers,
    pub(crate) tally: Totals,
    pub(crate) stated_memory: Rc<StatedMemory>,
    /// The regions that tasks have marked.
    pub(crate) regions: RefCell<Vec<MeasuredRegion>>,
    /// Effort of operations that completed at once since a task last yielded for it; see `coop`.
    pub(crate) spent: Cell<u32>,
    /// Time since the place last looked for messages.
    turn: Turn,
    /// True if the running task has yielded of its own accord, so that the place looks for messages before it runs more
    /// tasks.
    pub(crate) has_yielded: Cell<bool>,
    pub(crate) run: RunState,
    /// The places that are known here to be dead.
    pub(crate) deaths: RefCell<Vec<PlaceId>>,
    /// In an invented world where sends wait: gives others a turn; returns `false` if the send must wait no longer.
    others: OnceCell<Box<dyn Fn() -> bool>>,
    /// The probe for observers of the run; unset if there are none.
    probe: OnceCell<Box<Probe>>,
    /// On a modelled chip that is observed: clock, voltage and energy of the core.
    core_reading: Cell<CoreReading>,
    /// Dropped last, after all fields that may hold wakers.
    tasks: TaskMemory,
}

thread_local! {
    static CURRENT: Cell<*const Local> = const { Cell::new(std::ptr::null()) };
}

/// Returns the place that is entered on this thread, or null. A separate function, because generic code is compiled for
/// each of its uses.
#[inline]
fn current() -> *const Local {
    CURRENT.try_with(Cell::get).unwrap_or(std::ptr::null())
}

#[cold]
#[track_caller]
fn no_place() -> ! {
    panic!("{}", process::why_no_place())
}

/// Restores the place that was entered before, even when unwinding.
struct EnterGuard(*const Local, Option<PlaceId>);

impl Drop for EnterGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
        entered::enter(self.1);
    }
}

/// Sets a flag until it is dropped; then restores the flag.
pub(crate) struct FlagGuard<'a> {
    flag: &'a Cell<bool>,
    before: bool,
}

/// Marks that a message is being written until it is dropped; then restores the state.
pub struct WritingGuard<'a> {
    local: &'a Local,
    before: Option<PlaceId>,
}

impl Drop for WritingGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.local.writing.set(self.before);
    }
}

impl<'a> FlagGuard<'a> {
    #[inline]
    fn new(flag: &'a Cell<bool>) -> Self {
        FlagGuard { flag, before: flag.replace(true) }
    }
}

impl Drop for FlagGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.flag.set(self.before);
    }
}

impl Local {
    /// Returns the state of the place that `endpoint` attaches, with the services that `services` makes for place
    /// `here` of the run's places.
    pub fn new(
        endpoint: Box<dyn Endpoint>,
        clock: Clock,
        services: fn(here: PlaceId, places: u32) -> Box<dyn ServiceTable>,
    ) -> Rc<Local> {
        process::watch_forks();
        let tasks = TaskMemory::new(endpoint.unparker());
        Rc::new(Local {
            here: endpoint.here(),
            attachment: Attachment::next(),
            places: endpoint.places(),
            limits: endpoint.limits(),
            shares_processors: endpoint.shares_processors(),
            has_remote_hosts: endpoint.other_hosts().is_some(),
            draws_spans: endpoint.span_sink().is_some(),
            offers_multicast: endpoint
                .multicast()
                .is_some_and(|offered| !offered.bytes(Class::Control).is_empty()),
            finishes: FinishTable::new(endpoint.here(), endpoint.places()),
            services: Services::new(services(endpoint.here(), endpoint.places())),
            is_watching: Cell::new(false),
            parts: RefCell::default(),
            timers: Timers::default(),
            run: RunState::default(),
            endpoint,
            clock,
            ready: RefCell::default(),
            backlog: Backlog::default(),
            suspended: RefCell::default(),
            scope: Cell::new(Scope::DETACHED),
            delivering: Cell::new(false),
            writing: Cell::new(None),
            has_refused: Cell::new(false),
            outbox: RefCell::default(),
            outbox_len: Cell::new(0),
            sent_waits: RefCell::default(),
            has_sent_waits: Cell::new(false),
            calls: CallTable::default(),
            words: RefCell::default(),
            tally: Totals::default(),
            stated_memory: Rc::default(),
            regions: RefCell::default(),
            spent: Cell::new(0),
            turn: Turn::default(),
            has_yielded: Cell::new(false),
            deaths: RefCell::default(),
            others: OnceCell::new(),
            probe: OnceCell::new(),
            core_reading: Cell::default(),
            tasks,
        })
    }

    /// Lets sends without room wait even though time is invented: `others` gives another place a turn, and returns
    /// whether to wait on. Call once.
    pub fn set_others(&self, others: impl Fn() -> bool + 'static) {
        assert!(self.others.set(Box::new(others)).is_ok(), "the other places are known already");
    }

    /// Returns the receiver of the message being written, or this place if none is.
    #[inline]
    pub(crate) fn written_to(&self) -> PlaceId {
        self.writing.get().unwrap_or(self.here)
    }

    /// Runs `f` with this as the place of the calling thread.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _before = EnterGuard(CURRENT.replace(self), entered::enter(Some(self.here)));
        f()
    }

    /// Runs `f` with the place entered on this thread.
    ///
    /// # Panics
    /// If no place is entered.
    #[inline]
    #[track_caller]
    pub fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
        // NEED: a scoped thread-local reference.
        // SOUND: as in `try_with`.
        match unsafe { current().as_ref() } {
            Some(local) => f(local),
            None => no_place(),
        }
    }

    /// Removes the place from the calling thread, which is about to end or was made by a fork; returns its id.
    pub(crate) fn leave_thread() -> Option<PlaceId> {
        let here = Self::try_with(Local::here);
        // A thread that is ending has none.
        let _ = CURRENT.try_with(|current| current.set(std::ptr::null()));
        entered::enter(None);
        here
    }

    /// Runs `f` with the place entered on this thread, if there is one.
    #[inline]
    pub fn try_with<R>(f: impl FnOnce(&Local) -> R) -> Option<R> {
        // NEED: a scoped thread-local reference.
        // SOUND: the pointer is set by `enter`, which borrows the place until it has set the one before again; the
        // reference does not escape `f`.
        let local = unsafe { current().as_ref() }?;
        Some(f(local))
    }

    /// Returns the id of this place.
    #[inline]
    pub fn here(&self) -> PlaceId {
        self.here
    }

    /// Returns the attachment of this place, which no other place has, and none of another run.
    #[inline]
    pub fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// Returns the number of places of the run.
    pub fn places(&self) -> u32 {
        self.places
    }

    /// Returns all other places, in order.
    pub(crate) fn others(&self) -> impl Iterator<Item = PlaceId> + use<> {
        let here = self.here;
        (0..self.places).map(PlaceId).filter(move |place| *place != here)
    }

    /// Returns the clock of the place.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the injector, through which woken tasks come back.
    #[inline]
    pub(crate) fn injector(&self) -> &'static Injector {
        self.tasks.injector
    }

    /// Returns the memory of the place's tasks.
    #[inline]
    pub(crate) fn pool(&self) -> &Pool {
        &self.tasks.pool
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &dyn Endpoint {
        &*self.endpoint
    }

    /// Returns `true` if this place has learnt that `place` is dead.
    pub fn is_dead(&self, place: PlaceId) -> bool {
        place != self.here && self.endpoint.is_dead(place)
    }

    /// Queues a task that is ready to run.
    #[inline]
    pub(crate) fn ready(&self, task: TaskRef, priority: Priority) {
        self.ready.borrow_mut().push(task, priority);
    }

    /// Returns `true` if some task is ready to run.
    pub fn has_ready(&self) -> bool {
        self.ready.borrow().len() > 0
    }

    /// Returns the scope of the running task.
    #[inline]
    pub fn scope(&self) -> Scope {
        self.scope.get()
    }

    /// Sets the scope of what runs from now on; returns the previous one.
    #[inline]
    pub fn set_scope(&self, scope: Scope) -> Scope {
        self.scope.replace(scope)
    }

    /// Makes a task of `future` that the caller has counted in `scope`, and queues it.
    ///
    /// # Safety
    /// As for [`TaskRef::new`].
    pub(crate) unsafe fn start<F>(&self, future: F, scope: Scope, site: &'static SiteCell, priority: Priority)
    where
        F: Future<Output = crate::Result<()>>,
    {
        // NEED: a task of any lifetime.
        // SOUND: by the contract.
        let task = unsafe { TaskRef::new(future, scope, site, priority, self.injector(), self.pool()) };
        self.ready(task, priority);
    }
}
