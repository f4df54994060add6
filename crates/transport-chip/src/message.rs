//! What lies in message buffers, or in private memory on its way there.

use isles_chip::quantity::Picoseconds;
use isles_transport::{AlignedBytes, BlockMemory, Class, HandlerId, PlaceId};
use std::cell::Cell;
use std::rc::Rc;

/// The bytes of a message that is no block.
pub(crate) type Content = Box<AlignedBytes>;

/// The content of a message, by its place in memory: so it is short, however often it is passed on.
pub(crate) enum MessageContent {
    Inline(Content),
    Block(Box<ChipBlock>),
}

impl MessageContent {
    pub(crate) fn len(&self) -> usize {
        match self {
            MessageContent::Inline(bytes) => bytes.bytes().len(),
            MessageContent::Block(block) => block.bytes().len(),
        }
    }
}

/// One message that is complete at the receiver.
pub(crate) struct ReceivedMessage {
    pub(crate) source: PlaceId,
    pub(crate) class: Class,
    pub(crate) handler: HandlerId,
    pub(crate) load: MessageContent,
    pub(crate) arrival: Picoseconds,
}

/// A large message; counted while it lives.
pub(crate) struct ChipBlock {
    content: AlignedBytes,
    live: Rc<Cell<usize>>,
}

impl ChipBlock {
    pub(crate) fn new(content: AlignedBytes, live: &Rc<Cell<usize>>) -> ChipBlock {
        live.set(live.get() + 1);
        ChipBlock { content, live: Rc::clone(live) }
    }
}

impl BlockMemory for ChipBlock {
    fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }
}

impl Drop for ChipBlock {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}
