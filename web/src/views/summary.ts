// What a run came to, once it is over: time, energy, who did how much, messages, warnings, and the lines of its result.
//
// It stands beside the last picture in which the run worked, so that nobody opens an ended run and sees nothing.

import { html, nothing, type TemplateResult } from "lit";
import { bytes, count, modelled, percent, plain, plural, time } from "../draw/text";
import type { Summary } from "../model/api";
import { store } from "../model/store";
import type { Column } from "../parts/table";
import { figure, placeLink, View } from "../parts/view";
import { chipFigures } from "./power";
import { warningName } from "./warnings";
import "../parts/table";

interface Share { place: number; busy: number; tasks: number }

export class SummaryView extends View {
    override render() {
        const { summary } = store;
        if (!summary) {
            return html`<p class="nothing">${store.summaryTrouble || "there is a summary when the run is over"}</p>`;
        }
        return html`${summary.state === "ended" ? nothing : html`<p class="banner is-bad"><strong>${
                summary.state === "failed" ? "The run has failed" : "How the run ended is unknown"}</strong>${
                summary.reason ? html`: ${plain(summary.reason)}` : nothing}</p>`}
            <dl class="figures">
                ${figure("Time", time(summary.time_ms), summary.model_ms === null ? "" : "of this host")}
                ${summary.model_ms === null ? nothing : figure("Predicted time", modelled(summary.model_ms))}
                ${summary.power ? chipFigures(summary.power, true) : nothing}
                ${figure("Tasks", count(summary.tasks))}
                ${figure("Messages", count(summary.messages), bytes(summary.bytes))}
            </dl>
            ${this.result(summary)}
            ${this.warnings(summary)}
            ${this.shares(summary)}`;
    }

    private result({ result }: Summary): TemplateResult {
        return html`<div class="part"><h3>Result</h3>${result.length === 0
            ? html`<p class="nothing">the program has shown none; what places printed is in their views</p>`
            : html`<pre class="result" tabindex="0" aria-label="Result">${result.map(plain).join("\n")}</pre>`}</div>`;
    }

    private warnings({ warnings }: Summary): TemplateResult {
        return html`<div class="part"><h3>Warnings</h3>${warnings.length === 0
            ? html`<p class="nothing">nothing to warn of in the whole run</p>`
            : html`<ul class="plain">${warnings.map((warning) => html`<li><strong>${warningName(warning.kind)}</strong>
                ${warning.places > 1 ? html`at ${plural(warning.places, "place")}, last at ` : "at "}${
                    placeLink(warning.place)}: ${plain(warning.text)}</li>`)}</ul>`}</div>`;
    }

    private shares({ busy, place_tasks }: Summary): TemplateResult {
        const rows: Share[] = busy.map((share, place) => ({ place, busy: share, tasks: place_tasks[place] ?? 0 }));
        const columns: Column<Share>[] = [
            { name: "Place", number: true, value: (row) => row.place },
            { name: "Busy", number: true, value: (row) => row.busy, show: (row) => percent(row.busy) },
            { name: "Tasks", number: true, value: (row) => row.tasks, show: (row) => count(row.tasks) },
        ];
        return html`<div class="part"><h3>Shares of the whole run</h3>
            <isles-table .label=${"Shares by place"} .columns=${columns} .rows=${rows}></isles-table></div>`;
    }
}

customElements.define("isles-summary-view", SummaryView);
