// One counter of some places over the time of the run: asked from the server once, then carried on from the snapshots.
//
// A counter that only counts up is shown as a rate, by the difference of neighbours. The history of a live run goes on
// growing while the picture is paused; who draws it cuts it at the time that is shown.

import { getHistory, type CounterInfo, type Places, type Snapshot } from "./api";

/** What the server keeps: 10 minutes at 1 s and 2 hours at 10 s, and some room. */
const POINTS = 1500;

export class History {
    /** Seconds since the start. */
    x: number[] = [];
    values: (number | null)[] = [];
    trouble = "";
    /** Whether snapshots have this counter. */
    carried = true;
    /** Of a power: modelled time and energy of the last point that came from a snapshot. */
    private energy: { ms: number; value: number } | null = null;
    private last: { ms: number; value: number } | null = null;

    constructor(readonly places: number[], readonly counter: CounterInfo) {}

    async load(): Promise<void> {
        try {
            const said = await getHistory(this.places, this.counter.name);
            const sums = said.t.map((_, row) => this.sum((place) => said.series[String(place)]?.[row] ?? null));
            this.last = null;
            this.x = [];
            this.values = [];
            said.t.forEach((ms, row) => this.append(ms, sums[row]!));
            this.trouble = "";
        } catch (error) {
            this.trouble = error instanceof Error ? error.message : String(error);
        }
    }

    /** Takes what a snapshot says of the counter, if it does. At most one point a second is kept. */
    add(snapshot: Snapshot): void {
        const column = snapshot.places[this.counter.name as keyof Places] as number[] | undefined;
        this.carried = Array.isArray(column) && typeof column[0] === "number";
        if (!this.carried || (this.last && snapshot.time_ms - this.last.ms < 950)) return;
        this.append(snapshot.time_ms, this.power(snapshot) ?? this.sum((place) => column![place] ?? null));
    }

    /** Of a power what was drawn since the point before, by modelled time: snapshots between are left out. */
    private power(snapshot: Snapshot): number | null {
        const { joule } = snapshot.places;
        if (this.counter.name !== "watt" || !joule || !snapshot.power) return null;
        const now = { ms: snapshot.power.until_ms, value: this.sum((place) => joule[place] ?? null) ?? 0 };
        const before = this.energy;
        this.energy = now;
        return before && now.ms > before.ms ? 1000 * (now.value - before.value) / (now.ms - before.ms) : null;
    }

    /** The points up to a time in seconds. */
    until(seconds: number): { x: number[]; values: (number | null)[] } {
        let end = this.x.length;
        while (end > 0 && this.x[end - 1]! > seconds) end -= 1;
        return { x: this.x.slice(0, end), values: this.values.slice(0, end) };
    }

    private sum(value: (place: number) => number | null): number | null {
        let total: number | null = null;
        for (const place of this.places) {
            const one = value(place);
            if (one !== null) total = (total ?? 0) + one;
        }
        return total;
    }

    private append(ms: number, value: number | null): void {
        const before = this.last;
        if (before && ms <= before.ms) return;
        this.last = value === null ? before : { ms, value };
        if (this.counter.kind === "count") {
            if (!before) return;
            value = value === null ? null : Math.max(0, value - before.value) / ((ms - before.ms) / 1000);
        }
        this.x.push(ms / 1000);
        this.values.push(value);
        if (this.x.length > POINTS + 200) {
            this.x = this.x.slice(-POINTS);
            this.values = this.values.slice(-POINTS);
        }
    }
}
