// Power of a modelled chip over its own time: what the server remembers, carried on from the snapshots.
//
// Points are energies; a power is the difference of two of them by the modelled time between. So the curve sums up to
// the energy of the run, however many snapshots were left out.

import { getHistory } from "./api";
import type { Total } from "./totals";

interface Point { model_ms: number; joule: number }

export class Energy {
    private points: Point[] = [];

    async load(): Promise<void> {
        const { model_ms, chip_watt } = await getHistory([0], "watt");
        let before: Point = { model_ms: 0, joule: 0 };
        this.points = (model_ms ?? []).map((ms, row) => {
            const joule = before.joule + (chip_watt?.[row] ?? 0) * (ms - before.model_ms) / 1000;
            before = { model_ms: ms, joule };
            return before;
        });
    }

    /** Seconds of modelled time, ascending, with the mean power since the one before; of the rows what comes then. */
    curve(rows: Total[], until_ms: number): { x: number[]; watts: number[] } {
        const seen = rows.flatMap(({ power }) => power ? [{ model_ms: power.until_ms, joule: power.joule }] : []);
        const known = this.points.at(-1)?.model_ms ?? 0;
        const x: number[] = [];
        const watts: number[] = [];
        let before: Point = { model_ms: 0, joule: 0 };
        for (const point of [...this.points, ...seen.filter((one) => one.model_ms > known)]) {
            const passed = point.model_ms - before.model_ms;
            if (passed <= 0 || point.model_ms > until_ms) continue;
            x.push(point.model_ms / 1000);
            watts.push(1000 * (point.joule - before.joule) / passed);
            before = point;
        }
        return { x, watts };
    }
}
