//! The packets in the channels between groups: items, and markers between items.

use super::stage::ports::PortValues;
use isles_protocol::pipeline::PlacedGroup;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A message from one group to the next.
#[derive(Serialize, Deserialize)]
pub(super) enum StageMessage {
    /// The values of an item that later stages need.
    Item {
        /// Number of the item in the pipeline, from 0.
        number: u64,
        payload: PortValues,
    },
    /// Items after this marker are processed by the groups of the plan.
    Change(EpochPlan),
    /// The states of all stages between the items `number - 1` and `number` are sent to the place that runs the
    /// pipeline.
    Checkpoint { number: u64 },
    /// There are no more items.
    End,
}

/// A message with its sequence number at its sender, from which the order is restored after replicas. Packets of one
/// channel are handled in order.
#[derive(Serialize, Deserialize)]
pub(super) struct StagePacket {
    pub(super) number: u64,
    pub(super) message: StageMessage,
}

impl StageMessage {
    /// Makes a packet for a group that receives from one channel and ignores numbers.
    pub(super) fn into_packet(self) -> StagePacket {
        StagePacket { number: 0, message: self }
    }
}

/// The groups of an epoch, the period between two changes.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct EpochPlan {
    pub(super) epoch: u64,
    /// First stage, end of the stages, and place of each group.
    groups: Vec<(u32, u32, u32)>,
}

impl EpochPlan {
    pub(super) fn new(epoch: u64, groups: &[PlacedGroup]) -> EpochPlan {
        let plain =
            |group: &PlacedGroup| (group.stages.start as u32, group.stages.end as u32, group.place as u32);
        EpochPlan { epoch, groups: groups.iter().map(plain).collect() }
    }

    /// Returns the place that runs `stage` in this epoch; the first one if it is replicated.
    pub(super) fn place_of(&self, stage: usize) -> usize {
        let has = |group: &&(u32, u32, u32)| (group.0 as usize..group.1 as usize).contains(&stage);
        self.groups.iter().find(has).expect("a plan has all stages").2 as usize
    }
}

/// Bytes that are encoded as one block; serde would encode a `Vec<u8>` one number at a time.
#[derive(Serialize, Deserialize)]
struct ByteBlock(#[serde(with = "crate::plain")] Vec<u8>);

/// Borrowed form of [`ByteBlock`].
#[derive(Serialize)]
struct ByteBlockRef<'a>(#[serde(with = "crate::plain")] &'a [u8]);

impl Serialize for PortValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            PortValues::Bytes(values) => {
                serializer.collect_seq(values.iter().map(|value| ByteBlockRef(value)))
            }
            PortValues::Here(_) => Err(serde::ser::Error::custom("a payload of one place leaves it")),
        }
    }
}

impl<'de> Deserialize<'de> for PortValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let blocks = Vec::<ByteBlock>::deserialize(deserializer)?;
        Ok(PortValues::Bytes(blocks.into_iter().map(|block| block.0).collect()))
    }
}
