//! Two simultaneous exchanges on one core, through the ring in its message buffer, which RCCE cannot run.
//!
//! Rank 0 plays ping-pong with rank 1 on channel 1 and with rank 2 on channel 2, in the order in which their messages
//! arrive. No call is collective: ranks 1 and 2 do not know each other.

#![no_std]
#![no_main]

use bare_core::message::{self, Channels, MessageError, Receiver};
use bare_core::{entry, println, program, timer};

const ROUNDS: u32 = 100;
const BYTES: usize = 32;

entry!(main);

fn main() -> i32 {
    if program::ranks() != 3 {
        println!("ring: {} cores; allowed: 3", program::ranks());
        return 2;
    }
    match if program::rank() == 0 { answer() } else { ask(program::rank() as u16) } {
        Ok(()) => 0,
        Err(error) => {
            println!("ring: {error}");
            1
        }
    }
}

/// Returns a payload that encodes channel and round.
fn payload(channel: u16, round: u32) -> [u8; BYTES] {
    core::array::from_fn(|at| (round as u8).wrapping_mul(31).wrapping_add(at as u8) ^ channel as u8)
}

/// Sends back the messages on channels 1 and 2.
fn answer() -> Result<(), MessageError> {
    let mut receiver = Receiver::new();
    let (begin, mut rounds, mut bytes) = (timer::nanoseconds(), [0; 2], [0; BYTES]);
    while rounds != [ROUNDS; 2] {
        for channel in [1, 2_u16] {
            let Some(came) = receiver.try_receive(channel, &mut bytes) else { continue };
            let header = came?;
            let round = &mut rounds[usize::from(channel) - 1];
            assert_eq!(bytes, payload(channel, *round), "channel {channel}, round {round}");
            assert_eq!((header.source_channel, header.length as usize), (channel, BYTES));
            *round += 1;
            message::send(usize::from(channel), Channels { source: channel, target: channel }, &bytes)?;
        }
    }
    let elapsed = timer::nanoseconds() - begin;
    println!(
        "two exchanges of {ROUNDS} rounds of {BYTES} B at once: verified, {} ns a round",
        elapsed / u64::from(ROUNDS)
    );
    Ok(())
}

/// Sends each round's message and waits for its return.
fn ask(channel: u16) -> Result<(), MessageError> {
    let mut receiver = Receiver::new();
    for round in 0..ROUNDS {
        let mut bytes = [0; BYTES];
        message::send(0, Channels { source: channel, target: channel }, &payload(channel, round))?;
        receiver.receive(channel, &mut bytes)?;
        assert_eq!(bytes, payload(channel, round), "round {round} came back changed");
    }
    println!("channel {channel}: {ROUNDS} rounds verified");
    Ok(())
}
