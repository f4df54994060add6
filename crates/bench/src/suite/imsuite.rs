//! The suite `imsuite`: the kernels of IMSuite with minimal captures, and with all that X10 would ship.
//!
//! A separate file because both sides are ours: the same bodies, which capture only the data they use, or all that is
//! reachable. It contains only the table. Times are judged by their geometric mean over the kernels; bytes are given
//! by kernel, including the distribution of the network and the 0.4 KB of the frame's final report of each place.

use super::{figure, ours};
use crate::measure::{Better, Contender, Group, Row, Target};

const MINIMAL: &str = "minimal";
const REACHABLE: &str = "all that is reachable";

/// Defines the row of the bytes that a kernel moves.
macro_rules! bytes_of {
    ($kernel:literal) => {
        Row {
            name: concat!("bytes-", $kernel),
            question: concat!("bytes that ", $kernel, " moves"),
            unit: "KB",
            better: Better::Less,
            ours: figure(MINIMAL, concat!($kernel, "_kb")),
            peers: &[],
            beside: &[figure(REACHABLE, concat!($kernel, "_kb"))],
            targets: &[],
            quoted_with: None,
        }
    };
}

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[KERNELS];

const KERNELS: Group = Group {
    name: "kernels",
    setting: "12 kernels on 8 places, 128 nodes: a random tree, for VC a chain, for HS and LCR a ring",
    slow: false,
    contenders: &[
        Contender { label: MINIMAL, program: ours("isles-imsuite-minimal", 8) },
        Contender { label: REACHABLE, program: ours("isles-imsuite-reachable", 8) },
    ],
    rows: &[
        Row {
            name: "kernels-time",
            question: "geometric mean of the times of 12 kernels",
            unit: "ms",
            better: Better::Less,
            ours: figure(MINIMAL, "mean_ms"),
            peers: &[],
            beside: &[figure(REACHABLE, "mean_ms")],
            targets: &[Target::Speedup { limit: 2.88, over: REACHABLE }],
            quoted_with: None,
        },
        bytes_of!("BF"),
        bytes_of!("DST"),
        bytes_of!("BY"),
        bytes_of!("DR"),
        bytes_of!("DS"),
        bytes_of!("KC"),
        bytes_of!("DP"),
        bytes_of!("HS"),
        bytes_of!("LCR"),
        bytes_of!("MIS"),
        bytes_of!("MST"),
        bytes_of!("VC"),
    ],
};
