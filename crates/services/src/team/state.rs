//! The state of a team at one place: the messages that have arrived and are not yet taken, and the task that waits.
//!
//! Messages of one class between two places keep their order, and the members of a team follow one schedule. So the
//! message that a member must take next from another is always the oldest one from there, and finding it takes no
//! search. A message that its receiver does not expect shows that the two are in different collectives.
//!
//! Invariant: a block in the memory of its sender is kept only while the task that will use it runs, or is about to.
//! Blocks that would stay longer are copied (see [`TeamState::put`]), because members could otherwise wait in a circle
//! for each other's memory.
//!
//! The file knows no schedules, and sends nothing but the reason why a team is broken.
//! It knows nothing of schedules, and sends nothing but why a team is of no use any more.

use super::algorithms;
use super::algorithms::{LOOKS, LOOKS_AROUND};
use super::header::{Arrival, TeamHeader, TeamNotice, describe};
use super::ongoing::give_up;
use super::ongoing::misused;
use super::pending::PendingMessages;
use super::point_to_point;
use crate::table::service::Service;
use crate::team::header::TEAM;
use crate::team::service::Teams;
use isles_protocol::PlaceId;
use isles_protocol::team::schedule::TeamHosts;
use isles_protocol::team::{
    CollectiveKind, CollectiveOrder, CollectiveTag, ElementType, MemberReport, Mismatch,
};
use isles_protocol::team::{TeamId, UnclaimedTeams};
use isles_runtime::limits::ERROR_BYTES_MAX;
use isles_runtime::service::span::OpenSpan;
use isles_runtime::service::{Attachment, Inquiry, Members, Refused};
use isles_runtime::wire::Reader;
use isles_runtime::{Error, ErrorKind, Local};
use isles_transport::{Class, Inbound, Next};
use slab::Slab;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Returns the name of a type.
pub(super) type ElementName = fn() -> &'static str;

/// State of one team at one place.
pub(super) struct TeamState {
    pub(super) id: TeamId,
    /// Run and place of this state.
    pub(super) attachment: Attachment,
    /// The members by rank; unset while messages have come, but no handle.
    members: OnceCell<Members>,
    /// Hosts of the members; `None` if they do not matter.
    hosts: OnceCell<Option<TeamHosts>>,
    /// The rank of this place; `None` if it is not a member.
    rank: Cell<Option<usize>>,
    /// Messages that have arrived and are not taken.
    pending: RefCell<PendingMessages>,
    /// The collectives begun here, and reports of others.
    pub(super) order: CollectiveOrder,
    /// True if a collective is in progress.
    pub(super) busy: Cell<bool>,
    /// The span of the collective in progress.
    pub(super) span: Cell<OpenSpan>,
    /// Name of the type of the collective that is in progress, or was last.
    element: Cell<ElementName>,
    /// Error that made the team unusable.
    broken: RefCell<Option<Error>>,
    /// True if `broken` holds something.
    is_broken: Cell<bool>,
    /// Wakers of all tasks that wait for anything of the team, woken when it breaks.
    until_broken: RefCell<Slab<Waker>>,
    /// True if the members were found in different collectives while no call here could end with that error, and none
    /// has since.
    unreported: Cell<bool>,
    /// True if this place found `broken` before it knew the members, so that it has notified none of them yet.
    is_notification_pending: Cell<bool>,
    /// True while a task polls for messages.
    looking: Cell<bool>,
    /// The waiting task, and the place whose message it waits for.
    waiting: RefCell<Option<(PlaceId, Waker)>>,
}

impl TeamState {
    fn new(local: &Local, id: TeamId) -> TeamState {
        TeamState {
            id,
            attachment: local.attachment(),
            members: OnceCell::new(),
            hosts: OnceCell::new(),
            rank: Cell::new(None),
            pending: RefCell::new(PendingMessages::new(local.places())),
            order: CollectiveOrder::new(local.here()),
            busy: Cell::new(false),
            span: Cell::new(OpenSpan::NONE),
            element: Cell::new(|| ""),
            broken: RefCell::new(None),
            is_broken: Cell::new(false),
            until_broken: RefCell::default(),
            unreported: Cell::new(false),
            is_notification_pending: Cell::new(false),
            looking: Cell::new(false),
            waiting: RefCell::new(None),
        }
    }

    /// Returns the members, by rank.
    ///
    /// # Panics
    /// If no handle has come here; the holder of a handle has called [`TeamState::set_members`].
    #[inline]
    pub(super) fn members(&self) -> &Members {
        self.members.get().expect("a handle brings the members of its team along")
    }

    /// Returns an error if this place is not a member, or the team is one of another run.
    #[inline]
    pub(super) fn check_membership(&self) -> Result<(), Error> {
        match self.rank() {
            Some(_) => self.attachment.with(|_| ()),
            None => Err(misused("this place is not a member of the team")),
        }
    }

    /// Returns the rank of this place, or `None` if it is not a member.
    #[inline]
    pub(super) fn rank(&self) -> Option<usize> {
        self.rank.get()
    }

    /// Returns the hosts of the members, if some of them share a host and others do not.
    #[inline]
    pub(super) fn hosts(&self) -> Option<&TeamHosts> {
        match self.hosts.get() {
            Some(hosts) => hosts.as_ref(),
            None => self.hosts.get_or_init(|| self.find_hosts()).as_ref(),
        }
    }

    #[cold]
    fn find_hosts(&self) -> Option<TeamHosts> {
        Local::with(|local| {
            let hosts = local.endpoint().other_hosts().filter(|_| algorithms::are_hierarchical(local))?;
            let members = self.members();
            TeamHosts::new(members.len(), self.rank()?, |rank| hosts.host_of(members.member(rank)))
        })
    }

    /// Sets the members; the first call counts.
    pub(super) fn set_members(&self, local: &Local, members: Members) {
        let members = self.members.get_or_init(|| members);
        self.rank.set(members.rank_of(local.here()));
        let dead = local.deaths().iter().copied().find(|dead| members.rank_of(*dead).is_some());
        if let Some(dead) = dead {
            self.mark_broken(Error::dead(dead));
        }
        if self.is_notification_pending.take() {
            self.notify_others(local);
        }
    }

    /// Begins the next collective; none other is in progress here.
    ///
    /// # Errors
    /// Another member is in another collective.
    #[inline]
    pub(super) fn advance(
        &self,
        local: &Local,
        kind: CollectiveKind,
        root: usize,
        element: ElementType,
        element_name: ElementName,
    ) -> Result<(), Error> {
        self.element.set(element_name);
        self.order.begin(kind, root, element).map_err(|mismatch| self.mismatch(local, mismatch))
    }

    /// Compares the report of `source` about a collective with what is known about it.
    #[inline]
    fn compare(&self, local: &Local, source: PlaceId, tag: CollectiveTag) -> Result<(), Error> {
        self.order.compare(source, tag).map_err(|mismatch| self.mismatch(local, mismatch))
    }

    /// Breaks the team because two members are in different collectives.
    #[cold]
    pub(super) fn mismatch(&self, local: &Local, Mismatch { known, other }: Mismatch) -> Error {
        let [one, other] = [known, other].map(|MemberReport { place, tag }| {
            let is_own = place == local.here() && tag.first_step() == self.order.tag();
            format!("{place} in {}", describe(tag, is_own.then(self.element.get())))
        });
        let text = format!("the members of the team are in different collectives: {one}, {other}");
        self.unreported.set(!self.busy.get() && !self.is_broken.get());
        self.break_team(local, Error::new(ErrorKind::Misused, text))
    }

    /// Describes the collective that this place is in, or was in last.
    pub(super) fn description(&self) -> String {
        describe(self.order.tag(), Some(self.element.get()()))
    }

    /// Breaks the team for `reason` and notifies the others, unless it is broken already; returns `reason`.
    #[cold]
    pub(super) fn break_team(&self, local: &Local, reason: Error) -> Error {
        if !self.is_broken.get() {
            self.mark_broken(reason.clone());
            match self.members.get() {
                Some(_) => self.notify_others(local),
                None => self.is_notification_pending.set(true),
            }
        }
        reason
    }

    /// Notifies all other members why the team is broken.
    fn notify_others(&self, local: &Local) {
        let reason = self.broken.borrow().as_ref().map(|reason| reason.to_wire(ERROR_BYTES_MAX));
        let Some(reason) = reason else { return };
        for member in self.members().iter().filter(|member| *member != local.here()) {
            notify(local, member, self.id, TeamNotice::Broken, &reason);
        }
    }

    /// Marks the team as broken, and drops what has arrived; the first reason stays.
    pub(super) fn mark_broken(&self, reason: Error) {
        if self.is_broken.replace(true) {
            return;
        }
        *self.broken.borrow_mut() = Some(reason);
        let forgotten = self.pending.borrow_mut().clear();
        drop(forgotten);
        self.wake();
        self.until_broken.take().into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Waits for `future`, a collective, or until the team is broken. Dropped before its end, it breaks the team.
    ///
    /// # Errors
    /// The error of the future, or the reason why the team is broken.
    pub(super) async fn unless_broken<T>(
        &self,
        future: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        // A member that the others know to have given up sends nothing.
        if let Some(reason) = self.broken() {
            return Err(reason);
        }
        let mut future = pin!(future);
        let mut waiting = BrokenWait { state: self, key: None, is_over: false };
        poll_fn(|context| {
            if let Poll::Ready(result) = future.as_mut().poll(context) {
                waiting.is_over = true;
                return Poll::Ready(result);
            }
            if let Some(reason) = self.broken() {
                return Poll::Ready(Err(reason));
            }
            let mut wakers = self.until_broken.borrow_mut();
            match waiting.key {
                Some(key) => wakers[key].clone_from(context.waker()),
                None => waiting.key = Some(wakers.insert(context.waker().clone())),
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the error that made the team unusable, if any; the caller passes it to the program.
    #[inline]
    pub(super) fn broken(&self) -> Option<Error> {
        if !self.is_broken.get() {
            return None;
        }
        self.unreported.set(false);
        self.broken.borrow().clone()
    }

    /// Stores a message of `source`.
    ///
    /// A block stays where it is if its task is polling for messages, or waits for this one; otherwise it is copied.
    #[inline]
    fn put(&self, local: &Local, source: PlaceId, mut arrival: Arrival) {
        if self.is_broken.get() || self.compare(local, source, arrival.header.tag).is_err() {
            return;
        }
        let awaited = self.waiting.borrow().as_ref().is_some_and(|(from, _)| *from == source);
        if arrival.is_block() && !awaited && !self.looking.get() {
            arrival.copy();
        }
        self.pending.borrow_mut().put(source, arrival);
        if awaited {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some((_, waker)) = self.waiting.take() {
            waker.wake();
        }
    }

    #[inline]
    fn holds(&self, source: PlaceId) -> bool {
        self.pending.borrow().holds(source)
    }

    /// Takes the next message of `source` that has arrived.
    #[inline]
    pub(super) fn pop(&self, source: PlaceId) -> Option<Arrival> {
        self.pending.borrow_mut().pop(source)
    }

    /// Polls a while for the next message of `source`. If it belongs to `tag` and is small, shows its
    /// [`TeamHeader::bytes`] and its payload to `read`, in the queue itself, and takes it; stores any other message.
    /// Returns whether `read` was called.
    ///
    /// Polls only while nothing else is ready to run here: a step of a short collective arrives sooner than the way
    /// through the place's queue would take.
    #[inline]
    pub(super) fn spin_read(
        &self,
        local: &Local,
        source: PlaceId,
        tag: CollectiveTag,
        read: impl FnOnce(u64, &[u8]),
    ) -> bool {
        if self.holds(source) {
            return false;
        }
        let mut read = Some(read);
        let looks = if local.shares_processors() { 1 } else { LOOKS };
        for look in 1..=looks {
            if self.is_broken.get() || local.has_ready() {
                break;
            }
            let next = local.take_next(source, Class::Control, TEAM, |bytes| {
                let opened = TeamHeader::open(bytes, self.id, tag);
                opened
                    .zip(read.take_if(|_| opened.is_some()))
                    .map(|((bytes, payload), read)| read(bytes, payload))
            });
            let is_due = next == Next::Left || look.is_multiple_of(LOOKS_AROUND);
            if next == Next::Taken || (is_due && self.poll_all(local, source)) {
                return next == Next::Taken;
            }
            // Between two polls the sender has the cache line for itself.
            std::hint::spin_loop();
        }
        false
    }

    /// Takes in all messages to the place; returns whether there is one of `source`.
    #[inline]
    fn poll_all(&self, local: &Local, source: PlaceId) -> bool {
        self.looking.set(true);
        let arrived = local.poll_messages(Inbound::All);
        self.looking.set(false);
        arrived > 0 && self.holds(source)
    }

    /// Waits for a message of `source` as a task waits.
    #[cold]
    pub(super) fn poll_or_wait<T>(
        &self,
        source: PlaceId,
        context: &mut Context<'_>,
    ) -> Poll<Result<T, Error>> {
        if let Some(error) = self.broken() {
            return Poll::Ready(Err(error));
        }
        // Its task is about to wait.
        self.pending.borrow_mut().copy_blocks();
        *self.waiting.borrow_mut() = Some((source, context.waker().clone()));
        Poll::Pending
    }

    /// Describes what the place waits for here, or which collective the others wait for it to begin; for reports.
    fn explain(&self) -> Option<String> {
        let team = team_name(self.id, self.members.get());
        if let Some((source, _)) = &*self.waiting.borrow() {
            let tag = self.order.tag();
            return Some(format!("in {tag} of {team}, {source} has not come as far as this place knows"));
        }
        let pending = self.pending.borrow();
        let fronts = pending.oldest_by_sender().into_iter().filter_map(|(source, arrival)| {
            let tag = arrival.header.tag;
            self.order.is_ahead(tag).then_some((source, tag))
        });
        let (sources, mut stamps): (Vec<PlaceId>, Vec<CollectiveTag>) = fronts.unzip();
        let tag = stamps.pop().filter(|_| !self.busy.get())?;
        Some(format!("has not begun {tag} of {team}, as {} did", listed(sources.into_iter())))
    }

    /// Removes the waiting task at the end of a collective.
    #[inline]
    pub(super) fn stop_waiting(&self) {
        self.waiting.take();
    }
}

/// A question to a member: whether it has begun the collective in which another one waits.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct ProgressQuery {
    team: TeamId,
    tag: CollectiveTag,
}

/// Returns the name of a team in messages; its members are unknown before a handle has come.
fn team_name(id: TeamId, members: Option<&Members>) -> String {
    match members {
        _ if id == TeamId::WORLD => "the team of all places".to_owned(),
        Some(members) => format!("the team of {}", listed(members.iter())),
        None => "a team of which this place has no handle".to_owned(),
    }
}

/// Lists places in a sentence; if they are many, the first few and the number of others.
fn listed(places: impl ExactSizeIterator<Item = PlaceId>) -> String {
    const NAMED_MAX: usize = 8;
    let more = places.len().saturating_sub(NAMED_MAX);
    let named: Vec<String> = places.take(NAMED_MAX).map(|place| place.to_string()).collect();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// The teams of one place.
///
/// A team whose messages have come before a handle has a state, too, and keeps its messages however many such teams
/// there are: they belong to the program, and the messages of each are bounded. Such a state is dropped only if the
/// maker of the team says that no handle is left; the maker is asked when there are many.
#[derive(Default)]
pub(super) struct TeamTable {
    states: Vec<Rc<TeamState>>,
    /// Number of teams this place has made.
    made: u64,
    /// When to ask the makers of teams without a handle here.
    unclaimed: UnclaimedTeams,
}

impl TeamTable {
    /// Returns the state in the team of all places.
    pub(super) fn world(local: &Local) -> Rc<TeamState> {
        let state = Teams::of(local).table.borrow_mut().state(local, TeamId::WORLD);
        if state.members.get().is_none() {
            state.set_members(local, Members::All(local.places()));
        }
        state
    }

    /// Returns the state in a new team that this place makes.
    pub(super) fn make(local: &Local) -> Rc<TeamState> {
        let mut teams = Teams::of(local).table.borrow_mut();
        teams.made += 1;
        let id = TeamId::of(local.here(), teams.made);
        teams.state(local, id)
    }

    /// Returns the state of team `id`, and makes it if it is not there yet.
    #[inline]
    pub(super) fn state(&mut self, local: &Local, id: TeamId) -> Rc<TeamState> {
        match self.find(id) {
            Some(state) => Rc::clone(state),
            None => self.add(local, id),
        }
    }

    #[cold]
    fn add(&mut self, local: &Local, id: TeamId) -> Rc<TeamState> {
        let state = Rc::new(TeamState::new(local, id));
        self.states.push(Rc::clone(&state));
        state
    }

    fn find(&self, id: TeamId) -> Option<&Rc<TeamState>> {
        self.states.iter().find(|state| state.id == id)
    }

    /// Returns `true` if this place is a member of team `id`.
    pub(super) fn is_known(&self, id: TeamId) -> bool {
        self.find(id).is_some()
    }

    /// Returns `true` if `place` is a member of team `id`, as far as this place knows.
    pub(super) fn has_member(&self, id: TeamId, place: PlaceId) -> bool {
        let members = self.find(id).and_then(|state| state.members.get());
        members.is_some_and(|members| members.rank_of(place).is_some())
    }

    /// Returns the state that a message for team `id` goes to; `None` if this place made the team and no handle is
    /// left.
    #[inline]
    fn state_of_message(&mut self, local: &Local, id: TeamId) -> Option<Rc<TeamState>> {
        match self.find(id) {
            Some(state) => Some(Rc::clone(state)),
            None if id != TeamId::WORLD && id.maker() == local.here() => None,
            None => Some(self.add(local, id)),
        }
    }

    /// Returns the teams of which no handle has come.
    fn unknown(&self) -> impl Iterator<Item = TeamId> {
        let unknown =
            self.states.iter().filter(|state| state.id != TeamId::WORLD && state.members.get().is_none());
        unknown.map(|state| state.id)
    }

    /// Returns the teams whose makers are to be asked now: all without a handle here, each time their number has
    /// doubled.
    fn due_questions(&mut self) -> Vec<TeamId> {
        if !self.unclaimed.may_be_due(self.states.len()) {
            return Vec::new();
        }
        let unknown: Vec<TeamId> = self.unknown().collect();
        if self.unclaimed.ask(unknown.len()) { unknown } else { Vec::new() }
    }

    /// Drops the state of team `id`, because its maker says that no handle is left; does nothing if a handle is here.
    fn give_up(&mut self, id: TeamId) -> Option<Rc<TeamState>> {
        let state = self.find(id).filter(|state| state.members.get().is_none())?;
        let id = state.id;
        let given_up = self.forget(id);
        let left = self.unknown().count();
        self.unclaimed.given_up(left);
        given_up
    }

    /// Returns the questions for `place` that go with this place's explanation of its waits.
    pub(super) fn questions(&self, place: PlaceId) -> Vec<ProgressQuery> {
        let asked = self.states.iter().filter(|state| state.waiting.borrow().is_some());
        let asked = asked.filter(|state| state.members().rank_of(place).is_some());
        asked.map(|state| ProgressQuery { team: state.id, tag: state.order.tag() }).collect()
    }

    /// Describes what this place waits for in its teams, and which collectives of the `inquiry` it has not begun: one
    /// line each.
    pub(super) fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
        let mut lines: Vec<String> = self.states.iter().filter_map(|state| state.explain()).collect();
        let queries: Vec<ProgressQuery> = postcard::from_bytes(inquiry.query).unwrap_or_default();
        for ProgressQuery { team, tag } in &queries {
            let state = self.find(*team);
            let explained =
                state.is_some_and(|state| state.explain().is_some() || !state.order.is_ahead(*tag));
            if !explained {
                let name = team_name(*team, state.and_then(|state| state.members.get()));
                lines.push(format!("has not begun {tag} of {name}, as {} did", inquiry.asker));
            }
        }
        lines
    }

    /// Returns the states of the teams of which `place` is a member, as far as this place knows.
    pub(super) fn of_member(&self, place: PlaceId) -> Vec<Rc<TeamState>> {
        let is_member = |state: &&Rc<TeamState>| {
            state.members.get().is_some_and(|members| members.rank_of(place).is_some())
        };
        self.states.iter().filter(is_member).cloned().collect()
    }

    /// Takes the error of a team that no call at this place could end with, because its members were found in different
    /// collectives when those were over here.
    pub(super) fn unreported(&self) -> Option<Error> {
        self.states.iter().find(|state| state.unreported.get()).and_then(|state| state.broken())
    }

    /// Returns `true` if a task waits for another member in some team.
    pub(super) fn waits(&self) -> bool {
        self.states.iter().any(|state| state.waiting.borrow().is_some())
    }

    /// Returns the number of broken teams.
    pub(super) fn broken(&self) -> usize {
        self.states.iter().filter(|state| state.is_broken.get()).count()
    }

    /// Returns `true` if a team has completed collectives since its members last waited for each other.
    pub(super) fn may_be_apart(&self) -> bool {
        self.states.iter().any(|state| state.order.may_be_apart())
    }

    /// Removes team `id`: no handle to it is left anywhere.
    pub(super) fn forget(&mut self, id: TeamId) -> Option<Rc<TeamState>> {
        let index = self.states.iter().position(|state| state.id == id)?;
        Some(self.states.remove(index))
    }
}

/// Receives one step of a collective, or a notice.
#[inline]
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let header = TeamHeader::decode(reader)?;
    if !header.team.is_of(local.places()) {
        return Err(Refused::NotItsHome);
    }
    let notice = header.notice();
    if let Some(notice @ (TeamNotice::Asked | TeamNotice::Over)) = notice {
        return receive_question(local, source, header.team, notice);
    }
    let Some(state) = Teams::of(local).table.borrow_mut().state_of_message(local, header.team) else {
        return Ok(());
    };
    match notice {
        Some(TeamNotice::Waits) => {
            let tag = reader.take_serde()?;
            Teams::of(local).note_wait();
            // A mismatch breaks the team, which ends the wait here and there.
            _ = state.is_broken.get() || state.compare(local, source, tag).is_err();
        }
        Some(_) => state.mark_broken(Error::from_wire(reader.rest())),
        None => state.put(local, source, Arrival::take(header, reader)),
    }
    if state.members.get().is_none() {
        ask(local);
    }
    Ok(())
}

/// Reports to all members of each team in which this place waits the collective that it waits in; returns the number of
/// reports.
///
/// Called when nothing happens any more: members that wait for each other in different collectives learn of it, and all
/// their calls end with an error.
pub(crate) fn compare_waits(local: &Local) -> usize {
    let states: Vec<Rc<TeamState>> = Teams::of(local).table.borrow().states.clone();
    let mut notified = 0;
    for state in states.iter().filter(|state| state.waiting.borrow().is_some()) {
        let tag = postcard::to_allocvec(&state.order.tag()).expect("a tag is two numbers");
        for member in state.members().iter().filter(|member| *member != local.here()) {
            notify(local, member, state.id, TeamNotice::Waits, &tag);
            notified += 1;
        }
    }
    notified
}

/// Asks the makers of the teams without a handle here, if that is due.
#[cold]
fn ask(local: &Local) {
    let teams = Teams::of(local).table.borrow_mut().due_questions();
    for team in teams {
        notify(local, team.maker(), team, TeamNotice::Asked, &[]);
    }
}

/// Answers whether a handle to team `id`, which this place made, is left; or handles the answer that none is.
#[cold]
fn receive_question(local: &Local, source: PlaceId, id: TeamId, notice: TeamNotice) -> Result<(), Refused> {
    let (asked, answerer) = match notice {
        TeamNotice::Asked => (true, local.here()),
        _ => (false, source),
    };
    if id == TeamId::WORLD || id.maker() != answerer {
        return Err(Refused::NotItsHome);
    }
    if !asked {
        let given_up = Teams::of(local).table.borrow_mut().give_up(id);
        if given_up.is_some() {
            point_to_point::forget_team(local, id);
        }
    } else if Teams::of(local).table.borrow().find(id).is_none() {
        notify(local, source, id, TeamNotice::Over, &[]);
    }
    Ok(())
}

/// A wait that ends when its team breaks.
struct BrokenWait<'a> {
    state: &'a TeamState,
    key: Option<usize>,
    is_over: bool,
}

impl Drop for BrokenWait<'_> {
    fn drop(&mut self) {
        let key = self.key.take();
        key.and_then(|key| self.state.until_broken.borrow_mut().try_remove(key));
        if !self.is_over {
            give_up(self.state, "");
        }
    }
}

/// Sends `notice` of team `id`, and what follows it; ignored if the receiver is dead.
fn notify(local: &Local, to: PlaceId, id: TeamId, notice: TeamNotice, rest: &[u8]) {
    let _ = local.send(to, Class::Control, TEAM, |writer| {
        TeamHeader::of_notice(id, notice).encode(writer);
        writer.put_bytes(rest);
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Team;
    use isles_protocol::team::UNCLAIMED_MIN;
    use isles_runtime::{Clock, Place};
    use isles_transport::loopback::{Plan, World};
    use std::pin::pin;
    use std::time::Duration;

    /// Runs the places until they have nothing to do.
    fn settle(world: &World, locals: &[Rc<Local>]) {
        for _ in 0..500 {
            for local in locals {
                local.enter(|| local.step());
            }
            world.advance();
        }
    }

    #[test]
    fn what_is_left_of_teams_whose_handles_never_came_is_given_up_and_the_rest_is_kept() {
        let world = World::new(2, Plan::calm(0));
        // Invented time, so that no send waits for room in a queue.
        let clock = || Clock::Steps(Box::new(Duration::default));
        let locals = [0, 1]
            .map(|place| Local::new(Box::new(world.endpoint(PlaceId(place))), clock(), crate::services));
        let pair = [0, 1].map(|place| Place::of(PlaceId(place)));
        // Runs until the member cannot go on alone; then its task is dropped.
        let begin = || {
            locals[0].enter(|| {
                let team = Team::from_places(&pair).unwrap();
                let mut context = Context::from_waker(Waker::noop());
                assert!(pin!(team.all_reduce(1, |a: i32, b| a + b)).poll(&mut context).is_pending());
                team
            })
        };
        let kept: Vec<Team> = (0..UNCLAIMED_MIN / 2).map(|_| begin()).collect();
        for _ in 0..20 {
            let given_up: Vec<Team> = (0..UNCLAIMED_MIN).map(|_| begin()).collect();
            locals[0].enter(|| drop(given_up));
            settle(&world, &locals);
        }
        let teams = Teams::of(&locals[1]).table.borrow();
        assert!(kept.iter().all(|team| teams.find(team.state.id).is_some()));
        assert!(teams.states.len() <= 4 * UNCLAIMED_MIN, "{} are left", teams.states.len());
        drop(teams);
        locals[0].enter(|| drop(kept));
    }
}
