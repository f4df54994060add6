//! The wire format of Protocol Buffers, as far as a trace needs it: numbers, texts, messages in messages.
//!
//! For what is written now and then; events are laid out elsewhere. It knows no field by its name. Invariant: what is
//! written is whole, so a length stands before what it is the length of.

/// The tag of a field with a number below 16.
pub(super) const fn tag_byte(field: u32, kind: u32) -> u8 {
    (field << 3 | kind) as u8
}

/// Kinds of fields on the wire.
pub(super) const VARINT: u32 = 0;
pub(super) const FIXED_64: u32 = 1;
pub(super) const LENGTH_DELIMITED: u32 = 2;

pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(out: &mut Vec<u8>, field: u32, kind: u32) {
    varint(out, u64::from(field << 3 | kind));
}

pub(super) fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

pub(super) fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    tag(out, field, LENGTH_DELIMITED);
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// A message within a message.
pub(super) fn nested(out: &mut Vec<u8>, field: u32, content: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, LENGTH_DELIMITED);
    let start = out.len();
    out.push(0);
    content(out);
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
        return;
    }
    // Longer than one byte of length can say: rare, so what was written moves.
    let mut bytes = Vec::with_capacity(10);
    varint(&mut bytes, len as u64);
    out.splice(start..=start, bytes);
}
