//! All that one place keeps, and the way to it from the tasks that run there.
//!
//! A place has one worker: one thread runs its tasks and its messages. So everything here is single-threaded;
//! other threads reach a place only through its [`Injector`]. Under the seeded loopback several places share a
//! thread and are entered in turn.
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
    /// The bounds of the endpoint.
    limits: Limits,
    /// Places share processors: who waits gives way at once.
    pub(crate) shares_processors: bool,
    /// Some places are on other hosts.
    pub(crate) has_remote_hosts: bool,
    /// The machine wants to know of spans.
    pub(crate) draws_spans: bool,
    /// The machine can bring one message to several places at once.
    pub(crate) offers_multicast: bool,
    clock: Clock,
    ready: RefCell<ReadyQueue>,
    /// Tasks that were taken in and have not begun.
    pub(crate) backlog: Backlog,
    suspended: RefCell<SuspendedTasks>,
    /// The scope of the task that runs now; that of the root where none does.
    scope: Cell<Scope>,
    /// True while messages are being delivered: then nothing may wait for room.
    delivering: Cell<bool>,
    /// Receiver of the message being written, if any: then nothing else may be sent except by the outbox.
    writing: Cell<Option<PlaceId>>,
    /// True if something in the message that is written, or was written last, may not travel alone.
    pub(crate) has_refused: Cell<bool>,
    outbox: RefCell<Outbox>,
    /// Number of messages in the outbox; lets a send look without a borrow.
    outbox_len: Cell<usize>,
    /// The tasks that wait until everything is sent, and whether there are any.
    sent_waits: RefCell<Vec<Waker>>,
    has_sent_waits: Cell<bool>,
    pub(crate) finishes: FinishTable,
    pub(crate) calls: CallTable,
    pub(crate) words: RefCell<WordTable>,
    pub(crate) parts: RefCell<PartTable>,
    pub(crate) services: Services,
    /// True if services take in what comes without a message.
    pub(crate) is_watching: Cell<bool>,
    pub(crate) timers: Timers,
    pub(crate) tally: Totals,
    pub(crate) stated_memory: Rc<StatedMemory>,
    /// The regions that tasks have marked.
    pub(crate) regions: RefCell<Vec<MeasuredRegion>>,
    /// Effort of operations that ended at once, since a task last gave way for it; see `coop`.
    pub(crate) spent: Cell<u32>,
    /// Time since the place last looked at its messages.
    turn: Turn,
    /// True if the running task has given way of its own accord, so that messages are looked at before more tasks.
    pub(crate) has_yielded: Cell<bool>,
    pub(crate) run: RunState,
    /// The places that this one was told are dead.
    pub(crate) deaths: RefCell<Vec<PlaceId>>,
    /// In an invented world where sends wait: gives others a turn; false if the send is to wait no longer.
    others: OnceCell<Box<dyn Fn() -> bool>>,
    /// Probe that tells those who observe the run; unset if nobody does.
    probe: OnceCell<Box<Probe>>,
    /// On a modelled chip that is observed: clock, voltage and energy of the core.
    core_reading: Cell<CoreReading>,
    /// Goes last, after all that may hold wakers.
    tasks: TaskMemory,
}

thread_local! {
    static CURRENT: Cell<*const Local> = const { Cell::new(std::ptr::null()) };
}

/// The place that is entered on this thread, or null. Apart, because what is generic is compiled for each of its uses.
#[inline]
fn current() -> *const Local {
    CURRENT.try_with(Cell::get).unwrap_or(std::ptr::null())
}

#[cold]
#[track_caller]
fn no_place() -> ! {
    panic!("{}", process::why_no_place())
}

/// Restores the place that was entered before, also while that unwinds.
struct EnterGuard(*const Local, Option<PlaceId>);

impl Drop for EnterGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
        entered::enter(self.1);
    }
}

/// A flag that is set, until this is dropped; then it is as it was before.
pub(crate) struct FlagGuard<'a> {
    flag: &'a Cell<bool>,
    before: bool,
}

/// A message is being written, until this is dropped; then it is as it was before.
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

    /// Lets sends that find no room wait although time is invented: `others` gives another place a turn, and says
    /// whether to wait on. Once.
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
    /// If none is.
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

    /// Takes the place away from the calling thread, which is about to end or was made by a fork; returns its number.
    pub(crate) fn leave_thread() -> Option<PlaceId> {
        let here = Self::try_with(Local::here);
        // A thread that is past its end has none.
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

    /// The number of this place.
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

    /// All other places, in order.
    pub(crate) fn others(&self) -> impl Iterator<Item = PlaceId> + use<> {
        let here = self.here;
        (0..self.places).map(PlaceId).filter(move |place| *place != here)
    }

    /// The clock of the machine.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The way back in for tasks that are woken.
    #[inline]
    pub(crate) fn injector(&self) -> &'static Injector {
        self.tasks.injector
    }

    /// The memory of the place's tasks.
    #[inline]
    pub(crate) fn pool(&self) -> &Pool {
        &self.tasks.pool
    }

    /// The attachment to the other places.
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

    /// The scope of the task that runs now.
    #[inline]
    pub fn scope(&self) -> Scope {
        self.scope.get()
    }

    /// Sets the scope of what runs from now on; returns the one before.
    #[inline]
    pub fn set_scope(&self, scope: Scope) -> Scope {
        self.scope.replace(scope)
    }

    /// Puts `future` into a task that the caller has counted in `scope`, and queues it.
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
