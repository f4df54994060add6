//! The format of an image: a 64-bit ELF file for x86-64 with a PVH note, which has the entry point for QEMU.

use crate::Failure;
use std::path::Path;

/// Type of the note of the PVH boot ABI; its owner is `Xen`.
const PVH_NOTE: u32 = 18;
const PROGRAM_HEADER_NOTE: u32 = 4;

/// Refuses a file that is not an image.
///
/// # Errors
/// The file cannot be read, or has another format.
pub fn check(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|cause| Failure::Usage(format!("image {shown}: {cause}")))?;
    let line = |why| Failure::Usage(format!("image {shown}: {why}; build images with isles bare build"));
    entry(&bytes).map(|_| ()).map_err(line)
}

/// Returns the address in the PVH note of an image.
fn entry(bytes: &[u8]) -> Result<u64, &'static str> {
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") || half(bytes, 18) != Some(62) {
        return Err("not an ELF file of 64 bits for x86-64");
    }
    let none = "an ELF file without a PVH note (an image for an operating system?)";
    let (offset, size, count) = (wide(bytes, 32), half(bytes, 54), half(bytes, 56));
    let (Some(offset), Some(size), Some(count)) = (offset, size, count) else { return Err(none) };
    for number in 0..usize::from(count) {
        let header = offset.saturating_add(number.saturating_mul(usize::from(size)));
        if word(bytes, header) == Some(PROGRAM_HEADER_NOTE) {
            let (start, length) =
                (wide(bytes, header.saturating_add(8)), wide(bytes, header.saturating_add(32)));
            let notes =
                start.zip(length).and_then(|(start, length)| bytes.get(start..start.checked_add(length)?));
            if let Some(entry) = notes.and_then(pvh_entry) {
                return Ok(entry);
            }
        }
    }
    Err(none)
}

/// Returns the entry point in the PVH note among `notes`.
fn pvh_entry(mut notes: &[u8]) -> Option<u64> {
    loop {
        let [owner_bytes, bytes] = [word(notes, 0)? as usize, word(notes, 4)? as usize];
        let value = 12 + owner_bytes.checked_next_multiple_of(4)?;
        if word(notes, 8) == Some(PVH_NOTE) && notes.get(12..12 + owner_bytes) == Some(b"Xen\0") {
            return wide(notes, value).map(|entry| entry as u64);
        }
        notes = notes.get(value.checked_add(bytes.checked_next_multiple_of(4)?)?..)?;
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn wide(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file with one segment of notes: a foreign one, then the PVH note.
    fn file() -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = 4;
        bytes[72] = 120;
        for note in [(4_u32, 3_u32, 1_u32, *b"GNU\0", 0_u64), (4, 8, 18, *b"Xen\0", 0x10_0020)] {
            for part in [note.0, note.1, note.2] {
                bytes.extend(part.to_le_bytes());
            }
            bytes.extend(note.3);
            bytes.extend(&note.4.to_le_bytes()[..(note.1 as usize).next_multiple_of(4)]);
        }
        bytes[96] = (bytes.len() - 120) as u8;
        bytes
    }

    #[test]
    fn the_entry_is_that_of_the_note() {
        assert_eq!(entry(&file()), Ok(0x10_0020));
    }

    #[test]
    fn no_damage_of_a_byte_or_of_the_length_is_a_panic() {
        let whole = file();
        let mut refused = 0;
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                refused += usize::from(entry(&bytes).is_err());
            }
            assert!(entry(&whole[..at]).is_err(), "{at}");
        }
        assert!(refused > 20, "{refused}");
    }
}
