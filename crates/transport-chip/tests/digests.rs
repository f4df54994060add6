//! Digests of runs with each protocol: the same in every build, and with a recorder.
//!
//! A program of its own, because the stage of the simulation builds it once more, with optimisation.

use isles_chip::Chip;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, SendError, Work, WorkModel};
use isles_transport_chip::{ChipEndpoint, ChipWorld, Costs, Protocol, Report, TurnOutcome};
use std::panic::Location;

fn send(from: &ChipEndpoint, to: PlaceId, class: Class, len: usize) -> Result<(), SendError> {
    from.send(to, class, HandlerId(1), len, &mut |_| Some(len))
}

/// Runs places that send each other messages of all kinds, with or without a recorder: on the SCC, or on a chip with
/// hardware packets.
fn mixed(protocol: Protocol, is_recorded: bool) -> Report {
    let name = if protocol == Protocol::Packets { "bluegene-p" } else { "scc" };
    let costs = Costs::of(&Chip::find(name).unwrap()).unwrap();
    let world = ChipWorld::with_protocol(6, costs, protocol, 0).unwrap();
    let endpoints: Vec<_> = (0..6).map(|place| world.endpoint(PlaceId(place))).collect();
    if is_recorded {
        world.trace("a run", Box::new(std::io::sink())).unwrap();
    }
    let mut left = [12_u32; 6];
    while let Some(place) = world.next() {
        let (here, left) = (&endpoints[place.index()], &mut left[place.index()]);
        let got = here.progress(Inbound::All, &mut |_| ());
        here.work(&Work::new().cycles(1_000 * u64::from(place.0) * got as u64), Location::caller());
        let to = PlaceId((place.0 + 1 + *left % 5) % 6);
        let sent = *left > 0
            && match *left % 3 {
                0 => here.send_block(to, Class::Data, HandlerId(1), 9_000, &mut |_| ()).is_ok(),
                1 => send(here, to, Class::Control, 40).is_ok(),
                _ => send(here, to, Class::Data, 300).is_ok(),
            };
        *left -= u32::from(sent);
        world.end_turn(place, if sent { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } });
    }
    assert_eq!(world.report().messages, 72, "{protocol}");
    world.report()
}

#[test]
fn a_recorder_changes_nothing_with_any_protocol() {
    for protocol in Protocol::ALL {
        assert_eq!(mixed(protocol, true), mixed(protocol, false), "{protocol}");
    }
}

/// Builds differ in overflow checks and in optimised floating-point arithmetic, but runs must not differ. Update these
/// digests after an intended change of the model or the chip file.
#[test]
fn every_build_has_the_same_digests() {
    let digests = Protocol::ALL.map(|protocol| mixed(protocol, false).digest.to_string());
    assert_eq!(digests, DIGESTS);
}

const DIGESTS: [&str; 11] = [
    "53d8fda3ab9da2a85f6185218571ca56",
    "841337d51cd18e5f4a054344c143f2de",
    "fe9e5f317bbe8f707fde4a079f21440f",
    "468f2a41a12db48faa433a4daee6bf72",
    "7b35f0a4672c668d59366fa7b89c9ab6",
    "7b35f0a4672c668d59366fa7b89c9ab6",
    "9ff999178931ce98eb0212f25a154aea",
    "de36b68e765a8c05553648b52dd7a05f",
    "8a9b06466c2c9555a1d2bcb9cc87c678",
    "708ed9bcfbc4a5a66763a468716a2b4d",
    "c4d6dbe9c20df83e7b8e737f02b568c2",
];
