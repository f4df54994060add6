//! The suite `twin`: the speed of the chip model on this host, with SimGrid beside it.
//!
//! It contains only the table. SimGrid's side is in `peers/simgrid.cpp`: the same topology, sizes and numbers of
//! messages, with contention.

use super::figure;
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const ISLES: &str = "isles";
const TRACED: &str = "isles, traced";
const PROGRAM: &str = "isles, a program";
const DIRECT: &str = "SimGrid, sendto_async";
const MAILBOX: &str = "SimGrid, mailboxes";
const DIRECT_ANSWERS: &str = "SimGrid, sendto_async with answers";
const MAILBOX_ANSWERS: &str = "SimGrid, mailboxes with answers";
const DEFAULTS: &str = "SimGrid, its TCP model";

/// Round trips of a ping-pong; the children use the same numbers.
pub const PING_PONGS: u32 = 100_000;
/// Messages of each of 48 places, as [`PING_PONGS`].
pub const MESH_MESSAGES: u32 = 10_000;
/// Messages of each of 1,000 places, as [`PING_PONGS`].
pub const TORUS_MESSAGES: u32 = 10;

/// Tasks of each of 48 places.
pub const TASKS: u32 = 200;

/// Bytes of a message that takes a line of the SCC.
pub const SHORT: u32 = 24;
/// Bytes of a message that occupies the links of a mesh for longer than the time to cross them.
pub const LONG: u32 = 512;
/// Bytes of a packet of Blue Gene/P.
const PACKET: u32 = 240;

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] =
    &[EVENTS, PING_PONG, MESH, MESH_LONG, MESH_PACKETS, MESH_PACKETS_LONG, TORUS, MACHINE];

/// SimGrid in one of its configurations.
#[derive(Clone, Copy)]
struct Configuration {
    /// Name of the contender.
    label: &'static str,
    /// Network model of SimGrid.
    model: &'static str,
    /// `direct` or `mailbox`.
    style: &'static str,
}

impl Configuration {
    const fn new(label: &'static str, model: &'static str, style: &'static str) -> Configuration {
        Configuration { label, model, style }
    }
}

const PLAIN_DIRECT: Configuration = Configuration::new(DIRECT, "plain", "direct");
const PLAIN_MAILBOX: Configuration = Configuration::new(MAILBOX, "plain", "mailbox");
const ANSWERS_DIRECT: Configuration = Configuration::new(DIRECT_ANSWERS, "answers", "direct");
const ANSWERS_MAILBOX: Configuration = Configuration::new(MAILBOX_ANSWERS, "answers", "mailbox");
const OF_TCP: Configuration = Configuration::new(DEFAULTS, "defaults", "direct");

const fn simgrid(
    configuration: Configuration,
    section: &'static str,
    messages: u32,
    bytes: u32,
) -> Contender {
    let Configuration { label, model, style } = configuration;
    Contender { label, program: Program::SimGrid { section, model, style, messages, bytes } }
}

const fn isles(child: &'static str) -> Contender {
    Contender { label: ISLES, program: Program::Peer(child) }
}

/// The contenders of random traffic on a mesh.
const fn on_a_mesh(child: &'static str, bytes: u32) -> [Contender; 6] {
    [
        isles(child),
        simgrid(PLAIN_DIRECT, "mesh", MESH_MESSAGES, bytes),
        simgrid(PLAIN_MAILBOX, "mesh", MESH_MESSAGES, bytes),
        simgrid(ANSWERS_DIRECT, "mesh", MESH_MESSAGES, bytes),
        simgrid(ANSWERS_MAILBOX, "mesh", MESH_MESSAGES, bytes),
        simgrid(OF_TCP, "mesh", MESH_MESSAGES, bytes),
    ]
}

const EVENTS: Group = Group {
    name: "events",
    setting: "48 places on chip:scc, each sends 24 bytes to a random other one a turn; a program: spawn_at! likewise",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-mesh") },
        Contender { label: TRACED, program: Program::Peer("twin-mesh-traced") },
        Contender { label: PROGRAM, program: Program::Peer("twin-program") },
        simgrid(PLAIN_DIRECT, "program", TASKS, SHORT),
        simgrid(PLAIN_MAILBOX, "program", TASKS, SHORT),
    ],
    rows: &[
        Row {
            name: "program-tasks",
            question: "tasks a second of a program on 48 places of the SCC; SimGrid: actors, or work of the actor behind a mailbox",
            unit: "million/s",
            better: Better::More,
            ours: figure(PROGRAM, "tasks_million"),
            peers: &[figure(DIRECT, "messages_million"), figure(MAILBOX, "messages_million")],
            beside: &[],
            targets: &[Target::BestPeer(1.0)],
            quoted_with: None,
        },
        events(
            "events-untraced",
            "events of the model a second: 48 places of the SCC",
            ISLES,
            &[Target::Value(5.0)],
        ),
        events(
            "events-traced",
            "the same events with a Perfetto trace into a file",
            TRACED,
            &[Target::Value(2.0)],
        ),
        events(
            "events-program",
            "events a second of a program with tasks and a finish on the SCC",
            PROGRAM,
            &[],
        ),
    ],
};

const fn events(
    name: &'static str,
    question: &'static str,
    contender: &'static str,
    targets: &'static [Target],
) -> Row {
    Row {
        name,
        question,
        unit: "million/s",
        better: Better::More,
        ours: figure(contender, "events_million"),
        peers: &[],
        beside: &[],
        targets,
        quoted_with: None,
    }
}

const PING_PONG: Group = Group {
    name: "ping-pong",
    setting: "2 places of one tile of chip:scc, 24 bytes there and back",
    slow: false,
    contenders: &[
        isles("twin-ping-pong"),
        simgrid(PLAIN_DIRECT, "ping-pong", PING_PONGS, SHORT),
        simgrid(PLAIN_MAILBOX, "ping-pong", PING_PONGS, SHORT),
        simgrid(OF_TCP, "ping-pong", PING_PONGS, SHORT),
    ],
    rows: &[Row {
        targets: &[Target::BestPeer(10.0)],
        ..messages(
            "ping-pong-messages",
            "messages a second: 24 bytes there and back between 2 places of a tile",
        )
    }],
};

const MESH: Group = Group {
    name: "mesh",
    setting: "48 places on the mesh of chip:scc, 24 bytes to random others, links shared",
    slow: false,
    contenders: &on_a_mesh("twin-mesh", SHORT),
    rows: &[on_the_mesh("mesh-messages", "messages a second: 24 bytes on the mesh of the SCC")],
};

const MESH_LONG: Group = Group {
    name: "mesh-long",
    setting: "the same with 512 bytes: in both models messages hold links that others want",
    slow: false,
    contenders: &on_a_mesh("twin-mesh-long", LONG),
    rows: &[on_the_mesh("mesh-long-messages", "messages a second: 512 bytes on the mesh of the SCC")],
};

const MESH_PACKETS: Group = Group {
    name: "mesh-packets",
    setting: "48 places on a mesh whose hardware carries messages, a packet of 24 bytes each to random others, links shared",
    slow: false,
    contenders: &on_a_mesh("twin-mesh-packets", SHORT),
    rows: &[on_the_mesh("mesh-packets-messages", "messages a second: packets of 24 bytes on a mesh")],
};

const MESH_PACKETS_LONG: Group = Group {
    name: "mesh-packets-long",
    setting: "the same with 512 bytes",
    slow: false,
    contenders: &on_a_mesh("twin-mesh-packets-long", LONG),
    rows: &[on_the_mesh("mesh-packets-long-messages", "messages a second: packets of 512 bytes on a mesh")],
};

const TORUS: Group = Group {
    name: "torus",
    setting: "1,000 places on a torus of 10 x 10 x 10 as chip:bluegene-p's, a packet each to random others, links shared",
    slow: false,
    contenders: &[
        isles("twin-torus"),
        simgrid(PLAIN_DIRECT, "torus", TORUS_MESSAGES, PACKET),
        simgrid(PLAIN_MAILBOX, "torus", TORUS_MESSAGES, PACKET),
        simgrid(OF_TCP, "torus", TORUS_MESSAGES, PACKET),
    ],
    rows: &[Row {
        targets: &[Target::BestPeer(100.0)],
        ..messages("torus-messages", "messages a second: packets on a torus of 1,000 places")
    }],
};

const MACHINE: Group = Group {
    name: "machine",
    setting: "32,768 places on chip:bluegene-p: start, one barrier, one broadcast of 1 KiB; endpoints alone, and a program",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-machine") },
        Contender { label: PROGRAM, program: Program::Peer("twin-machine-program") },
    ],
    rows: &[
        machine_time(
            "machine-time",
            "32,768 places on Blue Gene/P, a barrier, a broadcast: endpoints alone",
            ISLES,
        ),
        machine_memory("machine-memory", "32,768 endpoints: most resident memory", ISLES),
        machine_time(
            "machine-program-time",
            "32,768 places on Blue Gene/P, a barrier, a broadcast: a program",
            PROGRAM,
        ),
        machine_memory("machine-program-memory", "32,768 places of a program: most resident memory", PROGRAM),
    ],
};

const fn machine_time(name: &'static str, question: &'static str, contender: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(contender, "seconds"),
        peers: &[],
        beside: &[],
        targets: &[Target::Value(2.0)],
        quoted_with: None,
    }
}

const fn machine_memory(name: &'static str, question: &'static str, contender: &'static str) -> Row {
    Row {
        unit: "MiB",
        ours: figure(contender, "mib"),
        targets: &[Target::Value(1_024.0)],
        ..machine_time(name, question, contender)
    }
}

/// A row against SimGrid at its fastest, and against the configuration that models links as our model does, including
/// answers.
const fn on_the_mesh(name: &'static str, question: &'static str) -> Row {
    Row {
        beside: const {
            &[
                figure(DIRECT_ANSWERS, "messages_million"),
                figure(MAILBOX_ANSWERS, "messages_million"),
                figure(DEFAULTS, "messages_million"),
            ]
        },
        targets: const {
            &[
                Target::BestPeer(20.0),
                Target::BestOf {
                    limit: 20.0,
                    of: &[DIRECT_ANSWERS, MAILBOX_ANSWERS],
                    words: "SimGrid with answers",
                },
            ]
        },
        ..messages(name, question)
    }
}

const fn messages(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "million/s",
        better: Better::More,
        ours: figure(ISLES, "messages_million"),
        peers: const { &[figure(DIRECT, "messages_million"), figure(MAILBOX, "messages_million")] },
        beside: const { &[figure(DEFAULTS, "messages_million")] },
        targets: &[],
        quoted_with: None,
    }
}
