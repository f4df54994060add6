//! An RDF term as a byte string, which is stored in the dictionary, sent between places, and hashed to a place.
//!
//! The first byte is the kind. For an IRI or a blank node, the text follows. For a literal, the value, its language or
//! datatype, and the length of the value in four bytes follow, so that the byte order is nearly that of the values.
//! Invariant: two terms are the same RDF term if and only if their bytes are equal.

use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Term, TermRef};

/// The kind of IRIs; their text follows.
pub const IRI: u8 = b'i';
/// The kind of blank nodes; their label follows.
pub const BLANK: u8 = b'b';
/// The kind of literals without language and datatype; their value follows.
pub const STRING: u8 = b's';
const TAGGED: u8 = b'l';
/// The kind of literals of another datatype.
pub const TYPED: u8 = b't';

/// Appends the bytes of `term`.
pub fn encode(term: TermRef<'_>, out: &mut Vec<u8>) {
    match term {
        TermRef::NamedNode(iri) => {
            out.push(IRI);
            out.extend_from_slice(iri.as_str().as_bytes());
        }
        TermRef::BlankNode(node) => {
            out.push(BLANK);
            out.extend_from_slice(node.as_str().as_bytes());
        }
        TermRef::Literal(literal) => {
            let value = literal.value();
            match literal.language() {
                Some(language) => encode_literal(TAGGED, value, language, out),
                None if literal.datatype() == xsd::STRING => {
                    out.push(STRING);
                    out.extend_from_slice(value.as_bytes());
                }
                None => encode_literal(TYPED, value, literal.datatype().as_str(), out),
            }
        }
    }
}

fn encode_literal(kind: u8, value: &str, qualifier: &str, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(qualifier.as_bytes());
    // A value of 4 GiB does not fit into the arena of a place.
    out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
}

/// Appends the bytes of an IRI; for generators of triples.
pub fn encode_iri(iri: &str, out: &mut Vec<u8>) {
    out.push(IRI);
    out.extend_from_slice(iri.as_bytes());
}

/// Appends the bytes of a literal without language and datatype; for generators of triples.
pub fn encode_string(value: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    out.extend_from_slice(value.as_bytes());
}

/// Returns the bytes of `term`.
pub fn encoded(term: TermRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(term, &mut bytes);
    bytes
}

/// Returns the term that [`encode`] wrote.
///
/// # Panics
/// If `bytes` were not written by it.
pub fn decode(bytes: &[u8]) -> Term {
    let (kind, rest) = bytes.split_first().expect("a term has a kind");
    let text = |part: &[u8]| String::from_utf8(part.to_vec()).expect("terms are UTF-8");
    match *kind {
        IRI => NamedNode::new_unchecked(text(rest)).into(),
        BLANK => BlankNode::new_unchecked(text(rest)).into(),
        STRING => Literal::new_simple_literal(text(rest)).into(),
        kind => {
            let (body, length) = rest.split_last_chunk::<4>().expect("a literal ends with a length");
            let (value, qualifier) = body.split_at(u32::from_le_bytes(*length) as usize);
            let (value, qualifier) = (text(value), text(qualifier));
            match kind {
                TAGGED => Literal::new_language_tagged_literal_unchecked(value, qualifier).into(),
                _ => Literal::new_typed_literal(value, NamedNode::new_unchecked(qualifier)).into(),
            }
        }
    }
}

/// Returns a hash of the bytes of a term, the same in every process and version of this program.
///
/// The lower half determines the place, the upper half the slot in its dictionary.
pub fn hash(bytes: &[u8]) -> u64 {
    const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
    const SECOND: u64 = 0xd6e8_feb8_6659_fd93;
    let fold = |left: u64, right: u64| {
        let product = u128::from(left) * u128::from(right);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let mut state = FIRST ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        state = fold(state ^ word, SECOND).rotate_left(23);
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    fold(fold(state ^ u64::from_le_bytes(last), SECOND), FIRST ^ state)
}

/// Returns the place, out of `places`, that owns the term with this hash.
pub fn owner(hash: u64, places: usize) -> usize {
    (((hash & 0xffff_ffff) * places as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_term_comes_back_and_no_two_share_their_bytes() {
        let iri = NamedNode::new_unchecked("http://a.example/b");
        let terms: Vec<Term> = vec![
            iri.clone().into(),
            BlankNode::new_unchecked("http").into(),
            Literal::new_simple_literal("").into(),
            Literal::new_simple_literal("chaten").into(),
            Literal::new_language_tagged_literal_unchecked("chat", "en").into(),
            Literal::new_language_tagged_literal_unchecked("chate", "n").into(),
            Literal::new_typed_literal("chat", NamedNode::new_unchecked("en")).into(),
            Literal::new_typed_literal("\u{0}å", iri).into(),
        ];
        let all: Vec<Vec<u8>> = terms.iter().map(|term| encoded(term.as_ref())).collect();
        for (at, (term, bytes)) in terms.iter().zip(&all).enumerate() {
            assert_eq!(&decode(bytes), term);
            assert!(all[..at].iter().all(|other| other != bytes), "{term}");
        }
    }

    #[test]
    fn terms_are_spread_evenly_over_places() {
        for places in [1, 2, 3, 8, 48] {
            let mut counts = vec![0_usize; places];
            for number in 0..48_000 {
                let bytes = format!("ihttp://www.Department{number}.University0.edu/Student{number}");
                counts[owner(hash(bytes.as_bytes()), places)] += 1;
            }
            let even = 48_000 / places;
            assert!(counts.iter().all(|count| count.abs_diff(even) < even / 5 + 1), "{counts:?}");
        }
    }
}
