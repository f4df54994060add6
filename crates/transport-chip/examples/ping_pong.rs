//! Half a ping-pong by protocol and length, on the modelled SCC.
//!
//! Question: how long is a message on its way, from the call that sends it to the call that takes it in? Machine: the
//! chip `scc` at its default clocks, the two cores of one tile, alone on the chip or beside 46 places that wait. Unit:
//! microseconds, the mean of so many rounds. Base line: what was measured on the chip (`docs/twin.md`).

use isles_chip::Chip;
use isles_transport::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId};
use isles_transport_chip::{ChipEndpoint, Costs, Protocol, Turn, World};

const ROUNDS: u32 = 50;

fn main() {
    let lengths = [16, 1 << 10, 8 << 10, 64 << 10];
    println!(
        "{:<10} {:>6} {:>10} {:>10} {:>10} {:>10}",
        "protocol", "places", "16 B", "1 KiB", "8 KiB", "64 KiB"
    );
    for protocol in [Protocol::Isles, Protocol::RcceX10, Protocol::Sections] {
        for places in [2, 48] {
            let times = lengths.map(|len| format!("{:>10.2}", half_ping_pong(protocol, places, len)));
            println!("{:<10} {places:>6} {}", protocol.name(), times.join(" "));
        }
    }
}

/// Microseconds of half a round between the first two places.
fn half_ping_pong(protocol: Protocol, places: u32, len: usize) -> f64 {
    let chip = Chip::find("scc").expect("the SCC comes with the product");
    let costs = Costs::of(&chip).expect("it has message buffers");
    let world = World::with_protocol(places, costs, protocol, 0).expect("it has so many cores");
    let endpoints: Vec<ChipEndpoint> = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    let mut left = 2 * ROUNDS;
    let mut served = false;
    while let Some(place) = world.next() {
        if place.0 < 2 {
            let (here, other) = (&endpoints[place.index()], PlaceId(1 - place.0));
            let arrived = here.progress(Inbound::All, &mut |arrival| assert_length(&arrival, len));
            if !served || arrived > 0 {
                served = true;
                left -= 1;
                send(here, other, len);
            }
        } else {
            endpoints[place.index()].progress(Inbound::All, &mut |_| panic!("nobody sends there"));
        }
        if left == 0 {
            break;
        }
        world.end_turn(place, Turn::Idle { due: None });
    }
    assert_eq!(left, 0, "a ball is lost");
    world.now(PlaceId(0)).max(world.now(PlaceId(1))).as_secs_f64() * 1e6 / f64::from(2 * ROUNDS)
}

fn assert_length(arrival: &Arrival<'_>, len: usize) {
    let Arrival::Message(message) = arrival else { panic!("nobody dies") };
    assert_eq!(message.body.bytes().len(), len);
}

fn send(from: &ChipEndpoint, to: PlaceId, len: usize) {
    let (class, handler) = (Class::Data, HandlerId(1));
    let sent = if len <= from.limits().inline_bytes_max {
        from.send(to, class, handler, len, &mut |_| Some(len))
    } else {
        from.send_block(to, class, handler, len, &mut |_| ())
    };
    sent.expect("the last message of this side was taken in and answered");
}
