// Power of a modelled chip: the sum over time, where it goes, and which clocks and voltages are set.
//
// Only runs whose snapshots have watts offer this view: no watts are ever guessed for a host.

import { html, nothing, type TemplateResult } from "lit";
import { joules, watts } from "../draw/text";
import type { Power, Snapshot } from "../model/api";
import { Energy } from "../model/energy";
import { store } from "../model/store";
import type { Curve } from "../parts/chart";
import type { Column } from "../parts/table";
import { figure, nothingYet, toggle, View } from "../parts/view";
import { GRID_MAX } from "./chip";
import "../parts/chart";
import "../parts/clocks";
import "../parts/place-canvas";
import "../parts/place-grid";
import "../parts/table";

interface Point { mhz: number; volt: number; cores: number; watt: number; busy: number }

export class PowerView extends View {
    private readonly energy = new Energy();
    private clocks = false;

    override render() {
        const { run, shown } = store;
        if (!run || !shown) return nothingYet;
        if (!shown.places.watt) return html`<p class="nothing">the power of this machine is not known</p>`;
        const metric = this.clocks ? "clock" : "power";
        const power = store.end?.summary.power ?? shown.power;
        const cores = shown.places.watt.reduce((sum, watt) => sum + watt, 0);
        return html`
            <div class="halves"><div><dl class="figures">
                ${power ? chipFigures(power, store.end !== null || shown.state !== "running") : nothing}
                ${figure("Power of the cores", watts(cores), "modelled")}
                ${figure("Mean of a core", watts(cores / run.places))}
            </dl>
            <div class="part"><h3>Operating points</h3>${this.points(shown)}</div></div>
            <isles-chart .label=${"Power of the chip over modelled time"} .curve=${this.curve(shown)}>
            </isles-chart></div>
            ${run.jobs ? html`<isles-clocks></isles-clocks>` : nothing}
            <div class="tools"><h3>Where it goes</h3>${toggle("Show clocks", this.clocks, (on) => {
                this.clocks = on;
                this.requestUpdate();
            })}</div>
            ${run.places <= GRID_MAX
                ? html`<isles-place-grid .metric=${metric} .links=${false}></isles-place-grid>`
                : html`<isles-place-canvas .metric=${metric} .links=${false}></isles-place-canvas>`}`;
    }

    override firstUpdated(): void {
        // Without an answer the curve begins with what the page has seen itself.
        void this.energy.load().then(() => this.requestUpdate(), () => undefined);
    }

    private curve(shown: Snapshot): Curve {
        const replay = store.run?.mode === "replay";
        const over = shown.state !== "running";
        const rows = replay ? [] : store.totals.until(over ? Infinity : shown.time_ms);
        const now = shown.power?.until_ms ?? 0;
        // Of a run that is over the picture may be from before the end.
        const { x, watts: values } = this.energy.curve(rows, replay || over ? Infinity : now);
        return {
            x, series: [{ name: "watt", values }], at: replay ? now / 1000 : undefined, show: watts, modelled: true,
        };
    }

    private points(shown: Snapshot): TemplateResult {
        const { clock_mhz, volt, watt, busy } = shown.places;
        const found = new Map<string, Point>();
        (watt ?? []).forEach((power, place) => {
            const mhz = Math.round(clock_mhz?.[place] ?? 0);
            const at = volt?.[place] ?? 0;
            const key = `${mhz}/${at.toFixed(4)}`;
            const point = found.get(key) ?? { mhz, volt: at, cores: 0, watt: 0, busy: 0 };
            point.cores += 1;
            point.watt += power;
            point.busy += busy[place]!;
            found.set(key, point);
        });
        const rows = [...found.values()].sort((a, b) => b.mhz - a.mhz || b.volt - a.volt);
        const columns: Column<Point>[] = [
            { name: "Clock", number: true, value: (row) => row.mhz, show: (row) => `${row.mhz} MHz` },
            { name: "Voltage", number: true, value: (row) => row.volt, show: (row) => `${row.volt.toFixed(3)} V` },
            { name: "Cores", number: true, value: (row) => row.cores },
            { name: "Power", number: true, value: (row) => row.watt, show: (row) => watts(row.watt) },
            {
                name: "Mean load", number: true, value: (row) => row.busy / row.cores,
                show: (row) => `${Math.round(100 * row.busy / row.cores)} %`,
            },
        ];
        return rows.length === 0 ? html`${nothing}`
            : html`<isles-table .label=${"Operating points"} .columns=${columns} .rows=${rows}></isles-table>`;
    }
}

/** Power and energy of a whole chip; of a run that is over, the mean of all its time. */
export function chipFigures(power: Power, over: boolean): TemplateResult {
    const watt = over && power.until_ms > 0 ? 1000 * power.joule / power.until_ms : power.watt;
    return html`${figure("Power of the chip", watts(watt), over ? "mean of the run" : "modelled")}
        ${figure("Energy", joules(power.joule), "modelled")}`;
}

customElements.define("isles-power-view", PowerView);
