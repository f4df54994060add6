// The page around the views: head, key figures, the choice of views, the panes, the slider of a replay.

import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { clock, commandOf, count, modelled, percent, plain, plural, rate } from "../draw/text";
import type { Run, Snapshot } from "../model/api";
import { POSED, VIEWS, type Pane } from "../model/layout";
import { changed, isUpright, settled, transformOf, UPRIGHT } from "../model/pose";
import { preferences } from "../model/preferences";
import { store } from "../model/store";
import { totalOf } from "../model/totals";
import { Element } from "../parts/element";
import { figure } from "../parts/view";
import type { JobsView } from "../views/jobs";
import { chipFigures } from "../views/power";
import { warningsOf } from "../views/warnings";
import { banners, refusal } from "./banners";
import { commandsOf, viewName, type Shell } from "./commands";
import { Fingers } from "./fingers";
import type { Help } from "./help";
import { listen } from "./keys";
import type { Palette } from "./palette";
import "../views/chip";
import "../views/core";
import "../views/finishes";
import "../views/jobs";
import "../views/messages";
import "../views/stages";
import "../views/summary";
import "./help";
import "./palette";
import "./replay";

export class App extends Element implements Shell {
    private commands = commandsOf(this);
    private fingers = new Fingers();

    override connectedCallback(): void {
        super.connectedCallback();
        listen(this.commands, this);
    }

    override render(): TemplateResult {
        if (store.refusal) return refusal(store.refusal);
        const { run, shown } = store;
        if (!run) return html`<main class="refusal"><p>asking the run</p></main>`;
        return html`
            <a class="skip" href="#main" @click=${this.skip}>To the views</a>
            ${this.head(run, store.end?.last ?? shown)}
            ${banners(run, shown)}
            <section aria-label="Key figures">${this.figures(shown)}</section>
            <nav class="views" aria-label="Views">${VIEWS.filter((view) => store.offers(view)).map((view) => {
                const open = store.panes.some((pane) => pane.view === view);
                const warnings = view === "warnings" && shown ? warningsOf(shown) : 0;
                return html`<button aria-pressed=${String(open)} @click=${(event: MouseEvent) =>
                    store.openView(view, store.place, event.detail === 0)}>${viewName(view)}${
                    warnings > 0 ? html` <span class="badge">${warnings}</span>` : nothing}</button>`;
            })}</nav>
            <main id="main" class="panes" data-panes=${store.panes.length} tabindex="-1">
                ${repeat(store.panes, (pane) => pane.id, (pane) => this.pane(pane))}</main>
            <isles-replay></isles-replay>
            <isles-palette .commands=${this.commands}></isles-palette>
            <isles-help .commands=${this.commands}></isles-help>`;
    }

    override updated(): void {
        const { run, shown } = store;
        if (run) document.title = `${commandOf(run.program, run.arguments).name}, Isles`;
        if (shown && !this.drawn) {
            this.drawn = true;
            // The views draw after this element; the frame after that shows them.
            requestAnimationFrame(() => performance.mark("picture"));
        }
        for (const { id, pose } of store.panes) {
            const view = this.querySelector<HTMLElement>(`#pane-${id} .pane-body > *`);
            view?.style.setProperty("transform", transformOf(pose));
        }
        if (store.seenPane !== 0) {
            const id = `#pane-${store.seenPane}`;
            store.seenPane = 0;
            // The view is drawn in the next frame, what is in it in the one after; before, there is little to see.
            requestAnimationFrame(() => requestAnimationFrame(() => reveal(this.querySelector<HTMLElement>(id))));
        }
        if (store.focusPane === 0) return;
        this.querySelector<HTMLElement>(`#pane-${store.focusPane} h2`)?.focus({ preventScroll: true });
        store.focusPane = 0;
    }

    private drawn = false;

    private head(run: Run, shown: Snapshot | null): TemplateResult {
        const replay = run.mode === "replay";
        const paused = replay ? !store.playing : store.paused;
        const command = [run.program, ...run.arguments].map(plain).join(" ");
        const { name, rest } = commandOf(run.program, run.arguments);
        return html`<header class="head">
            <div class="head-run">
                ${MARK}
                <h1>${name}</h1>
                <span class="head-command" title=${command}>${rest}</span>
                <span class="head-facts">${plural(run.places, "place")} on ${plain(run.machine)}</span>
            </div>
            <div class="head-now">
                <span class="state" data-state=${replay ? "replay" : shown?.state ?? "unknown"}>${
                    replay ? "replay" : shown?.state ?? store.connection}</span>
                ${shown ? html`<span class="clock" title="Time of the run">${clock(shown.time_ms)}</span>` : nothing}
                ${shown && shown.model_ms !== null
                    ? html`<span class="note">modelled ${modelled(shown.model_ms)}</span>` : nothing}
            </div>
            <div class="head-buttons">
                ${replay ? nothing : html`<button @click=${() => store.pause(!paused)}>
                    ${paused ? "Resume" : "Pause"}</button>`}
                <button aria-label=${`Theme: ${preferences.theme}`} @click=${() => preferences.nextTheme()}><span
                    class="theme-word">Theme: </span>${preferences.theme}</button>
                <button @click=${() => this.palette()}>Commands <kbd>Ctrl K</kbd></button>
                <button @click=${() => this.help()} aria-label="Help with keys">?</button>
            </div>
        </header>`;
    }

    private figures(shown: Snapshot | null): TemplateResult {
        if (!shown) return html`<dl class="figures is-key">${figure("Load", "–")}</dl>`;
        const { end, rates } = store;
        if (end) return this.endFigures(end);
        const total = totalOf(shown);
        const sum = (values: number[] | undefined) => values ? rate(values.reduce((a, b) => a + b, 0)) : "–";
        const { power, progress } = shown;
        return html`<dl class="figures is-key">
            ${figure("Load", percent(total.busy), "mean")}
            ${figure("Tasks a second", sum(rates?.tasks), `${count(total.tasks)} run`)}
            ${figure("Messages a second", sum(rates?.sent), `${count(total.messages)} sent`)}
            ${this.finishes(shown)}
            ${power ? chipFigures(power, shown.state !== "running") : nothing}
            ${progress ? this.progress(progress) : nothing}
        </dl>`;
    }

    /** The key figures of a whole run. */
    private endFigures({ last, summary }: NonNullable<typeof store.end>): TemplateResult {
        const mean = (sum: number) => summary.time_ms > 0 ? rate(sum / (summary.time_ms / 1000)) : "–";
        const load = summary.busy.reduce((a, b) => a + b, 0) / Math.max(1, summary.busy.length);
        return html`<dl class="figures is-key">
            ${figure("Load", percent(load), "mean of the run")}
            ${figure("Tasks a second", mean(summary.tasks), `${count(summary.tasks)} run`)}
            ${figure("Messages a second", mean(summary.messages), `${count(summary.messages)} sent`)}
            ${this.finishes(last)}
            ${summary.power ? chipFigures(summary.power, true) : nothing}
            ${last.progress ? this.progress(last.progress) : nothing}
        </dl>`;
    }

    private finishes(shown: Snapshot): TemplateResult {
        return figure("Open finishes", count(shown.places.finishes_open.reduce((a, b) => a + b, 0)));
    }

    /** Named after the phase, if there is one; then the note names the steps. */
    private progress({ phase, label, done, total, grows }: NonNullable<Snapshot["progress"]>): TemplateResult {
        const name = plain(phase || label) || "Progress";
        const unit = phase && label ? ` ${plain(label)}` : "";
        if (phase && done + total === 0) return figure("Phase", name);
        if (grows) return figure(name, count(done), `${unit} so far`.trim());
        return figure(name, html`<progress class="progress" aria-label=${name} max=${total} .value=${done}></progress>
            ${percent(done / Math.max(1, total))}`, `${count(done)} of ${count(total)}${unit}`);
    }

    private pane(pane: Pane): TemplateResult {
        const name = pane.view === "core" ? `Place ${pane.place}`
            : pane.view === "chip" && store.run?.mesh ? `Chip: ${plain(store.run.mesh.name)}` : viewName(pane.view);
        return html`<section id=${`pane-${pane.id}`} class="pane" aria-labelledby=${`pane-head-${pane.id}`}
            data-view=${pane.view} @focusin=${() => { store.paneId = pane.id; }}>
            <div class="pane-head"><h2 id=${`pane-head-${pane.id}`} tabindex="-1">${name}</h2>
                ${isUpright(pane.pose) ? nothing : html`<button class="quiet" aria-label=${`Straighten ${name}`}
                    @click=${() => store.setPose(pane.id, UPRIGHT)}>Straighten</button>`}
                <button class="quiet" aria-pressed=${String(pane.pinned)} aria-label=${`Pin ${name}`}
                    @click=${() => store.pin(pane.id, !pane.pinned)}>Pin</button>
                <button class="quiet" aria-label=${`Close ${name}`} ?disabled=${store.panes.length === 1}
                    @click=${() => store.closePane(pane.id)}>Close</button></div>
            ${POSED.includes(pane.view)
                ? html`<div class="pane-body" data-pane=${pane.id} data-posed=${String(!isUpright(pane.pose))}
                    @touchstart=${this.fingers} @touchmove=${this.fingers} @touchend=${this.fingers}
                    @touchcancel=${this.fingers}>${this.view(pane)}</div>`
                : html`<div class="pane-body">${this.view(pane)}</div>`}</section>`;
    }

    private view(pane: Pane): TemplateResult {
        switch (pane.view) {
            case "summary": return html`<isles-summary-view .pane=${pane}></isles-summary-view>`;
            case "chip": return html`<isles-chip-view .pane=${pane}></isles-chip-view>`;
            case "core": return html`<isles-core-view .pane=${pane}></isles-core-view>`;
            case "messages": return html`<isles-messages-view .pane=${pane}></isles-messages-view>`;
            case "finishes": return html`<isles-finishes-view .pane=${pane}></isles-finishes-view>`;
            case "stages": return html`<isles-stages-view .pane=${pane}></isles-stages-view>`;
            case "power": return html`<isles-power-view .pane=${pane}></isles-power-view>`;
            case "jobs": return html`<isles-jobs-view .pane=${pane}></isles-jobs-view>`;
            case "warnings": return html`<isles-warnings-view .pane=${pane}></isles-warnings-view>`;
        }
    }

    // The commands that need the page itself.

    palette(): void {
        this.querySelector<Palette>("isles-palette")?.open();
    }

    help(): void {
        this.querySelector<Help>("isles-help")?.open();
    }

    /** Leaves a view: one that is not pinned closes or gives way to the map, and the map has the keyboard. */
    back(): void {
        // What was to take the keyboard in the next frame does not any more.
        store.focusPane = 0;
        const pane = store.panes.find((other) => other.id === store.paneId);
        if (pane && !pane.pinned && pane.view !== "chip") {
            if (store.panes.length > 1) store.closePane(pane.id);
            else store.openView("chip", store.place, true);
        }
        const map = this.querySelector<HTMLElement>("isles-place-grid, isles-place-canvas");
        if (map) map.focus();
        else this.querySelector<HTMLElement>(".pane h2")?.focus();
    }

    next(): void {
        const at = store.panes.findIndex((pane) => pane.id === store.paneId);
        const pane = store.panes[(at + 1) % store.panes.length];
        if (pane) this.querySelector<HTMLElement>(`#pane-${pane.id} h2`)?.focus();
    }

    /** Scales and turns the view of cores that has the keyboard, or the first one, about its middle. */
    lay(scale: number, turn: number): void {
        const pane = this.posed();
        const body = this.querySelector<HTMLElement>(`#pane-${pane?.id ?? 0} .pane-body`);
        if (!pane || !body) return;
        const middle = { x: body.clientWidth / 2, y: body.clientHeight / 2 };
        store.setPose(pane.id, settled(changed(pane.pose, middle, middle, scale, turn)));
    }

    straighten(): void {
        const pane = this.posed();
        if (pane) store.setPose(pane.id, UPRIGHT);
    }

    private posed(): Pane | undefined {
        const panes = store.panes.filter((pane) => POSED.includes(pane.view));
        return panes.find((pane) => pane.id === store.paneId) ?? panes[0];
    }

    output(): void {
        // What is to be shown, not what still is: keys come faster than frames.
        if (!store.panes.some((pane) => pane.view === "core")) store.openView("core", store.place);
        this.focusOutput(20);
    }

    newJob(): void {
        if (!store.panes.some((pane) => pane.view === "jobs")) store.openView("jobs", store.place);
        this.askForJob(20);
    }

    /** The view is made in one of the next frames. */
    private askForJob(frames: number): void {
        requestAnimationFrame(() => {
            const view = this.querySelector<JobsView>("isles-jobs-view");
            if (view?.hasUpdated) view.make();
            else if (frames > 0) this.askForJob(frames - 1);
        });
    }

    /** The view is made in one of the next frames, and its output after it. */
    private focusOutput(frames: number): void {
        requestAnimationFrame(() => {
            const output = this.querySelector<HTMLElement>(`#pane-${store.paneId} .output`)
                ?? this.querySelector<HTMLElement>(".output");
            // What was to take the keyboard in the next frame does not any more.
            if (output) {
                store.focusPane = 0;
                output.focus();
            } else if (frames > 0) {
                this.focusOutput(frames - 1);
            }
        });
    }

    press(name: string): void {
        const pane = this.querySelector(`#pane-${store.paneId}`);
        const buttons = (part: ParentNode | null) =>
            [...part?.querySelectorAll<HTMLElement>("button[aria-pressed]") ?? []];
        [...buttons(pane), ...buttons(this)].find((button) => button.textContent?.trim() === name)?.click();
    }

    private skip(event: Event): void {
        event.preventDefault();
        this.querySelector<HTMLElement>("#main h2")?.focus();
    }
}

// Drawn here, not asked for: a report in one file has no other.
const MARK = html`<svg class="mark" viewBox="0 0 32 32" width="22" height="22" role="img" aria-label="Isles">
    <rect width="32" height="32" rx="7" fill="#123a5e"></rect>
    <g fill="#fff"><rect x="6" y="6" width="9" height="9" rx="2" opacity=".45"></rect>
    <rect x="17" y="6" width="9" height="9" rx="2"></rect><rect x="6" y="17" width="9" height="9" rx="2"></rect></g>
    <rect x="17" y="17" width="9" height="9" rx="2" fill="#fdd835"></rect></svg>`;

/** Brings a view that was asked for into the window, where less than a good part of it is there. */
function reveal(pane: HTMLElement | null): void {
    if (!pane) return;
    const { top, bottom, height } = pane.getBoundingClientRect();
    const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
    if (seen < Math.min(height, innerHeight) * 0.6) pane.scrollIntoView({ block: "start" });
}

customElements.define("isles-app", App);
