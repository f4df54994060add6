//! The suite `bare`: programs on bare cores, beside the same programs as processes, and the device of Xipx beside RCCE.
//!
//! It contains only the table. A figure is the minimum of three runs, each a median of batches: a machine that loses
//! its processor takes up to a thousand times as long.

use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;
use crate::suite::figure;

const BARE_RCCE: &str = "RCCE, bare";
const BARE_IRCCE: &str = "iRCCE, bare";
const HOSTED_RCCE: &str = "RCCE, processes";
const HOSTED_IRCCE: &str = "iRCCE, processes";
const XIPX: &str = "Xipx, kernel threads";
const XIPX_USER: &str = "Xipx, user threads";
const BOOT: &str = "isles, images";

const PAIR: &str = "2 bare cores, a machine of QEMU (TCG) each";

/// A device may take 1 / 0.7 of the library's time: 70 % of its bandwidth, as in the paper.
const OF_SEVENTY_PERCENT: f64 = 1.43;

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[BARE, DEVICES, MACHINES];

const fn row(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "us",
        better: Better::Less,
        ours: figure(BARE_RCCE, "ping_pong_us_32"),
        peers: &[],
        beside: &[],
        targets: &[],
        quoted_with: None,
    }
}

const BARE: Group = Group {
    name: "bare-rcce",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: BARE_RCCE, program: Program::BareCores("bare-rcce") },
        Contender { label: BARE_IRCCE, program: Program::BareCores("bare-ircce") },
        Contender { label: HOSTED_RCCE, program: Program::Peer("rcce-lengths") },
        Contender { label: HOSTED_IRCCE, program: Program::Peer("ircce-lengths") },
    ],
    rows: &[
        Row {
            peers: &[figure(HOSTED_RCCE, "ping_pong_us_32")],
            targets: &[Target::BestPeer(1.1), Target::Value(10.0)],
            ..row("bare-ping-pong-32", "32 bytes by RCCE on bare cores, half round trip")
        },
        Row {
            ours: figure(BARE_RCCE, "ping_pong_us_65536"),
            peers: &[figure(HOSTED_RCCE, "ping_pong_us_65536")],
            targets: &[Target::BestPeer(1.1)],
            ..row("bare-ping-pong-64k", "64 KiB by RCCE on bare cores, half round trip")
        },
        Row {
            ours: figure(BARE_IRCCE, "ping_pong_us_65536"),
            peers: &[figure(HOSTED_IRCCE, "ping_pong_us_65536")],
            targets: &[Target::BestPeer(1.1)],
            ..row("bare-ircce-64k", "64 KiB by iRCCE on bare cores, half round trip")
        },
    ],
};

const DEVICES: Group = Group {
    name: "xipx",
    setting: PAIR,
    slow: false,
    contenders: &[
        Contender { label: XIPX, program: Program::BareCores("bare-xipx") },
        Contender { label: XIPX_USER, program: Program::BareCores("bare-xipx-user") },
        Contender { label: BARE_RCCE, program: Program::BareCores("bare-rcce") },
        Contender { label: BARE_IRCCE, program: Program::BareCores("bare-ircce") },
    ],
    rows: &[
        Row {
            ours: figure(XIPX, "ping_pong_us_32"),
            peers: &[figure(BARE_RCCE, "ping_pong_us_32")],
            beside: &[figure(XIPX_USER, "ping_pong_us_32")],
            targets: &[Target::BestPeer(OF_SEVENTY_PERCENT)],
            ..row("xipx-ping-pong-32", "32 bytes by Xipx, half round trip, by poll")
        },
        Row {
            ours: figure(XIPX, "ping_pong_us_1024"),
            peers: &[figure(BARE_RCCE, "ping_pong_us_1024")],
            beside: &[figure(XIPX_USER, "ping_pong_us_1024")],
            targets: &[Target::BestPeer(OF_SEVENTY_PERCENT)],
            ..row("xipx-ping-pong-1024", "1,024 bytes by Xipx, half round trip, by poll")
        },
        Row {
            ours: figure(XIPX, "ping_ping_us_1024"),
            peers: &[figure(BARE_IRCCE, "ping_ping_us_1024")],
            beside: &[figure(XIPX_USER, "ping_ping_us_1024")],
            targets: &[Target::BestPeer(OF_SEVENTY_PERCENT)],
            ..row("xipx-ping-ping-1024", "1,024 bytes by Xipx each way at once, half a round, by poll")
        },
    ],
};

const MACHINES: Group = Group {
    name: "machines",
    setting: "machines of QEMU (TCG), started at once",
    slow: false,
    contenders: &[Contender { label: BOOT, program: Program::BareCores("bare-boot") }],
    rows: &[
        Row {
            unit: "s",
            ours: figure(BOOT, "boot_of_2_s"),
            targets: &[Target::Value(1.0)],
            ..row("bare-boot", "start of 2 machines until the last is in main")
        },
        Row { unit: "s", ours: figure(BOOT, "boot_of_8_s"), ..row("bare-boot-8", "the same of 8 machines") },
        Row {
            unit: "KiB",
            ours: figure(BOOT, "image_kib"),
            targets: &[Target::Value(64.0)],
            ..row("bare-image", "the image of BT of NPB, the largest example, with -Os")
        },
    ],
};
