// The stream of snapshots, one for all tabs of this address.
//
// A browser gives an origin six connections; a stream in each tab would hang the seventh. So one tab, the leader, holds
// the stream and passes each message on by a BroadcastChannel. The leader is who holds a lock; when its tab closes, the
// browser gives the lock to the next. A tab that joins asks, and is told the last message.
//
// Messages travel between tabs as the text that the server sent: each tab parses it once.

import { getRun, RequestError } from "./api";

export type Connection = "connecting" | "live" | "lost" | "refused";

export interface StreamReader {
    snapshot(text: string): void;
    connection(state: Connection): void;
}

type Between = { kind: "snapshot"; text: string } | { kind: "connection"; state: Connection } | { kind: "hello" };

const NAME = "isles-stream";
const AGAIN_MS = 3000;

/** Starts to read; the reader is told everything from now on, by whichever tab leads. */
export function openStream(reader: StreamReader): void {
    if (!("locks" in navigator) || !("BroadcastChannel" in self)) {
        lead(reader, null, null);
        return;
    }
    const channel = new BroadcastChannel(NAME + location.pathname);
    let last: string | null = null;
    channel.onmessage = (event: MessageEvent<Between>) => {
        const message = event.data;
        if (message.kind === "snapshot") reader.snapshot(last = message.text);
        if (message.kind === "connection") reader.connection(message.state);
    };
    channel.postMessage({ kind: "hello" } satisfies Between);
    void navigator.locks.request(NAME + location.pathname, () => {
        lead(reader, channel, last);
        return new Promise<never>(() => { /* kept until the tab closes */ });
    });
}

/** Whether this tab is the one with the stream: a test counts them. */
export const leading = { here: false };

/** Holds the stream from now on; `last` is what the leader before has told. */
function lead(reader: StreamReader, channel: BroadcastChannel | null, last: string | null): void {
    leading.here = true;
    let state: Connection = "connecting";
    const tell = (message: Between) => channel?.postMessage(message);
    const become = (next: Connection) => {
        state = next;
        reader.connection(next);
        tell({ kind: "connection", state: next });
    };
    if (channel) {
        channel.onmessage = (event: MessageEvent<Between>) => {
            if (event.data.kind !== "hello") return;
            tell({ kind: "connection", state });
            if (last !== null) tell({ kind: "snapshot", text: last });
        };
    }
    const open = () => {
        const source = new EventSource("api/v1/stream");
        source.onopen = () => become("live");
        source.addEventListener("snapshot", (event) => {
            last = (event as MessageEvent<string>).data;
            if (state !== "live") become("live");
            reader.snapshot(last);
            tell({ kind: "snapshot", text: last });
        });
        source.onerror = () => {
            // The browser tries again by itself, unless the answer was an error: then it has given up, and does not
            // say which. Another question tells a server that is gone from one that refuses.
            if (source.readyState !== EventSource.CLOSED) {
                become("lost");
                return;
            }
            setTimeout(open, AGAIN_MS);
            getRun().then(() => become("refused"), (error: unknown) =>
                become(error instanceof RequestError && error.status !== 0 ? "refused" : "lost"));
        };
    };
    open();
}
