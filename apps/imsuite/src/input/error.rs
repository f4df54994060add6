//! Errors in the input of a kernel.
//!
//! One structure for files and generators, because their caller does the same with each fault: it prints one line and
//! stops. Invariant: each message names the source, the line if there is one, the text found and the allowed text.

use super::super::kernel::KernelName;
use isles_app::input::ReadFault;
use std::fmt;

/// Source of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A file, by its name.
    File(String),
    /// The value of `--generate`.
    Generator(String),
}

impl fmt::Display for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputSource::File(name) => write!(f, "{name}"),
            InputSource::Generator(value) => write!(f, "--generate is {value:?}"),
        }
    }
}

/// An input on which the kernel cannot run.
#[derive(Debug)]
pub struct InputFault {
    /// Source of the input.
    pub source: InputSource,
    /// The line of the file, from 1, if the fault is in one line.
    pub line: Option<usize>,
    /// Expected property, with the contents found.
    pub expected: Expected,
}

/// A required property that an input lacks.
#[derive(Debug)]
pub enum Expected {
    /// A file that can be read.
    Readable(ReadFault),
    /// A line of another form.
    Line {
        /// Text found, shortened; `None` at the end of the file.
        found: Option<String>,
        /// Allowed forms.
        allowed: String,
    },
    /// Edges listed by both nodes, and no loops.
    BothWays {
        /// The node that has the edge.
        one: u32,
        /// The node to which it leads.
        other: u32,
    },
    /// A connected graph.
    Connected {
        /// The kernel that needs it.
        kernel: KernelName,
        /// A node of the component that was examined.
        from: u32,
        /// A node that cannot be reached from there.
        node: u32,
    },
    /// A tree.
    Tree {
        /// Number of nodes.
        nodes: usize,
        /// Number of edges, which is not one less.
        edges: usize,
    },
    /// The parents determined by the edges.
    Parent {
        /// The node.
        node: u32,
        /// Parent of the node according to the edges.
        parent: u32,
        /// Parent of the node in the file.
        found: u32,
    },
    /// Identifiers that differ.
    DistinctIdentifiers {
        /// An identifier shared by two nodes.
        twice: u64,
    },
    /// No more traitors than an agreement tolerates.
    FewTraitors {
        /// Number of traitors.
        traitors: usize,
        /// Maximum number of traitors.
        most: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// A family on which the kernel is defined.
    Family {
        /// The kernel.
        kernel: KernelName,
        /// The families that it supports.
        allowed: String,
    },
    /// A value of `--generate`.
    Generator {
        /// Allowed values.
        allowed: String,
    },
    /// No more members in a committee than there are nodes.
    CommitteeMax {
        /// Requested number.
        found: u32,
        /// Number of nodes.
        nodes: usize,
    },
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Readable(cause) => write!(f, "cannot be read: {cause}"),
            Expected::Line { found: Some(found), allowed } => write!(f, "{found:?}; allowed: {allowed}"),
            Expected::Line { found: None, allowed } => write!(f, "the file ends; allowed: {allowed}"),
            Expected::BothWays { one, other } if one == other => {
                write!(f, "node {one} has an edge to itself; allowed: edges between two nodes")
            }
            Expected::BothWays { one, other } => write!(
                f,
                "node {one} has an edge to {other}, but {other} has none to {one}; allowed: a symmetric matrix"
            ),
            Expected::Connected { kernel, from, node } => write!(
                f,
                "no path leads from node {from} to node {node}; allowed for {kernel}: a connected graph"
            ),
            Expected::Tree { nodes, edges } => {
                write!(
                    f,
                    "{nodes} nodes with {edges} edges; allowed for VC: a tree, with one edge fewer than nodes"
                )
            }
            Expected::Parent { node, parent, found } => write!(
                f,
                "the parent of node {node} is {found}; allowed: {parent}, by its edges (the parent of \
                 the root is the root)"
            ),
            Expected::DistinctIdentifiers { twice } => {
                write!(f, "two nodes have the identifier {twice}; allowed: distinct identifiers")
            }
            Expected::FewTraitors { traitors, most, nodes } => write!(
                f,
                "{traitors} traitors; allowed: at most {most} among {nodes} nodes, an eighth of the \
                 nodes minus one"
            ),
            Expected::Family { kernel, allowed } => {
                write!(f, "{kernel} is not defined on that family; allowed: {allowed}")
            }
            Expected::Generator { allowed } => write!(f, "allowed: {allowed}"),
            Expected::CommitteeMax { found, nodes } => {
                write!(f, "K is {found}; allowed: 1 to {nodes}, the number of nodes")
            }
        }
    }
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InputFault { source, line, expected } = self;
        match (source, line) {
            (_, Some(line)) => write!(f, "{source}: line {line}: {expected}"),
            (InputSource::Generator(_), None) => write!(f, "{source}; {expected}"),
            (InputSource::File(_), None) => write!(f, "{source}: {expected}"),
        }
    }
}
