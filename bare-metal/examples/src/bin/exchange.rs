//! Measures messages through the rings of message buffers, as in figure 4 of the paper on BareMichael.
//!
//! `exchange PATTERN [BYTES [ROUNDS]]`, with the pattern `ping-pong` (one message at a time, ranks 0 and 1),
//! `ping-ping` (both send, then both receive), or `two-to-one` (ping-pong of rank 0 with ranks 1 and 2 at once). It
//! prints the time of half a round, the median of 21 batches, and the bandwidth of rank 0: bytes in and out in that
//! time.

#![no_std]
#![no_main]

use bare_core::message::{self, Channels, LONGEST, MessageError, Receiver};
use bare_core::{entry, println, program, timer};

const BATCHES: usize = 21;

entry!(main);

/// Pattern, message size and number of rounds of a measurement.
#[derive(Clone, Copy)]
struct Measurement {
    pattern: &'static str,
    bytes: usize,
    rounds: u64,
}

fn main() -> i32 {
    let number = |at| program::argument(at).and_then(|text| text.parse::<usize>().ok());
    let pattern = program::argument(1).unwrap_or("ping-pong");
    let ranks = match pattern {
        "ping-pong" | "ping-ping" => 2,
        "two-to-one" => 3,
        _ => {
            println!("exchange: pattern {pattern}; allowed: ping-pong, ping-ping, two-to-one");
            return 2;
        }
    };
    let (bytes, rounds) = (number(2).unwrap_or(32), number(3).unwrap_or(200) as u64);
    if program::ranks() != ranks || bytes > LONGEST || rounds == 0 {
        println!(
            "exchange: {} cores, {bytes} B, {rounds} rounds; allowed: {ranks}, {LONGEST}, 1",
            program::ranks()
        );
        return 2;
    }
    match measure(Measurement { pattern, bytes, rounds }) {
        Ok(()) => 0,
        Err(error) => {
            println!("exchange: {error}");
            1
        }
    }
}

fn measure(of: Measurement) -> Result<(), MessageError> {
    let mut receiver = Receiver::new();
    let mut times = [0; BATCHES];
    for time in &mut times {
        program::barrier().map_err(MessageError::Stopped)?;
        let begin = timer::nanoseconds();
        batch(of, &mut receiver)?;
        *time = timer::nanoseconds() - begin;
    }
    times.sort_unstable();
    if program::rank() == 0 {
        let half_round = (times[BATCHES / 2] / (2 * of.rounds)).max(1);
        // In a round rank 0 sends a message to each partner and receives one from each.
        // Half a round of ping-pong moves one of them, of ping-ping both.
        let partners = program::ranks() as u64 - 1;
        let megabytes = of.bytes as u64 * partners * 1000 / half_round;
        println!("{}: {} bytes {half_round} ns {megabytes} MB/s", of.pattern, of.bytes);
    }
    Ok(())
}

/// Runs the rounds of a batch, and checks the first byte of each message.
fn batch(of: Measurement, receiver: &mut Receiver) -> Result<(), MessageError> {
    let rank = program::rank();
    let (mut memory, mut sent) = ([0; LONGEST], [0; LONGEST]);
    for round in 0..of.rounds {
        sent[0] = round as u8;
        let sent = &sent[..of.bytes];
        let mut receive = |channel: u16| -> Result<(), MessageError> {
            let header = receiver.receive(channel, &mut memory)?;
            assert_eq!(header.length as usize, of.bytes, "length in round {round}");
            assert!(
                memory[..of.bytes].first().is_none_or(|byte| *byte == round as u8),
                "payload in round {round}"
            );
            Ok(())
        };
        match (of.pattern, rank) {
            ("ping-ping", _) => {
                message::send(1 - rank, Channels { source: 0, target: 0 }, sent)?;
                receive(0)?;
            }
            (_, 0) => {
                for partner in 1..program::ranks() {
                    message::send(partner, Channels { source: 0, target: 0 }, sent)?;
                }
                for partner in 1..program::ranks() {
                    receive(partner as u16)?;
                }
            }
            _ => {
                receive(0)?;
                message::send(0, Channels { source: 0, target: rank as u16 }, sent)?;
            }
        }
    }
    Ok(())
}
