// What looks wrong in the run: finishes for which nothing happens, places that do not yield, queues that grow, chatter;
// and deaths.

import { html, nothing } from "lit";
import { plain, plural, span } from "../draw/text";
import type { Snapshot } from "../model/api";
import { store } from "../model/store";
import { nothingYet, placeLink, View } from "../parts/view";

const NAMES: Record<string, string> = {
    "finish-open": "nothing happens",
    "no-yield": "no yield",
    "queue-grows": "queue grows",
    chatter: "chatter",
};
const ROWS = 100;

export const warningName = (kind: string) => NAMES[kind] ?? plain(kind);

/** How many there are, dead places too. */
export function warningsOf(shown: Snapshot): number {
    return shown.warnings.length + shown.places.state.filter((state) => state === "dead").length;
}

export class WarningsView extends View {
    override render() {
        const { shown } = store;
        if (!shown) return nothingYet;
        const dead = shown.places.state.flatMap((state, place) => state === "dead" ? [place] : []);
        const { warnings, dropped, missed } = shown;
        const rest = dead.length + warnings.length - 2 * ROWS;
        return html`
            ${dead.length + warnings.length === 0 ? html`<p class="nothing">nothing to warn of</p>` : nothing}
            <ul class="warnings">
                ${dead.slice(0, ROWS).map((place) => html`<li class="is-bad"><strong>dead place</strong>
                    <span>${placeLink(place)}</span>
                    <span class="warning-text">${plain(shown.places.cause[place] ?? "cause unknown")}</span></li>`)}
                ${warnings.slice(0, ROWS).map((warning) => html`<li>
                    <strong>${warningName(warning.kind)}</strong>
                    <span>${placeLink(warning.place)}</span>
                    <span class="warning-text">${plain(warning.text)}</span>
                    <span class="note">for ${span(Math.max(0, shown.time_ms - warning.since_ms))}</span></li>`)}
            </ul>
            ${rest > 0 ? html`<p class="note">${plural(rest, "more", "more")} not shown</p>` : nothing}
            ${dropped.events + dropped.samples + missed > 0 ? html`<p class="note">not recorded:
                ${plural(dropped.events, "event")}, ${plural(dropped.samples, "sample")}; not sent to this page:
                ${plural(missed, "snapshot")}</p>` : nothing}`;
    }
}

customElements.define("isles-warnings-view", WarningsView);
