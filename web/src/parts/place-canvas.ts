// The map of more than 64 places, on one canvas that has the keyboard as a whole.
//
// Arrow keys move a cursor, and a live line says what is below it; "show as table" of the view around it shows the same
// numbers as text. A cell fills and colours as in `place-grid`, and has its number where it is wide enough.

import { html } from "lit";
import { fit, watchWidth } from "../draw/canvas";
import { colourOf, inkOf, type Ink } from "../draw/colour";
import { drawLinks } from "../draw/links";
import { mapOf, neighbour, type PlaceMap } from "../draw/map";
import { metricOf, sharesOf } from "../draw/metrics";
import type { Run, Snapshot } from "../model/api";
import { store } from "../model/store";
import { Element, idOf } from "./element";
import { cellText, describe } from "./place";

/** A cell is at most this high, at least this wide; a number needs more. */
const CELL_HIGH = 30;
const CELL_WIDE = 6;
const NUMBER_WIDE = 30;

interface Geometry { cellWidth: number; cellHeight: number; gap: number; inner: number; width: number; height: number }

export class PlaceCanvas extends Element {
    static override properties = { metric: {}, links: { type: Boolean } };
    declare metric: string;
    declare links: boolean;
    private active = store.place;
    private hovered = -1;
    private built: Run | null = null;
    private map!: PlaceMap;
    private geometry!: Geometry;
    private width = 0;
    private unwatch: (() => void) | null = null;
    private lineId = idOf("line");

    constructor() {
        super();
        this.metric = "load";
        this.links = true;
    }

    override render() {
        return html`
            <div class="map is-canvas">
                <canvas class="map-canvas" tabindex="0" role="application" aria-roledescription="map of places"
                    aria-label="Places as they lie, arrow keys move, Enter opens" aria-describedby=${this.lineId}
                    @keydown=${this.key} @click=${this.pressed} @pointermove=${this.hover}
                    @pointerleave=${this.hover} @focus=${() => this.requestUpdate()}
                    @blur=${() => this.requestUpdate()}></canvas>
            </div>
            <p class="map-line" id=${this.lineId} aria-live="polite"></p>`;
    }

    override firstUpdated(): void {
        this.unwatch = watchWidth(this.querySelector(".map")!, (width) => {
            this.width = width;
            this.paint();
        });
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.unwatch?.();
    }

    override connectedCallback(): void {
        super.connectedCallback();
        if (this.hasUpdated && !this.unwatch) this.firstUpdated();
    }

    override updated(): void {
        this.paint();
    }

    override focus(): void {
        this.querySelector("canvas")?.focus();
    }

    private paint(): void {
        const { run, shown } = store;
        const canvas = this.querySelector<HTMLCanvasElement>("canvas");
        if (!run || !shown || !canvas || this.width < 1) return;
        if (this.built !== run) {
            this.built = run;
            this.map = mapOf(run);
            this.active = Math.min(this.active, run.places - 1);
        }
        const geometry = this.geometry = geometryOf(this.map, this.width);
        const context = fit(canvas, geometry.width, geometry.height);
        if (!context) return;
        const ink = inkOf();
        if (this.links && this.map.mesh && shown.links && geometry.gap >= 5) {
            drawLinks(context, this.map, shown.links, (tile) => this.tileBox(tile), ink);
        }
        this.paintCells(context, run, shown, ink);
        this.line();
    }

    private paintCells(context: CanvasRenderingContext2D, run: Run, shown: Snapshot, ink: Ink): void {
        const metric = metricOf(this.metric);
        const found = sharesOf(metric, shown, store.rates);
        const { cellWidth, cellHeight } = this.geometry;
        const numbers = cellWidth >= NUMBER_WIDE;
        const bar = numbers ? Math.min(12, Math.floor(cellWidth / 3)) : cellWidth;
        context.font = `${cellWidth >= 40 ? 12 : 10}px system-ui, sans-serif`;
        context.textAlign = "right";
        context.textBaseline = "middle";
        for (let place = 0; place < run.places; place++) {
            const { x, y } = this.at(place);
            const state = shown.places.state[place]!;
            const share = found ? found.share(place) : 0;
            context.fillStyle = numbers ? ink.surface : ink.track;
            context.fillRect(x, y, cellWidth, cellHeight);
            context.fillStyle = ink.track;
            if (numbers) context.fillRect(x, y, bar, cellHeight);
            if (state === "dead" || state === "silent") {
                cross(context, x, y, bar, cellHeight, ink);
            } else {
                const high = share * cellHeight;
                context.fillStyle = colourOf(share);
                context.fillRect(x, y + cellHeight - high, bar, high);
            }
            if (!numbers) continue;
            context.fillStyle = state === "dead" ? ink.bad : ink.ink;
            const text = found ? cellText(metric, found.values[place]!, state) : "–";
            context.fillText(text, x + cellWidth - 3, y + cellHeight / 2 + 0.5, cellWidth - bar - 4);
        }
        this.mark(context, this.active, this.matches(":focus-within") ? ink.accent : ink.muted, 2);
        for (const pane of store.panes) if (pane.view === "core") this.mark(context, pane.place, ink.accent, 2);
    }

    private mark(context: CanvasRenderingContext2D, place: number, colour: string, width: number): void {
        const { x, y } = this.at(place);
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.strokeRect(x - 1, y - 1, this.geometry.cellWidth + 2, this.geometry.cellHeight + 2);
    }

    /** The upper left corner of the cell of a place. */
    private at(place: number): { x: number; y: number } {
        const { column, row } = this.map.cellOf(place);
        const { cellWidth, cellHeight, gap, inner } = this.geometry;
        const { across, down } = this.map;
        const edge = 2;
        return {
            x: edge + column * (cellWidth + inner) + Math.floor(column / across) * (gap - inner),
            y: edge + row * (cellHeight + inner) + Math.floor(row / down) * (gap - inner),
        };
    }

    private tileBox(tile: number) {
        const { column, row } = this.map.tileCell(tile);
        const { across, down } = this.map;
        const { cellWidth, cellHeight, gap, inner } = this.geometry;
        const width = across * cellWidth + (across - 1) * inner;
        const height = down * cellHeight + (down - 1) * inner;
        return { x: 2 + column * (width + gap), y: 2 + row * (height + gap), width, height };
    }

    private placeUnder(event: MouseEvent): number {
        const { cellWidth, cellHeight, gap, inner } = this.geometry;
        const find = (offset: number, size: number, each: number, many: number) => {
            const tile = each * size + (each - 1) * inner + gap;
            const inside = offset % tile;
            const part = Math.min(each - 1, Math.floor(inside / (size + inner)));
            const at = Math.floor(offset / tile) * each + part;
            return inside <= tile - gap && at >= 0 && at < many ? at : -1;
        };
        const column = find(event.offsetX - 2, cellWidth, this.map.across, this.map.columns);
        const row = find(event.offsetY - 2, cellHeight, this.map.down, this.map.rows);
        return column < 0 || row < 0 ? -1 : this.map.placeAt(column, row);
    }

    private line(): void {
        const line = this.querySelector(".map-line");
        if (!line || !store.run || !store.shown) return;
        const place = this.hovered >= 0 ? this.hovered : this.active;
        const text = describe(store.run, this.map, store.shown, place);
        // A live region speaks each change: while the cursor rests and time goes on it must keep still.
        const spoken = `${place}`;
        if (line.getAttribute("data-place") === spoken && document.activeElement === this.querySelector("canvas")) {
            line.setAttribute("aria-live", "off");
        } else {
            line.setAttribute("aria-live", "polite");
        }
        line.setAttribute("data-place", spoken);
        line.textContent = text;
    }

    private pressed(event: MouseEvent): void {
        const place = this.placeUnder(event);
        if (place < 0) return;
        this.move(place);
        store.openView("core", place);
    }

    private hover(event: PointerEvent): void {
        const place = event.type === "pointerleave" ? -1 : this.placeUnder(event);
        if (place === this.hovered) return;
        this.hovered = place;
        this.line();
    }

    private key(event: KeyboardEvent): void {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.map) return;
        if (event.key === "Enter") store.openView("core", this.active, true);
        else if (event.key === " ") store.pinPlace(this.active);
        else if (/^(Arrow|Home|End)/.test(event.key)) this.move(neighbour(this.map, this.active, event.key));
        else return;
        event.preventDefault();
        event.stopPropagation();
    }

    private move(place: number): void {
        this.active = place;
        store.place = place;
        this.requestUpdate();
    }
}

function geometryOf(map: PlaceMap, width: number): Geometry {
    const { columns, rows, across, down } = map;
    const inner = 1;
    const least = map.mesh ? (width / columns > 24 ? 12 : width / columns > 12 ? 6 : 3) : 2;
    const gaps = (columns / across - 1) * least + columns / across * (across - 1) * inner;
    const cellWidth = Math.max(CELL_WIDE, Math.min(64, Math.floor((width - 4 - gaps) / columns)));
    // What whole pixels leave over goes into the gaps.
    const over = width - 4 - gaps - columns * cellWidth;
    const gap = least + (over > 0 && cellWidth < 64 ? Math.floor(over / Math.max(1, columns / across - 1)) : 0);
    const cellHeight = Math.max(CELL_WIDE, Math.min(CELL_HIGH, cellWidth < NUMBER_WIDE ? cellWidth : 20));
    const tiles = (many: number, each: number, size: number) =>
        4 + many * size + (many / each - 1) * gap + many / each * (each - 1) * inner;
    return {
        cellWidth, cellHeight, gap, inner,
        width: tiles(columns, across, cellWidth), height: tiles(rows, down, cellHeight),
    };
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, ink: Ink): void {
    context.strokeStyle = ink.bad;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x + 2, y + 2);
    context.lineTo(x + w - 2, y + h - 2);
    context.moveTo(x + w - 2, y + 2);
    context.lineTo(x + 2, y + h - 2);
    context.stroke();
}

customElements.define("isles-place-canvas", PlaceCanvas);
