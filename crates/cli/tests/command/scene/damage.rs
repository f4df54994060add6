//! Files as other systems write them, and damaged ones: reproducible from a seed.
//!
//! It does not depend on any file format. Tests of several crates include it.

/// Pseudo-random numbers.
pub struct Dice(u64);

impl Dice {
    /// Returns the numbers of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`, which must be above zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// Returns the number of draws of a seeded test: `ISLES_TEST_SEEDS`, otherwise `few`.
pub fn rounds(few: u64) -> u64 {
    std::env::var("ISLES_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// Returns a text with the byte order mark or the line ends of another system; its meaning is unchanged.
pub fn of_another_system(text: &str, dice: &mut Dice) -> Vec<u8> {
    let utf16 = |unit: fn(u16) -> [u8; 2]| format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect();
    match dice.below(6) {
        0 => text.as_bytes().to_vec(),
        1 => format!("\u{feff}{text}").into_bytes(),
        2 => text.replace('\n', "\r\n").into_bytes(),
        3 => text.replace('\n', "\r").into_bytes(),
        4 => utf16(u16::to_le_bytes),
        _ => utf16(u16::to_be_bytes),
    }
}

/// Returns a text with one or two faults at random positions.
pub fn damaged(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    (0..=dice.below(2)).fold(text.to_vec(), |text, _| damaged_once(text, dice))
}

fn damaged_once(mut text: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    const WORDS: [&str; 12] =
        ["nan", "-1", "1e400", "99999999999999999999", "\0", "****", "{", "\"", "=", "0", ",", "\u{fffd}"];
    let word = WORDS[dice.below(WORDS.len())].as_bytes();
    if dice.below(2) == 0 {
        let at = dice.below(text.len() + 1);
        match dice.below(4) {
            0 => text.truncate(at),
            1 => drop(text.splice(at..at, word.iter().copied())),
            2 if at < text.len() => text[at] = dice.below(256) as u8,
            _ if at < text.len() => drop(text.remove(at)),
            _ => {}
        }
        return text;
    }
    let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let [one, other] = [dice.below(lines.len()), dice.below(lines.len())];
    match dice.below(4) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(other, lines[one].clone()),
        2 => lines.swap(one, other),
        _ => lines[one].extend([b" ", word].concat()),
    }
    lines.join(&b'\n')
}
