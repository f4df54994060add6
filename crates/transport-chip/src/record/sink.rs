//! Where the bytes of a trace go.
//!
//! They are gathered, and a sink gets them in portions, so that memory does not grow with the run. Invariant: after
//! the first thing that the sink has refused it gets nothing more, and the run goes on.

use crate::export::perfetto::Encoder;
use std::io::{self, Write};

/// So many bytes are encoded before the sink gets them.
const PORTION_BYTES: usize = 1 << 18;

/// An encoder, and the sink of what it has encoded.
pub(super) struct TraceSink {
    pub(super) encoder: Encoder,
    sink: Box<dyn Write + Send>,
    failure: Option<io::Error>,
}

impl TraceSink {
    pub(super) fn new(encoder: Encoder, sink: Box<dyn Write + Send>) -> TraceSink {
        TraceSink { encoder, sink, failure: None }
    }

    /// Hands over what is encoded, if that is enough.
    #[inline]
    pub(super) fn hand_over_portions(&mut self) {
        if self.encoder.bytes().len() >= PORTION_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if self.failure.is_none() {
            self.failure = self.sink.write_all(self.encoder.bytes()).err();
        }
        self.encoder.clear();
    }

    /// Hands over all that is left.
    ///
    /// # Errors
    /// The first thing that the sink has refused, at any time.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.hand_over();
        match self.failure {
            Some(failure) => Err(failure),
            None => self.sink.flush(),
        }
    }
}
