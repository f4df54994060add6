// What must be said above all pictures: that the connection is lost, the picture paused, the run over, a log cut off, a
// place dead. Each is one line of words; none is a colour alone.

import { html, nothing, type TemplateResult } from "lit";
import { clock, moment, plain, plural, span } from "../draw/text";
import type { RequestError, Run, Snapshot } from "../model/api";
import { store } from "../model/store";

export function banners(run: Run, shown: Snapshot | null): TemplateResult {
    return html`<div class="banners">
        <div role="alert">${connection(run, shown)}</div>
        <div role="status">${shown ? [ended(run, shown), paused(shown), cut(run, shown), dead(shown)] : nothing}</div>
    </div>`;
}

function connection(run: Run, shown: Snapshot | null): TemplateResult | typeof nothing {
    if (run.mode === "replay") return nothing;
    const picture = shown ? `The picture is of ${clock(shown.time_ms)}.` : "";
    const over = store.latest?.state === "ended" || store.latest?.state === "failed";
    if (store.connection === "refused") {
        return html`<p class="banner is-bad"><strong>Refused.</strong> The server has no room for another reader, or
            this session is over. Trying again.</p>`;
    }
    if (store.connection === "lost") {
        return over ? html`<p class="banner"><strong>The server has ended</strong> with its run. ${picture}</p>`
            : html`<p class="banner is-bad"><strong>Connection lost.</strong> ${picture} Trying again.</p>`;
    }
    const silent = store.silence();
    return silent > 0 ? html`<p class="banner is-warn"><strong>No news</strong> for ${span(silent)}. ${picture}</p>`
        : nothing;
}

function ended(run: Run, shown: Snapshot): TemplateResult | typeof nothing {
    const reason = shown.reason ? html`: ${plain(shown.reason)}` : nothing;
    switch (shown.state) {
        case "ended": return html`<p class="banner"><strong>The run has ended</strong>${reason}${worked(shown)}</p>`;
        case "failed": return html`<p class="banner is-bad"><strong>The run has failed</strong>${reason}${
            worked(shown)}</p>`;
        case "unknown": return run.mode === "replay" && run.cut && !shown.reason ? nothing
            : html`<p class="banner is-warn"><strong>State unknown</strong>${reason}</p>`;
        default: return nothing;
    }
}

/** Of when the picture is, where that is before the end. */
function worked(shown: Snapshot): string {
    const { latest } = store;
    return latest && shown.time_ms < latest.time_ms
        ? `. The picture is of ${moment(shown.time_ms, latest.time_ms)}, when it last worked.` : "";
}

function paused(shown: Snapshot): TemplateResult | typeof nothing {
    if (!store.paused) return nothing;
    return html`<p class="banner"><strong>Paused</strong> at ${clock(shown.time_ms)};
        <span class="collected">${plural(store.collected, "snapshot")}</span> collected since.
        <button class="link" @click=${() => store.pause(false)}>Resume</button></p>`;
}

function cut(run: Run, shown: Snapshot): TemplateResult | typeof nothing {
    if (run.mode !== "replay" || !run.cut) return nothing;
    const end = run.length_ms ?? 0;
    return html`<p class="banner is-warn"><strong>The log is cut off</strong> at ${moment(end, end)}: what came after is
        unknown${shown.time_ms >= end ? ", and so are the states of now" : ""}.</p>`;
}

function dead(shown: Snapshot): TemplateResult | typeof nothing {
    const places = shown.places.state.flatMap((state, place) => state === "dead" ? [place] : []);
    if (places.length === 0) return nothing;
    const first = places[0]!;
    const cause = shown.places.cause[first];
    return html`<p class="banner is-bad"><strong>${plural(places.length, "place")} dead</strong>: place ${first}${
        cause ? html` (${plain(cause)})` : nothing}${places.length > 1 ? ` and ${places.length - 1} more` : ""}.
        <button class="link" @click=${() => store.openView("core", first)}>Show</button></p>`;
}

/** The whole page where there is no run to show. */
export function refusal(error: RequestError): TemplateResult {
    const [head, what] = error.status === 401 || error.status === 403
        ? ["This page needs its token", "Open the whole address that the program printed, with #token= at its end. "
            + "Each start of a run has a token of its own."]
        : error.status === 0 ? ["The server does not answer", "The run, or its server, has probably ended."]
            : ["The server refused", error.message];
    return html`<main class="refusal"><h1>${head}</h1><p>${what}</p>
        <p><button @click=${() => location.reload()}>Try again</button></p></main>`;
}
