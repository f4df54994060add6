// Who talks to whom: a matrix, one row a sender, one column a receiver, on a canvas with a cursor.
//
// The server sends the largest pairs only; the rest is a number below. Above 64 places a cell stands for a block of
// neighbours, so that it stays large enough to be seen and to be pointed at. Colours follow the logarithm: a pair that
// sends ten times as much is one step brighter.

import { html, nothing, type TemplateResult } from "lit";
import { fit, watchWidth } from "../draw/canvas";
import { colourOf, inkOf } from "../draw/colour";
import { bytes, count, plural } from "../draw/text";
import type { Pair, Snapshot } from "../model/api";
import { store } from "../model/store";
import { idOf } from "../parts/element";
import type { Column } from "../parts/table";
import { nothingYet, placeLink, toggle, View } from "../parts/view";
import "../parts/table";

const CELLS_MAX = 64;
/** Room for the numbers of rows and columns, in pixels. */
const MARGIN = { left: 38, top: 22 };
const SIDE = { least: 300, most: 620 };
/** What of the window is above and below the matrix. */
const AROUND = 330;
const LARGEST = 12;
/** A cell with so long a side has its number in it. */
const NUMBER_SIDE = 40;

export class MessagesView extends View {
    private byBytes = false;
    private table = false;
    private width = 0;
    private cursor = { from: 0, to: 0 };
    private pointed: { from: number; to: number } | null = null;
    private unwatch: (() => void) | null = null;
    private lineId = idOf("line");
    /** Messages and bytes of each cell, row by row, of the snapshot that is drawn. */
    private cells: { messages: Float64Array; bytes: Float64Array } | null = null;
    private drawn: Snapshot | null = null;

    override render() {
        const { run, shown } = store;
        if (!run || !shown) return nothingYet;
        const { pairs_rest: rest } = shown;
        return html`
            <div class="tools">
                <label>Show <select @change=${this.choose}>
                    <option value="messages" ?selected=${!this.byBytes}>Messages</option>
                    <option value="bytes" ?selected=${this.byBytes}>Bytes</option></select></label>
                ${toggle("Show as table", this.table, (on) => {
                    this.table = on;
                    this.requestUpdate();
                })}
                ${this.table ? nothing : html`<span class="legend"><span>1</span><span class="legend-scale"></span>
                    <span>${this.most()}</span></span>`}
            </div>
            <div class="matrix-sides"><div class="matrix" ?hidden=${this.table}>
                <canvas tabindex="0" role="application" aria-roledescription="matrix" aria-describedby=${this.lineId}
                    aria-label="Messages between places, rows send, columns receive, arrow keys move, Enter opens"
                    @keydown=${this.key} @click=${this.pressed} @pointermove=${this.hover}
                    @pointerleave=${this.hover} @focus=${() => this.requestUpdate()}
                    @blur=${() => this.requestUpdate()}></canvas>
                <p class="map-line" id=${this.lineId} aria-live="polite"></p>
            </div>
            ${this.table ? nothing : this.largest(shown)}</div>
            ${this.table ? this.rows(shown) : nothing}
            ${rest.messages > 0 ? html`<p class="note">${plural(rest.messages, "message")}${rest.bytes > 0
                ? ` (${bytes(rest.bytes)})` : ""} more between other pairs</p>` : nothing}`;
    }

    override updated(): void {
        const box = this.querySelector(".matrix-sides");
        if (box && !this.unwatch) {
            this.unwatch = watchWidth(box, (width) => {
                this.width = width;
                this.paint();
            });
        }
        this.paint();
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.unwatch?.();
        this.unwatch = null;
    }

    private choose(event: Event): void {
        this.byBytes = (event.target as HTMLSelectElement).value === "bytes";
        this.requestUpdate();
    }

    /** Cells on a side, and places in a cell. */
    private sizes(): { side: number; block: number } {
        const places = store.run?.places ?? 1;
        const block = Math.ceil(places / CELLS_MAX);
        return { side: Math.ceil(places / block), block };
    }

    private sum(shown: Snapshot): { messages: Float64Array; bytes: Float64Array } {
        if (this.cells && this.drawn === shown) return this.cells;
        const { side, block } = this.sizes();
        const cells = { messages: new Float64Array(side * side), bytes: new Float64Array(side * side) };
        for (const [from, to, messages, size] of shown.pairs) {
            const at = Math.floor(from / block) * side + Math.floor(to / block);
            cells.messages[at]! += messages;
            cells.bytes[at]! += size;
        }
        this.drawn = shown;
        return this.cells = cells;
    }

    private most(): string {
        if (!store.shown) return "";
        const cells = this.sum(store.shown);
        const values = this.byBytes ? cells.bytes : cells.messages;
        const most = values.reduce((largest, value) => Math.max(largest, value), 0);
        return this.byBytes ? bytes(most) : count(most);
    }

    private cellSize(): number {
        const { side } = this.sizes();
        const high = Math.min(SIDE.most, Math.max(SIDE.least, innerHeight - AROUND));
        const wide = Math.min(SIDE.most, this.width) - MARGIN.left - 2;
        return Math.max(4, Math.min(64, Math.floor(Math.min(wide, high) / side)));
    }

    private paint(): void {
        const { shown } = store;
        const canvas = this.querySelector<HTMLCanvasElement>(".matrix canvas");
        if (!shown || !canvas || this.table || this.width < 1) return;
        const { side, block } = this.sizes();
        const size = this.cellSize();
        const context = fit(canvas, MARGIN.left + side * size + 2, MARGIN.top + side * size + 2);
        if (!context) return;
        const ink = inkOf();
        const cells = this.sum(shown);
        const values = this.byBytes ? cells.bytes : cells.messages;
        const most = Math.log1p(values.reduce((largest, value) => Math.max(largest, value), 0)) || 1;
        const gap = size >= 8 ? 1 : 0;
        context.fillStyle = ink.track;
        context.fillRect(MARGIN.left, MARGIN.top, side * size, side * size);
        context.font = "11px system-ui, sans-serif";
        context.textAlign = "center";
        context.textBaseline = "middle";
        for (let at = 0; at < values.length; at++) {
            if (values[at] === 0) continue;
            const share = Math.log1p(values[at]!) / most;
            const [x, y] = [MARGIN.left + at % side * size, MARGIN.top + Math.floor(at / side) * size];
            context.fillStyle = colourOf(share);
            context.fillRect(x, y, size - gap, size - gap);
            if (size < NUMBER_SIDE) continue;
            context.fillStyle = share >= 0.5 ? "#000" : "#fff";
            const text = this.byBytes ? bytes(values[at]!) : count(values[at]!);
            context.fillText(text, x + size / 2, y + size / 2, size - 4);
        }
        context.fillStyle = ink.muted;
        const every = Math.max(1, Math.ceil(26 / size));
        for (let cell = 0; cell < side; cell += every) {
            context.textAlign = "right";
            context.fillText(String(cell * block), MARGIN.left - 6, MARGIN.top + (cell + 0.5) * size);
            context.textAlign = "center";
            context.fillText(String(cell * block), MARGIN.left + (cell + 0.5) * size, MARGIN.top - 10);
        }
        const focused = document.activeElement === canvas;
        const { from, to } = this.pointed ?? this.cursor;
        context.strokeStyle = focused || this.pointed ? ink.accent : ink.muted;
        context.lineWidth = 2;
        context.strokeRect(MARGIN.left + to * size - 1, MARGIN.top + from * size - 1, size + 2 - gap, size + 2 - gap);
        this.line(block, cells, side);
    }

    private line(block: number, cells: { messages: Float64Array; bytes: Float64Array }, side: number): void {
        const line = this.querySelector<HTMLElement>(".map-line");
        if (!line) return;
        const { from, to } = this.pointed ?? this.cursor;
        const name = (cell: number) => block === 1 ? `place ${cell}`
            : `places ${cell * block} to ${Math.min(store.run!.places, (cell + 1) * block) - 1}`;
        const at = from * side + to;
        const key = `${from}/${to}`;
        line.setAttribute("aria-live", line.dataset.cell === key ? "off" : "polite");
        line.dataset.cell = key;
        line.textContent = `${name(from)} → ${name(to)}: ${plural(cells.messages[at] ?? 0, "message")}, ` +
            bytes(cells.bytes[at] ?? 0);
    }

    private under(event: MouseEvent): { from: number; to: number } | null {
        const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
        const size = this.cellSize();
        const { side } = this.sizes();
        const to = Math.floor((event.clientX - box.left - MARGIN.left) / size);
        const from = Math.floor((event.clientY - box.top - MARGIN.top) / size);
        return from >= 0 && to >= 0 && from < side && to < side ? { from, to } : null;
    }

    private hover(event: PointerEvent): void {
        this.pointed = event.type === "pointerleave" ? null : this.under(event);
        this.paint();
    }

    private pressed(event: MouseEvent): void {
        const cell = this.under(event);
        if (!cell) return;
        this.cursor = cell;
        store.openView("core", cell.from * this.sizes().block);
    }

    private key(event: KeyboardEvent): void {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const { side, block } = this.sizes();
        const { from, to } = this.cursor;
        const next = {
            ArrowLeft: { from, to: to - 1 }, ArrowRight: { from, to: to + 1 },
            ArrowUp: { from: from - 1, to }, ArrowDown: { from: from + 1, to },
            Home: { from, to: 0 }, End: { from, to: side - 1 },
        }[event.key];
        if (event.key === "Enter") store.openView("core", from * block, true);
        else if (!next) return;
        event.preventDefault();
        event.stopPropagation();
        if (!next) return;
        const inside = (cell: number) => Math.min(side - 1, Math.max(0, cell));
        this.cursor = { from: inside(next.from), to: inside(next.to) };
        this.pointed = null;
        this.paint();
    }

    private largest(shown: Snapshot): TemplateResult {
        const by = this.byBytes ? 3 : 2;
        const pairs = [...shown.pairs].sort((a, b) => b[by] - a[by]).slice(0, LARGEST);
        return html`<div class="part"><h3>Largest pairs</h3>${pairs.length === 0 ? html`<p class="nothing">none yet</p>`
            : html`<ul class="plain">${pairs.map(([from, to, messages, size]) => html`<li>${placeLink(from)} →
                ${placeLink(to)} <span class="note">${plural(messages, "message")}, ${bytes(size)}</span></li>`)}</ul>`
        }</div>`;
    }

    private rows(shown: Snapshot): TemplateResult {
        const columns: Column<Pair>[] = [
            { name: "From", number: true, value: (pair) => pair[0], show: (pair) => placeLink(pair[0]) },
            { name: "To", number: true, value: (pair) => pair[1], show: (pair) => placeLink(pair[1]) },
            { name: "Messages", number: true, value: (pair) => pair[2], show: (pair) => count(pair[2]) },
            { name: "Bytes", number: true, value: (pair) => pair[3], show: (pair) => bytes(pair[3]) },
        ];
        return html`<isles-table .label=${"Messages between places"} .columns=${columns} .rows=${shown.pairs}>
            </isles-table>`;
    }
}

customElements.define("isles-messages-view", MessagesView);
