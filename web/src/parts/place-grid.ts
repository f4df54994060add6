// The map of up to 64 places as elements: a grid that the arrow keys walk as it lies, links in the gaps.
//
// Cells are made once and then changed in place, since a snapshot changes numbers and heights only; Lit would compare
// every one of them. Above 64 cells the page takes `place-canvas`, which costs a tenth.

import { html } from "lit";
import { fit, watchWidth } from "../draw/canvas";
import { colourOf, inkOf } from "../draw/colour";
import { drawLinks } from "../draw/links";
import { mapOf, neighbour, type PlaceMap } from "../draw/map";
import { metricOf, sharesOf } from "../draw/metrics";
import type { Run } from "../model/api";
import { store } from "../model/store";
import { Element } from "./element";
import { cellText, describe, STATE_SIGNS } from "./place";

/** More columns than this have small numbers in a narrow pane. */
const DENSE = 8;

interface Cell {
    place: number; root: HTMLElement; words: HTMLElement; value: HTMLElement; sign: HTMLElement; fill: HTMLElement;
}

export class PlaceGrid extends Element {
    static override properties = { metric: {}, links: { type: Boolean } };
    declare metric: string;
    declare links: boolean;
    /** The cell that the Tab key reaches. */
    private active = 0;
    private hovered = -1;
    private built: Run | null = null;
    private map!: PlaceMap;
    private cells: Cell[] = [];
    private unwatch: (() => void) | null = null;

    constructor() {
        super();
        this.metric = "load";
        this.links = true;
        this.active = store.place;
    }

    override render() {
        return html`
            <div class="map">
                <canvas class="map-links" aria-hidden="true"></canvas>
                <div class="map-cells" role="grid" aria-label="Places as they lie" @keydown=${this.key}
                    @click=${this.pressed} @pointermove=${this.hover} @pointerleave=${this.hover}
                    @focusin=${this.focused}></div>
            </div>
            <p class="map-line"></p>`;
    }

    override updated(): void {
        if (!store.run || !store.shown) return;
        if (this.built !== store.run) this.build(store.run);
        this.paint();
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.unwatch?.();
        this.unwatch = null;
        this.built = null;
    }

    override focus(): void {
        this.cells[this.active]?.root.focus();
    }

    private build(run: Run): void {
        this.built = run;
        const map = this.map = mapOf(run);
        const grid = this.querySelector<HTMLElement>(".map-cells")!;
        grid.replaceChildren();
        const { classList } = this.querySelector(".map")!;
        classList.toggle("is-mesh", map.mesh);
        classList.toggle("is-dense", map.columns > DENSE);
        grid.style.setProperty("--tiles", String(map.columns / map.across));
        grid.style.setProperty("--across", String(map.across));
        grid.style.setProperty("--rows", String(map.rows));
        grid.setAttribute("aria-rowcount", String(map.rows));
        grid.setAttribute("aria-colcount", String(map.columns));
        this.cells = [];
        this.active = Math.min(this.active, run.places - 1);
        for (let row = 0; row < map.rows; row++) {
            const line = make("div", "map-row", grid);
            line.setAttribute("role", "row");
            line.classList.toggle("is-last-of-tile", row % map.down === map.down - 1);
            let tile: HTMLElement | null = null;
            for (let column = 0; column < map.columns; column++) {
                if (column % map.across === 0) {
                    tile = make("div", "map-tile", line);
                    tile.setAttribute("role", "presentation");
                }
                this.cell(tile!, map.placeAt(column, row));
            }
        }
        this.unwatch?.();
        this.unwatch = watchWidth(this.querySelector(".map")!, () => this.paintLinks());
    }

    private cell(tile: HTMLElement, place: number): void {
        const root = make("div", place < 0 ? "cell is-empty" : "cell", tile);
        if (place < 0) {
            root.setAttribute("role", "presentation");
            return;
        }
        root.setAttribute("role", "gridcell");
        root.dataset.place = String(place);
        root.tabIndex = place === this.active ? 0 : -1;
        // What is spoken is a sentence of its own; what is seen is hidden from it, else both would be read.
        const words = make("span", "unseen", root);
        const seen = (className: string) => {
            const element = make("span", className, root);
            element.setAttribute("aria-hidden", "true");
            return element;
        };
        seen("cell-id").textContent = String(place);
        const [sign, value, bar] = [seen("cell-sign"), seen("cell-value"), seen("cell-bar")];
        this.cells[place] = { place, root, words, value, sign, fill: make("span", "cell-fill", bar) };
    }

    private paint(): void {
        const { run, shown, rates, panes } = store;
        if (!run || !shown) return;
        const metric = metricOf(this.metric);
        const found = sharesOf(metric, shown, rates);
        for (const { place, root, words, value, sign, fill } of this.cells) {
            const state = shown.places.state[place]!;
            const share = found ? found.share(place) : 0;
            root.dataset.state = state;
            words.textContent = describe(run, this.map, shown, place);
            root.setAttribute("aria-selected",
                String(panes.some((pane) => pane.view === "core" && pane.place === place)));
            value.textContent = found ? cellText(metric, found.values[place]!, state) : "–";
            sign.textContent = state === "dead" || state === "silent" ? "" : STATE_SIGNS[state];
            const dark = state === "dead" || state === "silent";
            fill.style.setProperty("height", dark ? "0" : `${Math.round(1000 * share) / 10}%`);
            fill.style.setProperty("background-color", colourOf(share));
        }
        this.line();
        this.paintLinks();
    }

    private paintLinks(): void {
        const canvas = this.querySelector<HTMLCanvasElement>(".map-links");
        const grid = this.querySelector<HTMLElement>(".map-cells");
        if (!canvas || !grid || !this.map) return;
        const show = this.links && this.map.mesh && store.shown?.links !== undefined;
        canvas.hidden = !show;
        if (!show) return;
        const context = fit(canvas, grid.clientWidth, grid.clientHeight);
        if (!context) return;
        // One tile tells where all are: the style sheet makes them of one size, at one distance. Where they lie in the
        // map is asked, not where in the window, since the map may be turned.
        const { columns, rows, across, down } = this.map;
        const tiles = this.querySelectorAll<HTMLElement>(".map-tile");
        const [first, last] = [tiles[0]!, tiles[tiles.length - 1]!];
        const [wide, high] = [columns / across, rows / down];
        const below = tiles[(down - 1) * wide]!;
        const bottomOf = (tile: HTMLElement) => tile.offsetTop + tile.offsetHeight;
        const height = bottomOf(below) - first.offsetTop;
        const stepX = wide > 1 ? (last.offsetLeft - first.offsetLeft) / (wide - 1) : 0;
        const stepY = high > 1 ? (bottomOf(last) - height - first.offsetTop) / (high - 1) : 0;
        drawLinks(context, this.map, store.shown!.links!, (tile) => {
            const at = this.map.tileCell(tile);
            return {
                x: first.offsetLeft + at.column * stepX, y: first.offsetTop + at.row * stepY,
                width: first.offsetWidth, height,
            };
        }, inkOf());
    }

    private line(): void {
        const line = this.querySelector(".map-line");
        if (!line || !store.run || !store.shown) return;
        line.textContent = describe(store.run, this.map, store.shown, this.hovered >= 0 ? this.hovered : this.active);
    }

    private placeOf(event: Event): number {
        const cell = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>(".cell") : null;
        return cell?.dataset.place === undefined ? -1 : Number(cell.dataset.place);
    }

    private pressed(event: Event): void {
        const place = this.placeOf(event);
        if (place < 0) return;
        this.move(place);
        store.openView("core", place);
    }

    private hover(event: PointerEvent): void {
        const place = event.type === "pointerleave" ? -1 : this.placeOf(event);
        if (place === this.hovered) return;
        this.hovered = place;
        this.line();
    }

    private focused(event: Event): void {
        const place = this.placeOf(event);
        if (place >= 0 && place !== this.active) this.move(place);
    }

    private key(event: KeyboardEvent): void {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "Enter") store.openView("core", this.active, true);
        else if (event.key === " ") store.pinPlace(this.active);
        else {
            const next = neighbour(this.map, this.active, event.key);
            if (next === this.active && !/^(Arrow|Home|End)/.test(event.key)) return;
            this.move(next);
            this.focus();
        }
        event.preventDefault();
        event.stopPropagation();
    }

    private move(place: number): void {
        const old = this.cells[this.active];
        if (old) old.root.tabIndex = -1;
        this.active = place;
        store.place = place;
        this.cells[place]!.root.tabIndex = 0;
        this.line();
    }
}

function make(name: string, className: string, parent: HTMLElement): HTMLElement {
    const element = document.createElement(name);
    element.className = className;
    parent.append(element);
    return element;
}

customElements.define("isles-place-grid", PlaceGrid);
