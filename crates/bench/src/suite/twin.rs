//! The suite `twin`: how fast the model of a chip runs on this host, with SimGrid beside it.
//!
//! Its own file because its peers and its targets are others than those of `core`. It holds no code but the table.
//! What SimGrid does is in `peers/simgrid.cpp`: the same topology, sizes and numbers of messages, contention on.

use super::figure;
use crate::measure::{Better, Contender, Group, Row, Target};
use crate::program::Program;

const ISLES: &str = "isles";
const TRACED: &str = "isles, traced";
const PROGRAM: &str = "isles, a program";
const SIMGRID: &str = "SimGrid";
const ANSWERS: &str = "SimGrid, with answers";
const DEFAULTS: &str = "SimGrid, its TCP model";

/// There-and-backs, and messages of each place; the children know the same numbers.
pub const PING_PONGS: u32 = 100_000;
/// As [`PING_PONGS`], of each of 48 places.
pub const MESH_MESSAGES: u32 = 10_000;
/// As [`PING_PONGS`], of each of 1,000 places.
pub const TORUS_MESSAGES: u32 = 10;

/// Bytes of a message that takes a line of the SCC.
pub const SHORT: u32 = 24;
/// Bytes of a message that holds the links of a mesh for longer than it needs to cross them.
pub const LONG: u32 = 512;
/// Bytes of a packet of Blue Gene/P.
const PACKET: u32 = 240;

/// All groups, in the order in which they are run.
pub const GROUPS: &[Group] =
    &[EVENTS, PING_PONG, MESH, MESH_LONG, MESH_PACKETS, MESH_PACKETS_LONG, TORUS, MACHINE];

/// SimGrid in one of its configurations, by its name here and that of the model there.
type Configuration = (&'static str, &'static str);
const PLAIN: Configuration = (SIMGRID, "plain");
const ANSWERED: Configuration = (ANSWERS, "answers");
const OF_TCP: Configuration = (DEFAULTS, "defaults");

const fn simgrid(
    (label, model): Configuration,
    section: &'static str,
    messages: u32,
    bytes: u32,
) -> Contender {
    Contender { label, program: Program::SimGrid { section, model, messages, bytes } }
}

const EVENTS: Group = Group {
    name: "events",
    setting: "48 places on chip:scc, each sends 24 bytes to a random other one a turn; a program: spawn_at! likewise",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-mesh") },
        Contender { label: TRACED, program: Program::Peer("twin-mesh-traced") },
        Contender { label: PROGRAM, program: Program::Peer("twin-program") },
    ],
    rows: &[
        events(
            "events-untraced",
            "events of the model in a second of this host",
            ISLES,
            &[Target::Value(5.0)],
        ),
        events("events-traced", "the same with a Perfetto trace into a file", TRACED, &[Target::Value(2.0)]),
        events("events-program", "the same of a program with tasks, a finish and a runtime", PROGRAM, &[]),
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
        targets,
    }
}

const PING_PONG: Group = Group {
    name: "ping-pong",
    setting: "2 places of one tile of chip:scc, 24 bytes there and back",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-ping-pong") },
        simgrid(PLAIN, "ping-pong", PING_PONGS, SHORT),
        simgrid(OF_TCP, "ping-pong", PING_PONGS, SHORT),
    ],
    rows: &[Row { targets: &[of_simgrid(10.0)], ..messages("ping-pong-messages") }],
};

const MESH: Group = Group {
    name: "mesh",
    setting: "48 places on the mesh of chip:scc, 24 bytes to random others, links shared",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-mesh") },
        simgrid(PLAIN, "mesh", MESH_MESSAGES, SHORT),
        simgrid(ANSWERED, "mesh", MESH_MESSAGES, SHORT),
        simgrid(OF_TCP, "mesh", MESH_MESSAGES, SHORT),
    ],
    rows: &[on_the_mesh("mesh-messages")],
};

const MESH_LONG: Group = Group {
    name: "mesh-long",
    setting: "the same with 512 bytes: in both models messages hold links that others want",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-mesh-long") },
        simgrid(PLAIN, "mesh", MESH_MESSAGES, LONG),
        simgrid(ANSWERED, "mesh", MESH_MESSAGES, LONG),
        simgrid(OF_TCP, "mesh", MESH_MESSAGES, LONG),
    ],
    rows: &[on_the_mesh("mesh-long-messages")],
};

const MESH_PACKETS: Group = Group {
    name: "mesh-packets",
    setting: "48 places on a mesh whose hardware carries messages, a packet of 24 bytes each to random others, links shared",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-mesh-packets") },
        simgrid(PLAIN, "mesh", MESH_MESSAGES, SHORT),
        simgrid(ANSWERED, "mesh", MESH_MESSAGES, SHORT),
        simgrid(OF_TCP, "mesh", MESH_MESSAGES, SHORT),
    ],
    rows: &[on_the_mesh("mesh-packets-messages")],
};

const MESH_PACKETS_LONG: Group = Group {
    name: "mesh-packets-long",
    setting: "the same with 512 bytes",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-mesh-packets-long") },
        simgrid(PLAIN, "mesh", MESH_MESSAGES, LONG),
        simgrid(ANSWERED, "mesh", MESH_MESSAGES, LONG),
        simgrid(OF_TCP, "mesh", MESH_MESSAGES, LONG),
    ],
    rows: &[on_the_mesh("mesh-packets-long-messages")],
};

const TORUS: Group = Group {
    name: "torus",
    setting: "1,000 places on a torus of 10 x 10 x 10 as chip:bluegene-p's, a packet each to random others, links shared",
    slow: false,
    contenders: &[
        Contender { label: ISLES, program: Program::Peer("twin-torus") },
        simgrid(PLAIN, "torus", TORUS_MESSAGES, PACKET),
        simgrid(OF_TCP, "torus", TORUS_MESSAGES, PACKET),
    ],
    rows: &[Row { targets: &[of_simgrid(100.0)], ..messages("torus-messages") }],
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
        machine_time("machine-time", "endpoints without a runtime: all of it, on this host", ISLES),
        machine_memory("machine-memory", "the same: most resident memory", ISLES),
        machine_time("machine-program-time", "a program, each place with the runtime: all of it", PROGRAM),
        machine_memory("machine-program-memory", "the same: most resident memory", PROGRAM),
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
        targets: &[Target::Value(2.0)],
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

const fn of_answers(limit: f64) -> Target {
    Target::Ratio { limit, of: &[ANSWERS], words: "SimGrid's with answers" }
}

const fn of_simgrid(limit: f64) -> Target {
    Target::Ratio { limit, of: &[SIMGRID], words: "SimGrid's" }
}

/// Against SimGrid at its fastest, and against the one that has on its links what the model has: the answers, too.
const fn on_the_mesh(name: &'static str) -> Row {
    Row {
        peers: const {
            &[
                figure(SIMGRID, "messages_million"),
                figure(ANSWERS, "messages_million"),
                figure(DEFAULTS, "messages_million"),
            ]
        },
        targets: const { &[of_simgrid(20.0), of_answers(20.0)] },
        ..messages(name)
    }
}

const fn messages(name: &'static str) -> Row {
    Row {
        name,
        question: "messages in a second of this host",
        unit: "million/s",
        better: Better::More,
        ours: figure(ISLES, "messages_million"),
        peers: const { &[figure(SIMGRID, "messages_million"), figure(DEFAULTS, "messages_million")] },
        targets: &[],
    }
}
