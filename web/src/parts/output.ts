// The last lines that a place printed, as text and never as anything else.
//
// Asked once a second while the view is open and the tab is seen. The page shows `LINES` lines, of a replay the last
// ones at its time; what it, the server or the place dropped is a number in the head. Following stops when the reader
// scrolls up, and goes on at the end.

import { html, nothing } from "lit";
import { clock, plain, plural } from "../draw/text";
import { getOutput, type OutputLine } from "../model/api";
import { store } from "../model/store";
import { Element } from "./element";

const LINES = 500;
const ASK_MS = 1000;

export class PlaceOutput extends Element {
    static override properties = { place: { type: Number } };
    declare place: number;
    private lines: OutputLine[] = [];
    private dropped = 0;
    private trouble = "";
    private recorded = true;
    private follow = true;
    private of = -1;
    private asking = false;
    private timer = 0;

    constructor() {
        super();
        this.place = 0;
    }

    override connectedCallback(): void {
        super.connectedCallback();
        this.timer = window.setInterval(() => void this.ask(), ASK_MS);
    }

    override disconnectedCallback(): void {
        super.disconnectedCallback();
        clearInterval(this.timer);
    }

    override render() {
        const until = store.run?.mode === "replay" || store.paused ? store.shown?.time_ms ?? 0 : Infinity;
        const isPrinted = (line: OutputLine) => line.time_ms <= until && line.stream !== "stages";
        const printed = this.of === this.place ? this.lines.filter(isPrinted) : [];
        const lines = printed.slice(-LINES);
        return html`
            <div class="part-head">
                <h3>Output</h3>
                ${this.dropped > 0 ? html`<span class="note">${plural(this.dropped, "line")} dropped</span>` : nothing}
                ${this.trouble ? html`<span class="note is-bad">${this.trouble}</span>` : nothing}
                ${this.recorded ? html`<button class="quiet" aria-pressed=${String(this.follow)}
                    @click=${this.toggle}>Follow</button>` : nothing}
            </div>
            <div class="output ${this.recorded ? "" : "is-none"}" tabindex="0" role="log" aria-live="off"
                aria-label=${`Output of place ${this.place}`} @scroll=${this.scrolled}>${lines.length === 0
                    ? html`<p class="nothing">${this.recorded
                        ? "nothing printed by isles::println! and its like; what is printed otherwise is not shown"
                        : "not kept in a run of so many places"}</p>`
                    : lines.map((line) => html`<p><span class="output-time">${clock(line.time_ms)}</span>${
                        line.stream === "stderr" || line.stream === "result"
                            ? html`<span class="output-time">${line.stream}</span>` : nothing}${
                        plain(line.text)}</p>`)}</div>`;
    }

    override updated(): void {
        if (this.of !== this.place) void this.ask();
        const box = this.querySelector(".output");
        if (box && this.follow) box.scrollTop = box.scrollHeight;
    }

    private async ask(): Promise<void> {
        const started = this.of !== this.place;
        // What a run that is over has printed does not change.
        if (this.asking || (!started && (document.hidden || !this.recorded || store.run?.mode === "replay"))) return;
        this.asking = true;
        const place = this.place;
        if (started) {
            this.of = place;
            this.lines = [];
            this.dropped = 0;
        }
        try {
            const said = await getOutput(place, this.lines.at(-1)?.seq ?? 0);
            if (place !== this.place) return;
            const all = [...this.lines, ...said.lines];
            // A replay is asked once, and any part of it may be shown.
            const over = store.run?.mode === "replay" ? 0 : Math.max(0, all.length - LINES);
            const changed = said.lines.length > 0 || this.trouble !== "" || (said.recorded !== false) !== this.recorded;
            this.lines = all.slice(over);
            this.recorded = said.recorded !== false;
            this.dropped += said.dropped + over;
            this.trouble = "";
            if (changed) this.requestUpdate();
        } catch (error) {
            this.trouble = error instanceof Error ? error.message : String(error);
            this.requestUpdate();
        } finally {
            this.asking = false;
            if (place !== this.place) void this.ask();
        }
    }

    private toggle(): void {
        this.follow = !this.follow;
        this.requestUpdate();
    }

    private scrolled(event: Event): void {
        const box = event.currentTarget as HTMLElement;
        const end = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
        if (end === this.follow) return;
        this.follow = end;
        this.requestUpdate();
    }
}

customElements.define("isles-output", PlaceOutput);
