//! A large machine: all its places start, pass one barrier, and receive one broadcast.
//!
//! It tests whether that many places can be created: as endpoints, with two collectives along a tree of the places'
//! numbers, and as an ordinary program with the runtime, whose places are started by a loop of the first one.
//! Invariant: everything from reading the chip's file to the end of the last place is timed.

use super::{drive, send_as};
use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use isles::counters::CounterId;
use isles::prelude::*;
use isles::{Launch, ModelledChip};
use isles_chip::Chip;
use isles_transport::{Arrival, Endpoint, HandlerId, Inbound, PlaceId};
use isles_transport_chip::{ChipEndpoint, ChipWorld, Costs, TurnOutcome};
use std::time::Instant;

const PLACES: u32 = 32_768;

/// Bytes of the broadcast.
const BROADCAST: usize = 1_024;

/// Children of a place in the tree.
const CHILDREN: u32 = 4;

/// State of one place of the machine: the progress of its barrier and its broadcast.
struct MachinePlace {
    endpoint: ChipEndpoint,
    /// Children that have not reached the barrier.
    missing: u32,
    /// Messages still to be sent to its children: the release, then the broadcast.
    unsent: Vec<(HandlerId, u32)>,
    /// `true` until its parent knows that all have arrived.
    is_unreported: bool,
    done: bool,
}

const ARRIVE: HandlerId = HandlerId(1);
const RELEASE: HandlerId = HandlerId(2);
const CONTENT: HandlerId = HandlerId(3);

impl MachinePlace {
    fn new(endpoint: ChipEndpoint) -> MachinePlace {
        let mut member =
            MachinePlace { endpoint, missing: 0, unsent: Vec::new(), is_unreported: true, done: false };
        member.missing = member.children().count() as u32;
        member
    }

    fn children(&self) -> impl Iterator<Item = PlaceId> + use<> {
        let first = self.endpoint.here().0 * CHILDREN + 1;
        let end = self.endpoint.places();
        (first.min(end)..(first + CHILDREN).min(end)).map(PlaceId)
    }

    fn step(&mut self) -> TurnOutcome {
        let mut handlers = Vec::new();
        self.endpoint.progress(Inbound::All, &mut |arrival| {
            if let Arrival::Message(message) = arrival {
                handlers.push(message.handler);
            }
        });
        for handler in handlers {
            match handler {
                ARRIVE => self.missing -= 1,
                handler => self.forward(handler),
            }
        }
        if self.missing == 0 && self.is_unreported {
            self.is_unreported = false;
            match self.endpoint.here().0.checked_sub(1) {
                Some(place) => {
                    assert!(self.try_send(PlaceId(place / CHILDREN), ARRIVE), "there is room for one")
                }
                None => [RELEASE, CONTENT].into_iter().for_each(|handler| self.forward(handler)),
            }
        }
        let here = &self.endpoint;
        self.unsent.retain(|(handler, child)| !send_as(here, PlaceId(*child), *handler, BROADCAST));
        TurnOutcome::Idle { due: None }
    }

    fn forward(&mut self, handler: HandlerId) {
        self.done |= handler == CONTENT;
        self.unsent.extend(self.children().map(|child| (handler, child.0)));
    }

    fn try_send(&self, to: PlaceId, handler: HandlerId) -> bool {
        send_as(&self.endpoint, to, handler, 0)
    }
}

/// Runs 32,768 places of Blue Gene/P: their start, one barrier, one broadcast of 1,024 bytes.
pub fn machine(_effort: Effort) {
    let started = Instant::now();
    let chip = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
    let world = ChipWorld::new(PLACES, Costs::of(&chip).expect("it carries packets"), 0);
    let world = world.unwrap_or_else(|error| panic!("{error}"));
    let mut members: Vec<MachinePlace> =
        (0..PLACES).map(|place| MachinePlace::new(world.endpoint(PlaceId(place)))).collect();
    drive(&world, |place| members[place.index()].step());
    assert!(members.iter().all(|member| member.done), "the broadcast came to all");
    print_figure("seconds", started.elapsed().as_secs_f64());
    print_figure("mib", resident_mib_max());
}

/// Runs the same as a program.
pub fn program(_effort: Effort) {
    let started = Instant::now();
    let chip = ModelledChip::new("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
    let launch = Launch::from_environment().unwrap_or_else(|error| panic!("{error}")).places(PLACES);
    let main = || async {
        finish(async {
            for place in places() {
                spawn_at!(place, take_part().await?);
            }
        })
        .await
    };
    let (result, report, _) = launch.run_on_chip(chip, main).unwrap_or_else(|error| panic!("{error}"));
    result.unwrap_or_else(|error| panic!("{error}"));
    let served = report.places.iter().flatten().filter(|place| place.count(CounterId::Tasks) > 0).count();
    assert_eq!(served, PLACES as usize, "a task has ended at each place");
    drop(report);
    print_figure("seconds", started.elapsed().as_secs_f64());
    print_figure("mib", resident_mib_max());
}

async fn take_part() -> isles::Result<()> {
    let team = Team::world();
    team.barrier().await?;
    let mut content = [if here().index() == 0 { 7_u8 } else { 0 }; BROADCAST];
    team.broadcast_slice(0, &mut content).await?;
    assert_eq!(content, [7; BROADCAST], "the broadcast came");
    Ok(())
}

/// Returns the peak resident memory of this process.
fn resident_mib_max() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel reports VmHWM");
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("VmHWM is a number");
    kib / 1024.0
}
