// A curve over the time of the run, drawn by uPlot, with what a canvas does not give: a cursor that the arrow keys move
// and that says its values, and the same numbers as a table.
//
// The figure is a slider over the points: that is the role whose value is spoken when it changes.

import { html, nothing } from "lit";
import uPlot from "uplot";
import { watchWidth } from "../draw/canvas";
import { clock, modelled } from "../draw/text";
import { preferences } from "../model/preferences";
import { Element } from "./element";
import type { Column } from "./table";

export interface Series {
    name: string;
    values: (number | null)[];
    /** The colour of the style sheet that it has; without it, that of its number. */
    stroke?: string;
}
export interface Curve {
    /** Seconds since the start, ascending. */
    x: number[];
    series: Series[];
    /** The most that the axis must show; without it, the largest value. */
    top?: number;
    show(value: number): string;
    /** A time to mark, in seconds: where a replay stands. */
    at?: number;
    /** Whether the times are those of a modelled chip, which may pass in microseconds. */
    modelled?: boolean;
}

const HEIGHT = 170;
/** What may lie between two times on the axis, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 36_000];
const POWERS = Array.from({ length: 14 }, (_, power) => 10 ** (power - 7));
const MODELLED_STEPS = POWERS.flatMap((power) => [power, 2 * power, 5 * power]);
const timeOf = (curve: Curve, seconds: number) => (curve.modelled ? modelled : clock)(1000 * seconds);
const STROKES = ["--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5", "--curve-6"];
const style = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Chart extends Element {
    static override properties = { label: {}, curve: { attribute: false } };
    declare label: string;
    declare curve: Curve | null;
    private plot: uPlot | null = null;
    private plotted = "";
    private drawn: Curve | null = null;
    private dark = preferences.dark;
    private table = false;
    private cursor = -1;
    private unwatch: (() => void) | null = null;

    constructor() {
        super();
        this.label = "";
        this.curve = null;
    }

    override render() {
        const points = this.curve?.x.length ?? 0;
        const at = this.cursor >= 0 ? Math.min(this.cursor, points - 1) : points - 1;
        return html`
            <figure class="chart">
                <figcaption class="chart-head">
                    <span>${this.label}</span>
                    <output class="chart-value">${points > 0 ? this.spoken(at) : "nothing recorded yet"}</output>
                    <button class="quiet" aria-pressed=${String(this.table)} @click=${this.toggle}>
                        Show as table</button>
                </figcaption>
                <div class="chart-plot" tabindex="0" role="slider" aria-label=${`${this.label}, time`}
                    aria-valuemin="0" aria-valuemax=${Math.max(0, points - 1)} aria-valuenow=${Math.max(0, at)}
                    aria-valuetext=${points > 0 ? this.spoken(at) : "nothing recorded yet"} ?hidden=${this.table}
                    @keydown=${this.key} @blur=${this.rest} @pointerleave=${this.rest}></div>
                ${this.table && this.curve ? html`<isles-table .label=${this.label} .columns=${this.columns()}
                    .rows=${Array.from({ length: points }, (_, row) => points - 1 - row)}></isles-table>` : nothing}
            </figure>`;
    }

    override firstUpdated(): void {
        this.unwatch = watchWidth(this.querySelector(".chart")!, (width) => {
            if (this.plot && width > 0) this.plot.setSize({ width, height: HEIGHT });
        });
    }

    override updated(): void {
        const target = this.querySelector<HTMLElement>(".chart-plot")!;
        if (this.dark !== preferences.dark) {
            this.dark = preferences.dark;
            this.plotted = "";
        }
        if (!this.curve || this.curve.x.length === 0 || this.table) return;
        const shape = this.curve.series.map((series) => series.name).join("|") + (this.curve.top ?? "");
        if (!this.plot || this.plotted !== shape) {
            this.plot?.destroy();
            this.plot = this.make(target, this.curve);
            this.plotted = shape;
            this.drawn = this.curve;
        } else if (this.drawn !== this.curve) {
            this.drawn = this.curve;
            this.plot.setData(dataOf(this.curve));
        }
        if (this.cursor >= 0 && document.activeElement === target) this.point();
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.unwatch?.();
        this.plot?.destroy();
        this.plot = null;
    }

    private make(target: HTMLElement, curve: Curve): uPlot {
        const axis = {
            stroke: style("--muted"), font: "11px system-ui, sans-serif",
            grid: { stroke: style("--line"), width: 1 }, ticks: { show: false },
        };
        return new uPlot({
            width: Math.max(200, target.clientWidth), height: HEIGHT,
            padding: [8, 12, 0, 0],
            legend: { show: false },
            cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 }, move: inPlot },
            scales: { x: { time: false }, y: { range: (_, __, most) => [0, this.curve?.top ?? (most * 1.1 || 1)] } },
            axes: [
                {
                    ...axis, size: 28, gap: 6, space: 72, incrs: curve.modelled ? MODELLED_STEPS : STEPS,
                    values: (_, ticks) => ticks.map((tick) => timeOf(curve, tick)),
                },
                { ...axis, size: 62, gap: 4, values: (_, ticks) => ticks.map((tick) => curve.show(tick)) },
            ],
            series: [{}, ...curve.series.map((series, index) => ({
                stroke: style(series.stroke ?? STROKES[index % STROKES.length]!),
                // One point makes no line.
                points: { show: (plot: uPlot) => plot.data[0].length === 1 },
                width: 1.75, spanGaps: false,
                fill: index === 0 && curve.series.length === 1 ? style("--curve-fill") : undefined,
            }))],
            hooks: {
                setCursor: [(plot: uPlot) => {
                    if (plot.cursor.idx === undefined || plot.cursor.idx === null) return;
                    if (this.cursor === plot.cursor.idx) return;
                    this.cursor = plot.cursor.idx;
                    this.requestUpdate();
                }],
                draw: [(plot: uPlot) => {
                    const at = this.curve?.at;
                    if (at === undefined) return;
                    const x = plot.valToPos(at, "x", true);
                    plot.ctx.fillStyle = style("--accent");
                    plot.ctx.fillRect(x, plot.bbox.top, 2 * devicePixelRatio, plot.bbox.height);
                }],
            },
        }, dataOf(curve), target);
    }

    private columns(): Column<number>[] {
        const curve = this.curve!;
        return [
            { name: "Time", number: true, value: (row) => curve.x[row]!, show: (row) => timeOf(curve, curve.x[row]!) },
            ...curve.series.map((series) => ({
                name: series.name, number: true,
                value: (row: number) => series.values[row] ?? -1,
                show: (row: number) => valueText(curve, series, row),
            })),
        ];
    }

    private spoken(row: number): string {
        const curve = this.curve!;
        const values = curve.series.map((series) =>
            (curve.series.length > 1 ? `${series.name} ` : "") + valueText(curve, series, row));
        return `at ${timeOf(curve, curve.x[row] ?? 0)}: ${values.join(", ")}`;
    }

    private toggle(): void {
        this.table = !this.table;
        // The table takes the place of the picture; back, the picture may have changed its width.
        this.plotted = "";
        this.requestUpdate();
    }

    private rest(): void {
        this.cursor = -1;
        this.plot?.setCursor({ left: -10, top: -10 }, false);
        this.requestUpdate();
    }

    private key(event: KeyboardEvent): void {
        const last = (this.curve?.x.length ?? 0) - 1;
        if (last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
        const from = this.cursor >= 0 ? this.cursor : last;
        const leap = Math.max(1, Math.round(last / 10));
        const to = {
            ArrowLeft: from - 1, ArrowRight: from + 1, ArrowDown: from - 1, ArrowUp: from + 1,
            PageDown: from - leap, PageUp: from + leap, Home: 0, End: last,
        }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        this.cursor = Math.min(last, Math.max(0, to));
        this.point();
        this.requestUpdate();
    }

    private point(): void {
        if (!this.plot || !this.curve) return;
        const left = this.plot.valToPos(this.curve.x[this.cursor] ?? 0, "x");
        this.plot.setCursor({ left, top: HEIGHT / 3 }, false);
    }
}

function dataOf(curve: Curve): uPlot.AlignedData {
    return [curve.x, ...curve.series.map((series) => series.values)] as uPlot.AlignedData;
}

function valueText(curve: Curve, series: Series, row: number): string {
    const value = series.values[row];
    return value === null || value === undefined ? "unknown" : curve.show(value);
}

/** Where the pointer is in the curve, whose view may have been scaled. */
const inPlot: uPlot.Cursor.MousePosRefiner = ({ over }, left, top) => {
    const box = over.getBoundingClientRect();
    return left < 0 || box.width === 0 ? [left, top]
        : [left * over.offsetWidth / box.width, top * over.offsetHeight / box.height];
};

customElements.define("isles-chart", Chart);
