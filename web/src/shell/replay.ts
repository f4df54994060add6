// The time slider of a replay: where in the log the picture stands, and how far the log goes.

import { html, nothing } from "lit";
import { clock } from "../draw/text";
import { store } from "../model/store";
import { Element } from "../parts/element";

export class ReplayBar extends Element {
    override render() {
        const { run } = store;
        if (run?.mode !== "replay") return nothing;
        const length = run.length_ms ?? 0;
        const at = Math.min(length, store.sought);
        return html`<section class="replay" aria-label="Time of the replay">
            <button @click=${() => store.play(!store.playing)}>${store.playing ? "Pause" : "Play"}</button>
            <input type="range" min="0" max=${length} step=${length > 60_000 ? 1000 : 100} .value=${String(at)}
                aria-label="Time of the run" aria-valuetext=${`${clock(at)} of ${clock(length)}`}
                @input=${(event: Event) => {
                    store.play(false);
                    void store.seek(Number((event.target as HTMLInputElement).value));
                }}>
            <span class="replay-time">${clock(at)} of ${clock(length)}${run.cut ? ", cut off" : ""}</span>
            ${store.replayError ? html`<span class="note is-bad" role="alert">${store.replayError}</span>` : nothing}
        </section>`;
    }
}

customElements.define("isles-replay", ReplayBar);
