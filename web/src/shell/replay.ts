// The time slider of a replay: where in the log the picture stands, and how far the log goes.

import { html, nothing } from "lit";
import { moment } from "../draw/text";
import { store } from "../model/store";
import { Element } from "../parts/element";

export class ReplayBar extends Element {
    override render() {
        const { run } = store;
        if (run?.mode !== "replay") return nothing;
        const length = run.length_ms ?? 0;
        const at = Math.min(length, store.sought);
        const step = length > 60_000 ? 1000 : 100;
        const said = (ms: number) => moment(ms, length);
        // A slider stops at whole steps only: the last one is at or past the end, where the store stops.
        return html`<section class="replay" aria-label="Time of the replay">
            <button @click=${() => store.play(!store.playing)}>${store.playing ? "Pause" : "Play"}</button>
            <input type="range" min="0" max=${Math.ceil(length / step) * step} step=${step} .value=${String(at)}
                aria-label="Time of the run" aria-valuetext=${`${said(at)} of ${said(length)}`}
                @input=${(event: Event) => {
                    store.play(false);
                    void store.seek(Number((event.target as HTMLInputElement).value));
                }}>
            <span class="replay-time">${said(at)} of ${said(length)}${run.cut ? ", cut off" : ""}</span>
            ${store.replayError ? html`<span class="note is-bad" role="alert">${store.replayError}</span>` : nothing}
        </section>`;
    }
}

customElements.define("isles-replay", ReplayBar);
