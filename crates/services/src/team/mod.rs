//! Teams: ordered sets of places that do collectives.
//!
//! Here are the handle, and how teams are made. The members, the order of collectives, and the schedules of messages
//! are pure, in `isles_protocol::team`. [`algorithms`] has the choice of algorithms and every bound, [`header`] the
//! messages, [`state`] and [`pending`] what has arrived at a place, [`service`] the teams of a place as one of its
//! services, [`ongoing`] one collective in progress; [`barrier`], [`values`], [`slices`] and [`rows`] are the
//! collectives.
//!
//! A team costs no message to make: its handle carries the list of its members (none for the team of all places).
//! Invariants: all members call the same collectives in the same order, so that all counts agree without being sent; a
//! team that failed at one member fails at all.

mod algorithms;
mod barrier;
pub(crate) mod header;
mod ongoing;
mod payload;
mod pending;
pub(crate) mod point_to_point;
mod rows;
pub(crate) mod service;
mod slices;
mod state;
mod values;

pub use algorithms::{BroadcastAlgorithm, Collectives, set_collectives};
pub use isles_protocol::team::schedule::Shape;
pub use point_to_point::Tagged;
pub(crate) use service::Teams;
pub use service::{broken_teams, compare_waits_soon, teams_may_be_apart};
pub(crate) use state::{compare_waits, receive};

use crate::table::service::Service;
use isles_protocol::team::{CollectiveKind, TeamId};
use isles_runtime::capture::Handle;
use isles_runtime::service::{FOREIGN, Members, PartRef, PlaceGroup};
use isles_runtime::{Local, Place, Result};
use ongoing::misused;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use state::{TeamState, TeamTable};
use std::fmt;
use std::rc::Rc;

/// An ordered set of places that call collectives. The handle can be sent to any place.
///
/// The position of a member is its *rank*. Every member calls the same collectives in the same order, one after the
/// other: several tasks of a place may call them in turn, not at once; that is the one rule. Values and operators are
/// those of each member: an operator runs where it is called and may use whatever is there.
///
/// ```ignore
/// let team = Team::world();
/// finish(async {
///     for place in places() {
///         spawn_at!(place, {
///             let length = team.all_reduce(part.len(), |a, b| a + b).await?;
///             team.barrier().await?;
///         });
///     }
/// })
/// .await?;
/// ```
///
/// Collectives on single values take any type that serde can carry; those whose name ends with `slice` or `v`
/// take slices of plain elements (`bytemuck`), which are copied as memory.
///
/// **Reductions repeat.** A reduction folds along a tree that depends only on the team's size: floating-point results
/// have the same bits in every run with the same number of members, in whatever order messages arrive, and at every
/// member.
///
/// **Order.** A member can be ahead of another by a bounded number of collectives; long transfers wait until
/// they are taken. So a broadcast, say, may or may not be over at its root when others have not begun it;
/// only `barrier`, `split` and those that give all members something of every other (`all_..`) wait for all.
///
/// # Errors
/// Of every collective:
/// - [`DeadPlace`](isles_runtime::ErrorKind::DeadPlace): a member died. Make a team of those that are left.
/// - [`Misused`](isles_runtime::ErrorKind::Misused): the handle is one of another run; this place is not a member; two
///   tasks of a place are in collectives of the team at once; the root is no rank; or the members are in different
///   collectives, or in the same one with different roots, types or lengths. Then the error says of two members in
///   which each is. It is seen when a message of one meets another: where no message is sent, as when two members wait
///   for each other's value because each takes itself for the root, it is a wait, which the report of a run that stands
///   still explains.
/// - [`Cancelled`](isles_runtime::ErrorKind::Cancelled): a member gave a collective up, because its task was cancelled,
///   an operator panicked, or its call failed; the text says who, in which collective, and why.
/// - [`Undecodable`](isles_runtime::ErrorKind::Undecodable): a value refused to be written or read.
///
/// After an error of one member the collective fails at all, and the team is of no use any more: every later collective
/// of it ends with the first cause. Members that were done with it by then see the error at their next one. To go on,
/// make a new team of the same places with [`Team::from_places`]; that is the way for [`Team::world`], too.
#[derive(Clone)]
pub struct Team {
    /// Handle that keeps the team; `None` for the team of all places, which is never freed.
    share: Option<PartRef>,
    state: Rc<TeamState>,
}

/// Collectives of a team that belong together, until they are over; dropped earlier, it gives them up.
struct CollectiveGroup<'t> {
    team: &'t Team,
    is_over: bool,
}

impl Drop for CollectiveGroup<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.team.give_up();
        }
    }
}

/// Membership of one place, which the last handle, anywhere, frees.
struct TeamMembership(Rc<TeamState>);

impl Drop for TeamMembership {
    fn drop(&mut self) {
        Local::try_with(|local| {
            let state = Teams::of(local).table.borrow_mut().forget(self.0.id);
            drop(state);
            point_to_point::forget_team(local, self.0.id);
        });
    }
}

impl Team {
    /// Runs `operation`, whose collectives of this team belong together: dropped before its end, also between two of
    /// them, it has given up one of them.
    #[doc(hidden)]
    pub async fn together<V>(&self, operation: impl Future<Output = V>) -> V {
        let mut together = CollectiveGroup { team: self, is_over: false };
        let value = operation.await;
        together.is_over = true;
        value
    }

    /// Takes this member out of the collectives of the team: those of the others end with that error.
    pub(crate) fn give_up(&self) {
        ongoing::give_up(&self.state, "");
    }

    /// The team of all places, in order. It is always the same one.
    ///
    /// # Panics
    /// Outside of a place.
    #[track_caller]
    pub fn world() -> Team {
        Team { share: None, state: Local::with(TeamTable::world) }
    }

    /// Makes a new team of `places`, in that order.
    ///
    /// One place makes it and sends the handle to the members, who take part from wherever they get it. The
    /// maker need not be a member. Costs no message.
    ///
    /// # Errors
    /// [`Misused`](isles_runtime::ErrorKind::Misused): no places, or one of them twice.
    pub fn from_places(places: &[Place]) -> Result<Team> {
        if places.is_empty() {
            return Err(misused("a team needs a member"));
        }
        let mut sorted = places.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(misused(format_args!("{} is listed twice in a team", twice[0])));
        }
        Ok(Team::of_members(Members::Listed(places.iter().map(|place| place.id()).collect())))
    }

    /// A new team of these.
    pub(crate) fn of_members(members: Members) -> Team {
        let state = Local::with(TeamTable::make);
        let value = Rc::new(TeamMembership(Rc::clone(&state)));
        let share = Local::with(|local| {
            state.set_members(local, members);
            // The handle may go to any place, not only to members.
            PartRef::make(value, Some(Members::All(local.places())))
        });
        Team { share: Some(share), state }
    }

    /// Cuts the team into several: members that pass the same `color` are together, in the order of their `key`, then
    /// of their rank here.
    ///
    /// A collective: every member calls it, and gets the team that it belongs to.
    ///
    /// # Errors
    /// As [`Team`] says.
    pub async fn split(&self, color: usize, key: usize) -> Result<Team> {
        let ongoing = self.begin(CollectiveKind::Split).await?;
        let color_keys: Vec<(u64, u64)> = values::all_gather(&ongoing, (color as u64, key as u64)).await?;
        let mut ranks: Vec<usize> =
            (0..ongoing.size()).filter(|rank| color_keys[*rank].0 == color as u64).collect();
        ranks.sort_by_key(|rank| (color_keys[*rank].1, *rank));
        // The first member makes the team and sends the handle to the others.
        let team = if ranks[0] == ongoing.rank() {
            let team = Team::of_members(Members::Listed(
                ranks.iter().map(|rank| self.state.members().member(*rank)).collect(),
            ));
            for rank in &ranks[1..] {
                ongoing.send_value(*rank, ongoing.size(), &team).await?;
            }
            team
        } else {
            ongoing.receive(ranks[0], ongoing.size()).await?
        };
        ongoing.complete(team).await
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.state.members().len()
    }

    /// The rank of this place, from 0.
    ///
    /// # Panics
    /// If this place is not a member; see [`Team::rank_of`].
    #[track_caller]
    pub fn rank(&self) -> usize {
        self.state.rank().expect("this place is not a member of the team")
    }

    /// The member with `rank`.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn place_of(&self, rank: usize) -> Place {
        Place::of(self.state.members().member(rank))
    }

    /// The rank of `place`; none if it is not a member.
    pub fn rank_of(&self, place: Place) -> Option<usize> {
        self.state.members().rank_of(place.id())
    }

    /// The members, by rank.
    pub fn places(&self) -> impl DoubleEndedIterator<Item = Place> + ExactSizeIterator + Clone + '_ {
        self.state.members().iter().map(Place::of)
    }
}

impl PlaceGroup for Team {
    fn members(&self) -> Result<Members> {
        self.state.attachment.with(|_| self.state.members().clone())
    }
}

/// Wire form of a handle; nothing for the team of all places.
type EncodedTeam<PartRef, Members> = Option<(PartRef, TeamId, Members)>;

impl Serialize for Team {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if self.state.attachment.is_foreign() {
            return Err(serde::ser::Error::custom(FOREIGN));
        }
        let travelling: EncodedTeam<&PartRef, &Members> =
            self.share.as_ref().map(|share| (share, self.state.id, self.state.members()));
        travelling.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Team {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let travelling = EncodedTeam::<PartRef, Members>::deserialize(deserializer)?;
        let decoded = Local::try_with(|local| match travelling {
            None => Some(Team { share: None, state: TeamTable::world(local) }),
            Some((share, id, members)) => {
                let sound = id.is_of(local.places()) && id != TeamId::WORLD && members.are_of(local.places());
                sound.then(|| Team::decoded(local, share, id, members))
            }
        });
        decoded.flatten().ok_or_else(|| {
            serde::de::Error::custom(
                "a handle to a team that this run does \
             not have",
            )
        })
    }
}

impl Team {
    /// Takes a handle in; the first one at a place takes the seat.
    fn decoded(local: &Local, share: PartRef, id: TeamId, members: Members) -> Team {
        let state = Teams::of(local).table.borrow_mut().state(local, id);
        state.set_members(local, members);
        if share.value::<TeamMembership>().is_none() {
            let membership = Rc::new(TeamMembership(Rc::clone(&state)));
            local.place_part(share.id(), membership, Members::All(local.places()));
        }
        Team { share: Some(share), state }
    }
}

impl Handle for Team {}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.places().map(|place| place.index())).finish()
    }
}
