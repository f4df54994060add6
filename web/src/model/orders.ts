// Orders to jobs and the states that permit them, made of the tables in crates/jobs/src/request/order.rs and
// crates/protocol/src/job/mod.rs, which a test compares:
// ISLES_TEST_WRITE_ORDERS=1 cargo test -p isles-jobs --lib orders

/** An order to a job. */
export interface Order {
    name: string;
    /** The states that permit it; the job server has the last word. */
    states: string[];
    /** Whether something is lost, so that the page asks first. */
    asks: boolean;
    /** Whether it applies to commands only with CRIU. */
    needsCriu: boolean;
}

export const ORDERS: Record<string, Order> = {
    start: {
        name: "Start", asks: false, needsCriu: false,
        states: ["new", "checkpointed", "stopped"],
    },
    pause: {
        name: "Pause", asks: false, needsCriu: false,
        states: ["running"],
    },
    resume: {
        name: "Resume", asks: false, needsCriu: false,
        states: ["paused"],
    },
    checkpoint: {
        name: "Checkpoint", asks: false, needsCriu: true,
        states: ["running", "paused"],
    },
    move: {
        name: "Move", asks: false, needsCriu: true,
        states: ["running", "paused"],
    },
    duplicate: {
        name: "Duplicate", asks: false, needsCriu: false,
        states: ["new", "creating", "running", "paused", "checkpointing", "checkpointed", "moving",
            "stopping", "stopped", "finished", "failed"],
    },
    kill: {
        name: "Kill", asks: true, needsCriu: false,
        states: ["creating", "running", "paused", "checkpointing", "moving"],
    },
    remove: {
        name: "Remove", asks: true, needsCriu: false,
        states: ["new", "checkpointed", "stopped", "finished", "failed"],
    },
};

/** The states of a job that is at a place, or on its way to one or from one. */
export const ACTIVE_STATES = ["creating", "running", "paused", "checkpointing", "moving", "stopping"];
