//! A place's finishes take any sequence of control messages from its peers.
//!
//! The bytes are messages in their wire form, each behind one byte that chooses the sender. The place has
//! open finishes with tasks here and at a peer, so that the messages have something to meet.
#![no_main]

use isles_protocol::PlaceId;
use isles_protocol::finish::Finishes;

const PLACES: u32 = 4;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut finishes = Finishes::new(PlaceId(0), PLACES);
    let mut out = Vec::new();
    for peer in 1..PLACES {
        let key = finishes.open();
        finishes.begin(key);
        let _ = finishes.depart(key, PlaceId(peer));
        finishes.end(key, None, &mut out);
    }
    let mut rest = bytes;
    while let Some((&sender, message)) = rest.split_first() {
        let Ok((control, after)) = postcard::take_from_bytes(message) else { return };
        let _ = finishes.receive(PlaceId(u32::from(sender) % PLACES), control, &mut out);
        out.clear();
        rest = after;
    }
});
