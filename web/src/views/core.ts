// One place: what it does now, how it did over time, what it waits for and who it talks to, what it printed.

import { html, nothing, type TemplateResult } from "lit";
import { mapOf } from "../draw/map";
import { bytes, count, percent, plain, plural, rate, watts } from "../draw/text";
import { WAITS_TOLD, type CounterInfo, type Run, type Snapshot } from "../model/api";
import { History } from "../model/history";
import { jobs } from "../model/jobs";
import { store } from "../model/store";
import type { Curve } from "../parts/chart";
import { figure, nothingYet, placeLink, View } from "../parts/view";
import { age } from "./finishes";
import "../parts/chart";
import "../parts/output";

const LISTED = 5;
const BUSY: CounterInfo = { name: "busy", unit: "share", description: "share of time at work", kind: "gauge" };

export class CoreView extends View {
    private counter = "busy";
    private history: History | null = null;
    private askedAt = 0;
    private leaveJobs: (() => void) | null = null;

    override connectedCallback(): void {
        super.connectedCallback();
        if (store.run?.jobs) this.leaveJobs = jobs.watch();
    }

    override render() {
        const { run, shown } = store;
        if (!run || !shown) return nothingYet;
        const place = this.pane.place;
        return html`
            ${this.steps(run, place)}
            ${this.state(shown, place)}
            ${this.figures(shown, place)}
            ${this.counted(run, shown, place)}
            <div class="tools"><label>Counter <select @change=${this.choose}>${this.counters(run).map((counter) =>
                html`<option value=${counter.name} ?selected=${counter.name === this.counter}>${
                    plain(counter.name)}</option>`)}</select></label>
                <span class="note">${plain(this.info(run).description)}</span></div>
            <isles-chart .label=${`${plain(this.counter)} of place ${place}`} .curve=${this.curve(run, shown)}>
            </isles-chart>
            ${this.jobCurves(place)}
            ${this.history?.trouble ? html`<p class="note is-bad">${this.history.trouble}</p>` : nothing}
            <div class="beside">${this.waits(shown, place)}${this.peers(shown, place)}</div>
            <isles-output .place=${place}></isles-output>`;
    }

    override updated(): void {
        const { run, latest } = store;
        if (!run || !latest) return;
        const { place } = this.pane;
        if (this.history?.places[0] !== place || this.history.counter.name !== this.counter) {
            this.forget();
            this.history = new History([place], this.info(run));
            if (run.mode === "live") store.histories.add(this.history);
            this.load();
        } else if (run.mode === "live" && !this.history.carried && performance.now() - this.askedAt > 2000) {
            // What no snapshot carries is asked again.
            this.load();
        }
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        this.leaveJobs?.();
        this.forget();
    }

    private forget(): void {
        if (this.history) store.histories.delete(this.history);
        this.history = null;
    }

    private load(): void {
        this.askedAt = performance.now();
        void this.history?.load().then(() => this.requestUpdate());
    }

    private counters(run: Run): CounterInfo[] {
        return run.counters.length > 0 ? run.counters : [BUSY];
    }

    private info(run: Run): CounterInfo {
        const counters = this.counters(run);
        const found = counters.find((counter) => counter.name === this.counter) ?? counters[0]!;
        this.counter = found.name;
        return found;
    }

    private choose(event: Event): void {
        this.counter = (event.target as HTMLSelectElement).value;
        this.requestUpdate();
    }

    private steps(run: Run, place: number): TemplateResult {
        const go = (to: number) => store.setPlace(this.pane.id, to);
        const map = mapOf(run);
        const where = [
            map.mesh ? `tile ${map.tileOf(place)}` : "",
            run.host_of?.[place] ? plain(run.host_of[place]) : "",
        ].filter(Boolean).join(", ");
        return html`<div class="tools">
            <button class="quiet" ?disabled=${place === 0} @click=${() => go(place - 1)}>Previous</button>
            <label>Place <input type="number" min="0" max=${run.places - 1} .value=${String(place)}
                @change=${(event: Event) => {
                    const input = event.target as HTMLInputElement;
                    go(Math.min(run.places - 1, Math.max(0, Math.floor(Number(input.value) || 0))));
                    input.value = String(this.pane.place);
                }}></label>
            <button class="quiet" ?disabled=${place === run.places - 1} @click=${() => go(place + 1)}>Next</button>
            <span class="note">${where}</span></div>`;
    }

    private state(shown: Snapshot, place: number): TemplateResult | typeof nothing {
        const state = shown.places.state[place]!;
        const cause = shown.places.cause[place];
        if (state !== "dead" && state !== "silent" && !cause) return nothing;
        return html`<p class="banner ${state === "dead" ? "is-bad" : ""}"><strong>${state}</strong>${
            cause ? html`: ${plain(cause)}` : nothing}</p>`;
    }

    private figures(shown: Snapshot, place: number): TemplateResult {
        const { places } = shown;
        const { rates } = store;
        const each = (values: number[] | undefined) => values ? `${rate(values[place]!)}/s` : "";
        return html`<dl class="figures">
            ${figure("State", places.state[place])}
            ${figure("Load", percent(places.busy[place]!))}
            ${figure("Tasks run", count(places.tasks[place]!), each(rates?.tasks))}
            ${figure("Ready", count(places.queue[place]!))}
            ${figure("Blocked", count(places.blocked[place]!))}
            ${figure("Sent", count(places.messages_sent[place]!), bytes(places.bytes_sent[place]!))}
            ${figure("Received", count(places.messages_received[place]!), bytes(places.bytes_received[place]!))}
            ${figure("Memory", bytes(places.memory_bytes[place]!))}
            ${places.clock_mhz ? figure("Clock", `${places.clock_mhz[place]!.toFixed(0)} MHz`,
                places.volt ? `${places.volt[place]!.toFixed(3)} V` : "") : nothing}
            ${places.watt ? figure("Power", watts(places.watt[place]!), "modelled") : nothing}
        </dl>`;
    }

    /** Each counter that is not 0 here, whatever the program makes use of. */
    private counted(run: Run, shown: Snapshot, place: number): TemplateResult {
        const columns = shown.places as unknown as Record<string, number[] | undefined>;
        const rows = run.counters.map((info) => ({ info, value: columns[info.name]?.[place] ?? 0 }))
            .filter(({ info, value }) => value !== 0 && info.unit !== "share");
        return html`<details class="part"><summary>All counters</summary><dl class="figures">${rows.map(
            ({ info, value }) => figure(plain(info.name.replaceAll("_", " ")),
                Number.isInteger(value) ? count(value) : rate(value), plain(info.unit)))}</dl></details>`;
    }

    /** Use by each job of this place, if the run manages jobs. */
    private jobCurves(place: number): TemplateResult | typeof nothing {
        const curve = jobs.use.curve(place);
        if (!curve) return nothing;
        return html`<isles-chart .label=${`use of place ${place} by job`} .curve=${curve}></isles-chart>`;
    }

    private curve(run: Run, shown: Snapshot): Curve | null {
        const history = this.history;
        if (!history) return null;
        const info = history.counter;
        const share = info.name === "busy" || info.unit === "share" || info.unit === "ratio";
        const unit = info.kind === "count" ? "/s" : "";
        const replay = run.mode === "replay";
        const { x, values } = history.until(replay ? Infinity : shown.time_ms / 1000);
        return {
            x, series: [{ name: plain(info.name), values }],
            top: share ? 1 : undefined,
            at: replay ? shown.time_ms / 1000 : undefined,
            show: share ? percent : /bytes/.test(info.unit) ? (value) => bytes(value) + unit
                : (value) => (Number.isInteger(value) ? count(value) : rate(value)) + unit,
        };
    }

    private waits(shown: Snapshot, place: number): TemplateResult {
        const home = shown.finishes.filter((finish) => finish.home === place);
        const here = shown.finishes.filter((finish) =>
            finish.home !== place && finish.waits_for.some(([at]) => at === place));
        const { places } = shown;
        return html`<div class="part"><h3>What runs here</h3>
            <ul class="plain">
                <li>${plural(places.queue[place]!, "task")} ready, ${plural(places.blocked[place]!, "task")} blocked,
                    ${plural(places.finishes_open[place]!, "finish", "finishes")} open</li>
                ${home.slice(0, LISTED).map((finish) => html`<li>finish <q>${plain(finish.label)}</q>, open
                    ${age(finish)}, waits for ${finish.waits_for.length === 0 ? "its body"
                        : finish.waits_for.slice(0, 4).map(([at, tasks], index) =>
                            html`${index > 0 ? ", " : ""}${placeLink(at)} (${plural(tasks, "task")})`)}${
                        finish.waits_for.length > 4 ? ` and ${finish.waits_for.length - 4} more`
                            : finish.waits_for.length === WAITS_TOLD ? " and perhaps more" : ""}</li>`)}
                ${here.slice(0, LISTED).map((finish) => html`<li>finish <q>${plain(finish.label)}</q> of
                    ${placeLink(finish.home)} waits for tasks here</li>`)}
                ${home.length > LISTED || here.length > LISTED
                    ? html`<li class="note">more under Finishes</li>` : nothing}
            </ul></div>`;
    }

    private peers(shown: Snapshot, place: number): TemplateResult | typeof nothing {
        const pairs = shown.pairs.filter(([from, to]) => from === place || to === place)
            .sort((a, b) => b[2] - a[2]).slice(0, LISTED);
        if (pairs.length === 0) return nothing;
        return html`<div class="part"><h3>Talks to</h3><ul class="plain">${pairs.map(([from, to, messages, size]) =>
            html`<li>${from === place ? html`→ ${placeLink(to)}` : html`← ${placeLink(from)}`}:
                ${plural(messages, "message")}, ${bytes(size)}</li>`)}</ul></div>`;
    }
}

customElements.define("isles-core-view", CoreView);
