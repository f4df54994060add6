// Power of a modelled chip: the sum over time, where it goes, and which clocks and voltages are set.
//
// Only runs whose snapshots have watts offer this view: no watts are ever guessed for a host.

import { html, nothing, type TemplateResult } from "lit";
import { watts } from "../draw/text";
import type { Snapshot } from "../model/api";
import { History } from "../model/history";
import { store } from "../model/store";
import type { Curve } from "../parts/chart";
import type { Column } from "../parts/table";
import { figure, nothingYet, toggle, View } from "../parts/view";
import { GRID_MAX } from "./chip";
import "../parts/chart";
import "../parts/place-canvas";
import "../parts/place-grid";
import "../parts/table";

interface Point { mhz: number; volt: number; cores: number; watt: number; busy: number }

export class PowerView extends View {
    private history: History | null = null;
    private clocks = false;

    override render() {
        const { run, shown } = store;
        if (!run || !shown) return nothingYet;
        if (!shown.places.watt) return html`<p class="nothing">the power of this machine is not known</p>`;
        const metric = this.clocks ? "clock" : "power";
        const total = shown.places.watt.reduce((sum, watt) => sum + watt, 0);
        return html`
            <div class="halves"><div><dl class="figures">
                ${figure("Power of the cores", watts(total), "modelled")}
                ${figure("Mean of a core", watts(total / run.places))}
            </dl>
            <div class="part"><h3>Operating points</h3>${this.points(shown)}</div></div>
            <isles-chart .label=${"Power of all cores"} .curve=${this.curve(shown)}></isles-chart></div>
            <div class="tools"><h3>Where it goes</h3>${toggle("Show clocks", this.clocks, (on) => {
                this.clocks = on;
                this.requestUpdate();
            })}</div>
            ${run.places <= GRID_MAX
                ? html`<isles-place-grid .metric=${metric} .links=${false}></isles-place-grid>`
                : html`<isles-place-canvas .metric=${metric} .links=${false}></isles-place-canvas>`}`;
    }

    override firstUpdated(): void {
        const { run } = store;
        // Of more places than this the sum is what the page has seen itself.
        if (!run || run.places > GRID_MAX) return;
        const all = Array.from({ length: run.places }, (_, place) => place);
        this.history = new History(all, { name: "watt", unit: "W", description: "", kind: "gauge" });
        void this.history.load().then(() => this.requestUpdate());
    }

    private curve(shown: Snapshot): Curve {
        const replay = store.run?.mode === "replay";
        const until = shown.time_ms;
        const { x, values } = this.history?.until(replay ? Infinity : until / 1000) ?? { x: [], values: [] };
        const since = (x.at(-1) ?? -1) * 1000;
        const seen = replay ? [] : store.totals.until(until).filter((row) => row.time_ms > since + 900);
        return {
            x: [...x, ...seen.map((row) => row.time_ms / 1000)],
            series: [{ name: "watt", values: [...values, ...seen.map((row) => row.watt)] }],
            at: replay ? until / 1000 : undefined,
            show: watts,
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

customElements.define("isles-power-view", PowerView);
