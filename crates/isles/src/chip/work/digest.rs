//! A digest of bytes, with which a tape recognises its program and its own bytes.
//!
//! It is not the identity that processes of one run compare, which is made without reading the program and is valid on
//! one host only. Invariant: the digest depends only on the bytes and their number.

use crate::machine::image::{PROGRAM, digest_words};
use std::{fs, io};

/// Returns a 128-bit digest of the running program's file: equal for equal programs anywhere, unlike
/// [`identity`](crate::machine::image::identity), but much slower.
///
/// # Errors
/// The file cannot be read.
pub(super) fn digest_of_program() -> io::Result<[u8; 16]> {
    fs::read(PROGRAM).map(|bytes| digest(&bytes))
}

/// Returns a 128-bit digest of `bytes` and their number. It detects accidents, not forgeries.
pub(super) fn digest(bytes: &[u8]) -> [u8; 16] {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    digest_words(words.chain([bytes.len() as u64]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_differ_anywhere_or_in_number_have_another_digest() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut seen = std::collections::BTreeSet::from([digest(&bytes), digest(&[])]);
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x80;
            assert!(seen.insert(digest(&changed)), "byte {place}");
            assert!(place == 0 || seen.insert(digest(&bytes[..place])), "{place} bytes");
        }
        assert!(seen.insert(digest(&[&bytes[..], &[0]].concat())));
        assert_eq!(digest_of_program().unwrap(), digest_of_program().unwrap());
    }
}
