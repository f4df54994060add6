// The sums over all places, one row a snapshot: what the key figures and the chart of power show.
//
// They are collected from every snapshot that arrives, also while the picture is paused. The rows are a ring of fixed
// length, so an hour of watching needs no more memory than ten minutes.

import type { Power, Snapshot } from "./api";

/** Ten minutes at two snapshots a second. */
const ROWS = 1200;

export interface Total {
    time_ms: number;
    busy: number;
    tasks: number;
    messages: number;
    bytes: number;
    power: Power | null;
}

const sum = (values: number[] | undefined) => (values ?? []).reduce((total, value) => total + value, 0);

export function totalOf(snapshot: Snapshot): Total {
    const { places } = snapshot;
    return {
        time_ms: snapshot.time_ms,
        busy: sum(places.busy) / Math.max(1, places.busy.length),
        tasks: sum(places.tasks),
        messages: sum(places.messages_sent),
        bytes: sum(places.bytes_sent),
        power: snapshot.power ?? null,
    };
}

export class Totals {
    private rows: Total[] = [];

    add(total: Total): void {
        const last = this.rows.at(-1);
        if (last && total.time_ms <= last.time_ms) return;
        this.rows.push(total);
        if (this.rows.length > 2 * ROWS) this.rows = this.rows.slice(-ROWS);
    }

    /** The rows up to a time, oldest first. */
    until(time_ms: number): Total[] {
        return this.rows.slice(-ROWS).filter((row) => row.time_ms <= time_ms);
    }
}

/** What a place did in a second, from two snapshots of the same run; null where they cannot tell. */
export interface Rates { tasks: number[]; sent: number[]; bytes: number[]; seconds: number }

export function ratesOf(before: Snapshot | null, now: Snapshot): Rates | null {
    if (!before) return null;
    const seconds = (now.time_ms - before.time_ms) / 1000;
    if (seconds <= 0 || seconds > 30) return null;
    const rate = (column: "tasks" | "messages_sent" | "bytes_sent") =>
        now.places[column].map((value, place) => Math.max(0, value - (before.places[column][place] ?? 0)) / seconds);
    return { tasks: rate("tasks"), sent: rate("messages_sent"), bytes: rate("bytes_sent"), seconds };
}
