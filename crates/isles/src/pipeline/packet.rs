//! The packets in the channels between groups: items, and the markers between two items.

use super::stage::ports::PortValues;
use isles_protocol::pipeline::PlacedGroup;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A message from one group to the next one.
#[derive(Serialize, Deserialize)]
pub(super) enum StageMessage {
    /// An item: the values that its next stages need.
    Item {
        /// Number of its item of the pipeline, from 0.
        number: u64,
        payload: PortValues,
    },
    /// All items before go by the groups that exist, all items after by those of the plan.
    Change(EpochPlan),
    /// Each stage's state, as it is between the items `number - 1` and `number`, goes to the first place.
    Checkpoint { number: u64 },
    /// There are no more items.
    End,
}

/// A message and its number among those of its sender, by which the order is restored behind replicas. Packets of one
/// channel are handled in order.
#[derive(Serialize, Deserialize)]
pub(super) struct StagePacket {
    pub(super) number: u64,
    pub(super) message: StageMessage,
}

impl StageMessage {
    /// The message as a packet for a group that receives from one channel, and looks at no number.
    pub(super) fn into_packet(self) -> StagePacket {
        StagePacket { number: 0, message: self }
    }
}

/// The groups of an epoch: the time between two changes.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct EpochPlan {
    pub(super) epoch: u64,
    /// The first stage, one past the last stage, and the place of each group.
    groups: Vec<(u32, u32, u32)>,
}

impl EpochPlan {
    pub(super) fn new(epoch: u64, groups: &[PlacedGroup]) -> EpochPlan {
        let plain =
            |group: &PlacedGroup| (group.stages.start as u32, group.stages.end as u32, group.place as u32);
        EpochPlan { epoch, groups: groups.iter().map(plain).collect() }
    }

    /// The number of the place that runs `stage` in this epoch; the first one if there are several.
    pub(super) fn place_of(&self, stage: usize) -> usize {
        let has = |group: &&(u32, u32, u32)| (group.0 as usize..group.1 as usize).contains(&stage);
        self.groups.iter().find(has).expect("a plan has all stages").2 as usize
    }
}

/// Bytes that travel as one block; serde would write a `Vec<u8>` as numbers, one by one.
#[derive(Serialize, Deserialize)]
struct ByteBlock(#[serde(with = "crate::plain")] Vec<u8>);

/// The same, of bytes that stay where they are.
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
