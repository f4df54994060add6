// What a process of the tests has started ends with it, also when a signal ends it.
//
// Each command is the leader of a group of processes, which is ended as a whole. Of a process that is killed (SIGKILL)
// nothing can be known here.

import { spawn } from "node:child_process";

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };

/** What is still to be done when this process ends, in this order. */
const actions = new Set();

process.on("exit", () => {
    for (const action of actions) {
        try {
            action();
        } catch { /* it has ended, or is gone */ }
    }
});
for (const [signal, number] of Object.entries(SIGNALS)) process.on(signal, () => process.exit(128 + number));

/** Has something done when this process ends; returns what takes that back. */
export function atEnd(action) {
    actions.add(action);
    return () => actions.delete(action);
}

/** Ends a group of processes by its leader, as far as it is there. */
export function endGroup(leader, signal) {
    try {
        process.kill(-leader.pid, signal);
    } catch { /* it has ended */ }
}

/** Starts a command in a group of its own, which is ended by `signal` when this process ends before it. */
export function startGroup(command, words, options, signal) {
    const leader = spawn(command, words, { ...options, detached: true });
    const forget = atEnd(() => endGroup(leader, signal));
    leader.on("close", forget);
    return leader;
}
