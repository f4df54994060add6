//! A fast path for the simplest and most common form of N-Triples lines.
//!
//! Such a line has one blank between its parts, IRIs of characters that need no check, and literals without escapes.
//! It is split without parsing. All other lines go to the general parser, which also reports errors. Invariant: an
//! accepted line has the same terms as with that parser.

use super::triples::LocalTriples;

/// A term of a plain line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainTerm<'a> {
    Iri(&'a [u8]),
    Blank(&'a [u8]),
    String(&'a [u8]),
    Typed(&'a [u8], &'a [u8]),
}

/// The default datatype of literals.
const STRING: &[u8] = b"http://www.w3.org/2001/XMLSchema#string";

/// Adds the triple of a line without its line feed; returns `false` and adds nothing if the line is not plain. Blank
/// nodes are named after the number of the file.
pub fn add_plain(line: &[u8], file: usize, out: &mut LocalTriples) -> bool {
    let Some((subject, predicate, object)) = plain(line) else { return false };
    let triple = [subject, predicate, object].map(|term| match term {
        PlainTerm::Iri(iri) => out.encoded_iri(iri),
        PlainTerm::Blank(label) => out.labelled(label, file),
        PlainTerm::String(value) => out.encoded_string(value),
        PlainTerm::Typed(value, datatype) => out.encoded_typed(value, datatype),
    });
    out.triples.push(triple);
    true
}

fn plain(line: &[u8]) -> Option<(PlainTerm<'_>, PlainTerm<'_>, PlainTerm<'_>)> {
    let (subject, rest) = resource(line)?;
    let (predicate, rest) = resource(rest.strip_prefix(b" ")?)?;
    let PlainTerm::Iri(_) = predicate else { return None };
    let rest = rest.strip_prefix(b" ")?;
    let (object, rest) = if rest.first() == Some(&b'"') { literal(rest)? } else { resource(rest)? };
    (rest == b" .").then_some((subject, predicate, object))
}

/// Splits an IRI or a blank node from the rest of the line.
fn resource(text: &[u8]) -> Option<(PlainTerm<'_>, &[u8])> {
    match text {
        [b'<', rest @ ..] => {
            let (iri, rest) = iri(rest)?;
            Some((PlainTerm::Iri(iri), rest))
        }
        [b'_', b':', rest @ ..] => {
            let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
            (end > 0).then(|| (PlainTerm::Blank(&rest[..end]), &rest[end..]))
        }
        _ => None,
    }
}

/// Splits the text of an IRI at its closing bracket from the rest. Accepts `scheme://` or a name, and letters with the
/// same meaning in each part of an IRI. Ports, brackets, escapes and letters beyond ASCII are not plain.
fn iri(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'>')?;
    let (iri, rest) = (&text[..end], &text[end + 1..]);
    let colon = iri.iter().position(|byte| *byte == b':')?;
    let (scheme, path) = (&iri[..colon], &iri[colon + 1..]);
    let is_scheme = scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(u8::is_ascii_alphanumeric);
    // A colon after a host would begin a port.
    let (path, more): (&[u8], &[u8]) = match path.strip_prefix(b"//") {
        Some(path) => (path, b""),
        None => (path, b":+@"),
    };
    let (before, fragment) = match path.iter().position(|byte| *byte == b'#') {
        Some(hash) => (&path[..hash], &path[hash + 1..]),
        None => (path, &[][..]),
    };
    let is_alphanumeric =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) || more.contains(byte);
    let is_plain = |part: &[u8]| part.iter().all(is_alphanumeric);
    (is_scheme && !before.is_empty() && is_plain(before) && is_plain(fragment)).then_some((iri, rest))
}

/// Splits a literal, which begins with a quotation mark, from the rest of the line.
fn literal(text: &[u8]) -> Option<(PlainTerm<'_>, &[u8])> {
    let rest = text.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\r'))?;
    let (value, rest) = (&rest[..end], rest[end..].strip_prefix(b"\"")?);
    match rest {
        [b'^', b'^', b'<', rest @ ..] => {
            let (datatype, rest) = iri(rest)?;
            // The datatypes of RDF itself may need a language tag, and `xsd:string` is stored without a datatype.
            let is_plain =
                datatype != STRING && !datatype.starts_with(b"http://www.w3.org/1999/02/22-rdf-syntax-ns#");
            is_plain.then_some((PlainTerm::Typed(value, datatype), rest))
        }
        [b'@', ..] => None,
        _ => Some((PlainTerm::String(value), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::source::FilePart;
    use std::collections::BTreeSet;

    /// Returns the triples as their terms.
    fn triples(out: &LocalTriples) -> BTreeSet<[Vec<u8>; 3]> {
        let term = |position: u32| out.dictionary.bytes(position as usize).to_vec();
        out.triples.iter().map(|triple| triple.map(term)).collect()
    }

    /// Parses a line with the general parser; the leading blank disables the fast path.
    fn parsed(line: &str) -> Result<BTreeSet<[Vec<u8>; 3]>, String> {
        let text = format!(" {line}\n");
        let bytes = text.as_bytes();
        let part = FilePart {
            file: 3,
            name: "x",
            extension: "nt",
            base: "http://b/",
            graph: None,
            bytes,
            lines_before: 0,
        };
        let mut out = LocalTriples::default();
        part.read(&mut out, |_| ()).map(|()| triples(&out))
    }

    #[test]
    fn a_plain_line_has_the_terms_that_the_parser_gives_it() {
        let subjects = [
            "<http://a.example/x-1_2.3~>",
            "<urn:uuid>",
            "<urn:a:b+c@d#e:f>",
            "<http://a.example:80/>",
            "<a>",
            "<1a:b>",
            "_:b0",
            "_:b.c",
        ];
        let objects = [
            "<http://a.example/#frag>",
            "<http://a.example/#a#b>",
            "<http://a.example/?q=1>",
            "<http://[::1]/>",
            "<mailto:a@b>",
            "<http:/one>",
            "<http:///three>",
            "<http://a%20b/>",
            "<http://a b/>",
            "<x:>",
            "_:b1",
            "\"\"",
            "\"plain å\"",
            "\"tab\\t\"",
            "\"cut",
            "\"chat\"@en",
            "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            "\"s\"^^<http://www.w3.org/2001/XMLSchema#string>",
            "\"l\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
            "\"x\"^^<t>",
            "\"x\" \"y\"",
        ];
        let mut plain = 0;
        for subject in subjects {
            for object in objects {
                for end in [" .", ".", " . # said", " . <x>"] {
                    let line = format!("{subject} <http://a.example/p> {object}{end}");
                    let mut out = LocalTriples::default();
                    if add_plain(line.as_bytes(), 3, &mut out) {
                        plain += 1;
                        assert_eq!(parsed(&line), Ok(triples(&out)), "{line}");
                    } else {
                        assert!(out.triples.is_empty() && out.dictionary.is_empty(), "{line}");
                    }
                }
            }
        }
        assert!(plain > 20, "{plain}");
    }
}
