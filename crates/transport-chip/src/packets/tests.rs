//! What packets cost, how many may be under way, and that they keep the order of messages.

use super::*;
use crate::cores::Costs;
use crate::parcel::Load;
use crate::placement::Placement;
use crate::wire::{News, Outgoing, Wire};
use isles_chip::Chip;
use isles_transport::random::Random;
use isles_transport::{AlignedBytes, HandlerId};

const A: PlaceId = PlaceId(0);

/// Nodes of four cores: the next node along x, then along y, then along z.
const NEIGHBOUR: PlaceId = PlaceId(4);
const FAR: PlaceId = PlaceId(4 * 32 * 3 + 5);

fn torus(places: u32) -> (Cores, Packets) {
    let chip = Chip::find("bluegene-p").unwrap();
    let costs = Costs::of(&chip).unwrap();
    let packets = costs.packets().unwrap();
    let cores = Cores::new(costs.clone(), Placement::Linear.seat(costs.topology(), places).unwrap());
    let packets = Packets::new(packets, places, Ties::new(0));
    (cores, packets)
}

fn out(from: PlaceId, to: PlaceId) -> Outgoing {
    Outgoing { from, to, class: Class::Data, handler: HandlerId(1) }
}

fn send(cores: &mut Cores, packets: &mut Packets, to: PlaceId, len: usize) -> Option<Picoseconds> {
    let fits = packets.has_room(cores, &out(A, to), len);
    fits.then(|| packets.send(cores, &out(A, to), Load::Inline(Box::new(AlignedBytes::new(len))))).flatten()
}

#[test]
fn a_message_costs_its_packets_its_way_and_its_flits() {
    let (mut cores, mut packets) = torus(600);
    // 150 cycles of 850 MHz; then 404 ns, 96 ns a hop, and 75.294 ns a flit of 32 bytes.
    let sent = Picoseconds(176_471);
    let short = send(&mut cores, &mut packets, NEIGHBOUR, 8).unwrap();
    assert_eq!((cores.now(A), short), (sent, sent + Picoseconds(500_000 + 75_294)));
    // 481 bytes and 8 of header are three packets; the last one carries 9 bytes beside its 16.
    let before = cores.now(A);
    let long = send(&mut cores, &mut packets, FAR, 481).unwrap();
    assert_eq!(cores.now(A), before + sent * 3);
    let hops =
        u64::from(cores.topology().hops(isles_chip::topology::TileId(0), isles_chip::topology::TileId(97)));
    assert_eq!(hops, 4);
    // Packets of eight flits pass the first link one behind the other, slower than the core sends them.
    let flit = Picoseconds(75_294);
    assert_eq!(long, before + sent + flit * 16 + Picoseconds(404_000 + 96_000 * hops) + flit);
}

#[test]
fn no_more_is_under_way_than_the_window_and_a_receipt_opens_it() {
    let (mut cores, mut packets) = torus(8);
    for number in 0..WINDOW {
        let to = PlaceId(1 + number % 7);
        assert!(send(&mut cores, &mut packets, to, 8).is_some(), "{number}");
    }
    assert!(send(&mut cores, &mut packets, NEIGHBOUR, 8).is_none());
    assert!(packets.has_room(&mut cores, &Outgoing { class: Class::Control, ..out(A, NEIGHBOUR) }, 8));
    let later = cores.now(A) + Picoseconds(100_000_000);
    cores.wait_until(NEIGHBOUR, later);
    let until = cores.now(NEIGHBOUR);
    assert!(packets.take(&mut cores, NEIGHBOUR, until, true).is_none(), "there is no control");
    assert!(packets.take(&mut cores, NEIGHBOUR, until, false).is_some());
    let mut news = News::new();
    packets.give_credits(&mut cores, NEIGHBOUR, &mut news);
    assert_eq!((news.len(), news[0].0), (1, A));
    cores.wait_until(A, later);
    assert!(send(&mut cores, &mut packets, PlaceId(1), 8).is_none(), "the receipt is not there yet");
    cores.set_present(news[0].1);
    cores.wait_until(A, news[0].1);
    assert!(send(&mut cores, &mut packets, NEIGHBOUR, 8).is_some());
    assert!(send(&mut cores, &mut packets, NEIGHBOUR, 8).is_none(), "it was one packet");
}

#[test]
fn messages_of_one_pair_arrive_in_the_order_of_their_sending_across_crossing_traffic() {
    let (mut cores, mut packets) = torus(1_024);
    let mut random = Random::new(3);
    let mut last = Picoseconds::ZERO;
    for _ in 0..20 {
        // Others on the same links, reserved before and behind.
        for _ in 0..20 {
            let from = PlaceId(4 * (1 + random.below(8) as u32));
            let ahead = cores.now(A) + Picoseconds(random.below(3_000_000));
            cores.wait_until(from, ahead);
            let out = out(from, PlaceId(40 + random.below(3) as u32));
            if packets.has_room(&mut cores, &out, 1_000) {
                packets.send(&mut cores, &out, Load::Inline(Box::new(AlignedBytes::new(1_000))));
            }
        }
        let arrival = send(&mut cores, &mut packets, PlaceId(40), random.below(500) as usize).unwrap();
        assert!(arrival >= last, "{arrival} and {last}");
        last = arrival;
    }
}

#[test]
fn what_goes_to_a_place_that_is_gone_frees_the_window() {
    let (mut cores, mut packets) = torus(8);
    while send(&mut cores, &mut packets, NEIGHBOUR, 2_000).is_some() {}
    let until = cores.now(A) + Picoseconds(100_000_000);
    cores.wait_until(NEIGHBOUR, until);
    packets.take(&mut cores, NEIGHBOUR, until, false).unwrap();
    packets.cut(NEIGHBOUR);
    packets.forget_receiver(A, NEIGHBOUR);
    assert_eq!(packets.desks[0].free, [WINDOW; 2]);
    assert!(packets.desks[0].ways.is_empty() && !packets.has_mail(A, NEIGHBOUR));
    let mut news = News::new();
    packets.give_credits(&mut cores, NEIGHBOUR, &mut news);
    assert!(news.is_empty(), "a receipt for what is settled");
}
