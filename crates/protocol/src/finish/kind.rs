//! The shape that a finish turned out to have.
//!
//! X10 lets a compiler or a pragma choose among finish protocols; here one protocol serves all shapes at the
//! cost of the cheapest, and the shape is observed. It steers nothing; it is for reports to people.

/// What a finish needed, from cheap to dear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinishKind {
    /// All tasks stayed at the home: no message.
    Local,
    /// The home sent one task away, which sent none: one report.
    Single,
    /// Only the home sent tasks away: one report a place, and one question and answer for a place that was
    /// busy again after its report.
    Spmd,
    /// Tasks sent tasks.
    General,
}
