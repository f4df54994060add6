//! What a run on a chip can be written down as.
//!
//! Each format is a function from what is known of a run to text, or from events to bytes. Nothing here opens a file
//! or knows where a text goes. Invariant: the same run gives the same text, but for what the host measured.

mod folded;
mod json;
pub(crate) mod perfetto;
mod summary;
mod table;

pub use folded::{folded, folded_joules};
pub use summary::{RunFacts, summary};
pub use table::{links, traffic};
