//! Texts of errors, cut to a number of bytes: the beginning and the end, with a mark between them.
//!
//! The end of a text matters as much as its beginning: it names the root cause. Invariant: what is not kept is not
//! copied, so a text of any length costs its writer time and no memory.

use std::fmt;

/// A text that is written piece by piece and kept up to a bounded length.
pub(super) struct BoundedText {
    len_max: usize,
    /// The beginning, at most `len_max` bytes.
    head: String,
    /// The end of the rest, at most twice `len_max` bytes.
    tail: String,
    /// Number of bytes between the two.
    left_out: usize,
}

impl BoundedText {
    pub(crate) fn new(len_max: usize) -> BoundedText {
        BoundedText { len_max, head: String::new(), tail: String::new(), left_out: 0 }
    }

    /// Returns the text, at most `len_max` bytes.
    pub(super) fn into_string(self) -> String {
        match self.left_out {
            0 => truncate_middle(&(self.head + &self.tail), self.len_max),
            left_out => joined(&self.head, &self.tail, left_out, self.len_max),
        }
    }
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let is_head = self.tail.is_empty() && self.left_out == 0;
        let room = if is_head { self.len_max - self.head.len() } else { 0 };
        let (first, rest) = piece.split_at(boundary_before(piece, room));
        self.head.push_str(first);
        if rest.len() > self.len_max {
            self.left_out += self.tail.len();
            self.tail.clear();
        }
        let start = boundary_after(rest, rest.len().saturating_sub(self.len_max));
        self.left_out += start;
        self.tail.push_str(&rest[start..]);
        if self.tail.len() > 2 * self.len_max {
            let start = boundary_after(&self.tail, self.tail.len() - self.len_max);
            self.left_out += start;
            self.tail.drain(..start);
        }
        Ok(())
    }
}

/// Returns the text, cut in its middle to at most `len_max` bytes. One that was cut before has one mark, for both cuts.
pub(super) fn truncate_middle(text: &str, len_max: usize) -> String {
    if text.len() <= len_max {
        return text.to_owned();
    }
    let (head, left_out, tail) = split_at_mark(text).unwrap_or_else(|| {
        let (head, tail) = text.split_at(boundary_before(text, text.len() / 2));
        (head, 0, tail)
    });
    joined(head, tail, left_out, len_max)
}

/// Returns the mark that replaces `bytes` bytes left out of a text.
fn mark(bytes: usize) -> String {
    format!("{MARK_BEGIN}{bytes}{MARK_END}")
}

const MARK_BEGIN: &str = " … ";
const MARK_END: &str = " bytes left out … ";

/// Returns the text before the mark, the number in the mark, and the text after it.
fn split_at_mark(text: &str) -> Option<(&str, usize, &str)> {
    let (before, tail) = text.rsplit_once(MARK_END)?;
    let (head, bytes) = before.rsplit_once(MARK_BEGIN)?;
    Some((head, bytes.parse().ok()?, tail))
}

/// Joins the beginning of `head` and the end of `tail`, between which `left_out` bytes are already missing, to at most
/// `len_max` bytes, if a mark fits into that.
fn joined(head: &str, tail: &str, left_out: usize, len_max: usize) -> String {
    let all = head.len().saturating_add(left_out).saturating_add(tail.len());
    let room = len_max.saturating_sub(mark(all).len());
    // Half for each; what one does not need goes to the other.
    let head_len = room - tail.len().min(room / 2);
    let head = &head[..boundary_before(head, head_len)];
    let tail = &tail[boundary_after(tail, tail.len().saturating_sub(room - head.len()))..];
    format!("{head}{}{tail}", mark(all - head.len() - tail.len()))
}

/// Returns the last character boundary at or before `index`.
pub(super) fn boundary_before(text: &str, index: usize) -> usize {
    let last = index.min(text.len());
    (0..=last).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

/// Returns the first character boundary at or after `index`.
fn boundary_after(text: &str, index: usize) -> usize {
    (index..text.len()).find(|&start| text.is_char_boundary(start)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Returns the number of bytes of `whole` left out of `cut`, which is otherwise its beginning and its end.
    fn left_out(whole: &str, cut: &str) -> usize {
        let (head, bytes, tail) = split_at_mark(cut).unwrap();
        assert!(whole.starts_with(head) && whole.ends_with(tail), "{cut}");
        assert_eq!(head.len() + bytes + tail.len(), whole.len(), "{cut}");
        bytes
    }

    #[test]
    fn a_text_is_cut_in_its_middle_and_its_mark_counts_what_is_gone() {
        for pad in ["", "x", "xy"] {
            let whole = format!("{pad}{}", "€".repeat(400));
            let once = truncate_middle(&whole, 200);
            assert!((190..=200).contains(&once.len()), "{}", once.len());
            let twice = truncate_middle(&once, 100);
            assert!((90..=100).contains(&twice.len()), "{}", twice.len());
            assert!(left_out(&whole, &once) < left_out(&whole, &twice));
        }
        assert_eq!(truncate_middle("short", 5), "short");
    }

    #[test]
    fn a_text_in_pieces_of_any_length_is_cut_as_one_in_one_piece() {
        let whole: String = (0..3000).map(|number: u32| number.to_string() + "€").collect();
        for piece_len in [1, 7, 100, 250, 5000, whole.len()] {
            let (mut text, mut rest) = (BoundedText::new(200), whole.as_str());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(boundary_after(rest, piece_len.min(rest.len())));
                text.write_str(piece).unwrap();
                rest = after;
            }
            let kept = text.into_string();
            left_out(&whole, &kept);
            assert!((190..=200).contains(&kept.len()), "{piece_len}: {} bytes", kept.len());
        }
        let mut text = BoundedText::new(12);
        write!(text, "{}, {}", 1, 2).unwrap();
        assert_eq!(text.into_string(), "1, 2");
    }
}
