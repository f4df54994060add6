//! The suite `jobs`: the cost of stoppable jobs, and the time of their checkpoints.
//!
//! It contains only the table. The published figures shown beside ours are of a library on the SCC that wrote whole
//! processes (van der Woning and Bakker): 0.2 % of 55 s; in memory a checkpoint took 4.5 % less than on the disk of a
//! server, a restart 49.3 %.

use super::super::figure;
use crate::measure::{Better, Contender, Figure, Group, Row, Target};
use crate::program::Program;

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] = &[COST, CHECKPOINTS];

const JOB: &str = "isles";
const ON_DISK: &str = "isles, on disk";
const IN_MEMORY: &str = "isles, in memory";

const COST: Group = Group {
    name: "stoppable",
    setting: "a sum of 2·10⁹ random numbers in steps of a quarter of a millisecond; a job server over 2 threads",
    slow: false,
    contenders: &[Contender { label: JOB, program: Program::Peer("jobs-cost") }],
    rows: &[Row {
        name: "job-cost",
        question: "time of a job that can be stopped; beside: of a plain loop over the same steps (published: 1.002)",
        unit: "s",
        better: Better::Less,
        ours: figure(JOB, "job_s"),
        peers: &[figure(JOB, "plain_s")],
        beside: &[],
        targets: &[Target::BestPeer(1.002)],
        quoted_with: None,
    }],
};

const CHECKPOINTS: Group = Group {
    name: "checkpoints",
    setting: "a job that holds memory, written and started again; a job server over 2 threads",
    slow: false,
    contenders: &[
        Contender { label: IN_MEMORY, program: Program::Peer("jobs-in-memory") },
        Contender { label: ON_DISK, program: Program::Peer("jobs-on-disk") },
    ],
    rows: &[
        by_size(
            "checkpoint-1",
            "a checkpoint of 1 MB, in memory",
            "save_1_s",
            &[figure(ON_DISK, "save_1_s")],
        ),
        by_size(
            "checkpoint-16",
            "a checkpoint of 16 MB, in memory",
            "save_16_s",
            &[figure(ON_DISK, "save_16_s")],
        ),
        by_size(
            "checkpoint-64",
            "a checkpoint of 64 MB, in memory",
            "save_64_s",
            &[figure(ON_DISK, "save_64_s")],
        ),
        by_size(
            "checkpoint-256",
            "a checkpoint of 256 MB, in memory; published: 0.955 of the time on a disk",
            "save_256_s",
            &[figure(ON_DISK, "save_256_s")],
        ),
        by_size("restart-1", "a restart of 1 MB, from memory", "load_1_s", &[figure(ON_DISK, "load_1_s")]),
        by_size(
            "restart-16",
            "a restart of 16 MB, from memory",
            "load_16_s",
            &[figure(ON_DISK, "load_16_s")],
        ),
        by_size(
            "restart-64",
            "a restart of 64 MB, from memory",
            "load_64_s",
            &[figure(ON_DISK, "load_64_s")],
        ),
        by_size(
            "restart-256",
            "a restart of 256 MB, from memory; published: 0.507 of the time from a disk",
            "load_256_s",
            &[figure(ON_DISK, "load_256_s")],
        ),
    ],
};

const fn by_size(
    name: &'static str,
    question: &'static str,
    value: &'static str,
    peers: &'static [Figure],
) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(IN_MEMORY, value),
        peers,
        beside: &[],
        targets: &[],
        quoted_with: None,
    }
}
