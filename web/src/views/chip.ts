// The chip as it lies, or the places in rows where there is no mesh: load by height, number and colour, and the
// traffic of links.

import { html, nothing, type TemplateResult } from "lit";
import { METRICS, metricOf, sharesOf, type Metric } from "../draw/metrics";
import { mapOf } from "../draw/map";
import { bytes, count, percent, plain, rate } from "../draw/text";
import type { Link, Snapshot } from "../model/api";
import { store } from "../model/store";
import type { Column } from "../parts/table";
import { nothingYet, placeLink, toggle, View } from "../parts/view";
import "../parts/host";
import "../parts/place-canvas";
import "../parts/place-grid";
import "../parts/table";

/** Up to here cells are elements; above, a canvas. */
export const GRID_MAX = 64;
const LINKS_SHOWN = 5;

export class ChipView extends View {
    private metric = "load";
    private links = true;
    private table = false;

    override render() {
        const { run, shown } = store;
        if (!run || !shown) return nothingYet;
        const mesh = mapOf(run).mesh;
        return html`
            <div class="tools">
                <label>Show <select @change=${this.choose}>${METRICS.filter((metric) => this.has(metric, shown))
                    .map((metric) => html`<option value=${metric.key} ?selected=${metric.key === this.metric}>${
                        metric.name}</option>`)}</select></label>
                ${mesh && shown.links ? toggle("Links", this.links, (on) => {
                    this.links = on;
                    this.requestUpdate();
                }) : nothing}
                ${toggle("Show as table", this.table, (on) => {
                    this.table = on;
                    this.requestUpdate();
                })}
                ${this.table ? nothing : this.legend(shown)}
            </div>
            ${this.table ? placeTable(shown) : this.map(run.places)}
            ${mesh && shown.links && this.links
                ? this.table ? linkTable(shown.links) : this.busiest(shown) : nothing}
            ${!shown.places.watt && run.mode === "live" ? html`<isles-host></isles-host>` : nothing}`;
    }

    private map(places: number): TemplateResult {
        return places <= GRID_MAX
            ? html`<isles-place-grid .metric=${this.metric} .links=${this.links}></isles-place-grid>`
            : html`<isles-place-canvas .metric=${this.metric} .links=${this.links}></isles-place-canvas>`;
    }

    private has(metric: Metric, shown: Snapshot): boolean {
        return metric.key === "tasks" || metric.key === "messages" || metric.values(shown, store.rates) !== null;
    }

    private choose(event: Event): void {
        this.metric = (event.target as HTMLSelectElement).value;
        this.requestUpdate();
    }

    private legend(shown: Snapshot): TemplateResult {
        const metric = metricOf(this.metric);
        const full = sharesOf(metric, shown, store.rates)?.full ?? 1;
        const [low, high] = metric.key === "load" ? ["0 %", "100 %"]
            : ["0", metric.long(full).replace(/ (sent|ready)$/, "")];
        return html`<span class="legend"><span>${low}</span><span class="legend-scale"></span>
            <span>${high}</span></span>`;
    }

    private busiest(shown: Snapshot): TemplateResult {
        const links = [...shown.links!].sort((a, b) => b.load - a.load).slice(0, LINKS_SHOWN)
            .filter((link) => link.load >= 0.01);
        return html`<p class="busiest"><span>Busiest links between tiles</span> ${links.length === 0 ? "none"
            : links.map((link) => html`<span>${link.from} → ${link.to}: ${percent(link.load)}</span> `)}</p>`;
    }
}

function linkTable(links: Link[]): TemplateResult {
    const columns: Column<Link>[] = [
        { name: "From tile", number: true, value: (link) => link.from },
        { name: "To tile", number: true, value: (link) => link.to },
        { name: "Load", number: true, value: (link) => link.load, show: (link) => percent(link.load) },
    ];
    return html`<h3>Links</h3>
        <isles-table .label=${"Table of links"} .columns=${columns} .rows=${links}></isles-table>`;
}

function placeTable(shown: Snapshot): TemplateResult {
    const { places } = shown;
    const { rates } = store;
    const number = (name: string, values: number[] | undefined, show: (value: number) => string): Column<number>[] =>
        values ? [{ name, number: true, value: (place) => values[place]!, show: (place) => show(values[place]!) }] : [];
    const columns: Column<number>[] = [
        { name: "Place", number: true, value: (place) => place, show: placeLink },
        { name: "State", value: (place) => places.state[place]!, show: (place) => html`${places.state[place]}${
            places.cause[place] ? html`: ${plain(places.cause[place])}` : nothing}` },
        ...number("Load", places.busy, percent),
        ...number("Tasks run", places.tasks, count),
        ...number("Tasks/s", rates?.tasks, rate),
        ...number("Ready", places.queue, count),
        ...number("Blocked", places.blocked, count),
        ...number("Sent", places.messages_sent, count),
        ...number("Received", places.messages_received, count),
        ...number("Bytes sent", places.bytes_sent, bytes),
        ...number("Finishes", places.finishes_open, count),
        ...number("Memory", places.memory_bytes, bytes),
        ...number("MHz", places.clock_mhz, (value) => value.toFixed(0)),
        ...number("Volt", places.volt, (value) => value.toFixed(3)),
        ...number("Watt", places.watt, (value) => value.toFixed(2)),
    ];
    return html`<isles-table .label=${"Table of places"} .columns=${columns}
        .rows=${Array.from({ length: places.state.length }, (_, place) => place)}></isles-table>`;
}

customElements.define("isles-chip-view", ChipView);
