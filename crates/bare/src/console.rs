//! The consoles of all cores as one stream of lines, each with the number of its core.
//!
//! Lines of one core keep their order; there is none between cores. A core never waits for the launcher: bytes that
//! are not read in time are overwritten and counted.

use crate::chip::Chip;
use bare_map as map;
use std::io::{self, Write};

/// Reads the console of one core.
#[derive(Debug)]
pub struct Console {
    core: usize,
    read: u32,
    line: Vec<u8>,
    lost: u64,
}

impl Console {
    /// Creates the reader of the console of `core`, from its start.
    pub fn new(core: usize) -> Console {
        Console { core, read: 0, line: Vec::new(), lost: 0 }
    }

    /// Returns the number of bytes that the core overwrote before they were read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes the complete lines.
    ///
    /// # Errors
    /// Those of the system.
    pub fn poll(&mut self, chip: &Chip, out: &mut impl Write) -> io::Result<()> {
        let start = map::console_of(self.core);
        // PAIR bare.console: observe (by a read of the file, after which the ring is read)
        let written = chip.load(start + map::console::WRITTEN)?;
        if written == self.read {
            return Ok(());
        }
        let mut ring = vec![0; map::CONSOLE_RING_BYTES];
        chip.read(start + map::console::RING, &mut ring)?;
        // Bytes overwritten during the read are also lost.
        let later = chip.load(start + map::console::WRITTEN)?;
        let text = self.take(&ring, written, later);
        self.print(&text, out)
    }

    /// Writes the rest of an incomplete line.
    ///
    /// # Errors
    /// Those of the system.
    pub fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        self.print(b"\n", out)
    }

    /// Returns the bytes of `ring` from the last one read to `written`; by now the writer has reached `later`.
    fn take(&mut self, ring: &[u8], written: u32, later: u32) -> Vec<u8> {
        let room = ring.len() as u32;
        let overwritten =
            later.wrapping_sub(self.read).saturating_sub(room).min(written.wrapping_sub(self.read));
        self.lost += u64::from(overwritten);
        let first = self.read.wrapping_add(overwritten);
        self.read = written;
        (0..written.wrapping_sub(first)).map(|at| ring[(first.wrapping_add(at) % room) as usize]).collect()
    }

    fn print(&mut self, text: &[u8], out: &mut impl Write) -> io::Result<()> {
        for byte in text {
            if *byte == b'\n' {
                writeln!(out, "[{:02}]: {}", self.core, String::from_utf8_lossy(&self.line))?;
                self.line.clear();
            } else {
                self.line.push(*byte);
            }
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(bytes: &[u8], room: usize) -> Vec<u8> {
        let mut ring = vec![0; room];
        bytes.iter().enumerate().for_each(|(at, byte)| ring[at % room] = *byte);
        ring
    }

    #[test]
    fn lines_have_the_number_of_their_core() {
        let (mut console, mut out) = (Console::new(5), Vec::new());
        for (text, written) in [("one\ntw", 6), ("one\ntwo\n3", 9)] {
            let text = console.take(&ring(text.as_bytes(), 16), written, written);
            console.print(&text, &mut out).unwrap();
        }
        console.end(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "[05]: one\n[05]: two\n[05]: 3\n");
    }

    #[test]
    fn what_is_overwritten_is_counted_and_the_rest_read() {
        let mut console = Console::new(0);
        assert_eq!(console.take(&ring(b"0123456789abcdefghij", 16), 20, 20), b"456789abcdefghij");
        assert_eq!(console.lost(), 4);
        // The writer has added six bytes between the read of the count and the copy.
        assert_eq!(
            console.take(&ring(b"0123456789abcdefghijklmnopqrstuvwxyz0123AB", 16), 36, 42),
            b"qrstuvwxyz"
        );
        assert_eq!(console.lost(), 10);
        assert_eq!(console.take(&[0; 16], 36 + 100, 36 + 100).len(), 16);
        assert_eq!(console.lost(), 94);
    }

    #[test]
    fn the_count_may_turn_over() {
        let mut console = Console::new(0);
        console.read = u32::MAX - 1;
        let mut bytes = vec![0; 16];
        (bytes[14], bytes[15], bytes[0]) = (b'a', b'b', b'c');
        assert_eq!(console.take(&bytes, 1, 1), b"abc");
        assert_eq!(console.lost(), 0);
    }
}
