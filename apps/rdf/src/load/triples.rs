//! Triples as one place reads or makes them, with a dictionary of its own.
//!
//! It parses no format and exchanges nothing. Invariant: the parts of a triple are positions in the dictionary beside.

use crate::store::Triple;
use crate::store::dictionary::Dictionary;
use crate::store::graphs::Quad as NumberedQuad;
use crate::store::term;
use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term, TermRef};
use rustc_hash::FxHashMap;

/// Triples and their terms.
#[derive(Debug, Default)]
pub struct LocalTriples {
    /// The terms.
    pub dictionary: Dictionary,
    /// The triples, by positions of terms; one may be there several times.
    pub triples: Vec<Triple>,
    /// The triples of named graphs, in the same way.
    pub quads: Vec<NumberedQuad>,
    /// Names of named graphs that may have no triple.
    pub graphs: Vec<u32>,
    scratch: Vec<u8>,
}

/// Naming scheme for the blank nodes of a file, which differ from those of every other file.
#[derive(Debug)]
pub enum BlankNames {
    /// By their label: parts of the file may be read at several places.
    ByLabel {
        /// The number of the file.
        file: usize,
    },
    /// By the order in which they come: what has no label gets a random one from the reader.
    InOrder {
        /// The number of the file.
        file: usize,
        /// Labels that have come.
        known: FxHashMap<String, u32>,
    },
}

impl BlankNames {
    fn name(&mut self, label: &str) -> String {
        match self {
            BlankNames::ByLabel { file } => format!("f{file}.{label}"),
            BlankNames::InOrder { file, known } => {
                let next = known.len() as u32;
                let number = match known.get(label) {
                    Some(number) => *number,
                    None => {
                        known.insert(label.to_owned(), next);
                        next
                    }
                };
                format!("f{file}.{number}")
            }
        }
    }
}

impl LocalTriples {
    /// The position of an IRI.
    pub fn iri(&mut self, iri: &str) -> u32 {
        self.scratch.clear();
        term::encode_iri(iri, &mut self.scratch);
        self.dictionary.intern(&self.scratch)
    }

    /// The position of a literal without language and datatype.
    pub fn string(&mut self, value: &str) -> u32 {
        self.scratch.clear();
        term::encode_string(value, &mut self.scratch);
        self.dictionary.intern(&self.scratch)
    }

    /// Same as [`LocalTriples::iri`], for bytes that are known to be an IRI.
    pub fn encoded_iri(&mut self, iri: &[u8]) -> u32 {
        self.scratch.clear();
        self.scratch.push(term::IRI);
        self.scratch.extend_from_slice(iri);
        self.dictionary.intern(&self.scratch)
    }

    /// Same as [`LocalTriples::string`], for bytes that are known to be a text.
    pub fn encoded_string(&mut self, value: &[u8]) -> u32 {
        self.scratch.clear();
        self.scratch.push(term::STRING);
        self.scratch.extend_from_slice(value);
        self.dictionary.intern(&self.scratch)
    }

    /// The position of a literal of a datatype that is not that of strings.
    pub fn encoded_typed(&mut self, value: &[u8], datatype: &[u8]) -> u32 {
        self.scratch.clear();
        self.scratch.push(term::TYPED);
        for part in [value, datatype, &(value.len() as u32).to_le_bytes()] {
            self.scratch.extend_from_slice(part);
        }
        self.dictionary.intern(&self.scratch)
    }

    /// The position of the blank node with this label in a file that is read by lines.
    pub fn labelled(&mut self, label: &[u8], file: usize) -> u32 {
        self.scratch.clear();
        self.scratch.push(term::BLANK);
        self.scratch.extend_from_slice(format!("f{file}.").as_bytes());
        self.scratch.extend_from_slice(label);
        self.dictionary.intern(&self.scratch)
    }

    /// Adds a quad.
    pub fn add(&mut self, quad: &Quad, names: &mut BlankNames) {
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => self.term(node.as_ref().into()),
            NamedOrBlankNode::BlankNode(node) => self.blank(node.as_str(), names),
        };
        let predicate = self.term(quad.predicate.as_ref().into());
        let object = match &quad.object {
            Term::BlankNode(node) => self.blank(node.as_str(), names),
            other => self.term(other.as_ref()),
        };
        match &quad.graph_name {
            GraphName::DefaultGraph => self.triples.push([subject, predicate, object]),
            GraphName::NamedNode(node) => {
                let graph = self.term(node.as_ref().into());
                self.quads.push([graph, subject, predicate, object]);
            }
            GraphName::BlankNode(node) => {
                let graph = self.blank(node.as_str(), names);
                self.quads.push([graph, subject, predicate, object]);
            }
        }
    }

    /// Moves the triples of the default graph from `first` on to the graph with this name.
    pub fn name_triples(&mut self, first: usize, graph: &str) {
        let graph = self.iri(graph);
        self.graphs.push(graph);
        self.quads.extend(
            self.triples
                .drain(first..)
                .map(|[subject, predicate, object]| [graph, subject, predicate, object]),
        );
    }

    fn term(&mut self, term: TermRef<'_>) -> u32 {
        self.scratch.clear();
        term::encode(term, &mut self.scratch);
        self.dictionary.intern(&self.scratch)
    }

    fn blank(&mut self, label: &str, names: &mut BlankNames) -> u32 {
        let name = names.name(label);
        self.term(oxrdf::BlankNodeRef::new_unchecked(&name).into())
    }
}
