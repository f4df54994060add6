//! A place's phasers take any sequence of control messages and tickets from its peers.
//!
//! The bytes are messages in their wire form, each behind one byte that chooses the sender and whether it is a ticket.
//! The place has open phasers with parties here and at its peers, so that the messages have something to meet.
#![no_main]

use isles_protocol::PlaceId;
use isles_protocol::phaser::{Phasers, RegistrationTransfer};

const PLACES: u32 = 4;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut phasers = Phasers::new(PlaceId(0), PLACES);
    let mut out = Vec::new();
    let mut parties = Vec::new();
    for peer in 1..PLACES {
        let party = phasers.open();
        let _ = phasers.depart(party, PlaceId(peer));
        let _ = phasers.advance(party, &mut out);
        parties.push(party);
    }
    let mut rest = bytes;
    while let Some((&first, message)) = rest.split_first() {
        let sender = PlaceId(u32::from(first) % PLACES);
        if first & 0x80 != 0 {
            let Ok((ticket, after)) = postcard::take_from_bytes::<RegistrationTransfer>(message) else { break };
            if let Ok(party) = phasers.arrive(ticket, sender, &mut out) {
                let _ = phasers.advance(party, &mut out);
                parties.push(party);
            }
            rest = after;
        } else {
            let Ok((control, after)) = postcard::take_from_bytes(message) else { break };
            let _ = phasers.receive(sender, control, &mut out);
            rest = after;
        }
        out.clear();
    }
    for party in parties {
        let _ = phasers.waiting_for(party);
        let _ = phasers.leave(party, &mut out);
    }
});
